#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What each flag of a reservation does: nodes that are replaced, starts that float, jobs that reach beyond it.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all 'needs root and an ordinary user'
cluster_up --nodes 4 --cpus 2 --mem 4G
cd "$(user_dir)"
inside() { sbatch --parsable --mem=10 -t 5 -o /dev/null "$@"; }
theirs() { as_user sbatch --parsable --mem=10 -t 5 -o /dev/null "$@"; }
shown() { scontrol show res "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"; }
shows() { [ "$(shown "$1" "$2")" = "$3" ]; }
make() { scontrol create reservation users=root "$@" 2>&1; }
seconds() { date -d "$(shown "$1" "$2")" +%s; }
gone() { [ -z "$(shown "$1" State)" ]; }
down() { scontrol update nodename="$1" state=down reason=test; }
up() { scontrol update nodename="$1" state=resume; }

# Nodes that are down are replaced, or not.
make reservation=fix starttime=now duration=60 nodecnt=1 flags=static_alloc >/dev/null
fixed=$(shown fix Nodes)
like 'its flag is shown' "$(shown fix Flags)" STATIC
make reservation=rep starttime=now duration=60 nodecnt=1 flags=replace_down >/dev/null
first=$(shown rep Nodes)
isnt_first() { [ -n "$(shown rep Nodes)" ] && [ "$(shown rep Nodes)" != "$first" ]; }
down "$first"
ok 'REPLACE_DOWN: a node that is down is replaced' wait_for 20 isnt_first
second=$(shown rep Nodes)
a=$(inside --reservation=rep --wrap 'sleep 100')
ok 'a job runs on the new one' wait_for 20 job_is "$a" RUNNING
is 'which it is' "$(squeue -h -j "$a" -o %N)" "$second"
is 'a node in use is not replaced' "$(shown rep Nodes)" "$second"
up "$first"
down "$fixed"
b=$(inside --reservation=fix --wrap true)
is 'STATIC_ALLOC: nothing is replaced' "$(shown fix Nodes)" "$fixed"
is 'its job waits' "$(job_state "$b")" PENDING
up "$fixed"
ok 'until the node is back' wait_for 20 job_is "$b" COMPLETED
scancel "$a"
wait_for 20 job_is "$a" CANCELLED
scontrol delete reservationname=rep
scontrol delete reservationname=fix

# REPLACE: what its jobs take is filled up again.
make reservation=pool starttime=now duration=60 nodecnt=2 flags=replace >/dev/null
before=$(shown pool Nodes)
a=$(inside --reservation=pool --exclusive --wrap 'sleep 100')
wait_for 20 job_is "$a" RUNNING
taken=$(squeue -h -j "$a" -o %N)
refilled() { ! scontrol show hostnames "$(shown pool Nodes)" | grep -qx "$taken" && [ "$(scontrol show hostnames "$(shown pool Nodes)" | wc -l)" = 2 ]; }
ok "REPLACE: a node of $before that is used is replaced by an idle one" wait_for 20 refilled
scancel "$a"
wait_for 20 job_is "$a" CANCELLED
scontrol delete reservationname=pool

# FLEX: starts before, uses nodes beyond.
make reservation=flex starttime=now+30minutes duration=60 nodes=n1 flags=flex >/dev/null
a=$(inside -N 2 --reservation=flex --exclusive --wrap 'sleep 100')
ok 'FLEX: a job starts before it and on more nodes' wait_for 20 job_is "$a" RUNNING
like 'with nodes of it' "$(squeue -h -j "$a" -o %N)" 'n.*1'
scancel "$a"
wait_for 20 job_is "$a" CANCELLED
scontrol delete reservationname=flex
make reservation=firm starttime=now+30minutes duration=60 nodes=n1 >/dev/null
a=$(inside --reservation=firm --wrap true)
is 'without it a job waits for the start' "$(squeue -h -j "$a" -o '%T %r')" 'PENDING Reservation'
scancel "$a"
scontrol delete reservationname=firm

# TIME_FLOAT: what would run into it waits (that it moves, by the minute, is in a unit test).
make reservation=ahead starttime=now+40minutes duration=60 nodes=n1 flags=time_float >/dev/null
like 'TIME_FLOAT is shown' "$(shown ahead Flags)" TIME_FLOAT
a=$(as_user sbatch --parsable --mem=10 -t 30 -w n1 -o /dev/null --wrap true)
ok 'what ends before it runs' wait_for 20 job_is "$a" COMPLETED
b=$(as_user sbatch --parsable --mem=10 -t 60 -w n1 -o /dev/null --wrap true)
is 'what would not waits' "$(job_state "$b")" PENDING
scancel "$b"
scontrol delete reservationname=ahead

# By number they are of one partition, the default one where none is said.
make reservation=some starttime=now+1hour duration=60 nodecnt=1 >/dev/null
is 'whose nodes they are is shown' "$(shown some PartitionName)" "$(scontrol show partition | sed -n 's/^PartitionName=//p' | head -n 1)"
scontrol delete reservation=some
is 'a partition that is not there' "$(make reservation=some starttime=now duration=60 nodes=n1 partition=nosuch)" \
    'Error creating the reservation: Invalid partition name specified'
is 'without a start' "$(make reservation=some duration=60 nodes=n1)" 'scontrol: error: A start time must be given.  No reservation created.'
is 'without an end' "$(make reservation=some starttime=now nodes=n1)" \
    'scontrol: error: An end time or duration must be given.  No reservation created.'
# PART_NODES: the nodes of a partition, whatever they are.
part=$(scontrol show partition | sed -n 's/^PartitionName=//p' | head -n 1)
make reservation=part starttime=now+1hour duration=60 partitionname="$part" nodes=ALL flags=part_nodes >/dev/null
is 'PART_NODES: all of the partition' "$(shown part NodeCnt) $(shown part PartitionName)" "4 $part"
ok 'the partition loses a node' scontrol update partitionname="$part" nodes='n[1-3]'
ok 'and so does the reservation' wait_for 20 shows part NodeCnt 3
ok 'the partition has it again' scontrol update partitionname="$part" nodes='n[1-4]'
ok 'and the reservation too' wait_for 20 shows part NodeCnt 4
scontrol delete reservationname=part

# Repeated ones; one that is skipped; one that is past.
make reservation=week starttime=now+2hours duration=60 nodes=n2 flags=weekly >/dev/null
from=$(seconds week StartTime)
scontrol update reservationname=week skip
is 'WEEKLY: the next one is a week later' "$(($(seconds week StartTime) - from))" 604800
scontrol delete reservationname=week
make reservation=hour starttime=now+2hours duration=10 nodes=n2 flags=hourly >/dev/null
from=$(seconds hour StartTime)
scontrol update reservationname=hour skip
is 'HOURLY: an hour later' "$(($(seconds hour StartTime) - from))" 3600
scontrol delete reservationname=hour
make reservation=daily starttime=now duration=60 nodes=n2 flags=daily >/dev/null
from=$(seconds daily StartTime)
scontrol update reservationname=daily endtime=now+2 >/dev/null
comes_again() { [ $(($(seconds daily StartTime) - from)) = 86400 ]; }
ok 'DAILY: comes again tomorrow' wait_for 30 comes_again
scontrol delete reservationname=daily

# What waits when it ends: held, or goes on without it.
for flag in '' no_hold_jobs_after; do
    make reservation=end starttime=now+1hour duration=60 nodes=n3 ${flag:+flags=$flag} >/dev/null
    a=$(inside --reservation=end --wrap true)
    is "a job waits for it (${flag:-plain})" "$(job_state "$a")" PENDING
    scontrol update reservationname=end starttime=now endtime=now+1 >/dev/null 2>&1
    ok 'it ends' wait_for 30 gone end
    if [ -n "$flag" ]; then
        ok 'NO_HOLD_JOBS_AFTER: the job runs without it' wait_for 20 job_is "$a" COMPLETED
    else
        # It may have been started in that second; then it is over.
        held() { [ "$(squeue -h -j "$a" -o '%Q')" = 0 ] || job_is "$a" COMPLETED; }
        ok 'without the flag it is held' wait_for 20 held
    fi
    scancel "$a" 2>/dev/null
done

# PURGE_COMP: gone when nobody used it so long.
make reservation=purge starttime=now duration=60 nodes=n3 flags=purge_comp=0:02 >/dev/null
ok 'PURGE_COMP: it ends when it is not used' wait_for 30 gone purge
a=$(theirs -w n3 --wrap true)
ok 'and others run there' wait_for 20 job_is "$a" COMPLETED
done_testing
