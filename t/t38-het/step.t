#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# step.t - srun over the components of a heterogeneous job: in one of its own, inside salloc, inside an ordinary job
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 4 --cpus 8
cd "$(user_dir)"
me='echo $SLURM_PROCID/$SLURM_NTASKS $SLURMD_NODENAME $SLURM_NODEID $SLURM_LOCALID'

# ---- a job of its own ----
run as_user timeout 60 srun -l -n1 -w n3 bash -c "$me"' big' : -n4 -N2 --ntasks-per-node=2 -w n[1-2] bash -c "$me"' small'
is "ranks go on from component to component" "$code $(sort <<<"$out")" \
    "0 0: 0/5 n3 0 0 big"$'\n'"1: 1/5 n1 1 0 small"$'\n'"2: 2/5 n1 1 1 small"$'\n'"3: 3/5 n2 2 0 small"$'\n'"4: 4/5 n2 2 1 small"
run timeout 60 srun -l -n1 : -n2 -N2 bash -c "$me"
is "as root; one program for both" "$code $(wc -l <<<"$out") $(cut -d' ' -f2 <<<"$out" | sort | tr '\n' ' ')" "0 3 0/3 1/3 2/3 "
run as_user timeout 60 srun -n1 -w n3 : -n2 -w n1 -c2 bash -c 'echo $SLURM_JOB_ID $SLURM_STEP_ID $SLURM_STEP_NODELIST $SLURM_STEP_NUM_NODES $SLURM_STEP_NUM_TASKS \
    $SLURM_STEP_TASKS_PER_NODE $SLURM_JOB_NODELIST $SLURM_JOB_NUM_NODES $SLURM_HET_SIZE $SLURM_JOB_NODELIST_HET_GROUP_1 $SLURM_CPUS_PER_TASK_HET_GROUP_1 c=$SLURM_CPUS_PER_TASK'
job=${out%% *}
is "what every task knows of all" "$(cut -d= -f1 <<<"$out" | sort -u)" "$job 0 n[3,1] 2 3 1,2 n[3,1] 2 2 n1 2 c"
is "and of its own component" "$(cut -d= -f2 <<<"$out" | sort | tr '\n' ' ')" " 2 2 "
ok "the job ends as its step did" wait_for 30 job_is $job $'COMPLETED\nCOMPLETED'
run as_user timeout 60 srun -n1 -w n1 bash -c 'exit 3' : -n2 -w n2 bash -c 'exit $((SLURM_PROCID * 4))'
is "the exit code is the highest of all tasks" "$code" 8
like "a task goes by its number in all" "$err" "srun: error: n2: task 2: Exited with exit code 8"
like "in every component" "$err" "srun: error: n1: task 0: Exited with exit code 3"
run as_user timeout 60 srun -K -n1 sleep 100 : -n1 bash -c 'exit 5'
like "--kill-on-bad-exit ends all components" "$code $err" "Terminating StepId=[0-9]+\.0"
run as_user timeout 60 srun -n1 cat : -n2 cat <<<hello
is "standard input goes to all" "$code $(sort <<<"$out" | uniq -c | tr -s ' ')" "0  3 hello"
run as_user timeout 60 srun -o out.%t -n1 echo a : -n2 echo b
is "files of tasks" "$code $(cat out.0 out.1 out.2 | tr '\n' ' ')" "0 a b b "
printf '0 echo first\n1 echo second\n' >multi.conf
run as_user timeout 60 srun -l -n1 echo a : -n2 --multi-prog multi.conf
is "--multi-prog counts from its component's first task" "$code $(sort <<<"$out" | tr '\n' ,)" "0 0: a,1: first,2: second,"
run as_user timeout 60 srun -n1 -w n1 echo a : -n64 echo b
like "what one component can never have is refused for all" "$code $out $err" "^1  srun: error: partition .*Unable to allocate resources: "
run as_user timeout 60 srun -n1 a-program : -n1
like "the last component needs a program" "$code $err" "^1 srun: fatal: No command given to execute"
run as_user srun --het-group=1 true
like "--het-group needs an allocation" "$code $err" "^1 srun: error: --het-group is for steps"

# ---- signals ----
as_user bash -c 'srun -n1 -w n1 sleep 300 : -n2 -w n2 sleep 301 >sig.out 2>&1 & echo $! >pid; wait $!; echo $? >rc' &
runs() { [ "$(squeue -h -s -o %i | grep -c "\.0$")" = "$1" ]; }
ok "a step in each component" wait_for 30 runs 2
is "with one number" "$(squeue -h -s -o '%i %N' | sort -k2 | sed 's/^[0-9]*//' | tr '\n' ,)" "+0.0 n1,+1.0 n2,"
kill -INT $(cat pid)
shown() { grep -q 'tasks 0-2: running' sig.out; }
ok "Ctrl-C shows the tasks of all" wait_for 30 shown
kill -TERM $(cat pid)
wait
like "and a signal ends all" "$(cat sig.out)" "forcing job termination"
ok "nothing is left" wait_for 30 runs 0
as_user bash -c 'srun -n1 -w n1 sleep 300 : -n2 -w n2 sleep 301 >cancel.out 2>&1; echo $? >rc' &
ok "another one runs" wait_for 30 runs 2
id=$(squeue -h -o %A | head -1)
as_user scancel $id+1
wait
like "a component that is cancelled ends the step" "$(cat rc)" "^[1-9]"
ok "and the job" wait_for 30 eval 'runs 0 && [ "$(job_state $id+1)" = CANCELLED ]'

# ---- inside an allocation ----
inside() { run as_user timeout 60 salloc -Q -n1 -w n1 : -n2 -w n2 -c2 : -n1 -w n2 bash -c "$1"; }
inside 'srun bash -c "echo \$SLURMD_NODENAME \$SLURM_NTASKS"'
is "without a word: in the first component" "$code $out" "0 n1 1"
inside 'srun -l --het-group=1 bash -c "echo \$SLURMD_NODENAME \$SLURM_NTASKS \$SLURM_CPUS_PER_TASK \$SLURM_JOB_ID"; echo $SLURM_JOB_ID'
job=$(tail -1 <<<"$out")
is "--het-group: in that one, with its numbers" "$(sort <<<"$out" | tr '\n' ,)" "0: n2 2 2 $job,1: n2 2 2 $job,$job,"
inside 'for g in 0-2 0,2 "1,2"; do srun -l --het-group=$g bash -c "echo \$SLURM_STEP_ID"; done; srun --het-group=2 bash -c "echo last \$SLURM_STEP_ID"'
is "several; steps are counted" "$(sort <<<"$out" | tr '\n' ,)" "0: 0,0: 1,0: 3,1: 0,1: 1,1: 3,2: 0,2: 3,3: 0,last 4,"
inside 'srun --het-group=2 true; srun --het-group=2 true; srun --het-group=0-2 bash -c "echo \$SLURM_STEP_ID"'
is "one number that is free in all" "$code $(sort -u <<<"$out")" "0 3"
inside 'srun -l echo a : echo b : echo c'
is "a program for each" "$code $(sort <<<"$out" | tr '\n' ,)" "0 0: a,1: b,2: b,3: c,"
inside 'srun -l --het-group=0,2 bash -c "$0" : --het-group=1 echo b'
is "by any words" "$code $(grep -c b <<<"$out")" "0 2"
inside 'srun --het-group=0 true : --het-group=0-1 true'
like "none twice" "$code $err" "^1 srun: error: Duplicate het groups in single srun not supported"
inside 'srun --het-group=3 true'
like "none that is not there" "$code $err" "^1 srun: error: Attempt to run a job step with het group value of 3, but the job allocation has maximum value of 2"
inside 'srun --het-group=x true'
like "none that makes no sense" "$code $err" "^1 srun: error: Invalid --het-group specification: x"
inside 'srun -l --het-group=1,2 bash -c "echo \$SLURM_NODEID \$SLURM_LOCALID \$SLURM_STEP_NODELIST \$SLURM_STEP_TASKS_PER_NODE"'
is "two components on one node: it is listed once" "$(sort <<<"$out" | tr '\n' ,)" "0: 0 0 n2 3,1: 0 1 n2 3,2: 0 0 n2 3,"
inside 'for i in 1 2 3 4; do srun --het-group=0-2 sleep 0.2 & srun --het-group=1,2 sleep 0.1 & done; wait; echo done'
is "many at once wait for each other, not for ever" "$code $out" "0 done"
run as_user timeout 60 salloc -Q -n4 -N2 bash -c 'srun -l -n1 echo a : -n2 echo b; srun -l -n3 --het-group=0 echo c; srun --het-group=1 true'
is "inside an ordinary job: steps beside each other" "$(sort <<<"$out" | tr '\n' ,)" "0: a,0: c,1: b,1: c,2: b,2: c,"
like "which has one component" "$err" "het group value of 1, but the job allocation has maximum value of 0"
run as_user timeout 60 salloc -Q -n2 bash -c 'SLURM_HET_SIZE=2 SLURM_JOB_ID_HET_GROUP_0=1 SLURM_JOB_ID_HET_GROUP_1=2 srun -l -n1 echo a : -n1 echo b'
is "variables of another job count for nothing" "$code $(sort <<<"$out" | tr '\n' ,)" "0 0: a,1: b,"
id=$(as_user sbatch --parsable -o /dev/null -n1 -w n1 : -n2 -w n2 --wrap 'sleep 300')
ok "a job to be called by number" wait_for 30 job_is $id $'RUNNING\nRUNNING'
run as_user timeout 60 srun --jobid=$id --het-group=0-1 -l bash -c 'echo $SLURMD_NODENAME'
is "--jobid: steps of it from outside" "$code $(sort -u <<<"${out//[0-9]: /}" | tr '\n' ,)" "0 n1,n2,"
as_user scancel $id
run as_user timeout 60 salloc -n1 -w n1 : -n2 -w n2 true
is "what salloc says" "$code $(sed "s/ [0-9][0-9]*$/ ID/" <<<"$err")" \
    $'0 salloc: Granted job allocation ID\nsalloc: Nodes n1 are ready for job\nsalloc: Nodes n2 are ready for job\nsalloc: Relinquishing job allocation ID'
run as_user timeout 60 salloc -Q -n1 true : -n1 true
like "a command ends salloc's components" "$code $err" "^[1-9][0-9]* salloc: error: Unexpected argument before"
done_testing
