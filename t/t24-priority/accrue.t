#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# How many waiting jobs age: GrpJobsAccrue, MaxJobsAccrue and those of a QOS; AccrueTime; ACCRUE_ALWAYS.
# seconds: 60
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 1 --cpus 4 --mem 4G
cd "$(user_dir)" || exit 1
[ "$(id -u)" -eq 0 ] || TEST_UID=$(id -un)

# who  key  value: of three jobs two may age
rows='account grp_jobs_accrue
account max_jobs_accrue
qos grp_jobs_accrue
qos max_jobs_accrue_per_user
qos max_jobs_accrue_per_account'
{
    printf '\n[accounting]\nenforce = ["limits"]\n[priority]\nweight_age = 1000\nmax_age = "1-0"\ncalc_period = "0:01"\n'
    i=0
    while read -r who key; do
        i=$((i + 1))
        [ "$who" = account ] || printf '[[qos]]\nname = "x%d"\n%s = 2\n' $i "$key"
        printf '[[accounts]]\nname = "x%d"\n' $i
        [ "$who" = qos ] || printf '%s = 2\n' "$key"
        printf '[[users]]\nname = "%s"\naccount = "x%d"\n' "$TEST_UID" $i
    done <<<"$rows"
} >>"$D/spur.conf"
run spur config check "$D/spur.conf"
is 'the configuration is right' "$code$err" 0
ok 'and is taken' scontrol reconfigure
mine() { as_user sbatch --parsable -o /dev/null "$@" --wrap 'sleep 300'; }
accrues() { scontrol show job "$1" | sed -n 's/.*AccrueTime=\([^ ]*\).*/\1/p'; }
ages() { [ "$(accrues "$1")" != Unknown ]; }

busy=$(mine --exclusive)
ok 'the node is busy' wait_for 20 job_is "$busy" RUNNING
declare -a first second third
i=0
while read -r who key; do
    i=$((i + 1))
    case $who in qos) by=(-A "x$i" -q "x$i") ;; *) by=(-A "x$i") ;; esac
    first[i]=$(mine "${by[@]}")
    second[i]=$(mine "${by[@]}")
    third[i]=$(mine "${by[@]}")
    like "$who $key: the first ages" "$(accrues "${first[i]}")" '^20..-'
    like "$who $key: and the second" "$(accrues "${second[i]}")" '^20..-'
    is "$who $key: the third does not" "$(accrues "${third[i]}")" Unknown
    like "$who $key: and says why" "$(spur explain "${third[i]}")" 'its age does not count yet: (Grp|Max)JobsAccrue(PerUser|PerAccount)? of .*x'$i' is 2; 2 in use'
done <<<"$rows"
# The third ages from the turn after one of the others is gone.
i=0
while read -r who key; do
    i=$((i + 1))
    as_user scancel "${first[i]}"
    ok "$who $key: a place that is free is taken" wait_for 30 ages "${third[i]}"
done <<<"$rows"

array=$(mine -A x1 -a 1-5)
is 'an array waits too' "$(accrues "$array")" Unknown
as_user scancel "${second[1]}"
ok 'one of its tasks gets the place' wait_for 30 eval '[ "$(squeue -h -r -j '"$array"' -O AccrueTime | grep -vc "N/A\|Unknown")" = 1 ]'
ok 'over a restart of the controller' controller_again
is 'it is as it was' "$(squeue -h -r -j "$array" -O AccrueTime | grep -vc 'N/A\|Unknown')" 1
run as_user scontrol update jobid="${third[2]}" ResetAccrueTime
[ "$(id -u)" -ne 0 ] || like 'a user cannot begin anew' "$code $err" '^1 .*Access/permission denied'
was=$(accrues "${third[2]}")
ok 'an administrator can' wait_for 20 eval 'scontrol update jobid='"${third[2]}"' ResetAccrueTime && [ "$(accrues '"${third[2]}"')" != "'"$was"'" ]'

sed -i 's/^weight_age.*/&\nflags = ["ACCRUE_ALWAYS"]/' "$D/spur.conf"
ok 'ACCRUE_ALWAYS' scontrol reconfigure
held=$(mine -H -A x1)
is 'knows no limits, and counts from submission' "$(accrues "$held")" "$(scontrol show job "$held" | sed -n 's/.*SubmitTime=\([^ ]*\).*/\1/p')"
ok 'for all' ages "$array"
as_user scancel --me
done_testing
