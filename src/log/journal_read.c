/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal_read.c - the journal for its readers, and what was missed brought in
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "log/journal_priv.h"
#include "sys/files.h"
#include "sys/log.h"

enum { READ_BYTES = 256 * 1024 };

/* The segment that has cursor->next, or the first one after it. */
static const struct segment *find(const struct journal *journal, uint64_t next)
{
    vec_each (struct segment, segment, &journal->segments) {
        if (segment->last >= next || segment == journal->segments.items + journal->segments.len - 1)
            return segment->last >= next ? segment : NULL;
    }
    return NULL;
}

struct reading {
    struct journal_cursor *cursor;
    size_t left;
    journal_each_fn *each;
    void *ctx;
};

static void give(struct reading *reading, const struct journal_entry *entry)
{
    reading->left -= MIN(reading->left, entry->bytes.len + 1);
    reading->each(reading->ctx, entry);
}

static void say_lost(struct reading *reading, uint64_t from, uint64_t upto)
{
    struct journal_entry lost = { .index = upto, .lost_from = from };

    give(reading, &lost);
    reading->cursor->next = upto + 1;
}

static int read_piece(int fd, uint64_t offset, uint64_t end, size_t want, struct str *out,
                      struct err *err)
{
    size_t len = (size_t)MIN(end - offset, (uint64_t)want);

    str_clear(out);
    str_reserve(out, len);
    while (out->len < len) {
        ssize_t got = pread(fd, out->data + out->len, len - out->len, (off_t)(offset + out->len));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_errno(err, errno, "journal");
        if (got == 0)
            break;
        out->len += (size_t)got;
    }
    return 0;
}

/* Gives the frames of one piece; returns how far it got, or negative when one is damaged. */
static int64_t give_frames(struct reading *reading, const struct str *piece)
{
    struct journal_entry entry;
    struct span bytes = { piece->data, piece->len };
    size_t at = 0, used = 0;
    int rc = 1;

    while (reading->left && (rc = journal_get_frame(bytes, at, &entry, &used)) > 0) {
        at += used;
        if (entry.index < reading->cursor->next)
            continue;
        if (entry.bytes.len)
            give(reading, &entry);
        reading->cursor->next = entry.index + 1;
    }
    return rc < 0 ? rc : (int64_t)at;
}

/* Of one segment, from where the cursor is; `segment` may not be kept over a call. */
static int read_segment(struct journal *journal, const struct segment *segment,
                        struct reading *reading, struct err *err)
{
    struct journal_cursor *cursor = reading->cursor;
    CLEANUP(freep) char *path = segment_path(journal, segment);
    CLEANUP(file_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    CLEANUP(str_done) struct str piece = { 0 };
    size_t want = READ_BYTES;

    if (fd < 0)
        return err_errno(err, errno, "journal '%s'", path);
    if (cursor->segment != segment->first || cursor->offset < JOURNAL_MAGIC_BYTES) {
        cursor->segment = segment->first;
        cursor->offset = JOURNAL_MAGIC_BYTES;
    }
    while (reading->left && cursor->offset < segment->bytes) {
        if (read_piece(fd, cursor->offset, segment->bytes, want, &piece, err) < 0)
            return -(int)err->code;
        int64_t got = give_frames(reading, &piece);
        bool all = piece.len == segment->bytes - cursor->offset;
        if (got < 0 || (got == 0 && (all || want > JOURNAL_ENTRY_MOST))) {
            log_error("journal.damaged", "path=%s offset=%" PRIu64, path, cursor->offset);
            say_lost(reading, MAX(cursor->next, segment->first), segment->last);
            return 0;
        }
        cursor->offset += (uint64_t)got;
        want = got ? READ_BYTES : want * 4; /* a frame that is longer than the piece */
    }
    if (cursor->offset >= segment->bytes)
        cursor->next = MAX(cursor->next, segment->last + 1);
    return 0;
}

int journal_read(struct journal *journal, struct journal_cursor *cursor, size_t bytes,
                 journal_each_fn *each, void *ctx, struct err *err)
{
    struct reading reading = { cursor, MAX(bytes, (size_t)1), each, ctx };
    int rc = journal_flush(journal, err);

    if (cursor->next == 0)
        cursor->next = journal_first(journal);
    while (rc == 0 && reading.left) {
        const struct segment *segment = find(journal, cursor->next);
        if (!segment && cursor->next && cursor->next < journal->begin && journal->fd < 0) {
            say_lost(&reading, cursor->next, journal->begin - 1); /* and nothing after it yet */
            return 0;
        }
        if (!segment || cursor->next == 0)
            return 0;
        if (segment->first > cursor->next)
            say_lost(&reading, cursor->next, segment->first - 1);
        else
            rc = read_segment(journal, segment, &reading, err);
    }
    return rc < 0 ? rc : 1;
}

/* ---- what was missed ---- */

bool journal_missing(const struct journal *journal, uint64_t acked, uint64_t *from, uint64_t *upto)
{
    uint64_t next = acked + 1;

    vec_each (struct segment, segment, &journal->segments) {
        if (segment->first > next) {
            *from = next;
            *upto = segment->first - 1;
            return true;
        }
        next = MAX(next, segment->last + 1);
    }
    if (journal->fd >= 0 || journal->begin <= next)
        return false;
    *from = next;
    *upto = journal->begin - 1;
    return true;
}

struct journal_fill {
    struct journal *journal;
    struct segment segment;
    char *path;
    int fd;
    struct str waiting;
};

struct journal_fill *journal_fill_begin(struct journal *journal, uint64_t from, struct err *err)
{
    struct journal_fill *fill = NEW(struct journal_fill);

    fill->journal = journal;
    fill->segment = (struct segment){ .first = from, .last = from - 1, .sealed = true };
    fill->path = mem_printf("%s/%020" PRIu64 ".fill", journal->dir, from);
    fill->fd = open(fill->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fill->fd < 0) {
        err_errno(err, errno, "journal '%s'", fill->path);
        journal_fill_abandon(fill);
        return NULL;
    }
    str_add_len(&fill->waiting, journal_magic, JOURNAL_MAGIC_BYTES);
    return fill;
}

static int fill_write(struct journal_fill *fill, struct err *err)
{
    int rc = file_write_all(fill->fd, fill->waiting.data, fill->waiting.len, err);

    /* The disk begins with it now: at the end, a sync of all would keep the loop waiting. */
    sync_file_range(fill->fd, (off_t)fill->segment.bytes, (off_t)fill->waiting.len,
                    SYNC_FILE_RANGE_WRITE);
    fill->segment.bytes += fill->waiting.len;
    str_clear(&fill->waiting);
    return rc;
}

int journal_fill_add(struct journal_fill *fill, const struct journal_entry *entry, struct err *err)
{
    if (entry->index <= fill->segment.last || entry->bytes.len > JOURNAL_ENTRY_MOST)
        return err_set(err, ERR_CORRUPT, "entry %" PRIu64 " is out of order", entry->index);
    journal_put_frame(&fill->waiting, entry);
    fill->segment.last = entry->index;
    fill->segment.last_us = entry->time_us;
    return fill->waiting.len >= READ_BYTES ? fill_write(fill, err) : 0;
}

static int finish_fill(struct journal_fill *fill, uint64_t upto, struct err *err)
{
    struct segment *segment = &fill->segment;

    if (upto < segment->first || upto < segment->last)
        return err_set(err, ERR_CORRUPT, "entry %" PRIu64 " is out of order", segment->last);
    if (journal_flush(fill->journal, err) < 0)
        return -(int)err->code;
    if (fill->journal->fd < 0 && upto >= fill->journal->begin)
        return err_set(err, ERR_EXISTS, "the journal goes on at %" PRIu64, fill->journal->begin);
    vec_each (struct segment, other, &fill->journal->segments) {
        if (other->first <= upto && other->last >= segment->first)
            return err_set(err, ERR_EXISTS, "the journal has entries up to %" PRIu64, other->last);
    }
    if (upto > segment->last) {
        struct journal_entry mark = { .index = upto, .time_us = segment->last_us };
        journal_put_frame(&fill->waiting, &mark);
        segment->last = upto;
    }
    if (fill_write(fill, err) < 0 || file_sync(fill->fd, err) < 0)
        return -(int)err->code;
    CLEANUP(freep) char *path = segment_path(fill->journal, segment);
    if (file_rename(fill->path, path, err) < 0 || file_sync_dir(fill->journal->dir, err) < 0)
        return -(int)err->code;
    segment_insert(fill->journal, segment);
    return 0;
}

int journal_fill_end(struct journal_fill *fill, uint64_t upto, struct err *err)
{
    int rc = finish_fill(fill, upto, err);

    journal_fill_abandon(fill); /* its file has another name by now */
    return rc;
}

void journal_fill_abandon(struct journal_fill *fill)
{
    if (!fill)
        return;
    file_close(&fill->fd);
    unlink(fill->path);
    str_done(&fill->waiting);
    free(fill->path);
    free(fill);
}
