/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mounts.h - what of the outside is seen inside
 */
#ifndef CONTAINER_MOUNTS_H
#define CONTAINER_MOUNTS_H

#include "base/err.h"
#include "container/run.h"

/* Mounts the root of a container on `root` and leaves a descriptor of it. */
int mounts_root(const char *lower, const char *stage, const char *named, const char *root,
                struct err *err);

/* /proc, /dev, /sys, names, home, what was asked for. */
int mounts_all(int root_fd, const struct run *run, struct err *err);

/* One, from a path outside to a path inside that is made when absent. */
int mounts_bind(int root_fd, const char *from, const char *to, bool readonly, struct err *err);

#endif
