#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# no-allocate.t - srun -Z: operators run tasks on nodes without an allocation, beside jobs and on drained nodes
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all "needs root"
cluster_up --nodes 3 --cpus 2
cd "$(user_dir)"
run srun -Z -w n2 bash -c 'echo $SLURMD_NODENAME $SLURM_PROCID $SLURM_NNODES'
is "on the node that was named" "$code $out" "0 n2 0 1"
run srun --no-allocate -w n[1,3] -l bash -c 'echo $SLURMD_NODENAME'
is "one task on each of several" "$(sort <<<"$out" | tr '\n' ,)" "0: n1,1: n3,"
run srun -Z -w n1 -n5 bash -c 'echo $SLURM_NTASKS'
is "more tasks than CPUs" "$code $(sort <<<"$out" | uniq -c | tr -s ' ')" "0  5 5"
run srun -Z true
is "without nodes: exit" "$code" 1
is "without nodes" "$err" "srun: error: must specify a node list with -Z, --no-allocate."
run srun -Z -w nowhere true
like "a node that there is not" "$code $err" "^1 .*Invalid node name specified"
run as_user srun -Z -w n1 true
is "an ordinary user: exit" "$code" 1
like "an ordinary user" "$err" "error: Unable to allocate resources: .*[Pp]ermission"

# A full cluster: it starts at once, takes nothing, and what is there is not disturbed.
busy=$(as_user sbatch --parsable -N3 --exclusive -o /dev/null --wrap 'sleep 1000')
wait_for 20 job_is "$busy" RUNNING
run timeout 20 srun -Z -w n1 echo beside
is "beside a job that has all CPUs" "$code $out" "0 beside"
scancel "$busy"
gone() { [ -z "$(squeue -h)" ] && [ "$(sinfo -h -o %t)" = idle ]; }
wait_for 20 gone
scontrol update NodeName=n2 State=DRAIN Reason=test
run timeout 20 srun -Z -w n2 echo drained
is "on a drained node" "$code $out" "0 drained"
scontrol update NodeName=n2 State=RESUME

# Seen and ended like any step.
srun -Z -w n1 sleep 1000 >/dev/null 2>&1 &
pid=$!
step() { [ -n "$(squeue -h -s -o %i | grep '\.0$')" ]; }
wait_for 20 step
id=$(squeue -h -o %i)
is "its CPUs are not in use" "$(sinfo -h -n n1 -o '%t %C')" "idle 0/2/0/2"
run as_user timeout 20 srun -w n1 -n2 echo both
is "jobs start on its node as if it were not there" "$code $(sort -u <<<"$out")" "0 both"
run as_user srun --jobid="$id" --overlap true
not_ok "a user cannot step into it" test "$code" = 0
run scontrol suspend "$id"
not_ok "it is not suspended" test "$code" = 0
run scontrol ping
controller_again
wait_for 30 step
is "it outlives the controller" "$(squeue -h -s -o %i | grep -c "^$id.0")" 1
kill -0 $pid
is "and its srun stays" $? 0
scancel "$id.0"
wait $pid
not_ok "scancel of the step ends it" test $? = 0
wait_for 20 gone
ok "nothing is left" gone
done_testing
