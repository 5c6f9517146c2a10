#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A controller whose memory changes by itself is found out, reads its state again and is the same as the others.
. "$(dirname "$0")/../lib.sh"
command -v etcd >/dev/null || skip_all "etcd is not installed"
cluster_up --nodes 1 --cpus 2 --controllers 3

leader() { spur controller list 2>/dev/null | awk '$2 == "leader" { print $1 }'; }
other() { spur controller list 2>/dev/null | awk '$2 == "follower" { print $1; exit }'; }
pid() { cut -d' ' -f1 "$D/run/$1.pid"; }
logged() { grep -c "$2" "$D/log/$1.log"; }
has_logged() { [ "$(logged "$1" "$2")" -ge "${3:-1}" ]; }
same() { [ "$(spur controller list 2>/dev/null | awk 'NR > 1 { print $4, $6 }' | sort | uniq -c | awk '{ print $1 }')" = 3 ]; }
# The job's comment as that controller has it.
comment() { SPUR_CONTROLLER_ADDR=unix:$D/run/$1.sock squeue -h --stale -j "$2" -o %k 2>/dev/null; }
flip() { python3 "$HERE/../flip.py" "$(pid "$1")" "$2" 2>"$T/.err"; }

job=$(submit -H --comment=unseen-0 -o /dev/null --wrap true)
ok "three controllers are the same" wait_for 20 same
follower=$(other)
ok "each has the job" wait_for 10 eval "[ \"\$(comment $follower $job)\" = unseen-0 ]"
flip "$follower" unseen-0 >"$T/places" || skip_all "the memory of a controller cannot be written: $(tail -n1 "$T/.err")"
was=$(pid "$follower")
ok "a record that nobody writes is found" wait_for 30 has_logged "$follower" 'state.reload.*record of job '"$job"' is damaged'
ok "the follower has it right again" wait_for 30 eval "[ \"\$(comment $follower $job)\" = unseen-0 ]"
ok "all three are the same again" wait_for 30 same
is "in the same process" "$(pid "$follower")" "$was"

# One that is written: the wrong bytes go into the digest, and the marks of the others tell.
job=$(submit -H --comment=written-0 -o /dev/null --wrap true)
wait_for 20 same
flip "$follower" written-0 >/dev/null && scontrol update job="$job" nice=7
ok "a record that is written afterwards is found" wait_for 30 has_logged "$follower" 'state.reload' 2
grep -h 'state.reload' "$D/log/$follower.log" | tail -n1 | sed 's/^/# /'
ok "the follower has it right again" wait_for 30 eval "[ \"\$(comment $follower $job)\" = written-0 ]"
ok "all three are the same again" wait_for 30 same

# The leader.
leads=$(leader)
job=$(submit -H --comment=leading-0 -o /dev/null --wrap true)
wait_for 20 same
flip "$leads" leading-0 >/dev/null && scontrol update job="$job" nice=7
ok "so is the leader" wait_for 30 has_logged "$leads" 'state.reload'
grep -h 'state.reload' "$D/log/$leads.log" | tail -n1 | sed 's/^/# /'
ok "work goes on" wait_for 30 sbatch -Q -o /dev/null --wrap true
ok "all three are the same again" wait_for 30 same
for c in ctl1 ctl2 ctl3; do
    is "$c has it right" "$(comment $c "$job")" leading-0
done
is "nothing was lost" "$(squeue -h -o %k | sort | grep -c -- '-0$')" 3

# An administrator's word, which is needed where no majority can tell.
run spur controller trust ctl2
is "an administrator may say who is right" "$code:$out" "0:the state of ctl2 is the right one"
ok "that one knows" wait_for 5 has_logged ctl2 state.trusted
run spur controller trust ctl9
is "a name that nobody has is refused" "$code:$err" "1:spur controller: error: there is no controller 'ctl9'"
if [ "$(id -u)" -eq 0 ]; then
    run as_user spur controller trust ctl2
    like "an ordinary user may not" "$code:$err" "1:.*(denied|permission)"
fi
done_testing
