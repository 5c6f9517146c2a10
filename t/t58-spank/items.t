#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# SPANK: one plugin for each context asks for every item in every callback; who runs what.
. "$(dirname "$0")/lib.sh"
plugstack
for name in local allocator remote slurmd job_script; do plugin $name; done
cluster_up --nodes 1 --cpus 4
chmod 777 "$T"
cd "$T"
root=$(id -u)
if [ "$root" -eq 0 ]; then user=$TEST_UID; else user=$root; fi

# ---- slurmd: while the node starts ----
ok "slurmd: init has run" wait_for 20 seen slurmd_init
is "slurmd: as root" "$(item init id)" "4 0 $root $root $(id -g)"
is "slurmd: no item of jobs" "$(recorded init | grep -c ' !3009$')" 28
is "slurmd: versions" "$(recorded init | grep -c '^S_SLURM_VERSION.* [0-9.]*$')" 4

# ---- srun ----
clear_record
run as_user srun -n 2 -c 2 --mem=100 bash -c 'exit $SLURM_PROCID'
is "srun: the program ran" "$code" 1
is "local: init as the user, before a job is known" "$(recorded init | grep -m1 ^id) $(recorded init | grep -m1 S_JOB_ID)" "id 1 0 $user $user $user S_JOB_ID !3009"
is "local: items of nodes are not for here" "$(recorded init | grep -c ' !3006$')" 20
like "local_user_init: the job" "$(item local_user_init S_JOB_ID)" '^[0-9]+$'
is "local_user_init: user and group" "$(item local_user_init S_JOB_UID) $(item local_user_init S_JOB_GID)" "$user $user"
is "local_user_init: step, nodes, tasks" "$(item local_user_init S_JOB_STEPID) $(item local_user_init S_JOB_NNODES) $(item local_user_init S_JOB_TOTAL_TASK_COUNT)" "0 1 2"
is "local_user_init: the command" "$(item local_user_init S_JOB_ARGV)" "3 $(command -v bash) ended"
is "local_user_init: its environment" "$(item local_user_init S_JOB_ENV)" many

# who runs the callbacks of a node: effective and real user, effective group
while read -r callback ids; do
    is "remote: $callback runs as $ids" "$(recorded $callback | grep '^id 2' | sort -u)" "id 2 1 $ids"
done <<END
init_post_opt $root $root $(id -g)
user_init $user $root $user
task_init_privileged $root $root $(id -g)
task_init $user $user $user
task_post_fork $root $root $(id -g)
task_exit $root $root $(id -g)
END
is "remote: each task's callbacks" "$(for c in task_init_privileged task_init task_post_fork task_exit; do recorded $c | grep -c ^id; done | xargs)" "2 2 2 2"
is "remote: every callback heard of tasks before a program starts" "$(grep ' id 2' "$R" | awk '{ print $1 }' | uniq | head -4 | xargs)" "init init_post_opt user_init task_init_privileged"
is "remote: the last is exit" "$(grep ' id 2' "$R" | tail -1 | cut -d' ' -f1)" exit
while read -r name want; do
    is "remote: $name" "$(item user_init $name)" "$want"
done <<END
S_JOB_UID $user
S_JOB_GID $user
S_JOB_ID $(item local_user_init S_JOB_ID)
S_JOB_STEPID 0
S_JOB_NNODES 1
S_JOB_NODEID 0
S_JOB_LOCAL_TASK_COUNT 2
S_JOB_TOTAL_TASK_COUNT 2
S_JOB_NCPUS 4
S_JOB_ARGV 3 $(command -v bash) ended
S_JOB_ENV many
S_TASK_ID !3002
S_TASK_GLOBAL_ID !3002
S_TASK_EXIT_STATUS !3002
S_TASK_PID !3002
S_JOB_PID_TO_GLOBAL_ID !3007
S_JOB_PID_TO_LOCAL_ID !3007
S_JOB_LOCAL_TO_GLOBAL_ID 0
S_JOB_GLOBAL_TO_LOCAL_ID 1
S_STEP_CPUS_PER_TASK 2
S_JOB_ALLOC_CORES 0-3
S_JOB_ALLOC_MEM 100
S_STEP_ALLOC_CORES 0-3
S_STEP_ALLOC_MEM 100
S_SLURM_RESTART_COUNT 0
S_JOB_ARRAY_ID 0
S_JOB_ARRAY_TASK_ID 0
END
is "remote: S_TASK_ID in tasks" "$(recorded task_init | awk '$1 == "S_TASK_ID" { print $2 }' | sort | xargs)" "0 1"
is "remote: S_TASK_GLOBAL_ID in tasks" "$(recorded task_init | awk '$1 == "S_TASK_GLOBAL_ID" { print $2 }' | sort | xargs)" "0 1"
is "remote: S_TASK_PID in the task is itself" "$(recorded task_init | awk '$1 == "S_TASK_PID" { print $2 }' | sort -u)" self
is "remote: in the supervisor another" "$(recorded task_post_fork | awk '$1 == "S_TASK_PID" { print $2 }' | sort -u)" other
is "remote: a process id is its task" "$(recorded task_post_fork | awk '$1 == "S_JOB_PID_TO_GLOBAL_ID" { print $2 }' | sort | xargs)" "0 1"
is "remote: S_TASK_EXIT_STATUS before the end" "$(item task_post_fork S_TASK_EXIT_STATUS)" '!3008'
is "remote: S_TASK_EXIT_STATUS in task_exit, as wait gives it" "$(recorded task_exit | awk '$1 == "S_TASK_EXIT_STATUS" { print $2 }' | sort -n | xargs)" "0 256"

# ---- prolog and epilog ----
ok "job_script: the epilog has run" wait_for 20 seen job_epilog
for callback in job_prolog job_epilog; do
    is "job_script: $callback as root" "$(item $callback id)" "5 0 $root $root $(id -g)"
    is "job_script: $callback: whose job" "$(item $callback S_JOB_UID) $(item $callback S_JOB_GID) $(item $callback S_JOB_ID)" "$user $user $(item local_user_init S_JOB_ID)"
    is "job_script: $callback: nothing else" "$(recorded $callback | grep -c ' !3009$')" 25
done
is "job_script: init is not called" "$(recorded init | grep -c '^id 5')" 0

# ---- sbatch: allocator, and the script's own step ----
clear_record
id=$(as_user sbatch --parsable -a 7 -o out.%a --wrap 'exit 3')
is "allocator: init, init_post_opt, exit; no local_user_init" "$(grep ' id 3' "$R" | cut -d' ' -f1 | xargs)" "init init_post_opt exit"
is "allocator: whose job it will be is not known" "$(item init_post_opt S_JOB_UID) $(item init_post_opt S_JOB_ID)" "!3001 !3006"
ok "the script ran" wait_for 20 seen task_exit
is "the script is task 0 of the batch step" "$(item user_init S_JOB_STEPID) $(item task_init S_TASK_GLOBAL_ID) $(item task_exit S_TASK_EXIT_STATUS)" "4294967291 0 768"
is "array" "$(item user_init S_JOB_ARRAY_ID) $(item user_init S_JOB_ARRAY_TASK_ID)" "$id 7"
clear_record
run as_user salloc -Q true
is "salloc: whose job, at its end" "$code $(item exit S_JOB_UID)" "0 $user"

# ---- the node stops ----
clear_record
spur down --dir "$D" >/dev/null 2>&1
ok "slurmd_exit" wait_for 20 seen slurmd_exit
done_testing
