#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# PrivateData's usage, users and accounts: what a user does not see of others in sreport, sshare, sacctmgr and spur usage; staff and coordinators do.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all "needs root, to be several users"
printf '[access]\nprivate_data = ["usage", "users", "accounts"]\noperators = ["daemon"]\n[priority]\ncalc_period = "0:01"\n' >"$T/conf.toml"
cluster_up --nodes 1 --cpus 4 --conf "$T/conf.toml"
chmod 777 "$T"
cd "$(user_dir)" || exit 1
chmod 777 .
cluster=$(scontrol show config | awk '$1 == "ClusterName" { print $3 }')
known() { sacctmgr -n -P show cluster format=cluster | grep -qx "$cluster"; }
wait_for 30 known
# Two users that the system has, beside the operator daemon.
one=bin two=sys
sacctmgr -i -Q add account physics
sacctmgr -i -Q add account chemistry
sacctmgr -i -Q add user $one account=physics
sacctmgr -i -Q add user $two account=chemistry
sacctmgr -i -Q add user games account=chemistry
sacctmgr -i -Q add coordinator account=chemistry names=games
by() { local who=$1; shift; setpriv --reuid "$who" --regid "$(id -g "$who")" --clear-groups -- "$@"; }
wait_for 20 eval 'sshare -a -n -P -o User | grep -qx games'
a=$(by $one sbatch --parsable -A physics -n 1 -o /dev/null --wrap 'sleep 2')
b=$(by $two sbatch --parsable -A chemistry -n 2 -o /dev/null --wrap 'sleep 2')
for id in "$a" "$b"; do wait_for 30 job_is "$id" COMPLETED; done
top() { by "$1" sreport -n -P -t seconds user top start=now-1days end=now+1hours format=login | sort | xargs; }
both() { [ "$(top root)" = "$one $two" ]; }
ok "the administrator sees both" wait_for 30 both
is "so does an operator" "$(top daemon)" "$one $two"
is "one sees the own use" "$(top $one)" "$one"
is "the other too" "$(top $two)" "$two"
is "a coordinator sees the account's" "$(top games)" "$two"
run by $one sreport cluster utilization start=now-1days end=now+1hours
like "what the cluster used is not for users" "$code:$err" "^1:sreport: error: Access/permission denied"
ok "but for operators" by daemon sreport cluster utilization start=now-1days end=now+1hours
is "accounts by user, of the own use alone" "$(by $one sreport -n -P cluster AccountUtilizationByUser start=now-1days end=now+1hours format=accounts,login)" "root|
physics|
physics|$one"
unlike "sshare" "$(by $one sshare -a -n -P -o Account,User,RawUsage)" "\|$two\|"
like "sshare of staff" "$(by daemon sshare -a -n -P -o Account,User,RawUsage)" "\|$two\|"
is "users" "$(by $one sacctmgr -n -P show user format=user)" "$one"
unlike "accounts" "$(by $one sacctmgr -n -P show account format=account)" chemistry
unlike "associations" "$(by $one sacctmgr -n -P show assoc format=account,user)" "$two|games"
like "staff sees users" "$(by daemon sacctmgr -n -P show user format=user)" "$two"
is "sacct is about jobs, which are not private here" "$(by $one sacct -a -n -P -X -o JobID | xargs)" "$a $b"
done_testing
