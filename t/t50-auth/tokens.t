#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# How long a token lasts: a day for who is known first hand, and no longer than itself for who shows one.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all "needs root, to be an ordinary user"
printf '[access]\ntoken_lifespan_max = 7200\nlogin_nodes = ["login1"]\n' >"$T/conf.toml"
cluster_up --nodes 2 --cpus 4 --conf "$T/conf.toml"
cd "$(user_dir)" || exit 1
tcp=http://127.0.0.1:$(cut -d' ' -f1 "$D/run/ports")
claim() { # TOKEN NAME
    python3 -c 'import base64, json, sys
part = sys.argv[1].split("=", 1)[-1].split(".")[1]
print(json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))).get(sys.argv[2], ""))' "$1" "$2"
}
seconds() { echo $(($(claim "$1" exp) - $(claim "$1" iat))); }
sock_of() { echo "unix:$(sed -n 's/.* run=\([^ ]*\) .*/\1/p' "$D/log/$1.log" | tail -n 1)/spurd.sock"; }

first=$(as_user spur token --lifespan 0:0:600)
is "by the kernel" "$(seconds "$first") $(claim "$first" spur_by)" '600 unix'
is "half an hour by default" "$(seconds "$(as_user spur token)")" 1800
is "up to the site's limit" "$(seconds "$(as_user scontrol token lifespan=7200)")" 7200
run as_user scontrol token lifespan=7201
like "not above it" "$((code != 0)) $err" '1 .*at most 7200 seconds \(access.token_lifespan_max\)'
run scontrol token username=daemon lifespan=99999
like "administrators neither" "$((code != 0)) $err" '1 .*at most 7200 seconds'

with() { env -u SPUR_CONF SPUR_CONTROLLER_ADDR="$tcp" SPUR_JWT="${1#*=}" "${@:2}"; }
second=$(with "$first" scontrol token lifespan=7200)
ok "a token is exchanged for one that ends no later" test "$(claim "$second" exp)" -le "$(($(claim "$first" exp) + 1))"
is "which says so" "$(claim "$second" spur_by)" jwt
third=$(with "$second" scontrol token lifespan=7200)
ok "and so on" test "$(claim "$third" exp)" -le "$(($(claim "$first" exp) + 2))"

# A compute node vouches for a minute; what it vouched for does not become more.
as_user sbatch -w n1 -o /dev/null --wrap 'sleep 300' >/dev/null
wait_for 30 eval '[ "$(squeue -h -t R -o %A | wc -l)" = 1 ]'
far() { as_user env -u SPUR_CONF SPUR_CONTROLLER_ADDR="$tcp" SPUR_NODE_SOCKET="$(sock_of "$1")" "${@:2}"; }
stolen=$(far n1 scontrol token lifespan=7200)
ok "a compute node's vouch gives its remaining time" test "$(seconds "$stolen")" -le 60
(umask 077; spur token --join --node login1 >"$T/login.token")
"$SPUR_BUILD/bin/spurd" --login -D -N login1 --listen none --controller "$tcp" --token-file "$T/login.token" --spool-dir "$T/login" \
    --run-dir "$T/login-run" --socket "$T/login.sock" >"$T/login.log" 2>&1 &
agent=$!
trap 'kill $agent 2>/dev/null; finish' EXIT
vouched() { as_user env -u SPUR_CONF SPUR_CONTROLLER_ADDR="$tcp" SPUR_NODE_SOCKET="unix:$T/login.sock" "$@"; }
wait_for 30 vouched squeue
login=$(vouched scontrol token lifespan=7200)
is "a login host's gives what is asked for" "$(seconds "$login")" 7200
again=$(with "$login" scontrol token lifespan=7200)
ok "once: that token is a token like others" test "$(claim "$again" exp)" -le "$(($(claim "$login" exp) + 1))"
done_testing
