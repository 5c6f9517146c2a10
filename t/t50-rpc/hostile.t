#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
#
# Frames that mean harm: each is answered by one clear error or a closed connection, in bounded memory
# and time, and the server goes on serving others.
# groups: asan
import os
import random
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from echo import (CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, GRPC_STATUS, HEADERS, PING,
                  PREFACE, PRIORITY, RST, SETTINGS, WINDOW, Server, begin, done_testing, equal, frame, headers,
                  literal, ok, read_frames, request, sanitized, token)

HANDSHAKE_MS = 1500
GROWTH_KB = 64 * 1024 * (4 if sanitized else 1)
server = Server("--handshake", str(HANDSHAKE_MS), "--keepalive", "3000")


def served(limit=2.0 if sanitized else 1.0):
    """A well-behaved call is answered, and soon."""
    start = time.time()
    with server.connect() as sock:
        begin(sock)
        sock.sendall(request(1, b"\x0a\x02hi"))
        frames, _ = read_frames(sock, 10, lambda f: f[0] == HEADERS and f[1] & END_STREAM)
    good = any(f[0] == DATA and f[3].endswith(b"hi") for f in frames)
    return good and time.time() - start < limit


def error_of(frames):
    """The code in a GOAWAY or RST_STREAM."""
    for kind, _, _, payload in frames:
        if kind == GOAWAY:
            return int.from_bytes(payload[4:8], "big")
        if kind == RST:
            return int.from_bytes(payload[:4], "big")
    return None


def grpc_status(frames):
    for kind, _, _, payload in frames:
        if kind == HEADERS and GRPC_STATUS in payload:
            value = payload.split(GRPC_STATUS)[1]
            return int(value[1:1 + value[0]])
    return None


before = server.memory_kb()


def attack(name, what, expect_closed=True, seconds=10.0):
    start = time.time()
    sock = server.connect()
    frames, closed = [], False
    try:
        frames, closed = what(sock) or read_frames(sock, seconds)
    except (BrokenPipeError, ConnectionResetError):
        closed = True
    sock.close()
    if expect_closed:
        ok(f"{name}: the connection is closed", closed, f"frames: {frames[:5]}")
    ok(f"{name}: in time", time.time() - start < seconds + 2)
    ok(f"{name}: others are served", server.alive() and served())
    grown = server.memory_kb() - before
    ok(f"{name}: memory", grown < GROWTH_KB, f"grew by {grown} KB")
    return frames


# ---- not HTTP/2 at all ----
def truncated(sock):
    sock.sendall(PREFACE[:10])
    sock.shutdown(socket.SHUT_WR)


def zeros(sock):
    sock.sendall(bytes(1 << 20))


def http1(sock):
    sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")


def random_bytes(sock):
    rng = random.Random(1)
    for _ in range(300):
        with server.connect() as other:
            try:
                other.sendall(rng.randbytes(rng.randrange(1, 5000)))
            except OSError:
                pass
    begin(sock)
    sock.sendall(rng.randbytes(1 << 16))


attack("a truncated preface", truncated)
attack("zeros", zeros)
attack("HTTP/1.1", http1)
attack("random bytes", random_bytes)


# ---- broken frames ----
def huge_frame(sock):
    begin(sock)
    sock.sendall(frame(DATA, 0, 1, b"x", length=0xffffff))


def random_frames(sock):
    """Well-formed frame headers with random contents, on many connections."""
    rng = random.Random(2)
    for _ in range(200):
        with server.connect() as other:
            try:
                begin(other)
                for _ in range(rng.randrange(1, 60)):
                    body = rng.randbytes(rng.randrange(0, 200))
                    if rng.random() < 0.3:
                        body = headers(**{"x-" + str(rng.randrange(9)): "v" * rng.randrange(90)})
                    other.sendall(frame(rng.randrange(0, 12), rng.randrange(0, 256),
                                        rng.randrange(0, 12), body))
            except OSError:
                pass
    begin(sock)
    sock.sendall(frame(HEADERS, END_HEADERS, 1, rng.randbytes(500)))


def length_4g(sock):
    begin(sock)
    sock.sendall(frame(HEADERS, END_HEADERS, 1, headers()) +
                 frame(DATA, 0, 1, b"\x00\xff\xff\xff\xff" + b"x" * 100))
    return read_frames(sock, 5, lambda f: f[0] == RST)


def compressed(sock):
    begin(sock)
    sock.sendall(frame(HEADERS, END_HEADERS, 1, headers()) +
                 frame(DATA, END_STREAM, 1, b"\x01\x00\x00\x00\x02hi"))
    return read_frames(sock, 5, lambda f: f[0] == HEADERS)


def cut_message(sock):
    begin(sock)
    sock.sendall(frame(HEADERS, END_HEADERS, 1, headers()) +
                 frame(DATA, END_STREAM, 1, b"\x00\x00\x00\x00\x09half"))
    return read_frames(sock, 5, lambda f: f[0] == HEADERS)


def no_message(sock):
    begin(sock)
    sock.sendall(frame(HEADERS, END_HEADERS | END_STREAM, 1, headers()))
    return read_frames(sock, 5, lambda f: f[0] == HEADERS)


def not_protobuf(sock):
    begin(sock)
    sock.sendall(request(1, b"\xff\xff\xff\xff"))
    return read_frames(sock, 5, lambda f: f[0] == HEADERS)


def big_metadata(sock):
    begin(sock)
    block = headers() + b"".join(literal(f"x-{i}", "v" * 1000) for i in range(40))
    sock.sendall(frame(HEADERS, 0, 1, block[:16000]) + frame(CONTINUATION, 0, 1, block[16000:32000]) +
                 frame(CONTINUATION, END_HEADERS, 1, block[32000:]))
    return read_frames(sock, 5, lambda f: f[0] in (HEADERS, GOAWAY))


def get(sock):
    begin(sock)
    block = b"".join(literal(n, v) for n, v in (
        (":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "x")))
    sock.sendall(frame(HEADERS, END_HEADERS | END_STREAM, 1, block))
    return read_frames(sock, 5, lambda f: f[0] == HEADERS)


attack("a frame of 16 MB", huge_frame)
attack("random frames", random_frames)
frames = attack("a message of 4 GiB", length_4g, False)
equal("a message of 4 GiB: RESOURCE_EXHAUSTED", grpc_status(frames), 8)
frames = attack("a compressed message", compressed, False)
equal("a compressed message: UNIMPLEMENTED", grpc_status(frames), 12)
frames = attack("a message cut short", cut_message, False)
equal("a message cut short: INVALID_ARGUMENT", grpc_status(frames), 3)
frames = attack("a call without a message", no_message, False)
equal("a call without a message: INVALID_ARGUMENT", grpc_status(frames), 3)
frames = attack("a message that is no message", not_protobuf, False)
equal("a message that is no message: INVALID_ARGUMENT", grpc_status(frames), 3)
frames = attack("40 KB of metadata", big_metadata, False)
equal("40 KB of metadata: RESOURCE_EXHAUSTED", grpc_status(frames), 8)
frames = attack("GET", get, False)
equal("GET: INVALID_ARGUMENT", grpc_status(frames), 3)


# ---- floods ----
def send_until_closed(sock, chunk, most=2000):
    """Sends the chunk again and again; returns how often before the server had enough."""
    sock.settimeout(5)
    for n in range(most):
        try:
            sock.sendall(chunk(n) if callable(chunk) else chunk)
        except OSError:
            return n
    return most


def flood(chunk):
    def run(sock):
        begin(sock)
        send_until_closed(sock, chunk)
        return read_frames(sock, 5)
    return run


def resets(n):
    return b"".join(frame(HEADERS, END_HEADERS, 2 * i + 1, headers()) + frame(RST, 0, 2 * i + 1, bytes(4))
                    for i in range(n * 200, n * 200 + 200))


def endless_headers(sock):
    begin(sock)
    sock.sendall(frame(HEADERS, 0, 1, headers()))
    send_until_closed(sock, frame(CONTINUATION, 0, 1, literal("x", "y" * 100) * 10))
    return read_frames(sock, 5)


attack("rapid reset", flood(resets))
attack("SETTINGS flood", flood(frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 1 << 20)) * 100))
attack("empty SETTINGS flood", flood(frame(SETTINGS, 0, 0) * 100))
attack("PING flood", flood(frame(PING, 0, 0, bytes(8)) * 100))
attack("PRIORITY flood", flood(frame(PRIORITY, 0, 3, struct.pack(">IB", 0, 1)) * 100))
attack("WINDOW_UPDATE flood", flood(frame(WINDOW, 0, 0, struct.pack(">I", 1)) * 1000))
attack("CONTINUATION flood", endless_headers)
attack("empty DATA flood", flood(lambda n: (frame(HEADERS, END_HEADERS, 1, headers()) if n == 0 else b"") +
                                 frame(DATA, 0, 1) * 200))


# ---- slowness ----
def one_byte_at_a_time(text):
    def run(sock):
        sock.settimeout(0.2)
        start = time.time()
        for byte in text:
            try:
                sock.sendall(bytes([byte]))
                if not sock.recv(65536):
                    return [], True
            except socket.timeout:
                pass
            if time.time() - start > 8:
                return [], False
        return None
    return run


attack("one byte at a time: the preface", one_byte_at_a_time(PREFACE * 9), seconds=12)


def slow_headers(sock):
    begin(sock)
    whole = frame(HEADERS, END_HEADERS, 1, headers())
    return one_byte_at_a_time(whole)(sock)


def slow_body(sock):
    """The body never ends: its call is refused in time; the connection may stay."""
    begin(sock)
    sock.sendall(frame(HEADERS, END_HEADERS, 1, headers()) + frame(DATA, 0, 1, b"\x00\x00\x00\x10\x00x"))
    return read_frames(sock, 6, lambda f: f[0] == HEADERS and f[2] == 1)


attack("one byte at a time: headers", slow_headers, seconds=12)
frames = attack("a body that does not come", slow_body, False)
equal("a body that does not come: DEADLINE_EXCEEDED", grpc_status(frames), 4)


def deaf(sock):
    """Asks for much on many streams and reads nothing."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    begin(sock)
    body = b"\x10\xff\xff\x03" + b"\x1a\x80\x80\x04" + b"x" * 65536  # 65535 times 64 KB
    message = b"\x00" + struct.pack(">I", len(body)) + body
    for i in range(40):
        sock.sendall(frame(HEADERS, END_HEADERS, 2 * i + 1, headers("/echo.Echo/Count")))
        for at in range(0, len(message), 16000):
            last = at + 16000 >= len(message)
            sock.sendall(frame(DATA, END_STREAM if last else 0, 2 * i + 1, message[at:at + 16000]))
    time.sleep(2)
    return [], True


def hoarder(sock):
    """Begins many large messages and ends none."""
    begin(sock)
    read_frames(sock, 0.3)
    sock.settimeout(1)
    try:
        sock.sendall(frame(WINDOW, 0, 0, struct.pack(">I", 1 << 30)))
        for i in range(400):
            sock.sendall(frame(HEADERS, END_HEADERS, 2 * i + 1, headers()) +
                         frame(DATA, 0, 2 * i + 1, b"\x00\x00\xff\xff\xff" + b"x" * 16000))
            for _ in range(14):
                sock.sendall(frame(DATA, 0, 2 * i + 1, b"x" * 16000))
    except OSError:
        pass
    return [], True


attack("a client that does not read", deaf)
attack("a client that never ends its messages", hoarder)

# ---- crowds ----
crowd = []
for i in range(1000):
    sock = server.connect()
    if i % 2:
        begin(sock)
    crowd.append(sock)
ok("1,000 idle connections: others are served", served())
grown = server.memory_kb() - before
ok("1,000 idle connections: memory", grown < GROWTH_KB, f"grew by {grown} KB")
time.sleep(HANDSHAKE_MS / 1000 + 1)
gone = sum(read_frames(sock, 0.01)[1] for sock in crowd)
ok("1,000 idle connections: dropped when no call came", gone >= 990, f"{gone} gone")
for sock in crowd:
    sock.close()

grown = server.memory_kb() - before
ok("memory at the end", grown < GROWTH_KB, f"grew by {grown} KB")
equal("the server ends in order", server.stop(), 0)
ok("no sanitizer complained", "Sanitizer" not in server.text and "runtime error" not in server.text,
   server.text[-2000:])

# ---- silence ----
server = Server("--keys", "DIR", "--handshake", "700", "--keepalive", "400", "--idle", "1200")
with open(os.path.join(server.dir, "secret"), "rb") as f:
    node = token(f.read(), node="n1")


def silent(first, seconds):
    """Sends `first` and then nothing, not even answers to PING; how long the server bears it."""
    with server.connect() as sock:
        sock.sendall(first)
        start = time.time()
        frames, closed = read_frames(sock, seconds)
        return (time.time() - start if closed else None), sum(f[0] == PING for f in frames)


start = PREFACE + frame(SETTINGS, 0, 0)
chat = frame(HEADERS, END_HEADERS, 1, headers("/echo.Echo/Chat"))
node_chat = frame(HEADERS, END_HEADERS, 1, headers("/echo.Echo/Chat", authorization="Bearer " + node))
took, _ = silent(b"\x16\x03\x01", 5)
ok("a TLS handshake that does not go on", took and took < 3, took)
took, _ = silent(start, 5)
ok("a connection without a call", took and took < 3, took)
took, _ = silent(start + request(1), 5)
ok("a connection after its call, when it is idle", took and took < 4, took)
took, pings = silent(start + node_chat, 5)
ok("a node that does not answer a PING", took and took < 4 and pings >= 1, took, pings)
took, pings = silent(start + chat, 3)
ok("a command with an open stream may be stopped for a while", took is None and pings >= 1, took, pings)
equal("and the server ends in order", server.stop(), 0)

# ---- a full house ----
server = Server("--connections", "20", "--handshake", "60000")
crowd = [server.connect() for _ in range(40)]
ok("a full server makes room for who calls", served())
for sock in crowd:
    sock.close()
equal("and ends in order", server.stop(), 0)
done_testing()
