#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every kind of dependency: what it waits for, how it is shown, and what becomes of one that never can be.
# groups: asan
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 1 --cpus 16 --mem 4G
cd "$(user_dir)" || exit 1
sub() { as_user sbatch --parsable -o /dev/null "$@"; }
dep() { local d=$1; shift; sub -d "$d" "$@" --wrap true; }
state() { squeue -h -t all -j "$1" -o %T; }
why() { squeue -h -t all -j "$1" -o '%T %r'; }
ends() { wait_for 30 job_is "$1" "$2"; }
show() { scontrol -o show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p" | head -n 1; }
until_file='while [ ! -e go ]; do sleep 0.1; done'

# Four jobs, one for each way to end; they are held until all who wait for them are there.
good=$(sub -H --wrap true) wrong=$(sub -H --wrap 'exit 3') gone=$(sub -H --wrap true) slow=$(sub -H --wrap "$until_file")
declare -A d
for type in after afterany afterok afternotok afterburstbuffer aftercorr; do
    for job in good wrong gone; do d[$type.$job]=$(dep "$type:${!job}"); done
done
is 'all of them wait' "$(squeue -h -t pending -o %r | sort | uniq -c | xargs)" '18 Dependency 4 JobHeldUser'
is 'and say for what' "$(squeue -h -j "${d[afterok.good]}" -o %E) $(show "${d[afternotok.good]}" Dependency)" \
    "afterok:$good(unfulfilled) afternotok:$good(unfulfilled)"
as_user scancel "$gone"
as_user scontrol release "$good" "$wrong"
ends "$good" COMPLETED
ends "$wrong" FAILED
for row in 'good COMPLETED after afterany afterburstbuffer afterok aftercorr' 'good never afternotok' \
    'wrong COMPLETED after afterany afterburstbuffer afternotok' 'wrong never afterok aftercorr' \
    'gone COMPLETED after afterany afterburstbuffer afternotok' 'gone never afterok aftercorr'; do
    set -- $row
    job=$1 fate=$2
    shift 2
    for type; do
        id=${d[$type.$job]}
        if [ "$fate" = never ]; then
            is "$type of one that ended $(state "${!job}") never comes" "$(why "$id")" 'PENDING DependencyNeverSatisfied'
        else
            ok "$type of one that ended $(state "${!job}") starts" ends "$id" COMPLETED
        fi
    done
done
is 'what failed is marked' "$(squeue -h -j "${d[afternotok.good]}" -o %E)" "afternotok:$good(failed)"
like 'and explained' "$(spur explain "${d[afternotok.good]}")" "its dependency can never be fulfilled: job $good \(COMPLETED\) did not end as it had to: it has to fail"

# ---- lists ----
both=$(dep "afterok:$slow:$good,afterany:$wrong")
is 'what is fulfilled is dropped from the list' "$(squeue -h -j "$both" -o %E)" "afterok:$slow(unfulfilled)"
either=$(dep "afterok:$slow?afterok:$good")
ok 'one of two is enough' ends "$either" COMPLETED
none=$(dep "afterok:$wrong?afternotok:$good")
is 'none of two never comes' "$(why "$none")" 'PENDING DependencyNeverSatisfied'
half=$(dep "afterok:$wrong?afterok:$slow")
is 'one of two may fail' "$(why "$half") $(squeue -h -j "$half" -o %E)" "PENDING Dependency afterok:$wrong(failed)?afterok:$slow(unfulfilled)"
bare=$(dep "$slow")
is 'a number alone is afterany' "$(squeue -h -j "$bare" -o %E)" "afterany:$slow(unfulfilled)"
begun=$(dep "after:$slow") minute=$(dep "after:$slow+1")
as_user scontrol release "$slow"
ends "$slow" RUNNING
ok 'after: it has started' ends "$begun" COMPLETED
is 'after+1: and a minute has passed' "$(why "$minute") $(squeue -h -j "$minute" -o %E)" "PENDING Dependency after:$slow+1(unfulfilled)"
like 'in words' "$(spur explain "$minute")" "job $slow \(RUNNING\) has to start and 1 minute pass"

# ---- singleton ----
s1=$(sub -J solo --wrap "$until_file")
s2=$(dep singleton -J solo) s3=$(dep singleton -J solo) other=$(dep singleton -J other)
ok 'singleton: another name goes on' ends "$other" COMPLETED
is 'its own name waits' "$(why "$s2") $(squeue -h -j "$s2" -o %E) $(state "$s3")" 'PENDING Dependency singleton(unfulfilled) PENDING'

# ---- requeue: who waits, waits again ----
again=$(sub --requeue --wrap "$until_file")
ends "$again" RUNNING
follows=$(dep "afterok:$again")
as_user scontrol requeuehold "$again"
ok 'a requeued job waits' ends "$again" PENDING
is 'as it is held' "$(squeue -h -j "$again" -o %r)" 'job requeued in held state'
is 'so does who waits for it' "$(why "$follows")" 'PENDING Dependency'
as_user scontrol release "$again"
touch go
ok 'the second time it ends' ends "$again" COMPLETED
ok 'and the other goes on' ends "$follows" COMPLETED
for id in "$both" "$half" "$bare" "$minute" "$s2" "$s3"; do ok 'in the end all run' ends "$id" COMPLETED; done

# ---- what is no dependency ----
refused() { # DEPENDENCY WORDS
    run as_user sbatch -d "$1" --wrap true
    like "refused: $1" "$code $err" "^1 .*sbatch: error: Batch job submission failed: $2\$"
}
for d in afterok afterok: afterok:x nonsense:1 "expand:$slow" "afterok:$slow,afterok:$good?afterany:$slow" afterok:99999999 "afterok:${slow}_1" 'after:1+x' "afterok:0"; do
    refused "$d" 'Job dependency problem'
done

# ---- those that never can be are ended when that is asked for ----
k=$(dep "afterok:$wrong" --kill-on-invalid-dep=yes)
ok '--kill-on-invalid-dep=yes' ends "$k" CANCELLED
is 'with its reason' "$(show "$k" Reason)" DependencyNeverSatisfied
printf '\n[jobs]\nkill_invalid_depend = true\n' >>"$D/spur.conf"
ok 'kill_invalid_depend' scontrol reconfigure
k=$(dep "afterok:$wrong")
ok 'ends them too' ends "$k" CANCELLED
k=$(dep "afterok:$wrong" --kill-on-invalid-dep=no)
is 'but for who says no' "$(why "$k")" 'PENDING DependencyNeverSatisfied'
done_testing
