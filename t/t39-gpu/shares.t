#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Parts of GPUs: shard and mps, profiles of MIG as types, and --gres-flags about shares.
. "$(dirname "$0")/../lib.sh"
cluster_of shares <<'CONF'
[[nodes]]
names = "s1"
cpus = 16
memory_mb = 8000
gres = ["gpu:a100:4", "shard:16"]
[[nodes]]
names = "p1"
cpus = 16
memory_mb = 8000
gres = ["gpu:v100:2", "mps:200"]
[[nodes]]
names = "g1"
cpus = 16
memory_mb = 8000
gres = ["gpu:a100_1g.10gb:4", "gpu:a100_3g.40gb:1"]
[[nodes]]
names = "x1"
cpus = 16
memory_mb = 8000
gres = ["gpu:h100:2", "gpu:h100_1g.12gb:2", "shard:11"]
CONF
given() { wait_for 20 job_is "$1" RUNNING && scontrol -d show job "$1" | grep -o 'GRES=[^ ]*(IDX[^ ]*' | tr -d '\n'; }

# mps: a hundred of each GPU
half=$(sub --gres=mps:50)
is "mps: half a GPU" "$(given "$half")" 'GRES=mps:50(IDX:0)'
more=$(sub --gres=mps:60)
is "mps: what does not fit beside it is of the other" "$(given "$more")" 'GRES=mps:60(IDX:1)'
none=$(sub --gres=mps:60)
ok "mps: no GPU has as much left" waits "$none" Resources
small=$(sub --gres=mps:40)
is "mps: one has less" "$(given "$small")" 'GRES=mps:40(IDX:1)'
drop "$half" "$more" "$none" "$small"
sbatch -W -o mps.out --gres=mps:25 --wrap 'echo "$CUDA_VISIBLE_DEVICES $CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"' >/dev/null
is "mps: what the job sees" "$(cat mps.out)" '0 25'
run sbatch --gres=gpu:1,shard:1 --wrap true
like "whole ones and shares" "$code $err" '^1 .*whole GPUs and shares of GPUs \(shard, mps\) exclude each other'

# shares of GPUs of two types: two of each, three are of none
both=$(sub -w x1 --gres=gpu:h100:2)
is "whole ones of a type" "$(given "$both")" 'GRES=gpu:h100:2(IDX:0-1)'
one=$(sub -w x1 --gres=shard:2) two=$(sub -w x1 --gres=shard:1) more=$(sub -w x1 --gres=shard:2)
is "shares are of the other type" "$(given "$one") $(given "$two")" 'GRES=shard:h100_1g.12gb:2(IDX:0) GRES=shard:h100_1g.12gb:1(IDX:1)'
ok "and there are no more" waits "$more" Resources
like "all are counted" "$(scontrol -d show node x1)" 'GresUsed=gpu:h100:2\(IDX:0-1\),gpu:h100_1g.12gb:0\(IDX:N/A\),shard:3\(IDX:N/A\)'
whole=$(sub -w x1 --gres=gpu:h100_1g.12gb:1)
ok "nor is one given whole of which there are shares" wait_for 20 eval '[[ $(squeue -h -j '"$whole"' -o %r) =~ ^(Resources|Priority)$ ]]'
drop "$both"
is "until others are free" "$(given "$more")" 'GRES=shard:h100:2(IDX:0)'
drop "$one" "$two" "$more" "$whole"
run sbatch -w x1 --gres=shard:3 --wrap true
like "more than one GPU has" "$code $err" '^1 .*at most 2 shard, and 3 are needed on one'
run sbatch --gres=mps:101 --wrap true
like "mps: more than a GPU" "$code $err" '^1 .*Requested node configuration is not available'

# profiles of MIG: each is a type of GPU
small=$(sub --gres=gpu:a100_1g.10gb:2)
is "MIG: two small ones" "$(given "$small")" 'GRES=gpu:a100_1g.10gb:2(IDX:0-1)'
large=$(sub --gres=gpu:a100_3g.40gb:1)
is "MIG: a large one" "$(given "$large")" 'GRES=gpu:a100_3g.40gb:1(IDX:0)'
second=$(sub --gres=gpu:a100_3g.40gb:1)
ok "MIG: there is one" waits "$second" Resources
run sbatch --gres=gpu:a100_1g.10gb:5 --wrap true
like "MIG: and no fifth small one" "$code $err" '^1 .*Requested node configuration is not available'
drop "$small" "$large" "$second"

# shard: tasks that share a GPU, or each of another one
many=$(sub -n 2 --tres-per-task=gres/shard:2)
is "shard: tasks share a GPU" "$(given "$many")" 'GRES=shard:4(IDX:0)'
one=$(sub -n 2 --tres-per-task=gres/shard:2 --gres-flags=one-task-per-sharing)
is "one-task-per-sharing: each has its own" "$(given "$one")" 'GRES=shard:4(IDX:1-2)'
fit=$(sub -n 3 --tres-per-task=gres/shard:2 --gres-flags=one-task-per-sharing)
is "one-task-per-sharing: three more GPUs" "$(given "$fit")" 'GRES=shard:6(IDX:1-3)'
three=$(sub -n 3 --tres-per-task=gres/shard:3 --gres-flags=one-task-per-sharing)
ok "one-task-per-sharing: three GPUs with as much left are not there" waits "$three" Resources
drop "$many" "$one" "$fit"
like "one-task-per-sharing: then it runs" "$(given "$three")" '^GRES=shard:9\(IDX:[0-9],?-?[0-9].*\)$'
drop "$three"
run sbatch -n 5 -N 1 --tres-per-task=gres/shard:1 --gres-flags=one-task-per-sharing --wrap true
like "one-task-per-sharing: five of four" "$code $err" '^1 .*Requested node configuration is not available'
ok "over a restart of the controller" controller_again
sed -i 's/^config_overrides.*/&\nselect = ["CR_Core", "ONE_TASK_PER_SHARING_GRES"]/' "$D/spur.conf"
ok "ONE_TASK_PER_SHARING_GRES" scontrol reconfigure
asked=$(sub -n 2 --tres-per-task=gres/shard:1)
is "for all" "$(given "$asked")" 'GRES=shard:2(IDX:0-1)'
multi=$(sub -n 2 --tres-per-task=gres/shard:1 --gres-flags=multiple-tasks-per-sharing)
is "multiple-tasks-per-sharing: but not for this" "$(given "$multi")" 'GRES=shard:2(IDX:0)'
drop "$asked" "$multi"
sed -i 's/^select = .*/select = ["CR_Core", "LL_SHARED_GRES"]/' "$D/spur.conf"
ok "LL_SHARED_GRES" scontrol reconfigure
a=$(sub --gres=shard:1) b=$(sub --gres=shard:1)
is "the least used GPU" "$(given "$a") $(given "$b")" 'GRES=shard:1(IDX:0) GRES=shard:1(IDX:1)'
run srun -n 2 --gpus-per-task=a100:1 --gres-flags=allow-task-sharing bash -c 'echo $SLURM_PROCID $CUDA_VISIBLE_DEVICES'
is "allow-task-sharing: each task still has its own first" "$(sort <<<"$out" | tr '\n' ,)" '0 2,1 3,'
run sbatch --gres-flags=nosuch --wrap true
like "no such flag" "$code $err" '^(1|255) .*gres-flags'
done_testing
