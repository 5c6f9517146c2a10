#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# ports.t - --resv-ports: ports that a step has for itself on its nodes, whoever manages its job
. "$(dirname "$0")/../lib.sh"
printf '[jobs]\nmpi_ports = "12000-12011"\n' >"$T/extra.toml"
cluster_up --nodes 3 --cpus 8 --conf "$T/extra.toml"
cd "$(user_dir)"
show='echo $SLURM_STEP_RESV_PORTS'
count() { tr ',' '\n' <<<"$1" | awk -F- '{ n += NF > 1 ? $2 - $1 + 1 : 1 } END { print n }'; }
expand() { tr ',' '\n' <<<"$1" | awk -F- '{ for (i = $1; i <= (NF > 1 ? $2 : $1); i++) print i }'; }

run as_user srun -N1 -n3 --resv-ports sh -c "$show"
is "one more than tasks on a node" "$(sort -u <<<"$out" | wc -l) $(count "$(head -1 <<<"$out")")" "1 4"
like "of those that the site names" "$out" "^120(0[0-9]|1[01])"
run as_user srun -N3 -n3 --resv-ports=5 sh -c "$show"
is "so many, the same on all nodes" "$(wc -l <<<"$out") $(sort -u <<<"$out" | wc -l) $(count "$(head -1 <<<"$out")")" "3 1 5"
run as_user srun sh -c "$show"
is "none when nobody asks" "$code $out" "0 "
run as_user srun --resv-ports=0 sh -c "$show"
is "nor for none" "$code $out" "0 "
run as_user srun --resv-ports=13 true
is "more than there are" "$code" 1
like "which is said" "$err" "srun: error: Unable to create step for job [0-9]+: Requires more ports than can be reserved"
run as_user srun --resv-ports=x true
like "what is no number" "$err" "^srun: error: Invalid --resv-ports specification"

# Two jobs with different managers meet on n3.
hold='srun -w n3 -n1 --overlap --resv-ports=8 -J first sh -c "echo \$SLURM_STEP_RESV_PORTS >a.ports; while [ ! -e go ]; do sleep 0.1; done"'
a=$(as_user sbatch --parsable -w n1,n3 -N2 -n2 -o a.out --wrap "$hold")
ok "a step of one job" wait_for 30 test -s a.ports
listed() { scontrol show step "$a" | grep -q "ResvPorts=$(cat a.ports)"; }
ok "scontrol show step has them" wait_for 20 listed
b=$(as_user sbatch --parsable -w n2,n3 -N2 -n2 -o /dev/null --wrap 'sleep 600')
ok "another job" wait_for 30 job_is "$b" RUNNING
for i in 1 2 3; do
    run as_user srun --jobid="$b" -w n3 -n1 --overlap --resv-ports=4 sh -c "$show"
    is "step $i of the other has the rest" "$(sort <(expand "$(cat a.ports)") <(expand "$out") | uniq | wc -l)" 12
done
run as_user srun --jobid="$b" -w n2 -n1 --overlap --resv-ports=12 sh -c "$show"
is "other nodes have them all" "$out" 12000-12011
run as_user srun --jobid="$b" -I -w n3 -n1 --overlap --resv-ports=5 true
like "at once or not at all" "$code $err" "^1 srun: error: Unable to create step for job $b: Required ports are in use"
as_user srun --jobid="$b" -w n3 -n1 --overlap --resv-ports=8 sh -c "echo ran; $show" >late.out 2>late.err &
late=$!
ok "who has to wait says for what" wait_for 30 grep -q "srun: Job $b step creation temporarily disabled, retrying (Required ports are in use)" late.err
is "and waits" "$(cat late.out)" ""
as_user touch go
wait $late
is "until they are free" "$? $(head -1 late.out)" "0 ran"
is "saying so once" "$(grep -c retrying late.err)" 1
scancel "$b"

printf '#!/bin/bash\n#SBATCH --resv-ports=2 -o job.out\nsrun -n1 sh -c "%s"\n' "${show/\$/\\\$}" >job.sh
as_user sbatch -W job.sh >/dev/null
is "sbatch --resv-ports is for its steps" "$(count "$(cat job.out)")" 2
run as_user salloc -Q -n2 --resv-ports srun sh -c "$show"
is "salloc's too" "$(count "$(head -1 <<<"$out")")" 3
done_testing
