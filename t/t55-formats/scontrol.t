#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# groups: asan
# scontrol: records, updates, words and exit codes.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 3 --cpus 4 --mem 4G --gpus mi300x:2
cd "$T"

check() { # EXIT STDOUT STDERR COMMAND...
    local exit=$1 stdout=$2 stderr=$3
    shift 3
    run "$@" </dev/null
    is "exit of: $*" "$code" "$exit"
    is "output of: $*" "$out" "$stdout"
    is "words of: $*" "$err" "$stderr"
}
check 0 'Slurmctld(primary) at ctl1 is UP' '' scontrol ping
check 0 'slurm 26.11.0' '' scontrol version
check 0 $'n1\nn2\nn3\nn5' '' scontrol show hostnames 'n[1-3,5]'
check 0 'n[001-003,010]' '' scontrol show hostlist n001,n002,n003,n010
check 0 'node[1-2,2-3,10]' '' scontrol show hostlistsorted node3,node1,node2,node2,node10
check 0 'No jobs in the system' '' scontrol show job
check 0 'No reservations in the system' '' scontrol show reservation
check 1 '' 'invalid keyword: nosuchcommand' scontrol nosuchcommand
check 1 '' 'invalid entity:nosuch for keyword:show' scontrol show nosuch
check 1 '' 'slurm_load_jobs error: Invalid job id specified' scontrol show job 99999999
check 1 '' 'scontrol_print_job error: Invalid job id specified' scontrol show job abc
check 1 'Node nosuch not found' '' scontrol show node nosuch
check 1 'Partition nosuch not found' '' scontrol show partition nosuch
check 1 'Reservation nosuch not found' '' scontrol show reservation nosuch
check 1 '' $'Invalid job id specified for job 99999999\nslurm_suspend error:Invalid job id specified' scontrol hold 99999999
check 1 '' 'Invalid job id specified for job 99999999' scontrol requeue 99999999
check 1 '' 'Invalid job id specified for job 99999999' scontrol update job=99999999 name=x
check 1 '' 'too few arguments for update keyword' scontrol update
check 0 '' 'job script retrieval failed: Invalid job id specified' scontrol write batch_script 99999999
check 1 '' 'scontrol: Problem running job 99999999' scontrol wait_job 99999999
check 0 'scontrol: ' '' scontrol
check 1 '' 'slurm_update error: Invalid node name specified' scontrol update nodename=nosuch state=drain reason=x
check 1 '' 'You must specify a reason when DOWNING or DRAINING a node. Request denied' scontrol update nodename=n1 state=down
check 1 '' 'slurm_update error: Invalid partition name specified' scontrol update partitionname=nosuch state=down
check 0 'Invalid job id specified' '' scontrol errnumstr 2017

# Jobs
id=$(submit -H -J named --comment 'two words' -n2 --mem=100 -t 30 --wrap 'sleep 300')
record=$(scontrol show job "$id")
like "first line" "$record" "^JobId=$id JobName=named
   UserId="
like "limits" "$record" 'RunTime=00:00:00 TimeLimit=00:30:00 TimeMin=N/A'
like "held" "$record" 'JobState=PENDING Reason=JobHeldUser Dependency=\(null\)'
like "resources" "$record" 'ReqTRES=cpu=2,mem=100M,node=1,billing=2'
like "files" "$record" "StdOut=$T/slurm-$id.out"
is "one line" "$(scontrol -o show job "$id")" "$(echo $record | sed 's/ SubmitLine/ SubmitLine/')"
check 0 '' '' scontrol update jobid="$id" timelimit=90 jobname=renamed comment='x y' nice=7
is "update" "$(squeue -h -j "$id" -o '%l|%j|%k|%y')" '1:30:00|renamed|x y|7'
scontrol update jobid="$id" timelimit+=30
is "a limit that grows" "$(squeue -h -j "$id" -o %l)" 2:00:00
check 0 '' '' scontrol update jobid="$id" timelimit=-30
is "and becomes less" "$(squeue -h -j "$id" -o %l)" 1:30:00
check 1 '' 'No changes specified' scontrol update jobid="$id"
check 0 '' '' scontrol update jobid="$id" switches=1 wait-for-switch=120 corespec=0
like "switches" "$(scontrol show job "$id")" 'Switches=1@00:02:00'
check 1 '' $'Update of this parameter is not supported: nosuchkey=1\nRequest aborted' scontrol update jobid="$id" nosuchkey=1
check 1 '' 'Invalid timelimit value: zzz' scontrol update jobid="$id" timelimit=zzz
check 1 '' "Job is pending execution for job $id" scontrol requeue "$id"
scontrol release "$id"
wait_for 10 job_is "$id" RUNNING
check 0 '' "scontrol: Nodes are ready for job $id" scontrol wait_job "$id"
like "a running job" "$(scontrol show job "$id")" 'NodeList=n1
   BatchHost=n1
   NumNodes=1 NumCPUs=2 NumTasks=2'
like "details" "$(scontrol -d show job "$id")" '     Nodes=n1 CPU_IDs=.* Mem=100 GRES='
is "script" "$(scontrol write batch_script "$id" -)" '#!/bin/sh
# This script was created by sbatch --wrap.

sleep 300'
if scontrol suspend "$id" 2>/dev/null; then
    is "suspended" "$(job_state "$id")" SUSPENDED
    scontrol resume "$id"
    is "resumed" "$(job_state "$id")" RUNNING
fi
scontrol requeue "$id"
requeued() { [ "$(squeue -h -t all -j "$id" -O RestartCnt:1)" = 1 ]; }
wait_for 20 requeued
is "requeued" "$(squeue -h -t all -j "$id" -O RestartCnt:1)" 1
is "the id stays after a requeue" "$(squeue -h -t all -j "$id" -o %A)" "$id"
scancel "$id"

# Nodes
like "node" "$(scontrol show node n2)" '^NodeName=n2 .*
   CPUAlloc=0 CPUEfctv=4 CPUTot=4 CPULoad=.*
   Gres=gpu:mi300x:2
   .*
   State=IDLE ThreadsPerCore=1 .*
   Partitions=debug .*
   CfgTRES=cpu=4,mem=4G,billing=4,gres/gpu=2'
is "one line for each" "$(scontrol -o show node | wc -l)" 3
check 0 '' '' scontrol update nodename=n[2-3] state=drain reason='bad fan'
is "drained" "$(sinfo -h -o '%t %N')" 'drain n[2-3]
idle n1'
like "reason" "$(scontrol show node n3)" 'State=IDLE\+DRAIN .*
   Reason=bad fan \[root@20[0-9T:-]+\]'
is "sinfo -R" "$(sinfo -R -h -o '%E|%u|%N')" 'bad fan|root|n[2-3]'
check 0 '' '' scontrol update nodename=n[2-3] state=resume
is "resumed" "$(sinfo -h -o '%t %N')" 'idle n[1-3]'

# Partitions
check 0 '' '' scontrol create partitionname=p2 nodes=n[1-2] maxtime=1:00:00 maxnodes=1
is "created" "$(sinfo -h -p p2 -o '%P %a %l %s %N')" 'p2 up 1:00:00 1 n[1-2]'
check 0 '' '' scontrol update partitionname=p2 state=down maxnodes=UNLIMITED
is "updated" "$(sinfo -h -p p2 -o '%a %s')" 'down 1-infinite'
like "record" "$(scontrol show partition p2)" 'MaxNodes=UNLIMITED MaxTime=01:00:00 .*
   State=DOWN TotalCPUs=8 TotalNodes=2 .*
   TRES=cpu=8,mem=8G,node=2,billing=8,gres/gpu=4'
check 0 '' '' scontrol delete partitionname=p2
check 1 '' 'delete_partition partition=p2: Invalid partition name specified' scontrol delete partition=p2

# Reservations
check 1 '' 'scontrol: error: Either Users/Groups, AllowedPartitions, QOS and/or Accounts must be specified.  No reservation created.' \
    scontrol create reservation starttime=now duration=10 nodes=n1
run scontrol create reservation=class starttime=now+1hour duration=60 users=root nodes=n1
is "created" "$code:$out" '0:Reservation created: class'
like "record" "$(scontrol show res class)" '^ReservationName=class StartTime=.* Duration=01:00:00
   Nodes=n1 NodeCnt=1 CoreCnt=4 '
check 0 'Reservation updated.' '' scontrol update reservation=class duration=30
check 0 '' '' scontrol delete reservation=class

run scontrol show config
for line in SchedulerType=sched/backfill PriorityType=priority/multifactor TaskPlugin=task/affinity,task/cgroup TopologyPlugin=topology/flat; do
    like "the kind of a plugin goes before it: $line" "$out" "${line%%=*} += ${line#*=}"
done
like "config" "$out" '^Configuration data as of 20.*
ClusterName             = spur
'
like "a token" "$(scontrol token)" '^SLURM_JWT=[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$'
is "prompt" "$(printf 'show hostlist a1,a2\nexit\n' | scontrol)" 'scontrol: a[1-2]
scontrol: '
if [ "$(id -u)" -eq 0 ]; then
    run as_user scontrol update nodename=n1 state=drain reason=x
    is "not for users" "$code" 1
    run as_user scontrol reconfigure
    is "not for users either" "$code" 1
fi
done_testing
