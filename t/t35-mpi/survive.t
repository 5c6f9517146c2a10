#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# survive.t - tasks go on finding each other, by PMI-2 and by PMIx, while the agents of their nodes are killed and started again
. "$(dirname "$0")/../lib.sh"
home=$(user_dir) here=$(cd "$(dirname "$0")" && pwd)
ok "the test's task is built" gcc -Wall -Werror -o "$home/pmi" "$here/pmi.c"
kinds='pmi2'
if flags=$(pkg-config --cflags --libs pmix 2>/dev/null) && srun --mpi=list | grep -q pmix; then
    kinds+=' pmix'
    ok "and the other" gcc -Wall -o "$home/pmix" "$here/pmix.c" $flags
fi
cluster_up --nodes 3 --cpus 4
cd "$home"

pid_of() { for p in $(pgrep -x spurd); do tr '\0' ' ' <"/proc/$p/cmdline" | grep -q -- "-N $1 .*$D/" && echo "$p"; done; }
again() { # NODE: its spurd is killed and started again
    local pid
    pid=$(pid_of "$1")
    kill -9 "$pid"
    while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done
    (. "$D/env"; cd /; spur up --dir "$D" >>"$T/up.log" 2>&1)
}
last() { grep -o '^round [0-9]*' "$1" | tail -1 | cut -d' ' -f2; }
past() { [ "$(last "$1")" -gt "$2" ]; }

for kind in $kinds; do
    rm -f stop
    [ $kind = pmi2 ] && words='./pmi 2 rounds' || words='./pmix rounds'
    as_user srun -N3 -n3 --mpi=$kind $words >$kind.out 2>$kind.err &
    srun=$!
    ok "$kind: tasks talk" wait_for 30 grep -q '^round 5$' $kind.out
    for node in n2 n1 n3; do
        again $node
        ok "$kind: and go on after $node's spurd was killed" wait_for 60 past $kind.out $(($(last $kind.out) + 5))
    done
    as_user touch stop
    wait $srun
    is "$kind: srun ends well" "$?" 0
    is "$kind: nothing that was said is lost" "$(grep -c 'all good 1' $kind.out) $(cat $kind.err)" "3 "
done
done_testing
