/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal_open.c - the journal as a crash left it
 *
 * Segments whose name says where they end are believed; the others are read. Where one is torn it is
 * cut, and what comes after it goes: everything after the newest snapshot is applied again, and
 * everything before it was durable.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/journal_priv.h"
#include "sys/files.h"
#include "sys/log.h"

#define SEGMENT_BYTES UINT64_C(16777216)
#define KEEP_BYTES    (UINT64_C(10) << 30)
#define KEEP_US       (INT64_C(30) * 86400 * 1000000)

enum { NAME_DIGITS = 20, SEGMENT_MOST = 1 << 30 };

/* "00000000000000000001.open" or "00000000000000000001-00000000000000000200". */
static bool read_name(const char *name, struct segment *out)
{
    char first[NAME_DIGITS + 1], rest[NAME_DIGITS + 8];

    *out = (struct segment){ 0 };
    if (strlen(name) < NAME_DIGITS + 2 || strlen(name) > 2 * NAME_DIGITS + 1)
        return false;
    snprintf(first, sizeof(first), "%.*s", (int)NAME_DIGITS, name);
    snprintf(rest, sizeof(rest), "%s", name + NAME_DIGITS);
    if (!str_to_u64(first, UINT64_MAX - 1, &out->first) || out->first == 0)
        return false;
    if (str_eq(rest, ".open"))
        return true;
    out->sealed = true;
    return rest[0] == '-' && strlen(rest) == NAME_DIGITS + 1 &&
           str_to_u64(rest + 1, UINT64_MAX - 1, &out->last) && out->last >= out->first;
}

static int list_segments(struct journal *journal, struct err *err)
{
    DIR *dir = opendir(journal->dir);

    if (!dir)
        return err_errno(err, errno, "journal '%s'", journal->dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct segment segment;
        struct stat file;
        if (str_ends(entry->d_name, ".fill"))
            unlinkat(dirfd(dir), entry->d_name, 0);
        else if (read_name(entry->d_name, &segment) &&
                 fstatat(dirfd(dir), entry->d_name, &file, AT_SYMLINK_NOFOLLOW) == 0) {
            segment.bytes = (uint64_t)file.st_size;
            segment.last_us = (int64_t)file.st_mtim.tv_sec * 1000000;
            segment_insert(journal, &segment);
        }
    }
    closedir(dir);
    return 0;
}

/*
 * Reads a segment whose name does not say where it ends, up to `upto`. Returns whether all of it is
 * whole; `segment` gets what is.
 */
static int scan(const char *path, struct segment *segment, uint64_t upto, struct err *err)
{
    CLEANUP(str_done) struct str text = { 0 };
    struct journal_entry entry;
    size_t used = 0, at = JOURNAL_MAGIC_BYTES;

    if (file_read(path, SEGMENT_MOST, &text, err) < 0)
        return err_wrap(err, "journal");
    segment->last = segment->first - 1;
    segment->bytes = 0;
    if (text.len < at || memcmp(text.data, journal_magic, at) != 0)
        return 0;
    struct span bytes = { text.data, text.len };
    while (journal_get_frame(bytes, at, &entry, &used) > 0 && entry.index > segment->last &&
           entry.index <= upto) {
        segment->last = entry.index;
        segment->last_us = entry.time_us;
        at += used;
    }
    segment->bytes = at;
    return at == text.len;
}

static void remove_from(struct journal *journal, size_t from)
{
    for (size_t i = from; i < journal->segments.len; i++) {
        CLEANUP(freep) char *path = segment_path(journal, &journal->segments.items[i]);
        if (unlink(path) < 0)
            log_warn("journal.remove", "path=%s error=%s", path, strerror(errno));
    }
    journal->segments.len = MIN(from, journal->segments.len);
}

/* The last segment, unless it is sealed, is written on. */
static int resume(struct journal *journal, struct err *err)
{
    if (!journal->segments.len)
        return 0;
    struct segment *last = &journal->segments.items[journal->segments.len - 1];
    journal->seen = journal->framed = last->last;
    journal->time_us = last->last_us;
    journal->begin = last->last + 1;
    if (last->sealed)
        return 0;
    if (last->bytes < JOURNAL_MAGIC_BYTES) { /* not even its head was written */
        journal->begin = last->first;
        remove_from(journal, journal->segments.len - 1);
        return 0;
    }
    CLEANUP(freep) char *path = segment_path(journal, last);
    journal->fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
    if (journal->fd < 0 || ftruncate(journal->fd, (off_t)last->bytes) < 0)
        return err_errno(err, errno, "journal '%s'", path);
    return 0;
}

static int recover(struct journal *journal, struct err *err)
{
    for (size_t i = 0; i < journal->segments.len; i++) {
        struct segment *segment = &journal->segments.items[i];
        if (segment->sealed)
            continue;
        CLEANUP(freep) char *path = segment_path(journal, segment);
        int whole = scan(path, segment, UINT64_MAX, err);
        if (whole < 0)
            return whole;
        if (whole)
            continue;
        log_warn("journal.cut", "path=%s at=%" PRIu64 " last=%" PRIu64, path, segment->bytes,
                 segment->last);
        remove_from(journal, i + 1);
    }
    return resume(journal, err);
}

int journal_open(const char *dir, const struct journal_limits *limits, struct journal **out,
                 struct err *err)
{
    struct journal *journal = NEW(struct journal);

    *out = NULL;
    journal->fd = -1;
    journal->begin = 1;
    journal->dir = mem_strdup(dir);
    journal->limits = *limits;
    if (!journal->limits.segment_bytes)
        journal->limits.segment_bytes = SEGMENT_BYTES;
    if (!journal->limits.keep_bytes)
        journal->limits.keep_bytes = KEEP_BYTES;
    if (!journal->limits.keep_us)
        journal->limits.keep_us = KEEP_US;
    CLEANUP(freep) char *lock = mem_printf("%s/lock", dir);
    journal->lock = -1;
    int rc = file_make_dirs(dir, 0700, err);
    if (rc == 0 && (rc = journal->lock = file_lock(lock, err)) >= 0)
        rc = list_segments(journal, err);
    if (rc == 0)
        rc = recover(journal, err);
    if (rc < 0) {
        file_close(&journal->fd);
        file_close(&journal->lock);
        vec_done(&journal->segments);
        free(journal->dir);
        free(journal);
        return rc;
    }
    *out = journal;
    return 0;
}

int journal_cut(struct journal *journal, uint64_t index, struct err *err)
{
    size_t keep = 0;

    if (index >= journal->seen)
        return 0;
    str_clear(&journal->waiting);
    file_close(&journal->fd);
    journal->fd = -1;
    while (keep < journal->segments.len && journal->segments.items[keep].first <= index)
        keep++;
    remove_from(journal, keep);
    journal->seen = journal->framed = index;
    journal->begin = index + 1;
    if (!keep)
        return 0;
    struct segment *last = &journal->segments.items[keep - 1];
    CLEANUP(freep) char *path = segment_path(journal, last);
    if (last->last <= index && last->sealed)
        return 0;
    int rc = scan(path, last, index, err);
    if (rc < 0)
        return rc;
    if (last->sealed) {
        last->sealed = false;
        CLEANUP(freep) char *open_path = segment_path(journal, last);
        if ((rc = file_rename(path, open_path, err)) < 0)
            return rc;
    }
    rc = resume(journal, err);
    journal->seen = index; /* what meant nothing has no frame */
    return rc;
}
