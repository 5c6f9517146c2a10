#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Where commands work, and for whom: controllers' and login hosts, compute nodes, inside jobs; without and with MUNGE.
# groups: short
. "$(dirname "$0")/bed.sh"
site_up c1 'n1 n2' login1

# Ordinary users.
for host in c1 login1; do
    run on alice@$host sinfo -h -o %D
    is "alice sees the nodes from $host" "$code:$out:$err" "0:2:"
    run on alice@$host sbatch --parsable --wait -o /dev/null --wrap true
    is "alice runs a job from $host" "$code:$err" "0:"
done
run on alice@n1 sinfo
is "who has no job on a compute node is refused there" "$code" 1
like "and told where to go" "$err" "uid 20101 has no job on node 'n1'.*use a login host or a controller's host"
job=$(on alice@login1 sbatch --parsable -w n1 -o /dev/null --wrap 'sleep 300')
ok "a job runs on n1" wait_for 20 eval '[ "$(on alice@login1 squeue -h -o %T)" = RUNNING ]'
run on alice@n1 squeue -h -o %i
is "who has a job there gives commands there, outside of the job too" "$code:$out:$err" "0:$job:"
run on bob@n1 squeue
is "others still do not" "$code" 1
run on bob@login1 scancel "$job"
ok "nor do they cancel it" test "$code" != 0
on alice@n1 scancel "$job"

# Inside a job, on one node and on several.
cat >"$T/job" <<'JOB'
#!/bin/bash
sinfo -h -o 'nodes %D'
srun -N 2 -n 2 hostname | sort
srun -N 1 -n 1 bash -c 'squeue -h -o "job %i"'
srun -N 1 -n 1 -w n2 bash -c 'sinfo -h -o "from $(hostname) %D"'
JOB
put alice@login1 job.sh <"$T/job"
run on alice@login1 sbatch --wait --parsable -N 2 -o out job.sh
is "a job that gives commands and runs steps on both nodes ends well" "$code:$err" "0:"
is "and all of them worked" "$(on alice@login1 cat out)" "nodes 2
n1
n2
job $out
from n2 2"

# Root of a compute node is that node.
run on n1 sinfo -h -o %D
is "root of a node reads" "$code:$out:$err" "0:2:"
like "the configuration too" "$(on n1 scontrol show config 2>&1)" 'ClusterName += production'
run on n1 scontrol update nodename=n1 state=drain reason=hot
is "it drains its node" "$code:$err" "0:"
like "with the reason, in the node's name" "$(on c1 scontrol show node n1)" 'Reason=hot \[n1@'
run on n1 scontrol update nodename=n1 state=resume
is "it does not resume it" "$code" 1
like "and is told who does" "$err" "root of node 'n1' may set that node alone to DRAIN"
run on n1 scontrol update nodename=n2 state=drain reason=hot
is "it does not touch another" "$code" 1
is "which stays as it was" "$(on c1 sinfo -h -N -n n2 -o %T)" idle
job=$(on alice@login1 sbatch --parsable -o /dev/null --wrap 'sleep 300')
run on n1 scancel "$job"
ok "it cancels no jobs" test "$code" != 0
run on n1 sbatch --wrap true
ok "it submits none" test "$code" != 0
run on n1 scontrol reconfigure
ok "it changes no configuration" test "$code" != 0
is "root of the controller's host does" "$(on c1 scontrol update nodename=n1 state=resume 2>&1; on c1 scancel "$job" 2>&1)" ""

# With MUNGE it says who everybody is; where the controllers are the agents still tell.
munge_up c1 n1 n2 login1
for host in c1 login1 n2; do
    run on alice@$host sinfo -h -o %D
    is "with MUNGE, alice sees the nodes from $host" "$code:$out:$err" "0:2:"
done
run on alice@login1 sbatch --wait --parsable -N 2 -o out job.sh
is "with MUNGE, the job of before works too" "$code:$err:$(on alice@login1 grep -c . out)" "0::5"
done_testing
