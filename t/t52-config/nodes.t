#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# More nodes than one piece of a list or of a change, listed and changed at once, and agents that hear of a new configuration.
. "$(dirname "$0")/../lib.sh"
cat >"$T/conf" <<CONF
[scheduler]
config_overrides = true
[[nodes]]
names = "n[1-130]"
cpus = 4
memory_mb = 4000
[[partitions]]
name = "debug"
default = true
nodes = "ALL"
[[partitions]]
name = "some"
nodes = "n[90-130]"
CONF
cluster_up --nodes 1 --conf "$T/conf"
cd "$T"
names() { sinfo -h -N "$@" -o %N | sort -u -V | tr '\n' ' '; }
all() { seq -f "n%g" "$1" "$2" | tr '\n' ' '; }

is 'all nodes are listed once' "$(names)" "$(all 1 130)"
is 'those of a partition' "$(names -p some)" "$(all 90 130)"
is 'those that are named' "$(names -n 'n[5-120]')" "$(all 5 120)"
is 'scontrol shows as many' "$(scontrol -o show node | grep -c '^NodeName=')" 130
run scontrol update NodeName='n[2-120]' State=DRAIN Reason=many
is 'many are drained' "$code:$(names -t drain | wc -w)" '0:119'
is 'each with its reason' "$(scontrol -o show node | grep -c 'Reason=many')" 119
run scontrol update NodeName='n[60-200]' State=DRAIN Reason=more
is 'a name that is not there refuses all' "$code:$(scontrol -o show node | grep -c 'Reason=more')" '1:0'
run scontrol update NodeName='n[2-120]' State=NOSUCH
is 'so does a word that is none' "$code:$(names -t drain | wc -w)" '1:119'
run scontrol update NodeName=ALL Comment=everywhere
is 'all of them' "$code:$(scontrol -o show node | grep -c 'Comment=everywhere')" '0:130'
sed -i 's/n\[1-130\]/n[1-140]/; s/n\[90-130\]/n[90-140]/' "$SPUR_CONF"
run scontrol reconfigure
is 'more nodes by a new configuration' "$code:$(names -p some)" "0:$(all 90 140)"
run srun -N1 -w n1 true
is 'and a node that heard of it runs a job' "$code" 0
done_testing
