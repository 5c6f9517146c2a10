#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# backoff.t - a job that its node fails starts again at once on another; again and again it waits longer, then it is held
. "$(dirname "$0")/../lib.sh"
cat >"$T/extra.toml" <<'END'
[jobs]
requeue_delay = 3
requeue_delay_max = 4
max_requeue = 3
END
cluster_up --nodes 3 --cpus 2 --conf "$T/extra.toml"
cd "$(user_dir)"
node_of() { squeue -h -j "$1" -o %N; }
shown() { scontrol show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"; }
restarted() { [ "$(shown "$1" Restarts)" = "$2" ] && job_is "$1" RUNNING; }
# Its node fails and is back before anything else happens to the job.
break_node() {
    broken=$(node_of "$1")
    scontrol update NodeName="$broken" State=DOWN Reason=smoke
    scontrol update NodeName="$broken" State=RESUME
}

id=$(as_user sbatch --parsable --requeue -t 60 -o /dev/null --exclusive --wrap 'sleep 600')
ok "it runs" wait_for 30 job_is $id RUNNING
break_node $id
ok "it starts again" wait_for 30 restarted $id 1
unlike "elsewhere, though the node is back" "$(node_of $id)" "^$broken\$"
is "what it does without is shown" "$(shown $id AvoidNodes)" "$broken"
is "and who failed it" "$(shown $id FailedNode)" "$broken"
first=$broken
break_node $id
delayed() { [ "$(squeue -h -j $id -o '%T %r')" = 'PENDING BeginTime' ]; }
ok "the second time it waits" wait_for 20 delayed
like "spur explain says why and how long" "$(spur explain $id)" "nodes failed it 2 times in a row, the last was $broken: it is tried again in 0:0[0-3]"
at=$(date -d "$(shown $id EligibleTime)" +%s)
ok "the time is shown" [ $((at - $(date +%s))) -le 4 -a $((at - $(date +%s))) -ge -2 ]
ok "then it starts" wait_for 30 restarted $id 2
is "on the one that has not failed it" "$(printf '%s\n' n1 n2 n3 | grep -v "^$first\$\|^$broken\$")" "$(node_of $id)"
controller_again
ok "a controller that starts again knows it" wait_for 30 eval '[ -n "$(shown $id AvoidNodes)" ]'
break_node $id
ok "when all have failed it, it uses them again" wait_for 40 restarted $id 3
break_node $id
held() { [ "$(squeue -h -j $id -o '%T %r')" = 'PENDING JobHoldMaxRequeue' ]; }
ok "at last it is held" wait_for 30 held
like "which is explained" "$(spur explain $id)" "held because it was requeued 4 times, nodes failed it 4 times in a row"
ok "an administrator lets it go" scontrol release $id
ok "it starts at once" wait_for 30 restarted $id 4
as_user scancel $id

one=$(as_user sbatch --parsable --requeue -t 60 -o /dev/null -w n2 --wrap 'sleep 600')
ok "one that asked for its node runs" wait_for 30 job_is $one RUNNING
break_node $one
ok "and has it again" wait_for 30 restarted $one 1
is "it is the one" "$(node_of $one)" n2
done_testing
