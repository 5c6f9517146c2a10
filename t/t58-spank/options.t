#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# SPANK: options of plugins in help, completion, on the command line, in scripts; how they travel; the job-control environment.
. "$(dirname "$0")/lib.sh"
plugstack
plugin options required count=2
printf '#!/bin/sh\nenv | grep ^SPANK_ | sort >>%s/%s\n' "$T" prolog >"$T/prolog.sh"
printf '#!/bin/sh\nenv | grep ^SPANK_ | sort >>%s/%s\n' "$T" epilog >"$T/epilog.sh"
chmod 755 "$T"/*.sh
cat >"$T/spur.conf" <<END
cluster_name = "options"
[hooks]
prolog = "$T/prolog.sh"
epilog = "$T/epilog.sh"
[[nodes]]
names = "n1"
cpus = 4
[[partitions]]
name = "debug"
nodes = "ALL"
default = true
END
cluster_up --conf "$T/spur.conf"
chmod 777 "$T"
cd "$T"

# ---- help, completion, mistakes ----
for command in sbatch salloc srun; do
    help=$($command --help)
    like "$command --help has a heading for them" "$help" 'Options provided by plugins:'
    like "$command --help names one with a value" "$help" '--with-arg=WORD +Takes a word. \[options\]'
    like "$command --help names one made at run time" "$help" '--made-1 +Made at run time'
done
like "a value that may be left out" "$help" '--maybe-arg\[=WORD\]'
like "a value in brackets is needed" "$help" '--odd.name=<\[0-19\]>'
like "srun has those of the table" "$help" '--in-table=WORD'
unlike "allocators have not" "$(sbatch --help)" 'in-table'
is "completion" "$(spur complete sbatch --made- | xargs)" "--made-0 --made-1"
is "completion knows which need a value" "$(spur complete srun --with-a)" "--with-arg="
run sbatch --with-arg
is "a value is missing: exit code" "$code" 255
like "a value is missing" "$err" "option '--with-arg' requires an argument"
run sbatch --with-arg=bad --wrap true
is "the plugin refuses a value: exit code" "$code" 1
like "the plugin refuses a value" "$err" '^sbatch: error: Invalid --with-arg argument: bad$'
plugstack
plugin options required misuse
run sbatch --test-only --wrap true
like "a plugin that takes a name of sbatch's own is told" "$err" 'option "nodes" exists already'
is "a name of sbatch's own cannot be taken" "$(item init taken)" 3000
is "options are registered in init alone" "$(item init_post_opt register)" 3001
is "what was given is not known in init" "$(item init getopt)" 3009
plugstack
plugin options required count=2

# ---- srun ----
clear_record
run as_user srun --with-arg=one --maybe-arg --no-arg --made-1 --in-table=t bash -c 'env | grep SPANK_OPTION; true'
is "srun: tasks do not have what srun was told" "$out$err" ""
is "srun: heard here and on the node" "$(recorded option | sort | xargs -n3 | tr '\n' ';')" \
    "1 one local;1 one remote;100 t local;100 t remote;2 - local;2 - remote;3 - local;3 - remote;51 - local;51 - remote;"
is "srun: the node can ask for it" "$(item user_init getopt) $(item user_init getopt-flag)" "0 one 0"
is "prolog: can ask for it too" "$(item job_prolog getopt) $(item job_prolog getopt-flag)" "0 one 0"
is "prolog: the job-control environment" "$(item job_prolog colour)" blue
is "what is set already stays" "$(item init_post_opt control) $(item init_post_opt colour)" "0 3003 blue"
like "the site's prolog has it" "$(cat prolog)" 'SPANK_COLOUR=blue'
like "the site's prolog has the options" "$(cat prolog)" 'SPANK__SLURM_SPANK_OPTION_options_with_arg=one'
unlike "not what was taken away again" "$(cat prolog)" GONE
ok "the site's epilog has it" wait_for 20 grep -q SPANK_COLOUR=blue epilog

# ---- sbatch: a line of the script, the command line wins; srun inside takes it up ----
cat >job.sh <<'END'
#!/bin/bash
#SBATCH --with-arg=script --no-arg
#SBATCH --odd.name=5
#SBATCH -o out
srun true
srun --with-arg=inner true
END
clear_record
id=$(as_user sbatch --parsable job.sh)
ok "sbatch: the job ended" wait_for 30 eval 'sacct -nXj '$id' -o state 2>/dev/null | grep -q COMPLETED || [ "$(job_state '$id')" = COMPLETED ]'
is "sbatch: from the script's lines" "$(recorded option | grep local | sort -u | tr '\n' ';')" "1 inner local;1 script local;3 - local;4 5 local;"
is "sbatch: on the node: the script, srun, srun that says it itself" "$(recorded option | grep '^1 .*remote' | xargs)" "1 script remote 1 script remote 1 inner remote"
is "sbatch: nothing was said in the job" "$(cat out)" ""
clear_record
run as_user sbatch --parsable --with-arg=line --export=NONE -o out job.sh
ok "sbatch: it ran" wait_for 30 eval 'recorded option | grep -q remote'
is "sbatch: the command line wins, --export=NONE or not" "$(recorded option | grep '^1 ' | head -2 | xargs)" "1 line local 1 line remote"

# ---- salloc ----
clear_record
run as_user salloc -Q --with-arg=all srun true
is "salloc: srun inside takes it up" "$(recorded option | xargs)" "1 all local 1 all local 1 all remote"
done_testing
