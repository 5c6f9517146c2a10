#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# pmix.t - srun --mpi=pmix: a task that speaks PMIx itself, over one node and three; aborts; what is left behind
. "$(dirname "$0")/../lib.sh"
flags=$(pkg-config --cflags --libs pmix 2>/dev/null) || skip_all "libpmix is not here: tools/deps --mpi"
srun --mpi=list | grep -q pmix || skip_all "this build has no PMIx"
home=$(user_dir)
ok "the test's task is built" gcc -Wall -o "$home/pmix" "$(dirname "$0")/pmix.c" $flags
cluster_up --nodes 3 --cpus 4
cd "$home"
six="-N3 -n6 --ntasks-per-node=2 --mpi=pmix"
act() { run as_user timeout 60 srun "$@"; }
lines() { # NAME COUNT PATTERN: so many lines of the output are like this, and the code is 0
    is "$1" "$code $(grep -c -- "$3" <<<"$out")" "0 $2"
}

act -N1 -n2 --mpi=pmix ./pmix talk
is "on one node" "$code $(sort <<<"$out")" $'0 rank 0 of 2 good 2\nrank 1 of 2 good 2'
act $six ./pmix talk
lines "on three nodes" 6 'of 6 good 6'
act $six ./pmix talk 100000
lines "much to say" 6 'of 6 good 6'
act $six ./pmix talk 4000000
is "too much at once: code" "$code" 1
like "and words" "$err" "the tasks have too much to say to each other at once for PMIx"
act $six ./pmix lazy
lines "what others put is fetched when it is wanted" 6 'of 6 good 6'
act $six --mpi=pmix_v4 -m cyclic ./pmix where
is "who is where" "$code $(sort <<<"$out")" "0 $(for r in 0 1 2 3 4 5; do
    n=$((r % 3)); echo "rank $r local $((r / 3))/2 peers $n,$((n + 3)) node $n of 3 host n$((n + 1)) last n3"; done)"
act $six ./pmix halves
lines "some tasks among themselves" 6 halves
act $six ./pmix group
lines "groups have numbers" 6 'group [1-9]'
act $six ./pmix names
lines "names are published, waited for, and taken back" 6 'found here by 5 then NOT-FOUND'
like "one name, once" "$out" "again DUPLICATE KEY"
act $six ./pmix event
lines "events reach the other nodes" 6 'heard 5'
act -N1 -n1 --mpi=pmix ./pmix spawn
is "more tasks are refused" "$code $out" "0 spawn: NOT-SUPPORTED"
like "in words" "$err" "slurmstepd: error: pmix: task 0: cannot start more tasks"

act $six ./pmix abort 9
is "abort: the step's exit code" "$code" 9
like "and words" "$err" "srun: error: n3: task 5: enough"
act $six ./pmix control
is "a task asks for the end" "$code" 1
act $six ./pmix leave 0
is "one that says nothing and goes: code" "$code" 1
like "and words" "$err" "n3: task 5: ended without PMIx_Finalize"
act $six ./pmix die
is "one that is killed: code" "$code" 137
like "and words" "$err" "n3: task 5: ended without PMIx_Finalize"
act -N3 -n3 --mpi=pmix ./pmix early
lines "a node whose tasks have left: nobody waits for it" 2 refused

run srun -N3 -n3 --mpi=pmix ./pmix talk
lines "as root" 3 'good 3'
run as_user env SLURM_MPI_TYPE=pmix srun -n1 bash -c 'echo $PMIX_RANK $PMIX_NAMESPACE'
like "SLURM_MPI_TYPE" "$out" '^0 slurm.pmix.[0-9]+.0$'
as_user srun $six ./pmix talk >one.out & first=$!
act $six ./pmix lazy
wait $first
is "two steps at once" "$(cat one.out - <<<"$out" | grep -c 'good 6')" 12
printf '#!/bin/bash\nsrun --mpi=pmix ./pmix talk\nsrun --mpi=pmix ./pmix lazy\n' >job.sh
as_user sbatch -W -N3 -n6 -o job.out job.sh >/dev/null
is "in a batch job" "$(grep -c 'good 6' job.out)" 12

run as_user srun -N1 -n1 --mpi=pmix bash -c 'dirname $PMIX_SERVER_TMPDIR; pgrep -P $PPID -x spurstepd-pmix; ./pmix abort 3'
is "its directory is the step's own" "$(basename "$(head -1 <<<"$out")")" 0.pmix
not_ok "it is gone with the step" test -e "$(head -1 <<<"$out")"
like "one process beside the tasks" "$(sed -n 2p <<<"$out")" '^[0-9]+$'
not_ok "which is gone too" test -e "/proc/$(sed -n 2p <<<"$out")"
run_dir=$(dirname "$(dirname "$(head -1 <<<"$out")")")
is "nothing is left of any step" "$(find "$run_dir" -name '*.pmix' | wc -l)" 0

# Inside an image the tasks see the step's directory too.
if as_user unshare -Urm true 2>/dev/null && python3 "$HERE/../t40-container/image.py" "$T" 2>/dev/null; then
    chmod -R a+rX "$T"
    export HOME=$home
    as_user spur image import "oci:$T/good:one" --name good >/dev/null
    act $six --container-image=good --container-mounts=/usr:/usr,/lib:/lib,/lib64:/lib64,/etc:/etc,"$home:$home" "$home/pmix" talk
    lines "inside an image" 6 'of 6 good 6'
fi
done_testing
