/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private.h - directories that a job has for itself lie over the node's, in a mount namespace of the task
 *
 * All of them are taken hold of, inside the namespace, before the first is put in place: one may hide another.
 */
#ifndef SPURSTEPD_PRIVATE_H
#define SPURSTEPD_PRIVATE_H

#include "base/err.h"
#include "base/limits.h"
#include "proto/step.pb-c.h"

enum { PRIVATE_MAX = LIMIT_PRIVATE_DIRS };

struct private_dirs {
    size_t count;
    bool shared;
    struct private_mount {
        const char *from, *path;
    } list[PRIVATE_MAX + 1];
};

/* What is to be done, none when the task has none. Borrows from the task. */
int private_plan(const StepTask *task, struct private_dirs *out, struct err *err);

/* In the child that becomes the task, while it is root. Takes no memory. 0 or an errno; *path: where. */
int private_enter(const struct private_dirs *dirs, const char **path);

/*
 * A file as the task sees it, as a path for us, on the heap, relative to *fd: a directory for the caller to close, or
 * AT_FDCWD.
 */
char *private_path(const StepTask *task, const char *path, int *fd);

#endif
