#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Calls operations of Slurm's API, and holds each answer against the facts in slurm_api.tsv: no field that the version
does not have, none missing, each of the right shape. Arguments: address, tokens by name (JSON), slurm_api.tsv.
"""
import http.client, json, sys, urllib.parse

base, tokens, facts = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
operations, objects = [], {}
for line in open(facts):
    kind, *rest = line.rstrip("\n").split("\t")
    if kind not in "OF":
        continue
    first, last = rest[2].split("-")
    if kind == "O":
        operations.append((rest[0], rest[1], rest[3], range(int(first), int(last) + 1)))
    else:
        name, field, _, shape, required = rest
        for v in range(int(first), int(last) + 1):
            objects.setdefault((v, name), {})[field] = (shape, required == "required")


class Check:
    def __init__(self, version):
        self.version, self.wrong = version, set()

    def say(self, where, what):
        self.wrong.add(f"{where}: {what}")

    def shape(self, where, value, shape):
        if shape.startswith("["):
            if not isinstance(value, list):
                return self.say(where, f"{value!r:.60} is not a list")
            for item in value:
                self.shape(where + "[]", item, shape[1:-1])
        elif shape.startswith("words("):
            if value not in shape[6:-1].split("|"):
                self.say(where, f"{value!r:.60} is not one of {shape[6:-1]:.60}")
        elif shape.startswith("set."):
            if not isinstance(value, dict) or set(value) != {"set", "infinite", "number"}:
                return self.say(where, f"{value!r:.60} is not {{set, infinite, number}}")
            self.shape(where + ".number", value["number"], shape[4:])
        elif shape in ("any", "map", "empty"):
            pass
        elif (self.version, shape) in objects:
            self.object(where, value, shape)
        else:
            good = {"text": lambda: isinstance(value, str), "bool": lambda: isinstance(value, bool),
                    "int": lambda: isinstance(value, int) and not isinstance(value, bool),
                    "num": lambda: isinstance(value, (int, float)) and not isinstance(value, bool)}[shape]()
            if not good:
                self.say(where, f"{value!r:.60} is not {shape}")

    def object(self, where, value, name):
        fields = objects[(self.version, name)]
        if not isinstance(value, dict):
            return self.say(where, f"{value!r:.60} is not an object")
        tree = {}
        for field, shape in fields.items():
            at = tree
            *path, last = field.split("/")
            for part in path:
                at = at.setdefault(part, {})
            at[last] = shape
        self.level(where, value, tree)

    def level(self, where, value, tree):
        # A real slurmrestd says of a peak which task and node had it, though its description does not.
        more = {"task", "node"} if {"type", "count"} <= set(value) else set()
        for key in value:
            if key not in tree and key not in more:
                self.say(f"{where}.{key}", "this version does not have it")
        for key, below in tree.items():
            if key not in value:
                self.say(f"{where}.{key}", "it is missing")
            elif isinstance(below, dict):
                if isinstance(value[key], dict):
                    self.level(f"{where}.{key}", value[key], below)
                else:
                    self.say(f"{where}.{key}", "is not an object")
            else:
                self.shape(f"{where}.{key}", value[key], below[0])


connection = http.client.HTTPConnection(urllib.parse.urlparse(base).netloc, timeout=60)


def call(who, method, path, body=None):
    headers = {"X-SLURM-USER-TOKEN": tokens[who], "Content-Type": "application/json"}
    connection.request(method, path, json.dumps(body) if body is not None else None, headers)
    answer = connection.getresponse()
    text = answer.read()
    try:
        return answer.status, json.loads(text)
    except ValueError:
        return answer.status, text.decode()



VERSIONS = (42, 43, 44, 45)
covered, failures, count = set(), [], 0


def ok(what, good, more=""):
    global count
    count += 1
    if not good:
        failures.append(what)
        print(f"# not so: {what} {more!s:.600}")


def run(version, method, path, body=None, who="admin", status=200, query="", **args):
    """One operation: its status, and its answer against the facts; returns the answer."""
    answers = [a for m, p, a, vs in operations if (m, p) == (method, path) and version in vs]
    real = path.replace("{v}", f"v0.0.{version}")
    for name, value in args.items():
        real = real.replace("{" + name + "}", urllib.parse.quote(str(value)))
    got, answer = call(who, method, real + ("?" + query if query else ""), body)
    ok(f"{method} {real} by {who} is {status}", got == status, f"{got} {answer.get('errors') if isinstance(answer, dict) else answer}")
    if got == 200 and answers:
        covered.add((method, path, version))
        check = Check(version)
        check.object("", answer, answers[0])
        ok(f"{method} {real} has the shape of v0.0.{version}", not check.wrong, sorted(check.wrong)[:6])
    return answer if isinstance(answer, dict) else {}


def finish(prefix, known=()):
    """Every operation under a prefix was run; `known` are those that cannot succeed here."""
    for method, path, _, versions in operations:
        for version in versions:
            if path.startswith(prefix) and (method, path) not in known:
                ok(f"{method} {path} was run for v0.0.{version}", (method, path, version) in covered)
    print(f"# {count} checks")
    sys.exit(1 if failures or count < 50 else 0)
