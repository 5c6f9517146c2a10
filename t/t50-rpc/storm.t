#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Thousands of idle connections end at once: commands go on meanwhile, and no node is called DOWN. F25 of `make faults` has 10,000.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 2 --cpus 2
task=/proc/$(cut -d' ' -f1 "$D/run/ctl1.pid")/schedstat
before=$(cut -d' ' -f1 "$task")
run tools/faults-storm "$(cut -d' ' -f1 "$D/run/ports")" 4000
after=$(cut -d' ' -f1 "$task")
echo "# $out, controller $(((after - before) / 1000000)) ms of CPU"
like "they were opened" "$out" 'opened=4000 '
ok "no command took a second" awk -v got="$out" 'BEGIN { split(got, a, "during_ms="); exit !(a[2] != "" && a[2] + 0 < 1000) }'
is "no node is called DOWN" "$(grep -cE 'node.(silent|down)' "$D/log/ctl1.log")" 0
done_testing
