#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every operation of /slurm and /util, in each version: it acts, and its answer has the right shape."""
import os, sys, time
sys.path.insert(0, os.path.dirname(__file__))
from operations import *

S, U = "/slurm/{v}/", "/util/{v}/"
where = sys.argv[4]
env = ["PATH=/usr/bin:/bin"]


def submit(v, **more):
    desc = {"name": f"op{v}", "current_working_directory": where, "environment": env, "time_limit": {"set": True, "number": 5}, "tasks": 1, "cpus_per_task": 1}
    desc.update(more)
    return run(v, "POST", S + "job/submit", {"script": "#!/bin/sh\nsleep 300", "job": desc}, who="user")["job_id"]


def wait(v, job, state):
    until = time.time() + 60
    while time.time() < until:
        got = run(v, "GET", S + "job/{job_id}", who="user", job_id=job)["jobs"][0]
        if state in got["job_state"]:
            return got
        time.sleep(0.2)
    ok(f"job {job} is {state}", False, got["job_state"])
    return got


for v in VERSIONS:
    # jobs
    job = submit(v)
    got = wait(v, job, "RUNNING")
    ok("the job is as it was asked for", (got["name"], got["time_limit"]["number"], got["cpus_per_task"]["number"]) == (f"op{v}", 5, 1), got["name"])
    ok("its nodes are drawn", got["job_resources"]["nodes"]["allocation"][0]["name"] == "n1" and got["job_resources"]["nodes"]["count"] == 1, got["job_resources"])
    ok("it is in the list", job in [j["job_id"] for j in run(v, "GET", S + "jobs/", query="flags=DETAIL")["jobs"]])
    ok("its state", run(v, "GET", S + "jobs/state/", query=f"job_id={job}")["jobs"][0]["state"] == ["RUNNING"])
    run(v, "GET", S + "jobs/", query="flags=NO_SUCH", status=422)
    if v >= 44:
        ok("where its resources are", [n["node"] for n in run(v, "GET", S + "resources/{job_id}", job_id=job)["nodes"]] == ["n1"])
    ok("shares", "root" in [s["name"] for s in run(v, "GET", S + "shares")["shares"]["shares"]])
    run(v, "POST", S + "job/{job_id}", {"comment": f"for {v}"}, who="user", job_id=job)
    ok("an update shows", run(v, "GET", S + "job/{job_id}", job_id=job)["jobs"][0]["comment"] == f"for {v}")
    if v >= 45:
        run(v, "GET", S + "job/{job_id}/requeue", query="Hold=true", who="user", job_id=job)
        wait(v, job, "PENDING")
        held = submit(v)
        wait(v, held, "RUNNING")
        run(v, "POST", S + "jobs/requeue", {"jobs": [str(held)]}, who="user")
    run(v, "DELETE", S + "job/{job_id}", who="user", job_id=job)
    wait(v, job, "CANCELLED")
    more = submit(v, hold=True, name=f"many{v}")
    run(v, "DELETE", S + "jobs/", {"job_name": f"many{v}"}, who="user")
    wait(v, more, "CANCELLED")
    run(v, "DELETE", S + "jobs/", {"user_name": "nobody"}, who="user")
    got = run(v, "POST", S + "job/allocate", {"job": {"name": "alloc", "current_working_directory": where, "environment": env, "hold": True}}, who="user")
    run(v, "DELETE", S + "job/{job_id}", who="user", job_id=got["job_id"])
    # what is in the cluster
    for path, key in (("nodes/", "nodes"), ("partitions/", "partitions"), ("licenses/", "licenses"), ("diag/", "statistics"), ("ping/", "pings")):
        ok(f"{path} says something", run(v, "GET", S + path)[key])
    run(v, "GET", S + "partition/{partition_name}", partition_name="debug")
    if v >= 45:
        ok("the configuration", run(v, "GET", S + "conf")["slurm_conf"]["ClusterName"] == "rest")
    for path in ("node/{node_name}",):
        run(v, "POST", S + path, {"comment": f"c{v}", "reason": "test", "state": ["DRAIN"]}, node_name="n2")
        got = run(v, "GET", S + path, node_name="n2")["nodes"][0]
        ok("it drains", "DRAIN" in got["state"] and got["reason"] == "test" and got["comment"] == f"c{v}", got["state"])
        run(v, "POST", S + path, {"state": ["RESUME"]}, node_name="n2")
    run(v, "POST", S + "nodes/", {"name": ["n2"], "comment": "all"} if v < 44 else {"name": ["n2"], "comment": "all"})
    # reservations
    start = int(time.time()) + 86400 + v * 7200
    rsv = {"name": f"r{v}", "users": ["nobody"], "node_list": ["n2"], "start_time": {"set": True, "number": start}, "duration": {"set": True, "number": 30}}
    if v >= 43:
        run(v, "POST", S + "reservation", rsv)
        run(v, "POST", S + "reservations/", {"reservations": [dict(rsv, name=f"rr{v}", node_list=["n1"])]})
    else:
        ok("made", call("admin", "POST", "/slurm/v0.0.43/reservation", rsv)[0] == 200)
    ok("in the list", f"r{v}" in [r["name"] for r in run(v, "GET", S + "reservations/")["reservations"]])
    ok("alone", run(v, "GET", S + "reservation/{reservation_name}", reservation_name=f"r{v}")["reservations"][0]["node_list"] == "n2")
    run(v, "DELETE", S + "reservation/{reservation_name}", reservation_name=f"r{v}")
    run(v, "GET", S + "reconfigure/")
    # update_time: the first who asks begins to watch; after that a quiet second changes nothing
    run(v, "GET", S + "partitions/", query="update_time=1")
    until = time.time() + 30
    while run(v, "GET", S + "partitions/", query=f"update_time={int(time.time()) + 5}")["partitions"] and time.time() < until:
        time.sleep(0.3)
    ok("nothing changed since: an empty list", time.time() < until)
    ok("something has changed since long ago", run(v, "GET", S + "partitions/", query="update_time=1")["partitions"])
    if v >= 44:
        ok("host names", run(v, "POST", U + "hostnames", {"hostlist": "n[1-3]"})["hostnames"] == ["n1", "n2", "n3"])
        ok("a host list", run(v, "POST", U + "hostlist", {"hostnames": ["n1", "n2", "n3"]})["hostlist"] == "n[1-3]")
finish("/slurm/", {("DELETE", S + "node/{node_name}"), ("POST", S + "new/node/"), ("POST", S + "partitions/"), ("DELETE", S + "partition/{partition_name}")})
