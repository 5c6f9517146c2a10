#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# In a cluster of many nodes a copy of the controller works out starts: nobody waits for that but who asked.
. "$(dirname "$0")/../lib.sh"
cat >"$T/conf" <<END
[scheduler]
config_overrides = true
[access]
disable_root_jobs = false
[[nodes]]
names = "n1"
cpus = 4
memory_mb = 4000
[[partitions]]
name = "debug"
nodes = "n1"
default = true
[[partitions]]
name = "all"
nodes = "ALL"
END
cluster_up --nodes 1 --conf "$T/conf"
cd "$(user_dir)" || exit 1
conf=$SPUR_CONF
[ -f "$conf" ] || conf=$D/etc/spur.conf
pid=$(cut -d' ' -f1 "$D/run/ctl1.pid")
children() { pgrep -P "$pid" | wc -l; }

busy=$(sub --exclusive -t 60)
ok 'the node is busy' wait_for 20 job_is "$busy" RUNNING
first=$(sub -n 2 -t 10)
second=$(sub -n 4 -t 10)
few=$(spur explain "$first" | grep -v expected)
start=$(squeue -h --start -j "$first" -o %S)
like 'few nodes: the controller itself' "$start" '^20'
unlike 'no copy was needed' "$(cat "$D"/log/ctl1.log)" 'aside\.begin'

printf '[[nodes]]\nnames = "far[1-300]"\ncpus = 4\nmemory_mb = 4000\n' >>"$conf"
ok 'three hundred more' scontrol reconfigure
ok 'they are there' wait_for 20 eval '[ "$(sinfo -h -p all -o %D | paste -sd+ | bc)" = 301 ]'
is 'the same answer' "$(spur explain "$first" | grep -v -e expected -e 'first to end')" "$(grep -v 'first to end' <<<"$few")"
ok 'by a copy' wait_for 20 grep -q 'aside\.begin' "$D/log/ctl1.log"
ok 'the same start in a list' wait_for 20 eval '[ "$(squeue -h --start -j '"$first"' -o %S)" = '"$start"' ]'
ok 'of both' wait_for 20 eval '[ "$(squeue -h --start -o "%i %Y" | sort | paste -sd, )" = "'"$first n1,$second n1"'" ]'
like 'and of one job' "$(scontrol show job "$first")" "StartTime=$start "
run sbatch --test-only -n 1 -t 5 --wrap true
like 'a job that is not there yet' "$code $err" '^0 sbatch: Job [0-9]+ to start at 20.* on nodes n1 in partition debug$'
run sbatch --test-only -n 100 --wrap true
like 'one that cannot be' "$code $err" '^1 sbatch: error: .*100 '
run spur explain 99999
is 'a job that is none' "$code $err" '1 spur explain: error: job 99999: Invalid job id specified'
like 'an ordinary user' "$(as_user spur explain "$first")" "^job $first is PENDING: needs 2 CPUs"

pids=()
for i in {1..20}; do spur explain "$second" >"$T/e$i" 2>&1 & pids+=($!); done
wait "${pids[@]}"
is 'twenty at once' "$(cat "$T"/e* | grep -c "^job $second is PENDING: needs 4 CPUs on 1 node")" 20
pids=()
for i in {1..10}; do timeout 0.0$i spur explain "$second" >/dev/null 2>&1 & pids+=($!); done
wait "${pids[@]}"
like 'some went away, the next is answered' "$(spur explain "$second")" "^job $second is PENDING"
ok 'no copy stays' wait_for 20 eval '[ "$(children)" = 0 ]'

kill -STOP "$pid"
for i in {1..10}; do spur explain "$second" >/dev/null 2>&1 & done
sleep 0.2
kill -TERM "$pid"
kill -CONT "$pid"
ok 'it stops while questions wait' wait_for 20 eval '! kill -0 '"$pid"' 2>/dev/null'
unlike 'and nothing went wrong' "$(cat "$D"/log/ctl1.log)" 'aside\.(failed|fork)'
done_testing
