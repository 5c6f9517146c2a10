#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# words.t - what srun says when options make no sense, when asked to tell more, and when it is interrupted for good
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 2 --cpus 2

says() { # NAME CODE PATTERN COMMAND…
    local name=$1 code=$2 pattern=$3 said got
    shift 3
    said=$("$@" 2>&1 </dev/null)
    got=$?
    is "$name: exit code" "$got" "$code"
    like "$name: words" "$said" "$pattern"
}
says "no nodes" 1 "srun: error: Unable to allocate resources: Node count specification invalid" srun -N0 true
says "no nodes for sbatch" 1 "sbatch: error: Batch job submission failed: Node count specification invalid" sbatch -N0 --wrap true
says "no nodes for salloc" 1 "salloc: error: Job submit/allocate failed: Node count specification invalid" salloc -N0 true
says "relative to nothing" 1 "srun: fatal: --relative option invalid for job allocation request" srun -r1 true
says "no number" 1 "srun: error: Invalid numeric value \"x\" for immediate." srun --immediate=x true
says "no partition" 1 "srun: error: invalid partition specified: nosuch.*Invalid partition name specified" srun -p nosuch true
says "no job" 1 "srun: error: Unable to confirm allocation for job 99999: Invalid job id specified.*Check SLURM_JOB_ID environment variable. Expired or invalid job 99999" srun --jobid=99999 true
says "more nodes than there are" 1 "srun: error: Only allocated 1 nodes asked for 2" salloc -Q -N1 srun -N2 true
says "more nodes named than taken" 0 "nodelist includes more nodes than permitted by max-node count \(2 > 1\). Eliminating nodes from the nodelist.*on n1" \
    srun -w 'n[1-2]' -N1 bash -c 'echo on $SLURMD_NODENAME'
said=$(srun -v -n2 -N1 true 2>&1)
like "-v: the allocation" "$said" "jobid [0-9]+: nodes\(1\):.n[12]', cpu counts: 2\(x1\)"
like "-v: the launch" "$said" "launching StepId=[0-9]+\.0 on host n[12], 2 tasks: \[0-1\]"
like "-v: the end" "$said" "Received task exit notification for [12] tasks? of StepId=[0-9]+\.0 \(status=0x0000\)\."

# One goes on, so that its end cannot be what the others are said with; they may be some milliseconds apart.
said=$(srun -n2 -N1 -O -n8 bash -c '[ $SLURM_PROCID = 7 ] && exec sleep 0.5; sleep 0.0$((SLURM_PROCID % 2)); exit 4' 2>&1)
like "who ends the same way is said together" "$said" "n[12]: tasks [0-9,-]+: Exited with exit code 4"
echo "0 true" >"$T/prog"
says "no program for a task" 1 "Configuration file $T/prog invalid, no record for task id 1" srun -n2 --multi-prog "$T/prog"
says "no programs" 1 "Could not open multi_prog config file $T/nosuch" srun --multi-prog "$T/nosuch"
SLURM_EXIT_ERROR=9 says "the code for errors is chosen" 9 "invalid partition" srun -p nosuch true
SLURM_EXIT_ERROR=9 says "also of salloc" 9 "invalid partition" salloc -p nosuch true
SLURM_EXIT_ERROR=9 says "not that of tasks" 3 "Exited with exit code 3" srun bash -c 'exit 3'
salloc -Q -N2 -n4 sleep $((RANDOM + 40000)) & pid=$!
wait_for 20 bash -c '[ "$(squeue -h -t R -o %D)" = 2 ]'
SLURM_EXIT_IMMEDIATE=7 SLURM_EXIT_ERROR=9 says "and that for nothing free" 7 "Requested nodes are busy" srun -I1 true
kill $pid
wait $pid

cd "$T" || exit 1
echo old >e.1
srun -n2 -o 'o.%t.%u' -e e.%t bash -c 'echo $SLURM_PROCID; [ $SLURM_PROCID = 1 ] || echo error >&2'
is "each task has its files" "$(echo o.* e.*)" "o.0.$(id -un) o.1.$(id -un) e.0 e.1"
is "with what it wrote, also when that is nothing" "$(cat o.0.* o.1.* e.0 e.1 | paste -s -d' ')" "0 1 error"

mark=$((RANDOM + 40000))
alive() { pgrep -xf ".*bin/sleep $mark|sleep $mark" >/dev/null; }
gone() { ! alive; }
srun bash -c "trap '' INT; sleep $mark" 2>"$T/err" & pid=$!
wait_for 20 alive
while kill -INT $pid 2>/dev/null; do sleep 0.3; done # two of them within a second, however slow this machine is
wait $pid
code=$?
ok "two interrupts end what ignores one ($code)" [ "$code" -gt 128 ]
like "and say so" "$(cat "$T/err")" "sending Ctrl-C to StepId=.*forcing job termination.*Job step aborted: Waiting up to 32 seconds"
ok "nothing is left" wait_for 20 gone

srun -H true 2>"$T/err" & pid=$!
wait_for 20 grep -q "queued and waiting" "$T/err"
like "a held job says that it is" "$(cat "$T/err")" "srun: Job is in held state, pending scheduler release"
kill -INT $pid
wait $pid
done_testing
