#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# x11.t - --x11 of srun, salloc and sbatch, with programs that stand for an X server and its clients
. "$(dirname "$0")/../lib.sh"
command -v python3 >/dev/null || skip_all "there is no python3"
cluster_up --nodes 3 --cpus 4
fake=$HERE/x11-fake
cd "$(user_dir)"
export HOME=$PWD SHELL=/bin/bash
unset DISPLAY XAUTHORITY

run as_user srun --x11 true
is "no DISPLAY" "$code $err" "255 srun: error: No DISPLAY variable set, cannot setup x11 forwarding."
run env DISPLAY=nonsense setpriv --reuid $(id -u) srun --x11 true
is "one that is none" "$code $err" "255 srun: error: Error parsing DISPLAY environment variable. Cannot use X11 forwarding."
run as_user env DISPLAY=:77 srun --x11 true
is "one without a cookie" "$code $err" "255 srun: error: Could not retrieve magic cookie. Cannot use X11 forwarding."
run as_user srun --x11=some true
like "a mode that is none" "$err" "^srun: error: Invalid --x11 specification"

as_user mkdir x
as_user "$fake" server x >/dev/null 2>&1 &
trap 'kill "$(cat x/pid)" 2>/dev/null; finish' EXIT
ok "an X server" wait_for 20 test -e x/display
export DISPLAY=$(cat x/display) XAUTHORITY=$PWD/x/Xauthority

run as_user srun -N2 --x11 "$fake" client 3000 3
is "two nodes, three connections each, three megabytes there and back" "$code" 0
like "each node has a display and a file of its own" "$(sort <<<"$out")" "^n1 localhost:([0-9]+)\.0 (/[^ ]+) good"$'\n'"n2 localhost:([0-9]+)\.0 (/[^ ]+) good$"
file=$(awk '{ print $3; exit }' <<<"$out")
not_ok "the file goes with the step" test -e "$file"
is "the X server saw its own cookie only" "$(grep -c open x/log) $(grep -c wrong x/log)" "6 0"
run as_user srun --x11 sh -c 'cat $XAUTHORITY | od -An -tx1 | tr -d " \n"; stat -c " %a %u" $XAUTHORITY'
read -r seen mode owner <<<"$out"
is "the file is the user's alone" "$mode $owner" "600 $(as_user id -u)"
real=$(tail -c 16 x/Xauthority | od -An -tx1 | tr -d ' \n')
unlike "and holds another cookie than the X server's" "$seen" "$real"

: >x/log
run as_user srun --x11 "$fake" wrong
is "a wrong cookie" "$code $out" "3 refused: Invalid MIT-MAGIC-COOKIE-1 key"
is "is not passed on" "$(cat x/log)" ""

as_user sh -c 'echo $$ >hold.pid; exec srun --x11 "$0" hold' "$fake" >hold.out 2>hold.err &
holder=$!
ok "a connection" wait_for 30 grep -q held hold.out
listens() { ss -Hltn 2>/dev/null | awk '{ print $4 }' | grep -E ':60(1[0-9]|[2-9][0-9])$'; }
unlike "only loopback is listened on" "$(listens)" "(0\.0\.0\.0|\*|\[::\]):"
kill -9 "$(cat hold.pid)"
wait $holder 2>/dev/null
ok "ends when srun is killed" wait_for 30 grep -q closed x/log

run as_user srun -N2 -l --x11=first sh -c 'echo $SLURMD_NODENAME $DISPLAY'
like "--x11=first" "$(sort <<<"$out")" "n1 localhost:[0-9]+\.0"$'\n'"1: n2 $DISPLAY"
run as_user srun -N2 -l --x11=last sh -c 'echo $SLURMD_NODENAME $DISPLAY'
like "--x11=last" "$(sort <<<"$out")" "0: n1 $DISPLAY"$'\n'"1: n2 localhost:"
unlike "which is not ours" "$(sort <<<"$out" | tail -1)" "$DISPLAY"

run as_user salloc -Q -N2 --x11 srun "$fake" client 100 2
is "salloc --x11: its steps forward" "$code $(grep -c good <<<"$out")" "0 2"
run as_user salloc -Q -N1 srun --x11 "$fake" client 100 2
is "srun --x11 inside an allocation" "$code $(grep -c good <<<"$out")" "0 1"
run as_user salloc -Q -N1 srun sh -c 'echo $DISPLAY'
is "without it nothing changes" "$out" "$DISPLAY"
run as_user salloc --no-shell --x11
is "not with --no-shell" "$code" 1

: >x/log
cat >job.sh <<END
#!/bin/bash
#SBATCH -N2 --x11 -o job.out
$fake client 500 2
srun $fake client 500 2
END
run as_user sbatch -W job.sh
is "sbatch --x11" "$code" 0
like "the script and its steps" "$(cat job.out)" "^n1 localhost:[0-9]+\.0 /[^ ]+ good"$'\n'"n[12] .* good"$'\n'"n[12] .* good$"
is "all went to the X server" "$(grep -c open x/log) $(grep -c wrong x/log)" "6 0"
gone() { # no sbatch of this cluster is left
    local pid
    for pid in $(pgrep -x sbatch); do ! grep -qz "$D/" "/proc/$pid/environ" 2>/dev/null || return 1; done
}
ok "who forwards for it goes when the job has ended" wait_for 30 gone
run as_user sbatch --x11 --array=1-2 job.sh
is "not with --array" "$code" 1

# Its agent goes away and comes back.
as_user sbatch --x11 -w n3 -o again.out --wrap "$fake client 10 1; while [ ! -e go ]; do sleep 0.1; done; until $fake client 10 1; do sleep 0.2; done" >/dev/null
ok "a script with a display" wait_for 30 grep -q good again.out
pid=$(cut -d' ' -f1 "$D/run/n3.pid")
kill -9 "$pid"
while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done
(cd / && spur up --quiet --dir "$D" >>"$T/up.log" 2>&1)
as_user touch go
twice() { [ "$(grep -c good again.out)" -eq 2 ]; }
ok "has it again when its node's agent was killed" wait_for 40 twice
ok "and nobody is left" wait_for 40 gone
done_testing
