#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every line of sections 2 to 5 of docs/quickstart.md works as it is printed.
# seconds: 180
. "$(dirname "$0")/../lib.sh"
doc=$HERE/../../docs/quickstart.md
quick=$T/quick
clusters+=("$quick")
mkdir "$T/work"
cd "$T/work" || exit 1
awk '/^## 2\./ { on = 1 } /^## On real machines/ { on = 0 } on && /^```sh/ { code = 1; next } /^```/ { if (code) print "echo @@"; code = 0 } on && code' "$doc" |
    sed "s|/tmp/quick|$quick|g; s|^export PATH=.*|export PATH=$SPUR_BUILD/bin:\$PATH|" >"$T/all.sh"
blocks=$(grep -c '^echo @@' "$T/all.sh")
ok "the document has its blocks" test "$blocks" -ge 5
bash -e "$T/all.sh" >"$T/out.txt" 2>"$T/err.txt"
is "all of it runs" "$? $(grep -c '^@@' "$T/out.txt")" "0 $blocks"
[ -s "$T/err.txt" ] && sed 's/^/# /' "$T/err.txt"
like "the nodes are shown" "$(cat "$T/out.txt")" "debug\*.*3.*idle n\[1-3\]"
like "the job ran on two nodes with its GPUs" "$(cat "$T/out.txt")" "job 1 on n\[1-2\] with 4 GPUs on this node"
not_ok "the cluster is gone" test -e "$quick"
done_testing
