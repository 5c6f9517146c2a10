#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Which job is next: priority, begin times, backfill that delays nobody, and when the others start.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 2 --cpus 4 --mem 4G
cd "$T"
reason_is() { [ "$(squeue -h -j "$1" -o %r)" = "$2" ]; }
start_s() { squeue -h -j "$1" --start -o %S | { read -r at; date -d "$at" +%s; }; }

long=$(sub -w n1 --exclusive -t 60)
wait_for 20 job_is "$long" RUNNING
wide=$(sub -N 2 --exclusive -t 30)
ok "a wide job waits" wait_for 20 reason_is "$wide" Resources
small=$(sub -w n2 -t 20)
ok "a short one goes before it" wait_for 20 job_is "$small" RUNNING
later=$(sub -w n2 -t 100)
ok "a long one does not" wait_for 20 reason_is "$later" Priority
is "the node is kept for it" "$(sinfo -h -N -n n2 -o %T)" mixed-
scancel "$small"
ok "also when it is idle" wait_for 20 eval '[ "$(sinfo -h -N -n n2 -o %T)" = planned ]'
like "with all its flags" "$(scontrol show node n2)" 'State=IDLE\+PLANNED'
first=$(start_s "$wide") second=$(start_s "$later")
end=$(date -d "$(squeue -h -j "$long" -o %e)" +%s)
ok "it starts when the first one ends" test $((first - end)) -ge -2 -a $((first - end)) -le 2
ok "the next one when that ends" test $((second - first - 1800)) -ge -2 -a $((second - first - 1800)) -le 2
like "told in words" "$(spur explain "$later")" 'n2'
scancel "$long" "$wide" "$later"
wait_for 20 eval '[ -z "$(squeue -h)" ]'

busy=$(sub -N 2 --exclusive -t 10)
wait_for 20 job_is "$busy" RUNNING
low=$(sub -N 2 --exclusive --priority=10) high=$(sub -N 2 --exclusive --priority=20)
scancel "$busy"
ok "the higher priority first" wait_for 20 job_is "$high" RUNNING
ok "then the lower" reason_is "$low" Resources
scancel "$low" "$high"
wait_for 20 eval '[ -z "$(squeue -h)" ]'

begin=$(sub -N 2 --exclusive --begin=now+3)
ok "not before its time" reason_is "$begin" BeginTime
now=$(sub -t 1)
ok "who may, goes first" wait_for 20 job_is "$now" RUNNING
scancel "$now"
ok "and at its time it starts" wait_for 30 job_is "$begin" RUNNING
done_testing
