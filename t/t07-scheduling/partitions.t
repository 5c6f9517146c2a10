#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A job of several partitions has its place in each of them: first where its tier is highest, behind others elsewhere.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 2 --cpus 4 --mem 4G
cd "$T" || exit 1
cat >>"$D/spur.conf" <<'C'

[[partitions]]
name = "low"
nodes = "ALL"
priority_tier = 1
[[partitions]]
name = "high"
nodes = "ALL"
priority_tier = 5
[[partitions]]
name = "top"
nodes = "n1"
priority_tier = 9
C
ok 'the configuration is taken' scontrol reconfigure
one=$(sub -p low -w n1 --exclusive -t 30) two=$(sub -p low -w n2 --exclusive -t 30)
runs "$one" >/dev/null && runs "$two" >/dev/null
both=$(sub -p low,top --exclusive -t 10) high=$(sub -p high --exclusive -t 10)
is 'it waits in both' "$(squeue -h -j "$both" -o '%T %P')" 'PENDING low,top'
drop "$two"
ok 'in low it is behind all of high' wait_for 20 job_is "$high" RUNNING
is 'on the node that both could use' "$(squeue -h -j "$high" -o %N)" n2
is 'so it waits' "$(squeue -h -j "$both" -o %T)" PENDING
like 'and its start is known' "$(squeue -h -j "$both" --start -o %S)" '^20'
drop "$one"
ok 'in top it is the first' wait_for 20 job_is "$both" RUNNING
is 'it runs there' "$(squeue -h -j "$both" -o '%P %N')" 'top n1'
next=$(sub -p low,top --exclusive -t 10)
drop "$high"
ok 'nobody is before it in low' wait_for 20 job_is "$next" RUNNING
is 'so it runs there' "$(squeue -h -j "$next" -o '%P %N')" 'low n2'
done_testing
