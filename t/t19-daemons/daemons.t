#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# daemons.t - slurmctld and slurmd under Slurm's names: slurm.conf is written, daemons are started, stopped and
# started again, and scontrol show config says what holds. No option of ours is given anywhere.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all "slurmd gets its token as root"
host=$(hostname -s)
export SLURM_CONF=$T/etc/slurm.conf SPUR_RUN_DIR=$T/run
mkdir "$T/etc" "$T/pid" "$T/log"

stop_all() {
    local file pid
    for file in "$T"/pid/*.pid; do
        [ -s "$file" ] && pid=$(cat "$file") && kill -QUIT "$pid" 2>/dev/null
    done
    for file in "$T"/pid/*.pid; do
        [ -s "$file" ] || continue
        pid=$(cat "$file")
        wait_for 20 eval "! kill -0 $pid" || kill -9 "$pid" 2>/dev/null
    done
}
trap 'code=$?; stop_all; (exit $code); finish' EXIT

# Four ports in a row that nobody has, below those the kernel gives out by itself.
free_ports() {
    python3 - <<'END'
import random, socket
while True:
    first = random.randrange(20000, 32000)
    try:
        for port in range(first, first + 5):
            with socket.socket(socket.AF_INET6) as s:
                s.bind(("::", port))
    except OSError:
        continue
    print(first)
    break
END
}
base=$(free_ports)

write_conf() { # KEY=VALUE…
    { printf '%s\n' ClusterName=names "SlurmctldHost=$host(127.0.0.1)" "SlurmctldPort=$base" AuthType=auth/munge SlurmUser=root \
        "StateSaveLocation=$T/state" "SlurmdSpoolDir=$T/spool.%n" "SlurmctldPidFile=$T/pid/slurmctld.pid" "SlurmdPidFile=$T/pid/%n.pid" \
        "SlurmctldLogFile=$T/log/slurmctld.log" "SlurmdLogFile=$T/log/%n.log" SlurmdParameters=config_overrides \
        TaskPlugin=task/none ReturnToService=2 DisableRootJobs=NO "include nodes.conf" "$@"
    } >"$SLURM_CONF"
}
cat >"$T/etc/nodes.conf" <<END
NodeName=n[1-3] NodeAddr=127.0.0.1 NodeHostname=$host Port=$((base + 1))-$((base + 3)) CPUs=2 RealMemory=1000 State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES State=UP
END
value() { scontrol show config | sed -n "s/^$1 *= //p"; }
all_idle() { [ "$(sinfo -h -N -o '%N %t' | sort -u | tr '\n' ' ')" = 'n1 idle n2 idle n3 idle ' ]; }
answers() { scontrol ping | grep -q 'is UP'; }
gone() { ! kill -0 "$1" 2>/dev/null; }

for daemon in slurmctld slurmd sackd slurmrestd; do
    is "$daemon -V" "$($daemon -V)" 'slurm 26.11.0'
    like "$daemon --help lists Slurm's options" "$($daemon --help)" $'\n  -f FILE'
    run $daemon --no-such-option
    is "$daemon refuses what Slurm does not have" "$code:${err%%:*}" "1:$daemon"
done
like "slurmd -C prints the node" "$(env -u SLURM_CONF slurmd -C -N this)" "^NodeName=this CPUs=[0-9]+ Boards=.* RealMemory=[0-9]+"
ok "slurmd -G looks for devices" env -u SLURM_CONF slurmd -G
for option in -Z -b -F -Fbig '--conf CPUs=1' '--instance-id x'; do
    run slurmd $option
    like "slurmd $option is refused with a reason" "$code:$err" "^1:slurmd: error: -.* is refused: [a-z]"
done
run slurmctld -n 40
like "a nice value out of range" "$code:$err" "^1:slurmctld: error: -n '40' is not a nice value"
run slurmctld -f "$T/none"
like "a file that is not there is named" "$code:$err" "^1:.*$T/none"

# slurmd may come first: it waits for its controller in the background.
write_conf KillWait=7
ok "slurmd starts before there is a controller" slurmd -N n1
ok "and has written its process id" test -s "$T/pid/n1.pid"
ok "slurmctld starts" slurmctld -n 1
ok "and has written its own" kill -0 "$(cat "$T/pid/slurmctld.pid")"
is "-n is its nice value" "$(ps -o ni= -p "$(cat "$T/pid/slurmctld.pid")" | tr -d ' ')" 1
ok "slurmd -N n2, with its memory locked" slurmd -N n2 -M -s -v
unlike "-M" "$(grep VmLck "/proc/$(cat "$T/pid/n2.pid")/status")" ' 0 kB'
is "-s: it works beside its log" "$(readlink "/proc/$(cat "$T/pid/n2.pid")/cwd")" "$T/log"
ok "slurmd -N n3" slurmd -N n3 -c
ok "all three nodes are idle" wait_for 60 all_idle
is "each listens on its port of the range" "$(scontrol show node | sed -n 's/.* Port=\([0-9]*\).*/\1/p' | tr '\n' ' ')" "$((base + 1)) $((base + 2)) $((base + 3)) "
is "show config: KillWait" "$(value KillWait)" '7 sec'
is "show config: SlurmctldPort" "$(value SlurmctldPort)" "$base"
is "show config: the file" "$(value SLURM_CONF)" "$SLURM_CONF"
is "a job runs on all" "$(srun -N3 -l sh -c 'echo $SLURMD_NODENAME' | sort | tr '\n' ' ')" '0: n1 1: n2 2: n3 '

# The file is rewritten; slurmctld reads it when told, and when it starts.
write_conf KillWait=9
ok "scontrol reconfigure" scontrol reconfigure
is "the new value holds" "$(value KillWait)" '9 sec'
job=$(sbatch --parsable -o /dev/null -w n3 --wrap 'sleep 300')
ok "a job runs" wait_for 30 job_is "$job" RUNNING
pid=$(cat "$T/pid/slurmctld.pid")
kill "$pid"
ok "slurmctld stops" wait_for 30 gone "$pid"
not_ok "its pid file has gone" test -e "$T/pid/slurmctld.pid"
write_conf KillWait=11 MessageTimeout=17
ok "it starts again, with -f and in spite of what were damaged" slurmctld -i -f "$SLURM_CONF"
now() { [ "$(value KillWait) $(value MessageTimeout)" = '11 sec 17 sec' ]; }
ok "with the file of now" wait_for 30 now
is "and the job of before" "$(job_state "$job")" RUNNING
pid=$(cat "$T/pid/n3.pid")
kill "$pid"
ok "slurmd stops" wait_for 30 gone "$pid"
is "its job goes on" "$(job_state "$job")" RUNNING
ok "slurmd starts again, without a new token" slurmd -N n3
back() { scancel "$job" && wait_for 2 job_is "$job" CANCELLED; }
ok "and takes orders" wait_for 30 back
ok "all are idle again" wait_for 60 all_idle

run slurmctld -c
like "slurmctld -c is refused with a reason" "$code:$err" "^1:slurmctld: error: -c is refused: .*SlurmdSpoolDir"
pid=$(cat "$T/pid/slurmctld.pid")
scontrol shutdown slurmctld
ok "scontrol shutdown" wait_for 30 gone "$pid"
# systemd's way, and a program of our own: in the foreground.
slurmctld --systemd 2>"$T/foreground" &
ctl=$!
ok "--systemd stays in the foreground" wait_for 30 answers
is "as this process" "$(cat "$T/pid/slurmctld.pid")" $ctl
done_testing
