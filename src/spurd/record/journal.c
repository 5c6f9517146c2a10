/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.c - the agent's own log
 */
#include "spurd/record/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/str.h"
#include "sys/files.h"
#include "sys/log.h"

static const char magic[8] = "SPURJNL1";

enum { HEAD_BYTES = 8, FILE_MAX_BYTES = 512 * 1024 * 1024 };

static void put_u32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (8 * i));
}

static uint32_t get_u32(const uint8_t *from)
{
    return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 |
           (uint32_t)from[3] << 24;
}

static void add_record(struct str *out, const SpoolRecord *record)
{
    size_t len = spool_record__get_packed_size(record), at = out->len;

    str_reserve(out, HEAD_BYTES + len);
    out->len += HEAD_BYTES + len;
    uint8_t *head = (uint8_t *)out->data + at;
    spool_record__pack(record, head + HEAD_BYTES);
    put_u32(head, (uint32_t)len);
    put_u32(head + 4, crc32c(0, head + HEAD_BYTES, len));
    out->data[out->len] = '\0';
}

/* Returns how far the file is whole. */
static size_t read_records(const struct str *text, journal_record_fn each, void *ctx)
{
    const uint8_t *bytes = (const uint8_t *)str_text(text);
    size_t at = sizeof(magic);

    while (text->len - at >= HEAD_BYTES) {
        uint32_t len = get_u32(bytes + at), crc = get_u32(bytes + at + 4);
        if (len == 0 || len > JOURNAL_RECORD_MAX || len > text->len - at - HEAD_BYTES)
            break;
        if (crc32c(0, bytes + at + HEAD_BYTES, len) != crc)
            break;
        SpoolRecord *record = spool_record__unpack(NULL, len, bytes + at + HEAD_BYTES);
        if (!record)
            break;
        each(ctx, record);
        spool_record__free_unpacked(record, NULL);
        at += HEAD_BYTES + len;
    }
    return at;
}

static bool is_zero(const struct str *text, size_t from)
{
    const char *data = str_text(text);

    while (from < text->len && data[from] == 0)
        from++;
    return from >= text->len;
}

/* When there is no room for zeros there may still be for records. */
static void fill_ahead(struct journal *journal, size_t len)
{
    static const uint8_t zeros[JOURNAL_FILL_BYTES];
    uint64_t from = MAX(journal->filled, journal->bytes);

    while (journal->bytes + len > journal->filled) {
        ssize_t done = pwrite(journal->fd, zeros, sizeof(zeros), (off_t)from);
        if (done <= 0)
            return;
        from += (uint64_t)done;
        journal->filled = from;
    }
}

static int write_at_end(struct journal *journal, const struct str *bytes, struct err *err)
{
    size_t at = 0;

    while (at < bytes->len) {
        ssize_t done =
            pwrite(journal->fd, bytes->data + at, bytes->len - at, (off_t)(journal->bytes + at));
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return err_errno(err, done < 0 ? errno : ENOSPC, "%s", journal->path);
        at += (size_t)done;
    }
    return 0;
}

static int start_file(const char *path, struct err *err)
{
    return file_write(path, magic, sizeof(magic), 0600, err);
}

int journal_open(struct journal *journal, uv_loop_t *uv, const char *path, journal_record_fn each,
                 void *ctx, struct err *err)
{
    CLEANUP(str_done) struct str text = { 0 };
    size_t whole = 0;

    *journal = (struct journal){ .uv = uv, .fd = -1 };
    if (access(path, F_OK) == 0 && file_read(path, FILE_MAX_BYTES, &text, err) < 0)
        return err_wrap(err, "journal");
    if (text.len >= sizeof(magic) && memcmp(text.data, magic, sizeof(magic)) != 0)
        return err_set(err, ERR_CORRUPT, "'%s' is not a journal of spurd", path);
    if (text.len < sizeof(magic)) {
        if (start_file(path, err) < 0)
            return err_wrap(err, "journal");
        whole = sizeof(magic);
    } else {
        whole = read_records(&text, each, ctx);
    }
    journal->fd = open(path, O_WRONLY | O_CLOEXEC);
    if (journal->fd < 0)
        return err_errno(err, errno, "journal '%s'", path);
    if (!is_zero(&text, whole)) {
        log_warn("journal.cut", "path=%s at=%zu bytes=%zu", path, whole, text.len - whole);
        if (ftruncate(journal->fd, (off_t)whole) < 0)
            return err_errno(err, errno, "journal '%s'", path);
    }
    journal->bytes = whole;
    journal->filled = is_zero(&text, whole) ? MAX(text.len, whole) : whole;
    journal->path = mem_strdup(path);
    return 0;
}

static void sync_in_worker(uv_work_t *work)
{
    struct journal *journal = work->data;

    journal->sync_status = fdatasync(journal->fd) < 0 ? -errno : 0;
}

static void start_sync(struct journal *journal);

static void call_waiters(struct journal *journal, int status)
{
    VEC(struct journal_waiter) ready = { 0 };

    ready.items = journal->under_way.items;
    ready.len = journal->under_way.len;
    journal->under_way.items = NULL;
    journal->under_way.len = journal->under_way.cap = 0;
    vec_each (struct journal_waiter, waiter, &ready)
        waiter->done(waiter->ctx, status);
    vec_done(&ready);
}

static void synced(uv_work_t *work, int status)
{
    struct journal *journal = work->data;

    (void)status;
    journal->syncing = false;
    journal->syncs++;
    call_waiters(journal, journal->sync_status);
    start_sync(journal);
}

static void start_sync(struct journal *journal)
{
    if (journal->syncing || journal->waiting.len == 0 || journal->fd < 0)
        return;
    journal->syncing = true;
    journal->under_way.items = journal->waiting.items;
    journal->under_way.len = journal->waiting.len;
    journal->under_way.cap = journal->waiting.cap;
    journal->waiting.items = NULL;
    journal->waiting.len = journal->waiting.cap = 0;
    journal->work.data = journal;
    uv_queue_work(journal->uv, &journal->work, sync_in_worker, synced);
}

void journal_sync(struct journal *journal, journal_synced_fn done, void *ctx)
{
    struct journal_waiter waiter = { .done = done, .ctx = ctx };

    vec_push(&journal->waiting, waiter);
    start_sync(journal);
}

void journal_close(struct journal *journal)
{
    while (journal->syncing)
        uv_run(journal->uv, UV_RUN_ONCE);
    file_close(&journal->fd);
    vec_each (struct journal_waiter, waiter, &journal->waiting)
        waiter->done(waiter->ctx, -ECANCELED);
    vec_done(&journal->waiting);
    vec_done(&journal->under_way);
    free(TAKE(journal->path));
}

int journal_add(struct journal *journal, const SpoolRecord *const *records, size_t count,
                struct err *err)
{
    CLEANUP(str_done) struct str bytes = { 0 };

    for (size_t i = 0; i < count; i++)
        add_record(&bytes, records[i]);
    fill_ahead(journal, bytes.len);
    if (write_at_end(journal, &bytes, err) < 0) {
        if (ftruncate(journal->fd, (off_t)journal->bytes) < 0) /* what was half written */
            log_error("journal.truncate", "path=%s error=%s", journal->path, strerror(errno));
        journal->filled = journal->bytes;
        return err_wrap(err, "journal");
    }
    journal->bytes += bytes.len;
    journal->records += count;
    return 0;
}

bool journal_is_long(const struct journal *journal)
{
    return journal->bytes > JOURNAL_COMPACT_BYTES && !journal->syncing && journal->waiting.len == 0;
}

void journal_build(struct journal_builder *builder, const SpoolRecord *record)
{
    add_record(builder->out, record);
}

int journal_replace(struct journal *journal,
                    void (*write)(void *ctx, struct journal_builder *builder), void *ctx,
                    struct err *err)
{
    CLEANUP(str_done) struct str bytes = { 0 };
    struct journal_builder builder = { .out = &bytes };

    str_add_len(&bytes, magic, sizeof(magic));
    write(ctx, &builder);
    if (file_write(journal->path, bytes.data, bytes.len, 0600, err) < 0)
        return err_wrap(err, "journal");
    int fd = open(journal->path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(err, errno, "journal '%s'", journal->path);
    file_close(&journal->fd);
    journal->fd = fd;
    journal->bytes = journal->filled = bytes.len;
    return 0;
}
