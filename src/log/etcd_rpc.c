/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etcd_rpc.c - etcd_io over gRPC, on a libuv loop
 */
#include "log/etcd_rpc.h"

#include <stdlib.h>
#include <string.h>

#include "sys/clock.h"
#include "sys/log.h"

/*
 * A member that does not answer may only wait for etcd to elect a leader, as the others do. After
 * this long without an answer the next one is tried.
 */
enum { PATIENCE_MS = 1200 };

enum { HOME_LOOK_MS = 1000 };

enum { KEEPALIVE_MS = 1000, KEEPALIVE_WAIT_MS = 1000, CONNECT_MS = 1000, BACKOFF_MAX_MS = 500 };

static const struct {
    const char *path;
    const ProtobufCMessageDescriptor *reply;
} methods[ETCD_CALL_COUNT] = {
    [ETCD_CALL_TXN] = { "/etcdserverpb.KV/Txn", &etcd_txn_response__descriptor },
    [ETCD_CALL_COMPACT] = { "/etcdserverpb.KV/Compact", &etcd_compact_response__descriptor },
    [ETCD_CALL_LEASE_GRANT] = { "/etcdserverpb.Lease/LeaseGrant",
                                &etcd_lease_grant_response__descriptor },
    [ETCD_CALL_LEASE_REVOKE] = { "/etcdserverpb.Lease/LeaseRevoke",
                                 &etcd_lease_revoke_response__descriptor },
    /* A stream, of which we use one exchange: half-closing after the request ends it in order. */
    [ETCD_CALL_LEASE_KEEP_ALIVE] = { "/etcdserverpb.Lease/LeaseKeepAlive",
                                     &etcd_lease_keep_alive_response__descriptor },
    [ETCD_CALL_MEMBER_LIST] = { "/etcdserverpb.Cluster/MemberList",
                                &etcd_member_list_response__descriptor },
    [ETCD_CALL_MEMBER_ADD] = { "/etcdserverpb.Cluster/MemberAdd",
                               &etcd_member_add_response__descriptor },
    [ETCD_CALL_MEMBER_REMOVE] = { "/etcdserverpb.Cluster/MemberRemove",
                                  &etcd_member_list_response__descriptor },
    [ETCD_CALL_MEMBER_PROMOTE] = { "/etcdserverpb.Cluster/MemberPromote",
                                   &etcd_member_list_response__descriptor },
    [ETCD_CALL_STATUS] = { "/etcdserverpb.Maintenance/Status", &etcd_status_response__descriptor },
    [ETCD_CALL_ALARM] = { "/etcdserverpb.Maintenance/Alarm", &etcd_alarm_response__descriptor },
    [ETCD_CALL_MOVE_LEADER] = { "/etcdserverpb.Maintenance/MoveLeader",
                                &etcd_move_leader_response__descriptor },
    [ETCD_CALL_DEFRAGMENT] = { "/etcdserverpb.Maintenance/Defragment",
                               &etcd_defragment_response__descriptor },
};

struct etcd_rpc {
    uv_loop_t *uv;
    struct rpc_loop *loop;
    struct rpc_client_options options; /* of every client here */
    struct rpc_client *client;
    char *home; /* our own member; NULL: none of them is */
    uv_timer_t *home_timer;
    struct rpc_client *probe; /* to it, while we are elsewhere */
    struct rpc_request *probing;
    bool home_answers;
    struct str addresses;
    int64_t answered_ms; /* by a member that has a majority, or when we turned to another */
};

struct etcd_call {
    struct etcd_rpc *rpc;
    enum etcd_method method;
    struct rpc_request *request;
    etcd_done_fn done;
    void *arg;
};

struct etcd_stream {
    struct rpc_request *request;
    etcd_watch_fn message;
    etcd_end_fn end;
    void *arg;
};

struct etcd_timer {
    uv_timer_t uv;
    void (*fn)(void *arg);
    void *arg;
};

static int64_t now_ms(void *ctx)
{
    (void)ctx;
    return clock_mono_us() / 1000;
}

/* The first goes to the end. */
static void try_next_member(struct etcd_rpc *rpc)
{
    CLEANUP(str_done) struct str turned = { 0 };
    const char *comma = strchr(str_text(&rpc->addresses), ',');
    struct err err;

    if (!comma)
        return;
    str_addf(&turned, "%s,%.*s", comma + 1, (int)(comma - rpc->addresses.data),
             rpc->addresses.data);
    log_verbose("etcd.turn", "addresses=%s", turned.data);
    if (etcd_rpc_set_addresses(rpc, turned.data, &err) < 0)
        log_error("etcd.turn", "error=%s", err.text);
}

static void on_done(struct rpc_request *request, const ProtobufCMessage *reply,
                    const struct err *err)
{
    struct etcd_call *call = rpc_request_data(request);
    struct etcd_rpc *rpc = call->rpc;
    bool late = err && err->code == ERR_DEADLINE;

    if (!err && call->method <= ETCD_CALL_LEASE_KEEP_ALIVE)
        rpc->answered_ms = now_ms(rpc);
    call->done(call->arg, reply, err);
    free(call);
    if (late && now_ms(rpc) - rpc->answered_ms >= PATIENCE_MS) {
        rpc->answered_ms = now_ms(rpc);
        try_next_member(rpc);
    }
}

static void *start_call(void *ctx, enum etcd_method method, const ProtobufCMessage *message,
                        unsigned timeout_ms, etcd_done_fn done, void *arg)
{
    struct etcd_rpc *rpc = ctx;
    struct etcd_call *call = NEW(struct etcd_call);
    struct rpc_request_options options = {
        .path = methods[method].path,
        .message = message,
        .reply = methods[method].reply,
        .wait_ready = true,
        .timeout_ms = timeout_ms,
        .data = call,
        .on_done = on_done,
    };

    *call = (struct etcd_call){ .rpc = rpc, .method = method, .done = done, .arg = arg };
    call->request = rpc_request_start(rpc->client, &options);
    return call;
}

static void cancel_call(void *ctx, void *handle)
{
    struct etcd_call *call = handle;

    (void)ctx;
    rpc_request_cancel(call->request);
    free(call);
}

static void on_watch_message(struct rpc_request *request, const ProtobufCMessage *message)
{
    struct etcd_stream *stream = rpc_request_data(request);

    stream->message(stream->arg, (const EtcdWatchResponse *)message);
}

static void on_watch_done(struct rpc_request *request, const ProtobufCMessage *reply,
                          const struct err *err)
{
    struct etcd_stream *stream = rpc_request_data(request);

    (void)reply;
    stream->end(stream->arg, err);
    free(stream);
}

static void *start_watch(void *ctx, const EtcdWatchRequest *message, etcd_watch_fn on_message,
                         etcd_end_fn end, void *arg)
{
    /* A member that lost its leader ends the stream instead of keeping silent. */
    static const struct rpc_metadata metadata[] = { { "hasleader", "true" } };
    struct etcd_rpc *rpc = ctx;
    struct etcd_stream *stream = NEW(struct etcd_stream);
    struct rpc_request_options options = {
        .path = "/etcdserverpb.Watch/Watch",
        .message = &message->base,
        .reply = &etcd_watch_response__descriptor,
        .open = true,
        .metadata = metadata,
        .metadata_count = ARRAY_LEN(metadata),
        .data = stream,
        .on_message = on_watch_message,
        .on_done = on_watch_done,
    };

    *stream = (struct etcd_stream){ .message = on_message, .end = end, .arg = arg };
    stream->request = rpc_request_start(rpc->client, &options);
    return stream;
}

static void end_watch(void *ctx, void *handle)
{
    struct etcd_stream *stream = handle;

    (void)ctx;
    rpc_request_cancel(stream->request);
    free(stream);
}

static void free_timer(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_timer(uv_timer_t *handle)
{
    struct etcd_timer *timer = handle->data;
    void (*fn)(void *arg) = timer->fn;
    void *arg = timer->arg;

    uv_close((uv_handle_t *)handle, free_timer);
    fn(arg);
}

static void *start_timer(void *ctx, unsigned ms, void (*fn)(void *arg), void *arg)
{
    struct etcd_rpc *rpc = ctx;
    struct etcd_timer *timer = NEW(struct etcd_timer);

    timer->fn = fn;
    timer->arg = arg;
    uv_timer_init(rpc->uv, &timer->uv);
    timer->uv.data = timer;
    uv_timer_start(&timer->uv, on_timer, ms, 0);
    uv_unref((uv_handle_t *)&timer->uv);
    return timer;
}

static void stop_timer(void *ctx, void *handle)
{
    struct etcd_timer *timer = handle;

    (void)ctx;
    uv_close((uv_handle_t *)&timer->uv, free_timer);
}

const struct etcd_io etcd_rpc_io = {
    .now_ms = now_ms,
    .call = start_call,
    .cancel = cancel_call,
    .watch = start_watch,
    .unwatch = end_watch,
    .timer = start_timer,
    .untimer = stop_timer,
};

/* ---- our own member ---- */

static void on_probed(struct rpc_request *request, const ProtobufCMessage *reply,
                      const struct err *err)
{
    struct etcd_rpc *rpc = rpc_request_data(request);

    (void)reply;
    rpc->probing = NULL;
    rpc->home_answers = !err;
}

/* It answers a read that takes a majority: it is up, and not cut off. */
static void probe_home(struct etcd_rpc *rpc)
{
    EtcdTxnRequest message = ETCD_TXN_REQUEST__INIT;
    EtcdRequestOp op = ETCD_REQUEST_OP__INIT, *ops[] = { &op };
    EtcdRangeRequest range = ETCD_RANGE_REQUEST__INIT;
    struct rpc_request_options options = {
        .path = methods[ETCD_CALL_TXN].path,
        .message = &message.base,
        .reply = methods[ETCD_CALL_TXN].reply,
        .wait_ready = true,
        .timeout_ms = HOME_LOOK_MS,
        .data = rpc,
        .on_done = on_probed,
    };
    struct rpc_client_options client = rpc->options;

    client.addresses = rpc->home;
    if (!rpc->probe)
        rpc->probe = rpc_client_new(rpc->loop, &client, NULL);
    if (!rpc->probe)
        return;
    range.has_key = true;
    range.key = (ProtobufCBinaryData){ 1, (uint8_t[]){ 0 } };
    op.range = &range;
    message.n_success = 1;
    message.success = ops;
    rpc->probing = rpc_request_start(rpc->probe, &options);
}

static void drop_probe(struct etcd_rpc *rpc)
{
    if (rpc->probing)
        rpc_request_cancel(TAKE(rpc->probing));
    if (rpc->probe)
        rpc_client_free(TAKE(rpc->probe));
    rpc->home_answers = false;
}

/* The client stays where it is while that is in its list, so it gets the one alone before it gets all. */
static void go_home(struct etcd_rpc *rpc)
{
    CLEANUP(str_done) struct str list = { 0 };
    const char *cursor = str_text(&rpc->addresses);
    struct span word;
    struct err err;

    str_add(&list, rpc->home);
    while (str_next(&cursor, ",", &word)) {
        if (!span_eq(word, rpc->home))
            str_addf(&list, ",%.*s", (int)word.len, word.ptr);
    }
    log_verbose("etcd.home", "addresses=%s", list.data);
    if (rpc_client_set_addresses(rpc->client, rpc->home, &err) < 0 ||
        etcd_rpc_set_addresses(rpc, list.data, &err) < 0)
        log_error("etcd.home", "error=%s", err.text);
    rpc->answered_ms = now_ms(rpc);
}

static void on_home_time(uv_timer_t *timer)
{
    struct etcd_rpc *rpc = timer->data;
    bool away = rpc_client_state(rpc->client) == RPC_READY &&
                strcmp(rpc_client_peer(rpc->client), rpc->home) != 0;

    if (away && !rpc->home_answers) {
        if (!rpc->probing)
            probe_home(rpc);
        return;
    }
    if (away)
        go_home(rpc);
    drop_probe(rpc);
}

static void free_home_timer(uv_handle_t *handle)
{
    free(handle);
}

static void start_home(struct etcd_rpc *rpc)
{
    rpc->home = mem_strndup(rpc->addresses.data, strcspn(rpc->addresses.data, ","));
    rpc->home_timer = NEW(uv_timer_t);
    uv_timer_init(rpc->uv, rpc->home_timer);
    rpc->home_timer->data = rpc;
    uv_timer_start(rpc->home_timer, on_home_time, HOME_LOOK_MS, HOME_LOOK_MS);
    uv_unref((uv_handle_t *)rpc->home_timer);
}

/* ---- life ---- */

struct etcd_rpc *etcd_rpc_new(const struct etcd_rpc_options *options, struct err *err)
{
    struct etcd_rpc *rpc = NEW(struct etcd_rpc);
    struct rpc_client_options client = {
        .default_port = ETCD_PORT_CLIENT,
        .tls = options->tls,
        .allow_plaintext = options->allow_plaintext,
        .connect_ms = CONNECT_MS,
        .backoff_min_ms = 20,
        .backoff_max_ms = BACKOFF_MAX_MS,
        .keepalive_ms = KEEPALIVE_MS,
        .keepalive_wait_ms = KEEPALIVE_WAIT_MS,
    };

    rpc->uv = options->uv;
    rpc->loop = options->loop;
    rpc->options = client;
    client.addresses = options->addresses;
    rpc->answered_ms = now_ms(rpc);
    rpc->client = rpc_client_new(options->loop, &client, err);
    if (!rpc->client) {
        free(rpc);
        return NULL;
    }
    str_add(&rpc->addresses, options->addresses);
    if (options->home)
        start_home(rpc);
    return rpc;
}

void etcd_rpc_free(struct etcd_rpc *rpc)
{
    if (!rpc)
        return;
    drop_probe(rpc);
    if (rpc->home_timer)
        uv_close((uv_handle_t *)rpc->home_timer, free_home_timer);
    free(rpc->home);
    rpc_client_free(rpc->client);
    str_done(&rpc->addresses);
    free(rpc);
}

int etcd_rpc_set_addresses(struct etcd_rpc *rpc, const char *addresses, struct err *err)
{
    CLEANUP(freep) char *copy = mem_strdup(addresses);
    int rc = rpc_client_set_addresses(rpc->client, copy, err);

    if (rc == 0) {
        str_clear(&rpc->addresses);
        str_add(&rpc->addresses, copy);
    }
    return rc;
}
