#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# groups: asan
# sinfo: forms, columns, filters, JSON.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 3 --cpus 4 --mem 4G
cd "$T"
header='PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST'
is "default" "$(sinfo)" "$header
debug*       up   infinite      3   idle n[1-3]"
is "summary" "$(sinfo -s)" 'PARTITION AVAIL  TIMELIMIT   NODES(A/I/O/T) NODELIST
debug*       up   infinite          0/3/0/3 n[1-3]'
is "by node" "$(sinfo -N)" 'NODELIST   NODES PARTITION STATE 
n1             1    debug* idle  
n2             1    debug* idle  
n3             1    debug* idle  '
is "unknown node" "$(sinfo -n nosuch)" "$header
debug*       up   infinite      0    n/a "
is "unknown partition" "$(sinfo -p nosuch)" "$header"
is "columns of an exporter, blank inside" "$(sinfo -h "-o %C")" " 0/12/0/12"
is "columns by name" "$(sinfo -h -N -n n1 -O 'NodeList,AllocMem,Memory,CPUsState,StateLong' | tr -s ' ')" 'n1 0 4096 0/4/0/4 idle '
id=$(submit -w n2 -n2 --mem=100 -o /dev/null --wrap 'sleep 300')
wait_for 10 job_is "$id" RUNNING
is "mixed" "$(sinfo -h -o '%t %N %C' -n n2)" 'mix n2 2/2/0/4'
is "by state" "$(sinfo -h -t mix -o %N) $(sinfo -h -t idle -o %N)" 'n2 n[1,3]'
full=$(submit -w n3 --exclusive -o /dev/null --wrap 'sleep 300')
wait_for 10 job_is "$full" RUNNING
is "allocated" "$(sinfo -h -n n3 -o '%t %T')" 'alloc allocated'
scontrol update nodename=n2 state=drain reason=why
is "draining" "$(sinfo -h -n n2 -o '%t %T')" 'drng draining'
is "-t drain" "$(sinfo -h -t drain -o %N)" n2
is "sorted by state downwards" "$(sinfo -h -o '%t' | tr '\n' ' ')" "drng alloc idle "
run sinfo -t nope
is "bad state" "$code:$(head -n 1 <<<"$err")" '1:sinfo: error: Bad state string: "nope"'
run sinfo --bogus
is "bad option" "$code:$(head -n 1 <<<"$err")" "1:sinfo: unrecognized option '--bogus'"
names=$(sinfo --helpFormat | paste -sd,)
run sinfo -h -O "$names"
is "every listed name is a column" "$err" ""
is "version" "$(sinfo -V)" 'slurm 26.11.0'
if command -v python3 >/dev/null; then
    is "JSON" "$(sinfo --json | python3 -c '
import json, sys
rows = json.load(sys.stdin)["sinfo"]
print(sorted((row["nodes"]["nodes"][0], row["node"]["state"][0]) for row in rows))')" "[('n1', 'IDLE'), ('n2', 'MIXED'), ('n3', 'ALLOCATED')]"
fi
scancel -u "$(id -un)"
done_testing
