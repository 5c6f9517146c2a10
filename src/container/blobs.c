/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blobs.c - the pieces of an image, by name: files of a directory, or of an archive that stays packed
 */
#include "container/blobs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/limits.h"
#include "sys/files.h"

enum { IN_BYTES = 64 * 1024, GZIP_WINDOW = 15 + 16 };

struct part {
    uint64_t offset, size;
};

/* ---- where they are ---- */

struct reader {
    int fd;
    uint64_t at;
};

static ssize_t read_on(void *ctx, void *bytes, size_t len, struct err *err)
{
    struct reader *reader = ctx;
    ssize_t got = pread(reader->fd, bytes, len, (off_t)reader->at);

    if (got < 0)
        return err_errno(err, errno, "reading");
    reader->at += (uint64_t)got;
    return got;
}

/* Headers only: contents are jumped over. */
static int index_archive(struct blobs *blobs, struct err *err)
{
    struct reader reader = { .fd = blobs->tar_fd };
    struct tar_entry entry;
    struct tar tar;
    int code;

    tar_open(&tar, read_on, &reader);
    while ((code = tar_next(&tar, &entry, err)) > 0) {
        const char *name = entry.name;
        while (str_starts(name, "./"))
            name += 2;
        if (entry.type != '0')
            continue;
        struct part *part = NEW(struct part);
        *part = (struct part){ .offset = entry.offset, .size = entry.size };
        free(map_put(&blobs->parts, name, part));
        reader.at += entry.size + tar.pad;
        tar.at += entry.size + tar.pad;
        tar.left = tar.pad = 0;
    }
    tar_close(&tar);
    return code;
}

int blobs_open(struct blobs *blobs, const char *path, struct err *err)
{
    struct stat info;

    *blobs = (struct blobs){ .dir_fd = -1, .tar_fd = -1, .source = mem_strdup(path) };
    map_init(&blobs->parts);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &info) < 0)
        return err_errno(err, errno, "image %s", path);
    if (S_ISDIR(info.st_mode)) {
        blobs->dir_fd = fd;
        return 0;
    }
    blobs->tar_fd = fd;
    if (!S_ISREG(info.st_mode))
        return err_set(err, ERR_INVALID, "image %s is neither a file nor a directory", path);
    return index_archive(blobs, err) < 0 ? err_wrap(err, "image %s", path) : 0;
}

void blobs_close(struct blobs *blobs)
{
    map_each (entry, &blobs->parts)
        free(entry->value);
    map_done(&blobs->parts);
    file_close(&blobs->dir_fd);
    file_close(&blobs->tar_fd);
    free(blobs->source);
}

bool blobs_has(const struct blobs *blobs, const char *name)
{
    if (blobs->dir_fd < 0)
        return map_get(&blobs->parts, name) != NULL;
    return faccessat(blobs->dir_fd, name, R_OK, 0) == 0;
}

/* A descriptor of its own, and where in it the piece lies. */
static int find(struct blobs *blobs, const char *name, struct part *out, struct err *err)
{
    struct stat info;

    if (blobs->dir_fd < 0) {
        const struct part *part = map_get(&blobs->parts, name);
        if (!part)
            return err_set(err, ERR_NOT_FOUND, "image %s has no '%s'", blobs->source, name);
        *out = *part;
        int fd = fcntl(blobs->tar_fd, F_DUPFD_CLOEXEC, 3);
        return fd < 0 ? err_errno(err, errno, "image %s", blobs->source) : fd;
    }
    if (blobs->bring && faccessat(blobs->dir_fd, name, F_OK, 0) < 0 &&
        blobs->bring(blobs->ctx, name, err) < 0)
        return -(int)err->code;
    int fd = file_open_safe(blobs->dir_fd, name, O_RDONLY, 0, FILE_BENEATH | FILE_REGULAR, err);
    if (fd < 0)
        return err_wrap(err, "image %s", blobs->source);
    if (fstat(fd, &info) < 0) {
        close(fd);
        return err_errno(err, errno, "image %s", blobs->source);
    }
    *out = (struct part){ .size = (uint64_t)info.st_size };
    return fd;
}

int blobs_read(struct blobs *blobs, const char *name, size_t most, struct str *out, struct err *err)
{
    struct part part;
    CLEANUP(file_close) int fd = find(blobs, name, &part, err);

    if (fd < 0)
        return fd;
    if (part.size > most)
        return err_set(err, ERR_TOO_LARGE, "image %s: '%s' has %llu bytes, at most %zu",
                       blobs->source, name, (unsigned long long)part.size, most);
    str_clear(out);
    str_reserve(out, part.size + 1);
    while (out->len < part.size) {
        char bytes[16 * 1024];
        size_t want = MIN(sizeof(bytes), part.size - out->len);
        ssize_t got = pread(fd, bytes, want, (off_t)(part.offset + out->len));
        if (got <= 0)
            return err_set(err, ERR_IO, "image %s: '%s' cannot be read", blobs->source, name);
        str_add_len(out, bytes, (size_t)got);
    }
    return 0;
}

/* ---- layers ---- */

struct gz {
    z_stream stream;
    uint8_t in[IN_BYTES];
};

static ssize_t read_packed(struct layer *layer, void *bytes, size_t len, struct err *err)
{
    size_t want = MIN(len, layer->end - layer->at);
    ssize_t got = want ? pread(layer->fd, bytes, want, (off_t)layer->at) : 0;

    if (got < 0)
        return err_errno(err, errno, "reading a layer");
    if (got == 0 && want)
        return err_set(err, ERR_IO, "a layer is cut off");
    layer->at += (uint64_t)got;
    digest_add(layer->packed, bytes, (size_t)got);
    return got;
}

static void drop_digests(struct layer *layer)
{
    uint8_t unused[DIGEST_BYTES];

    if (layer->packed)
        digest_end(layer->packed, unused);
    if (layer->plain)
        digest_end(layer->plain, unused);
    layer->packed = layer->plain = NULL;
}

int layer_again(void *ctx, struct err *err)
{
    struct layer *layer = ctx;

    layer->at = layer->start;
    layer->ended = false;
    drop_digests(layer);
    layer->packed = digest_begin();
    layer->plain = digest_begin();
    if (layer->gz) {
        layer->gz->stream.avail_in = 0;
        if (inflateReset(&layer->gz->stream) != Z_OK)
            return err_set(err, ERR_IO, "a layer cannot be read again");
    }
    return 0;
}

int layer_open(struct layer *layer, struct blobs *blobs, const char *name, struct err *err)
{
    struct part part;
    uint8_t magic[4] = { 0 };

    *layer = (struct layer){ .fd = find(blobs, name, &part, err) };
    if (layer->fd < 0)
        return layer->fd;
    layer->start = part.offset;
    layer->end = part.offset + part.size;
    if (pread(layer->fd, magic, sizeof(magic), (off_t)part.offset) < 0)
        return err_errno(err, errno, "image %s: layer '%s'", blobs->source, name);
    if (memcmp(magic, "\x28\xb5\x2f\xfd", 4) == 0)
        return err_set(err, ERR_UNSUPPORTED,
                       "image %s: layer '%s' is packed with zstd, which is not read here; copy the "
                       "image with gzip layers",
                       blobs->source, name);
    if (magic[0] == 0x1f && magic[1] == 0x8b) {
        layer->gz = NEW(struct gz);
        if (inflateInit2(&layer->gz->stream, GZIP_WINDOW) != Z_OK)
            return err_code(err, ERR_NO_MEMORY);
    }
    return layer_again(layer, err);
}

static ssize_t inflate_some(struct layer *layer, void *bytes, size_t len, struct err *err)
{
    z_stream *stream = &layer->gz->stream;

    stream->next_out = bytes;
    stream->avail_out = (uInt)MIN(len, (size_t)1 << 30);
    size_t room = stream->avail_out;
    while (stream->avail_out == room && !layer->ended) {
        if (stream->avail_in == 0) {
            ssize_t got = read_packed(layer, layer->gz->in, IN_BYTES, err);
            if (got < 0)
                return got;
            if (got == 0)
                return err_set(err, ERR_INVALID, "a layer is cut off");
            stream->next_in = layer->gz->in;
            stream->avail_in = (uInt)got;
        }
        int code = inflate(stream, Z_NO_FLUSH);
        if (code == Z_STREAM_END) /* several members one after the other are one stream */
            layer->ended =
                (stream->avail_in == 0 && layer->at == layer->end) || inflateReset(stream) != Z_OK;
        else if (code != Z_OK && code != Z_BUF_ERROR)
            return err_set(err, ERR_INVALID, "a layer is not gzip after all: %s",
                           stream->msg ? stream->msg : "broken");
    }
    return (ssize_t)(room - stream->avail_out);
}

ssize_t layer_read(void *ctx, void *bytes, size_t len, struct err *err)
{
    struct layer *layer = ctx;
    ssize_t got =
        layer->gz ? inflate_some(layer, bytes, len, err) : read_packed(layer, bytes, len, err);

    if (got > 0)
        digest_add(layer->plain, bytes, (size_t)got);
    return got;
}

static int compare(struct digest **digest, const char *wanted, const char *what, struct err *err)
{
    uint8_t bytes[DIGEST_BYTES];
    char hex[DIGEST_HEX_BYTES];

    digest_end(*digest, bytes);
    *digest = NULL;
    digest_hex(bytes, hex);
    if (!wanted || (str_starts(wanted, "sha256:") && str_eq(wanted + 7, hex)))
        return 0;
    return err_set(err, ERR_INVALID, "a layer's %s is sha256:%s, not %s as the image says", what,
                   hex, wanted);
}

int layer_check(struct layer *layer, const char *packed, const char *plain, struct err *err)
{
    char bytes[16 * 1024];
    ssize_t got;

    while ((got = layer_read(layer, bytes, sizeof(bytes), err)) > 0)
        ;
    if (got < 0)
        return (int)got;
    if (compare(&layer->packed, packed, "digest", err) < 0 ||
        compare(&layer->plain, plain, "content", err) < 0)
        return -(int)err->code;
    return 0;
}

void layer_close(struct layer *layer)
{
    drop_digests(layer);
    if (layer->gz)
        inflateEnd(&layer->gz->stream);
    free(layer->gz);
    file_close(&layer->fd);
}
