#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# settings.t - what the site says of steps where options say nothing
. "$(dirname "$0")/../lib.sh"
cat >"$T/extra.toml" <<END
[jobs]
kill_on_bad_exit = true
wait_time = 2
kill_wait = 3
max_step_count = 3
vsize_factor = 400
interactive_step_options = "--interactive --preserve-env --pty /bin/echo site \$HOME"
END
cluster_up --nodes 1 --cpus 4 --conf "$T/extra.toml"
cd "$(user_dir)"
run spur config check "$T/extra.toml"
unlike "all of it acts" "$out$err" "nothing in this version"

run as_user timeout 100 srun -n2 bash -c '[ $SLURM_PROCID = 0 ] || { sleep 0.2; exit 5; }; sleep 90'
like "kill_on_bad_exit ends the others" "$code $err" "srun: error: n1: task 1: Exited with exit code 5"
like "and says how long that may take" "$err" "Terminating StepId=[0-9]+\.0"
run as_user timeout 100 srun -K0 -W 60 -n2 bash -c 'sleep $((SLURM_PROCID)); exit $((5 * !SLURM_PROCID))'
unlike "-K0 does not" "$code $err" "Terminating"
is "the other task went on" "$code" 5
run as_user timeout 100 srun -n2 bash -c '[ $SLURM_PROCID = 0 ] || exit 0; trap "" TERM; sleep 90'
like "wait_time" "$err" "First task exited 2s ago"
run as_user timeout 100 srun -W 0 -n2 bash -c 'sleep $((3 * SLURM_PROCID))'
is "--wait comes before it" "$code $err" "0 "

run as_user salloc -Q -n1 bash -c 'for i in 1 2 3 4; do srun -Q true || exit $((i + 40)); done'
is "max_step_count: the fourth step is refused" "$code" 44
like "with Slurm's words" "$err" "Unable to create step for job [0-9]+: Step limit reached for this job"

run as_user srun --mem=100 bash -c 'ulimit -v; ulimit -Hv'
is "vsize_factor: in percent of the job's memory" "$out" "409600
409600"
out=$(as_user sbatch --parsable --mem=50 -W -o vsize.out --wrap 'ulimit -v'; cat vsize.out)
like "of scripts too" "$out" "204800$"
run as_user bash -c 'ulimit -v 4000000; ulimit -Sv 390000; exec srun --propagate=AS --mem=100 bash -c "ulimit -v"'
is "less that was asked for stays" "$out" 390000

low=$(as_user sbatch --parsable -H -o /dev/null --wrap true)
run as_user scontrol top "$low"
like "enable_user_top is not set" "$code $err" "^1 .*[Dd]isabled"
ok "administrators may" scontrol top "$low"

command -v script >/dev/null || done_testing
out=$(as_user script -qec "salloc -Q" /dev/null </dev/null | tr -d '\r')
like "interactive_step_options" "$out" "site ${HOME}"
done_testing
