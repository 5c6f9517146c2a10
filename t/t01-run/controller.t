#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# controller.t - programs that the controller runs before a job's nodes hear of it and after it ended
. "$(dirname "$0")/../lib.sh"
site=$T/site && mkdir "$site" && touch "$site/before" "$site/after"
cat >"$site/prolog" <<END
#!/bin/bash
env >"$site/prolog.\$SLURM_JOB_ID.env"
echo "\$SLURM_JOB_ID \$SLURM_SCRIPT_CONTEXT \$SLURM_JOB_NODELIST" >>$site/before
while [ -e $site/wait.\$SLURM_JOB_NAME ]; do sleep 0.05; done
[ "\$SLURM_JOB_NAME" != fails ] || exit 3
END
cat >"$site/epilog" <<END
#!/bin/bash
env >"$site/epilog.\$SLURM_JOB_ID.env"
echo "\$SLURM_JOB_ID \$SLURM_SCRIPT_CONTEXT \$SLURM_JOB_EXIT_CODE2" >>$site/after
while [ -e $site/hold.\$SLURM_JOB_NAME ]; do sleep 0.05; done
END
chmod 755 "$site"/prolog "$site"/epilog
cat >"$T/extra.toml" <<END
[jobs]
max_requeue = 2
[hooks]
controller_prolog = "$site/prolog"
controller_epilog = "$site/epilog"
END
cluster_up --nodes 2 --cpus 4 --conf "$T/extra.toml"
cd "$(user_dir)"
run spur config check "$T/extra.toml"
unlike "nothing is said to wait for another version" "$out$err" "nothing in this version"
sub() { as_user sbatch --parsable -o /dev/null "$@"; }
began() { grep -q "^$1 " "$site/before"; }
ended() { grep -q "^$1 " "$site/after"; }
now() { [ "$(squeue -h -t all -j "$1" -o '%T %r')" = "$2" ]; }

# ---- before ----
touch "$site/wait.slow"
slow=$(sub -J slow -N2 --comment=hello --array=5-9:2%1 --wrap 'touch ran.$SLURM_ARRAY_TASK_ID; exit 4')
ok "the prolog runs" wait_for 30 test -s "$site/before"
first=$(cut -d' ' -f1 "$site/before")
is "and knows where the job will be" "$(cat "$site/before")" "$first prolog_slurmctld n[1-2]"
ok "the job is configuring" wait_for 30 now "${slow}_5" "CONFIGURING Prolog"
not_ok "its script waits" test -e ran.5
rm "$site/wait.slow"
ok "then it runs" wait_for 30 test -e ran.5
ok "and the other tasks" wait_for 30 test -e ran.9
over() { [ "$(wc -l <"$site/after")" -eq "$1" ]; }
ok "each has an epilog" wait_for 30 over 3
is "which knows how it ended" "$(sort -u -k2 "$site/after" | cut -d' ' -f2,3)" "epilog_slurmctld 4:0"
env=$(cat "$site/prolog.$first.env")
for want in "SLURM_JOB_ID=$first" "SLURM_JOBID=$first" SLURM_JOB_NAME=slow SLURM_JOB_UID=$TEST_UID SLURM_JOB_GID=$TEST_UID \
    SLURM_JOB_COMMENT=hello SLURM_JOB_NUM_NODES=2 'SLURM_JOB_CPUS_PER_NODE=1(x2)' SLURM_JOB_OVERSUBSCRIBE=NO SLURM_JOB_EXCLUSIVE=NO \
    "SLURM_ARRAY_JOB_ID=$slow" SLURM_ARRAY_TASK_ID=5 SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=5 SLURM_ARRAY_TASK_MAX=9 SLURM_ARRAY_TASK_STEP=2 \
    SLURM_JOB_STDOUT=/dev/null SLURM_JOB_STDERR=/dev/null SLURM_JOB_STDIN=/dev/null "SLURM_JOB_WORK_DIR=$PWD" SLURM_JOB_RESTART_COUNT=0 \
    SLURM_SCRIPT_CONTEXT=prolog_slurmctld; do
    like "prolog: $want" $'\n'"$env"$'\n' $'\n'"${want//[()]/.}"$'\n'
done
like "prolog: start" "$env" "SLURM_JOB_START_TIME=[0-9]{10}"
env=$(cat "$site/epilog.$first.env")
for want in SLURM_JOB_EXIT_CODE=1024 SLURM_JOB_EXIT_CODE2=4:0 SLURM_JOB_DERIVED_EC=0 SLURM_SCRIPT_CONTEXT=epilog_slurmctld "SLURM_JOB_PARTITION=$(sinfo -h -o %R)"; do
    like "epilog: $want" $'\n'"$env"$'\n' $'\n'"$want"$'\n'
done

# ---- it fails ----
fails=$(sub -J fails --requeue --wrap 'touch never')
held() { [[ $(squeue -h -j "$fails" -o '%T %r') == "PENDING JobHeldAdmin" || $(squeue -h -j "$fails" -o '%T %r') == "PENDING "*equeue* ]]; }
ok "a prolog that fails puts the job back, not for ever" wait_for 30 held
is "it was tried again" "$(grep -c "^$fails " "$site/before")" 3
not_ok "and its script never ran" test -e never
run as_user srun -J fails -Q true
is "an allocation ends" "$code" 1
none_left() { [ -z "$(squeue -h -n fails -t R,CF,CG -o %i)" ]; }
ok "nothing is left of it" wait_for 30 none_left

# ---- after ----
touch "$site/hold.tail"
tail=$(sub -J tail --wrap true)
next=$(sub -J next -d "afterok:$tail" --wrap true)
ok "the epilog runs" wait_for 30 ended "$tail"
is "the job is completing" "$(squeue -h -j "$tail" -o %T)" COMPLETING
is "its node is free" "$(sinfo -h -o %t)" idle
is "who waits for it waits" "$(squeue -h -j "$next" -o '%T %r')" "PENDING Dependency"
rm "$site/hold.tail"
ok "then it has ended" wait_for 30 job_is "$tail" COMPLETED
ok "and the next one runs" wait_for 30 job_is "$next" COMPLETED

# ---- the controller goes and comes back meanwhile ----
touch "$site/wait.again" "$site/hold.again"
again=$(sub -J again --wrap 'echo once >>again')
ok "a prolog runs" wait_for 30 began "$again"
ok "the controller is killed" controller_again
twice() { [ "$(grep -c "^$again " "$site/$1")" -eq 2 ]; }
ok "the prolog is run again" wait_for 30 twice before
not_ok "nothing has begun" test -e again
rm "$site/wait.again"
ok "the epilog runs" wait_for 30 ended "$again"
ok "the controller is killed again" controller_again
ok "the epilog is run again" wait_for 30 twice after
is "it is still completing" "$(squeue -h -j "$again" -o %T)" COMPLETING
rm "$site/hold.again"
ok "and ends" wait_for 30 job_is "$again" COMPLETED
is "its script ran once" "$(cat again)" once

# ---- cancelled while its prolog runs ----
touch "$site/wait.gone"
gone=$(sub -J gone --wrap 'touch gone')
ok "one more prolog" wait_for 30 began "$gone"
scancel "$gone"
ok "no node holds it" wait_for 30 now "$gone" "COMPLETING None"
not_ok "the epilog waits for the prolog" ended "$gone"
rm "$site/wait.gone"
ok "it is cancelled" wait_for 30 job_is "$gone" CANCELLED
ok "after its epilog" ended "$gone"
not_ok "and never ran" test -e gone
done_testing
