#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# seconds: 300
#
# Slurm's /slurmdb in all four versions: every operation acts on spurdbd, answers in that version's shape, and is
# refused to those who may not.
. "$(dirname "$0")/../lib.sh"
command -v curl >/dev/null || skip_all "curl is not installed"
[ "$(id -u)" -eq 0 ] || skip_all "needs root, who makes tokens of others"
SPUR_T_REST=
cat >"$T/spur.conf" <<CONF
cluster_name = "rest"
[access]
operators = ["daemon"]
[[nodes]]
names = "n1"
cpus = 4
memory_mb = 4000
[[partitions]]
name = "debug"
nodes = "ALL"
default = true
CONF
cluster_up --conf "$T/spur.conf"
cd "$T" || exit 1
R=$SPUR_REST_ADDR
known() { sacctmgr -n -P show cluster format=cluster | grep -qx rest; }
ok "a controller registers its cluster" wait_for 30 known
id=$(sbatch --parsable -J history -o /dev/null --wrap 'srun true')
ok "a job for the history" wait_for 30 job_is "$id" COMPLETED
in_history() { sacct -n -X -j "$id" -o state | grep -q COMPLETED; }
ok "it is there" wait_for 30 in_history
tokens=$(printf '{"admin": "%s", "operator": "%s", "user": "%s"}' "$(spur token | cut -d= -f2)" "$(spur token -u daemon | cut -d= -f2)" "$(spur token -u nobody | cut -d= -f2)")
operations() { python3 "$HERE/slurmdb_operations.py" "$R" "$tokens" "$HERE/../../src/schema/slurm_api.tsv" "$id" >"$T/out" 2>&1; }
operations || sed "s/^/# /" "$T/out"
is "every operation of /slurmdb, in each version" "$(grep -c "^# not so\|^Traceback" "$T/out") $(grep -c "checks" "$T/out")" "0 1"

# ---- identity ----
status() { curl -s --max-time 30 -o /dev/null -w '%{http_code}' "$@"; }
post() { curl -s --max-time 30 -X POST -H 'Content-Type: application/json' "$R/slurmdb/v0.0.44/accounts/" -d "{\"accounts\": [{\"name\": \"$1\"}]}" "${@:2}"; }
like "the owner of a socket is not staff, even root" "$(post sock)" '"error_number": 20[0-9][0-9]'
is "nothing was changed" "$(sacctmgr -n -P show account sock)" ""
is "without a name nothing is told" "$(status -H 'X-Forwarded-For: 1.2.3.4' "$R/slurmdb/v0.0.44/users/")" 403
post tok -H "X-SLURM-USER-TOKEN: $(spur token | cut -d= -f2)" >/dev/null
is "with a token it is, and sacctmgr shows it" "$(sacctmgr -n -P show account tok format=account)" tok
is "who did it is in the list of transactions" "$(sacctmgr -n -P show transactions format=actor,action | tail -n 1)" "root|Add Accounts"
done_testing
