#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# GPUs: how many, which ones, and what the job sees of them.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 2 --cpus 32 --mem 64G --gpus mi300x:8
cd "$T"
given() { wait_for 20 job_is "$1" RUNNING && scontrol -d show job "$1" | grep -o ' Nodes=n[^ ]* \|GRES=[^ ]*(IDX[^ ]*' | tr -d '\n' | sed 's,^ ,,'; }

four=$(sub --gres=gpu:4)
is "four of eight" "$(given "$four")" "Nodes=n1 GRES=gpu:mi300x:4(IDX:0-3)"
two=$(sub --gpus=2 -n 2)
is "for the whole job" "$(given "$two")" "Nodes=n1 GRES=gpu:mi300x:2(IDX:4-5)"
per=$(sub -n 2 --gpus-per-task=mi300x:1)
is "for each task" "$(given "$per")" "Nodes=n1 GRES=gpu:mi300x:2(IDX:6-7)"
eight=$(sub --gpus-per-node=8 --cpus-per-gpu=2)
is "all of the other node" "$(given "$eight")" "Nodes=n2 GRES=gpu:mi300x:8(IDX:0-7)"
is "CPUs by GPU" "$(squeue -h -j "$eight" -o %C)" 16
none=$(sub --gres=gpu:1)
ok "no more are free" wait_for 20 eval '[ "$(squeue -h -j $none -o %r)" = Resources ]'
scancel "$two"
is "they come back" "$(given "$none")" "Nodes=n1 GRES=gpu:mi300x:1(IDX:4)"
like "the node counts them" "$(scontrol show node n1)" 'AllocTRES=[^ ]*gres/gpu=7'
run sbatch --gres=gpu:9 --wrap true
is "nine of eight" "$err" "sbatch: error: partition debug: a node of it has at most 8 gpu, and 9 are needed on one
sbatch: error: Batch job submission failed: Requested node configuration is not available"
run sbatch --gres=gpu:h100:1 --wrap true
is "of another type" "$err" "sbatch: error: partition debug: no node of it has gpu:h100
sbatch: error: Batch job submission failed: Requested node configuration is not available"
scancel "$four" "$per" "$eight" "$none"
wait_for 20 eval '[ -z "$(squeue -h)" ]'

sbatch -W -o seen --gres=gpu:3 --wrap 'echo "$CUDA_VISIBLE_DEVICES $SLURM_GPUS_ON_NODE $SLURM_JOB_GPUS"' >/dev/null
is "what the job sees" "$(cat seen)" "0,1,2 3 0,1,2"
memory=$(sub --gpus-per-node=2 --mem-per-gpu=3G)
like "memory by GPU" "$(given "$memory" >/dev/null; scontrol -d show job "$memory")" 'Mem=6144'
tasks=$(sub --gpus=4 --ntasks-per-gpu=2)
is "tasks by GPU" "$(given "$tasks" >/dev/null; scontrol show job "$tasks" | grep -o 'NumTasks=[0-9]*')" NumTasks=8
implied=$(sub -n 4 --ntasks-per-gpu=2)
is "GPUs by tasks" "$(given "$implied")" "Nodes=n1 GRES=gpu:mi300x:2(IDX:6-7)"
done_testing
