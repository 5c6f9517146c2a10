#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# basic.t - srun in an allocation of its own: tasks, output, input, exit codes, messages, how the job ends
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 3 --cpus 4
cd "$(user_dir)"

last_job() { squeue -h -t all -o %i --sort=-i | head -1; }

for user in "" as_user; do
    u=${user:-root}
    run $user srun true
    is "$u: true exits 0" "$code$out$err" 0
    run $user srun id -u
    is "$u: tasks run as the user" "$out" "$($user id -u)"
    run $user srun bash -c 'exit 3'
    is "$u: exit code" "$code" 3
    is "$u: message of an exit code" "$err" "srun: error: n1: task 0: Exited with exit code 3"
    wait_for 5 job_is "$(last_job)" FAILED
    is "$u: the job failed" "$(squeue -h -t all -j "$(last_job)" -o '%T %r')" "FAILED NonZeroExitCode"
    run $user srun -n3 bash -c 'exit $SLURM_PROCID'
    is "$u: highest exit code" "$code" 2
    like "$u: each is said" "$(sort <<<"$err")" "n1: task 1: Exited with exit code 1.*n1: task 2: Exited with exit code 2"
    run $user srun bash -c 'kill -9 $$'
    is "$u: a signal is 128 more" "$code" 137
    like "$u: and is named" "$err" "srun: error: n1: task 0: Killed"
    run $user srun bash -c 'kill -11 $$'
    like "$u: segmentation fault" "$code $err" "139 srun: error: n1: task 0: Segmentation fault"
    run $user srun nosuchprogram
    is "$u: a program that is not there" "$code" 2
    like "$u: is said" "$err" "execve\(\): nosuchprogram: No such file or directory"
    run $user srun -N3 -n6 --ntasks-per-node=2 -l bash -c 'echo $SLURMD_NODENAME $SLURM_LOCALID'
    is "$u: block distribution" "$(sort -n <<<"$out" | tr '\n' ,)" "0: n1 0,1: n1 1,2: n2 0,3: n2 1,4: n3 0,5: n3 1,"
    run $user srun -N3 -n6 --ntasks-per-node=2 -m cyclic -l bash -c 'echo $SLURMD_NODENAME'
    is "$u: cyclic distribution" "$(sort -n <<<"$out" | tr '\n' ,)" "0: n1,1: n2,2: n3,3: n1,4: n2,5: n3,"
done
wait_for 5 job_is "$(last_job)" COMPLETED
is "a job whose tasks end well is completed" "$(job_state "$(last_job)")" COMPLETED

out=$(printf 'line1\nline2\n' | srun -n2 cat)
is "standard input to all tasks" "$out" $'line1\nline2\nline1\nline2'
out=$(printf 'line1\n' | srun -n2 -l -i 1 cat)
is "standard input to one task" "$out" "1: line1"
out=$(printf 'line1\n' | srun -i none cat)
is "no standard input" "$out" ""
printf 'from a file\n' >in.txt
is "standard input from a file" "$(srun -i in.txt cat </dev/null)" "from a file"
srun -n2 -o 'o-%t.txt' bash -c 'echo $SLURM_PROCID'
is "a file for each task" "$(cat o-0.txt o-1.txt)" $'0\n1'
srun -o one.txt -e two.txt bash -c 'echo o; echo e >&2'
is "files for output and error" "$(cat one.txt) $(cat two.txt)" "o e"
run srun -o /nosuchdir/x true
is "a file that cannot be opened" "$code $err" "1 srun: error: Could not open stdout file: No such file or directory"
head -c 5000000 /dev/urandom >big
is "five million bytes there and back" "$(srun cat <big | cksum)" "$(cksum <big)"
printf '0 echo zero\n1-2 echo task %%t off %%o\n' >mp.conf
is "--multi-prog" "$(srun -n3 -l --multi-prog mp.conf | sort)" $'0: zero\n1: task 1 off 0\n2: task 2 off 1'
run srun -n2 -K bash -c 'if [ $SLURM_PROCID = 0 ]; then exit 5; fi; sleep 20'
is "-K ends the others" "$code" 143
like "and says so" "$err" "task 0: Exited with exit code 5.*Terminating StepId=.*DUE TO TASK FAILURE.*task 1: Terminated"
run srun -n2 -W 1 bash -c 'if [ $SLURM_PROCID = 0 ]; then exit 0; fi; sleep 20'
like "-W ends what is late" "$code $err" "137 .*First task exited 1s ago"
run srun --bogus true
is "an unknown option" "$code $err" $'255 srun: unrecognized option \'--bogus\'\nTry "srun --help" for more information'
run srun
is "no command" "$code $err" "1 srun: fatal: No command given to execute."
is "--export" "$(FOO=1 srun --export=ALL,BAR=2 bash -c 'echo $FOO$BAR')" 12
is "--chdir" "$(srun -D / pwd)" /
is "--mpi=list" "$(srun --mpi=list | head -3)" $'MPI plugin types are...\n\tnone\n\tpmi2'
run srun --mpi=openmpi true
is "what is not there is refused" "$code" 1
env=$(srun -N2 -n3 -J name -l bash -c 'echo $SLURM_JOB_NAME $SLURM_NTASKS $SLURM_STEP_NODELIST $SLURM_STEP_NUM_NODES $SLURM_STEP_TASKS_PER_NODE $SLURM_NODEID $SLURM_GTIDS $SLURM_STEP_ID' | sort)
is "the environment of tasks" "$env" $'0: name 3 n[1-2] 2 2,1 0 0,1 0\n1: name 3 n[1-2] 2 2,1 0 0,1 0\n2: name 3 n[1-2] 2 2,1 1 2 0'
done_testing
