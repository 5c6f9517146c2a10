#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# CALCULATE_RUNNING of PriorityFlags: the priority of a job that runs goes on, and stays without it.
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 1 --cpus 4 --mem 4G
cd "$(user_dir)" || exit 1
cat >>"$D/spur.conf" <<END
[priority]
weight_age = 100000
max_age = "0:60"
calc_period = "0:01"
END
ok 'the configuration is taken' scontrol reconfigure
priority() { scontrol -o show job "$1" | grep -o ' Priority=[0-9]*' | cut -d= -f2; }
grew() { [ "$(priority "$1")" -gt "$2" ]; }

job=$(sbatch --parsable -o /dev/null --wrap 'sleep 300')
waiting=$(sbatch --parsable -w n1 --exclusive -o /dev/null --wrap 'sleep 300')
runs "$job" >/dev/null
before=$(priority "$job") of_other=$(priority "$waiting")
ok 'who waits grows older' wait_for 30 grew "$waiting" "$of_other"
is 'who runs does not' "$(priority "$job")" "$before"
sed -i 's/^weight_age.*/&\nflags = ["CALCULATE_RUNNING"]/' "$D/spur.conf"
ok 'with CALCULATE_RUNNING' scontrol reconfigure
before=$(priority "$job")
ok 'it does' wait_for 30 grew "$job" "$before"
done_testing
