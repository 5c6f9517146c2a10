#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# groups: asan
# A slurm.conf with the files beside it becomes a spur.conf that checks clean and means the same.
. "$(dirname "$0")/../lib.sh"
. "$HERE/common.sh"

hash_of() { spur config show -q --json "$@" 2>/dev/null | sed -n 's/.*"hash": "\(.*\)",/\1/p'; }

# 64 GPU nodes with Include, node sets, DEFAULT lines, gres.conf, topology.conf, cgroup.conf
run spur config import "$HERE/gpu64/slurm.conf" -o "$T/gpu64.toml"
is "gpu64 is imported" "$code" 0
is "gpu64: what changes nothing is said, and why" \
    "$(grep -v "nothing in this version acts on it" <<<"${err//$HERE\//}")" "$(cat "$HERE/gpu64/notes")"
is "gpu64: the result" "$(grep -v ^# "$T/gpu64.toml")" "$(grep -v ^# "$HERE/gpu64/expected.toml")"
run spur config check -q "$T/gpu64.toml"
is "gpu64: the result checks clean" "$code:$err:${out##*/}" \
    "0::gpu64.toml: ok: cluster aurora, 80 nodes, 5 partitions"
is "gpu64: both mean the same" "$(hash_of "$T/gpu64.toml")" "$(hash_of "$HERE/gpu64/slurm.conf")"

# The cluster that the expected outputs of Slurm's commands were recorded on
run spur config import "$HERE/peer/slurm.conf" -o "$T/peer.toml"
is "peer is imported" "$code" 0
run spur config check -q "$T/peer.toml"
is "peer: the result checks clean" "$code:$err:${out##*/}" \
    "0::peer.toml: ok: cluster peer, 8 nodes, 5 partitions"
is "peer: both mean the same" "$(hash_of "$T/peer.toml")" "$(hash_of "$HERE/peer/slurm.conf")"
run grep -A2 'names = "node7"' "$T/peer.toml"
is "peer: node7" "$out" $'names = "node7"\naddr = "127.0.0.1"\nhostname = "node7"'

# Files elsewhere, and to standard output
mkdir "$T/else"
cp "$HERE/peer/slurm.conf" "$T/else/"
run spur config import "$T/else/slurm.conf" --gres "$HERE/peer/gres.conf"
like "--gres names the file" "$out" 'files = "/srv/peer/dev/nvidia\[0-1\]"'
run spur config import "$T/else/slurm.conf" --topology "$T/none"
like "a file that was named must be there" "$code:$err" "1:.*none: No such file"
run spur config import "$T/gpu64.toml"
like "a spur.conf is not imported" "$code:$err" "1:.* is not a slurm.conf"
run spur config import
is "import needs a file" "$code" 2

# Private directories of jobs are in a file of their own, which counts when slurm.conf says so
mkdir "$T/private"
{ cat "$HERE/peer/slurm.conf"; echo JobContainerType=job_container/tmpfs; } >"$T/private/slurm.conf"
cp "$HERE"/peer/gres.conf "$T/private/"
printf 'AutoBasePath=true\nBasePath=/var/private Dirs=/tmp,/var/tmp Shared=true InitScript=/etc/init.sh\n' >"$T/private/job_container.conf"
run spur config import "$T/private/slurm.conf" -o "$T/private.toml"
is "private directories are imported" "$(sed -n '/^\[private\]/,/^$/p' "$T/private.toml" | grep = | sort | tr '\n' ';')" 'auto_base_path = true;base_path = "/var/private";dirs = ["/tmp", "/var/tmp"];init_script = "/etc/init.sh";shared = true;'
sed -i 's/^JobContainerType.*//' "$T/private/slurm.conf"
run spur config import "$T/private/slurm.conf" -o "$T/private.toml"
is "but not without JobContainerType" "$(grep -c '^base_path' "$T/private.toml")" 0
printf '[private]\ndirs = ["tmp"]\n' >"$T/private.conf"
run spur config check "$T/private.conf"
like "a directory that is none is refused" "$code:$err$out" '1:.*private.dirs: "tmp" is not the absolute path'

# A broken one leaves no result behind
echo 'ClusterName=x KilWait=1' >"$T/bad.conf"
run spur config import "$T/bad.conf" -o "$T/bad.toml"
is "a broken slurm.conf is not imported" "$code:$(ls "$T" | grep -c bad.toml)" "1:0"
done_testing
