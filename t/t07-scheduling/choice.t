#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# How a job wants its nodes: next to each other, evenly used, the script on a certain one, without others.
. "$(dirname "$0")/../lib.sh"
cluster_of choice <<'CONF'
[topology]
plugin = "tree"
[[switches]]
name = "s1"
nodes = "n[1-3]"
[[switches]]
name = "s2"
nodes = "n[4-6]"
[[switches]]
name = "top"
switches = "s[1-2]"
[[nodes]]
names = "n[1-3]"
cpus = 4
threads_per_core = 2
memory_mb = 4000
features = ["old"]
[[nodes]]
names = "n[4-5]"
cpus = 4
memory_mb = 4000
features = ["new"]
[[nodes]]
names = "n6"
cpus = 8
memory_mb = 4000
features = ["new", "big"]
weight = 5
CONF
mine() { as_user sbatch --parsable -o /dev/null "$@" --wrap 'sleep 300'; }
where() { squeue -h -j "$1" -o %N; }
runs() { wait_for 20 job_is "$1" RUNNING && where "$1"; }
tasks() { scontrol -d show job "$1" | sed -n 's/^ *Nodes=\([^ ]*\) CPU_IDs=\([^ ]*\) .*/\1:\2/p' | tr '\n' ' '; }

# --contiguous
hole=$(sub -w n2,n4 -N 2 --exclusive)
runs "$hole" >/dev/null
apart=$(sub -N 2 --exclusive -x n6 --contiguous)
ok "--contiguous: two nodes side by side are not there" waits "$apart" Resources
loose=$(sub -N 2 --exclusive -w n1,n3 -t 1)
is "who does not mind takes others" "$(runs "$loose")" 'n[1,3]'
scancel "$hole"
is "--contiguous: now they are" "$(runs "$apart")" 'n[4-5]'
drop "$loose" "$apart"

# --spread-job, and how tasks lie without it
packed=$(sub -N 2 -n 4 -w 'n[4-5]')
is "tasks fill the first node" "$(runs "$packed" >/dev/null; tasks "$packed")" 'n4:0-2 n5:0 '
drop "$packed"
spread=$(sub -N 2 -n 4 -w 'n[4-5]' --spread-job)
is "--spread-job: as many on each" "$(runs "$spread" >/dev/null; scontrol -d show job "$spread" | grep -o 'Nodes=n\[4-5\] CPU_IDs=[^ ]*')" 'Nodes=n[4-5] CPU_IDs=0-1'
drop "$spread"

# --mincpus, --thread-spec, --core-spec
big=$(sub --mincpus=6)
is "--mincpus: only one has as many" "$(runs "$big"; squeue -h -j "$big" -o %C)" 'n6
6'
run sbatch --mincpus=9 --wrap true
like "--mincpus: more than any has" "$code $err" '^1 .*Requested node configuration is not available'
drop "$big"
kept=$(sub --thread-spec=1 -w n4)
is "--thread-spec: all but one thread, and nobody else" "$(runs "$kept" >/dev/null; tasks "$kept")" 'n4:0-2 '
beside=$(sub -w n4)
ok "nobody" waits "$beside" Resources
drop "$kept" "$beside"
cores=$(sub --core-spec=1 -w n1)
is "--core-spec: a whole core" "$(runs "$cores" >/dev/null; tasks "$cores")" 'n1:0-1 '
drop "$cores"
run sbatch --core-spec=1 --thread-spec=1 --wrap true
[ "$code" -eq 0 ] || like "not both" "$err" 'error'

# --batch
cat >script <<'S'
#!/bin/bash
echo "$SLURMD_NODENAME $SLURM_NODEID $(scontrol show hostnames | xargs)"
S
first=$(sbatch --parsable -W -o plain.out -N 4 -C '[old*2&new*2]' script)
like "without --batch the first node runs the script" "$(cat plain.out)" '^n1 0 '
last=$(sbatch --parsable -W -o batch.out -N 4 -C '[old*2&new*2]' --batch=new script)
like "--batch: one with the feature does" "$(cat batch.out)" '^n[456] 0 n[456] '
is "and is the batch host" "$(scontrol show job "$last" | sed -n 's/.*BatchHost=//p') $(scontrol show job "$last" | sed -n 's/.*BatchFeatures=\([^ ]*\).*/\1/p')" "$(cut -d' ' -f1 batch.out) new"
run sbatch -C old --batch=new script
like "--batch: of those of --constraint" "$code $err" '^1 .*Invalid feature specification'
run sbatch -C old --batch='[old*1]' script
like "--batch: without counts" "$code $err" '^1 .*Invalid feature specification'

# --exclusive=user|mcs|topo
if [ "$(id -u)" -eq 0 ]; then
    one=$(mine --exclusive=user -w n4)
    is "--exclusive=user: a CPU of the node" "$(runs "$one"; squeue -h -j "$one" -o %C)" 'n4
1'
    two=$(mine --exclusive=user -w n4)
    is "another of the same user beside it" "$(runs "$two")" n4
    other=$(sub -w n4)
    ok "none of another user" waits "$other" Resources
    drop "$one" "$two"
    wait_for 20 job_is "$other" RUNNING
    late=$(mine --exclusive=user -w n4)
    ok "nor does it go where another user is" waits "$late" Resources
    drop "$other" "$late"
fi
red=$(sub --exclusive=mcs --mcs-label=red -w n4)
is "--exclusive=mcs" "$(runs "$red"; scontrol show job "$red" | grep -o 'MCS_label=[a-z]*')" 'n4
MCS_label=red'
same=$(sub --mcs-label=red --exclusive=mcs -w n4)
is "the same label beside it" "$(runs "$same")" n4
blue=$(sub --mcs-label=blue --exclusive=mcs -w n4)
ok "no other label" waits "$blue" Resources
drop "$red" "$same" "$blue"
topo=$(sub --exclusive=topo -N 2 -x n6)
nodes=$(runs "$topo")
like "--exclusive=topo: below one switch" "$nodes" '^(n\[[1-3,-]*\]|n\[4-5\])$'
case $nodes in *[123]*) there=n3 far=n4 ;; *) there=n6 far=n1 ;; esac
shut=$(sub -w $there)
ok "the rest of the switch is for nobody" waits "$shut" Resources
open=$(sub -w $far)
is "another switch is" "$(runs "$open")" $far
drop "$topo" "$open" "$shut"
done_testing
