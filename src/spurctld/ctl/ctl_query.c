/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_query.c - what people ask about jobs: lists, one job, watching, explaining
 *
 * (1) A list is a stream of chunks by job-id cursor. It goes on only while its reader keeps up, so
 *     a slow reader costs one chunk of memory. All lists together get a slice of each turn of the
 *     loop, so that they never hold up a submit.
 */
#include <stdlib.h>
#include <string.h>

#include "spurctld/ctl/ctl_priv.h"
#include "wire/pb.h"
#include "wire/pb_add.h"

/* A piece of a list takes a fraction of the slice. */
enum { CHUNK_BYTES = 32 * 1024, PIECE_RECORDS = 2000, SLICE_US = 1000 };

struct listing {
    struct ctl_ask *ask;
    struct query *query;
    struct query_cursor cursor;
    enum job_parts parts;
    bool stale, changes;
    bool only_own; /* jobs of others are hidden from its reader */
    bool ready;    /* its reader takes more */
    struct id_list gone;
    uint64_t index; /* when it began: what changes meanwhile is in the next one */
};

/* What only the planner knows of a job that waits; `nodes` holds the names. */
static void ask_planner(const struct ctl *ctl, const struct job *job, struct str *nodes,
                        struct job_words *words)
{
    str_clear(nodes);
    if (!job_is_eligible(job))
        return;
    words->reason = sched_reason(ctl->sched, job);
    words->reason_text = sched_reason_text(ctl->sched, job);
    words->planned_start_us = sched_planned_start(ctl->sched, job);
    words->looked_us = sched_looked_us(ctl->sched);
    sched_planned_nodes(ctl->sched, job, nodes);
    words->planned_nodes = str_text(nodes);
}

static void listing_free(struct listing *listing)
{
    query_free(listing->query);
    vec_done(&listing->gone.ids);
    free(listing);
}

static void listing_drop(struct ctl *ctl, struct listing *listing)
{
    for (size_t i = 0; i < ctl->asks.listings.len; i++) {
        if (ctl->asks.listings.items[i] == listing) {
            vec_remove(&ctl->asks.listings, i);
            break;
        }
    }
    listing_free(listing);
}

void ctl_listings_gone(struct ctl *ctl)
{
    vec_each (struct listing *, listing, &ctl->asks.listings)
        listing_free(*listing);
    vec_done(&ctl->asks.listings);
}

/* ListJobsReply.jobs (field 1) with a message that is packed already. */
static void add_job(struct str *chunk, const struct str *job)
{
    pb_add_bytes(chunk, 1, job->data, job->len);
}

static void add_tail(struct ctl *ctl, struct listing *listing, struct str *chunk)
{
    ListJobsReply tail = LIST_JOBS_REPLY__INIT;

    if (listing->changes) {
        tail.has_whole = true;
        tail.whole = !query_gone(listing->query, ctl->state, &listing->gone);
        tail.n_gone = listing->gone.ids.len;
        tail.gone = listing->gone.ids.items;
    }

    tail.has_index = tail.has_now_us = true;
    tail.index = listing->index;
    tail.now_us = ctl_now(ctl);
    tail.cluster_name = state_config(ctl->state)->cluster_name;
    tail.has_stale = tail.stale = listing->stale;
    size_t len = list_jobs_reply__get_packed_size(&tail);
    str_reserve(chunk, len);
    list_jobs_reply__pack(&tail, (uint8_t *)chunk->data + chunk->len);
    chunk->len += len;
}

/* As many as fit into a chunk, of so many records; true when it is the last. */
static bool fill_chunk(struct ctl *ctl, struct listing *listing, struct str *chunk)
{
    struct str one = { 0 }, nodes = { 0 };
    unsigned budget = PIECE_RECORDS;
    bool end = false;

    while (chunk->len < CHUNK_BYTES && budget) {
        uint32_t task;
        const struct job *job =
            query_next(listing->query, ctl->state, &listing->cursor, &budget, &task);
        if (!job) {
            end = budget > 0;
            break;
        }
        if (listing->only_own && job->owner->uid != listing->ask->who->uid)
            continue;
        str_clear(&one);
        struct job_words words = { .as_task = task != NO_TASK, .task = task };
        ask_planner(ctl, job, &nodes, &words);
        job_pack(ctl->state, job, listing->parts, &words, &one);
        add_job(chunk, &one);
    }
    str_done(&one);
    str_done(&nodes);
    return end;
}

/* One piece, if the reader takes it; true at the end. */
static bool listing_go(struct ctl *ctl, struct listing *listing)
{
    struct ctl_ask *ask = listing->ask;
    struct str chunk = { 0 };

    listing->ready = ask->ops->writable(ask);
    if (!listing->ready)
        return false;
    bool end = fill_chunk(ctl, listing, &chunk), gone = false;
    if (end)
        add_tail(ctl, listing, &chunk);
    if (chunk.len)
        gone = !ask->ops->send(ask, &chunk);
    str_done(&chunk);
    return gone || end;
}

static void listing_piece(struct ctl *ctl, struct listing *listing)
{
    struct ctl_ask *ask = listing->ask;

    if (!listing_go(ctl, listing))
        return;
    listing_drop(ctl, listing);
    ask->ops->end(ask);
}

/* (1): each in turn, the one that has had a piece last. */
void ctl_lists_timer(struct ctl *ctl)
{
    int64_t begin = ctl_mono(ctl);
    size_t idle = 0;

    while (idle < ctl->asks.listings.len && ctl_mono(ctl) - begin < SLICE_US) {
        struct listing *listing = ctl->asks.listings.items[0];
        vec_remove(&ctl->asks.listings, 0);
        vec_push(&ctl->asks.listings, listing);
        idle = listing->ready ? 0 : idle + 1;
        if (listing->ready)
            listing_piece(ctl, listing);
    }
    if (idle < ctl->asks.listings.len)
        ctl->io.timer(ctl->io.ctx, CTL_TIMER_LISTS, ctl_now(ctl));
}

/* What was not found out at once is in the next slices. */
static void plan_on_if_asked(struct ctl *ctl)
{
    if (ctl->leading && !ctl->asks.is_forked && sched_is_asked(ctl->sched))
        ctl->io.timer(ctl->io.ctx, CTL_TIMER_PLAN, ctl_now(ctl));
}

void ctl_list_jobs(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const ListJobsRequest *request = (const void *)message;
    struct query *query = NULL;
    struct err err = { 0 };

    if (query_new(ctl->state, request, &query, &err) < 0) {
        ask->ops->fail(ask, &err);
        return;
    }
    struct listing *listing = NEW(struct listing);
    listing->ask = ask;
    listing->query = query;
    listing->stale = request->stale;
    listing->changes = request->has_changed_since;
    listing->only_own = ctl_hides(ctl, ask, "jobs");
    listing->index = state_head(ctl->state).index;
    sched_forecast(ctl->sched, ctl_now(ctl));
    plan_on_if_asked(ctl);
    listing->parts = request->with_priority ? JOB_PACK_PRIORITY
                     : request->with_spec   ? JOB_PACK_FULL
                                            : JOB_PACK_BRIEF;
    query_collect(query, &listing->gone);
    ask->data = listing;
    vec_push(&ctl->asks.listings, listing);
    ctl->io.timer(ctl->io.ctx, CTL_TIMER_LISTS, ctl_now(ctl));
    listing_piece(ctl, listing); /* mostly that is all */
}

void ctl_ask_writable(struct ctl *ctl, struct ctl_ask *ask)
{
    struct listing *listing = ask->data;

    if (!listing)
        return;
    listing->ready = true;
    ctl->io.timer(ctl->io.ctx, CTL_TIMER_LISTS, ctl_now(ctl));
}

void ctl_query_gone(struct ctl *ctl, const struct ctl_ask *ask)
{
    if (ask->data)
        listing_drop(ctl, ask->data);
    for (size_t i = ctl->asks.watchers.len; i-- > 0;) {
        struct watcher watcher = ctl->asks.watchers.items[i];
        if (watcher.ask != ask)
            continue;
        vec_remove(&ctl->asks.watchers, i);
        if (watcher.hold)
            ctl_hold_lost(ctl, watcher.job_id);
    }
}

/* ---- one job ---- */

static const struct job *find_job(struct ctl *ctl, const struct ctl_ask *ask, const char *id,
                                  struct job_ref *ref, struct err *err)
{
    const struct job *job = NULL;

    if (!id || job_ref_parse(id, ref, err) < 0) {
        err_code(err, ERR_INVALID_JOB_ID);
        return NULL;
    }
    if (ref->has_tasks) {
        CLEANUP(freep) char *text = mem_strndup(ref->tasks, ref->tasks_len);
        uint64_t task;
        if (str_to_u64(text, UINT32_MAX, &task))
            job = state_task(ctl->state, ref->id, (uint32_t)task);
    } else {
        job = state_job(ctl->state, ref->has_offset ? ref->id + ref->offset : ref->id);
    }
    if (job && !ctl_may_see_job(ctl, ask, job))
        job = NULL;
    if (!job)
        err_code(err, ERR_INVALID_JOB_ID);
    return job;
}

static Job *full_job(struct ctl *ctl, const struct job *job, uint32_t task, struct arena *arena)
{
    Job *out = job_msg(ctl->state, job, arena);
    struct job_words words = { .as_task = task != NO_TASK, .task = task };
    struct str nodes = { 0 };

    if (job->state == JOB_PENDING) {
        sched_forecast(ctl->sched, ctl_now(ctl));
        plan_on_if_asked(ctl);
    }
    ask_planner(ctl, job, &nodes, &words);
    words.planned_nodes = arena_strdup(arena, str_text(&nodes));
    if (words.reason_text)
        words.reason_text = arena_strdup(arena, words.reason_text);
    job_words_msg(job, &words, out->status);
    str_done(&nodes);
    return out;
}

static bool add_payload(struct ctl *ctl, struct ctl_ask *ask, const struct job *job,
                        GetJobReply *reply, struct err *err)
{
    struct str bytes = { 0 };
    ProtobufCAllocator allocator = pb_arena(ask->arena);

    if (!ctl_may_see_payload(ask, job))
        return err_code(err, ERR_PERMISSION), false;
    if (!job->payload)
        return true;
    int code = log_payload_get(ctl->log, job->payload->digest, &bytes, err);
    if (code == 0) {
        reply->payload = job_payload__unpack(&allocator, bytes.len, (const uint8_t *)bytes.data);
        if (!reply->payload)
            code = err_code(err, ERR_CORRUPT);
    }
    str_done(&bytes);
    return code == 0;
}

void ctl_get_job(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const GetJobRequest *request = (const void *)message;
    GetJobReply reply = GET_JOB_REPLY__INIT;
    ListJobsRequest filter = LIST_JOBS_REQUEST__INIT;
    struct query *query = NULL;
    struct query_cursor cursor = { 0 };
    struct job_ref ref;
    struct err err = { 0 };
    VEC(Job *) jobs = { 0 };
    uint32_t task;
    const struct job *job = find_job(ctl, ask, request->id, &ref, &err);

    filter.n_ids = 1;
    filter.ids = (char **)&request->id;
    filter.has_all_states = filter.all_states = true;
    filter.has_hidden_too = filter.hidden_too = true;
    bool many = !job && err.code == ERR_INVALID_JOB_ID && request->id && ref.has_tasks;
    if ((!job && !many) || (request->payload && job && !add_payload(ctl, ask, job, &reply, &err)) ||
        query_new(ctl->state, &filter, &query, &err) < 0) {
        ask->ops->fail(ask, &err);
        return;
    }
    while ((job = query_next(query, ctl->state, &cursor, NULL, &task))) {
        if (ctl_may_see_job(ctl, ask, job))
            vec_push(&jobs, full_job(ctl, job, task, ask->arena));
    }
    query_free(query);
    reply.n_jobs = jobs.len;
    reply.jobs = jobs.items;
    if (!jobs.len)
        ctl_fail(ask, ERR_INVALID_JOB_ID);
    else
        ask->ops->reply(ask, &reply.base);
    vec_done(&jobs);
}

/* ---- watching ---- */

static bool send_job(struct ctl *ctl, struct ctl_ask *ask, const struct job *job)
{
    struct arena arena;
    struct str packed = { 0 };

    arena_init(&arena);
    Job *message = full_job(ctl, job, NO_TASK, &arena);
    size_t len = job__get_packed_size(message);
    str_reserve(&packed, len);
    job__pack(message, (uint8_t *)packed.data);
    packed.len = len;
    bool sent = ask->ops->send(ask, &packed);
    str_done(&packed);
    arena_done(&arena);
    return sent;
}

/* Over for good: ended and released everywhere; an array when its last task is. */
static bool is_over(const struct ctl *ctl, const struct job *job)
{
    const struct array *array = job->array;

    if (!array)
        return job_phase(job) == PHASE_ENDED;
    /* Tasks that waited when their array was cancelled never get a record. */
    const struct job *first = state_job(ctl->state, array->id);
    bool dead = !first || (job_is_meta(first) && job_phase(first) == PHASE_ENDED);
    return array->active == 0 && (dead || array->waiting == 0);
}

void ctl_watch_job(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const WatchJobRequest *request = (const void *)message;
    struct job_ref ref;
    struct err err = { 0 };
    const struct job *job = find_job(ctl, ask, request->id, &ref, &err);

    if (!job) {
        ask->ops->fail(ask, &err);
        return;
    }
    if (!send_job(ctl, ask, job) || is_over(ctl, job)) {
        ask->ops->end(ask);
        return;
    }
    vec_push(&ctl->asks.watchers,
             (struct watcher){ .job_id = job->array ? job->array->id : job->id,
                               .ask = ask,
                               .ends = request->ends,
                               .hold = request->hold && job->owner->uid == ask->who->uid });
}

void ctl_watchers_notify(struct ctl *ctl, const struct job *job)
{
    for (size_t i = ctl->asks.watchers.len; i-- > 0;) {
        struct watcher watcher = ctl->asks.watchers.items[i];
        bool mine = watcher.job_id == job->id || (job->array && job->array->id == watcher.job_id);
        if (!mine)
            continue;
        bool sent = ctl_may_see_job(ctl, watcher.ask, job) &&
                    ((watcher.ends && !job_has_ended(job)) || send_job(ctl, watcher.ask, job));
        if (sent && !is_over(ctl, job))
            continue;
        vec_remove(&ctl->asks.watchers, i);
        watcher.ask->ops->end(watcher.ask);
    }
}

/* ---- why does it wait ---- */

/* One task that its array's record stands for. */
static uint32_t asked_task(const struct job *job, const struct job_ref *ref)
{
    CLEANUP(freep) char *text = ref->has_tasks ? mem_strndup(ref->tasks, ref->tasks_len) : NULL;
    uint64_t task;

    return text && job_is_meta(job) && str_to_u64(text, UINT32_MAX, &task) ? (uint32_t)task
                                                                           : NO_TASK;
}

static size_t components_of(const struct job *job)
{
    return job->more && job->more->het_count ? job->more->het_count : 1;
}

void ctl_explain(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const ExplainRequest *request = (const void *)message;
    ExplainReply reply = EXPLAIN_REPLY__INIT;
    struct explanation about = { 0 };
    struct job_ref ref;
    struct err err = { 0 };
    const struct job *job = find_job(ctl, ask, request->id, &ref, &err);

    if (!job) {
        ask->ops->fail(ask, &err);
        return;
    }
    if (job->state == JOB_PENDING && ctl_forked(ctl, ask, ctl_explain, message, components_of(job)))
        return;
    sched_explain(ctl->sched, job, ctl_now(ctl), ask->arena, &about);
    plan_on_if_asked(ctl);
    reply.job = full_job(ctl, job, asked_task(job, &ref), ask->arena);
    reply.sentence = (char *)about.sentence;
    reply.n_details = about.detail_count;
    reply.details = (char **)about.details;
    reply.has_planned_start_us = about.planned_start_us != 0;
    reply.planned_start_us = about.planned_start_us;
    reply.planned_nodes = (char *)about.planned_nodes;
    reply.has_jobs_ahead = reply.has_never = true;
    reply.jobs_ahead = about.jobs_ahead;
    reply.never = about.never;
    ask->ops->reply(ask, &reply.base);
}
