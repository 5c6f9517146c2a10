#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# scontrol update reservation with += and -=: of lists, of its length and of its nodes.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 4 --cpus 2 --mem 2G
cd "$T" || exit 1
me=$(id -un)
shown() { scontrol -o show res r | grep -oE "(^| )$1=[^ ]*" | cut -d= -f2; }
change() { # NAME KEY WANTED CHANGE…
    local name=$1 key=$2 wanted=$3
    shift 3
    run scontrol update reservationname=r "$@"
    is "$name" "$code $out $(shown "$key")" "0 Reservation updated. $wanted"
}
refused() { # NAME TEXT CHANGE…
    local name=$1 text=$2 before
    shift 2
    before=$(scontrol -o show res r)
    run scontrol update reservationname=r "$@"
    like "$name" "$code $err" "^1 .*$text"
    is "$name: and nothing changes" "$(scontrol -o show res r)" "$before"
}
scontrol create reservation reservationname=r starttime=now+1hour duration=60 users="$me" nodes=n1 >/dev/null
change 'half an hour longer' Duration 01:30:00 Duration+=30
change 'shorter' Duration 01:20:00 Duration-=10
change 'it ends later' Duration 01:50:00 EndTime+=30
change 'and earlier' Duration 01:20:00 EndTime-=00:30:00
change 'another start, and longer' Duration 01:25:00 StartTime=now+2hours Duration+=5
refused 'nothing is left of it' 'Invalid time specified' Duration-=85
refused 'no time' 'Invalid duration: x' Duration+=x
change 'one more node' Nodes 'n[1-2]' Nodes+=n2
change 'several' Nodes 'n[1-4]' 'Nodes+=n[3-4]'
change 'one less' Nodes 'n[2-4]' Nodes-=n1
change 'more and less at once' Nodes 'n[1,3-4]' Nodes+=n1 Nodes-=n2
refused 'one that it has not' 'not all of n2 are of reservation r' Nodes-=n2
refused 'all of them' 'leaves reservation r no node' 'Nodes-=n[1,3-4]'
refused 'one that is none' 'no node or node set is called n9' Nodes+=n9
refused 'what has no more and less' 'The \+=/-= notation is not supported when updating NodeCnt' NodeCnt+=1
scontrol create reservation reservationname=other starttime=now+2hours duration=60 users="$me" nodes=n2 >/dev/null
refused 'a node of another' 'overlaps with another reservation: other' Nodes+=n2
refused 'nobody: it would be for all' 'Reservation request lacks users, groups or accounts' Users-="$me"
refused 'nor an empty list' 'Reservation request lacks users, groups or accounts' Users=
refused 'a user that is not there' 'Invalid user: nosuchuser' Users+=nosuchuser
refused 'a feature that no node has' 'Invalid feature specification: nosuch' Features=nosuch
change 'a user more' Users "$me,nobody" Users+=nobody
change 'and less' Users "$me" Users-=nobody
change 'accounts' Accounts a,b Accounts+=a,b
change 'one of them' Accounts b Accounts-=a
change 'no user, but an account' Users '(null)' Users=
change 'and a user again' Users "$me" Users="$me"
refused 'it must have some nodes' 'nodes of a reservation cannot be unset' Nodes=
change 'flags' Flags 'FLEX,SPEC_NODES' Flags+=FLEX
change 'and back' Flags SPEC_NODES Flags-=FLEX
ok 'all of it survives' controller_again
is 'as it was' "$(shown Nodes) $(shown Duration) $(shown Accounts)" 'n[1,3-4] 01:25:00 b'

# a job keeps off a node as soon as it is reserved
scontrol delete reservationname=other
scontrol delete reservationname=r
scontrol create reservation reservationname=r starttime=now duration=60 users=nobody nodes=n1 >/dev/null
ok 'the node that is added' scontrol update reservationname=r Nodes+=n2
job=$(sub -w n2)
wait_for 20 eval '[[ $(squeue -h -j '"$job"' -o %r) = ReqNodeNotAvail* ]]'
is 'is kept from others' "$(job_state "$job")" PENDING
scontrol update reservationname=r Nodes-=n2 >/dev/null
ok 'and given back' wait_for 20 job_is "$job" RUNNING
drop "$job"

# there is no power saving
for state in POWER_DOWN POWER_UP POWER_DOWN_ASAP POWER_DOWN_FORCE; do
    run scontrol update nodename=n1 state=$state reason=x
    like "$state is refused, with the reason" "$code $err" '^1 slurm_update error: Invalid node state specified.*no power saving'
done
done_testing
