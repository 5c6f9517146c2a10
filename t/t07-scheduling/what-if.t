#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# spur sim --what-if with jobs that depend on others and heterogeneous jobs, waiting and running.
. "$(dirname "$0")/../lib.sh"
cd "$T"
json() { python3 -c "import json,sys; print(eval(sys.argv[1], {'r': json.load(sys.stdin)}))" "$1"; }
runs() { [ "$(squeue -h -t R | wc -l)" = "$1" ]; }

cluster_up --nodes 1 --cpus 4 --mem 4G
submit -J pair -c 2 -t 10 : -c 2 -t 10 --wrap 'sleep 300' >/dev/null
ok "both components run" wait_for 30 runs 2
second=$(submit -J second -c 4 -t 10 --wrap true)
submit -J third -c 4 -t 10 -d "afterok:$second" --wrap true >/dev/null
submit -J fourth -c 1 -t 5 -d "singleton" --wrap true >/dev/null
submit -J late -c 2 -t 10 : -c 2 -t 10 --wrap true >/dev/null
cat >two.conf <<'CONF'
cluster_name = "two"
[[nodes]]
names = "n[1-2]"
cpus = 4
memory_mb = 4096
[[partitions]]
name = "debug"
nodes = "ALL"
default = true
[access]
disable_root_jobs = false
CONF
out=$(spur sim --what-if --config two.conf --json)
is "nobody is left out" "$(json 'r["left_out"]' <<<"$out")" 0
# Minutes from now until the start, rounded: name: as it is, with the second node.
cat >minutes.py <<'END'
import json, sys
r = json.load(sys.stdin)
jobs = r["jobs"]
now = r["now"]
for j in jobs:
    print(j["name"], *(round((j[w]["start_time"] - now) / 60) for w in ("present", "changed")))
END
python3 minutes.py <<<"$out" >minutes
is "who waits for the node waits for the pair that runs, and not with another node" "$(grep second minutes)" "second 10 0"
is "who depends on it waits until its end" "$(grep third minutes | awk '{ print ($2 >= 20), $3 }')" "1 10"
is "the components start together" "$(grep late minutes | sort -u | wc -l) $(grep -c late minutes)" "1 2"
like "for people" "$(spur sim --what-if --config two.conf)" '0 jobs left out'
scancel --me
done_testing
