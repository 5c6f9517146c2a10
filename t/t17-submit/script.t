#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# max_script_bytes: a script that is longer than the site allows is refused.
. "$(dirname "$0")/../lib.sh"
printf '[jobs]\nmax_script_bytes = 1000\n' >"$T/conf.toml"
cluster_up --nodes 1 --cpus 2 --conf "$T/conf.toml"
cd "$T"
script() { { printf '#!/bin/bash\n#'; head -c $(($1 - 14)) /dev/zero | tr '\0' x; echo; } >s.sh; }
script 1000
is "the script has 1000 bytes" "$(wc -c <s.sh)" 1000
run sbatch -H --parsable s.sh
is "as many as it may have" "$code" 0
script 1001
run sbatch -H --parsable s.sh
is "one more is refused" "$code$out" 1
like "and says why" "$err" "the batch script has more than 1000 bytes"
run salloc -Q true
is "an allocation has no script" "$code" 0
done_testing
