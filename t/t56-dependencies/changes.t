#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Dependencies that change: by scontrol, in circles, over a restart of the controller, in long chains.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 1 --cpus 16 --mem 4G
cd "$(user_dir)" || exit 1
sub() { as_user sbatch --parsable -o /dev/null "$@"; }
why() { squeue -h -t all -j "$1" -o '%T %r'; }
on() { squeue -h -j "$1" -o %E; }
ends() { wait_for 30 job_is "$1" "$2"; }
held=$(sub -H --wrap true)

# ---- scontrol update ----
a=$(sub -H --wrap true)
ok 'a job gets a dependency' as_user scontrol update job="$a" dependency="afterok:$held"
is 'it is shown' "$(on "$a")" "afterok:$held(unfulfilled)"
as_user scontrol release "$a"
is 'and waits' "$(why "$a")" 'PENDING Dependency'
ok 'another one' as_user scontrol update job="$a" dependency="afterany:$held"
is 'takes the place of the first' "$(on "$a")" "afterany:$held(unfulfilled)"
run as_user scontrol update job="$a" dependency="afterok:99999999"
like 'a wrong one' "$code $err" '^1 .*Job dependency problem'
is 'leaves it' "$(on "$a")" "afterany:$held(unfulfilled)"
ok 'it is taken away' as_user scontrol update job="$a" dependency=
ok 'and the job runs' ends "$a" COMPLETED
run as_user scontrol update job="$a" dependency="afterok:$held"
like 'an ended job gets none' "$code $err" '^1 .*[Jj]ob'
mine=$(sbatch --parsable -H -o /dev/null --wrap true)
run as_user scontrol update job="$mine" dependency="afterok:$held"
[ "$(id -u)" -ne 0 ] || like "nor does another user's" "$code $err" '^1 .*(Access/permission denied|Invalid user id)'

# ---- circles ----
x=$(sub -H --wrap true)
y=$(sub -H -d "afterok:$x" --wrap true)
z=$(sub -H -d "afterok:$y" --wrap true)
run as_user scontrol update job="$x" dependency="afterok:$z"
like 'a circle of three is refused' "$code $err" '^1 .*[Cc]ircular'
run as_user scontrol update job="$x" dependency="afterok:$x"
like 'so is a job that waits for itself' "$code $err" '^1 .*([Cc]ircular|dependency)'
is 'nothing changed' "$(on "$x")" '(null)'

# ---- the controller is killed: who waits, waits on; who was released meanwhile, runs ----
ok 'it comes back' controller_again
is 'the same as before' "$(on "$y") $(on "$z")" "afterok:$x(unfulfilled) afterok:$y(unfulfilled)"
as_user scontrol release "$x" "$y" "$z"
ok 'and the chain runs' ends "$z" COMPLETED
long=$(sub --wrap 'while [ ! -e go ]; do sleep 0.1; done; exit 1')
bad1=$(sub -d "afterok:$long" --wrap true) good1=$(sub -d "afternotok:$long" --wrap true) timed=$(sub -d "after:$long+1" --wrap true)
ends "$long" RUNNING
controller_again
touch go
ok 'one that ended just then' ends "$long" FAILED
ok 'lets the right one run' ends "$good1" COMPLETED
is 'and the other never' "$(why "$bad1")" 'PENDING DependencyNeverSatisfied'
ok 'an end is enough for after+minutes' ends "$timed" COMPLETED

# ---- a chain: each waits for the one before, all for the first ----
rm go
first=$(sub --wrap 'while [ ! -e go ]; do sleep 0.1; done')
last=$first
for i in {1..150}; do last=$(sub -d "afterok:$last" --wrap true); done
is 'a chain waits' "$(squeue -h -t pending -o %r | grep -c '^Dependency$')" 150
fan=$(sub -a 0-500 -d "afterok:$first" --wrap true)
is 'an array waits as one' "$(squeue -h -j "$fan" -o '%i %E')" "${fan}_[0-500] afterok:$first(unfulfilled)"
as_user scancel "$fan"
touch go
ok 'it runs to its end' wait_for 90 job_is "$last" COMPLETED
order=$(squeue -h -t CD -o '%A' -S S,i -n wrap | awk -v f="$first" '$1 >= f' | wc -l)
is 'all of it' "$order" 151
# One that fails in the middle stops the rest.
p=$(sub -H --wrap false)
for i in {1..20}; do q=$(sub -d "afterok:${q:-$p}" --kill-on-invalid-dep=yes --wrap true); done
as_user scontrol release "$p"
ok 'a failure ends all that depend on it' ends "$q" CANCELLED
done_testing
