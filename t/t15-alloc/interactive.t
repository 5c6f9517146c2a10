#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# interactive.t - salloc's shell is a step on the first node; options that are too late inside an allocation
. "$(dirname "$0")/../lib.sh"
command -v script >/dev/null || skip_all "there is no script(1)"
cluster_up --nodes 2 --cpus 4
cd "$(user_dir)"
export SHELL=/bin/bash

feed() { # types lines when the prompt is there, then waits for the end
    local i
    for ((i = 0; i < 200; i++)); do grep -q 'ready for job' "$1" 2>/dev/null && break; sleep 0.1; done
    sleep 1
    printf '%s\n' "${@:2}"
    for ((i = 0; i < 200; i++)); do grep -q 'Relinquishing' "$1" && break; sleep 0.1; done
    sleep 2 # script(1) forgets the exit code when its input ends first
}
feed term.out 'echo step=$SLURM_STEP_ID node=$SLURMD_NODENAME tasks=$SLURM_NTASKS tty=$(tty)' \
    'sleep 0.5; echo list=$(squeue -h -s -o %i | tr "\n" ,)' 'echo hosts=$(srun hostname </dev/null | wc -l)' 'exit 5' |
    as_user timeout 60 script -qfec 'salloc -N2 -n2' term.out >/dev/null
is "its exit code is salloc's" "$?" 5
out=$(tr -d '\r' <term.out)
like "a step on the first node, with a terminal, and the allocation's numbers" "$out" "step=4294967290 node=n1 tasks=2 tty=/dev/pts/[0-9]+"
like "listed by its name, without a script" "$out" "list=[0-9]+\.interactive,"$'\n'
like "steps of its own run beside it" "$out" "hosts=2"

job() { printf '#!/bin/bash\n%s\n' "$1" >job.sh; shift; as_user sbatch -W -o job.out "$@" job.sh >/dev/null 2>&1; out=$(cat job.out); }
job 'srun --partition=debug -n1 echo ran' -n1
like "an option of allocations is named and ignored" "$out" $'^srun: warning: --partition describes an allocation and is ignored inside job [0-9]+\nran$'
job 'srun --het-group=1 -n1 true; echo rc=$?' -n1
like "--het-group of a job that has one component" "$out" "srun: error: Attempt to run a job step with het group value of 1.*rc=1"
run as_user srun --interactive true
is "an interactive step needs an allocation" "$code" 1
done_testing
