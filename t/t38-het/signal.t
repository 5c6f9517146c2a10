#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# signal.t - signals to all components and to one, their steps in lists, one component that is cancelled, --ml-env over all
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 4 --cpus 4
cd "$(user_dir)"
states() { squeue -h -t all -j "$1" -o '%i=%T' | sort | tr '\n' ' '; }

cat >task.sh <<'EOF'
#!/bin/bash
trap 'echo "usr1 $1.$SLURM_PROCID" >>got' USR1
echo "up $1.$SLURM_PROCID" >>got
while [ ! -e stop ]; do sleep 0.1; done
EOF
cat >job.sh <<'EOF'
#!/bin/bash
trap 'echo "usr1 batch" >>got' USR1
srun --het-group=0 ./task.sh a &
srun --het-group=1 ./task.sh b &
srun --het-group=0,1 --overlap ./task.sh c &
while [ ! -e stop ]; do sleep 0.1; done
wait
EOF
chmod 755 task.sh
id=$(as_user sbatch --parsable -o out -n1 -w n1 : -n1 -w n2 : -n1 -w n3 job.sh)
ok "steps of one and of two components" wait_for 30 eval '[ "$(grep -c ^up got)" = 4 ]'
got() { [ "$(grep -v ^up got | sort -u | tr '\n' ' ')" = "$1" ]; }
forget() { sleep 0.5; as_user sed -i /usr1/d got; } # a trap of bash waits for the sleep before it
as_user scancel -s USR1 $id
ok "scancel -s of the job: the steps of all components, not the script" wait_for 30 got "usr1 a.0 usr1 b.0 usr1 c.0 usr1 c.1 "
forget
as_user scancel -s USR1 $id+1
ok "of a component: its steps" wait_for 30 got "usr1 b.0 usr1 c.1 "
forget
as_user scancel -b -s USR1 $id
ok "-b: the script" wait_for 30 got "usr1 batch "
forget
as_user scancel -f -s USR1 $id
ok "-f: both" wait_for 30 got "usr1 a.0 usr1 b.0 usr1 batch usr1 c.0 usr1 c.1 "
forget
both=$(squeue -h -s -j $id -o '%i' | grep "^$id+1" | sort | head -2 | tail -1 | cut -d. -f2)
as_user scancel -s USR1 $id+1.$both
ok "of one component's step" wait_for 30 eval '[ -n "$(grep usr1 got)" ]'
unlike "no other" "$(grep usr1 got)" 'a\.0|batch'

is "squeue -s has all components" "$(squeue -h -s -j $id -o %i | sed 's/\..*//' | sort -u | tr '\n' ' ')" "$id+0 $id+1 "
is "scontrol show step of the job too" "$(scontrol show step $id | grep -o 'StepId=[^ .]*' | sort -u | tr '\n' ' ')" "StepId=$id+0 StepId=$id+1 "
is "each step once" "$(scontrol -o show step $id | grep -c ^StepId)" 5
is "of one component, its own" "$(scontrol show step $id+1 | grep -o 'StepId=[^ .]*' | sort -u)" "StepId=$id+1"
is "of the first by its number alone" "$(scontrol show step $id+0 | grep -o 'StepId=[^ .]*' | sort -u)" "StepId=$id+0"
is "sstat -a has all components" "$(sstat -a -n -P -j $id -o JobID | cut -d. -f1 | sort -u | tr '\n' ' ')" "$id $((id + 1)) "
is "sstat of one" "$(sstat -a -n -P -j $id+1 -o JobID | cut -d. -f1 | sort -u | tr '\n' ' ')" "$((id + 1)) "

# ---- one component is cancelled ----
run as_user scancel $id+2
is "a component that runs may be cancelled" "$code" 0
ok "the others go on" wait_for 30 eval '[ "$(states $id)" = "$id+0=RUNNING $id+1=RUNNING $id+2=CANCELLED " ]'
forget
as_user scancel -s USR1 $id
ok "and are signalled still" wait_for 30 eval '[ "$(grep -c "usr1 [ab]" got)" = 2 ]'
as_user touch stop
ok "they end as they would" wait_for 40 eval '[ "$(states $id)" = "$id+0=COMPLETED $id+1=COMPLETED $id+2=CANCELLED " ]'
rm -f stop

# ---- --ml-env ----
cat >ml.sh <<'EOF'
#!/bin/bash
echo "$RANK/$WORLD_SIZE local $LOCAL_RANK/$LOCAL_WORLD_SIZE node $NODE_RANK $SLURM_PROCID $MASTER_ADDR:$MASTER_PORT $SLURMD_NODENAME"
EOF
chmod 755 ml.sh
as_user timeout 60 srun --ml-env -n2 -w n1 ./ml.sh : -N2 -n2 -w n[2-3] ./ml.sh >ml.out 2>ml.err
is "srun --ml-env over two components" "$?" 0
is "ranks are counted through them" "$(sed 's/ 127[^ ]*//' ml.out | sort | tr '\n' ';')" \
    "0/4 local 0/2 node 0 0 n1;1/4 local 1/2 node 0 1 n1;2/4 local 0/1 node 1 2 n2;3/4 local 0/1 node 2 3 n3;"
is "they meet at one place" "$(awk '{print $7}' ml.out | sort -u | grep -c ':[0-9]')" 1
as_user timeout 90 sbatch -W -Q --ml-env -o ml2.out -n1 -w n1 : -n2 -w n2 --wrap 'srun --het-group=0,1 ./ml.sh; srun --het-group=1 ./ml.sh' >/dev/null
is "steps of a job that asked for it: over both, and in one" "$(sed 's/ 127[^ ]*//' ml2.out | head -3 | sort | tr '\n' ';')$(sed 's/ 127[^ ]*//' ml2.out | tail -n +4 | sort | tr '\n' ';')" \
    "0/3 local 0/1 node 0 0 n1;1/3 local 0/2 node 1 1 n2;2/3 local 1/2 node 1 2 n2;0/2 local 0/2 node 0 0 n2;1/2 local 1/2 node 0 1 n2;"
done_testing
