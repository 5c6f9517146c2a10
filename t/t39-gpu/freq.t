#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# freq.t - --gpu-freq on a recorded machine with AMD's GPUs: set while a step runs, put back after it
. "$(dirname "$0")/../lib.sh"
tree=$T/tree
awk -v root="$tree" '/^== / { if (file) close(file); file = root $2; dir = file; sub("/[^/]*$", "", dir); system("mkdir -p \"" dir "\""); next }
    file { print >file }' "$HERE/../../src/spurd/test/trees/mi300x-8.tree"
for gpu in $(seq 128 135); do
    dir=$tree/sys/class/drm/renderD$gpu/device
    mkdir -p "$dir"
    echo auto >"$dir/power_dpm_force_performance_level"
done
states() {
    for gpu in $(seq 128 135); do
        printf '0: 500Mhz\n1: 1300Mhz\n2: 2100Mhz *\n' >"$tree/sys/class/drm/renderD$gpu/device/pp_dpm_sclk"
        printf '0: 900Mhz\n1: 1300Mhz *\n' >"$tree/sys/class/drm/renderD$gpu/device/pp_dpm_mclk"
    done
}
states
chmod -R a+rX "$tree"
export SPUR_SYSROOT=$tree
cat >"$T/spur.conf" <<'CONF'
cluster_name = "gpufreq"
[scheduler]
config_overrides = true
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
[[partitions]]
name = "debug"
nodes = "ALL"
default = true
CONF
cluster_up --conf "$T/spur.conf"
cd "$(user_dir)"
show="cd $tree/sys/class/drm/renderD128/device; echo \$(cat power_dpm_force_performance_level) \$(head -n1 pp_dpm_sclk) / \$(head -n1 pp_dpm_mclk)"
# OPTION WANTED MESSAGE
freq() {
    states
    run as_user srun -n1 -G1 --gpu-freq="$1" sh -c "$show"
    is "$1" "$out" "$2"
    is "$1: what is said" "$err" "$3"
    is "$1: put back" "$(cat "$tree/sys/class/drm/renderD128/device/power_dpm_force_performance_level")" auto
}
freq low "manual 0 / 0: 900Mhz" ""
freq high,memory=high,verbose "manual 2 / 1" "GpuFreq=memory_freq:1300,graphics_freq:2100"
freq medium "manual 1 / 0: 900Mhz" ""
freq 1400,verbose "manual 1 / 0: 900Mhz" "GpuFreq=graphics_freq:1300"
states
run srun -n1 -G1 --gpu-freq=low cat "$tree/sys/class/drm/renderD129/device/power_dpm_force_performance_level"
is "GPUs of others are left alone" "$out" auto
states
SLURM_GPU_FREQ=highm1 run srun -n1 -G1 sh -c "$show"
is "SLURM_GPU_FREQ" "$out" "manual 1 / 0: 900Mhz"
states
run sbatch -W -o o -G1 --gpu-freq=low --wrap "srun sh -c '$show'"
is "steps of a script" "$(cat o)" "manual 0 / 0: 900Mhz"
rm "$tree"/sys/class/drm/renderD*/device/power_dpm_force_performance_level
run srun -n1 -G1 --gpu-freq=low echo ran
is "where nothing can be set it runs" "$code $out" "0 ran"
is "and says so" "$err" "slurmstepd: error: GPU frequency setting not configured for this node"
run srun -n1 -G1 --gpu-freq=fast true
like "no frequency" "$code $err" "^255 srun: error: Invalid --gpu-freq argument: fast"
done_testing
