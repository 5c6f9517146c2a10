#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# units.t - the shipped units under systemd itself: what their hardening lines must let through, and what they must not
# (run by make test-vm, in a machine of tools/vm --systemd; the installation is in build/vm/install)
. "$(dirname "$0")/../../lib.sh"
[ -n "${IN_VM:-}" ] && [ "$(cat /proc/1/comm)" = systemd ] || skip_all "needs the machine of tools/vm --systemd"

mount --bind "$SPUR_BUILD/vm/install/usr/local" /usr/local
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
unset SPUR_CONF SPUR_CONTROLLER_ADDR SLURM_CONF
for user in spur spurdb spurrest; do useradd --system "$user" 2>/dev/null; done
useradd --create-home alice
mkdir -p /etc/spur /var/spool/vm-mail
chmod 2775 /var/spool/vm-mail
chgrp mail /var/spool/vm-mail

# A mail program as sites have it: set-gid, and writes to /var/spool. A fencing program that needs sudo is set-uid.
cat >"$T/setid.c" <<'C'
#define _GNU_SOURCE
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    FILE *out = fopen(OUT, "a");
    if (!out)
        return 1;
    fprintf(out, "uid=%d gid=%d %s\n", (int)geteuid(), (int)getegid(), argc > 1 ? argv[argc - 1] : "");
    return fclose(out);
}
C
cc -DOUT='"/var/spool/vm-mail/mbox"' -o /var/lib/vm-mail "$T/setid.c" && chgrp mail /var/lib/vm-mail && chmod 2755 /var/lib/vm-mail
cc -DOUT='"/var/lib/fenced"' -o /var/lib/vm-fence "$T/setid.c" && chmod 4755 /var/lib/vm-fence
cat >/etc/spur/spur.conf <<CONF
cluster_name = "vm"
[controller]
log_file = "/var/log/spur/spurctld.log"
hosts = ["$(hostname)"]
[[nodes]]
names = "$(hostname)"
cpus = $(nproc)
memory_mb = 500
[[partitions]]
name = "main"
nodes = "ALL"
default = true
[hooks]
mail_prog = "/var/lib/vm-mail"
CONF
grep -q "$(hostname)" /etc/hosts || echo "127.0.0.1 $(hostname)" >>/etc/hosts
systemctl daemon-reload

started() { systemctl is-active --quiet "$1" || { systemctl status --no-pager "$1" 2>&1; journalctl -n 20 --no-pager -u "$1" 2>&1; } | sed 's/^/# /'; systemctl is-active "$1"; }
systemctl start spurctld
like "spurctld starts as the unit says" "$(started spurctld)" '^active$'
systemctl start spurdbd
like "spurdbd too" "$(started spurdbd)" '^active$'
spur token --join >/etc/spur/join.token
chmod 600 /etc/spur/join.token
echo "SPURD_OPTIONS=\"--controller https://$(hostname):6817\"" >/etc/default/spurd
systemctl start spurd
like "and spurd" "$(started spurd)" '^active$'
ok "the node is idle" wait_for 60 eval '[ "$(sinfo -h -o %T)" = idle ]'

as_alice() { (cd /home/alice && setpriv --reuid alice --regid alice --init-groups env HOME=/home/alice USER=alice "$@"); }
as_alice sbatch --mail-type=END --mail-user=alice@example.org -o /home/alice/out --wait --wrap 'id -un; echo to >/home/alice/file' >/dev/null
is "a job of an ordinary user runs" "$(cat /home/alice/out)" alice
ok "mail is sent by a set-gid program that writes to /var/spool" wait_for 30 grep -q "gid=$(getent group mail | cut -d: -f3) alice@example.org" /var/spool/vm-mail/mbox
ok "the log file is written" grep -q 'node.up' /var/log/spur/spurctld.log
is "and is the controller's" "$(stat -c '%U' /var/log/spur/spurctld.log)" spur
as_alice sacct -n -X -o state >"$T/sacct"
like "accounting answers" "$(cat "$T/sacct")" 'COMPLETED'

inside() { nsenter -t "$(systemctl show -p MainPID --value "$1")" -m -- setpriv --reuid "$2" --regid "$2" --clear-groups "${@:3}" 2>&1; }
run inside spurctld spur /var/lib/vm-fence n1
like "a set-uid fencing program works" "$code $(cat /var/lib/fenced)" '^0 uid=0 .* n1$'
run inside spurctld spur touch /usr/local/x
like "the controller cannot write to /usr" "$((code != 0)) $out" '1 .*(Read-only|denied)'
run inside spurctld root touch /root/x
like "nor write to homes" "$((code != 0)) $out" '1 .*(Read-only|denied)'
run inside spurdbd root touch /var/lib/x
like "spurdbd writes to its own directory alone" "$((code != 0)) $out" '1 .*Read-only'
run inside spurdbd root touch /var/lib/spurdb/x
is "there it does" "$code$out" 0
like "and gains no privileges" "$(grep NoNewPrivs "/proc/$(systemctl show -p MainPID --value spurdbd)/status")" '1$'

# Jobs outlive the agent, the socket outlives the controller's neighbour, and a crash is started again.
as_alice sbatch -o /home/alice/long --wrap 'sleep 20; echo whole' >/dev/null
wait_for 30 eval '[ "$(squeue -h -t R -o %A | wc -l)" = 1 ]'
systemctl restart spurd
ok "the job runs on while its agent is exchanged" wait_for 60 eval '[ "$(squeue -h -t R -o %A | wc -l)" = 1 ] && [ "$(sinfo -h -o %T)" != idle ]'
kill -9 "$(systemctl show -p MainPID --value spurctld)"
ok "systemd starts a controller that crashed" wait_for 60 squeue
ok "and the job ends as it should" wait_for 90 grep -qs whole /home/alice/long
systemctl stop spurd spurctld spurdbd
is "all of them end when they are told" "$(systemctl is-active spurd spurctld spurdbd | tr '\n' ' ')" 'inactive inactive inactive '
done_testing
