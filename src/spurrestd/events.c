/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events.c - GET /api/v1/events: what changes, as server-sent events
 *
 * (1) However many listen, the controller has one stream (WatchChanges). Each change is written once and given to those
 *     who may see it, by the function that the controller itself decides with (schema/private_data.h).
 * (2) An id is a position in the cluster's log. The last KEPT changes are kept: who comes back with Last-Event-ID gets what
 *     he missed, or `reset` when that is no longer known; then he asks for lists again.
 * (3) Who does not read is not waited for: he gets `reset` when he reads again.
 * (4) A stream ends when the token that it was opened with does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "proto/controller.pb-c.h"
#include "rpc/link.h"
#include "schema/jsonw.h"
#include "schema/names.h"
#include "schema/private_data.h"
#include "spurrestd/answer.h"
#include "spurrestd/ask.h"
#include "spurrestd/events.h"
#include "spurrestd/rest.h"
#include "spurrestd/routes.h"
#include "sys/clock.h"
#include "sys/log.h"

enum { KEPT = 8192, BEAT_MS = 15 * 1000, AGAIN_MS = 500, LISTENERS_MOST = 4000 };

struct change {
    uint64_t index;
    bool of_job, has_owner;
    uint32_t owner;
    char *text; /* the whole event */
};

struct listener {
    struct events *events;
    struct exchange *x;
    struct listener *prev, *next;
    uint32_t uid;
    bool staff, missed;
};

struct events {
    struct rest *rest;
    struct ask *ask;
    Empty request; /* of the stream */
    struct timer again, beat;
    struct change kept[KEPT]; /* a ring */
    size_t first, count;
    uint64_t index;  /* everything up to here was told */
    uint64_t oldest; /* what came after this is in the ring */
    char *private_data;
    struct listener *listeners;
    unsigned listening;
    bool live;
    bool always;                     /* the stream runs without listeners too: update_time asks */
    int64_t live_s;                  /* since when it runs without a gap; 0: it does not */
    int64_t changed_s[EVENTS_KINDS]; /* the last change of each */
};

/* ---- listeners ---- */

static void tell(struct listener *listener, const char *text)
{
    if (!exchange_writable(listener->x)) {
        listener->missed = true; /* (3) */
        return;
    }
    exchange_write(listener->x, text, strlen(text));
}

static void tell_reset(struct listener *listener)
{
    char text[96];

    snprintf(text, sizeof(text), "id: %llu\nevent: reset\ndata: {}\n\n",
             (unsigned long long)listener->events->index);
    tell(listener, text);
}

static bool may_see(const struct listener *listener, const struct change *change)
{
    if (!change->of_job)
        return true;
    if (!change->has_owner) /* a job that is forgotten */
        return !private_data_hides(listener->events->private_data, "jobs", listener->staff);
    return private_data_shows_job(listener->events->private_data, change->owner, listener->uid,
                                  listener->staff);
}

static void on_writable(struct exchange *x)
{
    struct listener *listener = x->data;

    if (listener->missed) {
        listener->missed = false;
        tell_reset(listener);
    }
}

static void listener_gone(struct exchange *x)
{
    struct listener *listener = x->data;
    struct events *events = listener->events;

    *(listener->prev ? &listener->prev->next : &events->listeners) = listener->next;
    if (listener->next)
        listener->next->prev = listener->prev;
    events->listening--;
    free(listener);
}

static void hang_up(struct listener *listener)
{
    struct exchange *x = listener->x;

    x->on_gone = NULL;
    listener_gone(x);
    exchange_end(x);
}

/* ---- what the controller says ---- */

static void forget_all(struct events *events)
{
    for (size_t i = 0; i < events->count; i++)
        free(events->kept[(events->first + i) % KEPT].text);
    events->first = events->count = 0;
}

static void keep(struct events *events, struct change change)
{
    if (events->count == KEPT) {
        struct change *oldest = &events->kept[events->first];
        events->oldest = oldest->index;
        free(oldest->text);
        events->first = (events->first + 1) % KEPT;
        events->count--;
    }
    events->kept[(events->first + events->count++) % KEPT] = change;
    for (struct listener *listener = events->listeners; listener; listener = listener->next) {
        if (may_see(listener, &change))
            tell(listener, change.text);
    }
}

/* One line of data: JSON without its line breaks, which are layout only. */
static char *event_text(uint64_t index, const char *kind, const struct str *json)
{
    struct str text = { 0 };

    str_addf(&text, "id: %llu\nevent: %s\ndata: ", (unsigned long long)index, kind);
    for (size_t i = 0; i < json->len; i++) {
        if (json->data[i] != '\n')
            str_add_char(&text, json->data[i]);
        else
            while (i + 1 < json->len && json->data[i + 1] == ' ')
                i++;
    }
    str_add(&text, "\n\n");
    return str_take(&text);
}

static void job_changed(struct events *events, const JobChange *job)
{
    struct str out = { 0 };
    struct jsonw json;

    jsonw_init(&json, &out);
    jsonw_object(&json, NULL);
    jsonw_number(&json, "job_id", job->job_id);
    if (job->gone) {
        jsonw_bool(&json, "gone", true);
    } else {
        jsonw_text(&json, "state", job_state_text(job->state, job->flags));
        jsonw_text(&json, "user", job->user);
        jsonw_text(&json, "account", job->account);
        jsonw_text(&json, "partition", job->partition);
        jsonw_text(&json, "name", job->name);
        jsonw_number(&json, "array_job_id", job->array_job_id);
    }
    jsonw_object_end(&json);
    keep(events, (struct change){ .index = events->index,
                                  .of_job = true,
                                  .has_owner = job->has_uid,
                                  .owner = job->uid,
                                  .text = event_text(events->index, "job", &out) });
    str_done(&out);
}

static void named_changed(struct events *events, const char *kind, const char *name)
{
    struct str out = { 0 };
    struct jsonw json;

    jsonw_init(&json, &out);
    jsonw_object(&json, NULL);
    if (name)
        jsonw_text(&json, "name", name);
    jsonw_object_end(&json);
    keep(events,
         (struct change){ .index = events->index, .text = event_text(events->index, kind, &out) });
    str_done(&out);
}

/* A job that starts or ends changes what its nodes have free, too. */
static void note_changes(struct events *events, const WatchChangesReply *reply)
{
    int64_t now_s = clock_wall_s();

    if (!events->live_s || reply->reset)
        events->live_s = now_s;
    if (reply->n_jobs)
        events->changed_s[EVENTS_JOBS] = events->changed_s[EVENTS_NODES] = now_s;
    if (reply->n_nodes)
        events->changed_s[EVENTS_NODES] = now_s;
    if (reply->partitions)
        events->changed_s[EVENTS_PARTITIONS] = events->changed_s[EVENTS_NODES] = now_s;
    if (reply->reservations)
        events->changed_s[EVENTS_RESERVATIONS] = events->changed_s[EVENTS_NODES] = now_s;
}

static void on_change(void *ctx, const ProtobufCMessage *message)
{
    struct events *events = ctx;
    const WatchChangesReply *reply = (const void *)message;

    free(events->private_data);
    events->private_data = mem_strdup(reply->private_data);
    events->live = true;
    events->index = reply->index;
    note_changes(events, reply);
    if (reply->reset) { /* what was before is not known */
        forget_all(events);
        events->oldest = reply->index;
        for (struct listener *listener = events->listeners; listener; listener = listener->next)
            tell_reset(listener);
    }
    for (size_t i = 0; i < reply->n_jobs; i++)
        job_changed(events, reply->jobs[i]);
    for (size_t i = 0; i < reply->n_nodes; i++)
        named_changed(events, "node", reply->nodes[i]->name);
    if (reply->partitions)
        named_changed(events, "partitions", NULL);
    if (reply->reservations)
        named_changed(events, "reservations", NULL);
}

static void on_over(void *ctx, const ProtobufCMessage *reply, const struct err *err)
{
    struct events *events = ctx;

    events->live_s = 0;
    (void)reply;
    events->ask = NULL;
    events->live = false;
    if (err)
        log_verbose("events.stream", "ended: %s", err->text);
    loop_timer_set(events->rest->loop, &events->again, loop_now_ms(events->rest->loop) + AGAIN_MS);
}

static void watch(struct events *events)
{
    const struct ask_call call = { .method = "WatchChanges",
                                   .message = &events->request.base,
                                   .reply = &watch_changes_reply__descriptor,
                                   .ours = true,
                                   .endless = true };

    if (!events->ask && (events->listeners || events->always))
        events->ask = ask_own(events->rest->upstream, &call, events, on_over, on_change);
}

bool events_changed(struct events *events, enum events_of what, int64_t since_s)
{
    events->always = true;
    watch(events);
    return !events->live_s || since_s <= events->live_s || since_s <= events->changed_s[what];
}

static void on_again(struct timer *timer)
{
    watch(CONTAINER_OF(timer, struct events, again));
}

/* Proxies and callers drop what says nothing; (4) */
static void on_beat(struct timer *timer)
{
    struct events *events = CONTAINER_OF(timer, struct events, beat);
    struct listener *next;

    for (struct listener *listener = events->listeners; listener; listener = next) {
        next = listener->next;
        if (listener->x->expires_s && listener->x->expires_s <= clock_wall_s())
            hang_up(listener);
        else
            tell(listener, ":\n\n");
    }
    loop_timer_set(events->rest->loop, &events->beat, loop_now_ms(events->rest->loop) + BEAT_MS);
}

struct events *events_new(struct rest *rest)
{
    struct events *events = NEW(struct events);

    events->rest = rest;
    events->again.fire = on_again;
    events->beat.fire = on_beat;
    empty__init(&events->request);
    loop_timer_set(rest->loop, &events->beat, loop_now_ms(rest->loop) + BEAT_MS);
    return events;
}

void events_stop(struct events *events)
{
    while (events->listeners)
        hang_up(events->listeners);
    if (events->ask)
        ask_cancel(TAKE(events->ask));
    loop_timer_clear(events->rest->loop, &events->again);
    loop_timer_clear(events->rest->loop, &events->beat);
}

void events_free(struct events *events)
{
    if (!events)
        return;
    forget_all(events);
    free(events->private_data);
    free(events);
}

unsigned events_listening(const struct events *events)
{
    return events->listening;
}

/* ---- the route ---- */

/* (2) */
static void catch_up(struct listener *listener, const char *last)
{
    struct events *events = listener->events;
    uint64_t seen;

    if (str_is_empty(last) || !events->live)
        return;
    if (!str_to_u64(last, UINT64_MAX, &seen) || seen < events->oldest || seen > events->index) {
        tell_reset(listener);
        return;
    }
    for (size_t i = 0; i < events->count; i++) {
        const struct change *change = &events->kept[(events->first + i) % KEPT];
        if (change->index > seen && may_see(listener, change))
            tell(listener, change->text);
    }
}

static void on_who(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    const IdentityReply *reply = (const void *)message;
    struct events *events = x->rest->events;
    struct err own = { 0 };

    if (!err && events->listening >= LISTENERS_MOST)
        err_set(&own, ERR_TOO_MANY, "%d callers listen already", (int)LISTENERS_MOST);
    if (err || own.code) {
        answer_error(x, err ? err : &own, NULL);
        return;
    }
    struct listener *listener = NEW(struct listener);
    listener->events = events;
    listener->x = x;
    listener->uid = reply->uid;
    listener->staff = reply->is_operator || reply->is_admin;
    listener->next = events->listeners;
    if (listener->next)
        listener->next->prev = listener;
    events->listeners = listener;
    events->listening++;
    x->data = listener;
    x->on_gone = listener_gone;
    x->on_writable = on_writable;
    exchange_begin(x, 200, "text/event-stream");
    tell(listener, "retry: 2000\n\n");
    const char *last = exchange_field(x, "Last-Event-ID");
    catch_up(listener, last ? last : exchange_query(x, "last_event_id"));
    watch(events);
}

void get_events(struct exchange *x)
{
    Empty *request = ARENA_NEW(&x->arena, Empty);
    const struct ask_call call = { .method = "WhoAmI",
                                   .message = &request->base,
                                   .reply = &identity_reply__descriptor,
                                   .done = on_who };
    struct err err = { 0 };

    empty__init(request);
    if (x->rest->joined) {
        ask_start(x, &call);
        return;
    }
    err_set(&err, ERR_UNREACHABLE,
            "this spurrestd has not joined the cluster: it hears of no changes");
    answer_error(x, &err, NULL);
}
