# SPDX-License-Identifier: Apache-2.0
"""echo.py - what the tests of this folder share: TAP, the echo server, tokens, raw HTTP/2 frames."""
import base64
import hashlib
import hmac
import json
import os
import resource
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))
build = os.environ.get("SPUR_BUILD", os.path.join(root, "build"))
sanitized = "asan" in os.path.basename(build)
count = bad = 0


def ok(name, good, *why):
    global count, bad
    count += 1
    bad += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)
    if not good:
        for line in why:
            print(f"# {line}", flush=True)
    return good


def equal(name, got, wanted):
    return ok(name, got == wanted, f"got:    {got!r}", f"wanted: {wanted!r}")


def done_testing():
    print(f"1..{count}", flush=True)
    sys.exit(1 if bad else 0)


def skip_all(why):
    print(f"1..1\nok 1 - # skip {why}", flush=True)
    sys.exit(0)


class Server:
    """An echo server in a directory of its own, on a unix socket, a port of loopback (`port`), and
    before them (`ports`) the addresses that follow the options in args; DIR means its directory."""

    def __init__(self, *args, env=None):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.dir = tempfile.mkdtemp(prefix="spur-rpc.")
        self.socket = os.path.join(self.dir, "s")
        self.log = open(os.path.join(self.dir, "log"), "w+")
        args = [a.replace("DIR", self.dir) for a in args]
        self.process = subprocess.Popen(
            [os.path.join(build, "src/rpc/echo-server"), *args, "unix:" + self.socket,
             "127.0.0.1:0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
            text=True, env={**os.environ, **(env or {})})
        self.ports = []
        for line in self.process.stdout:
            if line.startswith("listening"):
                self.ports.append(int(line.split()[1]))
            elif line.strip() == "ready":
                break
        self.port = self.ports[-1]

    def connect(self, timeout=10):
        sock = socket.create_connection(("127.0.0.1", self.port), timeout)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def alive(self):
        return self.process.poll() is None

    def memory_kb(self):
        with open(f"/proc/{self.process.pid}/status") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))

    def stop(self):
        """Ends it in order; returns its exit code."""
        self.process.stdin.close()
        try:
            code = self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = -9
        self.log.seek(0)
        self.text = self.log.read()
        shutil.rmtree(self.dir)
        return code


def client(*args, **env):
    """Runs echo-client; returns its exit code and everything it printed."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("SPUR_", "SLURM_"))}
    done = subprocess.run([os.path.join(build, "src/client/echo-client"), *args], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                          env={**clean, **env})
    return done.returncode, done.stdout.strip()


def b64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token(secret, **claims):
    claims.setdefault("exp", int(time.time()) + 60)
    head = b64url(json.dumps({"alg": "HS256", "typ": "JWT"}).encode())
    text = head + "." + b64url(json.dumps(claims).encode())
    return text + "." + b64url(hmac.new(secret, text.encode(), hashlib.sha256).digest())


# ---- HTTP/2 by hand ----
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, END_HEADERS = 1, 4


# "grpc-status" as HPACK's Huffman code has it: what a block of headers is searched for.
GRPC_STATUS = int("100110" "101100" "101011" "00100" "010110" "01000" "01001" "00011" "01001" "101101"
                  "01000" "1111", 2).to_bytes(8, "big")


def frame(kind, flags, stream, payload=b"", length=None):
    length = len(payload) if length is None else length
    return struct.pack(">I", length)[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    name, value = name.encode(), value.encode()
    out = b"\x00"
    for text in (name, value):
        if len(text) < 127:
            out += bytes([len(text)])
        else:
            rest, out = len(text) - 127, out + b"\x7f"
            while rest > 127:
                out, rest = out + bytes([rest & 127 | 128]), rest >> 7
            out += bytes([rest])
        out += text
    return out


def headers(path="/echo.Echo/Say", **more):
    block = b"".join(literal(n, v) for n, v in (
        (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "x"),
        ("content-type", "application/grpc"), ("te", "trailers")))
    return block + b"".join(literal(n.replace("_", "-"), v) for n, v in more.items())


def request(stream, message=b"", path="/echo.Echo/Say"):
    return (frame(HEADERS, END_HEADERS, stream, headers(path)) +
            frame(DATA, END_STREAM, stream, b"\x00" + struct.pack(">I", len(message)) + message))


def begin(sock):
    sock.sendall(PREFACE + frame(SETTINGS, 0, 0))


def read_frames(sock, seconds, until=None):
    """What the server says, as (kind, flags, stream, payload), until it closes or `until` is true."""
    data, frames, closed = b"", [], False
    end = time.time() + seconds
    while time.time() < end and not (until and any(until(f) for f in frames)):
        sock.settimeout(max(0.01, end - time.time()))
        try:
            more = sock.recv(65536)
        except socket.timeout:
            break
        except OSError:
            closed = True
            break
        if not more:
            closed = True
            break
        data += more
        while len(data) >= 9:
            length = int.from_bytes(data[:3], "big")
            if len(data) < 9 + length:
                break
            frames.append((data[3], data[4], int.from_bytes(data[5:9], "big"), data[9:9 + length]))
            data = data[9 + length:]
    return frames, closed
