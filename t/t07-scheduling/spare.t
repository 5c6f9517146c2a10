#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A job holds nodes in reserve: one takes the place of a node that fails.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 4 --cpus 2 --mem 4G
cd "$(user_dir)"
user_submit() { as_user sbatch --parsable --mem=100 -t 10 "$@"; }
nodes_of() { squeue -h -t all -j "$1" -o "%D %N"; }
has_nodes() { [ "$(nodes_of "$1")" = "$2" ]; }
shown() { scontrol show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"; }
spares_are() { [ "$(shown "$1" SpareNodes)" = "$2" ]; }

run as_user sbatch -N1-3 --spare-nodes=1 --wrap true
like 'of a range of nodes there are no spares' "$err" 'one number of nodes'
run as_user sbatch -N4 --spare-nodes=1 --wrap true
is 'five nodes are not there' "$code" 1

id=$(user_submit -N2 -n4 --spare-nodes=2 -o out --wrap '
    echo "$SLURM_JOB_NODELIST $SLURM_NNODES $SLURM_NTASKS"
    srun -l sh -c "touch up.\$SLURM_PROCID; sleep 300" 2>err &
    while [ ! -e go ]; do sleep 0.1; done
    wait
    srun sh -c "echo \$SLURMD_NODENAME" | sort
    echo ended')
ok 'its step runs' wait_for 30 sh -c '[ $(ls up.* 2>/dev/null | wc -l) = 4 ]'
is 'on the nodes it asked for' "$(nodes_of "$id")" '2 n[1-2]'
is 'and it has two more' "$(shown "$id" SpareNodes)" 'n[3-4]'
other=$(user_submit -N1 -n1 --wrap true)
is 'which nobody else gets' "$(job_state "$other")" PENDING
scontrol update NodeName=n2 State=DOWN Reason=smoke
ok 'a spare takes the place of a node that fails' wait_for 20 has_nodes "$id" '2 n[1,3]'
ok 'the job goes on' job_is "$id" RUNNING
ok 'with one spare less' spares_are "$id" n4
scontrol update NodeName=n4 State=DOWN Reason=smoke
ok 'a spare may fail too' wait_for 20 spares_are "$id" ''
ok 'which is no matter' job_is "$id" RUNNING
is 'its nodes stay' "$(nodes_of "$id")" '2 n[1,3]'
touch go
ok 'the script ends' wait_for 60 job_is "$id" COMPLETED
is 'later steps use the spare' "$(cat out)" $'n[1-2] 2 4\nn1\nn1\nn3\nn3\nended'
ok 'then all is free' wait_for 20 job_is "$other" COMPLETED

scontrol update NodeName=n2,n4 State=RESUME
wait_for 20 sh -c '[ "$(sinfo -h -N -o %T | sort -u)" = idle ]'
id=$(user_submit -N2 --spare-nodes=1 --requeue -o again --wrap 'echo "$SLURM_JOB_NODELIST"; sleep 300')
ok 'a job with a spare runs' wait_for 20 job_is "$id" RUNNING
ok 'its script says where' wait_for 20 grep -q n again
first=$(scontrol show job "$id" | sed -n 's/.*BatchHost=\([^ ]*\).*/\1/p')
scontrol update NodeName="$first" State=DOWN Reason=smoke
restarted() { [ "$(shown "$id" Restarts)" = 1 ] && job_is "$id" RUNNING; }
ok 'when its first node fails it starts again' wait_for 60 restarted
unlike 'without that node' "$(nodes_of "$id")" "$first"
scancel "$id"
done_testing
