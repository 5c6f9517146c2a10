#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# srun does as Slurm's in corners that scripts rely on: names of files, host files, signals, counts, variables.
. "$(dirname "$0")/../lib.sh"
cluster_of corners <<'CONF'
[[nodes]]
names = "n[1-4]"
hostname = "n[1-4]"
cpus = 4
memory_mb = 4000
[[nodes]]
names = "g[1-2]"
cpus = 4
memory_mb = 4000
gres = ["gpu:2"]
CONF
there() { wait_for 20 test -s "$1"; }
made() { wait_for 20 test -e "$1"; }

# Files of steps are named after the job: array, task, name
sbatch -Q -o /dev/null --array=7 -J myjob --wrap 'srun -o s_%A_%a_%b_%x.out true' >/dev/null
a=$(submit -o /dev/null --array=1-2 -J myjob --wrap 'srun -o t_%A_%a_%b_%x.out true')
made "t_${a}_2_2_myjob.out"
made "t_${a}_1_1_myjob.out"
is "array and task in a step's file" "$(ls t_* | tr '\n' ' ')" "t_${a}_1_1_myjob.out t_${a}_2_2_myjob.out "
is "one task too" "$(ls s_* | sed 's/s_[0-9]*_//')" "7_7_myjob.out"

# Each task reads a file of its own
echo a >in.0; echo b >in.1
is "input by task, one node" "$(srun -n2 -l -i in.%t cat | sort)" $'0: a\n1: b'
is "input by task, two nodes" "$(srun -N2 -l -i "$T/in.%t" cat | sort)" $'0: a\n1: b'
run srun -n3 -i in.%t cat
like "a file that is missing" "$code:$err" '^1:.*Could not open stdin file .*in\.2: No such file'

# Each component has files of its own
cat >het.sh <<'END'
#!/bin/sh
#SBATCH -n1
#SBATCH hetjob
#SBATCH -n1
srun -o a.out echo A : -o b.out echo B
srun --het-group=0,1 env >env.out
END
sbatch -Q -W -o het.err het.sh >/dev/null
is "files of components" "$(cat a.out):$(cat b.out)" A:B
like "nodes of each group" "$(sort -u env.out)" 'SLURM_NODELIST_HET_GROUP_0=n.*SLURM_NODELIST_HET_GROUP_1=n'

# Host files
printf 'n3\nn2\nn3\n' >hosts
is "a host file says which nodes the job has, and the order" \
    "$(SLURM_HOSTFILE=hosts srun -m arbitrary -l printenv SLURMD_NODENAME | sort)" $'0: n3\n1: n2\n2: n3'
printf 'n3\nn1\nn2\n' >hosts
is "inside an allocation without -m" \
    "$(SLURM_HOSTFILE=$T/hosts salloc -Q -w n[1-3] srun -l printenv SLURMD_NODENAME | sort)" $'0: n3\n1: n1\n2: n2'

# How many tasks
is "whole node and --cpus-per-task: one for each CPU" "$(srun -N1 --exclusive -c1 printenv SLURM_PROCID | sort | tr '\n' ' ')" '0 1 2 3 '
is "--gpus-per-task with -N: one on each node" "$(srun -N2 --gpus-per-task=1 printenv SLURMD_NODENAME | sort | tr '\n' ' ')" 'g1 g2 '
run salloc -Q -w n[1-4] srun -N2 -n2 -O --relative=3 hostname
like "--relative does not go on at the first node" "$code:$err" '^1:.*Node count specification invalid'
cat >each.sh <<'END'
#!/bin/sh
#SBATCH -N2 --ntasks-per-node=1 --exclusive -w n[1-2]
srun -N1 sh -c 'echo one'
srun -N1 -n2 sh -c 'echo two'
srun sh -c 'echo all'
END
sbatch -Q -W -o each.out each.sh >/dev/null
is "-N1 in a job of --ntasks-per-node=1" "$(grep -c one each.out):$(grep -c two each.out):$(grep -c all each.out)" 1:2:2
like "and what cannot be honoured is said" "$(cat each.out)" "can't honor --ntasks-per-node set to 1"

# Variables of tasks
run srun --mpi=pmi2 sh -c 'echo "$SLURM_MPI_TYPE $SLURM_LAUNCH_NODE_IPADDR $SLURM_SRUN_COMM_HOST $SLURM_SRUN_COMM_PORT"'
like "kind of MPI, addresses, port" "$out" '^pmi2 [0-9.]+ [0-9.]+ [0-9]+$'
is "--export of a step is not inherited" "$(srun --export=A=1 env | grep -c SLURM_EXPORT_ENV)" 0
is "-m '*' is block, -m pack is accepted" "$(srun -m '*' printenv SLURM_DISTRIBUTION) $(srun -m pack printenv SLURM_DISTRIBUTION)" 'block block,Pack'

# --disable-status: one interrupt goes to the tasks, which may live on
srun -X bash -c 'trap "echo got; exit 7" INT; echo on; for i in $(seq 300); do sleep 0.1; done' >x.out 2>x.err &
pid=$!
there x.out
kill -INT $pid
wait $pid
is "an interrupt with -X goes to the task" "$?:$(cat x.out | tr '\n' ' ')" '7:on got '

# --quit-on-interrupt ends the tasks at once
srun --quit-on-interrupt bash -c 'trap "echo term" TERM; echo on; for i in $(seq 300); do sleep 0.1; done' >q.out 2>q.err &
pid=$!
there q.out
kill -INT $pid
wait $pid
is "--quit-on-interrupt kills, and asks nothing of the tasks first" "$(($? != 0)):$(cat q.out)" 1:on
srun -n2 --wait=1 bash -c 'trap "echo term" TERM; [ $SLURM_PROCID = 0 ] && exit 0; for i in $(seq 300); do sleep 0.1; done' >w.out 2>w.err
is "--wait kills" "$(cat w.out):$(grep -c Killed w.err)" :1

# squeue --steps with the row of a script; a step is ended after a question
j=$(submit -o /dev/null --wrap 'srun sleep 100; sleep 100')
steps() { [ "$(squeue -h -s -j "$j" 2>/dev/null | wc -l)" = 2 ]; }
wait_for 20 steps
is "squeue --steps -O CPUFreq" "$(squeue -h --steps -j "$j" -O CPUFreq:4 | sort -u)" 'N/A '
like "scancel -i asks about a step" "$(echo y | scancel -i "$j.0")" "Cancel step_id=$j.0 .*\[y/n\]"
gone() { [ "$(squeue -h -s -j "$j" | wc -l)" = 1 ]; }
ok "and ends it" wait_for 20 gone
is "the job lives on" "$(job_state "$j")" RUNNING
scancel "$j"
run scancel 0
like "scancel 0" "$code:$err" '^1:scancel: error: Invalid job id 0'
done_testing
