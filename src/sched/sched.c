/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched.c - the planner: what it is told
 */
#include <stdlib.h>
#include <string.h>

#include "core/preempt.h"
#include "sched/plan.h"

/* A start that was refused is not planned again at once. */
enum { REFUSED_PAUSE_US = 1000000, LARGE_BYTES = 4096 };

static void read_config(struct sched *sched)
{
    const Config *config = state_config(sched->state);
    const char *select = config->select_parameters;

    sched->queue->in_order =
        config->scheduler_plugin && str_ieq(config->scheduler_plugin, "builtin");
    sched->place->least_loaded = select && strcasestr(select, "CR_LLN");
    predict_read_config(sched);
    sched->hosts->exclusive = sched->queue->reclass = sched->plan->reclass_first = false;
    for (size_t i = 0; i < state_partition_count(sched->state); i++)
        sched->hosts->exclusive =
            sched->hosts->exclusive || state_partition_at(sched->state, i)->spec->exclusive_user;
}

unsigned bookings_of(const struct sched *sched, size_t partition)
{
    const Config *config = state_config(sched->state);
    uint32_t own = state_partition_at(sched->state, partition)->spec->bookings;
    uint32_t many = own ? own : config->bookings;

    if (!many)
        many = config->backfill && str_ieq(config->backfill, "conservative") ? LIMIT_BOOKINGS : 1;
    return MIN(many, LIMIT_BOOKINGS);
}

static void job_read(struct sched *sched, const struct job *job)
{
    if (!job_has_ended(job) && job->state != JOB_PENDING)
        preempt_started(sched, job);
    licences_run(sched, job);
}

static bool is_held(const struct sched *sched, uint32_t job_id)
{
    return preempt_hold_of(sched, job_id) != NULL;
}

static const struct sched_hooks hooks = {
    .host_touched = search_touch,
    .job_read = job_read,
    .licence_freed = limit_queues_review_all,
    .reorder = pending_refresh,
    .unbook = book_drop,
    .forget_search = search_forget,
    .hold_lift = preempt_hold_lift,
    .is_held = is_held,
};

static void forget_all(struct sched *sched)
{
    searches_done(sched);
    answer_done(sched);
    forecasts_done(sched);
    bookings_done(sched);
    inflights_done(sched);
    limits_done(sched);
    classes_done(sched);
    hosts_done(sched);
    amounts_done(sched);
    licences_done(sched);
    topo_done(sched);
    featured_done(sched);
    preempts_done(sched);
    vec_done(&sched->plan->refused);
    vec_done(&sched->plan->completing);
}

static void parts_new(struct sched *sched)
{
    sched->hosts = NEW(struct hosts);
    sched->queue = NEW(struct queue);
    sched->place = NEW(struct placing);
    sched->limit = NEW(struct limiting);
    sched->book = NEW(struct bookings);
    sched->forecast = NEW(struct forecasts);
    sched->preempt = NEW(struct preemption);
    sched->plan = NEW(struct planning);
    sched->hosts->last_block_us = INT64_MIN;
}

static void parts_free(struct sched *sched)
{
    free(sched->hosts);
    free(sched->queue);
    free(sched->place);
    free(sched->limit);
    free(sched->book);
    free(sched->forecast);
    free(sched->preempt);
    free(sched->plan);
}

/* What goes on when everything is read again; the rest is what was read. */
static void keep_parts(struct sched *sched, struct sched *old)
{
    parts_new(sched);
    sched->book->search_looks = old->book->search_looks;
    sched->limit->turn = old->limit->turn;
    sched->queue->het_news = old->queue->het_news;
    sched->queue->predict = old->queue->predict;
    /* These belong to the plan. */
    sched->plan->plan = old->plan->plan;
    memcpy(&sched->plan->starts, &old->plan->starts, sizeof(sched->plan->starts));
    memcpy(&sched->preempt->commands, &old->preempt->commands, sizeof(sched->preempt->commands));
    memset(&old->plan->starts, 0, sizeof(old->plan->starts));
    memset(&old->preempt->commands, 0, sizeof(old->preempt->commands));
}

static void retired_free(struct sched *old)
{
    forget_all(old);
    vec_done(&old->hosts->freed);
    vec_done(&old->plan->starts);
    vec_done(&old->preempt->commands);
    vec_done(&old->place->candidates);
    str_done(&old->plan->names);
    vec_done(&old->plan->scratch.list);
    vec_done(&old->plan->placed.parts.list);
    parts_free(old);
    free(old);
}

void retired_free_some(struct sched *sched, unsigned *budget)
{
    struct sched *old = sched->plan->retired;

    bool all = limit_queues_done_some(old, budget) && classes_done_some(old, budget) &&
               pendings_done_some(old, budget) && hosts_done_some(old, budget);
    /* The library puts many small pieces together when a large one is asked for: now, while they are few. */
    for (unsigned i = 0; i < 4; i++)
        free(mem_new(LARGE_BYTES << i));
    if (!all)
        return;
    sched->plan->retired = NULL;
    retired_free(old);
}

/* rebuild.c (3) */
static void set_aside(struct sched *sched)
{
    struct sched *old = NEW(struct sched);

    if (sched->plan->retired)
        retired_free(sched->plan->retired);
    sched->plan->retired = NULL;
    searches_done(sched);
    answer_done(sched);
    forecasts_done(sched);
    bookings_done(sched);
    inflights_done(sched);
    *old = *sched;
    old->rebuild = (struct rebuild){ 0 };
    sched->rebuild = (struct rebuild){ 0 };
    keep_parts(sched, old);
    sched->plan->retired = old;
}

static void begin(struct sched *sched)
{
    read_config(sched);
    preempts_read(sched);
    for (size_t i = 0; i < state_partition_count(sched->state); i++)
        vec_push(&sched->queue->partition_queues,
                 (struct partition_queue){ .most = bookings_of(sched, i) });
    licences_read(sched);
    topo_read(sched);
    book_blocks(sched);
    rebuild_begin(sched);
}

struct sched *sched_new(const struct state *state)
{
    struct sched *sched = NEW(struct sched);

    sched->state = state;
    sched->hooks = &hooks;
    sched->now_us = state_head(state).time_us;
    parts_new(sched);
    arena_init(&sched->plan_arena);
    predict_init(sched);
    begin(sched);
    rebuild_feed(sched);
    return sched;
}

void sched_free(struct sched *sched)
{
    if (!sched)
        return;
    if (sched->plan->retired)
        retired_free(sched->plan->retired);
    predict_done(sched);
    arena_done(&sched->plan_arena);
    retired_free(sched);
}

/* ---- planned starts that come to nothing ---- */

void sched_again(struct sched *sched, uint32_t job_id)
{
    const struct job *job = state_job(sched->state, job_id);

    if (job)
        pending_refresh(sched, job);
    else
        pending_remove(sched, job_id);
}

void sched_abandon(struct sched *sched, const CmdStart *start)
{
    for (size_t i = 0; i < start->n_starts; i++) {
        const JobStart *one = start->starts[i];
        inflight_end(sched, one->job_id, one->has_array_task_id ? one->array_task_id : NO_TASK,
                     NULL);
        sched_again(sched, one->job_id);
    }
}

void sched_abandon_all(struct sched *sched)
{
    VEC(uint32_t) ids = { 0 };

    map_each (entry, &sched->limit->inflights)
        vec_push(&ids, (uint32_t)entry->num);
    vec_each (uint32_t, id, &ids) {
        struct inflight_list *inflights;
        while ((inflights = map_get_num(&sched->limit->inflights, *id)))
            inflight_end(sched, *id, inflights->first->task, NULL);
        sched_again(sched, *id);
    }
    vec_done(&ids);
}

/* ---- events ---- */

static void refused(struct sched *sched, const struct event *event)
{
    preempt_refused(sched, event->job_id);
    if (!inflight_end(sched, event->job_id, event->task, NULL))
        return; /* another command about it was refused */
    pending_remove(sched, event->job_id);
    vec_push(&sched->plan->refused, event->job_id);
    sched->plan->refused_until_us = sched->now_us + REFUSED_PAUSE_US;
}

/* A task that ended or was put back may let another of its array go. */
static void array_news(struct sched *sched, const struct event *event)
{
    const struct job *first = event->array_id ? state_job(sched->state, event->array_id) : NULL;

    if (first && first->state == JOB_PENDING)
        pending_refresh(sched, first);
    if (event->array_id)
        throttle_release(sched, event->array_id);
}

static void started(struct sched *sched, const struct event *event)
{
    const struct job *job = event->job;

    /* A task that had a record of its own was planned by its own id. */
    if (!event->array_id || !inflight_end(sched, event->array_id, event->task, job))
        inflight_end(sched, job->id, NO_TASK, job);
    if ((job->shape->exclusive_user || job->shape->exclusive_mcs) && !sched->hosts->exclusive)
        sched->hosts->exclusive = sched->queue->reclass = true;
    sched->hosts->topo_exclusive = sched->hosts->topo_exclusive || job->shape->exclusive_topo;
    preempt_hold_drop(sched, event->array_id ? event->array_id : job->id);
    host_job_add(sched, job);
    preempt_started(sched, job);
    licences_run(sched, job);
    pending_remove(sched, job->id);
    array_news(sched, event);
}

/* Could a heterogeneous job start after it that could not before? */
static bool helps_het(const struct event *event)
{
    const struct job *job = event->job;

    switch (event->kind) {
    case EVENT_JOB_SUBMITTED:
    case EVENT_JOB_STARTED:
        return false;
    case EVENT_JOB_ELIGIBLE:
    case EVENT_JOB_WAITING:
        return job->more && job->more->het_count;
    default:
        return true;
    }
}

void sched_feed(struct sched *sched, const struct event *event)
{
    const struct job *job = event->job;

    sched->changes++;
    sched->queue->het_news += helps_het(event);
    predict_hear(sched, event);
    if (sched->rebuild.left && rebuild_passes(sched, event))
        return;
    if (event->kind <= EVENT_JOB_WAITING || event->kind == EVENT_JOB_CHANGED)
        sched->queue->preempt_changed = true;
    switch (event->kind) {
    case EVENT_JOB_SUBMITTED:
    case EVENT_JOB_ELIGIBLE:
    case EVENT_JOB_WAITING:
    case EVENT_TASK_SPLIT:
    case EVENT_TASKS_CANCELLED:
    case EVENT_JOB_CLEAN:
        pending_refresh(sched, job);
        array_news(sched, event);
        break;
    case EVENT_JOB_PREEMPTED:
        host_job_end(sched, job);
        break;
    case EVENT_JOB_SUSPENDED:
    case EVENT_JOB_RESUMED:
        host_job_again(sched, job);
        licences_run(sched, job);
        break;
    case EVENT_JOB_CHANGED:
    case EVENT_JOB_REQUEUED:
    case EVENT_JOB_ENDED:
        if (event->kind != EVENT_JOB_CHANGED) {
            preempt_ended(sched, job->id);
            completing_add(sched, job, event->end_us);
            sched->limit->stop_changed = true;
        }
        pending_refresh(sched, job);
        host_job_end(sched, job);
        licences_run(sched, job);
        limits_freed(sched, job);
        array_news(sched, event);
        break;
    case EVENT_JOB_FORGOTTEN:
        pending_remove(sched, event->job_id);
        break;
    case EVENT_JOB_STARTED:
        started(sched, event);
        break;
    case EVENT_REJECTED:
        refused(sched, event);
        break;
    case EVENT_JOB_RELEASED:
        sched->plan->refused_until_us = 0;
        sched->releases++;
        host_job_del(sched, event->job_id, event->node->number);
        licences_ended(sched, event->job_id);
        if (sched->hosts->topo_exclusive) /* hosts that it was not on may be had again */
            families_mark_ready(sched);
        break;
    case EVENT_NODE_UP:
    case EVENT_NODE_DOWN:
    case EVENT_NODE_CHANGED:
        sched->plan->refused_until_us = 0;
        sched->epoch++;
        host_changed(sched, event->node);
        break;
    case EVENT_RESERVATION:
        if (sched->preempt->on != preempt_is_on(sched->state)) {
            set_aside(sched); /* the first with MaxStartDelay, or the last */
            begin(sched);
            break;
        }
        rebuild_reservations(sched);
        sched->queue->reclass = true;
        break;
    case EVENT_PARTITION:
    case EVENT_CONFIG:
        if (reconfigure_follow(sched, event->changed))
            break;
        set_aside(sched);
        begin(sched);
        break;
    default:
        break;
    }
}

/* Hosts that are freed were not looked at for long: their memory is asked for beforehand. */
static void fetch_hosts(const struct sched *sched, const struct events *events)
{
    enum { LINE_BYTES = 64 };

    events_each(event, events)
    {
        if (event->kind != EVENT_JOB_RELEASED)
            continue;
        const char *host = (const char *)&sched->hosts->list.items[event->node->number];
        for (size_t at = 0; at < sizeof(struct host); at += LINE_BYTES)
            __builtin_prefetch(host + at);
        __builtin_prefetch(&sched->hosts->summaries.items[event->node->number], 1);
    }
}

/* What runs there, once it is known where that is. */
static void fetch_runs(const struct sched *sched, const struct event *event)
{
    if (event->kind == EVENT_JOB_RELEASED)
        __builtin_prefetch(sched->hosts->list.items[event->node->number].running.items);
}

/* A job that is new and may be planned at once: the second event says all that the first does. */
static bool is_said_again(const struct event *event, const struct event *next)
{
    return event->kind == EVENT_JOB_SUBMITTED && next && next->kind == EVENT_JOB_ELIGIBLE &&
           next->job == event->job;
}

void sched_feed_all(struct sched *sched, const struct events *events)
{
    if (rebuild_is_done(sched))
        fetch_hosts(sched, events);
    for (size_t i = 0; i < events->list.len; i++) {
        const struct event *event = &events->list.items[i];
        const struct event *next = i + 1 < events->list.len ? event + 1 : NULL;
        if (next && rebuild_is_done(sched))
            fetch_runs(sched, next);
        if (!is_said_again(event, next))
            sched_feed(sched, event);
    }
    rebuild_feed(sched);
}
