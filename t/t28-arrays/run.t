#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tasks of an array run: how many at once, with which variables and files, one by one held, requeued, ended.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 2 --cpus 8 --mem 4G
cd "$(user_dir)" || exit 1
home=$PWD
sub() { as_user sbatch --parsable "$@"; }
show() { scontrol -o show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p" | head -n 1; }
states() { squeue -h -r -t all -j "$1" -S K -o '%K:%T' | sort -n | tr '\n' ' ' | sed 's/ $//'; }
running() { squeue -h -r -j "$1" -t running | wc -l; }
runs() { [ "$(running "$1")" = "$2" ]; }
over() { [ -z "$(squeue -h -j "$1" 2>/dev/null)" ]; }

# ---- variables and files ----
id=$(sub -a 3-9:3%2 -J vars -o "$home/o-%A_%a-%j-%x.txt" -e "$home/e-%4a.txt" \
    --wrap 'env | grep ^SLURM_ARRAY_ | sort; echo "$SLURM_JOB_ID" >&2')
ok 'an array ends' wait_for 30 over "$id"
is 'one file a task, one error file a task' "$(ls | sed 's/-[0-9]*-vars/-J-vars/' | tr '\n' ' ')" \
    "e-0003.txt e-0006.txt e-0009.txt o-${id}_3-J-vars.txt o-${id}_6-J-vars.txt o-${id}_9-J-vars.txt "
is 'what a task knows' "$(cat o-"${id}"_6-*.txt)" "SLURM_ARRAY_JOB_ID=$id
SLURM_ARRAY_TASK_COUNT=3
SLURM_ARRAY_TASK_ID=6
SLURM_ARRAY_TASK_MAX=9
SLURM_ARRAY_TASK_MIN=3
SLURM_ARRAY_TASK_STEP=3"
is 'each has a job id of its own, the last that of the array' "$(cat e-*.txt | sort -un | wc -l) $(cat e-0009.txt)" "3 $id"
id=$(sub -a 1-2 --wrap true)
wait_for 30 over "$id"
is 'the default name of the output' "$(ls slurm-* | tr '\n' ' ')" "slurm-${id}_1.out slurm-${id}_2.out "

# ---- how many at once ----
id=$(sub -a 0-9%2 -o /dev/null --wrap 'sleep 300')
ok 'two at once' wait_for 20 runs "$id" 2
is 'the others say why' "$(squeue -h -j "$id" -t pending -o '%i %r')" "${id}_[2-9%2] JobArrayTaskLimit"
ok 'its owner lets more run' as_user scontrol update job="$id" arraytaskthrottle=5
ok 'and they start' wait_for 20 runs "$id" 5
as_user scontrol update job="$id" arraytaskthrottle=1
is 'fewer: nobody is stopped' "$(running "$id")" 5
as_user scancel "${id}_[0-3]"
ok 'those that are cancelled end' wait_for 20 runs "$id" 1
is 'and nobody takes their place' "$(squeue -h -j "$id" -t pending -o %i)" "${id}_[5-9%1]"
as_user scancel "${id}_4"
ok 'the next one starts when there is room' wait_for 20 eval '[ "$(squeue -h -t running -j '"$id"' -o %i)" = '"${id}_5"' ]'

# ---- hold, release, change of one task ----
as_user scontrol hold "${id}_6" "${id}_7"
is 'tasks are held' "$(squeue -h -r -j "$id" -t pending -S K -o '%K %r' | sort -n | head -n 2 | tr '\n' ' ')" '6 JobHeldUser 7 JobHeldUser '
as_user scontrol update job="${id}_8" timelimit=9
as_user scontrol update job="$id" arraytaskthrottle=0
ok 'the others run' wait_for 20 runs "$id" 3
is 'with what was said about them' "$(squeue -h -r -j "${id}_8" -o '%T %l')" 'RUNNING 9:00'
as_user scontrol release "${id}_7"
ok 'a released one runs' wait_for 20 runs "$id" 4
is 'the held one waits' "$(squeue -h -j "$id" -t pending -o '%i %r')" "${id}_6 JobHeldUser"
as_user scancel --state=PENDING "$id"
is 'tasks are cancelled by state' "$(squeue -h -t all -j "${id}_6" -o %T) $(running "$id")" 'CANCELLED 4'
as_user scancel "$id"
ok 'the whole array ends' wait_for 20 over "$id"

# ---- requeue and ends of single tasks ----
id=$(sub -a 0-3 --requeue -o "$home/r-%a" --open-mode=append \
    --wrap 'echo "run ${SLURM_RESTART_COUNT:-0}"; [ "$SLURM_ARRAY_TASK_ID" != 2 ] || [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] || sleep 300; [ "$SLURM_ARRAY_TASK_ID" != 1 ] || exit 5')
ok 'one task is left' wait_for 20 eval '[ "$(squeue -h -r -j '"$id"' -o %i:%T)" = '"${id}_2:RUNNING"' ]'
is 'the others ended each in its way' "$(states "$id")" '0:COMPLETED 1:FAILED 2:RUNNING 3:COMPLETED'
is 'with its own exit code' "$(show "${id}_1" ExitCode) $(show "${id}_0" ExitCode)" '5:0 0:0'
ok 'the script began' wait_for 20 test -s r-2
ok 'one task is requeued' as_user scontrol requeue "${id}_2"
ok 'and ends well the second time' wait_for 20 over "$id"
is 'only that one ran again' "$(cat r-0 r-1 r-2 r-3 | grep ^run | tr '\n' ' ')" 'run 0 run 0 run 0 run 1 run 0 '
is 'and knows it' "$(show "${id}_2" Restarts) $(show "${id}_0" Restarts)" '1 0'
ok 'an ended task is requeued' as_user scontrol requeue "${id}_1"
ok 'and fails again' wait_for 20 eval '[ "$(cat r-1)" = "run 0
run 1" ] && [ "$(squeue -h -t all -j '"${id}_1"' -o %T)" = FAILED ]'
done_testing
