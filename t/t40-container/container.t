#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# container.t - jobs and steps inside images; images good and hostile
. "$(dirname "$0")/../lib.sh"
as_user unshare -Urm true 2>/dev/null || skip_all "no user namespaces here"
home=$(user_dir)
export HOME=$home
python3 "$HERE/image.py" "$T" || { echo "Bail out! no images"; exit 1; }
chmod -R a+rX "$T"
cd "$home" || exit 1

# ---- images ----
run as_user spur image import "oci:$T/good:one" --name good
like "an OCI layout is imported" "$out" '^good sha256-[0-9a-f]{64}$'
digest=$out
run as_user spur image import "$T/good.tar" --name lab/good:2
is "an archive of docker save is the same image" "${out#* }" "${digest#* }"
run as_user spur image list
like "both names are listed" "$out" $'\ngood .*\nlab/good:2 '
python3 "$HERE/registry.py" "$T/good" "$T/port" &
server=$!
wait_for 20 test -s "$T/port"
port=$(cat "$T/port")
run as_user spur image import "http://127.0.0.1:$port/test:one" --name fetched
is "a registry has it too" "${out#* }" "${digest#* }"
run as_user spur image import "http://127.0.0.1:$port/test:none" --name none
like "an absent tag is said" "$err" '^spur image: error: .*the registry says 404'
kill $server
wait $server 2>/dev/null
bad() { # NAME SOURCE REGEX
    run as_user spur image import "$2" --name "bad"
    if [ $code -eq 1 ]; then like "$1" "$err" "^spur image: error: .*$3"; else fail "$1" "exit code $code" "$err"; fi
}
bad "a flipped bit is seen" "oci:$T/spoilt" 'layer 1'
bad "a name that leads out is refused" "oci:$T/dotdot" "leads out of it: '../../escaped'"
bad "a hard link that leads out is refused" "oci:$T/linkout" 'leads out of it'
bad "layers that nobody announced are refused" "oci:$T/fewer" '1 layers, but its configuration names 0'
bad "what is no archive is refused" "$T/junk.tar" 'not a tar archive'
bad "half an archive is refused" "$T/cut.tar" '(cut off|neither an OCI)'
bad "a registry with TLS is named" "docker://example.org/x" 'over http:// only'
bad "an absent file is said" "$T/nothing.tar" 'No such file'
not_ok "nothing escaped" test -e "$T/escaped" -o -e "$home/.local/escaped"
is "nothing half done stays" "$(find "$home/.local/share/spur/images" -maxdepth 1 -name '.[nf]*' | wc -l)" 0
as_user spur image import "oci:$T/absolute" --name abs >/dev/null
not_ok "absolute names stay inside" test -e /etc/absolute
run as_user spur image remove abs
is "an image is removed" "$code" 0
run as_user spur image remove abs
like "twice is an error" "$err" "no image 'abs'"

# ---- jobs ----
cluster_up --nodes 2
job() { as_user sbatch -W -o "$home/out" "$@" >/dev/null 2>"$home/err"; echo "$?: $(cat "$home/out" "$home/err" 2>/dev/null)"; }
cat >script.sh <<'JOB'
#!/bin/sh
cat /etc/image; echo "$IN_IMAGE $SHARED $1"; pwd; touch /written && echo wrote; id -u
JOB
chmod +r script.sh
export SHARED=host
is "a batch script runs in an image" "$(job --container-image=good script.sh arg)" \
    $'0: layer two\nyes image arg\n/work\nwrote\n20001'
run as_user srun --container-image=good cat /written
like "the next one sees nothing of it" "$err" "/written: No such file or directory"
run as_user srun --container-image="$T/good.tar" --container-env=SHARED --container-workdir=/etc sh -c 'pwd; cat image; echo $SHARED'
is "a step, a file, the environment, the directory" "$out" $'/etc\nlayer two\nhost'
as_user mkdir -p "$home/data"
echo from outside >"$home/data/file"
chmod 644 "$home/data/file"
run as_user srun --container-image=good --container-mounts="$home/data:/data:ro,$home/data:/rw" sh -c 'cat /data/file; touch /data/x 2>/dev/null || echo refused; touch /rw/y && echo ok'
is "mounts" "$out" $'from outside\nrefused\nok'
run as_user srun --container-image=good --container-mount-home cat "$home/data/file"
is "the home directory" "$out" "from outside"
run as_user srun --container-image=good --container-remap-root sh -c 'id -u; echo $HOME'
is "root inside" "$out" $'0\n/root'
run as_user srun --container-image=good --container-readonly sh -c 'touch /x 2>/dev/null || echo refused'
is "read-only" "$out" refused
run as_user srun --container-image=good --container-entrypoint cat /etc/image
is "the entry point" "$out" $'entry\nlayer two'
run as_user srun -n 2 -N 2 --container-image=good cat /etc/image
is "on two nodes" "$out" $'layer two\nlayer two'
run as_user salloc -N 1 --container-image=good srun cat /etc/image
is "in an allocation that asked for it" "$out" "layer two"
run as_user salloc -N 1 sh -c 'srun --container-image=good --container-name=kept sh -c "echo kept >/note"; srun --container-image=good --container-name=kept cat /note'
is "a named container keeps what was written" "$out" kept
run as_user srun --container-image=good sh -c 'exit 7'
is "its exit code" "$code" 7
run as_user srun --container-image=good /no/such/program
is "an absent program" "$code" 127
run as_user srun --container-image=absent true
like "an absent image" "$err" "error: no image 'absent'; bring it in with: spur image import"
run as_user srun --container-image=good --container-mounts=relative:/x true
like "a mount that is none" "$err" "is not /OUTSIDE"
mkdir -p "$T/bundle"
ln -sfn "$(find "$home/.local/share/spur/images" -maxdepth 2 -path '*sha256*' -name rootfs | head -n 1)" "$T/bundle/rootfs"
printf '{"ociVersion":"1.0.0","root":{"path":"%s"},"process":{"cwd":"/etc","args":["cat","image"],"env":["PATH=/bin","IN_IMAGE=bundle"]}}' "$(readlink "$T/bundle/rootfs")" >"$T/bundle/config.json"
run as_user srun --container="$T/bundle" sh -c 'pwd; echo $IN_IMAGE'
is "an OCI bundle" "$out" $'/etc\nbundle'
done_testing
