#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# ways.t - options and variables of srun, sbatch and salloc that change how the command itself behaves
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 2 --cpus 2
cd "$(user_dir)"

# exit codes
SLURM_EXIT_ERROR=77 run srun -p nowhere true
is "SLURM_EXIT_ERROR: what the controller refuses" "$code" 77
SLURM_EXIT_ERROR=77 run sbatch -p nowhere --wrap true
is "SLURM_EXIT_ERROR of sbatch" "$code" 77
SLURM_EXIT_ERROR=77 run salloc -p nowhere true
is "SLURM_EXIT_ERROR of salloc" "$code" 77
SLURM_EXIT_ERROR=77 run srun --bogus true
is "options are wrong in another way" "$code" 255
SLURM_EXIT_ERROR=77 run srun sh -c 'exit 3'
is "and so are tasks" "$code" 3
busy=$(sbatch --parsable -N2 --exclusive -o /dev/null --wrap 'sleep 1000')
wait_for 20 job_is "$busy" RUNNING
SLURM_EXIT_ERROR=77 SLURM_EXIT_IMMEDIATE=78 run timeout 30 srun --immediate=1 true
is "SLURM_EXIT_IMMEDIATE" "$code" 78
SLURM_EXIT_IMMEDIATE=79 run timeout 30 salloc --immediate=1 true
is "SLURM_EXIT_IMMEDIATE of salloc" "$code" 79
scancel "$busy"
gone() { [ -z "$(squeue -h)" ]; }
wait_for 20 gone

# the file mode mask
SLURM_UMASK=0027 run srun sh -c umask
is "SLURM_UMASK" "$out" 0027
umask 0077
run srun sh -c umask
is "without it srun's own" "$out" 0077
umask 0022

# programs
SLURM_TEST_EXEC=1 run srun ./nothing
is "SLURM_TEST_EXEC: exit" "$code" 1
like "SLURM_TEST_EXEC" "$err" "srun: fatal: Can not execute .*nothing"
SLURM_TEST_EXEC=1 run srun true
is "SLURM_TEST_EXEC: what is there runs" "$code" 0

# what is said
run srun -N2 -n2 sh -c 'exit 4'
is "every node's exits are said" "$(grep -c 'Exited with exit code 4' <<<"$err")" 2
SLURM_SRUN_REDUCE_TASK_EXIT_MSG=1 run srun -N2 -n2 sh -c 'exit 4'
is "SLURM_SRUN_REDUCE_TASK_EXIT_MSG: once" "$(grep -c 'Exited with exit code 4' <<<"$err")" 1
killed() { # NAME=VALUE...
    env "$@" srun -N2 -n2 sleep 1000 >/dev/null 2>err &
    local pid=$!
    step() { [ "$(squeue -h -s -o %i | grep -c '\.0$')" = 1 ]; }
    wait_for 20 step
    scancel "$(squeue -h -o %i).0"
    wait $pid
    grep -c 'CANCELLED AT' err
}
is "every node says that the step was ended" "$(killed A=1)" 2
is "SLURM_STEP_KILLED_MSG_NODE_ID: one of them" "$(killed SLURM_STEP_KILLED_MSG_NODE_ID=1)" 1
like "that one" "$(cat err)" "ON n2 CANCELLED"
run srun -n2 --slurmd-debug=verbose true
is "--slurmd-debug: starts and ends of tasks" "$(grep -cE '^slurmstepd-n1: task [01] \([0-9]+\) (started|exited. Status=0x0000)$' <<<"$err")" 4
SLURMD_DEBUG=4 run srun true
is "SLURMD_DEBUG" "$(grep -c '^slurmstepd-n1: task 0' <<<"$err")" 2
run srun --slurmd-debug=error true
is "--slurmd-debug=error" "$code$err" 0
run srun --slurmd-debug=loud true
is "another word" "$code" 255

# signals
for how in "" --ignore-signals=USR1,HUP; do
    rm -f ready
    srun $how sh -c 'trap "echo got; exit 5" USR1; touch ready; while :; do sleep 0.1; done' >got 2>&1 &
    pid=$!
    wait_for 20 test -e ready
    kill -USR1 $pid
    if [ -n "$how" ]; then
        kill -HUP $pid
        run timeout 20 srun --overlap --jobid="$(squeue -h -o %i)" true
        ok "--ignore-signals: nothing happens to srun" kill -0 $pid
        is "nor to the task" "$(cat got)" ""
        scancel "$(squeue -h -o %i)"
        wait $pid 2>/dev/null
    else
        wait $pid
        is "signals are passed on" "$? $(grep -c "^got$" got)" "5 1"
    fi
    wait_for 20 gone
done
run srun --ignore-signals=NOSUCH true
is "no such signal" "$code" 255
for o in --threads=4 --treewidth=16 --treewidth=off --msg-timeout=30; do
    run srun $o echo ran
    is "$o" "$code $out" "0 ran"
done
run srun --treewidth=wide true
is "no width" "$code" 255

# switches
SLURM_REQ_SWITCH=1 SLURM_WAIT4SWITCH=5 run srun -v true
is "SLURM_REQ_SWITCH is taken" "$code" 0
id=$(SBATCH_REQ_SWITCH=2 SBATCH_WAIT4SWITCH=10 sbatch --parsable -H --wrap true)
like "SBATCH_REQ_SWITCH and SBATCH_WAIT4SWITCH" "$(scontrol show job "$id")" "ReqSwitch=2 *.*|Switches=2@00:10:00"
scancel "$id"

# other users
if [ "$(id -u)" -eq 0 ] && id nobody >/dev/null 2>&1; then
    chmod 777 .
    want="$(id -u nobody):$(id -g nobody)"
    run srun --uid=nobody sh -c 'echo $(id -u):$(id -g)'
    is "srun --uid" "$out" "$want"
    run sbatch -W --uid=nobody -o o --wrap 'echo $(id -u)'
    is "sbatch --uid" "$(cat o)" "$(id -u nobody)"
    run salloc -Q --uid=nobody srun sh -c 'echo $(id -u)'
    is "salloc --uid" "$out" "$(id -u nobody)"
    run srun --uid=nosuchuser true
    is "nobody of that name" "$code" 1
    run as_user srun --uid=root true
    is "not for ordinary users: exit" "$code" 255
    like "not for ordinary users" "$err" "error: --uid only permitted by root user"
fi

# kept with the job
id=$(sbatch --parsable -H --network=sn_all --profile=task --delay-boot=5 --wrap true)
like "--network is kept" "$(scontrol show job "$id")" "Network=sn_all"
like "--delay-boot is kept" "$(scontrol show job "$id")" "DelayBoot=00:05:00"
scancel "$id"
run sbatch -W -o o --network=sn_all --profile=task --wrap 'echo $SLURM_NETWORK $SLURM_PROFILE'
is "and told to the job" "$(cat o)" "sn_all task"
done_testing
