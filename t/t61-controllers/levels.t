#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The feature level: it rises when all controllers know it, can be pinned, never goes back, and survives restarts.
. "$(dirname "$0")/../lib.sh"
command -v etcd >/dev/null || skip_all "etcd is not installed"
newest=$(sed -n 's/^ *LEVEL_NEWEST = \(LEVEL_[A-Z_]*\).*/\1/p' "$HERE/../../src/base/feature_level.h")
newest=$(sed -n "s/^ *$newest = \([0-9]*\),.*/\1/p" "$HERE/../../src/base/feature_level.h")
cluster_up --nodes 1 --cpus 2 --controllers 3
levels() { spur controller list 2>/dev/null | awk 'NR > 1 && $2 != "down" { print $8 }' | sort | uniq -c | tr -s ' '; }
levels_are() { [ "$(levels)" = "$1" ]; }
ok "it rises to the newest on all three" wait_for 30 levels_are " 3 $newest/$newest"
like "the list shows builds" "$(spur controller list)" "leader .* etcd +$newest/$newest +[0-9.]+(-[0-9a-f]{8})? "
is "the level is shown" "$(spur controller level)" "feature level $newest; the leader's build knows $newest"
goes_not_back() { # a controller that was slow to answer counts as down for a moment
    run spur controller level --pin 1
    [ "$code:$err" = "1:spur controller: error: level: the feature level is $newest, and a level never goes back" ]
}
ok "it does not go back" wait_for 20 goes_not_back
pinned() {
    run spur controller level --pin "$newest"
    [ "$code:$out" = "0:feature level $newest, pinned at $newest; the leader's build knows $newest" ]
}
ok "it can be pinned" wait_for 20 pinned
if [ "$(id -u)" -eq 0 ]; then
    run as_user spur controller level --unpin
    like "not by an ordinary user" "$code:$err" "1:.*(denied|permission)"
fi
leader=$(spur controller list | awk '$2 == "leader" { print $1 }')
kill -9 "$(cut -d' ' -f1 "$D/run/$leader.pid")"
ok "another leads" wait_for 30 eval "spur controller list 2>/dev/null | grep -v '^$leader ' | grep -q ' leader '"
like "the pin and the level stay with another leader" "$(spur controller level)" "feature level $newest, pinned at $newest;"
spur up --quiet --dir "$D" >/dev/null 2>&1 # while one is down, nobody knows what its build can read
unpinned() {
    run spur controller level --unpin
    [ "$code" = 0 ] && [[ $out == "feature level $newest;"* ]]
}
ok "the pin is taken away" wait_for 30 unpinned
run spur controller level --pin 2 --unpin
is "one or the other" "$code:$err" "1:spur controller: error: level: --pin and --unpin exclude each other"
run spur controller list --unpin
is "these belong to the level" "$code:$err" "1:spur controller: error: --pin and --unpin are for 'spur controller level'"
done_testing
