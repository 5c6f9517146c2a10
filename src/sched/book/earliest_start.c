/* SPDX-License-Identifier: Apache-2.0 */
/*
 * earliest_start.c - when a job that must wait can start
 *
 * Each host is asked from when on it has what the job wants of it, for as long as the job may run.
 * The job starts when enough hosts have it. Of the hosts that do by then, those are taken that have
 * it last: what is free earlier is left to others.
 *
 * In a search this is done over several slices, see search.h: earliest_start_at says how far it came.
 */
#include <stdlib.h>
#include <string.h>

#include "core/resv.h"
#include "sched/book/earliest_start.h"

/* Starts that are tried after the first moment at which enough hosts have something. */
enum { TRIES = 32 };

/* The hosts that have it by `start`, the latest first. */
static size_t hosts_by(const host_earliest_list *offers, int64_t start_us, uint32_t *hosts)
{
    size_t count = 0;

    for (size_t i = offers->len; i-- > 0;) {
        if (offers->items[i].from_us <= start_us)
            hosts[count++] = offers->items[i].host;
    }
    return count;
}

static bool starts_at(const struct question *q, int64_t start_us, uint32_t *hosts,
                      struct parts *parts)
{
    const host_earliest_list *offers = &q->at->earliest;
    struct view then = q->view;

    search_sees(q->view.search, start_us);

    then.start_us = start_us;
    then.end_us = q->length_us == INT64_MAX ? INT64_MAX : start_us + q->length_us;
    if (q->family->shape->licence_count &&
        !licences_fit(q->sched, q->family, &then, &parts->licence))
        return false;
    size_t count = hosts_by(offers, start_us, hosts);
    return place_among(q->sched, q->family, q->partition, q->job, &then, hosts, count, parts);
}

/* The first moment from then on at which the licences are there too. */
static int64_t with_licences(const struct question *q, int64_t start_us)
{
    struct view then = q->view;

    then.start_us = MAX(start_us, q->from_us);
    return licences_from(q->sched, q->family, &then, q->length_us);
}

/* When there is more than before, behind `after`; the offers are sorted. */
static int64_t next_offer(const host_earliest_list *offers, int64_t after_us)
{
    size_t low = 0, high = offers->len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (offers->items[middle].from_us <= after_us)
            low = middle + 1;
        else
            high = middle;
    }
    return low < offers->len ? offers->items[low].from_us : INT64_MAX;
}

/* When enough of them have it; those that do by then are in order. */
static void count_offers(const struct question *q)
{
    struct earliest_start_at *at = q->at;
    size_t wanted = q->family->shape->min_nodes;

    if (at->counted)
        return;
    host_earliest_select_nth(at->earliest.items, at->earliest.len, wanted - 1);
    int64_t first = at->earliest.items[wanted - 1].from_us;
    if (at->tries && first < at->first_us) { /* something was released meanwhile */
        at->tries = 0;
        search_lost(q->sched, q->view.search);
    }
    at->first_us = first;
    host_earliest_sort_by(at->earliest.items, at->earliest.len, first);
    at->counted = true;
    at->sorted = false;
}

static void sort_offers(struct earliest_start_at *at)
{
    if (!at->sorted)
        qsort(at->earliest.items, at->earliest.len, sizeof(*at->earliest.items),
              host_earliest_by_time);
    at->sorted = true;
}

/* The next start after one in in vain; INT64_MAX: none, or too many were tried. */
static int64_t next_start(const struct question *q)
{
    struct earliest_start_at *at = q->at;

    sort_offers(at);
    int64_t next = at->tries <= TRIES ? next_offer(&at->earliest, at->failed_us) : INT64_MAX;
    return next == INT64_MAX ? INT64_MAX : with_licences(q, next);
}

static int64_t start_with(const struct question *q, struct parts *parts)
{
    struct earliest_start_at *at = q->at;

    if (at->earliest.len < q->family->shape->min_nodes)
        return INT64_MAX;
    uint32_t *hosts = NEW_ARRAY(uint32_t, at->earliest.len + 1);
    count_offers(q);
    int64_t then = at->tries ? next_start(q) : with_licences(q, at->first_us);
    while (then != INT64_MAX) {
        if (then != at->first_us)
            sort_offers(at);
        if (starts_at(q, then, hosts, parts) || search_paused(q->view.search))
            break;
        at->failed_us = then;
        at->tries++;
        then = next_start(q);
    }
    free(hosts);
    return then;
}

static void moment_add(struct halving *halving, int64_t when_us, int64_t after_us)
{
    if (when_us > after_us)
        vec_push(&halving->list, when_us);
}

/* Every moment at which one of the offered hosts has more than before. */
static void gather_moments(const struct question *q)
{
    int64_t from = MAX(q->view.start_us, q->view.now_us);
    struct halving *halving = &q->at->halving;

    if (halving->gathered)
        return;
    for (; halving->next < q->at->earliest.len; halving->next++) {
        const struct host_earliest *offer = &q->at->earliest.items[halving->next];
        const struct host *host = &q->sched->hosts->list.items[offer->host];
        if (!search_may(q->view.search, host_effort(host)))
            return;
        moment_add(halving, offer->from_us, from);
        for (size_t k = 0; k < host->running.len; k++)
            moment_add(halving, host->running.items[k].end_us, from);
        for (size_t k = 0; k < host->blocks.len; k++) {
            if (block_hinders(&host->blocks.items[k], &q->view))
                moment_add(halving, host->blocks.items[k].end_us, from);
        }
        for (size_t k = 0; q->view.forecast && k < host->forecasts.len; k++)
            moment_add(halving, host->forecasts.items[k].end_us, from);
        for (const struct claim *claim = host->claims; claim; claim = claim->next)
            moment_add(halving, claim->end_us, from);
    }
    vec_push(&halving->list, from);
    q->sched->looked += halving->list.len / 4;
    halving_begin(halving);
}

/*
 * The hosts have something earlier, and enough of it later: the first moment at which they do, as if what
 * they have only grew.
 */
static int64_t start_unevenly(const struct question *q, struct parts *parts)
{
    struct halving *halving = &q->at->halving;
    int64_t moment;

    gather_moments(q);
    if (search_paused(q->view.search))
        return INT64_MAX;
    uint32_t *hosts = NEW_ARRAY(uint32_t, q->at->earliest.len + 1);
    while (halving_next(halving, &moment)) {
        int64_t then = with_licences(q, moment);
        bool good = then != INT64_MAX && starts_at(q, then, hosts, parts);
        if (search_paused(q->view.search))
            break;
        halving_said(halving, good);
    }
    /* The parts are those of the last try. */
    int64_t start = halving->best_us;
    start =
        start == INT64_MAX || search_paused(q->view.search) ? INT64_MAX : with_licences(q, start);
    if (start != INT64_MAX && !starts_at(q, start, hosts, parts))
        start = INT64_MAX; /* it is not what it was */
    free(hosts);
    return start;
}

static void stage_next(const struct question *q)
{
    struct earliest_start_at *at = q->at;

    at->stage++;
    at->gathered = at->counted = false;
    at->tries = 0;
    halving_done(&at->halving);
    if (at->stage == STAGE_UNEVEN) /* for other amounts */
        search_asks(q->view.search);
}

/* Is there something in it that was not tried before? */
static bool stage_is_due(const struct question *q, const struct need *need, bool few,
                         uint32_t share)
{
    const struct shape *shape = q->family->shape;
    bool exclusive = shape->exclusive_topo || q->sched->hosts->exclusive; /* who else is there */

    /* More GPUs of one host and fewer of another are as good as so many of each. */
    if (shape->dealt && shape->max_nodes > 1)
        return q->at->stage == STAGE_UNEVEN;
    if (q->at->stage == STAGE_ALL) /* the first ones alone would not do */
        return few && (shape->min_nodes > 1 || shape->licence_count || exclusive);
    if (q->at->stage == STAGE_FEW)
        return true;
    /* Not in equal shares, not on one host, or not when each of the hosts has it first. */
    bool uneven = shape->max_nodes > 1 && (share > 1 || shape->min_nodes > 1);
    /* What is free first may be in the wrong places, or beside others. */
    return uneven || q->family->by_socket || need->bound || shape->tasks_per_socket || exclusive;
}

static int64_t start_in(const struct question *q, struct parts *parts)
{
    const struct shape *shape = q->family->shape;
    const struct need *need = &shape_needs(q->sched->state, q->family->shape)[q->partition];
    uint32_t share = (shape->units + shape->min_nodes - 1) / shape->min_nodes;
    bool few = !q->family->particular && shape->min_nodes < need->node_count;

    for (; q->at->stage < STAGE_OVER; stage_next(q)) {
        if (!stage_is_due(q, need, few, share))
            continue;
        bool uneven = q->at->stage == STAGE_UNEVEN;
        host_earliest_gather(q, uneven ? 1 : share, few && q->at->stage == STAGE_FEW);
        if (search_paused(q->view.search))
            return INT64_MAX;
        int64_t start = uneven ? start_unevenly(q, parts) : start_with(q, parts);
        if (start != INT64_MAX || search_paused(q->view.search))
            return start;
    }
    return INT64_MAX;
}

void earliest_start_at_done(struct earliest_start_at *at)
{
    if (at->best)
        vec_done(&at->best->list);
    free(at->best);
    vec_done(&at->earliest);
    halving_done(&at->halving);
}

/* The first of all partitions. */
static int64_t start_anywhere(struct question *q, struct parts *parts)
{
    struct earliest_start_at *at = q->at;
    struct parts other = { 0 };

    for (; at->turn < q->family->shape->partition_count; at->turn++) {
        q->partition = q->family->turns[at->turn];
        if (!family_may_use(q->sched, q->family, q->partition))
            continue;
        int64_t start = start_in(q, &other);
        if (search_paused(q->view.search)) {
            vec_done(&other.list);
            return LATER;
        }
        if (start < at->best_us) {
            struct parts was = *at->best;
            at->best_us = start;
            *at->best = other;
            other = was;
        }
        at->stage = STAGE_OVER;
        stage_next(q);
        at->stage = STAGE_FEW;
        search_asks(q->view.search);
    }
    vec_done(&other.list);
    other = *parts;
    *parts = *at->best;
    *at->best = other;
    return at->best_us;
}

int64_t earliest_start(struct sched *sched, struct family *family, const struct job *job,
                       const struct view *from, struct parts *parts)
{
    int64_t now_us = from->now_us, begin_us = MAX(from->start_us, now_us);
    struct question q = { .sched = sched, .family = family, .job = job };
    struct earliest_start_at own = { 0 };

    family_asks(sched, family);
    q.view = *from;
    size_t at = 0;
    const struct reservation *resv =
        family->shape->reservation ? resv_next_for(sched->state, job, &at) : NULL;
    q.view.resv = resv_hash(resv ? resv->spec->name : NULL);
    q.view.warn_s = family->shape->resv_warn_s;
    q.from_us = resv && !(resv->flags & RESV_FLEX) ? MAX(resv->spec->start_us, begin_us) : begin_us;
    q.length_us = job_length_us(job);
    int64_t over_us = resv ? resv_over_run_us(sched->state, resv) : INT64_MAX;
    if (over_us != INT64_MAX) /* it is ended with its reservation */
        q.length_us = MIN(q.length_us, MAX(resv->spec->end_us + over_us - q.from_us, 1));
    q.at = from->search ? &from->search->earliest : &own;
    if (!q.at->begun) {
        *q.at = (struct earliest_start_at){ .begun = true, .best_us = INT64_MAX };
        q.at->best = NEW(struct parts);
        search_asks(from->search);
    }
    int64_t start = start_anywhere(&q, parts);
    if (start != LATER) {
        earliest_start_at_done(q.at);
        *q.at = (struct earliest_start_at){ 0 };
    }
    return start;
}
