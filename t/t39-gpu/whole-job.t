#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --gpus: GPUs of the whole job, on nodes that do not have equally many, or not free.
. "$(dirname "$0")/../lib.sh"
{
    printf 'cluster_name = "whole"\n[scheduler]\nconfig_overrides = true\n'
    for row in 'e[1-4] "gpu:8"' 's[1-2] "gpu:6"' 'm[1-2] "gpu:a:4","gpu:b:2"'; do
        printf '[[nodes]]\nnames = "%s"\ncpus = 32\nsockets = 2\ncores_per_socket = 16\nmemory_mb = 64000\ngres = [%s]\n' "${row%% *}" "${row#* }"
    done
    printf '[[partitions]]\nname = "p"\nnodes = "e[1-4],s[1-2]"\ndefault = true\n[[partitions]]\nname = "t"\nnodes = "m[1-2]"\n'
} >"$T/spur.conf"
cluster_up --conf "$T/spur.conf"
cd "$T" || exit 1
# "e1=8 e2=8": each node and its GPUs
given() {
    wait_for 20 job_is "$1" RUNNING && scontrol -d show job "$1" | sed -n 's/^ *Nodes=\([^ ]*\) .*GRES=\(.*\)/\1 \2/p' |
        while read -r nodes gres; do
            for node in $(scontrol show hostnames "$nodes"); do echo "$node=$(grep -o ':[0-9]*(' <<<"$gres" | tr -d ':(' | paste -sd+)"; done
        done | paste -sd' '
}
refused() { local name=$1 text=$2; shift 2; run "$@"; like "$name" "$code $err" "^1 .*$text"; }

run sbatch --test-only --gpus=38 --wrap true
like "38 of 44: would start" "$code $err" '^0 .*to start at .* using 5 processors on nodes e\[1-4\],s[12] '
all=$(sub --gpus=38)
like "38 of 44: on five nodes" "$(given "$all")" '^e1=8 e2=8 e3=8 e4=8 s[12]=6$'
is "a task on each" "$(scontrol show job "$all" | grep -o 'NumNodes=.*NumTasks=[0-9]*')" 'NumNodes=5 NumCPUs=5 NumTasks=5'
like "all are counted" "$(scontrol show job "$all")" ' AllocTRES=[^ ]*gres/gpu=38'
rest=$(sub --gpus=7 -t 10)
ok "seven of the six that are left wait" waits "$rest" Resources
like "and it says for what" "$(spur explain "$rest")" '7 gpu'
six=$(sub --gpus=6 -t 5)
like "six do not" "$(given "$six")" '^s[12]=6$'
drop "$all" "$six"
like "then there are" "$(given "$rest")" '=7$'
drop "$rest"
refused "45 of 44" '45 gpu are needed, and its nodes have 44 together' sbatch --gpus=45 --wrap true
refused "20 of two nodes" 'on so few nodes' sbatch -N1-2 --gpus=20 --wrap true
# free: 3, 5 and 1
busy="$(sub -w e1 --gres=gpu:5) $(sub -w e2 --gres=gpu:3) $(sub -w e3 --gres=gpu:7) $(sub -w e4 --gres=gpu:8) $(sub -w 's[1-2]' -N2 --gres=gpu:6)"
for job in $busy; do wait_for 20 job_is "$job" RUNNING; done
nine=$(sub --gpus=9)
is "nine of three nodes that are nearly full" "$(given "$nine")" 'e1=3 e2=5 e3=1'
drop "$nine" $busy
# tasks and CPUs beside them
many=$(sub -n 40 --gpus=4)
like "more tasks than one node has CPUs" "$(given "$many")" '^(e|s)[0-9]=2 (e|s)[0-9]=2$'
is "all of them" "$(scontrol show job "$many" | grep -o 'NumCPUs=.*NumTasks=[0-9]*')" 'NumCPUs=40 NumTasks=40'
drop "$many"
refused "not of one node" '40 tasks and 4 GPUs are needed' sbatch -N1 -n 40 --gpus=4 --wrap true
cpus=$(sub --gpus=10 --cpus-per-gpu=8)
is "so many CPUs for each: on three nodes" "$(given "$cpus" | wc -w) $(squeue -h -j "$cpus" -o %C)" '3 80'
drop "$cpus"
tasks=$(sbatch --parsable -o tasks --ntasks-per-gpu=2 --gpus=16 --wrap 'srun bash -c "echo \$SLURMD_NODENAME" | sort | uniq -c | tr -s " "; sleep 300')
like "two tasks for each" "$(given "$tasks")" '=8 .*=8$'
ok "run where the GPUs are" wait_for 20 eval '[ "$(grep -c "^ 16 " tasks)" = 2 ]'
drop "$tasks"
run srun --gpus=38 bash -c 'echo $SLURM_GPUS_ON_NODE'
is "a step has them all" "$(sort <<<"$out" | xargs)" '6 8 8 8 8'
# of two types
both=$(sub -p t --gpus=a:6,b:2)
is "of both types on each" "$(given "$both")" 'm1=3+1 m2=3+1'
drop "$both"
refused "nine of eight" '9 gpu:a are needed, and its nodes have 8 together' sbatch -p t --gpus=a:9,b:2 --wrap true
done_testing
