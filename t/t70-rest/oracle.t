#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
#
# What our HTTP/1.1 parser takes, llhttp (PyPI httptools) and h11 take too, with the same fields and body: on requests of our
# own and on mutations of them. Skipped without them: pip install httptools h11.
import os
import random
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))
build = os.environ.get("SPUR_BUILD", os.path.join(root, "build"))
try:
    import httptools
except ImportError:
    print("1..1\nok 1 - # skip httptools (PyPI) is not installed")
    sys.exit(0)
try:
    import h11
except ImportError:
    h11 = None

seeds = [open(os.path.join(root, "fuzz/corpus/http", f), "rb").read() for f in sorted(os.listdir(os.path.join(root, "fuzz/corpus/http")))]
TRICKS = [b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b" folded\r\n",
          b"0\r\n\r\n", b"5\r\nhello\r\n", b"Host: b\r\n", b"+", b"0x", b"\x80", b"chunked, ", b"HTTP/1.0"]


def mutate(rng, data):
    data = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            data[at:at] = rng.choice(TRICKS)
        elif kind == 1 and data:
            del data[at:at + rng.randint(1, 4)]
        elif kind == 2 and at < len(data):
            data[at] = rng.randrange(256)
        else:
            other = rng.choice(seeds)
            data[at:at] = other[:rng.randint(1, max(1, len(other)))]
    return bytes(data)


class Read:
    def __init__(self):
        self.fields, self.body, self.done, self.head, self.url = [], b"", False, False, b""

    def on_url(self, url): self.url += url if not self.done else b""
    def on_headers_complete(self): self.head = True
    def on_header(self, name, value):  # not those behind the body
        if not self.head: self.fields.append((name.lower(), value.strip()))
    def on_body(self, body):
        if not self.done: self.body += body
    def on_message_complete(self): self.done = True


def llhttp(data):
    read = Read()
    try:
        httptools.HttpRequestParser(read).feed_data(data)
    except httptools.HttpParserUpgrade:
        pass
    except Exception as why:
        return None if not read.done else read
    return read


rng = random.Random(18)
cases = seeds + [mutate(rng, rng.choice(seeds)) for _ in range(20000)]
tool = subprocess.Popen([os.path.join(build, "src/spurrestd/http-read")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
out = tool.communicate(b"".join(len(c).to_bytes(4, "little") + c for c in cases))[0]
answers = out.split(b"\x1e")[:-1]
bad, taken = [], 0
for case, answer in zip(cases, answers):
    if not answer.startswith(b"ok"):
        continue
    taken += 1
    _, url, body, *fields = answer.split(b"\x1f")
    ours = [tuple(f.split(b"\x1d", 1)) for f in fields]
    theirs = llhttp(case)
    if theirs is None or not theirs.done or theirs.body != body or theirs.fields != ours or theirs.url != url:
        bad.append((case, answer, theirs and (theirs.url, theirs.fields, theirs.body, theirs.done)))
    elif h11:
        connection = h11.Connection(h11.SERVER)
        try:
            connection.receive_data(case)
            event = connection.next_event()
            if not isinstance(event, h11.Request) or [(n, v) for n, v in event.headers] != ours:
                bad.append((case, answer, event))
        except h11.RemoteProtocolError as why:
            bad.append((case, answer, why))
print(("ok" if not bad and taken > 100 and len(answers) == len(cases) else "not ok"), f"1 - {taken} of {len(cases)} were taken, and all were read alike")
for one in bad[:5]:
    print("#", one)
print("1..1")
sys.exit(1 if bad or taken <= 100 else 0)
