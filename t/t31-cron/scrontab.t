#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# seconds: 120
# scrontab: jobs that run at their times under one id, again and again, over a restart of the controller too.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 1 --cpus 4
cd "$T"
shown() { scontrol show job "$1" | tr -s ' \n' '\n' | sed -n "s/^$2=//p"; }
run scrontab -l
is "none yet" "$code $err" "1 no crontab for $(id -un)"
run scrontab -r
is "nothing to remove" "$code $err" "1 no crontab for $(id -un)"
run scrontab - <<<'61 * * * * true'
is "a wrong time" "$code ${err%%$'\n'*}" "1 scrontab: error: line 1: '61' is not a valid minute"
run scrontab - <<<'* * * * *'
is "no command" "$code ${err%%$'\n'*}" "1 scrontab: error: line 1: there is no command after the time"
run scrontab - <<<$'#SCRON --nosuch\n* * * * * true'
like "a wrong option" "$code $err" "^1 .*line 2: .*nosuch"
cat >"$T/tab" <<EOF
# a comment
WORD="two words"
#SCRON --job-name=often -t 5
#SCRON -n 2 -o $T/often.out
* * * * * echo "\$WORD \$SLURM_NTASKS"; exit \$(cat $T/exit 2>/dev/null || echo 0)
@yearly echo rarely
EOF
run scrontab -v "$T/tab"
is "taken" "$code" 0
often=$(sed -n 's/.*line 5 is job //p' <<<"$err")
rarely=$(sed -n 's/.*line 6 is job //p' <<<"$err")
is "kept as it was written" "$(scrontab -l)" "$(cat "$T/tab")"
is "two jobs wait for their time" "$(squeue -h -o '%i %j %T %r' | sort)" "$(printf '%s\n' "$often often PENDING BeginTime" "$rarely echo PENDING BeginTime" | sort)"
is "squeue knows" "$(squeue -h -j "$often" -O CronJob | tr -d ' ')" Yes
is "scontrol too" "$(scontrol show job "$often" | sed -n 's/^ *CronJob=//p')" "* * * * *"
is "the next minute" "$(($(date -d "$(shown "$often" StartTime)" +%s) - $(date +%s) <= 60))" 1
is "options of the other line do not count" "$(shown "$rarely" TimeLimit)" "UNLIMITED"
like "the first of January" "$(shown "$rarely" StartTime)" "-01-01T00:00:00"
ok "it runs at its minute" wait_for 75 test -s "$T/often.out"
is "with its variables and options" "$(cat "$T/often.out")" "two words 2"
again() { job_is "$1" PENDING && [ "$(shown "$1" Restarts)" = "$2" ]; }
ok "and waits again under the same id" wait_for 20 again "$often" 1
next=$(shown "$often" StartTime)
like "for a whole minute" "$next" ":00$"
pid=$(cut -d' ' -f1 "$D/run/ctl1.pid")
kill "$pid" # it leaves a snapshot
ok "the controller ends" wait_for 20 eval '! kill -0 "$pid"'
(cd / && spur up --quiet --no-rest --dir "$D" >>"$T/up.log" 2>&1)
is "a restart changes nothing" "$(shown "$often" StartTime) $(scrontab -l | wc -l)" "$next 6"
echo 3 >"$T/exit"
ok "now" scontrol update jobid="$often" StartTime=now
ok "a run that fails comes back too" wait_for 30 again "$often" 2
ok "output is appended" test "$(wc -l <"$T/often.out")" -ge 2
if [ "$(id -u)" -eq 0 ]; then
    user=$(getent passwd nobody | cut -d: -f1)
    run scrontab -u "$user" - <<<'@daily true'
    is "of another user" "$code $err" "0 "
    is "it is theirs" "$(squeue -h -u "$user" -o %u)" "$user"
    is "listed" "$(scrontab -u "$user" -l)" "@daily true"
    run as_user scrontab -u root -l
    like "not for others" "$code $err" "^1 .*only root"
    ok "removed" scrontab -u "$user" -r
    is "with its job" "$(squeue -h -u "$user")" ""
fi
ok "a job is cancelled" scancel --cron "$rarely"
ok "its line says so" wait_for 20 eval 'scrontab -l | grep -qx "#DISABLED: @yearly echo rarely"'
printf '#!/bin/sh\nsed -i s/often/rare/ "$1"\n' >"$T/editor"
chmod +x "$T/editor"
ok "edited" env VISUAL="$T/editor" scrontab -e
is "the new text" "$(scrontab -l | grep -c job-name=rare)" 1
is "has a new job, and the old one is gone" "$(squeue -h -o %j)" rare
ok "removed" scrontab -r
is "nothing waits" "$(squeue -h)" ""
run scrontab -l
is "none" "$code $err" "1 no crontab for $(id -un)"
done_testing
