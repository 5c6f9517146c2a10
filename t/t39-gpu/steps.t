#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# steps.t - the GPUs of a job among its steps and their tasks
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 2 --cpus 8 --mem 8G --gpus mi300x:4
cd "$(user_dir)"
inside() { wait_for 20 eval '[ -z "$(squeue -h)" ]'; run salloc -Q -N1 -n4 --mem=4G --gpus=2 bash -c "$1"; }

inside 'srun -n1 bash -c "echo \$SLURM_STEP_GPUS \$SLURM_GPUS_ON_NODE \$CUDA_VISIBLE_DEVICES"'
is "who does not ask has all" "$out" "0,1 2 0,1"
inside 'srun -n1 --exact --gpus=1 bash -c "echo \$SLURM_STEP_GPUS; sleep 2" & srun -n1 --exact --gpus=1 bash -c "echo \$SLURM_STEP_GPUS; sleep 2"; wait'
is "two steps at once have different ones" "$(sort <<<"$out" | tr '\n' ,)" "0,1,"
inside 'srun -n1 --gpus=3 true'
is "more than the job has" "$code" 1
like "is refused" "$err" "srun: error: Unable to create step for job [0-9]+: Invalid generic resource \(gres\) specification"
inside 'srun -n1 --mem=5G true'
like "more memory than the job has" "$err" "Memory required by task is not available"
inside 'srun -n1 --gres=none bash -c "echo [\$CUDA_VISIBLE_DEVICES] \$SLURM_GPUS_ON_NODE"'
is "none" "$out" "[] 0"
inside 'srun -n2 --gpus-per-task=1 bash -c "echo \$SLURM_PROCID \$CUDA_VISIBLE_DEVICES \$ROCR_VISIBLE_DEVICES"'
is "one for each task" "$(sort <<<"$out" | tr '\n' ,)" "0 0 0,1 1 1,"
inside 'srun -n4 --gpu-bind=single:2 bash -c "echo \$SLURM_PROCID \$CUDA_VISIBLE_DEVICES"'
is "two tasks share one" "$(sort <<<"$out" | tr '\n' ,)" "0 0,1 0,2 1,3 1,"
inside 'srun -n2 --gpu-bind=map_gpu:1,0 bash -c "echo \$SLURM_PROCID \$CUDA_VISIBLE_DEVICES"'
is "a map" "$(sort <<<"$out" | tr '\n' ,)" "0 1,1 0,"
inside 'srun -n2 --tres-bind=gres/gpu:map:1,0 bash -c "echo \$SLURM_PROCID \$CUDA_VISIBLE_DEVICES"'
is "--tres-bind says the same" "$(sort <<<"$out" | tr '\n' ,)" "0 1,1 0,"
inside 'srun -n2 --gpu-bind=per_task:1,verbose bash -c "echo \$SLURM_PROCID \$CUDA_VISIBLE_DEVICES"'
is "one for each task" "$(sort <<<"$out" | tr '\n' ,)" "0 0,1 1,"
is "said for each" "$(grep -c '^gpu-bind: ' <<<"$err")" 2
inside 'srun -n1 --gpu-bind=verbose,mask_gpu:0x2 true'
is "said" "$err" "gpu-bind: usable_gres=0x2; bit_alloc=0x3; local_inx=2; global_list=1; local_list=1"
inside 'srun -n1 --exact --gpus=2 bash -c "touch begun; sleep 3" & until [ -e begun ]; do sleep 0.05; done; srun -n1 --exact --gpus=1 true; wait'
is "who must wait says so once" "$(grep -c 'step creation temporarily disabled, retrying (Requested nodes are busy)' <<<"$err")" 1
# What each task of the job was to have, each task of its steps has.
tasks() { # OPTIONS...: what srun in such a job shows of each task
    wait_for 20 eval '[ -z "$(squeue -h)" ]'
    sbatch -W -Q -o out.%j --mem=100 "$@" --wrap 'srun bash -c "echo \$SLURM_PROCID/\$SLURM_NTASKS \$CUDA_VISIBLE_DEVICES"' >/dev/null
    sort out.* | tr '\n' ';'
    rm -f out.*
}
is "--gpus-per-task in a batch job" "$(tasks -n2 --gpus-per-task=2)" "0/2 0,1;1/2 2,3;"
is "with the number of all" "$(tasks --gpus=4 --gpus-per-task=2)" "0/2 0,1;1/2 2,3;"
is "--ntasks-per-gpu" "$(tasks --gpus=2 --ntasks-per-gpu=2)" "0/4 0;1/4 0;2/4 1;3/4 1;"
is "--tres-per-task" "$(tasks -n2 --tres-per-task=cpu=1,gres/gpu=1)" "0/2 0;1/2 1;"
run srun --gpus=2 --ntasks-per-gpu=2 --mem=100 bash -c 'echo $SLURM_PROCID $CUDA_VISIBLE_DEVICES'
is "srun with a job of its own" "$(sort <<<"$out" | tr '\n' ';')" "0 0;1 0;2 1;3 1;"
run srun --gpus=8 --mem=100 bash -c 'echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES'
is "GPUs of two nodes" "$(sort <<<"$out" | tr '\n' ';')" "n1 0,1,2,3;n2 0,1,2,3;"
done_testing
