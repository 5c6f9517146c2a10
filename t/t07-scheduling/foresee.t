#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# When a job starts that waits for something else than room: a limit, other jobs, a time.
. "$(dirname "$0")/../lib.sh"
me=$(id -un)
cat >"$T/conf" <<END
[scheduler]
config_overrides = true
fairshare_halflife_days = 1
licenses = ["matlab:2"]
[accounting]
enforce = ["limits", "qos"]
[access]
disable_root_jobs = false
[[nodes]]
names = "n[1-4]"
cpus = 8
memory_mb = 4000
[[partitions]]
name = "all"
default = true
nodes = "ALL"
[[qos]]
name = "one"
max_jobs_per_user = 1
[[qos]]
name = "minutes"
grp_tres_run_mins = "cpu=100"
[[qos]]
name = "spent"
grp_tres_mins = "cpu=0"
[[qos]]
name = "kept"
flags = ["NoDecay"]
grp_wall = 0
[[accounts]]
name = "sci"
[[accounts]]
name = "few"
grp_tres = "cpu=4"
[[users]]
name = "$me"
account = "sci"
default = true
[[users]]
name = "$me"
account = "few"
END
cluster_up --nodes 4 --conf "$T/conf"
cd "$T"
# Minutes from now until it is expected to start, rounded to five; or what is said instead.
within() {
    local text
    text=$(spur explain "$1")
    if [[ $text =~ expected\ start:\ 20[0-9T:-]+\ \(in\ ([0-9:-]+)\) ]]; then
        local -a part
        IFS=:- read -ra part <<<"${BASH_REMATCH[1]}"
        local s=0
        for p in "${part[@]}"; do s=$((s * 60 + 10#$p)); done
        echo $(((s + 150) / 300 * 5))
    else
        grep -o 'expected start: .*' <<<"$text"
    fi
}

a=$(sub -A few -n 2 -t 30) b=$(sub -A few -n 2 -t 60)
runs "$a" >"$T/where"; runs "$b" >>"$T/where"
c=$(sub -A few -n 2 -t 20) d=$(sub -A few -n 4 -t 10) e=$(sub -A few -n 2 -t 5)
waits "$e" AssocGrpCpuLimit
is 'when enough of those that the limit counts have ended' "$(within "$c")" 30
is 'all of them, and who goes before it' "$(within "$d")" 60
is 'behind the one before it that needs no more' "$(within "$e")" 50
like 'who that is' "$(spur explain "$c")" "if jobs run as long as they may, the limit has room for it when job $a \($me\) has ended, in (29|30):"
like 'and how many come before' "$(spur explain "$e")" '1 other that waits for limits goes first'
is 'as Slurm, squeue has no start for what a limit keeps' "$(squeue -h --start -j "$c" -o %S)" N/A
arr=$(sub -A few -n 4 -t 10 --array=1-3) f=$(sub -A few -n 4 -t 5)
is 'the tasks of an array take their time each' "$(within "$f")" 100
endless=$(sub -A few -n 1 -t UNLIMITED --nice=-100)
is 'nothing is foreseen behind a job without a limit' "$(within "$f")" 'expected start: not known'
scancel "$c" "$d" "$e" "$arr" "$f" "$endless"

g=$(sub -q one -t 40)
runs "$g" >"$T/where"
h=$(sub -q one -t 10) i=$(sub -q one -t 10)
waits "$i" QOSMaxJobsPerUserLimit
is 'the same for a number of jobs' "$(within "$h") $(within "$i")" '40 50'
j=$(sub -q minutes -n 2 -t 40)
runs "$j" >"$T/where"
k=$(sub -q minutes -n 2 -t 40)
waits "$k" QOSGrpCPURunMinutesLimit
is 'and for CPU minutes to come' "$(within "$k")" 40

spent=$(sub -q spent) kept=$(sub -q kept)
waits "$spent" QOSGrpCPUMinutesLimit
is 'nothing gives back more than there ever was' "$(within "$spent") $(within "$kept")" 'expected start: not known expected start: not known'

l=$(sub -d "afterok:$a" -t 10) m=$(sub -d "afterok:$l" -t 10) o=$(sub -d "after:$m+15")
waits "$o" Dependency
is 'what others have to do before' "$(within "$l") $(within "$m") $(within "$o")" '30 40 55'
p=$(sub -d "afterany:$a?afterany:$b") q=$(sub -d "afterany:$a,afterany:$b")
is 'any of them, or all' "$(within "$p") $(within "$q")" '30 60'
r=$(sub -J solo -t 25) s=$(sub -J solo -d singleton)
runs "$r" >"$T/where"
is 'the only one with its name' "$(within "$s")" 25
is 'a job that is held may never go' "$(within "$(sub -d "afterok:$(sub -H)")")" 'expected start: not known'

lic=$(sub -L matlab:2 -t 35)
runs "$lic" >"$T/where"
t=$(sub -L matlab:1 -t 5)
waits "$t" Licenses
is 'licences come back' "$(within "$t")" 35
drop "$t"
begin=$(sub --begin=now+45minutes)
is 'not before its time' "$(within "$begin")" 45
wide=$(sub -N 4 --exclusive -t 20)
waits "$wide" Resources
is 'nodes become free' "$(within "$wide")" 60
is 'nor while the nodes are not free then' "$(within "$(sub --begin=now+45minutes -N 4 --exclusive)")" 80
scontrol create reservation=later starttime=now+120minutes duration=60 users="$me" nodes=n1 >/dev/null
is 'nor before its reservation' "$(within "$(sub --reservation=later -t 5)")" 120
done_testing
