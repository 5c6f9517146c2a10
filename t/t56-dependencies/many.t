#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Thousands that wait for one job: they are told in parts, and nobody is left out, over a restart of the controller too.
. "$(dirname "$0")/../lib.sh"
cat >"$T/conf" <<CONF
[scheduler]
config_overrides = true
[jobs]
max_array_size = 10001
[[nodes]]
names = "n1"
cpus = 4
memory_mb = 4000
[[partitions]]
name = "debug"
default = true
nodes = "ALL"
CONF
cluster_up --nodes 1 --conf "$T/conf"
cd "$(user_dir)" || exit 1
many=3000
sub() { as_user sbatch --parsable -o /dev/null "$@"; }
# How many of an array's jobs are so: state, reason, whether a dependency is left.
count() { squeue -h -r -t all -j "$1" -o '%T %r %E' | grep -cE "$2"; }
all() { [ "$(count "$1" "$2")" -eq "$many" ]; }
# An array of which every task has its own record: something is said about each alone.
fan() {
    local id
    id=$(sub -H -a "0-$((many - 1))" "$@" --wrap true)
    as_user scontrol update job="${id}_[0-$((many - 2))]" nice=7 >&2
    echo "$id"
}

hub=$(sub -H --wrap true)
any=$(fan -d "afterany:$hub")
doomed=$(fan -d "afterok:$hub" --kill-on-invalid-dep=yes)
never=$(fan -d "afterok:$hub" --kill-on-invalid-dep=no)
next=$(sub -H -d "afterany:$doomed" --wrap true)
is 'they wait' "$(count "$any" 'afterany:') $(count "$doomed" 'afterok:') $(count "$never" 'unfulfilled')" "$many $many $many"
is 'each by itself' "$(squeue -h -t all -j "$any" -o %i | wc -l)" "$many"

as_user scancel "$hub"
ok 'the controller is killed meanwhile' controller_again
ok 'those that wait for any end go on' wait_for 60 all "$any" '^PENDING JobHeldUser afterany:[0-9]+$'
ok 'those that cannot are cancelled' wait_for 60 all "$doomed" '^CANCELLED DependencyNeverSatisfied '
ok 'or wait for ever' wait_for 60 all "$never" '\(failed\)$'
told() { ! squeue -h -j "$1" -o %E | grep -q unfulfilled; }
ok 'and their end is told too' wait_for 60 told "$next"

# ---- twins: an array on an array, ended in one go ----
a=$(sub -H -a "0-$((many - 1))" --wrap true)
b=$(sub -a "0-$((many - 1))" -d "aftercorr:$a" --kill-on-invalid-dep=yes --wrap true)
is 'twins wait as one' "$(squeue -h -j "$b" -o '%i %r')" "${b}_[0-$((many - 1))] Dependency"
as_user scancel "$a"
ok 'each hears of its own' wait_for 60 all "$b" '^CANCELLED DependencyNeverSatisfied '

# ---- the controller answers meanwhile, and one that is named is told first ----
hub=$(sub -H --wrap true)
doomed=$(fan -d "afterok:$hub" --kill-on-invalid-dep=yes)
as_user scancel "$hub"
run as_user scontrol update job="${doomed}_$((many - 2))" dependency=
is 'what cannot run any more is not changed' "$code" 1
ok 'all of them are told' wait_for 60 all "$doomed" '^CANCELLED DependencyNeverSatisfied '
done_testing
