#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# How much of Slurm the commands are has not become less: the short form of make conformance.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all "needs root, for jobs of two users"
run "$HERE/../../tools/conformance" --short "$SPUR_BUILD"
is "no less than was recorded" "$code" 0
[ "$code" = 0 ] || printf '%s\n' "$out" "$err" | sed 's/^/# /'
missing=$(grep -E '(options|verbs and entities|update [a-z]+ keys) ' <<<"$out" | grep -v ' 0 missing')
is "no option, verb or key is missing" "$missing" ""
done_testing
