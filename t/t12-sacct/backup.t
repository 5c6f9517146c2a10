#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A backup that was taken while spurdbd ran is restored, as docs/accounting.md says, with both databases: what it has is there, and
# what happened since is filled in from the journal or named as a gap.
. "$(dirname "$0")/../lib.sh"
[ -x "$(command -v pg_dump)" ] || skip_all "PostgreSQL is not installed"
get() { sacct -n -P -X "$@" 2>/dev/null; }
ended() { [ "$(get -j "$1" -o State)" = COMPLETED ]; }
stop_dbd() {
    local pid
    pid=$(cut -d' ' -f1 "$D/run/spurdbd.pid")
    kill "$pid"
    while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
}
known() { ended "$1" || grep -q 'feed.begins .*gap=yes' "$D/log/spurdbd.log"; }

both() { # NAME
    local name=$1 a b c
    cluster_up --nodes 1 --cpus 4
    a=$(submit -J before -o /dev/null --wrap true)
    ok "$name: a job before the backup" wait_for 30 ended "$a"
    ok "$name: the backup" "backup_$name"
    b=$(submit -J after -o /dev/null --wrap true)
    ok "$name: a job after it" wait_for 30 ended "$b"
    stop_dbd
    ok "$name: the restore" "restore_$name"
    spur up --quiet --no-rest --dir "$D"
    ok "$name: the first job is there" wait_for 30 ended "$a"
    ok "$name: the second too, or it is said that something lacks" wait_for 30 known "$b"
    c=$(submit -J now -o /dev/null --wrap true)
    ok "$name: it goes on" wait_for 30 ended "$c"
    is "$name: nothing is there twice" "$(get -D -S now-1hours -o JobID | sort | uniq -d)" ""
}
copy() { python3 -c 'import sqlite3, sys; sqlite3.connect(sys.argv[1]).backup(sqlite3.connect(sys.argv[2]))' "$1" "$2"; }
backup_sqlite() { copy "$D/state/spurdbd/spur.db" "$T/backup.db"; } # sqlite3 spur.db ".backup FILE"
restore_sqlite() { rm -f "$D"/state/spurdbd/spur.db* && cp "$T/backup.db" "$D/state/spurdbd/spur.db"; }
backup_postgresql() { pg_dump -Fc -f "$T/backup.dump" "$SPUR_DATABASE_URL"; }
restore_postgresql() { pg_restore --clean --if-exists -d "$SPUR_DATABASE_URL" "$T/backup.dump"; }
SPUR_T_DATABASE=sqlite
both sqlite
SPUR_T_DATABASE=postgresql
both postgresql
done_testing
