#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# docs/controllers.md, "Three from the start": all of them named in the file, by name alone.
. "$(dirname "$0")/bed.sh"
lines() { document docs/controllers.md '### Three from the start' "$1"; }

hosts_up c1 c2 c3 n1 login1
cluster_conf n1 'login_nodes = ["login1"]' | sed 's/^\[controller\]/&\nhosts = ["c1", "c2", "c3"]/' >"$T/spur.conf"
for host in c1 c2 c3; do
    on $host install -d /etc/spur
    put $host /etc/spur/spur.conf <"$T/spur.conf"
done
run on c1 bash -e -c "$(lines 1)"
is "the first host's lines run" "$code:$err" "0:"
for host in c2 c3; do
    on c1 cat keys.tar | put $host keys.tar
    run on $host bash -e -c "$(lines 2)"
    is "the lines of $host run" "$code:$err" "0:"
done
ok "one of them leads" wait_for 30 eval 'on c1 spur controller list | grep -q leader'
is "and all three are up" "$(on c2 spur controller list | awk 'NR > 1 { print $1, $2 }' | sed 's/leader\|follower/up/' | sort | tr '\n' ' ')" "c1 up c2 up c3 up "
for host in n1 login1; do
    login=
    [ $host = n1 ] || login='--login '
    join_host $host "$login--controller https://c1:6817,https://c2:6817,https://c3:6817"
done
for host in c1 c2 c3 login1; do
    ok "jobs run from $host" wait_for 30 on alice@$host sbatch --wait -o /dev/null --wrap true
done

# Each host in turn goes away, with all of its processes, and comes back.
for host in c1 c2 c3; do
    reboot $host
    ok "while $host starts again, jobs run" wait_for 30 on alice@login1 sbatch --wait -o /dev/null --wrap true
    ok "$host is back" wait_for 40 eval "on $host spur controller list | grep -qE '^$host +(leader|follower)'"
done
# At rest, all three have the same state: the column DIGEST of the list.
digests() { on c1 spur controller list | awk 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "DIGEST") at = i } NR > 1 { print $at }'; }
same() { [ "$(digests | wc -l) $(digests | sort -u | wc -l)" = "3 1" ]; }
ok "all of them have the same state" wait_for 30 same
done_testing
