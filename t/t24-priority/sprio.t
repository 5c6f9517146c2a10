#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The priority of waiting jobs: its parts add up, and jobs start in its order.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 1 --cpus 4 --mem 4G
cd "$(user_dir)"
[ "$(id -u)" -eq 0 ] || TEST_UID=$(id -un)
cat >>"$D/spur.conf" <<END

[accounting]
enforce = ["associations"]
[priority]
weight_age = 1000
weight_fairshare = 10000
weight_job_size = 500
weight_partition = 2000
weight_qos = 3000
weight_tres = "cpu=1000"
max_age = "0:10"
calc_period = "0:01"
[[partitions]]
name = "fast"
nodes = "ALL"
priority_job_factor = 10
[[qos]]
name = "high"
priority = 100
[[qos]]
name = "low"
priority = 10
[[accounts]]
name = "sci"
fairshare = 3
[[users]]
name = "$TEST_UID"
account = "sci"
[[users]]
name = "root"
account = "sci"
END
ok 'the configuration is taken' scontrol reconfigure
mine() { as_user sbatch --parsable -o /dev/null "$@"; }

run sprio -w -o '%i %S %A %F %J %P %Q %T'
is 'weights' "$out" 'JOBID SITE AGE FAIRSHARE JOBSIZE PARTITION QOS TRES
Weights 1 1000 10000 500 2000 3000 cpu=1000'
late=0
for weight in $(seq 1001 1030) 1000; do # what is answered is in force
    sed -i "s/^weight_age = .*/weight_age = $weight/" "$D/spur.conf"
    scontrol reconfigure && [ "$(sprio -h -w -o %A)" = "$weight" ] || late=$((late + 1))
done
is 'after each of 31 reconfigurations sprio shows its weight' "$late" 0
busy=$(mine -n 4 --exclusive --wrap 'sleep 300')
ok 'the node is busy' wait_for 20 job_is "$busy" RUNNING
plain=$(mine -n 2 --wrap 'sleep 300')
low=$(mine -q low --wrap 'sleep 300')
high=$(mine -q high -p fast --wrap 'sleep 300')
nice=$(mine -q high --nice=50 --wrap 'sleep 300')
held=$(mine --hold --wrap true)

adds_up() { # job: the parts, less nice, are the priority, and squeue shows the same
    local i y a b f j p q s t n
    read -r i y a b f j p q s n t < <(sprio -h -j "$1" -o '%i %Y %A %B %F %J %P %Q %S %N %T')
    t=${t#cpu=}
    [ "$y" = $((a + b + f + j + p + q + s + ${t:-0} - n)) ] && [ "$y" = "$(squeue -h -j "$1" -o %Q)" ]
}
for id in $plain $low $high $nice; do
    ok "the parts of job $id add up to what squeue shows" wait_for 10 adds_up "$id"
done
run sprio -h -o '%i %Q %P %N'
is 'QOS and partition by the highest there is, nice apart' "$out" "$plain 0 200 0
$low 300 200 0
$high 3000 2000 0
$nice 3000 200 50"
unlike 'a held job is not listed' "$out" "(^|
)$held "
is 'sizes by CPUs and nodes' "$(sprio -h -j "$plain" -o '%J %T')" '375 cpu=500'
is 'factors before the weight' "$(sprio -h -n -j "$low" -o '%q %t')" '0.1000000 cpu=0.25'
is 'order by priority' "$(sprio -h -S -Y -o %i | xargs)" "$high $nice $plain $low"
run sprio -n
like 'normal columns' "$out" '^ +JOBID PARTITION PRIORITY   AGE        FAIRSHARE  JOBSIZE    PARTITION  QOS        TRES'
run sprio
like 'weighted columns' "$out" '^ +JOBID PARTITION   PRIORITY       SITE        AGE  FAIRSHARE    JOBSIZE  PARTITION        QOS                 TRES'
like 'columns with the user' "$(sprio -u "$TEST_UID" | head -n 1)" 'PARTITION     USER   PRIORITY'
like 'long columns' "$(sprio -l | head -n 1)" 'PARTITION     USER  ACCOUNT   PRIORITY +SITE +AGE +ASSOC +FAIRSHARE +JOBSIZE +PARTITION +QOSNAME +QOS +NICE +TRES$'
is 'nobody' "$(sprio -j 99999 | wc -l)" 1
run sprio -o '%Z'
like 'a letter that is none' "$err" 'Invalid job format specification: Z'

# a line for each of its partitions
both=$(mine -p debug,fast --wrap 'sleep 300')
is 'a job in two partitions has a line in each' "$(sprio -h -j "$both" -o '%i %r %P %p')" "$both debug 200 0.1000000
$both fast 2000 1.0000000"
each_adds_up() {
    local y a b f j p q s n t lines=0
    while read -r y a b f j p q s n t; do
        t=${t#cpu=} lines=$((lines + 1))
        [ "$y" = $((a + b + f + j + p + q + s + ${t:-0} - n)) ] || return 1
    done < <(sprio -h -j "$both" -o '%Y %A %B %F %J %P %Q %S %N %T')
    [ $lines = 2 ]
}
ok 'each adds up' each_adds_up
is 'only the line of the partition that is asked for' "$(sprio -h -p fast -j "$both" -o %r)" fast
is 'squeue has the higher one' "$(squeue -h -j "$both" -o %Q)" "$(sprio -h -S -Y -j "$both" -o %Y | head -n 1)"
is 'in order' "$(sprio -h -S -Y -j "$both" -o %r | xargs)" 'fast debug'
scancel "$both"

grown() { [ "$(sprio -h -j "$low" -o %A)" -ge "$1" ]; }
ok 'age grows' wait_for 30 grown 1
ok 'to its whole weight and no more' wait_for 40 grown 1000
is 'no more' "$(sprio -h -j "$low" -o %A)" 1000
factor() { sprio -h -n -j "$low" -o %f; }
ok 'usage lowers the share of who has used most' wait_for 20 eval '[ "$(factor)" = 0.5000000 ]'

ok 'an administrator adds a factor of the site' scontrol update jobid="$plain" sitefactor=5000
is 'which shows' "$(sprio -h -j "$plain" -o %S)" 5000
ok 'and adds up' wait_for 10 adds_up "$plain"
is 'and comes first' "$(sprio -h -S -Y -o %i | head -n 1)" "$plain"
ok 'over a restart of the controller too' controller_again
is 'as before' "$(sprio -h -j "$plain" -o %S)" 5000
ok 'it may be less than nothing' scontrol update jobid="$plain" sitefactor=-100
ok 'and adds up' wait_for 10 adds_up "$plain"
run as_user scontrol update jobid="$plain" sitefactor=1
[ "$(id -u)" -ne 0 ] || like 'but not by its owner' "$code $err" '^1 .*Access/permission denied'
scontrol update jobid="$plain" sitefactor=0
ok 'an administrator sets a priority' scontrol update jobid="$low" priority=1000000
is 'which is then all there is' "$(squeue -h -j "$low" -o %Q)" 1000000
run as_user scontrol update jobid="$plain" priority=2000000
not_ok 'a user cannot raise it' [ "$code" -eq 0 ]
ok 'but lower it by nice' as_user scontrol update jobid="$plain" nice=100
ok 'which shows' wait_for 5 eval '[ "$(sprio -h -j '"$plain"' -o %N)" = 100 ]'
ok 'it still adds up' wait_for 10 adds_up "$plain"
ok 'an administrator moves a job to the top of its owner' scontrol top "$plain"
first() { [ "$(squeue -h -t pending -o '%Q %i' | sort -rn | head -n 1 | cut -d' ' -f2)" = "$1" ]; }
ok 'where it is then' first "$plain"
ok 'and back' scontrol top "$low"
as_user scancel "$busy"
ok 'the first in order starts' wait_for 20 job_is "$low" RUNNING
ok 'and the next' wait_for 20 job_is "$high" RUNNING
done_testing
