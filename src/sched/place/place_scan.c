/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_scan.c - choosing hosts one by one
 *
 * For jobs that name hosts, prefer some, want neighbours, few switches, or so many hosts with a
 * feature: what makes a set of hosts good is not known from what each of them has free.
 */
#include <stdlib.h>
#include <string.h>

#include "core/resv.h"
#include "sched/place/chooser.h"

/* Texts whose hosts are kept: those of one job are less than half of them. */
enum { FEATURED_MOST = 2 * (2 * LIMIT_FEATURE_GROUPS + 2) };

/* What one try goes by. */
struct rule {
    struct bitset must;          /* hosts that are named */
    const struct bitset *within; /* of the reservation; NULL: anywhere */
    const struct features *sets; /* counts that the set must have */
    struct bitset each;          /* with the features that every host is to have; empty: all */
    struct bitset alike; /* and with those that are tried; of sched->place->featured or the need */
};

/* Candidates in order: by kind, by tasks, by what the host has left, by number. */
struct fit {
    uint64_t first, then;
    uint32_t at;
};

static int by_fit(const void *a, const void *b)
{
    const struct fit *x = a, *y = b;

    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->then < y->then ? -1 : x->then > y->then;
}

static void sort_by_fit(struct chooser *c)
{
    size_t count = c->sched->place->candidates.len;
    struct chosen *list = c->sched->place->candidates.items,
                  *was = NEW_ARRAY(struct chosen, count + 1);
    struct fit *fits = NEW_ARRAY(struct fit, count + 1);

    for (uint32_t i = 0; i < count; i++) {
        const struct host *host = &c->sched->hosts->list.items[list[i].host];
        uint32_t cell = kind_cell(host->kind, &host->free);
        if (c->down || c->shape->spread)
            cell = ~cell;
        /* GPUs of the whole job are to be of few hosts, whatever kind these are. */
        uint32_t kind = c->shape->dealt ? host->kind->weight : host->kind->number;
        fits[i].first = (uint64_t)kind << 32 | (uint32_t)~list[i].take.tasks;
        fits[i].then = (uint64_t)cell << 32 | list[i].host;
        fits[i].at = i;
    }
    qsort(fits, count, sizeof(*fits), by_fit);
    if (count)
        memcpy(was, list, count * sizeof(*was));
    for (size_t i = 0; i < count; i++)
        list[i] = was[fits[i].at];
    free(fits);
    free(was);
}

/* False when a host that must be used cannot be. */
static bool scan(struct chooser *c, const struct rule *rule)
{
    struct room_at at;

    candidates_clear(c);
    bitset_each (number, &c->need->nodes) {
        bool listed = rule->must.words && bitset_has(&rule->must, number);
        bool suits = (!rule->within || bitset_has(rule->within, number)) &&
                     (!rule->each.words || bitset_has(&rule->each, number)) &&
                     (!rule->alike.words || bitset_has(&rule->alike, number));
        uint32_t able = suits ? units_at(c, (uint32_t)number, &at) : 0;
        if (able)
            candidate(c, (uint32_t)number, able);
        else if (listed || search_paused(c->view.search))
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
        feature_tally_add(&tally, c->sched->hosts->list.items[list[i].host].node);
    return tally.have == rule->sets->total;
}

/* Neighbours: a run of candidates. */
struct run_of {
    size_t first;
    int64_t len, must;
    struct sums sums;
};

static void run_grow(struct run_of *run, const struct shape *shape, const struct chosen *one,
                     const struct bitset *must)
{
    run->len++;
    run->must += must->words && bitset_has(must, one->host);
    sums_add(&run->sums, shape, one);
}

/* By its first. */
static void run_shrink(struct run_of *run, const struct shape *shape, const struct chosen *list,
                       const struct bitset *must)
{
    const struct chosen *one = &list[run->first++];

    run->len--;
    run->must -= must->words && bitset_has(must, one->host);
    sums_del(&run->sums, shape, one);
}

/*
 * The shortest run of neighbours that is enough and has every host that must be there; of these the first. What
 * is enough stays so when the run grows: both of its ends only go forward.
 */
static bool enough_contiguous(struct chooser *c, const struct rule *rule)
{
    const struct shape *shape = c->shape;
    struct chosen *list = c->sched->place->candidates.items;
    size_t count = c->sched->place->candidates.len, best = 0;
    int64_t best_len = INT64_MAX;
    int64_t named = rule->must.words ? (int64_t)bitset_count(&rule->must) : 0;
    struct run_of run = { 0 };

    for (size_t i = 0; i < count; i++) {
        if (run.len && list[i].host != list[i - 1].host + 1)
            run = (struct run_of){ .first = i };
        run_grow(&run, shape, &list[i], &rule->must);
        while (run.len >= shape->min_nodes && sums_do(&run.sums, shape) && run.must == named &&
               has_counts(c, rule, list + run.first, (size_t)run.len)) {
            if (run.len <= shape->max_nodes && run.len < best_len) {
                best = run.first;
                best_len = run.len;
            }
            run_shrink(&run, shape, list, &rule->must);
        }
        while (run.len && run.len >= MIN(best_len, (int64_t)shape->max_nodes + 1))
            run_shrink(&run, shape, list, &rule->must);
    }
    if (best_len == INT64_MAX)
        return false;
    memmove(list, list + best, (size_t)best_len * sizeof(*list));
    c->sched->place->candidates.len = (size_t)best_len;
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
    struct chosen *list = c->sched->place->candidates.items;
    size_t count = c->sched->place->candidates.len, first = 0, kept = 0;

    if (!must->words || !count)
        return 0;
    struct chosen *others = NEW_ARRAY(struct chosen, count);
    for (size_t i = 0; i < count; i++) {
        if (bitset_has(must, list[i].host))
            list[first++] = list[i];
        else
            others[kept++] = list[i];
    }
    memcpy(list + first, others, kept * sizeof(*others));
    free(others);
    return first;
}

/* Then those that make up what is counted; false when there are not enough. */
static bool counted_first(struct chooser *c, const struct features *sets, size_t *first)
{
    struct chosen *list = c->sched->place->candidates.items;
    struct feature_tally tally;

    feature_tally_init(&tally, sets);
    for (size_t i = 0; i < *first; i++)
        feature_tally_add(&tally, c->sched->hosts->list.items[list[i].host].node);
    for (size_t i = *first; i < c->sched->place->candidates.len && tally.have < sets->total; i++) {
        if (feature_tally_add(&tally, c->sched->hosts->list.items[list[i].host].node))
            move_to(list, i, (*first)++);
    }
    return tally.have == sets->total;
}

static bool enough_near(struct chooser *c, size_t first)
{
    return c->sched->hosts->topo.leaves && !c->shape->spread ? place_near(c, first)
                                                             : enough(c, first);
}

/*
 * As many as it may have of those that are liked best have not the room; the roomiest may. False when they
 * have not either.
 */
static bool roomiest_first(struct chooser *c, size_t first)
{
    struct chosen *list = c->sched->place->candidates.items;
    size_t count = c->sched->place->candidates.len, most = MIN(count, (size_t)c->shape->max_nodes);
    struct sums sums;

    if (most <= first || most == count || c->shape->units <= most)
        return false;
    qsort(list + first, count - first, sizeof(*list), chosen_by_units);
    sums_init(&sums, c->shape);
    for (size_t i = 0; i < most; i++)
        sums_add(&sums, c->shape, &list[i]);
    return sums_do(&sums, c->shape);
}

static bool try_rule(struct chooser *c, const struct rule *rule)
{
    if (!scan(c, rule))
        return false;
    if (c->shape->contiguous)
        return enough_contiguous(c, rule);
    sort_by_fit(c);
    size_t first = must_first(c, &rule->must);
    if (rule->sets && !counted_first(c, rule->sets, &first))
        return false;
    return enough_near(c, first) || (roomiest_first(c, first) && enough_near(c, first));
}

/* Hosts with such features; worked out once, until nodes change. */
static struct bitset featured(struct sched *sched, const char *text)
{
    struct feature_last last = { 0 };

    if (!text)
        return (struct bitset){ 0 };
    for (size_t i = 0; i < sched->place->featured.len; i++) {
        if (strcmp(sched->place->featured.items[i].text, text) == 0)
            return sched->place->featured.items[i].hosts;
    }
    struct featured one = { .text = mem_strdup(text) };
    bitset_init(&one.hosts, sched->hosts->list.len);
    for (size_t n = 0; n < sched->hosts->list.len; n++) {
        if (feature_match_next(text, sched->hosts->list.items[n].node, &last))
            bitset_add(&one.hosts, n);
    }
    vec_push(&sched->place->featured, one);
    return one.hosts;
}

/* Between two jobs: there is room for the texts of the next one. */
static void featured_trim(struct sched *sched)
{
    uint64_t generation = state_generation(sched->state);

    if (sched->place->featured_at != generation + 1 ||
        sched->place->featured.len > FEATURED_MOST / 2)
        featured_done(sched);
    sched->place->featured_at = generation + 1;
}

void featured_done(struct sched *sched)
{
    vec_each (struct featured, one, &sched->place->featured) {
        free(one->text);
        bitset_done(&one->hosts);
    }
    vec_done(&sched->place->featured);
}

/* With what is preferred (may be NULL). */
static bool try_with(struct chooser *c, struct rule rule, const struct features *prefer)
{
    const struct features *sets = &c->shape->features;

    if (prefer)
        rule.each = featured(c->sched, prefer->plain);
    if (prefer && !sets->group_count)
        sets = prefer;
    if (!sets->one_of) {
        rule.sets = sets->group_count ? sets : NULL;
        return try_rule(c, &rule);
    }
    for (size_t i = 0; i < sets->group_count; i++) {
        rule.alike = sets == &c->shape->features && c->need->alike
                         ? c->need->alike[i]
                         : featured(c->sched, sets->groups[i].text);
        if (try_rule(c, &rule))
            return true;
    }
    return false;
}

bool place_by_scan(struct chooser *c)
{
    const struct features *prefer = &c->shape->prefer;
    struct rule rule = { 0 };
    bool good = true;

    featured_trim(c->sched);
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
