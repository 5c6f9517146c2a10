#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Jobs that share CPUs take turns: both get on, and never both at once.
. "$(dirname "$0")/../lib.sh"
cat >"$T/conf" <<'END'
[scheduler]
time_slice = 1
[preemption]
mode = ["GANG"]
[[partitions]]
name = "debug"
nodes = "ALL"
default = true
oversubscribe = "FORCE:2"
END
cluster_up --nodes 1 --cpus 4 --mem 4G --conf "$T/conf"
cd "$(user_dir)"
user_submit() { as_user sbatch --parsable --mem=100 "$@"; }
lines() { cat "$1" 2>/dev/null | wc -l; }
more_than() { [ "$(lines "$1")" -gt "$2" ]; }
goes_on() { local now; now=$(lines "$1"); wait_for 30 more_than "$1" $((now + 5)); }
is 'the slice is shown' "$(scontrol show config | awk '/SchedulerTimeSlice/ { print $3 }')" 1

tick='while :; do date +%s.%N; sleep 0.02; done'
a=$(user_submit -c 4 -o a --wrap "$tick")
ok 'the first job runs' wait_for 20 more_than a 5
b=$(user_submit -c 4 -o b --wrap "$tick")
ok 'the second gets its turn' wait_for 20 more_than b 5
for _ in 1 2; do
    ok 'the first gets on' goes_on a
    ok 'and the second' goes_on b
done
one_of() { squeue -h -t all -o %T -j "$a,$b" | sort | tr '\n' ' ' | grep -q '^RUNNING SUSPENDED $'; }
ok 'one runs, one is suspended' one_of
scancel "$a"
ok 'when one is gone' wait_for 20 job_is "$a" CANCELLED
ok 'the other runs' wait_for 20 job_is "$b" RUNNING
sleep 1.2
is 'without turns' "$(job_state "$b")" RUNNING
scancel "$b"
wait_for 20 job_is "$b" CANCELLED

# Who ran when: it changes at the end of a slice and when one comes or goes, not from tick to tick.
python3 - a b >"$T/met" <<'END'
import sys
ticks = sorted((float(x), path) for path in sys.argv[1:] for x in open(path) if x[:1].isdigit())
changes = sum(1 for x, y in zip(ticks, ticks[1:]) if x[1] != y[1])
most = ticks[-1][0] - ticks[0][0] + 3
print('turns' if changes >= 3 else 'few turns', 'one at a time' if changes <= most else '%d changes in %d s' % (changes, most))
END
is 'never both at once' "$(cat "$T/met")" 'turns one at a time'
done_testing
