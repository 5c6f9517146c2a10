#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every reason that core, planner or controller can give a waiting job has a test of its sentence; parts
# of nodes that reservations keep are explained.
. "$(dirname "$0")/../lib.sh"
src=$HERE/../../src
# symbol → word, with a sentence of our own
declare -A word
while IFS=$'\t' read -r symbol text help; do
    word[$symbol]=$text
    [ -n "$help" ] || fail "$symbol has no words"
done < <(tr '\n' ' ' <"$src/schema/reasons_list.h" | grep -oE 'REASON\(REASON_[A-Z_0-9]+, *[0-9]+, *"[^"]*", *"[^)]*\)' |
    sed -E 's/REASON\((REASON_[A-Z_0-9]+), *[0-9]+, *"([^"]*)", *"([^"]*)".*/\1\t\2\t\3/')
like 'the reasons are read' "${#word[@]}" '^[12][0-9][0-9]$'

# What the code names, but for how a run ended. Limits of accounts and QOS are named by the rows of limits_why.c; t21 has each of them.
used=$(grep -ohE '\bREASON_[A-Z_0-9]+\b' "$src"/{core,sched,spurctld} -r --include='*.c' --exclude-dir=test | sort -u | grep -vE '^REASON_(NONE|COUNT|(ASSOC|QOS)_.*|FAIL_(OOM|INACTIVE_LIMIT|EXIT_CODE|SIGNAL|TIMEOUT))$')
like 'there are some' "$(wc -l <<<"$used")" '^[2-9][0-9]$'
tests="$HERE/explain.t $HERE/reasons.t $HERE/../t21-accounts/every.t $HERE/../t29-preempt/*.t $HERE/../t06-cancel/*.t $HERE/../t17-submit/*.t $HERE/../t30-reservation/*.t $HERE/../t60-faults/*.t $HERE/../t38-het/*.t"
without=
for symbol in $used; do
    [ -n "${word[$symbol]:-}" ] || { without+=" $symbol(no row)"; continue; }
    # shellcheck disable=SC2086
    grep -qE "\\b${word[$symbol]}\\b" $tests || grep -q "$symbol\b" "$src"/*/test/*.c || without+=" ${word[$symbol]}"
done
is 'each is asserted by a test' "$without" ''

# Limits: each kind of limit on each kind of resource that a job can have.
without=
for kind in CPU MEM NODE GRES LIC BILLING; do
    for row in ASSOC_GRP_@ ASSOC_GRP_@_MIN ASSOC_GRP_@_RUN_MIN ASSOC_MAX_@_PER_JOB ASSOC_MAX_@_MINS_PER_JOB \
        QOS_GRP_@ QOS_GRP_@_MIN QOS_GRP_@_RUN_MIN QOS_MAX_@_PER_JOB QOS_MAX_@_MINS_PER_JOB QOS_MAX_@_PER_USER \
        QOS_MAX_@_PER_ACCT QOS_MAX_@_RUN_MINS_PER_USER QOS_MAX_@_RUN_MINS_PER_ACCT QOS_MIN_@; do
        text=${word[REASON_${row/@/$kind}]:-none}
        grep -qE " $text\$" "$HERE/../t21-accounts/every.t" || without+=" $row/$kind:$text"
    done
done
is 'each reason of a limit is asserted' "$without" ''

# ---- parts of nodes ----
cluster_up --nodes 2 --cpus 4 --mem 4G --gpus h100:4
cd "$T" || exit 1
reason_is() { [ "$(squeue -h -j "$1" -o %r)" = "$2" ]; }
scontrol create reservation=part starttime=now duration=60 users=daemon nodes=n1 tres=cpu=3 flags=ignore_jobs >/dev/null
scontrol create reservation=gpus starttime=now duration=60 users=daemon nodes=n2 tres=gres/gpu=3 flags=ignore_jobs >/dev/null
a=$(sub -n 2 -N 1 -w n1 -t 5)
ok 'CPUs are kept for others' wait_for 20 reason_is "$a" Resources
text=$(spur explain "$a")
like 'how many are free' "$text" 'needs 2 CPUs on 1 node; of 1 node that could run it 1 is usable, with 1 of 4 CPUs free'
like 'which node is partly reserved' "$text" '1 partly reserved for others \(n1: part\)'
like 'for whom, how much and how long' "$text" 'reservation part keeps 3 CPUs of n1 for (59:|1:00:00)'
like 'when it starts' "$text" 'expected start: 20[0-9T:-]+ \(in (59:|1:00:00)'
b=$(sub -N1 -w n2 --gpus=2 -t 5)
ok 'GPUs are kept for others' wait_for 20 eval '[[ $(squeue -h -j '"$b"' -o %r) = @(Resources|Priority) ]]'
like 'how many, and by whom' "$(spur explain "$b")" 'and 1 of 4 gpu free.*
.*partly reserved for others \(n2: gpus\).*
.*reservation gpus keeps 3 gpu of n2 for'
c=$(sub -N1 -w n2 --gpus=1 -t 5)
ok 'what is left is given' wait_for 20 job_is "$c" RUNNING
scontrol create reservation=whole starttime=now duration=60 users=daemon nodes=n1 flags=ignore_jobs,overlap >/dev/null
d=$(sub -w n1 -t 5)
ok 'a whole node' wait_for 20 reason_is "$d" 'ReqNodeNotAvail, May be reserved for other job'
like 'says by which' "$(spur explain "$d")" '1 reserved for others \(n1: '
done_testing
