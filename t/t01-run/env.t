#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# env.t - every variable that Slurm documents: in scripts, salloc, tasks, prologs and epilogs of all kinds
. "$(dirname "$0")/../lib.sh"
mkdir "$T/out" && chmod 777 "$T/out"
for what in prolog epilog task_prolog task_epilog srun_prolog srun_epilog controller_prolog controller_epilog; do
    printf '#!/bin/bash\nPATH=/usr/bin:/bin\n[ -e %s/$SLURM_JOB_ID.%s ] || env >%s/$SLURM_JOB_ID.%s\n' "$T/out" $what "$T/out" $what >"$T/$what"
    # the script is a task as well; what the table says is of srun's
    case $what in prolog | epilog) sed -i '3s/^/[ "$SLURMD_NODENAME" = n1 ] || exit 0; /' "$T/$what" ;; esac
    case $what in task_*) sed -i '3s/^/[ "$SLURM_STEP_ID" = 0 ] || exit 0; /' "$T/$what" ;; esac
    chmod 755 "$T/$what"
    echo "$what = \"$T/$what\"" >>"$T/hooks"
done
{ echo '[hooks]'; cat "$T/hooks"; printf '[scheduler]\nlicenses = ["lic:4"]\n'; } >"$T/conf.toml"
cluster_up --nodes 2 --cpus 4 --mem 4G --gpus gtx:4 --conf "$T/conf.toml"
cd "$(user_dir)"
cat >j.sh <<END
#!/bin/bash
env >$T/out/\$SLURM_JOB_ID.batch
srun -n1 bash -c 'env >$T/out/\$SLURM_JOB_ID.step'
END
declare -A batch salloc
# NAME OPTIONS: a script and an allocation of salloc with these
one() {
    local name=$1
    shift
    batch[$name]=$(timeout 60 sbatch -W --parsable -o j.out "$@" j.sh)
    case " $* " in *" --array"*) batch[$name]=$(basename -a -s .batch "$T"/out/*.batch | sort -n | tail -1) ;;
    *) salloc[$name]=$(timeout 60 salloc -Q "$@" bash -c "env >$T/out/\$SLURM_JOB_ID.salloc; echo \$SLURM_JOB_ID") ;; esac
}
one plain -N2 -n4 --ntasks-per-node=2 -c1 -J envjob --wckey=key --comment=hello --extra=more -L lic:1 --mem=64 -t 10
one plane -w n1 -N1 -n4 -m plane=2 -d "afterany:${batch[plain]}"
one gpu -w n1 -N1 --gpus-per-node=1 --cpus-per-gpu=2 --mem-per-gpu=10 --gpu-bind=none --gpu-freq=low --threads-per-core=1
one per -w n1 -n1 -G 2 --mem-per-cpu=16 --ntasks-per-core=1 --ntasks-per-socket=4 --mem-bind=prefer,map_mem:0 --cpu-freq=performance --oom-kill-step -O
one pergpu -w n1 -n1 -G 1 --ntasks-per-gpu=1
one array -w n1 --array=3 --export=ALL,X=1
ended() { [ "$(squeue -h | wc -l)" -eq 0 ] && [ -e "$T/out/${batch[plain]}.epilog" ]; }
wait_for 30 ended
wait_for 30 test -e "$T/out/${batch[gpu]}.epilog"

declare -A context=([prolog]=prolog_slurmd [epilog]=epilog_slurmd [task_prolog]=prolog_task [task_epilog]=epilog_task [srun_prolog]=prolog_srun [srun_epilog]=epilog_srun [controller_prolog]=prolog_slurmctld [controller_epilog]=epilog_slurmctld)
while IFS=$'\t' read -r name wheres job value; do
    case $name in \#*) continue ;; esac
    if [ "$job" = never ]; then
        where=$wheres files=()
        [ "$where" = - ] && where='*'
        # shellcheck disable=SC2206
        files=($T/out/*.$where)
        if grep -hq "^$name=" "${files[@]}"; then fail "$name is not set in $where: $value" "$(grep -H "^$name=" "${files[@]}" | head -3)"; else pass "$name is not set in $where: $value"; fi
        continue
    fi
    bad_here=
    for where in ${wheres//,/ }; do
        id=${batch[$job]}
        [ $where != salloc ] || id=${salloc[$job]:-}
        want=${value/@ID@/$id} want=${want/@UID@/$(id -u)} want=${want/@GID@/$(id -g)} want=${want/@ARRAY@/[0-9]+} want=${want/@CONTEXT@/${context[$where]:-}}
        got=$(grep "^$name=" "$T/out/$id.$where" 2>/dev/null) || got="not set"
        [[ ${got#*=} =~ ^($want)$ ]] || bad_here+="$where (job $id): $got, wanted $want; "
    done
    if [ -z "$bad_here" ]; then pass "$name in $wheres"; else fail "$name in $wheres" "$bad_here"; fi
done <"$HERE/job-env"
done_testing
