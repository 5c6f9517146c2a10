#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What an ordinary user may not ask for at submission: a priority, a negative nice value; and texts that would be
# options of the mail program or break lines.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all "needs root, to be an ordinary user and an administrator"
cluster_up --nodes 1 --cpus 4
cd "$(user_dir)" || exit 1
count() { squeue -h -t all -o %A | wc -l; }
refused() { # NAME REGEX COMMAND…: fails with this text
    local name=$1 want=$2
    shift 2
    run as_user timeout 20 "$@"
    if [ $code -ne 0 ] && [ $code -ne 124 ]; then like "$name" "$err" "$want"; else fail "$name" "exit $code" "$out" "$err"; fi
}

why='--priority: only operators and administrators'
refused "sbatch --priority" "$why" sbatch --priority=1000000 --wrap true
refused "salloc --priority" "$why" salloc --priority=5 true
refused "srun --priority" "$why" srun --priority=5 true
refused "a component's --priority" "$why" sbatch -n1 : --priority=7 -n1 --wrap true
why='--nice: only operators and administrators'
refused "sbatch --nice" "$why" sbatch --nice=-1 --wrap true
refused "salloc --nice" "$why" salloc --nice=-10 true
refused "srun --nice" "$why" srun --nice=-10 true
refused "a component's --nice" "$why" sbatch -n1 : --nice=-7 -n1 --wrap true
refused "--test-only neither" "$why" sbatch --test-only --nice=-7 --wrap true
is "none of them is in the queue" "$(count)" 0
held=$(as_user sbatch --parsable --priority=0 -o /dev/null --wrap true)
is "a priority of 0 holds the job" "$(squeue -h -j "$held" -o '%T %r')" 'PENDING JobHeldUser'
nice=$(as_user sbatch --parsable -H --nice=50 -o /dev/null --wrap true)
like "a positive nice value is anybody's" "$(scontrol show job "$nice")" 'Nice=50'
high=$(sbatch --parsable -H --priority=4000 --nice=-5 -o /dev/null --wrap true)
like "an administrator may do both" "$(scontrol show job "$high")" 'Nice=-5'

refused "--mail-user as an option" "--mail-user: an address cannot begin with '-'" sbatch --mail-user=-oQ/tmp --wrap true
refused "--mail-user with blanks" '--mail-user: an address cannot have blanks' sbatch --mail-user='a -b' --wrap true
refused "--mail-user on two lines" '--mail-user: control character 0x0a' sbatch --mail-user=$'a\nBcc: b' --wrap true
refused "a name on two lines" 'name: control character 0x0a at character 2' sbatch -J $'a\nb' --wrap true
refused "a name that moves the cursor" 'name: control character 0x1b' srun -J $'\e[2Jb' true
refused "a comment on two lines" 'comment: control character 0x0a' salloc --comment=$'x\nJobId=1' true
refused "an account on two lines" 'account: control character' sbatch -A $'x\ny' --wrap true
refused "at update too: its name" 'name: control character' scontrol update jobid="$held" name=$'a\tb'
refused "its comment" 'comment: control character' scontrol update jobid="$held" comment=$'a\nb'
refused "its address" "an address cannot begin with '-'" scontrol update jobid="$held" mailuser=-x
run sbatch --mail-user=-x --wrap true
is "root is told the same" "$((code != 0))" 1
ok "letters of all languages are not control characters" as_user sbatch -H -J 'Größe 力' --comment='été ✓' --wrap true
done_testing
