#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# limits.t - what a job may use, with real controllers of cgroup version 2 (run by make test-vm)
. "$(dirname "$0")/../lib.sh"
[ -n "${IN_VM:-}" ] || skip_all "needs the machine of tools/vm"

cluster_up --nodes 1 --cpus 2 --mem 1500
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
unlike "over its memory: what it took was refused" "$(cat "out.$id")" '629145600'

job --mem 200M <<'JOB'
#!/bin/bash
python3 -c 'x = bytearray(100 << 20); print(len(x))'
JOB
is "within its memory" "$(field JobState) $(cat "out.$id")" 'COMPLETED 104857600'

# Nothing stays.
job <<'JOB'
#!/bin/bash
(setsid sh -c 'trap "" TERM HUP; sleep 1000' &) &
JOB
not_ok "nothing of the job is left" pgrep -f 'sleep 1000'
is "no cgroup is left" "$(find /sys/fs/cgroup -type d -name '*job*' | wc -l)" 0
done_testing
