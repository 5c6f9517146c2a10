#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# signals.t - Ctrl-C, kills, lost clients: nothing is left behind
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 2 --cpus 2
mark=$((RANDOM + 40000))
alive() { pgrep -xf ".*bin/sleep $mark|sleep $mark" >/dev/null; }
gone() { ! alive; }

srun sleep $mark 2>"$T/err" & pid=$!
wait_for 5 alive
sleep 0.3
kill -INT $pid
sleep 0.3
ok "one Ctrl-C ends nothing" alive
like "and shows the tasks" "$(cat "$T/err")" "interrupt \(one more within 1 sec to abort\).*task 0: running"
kill -INT $pid
wait $pid
is "two end it" "$?" 130
like "as an interrupt" "$(cat "$T/err")" "sending Ctrl-C to StepId=1.0.*task 0: Interrupt"

srun sleep $mark 2>"$T/err" & pid=$!
wait_for 5 alive
kill -TERM $pid
wait $pid
is "TERM ends it" "$?" 143
ok "and its tasks" gone

srun bash -c "trap 'echo usr1' USR1; sleep $mark & wait" >"$T/out" 2>/dev/null & pid=$!
wait_for 5 alive
sleep 0.2
kill -USR1 $pid
wait_for 5 grep -q usr1 "$T/out"
is "USR1 is passed on" "$(cat "$T/out")" usr1
wait_for 5 gone
ok "what a task leaves behind is ended" gone

srun -N2 sleep $mark & pid=$!
wait_for 5 alive
kill -KILL $pid
wait $pid 2>/dev/null
ok "a killed srun takes its tasks along" wait_for 10 gone
job=$(squeue -h -t R -o %i)
like "its allocation lives on a little" "$job" '^[0-9]+$'
ok "and is then cancelled" wait_for 45 job_is "$job" CANCELLED

srun sleep $mark 2>"$T/err" & pid=$!
wait_for 5 alive
scancel "$(squeue -h -t R -o %i)"
wait $pid
is "scancel ends the step" "$?" 143
like "and says so" "$(cat "$T/err")" "STEP .* ON n1 CANCELLED AT"
ok "nothing is left" gone
done_testing
