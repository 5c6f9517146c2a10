/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etcd_model.c - a model of etcd and of the network before it: time, links, calls, watches
 *
 * etcd_model_kv.c is the store. Everything that happens is an event on one queue, by time and then
 * by order of creation, so a seed decides the run.
 */
#include "log/etcd_model.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "log/etcd_model_priv.h"

enum { WATCH_BREAKS_MS = 500 };

struct event {
    int64_t at_ms;
    uint64_t order;
    void (*fn)(void *arg);
    void *arg;
    bool dead;
};

struct call {
    struct etcd_client *client; /* NULL: nobody waits any more */
    enum etcd_method method;
    struct str request, reply;
    etcd_done_fn done;
    void *arg;
    struct err err;
    bool failed;
    int refs; /* events that refer to it */
};

struct model_watch {
    struct etcd_client *client;
    struct str key, end;
    int64_t next; /* revision */
    etcd_watch_fn message;
    etcd_end_fn over;
    void *arg;
    int64_t sent_ms; /* messages of a stream do not overtake each other */
    bool broken;     /* a message was lost: as with TCP, nothing comes after it, and then the end */
    int refs;
};

struct etcd_client {
    struct etcd_model *model;
    struct etcd_link link;
    VEC(struct model_timer *) timers;
    VEC(struct call *) calls;
    VEC(struct model_watch *) watches;
};

struct model_timer {
    struct etcd_client *client;
    void (*fn)(void *arg);
    void *arg;
};

struct etcd_model {
    struct model_kv kv;
    int64_t now_ms;
    uint64_t order, random;
    VEC(struct event) events;
    VEC(struct etcd_client *) clients;
    VEC(struct call *) parked; /* arrived while there was no majority */
    bool no_quorum;
};

static uint64_t draw(struct etcd_model *model, uint64_t bound)
{
    model->random += UINT64_C(0x9e3779b97f4a7c15);
    return hash_mix(model->random) % bound;
}

static void schedule(struct etcd_model *model, int64_t in_ms, void (*fn)(void *arg), void *arg)
{
    vec_push(&model->events,
             (struct event){ model->now_ms + in_ms, model->order++, fn, arg, false });
}

static unsigned travel(struct etcd_client *client)
{
    const struct etcd_link *link = &client->link;

    return link->min_ms + (unsigned)draw(client->model, link->max_ms - link->min_ms + 1);
}

static bool is_lost(struct etcd_client *client, unsigned of_1000)
{
    return client->link.cut || draw(client->model, 1000) < of_1000;
}

struct etcd_model *etcd_model_new(uint64_t seed)
{
    struct etcd_model *model = NEW(struct etcd_model);

    model->random = hash_mix(seed + 1);
    model->kv.revision = 1;
    return model;
}

struct etcd_client *etcd_model_client(struct etcd_model *model)
{
    struct etcd_client *client = NEW(struct etcd_client);

    client->model = model;
    client->link = (struct etcd_link){ .min_ms = 1, .max_ms = 1 };
    vec_push(&model->clients, client);
    return client;
}

struct etcd_link *etcd_model_link(struct etcd_client *client)
{
    return &client->link;
}

int64_t etcd_model_now(const struct etcd_model *model)
{
    return model->now_ms;
}

void etcd_model_at(struct etcd_model *model, unsigned in_ms, void (*fn)(void *arg), void *arg)
{
    schedule(model, in_ms, fn, arg);
}

void etcd_model_set_full(struct etcd_model *model, bool full)
{
    model->kv.full = full;
}

/* ---- calls ---- */

static void release_call(struct call *call)
{
    if (--call->refs > 0)
        return;
    str_done(&call->request);
    str_done(&call->reply);
    free(call);
}

static void detach_call(struct call *call)
{
    struct etcd_client *client = call->client;

    if (!client)
        return;
    for (size_t i = 0; i < client->calls.len; i++) {
        if (client->calls.items[i] == call) {
            vec_remove(&client->calls, i);
            break;
        }
    }
    call->client = NULL;
    release_call(call);
}

static void answer_call(struct call *call)
{
    ProtobufCMessage *message = NULL;

    if (!call->client)
        return;
    detach_call(call); /* the caller may ask again from inside */
    if (call->failed) {
        call->done(call->arg, NULL, &call->err);
        return;
    }
    message = protobuf_c_message_unpack(model_reply_type(call->method), NULL, call->reply.len,
                                        (const uint8_t *)str_text(&call->reply));
    call->done(call->arg, message, NULL);
    protobuf_c_message_free_unpacked(message, NULL);
}

static void on_reply(void *arg)
{
    struct call *call = arg;

    answer_call(call);
    release_call(call); /* this event's */
}

static void on_timeout(void *arg)
{
    struct call *call = arg;

    if (call->client) {
        call->failed = true;
        err_set(&call->err, ERR_DEADLINE, "no answer");
    }
    on_reply(arg);
}

static void send_watches(struct etcd_model *model);

static void apply_call(struct etcd_model *model, struct call *call)
{
    struct etcd_client *client = call->client;

    if (model_apply(&model->kv, model->now_ms, call->method, &call->request, &call->reply,
                    &call->err) < 0)
        call->failed = true;
    if (client && !is_lost(client, client->link.lose_reply)) {
        call->refs++;
        schedule(model, travel(client), on_reply, call);
    }
    send_watches(model);
}

struct arrival {
    struct etcd_model *model; /* the call's client may be gone by then */
    struct call *call;
};

static void on_arrive(void *arg)
{
    struct arrival *arrival = arg;
    struct etcd_model *model = arrival->model;
    struct call *call = arrival->call;

    if (model->no_quorum) {
        vec_push(&model->parked, call);
    } else {
        apply_call(model, call);
        release_call(call);
    }
    free(arrival);
}

static void *model_call(void *ctx, enum etcd_method method, const ProtobufCMessage *request,
                        unsigned timeout_ms, etcd_done_fn done, void *arg)
{
    struct etcd_client *client = ctx;
    struct call *call = NEW(struct call);
    size_t len = protobuf_c_message_get_packed_size(request);

    call->client = client;
    call->method = method;
    call->done = done;
    call->arg = arg;
    call->refs = 2; /* the client's list, the time-out */
    str_reserve(&call->request, len + 1);
    call->request.len = protobuf_c_message_pack(request, (uint8_t *)call->request.data);
    vec_push(&client->calls, call);
    schedule(client->model, timeout_ms, on_timeout, call);
    if (!is_lost(client, client->link.lose_request)) {
        struct arrival *arrival = NEW(struct arrival);
        *arrival = (struct arrival){ .model = client->model, .call = call };
        call->refs++;
        schedule(client->model, travel(client), on_arrive, arrival);
    }
    return call;
}

static void model_cancel(void *ctx, void *call)
{
    (void)ctx;
    detach_call(call);
}

void etcd_model_set_quorum(struct etcd_model *model, bool has)
{
    model->no_quorum = !has;
    while (has && model->parked.len) {
        struct call *call = model->parked.items[0];
        vec_remove(&model->parked, 0);
        apply_call(model, call);
        release_call(call);
    }
}

/* ---- watches ---- */

static void release_watch(struct model_watch *watch)
{
    if (--watch->refs > 0)
        return;
    str_done(&watch->key);
    str_done(&watch->end);
    free(watch);
}

static void detach_watch(struct model_watch *watch)
{
    struct etcd_client *client = watch->client;

    if (!client)
        return;
    for (size_t i = 0; i < client->watches.len; i++) {
        if (client->watches.items[i] == watch) {
            vec_remove(&client->watches, i);
            break;
        }
    }
    watch->client = NULL;
    release_watch(watch);
}

struct delivery {
    struct model_watch *watch;
    struct str bytes;
};

static void on_delivery(void *arg)
{
    struct delivery *delivery = arg;
    struct model_watch *watch = delivery->watch;

    if (watch->client && watch->client->link.cut)
        watch->broken = true;
    if (watch->client && !watch->broken) {
        EtcdWatchResponse *message = etcd_watch_response__unpack(
            NULL, delivery->bytes.len, (const uint8_t *)str_text(&delivery->bytes));
        watch->message(watch->arg, message);
        etcd_watch_response__free_unpacked(message, NULL);
    }
    str_done(&delivery->bytes);
    free(delivery);
    release_watch(watch);
}

static void send_watch(struct etcd_model *model, struct model_watch *watch)
{
    struct delivery *delivery = NEW(struct delivery);

    if (!model_watch_pack(&model->kv, &watch->key, &watch->end, &watch->next, &delivery->bytes)) {
        free(delivery);
        return;
    }
    delivery->watch = watch;
    watch->refs++;
    int64_t at = MAX(model->now_ms + travel(watch->client), watch->sent_ms);
    watch->sent_ms = at;
    schedule(model, at - model->now_ms, on_delivery, delivery);
}

static void send_watches(struct etcd_model *model)
{
    for (size_t i = 0; i < model->clients.len; i++) {
        struct etcd_client *client = model->clients.items[i];
        for (size_t j = 0; j < client->watches.len; j++) {
            if (client->link.cut)
                client->watches.items[j]->broken = true;
            else if (!client->watches.items[j]->broken)
                send_watch(model, client->watches.items[j]);
        }
    }
}

static void on_watch_broken(void *arg)
{
    struct model_watch *watch = arg;
    struct err err;

    if (watch->client && (watch->client->link.cut || watch->broken)) {
        detach_watch(watch);
        err_set(&err, ERR_CONNECTION_LOST, "the stream broke");
        watch->over(watch->arg, &err);
    } else if (watch->client) {
        schedule(watch->client->model, WATCH_BREAKS_MS, on_watch_broken, watch);
        return;
    }
    release_watch(watch);
}

static void *model_watch_start(void *ctx, const EtcdWatchRequest *request, etcd_watch_fn message,
                               etcd_end_fn over, void *arg)
{
    struct etcd_client *client = ctx;
    struct model_watch *watch = NEW(struct model_watch);

    watch->client = client;
    watch->message = message;
    watch->over = over;
    watch->arg = arg;
    watch->next = request->create->start_revision;
    watch->refs = 2; /* the client's list, the check below */
    str_add_len(&watch->key, request->create->key.data, request->create->key.len);
    str_add_len(&watch->end, request->create->range_end.data, request->create->range_end.len);
    vec_push(&client->watches, watch);
    schedule(client->model, WATCH_BREAKS_MS, on_watch_broken, watch);
    if (client->link.cut)
        watch->broken = true;
    else
        send_watch(client->model, watch);
    return watch;
}

static void model_unwatch(void *ctx, void *watch)
{
    (void)ctx;
    detach_watch(watch);
}

/* ---- time ---- */

static int64_t model_now(void *ctx)
{
    return ((struct etcd_client *)ctx)->model->now_ms;
}

static void on_timer(void *arg)
{
    struct model_timer *timer = arg;
    struct etcd_client *client = timer->client;

    if (client) {
        for (size_t i = 0; i < client->timers.len; i++) {
            if (client->timers.items[i] == timer) {
                vec_remove(&client->timers, i);
                break;
            }
        }
        timer->fn(timer->arg);
    }
    free(timer);
}

static void *model_timer(void *ctx, unsigned ms, void (*fn)(void *arg), void *arg)
{
    struct etcd_client *client = ctx;
    struct model_timer *timer = NEW(struct model_timer);

    *timer = (struct model_timer){ client, fn, arg };
    vec_push(&client->timers, timer);
    schedule(client->model, ms, on_timer, timer);
    return timer;
}

static void forget_timer(struct etcd_client *client, struct model_timer *timer)
{
    for (size_t i = 0; i < client->timers.len; i++) {
        if (client->timers.items[i] == timer) {
            vec_remove(&client->timers, i);
            break;
        }
    }
    timer->client = NULL; /* its event frees it */
}

static void model_untimer(void *ctx, void *timer)
{
    forget_timer(ctx, timer);
}

const struct etcd_io etcd_model_io = {
    .now_ms = model_now,
    .call = model_call,
    .cancel = model_cancel,
    .watch = model_watch_start,
    .unwatch = model_unwatch,
    .timer = model_timer,
    .untimer = model_untimer,
};

void etcd_model_forget(struct etcd_client *client)
{
    while (client->calls.len)
        detach_call(client->calls.items[0]);
    while (client->watches.len)
        detach_watch(client->watches.items[0]);
    while (client->timers.len)
        forget_timer(client, client->timers.items[0]);
}

static size_t next_event(const struct etcd_model *model)
{
    size_t best = SIZE_MAX;

    for (size_t i = 0; i < model->events.len; i++) {
        const struct event *event = &model->events.items[i];
        if (best == SIZE_MAX || event->at_ms < model->events.items[best].at_ms ||
            (event->at_ms == model->events.items[best].at_ms &&
             event->order < model->events.items[best].order))
            best = i;
    }
    return best;
}

int64_t etcd_model_next(const struct etcd_model *model)
{
    size_t next = next_event(model);

    return next == SIZE_MAX ? INT64_MAX : model->events.items[next].at_ms;
}

void etcd_model_pass(struct etcd_model *model, int64_t now_ms)
{
    model->now_ms = MAX(model->now_ms, now_ms);
}

bool etcd_model_step(struct etcd_model *model)
{
    size_t best = next_event(model);

    if (best == SIZE_MAX)
        return false;
    struct event event = model->events.items[best];
    model->events.items[best] = model->events.items[--model->events.len];
    model->now_ms = MAX(model->now_ms, event.at_ms);
    if (model_expire(&model->kv, model->now_ms))
        send_watches(model);
    event.fn(event.arg);
    return true;
}

const char *etcd_model_peek(struct etcd_model *model, const char *key, size_t *len)
{
    return model_kv_peek(&model->kv, key, len);
}

size_t etcd_model_keys(const struct etcd_model *model, const char *prefix)
{
    return model_kv_count(&model->kv, prefix);
}

void etcd_model_free(struct etcd_model *model)
{
    if (!model)
        return;
    for (size_t i = 0; i < model->clients.len; i++)
        etcd_model_forget(model->clients.items[i]);
    /* What is left has nobody to tell: let it run out. The simulation's own events must be over. */
    model->no_quorum = false;
    while (model->parked.len) {
        struct call *call = model->parked.items[--model->parked.len];
        release_call(call);
    }
    while (etcd_model_step(model))
        ;
    for (size_t i = 0; i < model->clients.len; i++) {
        vec_done(&model->clients.items[i]->calls);
        vec_done(&model->clients.items[i]->watches);
        vec_done(&model->clients.items[i]->timers);
        free(model->clients.items[i]);
    }
    model_kv_done(&model->kv);
    vec_done(&model->events);
    vec_done(&model->parked);
    vec_done(&model->clients);
    free(model);
}
