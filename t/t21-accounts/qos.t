#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a QOS changes besides its limits: its flags, factors and thresholds, with jobs that run.
# seconds: 90
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" -eq 0 ] || TEST_UID=$(id -un)
me=$TEST_UID
cat >"$T/conf" <<END
[scheduler]
config_overrides = true
fairshare_halflife_days = "0:02"
[accounting]
enforce = ["limits", "qos"]
[priority]
weight_fairshare = 10000
weight_qos = 100000
calc_period = "0:01"
[jobs]
kill_wait = 1
[preemption]
type = "qos"
mode = ["REQUEUE"]
[[nodes]]
names = "n[1-4]"
cpus = 4
memory_mb = 4000
[[partitions]]
name = "all"
default = true
nodes = "ALL"
[[partitions]]
name = "small"
nodes = "ALL"
max_nodes = 1
max_time = 10
[[partitions]]
name = "wide"
nodes = "ALL"
min_nodes = 2
[[partitions]]
name = "capped"
nodes = "ALL"
qos = "cap"
[[partitions]]
name = "tenth"
nodes = "n[1-2]"
qos = "rel"
[[qos]]
name = "plain"
[[qos]]
name = "free"
flags = ["PartitionMaxNodes", "PartitionMinNodes", "PartitionTimeLimit"]
[[qos]]
name = "cap"
max_tres_per_job = "cpu=1"
[[qos]]
name = "over"
flags = ["OverPartQOS"]
max_tres_per_job = "cpu=3"
[[qos]]
name = "resv"
flags = ["RequiresReservation"]
[[qos]]
name = "rel"
flags = ["Relative"]
max_tres_per_job = "cpu=50"
[[qos]]
name = "fade"
grp_tres_mins = "mem=100"
[[qos]]
name = "burn"
flags = ["NoDecay"]
grp_tres_mins = "mem=100"
[[qos]]
name = "none"
usage_factor = "0"
grp_tres_mins = "mem=100"
[[qos]]
name = "safe"
grp_tres_mins = "cpu=100"
[[qos]]
name = "factor"
usage_factor = "0.5"
flags = ["UsageFactorSafe"]
grp_tres_mins = "cpu=100"
[[qos]]
name = "fair"
flags = ["EnforceUsageThreshold"]
usage_threshold = "0.9"
[[qos]]
name = "more"
limit_factor = "2"
[[qos]]
name = "low"
grace_time = "0:04"
[[qos]]
name = "spared"
preempt_exempt_time = 60
[[qos]]
name = "high"
priority = 10
preempt = ["low", "spared"]
[[qos]]
name = "noresv"
flags = ["NoReserve"]
priority = 100
[[qos]]
name = "thresh"
min_prio_threshold = 4000000
priority = 100
[[accounts]]
name = "sci"
[[accounts]]
name = "tight"
max_tres_per_job = "cpu=2"
[[accounts]]
name = "level"
fairshare = 10
[[users]]
name = "$me"
account = "sci"
default = true
[[users]]
name = "$me"
account = "tight"
[[users]]
name = "$me"
account = "level"
fairshare = "parent"
[[users]]
name = "root"
account = "level"
fairshare = "parent"
[[users]]
name = "root"
account = "sci"
END
cluster_up --conf "$T/conf"
cd "$(user_dir)" || exit 1
sub() { as_user sbatch --parsable -o /dev/null "$@" --wrap 'sleep 300'; }
reason_is() { [ "$(squeue -h -j "$1" -o %r)" = "$2" ]; }
runs() { wait_for 20 job_is "$1" RUNNING; }
drop() { as_user scancel "$@" && wait_for 20 eval '[ -z "$(squeue -h -j '"$(tr ' ' , <<<"$*")"')" ]'; }

# Usage grows while another job runs: a new one is tried until it has to wait.
kept=
blocked() { # REASON OPTIONS...
    local reason=$1
    shift
    kept=$(sub "$@")
    wait_for 5 eval '[[ $(squeue -h -j '"$kept"' -o %T) = RUNNING || $(squeue -h -j '"$kept"' -o %r) = '"$reason"' ]]'
    reason_is "$kept" "$reason" && return 0
    as_user scancel "$kept"
    return 1
}

# limits of the partition
a=$(sub -p small -N 2 -q plain) b=$(sub -p small -N 2 -q free) c=$(sub -p small -t 60 -q plain) d=$(sub -p small -t 60 -q free)
e=$(sub -p wide -N 1 -q plain) f=$(sub -p wide -N 1 -q free)
ok 'MaxNodes of the partition holds' wait_for 20 reason_is "$a" PartitionNodeLimit
ok 'PartitionMaxNodes: not for this QOS' runs "$b"
ok 'MaxTime of the partition holds' wait_for 20 reason_is "$c" PartitionTimeLimit
ok 'PartitionTimeLimit: not for this QOS' runs "$d"
ok 'MinNodes of the partition holds' wait_for 20 reason_is "$e" PartitionNodeLimit
ok 'PartitionMinNodes: not for this QOS' runs "$f"
drop "$a" "$b" "$c" "$d" "$e" "$f"

# the QOS of the partition
a=$(sub -p capped -n 3 -q plain) b=$(sub -p capped -n 3 -q over) c=$(sub -p capped -n 4 -q over)
ok 'the QOS of the partition goes first' wait_for 20 reason_is "$a" QOSMaxCpuPerJobLimit
ok 'OverPartQOS: the own one does' runs "$b"
ok 'and its limit holds' wait_for 20 reason_is "$c" QOSMaxCpuPerJobLimit
like 'of which QOS' "$(spur explain "$c")" 'MaxTRESPerJob of QOS over is cpu=3'
drop "$a" "$b" "$c"
a=$(sub -p tenth -n 4 -N 1 -q plain) b=$(sub -p tenth -n 5 -q plain)
ok 'Relative: half of the eight CPUs of its partition' runs "$a"
ok 'not more' wait_for 20 reason_is "$b" QOSMaxCpuPerJobLimit
like 'which is said' "$(spur explain "$b")" 'MaxTRESPerJob of QOS rel is cpu=4'
c=$(sub -n 8 -q rel)
ok 'elsewhere half of the sixteen of the cluster' runs "$c"
drop "$a" "$b" "$c"
a=$(sub -A tight -n 3 -q plain) b=$(sub -A tight -n 3 -q more)
ok 'a limit of the account' wait_for 20 reason_is "$a" AssocMaxCpuPerJobLimit
ok 'LimitFactor: twice as much' runs "$b"
drop "$a" "$b"

run as_user sbatch -q resv --wrap true
is 'RequiresReservation: not without one' "$code $err" '1 sbatch: error: Batch job submission failed: Invalid qos specification'
scontrol create reservation=mine starttime=now duration=60 users="$me" nodes=n4 flags=ignore_jobs >/dev/null 2>&1 ||
    scontrol create reservation=mine starttime=now duration=60 accounts=sci nodes=n4 flags=ignore_jobs >/dev/null
a=$(sub -q resv --reservation=mine)
ok 'with one it runs' runs "$a"
drop "$a"
scontrol delete reservation=mine

# usage: what a second counts
a=$(sub -q fair)
ok 'EnforceUsageThreshold: who has used little runs' runs "$a"
as_user scancel "$a"
b=$(sub -n 4 -A sci -q plain)
runs "$b"
ok 'who has used more than his share waits' wait_for 30 blocked QOSUsageThreshold -q fair -A sci
c=$kept
like 'and says so' "$(spur explain "$c")" 'UsageThreshold of QOS fair is 0.90; the fair share of its association is 0.[0-8]'
drop "$b" "$c"
if [ "$(id -u)" -eq 0 ]; then
    share() { sprio -h -n -j "$1" -o %f; }
    full=$(sbatch --parsable -o /dev/null --exclusive -N 3 -A level -q plain --wrap 'sleep 300')
    burner=$(sub --exclusive -w n4 -A level -q plain)
    ok 'usage in an account' eval 'wait_for 20 job_is '"$full"' RUNNING && runs '"$burner"
    a=$(sub -A level -q plain) b=$(sbatch --parsable -o /dev/null -A level -q plain --wrap true)
    ok 'fairshare=parent: its users are level' wait_for 20 eval '[ -n "$(share '"$a"')" ] && [ "$(share '"$a"')" = "$(share '"$b"')" ]'
    scancel "$full" "$b"
    drop "$a" "$burner"
fi
declare -A first second
for q in fade burn none; do
    first[$q]=$(sub -q $q --mem=3500 -t 5)
    runs "${first[$q]}"
done
for q in fade burn; do
    ok "$q: what was used reaches the limit" wait_for 30 blocked QOSGrpMemoryMinutes -q $q --mem=100 -w n4 -t 5
    second[$q]=$kept
done
second[none]=$(sub -q none --mem=100 -w n4 -t 5)
ok 'UsageFactor 0: nothing counts' runs "${second[none]}"
drop "${first[@]}" "${second[none]}"
ok 'usage decays: it may go on' runs "${second[fade]}"
ok 'NoDecay: it may not' reason_is "${second[burn]}" QOSGrpMemoryMinutes
drop "${second[fade]}" "${second[burn]}"
sed -i 's/^enforce = .*/enforce = ["safe", "qos"]/' "$D/spur.conf"
ok 'safe limits' scontrol reconfigure
a=$(sub -q safe -n 4 -t 30)
ok 'safe: more minutes than the limit has are not begun' wait_for 20 reason_is "$a" QOSGrpCPUMinutesLimit
b=$(sub -q safe -n 4 -t 20)
ok 'fewer are' runs "$b"
c=$(sub -q factor -n 4 -t 40)
ok 'UsageFactorSafe: minutes count as they will be charged' runs "$c"
d=$(sub -q factor -n 4 -t 60)
ok 'but no more than there are' wait_for 20 reason_is "$d" QOSGrpCPUMinutesLimit
drop "$a" "$b" "$c" "$d"

# preemption
low=$(as_user sbatch --parsable -o /dev/null -q low --exclusive -N 4 --wrap 'trap "touch asked" TERM; touch begun; while :; do sleep 0.1; done')
wait_for 20 test -e begun
high=$(sub -q high --exclusive -w n1)
ok 'GraceTime: a preempted job has its time left' wait_for 20 eval '[[ $(squeue -h -j '"$low"' -o %T) = RUNNING && $(scontrol show job '"$low"') = *PreemptTime=20* ]]'
ok 'and is asked to end' wait_for 20 test -e asked
ok 'then the other runs' runs "$high"
like 'and it is requeued' "$(squeue -h -j "$low" -o '%T')" 'PENDING|RUNNING|COMPLETING|CONFIGURING'
drop "$low" "$high"
spared=$(sub -q spared --exclusive -N 4)
runs "$spared"
high=$(sub -q high --exclusive -w n1)
ok 'PreemptExemptTime: who has not run long enough is spared' wait_for 20 eval '[[ $(squeue -h -j '"$high"' -o %r) = @(Resources|Priority) ]]'
drop "$spared" "$high"

# what is kept for a job that waits
a=$(sub --exclusive -N 3 -t 5)
runs "$a"
for who in noresv thresh; do
    wide=$(sub -q $who --exclusive -N 4 -t 5)
    ok "$who: a wide job waits" wait_for 20 reason_is "$wide" Resources
    long=$(sub -q plain -t 60)
    ok "$who: nothing is kept for it, a longer one goes before it" runs "$long"
    drop "$wide" "$long"
done
wide=$(sub -q high --exclusive -N 4 -t 5)
ok 'for another' wait_for 20 reason_is "$wide" Resources
long=$(sub -q plain -t 60)
ok 'all is kept: the longer one waits' wait_for 20 reason_is "$long" Priority
short=$(sub -q plain -t 1)
ok 'and a shorter one fits before' runs "$short"
drop "$a" "$wide" "$long" "$short"
done_testing
