#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# survive.t - steps outlive spurd: killed and started again, they go on and no byte of theirs is lost
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 2 --cpus 4
cd "$(user_dir)"

# The process of a node's spurd.
pid_of() { for p in $(pgrep -x spurd); do tr '\0' ' ' <"/proc/$p/cmdline" | grep -q -- "-N $1 .*$D/" && echo "$p"; done; }
again() { # NODE [SECONDS [SIGNAL]]: ends its spurd and starts it again, so much later
    local pid
    pid=$(pid_of "$1")
    kill -"${3:-9}" "$pid"
    while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done
    sleep "${2:-0}"
    (. "$D/env"; cd /; spur up --dir "$D" >>"$T/up.log" 2>&1)
}

counts='i=0; while [ $i -lt 3000 ]; do echo "line $i of $SLURM_PROCID ................................................"; i=$((i + 1)); [ $((i % 300)) -ne 0 ] || sleep 0.2; done'
as_user srun -N2 -n2 bash -c "$counts" >all.out 2>all.err &
srun=$!
ok "the step runs" wait_for 10 grep -q "line 299 " all.out
again n2
ok "it goes on after a spurd was killed" wait_for 10 grep -q "line 899 of 1" all.out
again n1 0.3 TERM
wait $srun
is "srun ends well" "$?" 0
is "and says nothing" "$(cat all.err)" ""
for t in 0 1; do
    grep " of $t " all.out | sed 's/ of.*//; s/line //' >got.$t
    is "no line of task $t is lost, none comes twice" "$(seq 0 2999 | cmp - got.$t && echo same)" same
done

head -c 3000000 /dev/urandom >in.bin
as_user srun -N1 -n1 -w n2 bash -c 'head -c 1000000; sleep 2; cat' <in.bin >out.bin 2>bin.err &
srun=$!
ok "a binary stream begins" wait_for 10 test -s out.bin
again n2
wait $srun
is "standard input goes on too" "$?" 0
ok "there and back, byte for byte" cmp in.bin out.bin

as_user srun -N1 -n1 -w n1 bash -c 'sleep 2; exit 3' >/dev/null 2>exit.err &
srun=$!
ok "a step that will end while spurd is away" wait_for 10 pgrep -xf "sleep 2"
again n1 3
wait $srun
is "its exit code is not lost" "$?" 3

id=$(as_user sbatch --parsable -N2 -n2 -o job.out --wrap 'srun -n1 sleep 1000 & srun --overlap -n1 true; srun --overlap -n1 bash -c "echo \$SLURM_STEP_ID"; while [ ! -e more ]; do sleep 0.1; done; srun --overlap -n1 bash -c "echo \$SLURM_STEP_ID"; srun --exact -n2 -t 1 echo no & sleep 1; kill $!; wait $!; echo over')
ok "a job with steps" wait_for 10 grep -q . job.out
again n1
sleep 0.5
as_user touch more
ok "its manager was killed" wait_for 15 grep -q over job.out
like "numbers go on, and the share of the step that runs is still its own" "$(cat job.out)" $'^[0-9]+\n[0-9]+\n.*(Requested nodes are busy)'
is "numbers are not used twice" "$(grep -cE '^[0-9]+$' job.out) $(grep -E '^[0-9]+$' job.out | sort -u | wc -l)" "2 2"
scancel "$id"
ok "and ends" wait_for 40 sh -c "squeue -h -t all -j $id -o %T | grep -qE 'CANCELLED|COMPLETED'"
done_testing
