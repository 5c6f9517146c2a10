#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# PAM: who logs in needs a job on the node, and the session becomes a part of it.
. "$(dirname "$0")/../lib.sh"
module=$SPUR_BUILD/src/pam/pam_spur.so
[ -f "$module" ] || skip_all "built without PAM"
[ "$(id -u)" -eq 0 ] || skip_all "needs cgroups"
mount=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
[ -w "${mount:-/nosuch}/cgroup.procs" ] || skip_all "there is no cgroup version 2 to write to"
"${CC:-cc}" -D_GNU_SOURCE -o "$T/client" "$HERE/client.c" -lpam || { echo "Bail out! client.c"; exit 1; }
printf '[hooks]\nprolog_flags = ["Contain"]\n' >"$T/extra.toml"
cluster_up --nodes 1 --cpus 4 --conf "$T/extra.toml"
user=nobody uid=$(id -u nobody)
as_nobody() { setpriv --reuid "$uid" --regid "$uid" --clear-groups -- "$@"; }
mkdir "$T/pam.d"
link=$(find "$D" -name run-dir | head -1)
spool=$(dirname "$link")
stack() {
    { printf 'account required %s spool_dir=%s %s\n' "$module" "$(dirname "$spool")/%n" "nodename=$(basename "$spool") $*"
      printf 'account required pam_permit.so\nsession required %s\n' "$module"; } >"$T/pam.d/login"
}
login() { run timeout 20 "$T/client" "$T/pam.d" "$@"; }
cd /

stack
login $user true
is "without a job: refused" "$code $out" "1 refused: Permission denied"
like "and told why" "$err" 'you have no active jobs on this node'
stack action_no_jobs=ignore
login $user true
is "action_no_jobs=ignore" "$code" 0
stack action_no_jobs=perhaps
login $user true
is "an option that is none refuses everybody" "$code" 1
stack
login root true
is "root is not looked at" "$code" 0
login nosuchuser true
is "nobody knows the user" "$code" 1

# ---- with a job ----
first=$(as_nobody sbatch --parsable -o /dev/null --wrap 'sleep 300')
ok "a job of the user" wait_for 30 job_is "$first" RUNNING
login $user sh -c 'id -u; sed -n "s/^0:://p" /proc/self/cgroup'
is "with a job: let in as the user" "$code $(head -1 <<<"$out")" "0 $uid"
like "the session is in the job's extern cgroup" "$out" "/$first\.1[./]extern$"
login daemon true
is "another user is not" "$code" 1
"$T/client" "$T/pam.d" $user sleep 1000 &
session=$!
second=$(as_nobody sbatch --parsable -o /dev/null --wrap 'sleep 300')
ok "a second job" wait_for 30 job_is "$second" RUNNING
login $user sed -n 's/^0:://p' /proc/self/cgroup
like "of several jobs the newest" "$out" "/$second\.1[./]extern$"
stack action_unknown=deny
login $user true
is "action_unknown=deny" "$code" 1
stack action_unknown=allow
login $user sed -n 's/^0:://p' /proc/self/cgroup
unlike "action_unknown=allow: in no job" "$out" 'extern'
stack

# ---- the end ----
scancel "$first"
ended() { ! kill -0 $session 2>/dev/null; }
ok "the session ends with its job" wait_for 30 ended
scancel "$second"
nobodys() { login $user true; [ "$code" -eq 1 ]; }
ok "after the last job nobody is let in" wait_for 30 nobodys

# ---- what goes wrong ----
chmod 777 "$link/extern"
login $user true
is "files that others could have written: ignored" "$code" 0
stack action_generic_failure=deny
login $user true
is "action_generic_failure=deny" "$code" 1
done_testing
