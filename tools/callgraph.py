# SPDX-License-Identifier: Apache-2.0
"""callgraph.py - which object file of a folder uses symbols of which other.

check-layers and shape share it. The build directory says what was compiled (compile_commands.json) and
`nm` says which symbols each object defines and needs, so calls through macros and inline functions count,
and calls through pointers do not.
"""
import json
import os
import pathlib
import subprocess

root = pathlib.Path(__file__).resolve().parent.parent


def objects(build):
    """Source (relative to the tree) → object file, for product code in src/."""
    found = {}
    build = pathlib.Path(build)
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(os.path.normpath(pathlib.Path(entry["directory"]) / entry["file"]))
        try:
            name = source.relative_to(root)
        except ValueError:
            continue
        made = pathlib.Path(entry["directory"]) / entry["output"]
        if name.parts[0] == "src" and "test" not in name.parts and name.suffix == ".c":
            if made.exists() and str(name) not in found:
                found[str(name)] = str(made)
    return found


def is_measured(build):
    """Is it a build by gcc without sanitizers?"""
    for entry in json.loads((pathlib.Path(build) / "compile_commands.json").read_text()):
        if "clang" in entry["command"].split("-I")[0] or "-fsanitize" in entry["command"]:
            return False
    return True


def symbols(found):
    """Source → (defined, needed)."""
    sources = sorted(found)
    out = subprocess.run(["nm", "-A", "-P", "-g"] + [found[s] for s in sources], capture_output=True,
                         text=True, check=True).stdout
    of = {found[s]: s for s in sources}
    table = {s: (set(), set()) for s in sources}
    for line in out.splitlines():
        name, rest = line.split(": ", 1)
        words = rest.split()
        table[of[name]][words[1] in "Uwv"].add(words[0])
    return table


def edges(table, folder):
    """(user, used) → symbols, among the files below src/FOLDER/."""
    inside = [s for s in table if s.startswith(f"src/{folder}/")]
    home = {symbol: s for s in inside for symbol in table[s][0]}
    uses = {}
    for source in inside:
        for symbol in table[source][1]:
            other = home.get(symbol)
            if other and other != source:
                uses.setdefault((source, other), set()).add(symbol)
    return inside, uses


def largest_cycle(files, uses):
    """The largest set of files that can all reach each other (Tarjan, without recursion)."""
    ahead = {f: [] for f in files}
    for user, used in uses:
        ahead[user].append(used)
    index, low, stack, on, best, count = {}, {}, [], set(), [], 0
    for start in files:
        if start in index:
            continue
        work = [(start, iter(ahead[start]))]
        index[start] = low[start] = count
        count += 1
        stack.append(start)
        on.add(start)
        while work:
            node, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = count
                    count += 1
                    stack.append(other)
                    on.add(other)
                    work.append((other, iter(ahead[other])))
                    break
                if other in on:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = []
                    while True:
                        other = stack.pop()
                        on.discard(other)
                        group.append(other)
                        if other == node:
                            break
                    if len(group) > len(best):
                        best = group
    return sorted(best)
