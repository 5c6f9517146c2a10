#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# control.t - heterogeneous jobs that wait: hold, release, update, dependencies, requeue; their steps by number
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 3 --cpus 4
cd "$(user_dir)"
states() { squeue -h -t all -j "$1" -o '%i=%T' | sort | tr '\n' ' '; }
reasons() { squeue -h -j "$1" -o '%i=%r' | sort | tr '\n' ' '; }
all_are() { [ "$(states $1)" = "$1+0=$2 $1+1=$2 " ]; }

# ---- waiting ----
id=$(as_user sbatch --parsable -o /dev/null -n1 : -n1 -H --wrap 'sleep 300')
is "one that is held holds all, and all say why" "$(reasons $id)" "$id+0=JobHeldUser $id+1=JobHeldUser "
ok "released: the component" as_user scontrol release $id+1
ok "all start" wait_for 30 all_are $id RUNNING
run as_user scontrol requeue $id
is "requeue of the whole" "$code" 0
ok "starts again, whole" wait_for 40 eval 'all_are $id RUNNING && [ "$(squeue -h -j $id -O RestartCnt:4 | tr -d " \n")" = 11 ]'
as_user scancel $id
id=$(as_user sbatch --parsable -o /dev/null -H -n1 -t 10 : -n1 -t 10 --wrap 'sleep 300')
ok "update of a component" as_user scontrol update jobid=$id+1 timelimit=5
is "changes that one" "$(squeue -h -j $id -o '%i %l' | sort | tr '\n' ,)" "$id+0 10:00,$id+1 5:00,"
ok "update of the job" as_user scontrol update jobid=$id timelimit=3
is "changes all" "$(squeue -h -j $id -o '%i %l' | sort | tr '\n' ,)" "$id+0 3:00,$id+1 3:00,"
ok "hold of the job" as_user scontrol hold $id
ok "release of the job" as_user scontrol release $id
ok "all run" wait_for 30 all_are $id RUNNING
first=$id
ok=$(as_user sbatch --parsable -o /dev/null -d afterok:$first -n1 : -n1 --wrap true)
any=$(as_user sbatch --parsable -o /dev/null -n1 : -n1 -d afterany:$first --wrap true)
is "a dependency of the first" "$(reasons $ok)" "$ok+0=Dependency $ok+1=Dependency "
is "a dependency of another" "$(reasons $any)" "$any+0=Dependency $any+1=Dependency "
for component in $ok+0 $ok+1 $any+0 $any+1; do
    like "$component is told what it waits for" "$(spur explain $component)" "^job [^ ]+ is PENDING: .*job $first.*"
done
as_user scancel $first
ok "it ends" wait_for 30 all_are $first CANCELLED
ok "who waits for the end starts" wait_for 30 all_are $any COMPLETED
like "who waits for more does not" "$(reasons $ok)" "$ok\+0=DependencyNeverSatisfied"
run as_user scancel $ok+1
like "a component that waits is not cancelled alone" "$code $err" "^[1-9][0-9]* scancel: error: Kill job error on job id $ok\+1: Operation not permitted on individual component of heterogeneous job"
ok "the whole is" as_user scancel $ok
ok "all are" wait_for 30 all_are $ok CANCELLED

# ---- all or none ----
big=$(as_user sbatch --parsable -o /dev/null -t 60 -w n3 --exclusive --wrap 'sleep 300')
ok "a node is taken" wait_for 30 job_is $big RUNNING
id=$(as_user sbatch --parsable -o /dev/null -w n1 -n1 : -w n3 -n1 --wrap 'sleep 300')
is "a component that must wait makes all wait" "$(states $id)" "$id+0=PENDING $id+1=PENDING "
small=$(as_user sbatch --parsable -o /dev/null -t 5 -w n1 --exclusive --wrap 'sleep 300')
ok "what ends before they can start runs meanwhile" wait_for 30 job_is $small RUNNING
as_user scancel $small
ok "its node is free" wait_for 30 job_is $small CANCELLED
as_user scancel $big
ok "all start when the last node is free" wait_for 30 all_are $id RUNNING
as_user scancel $id

# ---- steps by number ----
id=$(as_user sbatch --parsable -o step.out -w n1 -n1 : -w n2 -n2 --wrap 'srun -l --het-group=0-1 bash -c "while [ ! -e stop ]; do echo tick; sleep 0.1; done"; echo rc=$?')
steps() { squeue -h -s -j $id -o '%i' | grep -v batch | sort | tr '\n' ' '; }
listed() { [ "$(steps)" = "$id+0.0 $id+1.0 " ]; }
ok "squeue -s" wait_for 30 listed
like "scontrol show step" "$(scontrol show step $id+1.0)" "^StepId=$id\+1\.0 .*NodeList=n2.*Tasks=2"
like "sattach --layout counts on" "$(as_user sattach --layout $id+1.0)" "2 tasks, 1 nodes \(n2\).*Node 0 \(n2\), 2 task\(s\): 1 2"
as_user timeout 60 sattach -l $id+1.0 </dev/null >att.out 2>&1 &
att=$!
ok "sattach to a component has its tasks" wait_for 30 eval 'grep -q "^1: tick" att.out && grep -q "^2: tick" att.out'
as_user touch stop
wait $att
ok "the job ends" wait_for 30 all_are $id COMPLETED
is "no task of another" "$(grep -c '^0:' att.out)" 0
rm -f stop
id=$(as_user sbatch --parsable -o step.out -w n1 -n1 : -w n2 -n2 --wrap 'srun --het-group=0-1 sleep 300; echo rc=$?')
ok "another step" wait_for 30 listed
ok "scancel of one component's step" as_user scancel $id+1.0
ended() { grep -q 'rc=' step.out; }
ok "ends the step in all" wait_for 40 ended
ok "and the job is over" wait_for 30 all_are $id COMPLETED
done_testing
