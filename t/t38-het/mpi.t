#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# mpi.t - one MPI job over the components of a heterogeneous job
. "$(dirname "$0")/../lib.sh"
home=$(user_dir)
ok "the test's task is built" gcc -Wall -Werror -o "$home/pmi" "$(dirname "$0")/../t35-mpi/pmi.c"
cluster_up --nodes 3 --cpus 4
cd "$home"
for v in 1 2; do
    run as_user timeout 60 srun --mpi=pmi2 -n2 -w n1 ./pmi $v talk : -n4 -N2 --ntasks-per-node=2 -w n[2-3] ./pmi $v talk
    is "PMI-$v over two components" "$code $(grep -c 'of 6 good 6 absent 1 map (vector,(0,3,2))' <<<"$out")" "0 6"
    run as_user timeout 60 srun --mpi=pmi2 -n1 -w n1 ./pmi $v talk : -n1 -w n1 ./pmi $v talk
    is "PMI-$v, both on one node" "$code $(grep -c 'of 2 good 2 absent 1' <<<"$out")" "0 2"
    run as_user timeout 60 srun --mpi=pmi2 -n2 ./pmi $v big 40 : -n2 ./pmi $v big 40
    is "PMI-$v, much to say" "$code $(grep -c 'good 160$' <<<"$out")" "0 4"
    run as_user timeout 60 srun --mpi=pmi2 -n2 -w n1 ./pmi $v abort 7 : -n2 -w n2 ./pmi $v abort 7
    is "PMI-$v, abort ends all components" "$code" 7
    run as_user timeout 60 srun --mpi=pmi2 -n2 -w n1 ./pmi $v leave : -n2 -w n2 ./pmi $v leave
    like "PMI-$v, one that others wait for" "$code $err" "^1 .*n2: task 3: task 3 ended while others wait for it"
done
run srun --mpi=pmi2 true : --mpi=none true
like "one kind for all" "$code $err" "^1 srun: error: --mpi is the same for all components"
printf '#!/bin/bash\n#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n2 -N2\nsrun --mpi=pmi2 --het-group=0-1 ./pmi 2 talk\n' >job.sh
as_user timeout 60 sbatch -W -o job.out job.sh >/dev/null
is "in a batch job" "$(grep -c 'of 3 good 3' job.out)" 3
if flags=$(pkg-config --cflags --libs pmix 2>/dev/null) && srun --mpi=list | grep -q pmix; then
    ok "the test's task for PMIx is built" gcc -Wall -o pmix "$HERE/../t35-mpi/pmix.c" $flags
    run as_user timeout 60 srun --mpi=pmix -n2 -w n1 ./pmix talk : -n4 -N2 --ntasks-per-node=2 -w n[2-3] ./pmix talk
    is "PMIx over two components" "$code $(grep -c 'of 6 good 6' <<<"$out")" "0 6"
    run as_user timeout 60 srun --mpi=pmix -n2 -w n1 ./pmix lazy : -n1 -w n1 ./pmix lazy
    is "PMIx, both on one node" "$code $(grep -c 'of 3 good 3' <<<"$out")" "0 3"
fi
if command -v mpicc.mpich >/dev/null; then
    mpicc.mpich -o ring "$HERE/../t35-mpi/ring.c"
    run as_user timeout 60 srun --mpi=pmi2 -n2 -w n1 ./ring : -n2 -w n2 ./ring : -n1 -w n3 ./ring
    is "MPICH: one world" "$code $(sort <<<"$out" | cut -d' ' -f1-8 | tr '\n' ,)" \
        "0 rank 0 of 5 token 1 sum 10,rank 1 of 5 token 2 sum 10,rank 2 of 5 token 3 sum 10,rank 3 of 5 token 4 sum 10,rank 4 of 5 token 5 sum 10,"
fi
done_testing
