/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers_priv.h - what the files of peers share
 */
#ifndef SPURCTLD_PEERS_PRIV_H
#define SPURCTLD_PEERS_PRIV_H

#include "log/transfer.h"
#include "spurctld/ha/peers.h"

struct peers {
    struct server *server;
    struct tls_ctx *tls;
    uv_timer_t *timer, *hold_timer;

    struct rpc_client *client; /* to the peer that is asked now */
    struct rpc_request *request;
    size_t at;       /* which peer, in the list of controllers */
    size_t in_a_row; /* peers that had nothing for us */
    struct err broken;

    uint64_t want; /* a snapshot of at least this index; 0: none */
    struct transfer_in *in;

    bool scanning, lacking; /* payloads; `lacking`: in this scan somebody could not help */
    uint64_t cursor;        /* the next job to look at */
    uint8_t wanted[TRANSFER_DIGESTS][LOG_DIGEST_BYTES];
    size_t wanted_count, got;
    uint64_t fetched;
    struct transfer_payload payload;

    bool journal_asks;
    unsigned journal_left; /* peers that may still be asked for what the journal lacks */
    uint64_t journal_from, journal_upto, journal_last;
    struct journal_fill *fill;

    bool held; /* somebody asked us not to lead */
    VEC(struct hold_call *) holds;
};

/* Asks the peer whose turn it is; false: there is none, and the next one's turn comes. */
bool peers_ask(struct peers *peers, const char *path, const ProtobufCMessage *message,
               const ProtobufCMessageDescriptor *reply,
               void (*on_message)(struct rpc_request *request, const ProtobufCMessage *message),
               void (*on_done)(struct rpc_request *request, const ProtobufCMessage *reply,
                               const struct err *err));
/* This one could not help; (after everybody, with a pause) the next. */
void peers_pass_on(struct peers *peers);
void peers_drop_client(struct peers *peers);

/* peers_journal.c */
void peers_fetch_journal(struct peers *peers);

#endif
