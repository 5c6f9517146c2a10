#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# libraries.t - MPI programs of Debian's MPICH and Open MPI directly under srun, by PMI-2 and PMIx; and by mpiexec
# and mpirun inside an allocation, which start their daemons with srun
. "$(dirname "$0")/../lib.sh"
command -v mpicc.mpich >/dev/null || skip_all "MPICH is not here: tools/deps --mpi"
home=$(user_dir) here=$(cd "$(dirname "$0")" && pwd)
mpicc.mpich -o "$home/ring.mpich" "$here/ring.c"
cluster_up --nodes 3 --cpus 4
cd "$home"

ring() { # NAME PROGRAM NODES TASKS OPTION...: every rank knows its place, and all agree on the sum
    local name=$1 program=$2 nodes=$3 tasks=$4 want='' i
    shift 4
    run as_user srun -N$nodes -n$tasks --ntasks-per-node=$((tasks / nodes)) "$@" ./$program
    for ((i = 0; i < tasks; i++)); do want+="rank $i of $tasks token $((i + 1)) sum $((tasks * (tasks - 1) / 2)) on n$((i * nodes / tasks + 1))"$'\n'; done
    is "$name" "$code $(sort -V <<<"$out")" "0 ${want%$'\n'}"
}

ring "MPICH on one node" ring.mpich 1 2 --mpi=pmi2
ring "MPICH on three nodes" ring.mpich 3 6 --mpi=pmi2
run as_user srun -N3 -n3 --mpi=pmi2 ./ring.mpich abort 5
is "MPICH, MPI_Abort: the step's exit code" "$code" 5
run srun -N3 -n3 --mpi=pmi2 ./ring.mpich
is "MPICH, as root" "$code $(grep -c 'of 3 token . sum 3' <<<"$out")" "0 3"

openmpi() { command -v mpicc.openmpi >/dev/null && srun --mpi=list | grep -q pmix; }
if openmpi; then
    mpicc.openmpi -o ring.openmpi "$here/ring.c"
    export HOME=$home
    ring "Open MPI on one node" ring.openmpi 1 2 --mpi=pmix
    ring "Open MPI on three nodes" ring.openmpi 3 6 --mpi=pmix
    unlike "Open MPI, nobody removes the memory that others share" "$err" "shared memory"
    run srun -N3 -n3 --mpi=pmix ./ring.openmpi
    is "Open MPI, as root" "$code $(grep -c 'of 3 token . sum 3' <<<"$out")" "0 3"
    run as_user srun -N3 -n3 --mpi=pmix ./ring.openmpi abort 5
    is "Open MPI, MPI_Abort: the step's exit code" "$code" 5
    like "and words" "$err" "srun: error: n3: task 2: asked for the end of the step with code 5"
    run as_user srun -N3 -n3 --mpi=pmix ./ring.openmpi kill 1
    is "Open MPI, a rank is killed: the step ends" "$code" 137
    like "and says so" "$err" "srun: error: n2: task 1: ended without PMIx_Finalize"
    as_user srun -N3 -n3 --mpi=pmix ./ring.openmpi >one.out &
    run as_user srun -N3 -n3 --mpi=pmix ./ring.openmpi
    wait $!
    is "Open MPI, two steps at once" "$(cat one.out - <<<"$out" | grep -c 'of 3 token . sum 3')" 6
fi

inside() { # NAME LAUNCHER...: three ranks on three nodes
    local name=$1
    shift
    run as_user timeout 60 salloc -Q -N3 -n3 "$@"
    is "$name" "$code $(sort <<<"$out")" $'0 rank 0 of 3 token 1 sum 3 on n1\nrank 1 of 3 token 2 sum 3 on n2\nrank 2 of 3 token 3 sum 3 on n3'
}
inside "MPICH, mpiexec inside salloc" mpiexec.hydra ./ring.mpich
if command -v mpicc.openmpi >/dev/null; then
    [ -x ring.openmpi ] || mpicc.openmpi -o ring.openmpi "$here/ring.c"
    export HOME=$home
    inside "Open MPI, mpirun inside salloc" mpirun.openmpi ./ring.openmpi
    run as_user timeout 60 salloc -Q -N3 -n3 mpirun.openmpi ./ring.openmpi abort 6
    is "Open MPI, MPI_Abort under mpirun" "$code" 6
    printf '#!/bin/bash\nmpirun.openmpi ./ring.openmpi\n' >job.sh
    run as_user timeout 60 sbatch -W -N3 -n3 -o job.out job.sh
    is "Open MPI, mpirun in a batch job" "$code $(grep -c 'of 3 token . sum 3' job.out)" "0 3"
fi

# What the site says counts when srun is told nothing; launchers are not disturbed by it.
openmpi || done_testing
spur down --dir "$D" >/dev/null
printf '[jobs]\nmpi_default = "pmix"\n' >"$T/default.conf"
cluster_up --nodes 3 --cpus 4 --conf "$T/default.conf"
ring "mpi_default: Open MPI on three nodes" ring.openmpi 3 6
run as_user srun -N1 -n1 --mpi=none bash -c 'echo ${PMIX_RANK-none}'
is "mpi_default: --mpi=none" "$out" none
ring "mpi_default: MPICH with --mpi=pmi2" ring.mpich 3 3 --mpi=pmi2
inside "mpi_default: MPICH, mpiexec inside salloc" mpiexec.hydra ./ring.mpich
inside "mpi_default: Open MPI, mpirun inside salloc" mpirun.openmpi ./ring.openmpi
run as_user timeout 60 salloc -Q -N1 -n1 srun --overlap --external-launcher bash -c 'echo ${PMIX_RANK-none}'
is "--external-launcher" "$code $out" "0 none"
done_testing
