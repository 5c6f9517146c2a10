#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The life of a batch job in every phase, for an ordinary user on two nodes.
# groups: asan
# seconds: 240
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 2 --cpus 4
cd "$(user_dir)" || exit 1
export HOME=$PWD
chmod 777 "$T"

user_submit() { as_user sbatch --parsable "$@"; }
show() { scontrol -o show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p" | head -n 1; }
ends_as() { wait_for 20 job_is "$1" "$2"; }

# ---- exit codes, output, arguments, environment ----
id=$(user_submit -o "$PWD/out-%j.txt" --wrap 'echo $SLURM_JOB_ID; id -u; pwd')
ok "a job of an ordinary user completes" ends_as "$id" COMPLETED
is "it runs as that user in the directory it was submitted from" "$(cat "out-$id.txt")" "$id
$(as_user id -u)
$PWD"
id=$(user_submit -o /dev/null --wrap 'exit 7')
ok "an exit code makes it FAILED" ends_as "$id" FAILED
is "and is recorded" "$(show "$id" ExitCode)" 7:0
id=$(user_submit -o /dev/null --wrap 'kill -9 $$')
ok "a signal makes it FAILED" ends_as "$id" FAILED
is "and is recorded" "$(show "$id" ExitCode)" 0:9
printf '#!/bin/bash\n#SBATCH -J named\n#SBATCH -o %s/args-%%x.txt\nprintf "<%%s>" "$@"\n' "$PWD" >args.sh
id=$(user_submit args.sh one 'two three')
ok "a script from a file completes" ends_as "$id" COMPLETED
is "script arguments arrive" "$(cat args-named.txt)" "<one><two three>"
printf '#!/bin/sh\necho stdin $X\n' >s.sh
id=$(X=1 as_user sbatch --parsable -o "$PWD/stdin.txt" --export=ALL,X=5 <s.sh)
ok "a script from stdin completes" ends_as "$id" COMPLETED
is "--export sets a variable" "$(cat stdin.txt)" "stdin 5"
run as_user sbatch --wait -o /dev/null --wrap 'exit 3'
is "--wait gives the job's exit code" "$code" 3

# ---- hold, release, priority of the owner ----
id=$(user_submit -H -o /dev/null --wrap true)
is "a held job waits" "$(job_state "$id") $(show "$id" Reason)" "PENDING JobHeldUser"
ok "its owner releases it" as_user scontrol release "$id"
ok "and it runs" ends_as "$id" COMPLETED

# ---- cancel in every phase ----
id=$(user_submit -H -o /dev/null --wrap true)
ok "a pending job is cancelled" as_user scancel "$id"
ok "and is CANCELLED" ends_as "$id" CANCELLED
id=$(user_submit -o /dev/null --wrap 'sleep 100')
wait_for 10 job_is "$id" RUNNING
ok "a running job is cancelled" as_user scancel "$id"
ok "and is CANCELLED" ends_as "$id" CANCELLED
cat >trap.sh <<'JOB'
#!/bin/bash
trap 'echo got; exit 0' USR1
for i in {1..900}; do sleep 0.1; done
JOB
id=$(user_submit -o "$PWD/usr1.txt" trap.sh)
wait_for 10 job_is "$id" RUNNING
sleep 0.3
ok "a signal is sent to the batch script" as_user scancel -b -s USR1 "$id"
ok "which handles it" ends_as "$id" COMPLETED
is "and says so" "$(cat usr1.txt)" got
id=$(sbatch --parsable -o /dev/null --wrap 'sleep 100')
wait_for 10 job_is "$id" RUNNING
run as_user scancel -v "$id"
like "another user's job is not" "$err" "Access/permission denied|Invalid user id"
is "it runs on" "$(job_state "$id")" RUNNING
scancel "$id"

# ---- requeue, suspend ----
id=$(user_submit --requeue -o "$PWD/rq.txt" --open-mode=append --wrap 'echo run $SLURM_RESTART_COUNT; [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] || sleep 100')
wait_for 10 test -s rq.txt
ok "a running job is requeued by its owner" as_user scontrol requeue "$id"
ok "it runs again under the same id" ends_as "$id" COMPLETED
is "and knows that it was restarted" "$(show "$id" Restarts) $(tail -n 1 rq.txt)" "1 run 1"
id=$(user_submit --requeue -o /dev/null --wrap 'sleep 300')
wait_for 10 job_is "$id" RUNNING
ok "it is requeued and held" as_user scontrol requeuehold "$id"
ok "and waits" wait_for 20 job_is "$id" PENDING
is "and says so" "$(squeue -h -j "$id" -o '%t %r|%R') $(show "$id" Reason)" \
    "PD job requeued in held state|(job requeued in held state) job_requeued_in_held_state"
ok "an owner's hold goes with release" as_user scontrol release "$id"
wait_for 20 job_is "$id" RUNNING
as_user scontrol requeuehold state=specialexit "$id"
ok "another kind of hold has a state of its own" wait_for 20 job_is "$id" SPECIAL_EXIT
is "and the same words" "$(squeue -h -j "$id" -o %r)" "job requeued in held state"
ok "held by who may: in other words" scontrol hold "$id"
is "the reason is that" "$(squeue -h -j "$id" -o %r)" JobHeldAdmin
scancel "$id"
id=$(user_submit -o "$PWD/susp.txt" --wrap 'for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do echo $i; sleep 0.2; done')
wait_for 10 test -s susp.txt
ok "an administrator suspends a job" scontrol suspend "$id"
ok "it is SUSPENDED" wait_for 10 job_is "$id" SUSPENDED
sleep 0.3
before=$(wc -l <susp.txt)
sleep 0.6
is "and stands still" "$(wc -l <susp.txt)" "$before"
ok "it is resumed" scontrol resume "$id"
ok "and ends" ends_as "$id" COMPLETED

# ---- time ----
late=$(user_submit -t 1 -o /dev/null --wrap 'sleep 300') # both end in the background of what follows
warned=$(user_submit -t 1 --signal=B:USR1@30 -o "$PWD/warn.txt" trap.sh)
id=$(user_submit --begin=now+2 -o /dev/null --wrap true)
is "--begin waits" "$(job_state "$id") $(show "$id" Reason)" "PENDING BeginTime"
ok "and then runs" ends_as "$id" COMPLETED

# ---- dependencies ----
a=$(user_submit -H -o /dev/null --wrap true)
b=$(user_submit -d "afterok:$a" -o /dev/null --wrap true)
c=$(user_submit -d "afternotok:$a" --kill-on-invalid-dep=yes -o /dev/null --wrap true)
is "a dependent job waits" "$(show "$b" Reason)" Dependency
as_user scontrol release "$a"
ok "afterok runs when the other ended well" ends_as "$b" COMPLETED
ok "afternotok never can, and is cancelled" ends_as "$c" CANCELLED

# ---- arrays ----
id=$(user_submit --array=0-9:3%2 -o "$PWD/arr-%A_%a.txt" --wrap 'echo $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT')
ok "an array completes" wait_for 20 eval '[ -z "$(squeue -h -j '"$id"' 2>/dev/null)" ]'
is "each task ran once with its own index" "$(cat arr-"$id"_*.txt | sort)" "0 of 4
3 of 4
6 of 4
9 of 4"

# ---- several nodes ----
id=$(user_submit -N2 -o "$PWD/two.txt" --wrap 'echo $SLURM_JOB_NODELIST $SLURM_NNODES $SLURM_JOB_CPUS_PER_NODE')
ok "a job on two nodes completes" ends_as "$id" COMPLETED
is "and knows them" "$(cat two.txt)" "n[1-2] 2 1(x2)"

# ---- the time limit, which is in minutes as in Slurm ----
ok "a warning signal comes before the limit" wait_for 60 job_is "$warned" COMPLETED
is "to the script" "$(cat warn.txt)" got
ok "a job over its limit is ended" wait_for 90 job_is "$late" TIMEOUT
is "and says so" "$(show "$late" Reason)" TimeLimit
ok "all nodes are free in the end" wait_for 10 eval '[ "$(sinfo -h -o %T)" = idle ]'

# ---- what people get wrong ----
run as_user sbatch -p nosuch --wrap true
like "an unknown partition is refused" "$err" "Invalid partition name specified"
run as_user sbatch -N 99 --wrap true
like "more nodes than there are is refused" "$err" "Batch job submission failed: .*[Nn]ode"
run as_user sbatch --nosuchoption --wrap true
is "an unknown option is refused" "$code" 255
run as_user sbatch /nosuch.sh
like "a missing script is named" "$err" "Unable to open file /nosuch.sh"
done_testing
