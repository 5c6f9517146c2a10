#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# basic.t - salloc: command, shell, messages, environment, exit code, the end of the allocation
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 2 --cpus 4
cd "$(user_dir)"

for user in "" as_user; do
    u=${user:-root}
    run $user salloc bash -c 'exit 4'
    is "$u: exit code of the command" "$code" 4
    like "$u: messages" "$err" $'^salloc: Granted job allocation ([0-9]+)\nsalloc: Nodes n1 are ready for job\nsalloc: Relinquishing job allocation [0-9]+$'
    id=${BASH_REMATCH[1]}
    wait_for 5 job_is "$id" FAILED
    is "$u: the job ends as the command" "$(job_state "$id")" FAILED
    run $user salloc -Q true
    is "$u: quiet" "$code$out$err" 0
    run $user salloc -Q -N2 -n3 srun -l bash -c 'echo $SLURMD_NODENAME'
    is "$u: steps inside" "$(sort <<<"$out" | tr '\n' ,)" "0: n1,1: n1,2: n2,"
done
run salloc -Q -N2 -n3 -J nm bash -c 'echo $SLURM_JOB_NAME $SLURM_NTASKS $SLURM_NNODES $SLURM_JOB_NODELIST $SLURM_TASKS_PER_NODE $SLURM_JOB_CPUS_PER_NODE'
is "environment" "$out" "nm 3 2 n[1-2] 2,1 2,1"
run salloc nosuchcmd
is "a command that is not there" "$code" 1
like "is said" "$err" $'salloc: error: _fork_command: Unable to find command "nosuchcmd"\nsalloc: Relinquishing'
run salloc --no-shell -J noshell
is "--no-shell" "$code" 0
id=$(squeue -h -n noshell -o %i)
ok "the allocation stays" job_is "$id" RUNNING
is "and takes steps" "$(srun --jobid "$id" echo in)" in
scancel "$id"
ok "until it is cancelled" wait_for 5 job_is "$id" CANCELLED
run salloc -p nosuch true
is "a partition that is not there" "$code" 1
like "is said" "$err" "salloc: error: Job submit/allocate failed: Invalid partition name specified"
run salloc -t abc true
is "a wrong option" "$code $err" "255 salloc: error: Invalid --time specification"

salloc -K bash -c 'sleep 30' 2>"$T/err" & pid=$!
wait_for 5 bash -c '[ -n "$(squeue -h -t R -o %i)" ]'
scancel "$(squeue -h -t R -o %i)"
wait $pid
is "-K ends the command with the allocation" "$?" 143
like "which is said" "$(cat "$T/err")" "Job allocation [0-9]+ has been revoked"

salloc -w n1 --exclusive sleep 2 2>/dev/null & pid=$!
wait_for 5 bash -c '[ -n "$(squeue -h -t R -o %i)" ]'
run timeout 1 salloc -w n1 --exclusive true
like "one that must wait says so" "$err" $'salloc: Pending job allocation [0-9]+\nsalloc: job [0-9]+ queued and waiting for resources'
wait $pid
ok "and leaves nothing" wait_for 5 bash -c '[ -z "$(squeue -h -o %i)" ]'
done_testing
