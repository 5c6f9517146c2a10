#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# groups: asan
# The native verbs: submit --watch, explain, logs, node, controller, token, help of everything.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 2 --cpus 2 --mem 2G
cd "$T"
run spur submit --watch --wrap 'echo one; sleep 0.3; echo two; exit 4'
is "--watch ends as the job does" "$code" 4
is "--watch shows the output" "$(tail -n +2 <<<"$out")" 'one
two'
like "--watch shows the state" "$err" 'spur submit: job [0-9]+ RUNNING on n[12]
.*spur submit: job [0-9]+ FAILED, exit code 4:0$'
run srun -J talk echo spoken
is "srun shows what it ran" "$out" spoken
run spur logs "$(scontrol show job --oneliner 2>/dev/null | sed -n 's/^JobId=\([0-9]*\) JobName=talk .*/\1/p')"
like "logs of a job without a script" "$err" 'no script, so its output went to the srun'
long=$(submit -N2 --exclusive -t 10 -o 'log-%j.out' --wrap 'echo begin; sleep 300')
wait_for 10 grep -q begin "log-$long.out"
is "logs" "$(spur logs "$long")" begin
next=$(submit -N2 --wrap true)
run spur explain "$next"
like "explain a waiting job" "$out" "^job $next is PENDING: .+
"
like "it says how much" "$out" '[0-9]+ nodes'
like "it says when" "$out" 'expected start: (20|not known|never)'
like "explain a running job" "$(spur explain "$long")" "^job $long is RUNNING"
run spur explain 99999
is "explain an unknown job" "$code:$err" '1:spur explain: error: job 99999: Invalid job id specified'
run spur logs 99999
is "logs of an unknown job" "$code" 1
run spur logs "$next"
is "logs before the start" "$code" 1
scancel "$long" "$next"
like "controllers" "$(spur controller list)" 'ctl1 +leader'
run spur node drain n2 bad fan
is "drain" "$code:$(sinfo -R -h -o '%E %N')" '0:bad fan n2'
run spur node resume n2
is "resume" "$code:$(sinfo -R -h)" '0:'
like "node show" "$(spur node show n1)" '^NodeName=n1 '
like "nodes" "$(spur nodes)" '^PARTITION AVAIL'
like "queue" "$(spur queue)" '^             JOBID'
like "show" "$(spur show partition debug)" '^PartitionName=debug'
like "token" "$(spur token)" '^SLURM_JWT='
like "version" "$(spur version)" '^spur [0-9]'
run spur frobnicate
is "no such command" "$code" 1
run spur quue
like "did you mean" "$err" "did you mean 'queue'"
for command in sbatch squeue scancel sinfo 'spur submit' 'spur token' 'spur logs'; do
    run $command --help
    is "$command --help" "$code:$err" 0:
    like "$command --help says how" "$out" "^Usage: $command "
done
done_testing
