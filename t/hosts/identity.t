#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A node is known by its key: who joins under its name, who shows its token, what forgetting and joining again take, and how its certificate is renewed.
. "$(dirname "$0")/bed.sh"
site_up c1 'n1 n2' login1 'rejoin = ["n2"]'
idle() { [ "$(on c1 sinfo -h -n "$1" -t idle -o %D)" = 1 ]; }
says() { journal "$1" spurd | grep -q "$2"; }
general=$(on c1 spur token --join)

# Another machine with the general token.
on n2 systemctl stop spurd
on n2 bash -c 'umask 077; cat >/root/token' <<<"$general"
run on n2 timeout 20 bash -c 'spurd -D -N n1 --controller https://c1:6817 --token-file /root/token --spool-dir /tmp/s --run-dir /tmp/r --cgroup-root none --listen :7000 2>&1 | sed "/join.failed/q"'
like "a machine does not join under the name of a node that has joined" "$out" "join.failed.*node 'n1' has joined before"
# Another machine with what n1 wrote down, but its key.
on n1 cat /var/spool/spurd/node.token | on n2 bash -c 'umask 077; rm -rf /tmp/s; mkdir -p /tmp/s; cat >/tmp/s/node.token; cp /var/spool/spurd/ca.crt /var/spool/spurd/node.crt /var/spool/spurd/node.key /tmp/s'
run on n2 timeout 20 bash -c 'spurd -D -N n1 --controller https://c1:6817 --spool-dir /tmp/s --run-dir /tmp/r --cgroup-root none --listen :7000 2>&1 | sed "/session.refused/q"'
like "nor is it n1 with n1's token and a key of its own" "$out" "session.refused.*must show its certificate"
ok "n1 itself is well" idle n1

# Without its spool a node does not come back by itself, unless it is listed, away, and has a token for its name.
on c1 scontrol update node=n2 state=down reason=gone
on n2 bash -c 'rm -rf /tmp/s /var/spool/spurd/*; cp /root/token /etc/spur/join.token; systemctl start spurd'
ok "a node of access.rejoin needs a token for its very name" wait_for 20 says n2 "join.failed.*node 'n2' has joined before"
on n2 systemctl stop spurd
on c1 spur token --join --node n2 | on n2 bash -c 'umask 077; cat >/etc/spur/join.token; systemctl start spurd'
ok "with that it joins again" wait_for 20 says n2 join.done
on c1 scontrol update node=n2 state=resume
ok "and is idle" wait_for 20 idle n2

# Forgotten. Its token was made for years, and somebody kept it.
on n1 cat /var/spool/spurd/node.token | on n2 bash -c 'umask 077; cat >/root/kept'
kept() { on n2 bash -c 'SPUR_CONTROLLER_ADDR=https://c1:6817 SPUR_JWT=$(cat /root/kept) "$@"' _ "$@"; }
run kept squeue
like "the token of a node is nothing without its certificate" "$code $err" '^1 .*authentication'
ok "as the controller's log says" eval 'journal c1 spurctld | grep -q "node.call node=n1 refused .*must show its certificate"'
on c1 spur node forget n1
ok "a node that was forgotten is refused" wait_for 20 says n1 "session.refused.*was forgotten by an administrator"
on n1 systemctl stop spurd
on n1 bash -c 'umask 077; rm -rf /var/spool/spurd/node.*; cat >/etc/spur/join.token; systemctl start spurd' <<<"$general"
ok "until it joins with a new key" wait_for 20 idle n1
run kept scontrol update nodename=n1 state=drain reason=kept
like "the token from before does not drain the new one" "$((code != 0)) $(on c1 sinfo -h -n n1 -o %T)" '^1 idle$'

# Its certificate ends in ten days: the key that it has gets it another one.
on n1 bash -e -c 'cd /var/spool/spurd; openssl req -new -key node.key -subj /CN=node:n1' >"$T/csr" 2>"$T/err"
on c1 bash -e -c 'cd /var/lib/spur/keys; cat >/root/csr; printf "subjectAltName=URI:node:n1,DNS:n1\nextendedKeyUsage=serverAuth,clientAuth\n" >/root/ext
    openssl x509 -req -in /root/csr -CA ca.crt -CAkey ca.key -CAcreateserial -CAserial /root/serial -days 10 -extfile /root/ext; cat ca.crt' <"$T/csr" >"$T/crt" 2>>"$T/err"
on n1 systemctl stop spurd
on n1 bash -c 'umask 077; cat >/var/spool/spurd/node.crt; systemctl start spurd' <"$T/crt"
ok "a certificate that ends soon is renewed" wait_for 30 on n1 openssl x509 -in /var/spool/spurd/node.crt -noout -checkend $((100 * 86400))
[ $bad -eq 0 ] || cat "$T/err" >&2
ok "and the node goes on with it" wait_for 20 idle n1
on n1 systemctl restart spurd
ok "also after a restart" wait_for 20 idle n1

# Administrators.
run on login1 sinfo
is "root of a login host is not vouched for" "$code" 1
like "unless the site says so" "$err" "access.login_admins"
done_testing
