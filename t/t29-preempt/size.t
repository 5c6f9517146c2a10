#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Jobs of which less is left take the place of larger ones that run: preemption.type = "size".
. "$(dirname "$0")/../lib.sh"
cat >"$T/conf" <<'END'
[scheduler]
order = "predict"
[preemption]
type = "size"
mode = "REQUEUE"
exempt_time = "0:00:02"
times = 2
[[partitions]]
name = "debug"
nodes = "ALL"
default = true
grace_time = 20
[[partitions]]
name = "stays"
nodes = "ALL"
preempt_mode = "OFF"
END
cluster_up --nodes 1 --cpus 4 --mem 4G --conf "$T/conf"
cd "$(user_dir)"
user_submit() { as_user sbatch --parsable --mem=100 -c 4 -o /dev/null "$@"; }
shown() { scontrol show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"; }
lines() { cat "$1" 2>/dev/null | wc -l; }
has_lines() { [ "$(lines "$1")" -ge "$2" ]; }

# Saves what it has done when it is told to go, with the signal that it asked for, and goes on from there.
cat >large.sh <<'END'
#!/bin/bash
trap 'echo saved >>save; exit 1' USR1
echo "begins with $(cat save 2>/dev/null | wc -l)" >>ran
for ((i = 0; i < 1200; i++)); do sleep 0.1; done
END
large=$(user_submit -t 10:00:00 --signal=B:USR1@60 large.sh)
ok 'the large job runs' wait_for 20 has_lines ran 1
small=$(user_submit -t 1 --wrap 'sleep 1')
ok 'a smaller one takes its place' wait_for 40 job_is "$small" RUNNING COMPLETED
is 'the large one has saved its work' "$(cat save)" saved
is 'and was requeued, not cancelled' "$(shown "$large" Restarts)" 1
like 'it says for whom' "$(scontrol show job "$large")" "preempted for job $small"
ok 'it goes on' wait_for 40 has_lines ran 2
is 'from what it saved' "$(tail -n 1 ran)" 'begins with 1'

larger=$(user_submit -t 20:00:00 --wrap 'sleep 1')
unless=$(user_submit -t 1 --no-requeue --wrap 'sleep 100')
ok 'another small one takes its place' wait_for 40 job_is "$unless" RUNNING
is 'not the larger one' "$(job_state "$larger")" PENDING
tiny=$(user_submit -t 0:05 --wrap 'sleep 1')
sleep 3
is 'who may not be requeued stays' "$(job_state "$unless")" RUNNING
is 'and the smaller one waits' "$(job_state "$tiny")" PENDING
scancel "$unless"
ok 'until he is gone' wait_for 40 job_is "$tiny" COMPLETED
ok 'the large one goes on again' wait_for 40 has_lines ran 3
small=$(user_submit -t 1 --wrap 'sleep 1')
sleep 4
is 'twice is enough' "$(job_state "$large")" RUNNING
is 'the small one waits' "$(job_state "$small")" PENDING
scancel "$large" "$larger"
ok 'and runs when the large one is gone' wait_for 40 job_is "$small" COMPLETED

stays=$(user_submit -p stays -t 10:00:00 --wrap 'sleep 100')
ok 'a large job of another partition runs' wait_for 20 job_is "$stays" RUNNING
small=$(user_submit -t 1 --wrap 'sleep 1')
sleep 3
is 'it stays: its partition says so' "$(job_state "$stays")" RUNNING
scancel "$stays"
ok 'then the small one runs' wait_for 40 job_is "$small" COMPLETED
done_testing
