#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# seconds: 180
#
# existing.t - two controllers on an etcd that the site runs: one leads, the other takes over, nothing is lost
. "$(dirname "$0")/../lib.sh"
command -v etcd >/dev/null || { echo "1..0 # skip etcd is not installed"; exit 0; }

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
started=()
end_all() {
    local code=$?
    for signal in TERM KILL; do
        kill -$signal "${started[@]}" 2>/dev/null && sleep 0.5
    done
    (exit $code)
    finish
}
trap end_all EXIT
begin() { # NAME COMMAND…
    local name=$1
    shift
    setsid "$@" >>"$T/$name.log" 2>&1 </dev/null &
    started+=($!)
    pid[$name]=$!
}
declare -A pid port
for name in client peer a b n1; do port[$name]=$(free_port); done
begin etcd etcd --name site --data-dir "$T/etcd" --listen-client-urls "http://127.0.0.1:${port[client]}" \
    --advertise-client-urls "http://127.0.0.1:${port[client]}" --listen-peer-urls "http://127.0.0.1:${port[peer]}" \
    --initial-advertise-peer-urls "http://127.0.0.1:${port[peer]}" --initial-cluster "site=http://127.0.0.1:${port[peer]}"
cat >"$T/spur.conf" <<END
cluster_name = "site"
[controller]
etcd = ["127.0.0.1:${port[client]}"]
[scheduler]
config_overrides = true
[access]
disable_root_jobs = false
[[nodes]]
names = "n1"
cpus = 4
memory_mb = 1000
[[partitions]]
name = "all"
nodes = "ALL"
default = true
END
run spur config check "$T/spur.conf"
is "the configuration is good" "$code" 0
like "an agent says what it finds" "$(spurd -C -N n1)" '^NodeName=n1 CPUs=[0-9]+ .*RealMemory=[0-9]+'
controller() { # NAME
    begin "$1" spurctld -D -f "$T/spur.conf" --name "$1" --listen "127.0.0.1:${port[$1]}" --state-dir "$T/$1" --socket "$T/$1.sock" --advertise "unix:$T/$1.sock"
}
controller a
ok "the first is there" wait_for 30 test -e "$T/a/keys/join.token"
mkdir -p "$T/b"
cp -a "$T/a/keys" "$T/b/keys"
controller b
export SPUR_CONF=$T/spur.conf SPUR_CONTROLLER_ADDR="unix:$T/a.sock,unix:$T/b.sock"
ok "one of them leads" wait_for 30 scontrol ping
begin n1 spurd -D -N n1 --controller "$SPUR_CONTROLLER_ADDR" --port "${port[n1]}" --addr 127.0.0.1 --spool-dir "$T/n1" --token-file "$T/a/keys/join.token"
ok "the node comes" wait_for 30 sh -c '[ "$(sinfo -h -t idle -o %D)" = 1 ]'
first=$(sbatch --parsable -o /dev/null --wrap 'sleep 300')
ok "a job runs" wait_for 20 job_is "$first" RUNNING
second=$(sbatch --parsable -H --wrap true)
leader=$(spur controller list | awk '$2 == "leader" { print $1 }')
like "the list says who leads" "$leader" '^[ab]$'
kill -9 "${pid[$leader]}"
ok "the other takes over" wait_for 60 sh -c "spur controller list | grep -v '^$leader ' | grep -q ' leader '"
is "both jobs are there" "$(squeue -h -o %i | sort -n | tr '\n' ' ')" "$first $second "
ok "and the first still runs" wait_for 20 job_is "$first" RUNNING
third=$(sbatch --parsable -o /dev/null --wrap true)
is "ids go on" "$third" $((second + 1))
ok "and new ones run" wait_for 30 job_is "$third" COMPLETED
run spur controller add c 127.0.0.1:1
is "who comes and goes is the site's matter" "$code" 1
scancel "$first" "$second"
done_testing
