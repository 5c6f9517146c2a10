#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Accounting switched off: programs fall back to squeue when sacct says so.
. "$(dirname "$0")/../lib.sh"
printf 'cluster_name = "spur"\n[accounting]\nenabled = false\n' >"$T/conf"
cluster_up --nodes 1 --cpus 2 --conf "$T/conf"
not_ok "no spurdbd is started" test -e "$D/run/spurdbd.pid"
run sacct
is "sacct" "$code:$out:$err" "1::Slurm accounting storage is disabled"
id=$(submit -o /dev/null --wrap true)
ok "jobs run" wait_for 30 job_is "$id" COMPLETED
ok "and whoever wants acknowledges the journal" spur journal --ack 1
done_testing
