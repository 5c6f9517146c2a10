#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# spur usage: what I and my account used, what it cost, what is left of limits and when it frees.
. "$(dirname "$0")/../lib.sh"
me=$(id -un)
cat >"$T/conf" <<'END'
[accounting]
rates = "cpu=36,gres/gpu=3600,gres/gpu:h100=7200"
enforce = ["associations", "limits"]
[priority]
calc_period = "0:01"
[[accounts]]
name = "physics"
grp_tres = "cpu=6"
grp_tres_mins = "gres/gpu=100"
[[accounts]]
name = "bio"
[[users]]
name = "ME"
account = "physics"
max_jobs = 5
[[users]]
name = "other"
account = "physics"
END
sed -i "s/\"ME\"/\"$me\"/" "$T/conf"
cluster_up --nodes 1 --cpus 8 --gpus h100:2 --conf "$T/conf"
sub=(submit -A physics -o /dev/null)
a=$("${sub[@]}" -n 2 --wrap 'sleep 2')
ok "a job ends" wait_for 30 job_is "$a" COMPLETED
b=$("${sub[@]}" -n 4 -t 10 --wrap 'sleep 300')
ok "another runs" wait_for 30 job_is "$b" RUNNING
seen() { spur usage | grep -q "^$me in physics  *[0-9]"; }
ok "use is there" wait_for 30 seen
out=$(spur usage)
like "since when" "$out" "^Use since 20[0-9-]+-01T00:00:00"
like "whose" "$out" "WHO +CPU-HOURS +GPU-HOURS +COST"
cost() { spur usage | awk -v me="$me" '$1 == me && $2 == "in" { found = $NF } END { print found + 0 }'; }
# 36 an hour of a CPU is 0.01 a second: two CPUs for two seconds cost at least 0.03.
ok "what it cost" wait_for 20 eval 'awk -v c="$(cost)" "BEGIN { exit !(c >= 0.03 && c < 20) }"'
like "the account's" "$out" "account physics +[0-9]"
like "what is in use of a limit, and until when" "$out" "account physics: GrpTRES cpu: 4 of 6 in use, 2 left; job $b frees some by 20[0-9T:-]+ \(in (9|10):"
like "of the own" "$out" "$me in physics: MaxJobs: 1 of 5 in use, 4 left"
like "minutes of the past" "$out" "account physics: GrpTRESMins gres/gpu: 0 of 100 minutes used, 100 left"
unlike "not of accounts that are not mine" "$out" 'account bio'
run spur usage --since nosuch
like "a time that is not one" "$code:$err" "^1:.*nosuch"
run spur usage -u other
like "of somebody else" "$code:$out" "^0:.*account physics"
scancel "$b"

# ---- rates ----
sed 's/^rates = .*/rates = "cpu=much"/' "$T/conf" >"$T/bad.toml"
run spur config check "$T/bad.toml"
like "a rate that is not one" "$code:$out$err" "^1:.*rates = .*cpu=much.*what an hour costs"
done_testing
