# SPDX-License-Identifier: Apache-2.0
#
# bed.sh - what every test of t/hosts begins with: hosts on which Spur is installed
#
#   hosts_up c1 n1 login1   makes hosts: each has a name, an address, a boot id, processes, users and files of its own
#   on c1 COMMAND…          runs it there as root, with a login's environment
#   on alice@n1 COMMAND…    the same as an ordinary user (alice and bob are on every host)
#   cut n1   mend n1        takes its network away, and gives it back
#   reboot n1               its processes are gone, /run and /tmp are empty, the boot id is another; enabled units start
#   down                    ends the bed; happens by itself at the end of the test, also when it is killed
#   journal c1 spurctld     what the unit printed
#   put c1 FILE             standard input becomes FILE there
#   document FILE HEADING [N]  the commands of the N-th ```sh block under that heading
#   munge_up HOSTS…         one key on all of them, and munged
#   cluster_conf NODES…     standard output: a spur.conf for these nodes, made from etc/spur.conf.example
#   site_up 'c1' 'n1 n2' 'login1'  what the quick start does: a controller, nodes and login hosts, until all are idle
#
# Spur is in /usr/local of every host as `make install` puts it there, and runs by its unit files.
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
SOURCE=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
[ -d "$SPUR_BUILD" ] || SPUR_BUILD=$SOURCE/build
SPUR_BUILD=$(cd "$SPUR_BUILD" && pwd)
BED= HOSTS=() host_count=0
HOST_PATH=/run/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

bed_possible() {
    [ "$(id -u)" -eq 0 ] && unshare --net --mount --pid --uts --ipc --cgroup --fork true 2>/dev/null &&
        findmnt -t cgroup2 >/dev/null
}

in_bed() { nsenter -t "$keeper" -m -n -- "$@" {bed_pipe}>&-; }

bed_begin() {
    bed_possible || skip_all "this needs root and namespaces"
    BED=$T/bed/files
    bed_cgroup=$(findmnt -n -o TARGET -t cgroup2 | head -n 1)/spur-hosts-$$
    mkdir -p "$T/bed" "$bed_cgroup"
    exec {bed_pipe}> >(exec setsid "$SOURCE/t/hosts/guard" "$BED" "$bed_cgroup" $$ >"$T/guard.log" 2>&1)
    wait_for 10 test -s "$T/bed/keeper.pid" || { cat "$T/guard.log" >&2; echo "Bail out! no namespaces"; exit 1; }
    keeper=$(cat "$T/bed/keeper.pid")
    in_bed meson install -C "$SPUR_BUILD" --no-rebuild --quiet --destdir "$BED/install" >"$T/install.log" 2>&1 ||
        { cat "$T/install.log" >&2; echo "Bail out! the installation failed"; exit 1; }
    printf '127.0.0.1 localhost\n::1 localhost\n' | in_bed tee "$BED/hosts" >/dev/null
    in_bed bash -c "mkdir -m 700 '$BED'/home/{alice,bob} && chown 20101:20101 '$BED/home/alice' && chown 20102:20102 '$BED/home/bob'"
}

new_boot_id() { in_bed bash -c "cat /proc/sys/kernel/random/uuid >'$BED/$1/boot_id'"; }

# The files of a host, before it starts for the first time.
host_files() { # NAME ADDRESS
    in_bed bash -s "$BED" "$1" "$2" <<'MAKE'
bed=$1 own=$1/$2
mkdir -p "$own/_etc" "$own/_usr_local" "$own/_var"
cp -a "$bed/install/usr/local/." "$own/_usr_local/"
for file in passwd group shadow; do grep -vE '^(spur|alice|bob):' /etc/$file >"$own/_etc/$file"; done
chmod 640 "$own/_etc/shadow"
for user in alice:20101 bob:20102; do
    echo "${user%:*}:x:${user#*:}:${user#*:}::/home/${user%:*}:/bin/bash" >>"$own/_etc/passwd"
    echo "${user%:*}:x:${user#*:}:" >>"$own/_etc/group"
done
echo "$2" >"$own/_etc/hostname"
: >"$own/_etc/resolv.conf"
printf '%s\n' 'passwd: files' 'group: files' 'shadow: files' 'hosts: files' >"$own/_etc/nsswitch.conf"
ln -s "$bed/hosts" "$own/_etc/hosts.bed"
printf '%s %s\n' "$3" "$2" >>"$bed/hosts"
MAKE
}

host_boot() { # NAME ADDRESS
    new_boot_id "$1"
    in_bed bash -c "rm -f '$BED/$1/init.pid'; cp '$BED/hosts' '$BED/$1/_etc/hosts'"
    mkdir -p "$bed_cgroup/$1"
    setpriv --pdeathsig KILL bash -c 'echo $$ >"$1/cgroup.procs"; shift; exec nsenter "$@"' _ "$bed_cgroup/$1" -t "$keeper" -m -n -p -- \
        unshare --mount --net --pid --uts --ipc --cgroup --fork --kill-child bash -c '
            read -r pid _ </proc/self/stat; echo "$pid" >"$1/net.pid"; until ip link show e0 >/dev/null 2>&1; do sleep 0.02; done
            ip link set e0 address "$(printf "02:00:%02x:%02x:%02x:%02x" ${2//./ })" # the same after a reboot, as on a real host
            ip addr add "$2/24" dev e0; shift 2; exec "$@"' _ "$BED/$1" "$2" "$SOURCE/t/hosts/boot" "$BED" "$1" "$SOURCE" "$SPUR_BUILD" \
        >>"$T/$1.boot.log" 2>&1 </dev/null {bed_pipe}>&- &
    disown
    wait_for 10 in_bed test -s "$BED/$1/net.pid" || { cat "$T/$1.boot.log" >&2; return 1; }
    in_bed ip link del "v-$1" 2>/dev/null
    in_bed bash -c "ip link add 'v-$1' type veth peer name e0 netns \$(cat '$BED/$1/net.pid') && ip link set 'v-$1' master br0 up; rm '$BED/$1/net.pid'"
}

host_ready() { # NAME
    wait_for 20 in_bed test -s "$BED/$1/init.pid" || { cat "$T/$1.boot.log" >&2; echo "Bail out! host $1 did not start"; exit 1; }
    host_pid[$1]=$(in_bed cat "$BED/$1/init.pid")
    wait_for 10 on "$1" test -S /run/init.sock
}

declare -A host_pid host_addr
hosts_up() { # NAMES…
    local name
    [ -n "$BED" ] || bed_begin
    for name in "$@"; do
        host_count=$((host_count + 1))
        host_addr[$name]=10.77.0.$host_count
        host_files "$name" "${host_addr[$name]}"
    done
    for name in "$@"; do host_boot "$name" "${host_addr[$name]}"; done
    for name in "$@"; do host_ready "$name"; done
    HOSTS+=("$@")
    for name in "${HOSTS[@]}"; do in_bed bash -c "cp '$BED/hosts' '$BED/$name/hosts.new'"; on "$name" bash -c "cat >/etc/hosts" < <(in_bed cat "$BED/hosts"); done
}

on() { # [USER@]HOST COMMAND…
    local host=$1 user=root
    shift
    case $host in *@*) user=${host%%@*} host=${host#*@} ;; esac
    local home=/home/$user
    [ "$user" != root ] || home=/root
    bash -c 'echo $$ >"$1/cgroup.procs"; shift; exec nsenter "$@"' _ "$bed_cgroup/$host" -t "${host_pid[$host]}" -m -n -u -i -p -C -- \
        setpriv --reuid "$user" --regid "$(host_gid "$user")" --init-groups -- \
        env -i PATH="$HOST_PATH" HOME="$home" USER="$user" LOGNAME="$user" SHELL=/bin/bash LC_ALL=C TZ=UTC \
        bash -c 'cd; exec "$@"' _ "$@" {bed_pipe}>&-
}
host_gid() { case $1 in root) echo 0 ;; alice) echo 20101 ;; bob) echo 20102 ;; *) echo "$1" ;; esac; }

# cut of coreutils has options, and is meant then.
cut() { if [ -n "${host_pid[${1:--}]:-}" ]; then in_bed ip link set "v-$1" down; else command cut "$@"; fi; }
mend() { in_bed ip link set "v-$1" up; }

reboot() { # NAME
    kill -9 "${host_pid[$1]}"
    while kill -0 "${host_pid[$1]}" 2>/dev/null; do sleep 0.02; done
    host_boot "$1" "${host_addr[$1]}"
    host_ready "$1"
}

down() {
    [ -n "$BED" ] || return 0
    echo over >&"$bed_pipe"
    exec {bed_pipe}>&-
    wait_for 20 eval '[ ! -d "$T/bed" ]'
    BED= HOSTS=()
}
# The last lines of every unit, for who looks into a failure.
show_journals() {
    local host
    for host in "${HOSTS[@]}"; do
        on "$host" bash -c 'for log in /var/log/units/*.log; do [ ! -f "$log" ] || { echo "== $1 $log"; tail -n 12 "$log"; }; done' _ "$host"
    done >&2
}
hosts_finish() {
    local code=$?
    [ -z "$BED" ] || [ $bad -eq 0 ] || show_journals
    down
    (exit $code)
    finish
}
trap hosts_finish EXIT

journal() { on "$1" journalctl -u "$2"; }
put() { on "$1" bash -c 'umask "${2:-022}"; cat >"$1"' _ "$2" "${3:-022}"; }

document() { # FILE HEADING [BLOCK]
    awk -v heading="$2" -v block="${3:-1}" '/^#/ { inside = ($0 == heading) } inside && /^```sh/ { code = (++seen == block); next }
        /^```/ { code = 0 } inside && code' "$SOURCE/$1"
}

munge_up() {
    local host
    head -c 32 /dev/urandom | base64 | head -c 32 >"$T/munge.key"
    for host in "$@"; do
        on "$host" bash -c 'umask 077; mkdir -p /etc/munge /var/lib/munge /var/log/munge; cat >/etc/munge/munge.key; chown -R munge: /etc/munge /var/lib/munge /var/log/munge
            chmod 700 /etc/munge /var/lib/munge /var/log/munge; systemctl enable --now munge' <"$T/munge.key"
    done
}

# The example with this cluster's nodes instead of its own, as its reader would edit it.
cluster_conf() { # NODES [KEY=VALUE of [access]…]
    local nodes=$1 line
    shift
    awk -v nodes="$nodes" -v more="$(printf '%s\n' "$@")" '/^\[\[/ { exit } { print } /^\[access\]/ { print more }' "$SOURCE/etc/spur.conf.example"
    printf '[[nodes]]\nnames = "%s"\ncpus = 2\nmemory_mb = 1000\n[[partitions]]\nname = "main"\ndefault = true\nnodes = "ALL"\n' "$nodes"
}

join_host() { # HOST OPTIONS
    on c1 spur token --join --node "$1" | on "$1" bash -e -c 'install -d /etc/spur && install -m 600 /dev/stdin /etc/spur/join.token
        echo "SPURD_OPTIONS=\"$1\"" >/etc/default/spurd && systemctl enable --now spurd' _ "$2"
}

site_up() { # CONTROLLER NODES LOGINS [KEY=VALUE of [access]…]
    local controller=$1 nodes=$2 logins=$3 host
    shift 3
    hosts_up "$controller" $nodes $logins
    on "$controller" bash -e -c 'useradd --system spur && install -d /etc/spur'
    cluster_conf "${nodes// /,}" "login_nodes = [$(printf '"%s",' $logins)]" "$@" | put "$controller" /etc/spur/spur.conf
    on "$controller" systemctl enable --now spurctld || { echo "Bail out! the controller did not start"; exit 1; }
    for host in $nodes; do join_host "$host" "--controller https://$controller:6817"; done
    for host in $logins; do join_host "$host" "--login --controller https://$controller:6817"; done
    wait_for 20 nodes_are idle $nodes || { echo "Bail out! the nodes did not become idle"; exit 1; }
}

nodes_are() { # STATE NODES…
    local state=$1
    shift
    [ "$(on c1 sinfo -h -N -t "$state" -o %N | wc -l)" = $# ]
}
