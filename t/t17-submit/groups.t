#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# With which group a job runs: that of the process that submits it, as after newgrp; --gid of root.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all 'needs root'
cluster_up --nodes 1 --cpus 2
chmod 777 "$T"
cd "$T" || exit 1
group_of() { scontrol show job "$1" | grep -o 'GroupId=[^ ]*'; }
ends() { wait_for 30 job_is "$1" COMPLETED; }

a=$(sbatch --parsable -o /dev/null --wrap "id -g >$T/plain")
ends "$a"
is "root's own" "$(group_of "$a") $(cat plain)" 'GroupId=root(0) 0'
a=$(setpriv --regid 20001 --clear-groups sbatch --parsable -o /dev/null --wrap "id -g >$T/changed")
ends "$a"
is "the group of the process" "$(group_of "$a") $(cat changed)" 'GroupId=20001(20001) 20001'
a=$(sbatch --parsable -o /dev/null --wrap "id -g >$T/again")
ends "$a"
is "the next one has its own again" "$(group_of "$a") $(cat again)" 'GroupId=root(0) 0'
a=$(sbatch --parsable --gid=daemon -o /dev/null --wrap "id -g >$T/given")
ends "$a"
is "--gid" "$(group_of "$a") $(cat given)" 'GroupId=daemon(1) 1'
is "srun --gid, by number" "$(srun -Q --gid=20001 id -g)" 20001
a=$(sbatch --parsable --uid=daemon --gid=daemon -o /dev/null --wrap "id >$T/both")
ends "$a"
like "with --uid" "$(cat both)" 'uid=1\(daemon\) gid=1\(daemon\)'

# Somebody with an account, and a group that he is not in: as a setgid program would have it.
a=$(setpriv --reuid daemon --regid 2 --clear-groups sbatch --parsable -o /dev/null --wrap "id -g >$T/stolen")
ends "$a"
is "a group that he is not in is not taken" "$(group_of "$a") $(cat stolen)" 'GroupId=daemon(1) 1'
run sbatch --uid=daemon --gid=bin --wrap true
like "nor given to him" "$code $err" '1 sbatch: error: --gid: user daemon is not in group bin'
run as_user sbatch --gid=daemon --wrap true
like "only root may" "$code $err" '255 sbatch: error: --gid only permitted by root user'
run sbatch --gid=nosuchgroup --wrap true
like "no such group" "$code $err" 'Invalid group id: nosuchgroup'
done_testing
