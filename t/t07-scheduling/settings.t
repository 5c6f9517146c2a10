#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Settings of the planner from a slurm.conf, each by what it changes: bf_max_job_user, bf_max_job_part,
# assoc_limit_stop, CompleteWait; and what is said of one that changes nothing.
. "$(dirname "$0")/../lib.sh"
conf() { # WORDS of SchedulerParameters; more lines
    cat <<C
ClusterName=words
SlurmctldHost=localhost
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=$1
KillWait=5
${2:-}
NodeName=n[1-4] CPUs=4 RealMemory=4000
PartitionName=main Nodes=ALL Default=YES State=UP DefaultTime=10
C
}
again() { # WORDS SECONDS: in force
    sed -i "s/^SchedulerParameters=.*/SchedulerParameters=$1/; s/^CompleteWait=.*/CompleteWait=${2:-0}/" "$D/slurm.conf"
    scontrol reconfigure
}
conf bf_max_job_part=3 CompleteWait=0 >"$T/slurm.conf"
cluster_up --conf "$T/slurm.conf"
cd "$T" || exit 1

# ---- promised starts: by partition, by user ----
all_gone() { [ -z "$(squeue -h)" ]; }
queue() { # three nodes are busy; the second that waits needs all four, the last would be in its way
    busy=$(sub -w n[1-3] -N3 --exclusive -t 10)
    runs "$busy" >/dev/null
    one=$(sub -w n1 --exclusive -t 5) all=$(sub -N4 --exclusive -t 5)
    wait_for 20 eval '[ "$(squeue -h -j '"$one,$all"' -t PD -o %r | grep -cE "Resources|Priority")" = 2 ]'
    last=$(sub -w n4 -t 30)
}
queue
ok 'bf_max_job_part=3: what is in the way of the second promise waits' waits "$last" Resources
scancel "$busy" "$one" "$all" "$last"
wait_for 30 all_gone
ok 'with bf_max_job_user' again bf_max_job_part=3,bf_max_job_user=1
queue
ok 'bf_max_job_user=1: the second is promised nothing' wait_for 20 job_is "$last" RUNNING
scancel "$busy" "$one" "$all" "$last"
wait_for 30 all_gone

# ---- CompleteWait: nobody starts while a job is completing ----
ok 'with CompleteWait' again bf_continue 60
cat >stubborn.sh <<'S'
#!/bin/bash
trap '' TERM
touch "$1"
while sleep 0.2; do :; done
S
chmod +x stubborn.sh
slow=$(sbatch --parsable -w n1 -o /dev/null stubborn.sh "$T/up")
wait_for 20 test -e "$T/up"
scancel "$slow"
ok 'a job is completing' wait_for 20 eval '[[ $(squeue -h -j '"$slow"' -o %t) = CG ]]'
next=$(sub -w n2)
is 'the next one waits, though its node is free' "$(job_state "$next")" PENDING
ok 'until that is over' wait_for 60 job_is "$next" RUNNING
shows 'and not before' '' squeue -h -j "$slow"
drop "$next"

# ---- words that are taken, and one that changes nothing ----
run spur config check <(conf 'bf_max_job_user=2,bf_max_job_assoc=3,bf_max_job_part=4,assoc_limit_stop' BatchStartTimeout=20)
unlike 'none of the words is refused' "$out$err" 'bf_max_job_(user|assoc|part)|assoc_limit_stop'
like 'what is done instead is said' "$out$err" 'BatchStartTimeout changes nothing: a node confirms every launch'
conf 'bf_max_job_user=2,bf_max_job_assoc=3,bf_max_job_part=4,assoc_limit_stop' CompleteWait=7 >one.conf
run spur config import one.conf
for line in 'bookings_per_user = 2' 'bookings_per_account = 3' 'bookings = 4' 'assoc_limit_stop = true' 'complete_wait = "?7'; do
    like "imported: $line" "$out" "$line"
done
done_testing
