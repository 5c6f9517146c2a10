#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# F8 with leases: a node that hears no controller holds still what may run elsewhere, and only that.
. "$(dirname "$0")/../lib.sh"

cat >"$T/lease.conf" <<'CONF'
[agent]
node_lease = 3
node_timeout = 4
timeout = 20
CONF
cluster_up --nodes 2 --cpus 4 --conf "$T/lease.conf"
# Says every 20 ms which attempt it is, and where.
ticks() { # FILE
    printf '#!/bin/bash\nwhile :; do echo "${SLURM_RESTART_COUNT:-0} $SLURMD_NODENAME" >>%s; sleep 0.02; done\n' "$1" >"$1.sh"
    chmod 755 "$1.sh"
}
ticks "$T/bound"
ticks "$T/later"
count() { grep -c "^$2 " "$1"; }
restarts() { scontrol -o show job "$1" | sed -n 's/.* Restarts=\([0-9]*\).*/\1/p'; }

filler=$(submit -w n1 -n 4 -o /dev/null --wrap 'sleep 600')
wait_for 30 job_is "$filler" RUNNING
bound=$(submit --requeue -o /dev/null "$T/bound.sh")
later=$(submit --no-requeue -o /dev/null "$T/later.sh")
ok "two jobs run on n2" wait_for 30 eval 'grep -q n2 "$T/bound" && grep -q n2 "$T/later"'
ok "one of them may be requeued from now on, which its node does not know" scontrol update jobid="$later" requeue=1
scancel "$filler"
agent=$(cut -d' ' -f1 "$D/run/n2.pid")
kill -STOP "$agent" # the agent is silent, the jobs are not
ok "what the node was told may be requeued is started again" wait_for 60 eval '[ "$(restarts $bound)" = 1 ]'
still=$(count "$T/bound" 0)
going=$(count "$T/later" 0)
ok "on another node" wait_for 30 grep -q '^1 n1' "$T/bound"
ok "what it was not told goes on" wait_for 30 eval '[ "$(count "$T/later" 0)" -gt "$going" ]'
is "while the first attempt of the other stands still" "$(count "$T/bound" 0)" "$still"
is "and is not started again" "$(restarts "$later")" 0
ok "when the node is given up, it has failed" wait_for 60 job_is "$later" NODE_FAIL
is "and was never started again" "$(count "$T/later" 1)" 0
kill -CONT "$agent"
ok "the node comes back" wait_for 60 eval 'sinfo -h -N -n n2 -o %T | grep -qE "idle|mixed"'
stands() { local was; was=$(count "$T/later" 0); sleep 0.5; [ "$(count "$T/later" 0)" = "$was" ]; }
ok "and ends what is not its any more" wait_for 30 stands
is "the requeued job goes on" "$(job_state "$bound")" RUNNING
is "its first attempt never moved again" "$(count "$T/bound" 0)" "$still"
scancel "$bound"
done_testing
