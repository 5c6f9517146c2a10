#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# SPANK: a plugin that starts containers (8 callbacks, 16 options): environment, messages, where tasks run, clean-up.
. "$(dirname "$0")/lib.sh"
plugstack
plugin container
cluster_up --nodes 1 --cpus 4
chmod 777 "$T"
base=$(user_dir)
cd "$base"
export BOX_BASE=$base BOX_SECRET=hidden
is "sixteen options" "$(srun --help | grep -c -- --box-)" 16
run as_user srun --box-image=debian --box-remap-root -n 2 bash -c 'echo "$SLURM_PROCID $BOX_TASK $BOX_IMAGE $BOX_BASE ${BOX_SECRET-unset} $BOX_NAMESPACE ${PWD##*/}"'
is "srun succeeds" "$code" 0
step=$(sed -n 's/.*box\.\([0-9]*\)\.0$/\1/p' <<<"$out" | head -1)
like "tasks have what the plugin set, and not what it took away" "$(sort <<<"$out")" "^0 0 debian $base unset (own|none) box.$step.0.1 1 debian $base unset (own|none) box.$step.0$"
is "what it says reaches the user as it is" "$err" "box: importing debian"
is "a buffer too small, a variable that is missing, one that is kept" "$(item user_init small) $(item user_init missing) $(item user_init kept)" "3005 3004 3003"
is "the status of tasks" "$(recorded task_exit | grep -c '^status 0')" 2
is "it cleaned up" "$(item exit removed) $(ls -d box.* 2>/dev/null)" "0 "
run as_user srun --box-mounts=/a hostname
is "it refuses options that do not fit" "$code" 1
like "and says why" "$err" 'srun: error: container: --box-mounts without --box-image'
like "as the required plugin it is" "$err" 'required plugin container: slurm_spank_init_post_opt\(\) failed with rc=-1'
run as_user srun --box-image= hostname
like "a value that it refuses" "$err" 'error: Invalid --box-image argument'
run as_user srun hostname
is "without its options it keeps away" "$code $out" "0 $(hostname)"
ok "epilog" wait_for 20 seen job_epilog
spur down --dir "$D" >/dev/null 2>&1
ok "slurmd_exit" wait_for 20 seen slurmd_exit
done_testing
