#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Controllers come and go while jobs run: one becomes three and one again, one lags, one dies, leaders change.
# seconds: 120
. "$(dirname "$0")/../lib.sh"
command -v etcd >/dev/null || skip_all "etcd is not installed"
printf 'cluster_name = "spur"\n[controller]\nsnapshot_bytes = 65536\n' >"$T/conf"
cluster_up --nodes 2 --cpus 4 --conf "$T/conf"
all=unix:$D/run/ctl1.sock,unix:$D/run/ctl2.sock,unix:$D/run/ctl3.sock
role() { spur controller list 2>/dev/null | awk -v n="$1" '$1 == n { print $2 }'; }
role_is() { [ "$(role "$1")" = "$2" ]; }
# N controllers answer, with the same index and digest.
agree() { spur controller list 2>/dev/null | awk -v n="$1" 'NR > 1 && $2 != "down" { c++; d[$4 " " $6] = 1 } END { for (k in d) u++; exit !(c == n && u == 1) }'; }
kill9() { local pid; pid=$(cut -d' ' -f1 "$D/run/$1.pid"); kill -9 "$pid"; while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done; }
big_script() { { echo '#!/bin/sh'; echo "# mark $1"; head -c 3000 /dev/urandom | base64 | sed 's/^/# /'; echo true; } >"$T/big.sh"; }

running=$(submit -o "$T/long.txt" --wrap "while [ ! -e $T/go ]; do sleep 0.2; done; echo survived")
big_script first
held=$(submit -H -o /dev/null "$T/big.sh")
like "one controller has its log in SQLite" "$(spur controller list)" "ctl1 +leader .* sqlite "
if [ "$(id -u)" -eq 0 ]; then
    run as_user spur controller add ctl9 127.0.0.1:1
    like "an ordinary user adds no controller" "$err" "denied|permission"
fi

# ---- one becomes three ----
run spur up --dir "$D" --controllers 3
is "one becomes three" "$code" 0
like "and says how long writes waited" "$out" "no writes for [0-9]+ ms"
export SPUR_CONTROLLER_ADDR=$all
ok "all three agree" wait_for 30 agree 3
like "their log is in etcd" "$(spur controller list)" "ctl3 .* etcd "
is "what was submitted to the one is there" "$(job_state "$held") $(job_state "$running")" "PENDING RUNNING"
like "the list is in the configuration that is given out" "$(scontrol show config)" "ctl3"

# ---- an invitation is one controller's ----
echo "ctl4 127.0.0.1:1 99999999999 $(printf 'ab%.0s' {1..64}) sha256:$(printf '0%.0s' {1..64}) 127.0.0.1:$(cut -d' ' -f1 "$D/run/ports")" >"$T/forged"
chmod 600 "$T/forged"
run timeout 30 "$SPUR_BUILD/src/spurctld/spurctld" -D -f "$D/spur.conf" --name ctl4 --state-dir "$T/ctl4" --listen 127.0.0.1:1 --socket "$T/ctl4.sock" --join "$T/forged"
is "who does not know the cluster's authority does not enter" "$code" 1
not_ok "and has got nothing" test -e "$T/ctl4/keys/cluster.key"

# ---- one lags behind what is trimmed ----
kill9 ctl3
for i in $(seq 60); do big_script "$i"; sbatch -Q -H -o /dev/null "$T/big.sh" >/dev/null || fail "submit $i"; done
ok "the log was trimmed meanwhile" wait_for 30 grep -qs 'log.trim' "$D/log/ctl1.log" "$D/log/ctl2.log"
ok "it starts again" spur up --quiet --dir "$D"
ok "fetches a snapshot" wait_for 30 grep -q 'peers.snapshot.*index=' "$D/log/ctl3.log"
ok "and all agree" wait_for 30 agree 3

# ---- leaders change ----
run spur controller transfer ctl3
is "ctl3 leads when told to" "$code $(role ctl3)" "0 leader"
like "it has the scripts that were trimmed from the log" "$(scontrol write batch_script "$held" - 2>&1)" "mark first"
run spur controller transfer nobody
is "nobody else can" "$code:$err" "1:spur controller: error: there is no controller 'nobody'"

# ---- a dead one is removed ----
kill9 ctl2
run spur controller remove ctl2
is "a dead one is removed" "$code" 0
unlike "and is not in the list" "$(spur controller list 2>/dev/null)" "^ctl2 "
ok "when it comes back it reads that it is gone" eval "spur up --quiet --dir '$D'; wait_for 30 grep -q '^removed yes' '$D/state/ctl2/controllers'"

# ---- the leader is removed: one is left ----
run spur controller remove ctl3
is "the leader is removed: it hands over first" "$code" 0
export SPUR_CONTROLLER_ADDR=unix:$D/run/ctl1.sock
ok "the last one's log is in SQLite again" wait_for 30 eval 'spur controller list | grep -q "ctl1 .*leader.* sqlite "'
is "every job is there" "$(squeue -h -t pending | wc -l)" 61
next=$(submit -H -o /dev/null --wrap true)
ok "ids go on" test "$next" -gt "$((held + 60))"
is "the running job is untouched" "$(job_state "$running")" RUNNING
touch "$T/go"
ok "and ends as it should" wait_for 30 job_is "$running" COMPLETED
is "once" "$(cat "$T/long.txt")" survived
ok "nodes are with the one that is left" wait_for 30 eval '[ "$(sinfo -h -o %t)" = idle ]'
run spur controller remove ctl1
is "the last one stays" "$code" 1
done_testing
