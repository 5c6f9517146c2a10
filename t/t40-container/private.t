#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# private.t - each job has its own /tmp and /dev/shm: in scripts, steps, sbcast, spur exec; nothing is left
TMPDIR=/var/tmp # what is in /tmp, jobs do not see
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null || skip_all "needs mount namespaces"
mark=spur-private.$$
trap 'rm -rf /tmp/$mark* /dev/shm/$mark*; finish' EXIT
touch /tmp/$mark.host /dev/shm/$mark.host
cat >"$T/init" <<END
#!/bin/bash
echo "\$SLURM_JOB_ID \$(id -u)" >>$T/inits
END
chmod 755 "$T/init"
cat >"$T/conf.toml" <<END
[private]
base_path = "$T/base"
auto_base_path = true
init_script = "$T/init"
END
cluster_up --nodes 2 --cpus 4 --conf "$T/conf.toml"
cd "$(user_dir)"
left() { [ -z "$(find "$T/base" -mindepth 2 2>/dev/null)" ] && [ -z "$(ls "$D"/*/spool/private "$D"/*/private 2>/dev/null)" ]; }

# The build may be in /tmp, which jobs do not see: what the script calls is elsewhere.
mkdir "$T/bin"
cp -L "$SPUR_BUILD/bin/spur" "$T/bin/spur"
ln -s spur "$T/bin/srun"
ln -s spur "$T/bin/sbcast"
cat >job.sh <<END
#!/bin/bash
PATH=$T/bin:\$PATH
ls /tmp /dev/shm | grep $mark
echo script >/tmp/$mark.a
echo shm >/dev/shm/$mark.a
srun -N2 -n2 bash -c 'cat /tmp/$mark.a /dev/shm/$mark.a; echo \$SLURM_PROCID >>/tmp/$mark.b'
srun -n1 cat /tmp/$mark.b
echo broadcast >file
sbcast file /tmp/$mark.c
srun -N2 -n2 -l cat /tmp/$mark.c
touch ready
while [ ! -e go ]; do sleep 0.1; done
cat /tmp/$mark.d
END
for user in "" as_user; do
    u=${user:-root}
    mkdir -p "$T/home/$u" && chmod 777 "$T/home/$u" && cd "$T/home/$u" && cp ../job.sh .
    job=$($user sbatch --parsable -N2 -n2 --ntasks-per-node=1 -o out job.sh)
    wait_for 30 test -e ready
    is "$u: script and steps share what others do not see" "$(sort out | tr '\n' ,)" "$(printf '%s\n' '0: broadcast' '1: broadcast' 0 'script' 'shm' "$(grep -h 'No such' out)" | sort | tr '\n' ,)"
    is "$u: the other node has its own" "$(grep -c 'No such file' out)" 2
    is "$u: nothing is seen outside" "$(ls /tmp /dev/shm | grep "$mark" | tr '\n' ' ')" "$mark.host $mark.host "
    is "$u: the directory is the sticky one that /tmp is" "$($user spur exec "$job" stat -c '%a %u' /tmp)" "1777 0"
    run $user spur exec "$job" bash -c "cat /tmp/$mark.a; echo exec >/tmp/$mark.d"
    is "$u: spur exec is inside" "$out" script
    touch go
    wait_for 30 job_is "$job" COMPLETED
    is "$u: the script has it" "$(tail -1 out)" exec
    ok "$u: everything is removed" wait_for 20 left
    is "$u: the script of the site ran once for each node, as root" "$(grep -c "^$job 0$" "$T/inits")" 2
    # files of the job that are in a private directory
    job=$($user sbatch --parsable -o "/tmp/$mark.out" --wrap "echo hello; sleep 60")
    ok "$u: spur logs finds output in a private directory" wait_for 20 bash -c "$user true; spur logs $job 2>/dev/null | grep -q hello" 
    scancel "$job"
    wait_for 20 job_is "$job" CANCELLED
    run $user srun -n2 bash -c "touch /dev/shm/$mark.x; ls /dev/shm | grep $mark"
    is "$u: an allocation of srun's own too" "$(sort -u <<<"$out")$err" "$mark.x"
done

# Another agent finds it again, and removes it at the end.
rm -rf ready go out
job=$(as_user sbatch --parsable -o out job.sh)
wait_for 30 test -e ready
for pid in $(pgrep -x spurd); do
    ! tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q -- "-N n1 .*$D/" || kill -9 "$pid"
    while [ "$(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -c -- "-N n1 .*$D/")" = 1 ]; do sleep 0.02; done
done
spur up --dir "$D" -q
wait_for 30 as_user spur exec "$job" true
is "a new agent knows it" "$(as_user spur exec "$job" cat /tmp/$mark.a)" script
as_user spur exec "$job" bash -c "echo new >/tmp/$mark.d"
touch go
wait_for 30 job_is "$job" COMPLETED
is "the job goes on" "$(tail -1 out)" new
ok "and nothing is left" wait_for 20 left

# Somebody takes the name that directories in memory have: it is left alone, and another is used.
home_of() { as_user srun -n1 -N1 -w n1 sed -n 's|.* /\(spurd-0-[0-9a-f-]*\)/private/.* /dev/shm .*|\1|p' /proc/self/mountinfo; }
name=$(home_of)
like "where they are" "$name" '^spurd-0-[0-9a-f]+$'
spur down --dir "$D" >/dev/null
rm -rf "/dev/shm/$name"
as_user mkdir -m 777 "/dev/shm/$name"
spur up --dir "$D" -q
like "a job has its own where nobody else could make it" "$(home_of)" "^$name-[0-9a-f]{16}\$"
is "the other is left alone" "$(stat -c '%a %u' "/dev/shm/$name") $(ls -A "/dev/shm/$name")" "777 $TEST_UID "
ok "and nothing of ours stays" wait_for 20 eval '! ls -d "/dev/shm/$name-"*'
rm -rf "/dev/shm/$name"
done_testing
