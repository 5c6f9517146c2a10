#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Reasons that explain.t does not have: what changed under a waiting job, what kept it from starting, how it ended.
. "$(dirname "$0")/../lib.sh"
me=$(id -un)
printf '#!/bin/bash\nwhile [ -e "%s/slow" ]; do sleep 0.1; done\n' "$T" >"$T/epilog"
sed 's/slow/prepare/' "$T/epilog" >"$T/prolog"
chmod 755 "$T/epilog" "$T/prolog"
cat >"$T/conf" <<END
[scheduler]
config_overrides = true
[accounting]
enforce = ["limits", "qos"]
[access]
disable_root_jobs = false
[hooks]
prolog = "$T/prolog"
epilog = "$T/epilog"
[[nodes]]
names = "n[1-2]"
cpus = 4
memory_mb = 4000
features = ["fast"]
[[nodes]]
names = "n3"
cpus = 4
memory_mb = 4000
[[partitions]]
name = "all"
default = true
nodes = "ALL"
[[partitions]]
name = "other"
nodes = "n3"
[[qos]]
name = "normal"
[[qos]]
name = "gone"
[[accounts]]
name = "sci"
[[accounts]]
name = "lost"
[[users]]
name = "$me"
account = "sci"
default = true
[[users]]
name = "$me"
account = "lost"
END
cluster_up --nodes 3 --conf "$T/conf"
cd "$T"
reason() { squeue -h -t all -j "$1" -o %r; }
reason_is() { [ "$(reason "$1")" = "$2" ]; }
now() { is "$1: at once" "$(reason "$2")" "$3"; }
why() { wait_for 20 reason_is "$2" "$3"; is "$1: the reason" "$(reason "$2")" "$3"; }
says() { like "$1" "$(spur explain "$2")" "$3"; }

# ---- in the first second: what the planner has not looked at yet has a reason too ----
full=$(sub -N 3 --exclusive)
wait_for 20 job_is "$full" RUNNING
for i in {1..10}; do id=$(sub) && first="${first-} $(reason "$id")"; done
unlike 'a job that waits never shows None' "${first-}" None
scancel -t pending --me

# ---- the partition changed ----
id=$(sub -p other)
scontrol update partitionname=other allowaccounts=root
now 'its account may not use the partition any more' "$id" AccountNotAllowed
says 'in words' "$id" 'partition other does not take jobs of account sci: it can never start like this'
scontrol update partitionname=other allowaccounts=ALL denyqos=normal
now 'its QOS may not' "$id" QOSNotAllowed
says 'in words' "$id" 'partition other does not take jobs of QOS normal: it can never start like this'
scontrol update partitionname=other denyqos=
why 'it may again' "$id" Resources
scontrol update partitionname=other maxmempernode=1000
id2=$(sub -p other --mem=2000)
now 'more memory than the partition gives' "$id2" MaxMemPerLimit
says 'in words' "$id2" 'it asks for 2000 MB on each node; partition other allows 1000 MB at most: it can never'
scancel "$id" "$id2"

# ---- nodes changed: nobody could run it now ----
id=$(sub -C fast -N 2)
scontrol update nodename=n1 features=slow
now 'too few nodes have the feature' "$id" BadConstraints
says 'in words' "$id" 'no set of nodes of partition all could ever run it: it can never start like this'
scontrol update nodename=n1 features=fast
unlike 'and enough again' "$(reason "$id")" BadConstraints
scancel "$id"

# ---- the accounts changed ----
a=$(sub -A lost) q=$(sub -q gone)
sed -i 's/^name = "gone"$/name = "went"/; s/^account = "lost"$/account = "sci"\npartition = "other"/' "$D/spur.conf"
ok 'an association and a QOS are taken away' scontrol reconfigure
now 'a job of that association' "$a" InvalidAccount
says 'in words' "$a" 'InvalidAccount: its association is not there any more'
now 'a job of that QOS' "$q" InvalidQOS
says 'in words' "$q" 'InvalidQOS: its QOS is not there any more'
scancel "$a" "$q"

# ---- its reservation was deleted ----
scontrol create reservation=soon starttime=now+1hour duration=60 users="$me" nodes=n1 flags=ignore_jobs >/dev/null
id=$(sub --reservation=soon -t 5)
now 'its reservation has not begun' "$id" Reservation
scontrol delete reservation=soon
now 'it is deleted' "$id" ReservationDeleted
says 'in words' "$id" 'reservation'
scancel "$id"

# ---- what has to be waited for before and after a run ----
scancel "$full"
wait_for 20 job_is "$full" CANCELLED
touch "$T/prepare"
id=$(sub --requeue)
ok 'a job whose node is being prepared' wait_for 20 job_is "$id" CONFIGURING
now 'waits for the prolog' "$id" Prolog
rm "$T/prepare"
wait_for 20 job_is "$id" RUNNING
is 'and runs without a reason' "$(reason "$id")" None
touch "$T/slow"
scontrol requeue "$id"
now 'requeued, its last run is still being cleaned up' "$id" Cleaning
rm "$T/slow"
ok 'then it runs again' wait_for 30 job_is "$id" RUNNING
scancel "$id"

# ---- how jobs end ----
id=$(sbatch --parsable -o /dev/null --wrap 'exit 4')
why 'a bad exit code' "$id" NonZeroExitCode
id=$(sbatch --parsable -o /dev/null --wrap 'kill -9 $$')
wait_for 20 job_is "$id" FAILED
like 'a signal' "$(reason "$id")" '^RaisedSignal'
full=$(sub -N 3 --exclusive)
wait_for 20 job_is "$full" RUNNING
id=$(sub --deadline=now+10seconds)
now 'one with a deadline waits' "$id" Resources
ok 'until that passes' wait_for 60 job_is "$id" DEADLINE
now 'and says so' "$id" DeadLine
scancel "$full"
wait_for 20 job_is "$full" CANCELLED
id=$(sub --no-requeue -w n3)
wait_for 20 job_is "$id" RUNNING
scontrol update nodename=n3 state=down reason='pulled the plug'
ok 'its node went down' wait_for 20 job_is "$id" NODE_FAIL
now 'and says so' "$id" NodeDown
scontrol update nodename=n3 state=resume

# ---- EnforcePartLimits ----
short() { sbatch --parsable -o /dev/null -t 60 "$@" --wrap true; }
wait_for 20 eval '[ "$(sinfo -h -n n3 -o %T)" = idle ]'
limits() { # WORD: NO waits, ANY wants one partition that takes it, ALL wants every one
    sed -i "/^enforce_part_limits/d; s/^\[scheduler\]$/&\nenforce_part_limits = \"$1\"/" "$D/spur.conf"
    ok "EnforcePartLimits=$1" scontrol reconfigure
}
sed -i 's/^name = "other"$/&\nmax_time = 10/' "$D/spur.conf"
limits NO
id=$(short -p other)
now 'NO: too long a job waits' "$id" PartitionTimeLimit
id=$(short -p other,all)
ok 'NO: the other partition runs it' wait_for 30 job_is "$id" COMPLETED
limits ANY
run short -p other
like 'ANY: where no partition takes it, it is refused' "$code $err" '^1 .*Requested time limit is invalid \(missing or exceeds some limit\)'
id=$(short -p other,all)
ok 'ANY: one is enough' wait_for 30 job_is "$id" COMPLETED
limits ALL
run short -p other,all
like 'ALL: every one has to take it' "$code $err" '^1 .*Requested time limit is invalid \(missing or exceeds some limit\)'
limits NO
id=$(short -p other)
sed -i 's/"other"$/"another"/' "$D/spur.conf"
ok 'a partition is taken out of the configuration' scontrol reconfigure
now 'a job that waits there' "$id" PartitionConfig
says 'in words' "$id" 'there is no partition other any more: it can never start like this'
sed -i 's/"another"$/"other"/' "$D/spur.conf"
ok 'it comes back' scontrol reconfigure
now 'and so does the old reason' "$id" PartitionTimeLimit

# ---- what no configured node could ever run is refused, whatever is enforced ----
refused() { # WHAT OPTIONS...
    local what=$1
    shift
    run sbatch "$@" --wrap true
    like "refused: $what" "$code $err$out" '^1 .*(Batch job submission failed: |Invalid generic resource)'
}
refused 'more CPUs than a node has' -c 5
refused 'more nodes than there are' -N 4
refused 'more memory than a node has' --mem=5000
refused 'a feature that no node has' -C nosuch
refused 'features that no node has together' -C 'fast&nosuch'
refused 'GPUs where there are none' --gpus=1
refused 'a node that is not there' -w n9
refused 'a node that is not in the partition' -p other -t 5 -w n1
refused 'all nodes excluded' -x 'n[1-3]'
refused 'more tasks than CPUs on the nodes it allows' -N 1-1 -n 5
done_testing
