#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# hooks.t - programs of the site when reservations begin and end
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all 'needs root'
: >"$T/said"
for what in begins ends; do
    printf '#!/bin/bash\necho "%s $* $SLURM_RESV_NAME $SLURM_CLUSTER_NAME" >>%s\n' $what "$T/said" >"$T/$what"
    chmod 755 "$T/$what"
done
printf '[hooks]\nresv_prolog = "%s"\nresv_epilog = "%s"\n' "$T/begins" "$T/ends" >"$T/extra.toml"
cluster_up --nodes 2 --cpus 4 --conf "$T/extra.toml"
run spur config check "$T/extra.toml"
unlike "both act" "$out$err" "nothing in this version"
cluster=$(scontrol show config | sed -n 's/^ClusterName *= *//p')
said() { grep -qx "$1 $2 $2 $cluster" "$T/said"; }
count() { wc -l <"$T/said"; }

ok "one for now" scontrol create reservation reservationname=now starttime=now duration=60 users=root nodes=n1
ok "begins" wait_for 30 said begins now
ok "one for later" scontrol create reservation reservationname=later starttime=now+1hour duration=60 users=root nodes=n1
ok "one for soon" scontrol create reservation reservationname=soon starttime=now+3 duration=60 users=root nodes=n2
ok "begins when its time has come" wait_for 30 said begins soon
ok "an update" scontrol update reservationname=now users=root,daemon
ok "the controller is killed and comes back" controller_again
ok "what is deleted" scontrol delete reservationname=now
ok "ends" wait_for 30 said ends now
ok "what was never there" scontrol delete reservationname=later
ok "one that ends by itself" scontrol update reservationname=soon endtime=now+2
ok "ends too" wait_for 90 said ends soon
is "each once" "$(sort "$T/said" | cut -d' ' -f1,2 | tr '\n' ,)" "begins now,begins soon,ends now,ends soon,"
done_testing
