#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every exported function is called with nothing, and none ends its process; only listed names are exported.
. "$(dirname "$0")/../lib.sh"
built=$SPUR_BUILD/src/compat
export SPUR_CONTROLLER_ADDR=nowhere:// # refused at once: these calls are not to wait
for api in 38 42 45; do
    lib=$built/$api/libspur_compat.so
    like "$api: SONAME" "$(readelf -d "$lib")" "soname: \[libslurm.so.$api\]"
    sed -n 's/^ *\([a-z]\w*\);$/\1/p' "$built/$api/exports.map" | sort >"$T/listed"
    nm -D --defined-only "$lib" | awk '{ print $3 }' | sort >"$T/there"
    is "$api: what is listed is exported, and nothing else" "$(diff "$T/listed" "$T/there")" ""
    run "$built/$api/walk" "$lib"
    is "$api: none crashes" "$(grep '^not ok' <<<"$out")" ""
done

# ---- what unmodified programs need of libslurm.so.38 ----
facts=$HERE/../../src/compat/facts
nm -D --defined-only "$built/38/libspur_compat.so" | awk '{ print $3 }' | sort >"$T/there"
for client in $(tail -n +2 "$facts/clients.tsv" | cut -f1 | sort -u); do
    awk -F'\t' -v c="$client" '$1 == c { print $2 }' "$facts/clients.tsv" | sort -u >"$T/needed"
    is "$client finds all that it needs" "$(comm -23 "$T/needed" "$T/there")" ""
done
done_testing
