#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# groups: asan
# squeue: filters, columns, exit codes, JSON.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 2 --cpus 4 --mem 4G
cd "$T"
header='             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)'
long='             JOBID PARTITION     NAME     USER    STATE       TIME TIME_LIMI  NODES NODELIST(REASON)'
is "an empty queue" "$(squeue)" "$header"
is "an empty long queue" "$(squeue -l | tail -n +2)" "$long"
shows "no header" '' squeue -h
is "steps of nobody" "$(squeue -s)" "         STEPID     NAME PARTITION     USER      TIME NODELIST"

run_id=$(submit -J runs -o /dev/null --comment 'http://x/?a=b' --wrap 'sleep 300')
held=$(submit -H -J held --wrap true)
arr=$(submit -H -J arr -a 1-5:2%2 --wrap true)
done_id=$(submit -W -J done -o /dev/null --wrap true)
wait_for 10 job_is "$run_id" RUNNING

me=$(id -un)
is "default columns" "$(squeue -j "$held")" "$header
$(printf '%18s %9s %8s %8.8s %2s %10s %6s %s' "$held" debug held "$me" PD 0:00 1 '(JobHeldUser)')"
is "states by code" "$(squeue -h -t R -o %i)" "$run_id"
is "states by name" "$(squeue -h -t pending -o %i -S i | head -n 1)" "$held"
is "finished jobs with all" "$(squeue -h -t all -j "$done_id" -o '%T %t')" "COMPLETED CD"
shows "finished jobs are not shown" '' squeue -h -j "$done_id"
is "by name" "$(squeue -h -n held,nosuch -o %i)" "$held"
is "by partition" "$(squeue -h -p debug -o %i | wc -l)" 3
is "unknown partition" "$(squeue -h -p nosuch; echo $?)" 0
is "by user" "$(squeue -h -u "$me" -o %i | wc -l)" 3
is "--me" "$(squeue -h --me -o %i | wc -l)" 3
shows "--notme" '' squeue -h --notme
is "by node" "$(squeue -h -w n1,n2 -o %i)" "$run_id"
is "state and host on one line" "$(squeue -h -j "$run_id" -o '%T %B')" "RUNNING n1"
is "comment and id" "$(squeue --name=runs --noheader --format=%k,%A)" "http://x/?a=b,$run_id"
is "separators and blanks in one argument" "$(squeue -a -r -h "-o %A|%T|%C" -j "$run_id")" " $run_id|RUNNING|1"
is "names with widths" "$(squeue -h -j "$held" -O 'JobID:10,Name:.8,State:5|,UserName: |')" "$(printf '%-10s%8s%s|%s |' "$held" held PENDI "$me")"
is "array as one" "$(squeue -h -j "$arr" -o '%i %K %F')" "${arr}_[1-5:2%2] 1-5:2%2 $arr"
is "array as tasks" "$(squeue -h -r -j "$arr" -o %i | tr '\n' ' ')" "${arr}_1 ${arr}_3 ${arr}_5 "
is "one task" "$(squeue -h -j "${arr}_3" -o %i)" "${arr}_3"
is "sort by id" "$(squeue -h -S i -o %A | tr '\n' ' ')" "$run_id $held $arr "
is "sort backwards" "$(squeue -h -S -i -o %A | tr '\n' ' ')" "$arr $held $run_id "
is "times as asked" "$(SLURM_TIME_FORMAT=%Y squeue -h -j "$run_id" -o %V)" "$(date +%Y)"
is "format from the environment" "$(SQUEUE_FORMAT=%i squeue -h -j "$held")" "$held"
is "several ids, one unknown" "$(squeue -h -j "$held,99999" -o %i)" "$held"
is "repeated -j" "$(squeue -h -j "$held" -j "$run_id" -S i -o %i | tr '\n' ' ')" "$run_id $held "
like "steps" "$(squeue -h -s)" "^ +$run_id\.batch    batch     debug .* n1$"
is "prefix of a long option" "$(squeue --nohead --job="$held" --form=%i)" "$held"

refused() { # EXIT STDERR COMMAND...
    local exit=$1 text=$2
    shift 2
    run "$@"
    is "exit of: $*" "$code" "$exit"
    is "words of: $*" "$err" "$text"
}
refused 1 'slurm_load_jobs error: Invalid job id specified' squeue -j 99999
refused 1 'squeue: error: Invalid job id: abc' squeue -j abc
refused 1 "squeue: unrecognized option '--bogus'
Try \"squeue --help\" for more information" squeue --bogus
refused 0 'squeue: error: Invalid user: nosuchuser' squeue -h -u nosuchuser
refused 0 'squeue: error: Invalid job format specification: nosuchfield' squeue -h -O nosuchfield
refused 1 'squeue: error: Invalid sort specification: ~' squeue -h -S '~'
run squeue -t BOGUS
is "bad state: exit" "$code" 1
like "bad state: words" "$err" '^squeue: error: Invalid job state specified: BOGUS
squeue: error: Valid job states include: pending,running,'
run squeue foo
is "an operand" "$code:$err" "1:squeue: error: Unrecognized option: foo"
SPUR_CONTROLLER_ADDR=unix:$T/none.sock run squeue
is "no controller: exit" "$code" 1
like "no controller: words" "$err" 'slurm_load_jobs error: Unable to contact slurm controller'

if command -v python3 >/dev/null; then
    is "JSON" "$(squeue --json -t all | python3 -c '
import json, sys
reply = json.load(sys.stdin)
job = [job for job in reply["jobs"] if job["job_id"] == int(sys.argv[1])][0]
print(job["name"], job["job_state"], job["time_limit"]["infinite"], job["comment"], reply["errors"])' "$run_id")" \
        "runs ['RUNNING'] True http://x/?a=b []"
fi

# Every name and letter that is listed is accepted.
names=$(squeue --helpFormat | paste -sd,)
run squeue -h -j "$held" -O "$names"
is "every listed name is a column" "$err" ""
is "%all has all letters" "$(squeue -o %all -j "$held" | head -n 1 | tr '|' '\n' | wc -l)" 52

# What a user types is shown, not obeyed.
evil=$(submit -H -D $'/tmp/x\033[31m\ny$(id)\ta' --wrap true)
is "control characters" "$(squeue -h -j "$evil" -o '%Z')" '/tmp/x\x1b[31m\ny$(id)\ta'
is "one record, one line" "$(scontrol -o show job "$evil" | wc -l)" 1
scancel -u "$me"
done_testing
