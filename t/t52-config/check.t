#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# groups: asan
# spur config check explains every mistake of a broken file at once: file, line, value, suggestion.
. "$(dirname "$0")/../lib.sh"
. "$HERE/common.sh"

for file in "$HERE"/broken/*.conf; do
    name=$(basename "$file" .conf)
    cp "$file" "$T/f.conf"
    run env -C "$T" spur config check -q f.conf
    is "$name: exit code" "$code" 1
    is "$name: every complaint" "$err" "$(cat "${file%.conf}.expected")"
    errors=$(grep -c ': error: ' <<<"$err")
    like "$name: counted" "$out" "^f.conf: $errors errors?, "
done

# Files that are right
cat >"$T/seed.conf" <<'END'
cluster_name = "my-cluster"

[[partitions]]
name = "default"
default = true
nodes = "node[001-008]"
max_time = "24:00:00"

[[nodes]]
names = "node[001-008]"
cpus = 64
memory_mb = 256000
END
run spur config check -q "$T/seed.conf"
is "the first example of the README is right" "$code:$err" "0:"
is "and is summed up" "$out" "$T/seed.conf: ok: cluster my-cluster, 8 nodes, 1 partition"
run env SPUR_CONF="$T/seed.conf" spur config check
is "SPUR_CONF names the file" "$code" 0
run spur config check -q "$HERE/../../etc/spur.conf.example"
is "etc/spur.conf.example is right" "$code:$err" "0:"

# Hostile files: one clear error, at once
head -c 17000000 /dev/zero | tr '\0' '#' >"$T/large.conf"
run spur config check "$T/large.conf"
is "a file beyond the limit" "$code" 1
printf 'cluster_name = %s\n' "$(printf '[%.0s' {1..100000})" >"$T/deep.conf"
run spur config check "$T/deep.conf"
like "nested too deep" "$err" 'deep.conf:1: error: column [0-9]+: nested deeper than 64 levels'
printf 'cluster_name = "\x1b[31m"\n' >"$T/esc.conf"
run spur config check "$T/esc.conf"
like "control characters" "$err" 'control character 0x1b is not allowed here'
printf 'cluster_name = "a\\u001b[31m"\n' >"$T/esc2.conf"
run spur config check "$T/esc2.conf"
unlike "escaped ones are not printed either" "$err" $'\x1b'
run spur config check "$T/absent.conf"
like "no such file" "$code:$err" "1:spur config: .*absent.conf: No such file"
mkdir "$T/dir.conf"
run spur config check "$T/dir.conf"
is "a directory" "$code" 1

# The command line
run spur config check one two
is "too many arguments" "$code" 2
run spur config chekc
is "unknown verb" "$code" 2
run spur confg
like "unknown command" "$err" "did you mean 'config'"
printf 'cluster_name = "c"\n[[nodes]]\nnames = "n1"\n[[partitions]]\nname = "p"\nnodes = "ALL"\n[cgroup]\nio_max = ["/dev/sda rbps=1M wiops=20", "sda rbps=1", "/dev/sda speed=3", "/dev/sda"]\n' >"$T/io.conf"
run spur config check "$T/io.conf"
is "limits of disks are read" "$(grep -o 'io_max: "[^"]*"' <<<"$out$err" | tr '\n' ' ')" 'io_max: "sda rbps=1" io_max: "/dev/sda speed=3" io_max: "/dev/sda" '
done_testing
