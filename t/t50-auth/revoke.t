#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `spur token --revoke USER`: what was made before is refused, here and by spurdbd, also after a restart.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all "needs root, to be an ordinary user"
cluster_up --nodes 1 --cpus 4
cd "$(user_dir)" || exit 1
tcp=http://127.0.0.1:$(cut -d' ' -f1 "$D/run/ports")
with() { env -u SPUR_CONF SPUR_CONTROLLER_ADDR="$tcp" SPUR_JWT="${1#*=}" "${@:2}"; }
me=$(as_user id -u)

old=$(as_user spur token)
other=$(spur token --user daemon)
run with "$old" squeue
is "a token is good" "$code" 0
with "$old" sbatch -o /dev/null --wait --wrap 'sleep 300' >"$T/wait.out" 2>&1 &
waiting=$!
wait_for 30 eval '[ "$(squeue -h -t R -o %A | wc -l)" = 1 ]'

run as_user spur token --revoke daemon
like "nobody revokes another's" "$((code != 0)) $err" '1 .*only administrators revoke the tokens of other users'
run as_user spur token --revoke nobody-of-that-name
like "a user who does not exist" "$((code != 0)) $err" '1 .*nobody-of-that-name'
run as_user spur token --revoke "$me" --join
like "nothing beside it" "$((code != 0)) $err" '1 .*--revoke goes with no other option'
run with "$old" squeue
is "and nothing was revoked by that" "$code" 0

run as_user spur token --revoke "$me"
is "one's own tokens" "$code$out$err" 0
new=$(as_user spur token)
run with "$new" squeue
is "one that is made at once is good" "$code$err" 0
run with "$old" squeue
like "an older one is refused" "$((code != 0)) $err" '1 .*were revoked; ask for a new one'
run with "$other" squeue
is "those of others are good" "$code" 0
wait "$waiting"
like "a session under way ends" "$? $(<"$T/wait.out")" '^[1-9].*revoked'
run squeue -h -t R -o %A
is "its job does not" "$(wc -w <<<"$out")" 1

refused_by_spurdbd() { run with "$old" env SPUR_ACCOUNTING_ADDR="unix:$D/run/spurdbd.sock" sacct; [ "$code" != 0 ] && [[ $err == *revoked* ]]; }
ok "spurdbd refuses it too" wait_for 20 refused_by_spurdbd
run spur token --revoke daemon
is "administrators revoke those of anybody" "$code" 0
run with "$other" squeue
like "which are refused then" "$((code != 0)) $err" '1 .*revoked'

kill -9 "$(cut -d' ' -f1 "$D/run/ctl1.pid")"
spur up --quiet --dir "$D" >/dev/null 2>&1
wait_for 30 squeue
run with "$old" squeue
like "after a crash too" "$((code != 0)) $err" '1 .*revoked'
run with "$new" squeue
is "and the new one is good" "$code" 0
done_testing
