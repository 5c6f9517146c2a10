#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# spur down and spur up: an attempt never runs twice; what is listened on and who may read the state.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 1 --cpus 4
cd "$(user_dir)" || exit 1
runs="$PWD/runs"
job=$(as_user sbatch --parsable -o /dev/null --wrap "echo attempt-\${SLURM_RESTART_COUNT:-0} >>$runs; sleep 300")
once=$(as_user sbatch --parsable --no-requeue -o /dev/null --wrap "echo once >>$runs; sleep 300")
ok "both run" wait_for 30 eval '[ "$(sort runs | tr "\n" " ")" = "attempt-0 once " ]'

if command -v ss >/dev/null; then
    is "agents listen on loopback only" "$(ss -Hltn "sport = :$(scontrol show node n1 | sed -n 's/.*Port=\([0-9]*\).*/\1/p')" | awk '{print $4}' | grep -v '^127\.0\.0\.1:')" ''
fi
is "nobody else reads the state" "$(find "$D/state" -type f -perm /077 ! -name '*.crt' -printf '%P %m\n')" ''

spur down --dir "$D" >/dev/null
ok "nothing is left running" eval '! pgrep -f "$runs"'
spur up --dir "$D" -q
ok "the agent reports that they ended" wait_for 30 eval 'job_is "$job" NODE_FAIL && job_is "$once" NODE_FAIL'
ok "the node works" as_user srun true
ok "requeued, the job runs as another attempt" eval 'as_user scontrol requeue $job && wait_for 30 grep -qx attempt-1 runs'
is "no attempt ran twice" "$(sort runs | tr '\n' ' ')" 'attempt-0 attempt-1 once '
done_testing
