#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every operation of /slurmdb, in each version: it acts, its answer has the right shape, and only those who may can."""
import os, sys
sys.path.insert(0, os.path.dirname(__file__))
from operations import *

job = sys.argv[4]
D = "/slurmdb/{v}/"
for v in VERSIONS:
    acct, sub, user, qos, key = f"acct{v}", f"sub{v}", f"user{v}", f"qos{v}", f"key{v}"
    # accounts
    body = {"accounts": [{"name": acct, "description": "one", "organization": "org", "coordinators": [], "flags": []}]}
    run(v, "POST", D + "accounts/", body, who="user", status=422)
    run(v, "POST", D + "accounts/", body)
    got = run(v, "GET", D + "account/{account_name}", account_name=acct)["accounts"]
    ok("the account is there", [(a["name"], a["description"]) for a in got] == [(acct, "one")], got)
    body["accounts"][0] = {"name": acct, "description": "two"}
    run(v, "POST", D + "accounts/", body)
    got = run(v, "GET", D + "accounts/", query="description=two&WithAssociations")["accounts"]
    ok("it is changed, and the rest of it kept", [(a["name"], a["organization"]) for a in got if a["name"] == acct] == [(acct, "org")], got)
    # associations of accounts
    run(v, "POST", D + "associations/", {"associations": [{"account": acct, "cluster": "rest", "user": "", "shares_raw": 7}]})
    got = run(v, "POST", D + "accounts_association/", {"association_condition": {"accounts": [sub], "clusters": ["rest"], "association": {"parent": acct, "fairshare": 3, "maxjobs": {"set": True, "number": 9}}}, "account": {"description": "below", "organization": "o"}})
    ok("the name of what was added", got.get("added_accounts") == sub, got)
    got = run(v, "GET", D + "associations/", query=f"account={sub}")["associations"]
    ok("the association has what it was given", [(a["parent_account"], a["shares_raw"], a["max"]["jobs"]["active"]["number"], a["lineage"]) for a in got] == [(acct, 3, 9, f"/{acct}/{sub}/")], got)
    # QOS
    run(v, "POST", D + "qos/", {"qos": [{"name": qos, "priority": {"set": True, "number": 50}, "flags": ["DENY_LIMIT"], "limits": {"max": {"wall_clock": {"per": {"job": {"set": True, "number": 30}}}, "tres": {"per": {"user": [{"type": "cpu", "count": 8}]}}}}, "preempt": {"mode": ["REQUEUE"], "list": ["normal"]}}]}, who="operator")
    got = run(v, "GET", D + "qos/{qos}", qos=qos)["qos"][0]
    ok("the QOS has what it was given", (got["priority"]["number"], got["flags"], got["limits"]["max"]["wall_clock"]["per"]["job"]["number"], got["limits"]["max"]["tres"]["per"]["user"][0]["count"], got["preempt"]["mode"], got["preempt"]["list"]) == (50, ["DENY_LIMIT"], 30, 8, ["REQUEUE"], ["normal"]), got)
    ok("by name", [q["name"] for q in run(v, "GET", D + "qos/", query=f"name={qos}")["qos"]] == [qos])
    # users
    run(v, "POST", D + "users/", {"users": [{"name": user, "administrator_level": ["Administrator"]}]}, who="operator", status=422)
    run(v, "POST", D + "users/", {"users": [{"name": user, "administrator_level": ["None"]}]})
    run(v, "POST", D + "associations/", {"associations": [{"account": sub, "cluster": "rest", "user": user, "qos": [qos, "normal"], "default": {"qos": qos}, "max": {"tres": {"total": [{"type": "gres", "name": "gpu", "count": 2}]}}}]})
    got = run(v, "GET", D + "association/", query=f"user={user}")["associations"][0]
    ok("a limit of the account above is shown", got["max"]["jobs"]["active"] == {"set": True, "infinite": False, "number": 9}, got["max"]["jobs"])
    ok("its own too", (got["max"]["tres"]["total"][0]["name"], got["default"]["qos"], got["qos"], got["is_default"]) == ("gpu", qos, ["normal", qos], True) or got["qos"] == [qos, "normal"], got)
    got = run(v, "GET", D + "associations/", query=f"user={user}&Exclude%20limits%20from%20parents=true")["associations"][0]
    ok("without limits of those above", got["max"]["jobs"]["active"]["set"] is False)
    got = run(v, "POST", D + "users_association/", {"association_condition": {"users": ["more" + user], "accounts": [acct], "association": {"fairshare": 5}}, "user": {"adminlevel": ["None"], "defaultaccount": acct}})
    ok("the name of the user that was added", got.get("added_users") == "more" + user, got)
    got = run(v, "GET", D + "user/{name}", query="with_assocs", name="more" + user)["users"][0]
    ok("with its association and default account", (got["default"]["account"], [a["account"] for a in got["associations"]]) == (acct, [acct]), got)
    run(v, "POST", D + "accounts/", {"accounts": [{"name": acct, "coordinators": [{"name": user}]}]})
    got = run(v, "GET", D + "account/{account_name}", query="with_coords", account_name=acct)["accounts"][0]
    ok("a coordinator", [c["name"] for c in got["coordinators"]] == [user], got)
    ok("in the list of users", user in [u["name"] for u in run(v, "GET", D + "users/", query=f"default_account={sub}")["users"]])
    # workload keys and clusters
    run(v, "POST", D + "wckeys/", {"wckeys": [{"cluster": "rest", "name": key, "user": user}]})
    got = run(v, "GET", D + "wckeys/", query=f"user={user}")["wckeys"]
    ok("the key", [k["name"] for k in got] == [key], got)
    run(v, "GET", D + "wckey/{id}", id=got[0]["id"])
    run(v, "POST", D + "clusters/", {"clusters": [{"name": f"other{v}"}]})
    run(v, "GET", D + "cluster/{cluster_name}", cluster_name=f"other{v}")
    ok("clusters", {"rest", f"other{v}"} <= {c["name"] for c in run(v, "GET", D + "clusters/")["clusters"]})
    # all at once
    run(v, "POST", D + "config", {"qos": [{"name": "c" + qos}], "accounts": [{"name": "c" + acct}], "associations": [{"account": "c" + acct, "cluster": "rest", "user": "", "qos": ["c" + qos]}]})
    got = run(v, "GET", D + "config")
    ok("the whole configuration", {"c" + acct} <= {a["name"] for a in got["accounts"]} and got["tres"] and got["associations"] and got["users"], list(got))
    # reading alone
    for path in ("tres/", "instances/", "instance/", "diag/", "ping/") + (("conf",) if v >= 45 else ()):
        run(v, "GET", D + path)
    ok("spurdbd answers", run(v, "GET", D + "ping/")["pings"][0]["responding"])
    got = run(v, "GET", D + "jobs/", query="users=root&state=COMPLETED&partition=debug&start_time=now-1hour")["jobs"]
    ok("the history has the job, with its steps", [(j["state"]["current"], bool(j["steps"])) for j in got if j["job_id"] == int(job)] == [(["COMPLETED"], True)], got)
    ok("filters act", run(v, "GET", D + "jobs/", query="users=nobody")["jobs"] == [] and run(v, "GET", D + "jobs/", query="skip_steps=true")["jobs"][0]["steps"] == [])
    ok("one job", run(v, "GET", D + "job/{job_id}", job_id=job)["jobs"][0]["name"] == "history")
    run(v, "POST", D + "tres/", {"TRES": [{"type": "gres", "name": "x"}]}, status=422)
    run(v, "POST", D + "qos/", {"qos": [{"name": "x", "limits": {"factor": "many"}, "flags": ["NO_SUCH"]}]}, status=422)
    # deletions, by those who may
    run(v, "DELETE", D + "qos/{qos}", who="user", status=422, qos=qos)
    ok("removed", run(v, "DELETE", D + "qos/{qos}", qos=qos)["removed_qos"] == [qos])
    got = run(v, "GET", D + "associations/", query=f"user={user}")["associations"][0]
    ok("and nobody may use it", got["qos"] == ["normal"] and got["default"]["qos"] != qos, got)
    ok("removed keys", run(v, "DELETE", D + "wckey/{id}", id=run(v, "GET", D + "wckeys/", query=f"user={user}")["wckeys"][0]["id"])["deleted_wckeys"] == [key])
    ok("an association", len(run(v, "DELETE", D + "association/", query=f"account={sub}&user={user}")["removed_associations"]) == 1)
    run(v, "DELETE", D + "associations/", status=422)
    ok("associations", len(run(v, "DELETE", D + "associations/", query=f"account=c{acct}")["removed_associations"]) == 1)
    run(v, "DELETE", D + "user/{name}", name=user)
    run(v, "DELETE", D + "user/{name}", name="more" + user)
    ok("it is gone", run(v, "GET", D + "user/{name}", name=user)["users"] == [])
    ok("deleted users are shown to who asks for them", run(v, "GET", D + "user/{name}", query="with_deleted=true", name=user)["users"][0]["flags"] == ["DELETED"])
    for name in (sub, "c" + acct, acct):
        ok("account removed", run(v, "DELETE", D + "account/{account_name}", account_name=name)["removed_accounts"] == [name])
    ok("cluster removed", run(v, "DELETE", D + "cluster/{cluster_name}", cluster_name=f"other{v}")["deleted_clusters"] == [f"other{v}"])
    ok("nothing to remove is a warning", run(v, "DELETE", D + "account/{account_name}", account_name="none")["warnings"])
finish("/slurmdb/", {("POST", D + "tres/"), ("POST", D + "jobs/"), ("POST", D + "job/{job_id}")})
