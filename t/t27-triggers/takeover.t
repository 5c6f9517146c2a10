#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Triggers over a change of the leader: they are kept, and each program runs once.
. "$(dirname "$0")/../lib.sh"
command -v etcd >/dev/null || skip_all "etcd is not installed"
cluster_up --controllers 3 --nodes 1 --cpus 2
cat >"$T/note" <<EOF
#!/bin/sh
echo "\$*" >>"$T/noted"
EOF
chmod 755 "$T/note"
lines() { [ "$(cat "$T/noted" 2>/dev/null | sort | xargs)" = "$1" ]; }
leader() { scontrol ping | sed -n 's/.*primary) at \(ctl[0-9]\) is UP/\1/p'; }
ok "the first one leads" eval '[ "$(leader)" = ctl1 ] || scontrol takeover 0'
job=$(sub -t 10)
runs "$job" >/dev/null
ok "when another takes over" strigger --set -C -p "$T/note"
ok "when the first one fails" strigger --set -a -p "$T/note"
ok "a while after the job's end" strigger --set -f -j "$job" -o 3 -p "$T/note"
ok "a node, for good" strigger --set -d --flags=perm -p "$T/note"
scancel "$job"
kill -9 "$(cut -d' ' -f1 "$D/run/ctl1.pid")"
ok "each program ran once, by the new leader" wait_for 40 lines "$job backup_slurmctld_assumed_control primary_slurmctld_failure"
is "what is permanent is left" "$(strigger --get -N | wc -l)" 1
ok "the killed one comes back" spur up --quiet --dir "$D"
ok "back to the first" scontrol takeover 0
ok "down" scontrol update nodename=n1 state=down reason=test
ok "it knows the trigger too" wait_for 20 eval 'grep -qx n1 "$T/noted"'
is "and nothing ran again" "$(wc -l <"$T/noted")" 4
done_testing
