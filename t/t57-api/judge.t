#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Debian's real squeue, sinfo and scontrol (22.05) print our structs when our load functions are preloaded: their
# bytes are those of our own commands. They judge what we fill and what we print at once.
. "$(dirname "$0")/../lib.sh"
root=$SPUR_BUILD/compat-clients
real=$root/usr/lib/x86_64-linux-gnu/slurm-wlm
[ -e "$real/libslurmfull.so" ] || skip_all "Debian's commands are not here: tools/deps --compat"
cluster_up --nodes 2 --cpus 4 --mem 8G --gpus a100:2
cd "$T"
printf 'ClusterName=x\nSlurmctldHost=localhost\nAuthType=auth/none\nSlurmUser=root\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core_Memory\nPluginDir=%s\n' "$real" >slurm.conf
debian() { SLURM_CONF=$T/slurm.conf LD_LIBRARY_PATH=$real LD_PRELOAD=$SPUR_BUILD/src/compat/38/libspur_judge.so "$root/usr/bin/$1" "${@:2}" 2>&1; }

one=$(sbatch --parsable -J one -N 2 -t 10 -n 4 -c 1 --mem=100 --gres=gpu:1 --comment=hello -o /dev/null --wrap 'sleep 600')
two=$(sbatch --parsable -J two -H -t 1-0 --nice=7 -o out-%j -e err -w n1 --mail-type=END --dependency=singleton --wrap true)
three=$(sbatch --parsable -J three -a 3-9%2 -H -o /dev/null --wrap true)
wait_for 20 job_is "$one" RUNNING
scontrol update nodename=n2 state=drain reason='two words' >/dev/null
wait_for 20 eval 'sinfo -h -o %t | grep -q drng'

# Both run within the same second, or time passed between them: then once more.
same() { # name, command and arguments
    local name=$1 try
    shift
    for try in 1 2 3 4 5; do
        debian "$@" >theirs
        "$@" >ours 2>&1
        cmp -s theirs ours && break
    done
    is "$name" "$(diff theirs ours)" ""
}
# Jobs of one priority have no order in Slurm: one is asked for.
same "squeue" squeue -S i
same "squeue -o" squeue -S i -o '%i|%j|%u|%t|%T|%l|%D|%C|%R|%P|%m|%c|%b|%Q|%y|%k|%v|%E|%F|%K|%Z'
same "squeue -O" squeue -S i -O JobID,Name,UserName,StateCompact,TimeLimit,NumNodes,NumCPUs,Reason,Partition,MinMemory,Priority,Comment,Dependency,ArrayJobID,ArrayTaskID,WorkDir
same "squeue -r" squeue -S i -r -o '%i %t'
same "squeue of one job" squeue -j "$one" -h -o '%i %N'
same "sinfo" sinfo
same "sinfo -N" sinfo -N -o '%N %P %t %T %c %m %w %f %G %E'
same "sinfo -o" sinfo -o '%a %A %D %F %l %L %N %P %s %C %z'
same "sinfo -R" sinfo -R -o '%E %u %N'

# What one release prints and the other does not.
strip() { sed -E 's/ExclusiveUser=/Exclusive=/; s/ (ResumeAfterTime|SuspendTime)=[^ ]*//g; /^ *(CapWatts|ExtSensors|SubmitLine|StdErr|TresPerTask|Power=|ReqTRES|AllocTRES|TRES=)/d; s/ (LicensesAlloc|Exclusive|OverSubscribe)=[^ ]*//g; s/OverSubscribe=[A-Z]+ //; s/ MaxCPUsPerSocket=[A-Z0-9]+//; /^ *$/d; s/ +$//' "$1" | grep -vE 'LastBusyTime|FreeMem|CPULoad|RunTime=|LastSchedEval'; }
compare() { # name, command
    local name=$1
    shift
    debian "$@" >theirs
    "$@" >ours 2>&1
    is "$name" "$(diff <(strip theirs) <(strip ours))" ""
}
compare "scontrol show partition" scontrol show partition
compare "scontrol show node" scontrol show node
compare "scontrol show job of one that runs" scontrol show job "$one"
compare "scontrol show job of one that is held" scontrol show job "$two"
done_testing
