#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Files of a job are opened as its user: no path leads where the user may not go.
# groups: asan
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all "needs root, to be an ordinary user"
spur() { (ulimit -n 4096 && command spur "$@"); } # what daemons have
cluster_up --nodes 1 --cpus 4
unset -f spur
ulimit -Sn 1024
home=$(user_dir)
cd "$home" || exit 1
sub() { as_user sbatch --parsable "$@"; }
ended() { wait_for 30 eval "[[ \$(job_state $1) =~ ^(COMPLETED|FAILED|CANCELLED|TIMEOUT)$ ]]"; }
not_opened() { ended "$1"; scontrol show job "$1" | grep -o 'ExitCode=[0-9:]*'; } # 0:53 is a file that could not be opened
ends() { ended "$1"; job_state "$1"; }
echo 'for root only' >"$T/secret"
chmod 600 "$T/secret"
ln -s "$T/secret" "$home/link"

# A process of root whose root directory an ordinary user may not look into.
setsid sleep 300 &
other=$!
trap 'kill $other 2>/dev/null; finish' EXIT
not_ok "the test can tell: the user may not" as_user ls "/proc/$other/root/"

# ---- /proc/sys: writable for the effective uid 0 ----
before=$(cat /proc/sys/kernel/domainname)
job=$(sub -o /proc/sys/kernel/domainname --wrap 'echo taken')
is "--output into /proc/sys cannot be opened" "$(not_opened "$job")" ExitCode=0:53
is "and writes nothing" "$(cat /proc/sys/kernel/domainname)" "$before"
job=$(sub -o /dev/null -e /proc/sys/kernel/domainname --wrap 'echo taken >&2')
is "--error neither" "$(not_opened "$job") $(cat /proc/sys/kernel/domainname)" "ExitCode=0:53 $before"

# ---- /proc/PID/root ----
job=$(sub -o "/proc/$other/root$home/through" --wrap 'echo x')
is "--output through /proc/PID/root fails" "$(ends "$job")" FAILED
not_ok "and makes no file" test -e "$home/through"
job=$(sub -i "/proc/$other/root/etc/hostname" -o "$home/in.out" --wrap 'cat')
is "--input neither" "$(ends "$job")" FAILED
job=$(sub -D "/proc/$other/root/etc" -o "$home/dir.out" --wrap 'pwd -P')
ended "$job"
like "--chdir goes to /tmp instead" "$(cat "$home/dir.out")" "couldn't chdir to .*going to /tmp instead"$'\n'/tmp
job=$(sub -o "/proc/self/cwd/magic" -D "$home" --wrap 'echo x')
is "no magic link of /proc is followed" "$(ends "$job")" FAILED

# ---- links ----
job=$(sub -o "$home/link" --wrap 'echo x')
is "--output through a link fails" "$(ends "$job")" FAILED
is "and changes nothing" "$(cat "$T/secret")" 'for root only'
job=$(sub -i "$home/link" -o "$home/link.out" --wrap cat)
is "--input through a link fails" "$(ends "$job")" FAILED

# ---- spur logs: what the output has become meanwhile ----
job=$(sub -o "$home/mine.out" --wrap 'echo mine')
ended "$job"
is "the owner reads the output" "$(as_user spur logs "$job")" mine
as_user ln -sf "$T/secret" "$home/mine.out"
run as_user spur logs "$job"
unlike "but not through a link to what is not his" "$out" 'root only'
isnt_zero=$code
as_user ln -sf "/proc/$other/root$T/secret" "$home/mine.out"
run as_user spur logs "$job"
unlike "nor through /proc/PID/root" "$out" 'root only'
is "both say so" "$((isnt_zero != 0)) $((code != 0))" '1 1'

# ---- sbcast, sgather ----
echo 'of the user' >"$home/file"
cat >"$home/copies" <<SCRIPT
#!/bin/bash
sbcast -f "$home/file" "/proc/$other/root$home/cast" && echo cast-1
sbcast -f "$home/file" /proc/sys/kernel/domainname && echo cast-2
sbcast -f "$home/file" "$T/root-only/cast" && echo cast-3
sgather "/proc/$other/root/etc/hostname" "$home/got" && echo got-1
sgather "$home/link" "$home/got" && echo got-2
sbcast -f "$home/file" "$home/cast.fine" && echo fine
SCRIPT
mkdir -m 700 "$T/root-only"
job=$(sub -o "$home/copies.out" "$home/copies")
ended "$job"
is "copies: only that which the user may" "$(grep -E '^(cast|got|fine)' "$home/copies.out")" fine
is "the copy is the user's" "$(stat -c %u "$home/cast.fine")" $TEST_UID

# ---- limits ----
job=$(as_user bash -c 'ulimit -Sn 100; exec sbatch --parsable -o limits.out --wrap "ulimit -Sn; nice"')
is "a lower limit goes with the job" "$(ends "$job") $(head -n 1 "$home/limits.out")" "COMPLETED 100"
job=$(as_user bash -c "ulimit -n 5000 && exec sbatch --parsable -o '$home/high.out' --wrap 'ulimit -Hn; echo ran'")
is "a limit above the node's does not fail the job" "$(ends "$job") $(grep -x ran "$home/high.out")" 'COMPLETED ran'
like "the job is told" "$(cat "$home/high.out")" "Can't propagate RLIMIT_NOFILE"
ok "the node's hard limit stays" grep -qx 4096 "$home/high.out"
done_testing
