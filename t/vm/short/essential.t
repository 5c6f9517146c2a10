#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# essential.t - one check each of what a job may use, with real controllers (the short form of make test-vm)
. "$(dirname "$0")/../../lib.sh"
[ -n "${IN_VM:-}" ] || skip_all "needs the machine of tools/vm"
# Two devices of the kernel that nothing else here needs: c 1:7 is always full, c 1:8 is random.
mknod -m 666 /dev/fakegpu0 c 1 7
mknod -m 666 /dev/fakegpu1 c 1 8
cat >"$T/spur.conf" <<CONF
cluster_name = "vm"
[[nodes]]
names = "n1"
cpus = 2
sockets = 2
cores_per_socket = 1
threads_per_core = 1
memory_mb = 1000
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
max_processes = 60
CONF
cluster_up --nodes 1 --conf "$T/spur.conf"
cd "$(user_dir)" || exit 1
ended() { [ -z "$(squeue -h -j "$1" -t PD,R,CG,CF,S)" ]; }
job() { # OPTIONS...: script on stdin; waits for the end, sets $id and $out
    id=$(as_user sbatch --parsable -o "out.%j" "$@") || { fail "sbatch $*"; return; }
    wait_for 60 ended "$id" || fail "job $id ends" "$(scontrol show job "$id")"
    out=$(cat "out.$id")
}
job --mem 100M --wrap "python3 -c 'x = bytearray(300 << 20)'"
is "memory: the job is out of it" "$(scontrol show job "$id" | grep -o 'JobState=[A-Z_]*')" JobState=OUT_OF_MEMORY
like "memory: the output says so" "$out" "slurmstepd: error: Detected [0-9]+ oom_kill events? in StepId=$id.batch."
like "memory: the job says which step and how much" "$(scontrol show job "$id")" "step $id.batch on n1 had no memory left: [0-9]+ MB of 100 MB"
job -n1 --gres=gpu:1 <<'JOB'
#!/bin/bash
nproc
for i in 0 1; do (: </dev/fakegpu$i) 2>&1 | grep -o 'not permitted' || echo open; done
python3 - <<'PY'
import os, time
count = 0
try:
    while count < 200:
        if os.fork() == 0:
            time.sleep(600)
        count += 1
except OSError as e:
    print("stopped", count < 60, e.strerror, flush=True)
PY
(trap '' TERM HUP; exec setsid sleep 1000) &
JOB
is "CPUs: one is one" "$(head -n 1 <<<"$out")" 1
is "devices: its own can be opened, the other cannot" "$(sed -n 2,3p <<<"$out" | sort | tr '\n' ' ')" "not permitted open "
like "processes: no more than the limit" "$out" "stopped True Resource temporarily unavailable"
not_ok "nothing of the job is left" pgrep -f 'sleep 1000'
is "no cgroup is left" "$(find /sys/fs/cgroup -type d -name "$id.*" | wc -l)" 0
is "the node is well" "$(sinfo -h -n n1 -o %t)" idle
done_testing
