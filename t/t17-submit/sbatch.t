#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# groups: asan
# sbatch: where a script comes from, what --wait returns, what options and directives do.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 2 --cpus 4 --mem 4G
cd "$T"

# Forms
run sbatch --wrap true
like "words of a submission" "$out" '^Submitted batch job [0-9]+$'
run sbatch --parsable --wrap true
like "--parsable is the id alone" "$out" '^[0-9]+$'
run sbatch -Q --wrap true
is "--quiet says nothing" "$out$err" ""
printf '#!/bin/sh\n#SBATCH -J fromstdin\ntrue\n' >in.sh
run sbatch --parsable <in.sh
is "script from standard input" "$(squeue -h -t all -j "$out" -o '%j %o')" "fromstdin (null)"
run sbatch --parsable in.sh
is "name and command of a file" "$(squeue -h -t all -j "$out" -o '%j %o')" "fromstdin $T/in.sh"
printf '#!/bin/sh\n#SBATCH -o args.out\nprintf "%%s|" "$#" "$@"\n' >args.sh
sbatch -W args.sh a 'b c' '' d >/dev/null
is "arguments reach the script" "$(cat args.out)" "4|a|b c||d|"
mkdir bin; printf '#!/bin/sh\ntrue\n' >bin/inpath.sh; chmod +x bin/inpath.sh
run env PATH="$T/bin:$PATH" sbatch --parsable inpath.sh
is "a script in PATH is found" "$(squeue -h -t all -j "$out" -o %o)" "$T/bin/inpath.sh"

# --wait
for want in 0 3 255; do
    run sbatch -W --wrap "exit $want"
    is "--wait returns $want" "$code" "$want"
done
run sbatch -W --wrap 'kill -9 $$'
is "--wait returns 1 for a signal" "$code" 1
run sbatch -W -a 1-3 --wrap 'exit $SLURM_ARRAY_TASK_ID'
is "--wait returns the highest of an array" "$code" 3

# Script lines, environment, command line
cat >dir.sh <<'END'
#!/bin/bash
# a comment
#SBATCH --job-name="two words" --comment='$HOME `id`'
#SBATCH -n 2 --mem=100M     # a comment
#PBS -l walltime=1:30:00
echo x

#SBATCH --job-name=late
END
id=$(sbatch --parsable -H dir.sh)
is "directives" "$(squeue -h -j $id -o '%j|%k|%C|%m|%l')" 'two words|$HOME `id`|2|100M|1:30:00'
id=$(SBATCH_TIMELIMIT=20 SBATCH_JOB_NAME=env sbatch --parsable -H -J cli dir.sh)
is "command line over environment over script" "$(squeue -h -j $id -o '%j|%l|%C')" 'cli|20:00|2'
id=$(SBATCH_MEM_PER_CPU=50 sbatch --parsable -H dir.sh)
is "a later level replaces another kind of memory" "$(squeue -h -j $id -o %m)" 50M
id=$(sbatch --parsable -H --ignore-pbs dir.sh)
is "--ignore-pbs" "$(squeue -h -j $id -o %l)" UNLIMITED
scancel -u "$(id -un)"

# Environment
export KEEP_ME=yes
sbatch -W -o env.out --wrap 'echo $KEEP_ME; echo $SLURM_SUBMIT_DIR' >/dev/null
is "the environment goes along" "$(cat env.out)" "yes
$T"
sbatch -W -o env.out --export=NIL --wrap 'echo "[$KEEP_ME]"; echo $SLURM_EXPORT_ENV' >/dev/null
is "--export=NIL" "$(cat env.out)" "[]
NIL"
sbatch -W -o env.out --export=KEEP_ME,NEW='a b',Q="'x,y'" --wrap 'echo "$KEEP_ME|$NEW|$Q"' >/dev/null
is "--export of a list" "$(cat env.out)" "yes|a b|x,y"
sbatch -W -o env.out --export=ALL,KEEP_ME=no --wrap 'echo "$KEEP_ME"; [ -n "$PATH" ] && echo path' >/dev/null
is "--export=ALL and more" "$(cat env.out)" "no
path"
printf 'A=1\0B=two words\0' >exp
sbatch -W -o env.out --export-file=exp --wrap 'echo "$A|$B|$KEEP_ME"' >/dev/null
is "--export-file" "$(cat env.out)" "1|two words|"
(umask 027; ulimit -n 333; sbatch -W -o env.out --wrap 'umask; ulimit -n') >/dev/null
is "umask and limits of the shell" "$(cat env.out)" "0027
333"
(ulimit -n 333; sbatch -W -o env.out --propagate=NONE --wrap 'ulimit -n') >/dev/null
unlike "--propagate=NONE" "$(cat env.out)" '^333$'
mkdir wd; sbatch -W -D wd -o out.txt --wrap pwd >/dev/null
is "--chdir, relative output" "$(cat wd/out.txt)" "$T/wd"

# Arrays and components
id=$(sbatch --parsable -H -a 1-20:2%3 --wrap true)
is "an array waits as one record" "$(squeue -h -j $id -o '%i')" "${id}_[1-19:2%3]"
is "--array has a line for each" "$(squeue -h -r -j $id -o %K | tr '\n' ' ')" "1 3 5 7 9 11 13 15 17 19 "
scancel $id
id=$(sbatch --parsable -H -J h -n1 : -n2 --mem=50 --wrap true)
is "components on the command line" "$(squeue -h -j $id -o '%i %C %j' | sort | tr '\n' ';')" "$id+0 1 h;$id+1 2 h;"
scancel $id
printf '#!/bin/sh\n#SBATCH -H -n1\n#SBATCH hetjob\n#SBATCH -n3\ntrue\n' >het.sh
id=$(sbatch --parsable het.sh)
is "components in the script" "$(squeue -h -j $id -o '%i %C' | sort | tr '\n' ';')" "$id+0 1;$id+1 3;"
scancel $id

# Times
id=$(sbatch --parsable --begin=now+1hour --wrap true)
is "--begin waits" "$(squeue -h -j $id -o '%T %r')" "PENDING BeginTime"
like "--begin shows when" "$(squeue -h -j $id -o %S)" '^20[0-9-]+T[0-9:]+$'
scancel $id
run sbatch --test-only -N2 --wrap true
is "--test-only exits 0" "$code" 0
like "--test-only says when and where" "$err" '^sbatch: Job [0-9]+ to start at 20.* a using [0-9]+ processors on nodes .* in partition debug$'
run sbatch -v --wrap true
like "-v lists options" "$err" 'sbatch: wrap                : true'

printf 'n2\n' >hosts
id=$(sbatch --parsable -H -F hosts --wrap true)
is "--nodefile" "$(squeue -h -j $id -o %n)" n2
scancel $id
done_testing
