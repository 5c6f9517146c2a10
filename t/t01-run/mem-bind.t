#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# mem-bind.t - --mem-bind: the kernel's policy of each task, messages, variables, from srun, sbatch and salloc
. "$(dirname "$0")/../lib.sh"
[ -r /proc/self/numa_maps ] || skip_all "the kernel has no NUMA policies"
cluster_up --nodes 2 --cpus 4
cd "$(user_dir)"
nodes=$(cat /sys/devices/system/node/has_memory 2>/dev/null || echo 0)
first=${nodes%%[-,]*}
# What the kernel says of a process: default, bind:0, prefer:0.
policy='cut -d" " -f2 /proc/self/numa_maps | sort | uniq -c | sort -rn | sed "1s/.* //;q"'

for user in "" as_user; do
    u=${user:-root}
    run $user srun sh -c "$policy"
    is "$u: any memory when nothing is said" "$out" default
    run $user srun -n2 --mem-bind=local sh -c "$policy"
    is "$u: local" "$(sort -u <<<"$out")" "bind:$nodes"
    run $user srun --mem-bind="map_mem:$first" sh -c "$policy"
    is "$u: a map" "$out" "bind:$first"
    run $user srun --mem-bind="mask_mem:$(printf '0x%x' $((1 << first)))" sh -c "$policy"
    is "$u: a mask" "$out" "bind:$first"
    run $user srun --mem-bind="prefer,map_mem:$first" sh -c "$policy"
    is "$u: preferred" "$out" "prefer:$first"
done
run srun -n1 --mem-bind=rank sh -c "$policy"
is "by rank" "$out" "bind:0"
run srun --mem-bind=none sh -c "$policy"
is "none" "$out" default
run srun -n2 --mem-bind=verbose,local true
is "verbose, for each task" "$(grep -c "^mem-bind=LOC - n1, task  [01]  [01] \[[0-9]*\]: mask 0x[0-9a-f]* set$" <<<"$err")" 2
run srun --mem-bind="verbose,prefer,map_mem:$first" true
like "verbose and preferred" "$err" "mem-bind PREFER MAP - n1, task  0  0 \[[0-9]+\]: mask 0x[0-9a-f]+ set"
run srun --mem-bind=v,none true
like "verbose and not bound" "$err" "mem-bind=NONE - n1, task  0  0 \[[0-9]+\]: mask 0x[0-9a-f]+$"
run srun --mem-bind=map_mem:900 sh -c "$policy"
is "a node that is not there: it runs" "$code $out" "0 default"
like "and says so" "$err" "slurmstepd: error: mem-bind: NUMA node 900 does not exist: task 0 is not bound"
run srun --mem-bind=sort,verbose true
is "sort is not of this machine: it runs" "$code" 0
SLURM_MEM_BIND=local run srun sh -c "$policy"
is "by the environment" "$out" "bind:$nodes"
SLURM_MEM_BIND=verbose run srun true
like "SLURM_MEM_BIND=verbose says it for every command" "$err" "mem-bind=NONE"
run srun --mem-bind="verbose,map_mem:$first" sh -c 'echo "$SLURM_MEM_BIND|$SLURM_MEM_BIND_VERBOSE|$SLURM_MEM_BIND_TYPE|$SLURM_MEM_BIND_LIST|$SLURM_MEM_BIND_PREFER"'
is "variables" "$out" "verbose,map_mem:$first|verbose|map_mem:|$first|"
run salloc -Q --mem-bind=local srun sh -c "$policy"
is "steps of salloc have it too" "$out" "bind:$nodes"
run sbatch -W -o o --mem-bind=local --wrap "srun sh -c '$policy'"
is "and steps of a script" "$(cat o)" "bind:$nodes"
run srun --mem-bind=near true
is "another word: exit" "$code" 255
like "another word" "$err" 'srun: error: unrecognized --mem-bind argument "near"'
for o in --mem-bind --cpu-bind --hint; do
    run srun $o=help
    is "$o=help: exit" "$code" 0
    like "$o=help" "$out" "^$o="
done
done_testing
