#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# resize.t - a component gives up a node, or loses one with --no-kill, while steps run in it and in others
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 4 --cpus 2
cd "$(user_dir)"
nodes() { squeue -h -t all -j "$1" -o '%i=%N' | sort | tr '\n' ' '; }
has() { [ "$(nodes $id)" = "$1" ]; }
cat >job.sh <<'EOF'
#!/bin/bash
srun --het-group=0 --overlap bash -c 'touch up.a; while [ ! -e stop ]; do sleep 0.1; done; echo a ended' &
srun --het-group=1 --overlap --no-kill -l bash -c 'touch up.b$SLURM_PROCID; while [ ! -e stop ]; do sleep 0.1; done; echo b ended' 2>b.err &
while [ ! -e shrink ]; do sleep 0.1; done
scontrol update JobId=$SLURM_JOB_ID+1 NumNodes=2 >said 2>&1
. ./slurm_job_$SLURM_JOB_ID+1_resize.sh
echo "now $SLURM_JOB_NODELIST_HET_GROUP_1 $SLURM_JOB_NUM_NODES_HET_GROUP_1 $SLURM_NTASKS_HET_GROUP_1 $SLURM_JOB_NODELIST"
while [ ! -e go ]; do sleep 0.1; done
srun --het-group=0,1 -N1 -n1 --overlap bash -c 'echo "step $SLURMD_NODENAME"' | sort -u
touch stop
wait
EOF
id=$(as_user sbatch --parsable --no-requeue -o out -n1 -w n1 : -N3 -n3 -w n[2-4] --no-kill job.sh)
ok "a step in each component" wait_for 30 eval '[ -e up.a ] && [ "$(ls up.b* | wc -l)" = 3 ]'
run as_user scontrol update JobId=$id+1 NumNodes=9
is "nothing is added" "$code" 1
as_user touch shrink
ok "a component gives up a node, from inside the job" wait_for 30 has "$id+0=n1 $id+1=n[2-3] "
ok "the script goes on" wait_for 30 grep -q ^now out
is "its variables are those of the component" "$(grep ^now out)" "now n[2-3] 2  n1"
like "scontrol says how" "$(cat said)" "\. \./slurm_job_$id\+1_resize\.sh"
ok "the node is free" wait_for 40 eval '[ "$(sinfo -h -n n4 -o %T)" = idle ]'
scontrol update NodeName=n3 State=DOWN Reason=smoke
ok "with --no-kill a component goes on without a node that fails" wait_for 30 has "$id+0=n1 $id+1=n2 "
is "and the job with it" "$(squeue -h -t all -j $id -o %T | sort -u)" RUNNING
as_user touch go
ok "it ends" wait_for 60 eval '[ "$(squeue -h -t all -j $id -o %T | sort -u)" = COMPLETED ]'
is "later steps have what is left" "$(grep ^step out | tr '\n' ' ')" "step n1 step n2 "
ok "steps that were running there end as they would" grep -q 'a ended' out
done_testing
