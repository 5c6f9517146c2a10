#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sshare: the tree of shares and usage, with numbers that add up.
. "$(dirname "$0")/../lib.sh"
me=$(id -un)
cluster_of peer <<'END'
[priority]
calc_period = "0:01"
[[nodes]]
names = "n1"
cpus = 4
END
known() { sacctmgr -n -P show cluster format=cluster | grep -qx peer; }
wait_for 30 known
sacctmgr -i -Q add account physics
sacctmgr -i -Q add account chemistry
sacctmgr -i -Q add account bio parent=physics Fairshare=20
sacctmgr -i -Q add user alice account=physics Fairshare=10
sacctmgr -i -Q add user bob account=physics,chemistry
sacctmgr -i -Q add user alice account=bio
shares() { sshare -a -n -P -o Account,User,RawShares,NormShares; }
there() { shares | grep -q '^   bio|alice'; }
ok "sacctmgr's changes are there" wait_for 20 there
is "shares, as of a real Slurm" "$(shares | grep -v "|$me|" | grep -v '^ root|root')" "root|||0.000000
 chemistry||1|0.333333
  chemistry|bob|1|1.000000
 physics||1|0.333333
  physics|alice|10|0.322581
  physics|bob|1|0.032258
  bio||20|0.645161
   bio|alice|1|1.000000"
is "the header" "$(sshare -a | head -2)" "Account                    User  RawShares  NormShares    RawUsage  EffectvUsage  FairShare 
-------------------- ---------- ---------- ----------- ----------- ------------- ---------- "
is "an account" "$(sshare -n -P -a -A physics -o account,user)" "physics|
 physics|alice
 physics|bob"
is "a user" "$(sshare -n -P -U -u bob -o account,user)" "chemistry|bob
physics|bob"
sacctmgr -i -Q add user "$me" account=chemistry
sacctmgr -i -Q modify user "$me" set DefaultAccount=chemistry
id=$(submit -n 4 -o /dev/null --wrap 'sleep 3')
ok "a job ends" wait_for 30 job_is "$id" COMPLETED
used() { sshare -a -n -P -o Account,User,RawUsage | awk -F'|' '$1 == "root" && $3 >= 6 { found = 1 } END { exit !found }'; }
ok "its usage is there" wait_for 20 used
is "usage of siblings adds up to the account's, fractions to one" "$(sshare -a -n -P -o Account,User,RawUsage,EffectvUsage | awk -F'|' '
    $1 == "root" { root = $3 } $1 ~ /^ [a-z]/ { sum += $3; part += $4 } $1 == " chemistry" { chem = $3 } $1 == "  chemistry" { below += $3 }
    END { print (root - sum <= 2 && sum - root <= 2), (chem - below <= 2), part }')" "1 1 1"
like "--long" "$(sshare -a -l -n -P -A chemistry -u "$me")" "chemistry\|$me\|1\|0.500000\|[0-9]+\|[01].[0-9]{6}\|1.000000\|[01].[0-9]{6}\|0.500000\|\|cpu=0"
run sshare -o nosuch
like "a column that is not one" "$code:$err" "^1:.*nosuch"
done_testing
