#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# terminal.t - whatever ends or stops a command with --pty, the terminal is as it was
. "$(dirname "$0")/../lib.sh"
command -v python3 >/dev/null || skip_all "there is no python3"
cluster_up --nodes 1 --cpus 4
cd "$(user_dir)"
export SHELL=/bin/bash

# Runs a command in a terminal, waits until the terminal is raw, sends signals, and says what became of both.
cat >term.py <<'PY'
import fcntl, os, pty, signal, sys, termios, time

def wait(what, test, seconds=30):
    until = time.time() + seconds
    while time.time() < until:
        drain()
        if test():
            return True
        time.sleep(0.05)
    print("no", what)
    return False

def drain():
    try:
        while os.read(master, 65536):
            pass
    except (BlockingIOError, OSError):
        pass

def is_raw():
    return not termios.tcgetattr(slave)[3] & (termios.ICANON | termios.ECHO)

def ended():
    global status
    if status is not None:
        return True
    pid, what = os.waitpid(child, os.WNOHANG)
    if pid:
        status = what
    return status is not None

def stopped():
    with open("/proc/%d/stat" % child) as file:
        return file.read().rsplit(")", 1)[1].split()[0] == "T"

status = None
if os.fork():
    os.wait()
    sys.exit()
os.setsid() # a shell of sorts: who has none above is not stopped by SIGTSTP
for sig in (signal.SIGTTOU, signal.SIGTTIN, signal.SIGHUP):
    signal.signal(sig, signal.SIG_IGN)
master, slave = pty.openpty()
os.set_blocking(master, False)
fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(slave, os.getpid())
    for sig in (signal.SIGTTOU, signal.SIGTTIN, signal.SIGHUP):
        signal.signal(sig, signal.SIG_DFL)
    for fd in (0, 1, 2):
        os.dup2(slave, fd)
    os.execvp(sys.argv[2], sys.argv[2:])
raw = wait("raw", is_raw)
for name in sys.argv[1].split(","):
    if not raw:
        break
    os.kill(child, getattr(signal, "SIG" + name))
    if name in ("TSTP", "STOP"):
        wait("stop", stopped)
        if name == "TSTP":
            print("stopped", "raw" if is_raw() else "cooked")
    elif name == "CONT":
        print("continued", "raw" if wait("raw again", is_raw) else "cooked")
    elif wait("end", ended):
        print("ended", "raw" if is_raw() else "cooked", "signal %d" % (status & 127) if status & 127 else "code %d" % (status >> 8))
if not ended():
    os.kill(child, 9)
PY
term() { as_user timeout 90 python3 term.py "$@"; }

id=$(as_user sbatch --parsable -n1 -o /dev/null --wrap 'sleep 600')
ok "a job runs" wait_for 30 job_is "$id" RUNNING
is "srun --pty ended by TERM" "$(term TERM srun --jobid="$id" --overlap --pty sleep 600 | cut -d' ' -f1,2)" "ended cooked"
is "by HUP" "$(term HUP srun --jobid="$id" --overlap --pty sleep 600 | cut -d' ' -f1,2)" "ended cooked"
is "spur exec --pty ended by QUIT" "$(term QUIT spur exec --pty "$id" sleep 600 | cut -d' ' -f1,2)" "ended cooked"
is "by a crash" "$(term SEGV srun --jobid="$id" --overlap --pty sleep 600)" "ended cooked signal 11"
is "stopped and continued" "$(term TSTP,CONT,TERM srun --jobid="$id" --overlap --pty sleep 600 | cut -d' ' -f1,2)" "stopped cooked
continued raw
ended cooked"

as_user srun --jobid="$id" --overlap -J shell --pty sleep 600 </dev/null >/dev/null 2>&1 &
listed() { squeue -h -s -j "$id" -o '%i %j' | grep -q ' shell$'; }
ok "a step with a terminal" wait_for 30 listed
step=$(squeue -h -s -j "$id" -o '%i %j' | sed -n 's/ shell$//p')
for sig in TERM INT HUP; do
    number=$(kill -l $sig)
    is "sattach --pty ended by $sig" "$(term $sig sattach --pty "$step")" "ended cooked signal $number"
done
is "sattach --pty stopped and continued" "$(term TSTP,CONT,TERM sattach --pty "$step")" "stopped cooked
continued raw
ended cooked signal 15"
is "salloc with such a command" "$(term HUP salloc -Q -n1 srun --pty sleep 600 | cut -d' ' -f1,2)" "ended cooked"
scancel "$id"
done_testing
