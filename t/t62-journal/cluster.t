#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the journal says beside jobs: nodes, capacity, reservations, steps that begin, scripts.
. "$(dirname "$0")/../lib.sh"
cluster_of events <<'END'
[accounting]
store = "job_script,job_env"
[[nodes]]
names = "n[1-2]"
cpus = 4
END
me=$(id -un)
journal() { spur journal | cut -d' ' -f3-; }
said() { journal | grep -q "$@"; }

ok "what all nodes have" wait_for 30 said "^capacity nodes=n\[1-2\] tres=cpu=8,"
scontrol update nodename=n2 state=drain reason="bad fan"
ok "a node that is drained, why and by whom" wait_for 30 said "^node node=n2 state=IDLE flags=0x200 reason=bad fan by=$me tres=cpu=4,"
scontrol update nodename=n2 state=resume
scontrol create reservation reservationname=maint starttime=now duration=60 nodes=n2 users="$me" >/dev/null
ok "a reservation" wait_for 30 said "^reservation name=maint .*nodes=n2 tres=cpu=4"
scontrol delete reservationname=maint
ok "and its end" wait_for 30 said "^reservation_ended text=maint"

cat >"$T/job.sh" <<'END'
#!/bin/bash
srun --overlap sleep 100
END
export MARK=seen
a=$(submit -o /dev/null "$T/job.sh")
ok "a step that began" wait_for 30 said "^step_started job=$a.0 "
ok "a script and its environment" wait_for 30 said "^payload job=$a script=[1-9]"
kept() { sacct -j "$a" "$1" 2>/dev/null | grep -qx "$2"; }
ok "sacct shows the script" wait_for 60 kept --batch-script "srun --overlap sleep 100"
ok "and the environment" wait_for 30 kept --env-vars "MARK=seen"
scancel "$a"
done_testing
