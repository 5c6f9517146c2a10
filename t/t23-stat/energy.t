#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# energy.t - energy, GPUs and frequencies of a recorded machine, in sstat and in the journal
. "$(dirname "$0")/../lib.sh"
recorded_tree mi300x-8
put() { mkdir -p "$(dirname "$tree$1")"; echo "$2" >"$tree$1"; }
rapl=/sys/class/powercap/intel-rapl:0
put $rapl/energy_uj 1000000
put $rapl/max_energy_range_uj 262143328850
for cpu in $(seq 0 127); do put /sys/devices/system/cpu/cpu$cpu/cpufreq/scaling_cur_freq 2100000; done
for gpu in $(seq 128 135); do
    put /sys/class/drm/renderD$gpu/device/gpu_busy_percent 30
    put /sys/class/drm/renderD$gpu/device/mem_info_vram_used 1073741824
done
chmod -R a+rX "$tree"
cluster_of energy <<'CONF'
[[nodes]]
names = "n1"
cpus = 4
memory_mb = 8000
gres = ["gpu:mi300x:8"]
[[gres]]
nodes = "n1"
name = "gpu"
type = "mi300x"
files = "/dev/dri/renderD[128-135]"
CONF
cd "$(user_dir)"
stat() { as_user sstat -n -P "$@"; }
value_is() { local wanted=$1; shift; [ "$(stat "$@")" = "$wanted" ]; }

as_user srun -n2 --gpus=2 sh -c 'touch begun; while [ ! -e stop ]; do sleep 0.1; done' &
ok "a step on two GPUs" wait_for 30 test -e begun
id=$(squeue -h -o %i)
stat -j "$id.0" -o JobID >/dev/null
put $rapl/energy_uj 2501000000
ok "energy since it began" wait_for 20 value_is "2.50K|2500" -j "$id.0" -o ConsumedEnergy,ConsumedEnergyRaw
is "of its node, by TRES" "$(stat -j "$id.0" -o TRESUsageInTot | tr , '\n' | grep -E 'energy|gpu' | tr '\n' ' ')" "energy=2500 gres/gpumem=2048M gres/gpuutil=60 "
is "and who" "$(stat -j "$id.0" -o TRESUsageInMaxNode,TRESUsageInMaxTask | tr ',|' '\n\n' | grep -E 'energy|gpu' | tr '\n' ' ')" "energy=n1 gres/gpumem=n1 gres/gpuutil=n1 energy=0 gres/gpumem=0 gres/gpuutil=0 "
is "frequency" "$(stat -j "$id.0" -o AveCPUFreq)" 2.10G
is "--noconvert" "$(stat --noconvert -j "$id.0" -o ConsumedEnergy,AveCPUFreq)" "2500|2100000"
put $rapl/energy_uj 3001000000
touch stop
wait
step() { spur journal --json | python3 -c "
import sys, json
for r in (r for e in map(json.loads, sys.stdin) for r in e.get('records', []) if r['kind'] == 'STEP' and r['job_id'] == $id):
    u = r['step']['usage']
    print(u.get('energy_j'), u.get('gpu_percent'), u.get('gpu_mem_bytes'), u.get('cpu_khz'))"; }
is_kept() { [ -n "$(step)" ]; }
ok "the step ends" wait_for 30 is_kept
is "the journal has all of it" "$(step)" "3000 60 2147483648 2100000"

# ---- how often ----
run sbatch --acctg-freq=task=x --wrap true
is "a bad interval" "$code:$err" "255:sbatch: error: Invalid --acctg-freq specification: task=x"
run sbatch --acctg-freq=network=5 --wrap true
like "what is not sampled is not taken" "$code:$err" "1:sbatch: error: --acctg-freq: network is not sampled"
id=$(as_user sbatch --parsable -n1 --acctg-freq=1 -o /dev/null --wrap 'while [ ! -e stop2 ]; do sleep 0.1; done')
ok "a job with samples every second" wait_for 30 job_is "$id" RUNNING
sleep 2.5
touch stop2
ok "ends" wait_for 30 job_is "$id" COMPLETED
samples=$(spur journal --json | python3 -c "
import sys, json
print(*[r['usage']['samples'] for e in map(json.loads, sys.stdin) for r in e.get('records', []) if r['kind'] == 'ENDED' and r['job_id'] == $id])")
ok "and was looked at by itself ($samples times)" test "${samples:-0}" -ge 1
done_testing
