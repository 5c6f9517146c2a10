#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# groups: asan
# Preemption in simulated time: schedules that are known by hand, for each mode, by tier and by QOS; no daemon runs.
. "$(dirname "$0")/../lib.sh"
cd "$T"

# One node of 8 CPUs. Job 1 has it when job 2 comes, which may push it aside; job 3 is of the kind of job 1.
printf 'job_id\tsubmit_s\tduration_s\tcpus\tuser\tpartition\n1\t0\t100\t8\ta\tlow\n2\t30\t50\t8\tb\thigh\n3\t40\t20\t8\ta\tlow\n' >tier.tsv
sed 's/partition/qos/; s/low/normal/; s/high/urgent/' tier.tsv >qos.tsv

conf() { # TYPE MODE [LINE of preemption [LINE of the low partition]]
    cat <<CONF
cluster_name = "p"
[preemption]
type = "$1"
mode = $2
${3-}
[[nodes]]
names = "n1"
cpus = 8
memory_mb = 4096
[[partitions]]
name = "low"
nodes = "ALL"
default = true
priority_tier = 1
${4-}
[[partitions]]
name = "high"
nodes = "ALL"
priority_tier = 10
[[qos]]
name = "normal"
[[qos]]
name = "urgent"
preempt = ["normal"]
CONF
}
jobs() { # TRACE [OPTION...]: job:state:start:end:times
    spur sim "$1" --config c.conf --jobs "${@:2}" | awk '$1 + 0 && NF == 6 { printf "%s:%s:%s:%s:%s ", $1, $2, $4, $5, $6 }'
}

conf partition_prio '"REQUEUE"' >c.conf
is "requeued: from the beginning, ahead of who came later" "$(jobs tier.tsv)" "1:ENDED:0:180:1 2:ENDED:30:80:0 3:ENDED:180:200:0 "
like "it is counted, and what was run in vain" "$(spur sim tier.tsv --config c.conf)" '1 preemptions: 1 requeued, 0 suspended, 0 cancelled; 15.00% of all CPU time'
is "in JSON" "$(spur sim tier.tsv --config c.conf --json | python3 -c 'import json,sys; r = json.load(sys.stdin)[0]; print(r["preempted"], r["requeued"], r["suspended"], r["cancelled"], r["lost"], r["completion_s"]["max"])')" "1 1 0 0 0.15 180"
conf partition_prio '"CANCEL"' >c.conf
is "cancelled" "$(jobs tier.tsv)" "1:PREEMPTED:0:30:1 2:ENDED:30:80:0 3:ENDED:80:100:0 "
conf partition_prio '["SUSPEND", "GANG"]' >c.conf
is "suspended: it goes on where it stopped" "$(jobs tier.tsv)" "1:ENDED:0:150:1 2:ENDED:30:80:0 3:ENDED:150:170:0 "
spur sim tier.tsv --config c.conf --timeline out.svg >/dev/null
is "timeline: it is drawn before and after" "$(grep -c '<title>job 1 of a: .*preempted 1 times' out.svg)" 2
conf partition_prio '"REQUEUE"' '' 'grace_time = 20' >c.conf
is "grace time" "$(jobs tier.tsv)" "1:ENDED:0:200:1 2:ENDED:50:100:0 3:ENDED:200:220:0 "
conf partition_prio '"REQUEUE"' '' 'grace_time = 90' >c.conf
is "who ends in its grace time has ended" "$(jobs tier.tsv)" "1:ENDED:0:100:1 2:ENDED:100:150:0 3:ENDED:150:170:0 "
conf partition_prio '"REQUEUE"' 'exempt_time = "1"' >c.conf
is "exempt time" "$(jobs tier.tsv)" "1:ENDED:0:210:1 2:ENDED:60:110:0 3:ENDED:210:230:0 "
conf partition_prio '"REQUEUE"' '' 'preempt_mode = "OFF"' >c.conf
is "a partition whose jobs stay" "$(jobs tier.tsv)" "1:ENDED:0:100:0 2:ENDED:100:150:0 3:ENDED:150:170:0 "

conf qos '"CANCEL"' >c.conf
is "by QOS" "$(jobs qos.tsv)" "1:PREEMPTED:0:30:1 2:ENDED:30:80:0 3:ENDED:80:100:0 "
is "not by tier then" "$(jobs tier.tsv)" "1:ENDED:0:100:0 2:ENDED:100:150:0 3:ENDED:150:170:0 "
sed -i '/^\[preemption/,/^mode/d' c.conf
is "not at all without it" "$(jobs qos.tsv)" "1:ENDED:0:100:0 2:ENDED:100:150:0 3:ENDED:150:170:0 "
like "names that the cluster has not" "$(spur sim tier.tsv --nodes 1 --cpus 8)" '3 jobs name a partition or QOS that this cluster has not'

# By size: the smaller goes first, when the larger has had its hour; what becomes of its work is said by the options.
conf size '"REQUEUE"' | sed 's/^cluster_name.*/&\n[scheduler]\norder = "predict"/' >c.conf
printf 'job_id\tsubmit_s\tduration_s\tcpus\n1\t0\t20000\t8\n2\t100\t500\t8\n3\t4200\t18000\t8\n' >size.tsv
is "by size: begins again" "$(jobs size.tsv)" "1:ENDED:0:24100:1 2:ENDED:3600:4100:0 3:ENDED:24100:42100:0 "
is "goes on from what it saved when it was told" "$(jobs size.tsv --checkpoint 0)" "1:ENDED:0:20560:1 2:ENDED:3600:4100:0 3:ENDED:20560:38560:0 "
is "or from what it saved each half hour and ten minutes" "$(jobs size.tsv --checkpoint 40 --restart 0)" "1:ENDED:0:21700:1 2:ENDED:3600:4100:0 3:ENDED:21700:39700:0 "
is "or every hour, and needs ten minutes to go on" "$(jobs size.tsv --checkpoint 60 --restart 10)" "1:ENDED:0:21100:1 2:ENDED:3600:4100:0 3:ENDED:21100:39100:0 "
sed -i 's/^mode.*/&\ntimes = 0/' c.conf
is "not more often than it may be" "$(jobs size.tsv)" "1:ENDED:0:20000:0 2:ENDED:20000:20500:0 3:ENDED:20500:38500:0 "
sed -i 's/^order = .*/order = "priority"/' c.conf
like "size needs an order by size" "$(spur sim size.tsv --config c.conf 2>&1)" 'preemption.type = "size" needs scheduler.order = "predict"'
conf size '"CANCEL"' | sed 's/^cluster_name.*/&\n[scheduler]\norder = "predict"/' >c.conf
like "and cancels nobody" "$(spur sim size.tsv --config c.conf 2>&1)" 'needs mode "REQUEUE"'
like "no time" "$(spur sim size.tsv --nodes 1 --cpus 8 --checkpoint soon 2>&1)" '.-checkpoint soon is no time'

# Parts of GPUs: who has a part of a GPU of which another that stays has a part too does not go; its going would free no GPU.
conf partition_prio '"REQUEUE"' | sed 's/^memory_mb.*/&\ngres = ["gpu:2", "shard:200"]/' >c.conf
printf 'job_id\tsubmit_s\tduration_s\tgpus\tgpu_milli\tpartition\n1\t0\t100\t1\t500\thigh\n2\t1\t200\t1\t300\tlow\n3\t2\t150\t1\t1000\thigh\n4\t3\t50\t1\t1000\thigh\n' >parts.tsv
is "nobody goes in vain" "$(jobs parts.tsv --limits x2)" "1:ENDED:0:100:0 2:ENDED:1:350:1 3:ENDED:2:152:0 4:ENDED:100:150:0 "

# Turns on CPUs that are shared: two jobs of 60 seconds, 20 seconds each in turn.
conf partition_prio '["SUSPEND", "GANG"]' '' 'oversubscribe = "FORCE:2"' | sed 's/^cluster_name.*/&\n[scheduler]\ntime_slice = 20/' >c.conf
printf 'job_id\tsubmit_s\tduration_s\tcpus\tpartition\n1\t0\t60\t8\tlow\n2\t0\t60\t8\tlow\n' >gang.tsv
is "turns" "$(jobs gang.tsv --limits x3)" "1:ENDED:0:120:0 2:ENDED:0:100:0 "
# Who stands because it is another's turn makes room too, and both come back to their turns.
printf 'job_id\tsubmit_s\tduration_s\tcpus\tpartition\n1\t0\t100\t8\tlow\n2\t0\t100\t8\tlow\n3\t30\t50\t8\thigh\n' >turns.tsv
like "jobs that take turns make room" "$(jobs turns.tsv --limits x3)" '^1:ENDED:0:2[0-9]*:1 2:ENDED:0:2[0-9]*:1 3:ENDED:30:80:0 $'
awk 'BEGIN { srand(3); print "job_id\tsubmit_s\tduration_s\tcpus\tpartition"; for (i = 1; i <= 600; i++) { t += int(rand() * 7); printf "%d\t%d\t%d\t%d\t%s\n", i, t, 5 + int(rand() * 300), 1 + int(rand() * 12), rand() < 0.2 ? "high" : "low" } }' >mix.tsv
sed -i 's/^names = "n1"/names = "n[1-8]"/; s/^time_slice.*/&\nselect = ["CR_Core"]/' c.conf
is "what is planned is carried out" "$(spur sim mix.tsv --config c.conf --json | python3 -c 'import json,sys; r = json.load(sys.stdin)[0]; print(r["ended"], r["refused_starts"], r["suspended"] > 50)')" "600 0 True"
done_testing
