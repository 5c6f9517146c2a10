/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journals.c - the journal of jobs and steps: written as entries are applied, read by accounting
 *
 * (1) What is read is in the log for good: only what was committed is applied.
 * (2) A reader is sent pieces as it takes them, and none is kept for it meanwhile.
 * (3) A journal that cannot be written ends the process, as a log that cannot be written does; what it
 *     lacks is derived again at the next start. A full disk is waited for.
 */
#include <stdlib.h>
#include <string.h>

#include "log/journal.h"
#include "proto/peer.pb-c.h"
#include "schema/trigger.h"
#include "spurctld/feed.h"
#include "spurctld/ha/peers.h"
#include "sys/clock.h"
#include "sys/log.h"
#include "wire/pb.h"
#include "wire/pb_add.h"

enum { PIECE_BYTES = 128 * 1024, FIELD_REPLY_ENTRIES = 1 };

#define TRIM_US INT64_C(60000000)
#define DAY_US  (INT64_C(86400) * 1000000)

/* ---- writing ---- */

int server_journal_open(struct server *server, struct err *err)
{
    const ConfLocal *local = conf_local(server->conf);
    CLEANUP(freep) char *dir = mem_printf("%s/journal", server->state_dir);
    struct journal_limits limits = {
        .segment_bytes = local->journal_segment_bytes,
        .keep_bytes = local->journal_bytes,
        .keep_us = local->journal_days * DAY_US,
    };

    return journal_open(dir, &limits, &server->journal, err);
}

static void must(int rc, const struct err *err)
{
    if (rc >= 0)
        return;
    log_fatal("ctl.fenced", "text=%s", err->text); /* (3) */
    log_shutdown();
    _exit(70);
}

void server_journal(void *ctx, uint64_t index, int64_t time_us, struct span bytes)
{
    struct server *server = ctx;
    struct journal_entry entry = { index, time_us, bytes, 0 };
    struct err err = { 0 };

    must(journal_add(server->journal, &entry, &err), &err);
}

void server_journal_restored(void *ctx, uint64_t index)
{
    struct server *server = ctx;
    struct err err = { 0 };
    uint64_t last = journal_last(server->journal);

    if (index <= last)
        return;
    log_info("journal.jump", "from=%llu to=%llu", (unsigned long long)last,
             (unsigned long long)index);
    must(journal_jump(server->journal, index, &err), &err);
}

/* Only when the log was opened at its end, which one controller alone does. */
int server_journal_settle(struct server *server, struct err *err)
{
    uint64_t index = state_head(ctl_state(server->ctl)).index;
    uint64_t last = journal_last(server->journal);

    if (server_is_several(server) || last <= index)
        return 0;
    log_warn("journal.cut", "last=%llu log=%llu", (unsigned long long)last,
             (unsigned long long)index);
    return journal_cut(server->journal, index, err);
}

bool server_journal_mark(struct server *server)
{
    struct err err = { 0 };

    if (journal_mark(server->journal, &err) == 0)
        return true;
    log_warn("journal.mark", "text=%s", err.text);
    return false;
}

void server_journal_end(struct server *server)
{
    struct err err = { 0 };

    if (!server->journal)
        return;
    if (server_journal_mark(server) && journal_sync_files(server->journal, &err) < 0)
        log_warn("journal.sync", "text=%s", err.text);
    journal_close(TAKE(server->journal));
    vec_done(&server->journal_readers);
}

static void trim(struct server *server)
{
    struct state_head head = state_head(ctl_state(server->ctl));
    int64_t now_us = clock_mono_us();

    if (head.journal_acked == server->journal_acked && now_us < server->journal_trim_us)
        return;
    uint64_t lost = 0;
    if (journal_trim(server->journal, head.journal_acked, head.time_us, &lost)) {
        wake_send(&server->wake); /* the next one in the next turn */
    } else {
        server->journal_acked = head.journal_acked;
        server->journal_trim_us = now_us + TRIM_US;
    }
    if (lost)
        ctl_happened(server->ctl, TRIGGER_JOURNAL_FULL);
    if (lost)
        log_warn("journal.dropped", "indexes=%llu before=%llu why=nobody has acknowledged them",
                 (unsigned long long)lost, (unsigned long long)journal_first(server->journal));
}

/* ---- reading ---- */

struct journal_reader {
    struct rpc_call *call;
    struct journal_cursor cursor;
    uint64_t upto;
    bool follow, waits, sent;
    struct str piece;
};

static void take_entry(void *ctx, const struct journal_entry *entry)
{
    struct journal_reader *reader = ctx;

    if (entry->index > reader->upto && !entry->lost_from)
        return;
    if (!entry->lost_from) {
        pb_add_bytes(&reader->piece, FIELD_REPLY_ENTRIES, entry->bytes.ptr, entry->bytes.len);
        return;
    }
    JournalEntry lost = JOURNAL_ENTRY__INIT;
    uint8_t packed[64];
    lost.has_index = lost.has_lost_from = true;
    lost.index = entry->index;
    lost.lost_from = entry->lost_from;
    pb_add_bytes(&reader->piece, FIELD_REPLY_ENTRIES, packed, journal_entry__pack(&lost, packed));
}

static void reader_free(struct server *server, struct journal_reader *reader)
{
    for (size_t i = 0; i < server->journal_readers.len; i++) {
        if (server->journal_readers.items[i] == reader)
            vec_remove(&server->journal_readers, i);
    }
    rpc_call_set_data(reader->call, NULL);
    str_done(&reader->piece);
    free(reader);
}

/* What the journal is, after the entries of a piece. */
static bool send_piece(struct server *server, struct journal_reader *reader)
{
    ReadJournalReply head = READ_JOURNAL_REPLY__INIT;
    uint8_t packed[128];

    head.has_first = head.has_last = head.has_acked = head.has_dropped = true;
    head.first = journal_first(server->journal);
    head.last = reader->cursor.next ? reader->cursor.next - 1 : 0;
    head.acked = state_head(ctl_state(server->ctl)).journal_acked;
    head.dropped = journal_dropped(server->journal);
    str_add_len(&reader->piece, packed, read_journal_reply__pack(&head, packed));
    reader->sent = true;
    return rpc_send_packed(reader->call, &reader->piece);
}

/* 1: more to send, 0: that was all for now, negative: it cannot be read. */
static int read_piece(struct server *server, struct journal_reader *reader, struct err *err)
{
    int rc = journal_read(server->journal, &reader->cursor, PIECE_BYTES, take_entry, reader, err);

    if (rc == 0) /* entries that meant nothing have been passed too */
        reader->cursor.next = MAX(reader->cursor.next, journal_last(server->journal) + 1);
    return rc > 0 && reader->cursor.next > reader->upto ? 0 : rc;
}

static void read_on(struct rpc_call *call)
{
    struct journal_reader *reader = rpc_call_data(call);
    struct server *server = rpc_call_ctx(call);
    struct err err = { 0 };
    int rc = 1;

    while (reader && rc > 0 && rpc_writable(call)) { /* (2) */
        rc = read_piece(server, reader, &err);
        if ((reader->piece.len || !reader->sent) && rc >= 0 && !send_piece(server, reader)) {
            reader->follow = false;
            rc = 0;
        }
    }
    if (!reader || rc > 0)
        return;
    if (rc == 0 && reader->follow && reader->cursor.next <= reader->upto) {
        reader->waits = true;
        return;
    }
    reader_free(server, reader);
    if (rc < 0)
        rpc_fail(call, &err);
    else
        rpc_end(call);
}

static void read_cancelled(struct rpc_call *call)
{
    struct journal_reader *reader = rpc_call_data(call);

    if (!reader)
        return;
    reader_free(rpc_call_ctx(call), reader);
    rpc_end(call);
}

static const struct rpc_watch read_watch = { .on_writable = read_on, .on_cancel = read_cancelled };

static void read_begin(struct rpc_call *call, uint64_t from, uint64_t upto, bool follow)
{
    struct server *server = rpc_call_ctx(call);
    struct journal_reader *reader = NEW(struct journal_reader);

    reader->call = call;
    reader->cursor.next = from;
    reader->upto = upto;
    reader->follow = follow;
    vec_push(&server->journal_readers, reader);
    rpc_call_set_data(call, reader);
    rpc_watch(call, &read_watch);
    read_on(call);
}

void server_read_journal(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const ReadJournalRequest *request = (const void *)message;

    (void)ctl;
    read_begin(ask->ctx, request->from, request->has_upto ? request->upto : UINT64_MAX,
               request->follow);
}

/* Two that acknowledge would each think that the other has it. */
void server_ack_journal(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    struct server *server = rpc_call_ctx(ask->ctx);
    struct err err = { 0 };

    if (!server_accounting_registered(server)) {
        ctl_ack_journal(ctl, ask, message);
        return;
    }
    err_set(&err, ERR_INVALID,
            "spurdbd at %s acknowledges the journal; switch it off first: [accounting] enabled = "
            "false",
            server_accounting_address(server));
    ask->ops->fail(ask, &err);
}

/* The fields of a PeerJournalChunk have the numbers that they have in ReadJournalReply. */
void server_on_peer_journal(struct rpc_call *call, const ProtobufCMessage *message)
{
    const PeerJournalRequest *request = (const void *)message;

    if (server_is_peer(call))
        read_begin(call, request->from, request->upto, false);
}

void server_journal_turn(struct server *server)
{
    struct err err = { 0 };

    must(journal_flush(server->journal, &err), &err);
    trim(server);
    uint64_t last = journal_last(server->journal);
    for (size_t i = server->journal_readers.len; i-- > 0;) {
        struct journal_reader *reader = server->journal_readers.items[i];
        if (!reader->waits || reader->cursor.next > last)
            continue;
        reader->waits = false;
        read_on(reader->call);
    }
}
