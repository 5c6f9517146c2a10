#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# SPANK: plugins of others, as they are: compiled against our headers, loaded by srun and on the node.
#
# SPUR_SPANK_SOURCES names a directory of checkouts, OWNER/REPOSITORY each; `make test-compat` runs this. There is no package
# of Debian that has them, so they are not fetched.
. "$(dirname "$0")/lib.sh"
sources=${SPUR_SPANK_SOURCES:-}
[ -d "$sources" ] || skip_all "SPUR_SPANK_SOURCES does not name a directory with checkouts of plugins"
plugstack
built_any=0
while read -r name files; do
    set -- $files
    [ -f "$sources/$1" ] || { echo "# $1 is not there"; continue; }
    paths=()
    for file in $files; do paths+=("$sources/$file"); done
    log=$("${CC:-cc}" -shared -fPIC -w -D_GNU_SOURCE -isystem "$built" -I "$(dirname "${paths[0]}")" $(pkg-config --cflags lua5.3 2>/dev/null) -o "$P/other-$name.so" "${paths[@]}" 2>&1)
    if [ -z "$log" ]; then pass "$name is compiled"; else fail "$name is compiled" "$log"; continue; fi
    echo "optional $P/other-$name.so" >>"$P/plugstack.conf"
    built_any=1
done <<END
pyxis $(cd "$sources" && echo NVIDIA/pyxis/*.c)
lua stanford-rc/slurm-spank-lua/lua.c
x11 hautreux/slurm-spank-x11/slurm-spank-x11-plug.c
private-tmpdir hpc2n/spank-private-tmp/private-tmpdir.c
renice chaos/slurm-spank-plugins/renice.c
tmpdir chaos/slurm-spank-plugins/tmpdir.c
private-mount chaos/slurm-spank-plugins/private-mount.c
preserve-env chaos/slurm-spank-plugins/preserve-env.c
setsched chaos/slurm-spank-plugins/setsched.c
system-safe chaos/slurm-spank-plugins/system-safe.c
pty chaos/slurm-spank-plugins/pty.c
iotrace chaos/slurm-spank-plugins/iotrace.c
addr-no-randomize chaos/slurm-spank-plugins/addr-no-randomize.c
chroot nebius/soperator/images/common/chroot-plugin/chroot.c
nccl-debug nebius/soperator/images/common/spank-nccl-debug/src/snccld.c
END
[ $built_any -eq 1 ] || skip_all "$sources has none of the plugins"
run srun --help
unlike "srun loads them" "$err" 'is not loaded'
cluster_up --nodes 1 --cpus 2
cd "$T"
unlike "the node loads them" "$(cat "$D"/*/*.log "$D"/*/*/*.log 2>/dev/null)" 'spank: optional plugin .* is not loaded'
done_testing
