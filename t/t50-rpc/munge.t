#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
#
# Where munged runs, a command over TCP is known by its credential, without any set-up of ours.
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from echo import Server, client, done_testing, equal, ok, skip_all

munged = shutil.which("munged") or "/usr/sbin/munged"
if not os.path.exists(munged):
    skip_all("munge is not installed")
here = tempfile.mkdtemp(prefix="spur-munge.")
os.chmod(here, 0o755)
with open(os.path.join(here, "key"), "wb") as f:
    f.write(os.urandom(128))
os.chmod(os.path.join(here, "key"), 0o600)
sock = os.path.join(here, "sock")
files = [f"--{n}={here}/{f}" for n, f in (("key-file", "key"), ("pid-file", "pid"), ("log-file", "log"),
                                          ("seed-file", "seed"), ("socket", "sock"))]
daemon = subprocess.Popen([munged, "--foreground", "--force", *files], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL)
for _ in range(100):
    if os.path.exists(sock) or daemon.poll() is not None:
        break
    time.sleep(0.05)
if not os.path.exists(sock):
    daemon.kill()
    shutil.rmtree(here)
    skip_all("munged does not start here")

server = Server("--munge", env={"SPUR_MUNGE_SOCKET": sock})
tcp = f"127.0.0.1:{server.port}"
code, text = client(tcp, "Known", SPUR_MUNGE_SOCKET=sock)
equal("a credential says who", (code, text), (0, f"munge uid={os.getuid()} user= node="))
if os.getuid() == 0:
    done = subprocess.run(["setpriv", "--reuid", "20001", "--regid", "20001", "--clear-groups", sys.executable,
                           "-c", "import sys; sys.path.insert(0, sys.argv[1]); import echo;"
                           "print(echo.client(sys.argv[2], 'Known', SPUR_MUNGE_SOCKET=sys.argv[3])[1])",
                           os.path.dirname(os.path.abspath(__file__)), tcp, sock],
                          text=True, capture_output=True)
    equal("another user is another", done.stdout.strip(), "munge uid=20001 user= node=")
code, text = client(tcp, "Known", SPUR_MUNGE_SOCKET="/nonexistent")
ok("without munged: nobody", code == 1 and text.startswith("ERR_UNAUTHENTICATED"), text)

credential = subprocess.run(["munge", f"--socket={sock}", "--no-input"], text=True,
                            capture_output=True).stdout.strip()
sys.path.insert(0, server.dir)
import grpc
channel = grpc.insecure_channel(tcp)
say = channel.unary_unary("/echo.Echo/Say", lambda m: m, lambda b: b)


def status(value):
    try:
        say(b"", timeout=10, metadata=(("authorization", value),))
    except grpc.RpcError as error:
        return error.code(), error.details()
    return None, ""


code, text = status("Munge " + credential)
ok("a credential made for something else is refused",
   code == grpc.StatusCode.UNAUTHENTICATED and "something else" in text, code, text)
code, text = status("Munge MUNGE:nonsense:")
ok("nonsense is refused", code == grpc.StatusCode.UNAUTHENTICATED, code, text)
daemon.terminate()
daemon.wait()
code, text = status("Munge " + credential + "x")
ok("munged is gone: refused, not let in", code == grpc.StatusCode.UNAUTHENTICATED, code, text)
channel.close()
equal("the server ends in order", server.stop(), 0)
shutil.rmtree(here)
done_testing()
