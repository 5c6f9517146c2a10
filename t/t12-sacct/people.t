#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# seff, spur history, and what spur explain and spur logs say of jobs that the controller has forgotten.
. "$(dirname "$0")/../lib.sh"
printf 'cluster_name = "spur"\n[jobs]\nmin_job_age = 1\n' >"$T/conf"
cluster_up --nodes 2 --cpus 4 --conf "$T/conf"
chmod 777 "$T"
cd "$T" || exit 1
ended() { [ "$(sacct -n -P -X -j "$1" -o State)" = "$2" ]; }

a=$(submit -J busy -N2 -o "$T/busy.out" --wrap 'echo from the job; srun -n2 hostname; exit 3')
ok "the job ends" wait_for 30 ended "$a" FAILED
run seff "$a"
is "seff exits with 0" "$code" 0
like "it says whose it was and how it ended" "$out" "Job ID: $a
Cluster: spur
User/Group: $(id -un)/.*
State: FAILED \(exit code 3\)
Nodes: 2
Cores per node: 1
CPU Utilized: 00:00:0"
like "what it used" "$out" "CPU Efficiency: [0-9.]+% of .* core-walltime
Job Wall-clock time: 00:00:0.
Memory Utilized: [0-9.]+ [KM]B"
is "spur seff is the same" "$(spur seff "$a")" "$out"
run seff 999999
is "an unknown job" "$code:$err" "2:Job not found."

b=$(submit -J fine -o /dev/null --wrap true)
wait_for 30 ended "$b" COMPLETED
like "spur history" "$(spur history)" "JOBID +NAME +STATE +WHEN +RAN +WITH
$a +busy +FAILED \(3\) +[0-9]+s ago +0:0[0-9] +2 CPUs, 2 nodes
$b +fine +COMPLETED +[0-9]+s ago"
is "by state" "$(spur history -s failed | awk 'NR > 1 { print $1 }')" "$a"
is "by name, of a time" "$(spur history --name fine --since 2hours | awk 'NR > 1 { print $1 }')" "$b"
is "of a time when there was nothing" "$(spur history --since 2020-01-01 --until 2020-02-01)" "no jobs"
is "one job" "$(spur history "$a" | awk 'NR > 1 { print $1 }')" "$a"
is "JSON" "$(spur history --json "$b" | python3 -c 'import sys, json; print(json.load(sys.stdin)["jobs"][0]["name"])')" fine
run spur history --since nonsense
like "a time that is none" "$code:$err" "^1:spur history: error: 'nonsense' is neither a time"

forgotten() { ! scontrol show job "$a" >/dev/null 2>&1; }
if wait_for 60 forgotten; then
    like "explain of a job that the controller has forgotten" "$(spur explain "$a")" "job $a is FAILED: it failed with exit code 3 after "
    like "its output" "$(spur logs "$a")" "from the job"
else
    fail "the controller forgets ended jobs"
fi
done_testing
