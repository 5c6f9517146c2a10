#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# tree.t - sgather -r: directories from the nodes of a job; --treewidth of sbcast
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 3 --cpus 2
cd "$(user_dir)"
work=$PWD/work
id=$(as_user sbatch --parsable -N3 -n3 -o /dev/null --wrap 'sleep 600')
ok "a job runs" wait_for 30 job_is "$id" RUNNING

make() { # what each node has
    as_user bash -c 'umask 022; rm -rf "$0"; mkdir -p "$0"
        for n in n1 n2 n3; do
            d=$0/$n; mkdir -p "$d/sub/deep" "$d/empty" "$d/closed"
            echo "from $n" >"$d/file"; head -c 700000 /dev/urandom >"$d/sub/big"; : >"$d/sub/nothing"
            printf "#!/bin/sh\n" >"$d/sub/deep/run"; chmod 750 "$d/sub/deep/run"
            echo x >"$d/closed/inside"; chmod 500 "$d/closed"
            ln -s ../file "$d/sub/link"; ln -s /etc/passwd "$d/outside"; mkfifo "$d/pipe"
            touch -d "2001-02-03 04:05:06.5" "$d/file" "$d/sub"
        done' "$work"
}
shape() { (cd "$1" && find . ! -type p -printf '%P %y %l\n' | sort; find . -type f ! -path ./pipe -exec cksum {} + | sort); }
make
run as_user sgather -k -j "$id" "$work/%N" got
is "a directory is none without -r" "$code" 1
is "and leaves nothing" "$(ls -d got* 2>/dev/null)" ""
for how in "" -C; do
    run as_user sgather -r -k $how -j "$id" "$work/%N" got
    is "sgather -r $how" "$code $err" "0 "
    for at in n1 n2 n3; do is "all of $at" "$(shape "got.$at")" "$(shape "$work/$at")"; done
    is "modes" "$(stat -c %a got.n1/sub/deep/run got.n1/closed got.n1)" "$(stat -c %a "$work"/n1/sub/deep/run "$work"/n1/closed "$work"/n1)"
    run as_user sgather -r -k -j "$id" "$work/%N" got
    like "what is there is not mixed with it" "$code $err" "^1 sgather: error: n[123]: .*(not empty|exists)"
    is "and nothing else is left" "$(ls -d got* | tr '\n' ' ')" "got.n1 got.n2 got.n3 "
    chmod -R u+w got.* && rm -rf got.*
done
run as_user sgather -r -p -k -j "$id" -w n2 "$work/%N" got
is "-p keeps times" "$code $(stat -c %.1Y got.n2/file got.n2/sub | tr '\n' ' ')" "0 $(stat -c %.1Y "$work"/n2/file "$work"/n2/sub | tr '\n' ' ')"
chmod -R u+w got.* && rm -rf got.*
run as_user sgather -r -k -j "$id" "$work/%N/file" one
is "-r of a file is that file" "$code $(cat one.n3)" "0 from n3"
chmod -R u+w "$work"
run as_user env SGATHER_RECURSIVE=1 sgather -j "$id" "$work/%N" moved
is "without -k it is moved" "$code $(ls -A "$work") $(cat moved.n1/file)" "0  from n1"
as_user mkdir -p "$work/n1"
run as_user sgather -r -f -k -j "$id" "$work/%N" some
is "-f: some nodes without it" "$code $(ls -d some.*)" "0 some.n1"
ln -sfn "$PWD/moved.n1" "$work/n2"
run as_user sgather -r -k -w n2 -j "$id" "$work/%N" by
is "a link is not followed" "$code" 1
mkdir -p secret/inner && echo x >secret/inner/file && chmod 700 secret/inner
if [ "$(id -u)" -eq 0 ]; then
    run as_user sgather -r -k -w n1 -j "$id" "$PWD/secret" stolen
    like "what the user cannot read" "$code $err" "^1 sgather: error: n1: .*Permission denied"
    is "leaves nothing either" "$(ls -d stolen* 2>/dev/null)" ""
fi

echo data >data
for width in 1 off; do
    run as_user sbcast -f --treewidth=$width -j "$id" data "$PWD/sent.%N"
    is "sbcast --treewidth=$width" "$code $(cat sent.n1 sent.n2 sent.n3 | uniq -c | tr -s ' ')" "0  3 data"
done
run as_user sbcast --treewidth=none -j "$id" data "$PWD/sent.%N"
isnt() { if [ "$2" != "$3" ]; then pass "$1"; else fail "$1" "got: $2"; fi; }
isnt "a width that is none" "$code" 0
done_testing
