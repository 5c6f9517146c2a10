/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers.c - what controllers give to each other: snapshots, payloads, the leader's place
 *
 * Fetching goes from one peer to the next until somebody has what is missing, one request at a time,
 * with a pause after each round.
 *
 * (1) What arrives is checked by log/transfer.h before the log hears of it.
 * (2) We do not lead while the state refers to a payload that we do not have.
 * (3) Jobs are looked through in slices.
 * (4) The journal is filled last, and nothing waits for it.
 */
#include "spurctld/ha/peers_priv.h"

#include <stdlib.h>
#include <string.h>

#include "core/job.h"
#include "log/journal.h"
#include "spurctld/ha/membership.h"
#include "sys/clock.h"
#include "sys/log.h"

enum {
    PAUSE_MS = 500,
    SLICE_JOBS = 2000,
    STALL_MS = 120000, /* a transfer may take long, but not for ever */
    HOLD_MOST_MS = 10000,
    HOLD_CALL_MS = 1000,
};

static void next(struct peers *peers);

/* ---- holding back ---- */

static void settle_hold(struct peers *peers)
{
    log_hold_back(ctl_log(peers->server->ctl),
                  peers->want || peers->scanning || peers->held); /* (2) */
}

bool peers_busy(const struct peers *peers)
{
    return peers->want || peers->scanning;
}

static void on_hold_over(uv_timer_t *timer)
{
    struct peers *peers = timer->data;

    peers->held = false;
    settle_hold(peers);
}

/* ---- whom to ask ---- */

static void on_timer(uv_timer_t *timer)
{
    next(timer->data);
}

static void soon(struct peers *peers, unsigned ms)
{
    if (!peers->server->stopping)
        uv_timer_start(peers->timer, on_timer, ms, 0);
}

static struct rpc_client *connect_to(struct peers *peers, const struct controller *to)
{
    CLEANUP(freep) char *url = controller_url(to, 0);
    struct rpc_client_options options = { .addresses = url, .tls = peers->tls };
    struct err err = { 0 };
    struct rpc_client *client = rpc_client_new(peers->server->rpc_loop, &options, &err);

    if (!client)
        log_warn("peers.connect", "peer=%s text=%s", to->name, err.text);
    return client;
}

/* The peer whose turn it is; NULL: there is nobody but us. */
static const struct controller *turn(struct peers *peers)
{
    const struct membership *all = &peers->server->membership;

    for (size_t i = 0; i < all->list.len; i++) {
        const struct controller *controller = &all->list.items[(peers->at + i) % all->list.len];
        if (!str_eq(controller->name, peers->server->options->name)) {
            peers->at = (peers->at + i) % all->list.len;
            return controller;
        }
    }
    return NULL;
}

void peers_drop_client(struct peers *peers)
{
    if (peers->client)
        rpc_client_free(TAKE(peers->client));
}

/* This one could not help; (after everybody, with a pause) the next. */
void peers_pass_on(struct peers *peers)
{
    const struct membership *all = &peers->server->membership;

    peers->at++;
    peers->in_a_row++;
    soon(peers, peers->in_a_row % MAX(all->list.len, 2u) == 0 ? PAUSE_MS : 0);
}

bool peers_ask(struct peers *peers, const char *path, const ProtobufCMessage *message,
               const ProtobufCMessageDescriptor *reply,
               void (*on_message)(struct rpc_request *request, const ProtobufCMessage *message),
               void (*on_done)(struct rpc_request *request, const ProtobufCMessage *reply,
                               const struct err *err))
{
    const struct controller *to = turn(peers);
    struct rpc_request_options options = {
        .path = path,
        .message = message,
        .reply = reply,
        .wait_ready = true,
        .timeout_ms = STALL_MS,
        .data = peers,
        .on_message = on_message,
        .on_done = on_done,
    };

    peers_drop_client(peers);
    peers->client = to ? connect_to(peers, to) : NULL;
    if (!peers->client) {
        peers_pass_on(peers);
        return false;
    }
    peers->broken = (struct err){ 0 };
    peers->request = rpc_request_start(peers->client, &options);
    return true;
}

/* ---- a snapshot ---- */

static void on_chunk(struct rpc_request *request, const ProtobufCMessage *message)
{
    struct peers *peers = rpc_request_data(request);

    if (!peers->broken.code)
        transfer_take(peers->in, (const PeerSnapshotChunk *)message, &peers->broken); /* (1) */
}

static void on_snapshot(struct rpc_request *request, const ProtobufCMessage *reply,
                        const struct err *err)
{
    struct peers *peers = rpc_request_data(request);
    struct err failed = err ? *err : peers->broken;
    uint64_t index = 0;

    (void)reply;
    peers->request = NULL;
    if (failed.code)
        transfer_abandon(TAKE(peers->in));
    else if (transfer_finish(TAKE(peers->in), &index, &failed) == 0)
        log_snapshot_fetched(ctl_log(peers->server->ctl), index, &failed);
    if (failed.code) {
        log_warn("peers.snapshot", "peer=%s text=%s", rpc_client_peer(peers->client), failed.text);
        peers_pass_on(peers);
        return;
    }
    log_info("peers.snapshot", "peer=%s index=%llu", rpc_client_peer(peers->client),
             (unsigned long long)index);
    peers->want = 0;
    peers->in_a_row = 0;
    peers_check_payloads(peers);
}

static void fetch_snapshot(struct peers *peers)
{
    PeerSnapshotRequest request = PEER_SNAPSHOT_REQUEST__INIT;
    struct err err = { 0 };

    request.has_at_least = true;
    request.at_least = peers->want;
    if (transfer_begin(peers->server->state_dir, peers->want, &peers->in, &err) < 0) {
        log_warn("peers.snapshot", "text=%s", err.text);
        soon(peers, PAUSE_MS);
    } else if (!peers_ask(peers, "/spur.Peers/Snapshot", &request.base,
                          &peer_snapshot_chunk__descriptor, on_chunk, on_snapshot)) {
        transfer_abandon(TAKE(peers->in));
    }
}

void peers_need_snapshot(struct peers *peers, uint64_t index)
{
    peers->want = MAX(index, UINT64_C(1));
    settle_hold(peers);
    if (!peers->request)
        soon(peers, 0);
}

/* ---- payloads ---- */

static bool is_wanted(const struct peers *peers, const uint8_t *digest)
{
    for (size_t i = 0; i < peers->wanted_count; i++) {
        if (memcmp(peers->wanted[i], digest, LOG_DIGEST_BYTES) == 0)
            return true;
    }
    return false;
}

/* Looks on from the cursor. True: that was the last job. */
static bool collect(struct peers *peers)
{
    const struct state *state = ctl_state(peers->server->ctl);
    struct log *log = ctl_log(peers->server->ctl);

    for (unsigned n = 0; n < SLICE_JOBS && peers->wanted_count < TRANSFER_DIGESTS; n++) {
        const struct job *job = state_job_from(state, peers->cursor);
        if (!job)
            return true;
        peers->cursor = (uint64_t)job->id + 1;
        if (!job->payload || is_wanted(peers, job->payload->digest) ||
            log_payload_has(log, job->payload->digest))
            continue;
        memcpy(peers->wanted[peers->wanted_count++], job->payload->digest, LOG_DIGEST_BYTES);
    }
    return false;
}

static void on_payload(struct rpc_request *request, const ProtobufCMessage *message)
{
    struct peers *peers = rpc_request_data(request);
    struct transfer_payload *payload = &peers->payload;

    if (peers->broken.code)
        return;
    int rc = transfer_payload_take(payload, (const PeerPayloadChunk *)message, peers->wanted,
                                   peers->wanted_count, &peers->broken);
    struct span bytes = { str_text(&payload->bytes), payload->bytes.len };
    if (rc == 1 &&
        log_payload_put(ctl_log(peers->server->ctl), payload->digest, bytes, &peers->broken) == 0)
        peers->got++;
}

static void on_payloads(struct rpc_request *request, const ProtobufCMessage *reply,
                        const struct err *err)
{
    struct peers *peers = rpc_request_data(request);
    const struct err *failed = err ? err : peers->broken.code ? &peers->broken : NULL;

    (void)reply;
    peers->request = NULL;
    peers->fetched += peers->got;
    if (failed)
        log_warn("peers.payloads", "peer=%s text=%s", rpc_client_peer(peers->client), failed->text);
    if (failed || peers->got < peers->wanted_count) {
        peers->lacking = true; /* the next scan finds them again, if anybody still needs them */
        peers_pass_on(peers);
    } else {
        peers->in_a_row = 0;
        soon(peers, 0);
    }
    peers->wanted_count = 0;
}

static void ask_payloads(struct peers *peers)
{
    PeerPayloadsRequest request = PEER_PAYLOADS_REQUEST__INIT;
    ProtobufCBinaryData digests[TRANSFER_DIGESTS];

    for (size_t i = 0; i < peers->wanted_count; i++)
        digests[i] = (ProtobufCBinaryData){ LOG_DIGEST_BYTES, peers->wanted[i] };
    request.n_digests = peers->wanted_count;
    request.digests = digests;
    peers->got = 0;
    if (!peers_ask(peers, "/spur.Peers/Payloads", &request.base, &peer_payload_chunk__descriptor,
                   on_payload, on_payloads)) {
        peers->lacking = true;
        peers->wanted_count = 0;
    }
}

static void scan_on(struct peers *peers)
{
    bool last = collect(peers);

    if (peers->wanted_count && !turn(peers)) {
        log_error("peers.payloads", "missing=%zu and nobody to ask", peers->wanted_count);
        peers->wanted_count = 0;
        soon(peers, 0);
    } else if (peers->wanted_count >= TRANSFER_DIGESTS || (last && peers->wanted_count)) {
        ask_payloads(peers);
    } else if (!last) {
        soon(peers, 0);
    } else if (peers->lacking) {
        peers->lacking = false;
        peers->cursor = 0;
        soon(peers, PAUSE_MS);
    } else {
        peers->scanning = false;
        if (peers->fetched)
            log_info("peers.payloads", "fetched=%llu", (unsigned long long)peers->fetched);
        peers->fetched = 0;
        peers_drop_client(peers);
        settle_hold(peers);
        soon(peers, 0); /* and what the journal lacks */
    }
}

void peers_check_payloads(struct peers *peers)
{
    const struct membership *all = &peers->server->membership;

    peers->journal_asks = true;
    peers->journal_left = all->list.len ? (unsigned)all->list.len - 1 : 0;
    peers->scanning = true;
    peers->lacking = false;
    peers->cursor = 0;
    settle_hold(peers);
    if (!peers->request)
        soon(peers, 0);
}

static void next(struct peers *peers)
{
    if (peers->request || peers->server->stopping)
        return;
    if (peers->want)
        fetch_snapshot(peers);
    else if (peers->scanning)
        scan_on(peers);
    else if (peers->journal_asks)
        peers_fetch_journal(peers);
}

/* ---- the leader's place ---- */

void server_on_peer_hold(struct rpc_call *call, const ProtobufCMessage *message)
{
    const PeerHoldRequest *request = (const void *)message;
    struct server *server = rpc_call_ctx(call);
    PeerHoldRequest reply = PEER_HOLD_REQUEST__INIT;

    if (!server_is_peer(call))
        return;
    reply.has_ms = true;
    reply.ms = MIN(request->ms, (uint32_t)HOLD_MOST_MS);
    if (server->peers) {
        server->peers->held = true;
        settle_hold(server->peers);
        uv_timer_start(server->peers->hold_timer, on_hold_over, reply.ms, 0);
    }
    rpc_reply(call, &reply.base);
}

struct holding {
    unsigned left;
    void (*done)(void *arg);
    void *arg;
};

struct hold_call {
    struct holding *holding;
    struct rpc_client *client;
};

static void hold_one_done(struct holding *holding)
{
    if (--holding->left)
        return;
    holding->done(holding->arg);
    free(holding);
}

static void on_held(struct rpc_request *request, const ProtobufCMessage *reply,
                    const struct err *err)
{
    struct hold_call *call = rpc_request_data(request);

    (void)reply;
    if (err)
        log_verbose("peers.hold", "text=%s", err->text);
    hold_one_done(call->holding);
}

/* Not inside their own callbacks. */
static void drop_holds(struct peers *peers)
{
    vec_each (struct hold_call *, call, &peers->holds) {
        rpc_client_free((*call)->client); /* what is under way ends by on_held() */
        free(*call);
    }
    vec_clear(&peers->holds);
}

void peers_hold_back(struct peers *peers, const char *heir, unsigned ms, void (*done)(void *arg),
                     void *arg)
{
    const struct membership *all = &peers->server->membership;
    struct holding *holding = NEW(struct holding);
    PeerHoldRequest request = PEER_HOLD_REQUEST__INIT;

    drop_holds(peers);
    *holding = (struct holding){ 1, done, arg };
    request.has_ms = true;
    request.ms = ms;
    vec_each (struct controller, to, &all->list) {
        if (str_eq(to->name, heir) || str_eq(to->name, peers->server->options->name))
            continue;
        struct rpc_client *client = connect_to(peers, to);
        if (!client)
            continue;
        struct hold_call *call = NEW(struct hold_call);
        *call = (struct hold_call){ holding, client };
        vec_push(&peers->holds, call);
        holding->left++;
        rpc_request_start(client, &(struct rpc_request_options){
                                      .path = "/spur.Peers/HoldBack",
                                      .message = &request.base,
                                      .reply = &peer_hold_request__descriptor,
                                      .wait_ready = true,
                                      .timeout_ms = HOLD_CALL_MS,
                                      .data = call,
                                      .on_done = on_held,
                                  });
    }
    hold_one_done(holding);
}

/* ---- life ---- */

static uv_timer_t *new_timer(struct peers *peers)
{
    uv_timer_t *timer = NEW(uv_timer_t);

    uv_timer_init(peers->server->uv, timer);
    timer->data = peers;
    return timer;
}

struct peers *peers_new(struct server *server, struct tls_ctx *tls)
{
    struct peers *peers = NEW(struct peers);

    peers->server = server;
    peers->tls = tls;
    peers->timer = new_timer(peers);
    peers->hold_timer = new_timer(peers);
    return peers;
}

static void free_timer(uv_handle_t *handle)
{
    free(handle);
}

void peers_free(struct peers *peers)
{
    if (!peers)
        return;
    uv_close((uv_handle_t *)peers->timer, free_timer);
    uv_close((uv_handle_t *)peers->hold_timer, free_timer);
    if (peers->request)
        rpc_request_cancel(peers->request);
    peers_drop_client(peers);
    drop_holds(peers);
    vec_done(&peers->holds);
    transfer_abandon(peers->in);
    journal_fill_abandon(peers->fill);
    str_done(&peers->payload.bytes);
    free(peers);
}
