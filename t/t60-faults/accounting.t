#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Either daemon is killed at random under load, with SPUR_T_DATABASE=postgresql also the server of the database or its
# process that writes: every job is in the history exactly once, with the right end.
# ROUNDS=20 is the long form (tools/faults ACCOUNTING, which does it with both databases).
SPUR_T_DURABLE=1
. "$(dirname "$0")/../lib.sh"
RANDOM=${SEED:-$$}
echo "# SEED=${SEED:-$$}"
cluster_up --nodes 2 --cpus 8
kill9() { local pid; pid=$(cut -d' ' -f1 "$D/run/$1.pid"); kill -9 "$pid"; while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done; }
victims=(ctl1 spurdbd)
[ "${SPUR_T_DATABASE:-}" != postgresql ] || victims+=(server backend)
writer() { psql -h "$T/pg" -U spur -d spur0 -Atc "SELECT pid FROM pg_stat_activity WHERE application_name = 'spurdbd' ORDER BY xact_start NULLS LAST LIMIT 1"; }
declare -A killed=()
strike() {
    local victim=${victims[RANDOM % ${#victims[@]}]} pid
    killed[$victim]=$((${killed[$victim]:-0} + 1))
    case $victim in
    server) "$ROOT/tools/postgresql" kill "$T/pg"; "$ROOT/tools/postgresql" start "$T/pg" >/dev/null ;;
    backend) pid=$(writer) && [ -n "$pid" ] && kill -9 "$pid" ;;
    *) kill9 "$victim"; spur up --quiet ${SPUR_T_REST---no-rest} --dir "$D" ;;
    esac
}

: >"$T/wanted"
for round in $(seq "${ROUNDS:-4}"); do
    for i in 1 2 3 4 5 6; do
        code=$((RANDOM % 4))
        id=$(submit -o /dev/null --wrap "srun true; exit $code") && echo "$id $code" >>"$T/wanted"
        [ $i -ne $((RANDOM % 6 + 1)) ] || strike
    done
    strike
done
echo "# killed:$(for victim in "${!killed[@]}"; do echo -n " $victim ${killed[$victim]}"; done), jobs: $(wc -l <"$T/wanted")"
all_ended() { [ -z "$(squeue -h -t PD,R,CG)" ]; }
ok "all jobs end" wait_for 60 all_ended
history() { sacct -n -P -X -D -S now-1hours -o JobID,State,ExitCode; }
complete() { [ "$(history | grep -c 'COMPLETED\|FAILED')" -eq "$(wc -l <"$T/wanted")" ]; }
ok "and all are in the history" wait_for 30 complete
is "each once, with the right end" "$(history | sort)" "$(while read -r id code; do echo "$id|$([ "$code" = 0 ] && echo COMPLETED || echo FAILED)|$code:0"; done <"$T/wanted" | sort)"
steps() { [ "$(sacct -n -P -S now-1hours -o JobID | grep -c '\.0$')" -eq "$(wc -l <"$T/wanted")" ]; }
ok "with one step each" wait_for 30 steps
done_testing
