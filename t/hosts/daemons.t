#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the daemons of an installed cluster say: an audit of changes, what goes wrong, log_level, log_file; and what they refuse.
# groups: short
. "$(dirname "$0")/bed.sh"
site_up c1 'n1' login1 'disable_root_jobs = false'
said() { journal "$1" "$2" | tail -n +"${3:-1}"; }

# An audit: who, how known, from where, what.
on c1 scontrol update nodename=n1 state=drain reason='a b'
like "a change by root is in the log" "$(said c1 spurctld)" \
    'info audit.UpdateNode uid=0 user=root how=unix by="" from=uid:0 asked="names=n1 state=DRAIN reason=a b.*" result=done'
on c1 scontrol update nodename=n1 state=resume
on n1 scontrol update nodename=n1 state=drain reason=hot
like "and one by a node" "$(said c1 spurctld)" 'audit.UpdateNode node=n1 how=jwt from=.*10.77.0.2.* asked="names=n1 state=DRAIN reason=hot'
on c1 scontrol update nodename=n1 state=resume
job=$(on alice@login1 sbatch --parsable -o /dev/null --wrap 'sleep 300')
own=$(on alice@login1 sbatch --parsable -H -o /dev/null --wrap 'sleep 300')
on alice@login1 scancel "$own"
on bob@login1 scancel "$job" 2>/dev/null
on c1 scancel "$job"
like "who cancels another's job" "$(said c1 spurctld)" "audit.CancelJobs uid=0 user=root how=unix by=\"\" from=uid:0 asked=\"?ids=$job.* result=done"
like "who tries to, and by whom he was vouched for" "$(said c1 spurctld)" "audit.CancelJobs uid=20102 user=bob how=jwt by=login:login1 .*asked=\"?ids=$job"
unlike "who cancels his own is not" "$(said c1 spurctld)" "audit.CancelJobs uid=20101"

# A node that has less than the configuration says.
on c1 sed -i 's/^memory_mb = .*/memory_mb = 100000000/' /etc/spur/spur.conf
on c1 scontrol reconfigure
on n1 systemctl restart spurd
ok "a node that lacks what it should have is named" wait_for 20 eval '[[ $(said c1 spurctld) =~ "warn node.invalid node=n1 reason=".*"RealMemory" ]]'
on c1 sed -i 's/^memory_mb = .*/memory_mb = 1000/; s/^\[agent\]/&\nlog_level = "error"/' /etc/spur/spur.conf
configs=$(said n1 spurd | grep -c 'info agent.config')
on c1 scontrol reconfigure
wait_for 20 eval '[ "$(said n1 spurd | grep -c "info agent.config")" -gt "$configs" ]'
starts=$(said n1 spurd | grep -c 'info agent.started')
on n1 systemctl restart spurd
ok "and is used again when it has it" wait_for 20 nodes_are idle n1
is "agent.log_level of the controller's file acts on the node" "$(said n1 spurd | grep -c 'info agent.started')" "$starts"
on c1 sed -i '/^log_level = "error"/d' /etc/spur/spur.conf
on c1 bash -c "sed -i 's/^\[agent\]/&\nlog_level = \"info\"/' /etc/spur/spur.conf"
on c1 scontrol reconfigure
on n1 systemctl restart spurd
ok "the node is there" wait_for 20 nodes_are idle n1

# Root's jobs, where they are allowed.
run on c1 sbatch --wait -o /dev/null --wrap true
is "root submits where disable_root_jobs is off" "$code:$err" "0:"

# Reconfigure: said, with the notes of config check; log_level acts.
reconfigured() { said c1 spurctld | grep -c ctl.reconfigured; }
before=$(reconfigured)
on c1 sed -i 's/^\[scheduler\]/&\ninterval_secs = 1/' /etc/spur/spur.conf
run on c1 scontrol reconfigure
is "a reconfigure works" "$code:$err" "0:"
like "and is in the log, with the notes" "$(said c1 spurctld)" 'conf.unused .*interval_secs.*ctl.reconfigured'
like "by whom too" "$(said c1 spurctld)" 'audit.Reconfigure uid=0'
on c1 systemctl reload spurctld
is "systemctl reload is a reconfigure" "$(reconfigured)" $((before + 2))
on c1 sed -i 's/^\[controller\]/&\nlog_level = "error"/' /etc/spur/spur.conf
on c1 scontrol reconfigure
is "log_level acts at once" "$(reconfigured)" $((before + 2))
on c1 sed -i 's/^log_level = .*/log_level = "info"/' /etc/spur/spur.conf
on c1 scontrol reconfigure
is "and the other way" "$(reconfigured)" $((before + 3))

# A controller that is not there, and is again.
on c1 systemctl stop spurctld
ok "a node says that no controller is reached" wait_for 20 eval '[[ $(said n1 spurd) =~ "warn session.unreachable peer=https://c1:6817" ]]'
ok "a login host too" wait_for 20 eval '[[ $(said login1 spurd) =~ "warn session.unreachable" ]]'

# A log file that cannot be written is an error; one that can be gets the lines.
on c1 bash -c "sed -i 's|^\[controller\]|&\nlog_file = \"/etc/spur/no/such.log\"|' /etc/spur/spur.conf"
run on c1 timeout 30 systemctl start spurctld
ok "it does not start with a log file that cannot be written" test "$code" != 0
like "and says so" "$(said c1 spurctld | tail -n 5)" 'log file /etc/spur/no/such.log'
on c1 systemctl stop spurctld
on c1 sed -i 's|/etc/spur/no/such.log|/var/log/spur/spurctld.log|' /etc/spur/spur.conf
ok "with another it does" on c1 systemctl start spurctld
like "and writes to it" "$(on c1 cat /var/log/spur/spurctld.log)" 'ctl.serves'
ok "the node finds it again, and says so" wait_for 20 eval '[[ $(said n1 spurd) =~ "session.reached" ]]'

# State of another cluster.
on c1 systemctl stop spurctld
on c1 sed -i 's/^cluster_name = .*/cluster_name = "other"/' /etc/spur/spur.conf
run on c1 timeout 30 systemctl start spurctld
ok "a state directory is not served under another cluster's name" test "$code" != 0
like "and the reason is said" "$(on c1 tail -n 5 /var/log/spur/spurctld.log)" "holds the state of cluster 'production', and cluster_name is 'other'"
on c1 systemctl stop spurctld

# A node without a token.
on n1 systemctl stop spurd
on n1 bash -c 'rm -rf /etc/spur/join.token /var/spool/spurd'
on n1 timeout 30 systemctl start spurd
ok "a node without a token says what to do" wait_for 10 eval '[[ $(said n1 spurd) =~ "error join.no_token" ]]'
done_testing
