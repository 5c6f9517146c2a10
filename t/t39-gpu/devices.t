#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# devices.t - a job opens its own GPUs and nobody else's; variables count over all types of a node
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all "device files are made by root"
grep -qs cgroup2 /proc/mounts || skip_all "no cgroup v2 here"

# Four character devices that exist everywhere and that nothing needs.
mkdir "$T/dev"
chmod 755 "$T/dev"
minor=(229 200 237 236)
for i in 0 1 2 3; do
    mknod -m 666 "$T/dev/gpu$i" c 10 "${minor[$i]}" || skip_all "cannot make device files"
done
cat >"$T/spur.conf" <<CONF
cluster_name = "gpus"
[[gres]]
nodes = "n1"
name = "gpu"
type = "old"
files = "$T/dev/gpu[0-1]"
[[gres]]
nodes = "n1"
name = "gpu"
type = "new"
files = "$T/dev/gpu[2-3]"
[[nodes]]
names = "n1"
cpus = 2
memory_mb = 1000
gres = ["gpu:old:2", "gpu:new:2"]
[[partitions]]
name = "main"
nodes = "ALL"
default = true
CONF
cluster_up --nodes 1 --conf "$T/spur.conf"
home=$(user_dir)
cd "$home" || exit 1
opens='for i in 0 1 2 3; do python3 - '"$T"'/dev/gpu$i <<"PY"
import errno, os, sys
try:
    os.close(os.open(sys.argv[1], os.O_RDWR))
    print("open", end=" ")
except OSError as e:
    print("denied" if e.errno == errno.EPERM else "open", end=" ")
PY
done; echo "cuda=$CUDA_VISIBLE_DEVICES"'
try() { # OPTIONS...: prints what the job could open
    printf '#!/bin/bash\n%s\n' "$opens" | as_user sbatch -W -o "$home/out" "$@" >/dev/null && cat "$home/out"
}
is "no GPU: none of them" "$(try)" 'denied denied denied denied cuda='
is "one of the first type" "$(try --gres=gpu:old:1)" 'open denied denied denied cuda=0'
is "one of the second type" "$(try --gres=gpu:new:1)" 'denied denied open denied cuda=2'
is "two of the second type" "$(try --gres=gpu:new:2)" 'denied denied open open cuda=2,3'
is "all of them" "$(try --gres=gpu:old:2,gpu:new:2)" 'open open open open cuda=0,1,2,3'
is "a step of srun too" "$(as_user srun --gres=gpu:new:1 bash -c "$opens" 2>&1)" 'denied denied open denied cuda=2'
done_testing
