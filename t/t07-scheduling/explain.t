#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Why a job waits: Slurm's reason, and every sentence of spur explain.
. "$(dirname "$0")/../lib.sh"
me=$(id -un)
cat >"$T/conf" <<END
[scheduler]
config_overrides = true
licenses = ["matlab:2"]
[accounting]
enforce = ["limits", "qos"]
[access]
disable_root_jobs = false
[[nodes]]
names = "n[1-3]"
cpus = 4
memory_mb = 4000
features = ["fast"]
[[nodes]]
names = "n4"
cpus = 2
memory_mb = 1000
features = ["slow"]
[[partitions]]
name = "all"
default = true
nodes = "ALL"
[[partitions]]
name = "short"
nodes = "n[1-2]"
max_time = 10
max_nodes = 1
[[qos]]
name = "one"
max_jobs_per_user = 1
[[accounts]]
name = "sci"
[[users]]
name = "$me"
account = "sci"
END
cluster_up --nodes 4 --conf "$T/conf"
cd "$T"
reason_is() { [ "$(squeue -h -t all -j "$1" -o %r)" = "$2" ]; }
why() { wait_for 20 reason_is "$2" "$3"; is "$1: the reason" "$(squeue -h -t all -j "$2" -o %r)" "$3"; text=$(spur explain "$2"); }
says() { like "$1" "$text" "$2"; }

full=$(sub -N 4 --exclusive -t 60)
wait_for 20 job_is "$full" RUNNING
text=$(spur explain "$full")
says 'a job that runs' "^job $full is RUNNING: it has run for 0:[0-9]+ of 1:00:00
  nodes: n\[1-4\]
  started: 20[0-9T:-]+
  ends at the latest: 20[0-9T:-]+ \(in 59:[0-9]+\)"

res=$(sub -N 2 -n 4 -c 2 --mem=1500 -t 30)
why 'resources' "$res" Resources
says 'what it needs and what is free' "^job $res is PENDING: needs 8 CPUs, 1500 MB on each node on 2 nodes; of 3 nodes that could run it 3 are usable, with 0 of 12 CPUs free"
says 'which nodes do not serve it, and why' 'nodes of all: 1 too small \(n4\), 3 busy \(n\[1-3\]\)'
says 'who is there and until when' "first to end there: $full \($me\) within 59:"
says 'when and where it starts' 'expected start: 20[0-9T:-]+ \(in 59:[0-9]+\) on n\[?[1-3]'
says 'with what limit' 'partition all, time limit 30:00'

low=$(sub -C slow -t 5) lower=$(sub -t 1)
why 'priority' "$lower" Priority
says 'how many are ahead, and who' "needs 1 CPU on 1 node; .*; 2 jobs are ahead of it
  ahead of it: 2 jobs, $res \($me\), $low \($me\)"
text=$(spur explain "$low")
says 'nodes without a feature' '3 without the features it asks for \(n\[1-3\]\)'
text=$(spur explain "$(sub -x 'n[1-2]')")
says 'nodes that the job excludes' '2 excluded by the job \(n\[1-2\]\)'
text=$(spur explain "$(sub -w n3)")
says 'nodes that the job does not name' '3 not among those the job names \(n\[1-2,4\]\)'

held=$(sub -H)
why 'held by its owner' "$held" JobHeldUser
says 'and how it goes on' "held by its owner: 'scontrol release $held' lets it go"
scontrol hold "$held"
why 'held by an administrator' "$held" JobHeldAdmin
says 'in words' 'held by an administrator, who alone can release it'
begin=$(sub --begin=now+1hour)
why 'not before its time' "$begin" BeginTime
says 'and in how long' 'may not start before its time, which is in 59:.*expected start: 20'
dep=$(sub -d "afterok:$full")
why 'dependency' "$dep" Dependency
says 'on which job in which state' "waits for other jobs: job $full \(RUNNING\) has to end with exit code 0"
either=$(sub -d "afternotok:$full?after:$held+5")
text=$(spur explain "$either")
says 'either of two' "job $full \(RUNNING\) has to fail; or job $held \(PENDING\) has to start and 5 minutes pass"
one=$(sub -J solo --begin=now+1hour) two=$(sub -J solo -d singleton)
text=$(spur explain "$two")
says 'singleton' "singleton: 1 earlier job of $me named solo has to end, the first is job $one \(PENDING\)"

scontrol update nodename=n3 state=drain reason='bad fan'
scontrol update nodename=n4 state=drain reason='old'
lost=$(sub -w n3)
why 'a node it names is drained' "$lost" 'ReqNodeNotAvail, UnavailableNodes:n3'
says 'and why' "1 drained \(n3: bad fan\)"
like 'scontrol says it too' "$(scontrol show job "$lost")" 'Reason=ReqNodeNotAvail,_UnavailableNodes:n3 '
wide=$(sub -N 4)
why 'too few are left' "$wide" 'ReqNodeNotAvail, UnavailableNodes:n[3-4]'
scontrol update nodename='n[3-4]' state=resume

scontrol create reservation=later starttime=now+2hours duration=60 users="$me" nodes=n1 >/dev/null
resv=$(sub --reservation=later -t 5)
why 'its reservation has not begun' "$resv" Reservation
says 'and when it does' 'its reservation later begins in (1:59:|2:00:00)'
scontrol create reservation=maint starttime=now duration=60 users=nobody nodes=n2 flags=maint,ignore_jobs >/dev/null
text=$(spur explain "$(sub -w n2)")
says 'nodes under maintenance' '1 reserved for maintenance \(n2: maint\)'
like 'with its reason' "$text" 'reason: ReqNodeNotAvail, Reserved for maintenance'
scontrol delete reservation=maint

scancel "$full"
wait_for 20 job_is "$full" CANCELLED
text=$(spur explain "$full")
says 'a cancelled job' "^job $full is CANCELLED: it was cancelled \(signal 15, Terminated\) after 0:[0-9]+ of 1:00:00"
why 'what can never be' "$dep" DependencyNeverSatisfied
says 'because of what' "its dependency can never be fulfilled: job $full \(CANCELLED\) did not end as it had to: it has to end with exit code 0"
says 'is never' 'expected start: never'
scancel -u "$me"
wait_for 30 eval '[ -z "$(squeue -h)" ]'
text=$(spur explain "$held")
says 'cancelled before it ran' "^job $held is CANCELLED: it was cancelled before it started"

a=$(sub -L matlab:2 -t 5)
wait_for 20 job_is "$a" RUNNING
b=$(sub -L matlab)
why 'licences' "$b" Licenses
says 'how many' '1 of licence matlab, of which 0 of 2 are free'
scancel "$a" "$b"

a=$(sub -q one)
wait_for 20 job_is "$a" RUNNING
b=$(sub -q one)
why 'a limit' "$b" QOSMaxJobsPerUserLimit
says 'which, how much, whose' 'MaxJobsPerUser of QOS one is 1; 1 in use by the user, the job asks for 1'
says 'and which jobs have it' "in use by: $a \($me\)"
scancel "$a" "$b"

arr=$(sub --array=0-9%2 -t 5)
wait_for 20 eval '[ "$(squeue -h -t R -j '"$arr"' | wc -l)" = 2 ]'
text=$(spur explain "${arr}_7")
says 'a task of an array' "^job ${arr}_7 is PENDING: 2 of its array's tasks run, and no more than 2 may at once"
says 'and how far the array is' "array $arr: 10 tasks, 8 waiting, 2 running, 0 ended, no more than 2 at once"
says 'one must end first' 'reason: JobArrayTaskLimit.*expected start: 20[0-9T:-]+ \(in 4:'
scancel "$arr"

never=$(sub -p short -t 60)
why 'longer than the partition allows' "$never" PartitionTimeLimit
says 'is never' 'it asks for 1:00:00; partition short allows 10:00 at most: it can never start like this.*expected start: never'
never=$(sub -p short -N 2 -t 5)
why 'more nodes than the partition allows' "$never" PartitionNodeLimit
says 'is never too' 'it asks for 2 nodes; partition short takes jobs of 1 to 1 nodes: it can never start'
scontrol update partitionname=short state=down
down=$(sub -p short -t 5)
why 'a partition that is down' "$down" PartitionDown
says 'in words' 'partition short is DOWN: jobs may wait there and none starts'
scontrol update partitionname=short state=inactive
why 'or inactive' "$down" PartitionInactive
says 'in words' 'partition short is INACTIVE'

failing=$(sbatch --parsable -o /dev/null --wrap 'exit 3')
wait_for 20 job_is "$failing" FAILED
text=$(spur explain "$failing")
says 'a job that failed' "^job $failing is FAILED: it failed with exit code 3 after 0:0[0-9]"
run sbatch -c 400 --wrap true
is 'what no node could run is refused' "$code $err" '1 sbatch: error: partition all: a node of it has at most 4 CPUs, and 400 are needed on one
sbatch: error: Batch job submission failed: Requested node configuration is not available'
never() { # name, sentence, options of sbatch
    local name=$1 text=$2
    shift 2
    run sbatch "$@" --wrap true
    like "$name" "$code $err" "^1 sbatch: error: $text
sbatch: error: Batch job submission failed: Requested node configuration is not available\$"
}
never 'too much memory' 'partition all: a node of it has at most 4000 MB of memory, and 5000 are needed on one' --mem=5000
never 'too many nodes' 'partition all: 3 nodes are needed, and 2 of it could ever serve' -N 3 -x n1 -c 3
never 'too many tasks' 'partition all: 15 tasks are needed, and its nodes have not the room for so many' -n 15
never 'for so few nodes' 'partition all: 9 tasks are needed, and its nodes have not the room for so many on so few nodes' -N 2-2 -n 9
never 'not both on one node' 'partition all: no node of it has all that is needed at once' -C slow --mem=2000
never 'on the nodes it names' 'partition all: 5 tasks are needed, and the nodes n1 have not the room for so many' -N 1 -n 5 -w n1
never 'too small ones it names' 'partition all: of the nodes n1,n4 not all serve: a node of them has at most 2 CPUs, and 3 are needed on one' -N 2 -c 3 -w n1,n4
never 'what it excludes' 'partition all: nodes of n\[1-2\] are asked for and excluded' -w 'n[1-2]' -x n2
scontrol update partitionname=short state=up
never 'nobody left' 'partition short: no node of it is left' -p short -x 'n[1-2]'
never 'a shape of CPUs' 'partition all: no node of it has the sockets, cores, threads or temporary disk' --tmp=999999

scancel -u "$me"
wait_for 20 eval '[ -z "$(squeue -h)" ]'
busy=$(sub -w n1 --exclusive -t 60)
wait_for 20 job_is "$busy" RUNNING
wide=$(sub -N 2 -w 'n[1-2]' --exclusive -t 60)
waits "$wide" Resources
behind=$(sub -N 1 -w n2 -t 300)
why 'a node that is kept' "$behind" Priority
says 'for whom' "nodes of all: 3 not among those the job names \\(n\\[1,3-4\\]\\), 1 kept for jobs before it \\(n2: job $wide\\)"
ok 'a reservation to come' scontrol create reservation reservationname=soon starttime=now+10minutes duration=60 users=nobody nodes=n3
long=$(sub -w n3 -t 30)
wait_for 20 job_is "$long" PENDING
text=$(spur explain "$long")
says 'a node that is reserved soon' '1 reserved for others before it would end \(n3\)'
done_testing
