/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blobs.h - the pieces of an image, by name: files of a directory, or of an archive that stays packed
 */
#ifndef CONTAINER_BLOBS_H
#define CONTAINER_BLOBS_H

#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "container/tar.h"
#include "sys/digest.h"

struct blobs {
    char *source;     /* as the user named it, for messages */
    int dir_fd;       /* an OCI layout; -1: an archive */
    int tar_fd;       /* an archive; -1: a directory */
    struct map parts; /* of an archive: name to struct part */
    /* Brings a piece into the directory that is not there yet; NULL: what is not there is missing. */
    int (*bring)(void *ctx, const char *name, struct err *err);
    void *ctx;
};

/* `path` is a directory or a tar archive. */
int blobs_open(struct blobs *blobs, const char *path, struct err *err);
void blobs_close(struct blobs *blobs);
bool blobs_has(const struct blobs *blobs, const char *name);

/* A whole small piece. */
int blobs_read(struct blobs *blobs, const char *name, size_t most, struct str *out,
               struct err *err);

/* A layer, unpacked on the way when it is gzip; both digests are known at its end. */
struct layer {
    int fd;
    uint64_t at, end, start;
    struct gz *gz; /* NULL: stored as it is */
    struct digest *packed, *plain;
    bool ended;
};
int layer_open(struct layer *layer, struct blobs *blobs, const char *name, struct err *err);
int layer_again(void *layer, struct err *err);                             /* from its start */
ssize_t layer_read(void *layer, void *bytes, size_t len, struct err *err); /* a tar_read_fn */
/* Reads what is left and compares; either may be NULL. "sha256:..." */
int layer_check(struct layer *layer, const char *packed, const char *plain, struct err *err);
void layer_close(struct layer *layer);

#endif
