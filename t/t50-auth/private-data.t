#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# PrivateData: what users do not see of others, in every command and format.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all "needs root, to be several users"
conf() { # WORDS
    printf '[access]\nprivate_data = [%s]\noperators = ["daemon"]\n' "$1" >"$T/conf.toml"
}
conf '"jobs", "reservations"'
cluster_up --nodes 2 --cpus 4 --conf "$T/conf.toml"
cd "$(user_dir)" || exit 1
chmod 777 .
other() { setpriv --reuid 20002 --regid 20002 --clear-groups -- "$@"; }
staff() { setpriv --reuid daemon --regid daemon --clear-groups -- "$@"; }
mine=$(as_user sbatch --parsable -J hidden -o /dev/null --wrap 'echo secret-word; srun sleep 300')
theirs=$(other sbatch --parsable -J theirs -o /dev/null --wrap 'sleep 300')
wait_for 30 job_is "$mine" RUNNING
wait_for 30 job_is "$theirs" RUNNING
wait_for 30 eval '[ -n "$(squeue -h -s -j $mine | grep "$mine.0")" ]'

# ---- jobs ----
is "the owner sees the job" "$(as_user squeue -h -o %A)" "$mine"
is "another user sees only that user's own" "$(other squeue -h -o %A)" "$theirs"
is "also when asked by number" "$(other squeue -h -j "$mine,$theirs" -o %A 2>/dev/null)" "$theirs"
unlike "squeue --json" "$(other squeue --json)" "hidden|secret-word|\"job_id\": $mine[,}]"
unlike "squeue --steps" "$(other squeue -h -s)" "$mine\\."
like "the owner's steps" "$(as_user squeue -h -s)" "$mine\\.0"
run other scontrol show job "$mine"
is "scontrol show job" "$code $out $err" '1  slurm_load_jobs error: Invalid job id specified'
unlike "scontrol show jobs" "$(other scontrol show jobs)" 'hidden|secret-word'
unlike "scontrol show jobs --json" "$(other scontrol show jobs --json)" 'hidden|secret-word'
unlike "scontrol show steps" "$(other scontrol show step 2>&1)" "StepId=$mine"
run other spur explain "$mine"
unlike "spur explain" "$out" 'hidden|secret-word'
is "and says that there is no such job" "$((code != 0))" 1
unlike "sprio" "$(other sprio -h 2>&1)" "^ *$mine "
run other timeout 20 scontrol wait_job "$mine"
unlike "watching it" "$out$err" 'ready for job'
like "an operator sees it" "$(staff squeue -h -o %A | sort -n | tr '\n' ' ')" "$mine $theirs"
like "with the command line" "$(staff scontrol show job "$mine")" secret-word
is "nor its script" "$(other scontrol write batch_script "$mine" - 2>/dev/null)" ''

# ---- reservations ----
scontrol create reservation reservationname=for_mine starttime=now duration=60 users=root nodes=n2 flags=ignore_jobs >/dev/null
scontrol create reservation reservationname=for_all starttime=now+1hour duration=60 users=20002 nodes=n1 flags=ignore_jobs >/dev/null 2>&1
unlike "reservations of others" "$(other scontrol show reservation)" for_mine
unlike "sinfo -T" "$(other sinfo -T 2>&1)" for_mine
like "the administrator sees them" "$(scontrol show reservation)" for_mine

# ---- nodes, partitions ----
ok "nodes are not hidden yet" other sinfo -h
sed -i 's/^private_data = .*/private_data = ["nodes", "partitions"]/' "$D"/*.conf "$D"/*/*.conf 2>/dev/null
ok "reconfigured" scontrol reconfigure
denied() { # NAME COMMAND…
    local name=$1
    shift
    run other "$@"
    like "$name" "$((code != 0)) $err" '1 .*Access/permission denied'
    unlike "$name: nothing is shown" "$out" 'n1|debug'
}
denied "nodes" scontrol show node n1
denied "partitions" scontrol show partition
denied "sinfo" sinfo
ok "staff sees them" staff scontrol show node n1
ok "and jobs are seen again" eval 'other squeue -h -o %A | grep -qx "$mine"'
ok "a job is submitted all the same" other sbatch -o /dev/null --wrap true
scancel "$mine" "$theirs"

# ---- words that would hide nothing ----
for word in events cloud; do
    conf "\"jobs\", \"$word\""
    run spur config check "$T/conf.toml"
    like "$word is refused" "$code:$out$err" "^1:.*private_data: '$word' would hide nothing"
done
done_testing
