#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# scontrol and its kin in corners that scripts rely on: verbs, lists, priorities, signals, steps, help.
. "$(dirname "$0")/../lib.sh"
cat >"$T/spur.conf" <<CONF
cluster_name = "verbs"
[scheduler]
config_overrides = true
[priority]
weight_partition = 1000
[[nodes]]
names = "n[1-3]"
hostname = "n[1-3]"
cpus = 8
memory_mb = 4000
gres = ["gpu:4"]
[[partitions]]
name = "debug"
nodes = "ALL"
default = true
priority_job_factor = 1
[[partitions]]
name = "urgent"
nodes = "ALL"
priority_job_factor = 10
[[partitions]]
name = "shut"
nodes = "ALL"
state = "DOWN"
CONF
cluster_up --conf "$T/spur.conf"
chmod 777 "$T"
cd "$T" || exit 1

# Priorities
a=$(sub -p shut) b=$(sub -p shut) c=$(sub -p shut)
ok "top of a list" scontrol top "$c,$b"
is "the first of it comes first" "$(squeue -h -p shut -S -p -o %i | tr '\n' ' ')" "$c $b $a "
j=$(sub -H -p shut)
scontrol update jobid="$j" priority=1
is "a priority releases a held job, and is the one it has" "$(squeue -h -j "$j" -o '%Q %r')" '1 PartitionDown'
is "nodes that waiting tasks take at least" "$(squeue -h -j "$(sub -H -n17)" -o %D)" 3
whole=$(sub -N3 --exclusive)
runs "$whole" >/dev/null
j=$(sub -p debug,urgent)
is "squeue -P sorts by the priority in each partition" "$(squeue -h -P -j "$j" -S -p,i -o %P | tr '\n' ' ')" 'urgent debug '
is "and the other way round" "$(squeue -h -P -j "$j" -S p,i -o %P | tr '\n' ' ')" 'debug urgent '
drop "$whole" "$j" "$a" "$b" "$c"

# Nodes
ok "a value for each node" scontrol update nodename=n1,n2 instanceid=a,b
is "each has its own" "$(scontrol -o show node 'n[1-2]' | grep -o 'InstanceId=[^ ]*' | tr '\n' ' ')" 'InstanceId=a InstanceId=b '
run scontrol update nodename=n1,n2 instanceid=a,b,c
is "their number must fit" "$code:$err" '1:instanceid has 3 values for 2 nodes'
scontrol update nodename=n1,n2 instanceid=
is "nothing empties it" "$(scontrol show node 'n[1-2]' | grep -c InstanceId)" 0
run scontrol update nodename=n1 gres=gpu:1
like "devices do not become fewer" "$code:$err" '^1:slurm_update error: Invalid generic resource'

# Reservations
run scontrol create reservation reservation=r starttime=now duration=10 users=root nodecnt=1 flags=MAINT,REPLACE
like "MAINT and REPLACE" "$code:$err" '^1:Invalid flags'
run scontrol create reservation reservation=r starttime=now duration=10 allowedpartitions=debug,-urgent nodecnt=1
like "partitions of both kinds" "$code:$err" '^1:AllowedPartitions names'
scontrol create reservation reservation=r starttime=now+1hour duration=10 users=root nodecnt=1 >/dev/null
run scontrol update reservation=r nodecnt=99
like "an update that is refused" "$code:$err" '^1:slurm_update error: '
scontrol delete reservation r

# A step is listed from its first moment; processes
is "show step inside of it" "$(srun sh -c 'scontrol -o show step $SLURM_JOB_ID.0 | cut -d" " -f1 | sed s/[0-9]*\\././')" StepId=.0
srun -t5 sh -c 'scontrol pidinfo $$; scontrol listjobs; scontrol liststeps; scontrol show slurmd; echo $SLURM_JOB_ID' >here
id=$(tail -1 here)
like "pidinfo" "$(cat here)" "^Slurm JobId=$id ends at 20[0-9T:-]+
slurm_get_rem_time is [0-9]+
JOBID *
$id"
like "show slurmd" "$(cat here)" "Active Steps             = [0-9.,a-z]*$id\.0"
is "getaddrs" "$(scontrol getaddrs n1 | cut -d: -f1)" n1
like "show daemons" "$(scontrol show daemons)" '^slurmctld '
is "entities of which there are none" "$(scontrol show federation; scontrol show burst; scontrol show bbstat; echo $?)" 0
is "!! repeats" "$(printf 'show hostlist a1,a2\n!!\nexit\n' | scontrol)" 'scontrol: a[1-2]
scontrol: a[1-2]
scontrol: '
run scontrol update stepid=1.0 timelimit=5
like "a step keeps its limit" "$code:$err" '^1:A step keeps its time limit'

# Signals go to the tasks, with --full to their children too; messages
cat >par.sh <<'END'
#!/bin/bash
trap 'echo parent' USR1
bash -c 'trap "echo child" USR1; echo ready; for i in $(seq 600); do sleep 0.1; done' &
for i in $(seq 600); do sleep 0.1; done
END
chmod 755 par.sh
j=$(submit -o par.out --wrap 'trap : USR1; srun ./par.sh; srun ./par.sh')
lines() { [ "$(grep -c "$1" par.out)" -ge "$2" ]; }
wait_for 20 lines ready 1
scancel -s USR1 "$j"
ok "the task has the signal" wait_for 20 lines parent 1
sleep 0.3
is "and not its child" "$(grep -c child par.out)" 0
scancel -f -s USR1 "$j"
ok "with --full the child too" wait_for 20 lines child 1
scontrol notify "$j" hello there
ok "notify writes into the output" wait_for 20 lines 'hello there' 1
scancel "$j"
run scontrol notify 99999999 hi
is "notify a job that is not there" "$code:$err" '1:job notify failure: Invalid job id specified'

# The answer to a requeue comes before the end of who asked
cat >again.sh <<'END'
#!/bin/bash
[ "$SLURM_RESTART_COUNT" -gt 0 ] && exit 0
srun bash -c 'trap : TERM; scontrol requeue $SLURM_JOB_ID; echo rc $? >>rcs'
END
: >rcs
chmod 666 rcs
for i in 1 2 3; do sbatch -Q --requeue -o /dev/null again.sh >/dev/null; done
answered() { [ "$(wc -l <rcs)" = 3 ]; }
wait_for 30 answered
is "requeue from inside" "$(sort -u rcs)" 'rc 0'

# Help
for command in sbatch srun salloc scancel squeue sinfo sprio sbcast sattach; do
    like "$command --help" "$($command --help | head -1)" "^Usage: $command \[OPTIONS\]"
    like "$command --help has a heading for itself" "$($command --help)" $'\nHelp options:\n'
    is "$command --usage is one line" "$($command --usage | wc -l)" 1
done
for command in sbatch salloc; do
    like "headings of $command" "$($command --help)" $'\nConstraint options:\n.*\nConsumable resources'
done
like "columns" "$(sbatch --help)" '  -b, --begin=time .*  -N, --nodes=N'
like "operands" "$(srun --usage):$(salloc --usage):$(sattach --usage):$(sbcast --usage):$(scancel --usage)" \
    'executable \[args\.\.\.\]:.* \[command \[args\.\.\.\]\]:.* <jobid\.stepid>:.* SOURCE DEST:.* \[job_id\[_array_id\]\[\.step_id\]\]$'
like "scontrol" "$(scontrol --help)" 'Valid <COMMAND> values are:.*show <ENTITY> \[<ID>\]'
like "sstat" "$(sstat --help)" '^sstat \[<OPTION>\].*Valid <OPTION> values are:'
done_testing
