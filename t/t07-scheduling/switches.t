#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A tree of switches: jobs go to the fewest, and wait for few when they ask for that.
. "$(dirname "$0")/../lib.sh"
cluster_of tree <<'CONF'
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
names = "n[1-6]"
cpus = 2
memory_mb = 1000
CONF

one=$(sub -w n1 --exclusive)
is "one node" "$(runs "$one")" n1
three=$(sub -N 3 --exclusive)
is "all below one switch" "$(runs "$three")" 'n[4-6]'
two=$(sub -N 2 --exclusive --switches=1)
is "what is left of the other" "$(runs "$two")" 'n[2-3]'
scancel "$two" "$three"
odd=$(sub -w n5 --exclusive)
is "another in the middle" "$(runs "$odd")" n5
near=$(sub -N 3 --exclusive --switches=1@10:00)
far=$(sub -N 2 --exclusive -t 1)
is "a job that does not mind goes first" "$(runs "$far")" 'n[2-3]'
ok "the other waits" job_is "$near" PENDING
like "and says how long" "$(spur explain "$near")" 'it waits for nodes below 1 switch for another [0-9:]+ at most, then takes any'
scancel "$far" "$odd"
is "until a switch is free" "$(runs "$near")" 'n[4-6]'
scancel "$near"
soon=$(sub -N 4 --exclusive --switches=1@0:02)
is "or for as long as it said" "$(wait_for 30 job_is "$soon" RUNNING && squeue -h -j "$soon" -o %D)" 4
is "the tree" "$(scontrol show topology)" "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[1-3]
SwitchName=s2 Level=0 LinkSpeed=1 Nodes=n[4-6]
SwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-6] Switches=s[1-2]"
is "one switch" "$(scontrol show topology s2)" "SwitchName=s2 Level=0 LinkSpeed=1 Nodes=n[4-6]"
scancel "$soon"
three=$(sub -N 3 --exclusive --segment=2)
is "segments are of blocks: a tree has none" "$(runs "$three" | wc -l) $(squeue -h -j "$three" -o %D)" '1 3'
done_testing
