#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# groups: asan
#
# pbs.t - qsub, qstat, qdel, qhold, qrls, pbsnodes: options of PBS have the effect of ours
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 2 --cpus 4
cd "$(user_dir)" || exit 1
field() { as_user scontrol -o show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"; }

cat >script <<'END'
#!/bin/bash
#PBS -l walltime=00:20:00
echo "$1:$COLOR:$(umask)"
END
chmod 755 script
id=$(as_user qsub -h -N named -l nodes=2:ppn=2,walltime=01:30:00,mem=100mb -A acct -p -5 -r n -m ae -M me script one)
like "qsub prints the id alone" "$id" '^[0-9]+$'
for pair in JobName=named NumNodes=2-2 NumTasks=4 TimeLimit=01:30:00 Account=acct Nice=5 Requeue=0 MailUser=me Reason=JobHeldUser JobState=PENDING; do
    is "qsub: ${pair%%=*}" "$(field "$id" "${pair%%=*}")" "${pair#*=}"
done 2>/dev/null
like "output goes where PBS puts it" "$(field "$id" StdOut) $(field "$id" StdErr)" "/named.o$id .*/named.e$id$"

run as_user qstat
like "qstat has PBS's header" "${out%%$'\n'*}" '^Job id +Name +User +Time Use S Queue$'
like "a held job is H" "$out" "$id +named +.* H "
like "qstat -f" "$(as_user qstat -f "$id.server")" "Job Id: $id.*job_state = H.*Resource_List.nodect = 2"
is "qstat -r leaves it out" "$(as_user qstat -r)" ""
ok "qrls" as_user qrls "$id.server"
unlike "it is held no longer" "$(field "$id" Reason)" JobHeld
id=$(as_user qsub -h script)
as_user qdel "$id"
ok "qdel" wait_for 20 job_is "$id" CANCELLED

id=$(COLOR=red as_user qsub -v COLOR -W umask=027 -j oe -o "$PWD/out" -e "$PWD/err" script two)
ok "a job runs" wait_for 30 job_is "$id" COMPLETED
is "its argument, its variable, its umask; -j oe: one file" "$(cat out) $(ls err 2>&1 | grep -c 'No such')" "two:red:0027 1"
is "#PBS lines count" "$(field "$id" TimeLimit)" 00:20:00
id=$(echo 'echo from stdin' | as_user qsub -o "$PWD/stdin.out")
ok "a script without #! on standard input" wait_for 30 job_is "$id" COMPLETED
is "runs by the shell" "$(cat stdin.out)" 'from stdin'
after=$(as_user qsub -h -W "depend=afterok:$id.server" -t 1-3%2 script)
is "an array" "$(as_user squeue -h -r -j "$after" -o %K | sort -n | tr '\n' ' ')" '1 2 3 '
as_user qdel "$after[2].server"
is "one task of it is ended" "$(as_user squeue -h -r -j "$after" -o %K | sort -n | tr '\n' ' ')" '1 3 '
as_user qdel "$after[]"

held=$(as_user qsub -a 3012312359 script)
like "a job for later is W" "$(as_user qstat "$held")" "$held .* W "
ok "qhold" as_user qhold -h u "$held"
is "holds it for its owner" "$(field "$held" Reason)" JobHeldUser
ok "qhold of an administrator" qhold "$held"
is "holds it for administrators" "$(field "$held" Reason)" JobHeldAdmin
scancel "$held"
run as_user qrls .server
like "an id without a number" "$code:$err" "^1:qrls: error: '.server' is not a job id"
run as_user qsub -S /bin/bash -l vmem=1gb -h script
like "what has no counterpart is said" "$code:$err" "^0:qsub: warning: -S has no counterpart.*-l vmem has no counterpart"
for words in '-I' '-u somebody' '-C #X' '-Q' '-l frogs=3'; do
    run as_user qsub $words script
    like "qsub $words is refused" "$code:$err" '^1:qsub: error: .'
done
run as_user qdel -W 3 1
like "qdel -W" "$code:$err" '^1:qdel: error: -W is not supported: '
run as_user qstat -Q
like "qstat -Q" "$code:$err" '^1:qstat: error: -Q is not supported: sinfo'
run as_user qdel
like "qdel without a job" "$code:$err" '^1:qdel: error: a job id is needed'

like "pbsnodes" "$(as_user pbsnodes n1)" $'^n1\n     state = free\n     np = 4\n'
ok "pbsnodes -o" pbsnodes -o -N fan n2
like "-l lists it" "$(pbsnodes -l)" '^n2 +offline$'
like "with the reason" "$(scontrol show node n2)" 'Reason=fan'
ok "pbsnodes -r" pbsnodes -r n2
shows "nothing is offline" '' pbsnodes -l
for name in qsub qstat qdel qhold qrls pbsnodes; do like "$name --help" "$($name --help)" "^Usage: $name "; done
done_testing
