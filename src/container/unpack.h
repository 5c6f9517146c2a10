/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.h - one layer of an image, put over what the layers before it left in a directory
 *
 * Nothing outside the directory is read or written, whatever names and links the archive holds.
 * All files become ours; devices are left out; setuid and setgid bits are dropped.
 */
#ifndef CONTAINER_UNPACK_H
#define CONTAINER_UNPACK_H

#include "container/tar.h"

/* Opens the layer from its start again: it is read twice, removals first. */
typedef int (*unpack_again_fn)(void *ctx, struct err *err);

struct unpack {
    int root_fd;
    uint64_t bytes; /* written in all layers so far; bounded by LIMIT_IMAGE_BYTES */
    uint64_t left_out;
};

int unpack_layer(struct unpack *unpack, tar_read_fn read, unpack_again_fn again, void *ctx,
                 struct err *err);

/* A directory of `path` below root_fd, links resolved as if root_fd were "/"; made when absent. */
int unpack_dir(int root_fd, const char *path, struct err *err);

#endif
