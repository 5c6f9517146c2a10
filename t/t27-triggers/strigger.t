#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# groups: asan
# strigger: programs that the controller runs when something happens to a job, a node or itself.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 3 --cpus 2
cd "$T"
cat >"$T/note" <<EOF
#!/bin/sh
echo "\$*" >>"$T/noted"
EOF
chmod 755 "$T/note"
noted() { grep -cxF "$1" "$T/noted" 2>/dev/null || true; }
was_noted() { [ "$(noted "$1")" = "$2" ]; }
triggers() { strigger --get -N "$@" | tr -s ' ' | sed 's/^ //; s/ $//'; }

run strigger
is "one of the three must be said" "$code $err" "1 strigger: error: You must use exactly one of the following options: --set, --get or --clear"
run strigger --set --down
is "a program is needed" "$code $err" "1 strigger: error: You must specify a --program value"
run strigger --set --fini -p "$T/note"
is "a job is needed" "$code $err" "1 strigger: error: You must specify a --jobid value"
run strigger --set --down -p note
is "an absolute path" "$code $err" '1 strigger: error: The --program value must start with "/"'
run strigger --set --down -p "$T/nosuch"
is "of a file" "$code $err" "1 strigger: error: Invalid --program value, file not found"
run strigger --set --down -p "$T/note" -o 40000
is "a bound for the offset" "$code $err" "1 strigger: error: The --offset parameter must be between +/-32000"
run strigger --set --fini -j 99 -p "$T/note"
is "a job that is not there" "$code $err" "1 slurm_set_trigger: Invalid job id specified"
run strigger --set --burst_buffer -p "$T/note"
like "what we have not" "$code $err" "^1 .*there are no burst buffers"
if [ "$(id -u)" -eq 0 ]; then
    run as_user strigger --set --down -p "$T/note"
    like "other users set none" "$code $err" "^1 .*only administrators.*set triggers"
fi

# ---- jobs ----
job=$(sub -t 10)
runs "$job" >/dev/null
run strigger --set --fini -j "$job" -p "$T/note done"
is "set" "$code $out$err" "0 "
run strigger --set --fini -j "$job" -p "$T/note done"
is "the same twice" "$code $err" "1 slurm_set_trigger: Duplicate event trigger"
is "listed" "$(strigger --get)" "$(printf '%s\n%7u %-9s %7s %-35s %6d %-8s %-5s %s' "TRIG_ID RES_TYPE   RES_ID TYPE                                OFFSET USER     FLAGS PROGRAM" 1 job "$job" fini 0 "$(id -un)" "" "$T/note done")"
ok "at 10 minutes less 9:58 it is due" strigger --set --time -j "$job" -o -598 -p "$T/note limit"
ok "before its time limit" wait_for 20 was_noted "limit $job" 1
ok "cancelled" scancel "$job"
ok "the program runs when it ended, with its id" wait_for 20 was_noted "done $job" 1
is "and is gone" "$(triggers)" ""
run strigger --set --fini -j "$job" -p "$T/note done"
is "too late" "$code $err" "1 slurm_set_trigger: Job/step already completing or completed"

# ---- nodes ----
ok "down" strigger --set --down -p "$T/note down"
ok "up, for good" strigger --set --up --flags=PERM -n n[2-3] -p "$T/note up"
ok "drained" strigger --set --drained -n n1 -p "$T/note drained"
ok "resumed" strigger --set --resume -n n1 -p "$T/note resume"
ok "failing" strigger --set -F -p "$T/note fail"
is "what was asked" "$(triggers --up)" "$(triggers --node='n[2-3]')"
like "their list" "$(triggers -u)" '^[0-9]+ node n\[2-3\] up 0 [^ ]+ PERM '
ok "two nodes go down" scontrol update nodename=n2,n3 state=down reason=test
ok "one run names both" wait_for 20 was_noted 'down n[2-3]' 1
for turn in 1 2; do
    ok "back $turn" scontrol update nodename=n2 state=resume
    ok "it ran $turn" wait_for 20 was_noted "up n2" "$turn"
    ok "down $turn" scontrol update nodename=n2 state=down reason=test
done
is "one that is not permanent ran once" "$(grep -c down "$T/noted")" 1
ok "drained" scontrol update nodename=n1 state=drain reason=test
ok "its program" wait_for 20 was_noted "drained n1" 1
ok "resumed" scontrol update nodename=n1 state=resume
ok "its program" wait_for 20 was_noted "resume n1" 1
ok "fails" scontrol update nodename=n1 state=fail reason=test
ok "its program" wait_for 20 was_noted "fail n1" 1
ok "resumed" scontrol update nodename=n1 state=resume
ok "idle for a second" strigger --set --idle -o 1 -n n1 -p "$T/note idle"
ok "its program" wait_for 20 was_noted "idle n1" 1

# ---- the configuration and the controller ----
ok "reconfigured" strigger --set -r -p "$T/note"
ok "started again" strigger --set -A -p "$T/note"
ok "scontrol reconfigure" scontrol reconfigure
ok "its program" wait_for 20 was_noted reconfig 1
ok "all nodes are back" scontrol update nodename=n2,n3 state=resume
kept=$(triggers -u)
controller_again
is "triggers outlive the controller" "$(triggers -u)" "$kept"
ok "its program" wait_for 20 was_noted primary_slurmctld_resumed_operation 1

# ---- clearing ----
id=$(triggers -u | cut -d' ' -f1)
run strigger --clear
is "which?" "$code $err" "1 strigger: error: You must specify a --id, --jobid, or --user to clear"
ok "cleared" strigger --clear -i "$id"
is "gone" "$(triggers -u)" ""
run strigger --clear -i "$id"
like "not there" "$code $err" "^1 .*there is no such trigger"
run strigger --clear -Q -i "$id"
is "quiet" "$code $err" "0 "
ok "another one" strigger --set -r -p "$T/note"
ok "by user" strigger --clear --user="$(id -un)"
is "none left" "$(triggers)" ""
done_testing
