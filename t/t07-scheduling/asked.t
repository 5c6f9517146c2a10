#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Slurm was asked for these on such a cluster, one after the other, and its answers written down: how many
# nodes, CPUs and tasks, which nodes, and memory and GPUs of each. Which cores are taken is our own choice.
. "$(dirname "$0")/../lib.sh"
mkdir "$T/conf" "$T/dev"
touch "$T"/dev/a{0..3}
cp "$HERE/asked/slurm.conf" "$T/conf/"
sed "s|@DEV@|$T/dev|" "$HERE/asked/gres.conf" >"$T/conf/gres.conf"
cluster_up --conf "$T/conf/slurm.conf"
ok 'the files beside slurm.conf come with it' cmp "$T/conf/gres.conf" "$D/gres.conf"
cd "$T" || exit 1
settled() { [[ $(squeue -h -j "$1" -o %T) = RUNNING ]]; }
idle() { [ -z "$(squeue -h -o %i)" ] && [ "$(sinfo -h -p main -o '%t %D')" = 'idle 6' ]; }

given() { # JOB: "2 nodes, 4 CPUs, 2 tasks: n[1-2]:1000M:gpu:a:4(IDX:0-3)"
    scontrol show job -d "$1" | awk '
        match($0, /NumNodes=[0-9]+/) { nodes = substr($0, RSTART + 9, RLENGTH - 9) }
        match($0, /NumCPUs=[0-9]+/) { cpus = substr($0, RSTART + 8, RLENGTH - 8) }
        match($0, /NumTasks=[0-9]+/) { tasks = substr($0, RSTART + 9, RLENGTH - 9) }
        /CPU_IDs=/ {
            split($1, name, "="); split($3, mem, "="); sub(/^GRES=/, "", $4)
            parts = parts " " name[2] ":" mem[2] "M" ($4 == "" || $4 == "(null)" ? "" : ":" $4)
        }
        END { print nodes " nodes, " cpus " CPUs, " tasks " tasks:" parts }'
}

set -f # [x|y] is no pattern
while IFS=$'\t' read -r options answer; do
    case $options in '#'*) continue ;; esac
    # shellcheck disable=SC2086 # words
    run sbatch --parsable -o /dev/null $options --wrap 'exec sleep 600'
    if [ "$code" != 0 ]; then
        is "$options" refused "$answer"
        continue
    fi
    wait_for 20 settled "$out"
    is "$options" "$(given "$out")" "$answer"
    scancel "$out"
    wait_for 20 idle
done <"$HERE/asked/answers"

# ---- which cores: of few sockets; of all of them when that is asked for, as Slurm has it then ----
cores() {
    run sbatch --parsable -o /dev/null -w n5 "$@" --wrap 'exec sleep 600'
    wait_for 20 settled "$out"
    scontrol show job -d "$out" | sed -n 's/.*CPU_IDs=\([^ ]*\).*/\1/p'
    scancel "$out"
    wait_for 20 idle
}
is 'cores of one socket' "$(cores -n 4)" 0-3
is 'cores of all sockets' "$(cores -n 4 -m block:cyclic)" 0-1,8-9
is 'a hint that says so' "$(cores -n 4 --hint=memory_bound)" 0-3,8-11
is 'those of a task on one' "$(cores -n 2 -c 4 -m block:cyclic)" 0-3,8-11
done_testing
