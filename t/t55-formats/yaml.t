#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# yaml.t - --yaml says the same as --json, wherever that is
. "$(dirname "$0")/../lib.sh"
python3 -c 'import yaml' 2>/dev/null || skip_all "there is no python3-yaml"
cluster_up --nodes 2 --cpus 4
cd "$(user_dir)"
scontrol create reservation=on starttime=now+9000 duration=10 nodes=n2 users=root >/dev/null
id=$(as_user sbatch --parsable -N2 -n2 -t 5 -J 'a "b": {c} - # yes' -D $'/tmp/tab\there' --comment=$'say "here" \xc2\x85 \xff /x' -o /dev/null --wrap 'srun -J no sleep 600')
listed() { squeue -h -s -j "$id" | grep -q "\.0 "; }
ok "a job with a step" wait_for 30 listed
as_user sbatch -Q -H -o /dev/null --wrap true

# Times, loads and the command differ between two calls.
cat >same.py <<'PY'
import json, sys, yaml

def strip(value, path=""):
    if isinstance(value, dict):
        return {key: strip(one, path + "/" + str(key)) for key, one in value.items()
                if key not in ("meta", "last_update", "time", "elapsed", "cpu_load", "load", "free_mem", "last_busy", "now", "run_time")}
    if isinstance(value, list):
        return [strip(one, path) for one in value]
    return value

one, two = json.load(open(sys.argv[1])), yaml.safe_load(open(sys.argv[2]))
first = [key for key in two if key not in ("meta", "errors", "warnings", "last_update", "last_backfill")]
print("same" if strip(one) == strip(two) and two["meta"]["command"][-1] == sys.argv[3] else "differs", *first[:1], len(two[first[0]]))
PY
try() { # NAME WANTED COMMAND...: --json and --yaml of it
    local name=$1 wanted=$2 i
    shift 2
    for i in 1 2 3; do # something may begin or end in between
        "$@" --json >one.json 2>&1 && "$@" --yaml >two.yaml 2>two.err
        run python3 same.py one.json two.yaml --yaml
        [ "$out" != "same $wanted" ] || break
    done
    is "$name" "$out$(cat two.err)" "same $wanted"
}
try "squeue" "jobs 2" squeue
try "squeue -s" "steps 2" squeue -s
try "sinfo" "sinfo 1" sinfo
try "scontrol show job" "jobs 2" scontrol show job
try "scontrol show step" "steps 2" scontrol show step
try "scontrol show node" "nodes 2" scontrol show node
try "scontrol show partition" "partitions 1" scontrol show partition
try "scontrol show reservation" "reservations 1" scontrol show reservation
try "scontrol ping" "pings 1" scontrol ping
like "one document, keys without quotes, texts with them" "$(squeue --yaml)" $'^---\njobs:\n- job_id: [0-9]+\n.*\n  comment: "say \\\\"here.*\nerrors: \\[\\]\nwarnings: \\[\\]$'
done_testing
