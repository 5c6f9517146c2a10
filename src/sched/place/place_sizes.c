/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_sizes.c - how many nodes a job may have where not every number will do
 *
 * A job may name the numbers (-N 1,3,5-9), and a partition has its MinNodes and MaxNodes. Whoever chooses hosts
 * knows only a least and a most number: it is asked once for each number that will do, the wished one first.
 */
#include "core/accounts.h"
#include "sched/place/chooser.h"

static unsigned set_aside(const struct chooser *c)
{
    const struct qos *qos = c->job ? job_qos(c->job) : NULL;

    return qos ? qos->flags : 0;
}

/* What the job and the partition both allow. */
static void bounds(const struct chooser *c, uint32_t *least, uint32_t *most)
{
    const PartitionSpec *part = c->need->partition->spec;

    *least = c->shape->min_nodes;
    *most = c->shape->max_nodes;
    if (!(set_aside(c) & QOS_PART_MIN_NODES))
        *least = MAX(*least, part->min_nodes);
    if (part->has_max_nodes && !(set_aside(c) & QOS_PART_MAX_NODES))
        *most = MIN(*most, part->max_nodes);
}

static bool try(struct chooser *c, uint32_t least, uint32_t most, place_fn *choose)
{
    const struct shape *asked = c->shape;
    struct shape narrow = *asked;

    narrow.min_nodes = least;
    narrow.max_nodes = most;
    narrow.wish_nodes = MAX(MIN(asked->wish_nodes, most), least);
    c->shape = &narrow;
    bool good = choose(c);
    c->shape = asked;
    return good;
}

/* The largest that is wished for and there first; the smallest first where that was asked for. */
static bool try_each(struct chooser *c, uint32_t least, uint32_t most, place_fn *choose)
{
    const struct shape *shape = c->shape;
    bool up = shape->wish_nodes <= shape->sizes[0];
    uint32_t wish = MAX(shape->wish_nodes, shape->sizes[0]);

    for (size_t i = 0; i < shape->size_count; i++) {
        uint32_t size = shape->sizes[up ? i : shape->size_count - 1 - i];
        if (size < least || size > most || (!up && size > wish))
            continue;
        if (try(c, size, size, choose))
            return true;
        if (c->sched->place->candidates.len < size) /* so many could serve it */
            most = MIN(most, (uint32_t)c->sched->place->candidates.len);
    }
    return false;
}

bool place_sized(struct chooser *c, place_fn *choose)
{
    uint32_t least, most;

    bounds(c, &least, &most);
    if (c->shape->size_count)
        return try_each(c, least, most, choose);
    if (least <= c->shape->min_nodes && most >= c->shape->max_nodes)
        return choose(c);
    return least <= most && try(c, least, most, choose);
}
