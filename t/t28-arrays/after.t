#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What waits for an array or a task of one, mail about arrays, and a controller that is killed meanwhile.
. "$(dirname "$0")/../lib.sh"
cat >"$T/mail" <<'MAIL'
#!/bin/bash
echo "$4: $2" >>"${0%/*}/mails"
MAIL
chmod 755 "$T/mail"
cat >"$T/conf" <<CONF
cluster_name = "quick"
[scheduler]
config_overrides = true
[hooks]
mail_prog = "$T/mail"
[access]
disable_root_jobs = false
[[nodes]]
names = "n1"
cpus = 8
memory_mb = 4000
[[partitions]]
name = "debug"
default = true
nodes = "ALL"
CONF
cluster_up --nodes 1 --conf "$T/conf"
cd "$T"
sub() { sbatch --parsable -o /dev/null "$@"; }
state() { squeue -h -t all -j "$1" -o %T; }
ends() { wait_for 30 eval '[ "$(squeue -h -t all -j '"$1"' -o %T)" = '"$2"' ]'; }
states() { squeue -h -r -t all -j "$1" -o '%K:%t' | sort -n | tr '\n' ' ' | sed 's/ $//'; }
become() { wait_for 30 eval '[ "$(states '"$1"')" = "'"$2"'" ]'; }
mails() { wait_for 30 eval '[ "$(wc -l <"'"$T"'/mails")" -ge '"$1"' ]'; }
: >"$T/mails"

# Task 1 fails, 2 waits for a file, the others end well.
arr=$(sub -a 0-3 -H --wrap '[ $SLURM_ARRAY_TASK_ID != 2 ] || while [ ! -e go ]; do sleep 0.1; done; [ $SLURM_ARRAY_TASK_ID != 1 ]')
corr=$(sub -a 0-3 -d "aftercorr:$arr" --wrap true)
one=$(sub -d "afterany:${arr}_1" --wrap true)
two=$(sub -d "afterok:${arr}_2" --wrap true)
never=$(sub -d "afterok:${arr}_1" --wrap true)
all=$(sub -d "afterany:$arr" --wrap true)
good=$(sub -d "afterok:$arr" --wrap true)
is 'all wait' "$(squeue -h -j "$corr,$one,$two,$never,$all,$good" -o %r | sort -u)" Dependency
run sbatch -d "afterok:${arr}_9" --wrap true
like 'a task that is not there is refused' "$code $err" '^1 .*Job dependency problem'
is 'the dependency is shown' "$(squeue -h -j "$one" -o %E)" "afterany:${arr}_1(unfulfilled)"
is 'on all tasks too' "$(squeue -h -j "$all" -o %E)" "afterany:${arr}_*(unfulfilled)"
ok 'the controller is killed and comes back' controller_again
is 'and when it is back' "$(squeue -h -j "$all" -o %E)" "afterany:${arr}_*(unfulfilled)"
is 'they wait as before' "$(squeue -h -j "$corr,$one,$two,$never,$all,$good" -o %r | sort -u)" Dependency
scontrol release "$arr"
ok 'three tasks end' become "$arr" '0:CD 1:F 2:R 3:CD'
ok 'each twin follows its own' become "$corr" '0:CD 1:PD 2:PD 3:CD'
is 'the twin of the failed one never can' "$(squeue -h -r -j "${corr}_1" -o %r)" DependencyNeverSatisfied
is 'the other waits' "$(squeue -h -r -j "${corr}_2" -o %r)" Dependency
ok 'after any end of one task' ends "$one" COMPLETED
is 'after its good end never' "$(squeue -h -j "$never" -o '%T %r')" 'PENDING DependencyNeverSatisfied'
is 'the whole array has not ended' "$(state "$two") $(state "$all") $(state "$good")" 'PENDING PENDING PENDING'
like 'explain counts its tasks' "$(spur explain "$all")" "waits for other jobs: job $arr \(3 of 4 tasks ended, 1 badly\) has to end"
ok 'the controller is killed again' controller_again
is 'a task runs on' "$(squeue -h -r -j "${arr}_2" -o %T)" RUNNING
touch go
ok 'the last task ends' become "$arr" '0:CD 1:F 2:CD 3:CD'
ok 'and its twin' become "$corr" '0:CD 1:PD 2:CD 3:CD'
ok 'after the good end of the second' ends "$two" COMPLETED
ok 'after the end of all' ends "$all" COMPLETED
is 'after the good end of all never' "$(squeue -h -j "$good" -o '%T %r')" 'PENDING DependencyNeverSatisfied'
scancel "$corr" "$never" "$good"

# ---- mail ----
is 'nobody asked for mail' "$(cat "$T/mails")" ''
arr=$(sub -a 1-3%1 -J bulk --mail-type=BEGIN,END,FAIL --mail-user=a@b --wrap 'exit $((SLURM_ARRAY_TASK_ID == 2 ? 4 : 0))')
ok 'an array sends two mails' mails 2
ok 'when all of it has ended' become "$arr" '1:CD 2:F 3:CD'
is 'about its begin and its end' "$(cat "$T/mails")" "a@b: Slurm Array Summary Job_id=${arr}_* ($arr) Name=bulk Began
a@b: Slurm Array Summary Job_id=${arr}_* ($arr) Name=bulk Ended, Mixed, ExitCode [0-4]"
: >"$T/mails"
arr=$(sub -a 1-2%1 -J each --mail-type=END,ARRAY_TASKS --mail-user=a@b --wrap true)
ok 'or one for each task' mails 2
ok 'that has ended' become "$arr" '1:CD 2:CD'
like 'by name' "$(sort "$T/mails" | sed -n 1p)" "^a@b: Slurm Array Task Job_id=${arr}_1 \([0-9]+\) Name=each Ended, Run time 00:00:0[0-9], COMPLETED, ExitCode 0$"
: >"$T/mails"
arr=$(sub -a 1-2 -H -J gone --mail-type=END --mail-user=a@b --wrap true)
scancel "$arr"
ok 'also when it is cancelled before it began' mails 1
like 'and says so' "$(cat "$T/mails")" "Job_id=${arr}_\* \($arr\) Name=gone "
: >"$T/mails"
arr=$(sub -a 1-2 -H --wrap true)
one=$(sub -J lone -d "afterok:${arr}_1" --mail-type=INVALID_DEPEND --mail-user=a@b --wrap true)
many=$(sub -J flock -a 1-9 -d "afterok:${arr}_1" --mail-type=INVALID_DEPEND --mail-user=a@b --wrap true)
scancel "$arr"
ok 'a dependency that never can be is mailed' mails 2
is 'once a job and once an array' "$(sort "$T/mails")" "a@b: Slurm Array Summary Job_id=${many}_* ($many) Name=flock Invalid dependency
a@b: Slurm Job_id=$one Name=lone Invalid dependency"
done_testing
