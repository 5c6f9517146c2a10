#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The journal that accounting will read: what became of jobs and steps, once, whoever is killed meanwhile.
. "$(dirname "$0")/../lib.sh"
printf 'cluster_name = "spur"\n[accounting]\nenabled = false\n[controller]\nsnapshot_bytes = 65536\njournal_segment_bytes = 4096\n' >"$T/conf"
cluster_up --nodes 2 --cpus 4 --conf "$T/conf"
kill9() { local pid; pid=$(cut -d' ' -f1 "$D/run/$1.pid"); kill -9 "$pid"; while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done; }
# ask PYTHON: an expression over `rows`, the list of (entry, record).
ask() { spur journal --json | python3 -c "
import sys, json
rows = [(e, r) for e in map(json.loads, sys.stdin) for r in e.get('records', [])]
of = lambda job, *kinds: [r for e, r in rows if r.get('job_id') == job and r['kind'] in kinds]
print($1)"; }
idle() { [ -z "$(squeue -h -t all -o %t | grep -v '^CD\|^F\|^CA')" ]; }
index() { spur controller list | awk 'NR > 1 { print $4; exit }'; }
has() { [ "$(ask "$1")" = "$2" ]; }

# ---- what is in it ----
a=$(submit -J one -N2 -A phys --comment x -o /dev/null --wrap 'srun -l hostname; srun -n1 sh -c "exit 7"; exit 3')
ok "the job ends" wait_for 30 job_is "$a" FAILED
ok "its steps are in the journal" wait_for 30 has "len(of($a, 'STEP'))" 3
is "its life" "$(ask "[r['kind'] for r in of($a, 'SUBMITTED', 'STARTED', 'ENDED')]")" "['SUBMITTED', 'STARTED', 'ENDED']"
is "its end: state, exit, nodes, times" "$(ask "[(r['end_state'], r['job']['status']['exit_status'], [n['node'] for n in r['job']['status']['allocation']['nodes']], r['end_us'] >= r['start_us'] > 0) for r in of($a, 'ENDED')]")" "[('FAILED', 768, ['n1', 'n2'], True)]"
is "whose it was and what it asked for" "$(ask "[(r['job']['owner']['uid'], r['job']['spec']['name'], r['job']['spec']['comment'], r['job']['spec']['account'], r['job']['status']['tres_req']) for r in of($a, 'SUBMITTED')]")" "[($(id -u), 'one', 'x', 'phys', 'cpu=2,node=2,billing=2')]"
like "what the script used" "$(ask "[sorted(r['usage']) for r in of($a, 'ENDED')]")" "max_rss_bytes.*system_us.*user_us"
is "the steps: number, node, tasks, exit" "$(ask "sorted((r['step']['id']['step'], r['step']['node'], r['step']['tasks_here'], r['step']['exit_status'], r['step']['state'], r['step']['name']) for r in of($a, 'STEP'))")" "[(0, 'n1', 1, 0, 'COMPLETED', 'hostname'), (0, 'n2', 1, 0, 'COMPLETED', 'hostname'), (1, 'n1', 1, 1792, 'FAILED', 'sh')]"
like "in words too" "$(spur journal)" "ended job=$a attempt=1 .*name=one account=phys .*nodes=n\[1-2\] state=FAILED exit=3:0"

# ---- attempts, arrays, changes ----
b=$(submit --requeue -o /dev/null --wrap 'sleep 1000')
wait_for 30 job_is "$b" RUNNING
scontrol requeue "$b"
wait_for 30 job_is "$b" RUNNING || scontrol release "$b"
scontrol update jobid="$b" comment=later
ok "it runs again" wait_for 60 eval "[ \"\$(ask \"[r['attempt'] for r in of($b, 'STARTED')]\")\" = '[1, 2]' ]"
scancel "$b"
ok "and is cancelled" wait_for 30 job_is "$b" CANCELLED
is "a requeue ends an attempt, a cancel the other" "$(ask "[(r['kind'], r.get('attempt')) for r in of($b, 'STARTED', 'REQUEUED', 'ENDED') if r['kind'] != 'REQUEUED'][-1]")" "('ENDED', 2)"
like "what was changed" "$(ask "[r['job']['spec']['comment'] for r in of($b, 'CHANGED')]")" "later"
c=$(submit --array=1-5%1 -H -o /dev/null --wrap true)
scancel "${c}_[3-5]"
is "tasks that never had a record" "$(ask "[r['text'] for r in of($c, 'TASKS_CANCELLED')]")" "['3-5']"
scancel "$c"

# ---- who may read ----
if [ "$(id -u)" -eq 0 ]; then
    run as_user spur journal
    like "an ordinary user reads nothing" "$code:$out:$err" "^1::.*(denied|permission)"
    run as_user spur journal --ack 1
    like "and acknowledges nothing" "$code:$err" "^1:.*(denied|permission)"
fi
run spur journal --from x
is "--from is a number" "$code:$err" "1:spur journal: error: --from: 'x' is no number of an entry"

# ---- steps do not cost the log ----
before=$(index)
began=$(date +%s%N)
d=$(submit -N1 -n4 -o /dev/null --wrap 'for k in 1 2 3 4; do (for i in $(seq 25); do srun --overlap -n1 true; done) & done; wait')
ok "a hundred steps" wait_for 120 job_is "$d" COMPLETED
ok "are in the journal, each once" wait_for 30 has "len({r['step']['id']['step'] for r in of($d, 'STEP')})" 100
took=$((($(date +%s%N) - began) / 1000000))
grown=$(($(index) - before))
echo "# $grown entries of the log for 100 steps in $took ms"
ok "in batches: not more than ten entries a second" test "$grown" -le $((took / 100 + 12))

# ---- killed, again and again ----
next=1
take() { # reads on from where it was
    spur journal --json --from "$next" >"$T/piece" || return 1
    cat "$T/piece" >>"$T/read"
    [ ! -s "$T/piece" ] || next=$(tail -1 "$T/piece" | python3 -c 'import sys, json; print(json.load(sys.stdin)["index"] + 1)')
}
submitted=
for round in 1 2 3; do
    for i in 1 2 3 4 5 6; do id=$(submit -o /dev/null --wrap 'srun true') && submitted="$submitted $id"; done
    take
    for i in 1 2; do id=$(submit -o /dev/null --wrap 'srun true') && submitted="$submitted $id"; done
    kill9 ctl1
    spur up --quiet --dir "$D"
    wait_for 30 take || fail "the journal is read after round $round"
done
ok "all jobs end" wait_for 60 idle
all_steps() { [ "$(ask "sum(len(of(j, 'STEP')) for j in map(int, '$submitted'.split()))")" = "$(wc -w <<<"$submitted")" ]; }
ok "and all their steps are there" wait_for 30 all_steps
take
is "who read on got everything, and nothing twice" "$(sha256sum <"$T/read")" "$(spur journal --json | sha256sum)"
is "each job was submitted, started and ended once" "$(ask "all(len(of(j, k)) == 1 for j in map(int, '$submitted'.split()) for k in ('SUBMITTED', 'STARTED', 'ENDED'))")" True
is "in the order of the log" "$(ask "[e['index'] for e, r in rows] == sorted(e['index'] for e, r in rows)")" True

# ---- what is acknowledged goes ----
files() { ls "$D"/state/*/journal | grep -vc lock; }
many=$(files)
ok "there are many files" test "$many" -gt 3
run spur journal --ack 999999999
like "what is not there yet is not acknowledged" "$code:$err" "1:.*the log ends at"
spur journal --ack "$((next - 1))"
fewer() { [ "$(files)" -le 2 ]; }
ok "what was acknowledged is removed" wait_for 30 fewer
like "who asks for it is told" "$(spur journal --from 1)" "^# 1 to [0-9]+ is not here"
kill9 ctl1
spur up --quiet --dir "$D"
like "also after a crash" "$(spur journal --from 1)" "^# 1 to [0-9]+ is not here"

# ---- it can be followed ----
spur journal --follow --from "$next" >"$T/follow" &
follower=$!
e=$(submit -o /dev/null --wrap true)
ok "a follower is told as it happens" wait_for 30 grep -q "ended job=$e " "$T/follow"
kill $follower
done_testing
