#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# manager.t - the node that manages a job's steps is lost, and the job lives on: another one takes over
. "$(dirname "$0")/../lib.sh"
printf 'ClusterName=m\nSlurmdTimeout=3\nNodeName=n[1-3] CPUs=4 RealMemory=1000\nPartitionName=debug Nodes=ALL Default=YES\n' >"$T/m.conf"
cluster_up --nodes 3 --conf "$T/m.conf"
cd "$(user_dir)"

run as_user salloc --no-kill -N3 --no-shell
id=$(squeue -h -o %i)
is "the first step" "$(as_user srun --jobid "$id" -N1 -w n3 bash -c 'echo $SLURM_STEP_ID')" 0
as_user srun --jobid "$id" -N1 -w n3 bash -c 'while [ ! -e stop ]; do echo tick; sleep 0.1; done; echo end' >run.out 2>run.err &
srun=$!
ok "a step that runs elsewhere" wait_for 10 grep -q tick run.out
for p in $(pgrep -x spurd); do tr '\0' ' ' <"/proc/$p/cmdline" | grep -q -- "-N n1 .*$D/" && kill -9 "$p"; done
down() { sinfo -h -n n1 -o %T | grep -q down; }
ok "the managing node is lost" wait_for 30 down
is "the job lives on" "$(job_state "$id")" RUNNING
number=
again() { number=$(as_user srun --overlap --jobid "$id" -N1 -w n3 bash -c 'echo $SLURM_STEP_ID'); }
ok "another node gives steps" wait_for 20 again
ok "whose numbers are far above those that were used" [ "${number:-0}" -ge 10000 ]
as_user touch stop
wait $srun
is "the step went on to its end" "$?" 0
is "and all of it was seen" "$(tail -n 1 run.out)" end
scancel "$id"
done_testing
