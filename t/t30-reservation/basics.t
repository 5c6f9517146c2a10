#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Reservations: who may use one, what waits for it, what it does to others, when it ends.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 2 --cpus 4 --mem 4G
cd "$(user_dir)"
user_submit() { as_user sbatch --parsable --mem=100 -t 5 "$@"; }
uid_is_root() { [ "$(id -u)" -eq 0 ]; }
uid_is_root || skip_all 'needs root and an ordinary user'
shown() { scontrol show res "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"; }

# Refused with a reason.
run scontrol create reservation starttime=now duration=60 users=root nodes=n1 flags=NOSUCH
is 'an unknown flag' "$code" 1
like 'is named' "$err" NOSUCH
run scontrol create reservation starttime=now duration=60 users=root nodes=n1 burstbuffer=1TB
like 'what cannot act is refused' "$err" 'BurstBuffer'
run as_user scontrol create reservation starttime=now duration=60 users=root nodes=n1
is 'not by everybody' "$code" 1

# Names of its own, flags as Slurm shows them.
run scontrol create reservation starttime=now duration=60 users=root nodecnt=1
is 'a name is made' "$out" 'Reservation created: root_1'
is 'one node' "$(shown root_1 NodeCnt)" 1
like 'the node shows it' "$(sinfo -h -N -o '%N %T')" 'reserved'
run scontrol create reservation reservationname=m starttime=now duration=60 users=root nodes=n1 flags=maint,ignore_jobs
is 'maintenance may overlap' "$code" 0
is 'flags' "$(shown m Flags)" 'MAINT,IGNORE_JOBS,SPEC_NODES'
like 'and the node says so' "$(sinfo -h -N -n n1 -o %T)" maint
run scontrol update reservationname=m flags=-ignore_jobs
is 'a flag is taken away' "$(shown m Flags)" 'MAINT,SPEC_NODES'
scontrol delete reservationname=m
scontrol delete reservationname=root_1

# Only those it is for.
scontrol create reservation reservationname=r starttime=now duration=60 users=root nodes=n1 >/dev/null
run as_user sbatch --reservation=r --wrap true
like 'others are refused' "$err" 'Access denied to requested reservation'
a=$(user_submit -w n1 -o /dev/null --wrap true)
sleep 1
is 'nothing else runs there' "$(job_state "$a")" PENDING
b=$(sbatch --parsable --mem=100 -t 5 --reservation=r -o /dev/null --wrap 'sleep 60')
ok 'a job in it runs' wait_for 20 job_is "$b" RUNNING
is 'on its node' "$(squeue -h -j "$b" -o %N)" n1
c=$(sbatch --parsable --mem=100 --reservation=r -o /dev/null --wrap 'sleep 60')
ok 'so does one without a limit, for it is ended with the reservation' wait_for 20 job_is "$c" RUNNING
scancel "$c"
run scontrol delete reservationname=r
like 'it cannot be deleted while it is used' "$err" 'in use'
scontrol update reservationname=r "users+=$TEST_UID" >/dev/null
is 'a user is added' "$(shown r Users)" "root,$TEST_UID"
scancel "$b"
wait_for 20 job_is "$b" CANCELLED
scontrol delete reservationname=r
ok 'then others run' wait_for 20 job_is "$a" COMPLETED

# A future one is respected, and waited for.
scontrol create reservation reservationname=soon starttime=now+20minutes duration=60 users=root nodes=n[1-2] >/dev/null
long=$(as_user sbatch --parsable --mem=100 -t 60 -o /dev/null --wrap true)
short=$(user_submit -o /dev/null --wrap true)
ok 'a short job runs before it' wait_for 20 job_is "$short" COMPLETED
is 'a long one would run into it' "$(job_state "$long")" PENDING
in=$(sbatch --parsable --mem=100 -t 5 --reservation=soon -o /dev/null --wrap true)
is 'a job in it waits' "$(squeue -h -j "$in" -o '%T %r')" 'PENDING Reservation'
scontrol update reservationname=soon starttime=now >/dev/null
ok 'until it begins' wait_for 20 job_is "$in" COMPLETED
is 'others still wait' "$(job_state "$long")" PENDING
scontrol delete reservationname=soon
ok 'and run when it is gone' wait_for 20 job_is "$long" COMPLETED

# Jobs that run are in the way, or are ignored.
c=$(user_submit -w n1 -o /dev/null --wrap 'sleep 60')
wait_for 20 job_is "$c" RUNNING
run scontrol create reservation reservationname=busy starttime=now duration=60 users=root nodes=n1
like 'nodes in use' "$err" 'busy'
run scontrol create reservation reservationname=busy starttime=now duration=60 users=root nodes=n1 flags=ignore_jobs
is 'unless they are ignored' "$code" 0
is 'the job runs on' "$(job_state "$c")" RUNNING
scancel "$c"
scontrol delete reservationname=busy

# A magnetic one draws jobs; several may be named; its end ends them.
scontrol create reservation reservationname=mag starttime=now duration=60 users=$TEST_UID nodes=n2 flags=magnetic >/dev/null
d=$(user_submit -c 4 -w n2 -o /dev/null --wrap true)
ok 'a magnetic one draws jobs' wait_for 20 job_is "$d" COMPLETED
scontrol create reservation reservationname=x starttime=now duration=60 users=root nodes=n1 >/dev/null
e=$(sbatch --parsable --mem=100 -t 5 -N1 --reservation=mag,x -o /dev/null --wrap 'sleep 60')
ok 'one of several' wait_for 20 job_is "$e" RUNNING
scancel "$e"
wait_for 20 job_is "$e" CANCELLED
f=$(sbatch --parsable --mem=100 -t 30 --reservation=x -o /dev/null --wrap 'sleep 120')
wait_for 20 job_is "$f" RUNNING
scontrol update reservationname=x endtime=now+4 >/dev/null
ok 'its end ends its jobs' wait_for 30 job_is "$f" TIMEOUT
is 'and it is gone' "$(shown x State)" ''
done_testing
