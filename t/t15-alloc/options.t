#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# seconds: 180
# Every option of Slurm's salloc is known: it acts, is refused by the controller, or says that it is not supported yet.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 1 --cpus 4 --mem 4G --gpus gtx:2
cd "$(user_dir)"
printf '\377\377\0\0\0\0\0\022MIT-MAGIC-COOKIE-1\0\0200123456789abcdef' >cookies # for every display
export DISPLAY=:0 XAUTHORITY=$PWD/cookies
echo n1 >hosts
while read -r option; do
    case $option in '' | \#*) continue ;; --help | --usage | --version | --deadline* | --dependency* | --exclude=* | --no-shell) continue ;; esac
    name=${option#--} name=${name%%[= ]*}
    # shellcheck disable=SC2086
    run timeout 30 salloc --immediate=20 $option echo ran </dev/null
    case $code:$err in
    0:*) [ "$(tr -d '\a' <<<"$out")" = ran ] && pass "$option acts" || fail "$option" "it did not run: $out" "$err" ;;
    *"--$name"*"is not supported yet"*) pass "$option says that it is not supported yet" ;;
    *"submit/allocate failed"* | *"Invalid generic resource"* | *"Unable to allocate resources"*) pass "$option is refused by the controller: ${err##*: }" ;;
    124:*) fail "$option" "takes for ever: $err" ;;
    *) fail "$option" "$code: $err" ;;
    esac
done <"$HERE/salloc-options"
done_testing
