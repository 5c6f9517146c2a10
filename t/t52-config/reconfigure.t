#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A configuration that is read again: in several commands, wrong, by several at once.
. "$(dirname "$0")/../lib.sh"
cat >"$T/conf" <<CONF
[scheduler]
config_overrides = true
[[nodes]]
names = "n1"
cpus = 4
memory_mb = 4000
[[partitions]]
name = "debug"
default = true
nodes = "ALL"
CONF
cluster_up --nodes 1 --conf "$T/conf"
cd "$T"
cpus() { scontrol -o show node | grep -c " CPUTot=$1 "; }

is 'as it began' "$(cpus 4)" 1
printf '[[nodes]]\nnames = "m[1-1500]"\ncpus = 4\nmemory_mb = 4000\n' >>"$SPUR_CONF"
run scontrol reconfigure
is 'many nodes more' "$code:$(cpus 4)" 0:1501
sed -i '/^names = "m/,/^memory/s/cpus = 4/cpus = 8/' "$SPUR_CONF"
run scontrol reconfigure
is 'every node is another once it is answered' "$code:$(cpus 8):$(cpus 4)" '0:1500:1'
run srun -N1 -w n1 true
is 'jobs run' "$code" 0

sed -i 's/m\[1-1500\]/m[1-700,901-1600]/' "$SPUR_CONF"
run scontrol reconfigure
is 'some go, others come' "$code:$(cpus 8):$(sinfo -h -p debug -o %D | awk '{n += $1} END {print n}')" '0:1400:1401'
is 'none is left of those' "$(scontrol -o show node | grep -c '^NodeName=m8.. ')" 0

cp "$SPUR_CONF" good
echo 'nonsense = = 1' >>"$SPUR_CONF"
run scontrol reconfigure
is 'a file that cannot be read is refused' "$code" 1
cp good "$SPUR_CONF"
printf '[[nodes]]\nnames = "m5"\ncpus = 1\n' >>"$SPUR_CONF"
run scontrol reconfigure
is 'so is a node that is there twice' "$code:$(cpus 8)" '1:1400'
cp good "$SPUR_CONF"

# Whoever asks hears of it when what was written before is in force.
sed -i 's/cpus = 8/cpus = 6/' "$SPUR_CONF"
for i in 1 2 3 4 5 6; do scontrol reconfigure & done
scontrol reconfigure
is 'several at once: it is there when one is answered' "$(cpus 6)" 1400
failed=0
for job in $(jobs -p); do wait "$job" || failed=$((failed + 1)); done
is 'and all of them are answered' "$failed:$(cpus 6)" '0:1400'
done_testing
