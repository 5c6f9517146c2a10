#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A controller whose port another one has says so, and ends.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 1 --cpus 2 --mem 1G
port=${SPUR_CONTROLLER_ADDR##*:}
[[ $port =~ ^[0-9]+$ ]] || port=$(tr -d '\0' <"/proc/$(cut -d' ' -f1 "$D/run/ctl1.pid")/cmdline" | grep -oE '127\.0\.0\.1:[0-9]+' | head -n 1 | cut -d: -f2)
for i in 1 2 3; do
    rm -rf "$T/other"
    run timeout 60 spurctld -D -f "$D/spur.conf" --name ctl1 --listen "127.0.0.1:$port" --state-dir "$T/other" --socket "$T/other.sock"
    like "round $i: it ends with a reason" "$code $out$err" "^1 .*cannot listen on .*:$port: Address already in use"
done
ok 'the first one serves' sinfo -h
done_testing
