#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Accounts have one owner: the file while it has sections, the database after 'spur accounting adopt'.
. "$(dirname "$0")/../lib.sh"
me=$(id -un)
cluster_of own <<END
[accounting]
enforce = ["limits"]
[[qos]]
name = "quick"
priority = 5
[[accounts]]
name = "sci"
description = "science"
max_jobs = 1
[[accounts]]
name = "bio"
parent = "sci"
[[users]]
name = "$me"
account = "bio"
default = true
[[nodes]]
names = "n1"
cpus = 4
END
owner() { sacctmgr show configuration | grep -o 'accounts=[a-z]*'; }
owns() { [ "$(owner)" = "accounts=$1" ]; }
ok "the file owns its accounts" wait_for 30 owns file
run sacctmgr -i add account more
like "sacctmgr refuses changes and says why" "$code:$err" "^1:.*configuration file.*spur accounting adopt"
like "adopting" "$(spur accounting adopt)" "2 accounts, 1 users and 1 QOS"
is "the database owns them" "$(owner)" "accounts=database"
is "it has what the file had" "$(sacctmgr -n -P show assoc format=account,user,maxjobs,parentname where account=sci,bio)" "sci||1|root
bio||1|sci
bio|$me|1|"
is "and the QOS" "$(sacctmgr -n -P show qos quick format=name,priority)" "quick|5"
run spur accounting adopt
like "once" "$code:$err" "^1:.*already"
first=$(sub)
ok "a job runs" runs "$first"
second=$(sub)
ok "the limit of the file still holds" waits "$second" AssocMaxJobsLimit
ok "sacctmgr changes it" sacctmgr -i modify account sci set MaxJobs=2
ok "at once" runs "$second"
sed -i 's/^max_jobs = 1/max_jobs = 0/' "$D/spur.conf"
ok "reconfiguring" scontrol reconfigure
third=$(sub -A bio)
ok "does not touch accounts" waits "$third" AssocMaxJobsLimit
ok "they stay over a restart" controller_again
is "with two that run" "$(squeue -h -t R | wc -l)" 2
scancel -u "$me"

# Enforcing associations with none known is an error at the start.
spur down --dir "$D" >/dev/null 2>&1
printf 'cluster_name = "none"\n[accounting]\nenforce = ["associations"]\n[[nodes]]\nnames = "n1"\n[[partitions]]\nname = "p"\nnodes = "ALL"\n' >"$T/none.conf"
run spur up --dir "$T/none" --conf "$T/none.conf"
like "enforcing without any association" "$code:$out$err$(cat "$T"/none/log/* 2>/dev/null)" "no account or user is known"
spur down --dir "$T/none" >/dev/null 2>&1
done_testing
