/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers_give.c - snapshots and payloads for a controller that lacks them
 *
 * (1) Nobody is kept waiting: pieces are sent as the receiver takes them.
 */
#include <stdlib.h>
#include <string.h>

#include "log/transfer.h"
#include "spurctld/ha/peers.h"
#include "sys/log.h"

bool server_is_peer(struct rpc_call *call)
{
    const struct server *server = rpc_call_ctx(call);
    const char *name = rpc_call_identity(call)->controller;
    struct err err = { 0 };

    if (membership_find(&server->membership, name))
        return true;
    err_set(&err, ERR_PERMISSION, "controller '%s' is not in the cluster's list", name);
    rpc_fail(call, &err);
    return false;
}

static void snapshot_on(struct rpc_call *call)
{
    struct transfer_out *out = rpc_call_data(call);
    PeerSnapshotChunk chunk;
    struct err err = { 0 };
    int rc = 1;

    while (out && rpc_writable(call) && (rc = transfer_next(out, &chunk, &err)) > 0) {
        if (!rpc_send(call, &chunk.base)) {
            rc = 0;
            break;
        }
    }
    if (!out || rc > 0)
        return; /* (1): more when the peer has taken this */
    rpc_call_set_data(call, NULL);
    transfer_close(out);
    if (rc < 0)
        rpc_fail(call, &err);
    else
        rpc_end(call);
}

static void snapshot_cancelled(struct rpc_call *call)
{
    struct transfer_out *out = rpc_call_data(call);

    if (!out)
        return;
    rpc_call_set_data(call, NULL);
    transfer_close(out);
    rpc_end(call);
}

static const struct rpc_watch snapshot_watch = { .on_writable = snapshot_on,
                                                 .on_cancel = snapshot_cancelled };

void server_on_peer_snapshot(struct rpc_call *call, const ProtobufCMessage *message)
{
    const PeerSnapshotRequest *request = (const void *)message;
    struct server *server = rpc_call_ctx(call);
    struct transfer_out *out = NULL;
    struct log_status status;
    struct err err = { 0 };

    if (!server_is_peer(call))
        return;
    log_status(ctl_log(server->ctl), &status);
    if (ctl_is_in_doubt(server->ctl))
        err_set(&err, ERR_NOT_FOUND, "the state of this controller may be wrong");
    else if (status.snapshot == 0 || status.snapshot < request->at_least)
        err_set(&err, ERR_NOT_FOUND, "the newest snapshot here is at %llu",
                (unsigned long long)status.snapshot);
    else
        transfer_open(server->state_dir, status.snapshot, &out, &err);
    if (!out) {
        rpc_fail(call, &err);
        return;
    }
    log_info("peers.send", "to=%s snapshot=%llu", rpc_call_identity(call)->controller,
             (unsigned long long)status.snapshot);
    rpc_call_set_data(call, out);
    rpc_watch(call, &snapshot_watch);
    snapshot_on(call);
}

struct giving {
    uint8_t (*digests)[LOG_DIGEST_BYTES];
    size_t count, at;
    struct str bytes;
    size_t offset;
    bool open; /* bytes are those of `at` */
};

static void giving_end(struct rpc_call *call, struct giving *giving)
{
    rpc_call_set_data(call, NULL);
    str_done(&giving->bytes);
    free(giving->digests);
    free(giving);
    rpc_end(call);
}

/* Sends the next piece; false: the caller is gone. */
static bool give_piece(struct rpc_call *call, struct giving *giving)
{
    struct server *server = rpc_call_ctx(call);
    PeerPayloadChunk chunk = PEER_PAYLOAD_CHUNK__INIT;
    uint8_t *digest = giving->digests[giving->at];

    if (!giving->open) {
        str_clear(&giving->bytes);
        giving->offset = 0;
        if (log_payload_get(ctl_log(server->ctl), digest, &giving->bytes, NULL) < 0) {
            giving->at++; /* we do not have it */
            return true;
        }
        giving->open = true;
    }
    size_t len = MIN(giving->bytes.len - giving->offset, (size_t)TRANSFER_CHUNK_BYTES);
    chunk.has_digest = chunk.has_total = chunk.has_offset = chunk.has_data = true;
    chunk.digest = (ProtobufCBinaryData){ LOG_DIGEST_BYTES, digest };
    chunk.total = giving->bytes.len;
    chunk.offset = giving->offset;
    chunk.data = (ProtobufCBinaryData){ len, (uint8_t *)(uintptr_t)str_text(&giving->bytes) +
                                                 giving->offset };
    giving->offset += len;
    if (giving->offset == giving->bytes.len) {
        giving->at++;
        giving->open = false;
    }
    return rpc_send(call, &chunk.base);
}

static void payloads_on(struct rpc_call *call)
{
    struct giving *giving = rpc_call_data(call);
    bool heard = true;

    while (giving && heard && giving->at < giving->count && rpc_writable(call))
        heard = give_piece(call, giving);
    if (giving && (!heard || giving->at == giving->count))
        giving_end(call, giving);
}

static void payloads_cancelled(struct rpc_call *call)
{
    if (rpc_call_data(call))
        giving_end(call, rpc_call_data(call));
}

static const struct rpc_watch payloads_watch = { .on_writable = payloads_on,
                                                 .on_cancel = payloads_cancelled };

void server_on_peer_payloads(struct rpc_call *call, const ProtobufCMessage *message)
{
    const PeerPayloadsRequest *request = (const void *)message;
    struct err err = { 0 };

    if (!server_is_peer(call))
        return;
    bool good = request->n_digests <= TRANSFER_DIGESTS;
    for (size_t i = 0; good && i < request->n_digests; i++)
        good = request->digests[i].len == LOG_DIGEST_BYTES;
    if (!good) {
        err_set(&err, ERR_INVALID, "at most %d digests of 32 bytes", (int)TRANSFER_DIGESTS);
        rpc_fail(call, &err);
        return;
    }
    struct giving *giving = NEW(struct giving);
    giving->count = request->n_digests;
    giving->digests = mem_new((giving->count + 1) * LOG_DIGEST_BYTES);
    for (size_t i = 0; i < giving->count; i++)
        memcpy(giving->digests[i], request->digests[i].data, LOG_DIGEST_BYTES);
    rpc_call_set_data(call, giving);
    rpc_watch(call, &payloads_watch);
    payloads_on(call);
}
