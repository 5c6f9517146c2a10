#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# docs/controllers.md: one controller becomes three, by name, and one again; commands work on every one of them.
# seconds: 240
. "$(dirname "$0")/bed.sh"
doc=docs/controllers.md heading='## Adding, removing, changing the leader'
lines() { document "$doc" "$heading" "$1"; }
munge=${MUNGE:-}

site_up c1 'n1 n2' login1
hosts_up c2 c3
[ -z "$munge" ] || munge_up c1 c2 c3 n1 n2 login1
is "the document has its blocks" "$(for i in 1 2 3; do lines $i | head -n 1 | cut -d' ' -f1-2; done | tr '\n' ' ')" \
    "spur controller useradd --system spur controller "
job=$(on alice@login1 sbatch --parsable -N 2 -o out --wrap 'sleep 20; srun hostname')
ok "a job runs meanwhile" wait_for 20 eval '[ "$(on alice@login1 squeue -h -o %T)" = RUNNING ]'

# A controller that cannot run etcd stays as it is, and says so.
on c1 bash -c 'python3 -c "import socket, time; s = socket.socket(); s.bind((\"10.77.0.1\", 6822)); s.listen(); time.sleep(1000)" & echo $! >/run/taken'
wait_for 10 on c1 bash -c 'exec 3<>/dev/tcp/10.77.0.1/6822'
run on c1 timeout 30 spur controller add c2
is "where etcd does not work none is added" "$code" 1
like "with etcd's own word" "$err" 'etcd does not work here.*etcd says: .*address already in use'
like "in the log too" "$(journal c1 spurctld)" 'error ctl.move .*etcd says: .*address already in use'
is "and the cluster goes on" "$(on alice@login1 squeue -h -o %T)" RUNNING
on c1 bash -c 'kill $(cat /run/taken)'
wait_for 10 eval '! on c1 bash -c "exec 3<>/dev/tcp/10.77.0.1/6822"'

add() { # NAME
    local name=$1
    on c1 bash -c "rm -f $name.invitation; $(lines 1 | sed "s/c2/$name/g")" >"$T/add.$name" 2>&1 &
    local adding=$!
    wait_for 30 on c1 test -s "$name.invitation" || return 1
    on c1 cat "$name.invitation" | on "$name" bash -c "install -d /etc/spur; umask 077; cat >$name.invitation"
    on c1 cat /etc/spur/spur.conf | put "$name" /etc/spur/spur.conf
    on "$name" bash -e -c "$(lines 2 | sed "s/c2/$name/g")" || return 1
    wait $adding
}
for name in c2 c3; do
    ok "$name is added by its name" add $name
    like "the command says so" "$(cat "$T/add.$name")" "$name is a controller"
done
like "all three are listed from a login host" "$(on alice@login1 spur controller list | awk '{ print $1, $2 }' | sort | tr '\n' ' ')" 'c1 leader c2 follower c3 follower'
ok "the job ends well" wait_for 40 eval '[ -z "$(on alice@login1 squeue -h)" ]'
is "and ran on both nodes" "$(on alice@login1 sort out | tr '\n' ' ')" "n1 n2 "

check_everywhere() { # WORDS
    local host
    for host in c1 c2 c3 login1; do
        run on alice@$host sbatch --parsable --wait -N 2 -o /dev/null --wrap 'srun hostname'
        is "$1, alice runs a job from $host" "$code:$err" "0:"
        run on alice@$host srun -N 2 hostname
        is "$1, and a step from $host" "$code:$(sort <<<"$out" | tr '\n' ' '):$err" "0:n1 n2 :"
    done
    for host in c1 c2 c3; do
        run on $host scontrol update nodename=n2 state=drain reason=test
        is "$1, root of $host is an administrator" "$code:$err" "0:"
        run on $host scontrol update nodename=n2 state=resume
        is "$1, also to undo it" "$code:$err" "0:"
    done
    run on n1 sinfo -h -o %D
    is "$1, root of a node reads" "$code:$out:$err" "0:2:"
}
check_everywhere "c1 leads"

begun=$SECONDS
run on c3 bash -c "$(lines 3 | head -n 1)" # transfer c2, asked of a follower
is "a follower is asked to hand over to another" "$code:$err" "0:"
ok "at once" test $((SECONDS - begun)) -lt 10
like "which leads then" "$(on c1 spur controller list)" 'c2 +leader'
check_everywhere "c2 leads"

# A leader whose host is gone.
cut c2
ok "without c2 another one leads" wait_for 30 eval 'on c1 spur controller list | grep -qE "^c[13] +leader"'
run on alice@login1 sbatch --parsable --wait -N 2 -o /dev/null --wrap true
is "and jobs run" "$code" 0
mend c2
ok "c2 comes back" wait_for 30 eval 'on c1 spur controller list | grep -qE "^c2 +follower"'
reboot c3
ok "c3 comes back from a reboot by itself" wait_for 40 eval 'on c1 spur controller list | grep -qE "^c3 +(leader|follower)"'

run on c1 spur controller transfer c3
is "c3 leads" "$code:$err" "0:"
for name in c2 c3; do
    run on c1 bash -c "$(lines 3 | tail -n 1 | sed "s/c2/$name/g")"
    is "$name is removed" "$code:$err" "0:"
done
like "one is left, with its log in SQLite" "$(on alice@c1 spur controller list | tail -n +2)" '^c1 +leader .* sqlite'
ok "and jobs run" wait_for 30 on alice@login1 sbatch -Q --wait -o /dev/null --wrap true
done_testing
