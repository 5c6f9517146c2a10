#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# x11-home.t - x11_parameters = home_xauthority: cookies of displays are in the user's own file
. "$(dirname "$0")/../lib.sh"
command -v python3 >/dev/null || skip_all "there is no python3"
printf '[jobs]\nx11_parameters = "home_xauthority"\n\n[hooks]\nprolog_flags = "X11"\n' >"$T/extra.toml"
cluster_up --nodes 2 --cpus 4 --conf "$T/extra.toml"
fake=$HERE/x11-fake
cd "$(user_dir)"
export HOME=$PWD
unset DISPLAY XAUTHORITY
as_user mkdir x
as_user "$fake" server x >/dev/null 2>&1 &
trap 'kill "$(cat x/pid)" 2>/dev/null; finish' EXIT
ok "an X server" wait_for 20 test -e x/display
as_user cp -p x/Xauthority .Xauthority
export DISPLAY=$(cat x/display)
before=$(od -An -tx1 .Xauthority)
run as_user srun -N2 --x11 sh -c 'stat -c %a $HOME/.Xauthority; '"$fake client 50 2"
is "two nodes with one file" "$code $(grep -c '^600$' <<<"$out") $(grep -c 'None good' <<<"$out")" "0 2 2"
same() { [ "$(od -An -tx1 .Xauthority)" = "$before" ]; }
ok "what was written goes with the step, what was there stays" wait_for 20 same
is "no lock is left" "$(ls -A | grep -c Xauthority-)" 0
as_user touch .Xauthority-c .Xauthority-l
as_user sh -c 'sleep 1; rm -f .Xauthority-c .Xauthority-l' &
run as_user srun --x11 "$fake" client 5 1
is "who writes at the same time is waited for" "$code" 0
done_testing
