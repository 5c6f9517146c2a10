#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Which nodes a job gets: features, counts of them, weight, exclusive, licences, cores for the system.
. "$(dirname "$0")/../lib.sh"
cluster_of sets <<'CONF'
licenses = ["matlab:4", "ansys:1"]
[[nodes]]
names = "a[1-2]"
cpus = 4
memory_mb = 4000
features = ["rack1", "fast"]
weight = 10
[[nodes]]
names = "b[1-2]"
cpus = 4
memory_mb = 4000
features = ["rack2"]
CONF
where() { squeue -h -j "$1" -o %N; }
runs() { wait_for 20 job_is "$1" RUNNING && where "$1"; }
drop() { scancel "$@" && for id; do wait_for 20 job_is "$id" CANCELLED; done; }

light=$(sub)
is "the lighter nodes first" "$(runs "$light")" b1
fast=$(sub -C fast)
is "a feature" "$(runs "$fast")" a1
either=$(sub -C '(rack1|rack2)&fast' -N 2)
is "an expression" "$(runs "$either")" 'a[1-2]'
counted=$(sub -C '[rack1*1&rack2*2]')
is "so many of each" "$(runs "$counted")" 'a2,b[1-2]'
same=$(sub -C '[rack1|rack2]' -N 2)
is "all of one kind" "$(runs "$same")" 'a[1-2]'
drop "$light" "$fast" "$either" "$counted" "$same"
liked=$(sub --prefer rack1)
is "preferred before lighter" "$(runs "$liked")" a1
run sbatch -C '[rack1*3]' --wrap true
is "more than there are" "$err" "sbatch: error: partition debug: 3 nodes are needed, and 2 of it could ever serve
sbatch: error: Batch job submission failed: Requested node configuration is not available"
run sbatch -C 'nosuch' --wrap true
like "nobody has it" "$err" "Invalid feature specification: nosuch"
drop "$liked"

alone=$(sub --exclusive -w b1)
is "a node for itself" "$(runs "$alone"; scontrol show job "$alone" | grep -o 'NumCPUs=[0-9]*')" "b1
NumCPUs=4"
beside=$(sub -w b1)
ok "nobody beside it" wait_for 20 eval '[ "$(squeue -h -j $beside -o %r)" = Resources ]'
drop "$beside" "$alone"
kept=$(sub -S 1 -w b1)
is "cores are left to the system" "$(runs "$kept"; scontrol -d show job "$kept" | grep -o 'CPU_IDs=[0-9-]*')" "b1
CPU_IDs=0-2"
range=$(sub -N 1-3)
is "as many nodes as are free" "$(runs "$range")" 'a[1-2],b2'
few=$(sub -N 1-3 --use-min-nodes -w b2)
is "as few as will do" "$(runs "$few")" b2
drop "$kept" "$range" "$few"

two=$(sub -L matlab:3)
runs "$two" >/dev/null
more=$(sub -L matlab:2)
ok "waits for licences" wait_for 20 eval '[ "$(squeue -h -j $more -o %r)" = Licenses ]'
like "and knows until when" "$(squeue -h -j "$more" --start -o %S)" '^20'
one=$(sub -L 'ansys|matlab:2')
is "one licence or another" "$(runs "$one"; scontrol show job "$one" | grep -o 'LicensesAlloc=[a-z]*')" "b1
LicensesAlloc=ansys"
is "licences" "$(scontrol show lic)" "LicenseName=ansys
    Total=1 Used=1 Free=0 Reserved=0 Remote=no
LicenseName=matlab
    Total=4 Used=3 Free=1 Reserved=0 Remote=no"
run scontrol show lic nosuch
is "no such licence" "$code $out" "1 License name 'nosuch' not found."
scancel "$two"
ok "runs when they are given back" wait_for 20 job_is "$more" RUNNING
run sbatch -L matlab:5 --wrap true
like "more licences than exist" "$err" "Invalid license specification: [0-9]+ of matlab are asked for, and there are"
done_testing
