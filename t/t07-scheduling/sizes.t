#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# sizes.t - how many nodes a job gets: lists of numbers (-N 1,3,5-9), and the MinNodes and MaxNodes of partitions
. "$(dirname "$0")/../lib.sh"

cat >"$T/spur.conf" <<'END'
cluster_name = "sizes"
[scheduler]
config_overrides = true
[access]
disable_root_jobs = false
[[nodes]]
names = "n[1-6]"
cpus = 2
memory_mb = 1000
[[partitions]]
name = "debug"
nodes = "ALL"
default = true
[[partitions]]
name = "most2"
nodes = "ALL"
max_nodes = 2
[[partitions]]
name = "least3"
nodes = "ALL"
min_nodes = 3
END
cluster_up --conf "$T/spur.conf"
cd "$T" || exit 1
nodes() { wait_for 20 job_is "$1" RUNNING && squeue -h -j "$1" -o %D; }
numbers() { scontrol -o show job "$1" | grep -o ' NumNodes=[^ ]*'; }

job=$(sub -N 1,3,5)
is 'the largest that is there' "$(nodes "$job")" 5
drop "$job"
other=$(sub -w n1 --exclusive)
runs "$other" >/dev/null
more=$(sub -w n2 --exclusive)
runs "$more" >/dev/null
job=$(sub --exclusive -N 1,3,5)
is 'none between: three of four' "$(nodes "$job")" 3
drop "$job"
job=$(sub --exclusive -N 1-6:5)
is 'every fifth: one or six' "$(nodes "$job")" 1
drop "$job"
job=$(sub --exclusive -N 3,5 --use-min-nodes)
is 'the smallest, when that was asked for' "$(nodes "$job")" 3
drop "$job"
job=$(sub --exclusive -N 1,5,6 -n 4)
ok 'four tasks go on one node or on five: it waits' waits "$job" Resources
is 'what it asks for is shown' "$(numbers "$job")" ' NumNodes=1,5,6'
like '... in JSON too' "$(scontrol show job "$job" --json)" '"job_size_str": *"1,5,6"'
scontrol hold "$job"
scontrol update JobId="$job" NumNodes=2,6
is 'and can be changed' "$(numbers "$job")" ' NumNodes=2,6'
scontrol release "$job"
is '... then it fits' "$(nodes "$job")" 2
is 'what it has is shown then' "$(numbers "$job")" ' NumNodes=2'
drop "$job"
job=$(sub --exclusive -N 5,6)
ok 'it waits for the smallest' waits "$job" Resources
scontrol update JobId="$job" NumNodes=3-4
is 'a range: every number again' "$(nodes "$job")" 4
drop "$job"
job=$(sub --exclusive -N 5,6)
waits "$job" Resources
like 'when it starts is known' "$(wait_for 20 eval '[ "$(squeue --start -h -j '"$job"' -o %S)" != N/A ]'; squeue --start -h -j "$job" -o %S)" '^20'
scancel "$other"
is 'and it starts with as many' "$(nodes "$job")" 5
drop "$job" "$more"
job=$(sub -N 2,6 -w 'n[1-4]')
is 'all that it names' "$(nodes "$job")" 6
drop "$job"

for wrong in 1, 0,2 3-1,5 1,x 1-4:0; do
    run sbatch -N "$wrong" -o /dev/null --wrap true
    is "-N $wrong" "$code $(head -1 <<<"$err")" "255 sbatch: error: \"$wrong\" is not a valid node count"
done
run sbatch -N 7,9 -o /dev/null --wrap true
like 'more than there ever are' "$code $err" '^1 .*Requested node configuration is not available|^1 .*node count'
run srun -N 2,4 bash -c 'echo $SLURM_JOB_NUM_NODES'
is 'srun gets the largest' "$(sort -u <<<"$out")" 4
run salloc -Q -N 3,4 srun -N 1,3,9 bash -c 'echo $SLURM_STEP_NUM_NODES'
is 'a step takes the largest of its allocation' "$(sort -u <<<"$out")" 3
run salloc -Q -N 2 srun -N 3,4 true
like 'or says that there is none' "$code $err" '^1 .*Only allocated 2 nodes asked for 3'

job=$(sub -p most2 -N 1-4)
is 'MaxNodes of a partition holds' "$(nodes "$job")" 2
drop "$job"
job=$(sub -p most2 -n 3)
is '... for tasks' "$(nodes "$job")" 2
drop "$job"
job=$(sub -p least3 -n 1)
is 'MinNodes of a partition holds' "$(nodes "$job")" 3
drop "$job"
never=$(sub -p most2 -n 5)
ok 'more tasks than so few nodes could run' wait_for 20 eval '[ "$(squeue -h -j $never -o %r)" = PartitionNodeLimit ]'
like 'is never' "$(spur explain "$never")" 'it needs 3 nodes; partition most2 takes jobs of 1 to 2 nodes.*
  expected start: never'
done_testing
