#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# hooks.t - task prolog and epilog, srun's prolog and epilog: of the site and of the user
. "$(dirname "$0")/../lib.sh"
site=$T/site && mkdir "$site" && chmod 777 "$site"
cat >"$site/task-prolog" <<END
#!/bin/bash
[ -z "\$NO_SITE" ] || exit 0
echo export SITE=1 two
echo "unset GONE"
echo "unset SITE_ONLY"
echo print context \$SLURM_SCRIPT_CONTEXT task \$SLURM_PROCID
echo nonsense
echo export =bad
END
cat >"$site/task-epilog" <<END
#!/bin/bash
echo "site \$SLURM_JOB_ID.\$SLURM_STEP_ID.\$SLURM_PROCID \$(id -u) \$SLURM_SCRIPT_CONTEXT" >>$site/epilogs
END
cat >"$site/srun-prolog" <<END
#!/bin/bash
echo "prolog \$SLURM_SCRIPT_CONTEXT \$SLURM_STEP_NUM_TASKS \$SLURM_STEP_NODELIST \$(id -u) \$*" >>$site/srun
END
cat >"$site/srun-epilog" <<END
#!/bin/bash
echo "epilog \$SLURM_SCRIPT_CONTEXT \$*" >>$site/srun
exit 3
END
chmod 755 "$site"/*
touch "$site/epilogs" "$site/srun" && chmod 666 "$site/epilogs" "$site/srun"
cat >"$T/extra.toml" <<END
[hooks]
task_prolog = "$site/task-prolog"
task_epilog = "$site/task-epilog"
srun_prolog = "$site/srun-prolog"
srun_epilog = "$site/srun-epilog"
END
cluster_up --nodes 2 --cpus 4 --conf "$T/extra.toml"
cd "$(user_dir)"
cat >user-prolog <<'END'
#!/bin/bash
echo export MINE=$SITE-$SLURM_PROCID
echo print mine
sleep 300 &
END
cat >user-epilog <<END
#!/bin/bash
echo "user \$SLURM_PROCID \$SLURM_SCRIPT_CONTEXT" >>$site/epilogs
END
printf '#!/bin/bash\nexit 7\n' >bad
printf '#!/bin/bash\necho started >>%s\nsleep 300\n' "$site/epilogs" >slow
chmod 755 user-prolog user-epilog bad slow

for user in "" as_user; do
    u=${user:-root} id=$($user id -u)
    : >"$site/epilogs"; : >"$site/srun"
    GONE=1 run $user srun -n2 -l bash -c 'echo "$SITE/$GONE/$SLURM_SCRIPT_CONTEXT"'
    is "$u: the site's prolog changes the environment and prints" "$(sort <<<"$out" | tr '\n' ,)" "0: 1 two//,0: context prolog_task task 0,1: 1 two//,1: context prolog_task task 1,"
    is "$u: the exit code is the tasks'" "$code" 0
    job=$(squeue -h -t all -o %i --sort=-i | head -1)
    is "$u: epilogs ran as the user after each task" "$(sort "$site/epilogs" | tr '\n' ,)" "site $job.0.0 $id epilog_task,site $job.0.1 $id epilog_task,"
    is "$u: srun's own hooks ran here" "$(cat "$site/srun")" "prolog prolog_srun 2 n1 $id $(command -v bash) -c echo \"\$SITE/\$GONE/\$SLURM_SCRIPT_CONTEXT\"
epilog epilog_srun $(command -v bash) -c echo \"\$SITE/\$GONE/\$SLURM_SCRIPT_CONTEXT\""
    like "$u: an epilog that fails is said" "$err" "srun: error: epilog $site/srun-epilog failed: exit 3"
    : >"$site/epilogs"
    run $user srun -Q --epilog=none --task-prolog="$PWD/user-prolog" --task-epilog=./user-epilog bash -c 'echo $MINE $SLURM_TASK_PID $$'
    like "$u: the user's prolog comes after the site's" "$out" "mine.*1 two-0 ([0-9]+) [0-9]+$"
    is "$u: the program is the process that the prolog was told of" "$(tail -1 <<<"$out" | awk '{ print $3 == $4 }')" 1
    is "$u: the user's epilog comes before the site's" "$(cut -d' ' -f1 "$site/epilogs" | tr '\n' ' ')" "user site "
    run $user srun -Q --epilog=none --task-prolog=./bad -n2 bash -c 'echo never'
    unlike "$u: a prolog that fails ends its task" "$out" never
    like "$u: and says so" "$code $err" "^7 .*task_prolog ./bad: exit 7"
    run $user srun -Q --epilog=none --task-prolog=/nosuch true
    like "$u: a prolog that is not there" "$code $err" "^1 .*task_prolog /nosuch: .*No such file"
    run $user srun --epilog=none --prolog=./bad touch never
    like "$u: srun's prolog that fails ends the step" "$code $err" "^1 srun: error: prolog ./bad failed: exit 7$"
    not_ok "$u: before it begins" test -e never
    : >"$site/epilogs"
    run $user timeout 60 srun -Q --epilog=none --task-epilog=./slow true
    is "$u: an epilog without end is ended" "$code $(cut -d' ' -f1 "$site/epilogs" | tr '\n' ' ')" "0 started site "
done

: >"$site/epilogs"
printf '#!/bin/bash\necho "$SITE" $1\nsleep 300 &\n' >job.sh
job=$(submit -W -o job.out job.sh arg)
is "a batch script is a task too" "$(cat job.out)" "context prolog_task task 0
1 two arg"
like "with an epilog" "$(cat "$site/epilogs")" "^site $job\..*0 0 epilog_task$"
is "the job is completed" "$(job_state "$job")" COMPLETED
done_testing
