#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `spur` by task, `spur help X`, commands that a site adds, and completion as a shell runs it.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 2
cd "$T"

run spur help
is "spur help ends well" "$code" 0
like "and lists by task" "$out" $'Run something\n  submit       sbatch'
run spur
is "spur alone is a mistake" "$code" 1
for name in $(spur help | sed -n 's/^  \([a-z]\{2,\}\) .*/\1/p'); do
    run spur help "$name"
    like "help with $name" "$code $out" '^0 (Usage|usage)'
done
run spur help scontrol
like "help with one of Slurm's" "$code $out" '^0 '
run spur quue
is "a wrong command" "$code $err" "1 spur: error: 'quue' is not a command; did you mean 'queue'? ('spur help' lists them)"
run spur que
like "a beginning" "$err" "did you mean 'queue'"
run spur help nosuchthing
is "help with what is not there" "$code" 1

mkdir bin
printf '#!/bin/sh\necho "mine: $*"\n' >bin/spur-site
chmod 755 bin/spur-site
is "spur-NAME on the PATH" "$(PATH=$T/bin:$PATH spur site a 'b c')" "mine: a b c"
chmod 644 bin/spur-site
run env PATH="$T/bin:$PATH" spur site
is "one that cannot be run" "$code" 126

# What bash itself makes of the words: it splits at '='.
tab() { # WORDS...: candidates for the last word
    bash --norc -c 'eval "$(spur completion bash)"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _spur_complete; printf "%s\n" "${COMPREPLY[@]}"' bash "$@" | tr '\n' ' '
}
is "it is there for every command" "$(bash --norc -c 'eval "$(spur completion bash)"; complete -p spur sbatch scontrol' | wc -l)" 3
is "a command" "$(tab spur subm)" "submit "
is "an option" "$(tab sbatch --parti)" "--partition= "
is "of ours as of Slurm's" "$(tab spur submit --parti)" "--partition= "
is "a partition behind =" "$(tab sbatch --partition = '')" "debug "
is "a partition behind -p" "$(tab squeue -p de)" "debug "
is "the second of a list" "$(tab sinfo -n n1,n)" "n1,n1 n1,n2 "
is "nodes" "$(tab scontrol show node '')" "n1 n2 "
is "verbs" "$(tab scontrol requeueh)" "requeuehold "
job=$(sub)
is "jobs" "$(tab scancel '')" "$job "
is "jobs of a verb" "$(tab scontrol hold '')" "$job "
is "nothing where a file belongs" "$(tab sbatch '')" " "
is "nothing when nobody answers" "$(SPUR_CONTROLLER_ADDR=http://127.0.0.1:1 tab scancel '')" " "
if command -v zsh >/dev/null; then
    is "zsh takes it" "$(zsh -fc 'autoload -U compinit; compinit -u; eval "$(spur completion zsh)"; echo $_comps[sbatch]')" _spur_complete
else
    pass "zsh takes it # skip zsh is not here"
fi
if command -v fish >/dev/null; then
    is "fish takes it" "$(fish -c 'spur completion fish | source; complete -C "sbatch --parti"' | cut -f1)" "--partition="
else
    pass "fish takes it # skip fish is not here"
fi
run spur completion tcsh
is "another shell" "$code" 1
done_testing
