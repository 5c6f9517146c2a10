/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forecast.c - starts of jobs that are not booked, as far as they can be foreseen
 *
 * What Slurm answers to squeue --start comes from its last backfill pass. Here it is worked out
 * when somebody asks: the first jobs of each partition are planned one after the other, each with
 * those before it in place. Nothing is promised: what is foreseen holds up nobody.
 *
 * (1) hosts[].forecasts are there only while a forecast is made.
 */
#include <stdlib.h>

#include "sched/sched_priv.h"

/* Jobs of a partition; hosts looked at; and how often that much is done again. */
enum { FORECAST_MOST = 64, FORECAST_LOOKS = 20000, FORECAST_CHEAP = 1000 };

const struct forecast *forecast_of(const struct sched *sched, uint32_t job_id)
{
    const struct pend *pend = pend_find(sched, job_id);
    uint32_t at = pend ? pend->foreseen : 0;

    if (!at || at > sched->forecasts.len || sched->forecasts.items[at - 1].job_id != job_id)
        return NULL;
    return &sched->forecasts.items[at - 1];
}

static void forecast_free(struct forecast *forecast)
{
    for (uint32_t i = 0; i < forecast->count; i++)
        free(forecast->hosts[i]);
    free(forecast->hosts);
}

void forecasts_done(struct sched *sched)
{
    vec_each (struct forecast, forecast, &sched->forecasts)
        forecast_free(forecast);
    vec_done(&sched->forecasts);
    sched->forecast_at = 0;
}

static void keep_part(struct sched *sched, const struct booked *of, int64_t start_us,
                      uint32_t job_id)
{
    for (size_t i = 0; i < of->parts.list.len; i++) {
        const struct chosen *part = &of->parts.list.items[i];
        struct block block = { .start_us = start_us, .end_us = of->end_us, .job_id = job_id };
        block.amount = amount_take(sched, &part->take, of->parts.need->whole_nodes);
        vec_push(&sched->hosts.items[part->host].forecasts, block);
    }
}

static void keep(struct sched *sched, const struct job *job, int64_t start_us,
                 const struct booked *of)
{
    struct forecast forecast = { .job_id = job->id, .start_us = start_us };
    struct str names = { 0 };

    forecast.count = het_count(job);
    forecast.hosts = NEW_ARRAY(char *, forecast.count);
    for (uint32_t i = 0; i < forecast.count; i++) {
        str_clear(&names);
        parts_names(sched, &of[i].parts, &names);
        forecast.hosts[i] = mem_strdup(str_text(&names));
        keep_part(sched, &of[i], start_us, job->id);
    }
    str_done(&names);
    vec_push(&sched->forecasts, forecast);
    pend_find(sched, job->id)->foreseen = (uint32_t)sched->forecasts.len;
}

static void foresee_lane(struct sched *sched, const struct lane *lane, uint64_t until)
{
    struct lane_walk walk;
    struct class *class;
    unsigned count = 0;

    lane_walk_begin(&walk, lane);
    while (count++ < FORECAST_MOST && sched->looked < until) {
        struct order order = lane_walk_next(&walk, &class);
        if (order_is_last(order))
            break;
        const struct pend *pend = pend_find(sched, order.id);
        if (pend->booked || forecast_of(sched, order.id))
            continue;
        const struct job *job = state_job(sched->state, order.id);
        struct view view = { .now_us = sched->now_us, .forecast = true };
        struct booked *of;
        int64_t start = start_of(sched, class->family, job, &view, &of, NULL);
        if (start != INT64_MAX)
            keep(sched, job, start, of);
        booked_free(sched, of, het_count(job));
    }
    lane_walk_done(&walk);
}

/* (1) */
static void clear_hosts(struct sched *sched)
{
    vec_each (struct host, host, &sched->hosts) {
        for (size_t i = 0; i < host->forecasts.len; i++)
            amount_drop(sched, host->forecasts.items[i].amount);
        vec_done(&host->forecasts);
    }
}

void sched_forecast(struct sched *sched, int64_t now_us)
{
    uint64_t before = sched->looked;

    if (!reading_is_done(sched) || sched->forecast_at == sched->changes + 1 ||
        (sched->forecast_at && sched->forecast_cost > FORECAST_CHEAP &&
         now_us < sched->forecast_us + US_PER_S))
        return;
    forecasts_done(sched);
    sched->now_us = MAX(sched->now_us, now_us);
    for (size_t i = 0; i < sched->lanes.len; i++)
        foresee_lane(sched, &sched->lanes.items[i],
                     before + (FORECAST_LOOKS * (i + 1)) / sched->lanes.len);
    clear_hosts(sched);
    sched->forecast_at = sched->changes + 1;
    sched->forecast_us = now_us;
    sched->forecast_cost = sched->looked - before;
}

bool sched_is_planned(const struct sched *sched, const struct node *node)
{
    if (node->number >= sched->hosts.len)
        return false;
    const struct host *host = &sched->hosts.items[node->number];
    for (size_t i = 0; i < host->blocks.len; i++) {
        if (host->blocks.items[i].job_id)
            return true;
    }
    return false;
}
