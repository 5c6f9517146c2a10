#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# twins.t - two clusters on one machine with nodes and jobs of the same names leave each other alone
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all "kills a supervisor"

cluster_up --nodes 1 --cpus 4
first=$D
a=$(submit -o /dev/null --wrap 'sleep 300')
ok "a job runs in the first" wait_for 30 job_is "$a" RUNNING
cluster_up --nodes 1 --cpus 4
b=$(submit -o /dev/null --wrap 'sleep 300')
ok "one of the same number in the second" wait_for 30 job_is "$b" RUNNING
is "the same indeed" "$a" "$b"
log=$(grep -oE ' run=[^ ]+' "$D/log/n1.log" | head -n 1 | cut -d= -f2)/spurstepd.log
supervisor() { # of the second cluster: writes its log, and is named after the step
    for fd in /proc/[0-9]*/fd/2; do
        pid=${fd#/proc/} pid=${pid%%/*}
        [ "$(readlink "$fd")" = "$log" ] && tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q "\[$b.batch\]" && echo "$pid"
    done
}
ok "its supervisor is found" wait_for 20 eval '[ -n "$(supervisor)" ]'
kill -9 "$(supervisor)"
ended() { case $(job_state "$b") in RUNNING | '') return 1 ;; esac; }
ok "a job without its supervisor is ended" wait_for 30 ended
. "$first/env"
sleep 1
is "the other cluster's is not" "$(job_state "$a")" RUNNING
done_testing
