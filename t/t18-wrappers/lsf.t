#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# groups: asan
#
# lsf.t - bsub, bjobs, bkill: options of LSF have the effect of ours
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 2 --cpus 4
cd "$(user_dir)" || exit 1
field() { as_user scontrol -o show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"; }
number() { sed -n 's/^Job <\([0-9]*\)> is submitted to .*/\1/p' <<<"$out"; }
partition=$(sinfo -h -o %R | head -1)

run as_user bsub -H -J named -n 4 -R 'span[ptile=2] rusage[mem=50]' -W 1:30 -q "$partition" -P acct -o "$PWD/%J.out" -x sleep 300
is "bsub says where it went" "$code:$out" "0:Job <$(number)> is submitted to queue <$partition>."
id=$(number)
for pair in JobName=named NumTasks=4 NtasksPerN:B:S:C=2:0:*:* TimeLimit=01:30:00 Account=acct "StdOut=$PWD/$id.out" Reason=JobHeldUser; do
    is "bsub: ${pair%%=*}" "$(field "$id" "${pair%%=*}")" "${pair#*=}"
done
run as_user bjobs
like "bjobs has LSF's header" "${out%%$'\n'*}" '^JOBID +USER +STAT +QUEUE +FROM_HOST +EXEC_HOST +JOB_NAME +SUBMIT_TIME$'
like "a held job is PSUSP" "$out" "$id +.* PSUSP +$partition +.* named +[A-Z][a-z]{2} "
ok "bkill" as_user bkill "$id"
ok "ends it" wait_for 20 job_is "$id" CANCELLED
like "bjobs -a shows it" "$(as_user bjobs -a "$id")" "$id .* EXIT "
run as_user bjobs
is "bjobs without a job" "$code:$out:$err" "0::No unfinished job found"

run as_user bsub -K -o "$PWD/k" 'echo ran; exit 3'
is "bsub -K waits and ends as the job" "$code:$(cat k)" 3:ran
like "and says the id first" "$out" 'is submitted to default queue'
before=$(number)
cat >script <<'END'
#BSUB -J "many[1-3]%2"
#BSUB -M 100MB -H
echo
END
run as_user bsub -w "ended($before)" <script
id=$(number)
is "#BSUB lines: an array" "$(as_user squeue -h -r -j "$id" -o '%K %j' | sort -n | tr '\n' ' ')" '1 many 2 many 3 many '
ok "one task" as_user bkill "$id[2]"
is "is ended" "$(as_user squeue -h -r -j "$id" -o %K | sort -n | tr '\n' ' ')" '1 3 '
ok "all of mine" as_user bkill 0
is "are ended" "$(as_user squeue -h -j "$id" | wc -l)" 0

for words in '-Is bash' '-R select[type==any]' '-w numdone(x)' '-gpu mode=shared' '-M much' '-frogs 3'; do
    run as_user bsub $words true
    like "bsub $words is refused" "$code:$err" '^1:bsub: error: .'
done
run as_user bkill
like "bkill without a job" "$code:$err" '^1:bkill: error: a job id is needed'
for name in bsub bjobs bkill; do like "$name --help" "$($name --help)" "^Usage: $name "; done
done_testing
