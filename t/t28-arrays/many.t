#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Many tasks of an array that are named at once: each is done once, those that wait together need no records.
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
state = "DOWN"
CONF
cluster_up --nodes 1 --conf "$T/conf"
cd "$T"
array() { sbatch --parsable -o /dev/null --array="$1" --wrap true; }
lines() { squeue -h -j "$1" | wc -l; }
held() { squeue -h -r -j "$1" -o '%K %r' | awk '/JobHeld/ { print $1 }' | sort -n; }

a=$(array 0-2999)
run scontrol hold "${a}_[10-1509]"
is 'half of the tasks are held' "$code:$err" '0:'
is 'those, and no others' "$(held "$a" | md5sum)" "$(seq 10 1509 | md5sum)"
is 'the others still are one' "$(squeue -h -j "$a" -o %i | grep -c '\[')" 1
is 'none is lost' "$(squeue -h -r -j "$a" | wc -l)" 3000
run scontrol update "JobId=${a}_[10-1509:2]" Nice=77
is 'every second of them is changed' "$code:$(squeue -h -r -j "$a" -O nice:8 | grep -c 77)" '0:750'
run scontrol release "${a}_[10-1509]"
is 'released' "$code:$(held "$a" | wc -l)" '0:0'
run scancel "${a}_[5-2504]"
is 'most are cancelled, with records and without' "$code:$(squeue -h -r -t PD -j "$a" -o %K | sort -n | md5sum)" \
    "0:$( (seq 0 4; seq 2505 2999) | md5sum)"

b=$(array 0-4999)
run scontrol hold "${b}_[0-4999]"
is 'all tasks at once are the array' "$code:$(lines "$b"):$(held "$b" | wc -l)" '0:1:5000'
run scancel "${b}_[0-4998]"
is 'cancelled ones need no record' "$code:$(squeue -h -t PD -j "$b" -o %i)" "0:${b}_[4999]"
run scontrol hold "${b}_[0-4998]"
is 'what is done already cannot be held' "$code" 1
run scontrol hold "${b}_[0-9000]"
like 'nor tasks that it does not have' "$code:$err" '^1:.*Invalid job id'
done_testing
