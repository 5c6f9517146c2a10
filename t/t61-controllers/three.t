#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Three controllers on real etcd: any of them may be asked, and any may die.
# seconds: 180
. "$(dirname "$0")/../lib.sh"
command -v etcd >/dev/null || skip_all "etcd is not installed"
cluster_up --controllers 3 --nodes 2 --cpus 4

leader() { scontrol ping | sed -n 's/.*primary) at \(ctl[0-9]\) is UP/\1/p'; }
id=$(submit -o "$T/long.txt" --wrap 'sleep 25; echo survived')
ok "a job runs" wait_for 20 job_is "$id" RUNNING
for c in ctl1 ctl2 ctl3; do
    is "$c leads to the same answer" "$(SPUR_CONTROLLER_ADDR=unix:$D/run/$c.sock squeue -h -o %A)" "$id"
done
first=$(leader)
for c in ctl1 ctl2 ctl3; do
    run env SPUR_CONTROLLER_ADDR="unix:$D/run/$c.sock" squeue -h --stale -o %A
    is "$c answers by itself when an old answer will do" "$out" "$id"
    like "$c says that it may be old" "$err" "may be old"
done

# A leader that cannot reach a majority does not know whether it still leads.
for c in ctl1 ctl2 ctl3; do [ $c = "$first" ] || kill -STOP "$(cut -d' ' -f1 "$D/state/$c/etcd/etcd.pid")"; done
run env SPUR_CONTROLLER_ADDR="unix:$D/run/$first.sock" squeue -h
is "a leader without a majority does not answer a read" "$code $out" "1 "
run env SPUR_CONTROLLER_ADDR="unix:$D/run/$first.sock" squeue -h --stale -o %A
is "unless an old answer will do" "$out" "$id"
run env SPUR_CONTROLLER_ADDR="unix:$D/run/$first.sock" sinfo -h -N -o %N
is "nor one about nodes" "$code $out" "1 "
run env SPUR_CONTROLLER_ADDR="unix:$D/run/$first.sock" sinfo -h -N --stale -o %N
is "unless an old one will do" "$(echo $out)" "n1 n2"
like "which says so" "$err" "sinfo: this may be old"
for c in ctl1 ctl2 ctl3; do [ $c = "$first" ] || kill -CONT "$(cut -d' ' -f1 "$D/state/$c/etcd/etcd.pid")"; done
ok "it goes on with the majority" wait_for 30 squeue -h
first=$(leader)
held=$(submit -H -o /dev/null --wrap true)
kill -9 "$(cut -d' ' -f1 "$D/run/$first.pid")"
begin=$(date +%s%N)
ok "writes are accepted again after the leader was killed" wait_for 30 sbatch -Q -o /dev/null --wrap true
took=$((($(date +%s%N) - begin) / 1000000))
echo "# figure F3 leader killed to write accepted: $took ms"
ok "without waiting for a lease to end ($took ms)" test "$took" -lt 3000
isnt=$(leader)
unlike "another one leads" "$isnt" "^$first\$|^\$"
is "what was acknowledged is there" "$(job_state "$held")" PENDING
is "the running job is untouched" "$(job_state "$id")" RUNNING
ok "it ends as it should" wait_for 60 job_is "$id" COMPLETED
is "once" "$(cat "$T/long.txt")" survived
ok "the killed one comes back" spur up --quiet --dir "$D"
ok "and all three are up" wait_for 20 eval '[ "$(scontrol ping | grep -c UP)" = 3 ]'
next=$(submit -H -o /dev/null --wrap true)
ok "ids go on" test "$next" -gt "$held"

second=$(leader)
ok "scontrol takeover" scontrol takeover
unlike "makes another one lead" "$(leader)" "^$second\$|^\$"
ok "scontrol takeover INDEX" scontrol takeover 0
is "makes that one lead" "$(leader)" "$(scontrol show config | sed -n 's/^SlurmctldHost\[0\] *= \([^(]*\).*/\1/p')"
run scontrol takeover 7
is "one that is not there does not" "$code $err" "1 slurm_takeover error: there is no controller of that number"
second=$(leader)
begin=$(date +%s%N)
kill -TERM "$(cut -d' ' -f1 "$D/run/$second.pid")"
ok "a leader that is told to stop hands over" wait_for 30 sbatch -Q -H -o /dev/null --wrap true
took=$((($(date +%s%N) - begin) / 1000000))
ok "at once ($took ms)" test "$took" -lt 3000
done_testing
