#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# F8 with a fence program: when it says that a silent node is off, all of its jobs run elsewhere at once
. "$(dirname "$0")/../lib.sh"
cat >"$T/fence" <<END
#!/bin/bash
echo "\$1 \$SLURMD_NODENAME" >>"$T/fenced"
while [ ! -e "$T/off" ]; do sleep 0.1; done
[ "\$(cat "$T/off")" = yes ]
END
chmod 755 "$T/fence"
cat >"$T/fence.conf" <<CONF
[agent]
node_lease = 3
node_timeout = 4
timeout = 600
fence_program = "$T/fence"
CONF
cluster_up --nodes 2 --cpus 4 --conf "$T/fence.conf"
restarts() { scontrol -o show job "$1" | sed -n 's/.* Restarts=\([0-9]*\).*/\1/p'; }

filler=$(submit -w n1 -n4 -o /dev/null --wrap 'sleep 600')
ok "a node is full" wait_for 30 job_is "$filler" RUNNING
later=$(submit --no-requeue -o /dev/null --wrap 'sleep 600')
ok "a job runs on the other" wait_for 30 job_is "$later" RUNNING
is "it is n2" "$(squeue -h -j "$later" -o %N)" n2
ok "it may be requeued from now on, which its node does not know" scontrol update jobid="$later" requeue=1
agent=$(cut -d' ' -f1 "$D/run/n2.pid")
kill -STOP "$agent" # the agent is silent, the job is not
ok "the program is asked to make sure" wait_for 60 grep -q '^n2 n2$' "$T/fenced"
ok "the job is requeued meanwhile" scontrol requeue "$later"
scancel "$filler"
ok "a node is free" wait_for 30 job_is "$filler" CANCELLED
is "it waits for the silent node: its first attempt may still run" "$(restarts "$later") $(squeue -h -j "$later" -o %T)" "1 COMPLETING"
echo yes >"$T/off"
ok "when the program says that the node is off it runs elsewhere" wait_for 60 eval '[ "$(squeue -h -j "$later" -o "%T %N")" = "RUNNING n1" ]'
is "it was asked once" "$(grep -c . "$T/fenced")" 1
kill -CONT "$agent"
ok "a node that was on all the same is told so" wait_for 60 eval 'sinfo -h -N -n n2 -o %T | grep -qE "idle|mixed"'
is "the job goes on" "$(squeue -h -j "$later" -o "%T %N")" "RUNNING n1"
scancel "$later"
done_testing
