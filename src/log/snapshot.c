/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot.c - the whole state in one file, as it was at one index
 */
#include "log/snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/limits.h"
#include "sys/files.h"

enum { VERSION = 1, BUFFER_BYTES = 256 * 1024 };

static const char head_magic[8] = "SPURSNAP", tail_magic[8] = "SNAPTAIL";

/* Written as they are in memory: a snapshot does not leave machines of one byte order. */
struct head {
    char magic[8];
    uint32_t version, byte_order;
    uint64_t index;
    uint32_t chain; /* checksum of the log up to index */
    uint32_t crc;   /* of the fields before */
};

struct tail {
    uint64_t bytes;
    uint32_t body_crc, pad;
    char magic[8];
    uint32_t crc, pad2;
};

struct snapshot_writer {
    int fd;           /* -1: */
    struct str *into; /* memory */
    char temp[LIMIT_PATH_BYTES], path[LIMIT_PATH_BYTES], dir[LIMIT_PATH_BYTES];
    uint64_t bytes;
    uint32_t crc;
    size_t used;
    char buffer[BUFFER_BYTES];
};

struct snapshot_reader {
    int fd;           /* -1: */
    struct span rest; /* memory */
    struct head head;
    uint64_t bytes, left;
};

static int path_of(char out[LIMIT_PATH_BYTES], const char *dir, uint64_t index, const char *suffix,
                   struct err *err)
{
    int len = snprintf(out, LIMIT_PATH_BYTES, "%s/snapshot-%020" PRIu64 "%s", dir, index, suffix);

    return len < LIMIT_PATH_BYTES ? 0 : err_set(err, ERR_PATH_TOO_LONG, "%s", dir);
}

static int drain(struct snapshot_writer *writer, struct err *err)
{
    size_t len = writer->used;

    writer->used = 0;
    if (writer->into) {
        str_add_len(writer->into, writer->buffer, len);
        return 0;
    }
    return file_write_all(writer->fd, writer->buffer, len, err);
}

static int put(struct snapshot_writer *writer, const void *bytes, size_t len, struct err *err)
{
    const char *at = bytes;

    while (len) {
        size_t piece = MIN(len, BUFFER_BYTES - writer->used);
        memcpy(writer->buffer + writer->used, at, piece);
        writer->used += piece;
        at += piece;
        len -= piece;
        if (writer->used == BUFFER_BYTES) {
            int rc = drain(writer, err);
            if (rc < 0)
                return rc;
        }
    }
    return 0;
}

static void put_head(struct snapshot_writer *writer, struct log_point point)
{
    struct head head = {
        .version = VERSION, .byte_order = 0x01020304, .index = point.index, .chain = point.crc
    };

    memcpy(head.magic, head_magic, sizeof(head.magic));
    head.crc = crc32c(0, &head, offsetof(struct head, crc));
    put(writer, &head, sizeof(head), NULL); /* fits the buffer */
}

struct snapshot_writer *snapshot_create_memory(struct log_point point, struct str *into)
{
    struct snapshot_writer *writer = NEW(struct snapshot_writer);

    writer->fd = -1;
    writer->into = into;
    put_head(writer, point);
    return writer;
}

int snapshot_create(const char *dir, struct log_point point, struct snapshot_writer **out,
                    struct err *err)
{
    struct snapshot_writer *writer = NEW(struct snapshot_writer);
    int rc = path_of(writer->temp, dir, point.index, ".tmp", err);

    if (rc == 0)
        rc = path_of(writer->path, dir, point.index, "", err);
    if (rc < 0) {
        free(writer);
        return rc;
    }
    snprintf(writer->dir, sizeof(writer->dir), "%s", dir);
    writer->fd = open(writer->temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (writer->fd < 0) {
        rc = err_errno(err, errno, "%s", writer->temp);
        free(writer);
        return rc;
    }
    put_head(writer, point);
    *out = writer;
    return 0;
}

int snapshot_write(struct snapshot_writer *writer, const void *bytes, size_t len, struct err *err)
{
    writer->crc = crc32c(writer->crc, bytes, len);
    writer->bytes += len;
    return put(writer, bytes, len, err);
}

void snapshot_abandon(struct snapshot_writer *writer)
{
    if (!writer)
        return;
    file_close(&writer->fd);
    if (!writer->into)
        unlink(writer->temp);
    free(writer);
}

static int make_durable(struct snapshot_writer *writer, struct err *err)
{
    int rc = file_sync(writer->fd, err);

    if (rc == 0)
        rc = file_rename(writer->temp, writer->path, err);
    return rc < 0 ? rc : file_sync_dir(writer->dir, err);
}

int snapshot_finish(struct snapshot_writer *writer, struct err *err)
{
    struct tail tail = { .bytes = writer->bytes, .body_crc = writer->crc };

    memcpy(tail.magic, tail_magic, sizeof(tail.magic));
    tail.crc = crc32c(0, &tail, offsetof(struct tail, crc));
    int rc = put(writer, &tail, sizeof(tail), err);
    if (rc == 0)
        rc = drain(writer, err);
    if (rc == 0 && !writer->into)
        rc = make_durable(writer, err);
    if (rc < 0) {
        err_wrap(err, "snapshot %s", writer->path);
        snapshot_abandon(writer);
        return rc;
    }
    file_close(&writer->fd);
    free(writer);
    return 0;
}

static int read_exactly(struct snapshot_reader *reader, void *out, size_t len, const char *path,
                        struct err *err)
{
    char *at = out;

    if (reader->fd < 0) {
        if (reader->rest.len < len)
            return err_set(err, ERR_CORRUPT, "%s: ends too early", path);
        memcpy(out, reader->rest.ptr, len);
        reader->rest = (struct span){ reader->rest.ptr + len, reader->rest.len - len };
        return 0;
    }
    while (len) {
        ssize_t got = read(reader->fd, at, len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_errno(err, errno, "%s", path);
        if (got == 0)
            return err_set(err, ERR_CORRUPT, "%s: ends too early", path);
        at += got;
        len -= (size_t)got;
    }
    return 0;
}

static int check_head(const struct head *head, const char *path, struct err *err)
{
    if (memcmp(head->magic, head_magic, sizeof(head_magic)) != 0 ||
        head->crc != crc32c(0, head, offsetof(struct head, crc)))
        return err_set(err, ERR_CORRUPT, "%s: damaged head", path);
    if (head->version != VERSION || head->byte_order != 0x01020304)
        return err_set(err, ERR_PROTOCOL_VERSION, "%s: format %u is not ours", path, head->version);
    return 0;
}

static int check_body(struct snapshot_reader *reader, const char *path, struct err *err)
{
    CLEANUP(freep) char *buffer = mem_new(BUFFER_BYTES);
    struct tail tail;
    uint32_t crc = 0;
    int rc = 0;

    for (uint64_t left = reader->bytes; left && rc == 0;) {
        size_t piece = (size_t)MIN(left, (uint64_t)BUFFER_BYTES);
        rc = read_exactly(reader, buffer, piece, path, err);
        crc = crc32c(crc, buffer, piece);
        left -= piece;
    }
    if (rc == 0)
        rc = read_exactly(reader, &tail, sizeof(tail), path, err);
    if (rc < 0)
        return rc;
    if (memcmp(tail.magic, tail_magic, sizeof(tail_magic)) != 0 ||
        tail.crc != crc32c(0, &tail, offsetof(struct tail, crc)) || tail.bytes != reader->bytes ||
        tail.body_crc != crc || tail.pad2 != 0)
        return err_set(err, ERR_CORRUPT, "%s: checksum does not match", path);
    return 0;
}

static int check_all(struct snapshot_reader *reader, uint64_t size, const char *path,
                     struct err *err)
{
    if (size < sizeof(struct head) + sizeof(struct tail))
        return err_set(err, ERR_CORRUPT, "%s: ends too early", path);
    reader->bytes = reader->left = size - sizeof(struct head) - sizeof(struct tail);
    int rc = read_exactly(reader, &reader->head, sizeof(reader->head), path, err);
    if (rc == 0)
        rc = check_head(&reader->head, path, err);
    return rc < 0 ? rc : check_body(reader, path, err);
}

int snapshot_open_memory(struct span bytes, struct snapshot_reader **out, struct err *err)
{
    struct snapshot_reader *reader = NEW(struct snapshot_reader);

    reader->fd = -1;
    reader->rest = bytes;
    int rc = check_all(reader, bytes.len, "snapshot", err);
    if (rc < 0) {
        free(reader);
        return rc;
    }
    reader->rest =
        (struct span){ bytes.ptr + sizeof(struct head), bytes.len - sizeof(struct head) };
    *out = reader;
    return 0;
}

int snapshot_open(const char *dir, uint64_t index, struct snapshot_reader **out, struct err *err)
{
    struct snapshot_reader *reader;
    char path[LIMIT_PATH_BYTES];
    struct stat st;
    int rc = path_of(path, dir, index, "", err);

    if (rc < 0)
        return rc;
    CLEANUP(file_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(err, errno, "%s", path);
    reader = NEW(struct snapshot_reader);
    reader->fd = fd;
    rc = check_all(reader, (uint64_t)st.st_size, path, err);
    if (rc == 0 && reader->head.index != index)
        rc = err_set(err, ERR_CORRUPT, "%s: holds index %" PRIu64, path, reader->head.index);
    if (rc == 0 && lseek(fd, sizeof(struct head), SEEK_SET) < 0)
        rc = err_errno(err, errno, "%s", path);
    if (rc < 0) {
        free(reader);
        return rc;
    }
    fd = -1;
    *out = reader;
    return 0;
}

struct log_point snapshot_point(const struct snapshot_reader *reader)
{
    return (struct log_point){ reader->head.index, reader->head.chain };
}

uint64_t snapshot_bytes(const struct snapshot_reader *reader)
{
    return reader->bytes;
}

int snapshot_fd(const struct snapshot_reader *reader)
{
    return reader->fd;
}

ssize_t snapshot_read(struct snapshot_reader *reader, void *out, size_t len, struct err *err)
{
    size_t piece = (size_t)MIN(reader->left, (uint64_t)len);
    int rc = read_exactly(reader, out, piece, "snapshot", err);

    if (rc < 0)
        return rc;
    reader->left -= piece;
    return (ssize_t)piece;
}

void snapshot_close(struct snapshot_reader *reader)
{
    if (!reader)
        return;
    file_close(&reader->fd);
    free(reader);
}

char *snapshot_path(const char *dir, uint64_t index)
{
    return mem_printf("%s/snapshot-%020" PRIu64, dir, index);
}

void snapshot_remove(const char *dir, uint64_t index)
{
    char path[LIMIT_PATH_BYTES];

    if (path_of(path, dir, index, "", NULL) == 0)
        file_unlink(path);
}

void snapshot_prune(const char *dir, uint64_t oldest)
{
    uint64_t indexes[SNAPSHOT_MOST];
    size_t count = 0;

    if (snapshot_list(dir, indexes, SNAPSHOT_MOST, &count, NULL) < 0)
        return;
    while (count-- > 0 && indexes[count] < oldest)
        snapshot_remove(dir, indexes[count]);
}

static bool is_unfinished(const char *name)
{
    return str_starts(name, "snapshot-") && str_ends(name, ".tmp");
}

void snapshot_remove_unfinished(const char *dir)
{
    DIR *entries = opendir(dir);
    const struct dirent *entry;

    if (!entries)
        return;
    while ((entry = readdir(entries))) {
        if (is_unfinished(entry->d_name))
            unlinkat(dirfd(entries), entry->d_name, 0);
    }
    closedir(entries);
}

/* snapshot-INDEX gives the index. */
static bool parse_name(const char *name, uint64_t *index)
{
    return str_starts(name, "snapshot-") && !is_unfinished(name) &&
           str_to_u64(name + strlen("snapshot-"), UINT64_MAX, index);
}

int snapshot_list(const char *dir, uint64_t *out, size_t max, size_t *count, struct err *err)
{
    DIR *entries = opendir(dir);
    const struct dirent *entry;
    uint64_t index;

    *count = 0;
    if (!entries)
        return err_errno(err, errno, "%s", dir);
    while ((entry = readdir(entries))) {
        if (!parse_name(entry->d_name, &index))
            continue;
        size_t at = *count;
        while (at > 0 && out[at - 1] < index)
            at--;
        if (at == max)
            continue;
        size_t move = MIN(*count, max - 1) - at;
        memmove(out + at + 1, out + at, move * sizeof(*out));
        out[at] = index;
        *count = MIN(*count + 1, max);
    }
    closedir(entries);
    return 0;
}
