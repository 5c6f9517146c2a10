#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# inside.t - steps inside a batch job: numbers, shares of the allocation, waiting, what may not be
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 3 --cpus 4
cd "$(user_dir)"

job() { printf '#!/bin/bash\n%s\n' "$1" >job.sh; shift; as_user sbatch -W -o job.out "$@" job.sh >/dev/null 2>&1; code=$?; out=$(cat job.out); }

job 'srun -l bash -c "echo \$SLURM_PROCID \$SLURMD_NODENAME \$SLURM_STEP_ID" | sort; srun -n1 bash -c "echo step \$SLURM_STEP_ID"' -N2 -n4 --ntasks-per-node=2
is "steps take the job's shape and count up" "$out" $'0: 0 n1 0\n1: 1 n1 0\n2: 2 n2 0\n3: 3 n2 0\nstep 1'
job 'srun -N1 -n1 -w n2 bash -c "echo \$SLURMD_NODENAME"; srun -N1 -n1 -r 1 bash -c "echo \$SLURMD_NODENAME"; srun -n2 -N2 -x n1 bash -c "echo \$SLURMD_NODENAME"; echo rc=$?; srun -N1 -n1 -w n9 true' -N3 -n3
like "-w, -r and -x" "$out" $'^n2\nn2\n(n[23]\n)+rc=0\nsrun: error: Unable to create step for job [0-9]+: Requested node configuration is not available$'
job 'srun -n9 true; echo rc=$?' -n2
like "more than the job has" "$out" "Unable to create step for job [0-9]+: More processors requested than permitted"$'\n'"rc=1"
job 's=$(date +%s%N); for i in 1 2 3 4; do srun -n1 --exact sleep 0.5 & done; wait; e=$(date +%s%N); echo $(((e - s) / 1000000))' -n4
ok "exact steps run beside each other" [ "${out##*$'\n'}" -lt 1500 ]
job 'srun -n1 sleep 0.6 & sleep 0.2; srun -n1 echo second; wait' -n2
like "a step waits for the one before, and says so once" "$out" $'^srun: Job [0-9]+ step creation temporarily disabled, retrying \\(Requested nodes are busy\\)\nsrun: Step created for StepId=[0-9]+.1\nsecond$'
job 'srun -n1 sleep 0.6 & sleep 0.2; srun --overlap -n1 echo second; wait' -n2
is "one that overlaps does not wait" "$out" second
job 'srun bash -c "exit 7"; echo rc=$?' -N2 -n2
like "exit codes of steps" "$out" "n1: task 0: Exited with exit code 7.*rc=7"
job 'for i in $(seq 50); do srun -n1 true || echo bad; done; srun -n1 bash -c "echo \$SLURM_STEP_ID"' -n1
is "fifty steps" "$out" 50
mark=$((RANDOM + 40000))
job "srun sleep $mark & sleep 0.5" -n1
gone() { ! pgrep -xf ".*bin/sleep $mark|sleep $mark" >/dev/null; }
ok "steps end with the script" wait_for 5 gone
id=$(as_user sbatch --parsable -o /dev/null --wrap 'sleep 60')
wait_for 5 job_is "$id" RUNNING
if [ "$(id -u)" -eq 0 ]; then # somebody else
    run setpriv --reuid 20002 --regid 20002 --clear-groups srun --jobid "$id" true
    is "another user's job is not for steps" "$code" 1
    like "and that is said" "$err" "Access/permission denied"
fi
run as_user srun --jobid "$id" --overlap echo in
is "a step from outside into one's own job" "$out" in
scancel "$id"
done_testing
