#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
#
# Other hosts need TLS; this host does not. In a network namespace of its own, where an address that is
# not loopback stands for another host.
# groups: asan
import ctypes
import fcntl
import os
import socket
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from echo import (HEADERS, Server, begin, client, done_testing, equal, ok, read_frames, request,
                  skip_all, token)

FAR = "10.99.0.1"
CLONE_NEWNET, SIOCSIFADDR, SIOCSIFFLAGS, IFF_UP = 0x40000000, 0x8916, 0x8914, 1

if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
    skip_all("no network namespaces here")
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
    address = struct.pack("16sHH4s8x", b"lo:1", socket.AF_INET, 0, socket.inet_aton(FAR))
    fcntl.ioctl(s, SIOCSIFADDR, address)

server = Server("--keys", "DIR", FAR + ":0")
far, near = f"{FAR}:{server.ports[0]}", f"127.0.0.1:{server.port}"
ca = os.path.join(server.dir, "ca.crt")
with open(os.path.join(server.dir, "secret"), "rb") as f:
    secret = f.read()

code, text = client(near, "Say", "plain")
equal("this host: plain is enough", (code, text), (0, "plain"))
code, text = client(far, "Say", "x", SPUR_CA="/nonexistent/ca.crt")
ok("another host without an authority: refused, and the file is named",
   code == 1 and "/nonexistent/ca.crt" in text, text)
code, text = client(far, "Say", "tls", SPUR_CA=ca)
equal("another host: TLS by itself", (code, text), (0, "tls"))
code, text = client("http://" + far, "Say", "tls", SPUR_CA=ca)
equal("the scheme http names an address only", (code, text), (0, "tls"))
code, text = client("https://localhost:" + str(server.port), "Say", "tls", SPUR_CA=ca)
equal("https insists on TLS, also here", (code, text), (0, "tls"))
code, text = client(far, "Who", SPUR_CA=ca)
equal("TLS alone says nothing about who", text, "none uid=-1 user= node=")
code, text = client(far, "Known", SPUR_CA=ca, SPUR_JWT=token(secret, sun="eve", uid=77))
equal("a token from the environment", text, "jwt uid=77 user=eve node=")
code, text = client(far, "Known", SPUR_CA=ca, SLURM_JWT=token(secret, sun="eve", uid=78))
equal("also from Slurm's variable", text, "jwt uid=78 user=eve node=")

path = os.path.join(server.dir, "token")
with open(path, "w") as f:
    f.write(token(secret, sun="eve", uid=79) + "\n")
os.chmod(path, 0o644)
code, text = client(far, "Known", SPUR_CA=ca, SPUR_TOKEN_FILE=path)
ok("a token file that others can read is refused", code == 1 and "chmod 600" in text, text)
os.chmod(path, 0o600)
code, text = client(far, "Known", SPUR_CA=ca, SPUR_TOKEN_FILE=path)
equal("a token file", text, "jwt uid=79 user=eve node=")

code, text = client(far, "Say", "x", SPUR_CA=ca, SPUR_ALLOW_PLAINTEXT="1")
ok("plain from another host: every call is refused with the reason",
   code == 1 and text.startswith("ERR_UNAUTHENTICATED") and "TLS" in text, text)
with socket.create_connection((FAR, server.ports[0])) as sock:
    begin(sock)
    sock.sendall(request(1))
    frames, _ = read_frames(sock, 5, lambda f: f[0] == HEADERS)
    ok("also for those who do not ask", any(f[0] == HEADERS for f in frames), frames)

other = Server("--keys", "DIR", FAR + ":0")
code, text = client(f"{FAR}:{other.ports[0]}", "Say", "x", SPUR_CA=ca)
ok("a server of another authority", code == 1 and "not trusted" in text, text)
code, text = client(far, "Say", "x", SPUR_CA=ca, SPUR_LIB_DIR="/nonexistent")
ok("without the TLS module the message says so", code == 1 and "libspur_tls.so" in text, text)
equal("the servers end in order", (server.stop(), other.stop()), (0, 0))
done_testing()
