#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# cpu-freq.t - --cpu-freq on a made-up machine: set while a step runs, restored after it; and where there is nothing to set
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 1 --cpus 4
cd "$(user_dir)"
run srun --cpu-freq=low echo ran
is "a machine without cpufreq: it runs" "$code $out" "0 ran"
[ -e /sys/devices/system/cpu/cpu0/cpufreq ] || is "and says so" "$err" "slurmstepd: error: CPU frequency setting not configured for this node"
spur down --dir "$D" >/dev/null

recorded_tree mi300x-8
for cpu in $(seq 0 127); do
    freq=$tree/sys/devices/system/cpu/cpu$cpu/cpufreq
    mkdir -p "$freq"
    echo "performance powersave userspace ondemand" >"$freq/scaling_available_governors"
    echo "2400000 2000000 1600000 1200000" >"$freq/scaling_available_frequencies"
    echo ondemand >"$freq/scaling_governor"
    echo 1200000 >"$freq/scaling_min_freq"
    echo 2400000 >"$freq/scaling_max_freq"
    echo 2000000 >"$freq/scaling_cur_freq"
    echo "<unsupported>" >"$freq/scaling_setspeed"
done
chmod -R a+rX "$tree"
cluster_of freq <<'CONF'
[[nodes]]
names = "n1"
cpus = 4
memory_mb = 8000
CONF
show="cd $tree/sys/devices/system/cpu; for c in 0 1 2 3; do (cd cpu\$c/cpufreq; echo \$(cat scaling_governor scaling_min_freq scaling_max_freq scaling_setspeed)); done"
idle="ondemand 1200000 2400000 <unsupported>"
# NAME OPTION WANTED: of CPU 0 while the step runs
freq() {
    run as_user srun -n1 -c4 --cpu-freq="$2" sh -c "$show"
    is "$1" "$(head -n1 <<<"$out") $err" "$3 "
    is "$1: on all CPUs of the step" "$(sort -u <<<"$out" | wc -l)" 1
    is "$1: restored" "$(sh -c "$show" | cut -d' ' -f1-3 | sort -u)" "ondemand 1200000 2400000"
    for c in 0 1 2 3; do echo "<unsupported>" >"$tree/sys/devices/system/cpu/cpu$c/cpufreq/scaling_setspeed"; done
}
freq "lowest" low "userspace 1200000 2400000 1200000"
freq "in the middle" medium "userspace 1200000 2400000 1600000"
freq "highest but one" highm1 "userspace 1200000 2400000 2000000"
freq "highest" high "userspace 1200000 2400000 2400000"
freq "a number" 1600000 "userspace 1200000 2400000 1600000"
freq "a range" 1600000-2000000 "ondemand 1600000 2000000 <unsupported>"
freq "a range and a governor" 1200000-1600000:performance "performance 1200000 1600000 <unsupported>"
freq "a governor" Performance "performance 1200000 2400000 <unsupported>"
run srun -n1 --exact --cpu-freq=performance sh -c "$show"
is "other CPUs are left alone" "$(tr '\n' , <<<"$out")" "performance 1200000 2400000 <unsupported>,$idle,$idle,$idle,"
run srun --cpu-freq=performance sh -c 'echo $SLURM_CPU_FREQ_REQ'
is "SLURM_CPU_FREQ_REQ of tasks" "$out" performance
SLURM_CPU_FREQ_REQ=performance run srun -c4 sh -c "$show"
is "SLURM_CPU_FREQ_REQ of srun" "$(head -n1 <<<"$out")" "performance 1200000 2400000 <unsupported>"
run salloc -Q -n4 --cpu-freq=performance srun -n1 sh -c "$show"
is "steps of salloc have it too" "$(head -n1 <<<"$out")" "performance 1200000 2400000 <unsupported>"
run sbatch -W -n4 -o o --cpu-freq=performance --wrap "$show; srun -n1 sh -c '$show'"
is "a script has not, its steps have" "$(sed -n '1p;5p' o | tr '\n' ,)" "$idle,performance 1200000 2400000 <unsupported>,"
run srun --cpu-freq=powersave true
is "a governor that the site does not allow: exit" "$code" 1
like "a governor that the site does not allow" "$err" "governor of powersave is not allowed in slurm.conf"
run srun --cpu-freq=foo true
is "no frequency" "$code $err" $'255 srun: error: unrecognized --cpu-freq argument "foo"\nsrun: error: Invalid --cpu-freq argument'
srun --cpu-freq=low-high:OnDemand sleep 1000 >/dev/null 2>&1 &
pid=$!
runs() { [ "$(squeue -h -s -o %i | grep -c '\.0$')" = 1 ]; }
wait_for 20 runs
like "scontrol show step" "$(scontrol show step)" "CPUFreqReq=Low-High:OnDemand"
like "sstat" "$(sstat -n -P -o ReqCPUFreqMin,ReqCPUFreqMax,ReqCPUFreqGov "$(squeue -h -o %i)")" "Low\|High\|OnDemand"
scancel "$(squeue -h -o %i)"
wait $pid

sed -i '/^\[scheduler\]/i [jobs]\ncpu_freq_def = "PowerSave"\ncpu_freq_governors = ["PowerSave"]\nlaunch_parameters = ["batch_step_set_cpu_freq"]\n' "$T/spur.conf"
run spur config check "$T/spur.conf"
is "the settings are good" "$code" 0
spur down --dir "$D" >/dev/null
cluster_up --conf "$T/spur.conf"
run srun -c4 sh -c "$show"
is "CpuFreqDef" "$(head -n1 <<<"$out")" "powersave 1200000 2400000 <unsupported>"
run sbatch -W -n4 -o o --wrap "$show"
is "batch_step_set_cpu_freq" "$(head -n1 o)" "powersave 1200000 2400000 <unsupported>"
is "all of it is restored" "$(sh -c "$show" | cut -d' ' -f1-3 | sort -u)" "ondemand 1200000 2400000"
done_testing
