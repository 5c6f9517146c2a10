#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# groups: asan
# sdiag: Slurm's report with figures of this controller.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 1 --cpus 2
cd "$T"
chmod 777 "$T"
submit -W -o /dev/null --wrap true >/dev/null
submit -W -o /dev/null --wrap 'exit 3' >/dev/null
gone=$(submit -H --wrap true)
scancel "$gone"
submit -H -o /dev/null --wrap true >/dev/null
as_user squeue >/dev/null
run sdiag
is "it ends well" "$code $err" "0 "
figure() { sed -n "s/^[[:space:]]*$1: *\([0-9]*\).*/\1/p" <<<"$out" | head -n 1; }
is "jobs submitted" "$(figure 'Jobs submitted')" 4
is "started" "$(figure 'Jobs started')" 2
is "completed" "$(figure 'Jobs completed')" 1
is "cancelled" "$(figure 'Jobs canceled')" 1
is "failed" "$(figure 'Jobs failed')" 1
is "pending" "$(figure 'Jobs pending')" 1
is "running" "$(figure 'Jobs running')" 0
ok "the planner was asked" test "$(figure 'Total cycles')" -ge 2
like "calls by message, as Slurm calls it" "$out" $'\n\tREQUEST_SUBMIT_BATCH_JOB +\\( 4003\\) count:4 +ave_time:[0-9]+ +total_time:[0-9]+'
like "calls by user" "$out" "$(printf '\n\t[a-z0-9]+ +\\( +%u\\) count:1 ' "$([ "$(id -u)" -eq 0 ] && echo $TEST_UID || id -u)")"
like "its first lines" "$out" $'^\\*{55}\nsdiag output at [A-Z][a-z]{2} [A-Z][a-z]{2} [0-9 ]{2} [0-9:]{8} [0-9]{4} \\([0-9]+\\)\nData since      '
by() { sdiag "$1" | sed -n '/by message type/,/^$/p' | grep -oE "$2" | tr -dc '0-9\n'; }
is "sorted by count" "$(by -a 'count:[0-9]+' | sort -rnc 2>&1)" ""
is "sorted by number" "$(by -i '\( *[0-9]+\)' | sort -nc 2>&1)" ""
is "sorted by total" "$(by -t 'total_time:[0-9]+' | sort -rnc 2>&1)" ""
is "sorted by average" "$(by -T 'ave_time:[0-9]+' | sort -rnc 2>&1)" ""
json() { python3 -c 'import json, sys; s = json.load(sys.stdin)["statistics"]; print(eval(sys.argv[1]))' "$1"; }
is "JSON" "$(sdiag --json | json 's["jobs_submitted"], s["jobs_failed"], s["jobs_pending"]')" "(4, 1, 1)"
is "JSON of a call" "$(sdiag --json | json '[c["count"] for c in s["rpcs_by_message_type"] if c["type_id"] == 4003]')" "[4]"
like "YAML" "$(sdiag --yaml)" "jobs_submitted: 4"
if [ "$(id -u)" -eq 0 ]; then
    run as_user sdiag -r
    is "a user may not reset" "$code" 1
fi
is "reset" "$(sdiag -r)" "Reset scheduling statistics"
out=$(sdiag)
is "counts begin again" "$(figure 'Jobs submitted')" 0
is "what waits still waits" "$(figure 'Jobs pending')" 1
run sdiag --nosuch
is "a wrong option" "$code" 1
done_testing
