#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Three controllers have the same journal, also the one that lagged behind and got a snapshot.
. "$(dirname "$0")/../lib.sh"
command -v etcd >/dev/null || skip_all "etcd is not installed"
printf 'cluster_name = "spur"\n[accounting]\nenabled = false\n[controller]\nsnapshot_bytes = 65536\njournal_segment_bytes = 8192\n' >"$T/conf"
cluster_up --nodes 2 --cpus 4 --controllers 3 --conf "$T/conf"
export SPUR_CONTROLLER_ADDR=unix:$D/run/ctl1.sock,unix:$D/run/ctl2.sock,unix:$D/run/ctl3.sock
kill9() { local pid; pid=$(cut -d' ' -f1 "$D/run/$1.pid"); kill -9 "$pid"; while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done; }
of() { SPUR_CONTROLLER_ADDR=unix:$D/run/$1.sock spur journal --stale --json; }
same() { local one; one=$(of ctl1 | sha256sum) && [ "$one" = "$(of ctl2 | sha256sum)" ] && [ "$one" = "$(of ctl3 | sha256sum)" ]; }
count() { of "$1" | grep -o "\"kind\": \"$2\"" | wc -l; }
leader() { spur controller list 2>/dev/null | awk '$2 == "leader" { print $1 }'; }
big() { { echo '#!/bin/sh'; head -c 3000 /dev/urandom | base64 | sed 's/^/# /'; echo true; } >"$T/big.sh"; }

for i in 1 2 3; do submit -o /dev/null --wrap 'srun true' >/dev/null; done
all_ended() { [ "$(count ctl1 ENDED)" -eq "$1" ] && [ "$(count ctl1 STEP)" -eq 3 ]; }
ok "jobs and steps end" wait_for 30 all_ended 3
ok "every controller has the same journal" wait_for 30 same

# ---- one lags behind what is trimmed ----
lagging=ctl3
[ "$(leader)" != ctl3 ] || lagging=ctl2
kill9 $lagging
for i in $(seq 60); do big; sbatch -Q -H -o /dev/null "$T/big.sh" >/dev/null || fail "submit $i"; done
ok "the log was trimmed meanwhile" wait_for 30 grep -qs 'log.trim' "$D"/log/ctl[123].log
ok "it starts again" spur up --quiet --dir "$D"
ok "fetches a snapshot" wait_for 30 grep -q 'peers.snapshot.*index=' "$D/log/$lagging.log"
ok "and what the journal lacks" wait_for 30 grep -q 'peers.journal.*from=' "$D/log/$lagging.log"
ok "so that all have the same again" wait_for 30 same
is "with every job" "$(count $lagging SUBMITTED)" 63
unlike "and no hole" "$(of $lagging)" lost_from

# ---- a new leader ----
first=$(leader)
kill9 "$first"
other() { local now; now=$(leader); [ -n "$now" ] && [ "$now" != "$first" ]; }
ok "another leads" wait_for 30 other
run spur journal --json
is "it has the journal" "$code $(grep -o '"kind": "SUBMITTED"' <<<"$out" | wc -l)" "0 63"
last=$(tail -1 <<<"$out" | python3 -c 'import sys, json; print(json.load(sys.stdin)["index"])')
ok "what is acknowledged to it" spur journal --ack "$last"
ok "the dead one comes back" spur up --quiet --dir "$D"
gone() { ! of "$1" | grep -q '"kind": "STARTED"'; }
ok "and all forget it, the one that was away too" wait_for 30 eval "gone ctl1 && gone ctl2 && gone ctl3"
done_testing
