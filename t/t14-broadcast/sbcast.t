#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# sbcast.t - files to and from the nodes of a job: sbcast, sgather, srun --bcast; who may, what is left after a failure
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 4 --cpus 4
cd "$(user_dir)"
work=$T/nodes
mkdir "$work" && chmod 777 "$work"

id=$(as_user sbatch --parsable -N4 -o job.out --wrap 'while [ ! -e stop ]; do [ -e go ] && { bash ./go; echo "rc=$?"; mv go gone; touch done; }; sleep 0.05; done')
ok "a job on four nodes" wait_for 20 job_is "$id" RUNNING
inside() { as_user rm -f done; as_user sh -c 'printf "%s\n" "$1" >go.new; mv go.new go' - "$1"; wait_for 60 test -e done; }

as_user sh -c 'head -c 3000000 /dev/urandom >src; chmod 750 src; touch -d 2020-02-03T04:05:06 src'
sum=$(sha256sum <src)
same() { local f; for f in "$@"; do [ "$(sha256sum <"$f")" = "$sum" ] || return 1; done; }

# Inside the job, as its user.
inside "sbcast src '$work/a.%N'"
like "sbcast inside the job" "$(tail -1 job.out)" "rc=0"
ok "every node has the file" same "$work"/a.n1 "$work"/a.n2 "$work"/a.n3 "$work"/a.n4
is "it is the user's, with its mode" "$(stat -c '%u %a' "$work/a.n3")" "$(stat -c '%u %a' src)"
unlike "its time is now" "$(stat -c %y "$work/a.n3")" "2020-02-03"

# From outside, with -j.
run as_user sbcast -j "$id" src "$work/a.%N"
is "a file that is there stays" "$code" 1
like "and it is said, with the node" "$err" "sbcast: error: REQUEST_FILE_BCAST\(n[1-4]\): .*File exists"
is "nothing half-written is left" "$(ls -A "$work" | grep -c spur-copy)" 0
as_user sh -c 'for n in 1 2 3 4; do echo old >'"$work"'/a.n$n; done'
run as_user sbcast -f -p -C -F 1 -s 64k -j "$id" src "$work/a.%N"
is "--force --preserve --compress --fanout=1 --size=64k" "$code$err" 0
ok "replaces it" same "$work"/a.n1 "$work"/a.n2 "$work"/a.n3 "$work"/a.n4
is "with mode and time" "$(stat -c '%a %Y' "$work/a.n4")" "$(stat -c '%a %Y' src)"
run as_user env SBCAST_FORCE=1 SBCAST_COMPRESS=none sbcast -j "$id" -w n2,n3 src "$work/b.%N"
is "some nodes, options from the environment" "$code $(cd "$work" && echo b.*)" "0 b.n2 b.n3"
as_user touch empty
as_user sbcast -j "$id" empty "$work/e.%N"
is "an empty file" "$(stat -c %s "$work"/e.n*| tr '\n' ' ')" "0 0 0 0 "
as_user mkdir "$work/into"
as_user sbcast -f -j "$id" -w n1 src "$work/into/"
ok "a destination that ends with / keeps the name" same "$work/into/src"

# One node fails: all of it.
as_user sh -c "echo mine >$work/c.n3"
run as_user sbcast -j "$id" src "$work/c.%N"
like "a failure of one node names it" "$code $err" "1 sbcast: error: REQUEST_FILE_BCAST\(n3\): .*File exists"
left() { [ "$(ls -A "$work" | grep -c spur-copy)" -gt 0 ]; }
not_left() { ! left; }
ok "everywhere" wait_for 10 not_left
is "the one that was there is untouched" "$(cat "$work/c.n3")" mine
run as_user sbcast -j "$id" src "$work/into"
like "a directory is not replaced" "$code $err" "1 .*Is a directory"
run as_user sbcast -j "$id" src /proc/x.%N
is "where the user cannot write" "$code" 1
run as_user sbcast -j "$id" absent "$work/x"
like "a source that is not there" "$code $err" "1 sbcast: error: Can't open \`absent\`: No such file or directory"
run as_user env -u SLURM_JOB_ID sbcast src "$work/x"
like "without a job" "$code $err" "1 sbcast: error: Need a job id to run this command"
run as_user sbcast src
like "one name" "$code $err" "1 sbcast: error: Need two file names, have 1 names"
run as_user sbcast -j "$id" -w n9 src "$work/x"
is "a node outside the job" "$code" 1

# Who may.
if [ "$(id -u)" -eq 0 ]; then
    other() { setpriv --reuid 20002 --regid 20002 --clear-groups -- "$@"; }
    cp src /tmp/"${T##*/}".src && chmod 644 /tmp/"${T##*/}".src
    run other sbcast -j "$id" /tmp/"${T##*/}".src "$work/o.%N"
    like "another user is refused" "$code $err" "1 sbcast: error: .*([Aa]ccess|[Pp]ermission|Invalid)"
    run other sgather -k -j "$id" "$work/a.%N" "$work/stolen"
    is "and cannot fetch" "$code" 1
    rm -f /tmp/"${T##*/}".src
    ln -s "$work" "$T/rootlink"
    run sbcast -j "$id" src "$work/root.%N"
    is "root may, and writes as the job's user" "$code $(stat -c %u "$work/root.n2")" "0 20001"
    run sbcast -j "$id" src "$T/x.%N"
    is "nowhere that the user could not" "$code" 1
    other ln -s "$work" "$work/trap"
    run as_user sbcast -j "$id" src "$work/trap/x.%N"
    like "not through another user's link" "$code $err" "1 .*is a link of another user"
    run as_user sbcast -j "$id" src "$T/rootlink/r.%N"
    is "but through root's" "$code" 0
    echo keep >"$T/secret"
    as_user ln -s "$T/secret" "$work/l.n1"
    run as_user sbcast -f -j "$id" -w n1 src "$work/l.%N"
    is "a link at the end is replaced, not followed" "$code $(cat "$T/secret") $(stat -c %F "$work/l.n1")" "0 keep regular file"
fi

# A large file does not grow the agents.
as_user truncate -s 200M big
peak() { local pid; for pid in $(pgrep -f "spurd .*$D" ); do awk '/VmHWM/ { print $2 }' /proc/$pid/status; done | sort -n | tail -1; }
before=$(peak)
run as_user sbcast -j "$id" big "$work/big.%N"
is "200 MB to four nodes" "$code $(stat -c %s "$work/big.n4")" "0 209715200"
after=$(peak)
ok "no agent grew by 32 MB ($before to $after KB)" test $((after - before)) -lt 32768
rm -f "$work"/big.*

# Back again.
run as_user sgather -k -j "$id" "$work/a.%N" got
is "sgather" "$code" 0
ok "fetches from every node" same got.n1 got.n2 got.n3 got.n4
ok "and leaves them there with --keep" test -e "$work/a.n1"
run as_user sgather -p -C -F 2 -j "$id" "$work/a.%N" got
is "--preserve --compress --fanout" "$code $(stat -c '%a %Y' got.n2)" "0 $(stat -c '%a %Y' src)"
not_ok "without --keep they are removed" ls "$work"/a.n1
as_user cp src "$work/only.n2"
run as_user sgather -j "$id" "$work/only.%N" some
like "a node without the file" "$code $err" "1 .*sgather: error: n1: .*No such file"
ok "the others are fetched" same some.n2
as_user cp src "$work/only.n3"
run as_user sgather -f -j "$id" "$work/only.%N" some
is "is no error with --force" "$code$err" 0
inside "cp src $work/in.n1; sgather -k -w n1 '$work/in.%N' in"
ok "sgather inside the job" same in.n1

# srun --bcast.
as_user cp "$(command -v id)" prog
run as_user srun -N2 -n2 -l --bcast="$work/p.%N" ./prog -u
is "srun --bcast runs the copy" "$code $(sort <<<"$out" | tr '\n' ' ')" "0 0: $(as_user id -u) 1: $(as_user id -u) "
ok "on its nodes" test -x "$work/p.n1"
run as_user srun -N1 -n1 --bcast="$work/into/" bash -c 'echo $0; readlink /proc/$$/exe'
like "a directory: its own name" "$out" "$work/into/slurm_bcast_[0-9]+\.0_n[1-4]"
run as_user srun -N1 -n1 --bcast="$work/q.%N" --send-libs --bcast-exclude=NONE bash -c 'echo $LD_LIBRARY_PATH'
like "--send-libs" "$code $out" "^0 $work/q\.n[1-4]_libs"
ok "brings what the program needs" sh -c "ls $work/q.n*_libs/libc.so.6"
run as_user sbcast -f --send-libs --exclude=NONE -j "$id" -w n2 prog "$work/q2.%N"
ok "so does sbcast" sh -c "ls $work/q2.n2_libs/libc.so.6"
run as_user srun -N1 --bcast=/proc/none/x ./prog
like "what cannot be copied does not run" "$code $err" "1 .*srun: error: Failed to broadcast"

as_user touch stop
ok "the job ends" wait_for 20 job_is "$id" COMPLETED
run as_user sbcast -j "$id" src "$work/late.%N"
is "and takes no more files" "$code" 1
done_testing
