#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every option of Slurm's sbatch is known here: it acts, or says that it is not supported yet.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 1 --cpus 4 --mem 4G
cd "$T"
echo n1 >hosts
while read -r option; do
    case $option in '' | \#*) continue ;; esac
    case $option in --help | --usage | --version | --parsable | --quiet | --verbose | --wait | --test-only | --wrap* | --export-file*) continue ;; esac
    # shellcheck disable=SC2086
    run sbatch --parsable -H $option --wrap true
    case $code:$err in
    0:*) pass "$option is accepted"; scancel "$out" ;;
    *"is not supported yet"*) pass "$option says that it is not supported yet" ;;
    *unrecognized* | *"invalid option"*) fail "$option" "$err" ;;
    *"submission failed"* | *"Invalid generic resource"*) pass "$option is refused by the controller: ${err##*: }" ;;
    *) fail "$option" "$code: $err" ;;
    esac
done <"$HERE/sbatch-options"
done_testing
