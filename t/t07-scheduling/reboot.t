#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# reboot.t - scontrol reboot, cancel_reboot, --reboot: nodes that are started anew, as their boot id says
#
# The "machine" of a node is its agent: the reboot program ends it and starts it again with another boot id.
. "$(dirname "$0")/../lib.sh"

export SPUR_SYSROOT=$T/machine
mkdir -p "$SPUR_SYSROOT/proc/sys/kernel/random"
boot_id=$SPUR_SYSROOT/proc/sys/kernel/random/boot_id
echo first >"$boot_id"

cluster_of reboots <<'END'
[access]
disable_root_jobs = false
[[nodes]]
names = "n[1-3]"
cpus = 4
memory_mb = 1000
END
state() { sinfo -h -N -n "$1" -o %T; }
is_state() { [ "$(state "$1")" = "$2" ]; }
reason() { scontrol -o show node "$1" | sed -n 's/.*Reason=\(.*\) \[.*/\1/p'; }
told() { grep -c "^$1$" "$T/asked" 2>/dev/null; }
was_told() { [ "$(told "$1")" = "$2" ]; }

run scontrol reboot n1
is 'without a program it fails' $code 1
is '... and says why' "$err" 'scontrol_reboot_nodes error: RebootProgram is not configured'
run sbatch --reboot -o /dev/null --wrap true
is 'so does a job' $code 1
like '... and says why' "$err" 'RebootProgram is not configured'

# A program of the site ends with its session, so what ends the agent has one of its own.
# What the machine does when it is told: nothing while $T/wait is there, for ever when $T/broken is.
cat >"$T/reboot" <<END
#!/bin/bash
export PATH=$PATH SPUR_SYSROOT=$SPUR_SYSROOT
echo \$SLURMD_NODENAME >>$T/asked
[ ! -e $T/broken ] || exit 1
rm -f $T/alone.\$SLURMD_NODENAME
setsid -f bash -c '
touch $T/alone.'\$SLURMD_NODENAME'
while [ -e $T/wait ]; do sleep 0.05; done
pid=\$(cut -d" " -f1 $D/run/'\$SLURMD_NODENAME'.pid)
kill -9 \$pid
while kill -0 \$pid 2>/dev/null; do sleep 0.02; done
{ flock 9
  echo boot-'\$SLURMD_NODENAME'-'\$RANDOM' >$boot_id
  cd / && spur up --quiet --dir $D 9>&-
} 9>$T/lock
' </dev/null >>$T/reboot.log 2>&1
while [ ! -e $T/alone.\$SLURMD_NODENAME ]; do sleep 0.02; done
END
chmod 755 "$T/reboot"
printf '[agent]\nreboot_program = "%s"\nresume_timeout = 60\n' "$T/reboot" >>"$D/spur.conf"
scontrol reconfigure

run scontrol reboot nextstate=UP n1
is 'what follows is RESUME or DOWN' "$code $err" '1 Invalid nextstate: UP. Must be RESUME or DOWN'
run scontrol reboot
is 'nodes must be named' $code 1
run scontrol reboot n9
is 'a node that is not there' "$code $err" '1 scontrol_reboot_nodes error: Invalid node name specified'
run as_user scontrol reboot n1
[ "$(id -u)" -ne 0 ] || like 'not for users' "$code $err" '^1 .*[Pp]ermission'
[ "$(id -u)" -ne 0 ] || { run as_user sbatch --reboot -D / -o /dev/null --wrap true; like 'nor by a job of theirs' "$code $err" '^1 .*[Pp]ermission'; }

# An idle node, at once.
touch "$T/wait"
before=$(scontrol -o show node n1 --json | grep -o '"boot_id": *"[^"]*"')
ok 'reboot an idle node' scontrol reboot reason=kernel n1
ok 'it is told' wait_for 20 was_told n1 1
is 'its state' "$(state n1)" 'reboot^'
is 'its reason' "$(reason n1)" 'kernel : reboot issued'
like 'its flags' "$(scontrol -o show node n1)" 'State=IDLE\+REBOOT_ISSUED'
run scontrol cancel_reboot n1
is 'it cannot be called off any more' "$code $err" '1 scontrol_cancel_reboot error: Node reboot in progress'
job=$(sub -w n1)
wait_for 20 eval '[ "$(squeue -h -j $job -o %r)" != None ]'
is 'a job for it waits' "$(squeue -h -j "$job" -o %r)" 'ReqNodeNotAvail, UnavailableNodes:n1'
rm "$T/wait"
is 'and runs when it is back' "$(runs "$job")" n1
is 'no reason is left' "$(reason n1)" ''
unlike 'it has another boot id' "$(scontrol -o show node n1 --json | grep -o '"boot_id": *"[^"]*"')" "^$before\$"

# A busy one: when it is idle. ASAP drains it.
ok 'reboot a busy node' scontrol reboot n1
like 'it is used on' "$(state n1)" '^mixed@$'
more=$(sub -w n1)
is 'another job starts there' "$(runs "$more")" n1
ok 'as soon as possible' scontrol reboot ASAP n1
is 'no more jobs' "$(state n1) $(reason n1)" 'draining@ Reboot ASAP'
ok 'call it off' scontrol cancel_reboot n1
is 'in use as before' "$(state n1)$(reason n1)" mixed
ok 'ask again, to stay down' scontrol reboot ASAP nextstate=DOWN reason=gone n1
like 'what follows is shown' "$(scontrol -o show node n1)" ' NextState=DOWN '
is 'nobody told it yet' "$(told n1)" 1
scancel "$job" "$more"
ok 'it is told when its last job ended' wait_for 20 was_told n1 2
ok 'and is down when it is back' wait_for 30 is_state n1 down
is 'with all that happened' "$(reason n1)" 'gone : reboot issued : reboot complete'
ok 'back in use' scontrol update NodeName=n1 State=RESUME
ok 'it is idle' wait_for 20 is_state n1 idle

# A job that wants its nodes rebooted. A new leader knows of it.
touch "$T/wait"
job=$(submit --reboot -N2 -w 'n[2-3]' -o "$T/out" --wrap 'srun hostname; echo done')
ok 'its nodes are told' wait_for 20 eval 'was_told n2 1 && was_told n3 1'
is 'it is configuring' "$(squeue -h -j "$job" -o '%t %N')" 'CF n[2-3]'
is 'its nodes are its own' "$(squeue -h -j "$job" -o %C)" 8
controller_again
wait_for 20 job_is "$job" CONFIGURING
is 'also for the next leader' "$(job_state "$job")" CONFIGURING
rm "$T/wait"
ok 'it runs when they are back' wait_for 60 job_is "$job" COMPLETED
is 'once' "$(tail -1 "$T/out")" done
ok 'its nodes are idle' wait_for 20 eval 'is_state n2 idle && is_state n3 idle'

# A machine that does not come back.
sed -i 's/^resume_timeout = 60/resume_timeout = 3/' "$D/spur.conf"
scontrol reconfigure
touch "$T/broken"
job=$(submit --reboot -w n2 -o /dev/null --wrap true)
ok 'who does not come back is down' wait_for 30 is_state n2 down
is 'and says why' "$(reason n2)" 'reboot issued : reboot timed out'
ok 'its job waits again' wait_for 20 job_is "$job" PENDING
scancel "$job"
done_testing
