#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fair share: a tree of accounts and users ranked by share over usage, usage billed by TRES with GPUs, and who starts first.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all 'needs root and ordinary users'
cat >"$T/conf" <<'END'
[accounting]
enforce = ["associations"]
[priority]
weight_fairshare = 100000
calc_period = "0:01"
[[accounts]]
name = "physics"
fairshare = 3
[[accounts]]
name = "biology"
fairshare = 1
[[accounts]]
name = "theory"
parent = "physics"
fairshare = 1
[[users]]
name = "20001"
account = "theory"
fairshare = 1
[[users]]
name = "20002"
account = "theory"
fairshare = 1
[[users]]
name = "20003"
account = "biology"
fairshare = 1
[[users]]
name = "root"
account = "biology"
END
cluster_up --nodes 1 --cpus 4 --mem 4G --gpus mi300x:2 --conf "$T/conf"
part=$(scontrol show partition | sed -n 's/^PartitionName=//p' | head -n 1)
sed -i "/^\[\[partitions\]\]/a billing_weights = \"cpu=1,gres/gpu=100\"" "$D/spur.conf"
ok 'GPUs are billed' scontrol reconfigure
like 'as the partition says' "$(scontrol show partition "$part")" 'TRESBillingWeights=.*gres/gpu=100'
mkdir -p "$T/w"
chmod 1777 "$T/w"
cd "$T/w"
by() { local uid=$1; shift; setpriv --reuid "$uid" --regid "$uid" --clear-groups -- sbatch --parsable --mem=10 -t 5 -o /dev/null "$@"; }
factor() { sprio -h -n -j "$1" -o %f; }
ranks() { sprio -h -n -o '%f %i' | sort -rn | cut -d' ' -f2 | xargs; } # highest factor first
ranked() { # jobs: in that order, and no two alike
    [ "$(ranks)" = "$*" ] && [ -z "$(sprio -h -n -o %f | sort | uniq -d)" ]
}

# Somebody must use the machine before anybody has used more than others.
busy=$(by 20001 -c 4 --gres=gpu:1 --wrap 'sleep 300')
ok 'theory uses a GPU' wait_for 20 job_is "$busy" RUNNING
a=$(by 20001 -c 1 --wrap 'sleep 300')
b=$(by 20002 -c 1 --wrap 'sleep 300')
c=$(by 20003 -c 1 --wrap 'sleep 300')
billing=$(scontrol show job "$busy" | tr ' ,' '\n\n' | sed -n 's/^billing=//p' | head -n 1)
is 'what it is billed for' "$billing" 104
like 'so what the partition has' "$(scontrol show partition "$part")" 'TRES=cpu=4,mem=4G,node=1,billing=204,gres/gpu=2'
ok 'who used nothing is first; in an account who used less' wait_for 30 ranked "$c" "$b" "$a"
is 'factors are ranks over the number of users, of whom two used nothing' "$(factor "$c") $(factor "$b") $(factor "$a")" '1.0000000 0.5000000 0.2500000'
scancel "$busy"
ok 'the order of the ranks is that of the starts' wait_for 20 job_is "$c" RUNNING
wait_for 20 job_is "$a" RUNNING
scancel "$a" "$b" "$c"
ok 'they are gone' wait_for 20 eval '[ -z "$(squeue -h)" ]'

# Shares: 3 to 1. Biology uses as much a second as theory did; soon it has had more than its part.
busy=$(by 20003 -c 4 --gres=gpu:2 --wrap 'sleep 300')
wait_for 20 job_is "$busy" RUNNING
b=$(by 20002 -c 1 --wrap 'sleep 300')
c=$(by 20003 -c 1 --wrap 'sleep 300')
ok 'who has used more than his share falls behind' wait_for 60 ranked "$b" "$c"
before=$(ranks)
ok 'usage is kept over kill -9' controller_again
ok 'and the ranks with it' wait_for 20 ranked $before
like 'explain names what goes first' "$(spur explain "$c")" "ahead|before|first|$b"

# It decays: with a half-life of a second or so all that was used is soon forgotten.
scancel "$busy" "$b" "$c"
wait_for 20 eval '[ -z "$(squeue -h)" ]'
sed -i 's/^calc_period.*/&\nusage_reset = "NOW"/' "$D/spur.conf"
ok 'usage is set to nothing' scontrol reconfigure
busy=$(by 20003 -c 4 --wrap 'sleep 300')
wait_for 20 job_is "$busy" RUNNING
a=$(by 20001 -c 1 --wrap 'sleep 300')
b=$(by 20002 -c 1 --wrap 'sleep 300')
level() { [ "$(factor "$a")" = "$(factor "$b")" ]; }
ok 'then those who had used much and little are level' wait_for 30 level
done_testing
