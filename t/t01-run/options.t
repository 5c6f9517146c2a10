#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# seconds: 240
#
# options.t - every option of Slurm's srun is known: alone and inside an allocation it acts, is refused by the
# controller, or says that it is not supported yet. Then what some of them do.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 1 --cpus 4 --mem 4G --gpus gtx:2
cd "$(user_dir)"
printf '\377\377\0\0\0\0\0\022MIT-MAGIC-COOKIE-1\0\0200123456789abcdef' >cookies # for every display
export DISPLAY=:0 XAUTHORITY=$PWD/cookies
echo n1 >hosts
job=$(sbatch --parsable -n2 -G 1 --mem 1G -o /dev/null --wrap 'sleep 1000')
wait_for 20 job_is "$job" RUNNING

# WHERE OPTION COMMAND...
try() {
    local where=$1 option=$2 name=${2#--}
    name=${name%%[= ]*}
    shift 2
    run timeout 30 "$@" </dev/null
    case $code:$err in
    0:*) [ "$(tail -n1 <<<"$out" | sed 's/^0: //; s/\r$//')" = ran ] && pass "$option acts $where" || fail "$option $where" "it did not run: $out" "$err" ;;
    *"--${name} is not supported yet"* | *"--$name without"* | *"--$name"*" is not supported yet"*) pass "$option says $where that it is not supported yet" ;;
    *"Unable to allocate resources"* | *"Invalid generic resource"*) pass "$option is refused by the controller: ${err##*: }" ;;
    *"Unable to create step"*) pass "$option is refused by the manager $where: ${err##*: }" ;;
    125:*spur-container:*) pass "$option runs in it $where: ${err##*: }" ;;
    124:*) fail "$option $where" "takes for ever: $err" ;;
    *) fail "$option $where" "$code: $err" ;;
    esac
}
printf '* echo ran\n' >prog
while read -r option; do
    case $option in '' | \#*) continue ;; --help | --usage | --version | --test-only | --deadline* | --dependency* | --output* | --error* | --exclude=* | --parsable) continue ;; esac
    words=(echo ran)
    [ "$option" != --multi-prog ] || words=(prog)
    case $option in # needs an allocation around it, or is of such
    --interactive | --jobid* | --het-group* | --pack-group*) ;;
    # shellcheck disable=SC2086
    *) try alone "$option" srun --immediate=20 $option "${words[@]}" ;;
    esac
    option=${option/@JOB@/$job}
    # shellcheck disable=SC2086
    try inside "$option" srun --jobid="$job" --overlap $option "${words[@]}"
done <"$HERE/srun-options"

scancel "$job"
wait_for 20 job_is "$job" CANCELLED
run timeout 60 srun bash -c '(sleep 1; touch child) & exit 0'
not_ok "what a task left behind goes with it" test -e child
run timeout 60 srun --wait-for-children bash -c '(sleep 1; touch child) >/dev/null 2>&1 & exit 0'
ok "--wait-for-children waits for it" test -e child
is "and exits as the task did" "$code" 0
run srun --accel-bind=n true
like "--accel-bind=n says what is missing" "$err" "not bound to network cards"
run srun --accel-bind=x true
is "--accel-bind with another letter" "$code" 255
done_testing
