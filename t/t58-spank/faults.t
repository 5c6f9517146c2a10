#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# SPANK: plugins that fail, crash, are missing, or are not root's; what becomes of the job and of the node.
. "$(dirname "$0")/lib.sh"
plugstack
plugin fail required
cluster_up --nodes 1 --cpus 4
chmod 777 "$T"
cd "$T"
stack() { plugstack; plugin "$@"; sleep 1.1; } # spurd looks once in a second

run as_user srun true
is "a plugin that does nothing" "$code $err" "0 "
for callback in init user_init task_init_privileged task_post_fork; do
    stack fail required fail=$callback
    run as_user timeout 40 srun true
    like "required, $callback fails: srun fails" "$code" '^1$'
    like "required, $callback fails: it says so" "$err" "required plugin fail: slurm_spank_$callback\(\) failed with rc=-7"
done
stack fail required fail=task_init
run as_user srun true
is "required, task_init fails: the task fails" "$code" 1
like "required, task_init fails: it says so" "$err" 'slurmstepd: error: spank: required plugin fail: slurm_spank_task_init\(\) failed with rc=-7'
stack fail required fail=local_user_init
run as_user srun true
is "required, local_user_init fails: srun fails before tasks" "$code" 1
stack fail required fail=init_post_opt
run as_user sbatch --wrap true
is "required, init_post_opt fails in sbatch: nothing is submitted" "$code $out" "1 "
for callback in init user_init task_init_privileged task_init task_post_fork task_exit; do
    stack fail optional fail=$callback
    run as_user srun echo ran
    is "optional, $callback fails: the step runs" "$code $out" "0 ran"
done

# ---- crashes ----
for callback in init task_init_privileged task_exit; do
    stack fail required crash=$callback
    run as_user timeout 60 srun true
    unlike "$callback crashes: srun fails" "$code" '^(0|124)$'
done
stack fail required crash=task_init
run as_user srun true
is "task_init crashes: the task ended by it" "$code" 139
stack fail required crash=init
id=$(as_user sbatch --parsable --no-requeue -o /dev/null --wrap true)
ok "init crashes in a batch job: it ends" wait_for 40 eval '[ -z "$(squeue -h -j '$id' 2>/dev/null)" ]'
stack fail required fail=user_init
id=$(as_user sbatch --parsable -o /dev/null --wrap true)
ok "user_init fails in a batch job: it failed" wait_for 30 job_is "$id" FAILED
stack fail required
is "the node is as before" "$(sinfo -h -o %T)" idle
run as_user srun echo ran
is "and runs jobs" "$code $out" "0 ran"

# ---- prolog: the node is drained, as by the site's own ----
stack fail required fail=job_prolog
id=$(as_user sbatch --parsable -o /dev/null --wrap true)
ok "job_prolog fails: the node is drained" wait_for 30 eval 'sinfo -h -o %T | grep -q drain'
scancel "$id"
stack fail required
scontrol update nodename="$(sinfo -h -o %n)" state=resume

# ---- files ----
echo "required $P/none.so" >"$P/plugstack.conf"
run as_user srun true
like "required, missing: srun fails" "$code $err" '^1 srun: error: spank: required plugin .*/none.so cannot be loaded'
echo "optional $P/none.so" >"$P/plugstack.conf"
sleep 1.1
run as_user srun echo ran
is "optional, missing: the step runs" "$code $out" "0 ran"
like "optional, missing: it is said" "$err" 'optional plugin .*/none.so is not loaded'
echo "requires $P/fail.so" >"$P/plugstack.conf"
run srun true
like "a line that is none: file and line" "$err" "plugstack.conf:1: 'requires"
stack fail required
chmod 666 "$P/fail.so"
run srun true
like "a plugin that others may write to is refused" "$code $err" "^1 .*others than root may write to '$P/fail.so'"
run as_user srun true
is "on nodes too" "$code" 1
chmod 644 "$P/fail.so"
chmod 777 "$P"
run srun true
like "and one in a directory that others may write to" "$err" "others than root may write to '$P'"
chmod 755 "$P"
if [ "$(id -u)" -eq 0 ]; then
    chown $TEST_UID "$P/plugstack.conf"
    run srun true
    like "and a plugstack of somebody else" "$err" "belongs to uid $TEST_UID"
    chown 0 "$P/plugstack.conf"
fi
: >"$P/plugstack.conf"
sleep 1.1
run as_user srun echo ran
is "an empty plugstack" "$code $out $err" "0 ran "
done_testing
