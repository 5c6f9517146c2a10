#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Jobs of a higher tier push those of lower ones aside: requeue, grace, cancel, suspend.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 1 --cpus 4 --mem 4G
cd "$(user_dir)"
cat >>"$D/spur.conf" <<'END'

[preemption]
type = "partition_prio"
mode = "REQUEUE"
[[partitions]]
name = "spare"
nodes = "ALL"
priority_tier = 0
[[partitions]]
name = "saves"
nodes = "ALL"
priority_tier = 0
preempt_mode = "CANCEL"
grace_time = 30
[[partitions]]
name = "goes"
nodes = "ALL"
priority_tier = 0
preempt_mode = "CANCEL"
[[partitions]]
name = "stays"
nodes = "ALL"
priority_tier = 0
preempt_mode = "OFF"
[[partitions]]
name = "urgent"
nodes = "ALL"
priority_tier = 20
END
ok 'the configuration is taken' scontrol reconfigure
user_submit() { as_user sbatch --parsable --mem=100 "$@"; }
shown() { scontrol show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"; }

# Requeue: the id stays, the job waits again and runs again.
low=$(user_submit -p spare -c 4 -o low.out --wrap 'echo try $SLURM_RESTART_COUNT; sleep 120')
wait_for 20 job_is "$low" RUNNING
like 'a running job says from when on it may go' "$(shown "$low" PreemptEligibleTime)" '^20'
is 'and that it has not been told' "$(shown "$low" PreemptTime)" None
high=$(user_submit -p urgent -c 4 -o /dev/null --wrap 'sleep 2')
ok 'the urgent job starts' wait_for 20 job_is "$high" RUNNING
is 'the other waits again' "$(job_state "$low")" PENDING
is 'it was restarted' "$(shown "$low" Restarts)" 1
like 'it says for whom' "$(scontrol show job "$low")" "preempted for job $high"
like 'so does explain' "$(spur explain "$low")" "preempted for job $high"
ok 'it runs again' wait_for 20 job_is "$low" RUNNING
is 'with its id' "$(shown "$low" JobId)" "$low"
scancel "$low"
wait_for 20 job_is "$low" CANCELLED

# What does not help is left alone.
high=$(user_submit -p urgent -c 2 -o /dev/null --wrap 'sleep 120')
wait_for 20 job_is "$high" RUNNING
low=$(user_submit -p spare -c 2 -o /dev/null --wrap 'sleep 120')
wait_for 20 job_is "$low" RUNNING
wide=$(user_submit -p urgent -c 4 -o /dev/null --wrap 'sleep 1')
sleep 1
is 'nobody goes in vain' "$(job_state "$low") $(job_state "$wide")" 'RUNNING PENDING'
scancel "$high" "$low" "$wide"
wait_for 20 job_is "$low" CANCELLED

# Grace: SIGTERM first, time to save.
cat >saves.sh <<'END'
#!/bin/bash
trap 'echo saved >saved; exit 3' TERM
echo ready >ready
for i in $(seq 1200); do sleep 0.1; done
END
low=$(user_submit -p saves -c 4 -o /dev/null saves.sh)
wait_for 20 test -s ready
high=$(user_submit -p urgent -c 4 -o /dev/null --wrap 'sleep 120')
ok 'a job with grace time may save its work' wait_for 20 test -s saved
ok 'it has made room' wait_for 20 job_is "$low" PREEMPTED
ok 'the urgent job starts' wait_for 20 job_is "$high" RUNNING
scancel "$high"
wait_for 20 job_is "$high" CANCELLED

# Cancel and off.
low=$(user_submit -p goes -c 4 -o /dev/null --wrap 'sleep 120')
wait_for 20 job_is "$low" RUNNING
high=$(user_submit -p urgent -c 4 -o /dev/null --wrap 'sleep 120')
ok 'the urgent job starts again' wait_for 20 job_is "$high" RUNNING
is 'the other is over' "$(job_state "$low")" PREEMPTED
scancel "$high"
wait_for 20 job_is "$high" CANCELLED
low=$(user_submit -p stays -c 4 -o /dev/null --wrap 'sleep 120')
wait_for 20 job_is "$low" RUNNING
high=$(user_submit -p urgent -c 4 -o /dev/null --wrap 'sleep 1')
sleep 1
is 'OFF protects' "$(job_state "$low") $(job_state "$high")" 'RUNNING PENDING'
scancel "$low" "$high"
done_testing
