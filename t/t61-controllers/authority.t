#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A node's certificate at every port of three controllers: etcd has an authority of its own, which signs controllers alone."""
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
build = os.environ.get("SPUR_BUILD", f"{root}/build")
count = failed = 0


def check(name, right, detail=""):
    global count, failed
    count += 1
    failed += not right
    print(f"{'ok' if right else 'not ok'} {count} - {name}")
    if not right:
        print(f"# {detail}")


if not shutil.which("etcd"):
    print("1..1\nok 1 - # skip etcd is not installed")
    sys.exit(0)

dir = tempfile.mkdtemp(prefix="spur-authority.")
env = {**os.environ, "PATH": f"{build}/bin:{os.environ['PATH']}"}
env.pop("SPUR_CONF", None)
D = os.path.join(dir, "c")


def accepts(port, cert, key):
    """Whether a TLS server goes on with a client that shows this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2  # there the handshake itself fails
    if cert:
        context.load_cert_chain(cert, key)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
            with context.wrap_socket(sock):
                return True, ""
    except (ssl.SSLError, ConnectionResetError) as error:
        return False, str(error)


try:
    up = subprocess.run(["spur", "up", "--dir", D, "--nodes", "1", "--controllers", "3"], env=env, timeout=100,
                        capture_output=True, text=True)
    if up.returncode:
        print(f"Bail out! spur up: {up.stdout}{up.stderr}")
        sys.exit(1)
    node = (f"{D}/spool/n1/node.crt", f"{D}/spool/n1/node.key")
    members = {}
    for name in ("ctl1", "ctl2", "ctl3"):
        pid = open(f"{D}/state/{name}/etcd/etcd.pid").read().split()[0]
        flags = open(f"/proc/{pid}/cmdline").read().split("\0")
        members[name] = {flag: int(flags[flags.index(flag) + 1].rsplit(":", 1)[1])
                         for flag in ("--listen-client-urls", "--listen-peer-urls")}
    check("the node has a certificate of the cluster", os.path.exists(node[0]))
    for name, ports in members.items():
        keys = f"{D}/state/{name}/keys"
        for flag, port in ports.items():
            what = f"{name} {flag[9:-5]} port"
            right, text = accepts(port, f"{keys}/etcd/member.crt", f"{keys}/controller.key")
            check(f"{what}: a controller is accepted", right, text)
            right, text = accepts(port, *node)
            check(f"{what}: a node is not", not right and "certificate" in text.lower() or "alert" in text.lower(), text)
            check(f"{what}: nobody is not", not accepts(port, None, None)[0])
            right, text = accepts(port, f"{keys}/controller.crt", f"{keys}/controller.key")
            check(f"{what}: nor is a certificate of the cluster's authority", not right, text)
    others = [open(f"{D}/state/{name}/keys/etcd/ca.key").read() for name in members]
    check("all controllers have the same authority without being told", len(set(others)) == 1)
    stat = os.stat(f"{D}/state/ctl1/keys/etcd/ca.key")
    check("which only they can read", stat.st_mode & 0o777 == 0o600, oct(stat.st_mode))
finally:
    subprocess.run(["spur", "down", "--dir", D], env=env, capture_output=True)
    shutil.rmtree(dir, ignore_errors=True)
print(f"1..{count}")
sys.exit(failed != 0)
