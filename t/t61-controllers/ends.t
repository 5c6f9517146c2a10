#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Three controllers are told to end, all at once: each has written its state and what jobs consist of, and goes on from there.
. "$(dirname "$0")/../lib.sh"
command -v etcd >/dev/null || skip_all "etcd is not installed"
cluster_up --nodes 1 --cpus 4 --controllers 3
gone() { ! grep -qs '^State:[[:space:]]*[^ZX]' "/proc/$1/status"; }
last() { grep -o " $1 .*" "$D/log/$2.log" | tail -1; }

held=$(submit -H -o "$T/out" --wrap "echo it is $$")
for i in 1 2 3; do
    pids[$i]=$(cut -d' ' -f1 "$D/run/ctl$i.pid")
    kill -TERM "${pids[$i]}"
done
for i in 1 2 3; do
    ok "controller $i ends" wait_for 60 gone "${pids[$i]}"
    like "and has written its state" "$(last snapshot.end "ctl$i")" 'index=[0-9]+ took_us='
done
ok "all start again" eval "(cd / && spur up --quiet --dir $D)"
ok "and have everything" wait_for 60 job_is "$held" PENDING
scontrol release "$held"
ok "and what it runs" wait_for 60 job_is "$held" COMPLETED
is "as it was given" "$(cat "$T/out")" "it is $$"
done_testing
