#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# streams.t - standard files of srun that are closed, full, broken or shared with somebody who does not wait
. "$(dirname "$0")/../lib.sh"
cluster_up --nodes 1 --cpus 4
cd "$(user_dir)"
step() { as_user timeout 60 srun -Q "$@"; }

out=$(step -n2 cat <&- 2>&1; echo "rc=$?")
is "closed input is its end" "$out" "rc=0"
err=$(step -n2 echo hi 2>&1 >&-; echo "rc=$?")
is "closed output is nowhere" "$err" "rc=0"
step -n2 bash -c 'echo hi; echo no >&2' >out.txt 2>&-
is "closed errors too, and nothing else is mixed in" "$? $(xargs <out.txt)" "0 hi hi"
run step -n2 bash -c 'echo hi >file.$SLURM_PROCID; cat file.*' <&- >&- 2>&-
is "all three" "$code" 0
like "the tasks ran" "$(cat file.0 file.1 | xargs)" "^hi hi$"

err=$(step -n1 echo hi 2>&1 >/dev/full; echo "rc=$?")
is "output that cannot be written is not silently lost" "$err" "srun: error: output of task 0 is lost: write: No space left on device
rc=1"
err=$(step -n2 bash -c 'echo hi; exit 3' 2>&1 >/dev/full; echo "rc=$?")
like "what a task says goes before" "$err" "rc=3$"
is "and it is said once" "$(grep -c 'is lost' <<<"$err")" 1

# As with Slurm, a reader who leaves does not end the program.
as_user rm -f done
step bash -c 'for i in 1 2 3 4 5 6 7 8; do echo line; sleep 0.1; done; touch done' | head -n 1 >first
is "a reader who leaves gets what he wanted" "$(cat first)" line
ok "and the program goes on" test -e done

# Several share an input that stays open: who finds that another has taken what there was goes on.
cat >share.py <<'END'
import os, subprocess, sys, time
r, w = os.pipe()
all = [subprocess.Popen(sys.argv[1:], stdin=r) for i in range(8)]
for i in range(20):
    time.sleep(0.05)
    os.write(w, b"x")
print(*[p.wait() for p in all])
END
chmod a+r share.py
is "who shares an input with others ends" "$(as_user timeout 30 python3 share.py timeout 20 srun -Q -c1 --overlap sleep 1)" "0 0 0 0 0 0 0 0"

# A terminal or a pipe that another process has set to O_NONBLOCK.
cat >slow.py <<'END'
import fcntl, os, subprocess, sys, time
r, w = os.pipe()
fcntl.fcntl(w, fcntl.F_SETFL, fcntl.fcntl(w, fcntl.F_GETFL) | os.O_NONBLOCK)
p = subprocess.Popen(sys.argv[1:], stdout=w)
os.close(w)
total = 0
while True:
    time.sleep(0.01)
    part = os.read(r, 65536)
    if not part:
        break
    total += len(part)
print(total, p.wait())
END
chmod a+r slow.py
is "nothing is lost where writing would not wait" "$(as_user timeout 60 python3 slow.py srun -Q bash -c 'head -c 4000000 /dev/zero')" "4000000 0"
done_testing
