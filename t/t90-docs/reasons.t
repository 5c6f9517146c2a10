#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# docs/reasons.md has every reason once, with its number, and names a test in which it really is.
. "$(dirname "$0")/../lib.sh"
cd "$HERE/../.." || exit 1
listed=$(sed -n 's/^REASON(\([A-Z_0-9]*\), \([0-9]*\), "\([^"]*\)".*/\2 \3/p' src/schema/reasons_list.h)
written=$(sed -n 's/^| \([0-9]*\) | \([A-Za-z]*\) | .*/\1 \2/p' docs/reasons.md)
ok 'there are reasons' [ "$(wc -l <<<"$listed")" -gt 200 ]
is 'all of them are in the table' "$(diff <(echo "$listed") <(echo "$written"))" ''
missing=''
while IFS='|' read -r _ number word test when _; do
    word=${word// /} test=${test//[\` ]/}
    [ -n "${when// /}" ] || missing+=" $word:empty"
    case $test in
    never | -) continue ;;
    t/*) grep -qw -- "$word" "$test" || missing+=" $word" ;;
    src/*)
        symbol=$(sed -n "s/^REASON(\([A-Z_0-9]*\), ${number// /}, .*/\1/p" src/schema/reasons_list.h)
        grep -qw -- "$symbol" "$test" || missing+=" $word"
        ;;
    *) missing+=" $word:$test" ;;
    esac
done < <(grep '^| [0-9]' docs/reasons.md)
is 'each is in the test that is named' "$missing" ''
done_testing
