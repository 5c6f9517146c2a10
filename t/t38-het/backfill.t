#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# backfill.t - a start is promised to all components of a heterogeneous job at once: smaller jobs do not keep it waiting for ever
. "$(dirname "$0")/../lib.sh"
cat >"$T/extra.toml" <<'END'
[[partitions]]
name = "all"
nodes = "n[1-4]"
default = true
[[partitions]]
name = "left"
nodes = "n[1-2]"
[[partitions]]
name = "right"
nodes = "n[3-4]"
END
cluster_up --nodes 4 --cpus 4 --conf "$T/extra.toml"
cd "$(user_dir)"
states() { squeue -h -t all -j "$1" -o '%i=%T' | sort | tr '\n' ' '; }
all_are() { [ "$(states $1)" = "$1+0=$2 $1+1=$2 " ]; }
begin() { squeue -h --start -j "$1" -o %S; }
at() { date -d "$1" +%s; }

# ---- in two partitions, each with one node that is busy for a while ----
l=$(as_user sbatch --parsable -o /dev/null -p left -w n1 --exclusive -t 10 --wrap 'sleep 600')
r=$(as_user sbatch --parsable -o /dev/null -p right -w n3 --exclusive -t 20 --wrap 'sleep 600')
ok "a node of each is busy" wait_for 30 eval 'job_is $l RUNNING && job_is $r RUNNING'
het=$(as_user sbatch --parsable -o het.out -p left -N2 --exclusive -t 5 : -p right -N2 --exclusive -t 5 --wrap 'srun --het-group=0-1 bash -c "echo \$SLURMD_NODENAME"; sleep 600')
is "it waits" "$(states $het)" "$het+0=PENDING $het+1=PENDING "
ends=$(at "$(scontrol show job $r | grep -o 'EndTime=[^ ]*' | cut -d= -f2)")
known() { [ "$(begin $het+0)" != N/A ] && [ "$(begin $het+1)" != N/A ]; }
ok "a start is known for both" wait_for 30 known
is "it is the same" "$(begin $het+0)" "$(begin $het+1)"
late=$(($(at "$(begin $het+0)") - ends))
ok "when the later of the two nodes is free" [ $late -ge -1 -a $late -le 2 ]
like "on the nodes of each" "$(squeue -h --start -j $het+1 -O SchedNodes:20)" '^n\[3-4\] '
like "scontrol show job has it too" "$(scontrol show job $het+1)" "StartTime=$(begin $het+1) .*SchedNodeList=n\[3-4\]"
like "nodes are planned for it" "$(scontrol show node n2)" 'State=IDLE\+PLANNED'
like "the sentence names the other component" "$(spur explain $het)" "starts together with the other components of job $het"

# ---- a stream of small ones ----
for i in 1 2 3 4 5 6; do long[i]=$(as_user sbatch --parsable -o /dev/null -p $([ $((i % 2)) = 1 ] && echo left || echo right) -n1 -t 60 --wrap 'sleep 600'); done
short=$(as_user sbatch --parsable -o /dev/null -p right -w n4 -n1 -t 2 --wrap true)
ok "one that ends before goes first" wait_for 30 job_is $short COMPLETED
waiting() { [ "$(squeue -h -j "$(IFS=,; echo "${long[*]}")" -o %T | sort -u)" = PENDING ]; }
ok "none of those that would be in its way starts" waiting
as_user scancel $l
ok "one node is free" wait_for 30 job_is $l CANCELLED
ok "they still wait" waiting
as_user scancel $r
ok "all components start when the last node is free" wait_for 30 all_are $het RUNNING
ok "before all that came later" waiting
ok "on all nodes" wait_for 30 eval '[ "$(sort het.out | tr "\n" " ")" = "n1 n2 n3 n4 " ]'
as_user scancel $het
ok "then the others" wait_for 30 eval '[ "$(squeue -h -j "$(IFS=,; echo "${long[*]}")" -o %T | sort -u)" = RUNNING ]'
as_user scancel "${long[@]}"

# ---- tasks without a number of nodes, wherever there is room ----
ok "nothing runs" wait_for 30 eval '[ -z "$(squeue -h)" ]'
for node in n1 n2 n3 n4; do as_user sbatch -o /dev/null -Q -w $node -n1 -t 10 --wrap 'sleep 600' >/dev/null; done
ok "a task on each node" wait_for 30 eval '[ "$(squeue -h -t R | wc -l)" = 4 ]'
many=$(as_user sbatch --parsable -o /dev/null -n16 -t 5 --wrap 'sleep 600')
one=$(as_user sbatch --parsable -o /dev/null -n1 -t 60 --wrap 'sleep 600')
ok "a start is known for -n16 too" wait_for 30 eval '[ "$(begin $many)" != N/A ]'
ok "nothing longer passes it" job_is $one PENDING
done_testing
