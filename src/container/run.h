/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h - becomes a command inside an image
 */
#ifndef CONTAINER_RUN_H
#define CONTAINER_RUN_H

#include "base/err.h"

struct run {
    const char *image;   /* a source or a name; NULL: `bundle` */
    const char *bundle;  /* an OCI bundle */
    const char *mounts;  /* SRC[:DST[:FLAG+FLAG]],... */
    const char *visible; /* paths that must be seen under their own names (the batch script) */
    const char *workdir;
    const char *keep_env; /* names whose value of outside wins over the image's */
    const char *name;     /* changes are kept under this name until the job ends */
    bool mount_home, entrypoint, readonly, remap_root;
};

/* Returns only on failure. `argv` may be empty: the image's own command. */
int run_inside(const struct run *run, char *const *argv, struct err *err);

#endif
