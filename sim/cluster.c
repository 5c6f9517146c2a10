/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster.c - several controllers: the real etcd engine of the log on a model of etcd
 *
 * (1) Everything that etcd says to a controller passes here, so that it is a call into that
 *     controller's process like any other, and so that a process that is stopped hears it later.
 * (2) The model has a clock of its own, in milliseconds; it is moved with the world's.
 */
#include <stdlib.h>
#include <string.h>

#include "log/etcd.h"
#include "log/etcd_model.h"
#include "sim/world.h"
#include "spurctld/ctl/ctl_priv.h"

/* Something the engine asked for: a call, a watch or a timer. */
struct asked {
    struct host *host;
    void *inner; /* the model's handle; NULL when it is over */
    etcd_done_fn done;
    etcd_watch_fn message;
    etcd_end_fn end;
    void (*fire)(void *arg);
    void *arg;
    bool cancelled;
    unsigned refs; /* it, and what is held back for it */
};

/* What a stopped process will hear when it goes on. */
struct held_back {
    struct asked *asked;
    const ProtobufCMessageDescriptor *type; /* of bytes; NULL: none */
    uint8_t *bytes;
    size_t len;
    struct err err;
    bool failed, is_end;
};

static void release(struct asked *asked)
{
    if (--asked->refs == 0)
        free(asked);
}

static struct asked *asked_new(struct host *host, void *arg)
{
    struct asked *asked = NEW(struct asked);

    asked->host = host;
    asked->arg = arg;
    asked->refs = 1;
    return asked;
}

/* ---- telling the process ---- */

static void tell(struct held_back *news)
{
    struct asked *asked = news->asked;
    struct host *host = asked->host;
    ProtobufCMessage *message =
        news->type ? protobuf_c_message_unpack(news->type, NULL, news->len, news->bytes) : NULL;
    const struct err *err = news->failed ? &news->err : NULL;

    if (!asked->cancelled && host_enter(host)) {
        if (asked->fire)
            asked->fire(asked->arg);
        else if (asked->done)
            asked->done(asked->arg, message, err);
        else if (news->is_end)
            asked->end(asked->arg, err);
        else
            asked->message(asked->arg, (const EtcdWatchResponse *)message);
        host_leave(host);
    }
    if (message)
        protobuf_c_message_free_unpacked(message, NULL);
}

static void news_done(struct held_back *news)
{
    free(news->bytes);
    release(news->asked);
    free(news);
}

static void tell_later(struct world *world, const struct happening *what)
{
    struct held_back *news = (struct held_back *)(uintptr_t)what->a;

    (void)world;
    for (size_t i = 0; i < world->held_back.len; i++) {
        if (world->held_back.items[i] == news) {
            vec_remove(&world->held_back, i);
            break;
        }
    }
    tell(news);
    news_done(news);
}

/* (1) */
static void bring(struct asked *asked, const ProtobufCMessage *message, const struct err *err,
                  bool is_end)
{
    struct host *host = asked->host;
    struct world *world = host->world;
    struct held_back *news = NEW(struct held_back);

    news->asked = asked;
    news->is_end = is_end;
    asked->refs++;
    if (message) {
        news->type = message->descriptor;
        news->len = protobuf_c_message_get_packed_size(message);
        news->bytes = mem_new(news->len + 1);
        protobuf_c_message_pack(message, news->bytes);
    }
    if (err) {
        news->err = *err;
        news->failed = true;
    }
    if (host_is_stopped(host)) {
        vec_push(&world->held_back, news);
        world_later(world, host->stopped_until_us - world->now_us, tell_later,
                    (uint64_t)(uintptr_t)news, 0, 0);
        return;
    }
    tell(news);
    news_done(news);
}

static void on_done(void *arg, const ProtobufCMessage *reply, const struct err *err)
{
    struct asked *asked = arg;

    asked->inner = NULL;
    bring(asked, reply, err, false);
    release(asked);
}

static void on_watch(void *arg, const EtcdWatchResponse *message)
{
    bring(arg, &message->base, NULL, false);
}

static void on_end(void *arg, const struct err *err)
{
    struct asked *asked = arg;

    asked->inner = NULL;
    bring(asked, NULL, err, true);
    release(asked);
}

static void on_fire(void *arg)
{
    struct asked *asked = arg;

    asked->inner = NULL;
    bring(asked, NULL, NULL, false);
    release(asked);
}

/* ---- what the engine asks ---- */

static int64_t io_now_ms(void *ctx)
{
    const struct host *host = ctx;

    return (host->world->now_us - host->world->begin_us) / MS;
}

static void *io_call(void *ctx, enum etcd_method method, const ProtobufCMessage *request,
                     unsigned timeout_ms, etcd_done_fn done, void *arg)
{
    struct host *host = ctx;
    struct asked *asked = asked_new(host, arg);

    asked->done = done;
    asked->inner = etcd_model_io.call(host->etcd, method, request, timeout_ms, on_done, asked);
    return asked;
}

/* A call that is over has freed itself; the engine cancels only what it still waits for. */
static void io_cancel(void *ctx, void *call)
{
    struct host *host = ctx;
    struct asked *asked = call;

    asked->cancelled = true;
    if (!asked->inner)
        return;
    etcd_model_io.cancel(host->etcd, asked->inner);
    release(asked);
}

static void *io_watch(void *ctx, const EtcdWatchRequest *request, etcd_watch_fn message,
                      etcd_end_fn end, void *arg)
{
    struct host *host = ctx;
    struct asked *asked = asked_new(host, arg);

    asked->message = message;
    asked->end = end;
    asked->inner = etcd_model_io.watch(host->etcd, request, on_watch, on_end, asked);
    return asked;
}

static void io_unwatch(void *ctx, void *watch)
{
    struct host *host = ctx;
    struct asked *asked = watch;

    asked->cancelled = true;
    if (!asked->inner)
        return;
    etcd_model_io.unwatch(host->etcd, asked->inner);
    release(asked);
}

static void *io_timer(void *ctx, unsigned ms, void (*fn)(void *arg), void *arg)
{
    struct host *host = ctx;
    struct asked *asked = asked_new(host, arg);

    asked->fire = fn;
    asked->inner = etcd_model_io.timer(host->etcd, ms, on_fire, asked);
    return asked;
}

static void io_untimer(void *ctx, void *timer)
{
    struct host *host = ctx;
    struct asked *asked = timer;

    asked->cancelled = true;
    if (!asked->inner)
        return;
    etcd_model_io.untimer(host->etcd, asked->inner);
    release(asked);
}

static const struct etcd_io cluster_io = {
    .now_ms = io_now_ms,
    .call = io_call,
    .cancel = io_cancel,
    .watch = io_watch,
    .unwatch = io_unwatch,
    .timer = io_timer,
    .untimer = io_untimer,
};

struct log *cluster_open_log(struct host *host, const struct log_config *config, struct err *err)
{
    struct world *world = host->world;
    static const uint8_t seal_key[ETCD_SEAL_KEY_BYTES] = "simulated", cluster_id[16] = "simulated";
    struct etcd_options options = {
        .seal_key = seal_key,
        .cluster_id = cluster_id,
        .io = &cluster_io,
        .io_ctx = host,
        .prefix = "/spur/sim",
        .controllers = world->host_count,
        .disk = host->disk,
    };

    host->etcd = etcd_model_client(world->etcd);
    cluster_links(world);
    return log_etcd_new(config, &options, err);
}

/*
 * Its requests may still arrive; it hears nothing any more. A batch in flight stays unanswered: who
 * waits for it in a process that is gone is told here, so that nothing is left of them.
 */
void cluster_host_dies(struct host *host)
{
    struct world *world = host->world;
    struct ctl *ctl = host->ctl;
    struct err err = { 0 };

    if (!world->etcd || !ctl)
        return;
    log_stop(ctl->log);
    err_code(&err, ERR_CONNECTION_LOST);
    while (ctl->proposals.taken < ctl->proposals.queue.len) {
        struct proposal proposal = ctl->proposals.queue.items[ctl->proposals.taken++];
        if (proposal.done)
            proposal.done(ctl, proposal.arg, NULL, &err);
    }
    vec_each (struct held_back *, news, &world->held_back) {
        if ((*news)->asked->host == host)
            (*news)->asked->cancelled = true;
    }
}

/* ---- links and time ---- */

void cluster_links(struct world *world)
{
    bool bad = fault_on(world, FAULT_REPORTS);

    for (unsigned i = 0; i < world->host_count; i++) {
        struct host *host = &world->hosts[i];
        if (!host->etcd)
            continue;
        struct etcd_link *link = etcd_model_link(host->etcd);
        link->min_ms = 1;
        link->max_ms = bad ? 200 : 3;
        link->lose_request = link->lose_reply = bad ? 20 : 0;
        link->cut = host->cut_until_us > world->now_us && !world->healed;
    }
}

int64_t cluster_next_us(const struct world *world)
{
    int64_t next = world->etcd ? etcd_model_next(world->etcd) : INT64_MAX;

    return next == INT64_MAX ? INT64_MAX : MAX(world->begin_us + next * MS, world->now_us);
}

/* (2) */
void cluster_move_clock(struct world *world)
{
    if (world->etcd)
        etcd_model_pass(world->etcd, (world->now_us - world->begin_us) / MS);
}

void cluster_done(struct world *world)
{
    etcd_model_free(world->etcd);
    vec_each (struct held_back *, news, &world->held_back)
        news_done(*news);
    vec_done(&world->held_back);
}
