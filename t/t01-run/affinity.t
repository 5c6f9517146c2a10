#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tasks run on the CPUs that --cpu-bind names, seen by the kernel: a node whose CPUs are the real ones.
. "$(dirname "$0")/../lib.sh"
all=$(taskset -cp $$ | sed 's/.*: //')
[ "$(nproc)" -ge 2 ] && [ "$(nproc)" = "$(nproc --all)" ] || skip_all "needs two CPUs, all of them ours"
cpus=$(nproc)
cat >"$T/spur.conf" <<CONF
cluster_name = "affinity"
[scheduler]
config_overrides = false
[[nodes]]
names = "n1"
cpus = $cpus
memory_mb = 500
[[partitions]]
name = "debug"
nodes = "ALL"
default = true
CONF
cluster_up --nodes 1 --conf "$T/spur.conf"
cd "$(user_dir)"
idle() { [ "$(sinfo -h -o %t)" = idle ]; }
ok "the node is as it was configured" wait_for 30 idle
seen='echo "seen $(sed -n "s/^Cpus_allowed_list:.//p" /proc/self/status)"'
mask_of() { python3 -c "import sys; print(hex(sum(1 << c for r in sys.argv[1].split(',') for c in range(int(r.split('-')[0]), int(r.split('-')[-1]) + 1))))" "$1"; }

run as_user srun -n2 --cpu-bind=verbose,cores sh -c "$seen"
is "two tasks are on one CPU each" "$(grep -c '^seen [0-9]*$' <<<"$out")" 2
is "not the same one" "$(sort -u <<<"$out" | wc -l)" 2
masks=$(sed -n 's/.*mask \(0x[0-9a-f]*\).*/\1/p' <<<"$err" | sort)
is "what is said is what the kernel has" "$(while read -r _ list; do mask_of "$list"; done <<<"$out" | sort | tr '\n' ' ')" "$(tr '[:upper:]' '[:lower:]' <<<"$masks" | tr '\n' ' ')"
run as_user srun -n2 -l --cpu-bind=map_cpu:1,0 sh -c "$seen"
is "a map" "$(sort <<<"$out" | tr '\n' ' ')" "0: seen 1 1: seen 0 "
run as_user srun -n1 -c2 --cpu-bind=none sh -c "$seen"
is "none: not bound within what the job has" "$(wc -w <<<"$out")" 2
run as_user srun -n1 -c2 --cpu-bind=mask_cpu:0x2 sh -c "$seen"
is "a mask" "$out" "seen 1"
run as_user salloc -Q -n2 bash -c "srun -n1 --exact sh -c 'touch a; $seen; until [ -e b ]; do sleep 0.1; done' & srun -n1 --exact sh -c 'touch b; $seen; until [ -e a ]; do sleep 0.1; done'; wait"
is "two steps at once have different CPUs" "$(grep '^seen [0-9]*$' <<<"$out" | sort -u | wc -l)" 2
is "ours are untouched" "$(taskset -cp $$ | sed 's/.*: //')" "$all"
done_testing
