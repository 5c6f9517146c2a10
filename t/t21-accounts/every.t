#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every limit of accounts and QOS on every kind of resource: the reason it gives, at once, and the sentence.
# seconds: 300
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 1 --cpus 4000 --mem 900G --gpus h100:1000
cd "$(user_dir)" || exit 1
[ "$(id -u)" -eq 0 ] || TEST_UID=$(id -un)

# Every job has 2 CPUs, 100 MB, 1 node, 1 GPU, 1 licence, and 10 minutes. A limit that is shared is
# one that a first job has used up (2); one of a job by itself keeps the first waiting already (1).
# who  key  value  jobs  reason
rows=$(grep -v '^#' <<'ROWS'
qos grp_jobs 1 2 QOSGrpJobsLimit
qos max_jobs_per_user 1 2 QOSMaxJobsPerUserLimit
qos max_jobs_per_account 1 2 MaxJobsPerAccount
qos grp_wall 0 1 QOSGrpWallLimit
qos max_wall 5 1 QOSMaxWallDurationPerJobLimit
qos grp_tres cpu=3 2 QOSGrpCpuLimit
qos grp_tres mem=150 2 QOSGrpMemLimit
qos grp_tres node=1 2 QOSGrpNodeLimit
qos grp_tres gres/gpu=1 2 QOSGrpGRES
qos grp_tres license/app=1 2 QOSGrpLicense
qos grp_tres billing=3 2 QOSGrpBilling
qos grp_tres_mins cpu=0 1 QOSGrpCPUMinutesLimit
qos grp_tres_mins mem=0 1 QOSGrpMemoryMinutes
qos grp_tres_mins node=0 1 QOSGrpNodeMinutes
qos grp_tres_mins gres/gpu=0 1 QOSGrpGRESMinutes
qos grp_tres_mins license/app=0 1 QOSGrpLicenseMinutes
qos grp_tres_mins billing=0 1 QOSGrpBillingMinutes
qos grp_tres_run_mins cpu=30 2 QOSGrpCPURunMinutesLimit
qos grp_tres_run_mins mem=1500 2 QOSGrpMemoryRunMinutes
qos grp_tres_run_mins node=15 2 QOSGrpNodeRunMinutes
qos grp_tres_run_mins gres/gpu=15 2 QOSGrpGRESRunMinutes
qos grp_tres_run_mins license/app=15 2 QOSGrpLicenseRunMinutes
qos grp_tres_run_mins billing=30 2 QOSGrpBillingRunMinutes
qos max_tres_per_job cpu=1 1 QOSMaxCpuPerJobLimit
qos max_tres_per_job mem=50 1 QOSMaxMemoryPerJob
qos max_tres_per_job node=0 1 QOSMaxNodePerJobLimit
qos max_tres_per_job gres/gpu=0 1 QOSMaxGRESPerJob
qos max_tres_per_job license/app=0 1 QOSMaxLicensePerJob
qos max_tres_per_job billing=1 1 QOSMaxBillingPerJob
qos max_tres_per_node cpu=1 1 QOSMaxCpuPerNode
qos max_tres_per_node mem=50 1 QOSMaxMemoryPerNode
qos max_tres_per_node gres/gpu=0 1 QOSMaxGRESPerNode
qos max_tres_per_node billing=1 1 QOSMaxBillingPerNode
qos max_tres_mins_per_job cpu=15 1 QOSMaxCpuMinutesPerJobLimit
qos max_tres_mins_per_job mem=500 1 QOSMaxMemoryMinutesPerJob
qos max_tres_mins_per_job node=5 1 QOSMaxNodeMinutesPerJob
qos max_tres_mins_per_job gres/gpu=5 1 QOSMaxGRESMinutesPerJob
qos max_tres_mins_per_job license/app=5 1 QOSMaxLicenseMinutesPerJob
qos max_tres_mins_per_job billing=15 1 QOSMaxBillingMinutesPerJob
qos max_tres_per_user cpu=3 2 QOSMaxCpuPerUserLimit
qos max_tres_per_user mem=150 2 QOSMaxMemoryPerUser
qos max_tres_per_user node=1 2 QOSMaxNodePerUserLimit
qos max_tres_per_user gres/gpu=1 2 QOSMaxGRESPerUser
qos max_tres_per_user license/app=1 2 QOSMaxLicensePerUser
qos max_tres_per_user billing=3 2 QOSMaxBillingPerUser
qos max_tres_per_account cpu=3 2 MaxCpuPerAccount
qos max_tres_per_account mem=150 2 MaxMemoryPerAccount
qos max_tres_per_account node=1 2 MaxNodePerAccount
qos max_tres_per_account gres/gpu=1 2 MaxGRESPerAccount
qos max_tres_per_account license/app=1 2 MaxLicensePerAccount
qos max_tres_per_account billing=3 2 MaxBillingPerAccount
qos max_tres_run_mins_per_user cpu=30 2 MaxCpuRunMinsPerUser
qos max_tres_run_mins_per_user mem=1500 2 MaxMemoryRunMinsPerUser
qos max_tres_run_mins_per_user node=15 2 MaxNodeRunMinsPerUser
qos max_tres_run_mins_per_user gres/gpu=15 2 MaxGRESRunMinsPerUser
qos max_tres_run_mins_per_user license/app=15 2 MaxLicenseRunMinsPerUser
qos max_tres_run_mins_per_user billing=30 2 MaxBillingRunMinsPerUser
qos max_tres_run_mins_per_account cpu=30 2 MaxCpuRunMinsPerAccount
qos max_tres_run_mins_per_account mem=1500 2 MaxMemoryRunMinsPerAccount
qos max_tres_run_mins_per_account node=15 2 MaxNodeRunMinsPerAccount
qos max_tres_run_mins_per_account gres/gpu=15 2 MaxGRESRunMinsPerAccount
qos max_tres_run_mins_per_account license/app=15 2 MaxLicenseRunMinsPerAccount
qos max_tres_run_mins_per_account billing=30 2 MaxBillingRunMinsPerAccount
qos min_tres_per_job cpu=3 1 QOSMinCpuNotSatisfied
qos min_tres_per_job mem=200 1 QOSMinMemory
qos min_tres_per_job node=2 1 QOSMinNode
qos min_tres_per_job gres/gpu=2 1 QOSMinGRES
qos min_tres_per_job license/app=2 1 QOSMinLicense
qos min_tres_per_job billing=3 1 QOSMinBilling
account grp_jobs 1 2 AssocGrpJobsLimit
account max_jobs 1 2 AssocMaxJobsLimit
account grp_wall 0 1 AssocGrpWallLimit
account max_wall 5 1 AssocMaxWallDurationPerJobLimit
account grp_tres cpu=3 2 AssocGrpCpuLimit
account grp_tres mem=150 2 AssocGrpMemLimit
account grp_tres node=1 2 AssocGrpNodeLimit
account grp_tres gres/gpu=1 2 AssocGrpGRES
account grp_tres license/app=1 2 AssocGrpLicense
account grp_tres billing=3 2 AssocGrpBilling
account grp_tres_mins cpu=0 1 AssocGrpCPUMinutesLimit
account grp_tres_mins mem=0 1 AssocGrpMemMinutes
account grp_tres_mins node=0 1 AssocGrpNodeMinutes
account grp_tres_mins gres/gpu=0 1 AssocGrpGRESMinutes
account grp_tres_mins license/app=0 1 AssocGrpLicenseMinutes
account grp_tres_mins billing=0 1 AssocGrpBillingMinutes
account grp_tres_run_mins cpu=30 2 AssocGrpCPURunMinutesLimit
account grp_tres_run_mins mem=1500 2 AssocGrpMemRunMinutes
account grp_tres_run_mins node=15 2 AssocGrpNodeRunMinutes
account grp_tres_run_mins gres/gpu=15 2 AssocGrpGRESRunMinutes
account grp_tres_run_mins license/app=15 2 AssocGrpLicenseRunMinutes
account grp_tres_run_mins billing=30 2 AssocGrpBillingRunMinutes
account max_tres_per_job cpu=1 1 AssocMaxCpuPerJobLimit
account max_tres_per_job mem=50 1 AssocMaxMemPerJob
account max_tres_per_job node=0 1 AssocMaxNodePerJobLimit
account max_tres_per_job gres/gpu=0 1 AssocMaxGRESPerJob
account max_tres_per_job license/app=0 1 AssocMaxLicensePerJob
account max_tres_per_job billing=1 1 AssocMaxBillingPerJob
account max_tres_per_node cpu=1 1 AssocMaxCpuPerNode
account max_tres_per_node mem=50 1 AssocMaxMemPerNode
account max_tres_per_node gres/gpu=0 1 AssocMaxGRESPerNode
account max_tres_per_node billing=1 1 AssocMaxBillingPerNode
account max_tres_mins_per_job cpu=15 1 AssocMaxCpuMinutesPerJobLimit
account max_tres_mins_per_job mem=500 1 AssocMaxMemMinutesPerJob
account max_tres_mins_per_job node=5 1 AssocMaxNodeMinutesPerJob
account max_tres_mins_per_job gres/gpu=5 1 AssocMaxGRESMinutesPerJob
account max_tres_mins_per_job license/app=5 1 AssocMaxLicenseMinutesPerJob
account max_tres_mins_per_job billing=15 1 AssocMaxBillingMinutesPerJob
# refused at submission: how many may be queued
qos grp_submit_jobs 1 - QOSGrpSubmitJobsLimit
qos max_submit_jobs_per_user 1 - QOSMaxSubmitJobPerUserLimit
qos max_submit_jobs_per_account 1 - MaxSubmitJobsPerAccount
account grp_submit_jobs 1 - AssocGrpSubmitJobsLimit
account max_submit_jobs 1 - AssocMaxSubmitJobLimit
ROWS
)
# Each limit that sacctmgr can set has a row: here, or (those on ageing) in accrue.t.
limits=$(awk -F'\t' '$1 !~ /^#/ && $3 ~ /^(grp|max|min)_(tres|jobs|submit|wall)/ { sub("accounts", "account", $1); print $1, $3 }' \
    "$HERE/../../src/schema/test/data/sacctmgr-limits.tsv" | sort -u)
is 'no limit has no row' "$(comm -23 <(echo "$limits") <({ awk '{ print $1, $2 }' <<<"$rows"
    grep -oE '^(rows=.)?(account|qos) [a-z_]*accrue[a-z_]*' "$HERE/../t24-priority/accrue.t" | sed "s/^rows='//"; } | sort -u))" ''
like 'and there are many' "$(wc -l <<<"$limits")" '^3[0-9]$'
{
    printf '\n[accounting]\nenforce = ["limits"]\n[[accounts]]\nname = "plain"\n'
    i=0
    while read -r who key value jobs reason; do
        i=$((i + 1))
        case $value in *=*) value="\"$value\"" ;; esac
        if [ "$who" = qos ]; then printf '[[qos]]\nname = "x%d"\n%s = %s\n' $i "$key" "$value"
        else printf '[[accounts]]\nname = "x%d"\n%s = %s\n[[users]]\nname = "%s"\naccount = "x%d"\n' $i "$key" "$value" "$TEST_UID" $i; fi
    done <<<"$rows"
    printf '[[users]]\nname = "%s"\naccount = "plain"\ndefault = true\n' "$TEST_UID"
} >>"$D/spur.conf"
sed -i 's/^\[scheduler\]$/&\nlicenses = ["app:1000"]/' "$D/spur.conf"
run spur config check "$D/spur.conf"
is 'the configuration is right' "$code$err" 0
ok 'and is taken' scontrol reconfigure
mine() { as_user sbatch --parsable -o /dev/null -n 2 --mem=100 -t 10 --gpus=1 -L app "$@" --wrap 'sleep 600'; }

# All jobs at once; the first ones run before the second ones come.
declare -a first second
i=0
while read -r who key value jobs reason; do
    i=$((i + 1))
    case $who in qos) by=(-q "x$i") ;; *) by=(-A "x$i") ;; esac
    [ "$jobs" = 1 ] || first[i]=$(mine "${by[@]}")
done <<<"$rows"
ok 'those within their limits run' wait_for 100 eval '[ -z "$(squeue -h -t pending)" ]'
i=0
while read -r who key value jobs reason; do
    i=$((i + 1))
    case $who in qos) by=(-q "x$i") ;; *) by=(-A "x$i") ;; esac
    if [ "$jobs" = - ]; then
        run mine "${by[@]}"
        like "$who $key refuses another" "$code $err" "^1 .*$reason"
        continue
    fi
    second[i]=$(mine "${by[@]}")
done <<<"$rows"
declare -A why
while read -r id reason; do why[$id]=$reason; done <<<"$(squeue -h -t pending -o '%A %r')"
i=0
while read -r who key value jobs reason; do
    i=$((i + 1))
    [ "$jobs" != - ] || continue
    id=${second[i]} number=${value#*=}
    is "$who $key=$value: the reason" "${why[$id]:-none}" "$reason"
    case $key in *wall) number=$((value * 60)) ;; esac
    used='(; [0-9]+( s)? in use)?, the job asks for [0-9]+'
    [ "$jobs" = 1 ] || used='; [0-9]+ in use.*, the job asks for [0-9]+'
    case $key in
    max_wall | max*job | max*node | min*) used+='.*: it can never start like this' ;;
    esac
    like "$who $key=$value: the sentence" "$(spur explain "$id" | head -n 1)" \
        "^job $id is PENDING: $reason: [A-Za-z]+ of .*x$i is .*$number( s)?$used"
done <<<"$rows"
is 'nothing else waits' "$(squeue -h -t pending | wc -l)" "${#second[@]}"
as_user scancel --me -t running
ok 'what was kept waiting by others runs' wait_for 100 eval '[ "$(squeue -h -t pending | wc -l)" = '"$(awk '$4 == 1' <<<"$rows" | wc -l)"' ]'
done_testing
