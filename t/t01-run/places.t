#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# places.t - how many tasks of a step cores, sockets and nodes get inside an allocation; --oom-kill-step
. "$(dirname "$0")/../lib.sh"
cat >"$T/spur.conf" <<'CONF'
cluster_name = "places"
[scheduler]
config_overrides = true
[jobs]
sample_interval = "task=1"
[[nodes]]
names = "n[1-2]"
cpus = 8
sockets = 2
cores_per_socket = 2
threads_per_core = 2
memory_mb = 2000
[[partitions]]
name = "debug"
nodes = "ALL"
default = true
CONF
cluster_up --nodes 2 --conf "$T/spur.conf"
cd "$(user_dir)"
job=$(sbatch --parsable -N2 --exclusive -o /dev/null --wrap 'sleep 1000')
wait_for 20 job_is "$job" RUNNING
# OPTIONS: "n1 4, n2 2": where the tasks of a step are
where() { timeout 30 srun --jobid="$job" "$@" sh -c 'echo $SLURMD_NODENAME' 2>&1 | sort | uniq -c | awk '{ printf "%s%s %s", (NR > 1 ? ", " : ""), $2, $1 }'; }
is "one task on each core" "$(where -n5 --ntasks-per-core=1)" "n1 3, n2 2"
is "two on each core fit on one node" "$(where -n8 --ntasks-per-core=2)" "n1 8"
is "one task on each socket" "$(where -n3 --ntasks-per-socket=1)" "n1 2, n2 1"
run timeout 30 srun --jobid="$job" -n5 --ntasks-per-socket=1 true
like "more than the sockets take" "$code $err" "^1 srun: error: Unable to create step for job $job: "
run timeout 30 srun --jobid="$job" -w n1 -N1 -n4 --ntasks-per-core=1 --cpu-bind=verbose,threads -m '*:block:block' true
is "tasks are bound to a core each" "$(grep -o 'mask 0x[0-9a-f]*' <<<"$err" | sort | tr '\n' ,)" "mask 0x1,mask 0x10,mask 0x4,mask 0x40,"
is "Pack fills nodes" "$(where -N2 -n6 -m block,Pack)" "n1 5, n2 1"
is "NoPack does not" "$(where -N2 -n6 -m block,NoPack)" "n1 3, n2 3"
is "planes" "$(timeout 30 srun --jobid="$job" -N2 -n8 -l -m plane=2 sh -c 'echo $SLURMD_NODENAME' | sort -n | sed 's/.*: //' | tr '\n' ,)" "n1,n1,n2,n2,n1,n1,n2,n2,"
is "the size of planes from SLURM_DIST_PLANESIZE" "$(SLURM_DIST_PLANESIZE=2 timeout 30 srun --jobid="$job" -N2 -n8 -l -m plane sh -c 'echo $SLURMD_NODENAME' | sort -n | sed 's/.*: //' | tr '\n' ,)" "n1,n1,n2,n2,n1,n1,n2,n2,"
run srun --jobid="$job" -m plane true
like "planes without a size" "$code $err" "^255 srun: error: Invalid plane size or size not specified"

# how nodes are built
run timeout 30 srun --jobid="$job" -n1 -B 2:2:2 true
is "-B that the nodes have" "$code" 0
for o in "-B 4" "--sockets-per-node=3" "--cores-per-socket=4"; do
    run timeout 30 srun --jobid="$job" -n1 $o true
    like "$o that no node has" "$code $err" "^1 .*Requested node configuration is not available"
done
for o in "2 0xf,0xf0" "2:2 0x3,0x30" "2:2:2 0x1,0x10"; do
    run timeout 30 srun --jobid="$job" -w n1 -N1 -n2 -B "${o% *}" --cpu-bind=verbose true
    is "-B ${o% *} binds tasks" "$(grep -o 'mask 0x[0-9a-f]*' <<<"$err" | sort | sed 's/mask //' | tr '\n' ,)" "$(tr ',' '\n' <<<"${o#* }" | sort | tr '\n' ,)"
done
run timeout 30 srun --jobid="$job" -n1 --mincpus=2 true
like "what is of allocations is said to be" "$err" "warning: --mincpus describes an allocation and is ignored inside job $job"
run timeout 30 srun --jobid="$job" -n1 --tres-bind=gres/nic:closest true
like "--tres-bind of what cannot be bound" "$code $err" "^255 .*Invalid --tres-bind argument: gres/nic:closest"

# --oom-kill-step, where the kernel does not hold jobs to their memory: one node's tasks end those of the other.
run timeout 60 srun --jobid="$job" -n1 sh -c 'echo $SLURM_OOM_KILL_STEP'
is "SLURM_OOM_KILL_STEP without it" "$out" 0
run timeout 60 srun --jobid="$job" -n1 --oom-kill-step sh -c 'echo $SLURM_OOM_KILL_STEP'
is "and with it" "$out" 1
run timeout 60 srun --jobid="$job" -n1 --oom-kill-step=0 sh -c 'echo $SLURM_OOM_KILL_STEP'
is "and off" "$out" 0
SLURM_OOMKILLSTEP=1 run timeout 60 srun --jobid="$job" -n1 sh -c 'echo $SLURM_OOM_KILL_STEP'
is "from the environment" "$out" 1
run srun --jobid="$job" --oom-kill-step=2 true
is "neither 0 nor 1" "$code" 255
scancel "$job"
eat='if [ $SLURM_PROCID = 0 ]; then exec python3 -c "x = bytearray(300 << 20); import time; time.sleep(100)"; else sleep 5; echo the other lived; fi'
run timeout 90 srun -N2 -n2 --mem=100 --oom-kill-step sh -c "$eat"
not_ok "one task without memory fails the step" test "$code" = 0
like "which says so" "$err" "oom_kill|exceeded memory limit"
unlike "and the tasks of other nodes end" "$out" "the other lived"
run timeout 90 srun -N2 -n2 --mem=100 sh -c "$eat"
like "without it they go on" "$out" "the other lived"
run sbatch -W -o o --oom-kill-step --wrap 'echo $SLURM_OOM_KILL_STEP $SLURM_OOMKILLSTEP; srun sh -c "echo \$SLURM_OOM_KILL_STEP"'
is "of a script and its steps" "$(tr '\n' ' ' <o)" "1 1 1 "
done_testing
