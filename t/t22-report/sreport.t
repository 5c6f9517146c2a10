#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sreport: titles and columns as of a real Slurm, and numbers that equal the history.
. "$(dirname "$0")/../lib.sh"
golden=$(cd "$(dirname "$0")" && pwd)/golden
me=$(id -un)
cluster_up --nodes 1 --cpus 8 --mem 8G --gpus h100:2
cluster=$(scontrol show config | awk '$1 == "ClusterName" { print $3 }')
known() { sacctmgr -n -P show cluster format=cluster | grep -qx "$cluster"; }
wait_for 30 known

# ---- as recorded: titles, names and widths of columns ----
# Times differ; a line that the recording has of jobs is not here yet.
forms() { sed -n '/^# --- stdout/,/^# --- stderr/{/^#/d;p}' "$1" | shape; }
shape() { sed -E 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}/TIME/g; s/\([0-9]+ secs\)/(N secs)/' | head -6; }
for file in "$golden"/*.txt; do
    line=$(sed -n '1s/^\$ //p' "$file")
    read -ra words <<<"$line"
    is "$line" "$("${words[@]}" | shape | grep -v '^ *'"$cluster"'[ |]')" "$(forms "$file" | grep -v '^ *peer ')"
done

# ---- jobs of several accounts ----
sacctmgr -i -Q add account physics
sacctmgr -i -Q add account bio parent=physics
sacctmgr -i -Q add account chemistry
sacctmgr -i -Q add user "$me" account=bio,chemistry
wait_for 20 eval 'sshare -a -n -P -o Account,User | grep -q "bio|$me"'
a=$(submit -A bio -n 3 --gpus 1 -J a --wckey=one -o /dev/null --wrap 'sleep 3')
b=$(submit -A chemistry -n 2 -J b -o /dev/null --wrap 'sleep 2')
c=$(submit -A chemistry -n 1 --requeue -J c -o /dev/null --wrap 'sleep 60')
wait_for 30 job_is "$c" RUNNING
sleep 1.2
scontrol requeue "$c"
for id in "$a" "$b"; do wait_for 40 job_is "$id" COMPLETED; done
scancel "$c"
over() { [ "$(sacct -n -P -X -D -o End | grep -c Unknown)" = 0 ] && [ "$(sacct -n -P -X -D -o JobID -j "$c" | wc -l)" = 2 ]; }
ok "the jobs are in the history" wait_for 40 over

# What the history says: seconds times the TRES, each second counted where it is.
from_history() { # account tres
    sacct -n -P -X -D -A "$1" -o Start,End,AllocTRES | while IFS='|' read -r start end tres; do
        [ "$start" != Unknown ] && [ "$start" != None ] || continue
        count=$(tr , '\n' <<<"$tres" | sed -n "s|^$2=||p")
        echo $((($(date -d "$end" +%s) - $(date -d "$start" +%s)) * ${count:-0}))
    done | awk '{ sum += $1 } END { print sum + 0 }'
}
window=(start=now-1days end=now+1hours)
report() { sreport -n -P -t seconds "$@" "${window[@]}"; }
bio=$(from_history bio cpu) chem=$(from_history chemistry cpu) gpu=$(from_history bio gres/gpu)
like "something was used" "$bio $chem $gpu" '^[1-9][0-9]* [1-9][0-9]* [1-9]'
proper=$(getent passwd "$me" | cut -d: -f5 | cut -d, -f1)
is "by account, with the accounts above" "$(report cluster AccountUtilizationByUser format=accounts,login,used)" \
    "root||$((bio + chem))
chemistry||$chem
chemistry|$me|$chem
physics||$bio
bio||$bio
bio|$me|$bio"
is "as a tree" "$(report cluster accountutilizationbyuser tree format=accounts,login)" "root|
 chemistry|
  chemistry|$me
 physics|
  bio|
   bio|$me"
is "one account" "$(report cluster AccountUtilizationByUser accounts=physics format=accounts,login,used)" "physics||$bio
bio||$bio
bio|$me|$bio"
is "by user" "$(report -s cluster UserUtilizationByAccount format=cluster,login,proper,accounts,used,energy | sort)" \
    "$cluster|$me|$proper|bio|$bio|0
$cluster|$me|$proper|chemistry|$chem|0"
is "GPUs" "$(report -T gres/gpu,cpu cluster UserUtilizationByAccount accounts=bio format=login,tresname,used)" "$me|gres/gpu|$gpu
$me|cpu|$bio"
like "all TRES" "$(report -T all cluster UserUtilizationByAccount accounts=bio format=tresname,used)" "gres/gpu:h100\|$gpu"
like "by QOS" "$(report cluster AccountUtilizationByQOS format=accounts,qos,used)" "^root\|[a-z]*\|$((bio + chem))"
is "by workload key" "$(report cluster WCKeyUtilizationByUser wckeys=one format=wckey,login,used)" "one||$bio
one|$me|$bio"
is "users by workload key" "$(report cluster UserUtilizationByWckey wckeys=one format=login,wckey,used)" "$me|one|$bio"
is "the most" "$(report user TopUsage topcount=1 group format=login,accounts,used)" "$me|bio,chemistry|$((bio + chem))"
is "the most, by account" "$(report user top format=login,used | wc -l)" 2
is "hours are less" "$(sreport -n -P -t hours user top group format=used "${window[@]}")" 0
like "with a percentage" "$(sreport -n -P -t secper user top group format=used "${window[@]}")" "^$((bio + chem))\([0-9.]+%\)$"

# ---- clusters ----
like "what the cluster had" "$(report cluster utilization format=trescount,reported)" '^[0-9]+\|[1-9][0-9]*$'
is "everything adds up" "$(report cluster utilization format=allocated,down,planneddown,idle,planned,reported | awk -F'|' '{ print ($1 + $2 + $3 + $4 + $5 == $6 && $6 > 0) }')" 1
like "of the cluster" "$(report cluster utilization format=cluster,allocated)" "^$cluster\|$((bio + chem))$"
is "all clusters" "$(report -a cluster utilization format=cluster | sort -u)" "$cluster"
is "another cluster" "$(report -M nosuch cluster utilization)" ""

scontrol update nodename=n1 state=drain reason=test
down() { [ "$(report cluster utilization format=down)" -ge 8 ]; }
ok "a drained node is down" wait_for 20 down
scontrol update nodename=n1 state=resume

# ---- sizes ----
two=$(sreport -n -P -t seconds job SizesByAccount jobs="$b" "${window[@]}" | cut -d'|' -f3)
like "the job with two CPUs" "$two" '^[1-9]'
is "sizes: everything counts for the root" "$(report job SizesByAccount grouping=2,3)" "$cluster|root|$((chem - two))|$two|$bio|$((bio + chem))|100.00%"
is "the accounts below" "$(report job SizesByAccount acctasparent printjobcount grouping=individual users="$me" | cut -d'|' -f2-5)" "chemistry|2|1|0
physics|0|0|1"
is "each account" "$(report job SizesByAccount flatview | cut -d'|' -f2,3)" "bio|$bio
chemistry|$chem"
is "by workload key" "$(report job SizesByWckey wckeys=one | cut -d'|' -f2,3)" "one|$bio"
is "by both" "$(report job SizesByAccountAndWckey wckeys=one flatview | cut -d'|' -f2,3)" "bio:one|$bio"
is "some jobs" "$(report job SizesByAccount jobs="$a" | cut -d'|' -f3)" "$bio"

# ---- reservations ----
scontrol create reservation reservationname=lab starttime=now duration=10 users="$me" nodes=n1 >/dev/null
r=$(submit -A bio -n 2 --reservation=lab -o /dev/null --wrap 'sleep 2')
ok "a job in a reservation ends" wait_for 40 job_is "$r" COMPLETED
scontrol delete reservationname=lab
resv() { report reservation utilization names=lab format=name,tresname,allocated,idle,trestime,nodes; }
used=$(sacct -n -P -X -j "$r" -o Start,End | { IFS='|' read -r s e; echo $((2 * ($(date -d "$e" +%s) - $(date -d "$s" +%s)))); })
counted() { [[ $(resv) =~ ^lab\|cpu\|$used\|[1-9][0-9]*\|[1-9][0-9]*\|n1$ ]]; }
ok "use of the reservation" wait_for 20 counted
is "adds up" "$(resv | awk -F'|' '{ print ($3 + $4 == $5) }')" 1
is "another name" "$(report reservation utilization names=nosuch)" ""
bio=$(from_history bio cpu)

# ---- from nothing ----
before=$(report -T all cluster AccountUtilizationByUser)
like "sums are made again" "$(spur accounting recompute)" "summed up again"
is "and are the same" "$(report -T all cluster AccountUtilizationByUser)" "$before"

# ---- lines, and what is wrong ----
is "lines from standard input" "$(printf 'time seconds\nuser top group format=login,used %s\nexit\n' "${window[*]}" | sreport -n -P)" "$me|$((bio + chem))"
run sreport cluster nosuch
like "a report that is not one" "$code:$err" "^1:.*nosuch"
run sreport user top start=yesterdayish
like "a time that is not one" "$code:$err" "^1:sreport: error: .*yesterdayish"
run sreport user top nosuch=1
like "a word that is not one" "$code:$err" "^1:sreport: error: Unknown condition: nosuch=1"
run sreport user top format=nosuch
like "a column that is not one" "$code:$err" "^1:sreport: error: .*nosuch"
run sreport -T nosuch user top
like "a TRES that is not one" "$code:$err" "^1:sreport: error: 'nosuch' is not a TRES"
run sreport -t nosuch user top
like "a format that is not one" "$code:$err" "^1:sreport: error: 'nosuch' is not a time format"
done_testing
