#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sacctmgr against what a real Slurm printed, and what its changes do: limits, QOS, default accounts, roles.
# golden/ has the outputs; the file format is described in golden/README.
. "$(dirname "$0")/../lib.sh"
me=$(id -un)
cluster_of peer <<'END'
[[nodes]]
names = "n1"
cpus = 8
END
known() { sacctmgr -n -P show cluster format=cluster | grep -qx peer; }
ok "a controller registers its cluster" wait_for 30 known

# ---- outputs ----
golden() { # name: runs its command and compares what it printed and how it ended
    local file=$HERE/golden/$1.txt cmd want_out want_code
    cmd=$(sed -n '1s/^\$ //p' "$file")
    want_code=$(sed -n 's/^# exit: //p' "$file")
    want_out=$(sed -n '/^# --- stdout$/,/^# --- stderr$/{/^# ---/d;p}' "$file")
    want_err=$(sed -n '/^# --- stderr$/,$ {/^# ---/d;p}' "$file")
    out=$(eval "$cmd" 2>"$T/err")
    code=$?
    is "$1: $cmd" "$code:$out:$(cat "$T/err")" "$want_code:$want_out:$want_err"
}
sacctmgr -i -Q add account physics Description="physics dept" Organization=science
sacctmgr -i -Q add user alice,bob account=physics
for name in setup-0{0..7} show-account show-account-p show-assoc show-assoc-p show-qos show-qos-p show-user list-user noheader \
    assoc-tree assoc-user qos-format account-withassoc user-withassoc show-wckey; do
    golden $name
done
sacctmgr dump peer file="$T/peer.cfg" >/dev/null
is "dump: the file" "$(cat "$T/peer.cfg")" "$(sed -n '/^# --- stdout$/,/^# --- stderr$/{/^# ---/d;p}' "$HERE/golden/dump.txt")"
for name in add-acct add-acct-again add-user add-user-again add-user-no-acct mod-acct mod-bad-key mod-user mod-same mod-none ask-no \
    add-qos mod-qos del-qos add-coord del-user del-acct del-acct-missing add-cluster del-cluster; do
    golden $name
done
like "transactions are listed" "$(sacctmgr -n -P show transaction format=action,actor,where)" "Add QOS\|$me\|high"
is "coordinators" "$(sacctmgr -n -P show account physics withcoord format=account,coordinators)" "physics|alice"
is "+= and -=" "$(sacctmgr -i -Q modify user bob account=physics set qos+=high
    sacctmgr -n -P show assoc user=bob account=physics format=qos
    sacctmgr -i -Q modify user bob account=physics set qos-=normal
    sacctmgr -n -P show assoc user=bob account=physics format=qos)" "high,normal
high"

# ---- loading a file again ----
sacctmgr -i -Q delete user where name=alice
sacctmgr -i load "$T/peer.cfg" >/dev/null
is "load puts back what dump wrote" "$(sacctmgr -n -P show assoc format=account,user,share,maxjobs,qos)" "$(sed -n '/^root|/d; s/^peer|\(.*\)/\1/p' "$HERE/golden/show-assoc-p.txt" |
    awk -F'|' '{ print $1 "|" $2 "|" $4 "|" $11 "|" $17 }')"

{ cat "$D/spur.conf"; spur config import --sacctmgr "$T/peer.cfg"; } >"$T/imported.conf"
ok "spur config import --sacctmgr writes a configuration" spur config check "$T/imported.conf"
is "with the accounts of the file" "$(grep -A9 '^name = "alice"' "$T/imported.conf" | head -7 | tr '\n' ' ')" \
    'name = "alice" account = "physics" default = true fairshare = 10 qos = ["high", "low", "normal"] max_jobs = 200  '

# ---- what is refused ----
refused() { run "${@:3}"; like "$1" "$code:$err" "^1:.*$2"; }
refused "an unknown QOS" "there is no QOS 'none'" sacctmgr -i modify user bob set qos=none
refused "a limit that is not one" "Bad GrpTRES" sacctmgr -i modify account physics set GrpTRES=apples=3
refused "federations" "no federations" sacctmgr show federation
refused "archives" "archive" sacctmgr archive dump
refused "an unknown entity" "is not something" sacctmgr show fruit
refused "root stays" "cannot be removed" sacctmgr -i delete account root
refused "-r" "readonly" sacctmgr -r -i add account x
if [ "$(id -u)" -eq 0 ]; then
    run as_user sacctmgr -i add account evil
    like "an ordinary user changes nothing" "$code:$err" "^1:.*(operator|administrator)"
fi

# ---- the controller enforces it ----
printf '[accounting]\nenforce = ["limits", "qos"]\n' >>"$D/spur.conf"
sacctmgr -i -Q add user "$me" account=physics
sacctmgr -i -Q modify user "$me" set DefaultAccount=physics
ok "enforcement with associations that the database has" scontrol reconfigure
id=$(sub -A physics)
ok "a user with an association runs" runs "$id"
account_is() { [ "$(scontrol show job "$1" | grep -o 'Account=[^ ]*')" = "Account=$2" ]; }
drop "$id"
run sbatch -A chemistry --wrap true
like "an account without an association is refused" "$code:$err" "^1:.*[Ii]nvalid account"
sacctmgr -i -Q modify user "$me" account=physics set MaxJobs=1
first=$(sub)
ok "the default account is used" account_is "$first" physics
ok "the first job runs" runs "$first"
second=$(sub)
ok "MaxJobs holds the second at once" waits "$second" AssocMaxJobsLimit
sacctmgr -i -Q modify user "$me" account=physics set MaxJobs=-1
ok "and lets it go when it is taken away" runs "$second"
run sacctmgr -i delete account physics
like "an account with jobs stays" "$code:$err" "^1:.*Job\(s\) active"
run sbatch -q high --wrap true
like "a QOS that may not be used" "$code:$err" "^1:.*[Ii]nvalid qos"
sacctmgr -i -Q modify user "$me" set qos+=high
ok "and may" wait_for 10 sbatch -o /dev/null -q high --wrap true
scancel -u "$me"

# ---- either side away ----
controller_again
allowed() { sbatch -o /dev/null -q high --wrap true; }
ok "the controller knows after a restart" wait_for 30 allowed
pid=$(cut -d' ' -f1 "$D/run/spurdbd.pid")
kill "$pid"
while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
run sacctmgr -i add account later
like "without spurdbd changes fail" "$code:$err" "^1:.*cannot be reached"
run sbatch -A chemistry --wrap true
like "and enforcement goes on" "$code:$err" "^1:.*[Ii]nvalid account"
done_testing
