/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers_journal.c - what the journal lacks because the state jumped, from the journals of others
 *
 * (1) Everybody is asked once; what nobody has, the journal says that it lacks.
 * (2) What an entry meant is the same on every controller, so whoever has it will do.
 */
#include <stdlib.h>

#include "log/journal.h"
#include "spurctld/ha/peers_priv.h"
#include "sys/log.h"

static void take_entry(struct peers *peers, const JournalEntry *entry)
{
    struct journal_entry fact = { .index = entry->index, .time_us = entry->time_us };
    size_t len = journal_entry__get_packed_size(entry);

    if (entry->index < peers->journal_from || entry->index > peers->journal_upto) {
        if (!entry->lost_from || entry->index < peers->journal_from)
            err_set(&peers->broken, ERR_CORRUPT, "entry %llu was not asked for",
                    (unsigned long long)entry->index);
        else
            peers->journal_from = peers->journal_upto + 1; /* it has nothing of it */
        return;
    }
    if (entry->lost_from && peers->fill) {
        err_set(&peers->broken, ERR_NOT_FOUND, "entry %llu is lost there too",
                (unsigned long long)entry->index);
        return;
    }
    if (entry->lost_from) {
        peers->journal_from = entry->index + 1; /* it begins later */
        return;
    }
    if (!peers->fill)
        peers->fill =
            journal_fill_begin(peers->server->journal, peers->journal_from, &peers->broken);
    CLEANUP(freep) uint8_t *packed = mem_new(len + 1);
    fact.bytes = (struct span){ (char *)packed, journal_entry__pack(entry, packed) };
    if (peers->fill)
        journal_fill_add(peers->fill, &fact, &peers->broken);
}

static void on_journal(struct rpc_request *request, const ProtobufCMessage *message)
{
    struct peers *peers = rpc_request_data(request);
    const PeerJournalChunk *chunk = (const void *)message;

    for (size_t i = 0; i < chunk->n_entries && !peers->broken.code; i++)
        take_entry(peers, chunk->entries[i]);
    peers->journal_last = chunk->last;
}

static void on_journal_done(struct rpc_request *request, const ProtobufCMessage *reply,
                            const struct err *err)
{
    struct peers *peers = rpc_request_data(request);
    uint64_t upto = MIN(peers->journal_upto, peers->journal_last);
    struct err failed = err ? *err : peers->broken;

    (void)reply;
    peers->request = NULL;
    if (!failed.code && !peers->fill && peers->journal_from <= upto)
        peers->fill = journal_fill_begin(peers->server->journal, peers->journal_from, &failed);
    if (!failed.code && peers->fill)
        journal_fill_end(TAKE(peers->fill), upto, &failed);
    else
        journal_fill_abandon(TAKE(peers->fill));
    if (failed.code)
        log_warn("peers.journal", "peer=%s text=%s", rpc_client_peer(peers->client), failed.text);
    else if (peers->journal_from <= upto)
        log_info("peers.journal", "peer=%s from=%llu to=%llu", rpc_client_peer(peers->client),
                 (unsigned long long)peers->journal_from, (unsigned long long)upto);
    peers_pass_on(peers);
}

void peers_fetch_journal(struct peers *peers)
{
    struct server *server = peers->server;
    PeerJournalRequest request = PEER_JOURNAL_REQUEST__INIT;
    uint64_t acked = state_head(ctl_state(server->ctl)).journal_acked;

    if (!journal_missing(server->journal, acked, &peers->journal_from, &peers->journal_upto)) {
        peers->journal_asks = false;
        peers_drop_client(peers);
        return;
    }
    if (peers->journal_left-- == 0) {
        log_warn("journal.lacks", "from=%llu to=%llu", (unsigned long long)peers->journal_from,
                 (unsigned long long)peers->journal_upto);
        peers->journal_asks = false;
        peers_drop_client(peers);
        return;
    }
    peers->journal_last = 0;
    request.has_from = request.has_upto = true;
    request.from = peers->journal_from;
    request.upto = peers->journal_upto;
    peers_ask(peers, "/spur.Peers/Journal", &request.base, &peer_journal_chunk__descriptor,
              on_journal, on_journal_done);
}
