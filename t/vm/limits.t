#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# limits.t - what a job may use, with real controllers of cgroup version 2 (run by make test-vm)
. "$(dirname "$0")/../lib.sh"
[ -n "${IN_VM:-}" ] || skip_all "needs the machine of tools/vm"

cat >"$T/spur.conf" <<CONF
cluster_name = "vm"
[[nodes]]
names = "n1"
cpus = 2
sockets = 2
cores_per_socket = 1
threads_per_core = 1
memory_mb = 1500
[[partitions]]
name = "main"
nodes = "ALL"
default = true
[scheduler]
config_overrides = false
[cgroup]
constrain_swap = true
max_processes = 150
[jobs]
sample_interval = "1"
CONF
cluster_up --nodes 1 --conf "$T/spur.conf"
home=$(user_dir)
cd "$home" || exit 1
job() { # OPTIONS...: script on stdin; waits for the end, sets $id
    id=$(as_user sbatch --parsable -o "$home/out.%j" "$@") || { fail "sbatch $*"; return; }
    wait_for 120 ended "$id" || fail "job $id ends" "$(scontrol show job "$id")"
}
ended() { [ -z "$(squeue -h -j "$1" -t PD,R,CG,CF,S)" ]; }
field() { scontrol show job -d "$id" | grep -oE "\b$1=[^ ]*" | head -n 1 | cut -d= -f2; }

like "the node says what it has" "$(cat "$D"/log/*.log 2>/dev/null; cat "$D"/logs/* 2>/dev/null)" 'cgroup v2 \(.*memory'

# Memory: a job over its limit ends as OUT_OF_MEMORY and says so.
job --mem 200M <<'JOB'
#!/bin/bash
python3 -c 'x = bytearray(600 << 20); print(len(x))'
echo "exit $?"
JOB
is "over its memory: state" "$(field JobState)" OUT_OF_MEMORY
like "over its memory: the output says so" "$(cat "out.$id")" "slurmstepd: error: Detected 1 oom_kill event in StepId=$id.batch."
like "over its memory: the job says which step and how much" "$(scontrol show job "$id"; spur explain "$id" 2>&1)" "step $id.batch on n1 had no memory left: [0-9]+ MB of 200 MB"
unlike "over its memory: what it took was refused" "$(cat "out.$id")" '629145600'

job --mem 200M <<'JOB'
#!/bin/bash
python3 -c 'x = bytearray(100 << 20); print(len(x))'
JOB
is "within its memory" "$(field JobState) $(cat "out.$id")" 'COMPLETED 104857600'

# CPUs: a job of one CPU has one, also against its will.
job -n 1 <<'JOB'
#!/bin/bash
nproc
taskset -p 3 $$ >/dev/null 2>&1; grep Cpus_allowed_list /proc/self/status
JOB
like "one CPU is one CPU" "$(cat "out.$id")" $'^1\n'
unlike "and it cannot take another" "$(cat "out.$id")" '0-1'

# Steps of srun share what the job has.
job --mem 200M <<'JOB'
#!/bin/bash
srun python3 -c 'x = bytearray(600 << 20); print(len(x))'
echo "srun ended with $?"
JOB
unlike "a step over the job's memory is refused it" "$(cat "out.$id")" '629145600'
unlike "and srun says so" "$(cat "out.$id")" 'srun ended with 0'

# A step has its own part of the job's memory; the job goes on without it.
job --mem 400M <<'JOB'
#!/bin/bash
srun --mem 100M python3 -c 'x = bytearray(200 << 20); print(len(x))'
echo "srun ended with $?"
python3 -c 'x = bytearray(200 << 20); print("script", len(x))'
JOB
unlike "a step over its own memory is refused it" "$(cat "out.$id")" $'(^|\n)209715200'
like "srun says why" "$(cat "out.$id")" "oom_kill event in StepId=$id.0"
like "the script may have more than the step" "$(cat "out.$id")" 'script 209715200'
is "the job is not out of memory" "$(field JobState)" COMPLETED

# What the kernel was told.
job --mem 300M <<'JOB'
#!/bin/bash
own=/sys/fs/cgroup$(sed -n 's,^0::,,p' /proc/self/cgroup)
for f in memory.max memory.swap.max pids.max cpuset.cpus; do echo "$f $(cat "$own/../$f")"; done
srun --mem 50M sh -c 'echo "step $(cat /sys/fs/cgroup$(sed -n "s,^0::,,p" /proc/self/cgroup)/memory.max)"'
JOB
like "memory of the job" "$(cat "out.$id")" 'memory.max 314572800'
like "swap of the job" "$(cat "out.$id")" 'memory.swap.max 0'
like "processes of the job" "$(cat "out.$id")" 'pids.max 150'
like "CPUs of the job" "$(cat "out.$id")" 'cpuset.cpus [01]'
like "memory of the step" "$(cat "out.$id")" 'step 52428800'

# A job that forks without end: refused, and the node goes on.
job <<'JOB'
#!/bin/bash
python3 - <<'PY'
import os, time
n = 0
try:
    while n < 1000:
        if os.fork() == 0:
            time.sleep(600)
        n += 1
except OSError as e:
    print("stopped", n < 150, e.strerror)
PY
JOB
like "forks end at the limit" "$(cat "out.$id")" 'stopped True Resource temporarily unavailable'
job --wrap 'echo next'
is "the next job runs" "$(cat "out.$id")" next
is "the node is well" "$(sinfo -h -n n1 -o %t)" idle

# The agent is killed while the job runs: the job is held to its limit by its supervisor, and cleaned up.
id=$(as_user sbatch --parsable -o "$home/out.%j" --mem 100M --wrap 'sleep 3; python3 -c "x = bytearray(300 << 20); print(len(x))"')
ok "a job runs" wait_for 60 job_is "$id" RUNNING
spurd=$(pgrep -x spurd | head -n 1)
kill -9 "$spurd"
no_cgroup() { [ -z "$(find /sys/fs/cgroup/spur -type d -name "$id.*")" ]; }
ok "without the agent its cgroup goes when it ends" wait_for 120 no_cgroup
ok "spur up starts the agent again" spur up --dir "$D"
ok "the end is told later" wait_for 120 job_is "$id" OUT_OF_MEMORY
unlike "the limit held" "$(cat "out.$id")" '314572800'

# Nothing stays.
job <<'JOB'
#!/bin/bash
(setsid sh -c 'trap "" TERM HUP; sleep 1000' &) &
JOB
not_ok "nothing of the job is left" pgrep -f 'sleep 1000'
is "no cgroup is left" "$(find /sys/fs/cgroup -type d -name '*job*' | wc -l)" 0
done_testing
