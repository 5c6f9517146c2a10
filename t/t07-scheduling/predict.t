#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# [scheduler] order: what the live planner takes first, by limit and by what it has learned.
. "$(dirname "$0")/../lib.sh"
cd "$T"

conf() { # ORDER
    cat >conf.toml <<CONF
cluster_name = "order"
[scheduler]
order = "$1"
[[nodes]]
names = "n1"
cpus = 2
memory_mb = 2000
[[partitions]]
name = "main"
nodes = "ALL"
default = true
CONF
}

gone() { [ -z "$(squeue -h)" ]; }
# Submits the given jobs (NAME MINUTES each) behind one that has the node, lets it go, and says in what order they ran.
order_of() {
    local blocker spec
    rm -f ran
    blocker=$(submit -J blocker -c 2 -t 5 -o /dev/null --wrap 'sleep 300')
    wait_for 20 job_is "$blocker" RUNNING
    for spec in "$@"; do
        submit -J "${spec% *}" -c 2 -t "${spec#* }" -o /dev/null --wrap "echo ${spec% *} >>$T/ran" >/dev/null
    done
    scancel "$blocker"
    wait_for 60 gone
    tr '\n' ' ' <ran
}

conf priority
cluster_up --nodes 1 --conf conf.toml
is "priority: as submitted" "$(order_of 'long 60' 'mid 30' 'short 1')" "long mid short "
is "the default is shown" "$(spur config show "$D/spur.conf" 2>/dev/null | grep -c 'order = "priority"')" 1

conf sjf
cluster_up --nodes 1 --conf conf.toml
is "sjf: the shortest limit first" "$(order_of 'long 60' 'mid 30' 'short 1')" "short mid long "

conf predict
cluster_up --nodes 1 --conf conf.toml
is "predict: by limits while nothing is known" "$(order_of 'long 60' 'mid 30' 'short 1')" "short mid long "
# Two kinds of jobs that ask for the same; one always needs seconds, the other nothing.
for i in 1 2 3; do submit -W -J slow -c 2 -t 60 -o /dev/null --wrap 'sleep 3' >/dev/null; done
for i in 1 2 3; do submit -W -J quick -c 2 -t 60 -o /dev/null --wrap true >/dev/null; done
is "predict: by what jobs of that name did" "$(order_of 'slow 60' 'quick 60')" "quick slow "
done_testing
