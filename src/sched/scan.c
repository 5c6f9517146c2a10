/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.c - choosing hosts one by one
 *
 * For jobs that name hosts, prefer some, want neighbours, few switches, or so many hosts with a
 * feature: what makes a set of hosts good is not known from what each of them has free.
 */
#include <stdlib.h>
#include <string.h>

#include "core/resv.h"
#include "sched/place_priv.h"

/* What one try goes by. */
struct rule {
    struct bitset must;          /* hosts that are named */
    const struct bitset *within; /* of the reservation; NULL: anywhere */
    const struct features *sets; /* counts that the set must have */
    const char *each, *alike;    /* features of every host beside those of the shape; NULL */
};

static int by_fit(const void *a, const void *b, void *arg)
{
    const struct chooser *c = arg;
    const struct chosen *x = a, *y = b;
    const struct host *p = &c->sched->hosts.items[x->host], *q = &c->sched->hosts.items[y->host];

    if (p->kind->number != q->kind->number)
        return p->kind->number < q->kind->number ? -1 : 1;
    if (x->take.tasks != y->take.tasks)
        return x->take.tasks > y->take.tasks ? -1 : 1;
    uint32_t cell_p = kind_cell(p->kind, &p->free), cell_q = kind_cell(q->kind, &q->free);
    if (cell_p != cell_q)
        return (cell_p < cell_q) != (c->down || c->shape->spread) ? -1 : 1;
    return x->host < y->host ? -1 : x->host > y->host;
}

/* False when a host that must be used cannot be. */
static bool scan(struct chooser *c, const struct rule *rule)
{
    struct room_at at;

    candidates_clear(c);
    bitset_each (number, &c->need->nodes) {
        const struct node *node = c->sched->hosts.items[number].node;
        bool listed = rule->must.words && bitset_has(&rule->must, number);
        bool suits = (!rule->within || bitset_has(rule->within, number)) &&
                     (!rule->each || feature_match(rule->each, node)) &&
                     (!rule->alike || feature_match(rule->alike, node));
        uint32_t able = suits ? tasks_at(c, (uint32_t)number, &at) : 0;
        if (able)
            candidate(c, (uint32_t)number, able);
        else if (listed)
            return false;
    }
    return true;
}

static bool has_counts(const struct chooser *c, const struct rule *rule, const struct chosen *list,
                       size_t count)
{
    struct feature_tally tally;

    if (!rule->sets)
        return true;
    feature_tally_init(&tally, rule->sets);
    for (size_t i = 0; i < count; i++)
        feature_tally_add(&tally, c->sched->hosts.items[list[i].host].node);
    return tally.have == rule->sets->total;
}

/* The shortest run of neighbours that is enough and has every host that must be there. */
static bool enough_contiguous(struct chooser *c, const struct rule *rule)
{
    const struct shape *shape = c->shape;
    struct chosen *list = c->sched->candidates.items;
    size_t count = c->sched->candidates.len, best = 0, best_len = SIZE_MAX;
    size_t named = rule->must.words ? bitset_count(&rule->must) : 0;

    for (size_t first = 0; first < count; first++) {
        uint64_t tasks = 0;
        size_t must = 0;
        for (size_t i = first; i < count && i - first < shape->max_nodes; i++) {
            size_t len = i - first + 1;
            if ((i > first && list[i].host != list[i - 1].host + 1) || len >= best_len)
                break;
            tasks += list[i].take.tasks;
            must += named && bitset_has(&rule->must, list[i].host);
            if (len >= shape->min_nodes && tasks >= shape->tasks && must == named &&
                has_counts(c, rule, list + first, len)) {
                best = first;
                best_len = len;
                break;
            }
        }
    }
    if (best_len == SIZE_MAX)
        return false;
    memmove(list, list + best, best_len * sizeof(*list));
    c->sched->candidates.len = best_len;
    return true;
}

static void move_to(struct chosen *list, size_t from, size_t to)
{
    struct chosen moved = list[from];

    memmove(&list[to + 1], &list[to], (from - to) * sizeof(moved));
    list[to] = moved;
}

/* Those that must be used come first, in the order they are in. */
static size_t must_first(struct chooser *c, const struct bitset *must)
{
    struct chosen *list = c->sched->candidates.items;
    size_t first = 0;

    for (size_t i = 0; must->words && i < c->sched->candidates.len; i++) {
        if (bitset_has(must, list[i].host))
            move_to(list, i, first++);
    }
    return first;
}

/* Then those that make up what is counted; false when there are not enough. */
static bool counted_first(struct chooser *c, const struct features *sets, size_t *first)
{
    struct chosen *list = c->sched->candidates.items;
    struct feature_tally tally;

    feature_tally_init(&tally, sets);
    for (size_t i = 0; i < *first; i++)
        feature_tally_add(&tally, c->sched->hosts.items[list[i].host].node);
    for (size_t i = *first; i < c->sched->candidates.len && tally.have < sets->total; i++) {
        if (feature_tally_add(&tally, c->sched->hosts.items[list[i].host].node))
            move_to(list, i, (*first)++);
    }
    return tally.have == sets->total;
}

static bool try_rule(struct chooser *c, const struct rule *rule)
{
    if (!scan(c, rule))
        return false;
    if (c->shape->contiguous)
        return enough_contiguous(c, rule);
    if (c->sched->candidates.len)
        qsort_r(c->sched->candidates.items, c->sched->candidates.len, sizeof(struct chosen), by_fit,
                c);
    size_t first = must_first(c, &rule->must);
    if (rule->sets && !counted_first(c, rule->sets, &first))
        return false;
    if (c->sched->topo.leaves && !c->shape->spread)
        return choose_near(c, first);
    return enough(c, first);
}

/* With what is preferred (may be NULL). */
static bool try_with(struct chooser *c, struct rule rule, const struct features *prefer)
{
    const struct features *sets = &c->shape->features;

    if (prefer)
        rule.each = prefer->plain;
    if (prefer && !sets->group_count)
        sets = prefer;
    if (!sets->one_of) {
        rule.sets = sets->group_count ? sets : NULL;
        return try_rule(c, &rule);
    }
    for (size_t i = 0; i < sets->group_count; i++) {
        rule.alike = sets->groups[i].text;
        if (try_rule(c, &rule))
            return true;
    }
    return false;
}

bool choose_by_scan(struct chooser *c)
{
    const struct features *prefer = &c->shape->prefer;
    struct rule rule = { 0 };
    bool good = true;

    if (c->shape->reservation && !c->resv)
        return false;
    if (c->resv && !(c->resv->flags & RESV_FLEX)) {
        const ReservationSpec *spec = c->resv->spec;
        if (c->view.start_us < spec->start_us || c->view.start_us >= spec->end_us ||
            (!c->shape->reservation && c->view.end_us > spec->end_us) ||
            (c->view.start_us <= c->view.now_us && !c->resv->active))
            return false;
        if (!(c->resv->flags & RESV_ANY_NODES))
            rule.within = &c->resv->nodes;
    }
    if (c->shape->nodelist)
        good = state_node_set(c->sched->state, c->shape->nodelist, &rule.must, NULL) == 0;
    if (good)
        good = ((prefer->plain || prefer->group_count) && try_with(c, rule, prefer)) ||
               try_with(c, rule, NULL);
    bitset_done(&rule.must);
    return good;
}
