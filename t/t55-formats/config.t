#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# groups: asan
# scontrol show config prints every key of Slurm in its order, with the value in force; words of show, create and update.
. "$(dirname "$0")/../lib.sh"
cat >"$T/slurm.conf" <<CONF
ClusterName=keys
SlurmctldHost=ctl(127.0.0.1)
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
SlurmctldParameters=idle_on_node_suspend
SchedulerParameters=bf_interval=30
TaskPlugin=task/none
JobCompType=jobcomp/none
MessageTimeout=17
SuspendTime=-1
ResumeRate=12
KillWait=3
DefMemPerCPU=500
PriorityDecayHalfLife=1-12
PriorityFlags=MAX_TRES
JobRequeue=0
DisableRootJobs=no
NodeName=node[1-3] CPUs=4 RealMemory=4000 State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES State=UP
PartitionName=other Nodes=node[1-2]
CONF
cluster_up --conf "$T/slurm.conf"
cd "$T" || exit 1
scontrol show config >all
value() { sed -n "s/^$1 *= //p" all; }
is "every key, in Slurm's order" "$(sed -n 's/^\([A-Za-z0-9_]*\(\[0\]\)\{0,1\}\)  *=.*/\1/p' all)" "$(cat "$HERE/config-keys")"
is "the sign stands in its column" "$(grep -c '^.\{24\}= ' all)" "$(grep -c '^[A-Za-z0-9_]\{1,23\}\(\[0\]\)\{0,1\}  *= ' all)"
for pair in 'SelectTypeParameters|CR_CORE_MEMORY' 'TaskPlugin|(null)' 'JobCompType|(null)' 'MessageTimeout|17 sec' 'SuspendTime|INFINITE' \
    'ResumeRate|12 nodes/min' 'KillWait|3 sec' 'DefMemPerCPU|500' 'PriorityDecayHalfLife|1-12:00:00' 'PriorityFlags|MAX_TRES' 'JobRequeue|0' \
    'DisableRootJobs|no' 'SlurmdUser|root(0)' 'SLURM_VERSION|26.11.0' 'MULTIPLE_SLURMD|yes' 'MaxNodeCount|3' 'TLSType|tls/none' \
    'SlurmctldParameters|idle_on_node_suspend' 'SlurmctldTimeout|120 sec' 'MCSPlugin|(null)' 'SwitchType|(null)' 'NEXT_JOB_ID|1' \
    'PriorityCalcPeriod|00:05:00' 'VSizeFactor|0 percent' 'AllowSpecResourcesUsage|no' 'TaskPluginParam|(null type)'; do
    is "${pair%%|*}" "$(value "${pair%%|*}")" "${pair#*|}"
done
[ "$(id -u)" -ne 0 ] || is "SlurmUser has name and number" "$(value SlurmUser)" "root(0)"
like "SLURM_CONF is the file that was read" "$(value SLURM_CONF)" "^/.*slurm.conf$"
is "and holds what is shown" "$(grep -c '^MessageTimeout=17' "$(value SLURM_CONF)")" 1
like "SlurmctldPort is the port in force" "$(value SlurmctldPort)" '^[0-9]+$'
is "who leads comes last" "$(tail -1 all)" 'Slurmctld(primary) at ctl1 is UP'

for command in sbatch srun salloc sattach sbcast sgather scancel squeue sinfo sprio sstat scontrol; do
    is "$command -V" "$($command -V)" 'slurm 26.11.0'
    is "$command --version" "$($command --version)" 'slurm 26.11.0'
done
is "spur version is our own" "$(spur version)" "spur $(sed -n "s/^  version: '\(.*\)',/\1/p" "$HERE/../../meson.build")"
like "nodes say the same release" "$(scontrol show node node1)" 'Version=26\.11\.0'
is "sinfo too" "$(sinfo -h -o %v)" 26.11.0

# Words of entities, lists, Key Value
is "show partitionname=" "$(scontrol -o show partitionname=other | cut -d' ' -f1)" PartitionName=other
is "show partitionname NAME" "$(scontrol -o show partitionname debug | cut -d' ' -f1)" PartitionName=debug
is "a list of partitions" "$(scontrol -o show partition debug,other | cut -d' ' -f1 | tr '\n' ' ')" 'PartitionName=debug PartitionName=other '
run scontrol show partition debug,nosuch
is "one of them unknown" "$code" 1
scontrol create reservation ReservationName r1 StartTime now+1hour Duration 10 Users root Nodes node1 >/dev/null
scontrol create reservation reservation=r2 starttime=now+1hour duration=10 users=root nodes=node2 >/dev/null
is "show reservationname=" "$(scontrol -o show reservationname=r1 | cut -d' ' -f1)" ReservationName=r1
is "a list of reservations" "$(scontrol -o show reservation r1,r2 | cut -d' ' -f1 | tr '\n' ' ')" 'ReservationName=r1 ReservationName=r2 '
ok "Key Value of update" scontrol update reservationname r1 duration 30
like "acts" "$(scontrol show reservation r1)" 'Duration=00:30:00'
ok "delete with a word" scontrol delete reservation r2
a=$(submit -H --array=1-10 --wrap true) b=$(submit -H --wrap true) c=$(submit -H --wrap true)
ok "update of several" scontrol update jobid="$b,$c" timelimit=7
is "both changed" "$(squeue -h -j "$b,$c" -o %l | tr '\n' ' ')" '7:00 7:00 '
ok "update Key Value" scontrol update JobId "$b" Name renamed
is "changed" "$(squeue -h -j "$b" -o %j)" renamed
is "show of several, one a list of tasks" "$(scontrol -o show job "${a}_[1,3],$c" | grep -o ' JobName' | wc -l)" 2
ok "release of a list of tasks" scontrol release "${a}_[1-4,6-10]"
wait_for 20 eval '[ "$(squeue -h -r -j '"$a"' -o %K 2>/dev/null)" = 5 ]'
is "only the fifth is left" "$(squeue -h -r -j "$a" -o %K)" 5
run scontrol update JobName=none UserID=0 Priority=1
like "jobs of a name that nobody has" "$code:$err" '^1:Invalid job id specified: no job is called none'
scancel "$a" "$b" "$c"
done_testing
