#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# MaxStartDelay: jobs that go soon when they are asked (--signal=R:) use what a reservation keeps.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" -eq 0 ] || TEST_UID=$(id -un)
cat >"$T/conf" <<END
[scheduler]
config_overrides = true
[jobs]
kill_wait = 1
[[nodes]]
names = "n[1-2]"
cpus = 4
memory_mb = 4000
[[partitions]]
name = "all"
default = true
nodes = "ALL"
END
cluster_up --conf "$T/conf"
me=$(id -un)
cd "$(user_dir)" || exit 1
sub() { as_user sbatch --parsable -o /dev/null "$@"; }
reason_is() { [[ $(squeue -h -j "$1" -o %r) = $2 ]]; }
runs() { wait_for 20 job_is "$1" RUNNING; }
ok 'a reservation with MaxStartDelay' scontrol create reservation=mine starttime=now duration=60 users="$me" nodes='n[1-2]' maxstartdelay=0:05 flags=ignore_jobs
like 'which shows' "$(scontrol show reservation mine)" 'MaxStartDelay=(00:)?00:05$'
run scontrol create reservation=other starttime=now+2hours duration=5 users="$me" nodes=n1 burstbuffer=x
like 'burst buffers are refused' "$code $err" '^1 .*BurstBuffer of reservations is not supported'

[ "$(id -u)" -eq 0 ] || { done_testing; exit; }
plain=$(sub -w n1 --wrap 'sleep 300')
ok 'a job of somebody else waits' wait_for 20 reason_is "$plain" 'ReqNodeNotAvail*'
late=$(sub -w n1 --signal=R:USR1@30 --wrap 'sleep 300')
ok 'one that would take too long to go, too' wait_for 20 reason_is "$late" 'ReqNodeNotAvail*'
cat >guest <<'S'
#!/bin/bash
trap 'echo told >>"told.$SLURM_JOB_ID"' USR1
touch "begun.$SLURM_JOB_ID"
while :; do sleep 0.1; done
S
guest=$(sub -t 5 -w n1 --exclusive --no-requeue --signal=BR:USR1@3 guest)
ok 'one that goes soon enough runs there' runs "$guest"
wait_for 20 test -e "begun.$guest"
again=$(sub -t 5 -w n2 --exclusive --requeue --signal=R:USR1@2 guest)
ok 'another too' runs "$again"
wait_for 20 test -e "begun.$again"
ok 'the others still wait' job_is "$plain" PENDING
ok 'over a restart of the controller' controller_again
ok 'both run' eval 'job_is '"$guest"' RUNNING && job_is '"$again"' RUNNING'

own=$(sbatch --parsable -o /dev/null --reservation=mine -w n1 --exclusive --wrap 'sleep 300')
ok 'a job of the reservation: the guest gets its signal' wait_for 20 test -s "told.$guest"
ok 'and the job starts' runs "$own"
ok 'the guest was preempted' wait_for 20 job_is "$guest" PREEMPTED
ok 'who is not in the way stays' job_is "$again" RUNNING
own2=$(sbatch --parsable -o /dev/null --reservation=mine -w n2 --exclusive --wrap 'sleep 300')
ok 'another job of the reservation' runs "$own2"
ok 'and one that may be requeued is' wait_for 20 job_is "$again" PENDING
scancel "$own2"
ok 'it runs again when the nodes are free' runs "$again"
scontrol update reservation=mine maxstartdelay=0:01 >/dev/null
third=$(sub -w n2 --signal=R:USR1@2 guest)
ok 'with less delay nobody else is let in' wait_for 20 reason_is "$third" '@(ReqNodeNotAvail*|Priority|Resources)'
scancel "$own" "$again"
ok 'who waits may go when the reservation is gone' wait_for 20 scontrol delete reservation=mine
ok 'all of them' eval 'wait_for 20 job_is '"$plain"' RUNNING && wait_for 20 job_is '"$third"' RUNNING'
done_testing
