#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Where the kernel has no memory controller, steps are sampled and ended when they hold more than they may.
. "$(dirname "$0")/../lib.sh"
cat >"$T/spur.conf" <<CONF
cluster_name = "memory"
[[nodes]]
names = "n1"
cpus = 4
memory_mb = 1000
[[partitions]]
name = "main"
nodes = "ALL"
default = true
[cgroup]
max_processes = 500
[jobs]
sample_interval = "task=1"
CONF
cluster_up --nodes 1 --conf "$T/spur.conf"
wait_for 20 grep -qs 'session.welcome' "$D/log/n1.log" # what the kernel can do is said before
grep -qs 'agent.memory' "$D/log/n1.log" || skip_all "this kernel holds jobs to their memory itself (t/vm/limits.t)"
cd "$T" || exit 1
hold() { echo "x = bytearray($1 << 20); import time; time.sleep($2)"; }
ended() { [ -z "$(squeue -h -j "$1" -t PD,R,CG,CF,S)" ]; }

id=$(sbatch --parsable --mem 60M -o out.%j --wrap "exec python3 -c '$(hold 150 120)'")
ok "a job over its memory ends" wait_for 60 ended "$id"
is "as out of memory" "$(job_state "$id")" OUT_OF_MEMORY
like "it is told so" "$(cat "out.$id")" "slurmstepd: error: StepId=$id.batch exceeded memory limit \([0-9]+ > 62914560\), being killed"
like "and its record says which step, and how much" "$(scontrol show job "$id")" "step $id.batch on n1 had no memory left: [0-9]+ MB of 60 MB"

# A peak is kept although it is over when somebody asks.
id=$(sbatch --parsable --mem 500M -o out.%j --wrap "python3 -c '$(hold 100 3)'; echo low; sleep 120")
ok "the peak is over" wait_for 60 grep -q low "out.$id"
rss=$(sstat -n -P -j "$id.batch" -o MaxRSS)
ok "sstat still knows it ($rss)" [ "${rss%K}" -gt 90000 ]
scancel "$id"

run timeout 100 srun --mem 60M python3 -c "$(hold 150 120)"
like "a step over its own memory" "$err" 'exceeded memory limit \([0-9]+ > 62914560\), being killed'
is "srun fails" "$([ "$code" -ne 0 ] && echo yes)" yes
done_testing
