#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a login profile starts (--get-user-env, --export=NONE) is a process of the job: contained, limited, ended with it.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all "needs the login shell of root"
[ "$(getent passwd root | cut -d: -f7)" = /bin/bash ] || skip_all "root's login shell is not bash"
cluster_up --nodes 1 --cpus 4
mkdir "$T/login"
cd "$T/login" || exit 1
cat >.bash_profile <<'PROFILE'
export FROM_PROFILE=yes
setsid sleep 1000 </dev/null >/dev/null 2>&1 3>&- &
until [ "$(cut -d' ' -f6 /proc/$!/stat)" = $! ]; do sleep 0.01; done # it has left our session
echo $! >"$HOME/left"
ulimit -Sn >"$HOME/limit"
PROFILE
gone() { [ ! -d "/proc/$1" ] || grep -q '^State:.*Z' "/proc/$1/status"; }
# --export=NONE takes the same way, but HOME is then that of the account.
for how in --get-user-env; do
    rm -f left go out
    job=$(ulimit -Sn 321 && HOME=$T/login sbatch --parsable $how -o out --wrap "echo \$FROM_PROFILE; cat /proc/self/cgroup; while [ ! -e $T/login/go ]; do sleep 0.05; done")
    ok "$how: the job runs" wait_for 30 grep -q . out
    is "$how: with what the profile says" "$(head -n 1 out)" yes
    left=$(cat left)
    ok "$how: what the profile started runs too" kill -0 "$left"
    is "$how: in the job's cgroup" "$(cat "/proc/$left/cgroup")" "$(tail -n +2 out)"
    is "$how: with the job's limits" "$(cat limit)" 321
    touch go
    wait_for 30 job_is "$job" COMPLETED
    is "$how: the job ends" "$(job_state "$job")" COMPLETED
    ok "$how: and with it what the profile started" wait_for 10 gone "$left"
    gone "$left" || kill "$left"
done
done_testing
