#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A clean end writes the state, so that the next start replays nothing; whatever happens to that, nothing is lost.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 1 --cpus 4 --controllers 1
state=$D/state/ctl1 log=$D/log/ctl1.log
pid_of() { cut -d' ' -f1 "$D/run/$1.pid"; }
gone() { ! grep -qs '^State:[[:space:]]*[^ZX]' "/proc/$1/status"; }
ends() { kill -TERM "$1" && wait_for 60 gone "$1"; }
again() { (cd / && spur up --quiet --dir "$D" >>"$T/up.log" 2>&1); }
names() { local i; for ((i = index; i <= index + 200; i++)); do printf '%s/snapshot-%020d.tmp\n' "$state" $i; done; } # of the next one
opened() { grep ' log.open ' "$log" | tail -1 | grep -o 'last=.*'; }

runs_on=$(submit -o /dev/null --wrap "while [ ! -e $T/end ]; do sleep 0.1; done; exit 3")
wait_for 30 job_is "$runs_on" RUNNING

# ---- as it should be ----
held=$(submit -H -o /dev/null --wrap true)
ok "told to end, it ends" ends "$(pid_of ctl1)"
like "and has written the state" "$(tail -1 "$log")" 'snapshot.end index=[0-9]+ took_us='
index=$(tail -1 "$log" | grep -o 'index=[0-9]*' | cut -d= -f2)
ok "it starts again" again
is "from there" "$(opened)" "last=$index snapshot=$index"
is "with everything" "$(job_state "$held") $(job_state "$runs_on")" "PENDING RUNNING"

# ---- the disk is full ----
second=$(submit -H -o /dev/null --wrap true)
ok "ids go on" [ "$second" -gt "$held" ]
names | xargs -n 1 ln -s /dev/full
ok "it ends on a full disk too" ends "$(pid_of ctl1)"
like "and says what it did not write" "$(tail -1 "$log")" 'snapshot.end index=[0-9]+ given up'
ok "it starts again" again
unlike "from the log" "$(opened)" "last=([0-9]+) snapshot=\\1$"
is "with everything" "$(job_state "$held") $(job_state "$second") $(job_state "$runs_on")" "PENDING PENDING RUNNING"

# ---- killed while it writes ----
third=$(submit -H -o /dev/null --wrap true)
names | xargs mkfifo # who writes waits for a reader
ctl=$(pid_of ctl1)
kill -TERM "$ctl"
ok "the state is being written" wait_for 30 eval "grep -q . /proc/$ctl/task/$ctl/children"
child=$(cut -d' ' -f1 "/proc/$ctl/task/$ctl/children")
kill -9 "$ctl"
ok "who writes it ends with the controller" wait_for 30 gone "$child"
ok "it starts again" again
is "with everything" "$(job_state "$held") $(job_state "$second") $(job_state "$third") $(job_state "$runs_on")" "PENDING PENDING PENDING RUNNING"

# ---- a disk that does not answer ----
fourth=$(submit -H -o /dev/null --wrap true)
names | xargs mkfifo
ok "it does not wait for ever" ends "$(pid_of ctl1)"
like "and says so" "$(tail -1 "$log")" 'snapshot.end index=[0-9]+ given up'
ok "it starts again" again
is "with everything" "$(job_state "$fourth") $(job_state "$runs_on")" "PENDING RUNNING"
scontrol release "$held" "$fourth"
ok "what waited runs" wait_for 30 eval "job_is $held COMPLETED && job_is $fourth COMPLETED"
touch "$T/end"
ok "and what ran all the time ends" wait_for 30 job_is "$runs_on" FAILED
done_testing
