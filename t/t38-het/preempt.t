#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room is made for heterogeneous jobs, for all components or for none; and their components go together.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 3 --cpus 4 --mem 4G
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
grace_time = 60
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
user_submit() { as_user sbatch --parsable --mem=100 -o /dev/null "$@"; }
both() { [ "$(squeue -h -t all -j "$1" -o %T | tr '\n' ' ')" = "$2 $2 " ]; }
shown() { scontrol show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p" | head -1; }
names=$(sinfo -hN -o %N | sort -u)
set -- $names

# All of them go or nobody does.
low=$(user_submit -p spare -c 4 -w "$1" --wrap 'sleep 120')
stays=$(user_submit -p stays -c 4 -w "$2" --wrap 'sleep 120')
stays2=$(user_submit -p stays -c 4 -w "$3" --wrap 'sleep 120')
for job in $low $stays $stays2; do wait_for 20 job_is "$job" RUNNING; done
het=$(user_submit -p urgent -c 4 : -p urgent -c 4 --wrap 'sleep 120')
het=${het%%+*}
ok 'it waits for resources' wait_for 20 sh -c "squeue -hj $het -o %r | grep -q Resources"
is 'nobody goes for a part of it' "$(job_state "$low") $(shown "$low" Restarts)" 'RUNNING 0'
scancel "$stays"
wait_for 20 job_is "$stays" CANCELLED
ok 'with room for the other one somebody goes, and both run' wait_for 20 both "$het" RUNNING
is 'the id stays' "$(job_state "$low") $(shown "$low" Restarts)" 'PENDING 1'
like 'it says for whom' "$(scontrol show job "$low")" "preempted for job $het"
scancel "$het" "$stays2"
ok 'it runs again' wait_for 20 job_is "$low" RUNNING
scancel "$low"
wait_for 20 job_is "$low" CANCELLED

# Grace: all are told first, and while they save their work the job says whom it waits for.
cat >saves.sh <<'END'
#!/bin/bash
trap 'echo saved >saved.$SLURM_JOB_ID; while [ ! -e go ]; do sleep 0.1; done; exit 3' TERM
echo ready >ready.$SLURM_JOB_ID
for i in $(seq 1200); do sleep 0.1; done
END
chmod +x saves.sh
a=$(user_submit -p saves -c 4 -w "$1" saves.sh)
b=$(user_submit -p saves -c 4 -w "$2" saves.sh)
c=$(user_submit -p stays -c 4 -w "$3" --wrap 'sleep 120')
wait_for 20 test -s "ready.$a" && wait_for 20 test -s "ready.$b" && wait_for 20 job_is "$c" RUNNING
het=$(user_submit -p urgent -c 4 : -p urgent -c 4 --wrap 'sleep 120')
het=${het%%+*}
ok 'both are told' wait_for 20 test -s "saved.$a" -a -s "saved.$b"
like 'they have time' "$(shown "$a" PreemptTime)" '^20'
ok 'meanwhile nothing starts' both "$het" PENDING
like 'explain names them' "$(spur explain "$het")" "jobs ($a, $b|$b, $a)"
like 'for every component' "$(spur explain "$het+1")" "jobs ($a, $b|$b, $a)"
touch go
ok 'then all start' wait_for 20 both "$het" RUNNING
ok 'those have gone' wait_for 20 job_is "$a" PREEMPTED
ok 'both' wait_for 20 job_is "$b" PREEMPTED
scancel "$het"
wait_for 20 both "$het" CANCELLED

# One that makes room goes with all its components.
het=$(user_submit -p spare -c 4 -w "$1" : -p spare -c 4 -w "$2" --wrap 'sleep 120')
het=${het%%+*}
wait_for 20 both "$het" RUNNING
high=$(user_submit -p urgent -c 4 -w "$2" --wrap 'sleep 120')
ok 'an urgent job in the place of one component' wait_for 20 job_is "$high" RUNNING
ok 'none of them runs' wait_for 20 both "$het" PENDING
scancel "$high"
ok 'they run again together' wait_for 20 both "$het" RUNNING
scancel "$het" "$c"
done_testing
