#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# seconds: 300
#
# Slurm's /slurm in all four versions: every operation acts and answers in that version's shape; and commands write
# the same objects with --json and --yaml.
. "$(dirname "$0")/../lib.sh"
command -v curl >/dev/null || skip_all "curl is not installed"
[ "$(id -u)" -eq 0 ] || skip_all "needs root, who makes tokens of others"
SPUR_T_REST=
cat >"$T/spur.conf" <<CONF
cluster_name = "rest"
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
known() { sacctmgr -n -P show cluster format=cluster | grep -qx rest; }
ok "a controller registers its cluster" wait_for 30 known
admin=$(spur token | cut -d= -f2)
tokens=$(printf '{"admin": "%s", "user": "%s"}' "$admin" "$(spur token -u nobody | cut -d= -f2)")
python3 "$HERE/slurm_operations.py" "$R" "$tokens" "$HERE/../../src/schema/slurm_api.tsv" "$T" >"$T/out" 2>&1 || sed "s/^/# /" "$T/out"
is "every operation of /slurm, in each version" "$(grep -c "^# not so\|^Traceback" "$T/out") $(grep -c "checks" "$T/out")" "0 1"

# ---- commands and REST write the same objects ----
id=$(sbatch --parsable -o /dev/null --hold --wrap true)
ran=$(sbatch --parsable -o /dev/null --wrap 'srun true')
scontrol create reservation ReservationName=same StartTime=now+30days Duration=60 Users=root Nodes=n1 >/dev/null
same() { # what, operation, command...: the lists are equal in each version
    local what=$1 path=$2
    shift 2
    for v in 42 43 44 45; do
        curl -s -H "X-SLURM-USER-TOKEN: $admin" "$R/${path/VER/v0.0.$v}" >"$T/rest.json"
        "$@" --json=v0.0.$v >"$T/command.json" 2>"$T/err"
        "$@" --yaml=v0.0.$v >"$T/command.yaml" 2>>"$T/err"
        python3 - "$what" "$T" <<'PY' || { echo "# v0.0.$v $what"; return 1; }
import json, sys
key, folder = sys.argv[1:]
rest, command = (json.load(open(f"{folder}/{n}.json")) for n in ("rest", "command"))
skip = {"req_time", "job_states_ts", "rpcs_by_message_type", "rpcs_by_user", "gettimeofday_latency", "time_left", "latency", "elapsed", "total", "user", "system"}
def plain(value):
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if k not in skip}
    return [plain(v) for v in value] if isinstance(value, list) else value
a, b = plain(rest[key]), plain(command[key])
try:
    import yaml
    c = plain(yaml.safe_load(open(f"{folder}/command.yaml"))[key])
except ImportError:
    c = b
if a == b == c and a:
    sys.exit(0)
def differ(x, y, at=""):
    if isinstance(x, dict) and isinstance(y, dict):
        for k in sorted(set(x) | set(y)):
            differ(x.get(k), y.get(k), f"{at}.{k}")
    elif isinstance(x, list) and isinstance(y, list) and len(x) == len(y):
        for i, (p, q) in enumerate(zip(x, y)):
            differ(p, q, f"{at}[{i}]")
    elif x != y:
        print(f"# {at}: REST {x!r:.80} command {y!r:.80}")
differ(a, b), differ(b, c)
sys.exit(1)
PY
    done
}
compare() { same "$@" >"$T/same" && pass "$3 and $2" || { fail "$3 and $2"; head -n 20 "$T/same"; }; }
quiet() { [ "$(squeue -h -t running,completing | wc -l)" -eq 0 ]; }
ok "nothing runs" wait_for 30 quiet
compare jobs slurm/VER/jobs/ squeue -t all
compare jobs "slurm/VER/job/$id" scontrol show job "$id"
compare nodes slurm/VER/nodes/ scontrol show node
compare partitions slurm/VER/partitions/ scontrol show partition
compare reservations slurm/VER/reservations/ scontrol show reservation
compare shares slurm/VER/shares sshare -a
compare statistics slurm/VER/diag/ sdiag
compare jobs "slurmdb/VER/job/$ran" sacct -j "$ran"
not_ok "a version that does not exist" squeue --json=v0.0.99
done_testing
