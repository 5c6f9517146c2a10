#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs that read sacct: the line of XDMoD's shredder; reportseff and slurm2sql unmodified, when they are installed
# (pip install reportseff==2.10.3 slurm2sql==0.9.9).
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 2 --cpus 4 --mem 4G --gpus mi300x:2
a=$(submit -J "one's" -N2 -n4 --mem=100M -t 10 -o /dev/null --wrap 'srun -n2 sleep 0.2; exit 0')
b=$(submit -J two --gpus=1 -t 10 -o /dev/null --wrap 'exit 3')
c=$(submit -J arr --array=1-2 -t 10 -o /dev/null --wrap 'sleep 0.1')
d=$(submit -J again --requeue -t 10 -o /dev/null --wrap 'sleep 100')
wait_for 30 job_is "$d" RUNNING
scontrol requeue "$d"
runs_again() { [ "$(scontrol show job "$d" | grep -c 'JobState=RUNNING')" = 1 ] && [ "$(scontrol show job "$d" | grep -c 'Restarts=1')" = 1 ]; }
wait_for 30 runs_again
scancel "$d"
all() { [ "$(sacct -a -n -X -P -S now-1hours -o State | grep -c 'COMPLETED\|FAILED\|CANCELLED')" = 5 ]; }
ok "the jobs end" wait_for 60 all

# ---- XDMoD ----
fields=jobid,jobidraw,cluster,partition,qos,account,group,gid,user,uid,submit,eligible,start,end,elapsed,exitcode,state,nnodes,ncpus,reqcpus,reqmem,reqtres,alloctres,timelimit,nodelist,jobname
run sacct --allusers --parsable2 --noheader --allocations --duplicates --format "$fields" \
    --state CANCELLED,COMPLETED,FAILED,NODE_FAIL,PREEMPTED,TIMEOUT,OUT_OF_MEMORY,REQUEUED --starttime 2020-01-01T00:00:00 --endtime 2040-01-01T00:00:00
is "the shredder's line" "$code:$err" "0:"
is "has a line for every run" "$(wc -l <<<"$out")" 6
is "of 26 columns" "$(awk -F'|' '{ print NF }' <<<"$out" | sort -u)" 26
like "with what they say" "$(grep "^$b|" <<<"$out")" "^$b\|$b\|spur\|debug\|[^|]*\|[^|]*\|[a-z0-9]+\|[0-9]+\|$(id -un)\|$(id -u)\|(20[-0-9T:]+\|){4}00:0[0-9:]+\|3:0\|FAILED\|1\|1\|1\|[^|]*\|[^|]*\|[^|]*gres/gpu=1[^|]*\|00:10:00\|n[12]\|two$"
is "tasks of an array" "$(cut -d'|' -f1 <<<"$out" | grep -c "^${c}_[12]$")" 2
is "a requeued job twice" "$(grep "^$d|" <<<"$out" | cut -d'|' -f17 | sed 's/ by.*//' | sort | tr '\n' ' ')" "CANCELLED REQUEUED "

# ---- reportseff ----
if command -v reportseff >/dev/null; then
    run reportseff --no-color "$a" "$b" "$c"
    is "reportseff" "$code:$err" "0:"
    like "tells of each job" "$out" "$a +COMPLETED.*$b +FAILED.*${c}_1 +COMPLETED"
    run reportseff --no-color --user "$(id -un)" --since w=1 --format jobid,state,elapsed,timeeff,cpueff,memeff
    like "by user" "$code:$out" "^0:.*$a +COMPLETED"
else
    pass "reportseff # skip it is not installed"
fi

# ---- slurm2sql ----
if command -v slurm2sql >/dev/null; then
    run slurm2sql "$T/jobs.db" -- -a -S now-1hours
    is "slurm2sql" "$code" 0
    is "makes rows of jobs and steps" "$(python3 -c 'import sqlite3, sys
for row in sqlite3.connect(sys.argv[1]).execute("SELECT JobID, State, NNodes FROM slurm WHERE JobIDonly IN (?, ?) AND JobStep IS NULL ORDER BY JobIDonly", sys.argv[2:]): print(*row)' "$T/jobs.db" "$a" "$b")" "$a COMPLETED 2
$b FAILED 1"
else
    pass "slurm2sql # skip it is not installed"
fi
done_testing
