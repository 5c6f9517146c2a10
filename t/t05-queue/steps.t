#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Steps that run: squeue -s, its columns and JSON, scontrol show step.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 2 --cpus 8 --mem 8G --gpus mi300x:4
cd "$(user_dir)"
id=$(as_user sbatch --parsable -n2 --mem=2G --gpus=2 -o /dev/null --wrap 'srun -n1 --exact --gpus=1 --mem=100 -J second sh -c "touch one; sleep 600" & srun -n1 --exact --gpus=1 -t 5 --mem=100 -m block sh -c "touch two; sleep 600" & wait')
ok "two steps run" wait_for 30 test -e one -a -e two
listed() { [ "$(squeue -h -s -o %i | sort | tr '\n' ' ')" = "$id.0 $id.1 $id.batch " ]; }
ok "are listed with the script" wait_for 30 listed
zero=$(squeue -h -s -o '%i %j' | sed -n 's/ second$//p')
one=$(squeue -h -s -o '%i %j' | sed -n 's/ sh$//p')
is "GPUs on each node" "$(squeue -h -s -o '%i %b' | sort | tr '\n' ,)" "$id.0 gres/gpu:1,$id.1 gres/gpu:1,$id.batch N/A,"

# ---- JSON ----
ask() { "$@" --json | python3 -c "
import sys, json
d = json.load(sys.stdin)
s = {x['id']: x for x in d['steps']}
a, b, c = s['$zero'], s['$one'], s['$id.batch']
print(($question))"; }
question="sorted(s), list(d)"
is "as JSON: what there is" "$(ask squeue -s)" "(['$id.0', '$id.1', '$id.batch'], ['steps', 'meta', 'errors', 'warnings'])"
question="' '.join(a)"
is "the keys of a step" "$(ask squeue -s)" "array cluster container container_id cpu tres name network nodes number_cpus number_tasks partition reserved_ports time runtime srun state id stderr stdin stdout stdin_expanded stdout_expanded stderr_expanded submit_line task user"
question="a['tres']['allocation'], a['tres']['per']['node'], a['name'], a['number_cpus'], a['number_tasks'], a['nodes'], a['state'], a['srun']['pid'] > 0, a['task'], a['time']['limit']['infinite'], c['tres']['allocation'], c['number_cpus'], c['task']"
is "what it has" "$(ask squeue -s)" "('cpu=1,mem=100M,node=1,gres/gpu=1', 'gres/gpu:1', 'second', 1, 1, 'n1', ['RUNNING'], True, {'distribution': 'Cyclic'}, True, '', 0, {'distribution': 'Unknown'})"
question="a['submit_line'], b['task']['distribution'], b['time']['limit']"
is "how it was asked for" "$(ask squeue -s)" "('srun -n1 --exact --gpus=1 --mem=100 -J second sh -c touch one; sleep 600', 'Block', {'set': True, 'infinite': False, 'number': 5})"
question="a['name'], b['number_cpus'], c['nodes']"
is "scontrol has the same" "$(ask scontrol show step)" "('second', 1, 'n1')"

# ---- in words ----
like "show step" "$(scontrol show step "$zero")" "^StepId=$zero UserId=[0-9]+ StartTime=[-0-9T:]+ TimeLimit=UNLIMITED
   State=RUNNING Partition=debug NodeList=n1
   Nodes=1 CPUs=1 Tasks=1 Name=second Network=\(null\)
   TRES=cpu=1,mem=100M,node=1,gres/gpu=1
   ResvPorts=\(null\)
   CPUFreqReq=Default Dist=Cyclic
   SrunHost:Pid=[^:]+:[0-9]+"
like "on one line" "$(scontrol -o show step "$one")" "^StepId=$one .* TRES=cpu=1,mem=100M,node=1,gres/gpu=1 ResvPorts=\(null\) CPUFreqReq=Default Dist=Block SrunHost:Pid="
is "the script comes first" "$(scontrol show step "$id" | grep -o '^StepId=[^ ]*' | head -1)" "StepId=$id.batch"
scancel "$id"
arr=$(submit --array=7 -o /dev/null --wrap 'srun sleep 600')
ok "a task of an array" wait_for 30 eval "squeue -h -s -o %i | grep -qx '${arr}_7.0'"
like "has its own name" "$(scontrol show step)" "StepId=${arr}_7.0 "
scancel "$arr"
done_testing
