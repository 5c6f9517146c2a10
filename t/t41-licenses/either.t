#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# -L 'a|b' beside limits on licences: the one that was taken counts, and one that is not limited is taken.
. "$(dirname "$0")/../lib.sh"
cat >"$T/conf" <<CONF
[scheduler]
config_overrides = true
licenses = ["a:4", "b:1"]
[access]
disable_root_jobs = false
[accounting]
enforce = ["limits"]
[[nodes]]
names = "n1"
cpus = 8
memory_mb = 4000
[[partitions]]
name = "debug"
default = true
nodes = "ALL"
[[qos]]
name = "normal"
grp_tres = "license/a=1"
[[accounts]]
name = "all"
[[users]]
name = "$(id -un)"
account = "all"
CONF
cluster_up --conf "$T/conf"
cd "$T" || exit 1
used() { for l in a b; do scontrol -o show licenses $l | sed 's/.*Used=\([0-9]*\).*/\1/'; done | xargs; }

first=$(sub -L 'a|b')
ok 'the first that is free' wait_for 20 job_is "$first" RUNNING
is 'is taken' "$(used)" '1 0'
second=$(sub -L 'a|b')
ok 'the other, where the limit on the first is reached' wait_for 20 job_is "$second" RUNNING
is 'though three are free' "$(used)" '1 1'
third=$(sub -L 'a|b')
ok 'the next waits' wait_for 20 eval '[[ "$(squeue -h -j $third -o %r)" = @(QOSGrpLicense|Licenses) ]]'
a=$(sub -L a)
ok 'as does one that wants the first: what was taken counts' waits "$a" QOSGrpLicense
scancel "$second"
ok 'until the other is free' wait_for 20 job_is "$third" RUNNING
is 'which it takes' "$(used)" '1 1'
scancel "$first"
ok 'or the limit has room' wait_for 20 job_is "$a" RUNNING
done_testing
