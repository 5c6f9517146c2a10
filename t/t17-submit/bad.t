#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sbatch refuses what Slurm's refuses, with its exit code and words.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 2 --cpus 4 --mem 4G
cd "$T"
printf '#!/bin/sh\r\ntrue\r\n' >dos.sh
printf 'echo\n' >noshebang.sh
: >empty.sh
printf '#!/bin/sh\n#SBATCH --bogus=1\n' >baddirective.sh
printf '#!/bin/sh\n#SBATCH -t zzz\n' >badtime.sh
mkdir dir
shebang='sbatch: error: This does not look like a batch script.  The first
sbatch: error: line must start with #! followed by the path to an interpreter.
sbatch: error: For instance: #!/bin/sh'
try='Try "sbatch --help" for more information'

check() { # EXIT STDERR COMMAND...
    local exit=$1 text=$2
    shift 2
    run "$@" </dev/null
    is "exit of: $*" "$code" "$exit"
    is "words of: $*" "$err" "$text"
}
check 255 "sbatch: unrecognized option '--bogus'
$try" sbatch --bogus --wrap true
check 255 "sbatch: invalid option -- '@'
$try" sbatch -@ --wrap true
check 255 "sbatch: invalid option -- '='
$try" sbatch -s=1 --wrap true
check 255 'sbatch: error: Invalid --time specification' sbatch -t abc --wrap true
check 255 'sbatch: error: Invalid --time specification' env SBATCH_TIMELIMIT=zzz sbatch --wrap true
check 255 'Invalid time specification (pos=0): yesterdayish
sbatch: error: Invalid --begin specification' sbatch --begin=yesterdayish --wrap true
check 1 'sbatch: error: Invalid numeric value "0" for --ntasks.' sbatch -n 0 --wrap true
check 1 'sbatch: error: Invalid numeric value "x" for --core-spec.' sbatch -S x --wrap true
check 1 'sbatch: fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.' sbatch --mem=10 --mem-per-cpu=10 --wrap true
check 1 'sbatch: fatal: Invalid node list specified' sbatch -w 'node[1-' --wrap true
check 255 'sbatch: error: Maximum node count 2 is less than minimum node count 4' sbatch -N 4-2 --wrap true
check 1 'sbatch: error: Could not open user environment file /nosuch' sbatch --export-file=/nosuch --wrap true
check 1 'sbatch: error: Script arguments not permitted with --wrap option' sbatch --wrap true script.sh
check 1 'sbatch: error: Unable to open file nosuch.sh' sbatch nosuch.sh
check 1 'sbatch: error: Batch script is empty!' sbatch empty.sh
check 1 'sbatch: error: Batch script is empty!' sbatch
check 1 "$shebang" sbatch noshebang.sh
check 1 "$shebang" sbatch /bin/true
check 1 "$shebang" sbatch dir
check 1 "$shebang" sbatch -p --wrap true
check 1 'sbatch: error: Batch script contains DOS line breaks (\r\n)
sbatch: error: instead of expected UNIX line breaks (\n).' sbatch dos.sh
check 255 "sbatch: unrecognized option '--bogus=1'
$try" sbatch baddirective.sh
check 255 'sbatch: error: Invalid --time specification' sbatch badtime.sh
check 1 'sbatch: error: --runtime is not supported yet: there is one container runtime, our own' sbatch --runtime=x --wrap true

refused() { # LAST-LINE COMMAND...
    local text=$1
    shift
    run "$@"
    is "exit of: $*" "$code" 1
    is "last words of: $*" "$(tail -n 1 <<<"$err")" "sbatch: error: Batch job submission failed: $text"
}
refused 'Invalid partition name specified' sbatch -p nosuch --wrap true
refused 'Invalid partition name specified' sbatch -p debug,nosuch --wrap true
refused 'Invalid job array specification' sbatch -a x --wrap true
refused 'Invalid job array specification' sbatch -a 5-1 --wrap true
refused 'Job dependency problem' sbatch -d afterok:99999999 --wrap true
refused 'Job dependency problem' sbatch -d foo:1 --wrap true
refused 'Invalid node name specified' sbatch -w nosuchnode --wrap true
refused 'Invalid feature specification' sbatch -C nosuchfeature --wrap true
is "nothing was submitted" "$(squeue -h -t all | wc -l)" 0

SPUR_CONTROLLER_ADDR=unix:$T/none.sock run sbatch --wrap true
like "no controller" "$err" 'Batch job submission failed: Unable to contact slurm controller'
is "no controller: exit" "$code" 1
done_testing
