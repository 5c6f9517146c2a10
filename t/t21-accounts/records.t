#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Node events, reservations and runaway jobs; association ids; a database that was restored from an older copy.
. "$(dirname "$0")/../lib.sh"
me=$(id -un)
cluster_of peer <<'END'
[[nodes]]
names = "n[1-2]"
cpus = 4
END
known() { sacctmgr -n -P show cluster format=cluster | grep -qx peer; }
ok "the cluster is registered" wait_for 60 known
db=$D/state/spurdbd/spur.db
sql() { python3 -c 'import sqlite3,sys
c = sqlite3.connect(sys.argv[1], timeout=20); [print("|".join(map(str, r))) for r in c.execute(sys.argv[2])]; c.commit()' "$db" "$1"; }

# ---- events ----
event() { sacctmgr -n -P show event format=nodename,state,reason,user,tres,end "$@" | grep -qx "$want"; }
want="||Cluster Registered TRES||cpu=8,mem=.*,node=2,billing=8|Unknown"
ok "what the cluster has" wait_for 30 event
scontrol update nodename=n2 state=drain reason="bad fan"
want="n2|DRAIN|bad fan|$me($(id -u))|cpu=4,mem=.*,node=1,billing=4|Unknown"
ok "a node that is drained" wait_for 30 event
scontrol update nodename=n2 state=resume
want="n2|DRAIN|bad fan|$me($(id -u))|cpu=4,.*|20.*"
ok "until it is resumed" wait_for 30 event
is "only what lasts" "$(sacctmgr -n -P show event condflags=open format=nodename,event)" "|Cluster"
is "only of some nodes" "$(sacctmgr -n -P show event nodes=n2 format=nodename)" n2
is "only some states" "$(sacctmgr -n -P show event event=node states=drain format=eventraw)" 2
run sacctmgr show event format=nope
is "a field that it does not have" "$code:$err" "1: Unknown field 'nope'"

# ---- reservations ----
scontrol create reservation reservationname=maint starttime=now duration=60 nodes=n2 users="$me" >/dev/null
resv() { [ "$(sacctmgr -n -P show reservation format=name,nodenames,tres,associations)" = "maint|n2|cpu=4|$me" ]; }
ok "a reservation" wait_for 30 resv
scontrol delete reservationname=maint
ended() { [ "$(sql "SELECT ended, t_end < 1e6 * strftime('%s', 'now', '+10 minutes') FROM resv")" = "1|1" ]; }
ok "ends when it is deleted" wait_for 30 ended

# ---- association ids ----
sacctmgr -i -Q add account physics
sacctmgr -i -Q add user "$me" account=physics
id=$(sacctmgr -n -P show assoc user="$me" account=physics format=id)
has_account() { sshare -n -P -u "$me" 2>/dev/null | grep -q physics; }
ok "the controller knows the account" wait_for 30 has_account
a=$(submit -A physics -o /dev/null --wrap true)
assoc() { [ "$(sacct -n -X -P -j "$a" -o AssocID,State)" = "$id|COMPLETED" ]; }
ok "a job has the id of its association" wait_for 30 assoc

# ---- runaway jobs ----
is "none runs away" "$(sacctmgr show runawayjobs </dev/null)" "Runaway Jobs: No runaway jobs found on cluster peer"
sql "UPDATE job SET t_end = 0, state = 1 WHERE job_id = $a"
like "one that no controller knows" "$(echo n | sacctmgr -n -P show runawayjobs format=id,name,state)" "$a\|wrap\|RUNNING"
sacctmgr -i -n show runawayjobs >/dev/null
is "is ended" "$(sql "SELECT state, t_end = t_start FROM job WHERE job_id = $a")" "3|1"

# ---- a database that was restored ----
stop() { local pid; pid=$(cut -d' ' -f1 "$D/run/spurdbd.pid"); kill "$pid"; wait_for 20 gone "$pid"; }
gone() { ! kill -0 "$1" 2>/dev/null; }
start() { spur up --quiet --dir "$D"; }
like "status" "$(spur accounting status)" "Cluster peer.*controller: .* is connected.*accounts:   of the database"
stop
cp "$db" "$T/old.db"
start
connected() { spur accounting status | grep -q "is connected"; }
ok "it is back" wait_for 60 connected
sacctmgr -i -Q add account chemistry
sacctmgr -i -Q add user "$me" account=chemistry
applied() { sshare -n -P -u "$me" 2>/dev/null | grep -q chemistry; }
ok "a change after the copy" wait_for 30 applied
b=$(submit -A chemistry -o /dev/null --wrap true)
there() { [ "$(sacct -n -X -P -j "$b" -o Account,State)" = "chemistry|COMPLETED" ]; }
ok "and a job" wait_for 30 there
stop
rm -f "$db"*
cp "$T/old.db" "$db"
start
broken() { spur accounting status | grep -q REPAIR; }
ok "an older database is noticed" wait_for 60 broken
ok "its history is filled again" wait_for 30 there
run sacctmgr -i add account biology
like "accounts cannot be changed" "$code:$err" "^1:.*restored from an older copy.*spur accounting repair"
run spur accounting repair
like "repair asks whose accounts hold" "$code:$err" "^1:.*--from database or --from controllers"
like "the controllers'" "$(spur accounting repair --from controllers)" "those of the controllers now"
is "they are in the database again" "$(sacctmgr -n -P show assoc user="$me" account=chemistry,physics format=account | sort | xargs)" "chemistry physics"
ok "accounts can be changed" sacctmgr -i -Q add account biology
run spur accounting repair --from database
like "nothing is left to repair" "$code:$err" "^1:.*need no repair"
many=$(for i in {1..13}; do printf 'license/l%s=1,' $i; done)
run sacctmgr -i modify account biology set GrpTRES="${many%,}"
like "more kinds of TRES than are counted are refused" "$code:$err" "^1:.*more than 12 kinds of TRES"

# ---- what is too old ----
stop
sql "UPDATE job SET t_end = t_end - 7200 * 1000000 WHERE job_id = $b"
printf '[accounting]\npurge_job_after = "1hour"\n' >>"$D/spur.conf"
start
purged() { [ -z "$(sacct -n -X -P -j "$b" -o JobID 2>/dev/null)" ] && [ -n "$(sacct -n -X -P -j "$a" -o JobID 2>/dev/null)" ]; }
ok "old jobs are purged, others stay" wait_for 60 purged
run spur journal --ack 1
is "nobody else acknowledges the journal" "$code" 1
done_testing
