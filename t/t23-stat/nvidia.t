#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# nvidia.t - what a step does on NVIDIA's GPUs, by a stand-in for their library, in sstat and in the journal
. "$(dirname "$0")/../lib.sh"
library=$SPUR_BUILD/src/spurd/libfake-nvml.so
[ -e "$library" ] || skip_all "there is no stand-in for the library"
recorded_tree a100-4
export SPUR_NVML=$library FAKE_NVML_USE=$T/use
: >"$T/use"
cluster_of nvidia <<'CONF'
[[nodes]]
names = "n1"
cpus = 4
memory_mb = 8000
gres = ["gpu:a100:4"]
[[gres]]
nodes = "n1"
name = "gpu"
type = "a100"
files = "/dev/nvidia[0-3]"
CONF
cd "$(user_dir)"
watchers() { pgrep -f "spurd-nvml $library "; }
watched() { [ "$(watchers | wc -l)" -eq "$1" ]; }
stat() { as_user sstat -n -P "$@"; }
tres() { stat -j "$1" -o TRESUsageInTot | tr , '\n' | grep gpu | tr '\n' ' '; }
tres_is() { [ "$(tres "$1")" = "$2" ]; }
is "nobody looks while nobody uses them" "$(watchers)" ""

as_user srun -n2 --gpus=2 sh -c 'echo $$ >>pids; while [ ! -e stop ]; do sleep 0.1; done' &
both() { [ "$(cat pids 2>/dev/null | wc -l)" -eq 2 ]; }
ok "a step on two GPUs" wait_for 30 both
id=$(squeue -h -o %i)
ok "they are looked at" wait_for 30 watched 1
# Both tasks on one of its GPUs, somebody else on both, and on one that is not its own.
{ sed 's/.*/0 & 20 1073741824/' pids; printf '%s\n' "0 1 7 5000000" "1 $(head -1 pids) 30 536870912" "3 $(head -1 pids) 50 5000000"; } >"$T/use.new"
mv "$T/use.new" "$T/use"
ok "what its processes do on its GPUs" wait_for 60 tres_is "$id.0" "gres/gpumem=2560M gres/gpuutil=70 "
: >"$T/use"
touch stop
wait
step() { spur journal --json | python3 -c "
import sys, json
for r in (r for e in map(json.loads, sys.stdin) for r in e.get('records', []) if r['kind'] == 'STEP' and r['job_id'] == $id):
    u = r['step']['usage']
    print(u.get('gpu_percent'), u.get('gpu_mem_bytes'))"; }
is_kept() { [ -n "$(step)" ]; }
ok "the step ends" wait_for 30 is_kept
is "the journal has its highest" "$(step)" "70 2684354560"
ok "nobody looks any more" wait_for 30 watched 0

# A batch script; the agent goes and comes back meanwhile.
rm -f stop
id=$(as_user sbatch --parsable -o /dev/null --gpus=1 --wrap 'echo $$ >pid; while [ ! -e stop ]; do sleep 0.1; done')
ok "a script" wait_for 30 test -s pid
echo "0 $(cat pid) 11 1073741824" >"$T/use.new"
mv "$T/use.new" "$T/use"
ok "is seen too" wait_for 60 tres_is "$id.batch" "gres/gpumem=1024M gres/gpuutil=11 "
touch stop
ok "and ends" wait_for 30 job_is "$id" COMPLETED
ok "nobody looks then" wait_for 30 watched 0
done_testing
