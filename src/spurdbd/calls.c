/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.c - what people ask: the history, and how spurdbd is
 *
 * (1) Whoever asks right after a command sees what it did: the leader is asked where its log ends, and the
 *     answer waits until the database has that, for a second at most. Then it comes with a note.
 * (2) Workers read; each has a connection of its own, so a long answer holds up nobody. A piece is read when
 *     the one before has been taken.
 */
#include <stdlib.h>
#include <string.h>

#include "schema/conf.h"
#include "spurdbd/schema.h"
#include "spurdbd/serve.h"
#include "sys/clock.h"
#include "wire/pb_unpack.h"

enum { WAIT_MS = 1000, PIECE_BYTES = 192 * 1024, FIELD_NOTE = 2, READERS_KEPT = 4 };

struct history_call {
    struct dbd *dbd;
    struct rpc_call *call;
    const ListHistoryRequest *request; /* lives as long as the call */
    struct history_viewer viewer;
    uint64_t ask; /* that a leader is to answer */
    bool answered, begun, gone, busy;
    uint64_t index;
    struct feed *feed;
    FeedAnswer *answer;
    char *cluster;
    uv_timer_t *timer;
    uv_work_t work;
    struct store *store;
    struct history *history;
    struct str piece;
    const char *note;
    int code;
    struct err err;
};

/* ---- the end ---- */

static void close_timer(uv_handle_t *handle)
{
    free(handle);
}

static void leave_waiting(struct history_call *self)
{
    struct dbd *dbd = self->dbd;

    for (size_t i = 0; i < dbd->calls.len; i++) {
        if (dbd->calls.items[i] == self)
            vec_remove(&dbd->calls, i);
    }
    if (self->timer)
        uv_close((uv_handle_t *)TAKE(self->timer), close_timer);
}

static void give_back(struct history_call *self)
{
    struct dbd *dbd = self->dbd;
    struct store *store = TAKE(self->store);

    if (store && self->code == 0 && dbd->readers.len < READERS_KEPT && !dbd->stopping)
        vec_push(&dbd->readers, store);
    else
        store_close(store);
}

static void finish(struct history_call *self)
{
    struct rpc_call *call = self->call;

    leave_waiting(self);
    history_free(self->history);
    give_back(self);
    str_done(&self->piece);
    if (self->answer)
        feed_answer__free_unpacked(self->answer, NULL);
    free(self->cluster);
    rpc_call_set_data(call, NULL);
    if (self->code < 0)
        rpc_fail(call, &self->err);
    else
        rpc_end(call);
    free(self);
}

/* ---- reading, in a worker ---- */

static int select_runs(struct history_call *self)
{
    self->history = history_new(self->store, self->request, &self->viewer);
    if (self->answer)
        history_running(self->history, self->cluster, self->answer->steps, self->answer->n_steps);
    return history_select(self->history, &self->err);
}

/* A connection that was kept may be to a server that has been restarted since. */
static int find_runs(struct history_call *self)
{
    if (self->store) {
        int code = select_runs(self);
        if (code != -(int)ERR_DB_CONNECTION)
            return code;
        history_free(TAKE(self->history));
        store_close(TAKE(self->store));
    }
    if (dbd_open(self->dbd, &self->store, &self->err) < 0)
        return -(int)self->err.code;
    return select_runs(self);
}

static int begin_reading(struct history_call *self)
{
    if (find_runs(self) < 0)
        return -(int)self->err.code;
    ListHistoryReply head = LIST_HISTORY_REPLY__INIT;
    head.has_now_us = true;
    head.now_us = clock_wall_us();
    head.note = (char *)(uintptr_t)self->note;
    head.cluster = self->cluster;
    str_reserve(&self->piece, list_history_reply__get_packed_size(&head) + 1);
    self->piece.len = list_history_reply__pack(&head, (uint8_t *)self->piece.data);
    return 0;
}

static void read_piece(uv_work_t *work)
{
    struct history_call *self = work->data;

    self->code = self->history ? 0 : begin_reading(self);
    if (self->code == 0)
        self->code = history_next(self->history, PIECE_BYTES, &self->piece, &self->err);
}

static void go_on(struct history_call *self);

static void piece_read(uv_work_t *work, int status)
{
    struct history_call *self = work->data;

    (void)status;
    self->busy = false;
    if (self->code < 0 || self->gone) {
        finish(self);
        return;
    }
    bool more = history_more(self->history);
    if (!rpc_send_packed(self->call, &self->piece) || !more) {
        finish(self);
        return;
    }
    go_on(self);
}

/* (2) */
static void go_on(struct history_call *self)
{
    if (self->busy || !rpc_writable(self->call))
        return;
    self->busy = true;
    self->work.data = self;
    if (!self->store && self->dbd->readers.len)
        self->store = self->dbd->readers.items[--self->dbd->readers.len];
    uv_queue_work(self->dbd->uv, &self->work, read_piece, piece_read);
}

static void begin(struct history_call *self, const char *note)
{
    if (self->begun)
        return;
    self->begun = true;
    self->note = note;
    self->viewer.cluster = arena_strdup(rpc_call_arena(self->call), dbd_only_cluster(self->dbd));
    leave_waiting(self);
    go_on(self);
}

/* ---- waiting for the leader's index: (1) ---- */

static const char late[] =
    "the database has not caught up with the controller yet; the last seconds "
    "may be missing";
static const char away[] =
    "no controller is connected to spurdbd; what happened since it left is missing";

static void on_late(uv_timer_t *timer)
{
    struct history_call *self = timer->data;

    begin(self, self->feed ? late : away);
}

static void wait_a_second(struct history_call *self)
{
    if (self->timer)
        return;
    self->timer = NEW(uv_timer_t);
    uv_timer_init(self->dbd->uv, self->timer);
    self->timer->data = self;
    uv_timer_start(self->timer, on_late, WAIT_MS, 0);
    vec_push(&self->dbd->calls, self);
}

static void on_writable(struct rpc_call *call)
{
    struct history_call *self = rpc_call_data(call);

    if (self && self->begun)
        go_on(self);
}

static void on_cancel(struct rpc_call *call)
{
    struct history_call *self = rpc_call_data(call);

    if (!self)
        return;
    self->gone = true;
    if (!self->busy)
        finish(self);
}

static const struct rpc_watch watch = { .on_writable = on_writable, .on_cancel = on_cancel };

static void ask_leader(struct history_call *self, struct feed *feed)
{
    const ListHistoryRequest *request = self->request;
    FeedAsk ask = FEED_ASK__INIT;
    uint32_t none = 0;

    ask.has_id = true;
    ask.id = self->ask = ++self->dbd->next_ask;
    self->feed = feed;
    self->cluster = mem_strdup(feed_cluster(feed));
    if (request->no_steps) { /* no job has this number */
        ask.job_ids = &none;
        ask.n_job_ids = 1;
    }
    wait_a_second(self);
    feed_ask(feed, &ask);
}

void dbd_answered(struct dbd *dbd, struct feed *feed, const FeedAnswer *answer)
{
    for (size_t i = 0; i < dbd->calls.len; i++) {
        struct history_call *self = dbd->calls.items[i];
        if (self->ask != answer->id || self->feed != feed)
            continue;
        size_t len = feed_answer__get_packed_size(answer);
        CLEANUP(freep) uint8_t *packed = mem_new(len + 1);
        feed_answer__pack(answer, packed);
        self->answer = feed_answer__unpack(NULL, len, packed);
        self->answered = true;
        self->index = answer->index;
        if (feed_index(feed) >= self->index)
            begin(self, NULL);
        return;
    }
}

void dbd_progress(struct dbd *dbd, struct feed *feed)
{
    for (size_t i = dbd->calls.len; i-- > 0;) {
        struct history_call *self = dbd->calls.items[i];
        if (self->feed == feed && self->answered && feed_index(feed) >= self->index)
            begin(self, NULL);
    }
}

void dbd_feed_gone(struct dbd *dbd, struct feed *feed)
{
    for (size_t i = dbd->calls.len; i-- > 0;) {
        struct history_call *self = dbd->calls.items[i];
        if (self->feed == feed)
            begin(self, away);
    }
}

static struct feed *feed_of(const struct history_call *self)
{
    return dbd_feed(self->dbd, self->request->n_clusters ? self->request->clusters[0] : NULL);
}

void dbd_feed_came(struct dbd *dbd, struct feed *feed)
{
    for (size_t i = dbd->calls.len; i-- > 0;) {
        struct history_call *self = dbd->calls.items[i];
        if (!self->feed && feed_of(self) == feed)
            ask_leader(self, feed);
    }
}

void dbd_on_list(struct rpc_call *call, const ProtobufCMessage *message)
{
    struct dbd *dbd = rpc_call_ctx(call);
    struct history_call *self = NEW(struct history_call);

    self->dbd = dbd;
    self->call = call;
    self->request = (const void *)message;
    dbd_viewer(dbd, call, &self->viewer);
    rpc_call_set_data(call, self);
    rpc_watch(call, &watch);
    struct feed *feed = feed_of(self);
    if (self->request->no_wait)
        begin(self, NULL);
    else if (feed)
        ask_leader(self, feed);
    else if (dbd_feed_comes(dbd))
        wait_a_second(self);
    else
        begin(self, away);
}

/* ---- how spurdbd is ---- */

struct status_call {
    uv_work_t work;
    struct dbd *dbd;
    struct rpc_call *call;
    struct store *store;
    struct arena *arena;
    unsigned schema;
    VEC(AcctCluster) clusters;
    VEC(AcctGap) gaps;
    VEC(int64_t) gap_clusters;
    VEC(int64_t) ids;
    int code;
    struct err err;
};

static int take_cluster(void *ctx, const struct store_row *row, struct err *err)
{
    struct status_call *self = ctx;
    AcctCluster cluster = ACCT_CLUSTER__INIT;
    struct span name = store_row_bytes(row, 1), uuid = store_row_bytes(row, 2);

    (void)err;
    cluster.name = arena_strndup(self->arena, name.ptr, name.len);
    cluster.has_id = cluster.has_epoch = cluster.has_index = cluster.has_heard_us = true;
    cluster.id.data = arena_copy(self->arena, uuid.ptr, uuid.len);
    cluster.id.len = uuid.len;
    cluster.epoch = (uint64_t)store_row_int(row, 3);
    cluster.index = (uint64_t)store_row_int(row, 4);
    cluster.heard_us = store_row_int(row, 5);
    struct span repair = store_row_bytes(row, 7);
    cluster.has_changes = true;
    cluster.changes = (uint64_t)store_row_int(row, 6);
    cluster.repair = arena_strndup(self->arena, repair.ptr ? repair.ptr : "", repair.len);
    vec_push(&self->clusters, cluster);
    vec_push(&self->ids, store_row_int(row, 0));
    return 0;
}

static int take_gap(void *ctx, const struct store_row *row, struct err *err)
{
    struct status_call *self = ctx;
    AcctGap gap = ACCT_GAP__INIT;
    struct span why = store_row_bytes(row, 4);

    (void)err;
    gap.has_from = gap.has_upto = gap.has_noticed_us = true;
    gap.from = (uint64_t)store_row_int(row, 1);
    gap.upto = (uint64_t)store_row_int(row, 2);
    gap.noticed_us = store_row_int(row, 3);
    gap.why = arena_strndup(self->arena, why.ptr, why.len);
    vec_push(&self->gaps, gap);
    vec_push(&self->gap_clusters, store_row_int(row, 0));
    return 0;
}

static int count_rows(struct status_call *self)
{
    for (size_t i = 0; i < self->clusters.len; i++) {
        int64_t jobs, steps;
        struct store_values id = STORE_VALUES(STORE_INT(self->ids.items[i]));
        if (store_number(self->store, "SELECT count(*) FROM job WHERE cluster = ?1", id, 0, &jobs,
                         &self->err) < 0 ||
            store_number(self->store, "SELECT count(*) FROM step WHERE cluster = ?1", id, 0, &steps,
                         &self->err) < 0)
            return -(int)self->err.code;
        self->clusters.items[i].has_jobs = self->clusters.items[i].has_steps = true;
        self->clusters.items[i].jobs = (uint64_t)jobs;
        self->clusters.items[i].steps = (uint64_t)steps;
    }
    return 0;
}

static void read_status(uv_work_t *work)
{
    struct status_call *self = work->data;
    struct err *err = &self->err;

    if (dbd_open(self->dbd, &self->store, err) < 0 ||
        schema_found(self->store, &self->schema, err) < 0 ||
        store_each(self->store,
                   "SELECT c.id, c.name, c.uuid, c.epoch, c.idx, c.heard_us, a.changes, a.repair"
                   " FROM cluster c LEFT JOIN acct_cluster a ON a.name = c.name ORDER BY c.id",
                   STORE_NO_VALUES, take_cluster, self, err) < 0 ||
        store_each(self->store,
                   "SELECT cluster, idx_from, idx_upto, noticed_us, why FROM gap"
                   " ORDER BY cluster, idx_from",
                   STORE_NO_VALUES, take_gap, self, err) < 0 ||
        count_rows(self) < 0)
        self->code = -(int)err->code;
}

static void add_gaps(struct status_call *self)
{
    for (size_t i = 0; i < self->clusters.len; i++) {
        AcctCluster *cluster = &self->clusters.items[i];
        cluster->gaps = ARENA_ARRAY(self->arena, AcctGap *, self->gaps.len + 1);
        for (size_t k = 0; k < self->gaps.len; k++) {
            if (self->gap_clusters.items[k] == self->ids.items[i])
                cluster->gaps[cluster->n_gaps++] = &self->gaps.items[k];
        }
    }
}

static void reply_status(struct status_call *self)
{
    AcctStatusReply reply = ACCT_STATUS_REPLY__INIT;
    CLEANUP(str_done) struct str shown = { 0 };

    add_gaps(self);
    dbd_add_feeds(self->dbd, self->clusters.items, self->clusters.len);
    reply.clusters = ARENA_ARRAY(self->arena, AcctCluster *, self->clusters.len + 1);
    for (size_t i = 0; i < self->clusters.len; i++)
        reply.clusters[reply.n_clusters++] = &self->clusters.items[i];
    store_add_shown(&shown, self->dbd->url);
    reply.version = (char *)SPUR_VERSION;
    reply.database = (char *)str_text(&shown);
    reply.has_schema = reply.has_start_us = reply.has_entries = reply.has_batches = true;
    reply.schema = self->schema;
    reply.start_us = self->dbd->start_us;
    reply.entries = self->dbd->entries;
    reply.batches = self->dbd->batches;
    rpc_reply(self->call, &reply.base);
}

static void status_read(uv_work_t *work, int status)
{
    struct status_call *self = work->data;

    (void)status;
    store_close(self->store);
    if (self->code < 0)
        rpc_fail(self->call, &self->err);
    else
        reply_status(self);
    vec_done(&self->clusters);
    vec_done(&self->gaps);
    vec_done(&self->gap_clusters);
    vec_done(&self->ids);
    free(self);
}

void dbd_on_status(struct rpc_call *call, const ProtobufCMessage *request)
{
    struct status_call *self = NEW(struct status_call);

    (void)request;
    self->dbd = rpc_call_ctx(call);
    self->call = call;
    self->arena = rpc_call_arena(call);
    self->work.data = self;
    uv_queue_work(self->dbd->uv, &self->work, read_status, status_read);
}
