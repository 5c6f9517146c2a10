// SPDX-License-Identifier: Apache-2.0
/*
 * place_distribute.c - which of the chosen hosts runs how many tasks of a job, and has how many of its GPUs
 */
#include <stdlib.h>
#include <string.h>

#include "sched/place/chooser.h"

static int by_number(const void *a, const void *b)
{
    const struct chosen *x = a, *y = b;

    return x->host < y->host ? -1 : x->host > y->host;
}

/* A sort by comparing takes longer for many of them. */
enum { MANY = 512 };

static void sort_by_number(struct sched *sched)
{
    size_t count = sched->place->candidates.len, kept = 0;
    struct chosen *list = sched->place->candidates.items;

    if (count < MANY) {
        qsort(list, count, sizeof(*list), by_number);
        return;
    }
    size_t sorted = 1;
    while (sorted < count && list[sorted - 1].host < list[sorted].host)
        sorted++;
    if (sorted == count)
        return;
    struct chosen *was = mem_resize(NULL, count * sizeof(*was));
    uint32_t *by_host = NEW_ARRAY(uint32_t, sched->hosts->list.len); /* which it is, + 1 */
    memcpy(was, list, count * sizeof(*was));
    for (uint32_t i = 0; i < count; i++)
        by_host[was[i].host] = i + 1;
    for (size_t n = 0; n < sched->hosts->list.len; n++) {
        if (by_host[n])
            list[kept++] = was[by_host[n] - 1];
    }
    free(by_host);
    free(was);
}

/* What a candidate has room for: of units, or of one of shape->also. */
enum { UNITS = TAKE_GRES };

static uint64_t has(const struct chosen *one, size_t k)
{
    return k == UNITS ? one->take.tasks : one->take.gres[k];
}

/* The smallest bound on what one host has of it under which all of it finds a place. */
static uint64_t even_share(const struct chooser *c, size_t k, uint64_t total)
{
    size_t count = c->sched->place->candidates.len;
    uint64_t lo = (total + count - 1) / count, hi = total;

    while (lo < hi) {
        uint64_t mid = lo + (hi - lo) / 2, sum = 0;
        for (size_t i = 0; i < count; i++)
            sum += MIN(has(&c->sched->place->candidates.items[i], k), mid);
        if (sum >= total)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

/* The first that has the features of --batch goes before all others: it runs the script. */
static void batch_first(struct chooser *c)
{
    struct chosen *list = c->sched->place->candidates.items;

    for (size_t i = 0; i < c->sched->place->candidates.len; i++) {
        struct chosen first = list[i];
        if (!feature_match(c->shape->batch, c->sched->hosts->list.items[first.host].node))
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
    const struct chosen *one = &c->sched->place->candidates.items[at];
    uint32_t unit = unit_tasks(c, c->sched->hosts->list.items[one->host].node);

    return MIN(one->take.tasks, (least + unit - 1) / unit * unit);
}

/*
 * Tasks of candidate `at` when `left` are to be dealt: as many as it can, but those after it get at
 * least theirs, and fill what they are given for these (cores, mostly): `rest` tasks.
 */
static uint32_t distribute_one(const struct chooser *c, size_t at, uint32_t left, uint32_t least,
                               uint64_t rest)
{
    const struct chosen *one = &c->sched->place->candidates.items[at];
    if (c->sched->place->candidates.len == 1)
        return MIN(one->take.tasks, left);
    uint32_t others = (uint32_t)(c->sched->place->candidates.len - at - 1) * least;
    uint32_t unit = unit_tasks(c, c->sched->hosts->list.items[one->host].node);
    uint32_t want = left > rest ? left - (uint32_t)rest : 1;

    want = MAX((want + unit - 1) / unit * unit, least);
    return MIN(one->take.tasks, MIN(want, left - MIN(left - 1, others)));
}

/* What the host gives for that portion; false when it is not there in the right places. */
static bool give(struct chooser *c, uint32_t number, const struct portion *portion,
                 struct parts *parts)
{
    const struct host *host = &c->sched->hosts->list.items[number];
    struct chosen chosen = { .host = number };
    struct room_at at;

    place_room(c, number, &at);
    struct room room = { at.cpus, at.mem_mb, at.gres, at.empty };
    if (c->shape->also_count && !fit_holds(c->shape, c->need, host->node, &room, portion))
        return false; /* of two types it has as many of each, but not CPUs for both */
    fit_portion(c->shape, c->need, host->node, &room, portion, &chosen.take);
    if (c->family->by_socket && !sockets_suit(c, host, &chosen.take))
        return false;
    if (c->need->bound && !bound_suits(c, host, &chosen.take))
        return false;
    vec_push(&parts->list, chosen);
    return true;
}

/* Tasks are dealt to the candidates in order; each host gets at least one. */
static bool distribute_tasks(struct chooser *c, struct parts *parts)
{
    const struct shape *shape = c->shape;
    size_t count = c->sched->place->candidates.len;
    uint32_t least = shape->tasks_given ? 1 : MAX(shape->tasks_per_node, 1);
    uint32_t left = MAX(shape->units, (uint32_t)count * least);
    uint64_t most = count > 1 && shape->spread ? even_share(c, UNITS, left) : UINT32_MAX;
    struct portion portion;
    uint64_t rest = 0;

    for (size_t i = 1; i < count; i++)
        rest += filled(c, i, least);
    for (size_t i = 0; i < count; i++) {
        portion.tasks = (uint32_t)MIN(distribute_one(c, i, left, least, rest), most);
        if (!give(c, c->sched->place->candidates.items[i].host, &portion, parts))
            return false;
        left -= portion.tasks;
        if (i + 1 < count)
            rest -= filled(c, i + 1, least);
    }
    return left == 0;
}

/* ---- GPUs of the whole job, and tasks where these are ---- */

/* Something of which each candidate gets one at least. */
struct dealt {
    uint64_t left;
    uint64_t even; /* no more than this on one */
};

/* Given in such units, if there are as many. */
static uint64_t distribute_some(struct dealt *dealt, uint64_t most, size_t others, uint32_t unit)
{
    uint64_t spare = dealt->left > others ? dealt->left - others : 0;
    uint64_t even = (dealt->even + unit - 1) / unit * unit;
    uint64_t some = MIN(MIN(most, even), spare);

    dealt->left -= some;
    return some;
}

/*
 * In equal shares where the hosts have as many, else more on those that have. Tasks go where they find CPUs, in
 * equal shares too; with so many for each GPU they are where these are.
 */
static bool distribute_gpus(struct chooser *c, struct parts *parts)
{
    const struct shape *shape = c->shape;
    size_t count = c->sched->place->candidates.len;
    struct dealt units = { shape->units, even_share(c, UNITS, shape->units) }, also[TAKE_GRES];

    for (size_t k = 0; k < shape->also_count; k++) {
        uint64_t total = MAX(shape->also[k].total, count);
        also[k] = (struct dealt){ total, even_share(c, k, total) };
    }
    for (size_t i = 0; i < count; i++) {
        const struct chosen *from = &c->sched->place->candidates.items[i];
        size_t others = count - i - 1;
        uint32_t here = (uint32_t)distribute_some(&units, from->take.tasks, others, 1);
        struct portion portion;
        portion_of(shape, here, true, &portion);
        for (size_t k = 0; k < shape->also_count; k++) {
            bool tasks = shape->also[k].gres == TAKE_GRES; /* they fill cores */
            uint32_t unit = tasks ? unit_tasks(c, c->sched->hosts->list.items[from->host].node) : 1;
            uint64_t some = distribute_some(&also[k], from->take.gres[k], others, unit);
            if (tasks)
                portion.tasks = (uint32_t)some;
            else
                portion.gres[shape->also[k].gres] = some;
            if (!some)
                return false;
        }
        if (!here || !give(c, from->host, &portion, parts))
            return false;
    }
    for (size_t k = 0; k < shape->also_count; k++)
        units.left += also[k].left;
    return units.left == 0;
}

bool place_distribute(struct chooser *c, struct parts *parts)
{
    size_t count = c->sched->place->candidates.len;

    if (count > 1)
        sort_by_number(c->sched);
    if (count > 1 && c->shape->batch)
        batch_first(c);
    vec_clear(&parts->list);
    parts->need = c->need;
    parts->resv = c->resv;
    return c->shape->dealt ? distribute_gpus(c, parts) : distribute_tasks(c, parts);
}
