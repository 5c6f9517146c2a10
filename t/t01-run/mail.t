#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# mail.t - every word of --mail-type sends what it says, once, to whom it should
. "$(dirname "$0")/../lib.sh"
cat >"$T/mail" <<'MAIL'
#!/bin/bash
case $2 in *Name=order*Began*) sleep 1 ;; esac
echo "$4: $2" >>"${0%/*}/mails"
env | grep ^SLURM >"${0%/*}/env.$SLURM_JOB_MAIL_TYPE.$SLURM_JOB_ID"
MAIL
chmod 755 "$T/mail"
cat >"$T/conf" <<CONF
[hooks]
mail_prog = "$T/mail"
mail_domain = "site.example"
[jobs]
kill_wait = 1
[scheduler]
config_overrides = true
[access]
disable_root_jobs = false
[[nodes]]
names = "n[1-2]"
cpus = 16
memory_mb = 4000
[[partitions]]
name = "debug"
default = true
nodes = "ALL"
[[partitions]]
name = "short"
nodes = "ALL"
default_time = "0:08"
CONF
cluster_up --nodes 2 --conf "$T/conf"
cd "$(user_dir)"
: >"$T/mails"
sub() { as_user sbatch --parsable -o /dev/null "$@"; }
has() { grep -qE "$1" "$T/mails"; }
mailed() { ok "$1" wait_for 60 has "$2"; }
count() { grep -cE "$1" "$T/mails"; }

# Time limits: they begin first, the shortest that there are.
limit=$(sub -J limit -p short --mail-type=TIME_LIMIT_50,TIME_LIMIT_80,TIME_LIMIT,FAIL --mail-user=a@b --wrap 'sleep 100')
half=$(sub -J half -p short --mail-type=TIME_LIMIT_50 --mail-user=a@b --wrap 'sleep 100')
tasks=$(sub -J tasks -a 1-2 -p short --mail-type=TIME_LIMIT_90 --mail-user=a@b --wrap 'sleep 100')
endless=$(sub -J endless --mail-type=TIME_LIMIT,TIME_LIMIT_50 --mail-user=a@b --wrap 'sleep 100')

good=$(sub -J good --mail-type=ALL --mail-user=a@b --wrap true)
mailed "ALL: the start" "^a@b: .* Job_id=$good Name=good Began, Queued time 00:00:[0-9]+$"
mailed "ALL: the end" "^a@b: .* Job_id=$good Name=good Ended, Run time 00:00:[0-9]+, COMPLETED, ExitCode 0$"
failing=$(sub -J bad --mail-type=FAIL --wrap 'exit 3')
mailed "FAIL, to its user" "^$(id -un $TEST_UID 2>/dev/null || echo $TEST_UID)@site\.example: .* Job_id=$failing Name=bad Failed, Run time .*, FAILED, ExitCode 3$"
fine=$(sub -J fine --mail-type=FAIL --wrap true)
gone=$(sub -J gone -H --mail-type=FAIL --wrap true)
over=$(sub -J over -H --mail-type=END --mail-user=a@b --wrap true)
scancel "$gone" "$over"
mailed "END of one that is cancelled" "Job_id=$over Name=over Ended, Run time 00:00:00, CANCELLED, ExitCode 0$"
again=$(sub -J again --requeue --mail-type=REQUEUE --mail-user=a@b --wrap '[ "$SLURM_RESTART_COUNT" != 0 ] || sleep 100')
ok "a job runs" wait_for 60 job_is "$again" RUNNING
scontrol requeue "$again"
mailed "REQUEUE" "Job_id=$again Name=again Requeued, Run time 00:00:[0-9]+$"
never=$(sub -J never -d "afterok:$failing" --mail-type=INVALID_DEPEND --mail-user=a@b --wrap true)
mailed "INVALID_DEPEND" "Job_id=$never Name=never Invalid dependency$"
het=$(as_user sbatch --parsable -J het -o /dev/null -n1 --mail-type=BEGIN --mail-user=a@b : -n1 --wrap true)
mailed "a heterogeneous job" "Job_id=$het Name=het Began"
ok "one that ends well" wait_for 60 job_is "$fine" COMPLETED

mailed "TIME_LIMIT_50" "^a@b: .* Job_id=$limit Name=limit Reached 50% of time limit, Run time 00:00:[0-9]+$"
ok "the controller is killed and comes back" controller_again
mailed "TIME_LIMIT_80" "Job_id=$limit Name=limit Reached 80% of time limit, Run time 00:00:[0-9]+$"
mailed "TIME_LIMIT" "Job_id=$limit Name=limit Reached time limit, Run time 00:00:[0-9]+$"
mailed "and that it failed" "Job_id=$limit Name=limit Failed, Run time .*, TIMEOUT, ExitCode 0$"
mailed "half of it for another" "Job_id=$half Name=half Reached 50% of time limit"
for task in 1 2; do mailed "each task of an array" "Array Task Job_id=${tasks}_$task \([0-9]+\) Name=tasks Reached 90% of time limit"; done

order=$(sub -J order -a 1-2 --mail-type=BEGIN,END --mail-user=a@b --wrap true)
mailed "a slow mail about the beginning" "Name=order Began"
mailed "and one about the end" "Name=order Ended"
is "come in that order" "$(sed -n 's/.*Name=order \([A-Z][a-z]*\).*/\1/p' "$T/mails" | tr '\n' ' ')" "Began Ended "

is "nothing twice" "$(sort "$T/mails" | uniq -d)" ""
is "not more of the one with a limit" "$(count "Name=limit ")" 4
is "one of the other" "$(count "Name=half ")" 1
is "one of each task" "$(count "Name=tasks ")" 2
is "none without a limit" "$(count "Name=endless ")" 0
is "none of a good end for FAIL" "$(count "Name=fine ")" 0
is "who cancels knows it" "$(count "Name=gone ")" 0
is "the first component stands for all" "$(count "Name=het ")" 1
run cat "$T/env.Failed.$failing"
like "the job is in the environment" "$out" "SLURM_JOB_STATE=FAILED"
like "with its name" "$out" "SLURM_JOB_NAME=bad"
like "and where it ran" "$out" "SLURM_JOB_NODELIST=n[12]"
scancel "$endless"
done_testing
