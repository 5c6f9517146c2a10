/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_trim.c - forgetting entries that no kept snapshot needs
 *
 * (1) Two snapshots are kept, and the entries after the older one: if the newer one turns out
 *     damaged, the older one and the entries give the same state.
 * (2) Rows go in slices, each one transaction of the writer between two batches: the rows, the
 *     payloads of them that are still referred to (into the table), and where the log now begins.
 * (3) The owner is asked which payloads live on its own thread, when the slice is made. One that
 *     is dropped later is dropped from the table.
 */
#include <stdlib.h>
#include <string.h>

#include "log/sqlite_priv.h"
#include "sys/log.h"

enum { SLICE_BYTES = 2 * 1024 * 1024, SLICE_DROPS = 1024 };

/* (3) */
static void collect_moves(struct sqlite_log *self, struct chore *chore)
{
    uint64_t upto;
    size_t count = payload_index_upto(&self->index, chore->what.trim_upto, SIZE_MAX, &upto);

    chore->moves = NEW_ARRAY(struct store_move, count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct payload_place *place = payload_index_nth(&self->index, i);
        if (place->dead || !self->log.owner->payload_live(self->log.ctx, place->digest))
            continue;
        struct store_move *move = &chore->moves[chore->what.move_count++];
        *move =
            (struct store_move){ .row = place->row, .offset = place->offset, .len = place->len };
        memcpy(move->digest, place->digest, LOG_DIGEST_BYTES);
    }
    chore->what.moves = chore->moves;
}

static void collect_drops(struct sqlite_log *self, struct chore *chore)
{
    size_t count = MIN(self->drops.len, (size_t)SLICE_DROPS);

    chore->drops = mem_new((count + 1) * LOG_DIGEST_BYTES);
    while (chore->what.drop_count < count) {
        const struct digest_item *item = &self->drops.items[--self->drops.len];
        /* Submitted again meanwhile: it stays. */
        if (self->log.owner->payload_live(self->log.ctx, item->bytes)) {
            count--;
            continue;
        }
        memcpy(chore->drops[chore->what.drop_count++], item->bytes, LOG_DIGEST_BYTES);
    }
    chore->what.drops = (const uint8_t(*)[LOG_DIGEST_BYTES])chore->drops;
}

void sqlite_trim_next(struct sqlite_log *self)
{
    struct log_point end = self->base;
    struct err err;

    if (self->chore || self->chore_blocked)
        return;
    if (self->base.index < self->previous.index &&
        store_measure(self->reader, self->base.index, self->previous.index, SLICE_BYTES, &end,
                      &err) < 0) {
        log_fail(&self->log, &err);
        return;
    }
    bool rows = end.index > self->base.index;
    if (!rows && self->drops.len < SLICE_DROPS)
        return;
    self->chore = NEW(struct chore);
    if (rows) {
        self->chore->what.trim_upto = end.index;
        self->chore->what.base = end;
        collect_moves(self, self->chore);
    }
    collect_drops(self, self->chore);
    writer_do_chore(&self->writer, self->chore);
}

void sqlite_trim_done(struct sqlite_log *self, struct chore *chore)
{
    self->chore = NULL;
    if (chore->rc == 0 && chore->what.trim_upto) {
        self->base = chore->what.base;
        payload_index_forget(&self->index, chore->what.trim_upto);
    } else if (chore->rc == -(int)ERR_DISK_FULL || chore->rc == -(int)ERR_NO_MEMORY) {
        self->chore_blocked = true;
        log_warn("log.trim", "put off: %s", chore->err.text);
    } else if (chore->rc < 0) {
        log_fail(&self->log, &chore->err);
    }
    if (chore->rc < 0) {
        for (size_t i = 0; i < chore->what.drop_count; i++) {
            struct digest_item item;
            memcpy(item.bytes, chore->drops[i], LOG_DIGEST_BYTES);
            vec_push(&self->drops, item);
        }
    }
    chore_free(chore);
}

void sqlite_snapshot_verified(struct sqlite_log *self, struct log_point point)
{
    log_info("log.snapshot", "index=%llu", (unsigned long long)point.index);
    self->previous = self->log.snapshot; /* (1) */
    self->log.snapshot = point;
    self->log.bytes_since = 0;
}
