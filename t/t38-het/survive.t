#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# survive.t - heterogeneous jobs when something is slow or dies: prologs, spurd, a node, the controller
. "$(dirname "$0")/../lib.sh"
cat >"$T/prolog" <<END
#!/bin/bash
[ "\$SLURMD_NODENAME" != n3 ] || while [ -e "$T/slow" ]; do sleep 0.05; done
END
chmod 755 "$T/prolog"
printf '[hooks]\nprolog = "%s"\n' "$T/prolog" >"$T/extra.toml"
cluster_up --nodes 4 --cpus 4 --conf "$T/extra.toml"
cd "$(user_dir)"
states() { squeue -h -t all -j "$1" -o '%i=%T' | sort | tr '\n' ' '; }
all_are() { [ "$(states $1)" = "$1+0=$2 $1+1=$2 " ]; }

# ---- a node that takes its time ----
touch "$T/slow"
id=$(as_user sbatch --parsable -o ready.out -w n1 -n1 : -w n3 -n1 --wrap 'echo began; srun --het-group=0-1 bash -c "echo \$SLURMD_NODENAME"')
prepares() { [ "$(squeue -h -t all -j $id+1 -o %T)" = CONFIGURING ]; }
ok "a component is being prepared" wait_for 30 prepares
first_runs() { [ "$(squeue -h -t all -j $id+0 -o %T)" = RUNNING ]; }
ok "the other is ready" wait_for 30 first_runs
as_user timeout 60 salloc -Q -w n2 -n1 : -w n3 -n1 srun -l --het-group=0-1 bash -c 'echo $SLURMD_NODENAME' >salloc.out 2>&1 &
salloc=$!
queued() { [ "$(squeue -h -o %i | grep -c '+1$')" = 2 ]; }
ok "salloc waits for the same node" wait_for 30 queued
is "the script has not begun" "$(cat ready.out 2>/dev/null)" ""
rm -f "$T/slow"
ok "it runs when all are ready" wait_for 30 all_are $id COMPLETED
is "and a step over both works at once" "$(sort ready.out | tr '\n' ' ')" "began n1 n3 "
wait $salloc
is "salloc's too" "$? $(sort salloc.out | tr '\n' ' ')" "0 0: n2 1: n3 "

# ---- spurd of the second component's nodes ----
pid_of() { for p in $(pgrep -x spurd); do tr '\0' ' ' <"/proc/$p/cmdline" 2>/dev/null | grep -q -- "-N $1 .*$D/" && echo "$p"; done; }
again() {
    local pid
    pid=$(pid_of "$1")
    kill -9 "$pid"
    while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done
    (. "$D/env"; cd /; spur up --dir "$D" >>"$T/up.log" 2>&1)
}
counts='i=0; while [ $i -lt 1500 ]; do echo "line $i of $SLURM_PROCID ....................."; i=$((i + 1)); [ $((i % 300)) -ne 0 ] || sleep 0.3; done'
as_user srun -w n1 -n1 bash -c "$counts" : -w n[2-3] -N2 -n2 bash -c "$counts" >all.out 2>all.err &
srun=$!
ok "a step over two components" wait_for 30 eval 'grep -q "line 299 of 1" all.out && grep -q "line 299 of 2" all.out'
again n2 # the second component's manager
ok "it goes on" wait_for 30 grep -q "line 899 of 1" all.out
again n3
wait $srun
is "srun ends well" "$?" 0
for t in 0 1 2; do
    grep " of $t " all.out | sed 's/ of.*//; s/line //' >got.$t
    is "no line of task $t is lost, none comes twice" "$(seq 0 1499 | cmp - got.$t && echo same)" same
done

# ---- the controller, and a node for good ----
id=$(as_user sbatch --parsable --requeue -o /dev/null -w n1 -n1 : -x n1 -n1 --wrap 'sleep 300')
late=$(as_user sbatch --parsable -o late.out -H -w n1 -n1 : -w n4 -n1 --wrap 'echo $SLURM_HET_SIZE $SLURM_JOB_NODELIST_HET_GROUP_1')
ok "one runs" wait_for 30 all_are $id RUNNING
pid=$(for p in $(pgrep -x spurctld); do tr '\0' ' ' <"/proc/$p/cmdline" 2>/dev/null | grep -q "$D/" && echo "$p"; done)
kill -9 $pid
(. "$D/env"; cd /; spur up --dir "$D" >>"$T/up.log" 2>&1)
ok "the controller is back" wait_for 30 squeue
is "both components still run" "$(states $id)" "$id+0=RUNNING $id+1=RUNNING "
as_user scontrol release $late
ok "one that waited is still whole" wait_for 30 all_are $late COMPLETED
is "and knows its components" "$(cat late.out)" "2 n4"
node=$(squeue -h -j $id+1 -o %N)
scontrol update nodename=$node state=down reason=test
moved() { all_are $id RUNNING && [ "$(squeue -h -j $id -O RestartCnt:4 | tr -d ' \n')" = 11 ] && [ "$(squeue -h -j $id+1 -o %N)" != "$node" ]; }
ok "a node that is lost requeues all; they start together elsewhere" wait_for 60 moved
as_user scancel $id
done_testing
