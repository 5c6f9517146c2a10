#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# resize.t - a running job gives up nodes, loses one and goes on, and gets another time limit
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 4 --cpus 2
cd "$(user_dir)"

nodes_of() { squeue -h -t all -j "$1" -o "%D %N"; }
has_nodes() { [ "$(nodes_of "$1")" = "$2" ]; }
node_is() { [ "$(sinfo -h -n "$1" -o %T)" = "$2" ]; }

for user in "" as_user; do
    u=${user:-root}
    $user mkdir "$u"
    cd "$u" || exit 1
    id=$($user sbatch --parsable -N4 --exclusive -o "out-$u" --wrap '
        srun -N4 -n4 -l sh -c "touch up.\$SLURM_PROCID; sleep 300" 2>srun.err &
        while [ ! -e go ]; do sleep 0.1; done
        srun -N2 -n2 -l hostname >/dev/null && srun -N2 -n2 sh -c "echo \$SLURMD_NODENAME \$SLURM_JOB_NODELIST" | sort
        echo ended')
    ok "$u: its step runs on four nodes" wait_for 30 sh -c '[ $(ls up.* 2>/dev/null | wc -l) = 4 ]'
    waits=$($user sbatch --parsable -N1 --exclusive --wrap 'sleep 300')
    ok "$u: another waits" job_is "$waits" PENDING
    run $user scontrol update JobId="$id" NumNodes=9
    is "$u: nothing is added" "$code $err" "1 Requested operation not supported on this system for job $id"
    run $user scontrol update JobId="$id" NumNodes=0
    is "$u: one node is the least" "$code" 1
    run $user scontrol update JobId="$id" NodeList=n[2-3]
    is "$u: the script's node stays" "$code $err" "1 scontrol: error: the script runs on node n1, which must stay
Required node not available (down, drained or reserved) for job $id"
    ok "$u: and nothing has changed" has_nodes "$id" "4 n[1-4]"
    run $user scontrol update JobId="$id" NumNodes=2
    is "$u: two nodes less" "$code$err" 0
    ok "$u: are gone from it" has_nodes "$id" "2 n[1-2]"
    ok "$u: and go to the one that waits, when their step is gone" wait_for 60 job_is "$waits" RUNNING
    ok "$u: the job goes on" job_is "$id" RUNNING
    scancel "$waits"
    run $user scancel --signal=KILL "$id.0"
    is "$u: what is left of the step is killed" "$code$err" 0
    touch go
    ok "$u: it ends" wait_for 30 job_is "$id" COMPLETED
    is "$u: later steps have what is left" "$(cat "out-$u")" $'n1 n[1-2]\nn2 n[1-2]\nended'
    cd ..
    wait_for 30 node_is n4 idle
done

salloc -Q -N3 bash -c 'scontrol update JobId=$SLURM_JOB_ID NodeList=n2-n3 2>&1; scontrol update JobId=$SLURM_JOB_ID NodeList=n[2-3]
    . ./slurm_job_${SLURM_JOB_ID}_resize.sh; echo "$SLURM_JOB_NODELIST $SLURM_NNODES $SLURM_NTASKS"
    srun bash -c "echo \$SLURMD_NODENAME" | sort; mv slurm_job_${SLURM_JOB_ID}_resize.csh csh' >said
like "an allocation gives up its first node" "$(cat said)" 'For bash or sh shells:  . ./slurm_job_[0-9]+_resize.sh
  For csh shells:         source ./slurm_job_[0-9]+_resize.csh
n\[2-3\] 2 
n2
n3$'
like "csh too" "$(cat csh)" 'setenv SLURM_JOB_NUM_NODES "2"'

id=$(submit -N3 --no-kill -t 60 --wrap 'sleep 300')
dies=$(submit -N3 -O -n3 --no-requeue -t 60 --wrap 'sleep 300')
wait_for 30 job_is "$dies" RUNNING
scontrol update NodeName=n3 State=DOWN Reason=smoke
ok "a job loses a node" wait_for 10 has_nodes "$id" "2 n[1-2]"
ok "and goes on" job_is "$id" RUNNING
ok "one without --no-kill does not" wait_for 30 job_is "$dies" NODE_FAIL
scontrol update NodeName=n3 State=RESUME
run scontrol update JobId="$id" TimeLimit=30
is "another limit" "$(squeue -h -j "$id" -o %l)" 30:00
scontrol update NodeName=n1 State=DOWN Reason=smoke
ok "its script's node is another matter: it starts again" wait_for 30 sh -c "scontrol show job $id | grep -q Restarts=1"
done_testing
