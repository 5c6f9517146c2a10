#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# batch.t - heterogeneous batch jobs: from the command line and from a script, what the script sees, how they are shown
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 4 --cpus 4
cd "$(user_dir)"

cat >het.sh <<'EOF'
#!/bin/bash
#SBATCH -n1 --mem=100 -w n3
#SBATCH hetjob
#SBATCH -n2 -N2 --mem=50 -w n[1-2] -c2
#SBATCH packjob
#SBATCH -n3 -w n4 --mem-per-cpu=10
echo "on $(hostname) $SLURMD_NODENAME"
env | grep -E '^SLURM_(HET|PACK|.*_GROUP_|JOB_ID=|JOBID=|NTASKS=|JOB_NODELIST=)' | sort
EOF
run as_user timeout 60 sbatch -W --parsable -o env.out het.sh
is "a script of three components: code" "$code" 0
id=$out
like "one number, that of the first" "$id" '^[0-9]+$'
is "the script runs once, on the first component's node" "$(grep -c '^on ' env.out) $(grep '^on ' env.out | cut -d' ' -f3)" "1 n3"
has() { if grep -qxF "$1" env.out; then pass "the script has $1"; else fail "the script has $1" "$(cat env.out)"; fi; }
has SLURM_HET_SIZE=3
has SLURM_PACK_SIZE=3
has SLURM_JOB_ID=$id
has SLURM_NTASKS=1
has SLURM_JOB_NODELIST=n3
has SLURM_JOB_ID_HET_GROUP_0=$id
has SLURM_JOB_ID_HET_GROUP_1=$((id + 1))
has SLURM_JOB_ID_PACK_GROUP_2=$((id + 2))
has SLURM_JOB_NODELIST_HET_GROUP_0=n3
has 'SLURM_JOB_NODELIST_HET_GROUP_1=n[1-2]'
has SLURM_JOB_NODELIST_HET_GROUP_2=n4
has 'SLURM_JOB_CPUS_PER_NODE_HET_GROUP_1=2(x2)'
has 'SLURM_TASKS_PER_NODE_HET_GROUP_1=1(x2)'
has SLURM_CPUS_PER_TASK_HET_GROUP_1=2
has SLURM_MEM_PER_NODE_HET_GROUP_1=50
has SLURM_MEM_PER_CPU_HET_GROUP_2=10
has SLURM_NTASKS_HET_GROUP_2=3
has SLURM_JOB_NUM_NODES_HET_GROUP_1=2
is "what a component did not ask for is not there" "$(grep -c 'CPUS_PER_TASK_HET_GROUP_[02]\|MEM_PER_NODE_HET_GROUP_2' env.out)" 0
ok "all components end with the script" wait_for 30 job_is $id $'COMPLETED\nCOMPLETED\nCOMPLETED'

id=$(as_user sbatch --parsable -J pair -o /dev/null -n1 -w n1 : -n2 -w n2 --wrap 'sleep 300')
ok "both run" wait_for 30 job_is $id $'RUNNING\nRUNNING'
is "squeue" "$(squeue -h -j $id -o '%i|%j|%N' | sort | tr '\n' ' ')" "$id+0|pair|n1 $id+1|pair|n2 "
is "squeue -O" "$(squeue -h -j $id -O HetJobID:9,HetJobOffset:3,HetJobIDSet:9,JobArrayID:9,JobID:9 | sort | tr -s ' ' | tr '\n' ';')" \
    "$id 0 $id-$((id + 1)) $id+0 $id ;$id 1 $id-$((id + 1)) $id+1 $((id + 1)) ;"
is "scontrol show job of the first shows all" "$(scontrol show job $id | grep -o 'JobId=.*HetJobOffset=[0-9]*' | tr '\n' ' ')" \
    "JobId=$id HetJobId=$id HetJobOffset=0 JobId=$((id + 1)) HetJobId=$id HetJobOffset=1 "
is "of one component, that one" "$(scontrol show job $id+1 | grep -o 'JobId=.*HetJobOffset=[0-9]*')" "JobId=$((id + 1)) HetJobId=$id HetJobOffset=1"
like "and all of them" "$(scontrol show job $id+1)" "HetJobIdSet=$id-$((id + 1))"
run as_user scancel $id
is "scancel of the job" "$code" 0
ok "ends all components" wait_for 30 job_is $id $'CANCELLED\nCANCELLED'
id=$(as_user sbatch --parsable -o /dev/null -n1 -w n1 : -n2 -w n2 --wrap 'sleep 300')
ok "another one runs" wait_for 30 job_is $id $'RUNNING\nRUNNING'
run as_user scancel -v $id+1
like "scancel of a component" "$code $err" "^0 scancel: Terminating job $id\+1"
both() { squeue -h -t all -j $id -o '%i=%T' | sort | tr '\n' ' '; }
ok "ends that one" wait_for 30 eval '[ "$(both)" = "$id+0=RUNNING $id+1=CANCELLED " ]'
run as_user scancel $id+1
is "it is over: nothing is said, as of any job" "$code$err" 0
as_user scancel $id+0
ok "the first ends all" wait_for 30 eval '[ "$(both)" = "$id+0=CANCELLED $id+1=CANCELLED " ]'
run as_user sbatch -n1 : -n1 --array=0-3 --wrap true
like "no array is heterogeneous" "$code $err" "^1 .*sbatch: error: "
run as_user sbatch --het-group=0 -n1 --wrap true
like "--het-group is srun's" "$code $err" "^[1-9][0-9]* sbatch: (error: )?unrecognized option '--het-group=0'"
done_testing
