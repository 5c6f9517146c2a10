#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A job that is suspended for another runs on when that one has ended; by QOS and by tier.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 1 --cpus 4 --mem 4G
cd "$(user_dir)"
cat >>"$D/spur.conf" <<'END'

[preemption]
type = "qos"
mode = ["SUSPEND", "GANG"]
[[qos]]
name = "normal"
[[qos]]
name = "spare"
[[qos]]
name = "often"
preempt_mode = "REQUEUE"
[[qos]]
name = "urgent"
preempt = ["spare", "often"]
END
ok 'the configuration is taken' scontrol reconfigure
user_submit() { as_user sbatch --parsable --mem=100 "$@"; }
ticks() { wc -l <ticks 2>/dev/null || echo 0; }
more_than() { [ "$(ticks)" -gt "$1" ]; }

low=$(user_submit -q spare -c 4 -o ticks --wrap 'while :; do echo tick; sleep 0.1; done')
wait_for 20 more_than 2
high=$(user_submit -q urgent -c 4 -o /dev/null --wrap 'sleep 120')
ok 'the urgent job starts' wait_for 20 job_is "$high" RUNNING
is 'the other is suspended' "$(job_state "$low")" SUSPENDED
like 'and says for whom' "$(spur explain "$low")" 'it made room for job [0-9]+ and goes on when that has ended'
sleep 0.5
before=$(ticks)
sleep 1
is 'and does nothing' "$(ticks)" "$before"
run scontrol resume "$low"
is 'it cannot be resumed by hand while its CPUs are in use' "$code" 1
before=$(ticks)
scancel "$high"
ok 'it goes on when the other has ended' wait_for 20 job_is "$low" RUNNING
ok 'really' wait_for 20 more_than "$before"
is 'without a restart' "$(scontrol show job "$low" | tr ' ' '\n' | grep Restarts)" Restarts=0

# A QOS that is not named is left alone.
normal=$(user_submit -q normal -c 4 -o /dev/null --wrap 'sleep 120')
sleep 1
is 'only those that are named' "$(job_state "$low") $(job_state "$normal")" 'RUNNING PENDING'
scancel "$low"
ok 'it starts then' wait_for 20 job_is "$normal" RUNNING
high=$(user_submit -q urgent -c 4 -o /dev/null --wrap 'sleep 120')
sleep 1
is 'nor does it go for others' "$(job_state "$normal") $(job_state "$high")" 'RUNNING PENDING'
scancel "$normal"
wait_for 20 job_is "$high" RUNNING
scancel "$high"
low=$(user_submit -q often -c 4 -o /dev/null --wrap 'sleep 120')
wait_for 20 job_is "$low" RUNNING
high=$(user_submit -q urgent -c 4 -o /dev/null --wrap 'sleep 1')
ok 'a QOS has a mode of its own' wait_for 20 job_is "$low" PENDING
ok 'and its job comes back' wait_for 20 job_is "$low" RUNNING
scancel "$low"
done_testing
