#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# groups: asan
# spur sim: small traces whose schedule is known by hand, forms of output, mistakes, and what-if on a live queue.
. "$(dirname "$0")/../lib.sh"
cd "$T"

# One node of 8 GPUs: job 2 needs all of it; job 3 is short enough to go before it, job 4 is not.
printf 'job_id\tsubmit_s\tduration_s\tgpus\tuser\n1\t0\t100\t4\ta\n2\t10\t50\t8\tb\n3\t20\t30\t4\ta\n4\t30\t200\t4\tb\n' >hand.tsv
starts() { spur sim hand.tsv --nodes 1 --gpus 8 --jobs "$@" | awk '$2 == "ENDED" && $1 + 0 { printf "%s:%s ", $1, $4 }'; }
is "fifo" "$(starts --policy fifo)" "1:0 2:100 3:150 4:150 "
is "backfill" "$(starts --policy backfill)" "1:0 2:100 3:20 4:150 "
is "backfill is the default" "$(starts)" "1:0 2:100 3:20 4:150 "
is "without limits nothing goes before its turn" "$(starts --limits none)" "1:0 2:100 3:150 4:150 "

# Jobs of 100, 50 and 10 seconds behind one that has the node: the shortest first, but by submission under fifo.
printf 'submit_s\tduration_s\tgpus\tjob_id\n0\t10\t8\t1\n1\t100\t8\t2\n2\t50\t8\t3\n3\t10\t8\t4\n' >order.tsv
order() { spur sim order.tsv --nodes 1 --gpus 8 --jobs --policy "$1" | awk '$2 == "ENDED" && $1 + 0 { print $4, $1 }' | sort -n | awk '{ printf "%s", $2 }'; }
is "order of fifo" "$(order fifo)" 1234
is "order of sjf" "$(order sjf)" 1432
is "order of predict" "$(order predict)" 1432
is "predict without patience" "$(order predict:0)" 1234
is "predict with no job that may be late" "$(order predict:400:0)" 1432

json() { python3 -c "import json,sys; print(eval(sys.argv[1], {'r': json.load(sys.stdin)}))" "$1"; }
out=$(spur sim hand.tsv --nodes 1 --gpus 8 --policy fifo,backfill --json)
is "policies in JSON" "$(json '[x["policy"] for x in r]' <<<"$out")" "['fifo', 'backfill']"
is "waits" "$(json 'r[0]["wait_s"]' <<<"$out")" "{'avg': 85.0, 'p50': 120, 'p99': 130, 'max': 130}"
is "completion" "$(json 'r[1]["completion_s"]' <<<"$out")" "{'avg': 147.5, 'p50': 140, 'p99': 320, 'max': 320}"
is "utilisation" "$(json 'r[0]["utilisation"], r[0]["makespan_s"], r[0]["units"]' <<<"$out")" "(0.614286, 350, 8)"
is "slowdown" "$(json 'r[0]["bounded_slowdown"]' <<<"$out")" 2.683
is "users" "$(json '[(u["user"], u["jobs"]) for u in r[0]["users"]]' <<<"$out")" "[('a', 2), ('b', 2)]"

# Parts of GPUs: on one GPU of two, while the other is for a job that wants a whole one.
printf 'job_id\tsubmit_s\tduration_s\tgpus\tgpu_milli\n1\t0\t100\t1\t500\n2\t1\t100\t1\t400\n3\t2\t100\t1\t1000\n4\t3\t100\t1\t200\n5\t4\t50\t1\t100\n' >parts.tsv
part_starts() { spur sim parts.tsv --jobs "$@" | awk '$2 == "ENDED" && $1 + 0 { printf "%s:%s ", $1, $4 }'; }
is "parts share a GPU" "$(part_starts --nodes 1 --gpus 2)" "1:0 2:1 3:2 4:100 5:4 "
is "parts: use" "$(spur sim parts.tsv --nodes 1 --gpus 2 --json | json 'r[0]["utilisation"], r[0]["rounded_gpus"]')" "(0.5375, 0)"
printf 'cluster_name = "m"\n[[nodes]]\nnames = "n1"\ncpus = 8\nmemory_mb = 1000\ngres = ["gpu:2", "mps:200"]\n[[partitions]]\nname = "all"\nnodes = "ALL"\ndefault = true\n' >mps.conf
is "parts as mps" "$(part_starts --config mps.conf)" "1:0 2:1 3:2 4:100 5:4 "
sed -i 's/, "mps:200"//' mps.conf
is "without shares a part is a GPU" "$(part_starts --config mps.conf)" "1:0 2:1 3:100 4:101 5:200 "
like "and that is said" "$(spur sim parts.tsv --config mps.conf)" '4 jobs want a part of a GPU and got all of it'
ok "timeline of parts" spur sim parts.tsv --nodes 1 --gpus 2 --timeline parts.svg
is "bars lie on each other" "$(grep -o 'y="[0-9.]*" width="[0-9.]*" height="[0-9.]*"/' parts.svg | sed -n '1,2p' | awk -F'"' '{ printf "%s+%s ", $2, $6 }')" "48.00+6.00 54.00+4.80 "

# SWF: the header says how large the cluster is.
printf '; MaxNodes: 2\n; MaxProcs: 8\n1 0 -1 100 8 -1 -1 8 100 -1 1 1 1 1 1 1 -1 -1\n2 5 -1 50 4 -1 -1 4 60 -1 1 2 1 1 1 1 -1 -1\n3 6 -1 -1 4 -1 -1 4 60 -1 0 2 1 1 1 1 -1 -1\n' >small.swf
like "swf" "$(spur sim small.swf --jobs)" $'^2 jobs of 2 users on 2 nodes with 8 CPUs\n1 lines are left out.*\n2 +ENDED +5 +100 +150'
gzip -k small.swf
is "compressed" "$(spur sim small.swf.gz --jobs | tail -n 2)" "$(spur sim small.swf --jobs | tail -n 2)"

ok "timeline" spur sim hand.tsv --nodes 1 --gpus 8 --timeline out.svg
ok "timeline is XML" python3 -c 'import xml.dom.minidom; xml.dom.minidom.parse("out.svg")'
is "a bar per job" "$(grep -c '<title>job' out.svg)" 4
like "no progress bar without a terminal" "$(spur sim hand.tsv --nodes 1 --gpus 8 2>&1 >/dev/null)" '^$'

refused() { # TEXT ARGUMENT...
    local text=$1
    shift
    run spur sim "$@"
    is "exit of: $*" "$code" 1
    like "words of: $*" "$err" "$text"
}
printf 'submit_s\tduration_s\n1\tsoon\n' >bad.tsv
refused '^spur sim: error: bad.tsv:2: duration_s is .soon.' bad.tsv --nodes 1 --gpus 1
refused 'nosuch.*No such file' nosuch --nodes 1 --gpus 1
refused 'which cluster' hand.tsv
refused 'there is no policy .lifo.' hand.tsv --nodes 1 --gpus 8 --policy lifo
refused 'one trace is needed' --nodes 1
refused -- '--what-if needs' --what-if
refused 'do not go with it' hand.tsv --config x --nodes 2
refused '^spur sim: error: --timeline no/such/out.svg: no/such: No such file' hand.tsv --nodes 1 --gpus 8 --timeline no/such/out.svg

# Hostile traces: cut, huge, negative, out of order.
row() { printf 'submit_s\tduration_s\tgpus\n'; printf "$@"; }
python3 -c 'print("submit_s\tduration_s\tgpus"); [print("%d\t%d\t1" % (i * i % 9973, i)) for i in range(1, 20000)]' | gzip >whole.tsv.gz
head -c 20000 whole.tsv.gz >cut.tsv.gz
refused 'cut.tsv.gz: the compressed file ends too early' cut.tsv.gz --nodes 1 --gpus 8
row '0\t10\t1\n5\t10\t1' >cut.tsv
like "a last line without an end" "$(spur sim cut.tsv --nodes 1 --gpus 8)" $'^2 jobs.*\nthe last line of the trace does not end: the file may be cut'
row '0\t9223372036854775807\t1\n' >huge.tsv
refused 'huge.tsv:2: duration_s is .9223372036854775807.: a whole number' huge.tsv --nodes 1 --gpus 8
row '0\t10\t1\n0\t10\t4294967297\n' >huge.tsv
refused 'huge.tsv:3: gpus is .4294967297.' huge.tsv --nodes 1 --gpus 8
row '0\t3153600000\t8\n1\t3153600000\t8\n' >huge.tsv
is "two hundred years" "$(spur sim huge.tsv --nodes 1 --gpus 8 --json | json 'r[0]["ended"], r[0]["makespan_s"]')" "(2, 6307200000)"
row -- '-7\t10\t1\n' >negative.tsv
refused 'negative.tsv:2: submit_s is .-7.' negative.tsv --nodes 1 --gpus 8
row '100\t10\t8\n5\t10\t8\n50\t10\t8\n' >order.tsv
is "lines in any order" "$(spur sim order.tsv --nodes 1 --gpus 8 --jobs | awk '$2 == "ENDED" && $1 + 0 { printf "%s:%s ", $1, $4 }')" "2:0 3:45 1:95 "
printf 'cluster_name = "d"\n[[nodes]]\nnames = "n1"\ncpus = 8\nmemory_mb = 1000\ngres = ["gpu:8"]\n[[partitions]]\nname = "all"\nnodes = "ALL"\ndefault = true\nstate = "DOWN"\n[preemption]\ntype = "partition_prio"\nmode = "REQUEUE"\n[priority]\ntype = "multifactor"\n' >down.conf
like "jobs that can never start end the simulation" "$(timeout 20 spur sim order.tsv --config down.conf)" '0 jobs run, 3 wait'
same() { spur sim whole.tsv.gz --nodes 8 --gpus 8 --policy backfill,predict --limits random:5 --jobs --json | sed 's/"cpu_ms": *[0-9.]*//g' | sha256sum; }
is "the same again" "$(same)" "$(same)"
if command -v script >/dev/null; then
    like "a progress bar on a terminal" "$(script -qec 'spur sim whole.tsv.gz --nodes 8 --gpus 8' /dev/null </dev/null | tr '\r' '\n')" 'backfill +\[#+\.+\] +[0-9]+ %'
fi
like "a job that fits nowhere" "$(spur sim hand.tsv --nodes 1 --gpus 4)" '1 jobs are refused, the first one of line 3'
like "manual page" "$(spur man sim)" '^.TH SPUR SIM 1'
like "it says what figures mean" "$(spur man sim)" '.SH FIGURES.*Jain.*\.SH EXIT STATUS'

# What a second node would change for a queue that waits for the only one.
cluster_up --nodes 1 --cpus 4 --mem 4G
submit -J first -c 4 -t 10 --wrap 'sleep 300' >/dev/null
wait_for 20 sh -c '[ "$(squeue -h -t R | wc -l)" = 1 ]'
second=$(submit -J second -c 4 -t 10 --wrap true)
held=$(submit -H -J held -c 4 -t 10 --wrap true)
cat >two.conf <<'CONF'
cluster_name = "two"
[[nodes]]
names = "n[1-2]"
cpus = 4
memory_mb = 4096
[[partitions]]
name = "debug"
nodes = "ALL"
default = true
[access]
disable_root_jobs = false
CONF
run spur sim --what-if --config two.conf
is "what-if: exit" "$code" 0
like "what-if: starts at once with two nodes" "$out" "$second +[^ ]+ +second +(9:[0-9]+|10:00) +now +-"
like "what-if: held stays held" "$out" "$held .* held +held"
like "what-if: summary" "$out" '1 of 2 waiting jobs would start earlier, 0 later'
is "what-if: JSON" "$(spur sim --what-if --config two.conf --json | json '[j["name"] for j in r["jobs"]], 0 < r["jobs"][0]["changed"]["start_time"] < r["jobs"][0]["present"]["start_time"]')" "(['second', 'held'], True)"
sed 's/"debug"/"other"/' two.conf >other.conf
like "what-if: jobs that the change would refuse" "$(spur sim --what-if --config other.conf)" 'refused with the change, the first one: .*[Pp]artition'
scancel --me
done_testing
