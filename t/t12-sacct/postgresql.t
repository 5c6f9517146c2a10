#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The history in a server of PostgreSQL: while the server is away everything says so and nothing is lost; passwords stay unseen.
SPUR_T_DATABASE=postgresql SPUR_T_DURABLE=1
. "$(dirname "$0")/../lib.sh"
[ -x "$(command -v psql)" ] || skip_all "PostgreSQL is not installed"
pg() { "$ROOT/tools/postgresql" "$1" "$T/pg" >/dev/null; }
sql() { psql -h "$T/pg" -U spur -d "${2:-spur0}" -Atc "$1"; }
cluster_up --nodes 1 --cpus 8
get() { sacct -n -P -X "$@"; }
ended() { [ "$(get -j "$1" -o State)" = "$2" ]; }

# ---- it is there ----
a=$(submit -J 'one'$'\xff''two' -o /dev/null --wrap 'exit 3')
ok "a job's end" wait_for 30 ended "$a" FAILED
is "it is in PostgreSQL" "$(sql "SELECT name, exit_status FROM job WHERE job_id = $a")" $'one\xef\xbf\xbdtwo|768'
is "and in no file" "$(ls "$D/state/spurdbd" 2>/dev/null)" ""
like "status tells where" "$(grep dbd.serves "$D/log/spurdbd.log")" "database=\"?postgresql://spur@/spur0\?host="
sacctmgr -i -Q add account physics
is "accounts too" "$(sacctmgr -n -P show account format=account | sort | tr '\n' ' ')" "physics root "

# ---- away ----
dbd=$(cut -d' ' -f1 "$D/run/spurdbd.pid")
pg stop
run sacct
like "sacct says that the database is away" "$code:$err" "^1:sacct: error: .*database: .*connection"
run sacctmgr -i add account later
like "sacctmgr too" "$code:$err" "^1:.*database: .*connection"
run sacctmgr -n show account
like "also when it only shows" "$code:$err" "^1:.*database: .*connection"
b=$(submit -o /dev/null --wrap 'exit 0')
ok "no job waits for it" wait_for 30 job_is "$b" COMPLETED
pg start
ok "the job is there when it is back" wait_for 30 ended "$b" COMPLETED
is "spurdbd went on" "$(cut -d' ' -f1 "$D/run/spurdbd.pid")" "$dbd"
ok "and is alive" kill -0 "$dbd"
ok "changes work again" sacctmgr -i add account later

# ---- kill -9 of the process that writes, then of the whole server, under load ----
: >"$T/wanted"
for i in $(seq 40); do
    code=$((i % 3))
    submit -o /dev/null --wrap "exit $code" | sed "s/\$/ $code/" >>"$T/wanted"
    [ "$i" -ne 12 ] || kill -9 "$(sql "SELECT pid FROM pg_stat_activity WHERE application_name = 'spurdbd' ORDER BY backend_start LIMIT 1")"
    [ "$i" -ne 26 ] || { pg kill; pg start; }
done
all() { [ "$(get -D -S now-1hours -o JobID,State | grep -c 'COMPLETED\|FAILED')" -eq 42 ]; }
ok "all are in the history" wait_for 60 all
is "each once, with the right end" "$(get -D -S now-1hours -o JobID,State,ExitCode | grep -v "^\($a\|$b\)|" | sort)" \
    "$(while read -r id code; do echo "$id|$([ "$code" = 0 ] && echo COMPLETED || echo FAILED)|$code:0"; done <"$T/wanted" | sort)"

# ---- it starts without its server; two clusters, one database; passwords ----
kill "$dbd"
while kill -0 "$dbd" 2>/dev/null; do sleep 0.05; done
pg stop
export SPUR_DATABASE_URL="postgresql://spur:se-cret@/spur0?host=$T/pg&password=se-cret"
spur up --quiet --no-rest --dir "$D"
run sacct
like "spurdbd starts while the server is away" "$code:$err" "^1:sacct: error: .*database: .*connection"
pg start
ok "and finds it later" wait_for 30 ended "$a" FAILED
first=$D
kept=$SPUR_DATABASE_URL
printf 'cluster_name = "other"\n' >"$T/other.conf"
with_database() { export SPUR_DATABASE_URL=$kept; } # the same
cluster_up --nodes 1 --cpus 2 --conf "$T/other.conf"
c=$(submit -J far -o /dev/null --wrap 'exit 0')
ok "another cluster in the same database" wait_for 30 ended "$c" COMPLETED
is "has its own jobs" "$(get -M other -S now-1hours -o Cluster,JobName | sort -u)" "other|far"
is "and tells of those of the first" "$(get -M spur -j "$a" -o Cluster,ExitCode)" "spur|3:0"
is "or of both" "$(get -M all -S now-1hours -o Cluster | sort -u | tr '\n' ' ')" "other spur "
spurdbd -D --database-url "$kept" --listen 127.0.0.1:0 --socket "$T/third.sock" --state-dir "$T/third" 2>"$T/third.log" &
third=$!
ok "a URL as an option" wait_for 20 grep -q dbd.serves "$T/third.log"
unlike "ps does not show its password" "$(tr '\0' ' ' <"/proc/$third/cmdline")" "se-cret"
kill "$third"
wait "$third"
unlike "no log has it" "$(cat "$T/third.log" "$first/log/spurdbd.log" "$D/log/spurdbd.log" "$D/log/ctl1.log")" "se-cret"
run spurdbd -D --database-url "postgresql://spur:se-cret@[x/spur" --state-dir "$T/fourth" --socket "$T/fourth.sock" --listen 127.0.0.1:0
like "a URL that cannot be read is told without it" "$code:$err" "^1:.*postgresql://spur@\[x/spur' is not a URL"
done_testing
