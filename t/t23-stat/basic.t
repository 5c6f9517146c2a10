#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# basic.t - sstat: what running steps use; a thousand steps cost the log little
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 2 --cpus 4
cd "$(user_dir)"

id=$(as_user sbatch --parsable -N2 -n2 -o job.out --wrap 'srun bash -c "x=\$(head -c 30000000 /dev/zero | tr \"\\0\" x); echo ready; while [ ! -e stop ]; do :; done"; sleep 60')
ok "a step that works" wait_for 20 sh -c '[ "$(grep -c ready job.out)" = 2 ]'
busy() { [ "$(as_user sstat -n -P -j "$id.0" -o AveCPU)" != 00:00:00 ]; }
ok "its CPU time is seen" wait_for 20 busy
is "JobID and NTasks" "$(as_user sstat -n -P -j "$id.0" -o JobID,NTasks)" "$id.0|2"
rss=$(as_user sstat -n -P --noconvert -j "$id.0" -o MaxRSS)
ok "memory is what the tasks have" [ "${rss:-0}" -gt 29000000 ]
like "where" "$(as_user sstat -n -P -j "$id.0" -o MaxRSSNode,MaxRSSTask)" '^n[12]\|[01]$'
like "in Slurm's units" "$(as_user sstat -n -P -j "$id.0" -o MaxRSS)" '^[0-9]+K$'
is "header and line" "$(as_user sstat -j "$id.0" -o JobID,NTasks%6 | head -2)" $'JobID        NTasks \n------------ ------ '
is "-p ends with a bar" "$(as_user sstat -p -n -j "$id.0" -o JobID,NTasks)" "$id.0|2|"
is "-a has the script too" "$(as_user sstat -a -n -P -j "$id" -o JobID | sort | tr '\n' ' ')" "$id.0 $id.batch "
is "-i: processes on each node" "$(as_user sstat -i -n -P -j "$id.0" | cut -d'|' -f1,2 | sort | tr '\n' ' ')" "$id.0|n1 $id.0|n2 "
is "all default columns" "$(as_user sstat -P -j "$id.0" | head -1 | tr '|' '\n' | wc -l)" 48
run as_user sstat -j "$id.0" -o NoSuch
is "an unknown field" "$code" 1
run as_user sstat -j 99999
is "an unknown job" "$code" 0
if [ "$(id -u)" -eq 0 ]; then # somebody else
    run setpriv --reuid 20002 --regid 20002 --clear-groups sstat -j "$id.0"
    is "another user's job" "$code" 1
fi
as_user touch stop
scancel "$id"

index() { spur controller list | awk '$2 == "leader" { print $4 }'; }
id=$(as_user sbatch --parsable -n1 -o many.out --wrap 'while [ ! -e go ]; do sleep 0.05; done; for i in $(seq 200); do srun true || echo bad; done; echo over')
ok "a job of many steps" wait_for 10 job_is "$id" RUNNING
before=$(index)
as_user touch go
ok "two hundred steps" wait_for 90 grep -q over many.out
unlike "all well" "$(cat many.out)" bad
after=$(index)
ok "cost the log few entries ($before to $after)" [ $((after - before)) -lt 120 ]
done_testing
