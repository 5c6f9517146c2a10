#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Hostile HTTP leaves spurrestd serving, with bounded memory: each limit of base/limits.h has its status.
. "$(dirname "$0")/../lib.sh"
command -v curl >/dev/null || skip_all "curl is not installed"
SPUR_T_REST=
ulimit -n "$(ulimit -Hn)" 2>/dev/null
cluster_up --nodes 1
python3 - "$SPUR_REST_ADDR" "$(cut -d' ' -f1 "$D/run/rest.pid")" <<'PY'
import os, random, re, socket, sys, threading, time, urllib.request
base, pid = sys.argv[1], sys.argv[2]
port = int(base.rsplit(":", 1)[1])
n = bad = 0
def check(name, good, got=""):
    global n, bad
    n += 1
    bad += not good
    print(f"{'ok' if good else 'not ok'} {n} - {name}" + ("" if good else f"\n# got: {got!r}"[:400]), flush=True)
def connect():
    s = socket.create_connection(("127.0.0.1", port), timeout=30)
    return s
def raw(data, wait=20):
    s = connect()
    s.settimeout(wait)
    out = b""
    try:
        s.sendall(data)
        while True:
            part = s.recv(65536)
            if not part: break
            out += part
    except (socket.timeout, ConnectionResetError, BrokenPipeError):
        pass
    s.close()
    return out
def status(data, wait=20):
    m = re.match(rb"HTTP/1.1 (\d+)", raw(data, wait))
    return int(m[1]) if m else 0
def rss_mb():
    return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{pid}/status").read())[1]) / 1024
def alive():
    return b'"UP"' in urllib.request.urlopen(base + "/api/v1/ping", timeout=30).read()
H = b"Host: localhost\r\nConnection: close\r\n"
G = b"GET /api/v1/ping HTTP/1.1\r\n" + H
P = b"POST /api/v1/job/submit HTTP/1.1\r\n" + H

# Slow ones wait in the background meanwhile.
slow = {}
def run(name, data, keep):
    began = time.time()
    slow[name] = (status(data, 40), time.time() - began)
threads = [threading.Thread(target=run, args=a) for a in (("half a head", G[:-10], 1), ("a byte", b"G", 1))]
for t in threads: t.start()

for name, data, want in [
    ("a head that is too large", G + b"X: " + b"a" * 40000 + b"\r\n\r\n", 431),
    ("too many fields", G + b"X: 1\r\n" * 150 + b"\r\n", 431),
    ("a target that is too long", b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n" + H + b"\r\n", 414),
    ("a body that is too large", P + b"Content-Length: 17000000\r\n\r\n", 413),
    ("a chunk that is too large", P + b"Transfer-Encoding: chunked\r\n\r\n2000000\r\n", 413),
    ("two lengths", P + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\na", 400),
    ("a length and chunks", P + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ("a line that begins with a blank", G + b" X: 1\r\n\r\n", 400),
    ("a blank before the colon", G + b"X : 1\r\n\r\n", 400),
    ("bare line feeds", b"GET / HTTP/1.1\nHost: a\n\n", 400),
    ("NUL", G + b"X: \0\r\n\r\n", 400),
    ("another version", b"GET / HTTP/3.0\r\n" + H + b"\r\n", 505),
    ("another coding", P + b"Transfer-Encoding: gzip\r\n\r\n", 501),
    ("JSON that is too deep", P + b"Content-Type: application/json\r\nContent-Length: 400\r\n\r\n" + b"[" * 200 + b"]" * 200, 400),
    ("a key that comes twice", P + b"Content-Length: 15\r\n\r\n{\"a\":1,\"a\":2}  ", 400),
    ("bytes that are not UTF-8", b"GET /api/v1/job/%ff HTTP/1.1\r\n" + H + b"\r\n", 404),
    ("dots", b"GET /api/v1/../v1/ping HTTP/1.1\r\n" + H + b"\r\n", 404),
    ("dots in disguise", b"GET /api/v1/%2e%2e/ping HTTP/1.1\r\n" + H + b"\r\n", 404),
    ("a slash in disguise", b"GET /api/v1%2fping HTTP/1.1\r\n" + H + b"\r\n", 404),
    ("two slashes", b"GET //api/v1/ping HTTP/1.1\r\n" + H + b"\r\n", 404),
    ("TRACE", b"TRACE /api/v1/ping HTTP/1.1\r\n" + H + b"\r\n", 405),
]:
    got = status(data)
    check(f"{name}: {want}", got == want, got)
answer = raw(P + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /api/v1/ping HTTP/1.1\r\nHost: localhost\r\n\r\n")
check("what is hidden behind it is not answered", answer.count(b"HTTP/1.1 ") == 1, answer)
many = raw((b"GET /api/v1/ping HTTP/1.1\r\nHost: localhost\r\n\r\n") * 49 + G + b"\r\n")
check("fifty requests in one piece have fifty answers", many.count(b"HTTP/1.1 200") == 50, many.count(b"HTTP/1.1 200"))
s = connect()
for i in range(0, len(G), 3):
    s.sendall(G[i:i + 3])
s.sendall(b"\r\n")
check("a request in small pieces", b"200" in s.recv(100))
rng = random.Random(7)
for i in range(200):
    raw(bytes(rng.randrange(256) for _ in range(rng.randrange(1, 300))) + b"\r\n\r\n", 1 if i < 3 else 0.01)
    raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(rng.randrange(256) for _ in range(rng.randrange(1, 200))), 0.01)
check("after noise it serves", alive())
idle = []
try:
    for i in range(3000):
        idle.append(connect())
except OSError:
    pass
check(f"with {len(idle)} idle connections it serves", alive() and len(idle) > 500, len(idle))
for c in idle: c.close()
for t in threads: t.join()
for name, (got, took) in sorted(slow.items()):
    check(f"{name}: 408 after some ten seconds", got in (408, 0) and 8 < took < 30 and (got == 408 or name == "a byte"), (got, took))
check("its memory is bounded", rss_mb() < 100, rss_mb())
print(f"1..{n}")
sys.exit(bad > 0)
PY
exit $?
