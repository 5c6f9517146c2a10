#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A topology of blocks: the fewest blocks, segments that are never cut, --exclusive=topo.
. "$(dirname "$0")/../lib.sh"
cluster_of blocks <<'CONF'
[topology]
plugin = "block"
block_sizes = [4]
[[blocks]]
name = "b1"
nodes = "n[1-4]"
[[blocks]]
name = "b2"
nodes = "n[5-8]"
[[nodes]]
names = "n[1-8]"
cpus = 2
memory_mb = 1000
CONF

hole=$(sub -w n1 --exclusive)
runs "$hole" >/dev/null
four=$(sub -N 4 --exclusive)
is "four nodes are one block" "$(runs "$four")" 'n[5-8]'
drop "$four"
hole2=$(sub -w n5,n6 -N 2 --exclusive)
runs "$hole2" >/dev/null
pairs=$(sub -N 4 --exclusive --segment=2)
is "--segment: two pairs, each in a block" "$(runs "$pairs" | tr -d 'n')" "$(squeue -h -j "$pairs" -o %N | tr -d n)"
like "and the second block gives one pair" "$(squeue -h -j "$pairs" -o %N)" '^n\[(2-3|2,4|3-4),7-8\]$'
drop "$pairs"
cut=$(sub -N 4 --exclusive --segment=4)
ok "--segment: four of one block are not there" waits "$cut" Resources
drop "$hole"
is "until its block is free" "$(runs "$cut")" 'n[1-4]'
drop "$hole2" "$cut"
run sbatch -N 3 --segment=2 --wrap true
like "--segment: three are not pairs" "$code $err" '^1 .*segment'
apart=$(sub -N 4 --exclusive --segment=2 --spread-segments)
like "--spread-segments: each in a block of its own" "$(runs "$apart")" '^n\[(1-2|2-3|3-4),(5-6|6-7|7-8)\]$'
drop "$apart"
few=$(sub -N 4 --exclusive --segment=2 --consolidate-segments)
like "--consolidate-segments: in one" "$(runs "$few")" '^n\[(1-4|5-8)\]$'
drop "$few"
alone=$(sub -N 2 --exclusive=topo)
at=$(runs "$alone")
like "--exclusive=topo: in a block" "$at" '^n\[(1-2|5-6)\]$'
case $at in *1*) there=n4 far=n8 ;; *) there=n8 far=n4 ;; esac
shut=$(sub -w $there)
ok "which is for nobody else" waits "$shut" Resources
open=$(sub -w $far)
is "others are" "$(runs "$open")" $far
run sbatch --exclusive=nosuch --wrap true
like "no such kind" "$code $err" '^(1|255) .*exclusive'
done_testing
