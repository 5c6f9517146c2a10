#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Which GPUs go together, and shares of them: by links and near cores that the configuration names.
. "$(dirname "$0")/../lib.sh"
cluster_of links <<'CONF'
[[nodes]]
names = "g1"
cpus = 16
sockets = 2
cores_per_socket = 8
memory_mb = 8000
gres = ["gpu:mi250x:4"]
[[nodes]]
names = "s1"
cpus = 8
memory_mb = 8000
gres = ["gpu:a100:2", "shard:8"]
[[gres]]
nodes = "g1"
name = "gpu"
type = "mi250x"
files = "/dev/fakegpu0"
cores = "0-7"
links = "-1,1,4,1"
[[gres]]
nodes = "g1"
name = "gpu"
type = "mi250x"
files = "/dev/fakegpu1"
cores = "8-15"
links = "1,-1,1,4"
[[gres]]
nodes = "g1"
name = "gpu"
type = "mi250x"
files = "/dev/fakegpu2"
cores = "0-7"
links = "4,1,-1,1"
[[gres]]
nodes = "g1"
name = "gpu"
type = "mi250x"
files = "/dev/fakegpu3"
cores = "8-15"
links = "1,4,1,-1"
CONF
given() { wait_for 20 job_is "$1" RUNNING && scontrol -d show job "$1" | grep -o 'CPU_IDs=[^ ]* \|GRES=[^ ]*(IDX[^ ]*' | tr -d '\n'; }

one=$(sub -w g1 --gres=gpu:1)
is "one" "$(given "$one")" "CPU_IDs=0 GRES=gpu:mi250x:1(IDX:0)"
pair=$(sub -w g1 --gres=gpu:2 -c 2)
is "two that are linked, and cores near them" "$(given "$pair")" "CPU_IDs=8-9 GRES=gpu:mi250x:2(IDX:1,3)"
last=$(sub -w g1 --gres=gpu:1)
is "what is left of the broken pair" "$(given "$last")" "CPU_IDs=1 GRES=gpu:mi250x:1(IDX:2)"

three=$(sub --gres=shard:3)
is "shares of one GPU" "$(given "$three")" "CPU_IDs=0 GRES=shard:3(IDX:0)"
two=$(sub --gres=shard:2)
is "that do not fit beside them" "$(given "$two")" "CPU_IDs=1 GRES=shard:2(IDX:1)"
whole=$(sub --gres=gpu:a100:1)
ok "a GPU in shares is not given whole" wait_for 20 eval '[ "$(squeue -h -j $whole -o %r)" = Resources ]'
scancel "$two"
is "until they are given back" "$(given "$whole")" "CPU_IDs=1 GRES=gpu:a100:1(IDX:1)"
run sbatch --gres=shard:5 --wrap true
is "more shares than one GPU has" "$err" "sbatch: error: partition debug: a node of it has at most 4 shard, and 5 are needed on one
sbatch: error: Batch job submission failed: Requested node configuration is not available"
scancel "$three" "$whole"
sbatch -W -o seen -w s1 --gres=shard:1 --wrap 'echo "$CUDA_VISIBLE_DEVICES $SLURM_SHARDS_ON_NODE"' >/dev/null
is "what a share sees" "$(cat seen)" "0 1"
done_testing
