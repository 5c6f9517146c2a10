/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feeds.c - the streams of leaders: what they send goes to the database, then it is acknowledged
 *
 * (1) One worker writes, one batch at a time; what comes meanwhile is the next batch. A leader that sends
 *     faster than the database takes is held back by flow control.
 * (2) What is acknowledged is durable.
 * (3) When the database does not take a batch, it is tried again until it does; the leader keeps what is not
 *     acknowledged, so nothing is lost when we end meanwhile.
 * (4) A cluster has one leader: a stream with the same or a later epoch takes the place of the one before.
 */
#include <stdlib.h>
#include <string.h>

#include "rpc/jwt.h"
#include "spurdbd/ingest.h"
#include "spurdbd/serve.h"
#include "sys/clock.h"
#include "sys/log.h"

enum { WAITING_MOST = 8 * 1024 * 1024, RETRY_MS = 1000, YOUNG_US = 3000000 };

struct feed {
    struct dbd *dbd;
    struct rpc_call *call; /* NULL: it is gone, and a worker still has a batch of it */
    FeedHello *hello;      /* NULL: it has not said who it is */
    int64_t cluster;
    struct ingest_position position;
    struct ingest_batch waiting;
    bool paused, broken;
    bool busy; /* a worker has something of this one */
    bool welcomed;
    bool unsynced;         /* the database was away when the leader was to hear of accounts */
    uint64_t leader_index; /* the log's end, as far as it said */
    uv_timer_t *retry;
};

/* What a worker does: say hello to the database, or write a batch. */
struct feed_work {
    uv_work_t work;
    struct feed *feed;
    struct dbd *dbd;
    struct ingest_batch batch;
    bool is_hello, gap;
    struct ingest_position position;
    int64_t cluster;
    int code;
    struct err err;
};

static void feed_go_on(struct feed *feed);

const char *feed_cluster(const struct feed *feed)
{
    return feed->hello->cluster;
}

uint64_t feed_index(const struct feed *feed)
{
    return feed->position.index;
}

struct feed *dbd_feed(const struct dbd *dbd, const char *cluster)
{
    for (size_t i = 0; i < dbd->feeds.len; i++) {
        struct feed *feed = dbd->feeds.items[i];
        if (feed->welcomed && feed->call && (!cluster || str_eq(feed->hello->cluster, cluster)))
            return feed;
    }
    return NULL;
}

bool dbd_feed_comes(const struct dbd *dbd)
{
    for (size_t i = 0; i < dbd->feeds.len; i++) {
        if (!dbd->feeds.items[i]->welcomed && dbd->feeds.items[i]->call)
            return true;
    }
    return clock_wall_us() - dbd->serves_us < YOUNG_US;
}

const char *dbd_only_cluster(const struct dbd *dbd)
{
    const char *only = NULL;

    for (size_t i = 0; i < dbd->feeds.len; i++) {
        const struct feed *feed = dbd->feeds.items[i];
        if (!feed->welcomed || !feed->call)
            continue;
        if (only && strcmp(only, feed->hello->cluster) != 0)
            return NULL;
        only = feed->hello->cluster;
    }
    return only;
}

/* ---- the end of a stream ---- */

static void close_timer(uv_handle_t *handle)
{
    free(handle);
}

static void feed_free(struct feed *feed)
{
    struct dbd *dbd = feed->dbd;

    for (size_t i = 0; i < dbd->feeds.len; i++) {
        if (dbd->feeds.items[i] == feed)
            vec_remove(&dbd->feeds, i);
    }
    if (feed->retry)
        uv_close((uv_handle_t *)feed->retry, close_timer);
    ingest_batch_done(&feed->waiting);
    if (feed->hello)
        feed_hello__free_unpacked(feed->hello, NULL);
    free(feed);
}

/* The call ends now; the rest when no worker has anything of it. */
static void feed_end(struct feed *feed, const struct err *err)
{
    struct rpc_call *call = TAKE(feed->call);

    if (!call)
        return;
    if (feed->hello)
        log_info("feed.ended", "cluster=%s controller=%s why=%s", feed->hello->cluster,
                 feed->hello->controller, err ? err->text : "it has gone");
    dbd_feed_gone(feed->dbd, feed);
    rpc_call_set_data(call, NULL);
    if (err)
        rpc_fail(call, err);
    else
        rpc_end(call);
    if (!feed->busy)
        feed_free(feed);
}

/* ---- workers ---- */

static void send_to(struct feed *feed, const FeedToLeader *message)
{
    if (feed->call)
        rpc_send(feed->call, &message->base);
}

static void send_ack(struct feed *feed)
{
    FeedToLeader message = FEED_TO_LEADER__INIT;
    FeedAck ack = FEED_ACK__INIT;

    ack.has_index = true;
    ack.index = feed->position.index;
    message.ack = &ack;
    send_to(feed, &message);
}

static void send_welcome(struct feed *feed, bool gap)
{
    FeedToLeader message = FEED_TO_LEADER__INIT;
    FeedWelcome welcome = FEED_WELCOME__INIT;

    welcome.has_epoch = welcome.has_index = welcome.has_gap = true;
    welcome.epoch = feed->position.epoch;
    welcome.index = feed->position.index;
    welcome.gap = gap;
    message.welcome = &welcome;
    send_to(feed, &message);
}

static void do_work(uv_work_t *uv)
{
    struct feed_work *work = uv->data;
    struct dbd *dbd = work->dbd;

    if (!dbd->writer) /* it was lost */
        work->code = dbd_open(dbd, &dbd->writer, &work->err);
    if (work->code == 0 && work->is_hello)
        work->code = ingest_hello(dbd->writer, work->feed->hello, clock_wall_us(), &work->cluster,
                                  &work->position, &work->gap, &work->err);
    else if (work->code == 0)
        work->code = ingest_write(dbd->writer, &work->batch, &work->err);
    if (work->code == -(int)ERR_DB_CONNECTION && dbd->writer)
        store_close(TAKE(dbd->writer));
}

static void said_hello(struct feed *feed, const struct feed_work *work)
{
    feed->cluster = work->cluster;
    feed->position = work->position;
    feed->welcomed = true;
    log_info("feed.begins", "cluster=%s controller=%s epoch=%llu from=%llu%s", feed->hello->cluster,
             feed->hello->controller, (unsigned long long)feed->hello->epoch,
             (unsigned long long)feed->position.index + 1,
             work->gap ? " gap=yes: see spur accounting status" : "");
    send_welcome(feed, work->gap);
    dbd_feed_came(feed->dbd, feed);
    dbd_tables_sync(feed->dbd, feed);
}

static void on_retry(uv_timer_t *timer)
{
    struct feed *feed = timer->data;

    if (feed->unsynced && feed->call) {
        feed->unsynced = false;
        dbd_tables_sync(feed->dbd, feed);
    }
    feed_go_on(feed);
}

static void start_retry(struct feed *feed)
{
    if (!feed->retry) {
        feed->retry = NEW(uv_timer_t);
        uv_timer_init(feed->dbd->uv, feed->retry);
        feed->retry->data = feed;
    }
    uv_timer_start(feed->retry, on_retry, RETRY_MS, 0);
}

void feed_sync_later(struct feed *feed)
{
    feed->unsynced = true;
    start_retry(feed);
}

/* (3) The batch goes back to the front of what waits. */
static void try_again(struct feed *feed, struct feed_work *work)
{
    if (!feed->dbd->away)
        log_warn("feed.retry", "cluster=%s text=%s; it is tried again until it succeeds",
                 feed->hello->cluster, work->err.text);
    feed->dbd->away = true;
    if (!work->is_hello) {
        struct ingest_batch later = feed->waiting;
        feed->waiting = work->batch;
        memset(&work->batch, 0, sizeof(work->batch));
        vec_each (struct str, entry, &later.entries)
            vec_push(&feed->waiting.entries, *entry);
        feed->waiting.last = MAX(feed->waiting.last, later.last);
        feed->waiting.bytes += later.bytes;
        vec_done(&later.entries);
    }
    start_retry(feed);
}

static void note_success(struct dbd *dbd)
{
    if (dbd->away)
        log_info("feed.goes_on", "the database takes entries again");
    dbd->away = false;
}

static void work_done(uv_work_t *uv, int status)
{
    struct feed_work *work = uv->data;
    struct feed *feed = work->feed;
    struct dbd *dbd = work->dbd;

    (void)status;
    feed->busy = dbd->writing = false;
    if (!feed->call || dbd->stopping) {
        if (!feed->call)
            feed_free(feed);
        feed = NULL;
    } else if (work->code < 0) {
        try_again(feed, work);
    } else if (work->is_hello) {
        note_success(dbd);
        said_hello(feed, work);
    } else {
        note_success(dbd);
        feed->position.index = MAX(feed->position.index, work->batch.last);
        feed->position.epoch = MAX(feed->position.epoch, work->batch.epoch);
        dbd->entries += work->batch.entries.len;
        dbd->batches++;
        send_ack(feed); /* (2) */
        dbd_progress(dbd, feed);
    }
    ingest_batch_done(&work->batch);
    free(work);
    for (size_t i = 0; i < dbd->feeds.len && !dbd->writing; i++)
        feed_go_on(dbd->feeds.items[i]);
}

/* (1) */
static void feed_go_on(struct feed *feed)
{
    struct dbd *dbd = feed->dbd;
    bool has_batch =
        feed->welcomed && (feed->waiting.entries.len || feed->waiting.last > feed->position.index);

    if (dbd->writing || feed->busy || dbd->stopping || !feed->call || !feed->hello ||
        (feed->retry && uv_is_active((uv_handle_t *)feed->retry)) || (feed->welcomed && !has_batch))
        return;
    struct feed_work *work = NEW(struct feed_work);
    work->work.data = work;
    work->feed = feed;
    work->dbd = dbd;
    work->is_hello = !feed->welcomed;
    if (!work->is_hello) {
        work->batch = feed->waiting;
        memset(&feed->waiting, 0, sizeof(feed->waiting));
        work->batch.cluster = feed->cluster;
        work->batch.epoch = feed->hello->epoch;
        work->batch.now_us = clock_wall_us();
        work->batch.last = MAX(work->batch.last, feed->position.index);
    }
    feed->busy = dbd->writing = true;
    if (feed->paused) {
        feed->paused = false;
        rpc_resume(feed->call);
    }
    uv_queue_work(dbd->uv, &work->work, do_work, work_done);
}

/* ---- what leaders send ---- */

static void push_bytes(struct feed *feed, const ProtobufCBinaryData *bytes)
{
    struct str copy = { 0 };

    str_add_len(&copy, bytes->data, bytes->len);
    vec_push(&feed->waiting.entries, copy);
    feed->waiting.bytes += bytes->len;
}

static void take_entries(struct feed *feed, const FeedEntries *entries)
{
    for (size_t i = 0; i < entries->n_entries; i++)
        push_bytes(feed, &entries->entries[i]);
    feed->waiting.last = MAX(feed->waiting.last, entries->last);
    feed->leader_index = MAX(feed->leader_index, entries->last);
    if (feed->waiting.bytes > WAITING_MOST && !feed->paused) {
        feed->paused = true;
        rpc_pause(feed->call);
    }
}

static void *copy_of(const ProtobufCMessage *message)
{
    size_t len = protobuf_c_message_get_packed_size(message);
    CLEANUP(freep) uint8_t *packed = mem_new(len + 1);

    protobuf_c_message_pack(message, packed);
    return protobuf_c_message_unpack(message->descriptor, NULL, len, packed);
}

static bool hello_is_whole(const FeedHello *hello, struct err *err)
{
    if (hello->cluster_id.len == 16 && !str_is_empty(hello->cluster) &&
        !str_is_empty(hello->controller))
        return true;
    err_set(err, ERR_INVALID,
            "the hello of a leader names its cluster, the cluster's id and itself");
    return false;
}

/* (4) */
static bool replace_older(struct feed *feed, struct err *err)
{
    const ProtobufCBinaryData *id = &feed->hello->cluster_id;

    for (size_t i = feed->dbd->feeds.len; i-- > 0;) {
        struct feed *other = feed->dbd->feeds.items[i];
        if (other == feed || !other->hello || !other->call ||
            other->hello->cluster_id.len != id->len ||
            memcmp(other->hello->cluster_id.data, id->data, id->len) != 0)
            continue;
        if (other->hello->epoch > feed->hello->epoch) {
            err_set(err, ERR_INVALID, "cluster '%s' has a later leader, %s", feed->hello->cluster,
                    other->hello->controller);
            return false;
        }
        err_set(err, ERR_CANCELLED, "another stream of the cluster took over");
        feed_end(other, err);
    }
    return true;
}

/* Tokens of the cluster's people are checked with its key. */
static void take_key(struct dbd *dbd, const FeedHello *hello)
{
    struct err err = { 0 };

    if (hello->public_key.len == KEY_PUBLIC_BYTES && dbd->jwt &&
        jwt_keys_add_public(dbd->jwt, "cluster", JWT_CLUSTER, hello->public_key.data, &err) < 0)
        log_warn("feed.key", "cluster=%s text=%s", hello->cluster, err.text);
}

static void take_hello(struct feed *feed, const FeedHello *hello)
{
    struct err err = { 0 };

    if (feed->hello || !hello_is_whole(hello, &err)) {
        if (feed->hello)
            err_set(&err, ERR_INVALID, "a leader says hello once");
        feed_end(feed, &err);
        return;
    }
    feed->hello = copy_of(&hello->base);
    feed->leader_index = hello->last;
    if (!replace_older(feed, &err)) {
        feed_end(feed, &err);
        return;
    }
    take_key(feed->dbd, hello);
    dbd_revoke(feed->dbd, hello);
}

static void on_message(struct rpc_call *call, const ProtobufCMessage *packed)
{
    const FeedFromLeader *message = (const void *)packed;
    struct feed *feed = rpc_call_data(call);
    struct dbd *dbd = rpc_call_ctx(call);

    if (!feed || !message)
        return;
    if (message->hello)
        take_hello(feed, message->hello);
    feed = rpc_call_data(call);
    if (feed && feed->welcomed && message->entries)
        take_entries(feed, message->entries);
    if (feed && feed->welcomed && message->answer) {
        feed->leader_index = MAX(feed->leader_index, message->answer->index);
        dbd_answered(dbd, feed, message->answer);
    }
    feed = rpc_call_data(call);
    if (feed)
        feed_go_on(feed);
}

static void on_gone(struct rpc_call *call)
{
    struct feed *feed = rpc_call_data(call);

    if (feed)
        feed_end(feed, NULL);
}

static const struct rpc_watch watch = { .on_message = on_message,
                                        .on_half_close = on_gone,
                                        .on_cancel = on_gone };

void dbd_on_feed(struct rpc_call *call, const ProtobufCMessage *request)
{
    struct dbd *dbd = rpc_call_ctx(call);
    struct feed *feed = NEW(struct feed);

    (void)request;
    feed->dbd = dbd;
    feed->call = call;
    vec_push(&dbd->feeds, feed);
    rpc_call_set_data(call, feed);
    rpc_watch(call, &watch);
}

void feed_ask(struct feed *feed, const FeedAsk *ask)
{
    FeedToLeader message = FEED_TO_LEADER__INIT;

    message.ask = (FeedAsk *)(uintptr_t)ask;
    send_to(feed, &message);
}

const FeedHello *feed_hello(const struct feed *feed)
{
    return feed->hello;
}

void feed_change(struct feed *feed, const FeedChange *change)
{
    FeedToLeader message = FEED_TO_LEADER__INIT;

    message.change = (FeedChange *)(uintptr_t)change;
    send_to(feed, &message);
}

void dbd_add_feeds(const struct dbd *dbd, AcctCluster *clusters, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        AcctCluster *cluster = &clusters[i];
        for (size_t k = 0; k < dbd->feeds.len; k++) {
            const struct feed *feed = dbd->feeds.items[k];
            if (!feed->call || !feed->hello || feed->hello->cluster_id.len != cluster->id.len ||
                memcmp(feed->hello->cluster_id.data, cluster->id.data, cluster->id.len) != 0)
                continue;
            cluster->has_connected = cluster->connected = true;
            cluster->controller = feed->hello->controller;
            cluster->has_leader_index = true;
            cluster->leader_index = feed->leader_index;
            cluster->has_leader_changes = cluster->has_file_owns = true;
            cluster->leader_changes = feed->hello->changes;
            cluster->file_owns = feed->hello->file_owns;
        }
    }
}

/* The loop runs on until workers are done. */
void dbd_feeds_end(struct dbd *dbd)
{
    struct err err = { 0 };

    err_set(&err, ERR_CANCELLED, "spurdbd is stopping");
    for (size_t i = dbd->feeds.len; i-- > 0;)
        feed_end(dbd->feeds.items[i], &err);
}
