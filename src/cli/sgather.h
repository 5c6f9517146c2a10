/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sgather.h - a directory that comes from a node, as it is made here
 */
#ifndef CLI_SGATHER_H
#define CLI_SGATHER_H

#include "base/err.h"
#include "base/vec.h"
#include "proto/copy.pb-c.h"

struct tree_later;

struct tree {
    const char *root; /* where it is made; the caller gives it its name when it is whole */
    int fd;           /* of `root`; -1: no part came yet */
    int file;         /* that is being written; -1: none */
    bool preserve;
    VEC(struct tree_later *) later; /* links, and modes of directories: when all is there */
};

/* An entry begins, when the part has a name. */
int tree_begin(struct tree *tree, const CopyPart *part, const void *bytes, size_t len,
               struct err *err);
int tree_write(struct tree *tree, const void *bytes, size_t len, struct err *err);
int tree_end(struct tree *tree, struct err *err);
void tree_drop(struct tree *tree); /* removes what was made */
void tree_done(struct tree *tree);

#endif
