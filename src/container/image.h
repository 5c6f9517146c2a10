/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.h - images of a user, unpacked once and kept: import, list, remove, find
 *
 * The store is $SPUR_IMAGE_DIR, else ~/.local/share/spur/images, else /var/tmp/spur-images-UID.
 * sha256-HEX/ is one image, named by the digest of its configuration: rootfs/ the files, stage/ an
 * empty directory to mount on, config.json. names/NAME is a link to one. An image appears whole:
 * it is unpacked under another name and renamed; a lock keeps two imports apart.
 */
#ifndef CONTAINER_IMAGE_H
#define CONTAINER_IMAGE_H

#include <jansson.h>

#include "base/limits.h"
#include "container/blobs.h"

struct image {
    char *dir;      /* of the store */
    json_t *config; /* the image's own: Env, WorkingDir, Entrypoint, Cmd, User */
};
void image_done(struct image *image);

/* The store's directory, made when absent; freed by the caller. */
char *image_store(struct err *err);

/*
 * A name in the store, or a source: a path, oci:DIR[:TAG], docker-archive:FILE, http://HOST[:PORT]/NAME[:TAG].
 * A source is unpacked on first use. `name` also gives it that name; NULL: none.
 */
int image_get(const char *source, const char *name, struct image *out, struct err *err);

int image_list(struct str *out, struct err *err); /* a table */
int image_remove(const char *name, struct err *err);

/* What a manifest names. */
struct manifest {
    char *config;                      /* name of the piece */
    char *config_digest;               /* "sha256:..."; NULL: not said */
    char *layers[LIMIT_IMAGE_LAYERS];  /* names of the pieces */
    char *digests[LIMIT_IMAGE_LAYERS]; /* of the pieces; NULL: not said */
    size_t count;
};
int manifest_read(struct blobs *blobs, const char *tag, struct manifest *out, struct err *err);
void manifest_done(struct manifest *manifest);

/* Fetches an image to `dir` as an OCI layout. `source` begins with http:// */
int registry_fetch(const char *source, const char *dir, struct err *err);

#endif
