# SPDX-License-Identifier: Apache-2.0
#
# lib.sh - what every test of t/ begins with: . "$(dirname "$0")/../lib.sh"
#
# TAP:      ok NAME COMMAND…   is NAME GOT WANTED   like NAME GOT REGEX   pass/fail NAME   skip_all WHY   done_testing
# Cluster:  cluster_up [options of spur up]  starts a private one under $T and sources its env; it ends with the test.
#           SPUR_T_CONTROLLERS=3 gives every test that does not say how many three of them.
#           SPUR_T_DATABASE=postgresql gives each its history in a private server of PostgreSQL ($T/pg) instead of a file.
#           SPUR_T_REST= before it starts spurrestd too; its address is $SPUR_REST_ADDR.
#           controller_again  kills its controller and starts it on what it wrote.
# Commands: run COMMAND… sets $out, $err, $code.   wait_for SECONDS COMMAND… polls until it succeeds.
# Users:    as_user COMMAND… runs as an ordinary user (uid 20001, no account needed) when the test is root.
set -u
export LC_ALL=C TZ=UTC
SPUR_BUILD=${SPUR_BUILD:-$(cd "$(dirname "$0")/../.." && pwd)/build}
HERE=$(cd "$(dirname "$0")" && pwd)
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
T=$(mktemp -d "${TMPDIR:-/tmp}/spur-t.XXXXXX")
chmod 755 "$T"
export PATH="$SPUR_BUILD/bin:$PATH"
n=0 bad=0 clusters=()
for name in $(compgen -e | grep -E '^(SLURM|SBATCH|SALLOC|SQUEUE|SINFO|SCANCEL|SACCT|SPUR_CON|SPUR_ACC|SPUR_DATABASE)'); do unset "$name"; done

finish() {
    local code=$?
    trap - EXIT
    for dir in "${clusters[@]}"; do spur down --dir "$dir" >/dev/null 2>&1; done
    [ ! -d "$T/pg" ] || "$ROOT/tools/postgresql" stop "$T/pg" >/dev/null 2>&1
    if [ $bad -gt 0 ] && [ -n "${KEEP:-}" ]; then echo "# kept $T" >&2; else rm -rf "$T"; fi
    exit $code
}
trap finish EXIT
trap 'exit 130' INT TERM

pass() { n=$((n + 1)); echo "ok $n - $1"; }
fail() { n=$((n + 1)); bad=$((bad + 1)); echo "not ok $n - $1"; shift; [ $# -eq 0 ] || printf '%s\n' "$@" | sed 's/^/# /'; return 0; }
ok() { local name=$1; shift; if "$@" >/dev/null 2>&1; then pass "$name"; else fail "$name" "command failed: $*"; fi; }
not_ok() { local name=$1; shift; if "$@" >/dev/null 2>&1; then fail "$name" "command succeeded: $*"; else pass "$name"; fi; }
# shows NAME WANTED COMMAND...: the command succeeds and prints exactly this; nothing is '', which a command that failed prints too.
shows() {
    local name=$1 wanted=$2 got status=0
    shift 2
    got=$("$@" 2>"$T/.shows") || status=$?
    if [ $status -ne 0 ]; then fail "$name" "exit $status: $*" "$(cat "$T/.shows")"; else is "$name" "$got" "$wanted"; fi
}
# refused NAME PATTERN COMMAND...: the command fails by itself (no signal, no time-out, and it exists) and says why on stderr.
refused() {
    local name=$1 wanted=$2 status=0
    shift 2
    "$@" >/dev/null 2>"$T/.refused" || status=$?
    if [ $status -eq 0 ] || [ $status -ge 124 ]; then fail "$name" "exit $status: $*"; else like "$name" "$(cat "$T/.refused")" "$wanted"; fi
}
is() { if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "got:    $2" "wanted: $3"; fi; }
like() { if [[ $2 =~ $3 ]]; then pass "$1"; else fail "$1" "got:    $2" "wanted: /$3/"; fi; }
unlike() { if [[ $2 =~ $3 ]]; then fail "$1" "got:       $2" "unwanted: /$3/"; else pass "$1"; fi; }
skip_all() { echo "1..1"; echo "ok 1 - # skip $1"; exit 0; }
done_testing() { echo "1..$n"; [ $bad -eq 0 ]; exit $?; }

run() { out=$("$@" 2>"$T/.err"); code=$?; err=$(cat "$T/.err"); return 0; }
wait_for() {
    local until=$((SECONDS + $1))
    shift
    while ! "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $until ] || return 1
        sleep 0.05
    done
}

# A database of its own for the next cluster.
with_database() {
    [ -d "$T/pg" ] || "$ROOT/tools/postgresql" start "$T/pg" ${SPUR_T_DURABLE:+--durable} >/dev/null || { echo "Bail out! no PostgreSQL"; exit 1; }
    SPUR_DATABASE_URL=$("$ROOT/tools/postgresql" database "$T/pg" "spur${#clusters[@]}")
    export SPUR_DATABASE_URL
}

cluster_up() {
    local dir=$T/c${#clusters[@]}
    [ "${SPUR_T_DATABASE:-}" != postgresql ] || with_database
    clusters+=("$dir")
    case "${SPUR_T_CONTROLLERS:-} $*" in
    ' '* | *' --controllers '* | *' --conf '*) ;;
    *) set -- --controllers "$SPUR_T_CONTROLLERS" "$@" ;;
    esac
    spur up --dir "$dir" ${SPUR_T_REST---no-rest} "$@" >"$T/up.log" 2>&1 || { cat "$T/up.log" >&2; echo "Bail out! spur up failed"; exit 1; }
    . "$dir/env"
    D=$dir
}

# A cluster of the nodes that standard input describes, all in the partition debug.
cluster_of() { # name
    { printf 'cluster_name = "%s"\n[scheduler]\nconfig_overrides = true\n' "$1"
      cat
      printf '[[partitions]]\nname = "debug"\nnodes = "ALL"\ndefault = true\n'
    } >"$T/spur.conf"
    cluster_up --conf "$T/spur.conf"
    chmod 777 "$T"
    cd "$T" || exit 1
}

# The files under /sys and /proc of a recorded machine, in $tree, where agents find them.
recorded_tree() { # name
    tree=$T/tree
    awk -v root="$tree" '/^== / { if (file) close(file); file = root $2; dir = file; sub("/[^/]*$", "", dir); system("mkdir -p \"" dir "\""); next }
        file { print >file }' "$HERE/../../src/spurd/test/trees/$1.tree"
    chmod -R a+rX "$tree"
    export SPUR_SYSROOT=$tree
}

# Kills the controller and starts it again on what it wrote.
controller_again() {
    local pid
    pid=$(cut -d' ' -f1 "$D/run/ctl1.pid")
    kill -9 "$pid"
    while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done
    (cd / && spur up --quiet ${SPUR_T_REST---no-rest} --dir "$D" >>"$T/up.log" 2>&1) || { cat "$T/up.log" >&2; return 1; }
}

TEST_UID=20001
as_user() { if [ "$(id -u)" -eq 0 ]; then setpriv --reuid $TEST_UID --regid $TEST_UID --clear-groups -- "$@"; else "$@"; fi; }
user_dir() { mkdir -p "$T/home"; [ "$(id -u)" -ne 0 ] || chown $TEST_UID:$TEST_UID "$T/home"; echo "$T/home"; }

job_state() { squeue -h -t all -j "$1" -o %T 2>/dev/null; }
job_is() { [ "$(job_state "$1")" = "$2" ]; }
submit() { sbatch --parsable "$@"; }
# Jobs that only sleep, for tests of who gets what: start one, where it runs, end them, what one waits for.
sub() { sbatch --parsable -o /dev/null "$@" --wrap 'sleep 300'; }
runs() { wait_for 20 job_is "$1" RUNNING && squeue -h -j "$1" -o %N; }
drop() { scancel "$@" && wait_for 20 eval '[ -z "$(squeue -h -j '"$(tr ' ' , <<<"$*")"')" ]'; }
waits() { wait_for 20 eval '[ "$(squeue -h -j '"$1"' -o %r)" = '"$2"' ]'; }
