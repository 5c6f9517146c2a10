#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# wide.t - a job of more nodes than are told, hashed and started one by one, through kills of the controller
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 66 --cpus 2
cd "$(user_dir)"
nodes_of() { squeue -h -t all -j "$1" -o %D:%T; }
all_idle() { [ "$(sinfo -h -t idle -o %D)" = 66 ]; }

cat >wide.sh <<'END'
#!/bin/bash
srun bash -c 'echo $SLURMD_NODENAME' | sort -u | wc -l
until [ -e go ]; do sleep 0.1; done
srun -N 65 -n 65 bash -c 'echo $SLURMD_NODENAME' | sort -u | wc -l
END
chmod a+r wide.sh
wide=$(as_user sbatch --parsable -N 66 --exclusive -t 10 -o wide.out wide.sh)
ok "it runs" wait_for 30 job_is "$wide" RUNNING
is "on all nodes" "$(nodes_of "$wide")" 66:RUNNING
ok "a task on each" wait_for 30 eval '[ "$(cat wide.out)" = 66 ]'
controller_again
ok "it runs on when the controller was killed" wait_for 30 eval '[ "$(nodes_of '"$wide"')" = 66:RUNNING ]'
as_user scontrol update JobId="$wide" NumNodes=65 >/dev/null
ok "it gives one back" wait_for 20 eval '[ "$(nodes_of '"$wide"')" = 65:RUNNING ]'
controller_again
ok "that is kept too" wait_for 30 eval '[ "$(nodes_of '"$wide"')" = 65:RUNNING ]'
as_user touch go
ok "it ends" wait_for 30 job_is "$wide" COMPLETED
is "with steps on those it had" "$(xargs <wide.out)" "66 65"
ok "all nodes are free" wait_for 30 all_idle

again=$(as_user sbatch --parsable -N 65 --requeue -t 10 -o /dev/null --wrap 'sleep 300')
ok "another runs" wait_for 30 job_is "$again" RUNNING
scontrol requeue "$again"
ok "and again after a requeue" wait_for 60 eval '[ "$(squeue -h -j '"$again"' -o %D:%T)" = 65:RUNNING ]'
scancel "$again"
ok "and leaves nothing behind" wait_for 30 all_idle
done_testing
