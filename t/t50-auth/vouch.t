#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Commands inside jobs and on login nodes work without set-up: the agent of the host vouches for its users.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all "needs root, to be several users"

cat >"$T/extra.conf" <<'CONF'
[access]
login_nodes = ["login[1-2]"]
CONF
cluster_up --nodes 2 --cpus 4 --conf "$T/extra.conf"
home=$(user_dir)
mapfile -d '' args <"/proc/$(cut -d' ' -f1 "$D/run/n1.pid")/cmdline"
for arg in "${args[@]}"; do [[ $arg = http://* ]] && url=$arg; [[ $arg = *join.token ]] && token=$arg; done
sock_of() { echo "unix:$(sed -n 's/.* run=\([^ ]*\) .*/\1/p' "$D/log/$1.log" | tail -n 1)/spurd.sock"; }

# As on a host without a controller: nothing says who we are.
far() { env -u SPUR_CONF SPUR_CONTROLLER_ADDR="$url" "$@"; }
user() { as_user env -u SPUR_CONF SPUR_CONTROLLER_ADDR="$url" "$@"; }
run user squeue
is "without anybody who vouches, nothing is allowed" "$code" 1
like "and it says so" "$err" "[Aa]uthentic|credential|who"

# Inside a job.
cat >"$home/inside.sh" <<JOB
#!/bin/bash
export SPUR_CONTROLLER_ADDR=$url
unset SPUR_CONF
squeue -h -j \$SLURM_JOB_ID -o 'sees %u %T'
sbatch --parsable -H -o /dev/null --wrap true >$home/from_inside && echo submitted
touch $home/up
while [ ! -e $home/done ]; do sleep 0.1; done
JOB
chmod 755 "$home/inside.sh"
id=$(cd "$home" && as_user sbatch --parsable -w n1 -o "$home/inside.out" "$home/inside.sh")
wait_for 60 test -e "$home/up"
is "commands inside a job know their user" "$(sed -n 1p "$home/inside.out")" "sees $TEST_UID RUNNING"
is "and may submit" "$(sed -n 2p "$home/inside.out")" "submitted"
is "as that user" "$(squeue -h -j "$(cat "$home/from_inside")" -o %u)" "$TEST_UID"

# The node of the job vouches for this user only.
export SPUR_NODE_SOCKET
SPUR_NODE_SOCKET=$(sock_of n1)
ok "its owner is vouched for on that node" user squeue
run setpriv --reuid 20002 --regid 20002 --clear-groups -- env -u SPUR_CONF SPUR_CONTROLLER_ADDR="$url" squeue
is "another user is not" "$code" 1
like "because there is no job of theirs" "$err" "has no job on node 'n1'"
SPUR_NODE_SOCKET=$(sock_of n2)
run user squeue
like "nor the owner on another node" "$err" "has no job on node 'n2'"
root_id=$(submit -w n1 -o /dev/null --wrap 'sleep 600')
wait_for 30 job_is "$root_id" RUNNING
SPUR_NODE_SOCKET=$(sock_of n1)
run far squeue
is "root is the node there, and reads" "$code" 0
run far scontrol update partition=debug state=down
is "but is not an administrator, not even with a job there" "$code" 1
scancel "$root_id"
touch "$home/done"
wait_for 30 job_is "$id" COMPLETED
wait_for 30 eval '! user squeue'
run user squeue
like "after the job nobody is" "$err" "has no job on node"

# A login node.
"$SPUR_BUILD/bin/spurd" --login -D -N login2 --controller "$url" --token-file "$token" --spool-dir "$T/login2" \
    --run-dir "$T/login2-run" --socket "$T/login2.sock" >"$T/login2.log" 2>&1 &
second=$!
ok "a login host does not join with a token that is not for its name" wait_for 30 grep -q "join.failed.*needs a token for its name" "$T/login2.log"
kill $second
wait $second 2>/dev/null
is "and ends well when it is told to" "$?" 0
(umask 077; spur token --join --node login1 >"$T/login.token")
"$SPUR_BUILD/bin/spurd" --login -D -N login1 --controller "$url" --token-file "$T/login.token" --spool-dir "$T/login" \
    --run-dir "$T/login-run" --socket "$T/login.sock" >"$T/login.log" 2>&1 &
login=$!
"$SPUR_BUILD/bin/spurd" --login -D -N other1 --controller "$url" --token-file "$token" --spool-dir "$T/other" \
    --run-dir "$T/other-run" --socket "$T/other.sock" >"$T/other.log" 2>&1 &
other=$!
wait_for 30 test -S "$T/login.sock"
SPUR_NODE_SOCKET=unix:$T/login.sock
if wait_for 30 user squeue; then pass "everybody is vouched for on a login node"; else fail "everybody is vouched for on a login node" "$(cat "$T/login.log")"; fi
ok "which also says where the controllers are" as_user env -u SPUR_CONF -u SPUR_CONTROLLER_ADDR squeue
run user sbatch --parsable -H -o /dev/null -D / --wrap true
is "a user submits from there" "$code" 0
is "as that user" "$(squeue -h -j "$out" -o %u)" "$TEST_UID"
run user scontrol update node n1 state=drain reason=x
is "and has a user's rights" "$code" 1
run far squeue
is "an administrator is not vouched for there" "$code" 1
like "unless the site says so" "$err" "login hosts do not vouch for administrators here .access.login_admins."
SPUR_NODE_SOCKET=unix:$T/other.sock
run user squeue
is "a host that is not in access.login_nodes vouches for nobody" "$code" 1
wait_for 20 grep -q "join.failed" "$T/other.log"
like "it could not even join" "$(cat "$T/other.log")" "not in the configuration"

# A node that does not ask its own socket first: the controller decides.
cat >"$T/ask.py" <<'PY'
import base64, json, sys, grpc
url, token, uid = sys.argv[1].replace("http://", ""), open(sys.argv[2]).read().strip(), int(sys.argv[3])
body, rest = b"\x08", uid
while True:
    body += bytes([rest & 0x7f | (0x80 if rest > 0x7f else 0)])
    rest >>= 7
    if not rest: break
call = grpc.insecure_channel(url).unary_unary("/spur.Agents/Vouch", lambda m: m, lambda m: m)
try:
    reply = call(body, metadata=[("authorization", "Bearer " + token)], timeout=10)
    claims = json.loads(base64.urlsafe_b64decode(reply.split(b".")[1] + b"=="))
    print("token", "of a user" if "uid" in claims or "sun" in claims else "of a node")
except grpc.RpcError as err: print(err.code().name, err.details())
PY
if /usr/bin/python3 -c 'import grpc' 2>/dev/null; then
    scancel -u "$TEST_UID" >/dev/null 2>&1
    ask() { /usr/bin/python3 "$T/ask.py" "$url" "$@" 2>&1 | tail -n 1; }
    like "F22: a node may not vouch for a user without a job there" "$(ask "$D/spool/n1/node.token" $TEST_UID)" "^PERMISSION_DENIED .*no job"
    is "F22: nor for root, who is the node" "$(ask "$D/spool/n1/node.token" 0)" "token of a node"
    is "a login node may" "$(ask "$T/login/node.token" $TEST_UID)" "token of a user"
    (umask 077; as_user scontrol token | sed 's/^SLURM_JWT=//' >"$T/user.token")
    like "F22: a user may not at all" "$(ask "$T/user.token" $TEST_UID)" "^PERMISSION_DENIED"
else
    pass "F22 # skip python3-grpcio is not installed"
fi
kill $login $other
wait $login $other 2>/dev/null
done_testing
