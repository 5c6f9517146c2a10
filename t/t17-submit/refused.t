#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What an ordinary user may not ask for at submission: a priority, a negative nice value; and texts that would be
# options of the mail program or break lines.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all "needs root, to be an ordinary user and an administrator"
cluster_up --nodes 1 --cpus 4
cd "$(user_dir)" || exit 1
count() { squeue -h -t all -o %A | wc -l; }
user_refused() { local name=$1 want=$2; shift 2; refused "$name" "$want" as_user timeout 20 "$@"; }

why='--priority: only operators and administrators'
user_refused "sbatch --priority" "$why" sbatch --priority=1000000 --wrap true
user_refused "salloc --priority" "$why" salloc --priority=5 true
user_refused "srun --priority" "$why" srun --priority=5 true
user_refused "a component's --priority" "$why" sbatch -n1 : --priority=7 -n1 --wrap true
why='--nice: only operators and administrators'
user_refused "sbatch --nice" "$why" sbatch --nice=-1 --wrap true
user_refused "salloc --nice" "$why" salloc --nice=-10 true
user_refused "srun --nice" "$why" srun --nice=-10 true
user_refused "a component's --nice" "$why" sbatch -n1 : --nice=-7 -n1 --wrap true
user_refused "--test-only neither" "$why" sbatch --test-only --nice=-7 --wrap true
is "none of them is in the queue" "$(count)" 0
held=$(as_user sbatch --parsable --priority=0 -o /dev/null --wrap true)
is "a priority of 0 holds the job" "$(squeue -h -j "$held" -o '%T %r')" 'PENDING JobHeldUser'
nice=$(as_user sbatch --parsable -H --nice=50 -o /dev/null --wrap true)
like "a positive nice value is anybody's" "$(scontrol show job "$nice")" 'Nice=50'
high=$(sbatch --parsable -H --priority=4000 --nice=-5 -o /dev/null --wrap true)
like "an administrator may do both" "$(scontrol show job "$high")" 'Nice=-5'

user_refused "--mail-user as an option" "--mail-user: an address cannot begin with '-'" sbatch --mail-user=-oQ/tmp --wrap true
user_refused "--mail-user with blanks" '--mail-user: an address cannot have blanks' sbatch --mail-user='a -b' --wrap true
user_refused "--mail-user on two lines" '--mail-user: control character 0x0a' sbatch --mail-user=$'a\nBcc: b' --wrap true
user_refused "a name on two lines" 'name: control character 0x0a at character 2' sbatch -J $'a\nb' --wrap true
user_refused "a name that moves the cursor" 'name: control character 0x1b' srun -J $'\e[2Jb' true
user_refused "a comment on two lines" 'comment: control character 0x0a' salloc --comment=$'x\nJobId=1' true
user_refused "an account on two lines" 'account: control character' sbatch -A $'x\ny' --wrap true
user_refused "at update too: its name" 'name: control character' scontrol update jobid="$held" name=$'a\tb'
user_refused "its comment" 'comment: control character' scontrol update jobid="$held" comment=$'a\nb'
user_refused "its address" "an address cannot begin with '-'" scontrol update jobid="$held" mailuser=-x
run sbatch --mail-user=-x --wrap true
is "root is told the same" "$((code != 0))" 1
ok "letters of all languages are not control characters" as_user sbatch -H -J 'Größe 力' --comment='été ✓' --wrap true
done_testing
