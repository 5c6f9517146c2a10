/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar.h - reads a tar archive from front to back: ustar, GNU long names, pax
 *
 * The archive may be anybody's: every length is bounded before memory is taken, a header with a
 * wrong sum is an error, and names come as they are written (unpack.c decides what they may mean).
 */
#ifndef CONTAINER_TAR_H
#define CONTAINER_TAR_H

#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

/* Reads up to `len` bytes; 0 is the end, negative an error with its text in `err`. */
typedef ssize_t (*tar_read_fn)(void *ctx, void *bytes, size_t len, struct err *err);

struct tar_entry {
    const char *name, *link; /* valid until the next call */
    char type;               /* '0' file, '1' hard link, '2' symlink, '5' directory, others */
    mode_t mode;
    int64_t mtime;
    uint64_t size;   /* of the content */
    uint64_t offset; /* of the content in the archive */
};

struct tar {
    tar_read_fn read;
    void *ctx;
    uint64_t at;   /* bytes read of the archive */
    uint64_t left; /* of the present content, with its padding in `pad` */
    unsigned pad;
    uint64_t entries;
    struct str name, link;
};

void tar_open(struct tar *tar, tar_read_fn read, void *ctx);
void tar_close(struct tar *tar);

/* 1: an entry; 0: the end; negative: not an archive, cut off, over a bound. Skips unread content. */
int tar_next(struct tar *tar, struct tar_entry *out, struct err *err);
/* The content of the present entry, in pieces; 0 is its end. */
ssize_t tar_content(struct tar *tar, void *bytes, size_t len, struct err *err);

#endif
