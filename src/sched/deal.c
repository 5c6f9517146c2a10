// SPDX-License-Identifier: Apache-2.0
/*
 * deal.c - which of the chosen hosts runs how many tasks of a job
 */
#include <stdlib.h>
#include <string.h>

#include "sched/place_priv.h"

static int by_number(const void *a, const void *b)
{
    const struct chosen *x = a, *y = b;

    return x->host < y->host ? -1 : x->host > y->host;
}

/* A sort by comparing takes longer for many of them. */
enum { MANY = 512 };

static void sort_by_number(struct sched *sched)
{
    size_t count = sched->candidates.len, kept = 0;
    struct chosen *list = sched->candidates.items;

    if (count < MANY) {
        qsort(list, count, sizeof(*list), by_number);
        return;
    }
    struct chosen *was = NEW_ARRAY(struct chosen, count);
    uint32_t *by_host = NEW_ARRAY(uint32_t, sched->hosts.len); /* which it is, + 1 */
    memcpy(was, list, count * sizeof(*was));
    for (uint32_t i = 0; i < count; i++)
        by_host[was[i].host] = i + 1;
    for (size_t n = 0; n < sched->hosts.len; n++) {
        if (by_host[n])
            list[kept++] = was[by_host[n] - 1];
    }
    free(by_host);
    free(was);
}

/* The smallest bound on tasks of one host under which all find a place. */
static uint32_t even_share(const struct chooser *c, uint32_t tasks)
{
    size_t count = c->sched->candidates.len;
    uint32_t lo = (uint32_t)((tasks + count - 1) / count), hi = tasks;

    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        uint64_t sum = 0;
        for (size_t i = 0; i < count; i++)
            sum += MIN(c->sched->candidates.items[i].take.tasks, mid);
        if (sum >= tasks)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

/* The first that has the features of --batch goes before all others: it runs the script. */
static void batch_first(struct chooser *c)
{
    struct chosen *list = c->sched->candidates.items;

    for (size_t i = 0; i < c->sched->candidates.len; i++) {
        struct chosen first = list[i];
        if (!feature_match(c->shape->batch, c->sched->hosts.items[first.host].node))
            continue;
        memmove(&list[1], &list[0], i * sizeof(*list));
        list[0] = first;
        return;
    }
}

/* Tasks that CPUs which are given together have room for. */
static uint32_t unit_tasks(const struct chooser *c, const struct node *node)
{
    const struct shape *shape = c->shape;
    uint32_t unit = need_unit(c->need, node);
    uint32_t each = shape->cpus_per_task * (shape->one_thread ? node->threads : 1);
    uint32_t tasks = MAX(unit / MAX(each, 1), 1);

    if (c->need->tasks_per_core)
        tasks = MIN(tasks, c->need->tasks_per_core * MAX(unit / node->threads, 1));
    return shape->overcommit ? 1 : tasks;
}

/* Tasks that the candidate is given room for when it gets its least. */
static uint32_t filled(const struct chooser *c, size_t at, uint32_t least)
{
    const struct chosen *one = &c->sched->candidates.items[at];
    uint32_t unit = unit_tasks(c, c->sched->hosts.items[one->host].node);

    return MIN(one->take.tasks, (least + unit - 1) / unit * unit);
}

/*
 * Tasks of candidate `at` when `left` are to be dealt: as many as it can, but those after it get at
 * least theirs, and fill what they are given for these (cores, mostly): `rest` tasks.
 */
static uint32_t deal_one(const struct chooser *c, size_t at, uint32_t left, uint32_t least,
                         uint64_t rest)
{
    const struct chosen *one = &c->sched->candidates.items[at];
    if (c->sched->candidates.len == 1)
        return MIN(one->take.tasks, left);
    uint32_t others = (uint32_t)(c->sched->candidates.len - at - 1) * least;
    uint32_t unit = unit_tasks(c, c->sched->hosts.items[one->host].node);
    uint32_t want = left > rest ? left - (uint32_t)rest : 1;

    want = MAX((want + unit - 1) / unit * unit, least);
    return MIN(one->take.tasks, MIN(want, left - MIN(left - 1, others)));
}

/* Tasks are dealt to the candidates in order; each host gets at least one. */
bool deal(struct chooser *c, struct parts *parts)
{
    const struct shape *shape = c->shape;
    size_t count = c->sched->candidates.len;
    uint32_t least = shape->tasks_given ? 1 : MAX(shape->tasks_per_node, 1), before = 0;
    uint32_t left = MAX(shape->tasks, (uint32_t)count * least);
    /* Devices for the whole job go by tasks. */
    bool even = count > 1 && (shape->spread || shape_has_job_gres(shape));
    uint32_t most = even ? even_share(c, left) : UINT32_MAX;
    struct room_at at;
    uint64_t rest = 0;

    if (count > 1)
        sort_by_number(c->sched);
    if (count > 1 && shape->batch)
        batch_first(c);
    vec_clear(&parts->list);
    for (size_t i = 1; i < count; i++)
        rest += filled(c, i, least);
    for (size_t i = 0; i < count; i++) {
        struct chosen *from = &c->sched->candidates.items[i];
        uint32_t here = MIN(deal_one(c, i, left, least, rest), most);
        struct chosen chosen = { .host = from->host };
        place_room(c, from->host, &at);
        struct room room = { at.cpus, at.mem_mb, at.gres, at.empty };
        fit_part(shape, c->need, c->sched->hosts.items[from->host].node, &room, before, here,
                 &chosen.take);
        if (c->family->by_socket &&
            !sockets_suit(c, &c->sched->hosts.items[from->host], &chosen.take))
            return false;
        if (c->need->bound && !bound_suits(c, &c->sched->hosts.items[from->host], &chosen.take))
            return false;
        vec_push(&parts->list, chosen);
        before += here;
        left -= here;
        if (i + 1 < count)
            rest -= filled(c, i + 1, least);
    }
    parts->need = c->need;
    parts->resv = c->resv;
    return left == 0;
}
