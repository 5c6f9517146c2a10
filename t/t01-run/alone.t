#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# alone.t - the supervisor of a step whose srun and spurd are gone does not wait for ever, and its report is not lost
. "$(dirname "$0")/../lib.sh"
export SPUR_STEP_ALONE_S=2
cluster_up --nodes 1 --cpus 4
cd "$(user_dir)"
spurd_pid() { for p in $(pgrep -x spurd); do tr '\0' ' ' <"/proc/$p/cmdline" | grep -q -- "-N n1 .*$D/" && echo "$p"; done; }
as_user srun -J alone -n1 bash -c 'echo $PPID; while [ ! -e go ]; do sleep 0.1; done; exit 3' >step.out 2>/dev/null &
srun=$!
ok "a step runs" wait_for 60 test -s step.out
supervisor=$(cat step.out)
job=$(squeue -h -n alone -o %i)
spurd=$(spurd_pid)
kill -9 "$spurd" $srun
wait $srun 2>/dev/null
while kill -0 "$spurd" 2>/dev/null; do sleep 0.02; done
ok "its supervisor is there while tasks run" kill -0 "$supervisor"
as_user touch go
gone() { ! kill -0 "$supervisor" 2>/dev/null; }
ok "and goes some time after they ended" wait_for 60 gone
report=$(find -L "$D" -path "*steps/$job.*" -name '*.end' 2>/dev/null | head -1)
ok "the report stays" test -n "$report"
like "and says so" "$(tr -c '[:print:]' ' ' <"${report:-/dev/null}")" "no spurd came for its end"
(cd / && spur up --dir "$D" >>"$T/up.log" 2>&1)
over() { [ -z "$(squeue -h -j "$job" -o %i 2>/dev/null)" ]; }
ok "the next spurd takes it" wait_for 60 test ! -e "$report"
scancel "$job"
ok "and the job ends" wait_for 60 over
done_testing
