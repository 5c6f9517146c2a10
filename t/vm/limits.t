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

# Nothing stays.
job <<'JOB'
#!/bin/bash
(setsid sh -c 'trap "" TERM HUP; sleep 1000' &) &
JOB
not_ok "nothing of the job is left" pgrep -f 'sleep 1000'
is "no cgroup is left" "$(find /sys/fs/cgroup -type d -name '*job*' | wc -l)" 0
done_testing
