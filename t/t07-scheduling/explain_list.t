#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# spur explain without a job, for other users, and for programs.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 1 --cpus 4 --mem 4G
cd "$(user_dir)" || exit 1

is 'nothing waits' "$(spur explain)" 'no job waits'
busy=$(sub --exclusive -t 60)
ok 'the node is busy' wait_for 20 job_is "$busy" RUNNING
first=$(sub -n 2 -t 10)
held=$(sub --hold)
array=$(sub --array=1-9 -t 5)
others=$(as_user sbatch --parsable -o /dev/null -t 5 --wrap true)

run spur explain
is 'those of mine that wait, each with a line' "$(grep -c '^job ' <<<"$out")" "$([ "$(id -u)" -eq 0 ] && echo 3 || echo 4)"
like 'a job' "$out" "(^|
)job $first is PENDING: needs 2 CPUs on 1 node; .*
  expected start: 20"
like 'an array' "$out" "job ${array}_\[1-9\] is PENDING: "
like 'a held one comes last' "$(grep '^job ' <<<"$out" | tail -n 1)" "^job $held is PENDING: held by "
unlike 'not the one that runs' "$out" "job $busy "
like 'all of them' "$(spur explain --all)" "job $others is PENDING"
is 'those of a user' "$(spur explain -u "$(as_user id -un)" | grep -c "^job $others is")" 1
run spur explain --all -n 1
is 'only some' "$(grep -c '^job ' <<<"$out") $(tail -n 1 <<<"$out")" '1 3 more wait: name them, or say --most'
run spur explain -u nobodyhere
is 'a user that is none' "$code $(tail -n 1 <<<"$err")" '1 spur explain: error: no user of these: nobodyhere'
run spur explain "$first" --me
is 'either jobs or users' "$code $err" "1 spur explain: error: '$first': either jobs, or --all, --me or --user"
run spur explain 99999
is 'a job that is none' "$code $err" '1 spur explain: error: job 99999: Invalid job id specified'
run spur explain --what
like 'an option that is none' "$code $err" "^1 spur explain: unrecognized option '--what'"

run spur explain --json "$first" "$busy"
is 'JSON' "$(python3 -c '
import json, sys
waits, runs = json.load(sys.stdin)["jobs"]
print(waits["job_id"], waits["state"], waits["reason"], waits["sentence"].split(";")[0], waits["expected_start"]["set"],
      waits["expected_nodes"], waits["never"], type(waits["details"]).__name__)
print(runs["job_id"], runs["state"], runs["sentence"][:15], runs["expected_start"]["set"])' <<<"$out")" \
    "$first PENDING Resources needs 2 CPUs on 1 node True n1 False list
$busy RUNNING it has run for  False"
is 'JSON of none is JSON' "$(scancel "$busy" "$first" "$held" "$array" "$others" && wait_for 20 eval '[ -z "$(squeue -h)" ]' && spur explain --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["jobs"])')" '[]'
like 'one that has ended' "$(spur explain "$busy")" "^job $busy is CANCELLED: it was cancelled"
done_testing
