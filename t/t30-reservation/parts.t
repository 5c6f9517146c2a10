#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Reservations of cores, devices and licences; who may use and delete one; how they are shown.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all 'needs root and an ordinary user'
printf "[scheduler]\nlicenses = [\"lic:3\"]\n" >"$T/conf"
cluster_up --nodes 2 --cpus 4 --mem 4G --gpus mi300x:2 --conf "$T/conf"
cd "$(user_dir)"
user_submit() { as_user sbatch --parsable --mem=10 -t 5 -o /dev/null "$@"; }
inside() { sbatch --parsable --mem=10 -t 5 -o /dev/null "$@"; }
shown() { scontrol show res "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"; }
make() { scontrol create reservation starttime=now duration=60 users=root "$@" 2>&1; }
gone() { [ -z "$(shown "$1" State)" ]; }

# Cores.
is 'cores of a node' "$(make reservation=c nodes=n1 corecnt=3)" 'Reservation created: c'
is 'are counted' "$(shown c CoreCnt) $(shown c TRES) $(shown c Nodes)" '3 cpu=3 n1'
like 'the node is not reserved as a whole' "$(sinfo -h -N -n n1 -o '%T %i')" '^idle c$'
a=$(user_submit -w n1 -c 1 --wrap 'sleep 100')
b=$(user_submit -w n1 -c 1 --wrap true)
ok 'others have the rest' wait_for 20 job_is "$a" RUNNING
c=$(inside --reservation=c -c 3 --wrap 'sleep 100')
ok 'its jobs have theirs' wait_for 20 job_is "$c" RUNNING
d=$(inside --reservation=c -c 1 --wrap true)
is 'and no more' "$(job_state "$d")" PENDING
is 'nobody else has them' "$(job_state "$b")" PENDING
scancel "$c"
ok 'what is given back is theirs again' wait_for 20 job_is "$d" COMPLETED
is 'not that of others' "$(job_state "$b")" PENDING
like 'explain names it' "$(spur explain "$b")" 'reserv'
run scontrol create reservation reservationname=x starttime=now duration=60 users=root nodes=n1 corecnt=2
like 'they are not given twice' "$err" 'n1'
scontrol delete reservationname=c
ok 'and then they run' wait_for 20 job_is "$b" COMPLETED
scancel "$a"
wait_for 20 job_is "$a" CANCELLED

# GPUs.
make reservation=g nodes=n2 trespernode=gres/gpu=1 >/dev/null
like 'devices are shown' "$(shown g TRES)" 'gres/gpu:mi300x=1'
a=$(user_submit -w n2 --gres=gpu:2 --wrap true)
b=$(user_submit -w n2 --gres=gpu:1 --wrap true)
ok 'one is left to others' wait_for 20 job_is "$b" COMPLETED
is 'two are not' "$(job_state "$a")" PENDING
scontrol delete reservationname=g
ok 'then they are' wait_for 20 job_is "$a" COMPLETED

# Licences.
make reservation=l licenses=lic:2 flags=any_nodes >/dev/null
is 'licences' "$(shown l Licenses) $(shown l NodeCnt) $(shown l Flags)" 'lic:2 0 ANY_NODES'
a=$(user_submit -L lic:2 --wrap true)
b=$(inside --reservation=l -L lic:3 --wrap true)
ok 'its jobs have them, and others' wait_for 20 job_is "$b" COMPLETED
is 'others do not' "$(job_state "$a")" PENDING
scontrol delete reservationname=l
ok 'until it is gone' wait_for 20 job_is "$a" COMPLETED

# Who: both conditions; a group by its number; a partition; deleted by its user.
scontrol create reservation reservationname=w starttime=now duration=60 users=$TEST_UID nodes=n1 allowedpartitions=nosuch >/dev/null
run as_user sbatch --reservation=w --wrap true
like 'every condition counts' "$err" 'Access denied'
scontrol delete reservationname=w
scontrol create reservation reservationname=w starttime=now duration=60 groups=$TEST_UID nodes=n1 flags=user_delete >/dev/null
a=$(user_submit --reservation=w --wrap true)
ok 'a group by its number' wait_for 20 job_is "$a" COMPLETED
run as_user scontrol update reservationname=w duration=90
is 'others change nothing' "$code" 1
run as_user scontrol delete reservationname=w
is 'USER_DELETE' "$code" 0
ok 'deletes it' gone w
make reservation=w nodes=n1 flags=user_delete >/dev/null
run as_user scontrol delete reservationname=w
is 'only for those it is for' "$code" 1
scontrol delete reservationname=w

# Shown.
make reservation=j nodes=n1 flags=daily,purge_comp=10 >/dev/null
like 'flags with their time' "$(shown j Flags)" 'DAILY.*PURGE_COMP=00:10:00'
before=$(shown j StartTime)
run scontrol update reservationname=j skip
is 'skip' "$code" 0
unlike 'to its next time' "$(shown j StartTime)" "$before"
is 'JSON' "$(scontrol show res --json | python3 -c 'import json,sys
r = json.load(sys.stdin)["reservations"][0]
print(r["name"], r["node_list"], r["core_count"], r["flags"][0], r["purge_completed"]["time"]["number"], r["users"])')" 'j n1 4 DAILY 600 root'
done_testing
