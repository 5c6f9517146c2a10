#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# down.t - the end of a node ends its supervisors too, whatever their titles hide
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all "looks at descriptors of other processes"

cluster_up --nodes 1 --cpus 4
srun --mpi=none sleep 300 >/dev/null 2>&1 &
client=$!
id=$(submit -o /dev/null --wrap 'sleep 300')
ok "a job and a step run" wait_for 30 eval 'job_is "$id" RUNNING && squeue -h -s | grep -q "\.0 "'
run=$(grep -oE ' run=[^ ]+' "$D/log/n1.log" | head -n 1 | cut -d= -f2)
log=$run/spurstepd.log
like "supervisors write to one log" "$log" '/spurstepd\.log'
same() { for fd in /proc/[0-9]*/fd/2; do [ "$(readlink "$fd")" = "$log" ] && echo "$fd"; done; }
ok "the zygote and two supervisors" test "$(same | wc -l)" -ge 3
kill -9 $client
spur down --dir "$D" >/dev/null
log="$log|$log (deleted)"
left() { for fd in /proc/[0-9]*/fd/2; do case $(readlink "$fd") in "${log%%|*}" | "${log##*|}") echo "$fd" ;; esac; done; }
is "nothing of the node is left" "$(left)" ""
done_testing
