#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# How an array is written, shown, and what is refused: one line until its tasks are asked for.
# groups: asan
. "$(dirname "$0")/../lib.sh"
cat >"$T/conf" <<CONF
[scheduler]
config_overrides = true
[jobs]
max_array_size = 100001
[[nodes]]
names = "n1"
cpus = 4
memory_mb = 4000
[[partitions]]
name = "debug"
default = true
nodes = "ALL"
CONF
cluster_up --nodes 1 --conf "$T/conf"
cd "$T"
held() { sbatch --parsable -H -o /dev/null "$@" --wrap true; }
ids() { squeue -h -o %i "$@" | tr '\n' ' ' | sed 's/ $//'; }
show() { scontrol -o show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p" | sort -u | tr '\n' ' ' | sed 's/ $//'; }

a=$(held --array='0-99:2%5' -J steps)
is 'an array is one line, its step and throttle shown' "$(ids -j "$a")" "${a}_[0-98:2%5]"
is 'its tasks are lines with -r' "$(squeue -h -r -j "$a" | wc -l)" 50
is 'each with its own index' "$(squeue -h -r -j "$a" -o '%i %K %F' | sed -n '1p;50p')" "${a}_0 0 $a
${a}_98 98 $a"
is 'also by the environment' "$(SQUEUE_ARRAY=1 squeue -h -j "$a" | wc -l)" 50
is 'one task of it' "$(ids -j "${a}_4")" "${a}_4"
is 'several tasks of it' "$(ids -r -j "${a}_4,${a}_8")" "${a}_4 ${a}_8"
run squeue -h -j "${a}_5"
is 'a task that it does not have' "$code$out$err" "1slurm_load_jobs error: Invalid job id specified"
like 'scontrol shows it as one' "$(scontrol -o show job "$a")" "JobId=$a ArrayJobId=$a ArrayTaskId=0-98:2%5 ArrayTaskThrottle=5 JobName=steps"
is 'and one of its tasks' "$(show "${a}_4" ArrayTaskId)" 4
run scontrol show job "${a}_5"
is 'not what it does not have' "$code:$err$out" "1:slurm_load_jobs error: Invalid job id specified"

b=$(held -a '9,1-3,20-40:10' -J list)
is 'lists are put in order' "$(ids -j "$b")" "${b}_[1-3,9,20,30,40]"
is 'an overlap counts once' "$(ids -r -j "$(held -a 1-3,2-4)" | wc -w)" 4
is 'one task is shown alone' "$(ids -j "$(held -a 7)")" "$(squeue -h -S -i -o %F | head -n 1)_[7]"
long=$(held -a "$(seq -s, 1 3 400)")
line=$(squeue -h -j "$long" -o '%i')
like 'a long list is cut' "$line" '\.\.\.\]$'
ok 'at 64 characters as in Slurm' [ "${#line}" -lt 90 ]
like 'SLURM_BITSTR_LEN=0 shows it whole' "$(SLURM_BITSTR_LEN=0 squeue -h -j "$long" -o %i)" ',400\]$'
like 'a number shows so many characters' "$(SLURM_BITSTR_LEN=10 squeue -h -j "$long" -o %i)" '_\[1,4,7'

refused_array() { # NAME ARRAY
    run sbatch -a "$2" --wrap true
    like "$1 is refused" "$code $err" '^1 .*sbatch: error: Batch job submission failed: Invalid job array specification$'
}
refused_array 'an index past MaxArraySize' 1-100001
refused_array 'a range that goes back' 5-1
refused_array 'words' abc
refused_array 'a throttle of nothing' '1-5%'
refused_array 'a step of nothing' 1-9:0
refused_array 'a negative index' -5

# What is said about one task stays with it.
scontrol update job="${b}_2" timelimit=7
is 'a change of one task' "$(squeue -h -r -j "$b" -o '%K %l' | grep -c ' 7:00$')" 1
is 'takes it out of the line' "$(ids -j "$b" | tr ' ' '\n' | sort | tr '\n' ' ')" "${b}_2 ${b}_[1,3,9,20,30,40] "
scontrol update job="${b}_[20-40:10]" nice=5
is 'several at once' "$(squeue -h -r -j "$b" -o '%K' | wc -l)" 7
scancel "${b}_[1-3]"
is 'cancelled tasks are gone' "$(squeue -h -r -j "$b" -o %K | sort -n | tr '\n' ' ')" '9 20 30 40 '
run scancel "${b}_77"
is 'a task that is not there is silent' "$code$err" 0
scontrol update job="$a" arraytaskthrottle=9
is 'the throttle changes' "$(ids -j "$a") $(show "$a" ArrayTaskThrottle)" "${a}_[0-98:2%9] 9"
scontrol update job="$a" arraytaskthrottle=0
is 'and is taken away' "$(ids -j "$a")" "${a}_[0-98:2]"
scontrol update job="$a" arraytaskthrottle=9
run scontrol update job="$(held)" arraytaskthrottle=2
like 'only of an array' "$code $err" '^1 .*[Aa]rray'

# A hundred thousand tasks are one record until something is said about them.
big=$(held --array=0-99999%100)
is 'a big array' "$(ids -j "$big")" "${big}_[0-99999%100]"
is 'has all its tasks' "$(squeue -h -r -j "$big" -o %K | wc -l)" 100000
scancel "${big}_[10-99989]"
is 'most of them go at once' "$(ids -j "$big")" "${big}_[0-9,99990-99999%100]"
scancel "$big"
is 'and the rest' "$(ids -j "$big")" ''
is 'JSON tells the same' "$(squeue --json -j "$a" | python3 -c 'import json,sys; j=json.load(sys.stdin)["jobs"]; print(len(j), j[0]["array_job_id"]["number"], j[0]["array_task_string"])')" "1 $a 0-98:2%9"
done_testing
