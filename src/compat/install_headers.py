#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs the generated headers: install_headers.py FROM INCLUDEDIR (relative to the prefix)."""
import os
import shutil
import sys

source, where = sys.argv[1], sys.argv[2]
prefix = os.environ["MESON_INSTALL_DESTDIR_PREFIX"]
target = os.path.join(prefix, where, "slurm")
os.makedirs(target, exist_ok=True)
for name in sorted(os.listdir(os.path.join(source, "slurm"))):
    shutil.copy(os.path.join(source, "slurm", name), target)
