#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What REST does to jobs and nodes, what it tells of them, and what of it each kind of caller may do.
. "$(dirname "$0")/../lib.sh"
command -v curl >/dev/null || skip_all "curl is not installed"
[ "$(id -u)" -eq 0 ] || skip_all "needs root, who makes tokens of others"
SPUR_T_REST=
cat >"$T/spur.conf" <<CONF
cluster_name = "rest"
[access]
operators = ["daemon"]
[scheduler]
licenses = "matlab:4"
[[nodes]]
names = "n[1-2]"
cpus = 4
memory_mb = 4000
gres = ["gpu:mi300x:4"]
[[partitions]]
name = "debug"
nodes = "ALL"
default = true
CONF
cluster_up --conf "$T/spur.conf"
chmod 777 "$T"
cd "$T" || exit 1
R=$SPUR_REST_ADDR
admin=$(spur token | cut -d= -f2)
operator=$(spur token -u daemon | cut -d= -f2)
user=$(spur token -u nobody | cut -d= -f2)
other=$(spur token -u bin | cut -d= -f2)
call() { local token=$1; shift; curl -s --max-time 30 -H "Authorization: Bearer $token" "$@"; }
status() { local token=$1; shift; call "$token" -o /dev/null -w '%{http_code}' "$@"; }
field() { python3 -c 'import json,sys; d=json.load(sys.stdin); print(eval(sys.argv[1], {"d": d}))' "$1"; }
post() { local token=$1 path=$2; shift 2; call "$token" -X POST -H 'Content-Type: application/json' "$R$path" "$@"; }
submit() { post "$user" /api/v1/job/submit -d '{"job": {"name": "'"$1"'", "hold": '"$2"', "time_limit": 10, "environment": ["PATH=/usr/bin:/bin"], "current_working_directory": "'"$T"'", "script": "'"$3"'"}}' | field 'd["job_id"]'; }

# ---- one job, from hold to its log ----
id=$(submit acts true '#!/bin/bash\necho first line; sleep 2; echo last line')
is "it is held" "$(call "$user" "$R/api/v1/job/$id" | field 'd["jobs"][0]["state_reason"]')" JobHeldUser
like "explain says so" "$(call "$user" "$R/api/v1/job/$id/explain" | field 'd["sentence"]')" 'held'
is "an update" "$(post "$user" "/api/v1/job/$id" -d '{"job": {"comment": "from REST", "time_limit": 5}}' | field 'd["errors"]')" '[]'
is "it shows" "$(call "$user" "$R/api/v1/job/$id" | field 'd["jobs"][0]["comment"], d["jobs"][0]["time_limit"]["number"]')" "('from REST', 5)"
is "Slurm's update" "$(post "$user" "/slurm/v0.0.42/job/$id" -d '{"comment": "again"}' | field 'd["errors"]')" '[]'
is "another user may not" "$(status "$other" -X POST "$R/api/v1/job/$id/release")" 403
is "release" "$(status "$user" -X POST "$R/api/v1/job/$id/release")" 200
runs "$id" >/dev/null
is "its log, while it runs and until it ends" "$(call "$user" "$R/api/v1/job/$id/logs?follow=1")" "$(printf 'first line\nlast line')"
is "not for others" "$(status "$other" "$R/api/v1/job/$id/logs")" 403
is "no log before the start" "$(status "$user" "$R/api/v1/job/$(submit later true '#!/bin/sh')/logs")" 409

# ---- cancel, signal, requeue, states ----
id=$(submit long false '#!/bin/sh\nsleep 300')
runs "$id" >/dev/null
is "state" "$(call "$user" "$R/slurm/v0.0.42/jobs/state/?job_id=$id" | field 'd["jobs"][0]["state"]')" "['RUNNING']"
is "a signal that does not exist" "$(status "$user" -X DELETE "$R/api/v1/job/$id?signal=NOPE")" 400
is "another user may not end it" "$(status "$other" -X DELETE "$R/api/v1/job/$id")" 403
is "requeue" "$(status "$user" -X POST "$R/api/v1/job/$id/requeue?hold=1")" 200
ok "it waits again" wait_for 20 job_is "$id" PENDING
is "delete, as Slurm has it" "$(call "$user" -X DELETE "$R/slurm/v0.0.42/job/$id" | field 'd["status"]')" '[]'
ok "it is cancelled" wait_for 20 job_is "$id" CANCELLED
a=$(submit many true '#!/bin/sh') b=$(submit many true '#!/bin/sh')
is "delete several" "$(call "$user" -X DELETE -H 'Content-Type: application/json' -d '{"job_name": "many"}' "$R/slurm/v0.0.42/jobs/" | field 'd["errors"]')" "[]"
is "both are" "$(job_state "$a") $(job_state "$b")" "CANCELLED CANCELLED"
is "steps" "$(call "$user" "$R/api/v1/steps" | field 'd["steps"]')" '[]'

# ---- who may: nodes, reservations, the controller ----
is "a user may not drain" "$(status "$user" -X POST -H 'Content-Type: application/json' -d '{"state": ["DRAIN"], "reason": "x"}' "$R/api/v1/node/n2")" 403
is "under /slurm in Slurm's words" "$(post "$user" /slurm/v0.0.42/node/n2 -d '{"state": ["DRAIN"], "reason": "x"}' | field 'd["errors"][0]["error_number"]')" 2010
is "the owner of a socket is not staff, even root" "$(curl -s -o /dev/null -w '%{http_code}' -X POST -H 'Content-Type: application/json' -d '{"state": ["DRAIN"], "reason": "x"}' "$R/api/v1/node/n2")" 403
is "an operator may" "$(status "$operator" -X POST -H 'Content-Type: application/json' -d '{"state": ["DRAIN"], "reason": "by REST"}' "$R/api/v1/node/n2")" 200
like "it drains" "$(call "$user" "$R/slurm/v0.0.42/node/n2" | field 'd["nodes"][0]["state"], d["nodes"][0]["reason"]')" "DRAIN.*by REST"
is "resume" "$(status "$operator" -X POST -H 'Content-Type: application/json' -d '{"state": ["RESUME"]}' "$R/slurm/v0.0.42/node/n2")" 200
is "reconfigure is for administrators" "$(status "$operator" "$R/slurm/v0.0.42/reconfigure/") $(status "$admin" "$R/slurm/v0.0.42/reconfigure/")" "422 200"
is "a reservation" "$(post "$admin" /slurm/v0.0.43/reservation -d '{"name": "r1", "users": ["nobody"], "node_list": "n1", "start_time": {"set": true, "number": '$(($(date +%s) + 3600))'}, "duration": {"set": true, "number": 60}}' | field 'd["errors"], d["reservations"][0]["name"]')" "([], 'r1')"
is "it is listed" "$(call "$user" "$R/slurm/v0.0.42/reservations/" | field '[(r["name"], r["node_list"]) for r in d["reservations"]]')" "[('r1', 'n1')]"
is "and deleted" "$(status "$admin" -X DELETE "$R/slurm/v0.0.42/reservation/r1") $(call "$user" "$R/slurm/v0.0.42/reservations/" | field 'd["reservations"]')" "200 []"
is "licences" "$(call "$user" "$R/slurm/v0.0.42/licenses/" | field '[(l["LicenseName"], l["Total"]) for l in d["licenses"]]')" "[('matlab', 4)]"
is "who am I" "$(call "$operator" "$R/api/v1/whoami" | field 'd["user"], d["operator"], d["administrator"]')" "('daemon', True, False)"
is "host lists" "$(post "$user" /util/v0.0.44/hostnames -d '{"hostlist": "n[1-3]"}' | field 'd["hostnames"]') $(post "$user" /util/v0.0.44/hostlist -d '{"hostnames": ["n1","n2","n3"]}' | field 'd["hostlist"]')" "['n1', 'n2', 'n3'] n[1-3]"
is "diag counts" "$(call "$user" "$R/slurm/v0.0.42/diag/" | field 'd["statistics"]["jobs_submitted"] > 3')" True
is "what is not possible is said" "$(status "$admin" -X POST -H "Content-Type: application/json" -d "{}" "$R/slurm/v0.0.44/new/node/")" 422

# ---- every route, by nobody, by a wrong token, by an expired one, by users and staff ----
call "$user" "$R/openapi.json" >"$T/openapi.json"
short=$(scontrol token lifespan=1 | cut -d= -f2)
sleep 1.1
ok "every route is closed to those who are not known" python3 - "$R" "$T/openapi.json" "$short" <<'PY'
import json, sys, urllib.request, urllib.error
base, file, expired = sys.argv[1:]
doc = json.load(open(file))
open_to_all = {"/api/v1/ping", "/metrics", "/openapi", "/openapi/v3", "/openapi.json", "/openapi.yaml"}
def status(method, path, headers):
    path = path.replace("{job_id}", "1").replace("{node_name}", "n1").replace("{partition_name}", "p").replace("{reservation_name}", "r").replace("{", "").replace("}", "")
    request = urllib.request.Request(base + path, method=method.upper(), headers=headers, data=b"{}" if method == "post" else None)
    request.add_header("Content-Type", "application/json")
    try:
        return urllib.request.urlopen(request, timeout=20).status
    except urllib.error.HTTPError as e:
        return e.code
bad, count = [], 0
for path, methods in doc["paths"].items():
    for method in methods:
        count += 1
        for why, headers in (("a proxy", {"X-Forwarded-For": "1.2.3.4"}), ("a wrong token", {"Authorization": "Bearer a.b.c"}), ("an expired one", {"Authorization": "Bearer " + expired})):
            got = status(method, path, headers)
            if path in open_to_all and why == "a proxy":
                continue
            if path in open_to_all and path != "/metrics":
                continue
            if got not in (401, 403):
                bad.append((method, path, why, got))
print(count, bad)
sys.exit(1 if bad or count < 100 else 0)
PY
ok "Slurm's operations are there, in all four versions" python3 - "$T/openapi.json" "$HERE/operations.tsv" <<'PY'
import json, sys
doc = json.load(open(sys.argv[1]))
have = {(m.upper(), p, o["operationId"]) for p, ms in doc["paths"].items() for m, o in ms.items()}
want = {tuple(line.rstrip("\n").split("\t")[1:]) for line in open(sys.argv[2]) if line.startswith("v0")}
missing = sorted(want - have)
print(missing)
sys.exit(1 if missing or len(want) < 100 else 0)
PY

# ---- metrics ----
out=$(curl -s "$R/metrics")
like "metrics without a name: totals" "$out" 'spur_jobs_submitted_total [0-9]+'
unlike "and no users" "$out" 'user='
like "they end as OpenMetrics wants" "$out" '# EOF$'
out=$(call "$admin" "$R/metrics")
like "with a token: by user" "$out" 'spur_user_jobs\{user="nobody",state="PENDING"\} [0-9]+'
like "and GPUs" "$out" 'spur_gpus 8'
ok "every family has a HELP" awk '/^# TYPE/ { type[$3] = 1 } /^# HELP/ { help[$3] = 1 } END { for (n in type) if (!help[n]) exit 1 }' <<<"$out"

# ---- events ----
call "$user" -N "$R/api/v1/events" >"$T/events" &
listener=$!
ok "the stream begins" wait_for 20 grep -q retry "$T/events"
ok "with where it is" wait_for 20 grep -q reset "$T/events"
id=$(submit event false '#!/bin/sh\ntrue')
ok "a job that ends is heard of" wait_for 20 eval "grep -q '\"job_id\": $id,.*COMPLETED' '$T/events'"
last=$(grep '^id:' "$T/events" | tail -n 1 | cut -d' ' -f2)
id=$(submit event2 true '#!/bin/sh\ntrue')
ok "who comes back hears what he missed" wait_for 20 eval "call '$user' -N --max-time 2 -H 'Last-Event-ID: $last' '$R/api/v1/events' | grep -q '\"job_id\": $id,'"
like "what is too long ago is a reset" "$(call "$user" -N --max-time 2 -H 'Last-Event-ID: 1' "$R/api/v1/events")" 'event: reset'
kill $listener 2>/dev/null
done_testing
