#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# docs/quickstart.md "On real machines", line by line: one controller, two nodes, a login host.
# groups: short
. "$(dirname "$0")/bed.sh"
doc=docs/quickstart.md heading='## On real machines'

hosts_up c1 n1 n2 login1
lines() { document "$doc" "$heading" "$1"; } # of that block
is "the document has its blocks" "$(for i in 1 2 3 4 5 6; do lines $i | head -n 1 | cut -d' ' -f1; done | tr '\n' ' ')" \
    "make useradd install install sinfo "

# As printed, from the clone; where the reader edits the example, we do.
run_lines() { on "$1" bash -e -c "cd '$SOURCE' && $2"; }
cluster_conf 'n[1-2]' 'login_nodes = ["login1"]' | put c1 /root/edited.conf
controller=$(lines 2 | sed 's|\(# then edit it.*\)|\1\ncp /root/edited.conf /etc/spur/spur.conf|')
run run_lines c1 "$(lines 1)
$controller"
is "the controller's lines run" "$code:$err" "0:"
token=$(tail -n 2 <<<"$out" | head -n 1) login_token=$(tail -n 1 <<<"$out")
like "the last of them prints a join token" "$token" ' sha256:[0-9a-f]{64}$'
for host in n1 n2; do
    run run_lines $host "$(lines 3)" <<<"$token"
    is "the lines of node $host run" "$code:$err" "0:"
done
run run_lines login1 "$(lines 4)" <<<"$login_token"
is "the lines of the login host run" "$code:$err" "0:"

ok "both nodes become idle" wait_for 20 eval '[ "$(on alice@login1 sinfo -h -t idle -o %D)" = 2 ]'
run on alice@login1 bash -e -c "$(lines 5)"
is "what users do there runs" "$code" 0
[ $code = 0 ] || sed 's/^/# /' <<<"$err"
is "srun ran on both, from the login host and inside the job" "$(grep -cE '^n[12]$' <<<"$out")" 4

for host in c1 n1 login1; do
    run on $host spur --version
    ok "$host runs what was installed" test "$code" = 0
done
is "the controller is user spur's" "$(on c1 ps -o user= -C spurctld)" spur
done_testing
