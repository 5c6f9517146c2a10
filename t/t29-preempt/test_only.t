#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --test-only says that a job would start at once because others make room, and which: as Slurm does. Nobody goes for it.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 2 --cpus 4 --mem 4G
cd "$T" || exit 1
cat >>"$D/spur.conf" <<'C'

[preemption]
type = "qos"
mode = "REQUEUE"
[[partitions]]
name = "high"
nodes = "ALL"
[[qos]]
name = "low"
[[qos]]
name = "urgent"
preempt = ["low"]
C
ok 'the configuration is taken' scontrol reconfigure
one=$(sub -q low -w n1 --exclusive -t 30)
two=$(sub -q low -w n2 --exclusive -t 30)
runs "$one" >/dev/null && runs "$two" >/dev/null
soon() { # TEXT: the start that is said lies in the next minute
    local at
    at=$(grep -o 'to start at [^ ]*' <<<"$1" | cut -d' ' -f4)
    [ $(($(date -d "$at" +%s) - $(date +%s))) -lt 60 ]
}
run sbatch --test-only -q urgent -N2 --exclusive --wrap true
like 'all nodes: both make room' "$code $err" "on nodes n\[1-2\].*sbatch:   Preempts: ($one,$two|$two,$one)\$"
ok 'it would start at once' soon "$err"
run sbatch --test-only -q urgent -w n2 -n 1 --wrap true
like 'one node: who is there' "$code $err" "on nodes n2.*sbatch:   Preempts: $two\$"
run srun --test-only -q urgent -w n1 -n 1 true
like 'srun says it too' "$err" "srun:   Preempts: $one\$"
run sbatch --test-only -q urgent -N1 --exclusive : -q urgent -N1 --exclusive --wrap true
like 'all components: both make room' "$code $err" "on nodes n\[1-2\].*sbatch:   Preempts: ($one,$two|$two,$one)\$"
ok 'they would start at once' soon "$err"
run sbatch --test-only -q urgent -N1 --exclusive : -q low -N1 --exclusive --wrap true
unlike 'one of them may send nobody away' "$err" 'Preempts'
run sbatch --test-only -q low -N2 --exclusive --wrap true
unlike 'who may send nobody away' "$err" 'Preempts'
not_ok 'starts later' soon "$err"
is 'nobody went for it' "$(squeue -h -o '%i %T' | sort -n | xargs)" "$one RUNNING $two RUNNING"
drop "$two"
run sbatch --test-only -q urgent -n 1 --wrap true
unlike 'where there is room nobody has to' "$err" 'Preempts'
done_testing
