/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer.c - snapshots and payloads from another controller, in pieces, checked
 */
#include "log/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "log/payload.h"
#include "log/snapshot.h"
#include "sys/digest.h"
#include "sys/files.h"

/* ---- giving ---- */

struct transfer_out {
    int fd;
    uint64_t index, total, offset;
    struct digest *digest;
    uint8_t sum[DIGEST_BYTES];
    uint8_t *buffer;
};

int transfer_open(const char *dir, uint64_t index, struct transfer_out **out, struct err *err)
{
    CLEANUP(freep) char *path = snapshot_path(dir, index);
    CLEANUP(file_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(err, errno, "%s", path);
    struct transfer_out *self = NEW(struct transfer_out);
    self->fd = fd;
    fd = -1;
    self->index = index;
    self->total = (uint64_t)st.st_size;
    self->digest = digest_begin();
    self->buffer = mem_new(TRANSFER_CHUNK_BYTES);
    *out = self;
    return 0;
}

static int read_chunk(struct transfer_out *out, size_t len, struct err *err)
{
    for (size_t got = 0; got < len;) {
        ssize_t n = pread(out->fd, out->buffer + got, len - got, (off_t)(out->offset + got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? err_errno(err, errno, "snapshot %" PRIu64, out->index)
                         : err_set(err, ERR_CORRUPT, "snapshot %" PRIu64 " became shorter",
                                   out->index);
        got += (size_t)n;
    }
    return 0;
}

int transfer_next(struct transfer_out *out, PeerSnapshotChunk *chunk, struct err *err)
{
    size_t len = (size_t)MIN(out->total - out->offset, (uint64_t)TRANSFER_CHUNK_BYTES);

    if (out->offset == out->total)
        return 0;
    int rc = read_chunk(out, len, err);
    if (rc < 0)
        return rc;
    digest_add(out->digest, out->buffer, len);
    peer_snapshot_chunk__init(chunk);
    chunk->has_index = chunk->has_total = chunk->has_offset = chunk->has_data = true;
    chunk->index = out->index;
    chunk->total = out->total;
    chunk->offset = out->offset;
    chunk->data = (ProtobufCBinaryData){ len, out->buffer };
    out->offset += len;
    if (out->offset == out->total) {
        digest_end(TAKE(out->digest), out->sum);
        chunk->has_sha256 = true;
        chunk->sha256 = (ProtobufCBinaryData){ DIGEST_BYTES, out->sum };
    }
    return 1;
}

void transfer_close(struct transfer_out *out)
{
    uint8_t ignored[DIGEST_BYTES];

    if (!out)
        return;
    if (out->digest)
        digest_end(out->digest, ignored);
    file_close(&out->fd);
    free(out->buffer);
    free(out);
}

/* ---- taking ---- */

struct transfer_in {
    char *dir, *temp;
    int fd;
    uint64_t at_least, index, total, offset;
    struct digest *digest;
    uint8_t sum[DIGEST_BYTES];
    bool whole;
};

int transfer_begin(const char *dir, uint64_t at_least, struct transfer_in **in, struct err *err)
{
    /* Not "snapshot-…": those that are unfinished are removed by whoever lists them. */
    CLEANUP(freep) char *temp = mem_printf("%s/fetched.tmp", dir);
    int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return err_errno(err, errno, "%s", temp);
    struct transfer_in *self = NEW(struct transfer_in);
    self->fd = fd;
    self->dir = mem_strdup(dir);
    self->temp = TAKE(temp);
    self->at_least = at_least;
    self->digest = digest_begin();
    *in = self;
    return 0;
}

static int take_first(struct transfer_in *in, const PeerSnapshotChunk *chunk, struct err *err)
{
    if (chunk->index < in->at_least)
        return err_set(err, ERR_RANGE, "the peer sends snapshot %" PRIu64 ", asked for %" PRIu64,
                       chunk->index, in->at_least);
    if (chunk->total == 0 || chunk->total > LIMIT_SNAPSHOT_BYTES)
        return err_set(err, ERR_TOO_LARGE, "the peer's snapshot would have %" PRIu64 " bytes",
                       chunk->total);
    in->index = chunk->index;
    in->total = chunk->total;
    return 0;
}

static int take_last(struct transfer_in *in, const PeerSnapshotChunk *chunk, struct err *err)
{
    digest_end(TAKE(in->digest), in->sum);
    if (chunk->sha256.len != DIGEST_BYTES || memcmp(chunk->sha256.data, in->sum, DIGEST_BYTES) != 0)
        return err_set(err, ERR_CORRUPT, "snapshot %" PRIu64 ": the digest does not match",
                       in->index);
    in->whole = true;
    return 0;
}

int transfer_take(struct transfer_in *in, const PeerSnapshotChunk *chunk, struct err *err)
{
    int rc = in->total ? 0 : take_first(in, chunk, err);

    if (rc < 0)
        return rc;
    if (chunk->index != in->index || chunk->total != in->total || chunk->offset != in->offset ||
        !in->digest || chunk->data.len == 0 || chunk->data.len > TRANSFER_CHUNK_MOST ||
        chunk->data.len > in->total - in->offset)
        return err_set(err, ERR_BAD_MESSAGE, "a piece of snapshot %" PRIu64 " does not fit",
                       in->index);
    rc = file_write_all(in->fd, chunk->data.data, chunk->data.len, err);
    if (rc < 0)
        return rc;
    digest_add(in->digest, chunk->data.data, chunk->data.len);
    in->offset += chunk->data.len;
    return in->offset == in->total ? take_last(in, chunk, err) : 0;
}

/* Named, then read back as the log will read it: its index and its own checksum. */
static int put_in_place(struct transfer_in *in, struct err *err)
{
    CLEANUP(freep) char *path = snapshot_path(in->dir, in->index);
    struct snapshot_reader *reader = NULL;
    int rc = file_sync(in->fd, err);

    if (rc == 0)
        rc = file_rename(in->temp, path, err);
    if (rc == 0)
        rc = file_sync_dir(in->dir, err);
    if (rc < 0)
        return rc;
    rc = snapshot_open(in->dir, in->index, &reader, err);
    snapshot_close(reader);
    if (rc < 0)
        unlink(path);
    return rc;
}

int transfer_finish(struct transfer_in *in, uint64_t *index, struct err *err)
{
    int rc = in->whole
                 ? put_in_place(in, err)
                 : err_set(err, ERR_CONNECTION_LOST,
                           "snapshot %" PRIu64 " ended after %" PRIu64 " of %" PRIu64 " bytes",
                           in->index, in->offset, in->total);

    if (rc == 0)
        *index = in->index;
    transfer_abandon(in);
    return rc;
}

void transfer_abandon(struct transfer_in *in)
{
    uint8_t ignored[DIGEST_BYTES];

    if (!in)
        return;
    if (in->digest)
        digest_end(in->digest, ignored);
    file_close(&in->fd);
    unlink(in->temp);
    free(in->temp);
    free(in->dir);
    free(in);
}

/* ---- payloads ---- */

static bool is_wanted(const ProtobufCBinaryData *digest, const uint8_t (*wanted)[LOG_DIGEST_BYTES],
                      size_t count)
{
    for (size_t i = 0; i < count && digest->len == LOG_DIGEST_BYTES; i++) {
        if (memcmp(wanted[i], digest->data, LOG_DIGEST_BYTES) == 0)
            return true;
    }
    return false;
}

int transfer_payload_take(struct transfer_payload *payload, const PeerPayloadChunk *chunk,
                          const uint8_t (*wanted)[LOG_DIGEST_BYTES], size_t wanted_count,
                          struct err *err)
{
    if (chunk->offset == 0) {
        if (!is_wanted(&chunk->digest, wanted, wanted_count))
            return err_set(err, ERR_BAD_MESSAGE, "a payload that nobody asked for");
        if (chunk->total > LOG_PAYLOAD_BYTES)
            return err_set(err, ERR_TOO_LARGE, "a payload of %" PRIu64 " bytes", chunk->total);
        memcpy(payload->digest, chunk->digest.data, LOG_DIGEST_BYTES);
        payload->total = chunk->total;
        str_clear(&payload->bytes);
    }
    if (chunk->digest.len != LOG_DIGEST_BYTES ||
        memcmp(chunk->digest.data, payload->digest, LOG_DIGEST_BYTES) != 0 ||
        chunk->total != payload->total || chunk->offset != payload->bytes.len ||
        chunk->data.len > TRANSFER_CHUNK_MOST ||
        chunk->data.len > payload->total - payload->bytes.len ||
        (chunk->data.len == 0 && payload->total != 0))
        return err_set(err, ERR_BAD_MESSAGE, "a piece of a payload does not fit");
    str_add_len(&payload->bytes, chunk->data.data, chunk->data.len);
    if (payload->bytes.len < payload->total)
        return 0;
    struct span bytes = { str_text(&payload->bytes), payload->bytes.len };
    int rc = payload_check(payload->digest, bytes, err);
    return rc < 0 ? rc : 1;
}
