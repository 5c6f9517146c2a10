#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The dashboard and the alert rules name metrics that spurrestd has; promtool agrees with both when it is there.
. "$(dirname "$0")/../lib.sh"
command -v curl >/dev/null || skip_all "curl is not installed"
SPUR_T_REST=
cluster_up --nodes 1 --cpus 4 --gpus h100:2
D=$HERE/../../deploy/monitoring
token=$(spur token | cut -d= -f2)
cd "$(user_dir)" || exit 1
sbatch -o /dev/null --wrap 'sleep 60' >/dev/null
gathered() { curl -s -H "Authorization: Bearer $token" "$SPUR_REST_ADDR/metrics" >"$T/metrics" && grep -q '^spur_partition_jobs' "$T/metrics"; }
ok "metrics of a job" wait_for 30 gathered
names=$(grep -oh 'spur_[a-z_]*' "$D/grafana-dashboard.json" "$D/alerts.yaml" | sort -u)
missing=$(for name in $names; do grep -q "^$name[{ ]" "$T/metrics" || echo "$name"; done)
is "every metric of the dashboard and the rules is there" "$missing" ""
is "the dashboard is JSON with panels" "$(python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(len(d["panels"]) > 8, all(t["expr"] for p in d["panels"] for t in p["targets"]))' "$D/grafana-dashboard.json")" "True True"
if command -v promtool >/dev/null; then
    ok "promtool takes the rules" promtool check rules "$D/alerts.yaml"
else
    pass "promtool takes the rules # skip promtool is not installed"
fi
done_testing
