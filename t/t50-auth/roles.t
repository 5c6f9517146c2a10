#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Who may do what: anonymous, another user, the owner, an administrator; and with whose token.
# groups: asan
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all "needs root, to be several users"
cluster_up --nodes 2 --cpus 4
cd "$(user_dir)" || exit 1
chmod 755 "$T"
sock=$SPUR_CONTROLLER_ADDR
tcp=http://127.0.0.1:$(cut -d' ' -f1 "$D/run/ports")
other() { setpriv --reuid 20002 --regid 20002 --clear-groups -- "$@"; }

mine=$(as_user sbatch --parsable -H -o /dev/null --comment=secret --wrap 'echo secret')
refused() { # NAME COMMAND…: fails, and says why
    local name=$1
    shift
    run "$@"
    if [ $code -ne 0 ] && [[ "$out$err" =~ (denied|Invalid user id|permission|who you are|only administrators|authentication|token) ]]; then
        pass "$name"
    else
        fail "$name" "exit $code" "$out" "$err"
    fi
}

# ---- another user ----
refused "another user does not hold it" other scontrol hold "$mine"
refused "does not update it" other scontrol update jobid="$mine" comment=x
refused "does not requeue it" other scontrol requeue "$mine"
run other scontrol write batch_script "$mine" -
is "does not read its script" "$code $out$err" "1 job script retrieval failed: Access/permission denied"
refused "does not suspend jobs" other scontrol suspend "$mine"
refused "does not drain nodes" other scontrol update nodename=n1 state=drain reason=x
refused "does not change partitions" other scontrol update partitionname=debug maxtime=1
refused "does not create reservations" other scontrol create reservation starttime=now duration=1 users=root nodes=n1
refused "does not reconfigure" other scontrol reconfigure
refused "does not shut down" other scontrol shutdown
refused "gets no token for others" other scontrol token username=root
refused "does not read its output" other spur logs "$mine"
other scancel "$mine" >/dev/null 2>&1
is "and does not cancel it" "$(job_state "$mine")" PENDING
is "but sees it" "$(other squeue -h -o %A)" "$mine"

# ---- the owner ----
ok "the owner updates it" as_user scontrol update jobid="$mine" comment=y
like "reads its script" "$(as_user scontrol write batch_script "$mine" - 2>&1)" "echo secret"
refused "but is no administrator" as_user scontrol update nodename=n1 state=drain reason=x

# ---- nobody ----
export SPUR_CONTROLLER_ADDR=$tcp
refused "nobody in particular submits nothing" as_user sbatch --wrap true
refused "and sees nothing" as_user squeue
refused "a token that nobody signed is refused" env SPUR_JWT=eyJhbGciOiJub25lIn0.eyJzdW4iOiJyb290IiwiZXhwIjo5OTk5OTk5OTk5fQ. squeue

# ---- tokens ----
export SPUR_CONTROLLER_ADDR=$sock
run as_user scontrol token lifespan=60
token=${out#*=}
export SPUR_CONTROLLER_ADDR=$tcp
is "a user's token is that user" "$(SPUR_JWT=$token squeue -h -o %A)" "$mine"
refused "with that user's rights" env SPUR_JWT="$token" scontrol update nodename=n1 state=drain reason=x
node_token=$(cat "$D"/spool/n1/node.token "$D"/spool/n1/*/node.token 2>/dev/null | head -n 1)
[ -z "$node_token" ] || refused "a node is no user" env SPUR_JWT="$node_token" sbatch --wrap true
refused "a changed token is refused" env SPUR_JWT="${token%????}AAAA" squeue

# ---- the administrator ----
export SPUR_CONTROLLER_ADDR=$sock
ok "the administrator drains a node" scontrol update nodename=n1 state=drain reason=test
ok "and cancels the job" scancel "$mine"
is "which is cancelled" "$(job_state "$mine")" CANCELLED
done_testing
