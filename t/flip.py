# SPDX-License-Identifier: Apache-2.0
"""flip.py PID TEXT: flips a bit of the last character of TEXT wherever the memory of the process holds it.

So a test plants what a bad memory cell or a stray write does. Prints how many places it found.
"""
import os
import sys


def places(mem, begin, end, text):
    mem.seek(begin)
    try:
        block = mem.read(end - begin)
    except OSError:
        return
    at = block.find(text)
    while at >= 0:
        yield begin + at
        at = block.find(text, at + 1)


def main():
    pid, text = sys.argv[1], sys.argv[2].encode()
    found = []
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as mem, open(f"/proc/{pid}/maps") as maps:
        for line in maps:
            span, flags, _, _, inode = line.split()[:5]
            begin, end = (int(part, 16) for part in span.split("-"))
            if flags.startswith("rw") and inode == "0":
                found += places(mem, begin, end, text)
        for place in found:
            mem.seek(place + len(text) - 1)
            mem.write(bytes([text[-1] ^ 1]))
    print(len(found))
    return 0 if found else 1


sys.exit(main())
