#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Four kinds of GPU nodes as recorded: the best connected set that breaks least, seen in scontrol show job -d.
. "$(dirname "$0")/../lib.sh"
# node type links… : 0 nothing, 1 host, 2 NUMA node, 3 switch, 4 the best; "/" and the first CPU of its 4
kinds='m1 mi300x 04444444/0 40444444/0 44044444/0 44404444/0 44440444/16 44444044/16 44444404/16 44444440/16
h1 h100 04444444/0 40444444/0 44044444/0 44404444/0 44440444/16 44444044/16 44444404/16 44444440/16
c1 mi250x 04311131/0 40131113/0 31043111/8 13401311/8 11310431/16 11134013/16 31113104/24 13111340/24
x1 a100 043311/0 403311/0 330411/0 334011/0 111102/16 111120/16'
{
    printf 'cluster_name = "kinds"\n[scheduler]\nconfig_overrides = true\n[[partitions]]\nname = "debug"\nnodes = "ALL"\ndefault = true\n'
    while read -r node type links; do
        device=0
        for link in $links; do
            first=${link#*/}
            case $type in mi250x) last=$((first + 7)) ;; *) last=$((first + 15)) ;; esac
            printf '[[gres]]\nnodes = "%s"\nname = "gpu"\ntype = "%s"\nfiles = "/dev/fake%s%d"\ncores = "%d-%d"\nlinks = "%s"\n' \
                "$node" "$type" "$node" $device "$first" "$last" "$(sed 's,/.*,,; s,.,&\,,g; s,\,$,,; s,0,-1,' <<<"$link")"
            device=$((device + 1))
        done
        printf '[[nodes]]\nnames = "%s"\ncpus = 32\nsockets = 2\ncores_per_socket = 16\nmemory_mb = 8000\ngres = ["gpu:%s:%d"]\n' "$node" "$type" $device
    done <<<"$kinds"
} >"$T/spur.conf"
cluster_up --conf "$T/spur.conf"
cd "$T" || exit 1
given() { wait_for 20 job_is "$1" RUNNING && scontrol -d show job "$1" | grep -o 'CPU_IDs=[^ ]* \|GRES=[^ ]*(IDX[^ ]*' | tr -d '\n'; }

for kind in 'm1 mi300x' 'h1 h100'; do # all linked alike: those near one socket, and the broken socket first
    read -r node type <<<"$kind"
    four=$(sub -w "$node" --gres=gpu:4 -c 4)
    is "$type: four of one socket, CPUs near them" "$(given "$four")" "CPU_IDs=0-3 GRES=gpu:$type:4(IDX:0-3)"
    one=$(sub -w "$node" --gres=gpu:1)
    is "$type: one of the other" "$(given "$one")" "CPU_IDs=16 GRES=gpu:$type:1(IDX:4)"
    drop "$four"
    two=$(sub -w "$node" --gres=gpu:2)
    is "$type: two beside it, the whole four stay" "$(given "$two")" "CPU_IDs=17 GRES=gpu:$type:2(IDX:5-6)"
    again=$(sub -w "$node" --gres=gpu:4)
    is "$type: which are had again" "$(given "$again")" "CPU_IDs=0 GRES=gpu:$type:4(IDX:0-3)"
    drop "$one" "$two" "$again"
done
one=$(sub -w c1 --gres=gpu:1)
is "mi250x: one half of a card" "$(given "$one")" 'CPU_IDs=0 GRES=gpu:mi250x:1(IDX:0)'
pair=$(sub -w c1 --gres=gpu:2)
like "mi250x: two are one card, not two halves" "$(given "$pair")" 'GRES=gpu:mi250x:2\(IDX:(2-3|4-5|6-7)\)$'
last=$(sub -w c1 --gres=gpu:1)
is "mi250x: the other half of the broken card" "$(given "$last")" 'CPU_IDs=1 GRES=gpu:mi250x:1(IDX:1)'
four=$(sub -w c1 --gres=gpu:4)
like "mi250x: four are two whole cards" "$(given "$four")" 'GRES=gpu:mi250x:4\(IDX:(2-5|4-7|2-3,6-7)\)$'
drop "$one" "$pair" "$last" "$four"
two=$(sub -w x1 --gres=gpu:2)
is "mixed: a bridged pair" "$(given "$two")" 'CPU_IDs=0 GRES=gpu:a100:2(IDX:0-1)'
also=$(sub -w x1 --gres=gpu:2)
is "mixed: the other one" "$(given "$also")" 'CPU_IDs=1 GRES=gpu:a100:2(IDX:2-3)'
rest=$(sub -w x1 --gres=gpu:2)
is "mixed: then what is left, near its cores" "$(given "$rest")" 'CPU_IDs=16 GRES=gpu:a100:2(IDX:4-5)'
drop "$two" "$also" "$rest"
one=$(sub -w x1 --gres=gpu:1)
is "mixed: a single one breaks no pair" "$(given "$one")" 'CPU_IDs=16 GRES=gpu:a100:1(IDX:4)'
drop "$one"

# CPUs only near its GPUs, or any
busy=$(sub -w m1 -n 15 --gres=gpu:4)
given "$busy" >/dev/null
near=$(sub -w m1 -n 8 --gres=gpu:4 --gres-flags=enforce-binding)
is "enforce-binding: near its GPUs" "$(given "$near")" "CPU_IDs=16-23 GRES=gpu:mi300x:4(IDX:4-7)"
drop "$near"
wide=$(sub -w m1 -n 17 --gres=gpu:4 --gres-flags=disable-binding)
is "disable-binding: others too" "$(given "$wide")" "CPU_IDs=15-31 GRES=gpu:mi300x:4(IDX:4-7)"
drop "$busy" "$wide"

nine=$(sub -w c1 -c 9 --gres=gpu:2 --gres-flags=enforce-binding)
like "enforce-binding: of two cards, where one has too few CPUs" "$(given "$nine")" 'GRES=gpu:mi250x:2\(IDX:([01],[23]|[01],[67]|[23],[45]|[45],[67]|[01],[45]|[23],[67])\)$'
drop "$nine"
busy=$(sub -w c1 -n 20)
wait_for 20 job_is "$busy" RUNNING
near=$(sub -w c1 -c 8 --gres=gpu:2 --gres-flags=enforce-binding)
is "enforce-binding: a card whose CPUs are free" "$(given "$near")" "CPU_IDs=24-31 GRES=gpu:mi250x:2(IDX:6-7)"
drop "$busy" "$near"

refused() { local name=$1 text=$2; shift 2; run "$@"; like "$name" "$code $err" "^1 .*$text"; }
# so many of each socket, CPUs of both
for kind in 'm1 mi300x' 'h1 h100'; do
    read -r node type <<<"$kind"
    four=$(sub -w "$node" --gpus-per-socket=2 --sockets-per-node=2 -n 4)
    is "$type: two of each socket" "$(given "$four")" "CPU_IDs=0-1,16-17 GRES=gpu:$type:4(IDX:0-1,4-5)"
    like "$type: as asked for" "$(scontrol show job "$four")" 'ReqTRES=cpu=4,node=1,billing=4,gres/gpu=4'
    one=$(sub -w "$node" --gpus-per-socket=2 --sockets-per-node=1)
    like "$type: two of one socket" "$(given "$one")" "GRES=gpu:$type:2\(IDX:(2-3|6-7)\)\$"
    both=$(sub -w "$node" --gpus-per-socket=1 --sockets-per-node=2)
    ok "$type: two are free, but not one of each" waits "$both" Resources
    like "$type: and it says what it needs" "$(spur explain "$both")" 'needs [0-9]+ CPUs?, 1 gpu on each socket on 1 node;'
    drop "$one"
    like "$type: then they are" "$(given "$both")" "GRES=gpu:$type:2\(IDX:(2,6|2,7|3,6|3,7)\)\$"
    drop "$four" "$both"
done
two=$(sub -w c1 --gpus-per-socket=1 --sockets-per-node=2)
like "mi250x: neighbours of two sockets" "$(given "$two")" 'GRES=gpu:mi250x:2\(IDX:(2,4|3,5|0,6|1,7)\)$'
drop "$two"
two=$(sub -w x1 --gpus-per-socket=1 --gpus-per-node=2)
like "mixed: sockets are worked out" "$(given "$two")" 'GRES=gpu:a100:2\(IDX:[0-3],[45]\)$'
drop "$two"
refused "no socket has so many" 'so many devices on each of so many sockets' \
    sbatch --gpus-per-socket=5 --sockets-per-node=1 --wrap true
refused "more than all nodes have" '99 gpu are needed, and its nodes have 30 together' \
    sbatch --gpus=99 --wrap true
refused "sockets must be known" '--gpus-per-socket needs --sockets-per-node' \
    sbatch --gpus-per-socket=3 --wrap true
refused "enforce-binding: two have sixteen near them" 'with CPUs near their devices|CPUs near so many devices' \
    sbatch -w c1 -c 17 --gres=gpu:2 --gres-flags=enforce-binding --wrap true
refused "enforce-binding: never near enough" 'with CPUs near their devices' \
    sbatch -N 1-1 -n 17 --gres=gpu:1 --gres-flags=enforce-binding --wrap true
refused "nor for one task" 'at most 16 CPUs near so many devices, and 17 are needed' \
    sbatch -p debug -c 17 --gres=gpu:1 --gres-flags=enforce-binding --wrap true
done_testing
