#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Accounting on an installed controller with its defaults: spurdbd as its unit starts it, asked by ordinary users.
. "$(dirname "$0")/bed.sh"
site_up c1 n1 login1
id=$(on alice@c1 sbatch --parsable --wait -o /dev/null --wrap 'sleep 0.2')
run on alice@c1 sacct -j "$id"
like "without spurdbd sacct says so" "$code $err" '^1 sacct: error: '
on c1 bash -e -c 'useradd --system spurdb && systemctl enable --now spurdbd'
has() { [ "$(on alice@c1 sacct -n -X -P -j "$1" -o State)" = "$2" ]; }
ok "what ended before it started is there" wait_for 20 has "$id" COMPLETED
failed=$(on alice@c1 sbatch --parsable -o /dev/null --wrap 'exit 3')
ok "and what ends now" wait_for 20 has "$failed" FAILED
like "with its exit code" "$(on alice@c1 sacct -n -X -P -j "$failed" -o ExitCode)" '^3:0$'
ok "seff knows it" on alice@c1 seff "$id"
is "it is spurdb's" "$(on c1 ps -o user= -C spurdbd | sort -u)" spurdb
is "its database is nobody else's" "$(on c1 stat -c '%U %a' /var/lib/spurdb)" "spurdb 700"
on c1 sacctmgr -i add account science >/dev/null
on c1 sacctmgr -i add user alice account=science >/dev/null
is "an account, made by the administrator" "$(on alice@c1 sacctmgr -n -P show assoc user=alice format=account)" science
run on alice@c1 sacctmgr -i add account mine
is "not by a user" "$code" 1
on c1 systemctl stop spurdbd
away=$(on alice@c1 sbatch --parsable --wait -o /dev/null --wrap true)
ok "no job waits for it" test -n "$away"
on c1 systemctl start spurdbd
ok "nothing is lost while it is away" wait_for 20 has "$away" COMPLETED
is "from a login host the controller passes the question on" "$(on alice@login1 sacct -n -X -P -j "$id,$failed" -o JobID,State)" "$id|COMPLETED
$failed|FAILED"
is "and about accounts" "$(on alice@login1 sacctmgr -n -P show assoc user=alice format=account)" science
run on alice@login1 sacctmgr -i add account other
like "a user may change nothing from there" "$code $err" '^1 .*may not change accounts'
on c1 sacctmgr -i modify user alice set adminlevel=operator >/dev/null
changes() { on alice@login1 sacctmgr -i add account other >/dev/null; }
ok "an operator may" wait_for 20 changes
is "and it is there" "$(on c1 sacctmgr -n -P show account other format=account)" other
on c1 systemctl stop spurdbd
run on alice@login1 sacct
like "while it is away sacct says so" "$code $err" '^1 sacct: error: .*spurdbd'
done_testing
