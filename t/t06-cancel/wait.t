#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# groups: asan
#
# wait.t - spur wait ends when the jobs have, with their exit code
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 1 --cpus 4
cd "$(user_dir)" || exit 1
job() { as_user sbatch --parsable -o /dev/null "$@"; }

good=$(job --wrap 'sleep 0.5') seven=$(job --wrap 'sleep 0.2; exit 7')
as_user spur wait "$good"
is "a good end" "$?:$(job_state "$good")" 0:COMPLETED
as_user spur wait "$seven"
is "the job's exit code" $? 7
as_user spur wait "$good" "$seven"
is "the highest of several, also afterwards" $? 7
array=$(job --array=1-3 --wrap 'exit $((SLURM_ARRAY_TASK_ID + 1))')
as_user spur wait "$array"
is "the highest of an array" $? 4
as_user spur wait "${array}_2"
is "one task of it" $? 3
held=$(job -H --wrap true)
as_user spur wait "$held" &
waiter=$!
sleep 0.3
ok "it waits for one that does not run" kill -0 $waiter
as_user scancel "$held"
wait $waiter
is "a cancelled job is no success" $? 1
run as_user spur wait 4000000
like "a job that nobody knows" "$code:$err" '^1:spur wait: error: .*4000000'
run as_user spur wait
is "no job" "$code:$err" '1:spur wait: error: a job id is needed'
done_testing
