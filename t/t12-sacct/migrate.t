#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A database of version 1, as it was recorded, is brought up to date by spurdbd --migrate, on SQLite and on PostgreSQL; the views
# for other programs have the columns that docs/accounting.md promises.
. "$(dirname "$0")/../lib.sh"
unset SPUR_DATABASE_URL
recorded=$HERE/recorded/version_1.sql
wanted="1|one|FAILED|3:0|2|n[1-2]
1.batch|batch|FAILED|3:0|1|n1
1.0|hostname|COMPLETED|0:0|2|n[1-2]
1.1|sh|FAILED|7:0|1|n1
2_3|arr|FAILED|2:0|1|n1
2_3.batch|batch|FAILED|2:0|1|n1
2_1|arr|COMPLETED|0:0|1|n1
2_1.batch|batch|COMPLETED|0:0|1|n1
2_2|arr|FAILED|1:0|1|n1
2_2.batch|batch|FAILED|1:0|1|n1
5|again|REQUEUED|0:0|1|n2
5|again|CANCELLED by 0|0:0|1|n1
5.batch|batch|CANCELLED|0:0|1|n1"
job_columns="db_id cluster job_id run array_job array_task user_name uid account partition_name qos name state requeued submit_s eligible_s start_s end_s suspended_s limit_s cpus nodes mem_mb gpus exit_status nodelist tres_alloc"
usage_columns="cluster day_s account user_name partition_name qos wckey tres tres_seconds"

migrate_one() { # NAME URL
    local name=$1 url=$2 dbd
    local -a serve=(spurdbd -D --database-url "$url" --listen 127.0.0.1:0 --socket "$T/$name.sock" --state-dir "$T/$name.state")
    run timeout 20 "${serve[@]}"
    like "$name: without --migrate it is left alone" "$code:$err" "^1:.*version 1 of the tables.*--migrate"
    "${serve[@]}" --migrate 2>"$T/$name.log" &
    dbd=$!
    ok "$name: with it spurdbd serves" wait_for 20 grep -q 'schema.version now=' "$T/$name.log"
    export SPUR_ACCOUNTING_ADDR=unix:$T/$name.sock
    all() { sacct -n -P -a -D -S 2026-01-01 -E 2027-01-01 -o JobID,JobName,State,ExitCode,AllocCPUS,NodeList 2>/dev/null; }
    complete() { [ "$(all)" = "$wanted" ]; }
    wait_for 20 complete
    is "$name: all that was there is there" "$(all)" "$wanted"
    run sacctmgr -n -P show account format=account
    is "$name: and tables that are new" "$code" 0
    kill "$dbd"
    wait "$dbd"
    run timeout 20 "${serve[@]}" --migrate --listen nonsense
    unlike "$name: a second time there is nothing to do" "$err" "schema\.(version|migrates)"
}

python3 - "$recorded" "$T/one.db" <<'PY'
import sqlite3, sys
sql = open(sys.argv[1]).read().replace('@id', 'INTEGER PRIMARY KEY AUTOINCREMENT').replace('@bytes', 'BLOB').replace('@big', 'INTEGER')
sqlite3.connect(sys.argv[2]).executescript(sql)
PY
migrate_one sqlite "sqlite:$T/one.db"
columns() { python3 -c 'import sqlite3, sys; print(" ".join(c[0] for c in sqlite3.connect(sys.argv[1]).execute("SELECT * FROM " + sys.argv[2]).description))' "$T/one.db" "$1"; }
is "columns of v_job" "$(columns v_job)" "$job_columns"
is "columns of v_usage_day" "$(columns v_usage_day)" "$usage_columns"

if "$ROOT/tools/postgresql" start "$T/pg" >"$T/url"; then
    sql() { psql -h "$T/pg" -U spur -d spur -v ON_ERROR_STOP=1 -Atq "$@"; }
    sed "s/@id/BIGSERIAL PRIMARY KEY/g; s/@bytes/BYTEA/g; s/@big/BIGINT/g; s/ TEXT/ TEXT COLLATE \"C\"/g; s/X'/'\\\\x/g" "$recorded" >"$T/pg.sql"
    sql -f "$T/pg.sql" >/dev/null
    sql -c "SELECT setval('job_db_id_seq', 100), setval('cluster_id_seq', 10)" >/dev/null
    migrate_one postgresql "$(cat "$T/url")"
    is "the same columns of v_job" "$(sql -c "SELECT string_agg(column_name, ' ' ORDER BY ordinal_position) FROM information_schema.columns WHERE table_name = 'v_job'")" "$job_columns"
    is "and of v_usage_day" "$(sql -c "SELECT string_agg(column_name, ' ' ORDER BY ordinal_position) FROM information_schema.columns WHERE table_name = 'v_usage_day'")" "$usage_columns"
    is "rows of v_job" "$(sql -F ' ' -c "SELECT job_id, run, name, state, cpus FROM v_job ORDER BY job_id, run LIMIT 2")" "1 1 one 5 2
2 1 arr 5 1"
fi
done_testing
