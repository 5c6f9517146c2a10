#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""image.py - makes small images for tests: an OCI layout, a docker archive, and broken ones.

usage: image.py DIR

The root holds a shell and what it needs of this machine's own libraries. Layers: files; a change
with removals; a third with links.
"""
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile


def libraries(program):
    out = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    return sorted({w for line in out.splitlines() for w in line.split() if w.startswith("/")})


def tar_of(entries):
    """entries: (name, kind, content or target, mode)"""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, kind, what, mode in entries:
            info = tarfile.TarInfo(name)
            info.mode = mode
            info.mtime = 1700000000
            info.type = {"f": tarfile.REGTYPE, "d": tarfile.DIRTYPE, "l": tarfile.SYMTYPE,
                         "h": tarfile.LNKTYPE, "c": tarfile.CHRTYPE}[kind]
            if kind == "f":
                info.size = len(what)
                tar.addfile(info, io.BytesIO(what))
            else:
                info.linkname = what if kind in "lh" else ""
                tar.addfile(info)
    return data.getvalue()


def sha(data):
    return hashlib.sha256(data).hexdigest()


def base_layer():
    entries = [("bin", "d", None, 0o755), ("etc", "d", None, 0o755), ("tmp", "d", None, 0o1777),
               ("gone", "d", None, 0o755), ("gone/old", "f", b"old\n", 0o644),
               ("stays", "f", b"stays\n", 0o644), ("removed", "f", b"no\n", 0o644),
               ("etc/image", "f", b"layer one\n", 0o644), ("work", "d", None, 0o755),
               ("dev-left-out", "c", None, 0o666)]
    for program in ("sh", "cat", "ls", "id", "touch", "env", "pwd", "sleep"):
        path = os.path.realpath(shutil.which(program))
        entries.append((f"bin/{program}", "f", open(path, "rb").read(), 0o4755))
        for lib in libraries(path):
            entries.append((lib.lstrip("/"), "f", open(os.path.realpath(lib), "rb").read(), 0o755))
    seen, unique = set(), []
    for entry in entries:
        if entry[0] not in seen:
            seen.add(entry[0])
            unique.append(entry)
    return tar_of(unique)


def layout(path, layers, config_extra=None, spoil=None):
    blobs = os.path.join(path, "blobs", "sha256")
    os.makedirs(blobs)

    def put(data):
        name = sha(data)
        with open(os.path.join(blobs, name), "wb") as out:
            out.write(data)
        return name

    packed = [gzip.compress(layer, 1) for layer in layers]
    config = {"architecture": "amd64" if os.uname().machine == "x86_64" else "arm64", "os": "linux",
              "config": {"Env": ["PATH=/bin", "IN_IMAGE=yes", "SHARED=image"], "WorkingDir": "/work",
                         "Entrypoint": ["/bin/sh", "-c", "echo entry; exec \"$@\"", "entry"],
                         "Cmd": ["cat", "/etc/image"]},
              "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha(x) for x in layers]}}
    config.update(config_extra or {})
    config_data = json.dumps(config).encode()
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": {"digest": "sha256:" + put(config_data), "size": len(config_data),
                           "mediaType": "application/vnd.oci.image.config.v1+json"},
                "layers": [{"digest": "sha256:" + put(x), "size": len(x),
                            "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip"} for x in packed]}
    data = json.dumps(manifest).encode()
    index = {"schemaVersion": 2,
             "manifests": [{"digest": "sha256:" + put(data), "size": len(data),
                            "mediaType": "application/vnd.oci.image.manifest.v1+json",
                            "annotations": {"org.opencontainers.image.ref.name": "one"}}]}
    with open(os.path.join(path, "index.json"), "w") as out:
        json.dump(index, out)
    with open(os.path.join(path, "oci-layout"), "w") as out:
        out.write('{"imageLayoutVersion":"1.0.0"}')
    if spoil is not None:
        name = os.path.join(blobs, sha(packed[spoil]))
        bytes_ = bytearray(open(name, "rb").read())
        bytes_[len(bytes_) // 2] ^= 1
        open(name, "wb").write(bytes_)
    return config_data


def docker(path, layers, config_data):
    name = sha(config_data) + ".json"
    files = [(name, config_data)] + [(f"layer{i}/layer.tar", x) for i, x in enumerate(layers)]
    files.append(("manifest.json", json.dumps([{"Config": name, "RepoTags": ["test:latest"],
                                                "Layers": [f"layer{i}/layer.tar" for i in range(len(layers))]}]).encode()))
    with tarfile.open(path, "w") as tar:
        for file_name, data in files:
            info = tarfile.TarInfo(file_name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def main():
    top = sys.argv[1]
    one = base_layer()
    two = tar_of([("gone/.wh..wh..opq", "f", b"", 0o644), ("gone/new", "f", b"new\n", 0o644),
                  (".wh.removed", "f", b"", 0o644), ("etc/image", "f", b"layer two\n", 0o644)])
    three = tar_of([("outside", "l", "/etc", 0o777), ("outside/through-link", "f", b"inside\n", 0o644),
                    ("hard", "h", "stays", 0o644), ("a" * 120 + "/" + "b" * 60, "f", b"long\n", 0o644)])
    config = layout(os.path.join(top, "good"), [one, two, three])
    docker(os.path.join(top, "good.tar"), [one, two, three], config)
    layout(os.path.join(top, "spoilt"), [one, two], spoil=0)
    bad = {"dotdot": [("../../escaped", "f", b"x", 0o644)],
           "linkout": [("evil", "h", "../../../etc/passwd", 0o644)],
           "absolute": [("/etc/absolute", "f", b"x", 0o644)]}
    for name, entries in bad.items():
        layout(os.path.join(top, name), [tar_of(entries)])
    layout(os.path.join(top, "fewer"), [one], {"rootfs": {"type": "layers", "diff_ids": []}})
    with open(os.path.join(top, "junk.tar"), "wb") as out:
        out.write(b"this is not an archive" * 100)
    with open(os.path.join(top, "cut.tar"), "wb") as out:
        out.write(open(os.path.join(top, "good.tar"), "rb").read()[:1500000])


main()
