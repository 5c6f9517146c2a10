/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.c - what became of jobs and steps: adding to it, and its end
 */
#include "log/journal_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "sys/files.h"
#include "sys/log.h"

enum { FLUSH_BYTES = 1024 * 1024 };

const char journal_magic[JOURNAL_MAGIC_BYTES] = "SPURJRN1";

/* ---- frames ---- */

static uint32_t frame_crc(const struct journal_frame *frame, const void *bytes)
{
    uint32_t crc = crc32c(0, &frame->len, sizeof(frame->len));

    crc = crc32c(crc, &frame->index, sizeof(frame->index));
    crc = crc32c(crc, &frame->time_us, sizeof(frame->time_us));
    return crc32c(crc, bytes, frame->len);
}

void journal_put_frame(struct str *out, const struct journal_entry *entry)
{
    struct journal_frame frame = { .len = (uint32_t)entry->bytes.len,
                                   .index = entry->index,
                                   .time_us = entry->time_us };

    frame.crc = frame_crc(&frame, entry->bytes.ptr);
    str_add_len(out, &frame, sizeof(frame));
    str_add_len(out, entry->bytes.ptr, entry->bytes.len);
}

int journal_get_frame(struct span bytes, size_t at, struct journal_entry *out, size_t *used)
{
    struct journal_frame frame;

    if (bytes.len - at < sizeof(frame))
        return 0;
    memcpy(&frame, bytes.ptr + at, sizeof(frame));
    if (frame.len > JOURNAL_ENTRY_MOST)
        return -(int)ERR_CORRUPT;
    if (bytes.len - at - sizeof(frame) < frame.len)
        return 0;
    const char *body = bytes.ptr + at + sizeof(frame);
    if (frame_crc(&frame, body) != frame.crc)
        return -(int)ERR_CORRUPT;
    *out = (struct journal_entry){ frame.index, frame.time_us, { body, frame.len }, 0 };
    *used = sizeof(frame) + frame.len;
    return 1;
}

/* ---- segments ---- */

char *segment_path(const struct journal *journal, const struct segment *segment)
{
    if (segment->sealed)
        return mem_printf("%s/%020" PRIu64 "-%020" PRIu64, journal->dir, segment->first,
                          segment->last);
    return mem_printf("%s/%020" PRIu64 ".open", journal->dir, segment->first);
}

void segment_insert(struct journal *journal, const struct segment *segment)
{
    size_t at = journal->segments.len;

    while (at > 0 && journal->segments.items[at - 1].first > segment->first)
        at--;
    vec_push(&journal->segments, *segment);
    memmove(journal->segments.items + at + 1, journal->segments.items + at,
            (journal->segments.len - 1 - at) * sizeof(*segment));
    journal->segments.items[at] = *segment;
}

static struct segment *current(struct journal *journal)
{
    return journal->fd < 0 ? NULL : &journal->segments.items[journal->segments.len - 1];
}

void journal_end_segment(struct journal *journal)
{
    struct segment *segment = current(journal);

    if (!segment)
        return;
    file_close(&journal->fd);
    journal->fd = -1;
    if (segment->last < segment->first) { /* nothing is in it */
        CLEANUP(freep) char *path = segment_path(journal, segment);
        unlink(path);
        journal->segments.len--;
    }
}

static int begin_segment(struct journal *journal, struct err *err)
{
    struct segment segment = { .first = journal->begin,
                               .last = journal->begin - 1,
                               .bytes = JOURNAL_MAGIC_BYTES };
    CLEANUP(freep) char *path = segment_path(journal, &segment);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_errno(err, errno, "journal '%s'", path);
    int rc = file_write_all(fd, journal_magic, JOURNAL_MAGIC_BYTES, err);
    if (rc < 0) {
        close(fd);
        unlink(path);
        return err_wrap(err, "journal '%s'", path);
    }
    vec_push(&journal->segments, segment);
    journal->fd = fd;
    return 0;
}

/* ---- adding ---- */

/* (4): they are gone, and the next segment begins after them. */
static void give_up(struct journal *journal)
{
    struct segment *segment = current(journal);
    uint64_t kept = segment ? segment->last : journal->begin - 1;

    log_error("journal.dropped", "from=%" PRIu64 " to=%" PRIu64 " why=the disk is full", kept + 1,
              journal->seen);
    journal->dropped += journal->seen - kept;
    str_done(&journal->waiting);
    journal_end_segment(journal);
    journal->begin = journal->seen + 1;
    journal->framed = journal->seen;
}

static int write_waiting(struct journal *journal, struct err *err)
{
    if (journal->fd < 0 && begin_segment(journal, err) < 0)
        return -(int)err->code;
    struct segment *segment = current(journal);
    int rc = file_write_all(journal->fd, journal->waiting.data, journal->waiting.len, err);
    if (rc < 0) {
        /* What got into the file of it is cut off; the same bytes are tried again. */
        if (ftruncate(journal->fd, (off_t)segment->bytes) < 0)
            return err_errno(err, errno, "journal in '%s'", journal->dir);
        return rc;
    }
    segment->bytes += journal->waiting.len;
    segment->last = journal->framed;
    segment->last_us = journal->time_us;
    str_clear(&journal->waiting);
    return 0;
}

int journal_flush(struct journal *journal, struct err *err)
{
    if (journal->waiting.len == 0)
        return 0;
    int rc = write_waiting(journal, err);
    if (rc == 0) {
        if (journal->full)
            log_info("journal.writes", "again");
        journal->full = false;
        return 0;
    }
    if (rc != -(int)ERR_DISK_FULL)
        return rc;
    if (!journal->full)
        log_warn("journal.waits", "text=%s", err->text);
    journal->full = true;
    if (journal->waiting.len > JOURNAL_WAITING_MOST)
        give_up(journal);
    *err = (struct err){ 0 };
    return 0;
}

int journal_mark(struct journal *journal, struct err *err)
{
    struct journal_entry mark = { .index = journal->seen, .time_us = journal->time_us };

    if (journal->seen > journal->framed) {
        journal_put_frame(&journal->waiting, &mark);
        journal->framed = journal->seen;
    }
    int rc = journal_flush(journal, err);
    if (rc < 0 || !journal->waiting.len)
        return rc;
    return err_set(err, ERR_DISK_FULL, "the journal waits for room on the disk");
}

static int rotate(struct journal *journal, struct err *err)
{
    int rc = journal_mark(journal, err);

    if (rc < 0)
        return rc == -(int)ERR_DISK_FULL ? 0 : rc;
    journal_end_segment(journal);
    journal->begin = journal->seen + 1;
    return 0;
}

int journal_jump(struct journal *journal, uint64_t index, struct err *err)
{
    if (index <= journal->seen)
        return 0;
    if (journal->segments.len || journal->waiting.len) {
        int rc = journal_mark(journal, err);
        if (rc == -(int)ERR_DISK_FULL)
            give_up(journal);
        else if (rc < 0)
            return rc;
        journal_end_segment(journal);
    }
    journal->seen = journal->framed = index;
    journal->begin = index + 1;
    return 0;
}

int journal_add(struct journal *journal, const struct journal_entry *entry, struct err *err)
{
    int rc = 0;

    if (entry->index <= journal->seen)
        return 0;
    if (entry->bytes.len > JOURNAL_ENTRY_MOST)
        return err_set(err, ERR_TOO_LARGE, "entry %" PRIu64 " is too large for the journal",
                       entry->index);
    if (journal->seen == 0 && entry->index > 1)
        rc = journal_jump(journal, entry->index - 1, err); /* the first one ever */
    if (rc < 0)
        return rc;
    struct segment *segment = current(journal);
    if (entry->bytes.len &&
        (segment ? segment->bytes : 0) + journal->waiting.len >= journal->limits.segment_bytes)
        rc = rotate(journal, err);
    journal->seen = entry->index;
    journal->time_us = entry->time_us;
    if (rc < 0 || !entry->bytes.len)
        return rc;
    journal_put_frame(&journal->waiting, entry);
    journal->framed = entry->index;
    return journal->waiting.len >= FLUSH_BYTES && !journal->full ? journal_flush(journal, err) : 0;
}

/* ---- durable ---- */

int journal_sync_files(const struct journal *journal, struct err *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < journal->segments.len; i++) {
        const struct segment *segment = &journal->segments.items[i];
        if (segment->sealed)
            continue;
        CLEANUP(freep) char *path = segment_path(journal, segment);
        CLEANUP(file_close) int fd = open(path, O_RDWR | O_CLOEXEC);
        rc = fd < 0 ? err_errno(err, errno, "journal '%s'", path) : file_sync(fd, err);
    }
    return rc < 0 ? rc : file_sync_dir(journal->dir, err);
}

void journal_synced(struct journal *journal, uint64_t index)
{
    size_t done = journal->segments.len - (journal->fd >= 0);

    for (size_t i = 0; i < done; i++) {
        struct segment *segment = &journal->segments.items[i];
        if (segment->sealed || segment->last > index)
            continue;
        CLEANUP(freep) char *from = segment_path(journal, segment);
        segment->sealed = true;
        CLEANUP(freep) char *to = segment_path(journal, segment);
        struct err err = { 0 };
        if (file_rename(from, to, &err) < 0) {
            log_warn("journal.seal", "text=%s", err.text);
            segment->sealed = false;
        }
    }
}

/* ---- its end ---- */

bool journal_trim(struct journal *journal, uint64_t acked, int64_t now_us, uint64_t *lost)
{
    uint64_t total = 0;

    if (journal->segments.len <= (size_t)(journal->fd >= 0))
        return false;
    vec_each (struct segment, segment, &journal->segments)
        total += segment->bytes;
    struct segment *oldest = &journal->segments.items[0];
    if (oldest->last > acked && total <= journal->limits.keep_bytes &&
        oldest->last_us >= now_us - journal->limits.keep_us)
        return false;
    CLEANUP(freep) char *path = segment_path(journal, oldest);
    if (file_unlink(path) < 0 && errno != ENOENT)
        return false;
    if (oldest->last > acked) {
        uint64_t count = oldest->last - MAX(oldest->first - 1, acked);
        journal->dropped += count;
        *lost += count;
    }
    vec_remove(&journal->segments, 0);
    return true;
}

uint64_t journal_first(const struct journal *journal)
{
    return journal->segments.len ? journal->segments.items[0].first
           : journal->seen       ? journal->begin
                                 : 0;
}

uint64_t journal_last(const struct journal *journal)
{
    return journal->seen;
}

uint64_t journal_dropped(const struct journal *journal)
{
    return journal->dropped;
}

void journal_close(struct journal *journal)
{
    struct err err = { 0 };

    if (!journal)
        return;
    if (journal_mark(journal, &err) < 0)
        log_warn("journal.close", "text=%s", err.text);
    file_close(&journal->fd);
    file_close(&journal->lock);
    vec_done(&journal->segments);
    str_done(&journal->waiting);
    free(journal->dir);
    free(journal);
}
