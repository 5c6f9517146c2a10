/* SPDX-License-Identifier: Apache-2.0 */
/*
 * named.h - containers whose changes are kept until the job ends (--container-name)
 */
#ifndef CONTAINER_NAMED_H
#define CONTAINER_NAMED_H

#include "base/err.h"

struct named {
    char *dir;     /* upper/, work/, pid */
    int lock;      /* held until we execute the command */
    int user, mnt; /* namespaces of one that runs; -1: we are the first */
};

int named_open(struct named *named, const char *store, const char *name, struct err *err);
/* From now on others find our namespaces. */
int named_publish(const struct named *named, struct err *err);
void named_close(struct named *named);

#endif
