#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# spawn.t - MPI_Comm_spawn: steps do not grow, programs hear it at once; mpirun inside an allocation starts more
. "$(dirname "$0")/../lib.sh"
home=$(user_dir)
cluster_up --nodes 3 --cpus 4
did=0
if command -v mpicc.mpich >/dev/null && mpicc.mpich -o "$home/spawn.mpich" "$HERE/spawn.c"; then
    cd "$home" || exit 1
    run as_user timeout 60 srun --mpi=pmi2 -N2 -n2 ./spawn.mpich
    is "MPICH under srun: every rank hears that it cannot" "$code $(grep -c '^rank [01] cannot: ' <<<"$out")" "7 2"
    did=1
fi
if command -v mpicc.openmpi >/dev/null && srun --mpi=list | grep -q pmix && mpicc.openmpi -o "$home/spawn.openmpi" "$HERE/spawn.c"; then
    cd "$home" || exit 1
    run as_user timeout 60 srun --mpi=pmix -N2 -n2 ./spawn.openmpi
    is "Open MPI under srun: every rank hears that it cannot" "$code $(grep -c '^rank [01] cannot: MPI_ERR_SPAWN' <<<"$out")" "7 2"
    like "and it is said why" "$err" "pmix: task [01]: cannot start more tasks \(MPI_Comm_spawn, PMIx_Spawn\): steps do not grow"
    run as_user timeout 90 salloc -Q -N3 -n3 mpirun.openmpi -n 1 ./spawn.openmpi
    is "Open MPI under mpirun in an allocation: they start" "$code $out" "0 rank 0: children say 3"
    did=1
fi
[ $did -eq 1 ] || skip_all "no MPI is here: tools/deps --mpi"
done_testing
