#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Submissions in corners that scripts rely on: deadlines, directives, values that Slurm refuses, folders made late, mail.
. "$(dirname "$0")/../lib.sh"
cat >"$T/mail" <<END
#!/bin/sh
echo "\$2|\$SLURM_JOB_MAIL_TYPE|\$SLURM_JOB_QUEUED_TIME|\$SLURM_JOB_RUN_TIME|\$SLURM_JOB_EXIT_CODE_MAX" >>"$T/mails"
END
chmod 755 "$T/mail"
cat >"$T/spur.conf" <<CONF
cluster_name = "corners"
[scheduler]
config_overrides = true
[hooks]
mail_prog = "$T/mail"
[[nodes]]
names = "n[1-2]"
cpus = 8
memory_mb = 4000
gres = ["gpu:2"]
[[partitions]]
name = "debug"
nodes = "ALL"
default = true
[[partitions]]
name = "low"
nodes = "ALL"
priority_job_factor = 1
CONF
cluster_up --conf "$T/spur.conf"
chmod 777 "$T"
cd "$T" || exit 1
limit() { scontrol show job "$1" | sed -n 's/.* TimeLimit=\([^ ]*\).*/\1/p'; }

# Deadlines
j=$(sub --deadline now+600)
like "a deadline is a limit" "$(limit "$j")" '^00:09:5[0-9]|00:10:00$'
j=$(sub -H --deadline now+1hour --time-min 20 -t120)
like "--time-min lets a limit be shortened to it" "$(limit "$j")" '^00:59:[0-9]+|01:00:00$'
j=$(sub -H --deadline now+1hour -t30)
is "a limit before it stays" "$(limit "$j")" 00:30:00
run srun --deadline now+1hour -t120 true
like "a limit beyond it" "$code:$err" '^1:.*Requested time limit is invalid \(missing or exceeds some limit\)'
run srun --deadline now+1hour --time-min 120 true
like "--time-min beyond it" "$code:$err" '^1:.*Invalid time-min specification'
run sbatch --deadline=2001-01-01 --wrap true
is "a deadline in the past" "$code:$err" '1:sbatch: error: Batch job submission failed: Requested time limit is invalid (missing or exceeds some limit)'

# The first component's times hold for all
is "-t of the first component" "$(salloc -Q -t9 -n1 : -n1 : -n1 squeue -h -n salloc,squeue -o '%l' | sort -u)" 9:00
printf '#!/bin/sh\n#SBATCH -t 7 -n1\n#SBATCH hetjob\n#SBATCH -n1\ntrue\n' >het.sh
j=$(submit -H -o /dev/null het.sh)
is "the same of a script" "$(squeue -h -j "$j" -o %l | sort -u)" 7:00

# Directives
printf '#!/bin/sh\n#PBS -N pbsname\ntrue\n' >pbs.sh
for pair in 0:pbsname 1:pbs.sh; do
    j=$(SBATCH_IGNORE_PBS=${pair%:*} submit -H -o /dev/null pbs.sh)
    is "SBATCH_IGNORE_PBS=${pair%:*}" "$(squeue -h -j "$j" -o %j)" "${pair#*:}"
done

# Values
run srun --gres=gpu: true
like "--gres=gpu:" "$code:$err" '^1:srun: error: Invalid generic resource \(gres\) specification'
run sbatch -N 1000000k --wrap true
is "-N 1000000k" "$code:$err" '1:sbatch: error: Batch job submission failed: More processors requested than permitted'
run scontrol update partitionname=debug TRESBillingWeights=cpu=abc
like "weights that are not numbers" "$code:$err" '^1:Invalid TRESBillingWeights value: cpu=abc'
ok "weights that are" scontrol update partitionname=low TRESBillingWeights=cpu=1.0,mem=0.25G,gres/gpu=2
run scontrol update jobid="$j" sitefactor=-2147483646
like "a site factor beyond the range" "$code:$err" '^1:Invalid SiteFactor, must be between -2147483645 and 2147483645'

# A folder that is made just after sbatch returned
j=$(submit -o late/%j/out --wrap 'echo hi')
sleep 0.3
mkdir -p "late/$j"
wait_for 20 test -s "late/$j/out"
is "a folder that is made late" "$(cat "late/$j/out"):$(wait_for 10 job_is "$j" COMPLETED && echo ok)" hi:ok

# Mail
sbatch -Q -W -o /dev/null -J posted --mail-type=ALL --wrap 'exit 3' >/dev/null
told() { [ "$(wc -l <mails)" = 2 ]; }
wait_for 20 told
like "mail at the start" "$(head -1 mails)" '^Slurm Job_id=[0-9]+ Name=posted Began, Queued time 00:00:[0-9]+\|Began\|00:00:[0-9]+\|00:00:0[0-9]\|$'
like "mail at the end" "$(tail -1 mails)" '^Slurm Job_id=[0-9]+ Name=posted Failed, Run time 00:00:[0-9]+, FAILED, ExitCode 3\|Failed\|00:00:[0-9]+\|00:00:[0-9]+\|3$'
done_testing
