#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Accounts, associations and QOS: who may submit what, and what limits keep waiting.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 2 --cpus 8 --mem 4G
cd "$(user_dir)"
[ "$(id -u)" -eq 0 ] || TEST_UID=$(id -un)
cat >>"$D/spur.conf" <<END

[accounting]
enforce = ["limits", "qos"]
[[qos]]
name = "one"
max_jobs_per_user = 1
[[qos]]
name = "strict"
flags = ["DenyOnLimit"]
max_tres_per_job = "cpu=2"
max_wall = 30
[[qos]]
name = "secret"
[[accounts]]
name = "sci"
grp_tres = "cpu=6"
qos = ["normal", "one", "strict"]
[[accounts]]
name = "phys"
parent = "sci"
max_tres_per_job = "node=1"
[[accounts]]
name = "few"
max_submit_jobs = 3
grp_jobs = 1
[[users]]
name = "$TEST_UID"
account = "sci"
[[users]]
name = "$TEST_UID"
account = "phys"
default = true
[[users]]
name = "$TEST_UID"
account = "few"
END
ok 'the configuration is right' spur config check "$D/spur.conf"
ok 'and is taken' scontrol reconfigure
mine() { as_user sbatch --parsable -o /dev/null "$@"; }
column() { squeue -h -t all -j "$1" -o "$2"; }
reason_is() { [ "$(column "$1" %r)" = "$2" ]; }

run mine -A nosuch --wrap true
is 'an account that is not there is refused' "$code $err" '1 sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified'
run mine -q nosuch --wrap true
is 'a QOS that is not there is refused' "$code $err" '1 sbatch: error: Batch job submission failed: Invalid qos specification'
run mine -q secret --wrap true
is 'and one that the association may not use' "$code $err" '1 sbatch: error: Batch job submission failed: Invalid qos specification'

a=$(mine --wrap 'sleep 300')
is 'the default account and QOS are filled in' "$(column "$a" '%a %q')" 'phys normal'
ok 'a job within limits runs' wait_for 20 job_is "$a" RUNNING
b=$(mine -n 4 -A sci --wrap 'sleep 300')
ok 'and another' wait_for 20 job_is "$b" RUNNING
c=$(mine -n 4 --wrap 'sleep 300')
ok 'the limit of the account above both keeps the third waiting' reason_is "$c" AssocGrpCpuLimit
like 'explain says which limit, how much of it is in use, and whose it is' "$(spur explain "$c")" \
    'GrpTRES of account sci is cpu=6; [56] in use, the job asks for 4'
d=$(mine -N 2 --wrap true)
ok 'a Max limit of the account above holds for the user' reason_is "$d" AssocMaxNodePerJobLimit
like 'and can never start' "$(spur explain "$d")" 'MaxTRESPerJob of user .* is node=1.*never'
as_user scancel "$b"
ok 'when one ends the next starts' wait_for 20 job_is "$c" RUNNING
as_user scancel "$a" "$c" "$d"

e=$(mine -q one --wrap 'sleep 300')
f=$(mine -q one --wrap 'sleep 300')
ok 'one job of a user in the QOS runs' wait_for 20 job_is "$e" RUNNING
ok 'the other says why not' reason_is "$f" QOSMaxJobsPerUserLimit
ok 'a hold hides the limit' as_user scontrol hold "$f"
is 'behind its own reason' "$(column "$f" %r)" JobHeldUser
as_user scontrol release "$f"
as_user scancel "$e"
ok 'then the other runs' wait_for 20 job_is "$f" RUNNING
as_user scancel "$f"

run mine -q strict -n 4 --wrap true
like 'DenyOnLimit refuses what the limit does not allow' "$code $err" '^1 .*QOSMaxCpuPerJobLimit'
like 'in the words of Slurm' "$err" 'Job violates accounting/QOS policy \(job submit limit, user.s size and/or time limits\)'
run mine -q strict -t 60 --wrap true
like 'also a time limit that is too long' "$code $err" '^1 .*QOSMaxWallDurationPerJobLimit'
g=$(mine -q strict --wrap 'sleep 300')
is 'who gives no time limit gets the longest' "$(column "$g" %l)" 30:00

h=$(mine -A few -a 1-3 --wrap 'sleep 300')
run mine -A few --wrap true
like 'as many jobs as may be submitted are, and no more' "$code $err" '^1 .*AssocMaxSubmitJobLimit: MaxSubmitJobs of [^;]+ is [0-9]+; [0-9]+ in use, the job asks for 1'
ok 'of an array one task runs' wait_for 20 eval '[ "$(squeue -h -r -j '"$h"' -t running | wc -l)" = 1 ]'
is 'the others wait for the account' "$(squeue -h -r -j "$h" -t pending -o %r | sort | uniq -c | xargs)" '2 AssocGrpJobsLimit'
as_user scancel "${h}_1"
ok 'and go on one by one' wait_for 20 eval '[ "$(squeue -h -r -j '"$h"' -t running -o %K)" = 2 ]'

run as_user scontrol reconfigure
not_ok 'an ordinary user changes none of it' [ "$code" -eq 0 ]
sed -i 's/grp_jobs = 1/grp_jobs = 2/' "$D/spur.conf"
ok 'a new configuration' scontrol reconfigure
ok 'lets more of them run' wait_for 20 eval '[ "$(squeue -h -r -j '"$h"' -t running | wc -l)" = 2 ]'
sed -i 's/parent = "sci"/parent = "nosuch"/' "$D/spur.conf"
run spur config check "$D/spur.conf"
like 'a parent that is not there is an error' "$code $out$err" "^1.*no account before it is its parent 'nosuch'"
done_testing
