#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A prolog that hangs or fails: its node is drained with the reason, nothing is left behind; the job is held,
# or with nohold_on_prolog_fail runs elsewhere.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all "prologs run as root"
cat >"$T/prolog" <<'END'
#!/bin/sh
[ "$SLURMD_NODENAME" = n1 ] || exit 0
exec sleep 54321
END
chmod 755 "$T/prolog"
conf='ClusterName=p\nProlog=%s\nPrologEpilogTimeout=3\nNodeName=n[1-2] CPUs=4 RealMemory=1000\nPartitionName=debug Nodes=ALL Default=YES\n'
printf "$conf" "$T/prolog" >"$T/p.conf"
cluster_up --nodes 2 --conf "$T/p.conf"
cd "$(user_dir)"
drained() { [[ $(sinfo -h -n n1 -o %t) == drain* ]]; }
id=$(as_user sbatch --parsable -w n1 -o /dev/null --wrap 'echo ran on $SLURMD_NODENAME')
ok "the node is drained" wait_for 60 drained
like "and says why" "$(sinfo -h -R -o '%n %E' 2>/dev/null; scontrol show node n1)" "[Pp]rolog"
pending() { [ "$(squeue -h -j "$id" -o "%T %r")" = "PENDING JobHeldAdmin" ]; }
ok "the job waits again, held" wait_for 60 pending
is "it was never started there" "$(spur journal | grep -c "step job=$id")" 0
not_ok "its owner cannot release it" as_user scontrol release "$id" 2>/dev/null
scontrol update jobid="$id" reqnodelist=
scontrol release "$id"
ok "released by root it runs on the other node" wait_for 60 job_is "$id" COMPLETED
free=$(as_user sbatch --parsable -o "$T/home/out" --wrap 'echo ran on $SLURMD_NODENAME')
ok "another runs on the other node" wait_for 60 job_is "$free" COMPLETED
is "there" "$(cat "$T/home/out")" "ran on n2"
gone() { ! pgrep -f 'sleep 54321' >/dev/null; }
ok "nothing of the prolog is left" wait_for 30 gone

sed -i 's/^exec sleep.*/exit 7/' "$T/prolog"
printf "${conf}SchedulerParameters=nohold_on_prolog_fail\n" "$T/prolog" >"$T/q.conf"
cluster_up --nodes 2 --conf "$T/q.conf"
first=$(as_user sbatch --parsable -o "$T/home/again" --wrap 'echo ran on $SLURMD_NODENAME')
ok "a job that is not held runs elsewhere by itself" wait_for 60 job_is "$first" COMPLETED
is "there" "$(cat "$T/home/again")" "ran on n2"
ok "and the node is drained" wait_for 60 drained

scontrol update NodeName=n1 State=RESUME
on() { [ "$(squeue -h -j "$1" -o '%T %N')" = "RUNNING $2" ]; }
shown() { scontrol show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"; }
long=$(as_user sbatch --parsable --requeue -o /dev/null --wrap 'sleep 600')
ok "the next one too" wait_for 60 on "$long" n2
is "it does without the node that could not start it" "$(shown "$long" AvoidNodes)" n1
sed -i 's/exit 7/exit 0/' "$T/prolog"
scontrol update NodeName=n1 State=RESUME
scontrol requeue "$long"
ok "also when that is back" wait_for 60 eval '[ "$(shown $long Restarts)" = 2 ] && on $long n2'
as_user scancel "$long"
done_testing
