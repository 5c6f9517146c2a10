#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# groups: asan
# scancel: ids, filters, signals, words and exit codes.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 2 --cpus 8 --mem 4G
cd "$T"
hold() { submit -H -J "$1" --wrap true; }
state() { squeue -h -t all -j "$1" -o %T; }

a=$(hold a) b=$(hold b) c=$(hold c)
run scancel "$a" "$b"
is "several ids" "$code$out$err" 0
is "they are cancelled" "$(state "$a") $(state "$b") $(state "$c")" "CANCELLED CANCELLED PENDING"
run scancel -v "$c"
is "-v says so" "$code:$err" "0:scancel: Terminating job $c"
run scancel "$c"
is "again is silent" "$code$out$err" 0
run scancel -v "$c"
is "again with -v" "$code:$err" "0:scancel: Terminating job $c
scancel: error: Kill job error on job id $c: Job/step already completing or completed"
run scancel 99999999
is "unknown is silent" "$code$out$err" 0
run scancel -v 99999999
is "unknown with -v" "$code:$err" "0:scancel: Terminating job 99999999
scancel: error: Kill job error on job id 99999999: Invalid job id specified"
run scancel
is "nothing" "$code:$err" "1:scancel: error: No job identification provided"
run scancel abc
is "not a number" "$code:$err" "1:scancel: error: Invalid job id abc"
run scancel -s NOPE 1
is "no such signal" "$code:$err" "1:Unknown job signal: NOPE"
run scancel -t nope
is "no such state" "$code:$err" "1:Invalid job state specified: nope
Valid job states are PENDING, RUNNING, and SUSPENDED"
run scancel -u nosuchuser
is "no such user" "$code:$err" "1:scancel: error: Invalid user name: nosuchuser"

# Filters
a=$(hold one) b=$(hold two) r=$(submit -J run -o /dev/null --wrap 'sleep 300')
wait_for 10 job_is "$r" RUNNING
run scancel -v -n one
is "by name" "$err" "scancel: Terminating job $a"
run scancel --name=two "$r" "$b"
is "name and ids: both must match" "$(state "$b") $(state "$r")" "CANCELLED RUNNING"
a=$(hold x)
scancel -t PENDING --me
is "by state" "$(state "$a") $(state "$r")" "CANCELLED RUNNING"
run scancel -v -A nosuch
is "nothing matches" "$code:$err" "0:scancel: error: No active jobs match ALL job filters, including: account=nosuch "
scancel -w n1,n2
wait_for 10 job_is "$r" CANCELLED
is "by node" "$(state "$r")" CANCELLED

# Arrays
arr=$(submit -H -a 1-9 --wrap true)
scancel "${arr}_3" "${arr}_[5-6]"
is "tasks of an array" "$(squeue -h -r -j "$arr" -o %K -t PD | tr '\n' ' ')" "1 2 4 7 8 9 "
scancel "$arr"
shows "the rest" '' squeue -h -j "$arr"

# Signals
cat >sig.sh <<'END'
#!/bin/bash
#SBATCH -o sig.out
trap 'echo usr1' USR1
trap 'echo usr2' USR2
echo ready
for i in $(seq 300); do sleep 0.1; done
END
r=$(submit sig.sh)
wait_for 10 grep -q ready sig.out
run scancel "$r" --signal USR1 --batch
is "option after the id" "$code$err" 0
wait_for 5 grep -q usr1 sig.out
is "the script got it" "$(grep -c usr1 sig.out)" 1
run scancel -v -b -s 12 "$r"
is "words of a signal" "$err" "scancel: Signal 12 to batch job $r"
wait_for 5 grep -q usr2 sig.out
is "and runs on" "$(state "$r")" RUNNING
run scancel -i "$r" <<<n
is "-i asks" "$(state "$r")" RUNNING
like "-i shows the job" "$out" "^Cancel job_id=$r name=sig.sh partition=debug \[y/n\]\? $"
run scancel -i "$r" <<<y
wait_for 10 job_is "$r" CANCELLED
is "-i and yes" "$(state "$r")" CANCELLED

# More records than one command takes: each task was held by itself, one is not
a=$(sbatch --parsable -H -o /dev/null --array=1-460 --wrap true)
scontrol hold "${a}_[1-450]"
is "tasks that were held have records" "$(squeue -h -j "$a" -o %i | grep -c _[0-9])" 450
run scancel "$a"
is "an array of many records: exit code" "$code$err" 0
is "all of the array is cancelled" "$(squeue -h -j "$a" 2>/dev/null | wc -l)" 0
a=$(sbatch --parsable -H -J many -o /dev/null --array=1-460 --wrap true)
scontrol hold "${a}_[1-450]"
b=$(sbatch --parsable -H -J few -o /dev/null --wrap true)
scancel -n many
is "by name, too" "$(squeue -h -j "$a" 2>/dev/null | wc -l)" 0
is "and no other" "$(state "$b")" PENDING
scancel "$b"

# Another's job
if [ "$(id -u)" -eq 0 ]; then
    h=$(hold mine)
    run as_user scancel "$h"
    is "another's job: exit code" "$code" 210
    is "another's job: words" "$err" "scancel: error: Kill job error on job id $h: Access/permission denied"
    is "another's job lives" "$(state "$h")" PENDING
    scancel "$h"
    home=$(user_dir)
    u=$(cd "$home" && as_user sbatch --parsable -o /dev/null --wrap 'sleep 300')
    wait_for 10 job_is "$u" RUNNING
    as_user scancel --me
    wait_for 10 job_is "$u" CANCELLED
    is "an ordinary user ends an own job" "$(state "$u")" CANCELLED
fi
done_testing
