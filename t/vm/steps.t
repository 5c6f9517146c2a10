#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# steps.t - CPUs, disks, devices and memory of steps, with real controllers (run by make test-vm)
. "$(dirname "$0")/../lib.sh"
[ -n "${IN_VM:-}" ] || skip_all "needs the machine of tools/vm"
[ "$(nproc)" -ge 4 ] && [ -b /dev/vda ] || skip_all "needs four CPUs and a disk (tools/test-vm)"

# Two devices of the kernel that nothing else here needs: c 1:7 is always full, c 1:8 is random.
mknod -m 666 /dev/fakegpu0 c 1 7
mknod -m 666 /dev/fakegpu1 c 1 8
chmod 666 /dev/vda
cat >"$T/spur.conf" <<CONF
cluster_name = "vm"
[[nodes]]
names = "n1"
cpus = 4
sockets = 2
cores_per_socket = 2
threads_per_core = 1
memory_mb = 1500
gres = ["gpu:2"]
[[gres]]
nodes = "n1"
name = "gpu"
files = "/dev/fakegpu[0-1]"
autodetect = "off"
[[partitions]]
name = "main"
nodes = "ALL"
default = true
[scheduler]
config_overrides = false
[cgroup]
allowed_ram_percent = 150
cpu_quota = true
io_weight = true
io_max = ["/dev/vda rbps=1M wiops=500", "/dev/none rbps=1"]
CONF
cluster_up --nodes 1 --conf "$T/spur.conf"
home=$(user_dir)
cd "$home" || exit 1
ended() { [ -z "$(squeue -h -j "$1" -t PD,R,CG,CF,S)" ]; }
job() { # OPTIONS...: script on stdin; waits for the end, sets $id and $out
    id=$(as_user sbatch --parsable -o "$home/out.%j" "$@") || { fail "sbatch $*"; return; }
    wait_for 120 ended "$id" || { fail "job $id ends" "$(scontrol show job "$id")" "$(sinfo -N -l)"; scancel "$id"; }
    out=$(cat "out.$id")
}

# ---- what the kernel was told of the job ----
job -n2 --mem 100M <<'JOB'
#!/bin/bash
own=/sys/fs/cgroup$(sed -n 's,^0::,,p' /proc/self/cgroup)
for f in memory.max memory.high cpu.max io.max io.weight; do echo "$f $(cat "$own/../$f" | tr '\n' ' ')"; done
dd if=/dev/vda of=/dev/null bs=256k count=12 iflag=direct 2>&1 | tail -1
JOB
like "half as much again, then it is ended" "$out" 'memory.max 157286400'
like "what it was given, then it is slowed down" "$out" 'memory.high 104857600'
like "as much time as its CPUs have" "$out" 'cpu.max 200000 100000'
like "a disk, in the kernel's numbers" "$out" 'io.max [0-9]+:0 rbps=1048576 wbps=max riops=max wiops=500'
seconds=$(grep -oE ', [0-9.]+ s,' <<<"$out" | tr -dc '0-9.')
ok "three megabytes take more than two seconds (${seconds:-?})" awk "BEGIN { exit !(${seconds:-0} > 1.5) }"

# ---- steps have CPUs of their own ----
job -n4 <<'JOB'
#!/bin/bash
show='own=/sys/fs/cgroup$(sed -n "s,^0::,,p" /proc/self/cgroup); echo "step $(cat $own/cpuset.cpus.effective) $(sed -n "s/^Cpus_allowed_list:.//p" /proc/self/status)"; touch begun.$SLURM_STEP_ID; until [ -e begun.0 ] && [ -e begun.1 ]; do sleep 0.2; done'
rm -f begun.*
srun --exact -n1 sh -c "$show" &
srun --exact -n1 sh -c "$show" &
wait
JOB
is "two steps at once, one CPU each" "$(grep -c '^step [0-3] [0-3]$' <<<"$out")" 2
is "not the same one" "$(awk '/^step/ { print $2 }' <<<"$out" | sort -u | wc -l)" 2
is "the kernel's set is the tasks'" "$(awk '/^step/ && $2 != $3' <<<"$out" | wc -l)" 0

# ---- what --cpu-bind says is what is ----
bound() { # OPTIONS: prints "reported seen" for each task
    job -n4 <<JOB
#!/bin/bash
srun -l $1 sh -c 'echo "seen \$(taskset -p \$\$ | sed "s/.*: //")"' 2>&1
JOB
    awk '{ t = $1; sub(":", "", t) } / seen / { s[t] = "0x" $NF } /cpu-bind=/ { match($0, /mask 0x[0-9a-f]+/); r[t] = substr($0, RSTART + 5, RLENGTH - 5) }
        END { for (t = 0; t < 4; t++) printf "%s %s\n", tolower(r[t]), tolower(s[t]) }' <<<"$out"
}
pairs=$(bound "-n4 --cpu-bind=verbose,cores")
is "four tasks, each on the core that was said" "$(awk 'NF == 2 && $1 == $2' <<<"$pairs" | sort -u | wc -l)" 4
pairs=$(bound "-n4 --cpu-bind=verbose,sockets")
is "by socket: two CPUs each" "$(awk 'NF == 2 && $1 == $2 { print $2 }' <<<"$pairs" | sort | uniq -c | awk '{ print $1, $2 }' | tr '\n' ' ')" "2 0x3 2 0xc "
pairs=$(bound "-n4 --cpu-bind=verbose,map_cpu:3,2,1,0")
is "by a map" "$(awk '{ print $2 }' <<<"$pairs" | tr '\n' ' ')" "0x8 0x4 0x2 0x1 "
pairs=$(bound "-n4 --cpu-bind=none")
is "none: all that the job has" "$(awk '{ print $NF }' <<<"$pairs" | sort -u)" 0xf

# ---- devices ----
try='for d in /dev/fakegpu0 /dev/fakegpu1; do if (exec 3<$d) 2>/dev/null; then echo -n "$d yes "; else echo -n "$d no "; fi; done; echo'
job -n1 <<JOB
#!/bin/bash
$try
srun bash -c '$try'
JOB
is "who has no GPU opens none" "$(sort -u <<<"$out")" "/dev/fakegpu0 no /dev/fakegpu1 no "
job -n1 --gres=gpu:1 <<JOB
#!/bin/bash
$try
srun bash -c '$try'
JOB
is "who has one opens that one" "$(sort -u <<<"$out")" "/dev/fakegpu0 yes /dev/fakegpu1 no "
job -n2 --gres=gpu:2 <<JOB
#!/bin/bash
$try
JOB
is "who has both opens both" "$out" "/dev/fakegpu0 yes /dev/fakegpu1 yes "
like "what is outside is not touched" "$(bash -c "$try")" "fakegpu0 yes /dev/fakegpu1 yes"

# ---- one step has no memory left, the other goes on ----
job -n2 --mem 400M <<'JOB'
#!/bin/bash
srun --exact -n1 --mem 80M sh -c 'until [ -e over ]; do sleep 0.2; done; echo "the other lives"' &
sleep 1
srun --exact -n1 --mem 80M python3 -c 'x = bytearray(200 << 20); print(len(x))'
echo "srun ended with $?"
touch over
wait %1
echo "and ended with $?"
JOB
unlike "one step is refused what is too much" "$out" '209715200'
unlike "its srun fails" "$out" 'srun ended with 0'
like "the other goes on" "$out" 'the other lives'
like "to its end" "$out" 'and ended with 0'
is "the job is well" "$(scontrol show job "$id" | grep -oE 'JobState=[A-Z_]*')" JobState=COMPLETED

# ---- nothing stays of a step that left processes behind ----
job -n1 <<'JOB'
#!/bin/bash
srun sh -c '(setsid sh -c "trap \"\" TERM HUP INT; sleep 4321" >/dev/null 2>&1 &) ; for i in 1 2 3 4 5 6 7 8; do (setsid sleep 4321 &) ; done; exit 0'
echo "left $(pgrep -fc 'sleep 4321')"
JOB
like "processes that a step left are gone when it has ended" "$out" 'left 0'
is "no cgroup is left" "$(find /sys/fs/cgroup/spur -type d -name "$id.*" | wc -l)" 0
done_testing
