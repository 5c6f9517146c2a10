#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# options.t - every --container option on srun, sbatch and salloc; images together with a private /tmp and with --x11
TMPDIR=/var/tmp # what is in /tmp, jobs do not see
. "$(dirname "$0")/../lib.sh"
as_user unshare -Urm true 2>/dev/null || skip_all "no user namespaces here"
home=$(user_dir)
export HOME=$home
python3 "$HERE/image.py" "$T" || { echo "Bail out! no images"; exit 1; }
chmod -R a+rX "$T"
cd "$home" || exit 1
as_user spur image import "oci:$T/good:one" --name good >/dev/null
private=0
if [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
    printf '[private]\nbase_path = "%s/base"\nauto_base_path = true\n' "$T" >"$T/conf.toml"
    private=1
fi
case $SPUR_BUILD in /tmp/*) private=0 ;; esac
if [ $private -eq 1 ]; then cluster_up --nodes 1 --cpus 4 --conf "$T/conf.toml"; else cluster_up --nodes 1 --cpus 4; fi
export SHARED=host
as_user mkdir data
as_user sh -c 'echo from outside >data/file'
as_user mkdir bundle
printf '{"ociVersion":"1.0.0","root":{"path":"%s"},"process":{"cwd":"/etc","env":["PATH=/bin","IN_IMAGE=bundle"]}}' \
    "$(find "$home/.local/share/spur/images" -maxdepth 2 -path '*sha256*' -name rootfs | head -n 1)" >bundle/config.json

# NAME WANTED COMMAND OPTION...: the command says the same in a step, in a script and in a step of an allocation
try() {
    local name=$1 wanted=$2 command=$3
    shift 3
    run as_user srun "$@" sh -c "$command"
    is "srun: $name" "$out" "$wanted"
    rm -f job.out
    as_user sbatch -Q -W -o job.out "$@" --wrap "$command" >/dev/null 2>&1
    is "sbatch: $name" "$(cat job.out)" "$wanted"
    run as_user salloc -Q "$@" srun sh -c "$command"
    is "salloc: $name" "$out" "$wanted"
}
image=--container-image=good
try "--container-image" "layer two image" 'read -r line </etc/image; echo $line $SHARED' $image
try "--container-image, a file" "layer two" 'cat /etc/image' "--container-image=$T/good.tar"
try "--container-mounts" $'from outside\nrefused' 'cat /data/file; touch /data/x 2>/dev/null || echo refused' $image "--container-mounts=$home/data:/data:ro"
try "--container-workdir" /etc pwd $image --container-workdir=/etc
try "--container-env" host 'echo $SHARED' $image --container-env=SHARED
try "--container-mount-home" "from outside" "cat $home/data/file" $image --container-mount-home
try "--container-readonly" refused 'touch /x 2>/dev/null || echo refused' $image --container-readonly
try "--container-remap-root" "0 /root" 'echo $(id -u) $HOME' $image --container-remap-root
try "--container" "/etc bundle" 'echo $(pwd) $IN_IMAGE' "--container=$home/bundle"
try "--container-name" "kept" 'echo kept >/note; cat /note' $image --container-name=some
run as_user srun $image --container-entrypoint cat /etc/image
is "srun: --container-entrypoint" "$out" $'entry\nlayer two'
run as_user salloc -Q $image --container-entrypoint srun cat /etc/image
is "salloc: --container-entrypoint" "$out" $'entry\nlayer two'
rm -f job.out
as_user sbatch -Q -W -o job.out $image --container-entrypoint --wrap 'cat /etc/image' >/dev/null 2>&1
is "sbatch: --container-entrypoint" "$(cat job.out)" $'entry\nlayer two'

if [ $private -eq 1 ]; then
    mark=spur-both.$$
    touch /tmp/$mark
    run as_user salloc -Q sh -c "srun sh -c 'echo job >/tmp/mine; ls /tmp'; srun $image sh -c 'ls /tmp; echo more >/tmp/other'; srun $image --container-mounts=/tmp:/host cat /host/mine"
    rm -f /tmp/$mark
    unlike "the /tmp of the node is not seen" "$out" "$mark"
    like "an image can have the job's own" "$out" $'job$'
    not_ok "and nothing of it stays on the node" test -e /tmp/mine
fi

# A program in an image finds the display of its step.
printf '\377\377\0\0\0\0\0\022MIT-MAGIC-COOKIE-1\0\0200123456789abcdef' >cookies
chmod 644 cookies
export DISPLAY=:0 XAUTHORITY=$home/cookies
run as_user srun --x11 $image sh -c 'echo $DISPLAY; test -r $XAUTHORITY && echo readable'
like "--x11 with an image" "$out" $'^localhost:[0-9]+\\.0\nreadable$'
rm -f job.out
as_user sbatch -Q -W --x11 -o job.out $image --wrap 'echo $DISPLAY; test -r $XAUTHORITY && echo readable' >/dev/null 2>&1
like "of a script too" "$(cat job.out)" $'^localhost:[0-9]+\\.0\nreadable$'
done_testing
