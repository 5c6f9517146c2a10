#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# CPUs that are left to the system: by CpuSpecList these, by CoreSpecCount the last of each socket. What Slurm 22.05
# shows and gives for the same nodes.
. "$(dirname "$0")/../lib.sh"
cat >"$T/slurm.conf" <<'C'
ClusterName=kept
SlurmctldHost=localhost
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=n1 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 RealMemory=16000 CpuSpecList=0,1,9
NodeName=n2 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 RealMemory=16000 CoreSpecCount=3
PartitionName=main Nodes=ALL Default=YES State=UP
C
cluster_up --conf "$T/slurm.conf"
cd "$T" || exit 1
shown() { scontrol show node "$1" | grep -oE '(CPUEfctv|CPUTot|CoreSpecCount|CPUSpecList|CfgTRES)=[^ ]*' | tr '\n' ' '; }
is 'named CPUs, with their cores' "$(shown n1)" \
    'CPUEfctv=12 CPUTot=16 CoreSpecCount=2 CPUSpecList=0-1,8-9 CfgTRES=cpu=12,mem=16000M,billing=12 '
is 'so many cores' "$(shown n2)" \
    'CPUEfctv=10 CPUTot=16 CoreSpecCount=3 CPUSpecList=6-7,12-15 CfgTRES=cpu=10,mem=16000M,billing=10 '
is 'in JSON' "$(scontrol show node n1 --json | python3 -c '
import json, sys
node = json.load(sys.stdin)["nodes"][0]
print(node["specialized_cores"], node["specialized_cpus"], node["effective_cpus"])')" '2 0-1,8-9 12'
given() { wait_for 20 job_is "$1" RUNNING && scontrol -d show job "$1" | grep -o 'CPU_IDs=[^ ]*'; }
while read -r node ids options; do
    # shellcheck disable=SC2086 # words
    job=$(sub -w "$node" $options)
    is "$node: $options" "$(given "$job")" "CPU_IDs=$ids"
    drop "$job"
done <<'J'
n1 2-3 -n1
n1 2-7,10-15 --exclusive
n2 0-5,8-11 --exclusive
n1 2-7,10-15 -S 2
n1 2-7,10-13 -S 3
n2 0-5,8-9 -S 4
J
run sbatch -N 1-1 -n 13 --wrap true
like 'no more than jobs may have' "$code $err" '^1 .*room for so many'

# given and taken back while a job runs
job=$(sub -w n1 -n1)
is 'the first that is free' "$(given "$job")" CPU_IDs=2-3
sed -i 's/CpuSpecList=0,1,9/CpuSpecList=2,15/' "$D/slurm.conf"
ok 'another list' scontrol reconfigure
ok 'is shown' wait_for 20 eval '[[ $(shown n1) = *CPUSpecList=2-3,14-15* ]]'
other=$(sub -w n1 -n1)
is 'what was kept is given' "$(given "$other")" CPU_IDs=0-1
drop "$job" "$other"
whole=$(sub -w n1 --exclusive)
is 'what a job had is kept' "$(given "$whole")" CPU_IDs=0-1,4-13
drop "$whole"
done_testing
