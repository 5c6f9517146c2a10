#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sshare with the classic algorithm: shares and usage of the whole cluster, a factor for accounts too; GPUs count by their weight; ids.
. "$(dirname "$0")/../lib.sh"
me=$(id -un)
cat >"$T/conf" <<'END'
[priority]
calc_period = "0:01"
flags = ["no_fair_tree"]
END
cluster_up --nodes 1 --cpus 4 --mem 4G --gpus mi300x:2 --conf "$T/conf"
cluster=$(scontrol show config | awk '$1 == "ClusterName" { print $3 }')
sed -i '/^\[\[partitions\]\]/a billing_weights = "cpu=1,gres/gpu=100"' "$D/spur.conf"
ok "GPUs are billed" scontrol reconfigure
known() { sacctmgr -n -P show cluster format=cluster | grep -qx "$cluster"; }
wait_for 30 known
sacctmgr -i -Q add account physics fairshare=3
sacctmgr -i -Q add account chemistry fairshare=1
sacctmgr -i -Q add user "$me" account=physics fairshare=1
sacctmgr -i -Q add user other account=physics fairshare=1
sacctmgr -i -Q add user "$me" account=chemistry
get() { sshare -a -n -P -o "$@"; }
there() { get Account,User | grep -q "chemistry|$me"; }
ok "sacctmgr's changes are there" wait_for 20 there
id=$(submit -A physics -n 2 --gpus 1 -o /dev/null --wrap 'sleep 3')
ok "a job ends" wait_for 30 job_is "$id" COMPLETED
used() { get Account,User,RawUsage | awk -F'|' '$1 == "root" && $3 >= 200 { found = 1 } END { exit !found }'; }
ok "its GPU counts by its weight" wait_for 20 used
billing=$(sacct -n -P -X -j "$id" -o AllocTRES | tr , '\n' | sed -n 's/^billing=//p')
is "what it is billed for" "$billing" 102
like "the root has everything" "$(get Account,NormShares,EffectvUsage,FairShare | head -1)" '^root\|1.000000\|1.000000\|0.500000'
is "shares are of the whole cluster" "$(get Account,User,NormShares | awk -F'|' '$1 ~ /^ (physics|chemistry)/ && $2 == "" { above[$1] = $3 }
    $1 ~ /^  physics/ { sum += $3 } END { print (above[" physics"] - sum < 0.00001 && sum > 0.5), (above[" physics"] / above[" chemistry"] > 2.99) }')" "1 1"
# FairShare is 2 to the power of -(EffectvUsage / NormShares).
agrees() { get Account,User,NormShares,EffectvUsage,FairShare | awk -F'|' '$3 > 0 { want = 2 ^ -($4 / $3); off = want - $5; if (off > 0.002 || off < -0.002) bad = 1; n++ }
    END { exit bad || n < 5 }'; }
ok "factors follow from shares and usage" wait_for 20 agrees
is "who used less has more" "$(get Account,User,FairShare | awk -F'|' -v me="$me" '$1 ~ /physics/ && $2 == me { a = $3 } $1 ~ /chemistry/ && $2 == me { b = $3 } END { print (b > a) }')" 1
want=$(sacctmgr -n -P show assoc format=account,user,id | grep "^physics|$me|")
is "ids are those of the database" "$(sshare -a -n -P -A physics -u "$me" -o Account,User,ID | tail -1 | tr -d ' ')" "$want"
done_testing
