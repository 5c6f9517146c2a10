#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# basic.t - steps that run: sattach, spur exec, squeue -s, scontrol show step and listpids, scancel JOB.STEP
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 2 --cpus 4
cd "$(user_dir)"

id=$(as_user sbatch --parsable -N2 -n2 -o job.out --wrap 'srun -J talk bash -c "trap \"echo got USR1\" USR1; i=0; while [ ! -e stop ]; do echo tick \$SLURM_PROCID \$i; i=\$((i + 1)); sleep 0.1; done; exit 4"; echo rc=$?; sleep 60')
listed() { squeue -h -s -j "$id" | grep -q " talk "; }
ok "squeue -s has the step" wait_for 15 listed
is "its columns" "$(squeue -h -s "$id.0" -O StepID:20,StepName:8,NumTasks:4,NumCPUs:6,NodeList:10,StepState:8,TimeLimit:10 | tr -s ' ')" "$id.0 talk 2 2 n[1-2] RUNNING UNLIMITED "
like "and the script's" "$(squeue -h -s -j "$id")" "$id\.0 .*$id\.batch "
like "scontrol show step" "$(scontrol show step "$id.0")" "^StepId=$id\.0 UserId=[0-9]+ StartTime=[0-9T:-]+ TimeLimit=UNLIMITED.*State=RUNNING Partition=[a-z]+ NodeList=n\[1-2\].*Nodes=2 CPUs=2 Tasks=2 Name=talk.*SrunHost:Pid=[a-z0-9-]+:[0-9]+"
is "scontrol show step of a job" "$(scontrol show step "$id" | grep -o '^StepId=[^ ]*')" "StepId=$id.batch
StepId=$id.0"
run scontrol show step "$id.77"
is "one that is not there" "$code" 1

like "sattach --layout" "$(as_user sattach --layout "$id.0")" "2 tasks, 2 nodes \(n1,n2\).*Node 0 \(n1\), 1 task\(s\): 0.*Node 1 \(n2\), 1 task\(s\): 1"
as_user sattach -l "$id.0" >att.out 2>att.err </dev/null &
att=$!
ok "sattach sees all tasks, with labels" wait_for 10 sh -c 'grep -q "^0: tick 0" att.out && grep -q "^1: tick 1" att.out'
as_user timeout 1 sattach --output-filter 1 "$id.0" >one.out 2>/dev/null </dev/null
like "and one task alone" "$(sort -u one.out | head -1)" "^tick 1 "
unlike "not the other" "$(cat one.out)" "tick 0 "
run as_user sattach 99999.0
is "an unknown step" "$code" 1
if [ "$(id -u)" -eq 0 ]; then # somebody else
    run setpriv --reuid 20002 --regid 20002 --clear-groups sattach "$id.0"
    is "another user's step" "$code" 1
fi

scancel -s USR1 "$id"
ok "a signal for a job reaches its steps" wait_for 10 sh -c '[ $(grep -c "got USR1" att.out) -ge 2 ]'
scancel -s USR1 "$id.0"
ok "and one for a step" wait_for 10 sh -c '[ $(grep -c "got USR1" att.out) -ge 4 ]'

run as_user spur exec "$id" bash -c 'echo in $SLURM_JOB_ID $SLURMD_NODENAME; exit 6'
is "spur exec runs inside the job" "$out" "in $id n1"
is "with its exit code" "$code" 6
run as_user spur exec -w n2 "$id" bash -c 'echo $SLURMD_NODENAME'
is "on another node of it" "$out" n2
like "listpids inside the job" "$(as_user spur exec "$id" scontrol listpids "$id.0")" "^PID +JOBID +STEPID +LOCALID +GLOBALID"$'\n'"[0-9]+ +$id +0 +0 +0 "
like "liststeps there" "$(as_user spur exec "$id" scontrol liststeps)" "$id +batch"

as_user touch stop
wait $att
is "sattach ends with the step and its exit code" "$?" 4
ok "srun had it too" wait_for 10 grep -q rc=4 job.out
gone() { ! listed; }
ok "the step is not listed any more" wait_for 10 gone
scancel "$id"

id=$(as_user sbatch --parsable -n1 -o kill.out --wrap 'srun sleep 1000; echo rc=$?; sleep 60')
listed() { squeue -h -s -j "$id" | grep -q "\.0 "; }
ok "another step" wait_for 15 listed
if [ "$(id -u)" -eq 0 ]; then # somebody else
    run setpriv --reuid 20002 --regid 20002 --clear-groups scancel "$id.0"
    unlike "is not another user's to end" "$code" '^0$'
fi
as_user scancel "$id.0"
ok "scancel JOB.STEP ends the step" wait_for 40 grep -q "rc=" kill.out
like "and says so" "$(cat kill.out)" "STEP $id\.0 ON n[12] CANCELLED AT"
is "but not the job" "$(job_state "$id")" RUNNING
scancel -b -s TERM "$id"
ok "scancel -b signals the script" wait_for 40 sh -c "squeue -h -t all -j $id -o %T | grep -qE 'FAILED|COMPLETED|CANCELLED'"

# What is written to a step: to all of its tasks, to one, to the terminal of one.
id=$(as_user sbatch --parsable -N2 -n3 -o read.out --wrap 'mkfifo h.$SLURM_JOB_ID; srun bash -c "echo on \$SLURM_PROCID; while read l && [ \$l != quit ]; do echo \$SLURM_PROCID:\$l; done" <>h.$SLURM_JOB_ID; echo rc=$?')
ok "three tasks read" wait_for 30 sh -c '[ $(grep -c "^on" read.out) = 3 ]'
run as_user sattach --input-filter 3 "$id.0"
like "--input-filter of no task" "$code $err" "^1 .*Invalid task id '3'"
for task in 1 2 0; do
    echo "for$task" | as_user timeout 60 sattach --input-filter $task "$id.0" >>filter.out 2>&1 &
    ok "--input-filter $task" wait_for 30 grep -qx "$task:for$task" read.out
done
echo all | as_user timeout 60 sattach "$id.0" >>filter.out 2>&1 &
ok "without a filter every task reads" wait_for 30 sh -c '[ $(grep -c ":all$" read.out) = 3 ]'
is "and no other than the one meant did before" "$(grep -v '^on' read.out | sort | tr '\n' ' ')" "0:all 0:for0 1:all 1:for1 2:all 2:for2 "
echo quit | as_user timeout 60 sattach "$id.0" >>filter.out 2>&1 &
ok "input ends the step" wait_for 30 grep -q "rc=0" read.out

run as_user sattach --pty --input-filter 0 "$id.0"
like "--pty with a filter" "$code $err" "^1 .*--pty cannot be combined"
id=$(as_user sbatch --parsable -N1 -n1 -o pty.out --wrap 'mkfifo h.$SLURM_JOB_ID; srun --pty bash -c "trap \"echo INTERRUPTED\" INT; test -t 0 && echo terminal; while ! read -t 0.2 l; do echo tick; done; echo read \$l; exit 3" <>h.$SLURM_JOB_ID; echo rc=$?')
ok "a step with a terminal" wait_for 30 grep -q "^terminal" pty.out
mkfifo keys
as_user timeout 60 script -qfec "sattach --pty $id.0; echo ended=\$?; stty -a" term.out <keys >/dev/null &
exec 7>keys
ok "sattach --pty sees it" wait_for 30 grep -q tick term.out
printf '\003' >&7
ok "and sends what is typed, ^C too" wait_for 30 grep -q INTERRUPTED term.out
printf 'word\r' >&7
ok "and lines" wait_for 30 grep -q "rc=3" pty.out
ok "and has the exit code" wait_for 30 grep -q "ended=3" term.out
like "task 0 read it" "$(tr -d '\r' <pty.out)" "read word"
ok "the terminal is as it was" wait_for 30 grep -qE "[^-]icanon" term.out
exec 7>&-
done_testing
