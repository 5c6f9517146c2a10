#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# extern.t - Contain and RunInJob: a cgroup of the job for what is none of its steps
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all "needs cgroups"
mount=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
[ -w "${mount:-/nosuch}/cgroup.procs" ] || skip_all "there is no cgroup version 2 to write to"
for what in prolog epilog; do
    printf '#!/bin/bash\necho "$SLURMD_NODENAME $(sed -n s,^0::,,p /proc/self/cgroup)" >>%s\n' "$T/$what.said" >"$T/$what"
    chmod 755 "$T/$what"
done
: >"$T/prolog.said" && : >"$T/epilog.said"
printf '[hooks]\nprolog = "%s"\nepilog = "%s"\nprolog_flags = ["Contain", "RunInJob"]\n' "$T/prolog" "$T/epilog" >"$T/extra.toml"
cluster_up --nodes 2 --cpus 4 --conf "$T/extra.toml"
cd "$(user_dir)"
run spur config check "$T/extra.toml"
unlike "both act" "$out$err" "nothing in this version"
id=$(as_user sbatch --parsable -N2 -o /dev/null --wrap 'sleep 300')
ok "a job of two nodes" wait_for 60 job_is "$id" RUNNING
is "its prologs ran in a cgroup of the job" "$(sort "$T/prolog.said" | grep -cE "^n[12] .*/$id\.1[./]extern$")" 2
dir=$mount$(sed -n 's/^n2 //p' "$T/prolog.said")
ok "which is there on the second node" test -d "$dir"
sleep 1000 &
other=$!
ok "the site puts a process into it" eval 'echo $other >"$dir/cgroup.procs"'
scancel "$id"
gone() { ! kill -0 $other 2>/dev/null; }
ok "which ends with the job" wait_for 60 gone
ok "that is cancelled" wait_for 60 job_is "$id" CANCELLED
both() { [ "$(wc -l <"$T/epilog.said")" -eq 2 ]; }
ok "epilogs ran" wait_for 60 both
is "in it too" "$(grep -cE "/$id\.1[./]extern$" "$T/epilog.said")" 2
no_dir() { [ ! -e "$dir" ]; }
ok "nothing is left of it" wait_for 60 no_dir
done_testing
