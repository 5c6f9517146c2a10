#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# groups: asan
# Programs written for libslurm: compiled against our headers for each API number, run with our library.
. "$(dirname "$0")/../lib.sh"
built=$SPUR_BUILD/src/compat
for api in 38 42 45; do
    run "$built/$api/client" offline
    is "$api: hostlists, lists, errors" "$out $code" " 0"
done
cluster_up --nodes 2 --cpus 4
cd "$T"
for api in 38 42 45; do
    run "$built/$api/client" cluster
    is "$api: jobs, allocations, nodes, partitions, reservations, threads, forks" "$out $code" " 0"
    run "$built/$api/client" seed
    like "$api: the README's example as printed" "$out" "^Submitted job [0-9]+$"
    id=${out##* }
    is "$api: is that job" "$(scontrol show job "$id" | grep -o 'JobName=my_job')" "JobName=my_job"
done

# ---- print functions write what scontrol does ----
held=$(sbatch --parsable -H -J held --comment="a b" -t 10 -c 2 --mem=100 --gres=none -o /dev/null --wrap true)
running=$(sbatch --parsable -J runs -N 2 -o /dev/null --wrap 'sleep 300')
wait_for 20 job_is "$running" RUNNING
strip() { grep -vE 'SubmitLine=|RunTime=|LastBusyTime=|CPULoad=|FreeMem=|LastSchedEval=|CfgTRES=|AllocTRES=|CoreSpec|^ *Partitions=|GresUsed'; }
"$built/38/client" jobs | strip >"$T/ours"
scontrol show job | strip >"$T/theirs"
is "slurm_print_job_info is scontrol show job" "$(diff "$T/ours" "$T/theirs")" ""
"$built/38/client" nodes | strip >"$T/ours"
scontrol show node | strip >"$T/theirs"
is "slurm_print_node_table is scontrol show node" "$(diff "$T/ours" "$T/theirs")" ""
"$built/38/client" partitions | strip >"$T/ours"
scontrol show partition | strip >"$T/theirs"
is "slurm_print_partition_info is scontrol show partition" "$(diff "$T/ours" "$T/theirs")" ""
scancel "$held" "$running"

# ---- without a controller ----
spur down --dir "$D" >/dev/null
run timeout 20 "$built/38/client" many 1
like "a controller that is not there is an error" "$out" "Unable to contact slurm controller"
done_testing
