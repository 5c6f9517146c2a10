/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_rebuild.c - a new database from what of a damaged one can be believed
 *
 * Only when an operator accepts the loss. The damaged files stay beside as log.db.damaged-TIME.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log/sqlite_priv.h"
#include "log/watermark.h"
#include "sys/clock.h"
#include "sys/files.h"
#include "sys/log.h"

struct rebuild {
    struct store *to;
    struct log_point at; /* the new log ends here */
};

/* A payload of a row before the anchor may still be wanted; its digest says whether it is good. */
static int keep_payloads(struct rebuild *rebuild, const struct log_batch *batch, struct err *err)
{
    struct log_walk walk;
    struct log_entry entry;
    struct log_payload payload;

    log_walk_init(&walk, batch);
    while (log_walk_next(&walk, &entry)) {
        while (log_walk_payload(&walk, &payload)) {
            if (payload_check(payload.digest, payload.bytes, NULL) == 0 &&
                payload_put(&rebuild->to->payloads, payload.digest, payload.bytes) != SQLITE_OK)
                return store_err(rebuild->to->db, err, "rebuild");
        }
    }
    return 0;
}

static int keep_row(void *ctx, const struct log_batch *batch, struct err *err)
{
    struct rebuild *rebuild = ctx;

    if (batch->first <= rebuild->at.index)
        return keep_payloads(rebuild, batch, err);
    if (batch->first != rebuild->at.index + 1 || batch->crc != batch_crc(rebuild->at.crc, batch) ||
        !batch_is_whole(batch))
        return err_set(err, ERR_CANCELLED, "entry %" PRIu64 " is damaged", batch->first);
    rebuild->at = (struct log_point){ batch->first + batch->count - 1, batch->crc };
    return store_insert(rebuild->to, batch, err);
}

static int keep_table(struct rebuild *rebuild, struct store *from, struct err *err)
{
    CLEANUP(str_done) struct str bytes = { 0 };
    uint8_t digest[1][LOG_DIGEST_BYTES];
    int64_t cursor = 0;

    while (payload_list(&from->payloads, &cursor, digest, 1, NULL) > 0) {
        str_clear(&bytes);
        if (payload_get(&from->payloads, digest[0], &bytes, NULL) == 0 &&
            payload_put(&rebuild->to->payloads, digest[0],
                        (struct span){ str_text(&bytes), bytes.len }) != SQLITE_OK)
            return store_err(rebuild->to->db, err, "rebuild");
    }
    return 0;
}

/* Errors of the damaged database end the copy of that table; errors of the new one end all. */
static int copy(struct rebuild *rebuild, struct store *from, struct err *err)
{
    struct err why = { 0 };
    int rc = keep_table(rebuild, from, err);

    if (rc < 0)
        return rc;
    rc = store_scan(from, 0, keep_row, rebuild, &why);
    if (rc < 0)
        log_error("log.loss", "kept_upto=%" PRIu64 ": %s", rebuild->at.index, why.text);
    return rc == -(int)ERR_DISK_FULL || rc == -(int)ERR_IO ? err_set(err, why.code, "%s", why.text)
                                                           : 0;
}

static int move_aside(const char *path, struct err *err)
{
    static const char *const sides[] = { "", "-wal" };
    int64_t now = clock_wall_s();
    int rc = 0;

    for (size_t i = 0; i < ARRAY_LEN(sides) && rc == 0; i++) {
        CLEANUP(freep) char *from = mem_printf("%s%s", path, sides[i]);
        CLEANUP(freep) char *to = mem_printf("%s.damaged-%" PRId64 "%s", path, now, sides[i]);
        if (access(from, F_OK) == 0)
            rc = file_rename(from, to, err);
    }
    CLEANUP(freep) char *shm = mem_printf("%s-shm", path);
    unlink(shm);
    return rc;
}

static int reset_mark(const char *dir, struct log_point at, struct err *err)
{
    int fd = watermark_open(dir, true, err), rc = 0;

    if (fd < 0)
        return fd;
    for (uint64_t turn = 0; rc == 0 && turn < 2; turn++)
        rc = watermark_write(fd, at, turn, err);
    if (rc == 0)
        rc = file_sync(fd, err);
    close(fd);
    return rc;
}

int sqlite_rebuild(struct sqlite_log *self, struct log_point anchor, uint64_t *last,
                   struct err *err)
{
    CLEANUP(freep) char *path = mem_printf("%s/log.db", self->log.dir);
    CLEANUP(freep) char *fresh = mem_printf("%s.new", path);
    struct rebuild rebuild = { .at = anchor };
    struct store *from = NULL;
    bool complete;

    unlink(fresh);
    int rc = store_open(fresh, true, &rebuild.to, err);
    if (rc == 0)
        rc = store_set_base(rebuild.to, anchor, err);
    if (rc == 0 && store_open(path, false, &from, NULL) == 0)
        rc = copy(&rebuild, from, err);
    store_close(from);
    if (rc == 0)
        rc = store_checkpoint(rebuild.to, true, &complete, err);
    store_close(rebuild.to);
    for (int i = 0; i < 2; i++) {
        CLEANUP(freep) char *side = mem_printf("%s%s", fresh, i ? "-wal" : "-shm");
        unlink(side);
    }
    if (rc == 0)
        rc = move_aside(path, err);
    if (rc == 0)
        rc = reset_mark(self->log.dir, rebuild.at, err);
    if (rc == 0)
        rc = file_rename(fresh, path, err);
    if (rc == 0)
        rc = file_sync_dir(self->log.dir, err);
    *last = rebuild.at.index;
    return rc;
}
