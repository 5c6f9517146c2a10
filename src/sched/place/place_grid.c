// SPDX-License-Identifier: Apache-2.0
/*
 * place_grid.c - choosing hosts by what they have free now, as the grids know it
 *
 * Only hosts that may have room for so many units are looked at, those that have least left first.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/place/chooser.h"

struct hosts_walk {
    struct grid_walk grid;
    uint32_t kind, row, col, units;
    uint64_t mem_mb;
    enum { WALK_NEXT_KIND, WALK_BOUND, WALK_SPARE } at;
    bool down;
};

/* What so many units take of a host of the kind; false when none could run them. */
static bool walk_kind(const struct chooser *c, struct hosts_walk *walk)
{
    const struct ask *ask = &c->asks[walk->kind];
    const struct kind *kind = c->sched->hosts->kinds.items[walk->kind];

    if (!ask->able || ask->most < walk->units)
        return false;
    walk->row = ask->row;
    walk->col = ask->col;
    walk->mem_mb = ask->mem_mb;
    if (walk->units == ask->least_units || c->need->whole_nodes || c->need->mem_all)
        return true;
    struct room_at has = { .cpus = kind->sample->cpus, .mem_mb = kind->most_mem_mb };
    struct take take;
    for (size_t i = 0; i < kind->sample->gres_count && i < TAKE_GRES; i++)
        has.gres[i] = gres_most(&kind->sample->gres[i]);
    struct room room = { has.cpus, has.mem_mb, has.gres, true };
    fit_part(c->shape, c->need, kind->sample, &room, walk->units, &take);
    has.cpus = take.cpus;
    memcpy(has.gres, take.gres, sizeof(has.gres));
    uint32_t cell = kind_cell(kind, &has);
    walk->row = cell / kind->spare.cols;
    walk->col = cell % kind->spare.cols;
    walk->mem_mb = take.mem_mb;
    return true;
}

static uint32_t walk_next(struct chooser *c, struct hosts_walk *walk)
{
    for (;;) {
        if (walk->at == WALK_NEXT_KIND) {
            if (walk->kind >= c->sched->hosts->kinds.len)
                return UINT32_MAX;
            if (!walk_kind(c, walk)) {
                walk->kind++;
                continue;
            }
            walk->at = c->bound ? WALK_BOUND : WALK_SPARE;
            const struct kind *kind = c->sched->hosts->kinds.items[walk->kind];
            grid_walk_begin(&walk->grid, c->bound ? &kind->bound : &kind->spare,
                            c->need->nodes.words, walk->row, walk->col, walk->down);
        }
        uint32_t number = grid_walk_next(&walk->grid);
        if (number == UINT32_MAX && walk->at == WALK_BOUND) {
            walk->at = WALK_SPARE;
            grid_walk_begin(&walk->grid, &c->sched->hosts->kinds.items[walk->kind]->spare,
                            c->need->nodes.words, walk->row, walk->col, walk->down);
            continue;
        }
        if (number == UINT32_MAX) {
            walk->at = WALK_NEXT_KIND;
            walk->kind++;
            continue;
        }
        const struct host *host = &c->sched->hosts->list.items[number];
        if (walk->at == WALK_SPARE && c->bound && host->bound)
            continue; /* was looked at among the bound */
        if (host->free.mem_mb >= walk->mem_mb)
            return number;
    }
}

/* As many as are wanted, each for at least so many units. */
static bool collect(struct chooser *c, uint32_t units, uint32_t hosts, bool down)
{
    struct hosts_walk walk = { .units = units, .down = down };
    uint32_t number;
    struct room_at at;

    candidates_clear(c);
    while (c->sched->place->candidates.len < hosts &&
           (number = walk_next(c, &walk)) != UINT32_MAX) {
        uint32_t able = units_at(c, number, &at);
        if (able >= units)
            candidate(c, number, able);
    }
    return c->sched->place->candidates.len >= c->shape->min_nodes && sums_do(&c->sums, c->shape);
}

static uint32_t weight_of(const struct chooser *c, size_t at)
{
    return c->sched->hosts->list.items[c->sched->place->candidates.items[at].host].kind->weight;
}

/* GPUs are to be of few nodes: of the candidates that weigh as much as the last, the roomiest come first. */
static void roomiest_of_weight(struct chooser *c)
{
    size_t count = c->sched->place->candidates.len, first = count;

    while (first && weight_of(c, first - 1) == weight_of(c, count - 1))
        first--;
    qsort(c->sched->place->candidates.items + first, count - first, sizeof(struct chosen),
          chosen_by_units);
}

/* Has it all, but may have it on fewer of those that come next? */
static bool may_be_fewer(const struct chooser *c, const struct hosts_walk *walk)
{
    size_t count = c->sched->place->candidates.len;

    return c->shape->dealt && count > c->shape->min_nodes &&
           walk->kind < c->sched->hosts->kinds.len &&
           c->sched->hosts->kinds.items[walk->kind]->weight == weight_of(c, count - 1);
}

/* The roomiest of each kind until it is enough; when there are too many then, the roomiest of all. */
static bool accumulate(struct chooser *c)
{
    struct hosts_walk walk = { .units = UINT32_MAX, .down = true };
    const struct shape *shape = c->shape;
    uint32_t number;
    struct room_at at;

    for (size_t k = 0; k < c->sched->hosts->kinds.len; k++)
        walk.units = MIN(walk.units, c->asks[k].able ? c->asks[k].least_units : UINT32_MAX);
    candidates_clear(c);
    while ((c->sched->place->candidates.len < shape->min_nodes || !sums_do(&c->sums, shape) ||
            c->sched->place->candidates.len > shape->max_nodes || may_be_fewer(c, &walk)) &&
           (number = walk_next(c, &walk)) != UINT32_MAX) {
        uint32_t able = units_at(c, number, &at);
        if (able >= walk.units)
            candidate(c, number, able);
    }
    if (c->sched->place->candidates.len > shape->max_nodes)
        qsort(c->sched->place->candidates.items, c->sched->place->candidates.len,
              sizeof(struct chosen), chosen_by_units);
    else if (shape->dealt && c->sched->place->candidates.len > shape->min_nodes)
        roomiest_of_weight(c);
    return enough(c, 0);
}

bool place_by_grid(struct chooser *c)
{
    const struct shape *shape = c->shape;
    bool down = c->down || shape->spread;

    /* As many as are wished for, if they are there. */
    if (shape->wish_nodes > shape->min_nodes &&
        collect(c, (shape->units + shape->wish_nodes - 1) / shape->wish_nodes, shape->wish_nodes,
                down))
        return true;
    if (shape->min_nodes == 1) {
        if (collect(c, shape->units, 1, down))
            return true;
        return shape->max_nodes > 1 && shape->units > 1 && accumulate(c);
    }
    uint32_t share = (shape->units + shape->min_nodes - 1) / shape->min_nodes;
    if (collect(c, share, shape->min_nodes, down))
        return true;
    return (share > 1 || shape->max_nodes > shape->min_nodes) && accumulate(c);
}
