#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# pmi2.t - srun --mpi=pmi2: both dialects, over one node and three; aborts; what srun says of --mpi
. "$(dirname "$0")/../lib.sh"
home=$(user_dir)
ok "the test's task is built" gcc -Wall -Werror -o "$home/pmi" "$(dirname "$0")/pmi.c"
cluster_up --nodes 3 --cpus 4
cd "$home"

run srun --mpi=list
like "--mpi=list" "$out" $'^MPI plugin types are...\n\tnone\n\tpmi2'
run as_user srun --mpi=nosuch true
is "a type that there is not: code" "$code" 1
like "and words" "$err" "srun: error: Couldn't find the specified plugin name for mpi/nosuch looking at all files.*srun: error: Invalid MPI type 'nosuch', --mpi=list for acceptable types"
run as_user srun --mpi=none bash -c 'echo ${PMI_FD-none}'
is "without: no PMI" "$out" none

six="-N3 -n6 --ntasks-per-node=2 --mpi=pmi2"
for v in 1 2; do
    run as_user srun -N1 -n2 --mpi=pmi2 ./pmi $v talk
    is "PMI-$v on one node" "$(sort <<<"$out")" $'rank 0 of 2 good 2 absent 1 map (vector,(0,1,2))\nrank 1 of 2 good 2 absent 1 map (vector,(0,1,2))'
    run as_user srun $six ./pmi $v talk
    is "PMI-$v on three nodes" "$code $(grep -c 'of 6 good 6 absent 1 map (vector,(0,3,2))' <<<"$out")" "0 6"
    run as_user srun $six -m cyclic ./pmi $v talk
    is "PMI-$v, ranks dealt around" "$code $(grep -c 'of 6 good 6 absent 1 map (vector,(0,3,1),(0,3,1))' <<<"$out")" "0 6"
    run as_user srun $six ./pmi $v big 60
    is "PMI-$v, much to say" "$code $(grep -c 'good 360$' <<<"$out")" "0 6"
    run as_user srun -N3 -n3 --mpi=pmi2 ./pmi $v names
    is "PMI-$v, names are published" "$code $(grep -c 'port tag' <<<"$out")" "0 3"
    run as_user srun -N1 -n1 --mpi=pmi2 ./pmi $v spawn
    like "PMI-$v, more tasks are refused in words" "$out" "rc=-1.*not.supported"
    run as_user srun $six ./pmi $v abort 7
    is "PMI-$v, abort: the step's exit code" "$code" 7
    run as_user srun $six ./pmi $v leave
    is "PMI-$v, one that others wait for ends: code" "$code" 1
    like "and words" "$err" "n3: task 5: task 5 ended while others wait for it"
    codes=
    for _ in {1..15}; do # its supervisor ends with it, and the others may only begin to wait
        run as_user timeout 30 srun -N3 -n3 --mpi=pmi2 ./pmi $v leave
        codes+=$code
    done
    is "PMI-$v, the only one of its node" "$codes" 111111111111111
    run as_user srun -N1 -n1 --mpi=pmi2 ./pmi $v nonsense
    is "PMI-$v, nonsense costs the socket" "$out" "rank 0 closed 1"
done
run as_user srun -N2 -n4 --ntasks-per-node=2 --mpi=pmi2 ./pmi 2 attr
is "attributes of a node are waited for" "$(sort <<<"$out")" $'rank 0 attr n1 node n1\nrank 1 attr n1 node n1\nrank 2 attr n2 node n2\nrank 3 attr n2 node n2'
run as_user env SLURM_MPI_TYPE=pmi2 srun -n1 bash -c 'echo $PMI_RANK/$PMI_SIZE'
is "SLURM_MPI_TYPE" "$out" 0/1
run srun -N3 -n3 --mpi=pmi2 ./pmi 2 talk
is "as root" "$code $(grep -c 'good 3' <<<"$out")" "0 3"
printf '#!/bin/bash\nsrun --mpi=pmi2 ./pmi 1 talk\n' >job.sh
as_user sbatch -W -N3 -n6 -o job.out job.sh >/dev/null
is "in a batch job" "$(grep -c 'good 6' job.out)" 6
done_testing
