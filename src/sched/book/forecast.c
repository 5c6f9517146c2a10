/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forecast.c - starts of jobs that are not booked, as far as they can be foreseen
 *
 * What Slurm answers to squeue --start comes from its last backfill pass. Here it is worked out
 * when somebody asks: the first jobs of each partition are planned one after the other, each with
 * those before it in place. Nothing is promised: what is foreseen holds up nobody.
 *
 * (1) hosts[].forecasts are there only while a forecast is made.
 * (2) Who asks gets what was found with little effort, and what was foreseen before of the others. The rest is
 *     worked out in the slices of the planner.
 */
#include <stdlib.h>

#include "sched/book/book.h"

/* Jobs of a partition; effort for all of them, and in one turn; and how often that much is done again. */
enum {
    FORECAST_MOST = 64,
    FORECAST_LOOKS = 20000,
    FORECAST_TURN = 2048,
    FORECAST_CHEAP = 1000,
    LONG_HOSTS = 256,
    LONG_JOBS = 1000, /* where some wait for limits, foresee.c */
};

/* How long an answer about one job is given again. */
#define ANSWER_US (2 * US_PER_S)

const struct forecast *forecast_of(const struct sched *sched, uint32_t job_id)
{
    const struct pending *pending = pending_find(sched, job_id);
    size_t at = pending ? pending->foreseen : 0;

    if (at && at <= sched->forecast->list.len &&
        sched->forecast->list.items[at - 1].job_id == job_id)
        return &sched->forecast->list.items[at - 1];
    if (at && at <= sched->forecast->old.len && sched->forecast->old.items[at - 1].job_id == job_id)
        return &sched->forecast->old.items[at - 1]; /* (2) */
    return NULL;
}

static void forecast_free(struct sched *sched, struct forecast *forecast)
{
    for (uint32_t i = 0; i < forecast->count; i++)
        free(forecast->hosts[i]);
    free(forecast->hosts);
    booked_free(sched, forecast->of, forecast->count);
}

static void forecasts_free(struct sched *sched, forecast_list *list)
{
    vec_each (struct forecast, forecast, list)
        forecast_free(sched, forecast);
    vec_done(list);
}

void forecasts_done(struct sched *sched)
{
    forecasts_free(sched, &sched->forecast->list);
    forecasts_free(sched, &sched->forecast->old);
    search_end(sched, &sched->book->searches[SEARCH_FORECAST]);
    sched->forecast->foresees = (struct foresees){ 0 };
    sched->forecast->made_at = 0;
}

/* (1) */
static void forecast_put(struct sched *sched, const struct forecast *forecast)
{
    for (uint32_t k = 0; k < forecast->count; k++) {
        const struct booked *of = &forecast->of[k];
        for (size_t i = 0; i < of->parts.list.len; i++) {
            const struct chosen *part = &of->parts.list.items[i];
            struct block block = { .start_us = forecast->start_us, .end_us = of->end_us };
            block.job_id = forecast->job_id;
            block.amount = amount_take(sched, &part->take, of->parts.need->whole_nodes);
            vec_push(&sched->hosts->list.items[part->host].forecasts, block);
        }
    }
}

static void forecast_take(struct sched *sched, const struct forecast *forecast)
{
    for (uint32_t k = forecast->count; k-- > 0;) {
        const struct booked *of = &forecast->of[k];
        for (size_t i = of->parts.list.len; i-- > 0;) {
            struct host *host = &sched->hosts->list.items[of->parts.list.items[i].host];
            amount_drop(sched, host->forecasts.items[--host->forecasts.len].amount);
        }
    }
}

static struct forecast forecast_make(const struct sched *sched, const struct job *job,
                                     int64_t start_us, struct booked *of, const struct job *last)
{
    struct forecast forecast = { .job_id = job->id, .start_us = start_us, .of = of };
    struct str names = { 0 };

    forecast.count = het_count(job);
    forecast.late_id = last ? last->id : 0;
    forecast.hosts = NEW_ARRAY(char *, forecast.count);
    for (uint32_t i = 0; i < forecast.count; i++) {
        str_clear(&names);
        if (start_us != INT64_MAX)
            parts_names(sched, &of[i].parts, &names);
        forecast.hosts[i] = mem_strdup(str_text(&names));
    }
    str_done(&names);
    return forecast;
}

static void keep(struct sched *sched, struct forecast forecast)
{
    forecast_put(sched, &forecast);
    vec_push(&sched->forecast->list, forecast);
    pending_find(sched, forecast.job_id)->foreseen = (uint32_t)sched->forecast->list.len;
}

/* False: it goes on in the next turn. */
static bool foresee_job(struct sched *sched, struct family *family, struct order order,
                        uint64_t *effort)
{
    const struct job *job = state_job(sched->state, order.id);
    struct search *search = search_begin(sched, SEARCH_FORECAST, job, order, *effort);
    struct view view = { .now_us = search->now_us, .forecast = true, .search = search };
    uint64_t was = sched->looked;
    struct booked *of;

    const struct job *last = NULL;

    int64_t start = start_of(sched, family, job, &view, &of, &last);
    *effort -= MIN(*effort, sched->looked - was);
    if (start != INT64_MAX && start != LATER)
        keep(sched, forecast_make(sched, job, start, of, last));
    else
        booked_free(sched, of, het_count(job));
    if (start != LATER) {
        sched->forecast->foresees.cost += search->asked; /* search.h (5) */
        search_end(sched, search);
    }
    return start != LATER;
}

/* Jobs of the partition queue from where it was left; false: it goes on in the next turn. */
static bool foresee_partition_queue(struct sched *sched,
                                    const struct partition_queue *partition_queue, uint64_t until,
                                    uint64_t *effort)
{
    struct foresees *at = &sched->forecast->foresees;
    struct partition_queue_walk walk;
    struct class *class;
    bool all = true;

    partition_queue_walk_begin(&walk, partition_queue);
    for (unsigned count = 0; all && count < FORECAST_MOST && at->cost < until; count++) {
        struct order order = partition_queue_walk_next(&walk, &class);
        if (order_is_last(order))
            break;
        if (!order_before(at->order, order))
            continue;
        const struct pending *pending = pending_find(sched, order.id);
        uint32_t seen = pending->foreseen;
        bool done = seen && seen <= sched->forecast->list.len &&
                    sched->forecast->list.items[seen - 1].job_id == order.id;
        all = pending->booked || done ||
              (*effort && foresee_job(sched, class->family, order, effort));
        if (all)
            at->order = order;
    }
    partition_queue_walk_done(&walk);
    return all;
}

void forecast_continue(struct sched *sched, uint64_t effort)
{
    struct foresees *at = &sched->forecast->foresees;
    bool all = true;

    if (!at->under_way)
        return;
    if (at->generation != state_generation(sched->state)) {
        forecasts_done(sched);
        return;
    }
    vec_each (struct forecast, forecast, &sched->forecast->list)
        forecast_put(sched, forecast);
    while (all && at->partition_queue < sched->queue->partition_queues.len) {
        all = foresee_partition_queue(
            sched, &sched->queue->partition_queues.items[at->partition_queue],
            (FORECAST_LOOKS * (at->partition_queue + 1)) / sched->queue->partition_queues.len,
            &effort);
        at->partition_queue += all;
        at->order = all ? NO_ORDER : at->order;
    }
    for (size_t i = sched->forecast->list.len; i-- > 0;)
        forecast_take(sched, &sched->forecast->list.items[i]);
    if (!all)
        return;
    vec_each (struct forecast, forecast, &sched->forecast->list) {
        booked_free(sched, forecast->of, forecast->count);
        forecast->of = NULL;
    }
    forecasts_free(sched, &sched->forecast->old);
    at->under_way = false;
    sched->forecast->cost = at->cost;
}

bool sched_is_long_to_ask(const struct sched *sched, size_t components)
{
    struct state_counts counts = state_counts(sched->state);

    return sched->hosts->list.len * components > LONG_HOSTS ||
           (map_len(&sched->limit->queue_keys) && counts.pending + counts.running > LONG_JOBS);
}

void sched_take_time(struct sched *sched)
{
    sched->forecast->takes_time = true;
}

static uint64_t effort_of_turn(const struct sched *sched)
{
    return sched->forecast->takes_time ? UINT64_MAX / 2 : FORECAST_TURN;
}

void sched_forecast(struct sched *sched, int64_t now_us)
{
    if (sched->forecast->foresees.under_way) /* who does not plan has no slices */
        forecast_continue(sched, effort_of_turn(sched));
    if (!rebuild_is_done(sched) || sched->forecast->foresees.under_way ||
        sched->forecast->made_at == sched->changes + 1 ||
        (sched->forecast->made_at && sched->forecast->cost > FORECAST_CHEAP &&
         now_us < sched->forecast->made_us + US_PER_S))
        return;
    forecasts_free(sched, &sched->forecast->old);
    sched->forecast->old = sched->forecast->list;
    sched->forecast->list = (forecast_list){ 0 };
    sched->now_us = MAX(sched->now_us, now_us);
    sched->forecast->made_at = sched->changes + 1;
    sched->forecast->made_us = now_us;
    sched->forecast->foresees = (struct foresees){ .under_way = true };
    sched->forecast->foresees.generation = state_generation(sched->state);
    forecast_continue(sched, effort_of_turn(sched));
}

/* ---- one job that somebody asks about ---- */

void answer_done(struct sched *sched)
{
    forecast_free(sched, &sched->forecast->answer.forecast);
    sched->forecast->answer = (struct answer){ 0 };
}

/* Begins, or goes on; the search is paused when it must again. */
static void answer_search(struct sched *sched, const struct job *job, uint64_t effort)
{
    struct search *search =
        search_begin(sched, SEARCH_EXPLAIN, job, (struct order){ 0, job->id }, effort);
    struct view view = { .now_us = search->now_us, .forecast = true, .search = search };
    struct family *family = family_for(sched, job);
    const struct job *last = NULL;
    struct booked *of;

    int64_t start = start_of(sched, family, job, &view, &of, &last);
    if (start != LATER) {
        answer_done(sched);
        sched->forecast->answer.forecast = forecast_make(sched, job, start, of, last);
        sched->forecast->answer.forecast.of = NULL;
        sched->forecast->answer.until_us = sched->now_us + ANSWER_US;
        search_end(sched, search);
    }
    booked_free(sched, of, het_count(job));
    family_free(family);
}

void answer_continue(struct sched *sched, uint64_t effort)
{
    struct search *search = &sched->book->searches[SEARCH_EXPLAIN];
    const struct job *job = search->job_id ? state_job(sched->state, search->job_id) : NULL;

    if (job && job->state == JOB_PENDING)
        answer_search(sched, job, effort);
    else if (search->job_id)
        search_end(sched, search);
}

const struct forecast *answer_for(struct sched *sched, const struct job *job, int64_t now_us)
{
    const struct forecast *forecast = &sched->forecast->answer.forecast;

    sched->now_us = MAX(sched->now_us, now_us);
    if (forecast->job_id != job->id || now_us >= sched->forecast->answer.until_us)
        answer_search(sched, job, effort_of_turn(sched));
    return forecast->job_id == job->id ? forecast : NULL;
}

bool sched_is_asked(const struct sched *sched)
{
    return sched->forecast->foresees.under_way || sched->book->searches[SEARCH_EXPLAIN].job_id;
}

bool sched_is_planned(const struct sched *sched, const struct node *node)
{
    if (node->number >= sched->hosts->list.len)
        return false;
    const struct host *host = &sched->hosts->list.items[node->number];
    for (size_t i = 0; i < host->blocks.len; i++) {
        if (host->blocks.items[i].job_id)
            return true;
    }
    return false;
}
