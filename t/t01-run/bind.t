#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# bind.t - which CPUs tasks are bound to: masks, messages, variables
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 2 --cpus 4
cd "$(user_dir)"

# The CPUs are only configured here, so masks are worked out and said.
masks() { sed -n 's/^cpu-bind=\(.*\) - .*, task *\([0-9]*\) .*: mask \(0x[0-9a-f]*\).*/\2:\1:\3/p' | sort -n | tr '\n' ' '; }
for user in "" as_user; do
    u=${user:-root}
    run $user srun -n2 --cpu-bind=verbose,cores true
    is "$u: cores" "$(masks <<<"$err")" "0:MASK:0x1 1:MASK:0x2 "
done
like "the message" "$err" "cpu-bind=MASK - n1, task  0  0 \[[0-9]+\]: mask 0x1 "
run srun -n2 -c2 --cpu-bind=verbose,threads true
is "two CPUs each" "$(masks <<<"$err")" "0:MASK:0x3 1:MASK:0xc "
run srun -n2 --cpu-bind=verbose,map_cpu:1,0 true
is "a map" "$(masks <<<"$err")" "0:MAP :0x2 1:MAP :0x1 "
run srun -n2 --cpu-bind=verbose,mask_cpu:0x3,0x2 true
is "masks" "$(masks <<<"$err")" "0:MASK:0x3 1:MASK:0x2 "
run srun -n2 --cpu-bind=verbose,rank true
is "by rank" "$(masks <<<"$err")" "0:RANK:0x1 1:RANK:0x2 "
run srun -n1 --cpu-bind=none bash -c 'echo "$SLURM_CPU_BIND_TYPE"'
is "none" "$out$err" "none"
run srun -n2 --cpu-bind=cores bash -c 'echo "$SLURM_CPU_BIND $SLURM_CPU_BIND_VERBOSE $SLURM_CPU_BIND_TYPE $SLURM_CPU_BIND_LIST"'
is "variables" "$(sort -u <<<"$out")" "quiet,mask_cpu:0x1,0x2 quiet mask_cpu: 0x1,0x2"
run srun --cpu-bind=map_cpu:9 true
is "outside of the step: exit" "$code" 1
like "outside of the step" "$err" "Unable to satisfy cpu bind request"
run srun --cpu-bind=bogus true
like "no such way" "$err" 'unrecognized --cpu-bind argument "bogus"'
printf 'n2\nn1\nn2\n' >hosts
run salloc -Q -N2 --ntasks-per-node=2 bash -c 'SLURM_HOSTFILE=$PWD/hosts srun -n3 -m arbitrary -l bash -c "echo \$SLURMD_NODENAME"'
is "arbitrary" "$(sort <<<"$out" | tr '\n' ,)" "0: n2,1: n1,2: n2,"
run salloc -Q -N1 -n4 bash -c 'srun -n1 --exact bash -c "echo \$SLURM_CPU_BIND_LIST; sleep 2" & srun -n1 --exact bash -c "echo \$SLURM_CPU_BIND_LIST; sleep 2"; wait'
is "two steps at once have different CPUs" "$(sort <<<"$out" | tr '\n' ,)" "0x1,0x2,"
done_testing
