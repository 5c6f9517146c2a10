/* SPDX-License-Identifier: Apache-2.0 */
/*
 * licences.c - licences now and later
 *
 * Each pool knows who has how many of it from when to when: jobs that run, starts that are planned,
 * and bookings. What has none left is not placed and waits until somebody gives one back; the first
 * jobs of a partition get theirs booked like hosts.
 *
 * (1) Of a run the end is its limit; what is overdue counts as ended just after now.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/place/place.h"

void licences_read(struct sched *sched)
{
    map_init(&sched->place->licence_runs);
    for (size_t i = 0; i < state_licence_count(sched->state); i++) {
        const struct licence *licence = state_licence_at(sched->state, i);
        vec_push(&sched->place->pools, (struct licence_pool){ .name = mem_strdup(licence->name),
                                                              .total = licence->total });
    }
}

static struct licence_pool *pool_of(const struct sched *sched, const char *name)
{
    vec_each (struct licence_pool, pool, &sched->place->pools) {
        if (str_eq(pool->name, name))
            return pool;
    }
    return NULL;
}

/* ---- uses ---- */

static void use_add(struct sched *sched, struct licence_use **list, struct licence_use use)
{
    struct licence_pool *pool = &sched->place->pools.items[use.pool];
    struct licence_use *copy = NEW(struct licence_use);

    *copy = use;
    copy->next = *list;
    copy->at = (uint32_t)pool->uses.len;
    vec_push(&pool->uses, copy);
    *list = copy;
}

static struct licence_use *uses_of(struct sched *sched, uint32_t job_id, const struct shape *shape,
                                   uint32_t choice, uint64_t resv, int64_t start_us, int64_t end_us)
{
    struct licence_use *list = NULL;

    for (size_t i = 0; i < shape->licence_count; i++) {
        const struct licence_pool *pool = pool_of(sched, shape->licences[i].name);
        if (!pool || (shape->licence_any && i != choice))
            continue;
        use_add(sched, &list,
                (struct licence_use){ .pool = (uint32_t)(pool - sched->place->pools.items),
                                      .count = shape->licences[i].count,
                                      .job_id = job_id,
                                      .resv = resv,
                                      .start_us = start_us,
                                      .end_us = end_us });
    }
    return list;
}

static bool asks_for(const struct shape *shape, const char *name)
{
    for (size_t i = 0; i < shape->licence_count; i++) {
        if (str_eq(shape->licences[i].name, name))
            return true;
    }
    return false;
}

static void mark_waiting_ready(struct sched *sched, struct licence_pool *pool)
{
    pool->lacking = false;
    map_each (entry, &sched->queue->families) {
        for (struct family *family = entry->value; family; family = family->same) {
            if (asks_for(family->shape, pool->name))
                family_mark_ready(sched, family, INT64_MAX);
        }
    }
}

static void take_off(struct sched *sched, struct licence_use *use, bool given)
{
    struct licence_pool *pool = &sched->place->pools.items[use->pool];
    struct licence_use *last = pool->uses.items[--pool->uses.len];

    pool->uses.items[use->at] = last;
    last->at = use->at;
    if (given && pool->lacking)
        mark_waiting_ready(sched, pool);
    if (given && pool->limited)
        sched->hooks->licence_freed(sched);
    pool->limited = pool->limited && !given;
    free(use);
}

void licences_give(struct sched *sched, struct licence_use *uses)
{
    while (uses) {
        struct licence_use *next = uses->next;
        take_off(sched, uses, true);
        uses = next;
    }
}

void licences_forget(struct sched *sched, struct licence_use *uses)
{
    while (uses) {
        struct licence_use *next = uses->next;
        take_off(sched, uses, false);
        uses = next;
    }
}

static uint64_t parts_resv(const struct parts *parts)
{
    return resv_hash(parts->resv ? parts->resv->spec->name : NULL);
}

struct licence_use *licences_claim(struct sched *sched, uint32_t job_id,
                                   const struct family *family, const struct parts *parts,
                                   int64_t end_us)
{
    return uses_of(sched, job_id, family->shape, parts->licence, parts_resv(parts), INT64_MIN,
                   end_us);
}

struct licence_use *licences_book(struct sched *sched, struct order order,
                                  const struct shape *shape, const struct parts *parts,
                                  int64_t start_us, int64_t end_us)
{
    struct licence_use *uses =
        uses_of(sched, order.id, shape, parts->licence, parts_resv(parts), start_us, end_us);

    for (struct licence_use *use = uses; use; use = use->next)
        use->order = order;
    return uses;
}

/* What reservations keep, at the times that are known. */
void licences_read_reservations(struct sched *sched)
{
    struct licence_use *was = sched->place->licence_resvs;

    sched->place->licence_resvs = NULL;
    for (size_t i = 0; i < state_reservation_count(sched->state); i++) {
        const struct reservation *resv = state_reservation_at(sched->state, i);
        for (size_t k = 0; !resv->over && k < resv->licences.len; k++) {
            const struct licence_pool *pool = pool_of(sched, resv->licences.items[k].name);
            if (!pool)
                continue;
            use_add(sched, &sched->place->licence_resvs,
                    (struct licence_use){ .pool = (uint32_t)(pool - sched->place->pools.items),
                                          .count = resv->licences.items[k].count,
                                          .resv = resv_hash(resv->spec->name),
                                          .start_us = resv->spec->start_us,
                                          .end_us = resv->spec->end_us });
        }
    }
    licences_give(sched, was);
}

void licences_run(struct sched *sched, const struct job *job)
{
    if (!job->shape->licence_count)
        return;
    struct licence_use *was = map_del_num(&sched->place->licence_runs, job->id);
    if (job_holds(job)) {
        struct licence_use *uses =
            uses_of(sched, job->id, job->shape, job->run->licence, resv_hash(job->run->reservation),
                    INT64_MIN, job_runs_until(job));
        if (uses)
            map_put_num(&sched->place->licence_runs, job->id, uses);
    }
    licences_give(sched, was);
}

void licences_ended(struct sched *sched, uint32_t job_id)
{
    const struct job *job = state_job(sched->state, job_id);

    if (map_len(&sched->place->licence_runs) && (!job || !job_holds(job)))
        licences_give(sched, map_del_num(&sched->place->licence_runs, job_id));
}

void licences_done(struct sched *sched)
{
    map_each (entry, &sched->place->licence_runs) {
        for (struct licence_use *use = entry->value, *next; use; use = next) {
            next = use->next;
            free(use);
        }
    }
    map_done(&sched->place->licence_runs);
    for (struct licence_use *use = sched->place->licence_resvs, *next; use; use = next) {
        next = use->next;
        free(use);
    }
    sched->place->licence_resvs = NULL;
    vec_each (struct licence_pool, pool, &sched->place->pools) {
        free(pool->name);
        vec_done(&pool->uses);
    }
    vec_done(&sched->place->pools);
}

/* ---- what is left ---- */

/* (1) */
static bool holds_at(const struct licence_use *use, int64_t now_us, int64_t when_us)
{
    int64_t end = use->start_us == INT64_MIN ? MAX(use->end_us, now_us + US_PER_S) : use->end_us;

    return use->start_us <= when_us && end > when_us;
}

/* Of what a reservation keeps, what its own jobs do not have. */
static uint32_t kept_at(const struct licence_pool *pool, const struct licence_use *keeps,
                        int64_t now_us, int64_t when_us)
{
    uint64_t used = 0;

    for (size_t i = 0; i < pool->uses.len; i++) {
        const struct licence_use *use = pool->uses.items[i];
        if (use->job_id && use->resv == keeps->resv && holds_at(use, now_us, when_us))
            used += use->count;
    }
    return used < keeps->count ? keeps->count - (uint32_t)used : 0;
}

static bool is_behind(struct order order, const struct view *view)
{
    return view->order.id && !order_before(order, view->order);
}

static uint32_t left_at(const struct licence_pool *pool, const struct view *view, int64_t when_us)
{
    uint64_t used = 0;

    for (size_t i = 0; i < pool->uses.len; i++) {
        const struct licence_use *use = pool->uses.items[i];
        bool booked = use->start_us != INT64_MIN;
        bool mine = booked && (view->mine == use->job_id || is_behind(use->order, view));
        if (!use->job_id) {
            if (use->resv != view->resv && holds_at(use, view->now_us, when_us))
                used += kept_at(pool, use, view->now_us, when_us);
            continue;
        }
        used += !mine && holds_at(use, view->now_us, when_us) ? use->count : 0;
    }
    return used < pool->total ? pool->total - (uint32_t)used : 0;
}

/* Less is left only from where a booking begins, so these moments decide. */
static bool pool_has(const struct licence_pool *pool, const struct view *view, uint32_t count)
{
    if (left_at(pool, view, view->start_us) < count)
        return false;
    for (size_t i = 0; i < pool->uses.len; i++) {
        int64_t start = pool->uses.items[i]->start_us;
        if (start > view->start_us && start < view->end_us && left_at(pool, view, start) < count)
            return false;
    }
    return true;
}

static bool have(const struct sched *sched, const struct shape *shape, const struct view *view,
                 uint32_t *choice)
{
    *choice = 0;
    for (size_t i = 0; i < shape->licence_count; i++) {
        const struct licence_pool *pool = pool_of(sched, shape->licences[i].name);
        bool good = pool && pool_has(pool, view, shape->licences[i].count);
        if (good && shape->licence_any) {
            *choice = (uint32_t)i;
            return true;
        }
        if (!good && !shape->licence_any)
            return false;
    }
    return !shape->licence_any;
}

bool licences_free(struct sched *sched, const struct job *job, uint32_t at)
{
    const struct shape_licence *licence = &job->shape->licences[at];
    struct licence_pool *pool = pool_of(sched, licence->name);
    struct view view = { .now_us = sched->now_us, .start_us = sched->now_us };

    view.end_us = job_end_by(job, sched->now_us);
    bool good = pool && pool_has(pool, &view, licence->count);
    if (pool && !good)
        pool->limited = true;
    return good;
}

bool licences_fit(struct sched *sched, const struct family *family, const struct view *view,
                  uint32_t *choice)
{
    const struct shape *shape = family->shape;

    if (have(sched, shape, view, choice))
        return true;
    for (size_t i = 0; i < shape->licence_count; i++) {
        struct licence_pool *pool = pool_of(sched, shape->licences[i].name);
        if (pool)
            pool->lacking = true;
    }
    return false;
}

int64_t licences_from(struct sched *sched, const struct family *family, const struct view *view,
                      int64_t length_us)
{
    const struct shape *shape = family->shape;
    struct view then = *view;
    int64_t best = INT64_MAX;
    uint32_t choice;

    then.end_us = length_us == INT64_MAX ? INT64_MAX : then.start_us + length_us;
    if (!shape->licence_count || have(sched, shape, &then, &choice))
        return view->start_us;
    for (size_t i = 0; i < shape->licence_count; i++) {
        const struct licence_pool *pool = pool_of(sched, shape->licences[i].name);
        for (size_t k = 0; pool && k < pool->uses.len; k++) {
            int64_t end = MAX(pool->uses.items[k]->end_us, view->now_us + US_PER_S);
            if (end <= view->start_us || end >= best)
                continue;
            then.start_us = end;
            then.end_us = length_us == INT64_MAX ? INT64_MAX : end + length_us;
            if (have(sched, shape, &then, &choice))
                best = end;
        }
    }
    return best;
}

const char *licences_lacking(const struct sched *sched, const struct shape *shape)
{
    struct view view = { .now_us = sched->now_us, .start_us = sched->now_us };
    uint32_t choice;

    view.end_us = sched->now_us + 1;
    if (!shape->licence_count || have(sched, shape, &view, &choice))
        return NULL;
    for (size_t i = 0; i < shape->licence_count; i++) {
        const struct licence_pool *pool = pool_of(sched, shape->licences[i].name);
        if (!pool || !pool_has(pool, &view, shape->licences[i].count))
            return shape->licences[i].name;
    }
    return NULL;
}
