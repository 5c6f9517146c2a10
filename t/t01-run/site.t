#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# site.t - programs of the site: one prolog at a time, the controller's epilog, processes that cannot be killed
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all "prologs run as root"
site=$T/site && mkdir "$site"
# Two at the same time: mkdir of the second fails.
cat >"$site/prolog" <<END
#!/bin/bash
mkdir $site/lock || echo "two at once: \$SLURM_JOB_ID" >>$site/overlaps
echo "\$SLURM_SCRIPT_CONTEXT \$SLURM_JOB_ID" >>$site/order
sleep 0.3
rmdir $site/lock
exit 0
END
cat >"$site/ctl-epilog" <<END
#!/bin/bash
echo "\$SLURM_JOB_ID \$SLURM_SCRIPT_CONTEXT \$SLURM_JOB_EXIT_CODE2 \$SLURM_JOB_NODELIST \$SLURM_JOB_UID \$SLURM_JOB_PARTITION \$SLURM_JOB_NAME" >>$site/ends
END
cat >"$site/unkillable" <<END
#!/bin/bash
echo "\$SLURM_JOB_ID \$SLURM_STEP_ID \$SLURM_SCRIPT_CONTEXT \$SLURMD_NODENAME \$(id -u)" >>$site/unkillable-said
END
chmod 755 "$site"/*
touch "$site/overlaps" "$site/order" "$site/ends" "$site/unkillable-said"
cat >"$T/extra.toml" <<END
[jobs]
unkillable_timeout = 2
kill_wait = 1
[hooks]
prolog = "$site/prolog"
epilog = "$site/prolog"
prolog_flags = ["Alloc", "Serial", "NoHold"]
controller_epilog = "$site/ctl-epilog"
unkillable_program = "$site/unkillable"
END
cluster_up --nodes 1 --cpus 8 --conf "$T/extra.toml"
cd "$(user_dir)"

run spur config check "$T/extra.toml"
like "a word that nothing acts on is named" "$out$err" "NoHold of .*prolog_flags is understood, but nothing in this version acts on it"
unlike "one that acts is not" "$out$err" "Serial of|note: hooks.prolog_flags"

ids=()
for _ in 1 2 3 4; do ids+=("$(as_user sbatch --parsable -J five -o /dev/null --wrap 'exit 5')"); done
for id in "${ids[@]}"; do ok "job $id ran" wait_for 60 job_is "$id" FAILED; done
programs() { [ "$(wc -l <"$site/order")" -eq 8 ]; }
ok "each had a prolog and an epilog" wait_for 60 programs
is "one at a time" "$(cat "$site/overlaps")" ""
is "each exactly once" "$(sort "$site/order" | uniq -c | awk '$1 != 1')" ""
ends() { [ "$(wc -l <"$site/ends")" -eq "$1" ]; }
ok "the controller's epilog ran for each" wait_for 60 ends 4
is "and knows the job" "$(grep "^${ids[0]} " "$site/ends")" "${ids[0]} epilog_slurmctld 5:0 n1 $TEST_UID $(sinfo -h -o %R) five"
held=$(as_user sbatch --parsable -H -o /dev/null --wrap true)
scancel "$held"
last=$(as_user sbatch --parsable -o /dev/null --wrap true)
ok "another job ends" wait_for 60 ends 5
unlike "one that never ran has none" "$(cat "$site/ends")" "^$held "
like "that one has" "$(cat "$site/ends")" "$last epilog_slurmctld 0:0"

# A traced process stays until its tracer looks, also when it was killed.
cat >"$T/trace" <<'END'
import ctypes, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
sys.exit(9) if libc.ptrace(0x4206, int(sys.argv[1]), 0, 0) else print("traces", flush=True)
time.sleep(300)
END
traces() { [ -s "$T/traces" ] || ! kill -0 $tracer 2>/dev/null; }
said() { grep -q . "$site/unkillable-said"; }
drained() { [[ $(sinfo -h -o %t) == dr* ]]; }
idle() { [[ $(sinfo -h -o %t) == idle ]]; }
has_pid() { [ -s "$T/home/pid" ]; }
# trace PID: false where that is not allowed.
trace() {
    : >"$T/traces"
    python3 "$T/trace" "$1" >"$T/traces" &
    tracer=$!
    wait_for 60 traces
    [ -s "$T/traces" ]
}
# stays JOB STEP HOW: what cannot be killed is given up, and said.
stays() {
    ok "$3: the program is run" wait_for 90 said
    is "$3: and knows the step" "$(cat "$site/unkillable-said")" "$1 $2 unkillable_step n1 0"
    ok "$3: the node is drained" wait_for 60 drained
    like "$3: and says why" "$(scontrol show node n1)" "Reason=Kill task failed"
    ok "$3: the job ends" wait_for 60 job_over "$1"
    kill "$tracer" 2>/dev/null
    wait "$tracer" 2>/dev/null
    : >"$site/unkillable-said"; rm -f "$T/home/pid"
    scontrol update node=n1 state=resume
    ok "$3: the node can be used again" wait_for 60 idle
}
job_over() { [ -z "$(squeue -h -j "$1" -t R,CG -o %i 2>/dev/null)" ]; }

stuck=$(as_user sbatch --parsable -o "$T/home/pid" --wrap 'sleep 300 & echo $!; wait')
ok "a job runs" wait_for 60 has_pid
if trace "$(cat "$T/home/pid")"; then
    scancel --signal=KILL --full "$stuck"
    stays "$stuck" batch "a process it left"
fi
kill "$tracer" 2>/dev/null

stuck=$(as_user sbatch --parsable -o "$T/home/pid" --wrap 'echo $$; sleep 300')
ok "another runs" wait_for 60 has_pid
if trace "$(cat "$T/home/pid")"; then
    scancel "$stuck"
    stays "$stuck" batch "the script itself"
    is "it is cancelled" "$(job_state "$stuck")" CANCELLED
fi
kill "$tracer" 2>/dev/null

as_user srun -o "$T/home/pid" bash -c 'echo $$; sleep 300' >"$T/srun.out" 2>&1 &
srun=$!
ok "a step runs" wait_for 60 has_pid
if trace "$(cat "$T/home/pid")"; then
    stuck=$(squeue -h -t R -o %i)
    scancel "$stuck.0"
    stays "$stuck" 0 "a task"
    gone() { ! kill -0 $srun 2>/dev/null; }
    ok "srun ends" wait_for 60 gone
    wait $srun
    is "with the signal's code" $? 137
    like "and says it" "$(cat "$T/srun.out")" "srun: error: n1: task 0: Killed"
else
    kill $srun
fi
kill "$tracer" 2>/dev/null
done_testing
