#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sacct: jobs and steps of the past and the present, right after the command that made them.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 2 --cpus 4
get() { sacct -n -P "$@"; }
ended() { [ "$(get -X -j "$1" -o State)" = "$2" ]; }

# ---- at once ----
a=$(submit -J one -N2 -t 5 --comment 'a b' -o /dev/null --wrap 'srun -n2 hostname; srun -n1 sh -c "exit 7"; exit 3')
shown() { run get -X -j "$a" -o JobID,JobName; [ "$out" = "$a|one" ]; }
late() { [[ $err =~ 'has not caught up'|'no controller is connected' ]]; } # on a busy machine
at_once() { shown || { late && wait_for 20 shown; }; }
ok "sacct right after sbatch shows the job, or says that it is late" at_once
ok "its end" wait_for 30 ended "$a" FAILED
all_steps() { [ "$(get -j "$a" -o JobID | wc -l)" = 4 ]; } # nodes report steps in batches
ok "and its steps" wait_for 30 all_steps
is "job, batch script and steps" "$(get -j "$a" -o JobID,JobName,AllocCPUS,State,ExitCode)" \
    "$a|one|2|FAILED|3:0
$a.batch|batch|1|FAILED|3:0
$a.0|hostname|2|COMPLETED|0:0
$a.1|sh|1|FAILED|7:0"
is "what was asked for and given" "$(get -X -j "$a" -o Timelimit,TimelimitRaw,ReqCPUS,NNodes,NodeList,AllocTRES,Comment,DerivedExitCode,Restarts,User,Partition)" \
    "00:05:00|5|2|2|n[1-2]|billing=2,cpu=2,node=2|a b|7:0|0|$(id -un)|debug"
like "the line that submitted it" "$(get -X -j "$a" -o SubmitLine)" "^sbatch --parsable -J one -N2 -t 5 --comment"
like "times" "$(get -X -j "$a" -o Submit,Eligible,Start,End,Elapsed)" "^(20[-0-9]+T[:0-9]+\|){4}00:00:0[0-9]$"
like "what steps used" "$(get -j "$a.0" -o JobID,NTasks,MaxRSS,MaxRSSNode,MaxRSSTask,AveCPU,TotalCPU)" "^$a.0\|2\|[0-9.]+[KM]\|n[12]\|[01]\|00:00:00\|00:00"
is "a step alone" "$(get -j "$a.1" -o JobID,State)" "$a.1|FAILED"

# ---- what runs ----
b=$(submit -J runs -o /dev/null --wrap 'srun --overlap sleep 100')
step_runs() { get -j "$b" -o JobID,State | grep -qx "$b.0|RUNNING"; }
ok "a running step is there" wait_for 30 step_runs
is "beside its job" "$(get -j "$b" -o JobID,State,End)" "$b|RUNNING|Unknown
$b.batch|RUNNING|Unknown
$b.0|RUNNING|Unknown"
scancel "$b"
ok "and cancelled" wait_for 30 ended "$b" "CANCELLED by $(id -u)"

# ---- requeue: each run ----
c=$(submit --requeue -J again -o /dev/null --wrap 'sleep 100')
wait_for 30 job_is "$c" RUNNING
scontrol requeue "$c"
twice() { [ "$(get -X -D -j "$c" -o State | wc -l)" = 2 ]; }
ok "a requeued job has two runs" wait_for 30 twice
scancel "$c"
ok "the second ends" wait_for 30 ended "$c" "CANCELLED by $(id -u)"
is "both with -D" "$(get -X -D -j "$c" -o JobID,State,Restarts)" "$c|REQUEUED|0
$c|CANCELLED by $(id -u)|1"
is "without it the last" "$(get -X -j "$c" -o State)" "CANCELLED by $(id -u)"

# ---- arrays and components ----
d=$(submit --array=1-3 -J arr -o /dev/null --wrap 'exit $((SLURM_ARRAY_TASK_ID - 1))')
tasks() { [ "$(get -X -j "$d" -o State | sort | uniq -c | tr -s ' \n' ' ')" = " 1 COMPLETED 2 FAILED " ]; }
ok "tasks of an array" wait_for 30 tasks
is "by their ids" "$(get -X -j "$d" -o JobID,ExitCode | sort)" "${d}_1|0:0
${d}_2|1:0
${d}_3|2:0"
is "one of them, or some" "$(get -X -j "${d}_2" -o JobID; get -X -j "${d}_[1-2]" -o JobID | sort)" "${d}_2
${d}_1
${d}_2"
e=$(submit -J het -o /dev/null -n1 : -n2 --wrap true)
het() { [ "$(get -X -j "$e" -o State | sort -u)" = COMPLETED ]; }
ok "a heterogeneous job" wait_for 30 het
is "its components" "$(get -X -j "$e" -o JobID,AllocCPUS)" "$e+0|1
$e+1|2"
is "one of them" "$(get -X -j "$e+1" -o JobID)" "$e+1"

# ---- selecting ----
all() { get -X -o JobID "$@" | tr '\n' ' '; }
is "repeated -j" "$(all -j "$a" -j "$b")" "$a $b "
is "by name" "$(all --name one,runs)" "$a $b "
is "by state in a window" "$(all -s F -S now-1hours --name one,again)" "$a "
is "terminal states need a window" "$(all -s F)" ""
is "by node" "$(all -N n2 --name one,het)" "$a "
is "by CPUs" "$(all -I 2 --name one,runs)" "$a "
is "by time limit" "$(all -k 5)" "$a "
is "by partition and user" "$(all -r debug -u "$(id -un)" --name one)" "$a "
is "none of another" "$(all -r other)$(all -A nobody)$(all -q other)" ""
is "a window of long ago" "$(all -S 2020-01-01 -E 2020-02-01)" ""
like "relative times" "$(all -S now-7days --name one)" "^$a $"

# ---- forms ----
is "the default columns" "$(sacct -j "$a" -X | head -2 | tr '\n' '#')" "JobID           JobName  Partition    Account  AllocCPUS      State ExitCode #------------ ---------- ---------- ---------- ---------- ---------- -------- #"
is "widths" "$(sacct -n -X -j "$a" -o 'jobid%-6,jobname%5,state%4')" "$(printf '%-6s %5s %s ' "$a" one FAI+)"
is "-p, -P and a delimiter" "$(sacct -n -X -j "$a" -p -o JobID,State; sacct -n -X -j "$a" -P --delimiter ';' -o JobID,State)" "$a|FAILED|
$a;FAILED"
is "every name that --helpformat lists is accepted" "$(for f in $(sacct --helpformat); do sacct -n -P -j "$a" -o "$f" >/dev/null || echo "$f"; done)" ""
is "ALL" "$(sacct -n -P -X -j "$a" -o ALL | tr -cd '|' | wc -c)" 122
is "JSON" "$(sacct --json -j "$a" | python3 -c 'import sys, json
d = json.load(sys.stdin); j = d["jobs"][0]
print(j["job_id"], j["name"], j["state"]["current"], j["exit_code"]["return_code"]["number"], [s["step"]["id"] for s in j["steps"]], d["meta"]["slurm"]["cluster"])')" "$a one ['FAILED'] 3 ['$a.batch', '$a.0', '$a.1'] spur"
like "YAML" "$(sacct --yaml -j "$a")" "job_id: $a"

# ---- what is wrong ----
run sacct -o nosuchfield
is "an unknown field" "$code:$err" '1:sacct: error: Invalid field requested: "nosuchfield"'
run sacct -s nope
is "an unknown state" "$code:$err" "1:sacct: fatal: unrecognized job state value 'nope'"
run sacct -S zzz
like "a time that is none" "$code:$err" '^1:Invalid time specification \(pos=0\): zzz'
run sacct -u nosuchuser
is "an unknown user" "$code:$err" "1:sacct: error: Invalid user id: nosuchuser"
run sacct -n -j 99999999
is "an unknown job is nothing" "$code:$out" "0:"

# ---- whose ----
if [ "$(id -u)" -eq 0 ]; then
    home=$(user_dir)
    f=$(cd "$home" && as_user sbatch --parsable -o /dev/null --wrap true)
    wait_for 30 ended "$f" COMPLETED
    is "an ordinary user sees his own by default" "$(as_user sacct -n -X -P -o JobID)" "$f"
    like "and others' when he asks" "$(as_user sacct -n -X -P -a -o JobID)" "^$a"
fi

# ---- away ----
pid=$(cut -d' ' -f1 "$D/run/spurdbd.pid")
kill "$pid"
while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done
run sacct
like "without spurdbd sacct fails with a sentence" "$code:$err" "^1:sacct: error: the accounting daemon \(spurdbd\) cannot be reached"
g=$(submit -o /dev/null --wrap true)
ok "and jobs run all the same" wait_for 30 job_is "$g" COMPLETED
ok "it starts again" spur up --quiet --dir "$D"
ok "and has what it missed" wait_for 30 ended "$g" COMPLETED
run spur journal --ack 1
like "nobody else acknowledges the journal" "$code:$err" "^1:.*spurdbd at .* acknowledges the journal"
done_testing
