#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Join tokens: the cluster's own, and those that are good for some nodes and for some time.
. "$(dirname "$0")/../lib.sh"
mkdir -p "$T/shift" # the controller's clock, which is put forward below
printf '\0\0\0\0\0\0\0\0' >"$T/shift/spurctld"
SPUR_CLOCK_SHIFT=$T/shift cluster_up --nodes 3 --cpus 2
url=http://127.0.0.1:$(cut -d' ' -f1 "$D/run/ports")

# A machine that nobody knows joins under NAME with the token in FILE. It is done when its log says how that went.
joins() { # NAME FILE
    [ -n "${KEEP_MACHINE:-}" ] || rm -rf "$T/machine"
    : >"$T/machine.log"
    "$SPUR_BUILD/bin/spurd" -D -N "$1" --controller "$url" --token-file "$2" --spool-dir "$T/machine/spool" --run-dir "$T/machine/run" \
        --cgroup-root none --listen 127.0.0.1:0 >>"$T/machine.log" 2>&1 &
    machine=$!
    wait_for 30 grep -qE 'join\.(done|failed)' "$T/machine.log"
    kill "$machine"
    wait "$machine" 2>/dev/null
    grep -qE 'join.done' "$T/machine.log"
}
tokens() { # FILE OPTIONS…
    (umask 077; spur token --join "${@:2}" >"$1")
}
for i in 1 2 3; do
    kill "$(cut -d' ' -f1 "$D/run/n$i.pid")"
done

tokens "$T/own"
like "a token for any node" "$(cat "$T/own")" "^join/\\*/[0-9]+/[0-9a-f]+ sha256:"
left=$(($(cut -d/ -f3 "$T/own") - $(date +%s)))
ok "is good for a day" test "$left" -gt 86000 -a "$left" -le 86400
not_ok "another machine does not join under the name of a node that has joined" joins n1 "$T/own"
like "and is told why" "$(cat "$T/machine.log")" "node 'n1' has joined before, with another key.*spur node forget n1"
run spur node forget n9
is "a node that is not there is not forgotten" "$code:$err" "1:spur node: error: n9: there is no node 'n9'"
if [ "$(id -u)" -eq 0 ]; then
    run as_user spur node forget n1
    like "nor by an ordinary user" "$code:$err" "1:.*(denied|permission)"
fi
ok "an administrator has n1 forgotten" spur node forget n1
"$SPUR_BUILD/bin/spurd" -D -N n1 --controller "$url" --spool-dir "$D/spool/n1" --run-dir "$T/old" --cgroup-root none --listen 127.0.0.1:0 >"$T/old.log" 2>&1 &
old=$!
ok "whose own agent is refused then, with its old key" wait_for 30 grep -q 'session.refused.*was forgotten by an administrator' "$T/old.log"
kill $old
wait $old 2>/dev/null
ok "another machine joins as n1 then" joins n1 "$T/own"
KEEP_MACHINE=1
rm -f "$T/machine/spool/node.token"
not_ok "it has a new key without its token, which is refused" joins n1 "$T/own"
KEEP_MACHINE=
for i in 2 3; do spur node forget "n$i"; done
tokens "$T/n2" --node n2 --lifespan 5
like "one for a node says for which" "$(cat "$T/n2")" "^join/n2/[0-9]+/[0-9a-f]+ sha256:"
ok "that node joins with it" joins n2 "$T/n2"
spur node forget n1
not_ok "another node does not" joins n1 "$T/n2"
like "and is told why" "$(cat "$T/machine.log")" "the join token is for node 'n2', not for 'n1'"
like "the controller's log says it too" "$(cat "$D/log/ctl1.log")" "node.join .*node=n1 .*refused .*for node 'n2', not for 'n1'"
tokens "$T/some" --node 'n[1,3]'
ok "one for several nodes is good for each" joins n3 "$T/some"
spur node forget n2
not_ok "and for no others" joins n2 "$T/some"
tokens "$T/short" --lifespan 10
ok "one for ten minutes is good for a while" joins n1 "$T/short"
printf '\0\x53\xd6\x2f\0\0\0\0' | dd of="$T/shift/spurctld" conv=notrunc 2>/dev/null # 802 s, in microseconds
not_ok "a token that is over is refused" joins n1 "$T/short"
like "with the reason" "$(cat "$T/machine.log")" "the join token has expired; spur token --join gives a new one"
sed 's|/n2/|/n1/|' "$T/n2" >"$T/changed"
chmod 600 "$T/changed"
not_ok "a name that was changed spoils it" joins n1 "$T/changed"
like "because it is not what the cluster signed" "$(cat "$T/machine.log")" "the join token is not this cluster's"
printf '\0\0\0\0\0\0\0\0' | dd of="$T/shift/spurctld" conv=notrunc 2>/dev/null
printf 'guess sha256:00\n' >"$T/guess"
chmod 600 "$T/guess"
not_ok "a guess is refused" joins n1 "$T/guess"
run as_user spur token --join --node n1
if [ "$(id -u)" -eq 0 ]; then
    is "users get no join tokens" "$code" 1
    like "they are told so" "$err" "denied|permission"
fi
run spur token --join --node 'n['
is "a list of nodes that is none is refused" "$code" 1
done_testing
