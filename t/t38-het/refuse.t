#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# refuse.t - components that fit alone and never beside each other are refused; --test-only looks at all of them
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 3 --cpus 4
cd "$(user_dir)"
no='Requested node configuration is not available'

run as_user sbatch -N2 --exclusive : -N2 --exclusive --wrap true
is "four whole nodes of three: code" "$code" 1
like "what sbatch says" "$err" "$no: the components together need 4 nodes of 3.*Batch job submission failed: $no"
run as_user salloc -n8 : -n5 true
like "salloc, more CPUs than there are" "$code $err" "^1 .*together need 13 CPUs of 12.*Job submit/allocate failed: $no"
run as_user srun -N3 --exclusive true : -n1 true
like "srun, nothing is left of whole nodes" "$code $err" "^1 .*Unable to allocate resources: $no"
run as_user sbatch -c3 : -c3 : -c3 : -c3 --wrap true
like "four that cannot share three nodes" "$code $err" "^1 .*$no"
shows "nothing is queued" '' squeue -h

run as_user sbatch --test-only -N2 --exclusive : -N2 --exclusive --wrap true
like "--test-only refuses it too" "$code $err" "^1 .*allocation failure: $no"
run as_user sbatch --test-only -n2 -w n1 : -n2 -w n1 --wrap true
like "--test-only of what fits: all CPUs, each node once" "$code $err" "^0 .*Job [0-9]+ to start at .* using 4 processors on nodes n1 in partition "
run as_user sbatch --test-only -w n1 -n1 : -w n3 -n3 --wrap true
like "nodes of all components" "$err" "using 4 processors on nodes n\[1,3\] "
busy=$(as_user sbatch --parsable -o /dev/null -t 10 -w n3 --exclusive --wrap 'sleep 600')
ok "the node of one is busy" wait_for 30 job_is $busy RUNNING
end=$(date -d "$(scontrol show job $busy | grep -o 'EndTime=[^ ]*' | cut -d= -f2)" +%s)
run as_user sbatch --test-only -w n1 -n1 : -w n3 -n1 --wrap true
at=$(date -d "$(sed -n 's/.*to start at \([^ ]*\) .*/\1/p' <<<"$err")" +%s)
ok "they start when it is free" [ $((at - end)) -ge -1 -a $((at - end)) -le 2 ]
run as_user srun --test-only -w n1 -n1 true : -w n3 -n1 true
like "srun --test-only too" "$err" 'to start at .* on nodes n\[1,3\] '
scontrol update nodename=n2 state=down reason=test
run as_user sbatch --test-only -w n1 -n1 : -w n2 -n1 --wrap true
like "a node that is down" "$code $err" "^1 .*allocation failure: Required node not available \(down, drained or reserved\)"

# ---- what became impossible ----
id=$(as_user sbatch --parsable -o /dev/null -N1 --exclusive : -N1 --exclusive : -N1 --exclusive --wrap true)
like "one that waits for the node is no never" "$(spur explain $id)" 'is PENDING: needs'
unlike "and not called so" "$(spur explain $id)" 'beside each other, even'
done_testing
