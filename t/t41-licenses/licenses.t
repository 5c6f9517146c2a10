#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Licences: what may be asked for, who waits for them, and what is shown of them.
# groups: asan
. "$(dirname "$0")/../lib.sh"
cat >"$T/conf" <<CONF
[scheduler]
config_overrides = true
licenses = ["matlab:4", "fluent", "big:1000"]
[access]
disable_root_jobs = false
[[nodes]]
names = "n[1-2]"
cpus = 8
memory_mb = 4000
[[partitions]]
name = "debug"
default = true
nodes = "ALL"
CONF
cluster_up --nodes 2 --conf "$T/conf"
cd "$(user_dir)" || exit 1
sub() { as_user sbatch --parsable -o /dev/null "$@" --wrap 'sleep 300'; }
why() { squeue -h -t all -j "$1" -o '%T %r'; }
ends() { wait_for 30 job_is "$1" "$2"; }
used() { scontrol -o show licenses "$1" | sed 's/.*Used=\([0-9]*\) Free=\([0-9]*\).*/\1 \2/'; }
waits() { wait_for 30 eval '[ "$(why '"$1"')" = "PENDING '"$2"'" ]'; }

is 'all licences' "$(scontrol show licenses | grep -c LicenseName=)" 3
is 'as they are configured' "$(scontrol -o show licenses matlab)" 'LicenseName=matlab Total=4 Used=0 Free=4 Reserved=0 Remote=no'
is 'as JSON' "$(scontrol --json show licenses | python3 -c 'import json, sys; print([(l["LicenseName"], l["Total"], l["Free"], l["Remote"]) for l in json.load(sys.stdin)["licenses"]][-1])')" "('matlab', 4, 4, False)"
is 'one when no number is given' "$(used fluent)" '0 1'

a=$(sub -L matlab:3,fluent)
ok 'a job that has what it asks for runs' ends "$a" RUNNING
is 'they are in use' "$(used matlab), $(used fluent)" '3 1, 1 0'
is 'and shown' "$(squeue -h -j "$a" -o %W) $(scontrol -o show job "$a" | grep -o 'Licenses=[^ ]*')" 'matlab:3,fluent Licenses=matlab:3,fluent'
b=$(sub -L matlab:2)
ok 'another waits for two where one is free' waits "$b" Licenses
like 'and is told so' "$(spur explain "$b")" '2 of licence matlab, of which 1 of 4 are free'
c=$(sub -L matlab)
ok 'one that needs the free one goes past it' ends "$c" RUNNING
d=$(sub -L fluent,matlab)
ok 'all that are asked for must be there' waits "$d" Licenses
e=$(sub)
ok 'who needs none does not wait' ends "$e" RUNNING
is 'squeue -L' "$(squeue -h -L fluent -o %i | sort -n | xargs)" "$a $d"
or=$(sub -L 'fluent|big:10')
ok 'one or the other: the one that is free' ends "$or" RUNNING
is 'is taken' "$(used big)" '10 990'
as_user scancel "$a"
ok 'what ends gives them back' ends "$b" RUNNING
ok 'also to the next' ends "$d" RUNNING
is 'each counted once' "$(used matlab), $(used fluent)" '4 0, 1 0'

# ---- what is refused ----
refused() { run as_user sbatch -L "$1" --wrap true; like "refused: $1" "$code $err" '^1 .*sbatch: error: Batch job submission failed: Invalid license specification$'; }
refused nosuch
refused matlab:5
like 'and says how many there are' "$err" 'Invalid license specification: 5 of matlab are asked for, and there are 4'
refused matlab:3,matlab:3
refused matlab:x
refused matlab:0
refused 'matlab:1,fluent|big'
refused fluent:2

# ---- changes ----
f=$(sub -L matlab:4)
ok 'all four are in use' waits "$f" Licenses
ok 'a waiting job asks for others' as_user scontrol update job="$f" licenses=big:5
ok 'and runs' ends "$f" RUNNING
g=$(sub -L matlab:1)
waits "$g" Licenses
ok 'the controller is killed and comes back' controller_again
is 'it knows what is in use' "$(used matlab), $(used fluent), $(used big)" '4 0, 1 0, 15 985'
ok 'and who waits' waits "$g" Licenses
sed -i 's/matlab:4/matlab:5/' "$D/spur.conf"
ok 'one more is bought' scontrol reconfigure
ok 'and given' ends "$g" RUNNING
sed -i 's/matlab:5/matlab:2/' "$D/spur.conf"
ok 'three are lost' scontrol reconfigure
is 'nobody is stopped' "$(squeue -h -t R -L matlab | wc -l)" 4
is 'and nothing is free' "$(used matlab)" '5 0'
h=$(sub -L matlab:1)
as_user scancel "$c"
ends "$c" CANCELLED
ok 'one that ends does not make one free then' waits "$h" Licenses
as_user scancel "$b" "$d"
ok 'enough of them do' ends "$h" RUNNING

# ---- many: each job takes one of ten, never more than ten run ----
sed -i 's/"fluent"/"fluent:10"/' "$D/spur.conf"
scontrol reconfigure
as_user scancel --me
wait_for 30 eval '[ -z "$(squeue -h)" ]'
arr=$(as_user sbatch --parsable -o /dev/null -a 1-60 -n 1 -L fluent --wrap 'sleep 0.1')
most=0
while [ -n "$(squeue -h -j "$arr" 2>/dev/null)" ]; do
    now=$(used fluent)
    most=$((${now% *} > most ? ${now% *} : most))
done
ok 'never more than there are' [ "$most" -le 10 ]
is 'all of them ran' "$(squeue -h -r -t CD -j "$arr" | wc -l)" 60
is 'and all are free again' "$(used fluent)" '0 10'
done_testing
