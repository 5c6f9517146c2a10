#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# update.t - scontrol update: keys of jobs, nodes and partitions, each shown by what it changes
. "$(dirname "$0")/../lib.sh"

cluster_of updates <<'END'
[access]
disable_root_jobs = false
[[nodes]]
names = "n[1-4]"
cpus = 4
sockets = 1
cores_per_socket = 4
memory_mb = 1000
END
job_has() { scontrol -o show job "$1" | grep -o " $2=[^ ]*"; }
node_has() { scontrol -o show node "$1" | grep -o " $2=[^ ]*"; }
part_has() { scontrol -o show partition "$1" | grep -o " $2=[^ ]*"; }
field() { scontrol show job "$1" --json | tr -d '\n' | grep -o "\"$2\": *[^,]*" | head -1; }

# ---- jobs ----
job=$(sbatch --parsable -H -c 2 -o /dev/null --wrap 'sleep 300')
change() { run scontrol update JobId="$job" "$@"; [ $code -eq 0 ] || echo "# $err"; }
change NumCPUs=8
is 'NumCPUs: tasks of two CPUs each' "$(job_has "$job" NumTasks)$(job_has "$job" NumCPUs)" ' NumTasks=4 NumCPUs=8'
change NumCPUs=4-8
is 'NumCPUs with a most' "$(job_has "$job" NumTasks)" ' NumTasks=2'
run scontrol update JobId="$job" NumCPUs=0
is 'none is no number' "$code" 1
change CoreSpec=1
is 'CoreSpec' "$(job_has "$job" CoreSpec)" ' CoreSpec=1'
change CoreSpec=0
change ThreadSpec=1
is 'ThreadSpec' "$(job_has "$job" ThreadSpec)" ' ThreadSpec=1'
change ThreadSpec=0
change Switches=2@10:00
like 'Switches' "$(scontrol -o show job "$job")" 'Switches=2@'
change wait-for-switch=90
like 'wait-for-switch' "$(scontrol -o show job "$job")" 'Switches=2@00:01:30|2@1:30|Switches=2@.*90|Switches=2@.*01:30'
change MCSLabel=red
is 'MCSLabel' "$(job_has "$job" MCS_label)" ' MCS_label=red'
change DelayBoot=5
like 'DelayBoot' "$(scontrol -o show job "$job")" 'DelayBoot=00:05:00'
run scontrol update JobId="$job" EndTime=now+1hour
is 'EndTime of a job that waits' "$code" 1
scontrol update JobId="$job" CoreSpec=0 NumCPUs=2
scontrol release "$job"
runs "$job" >/dev/null
change EndTime=now+30minutes
like 'EndTime of one that runs is a limit' "$(job_has "$job" TimeLimit)" ' TimeLimit=00:30:'
run scontrol update JobId="$job" NumCPUs=4
is 'NumCPUs of one that runs' $code 1
scancel "$job"

# ---- whose jobs of that name ----
if [ "$(id -u)" -eq 0 ]; then
    home=$(user_dir)
    mine=$(sbatch --parsable -H -J same -o /dev/null --wrap true)
    theirs=$(cd "$home" && as_user sbatch --parsable -H -J same -o /dev/null --wrap true)
    scontrol update JobName=same UserID=$TEST_UID Comment=theirs
    is 'UserID says whose jobs of a name' "$(job_has "$mine" Comment)$(job_has "$theirs" Comment)" ' Comment=theirs'
    run scontrol update JobId="$mine" UserID=$TEST_UID Comment=x
    is 'and is not for a job by number' $code 1
    scancel "$mine" "$theirs"
fi

# ---- nodes ----
scontrol update NodeName=n4 Gres=gpu:2 InstanceId=i-1 InstanceType=big
is 'Gres, InstanceId and InstanceType of a node' "$(node_has n4 Gres)$(node_has n4 InstanceId)$(node_has n4 InstanceType)" \
    ' Gres=gpu:2 InstanceId=i-1 InstanceType=big'
scontrol update NodeName=n3 State=DRAIN Reason=pause ResumeAfter=3600
like 'ResumeAfter is shown' "$(node_has n3 ResumeAfterTime)" '=20[0-9]{2}-'
scontrol update NodeName=n3 ResumeAfter=-1
is 'and taken back' "$(node_has n3 ResumeAfterTime)" ' ResumeAfterTime=None'
scontrol update NodeName=n3 ResumeAfter=1
ok 'it comes back by itself' wait_for 20 eval '[ "$(sinfo -h -N -n n3 -o %T)" = idle ]'

# ---- partitions ----
scontrol update PartitionName=debug Nodes-=n4
is 'Nodes-=' "$(part_has debug Nodes)" ' Nodes=n[1-3]'
scontrol update PartitionName=debug Nodes+=n4
is 'Nodes+=' "$(part_has debug Nodes)" ' Nodes=n[1-4]'
scontrol update PartitionName=debug AllowAccounts=a,b
scontrol update PartitionName=debug AllowAccounts+=c
scontrol update PartitionName=debug AllowAccounts-=a
is 'AllowAccounts+= and -=' "$(part_has debug AllowAccounts)" ' AllowAccounts=b,c'
scontrol update PartitionName=debug AllowAccounts=
scontrol update PartitionName=debug Priority=7
is 'Priority is both' "$(part_has debug PriorityJobFactor)$(part_has debug PriorityTier)" ' PriorityJobFactor=7 PriorityTier=7'
scontrol update PartitionName=debug JobDefaults=DefCpuPerGPU=3,DefMemPerGPU=100
is 'JobDefaults' "$(part_has debug JobDefaults)" ' JobDefaults=DefCpuPerGPU=3,DefMemPerGPU=100'
scontrol update PartitionName=debug Exclusive=NODE
job=$(sub -n 1)
runs "$job" >/dev/null
is 'Exclusive=NODE' "$(squeue -h -j "$job" -o %C)" 4
drop "$job"
scontrol update PartitionName=debug Exclusive=USER
is 'Exclusive=USER' "$(part_has debug Exclusive)" ' Exclusive=USER'
scontrol update PartitionName=debug Exclusive=NO
is 'Exclusive=NO' "$(part_has debug Exclusive)" ' Exclusive=NO'
done_testing
