/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wants.c - what families want of hosts, and who is woken when a host gets more room
 *
 * Families that did not fit leave with each kind of host what they want of one at least. A host
 * that got more room is held against these, those that want few CPUs first. Families that need
 * several hosts are tried again when enough of them got more room. To the others the host is
 * offered: the first job in order that it may have room for is tried, then the next.
 *
 * (1) An offer of a job that went elsewhere is looked for again when it comes first: with many hosts that are
 *     all offered the same job that is done for each of them whenever one starts. When so many are free
 *     (offers_most), their families are simply tried in order.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/queue/queue.h"

static void room_of_kind(const struct kind *kind, struct room_at *out)
{
    const struct node *node = kind->sample;

    *out = (struct room_at){ .cpus = node->cpus, .mem_mb = kind->most_mem_mb, .empty = true };
    for (size_t i = 0; i < node->gres_count && i < TAKE_GRES; i++)
        out->gres[i] = gres_most(&node->gres[i]);
}

static void ask_most(const struct shape *shape, const struct need *need, const struct kind *kind,
                     struct ask *ask)
{
    struct room_at has;
    room_of_kind(kind, &has);
    struct room room = { has.cpus, has.mem_mb, has.gres, true };

    ask->most = fit_units(shape, need, kind->sample, &room);
    ask->able = ask->most > 0;
}

/* With at most max_nodes hosts, one that has room for fewer units than this helps nobody. */
static uint32_t least_units(const struct shape *shape, uint32_t most)
{
    if (shape->max_nodes == UINT32_MAX)
        return 1;
    uint64_t others = (uint64_t)(shape->max_nodes - 1) * most;
    return others >= shape->units ? 1 : (uint32_t)(shape->units - others);
}

static void ask_amounts(const struct shape *shape, const struct need *need, const struct kind *kind,
                        struct ask *ask)
{
    struct room_at has;
    struct take take;
    room_of_kind(kind, &has);
    struct room room = { has.cpus, has.mem_mb, has.gres, true };

    if (need->whole_nodes || need->mem_all) { /* an empty host */
        ask->cpus = has.cpus;
        ask->mem_mb = 0;
    } else {
        struct portion portion;
        portion_of(shape, ask->least_units, true, &portion);
        fit_portion(shape, need, kind->sample, &room, &portion, &take);
        ask->cpus = take.cpus;
        ask->mem_mb = take.mem_mb;
        memcpy(has.gres, take.gres, sizeof(has.gres));
    }
    if (need->share > 1) /* CPUs in use may do */
        ask->cpus = 0;
    has.cpus = ask->cpus;
    uint32_t cell = kind_cell(kind, &has);
    ask->row = cell / kind->spare.cols;
    ask->col = cell % kind->spare.cols;
}

/* Of the higher tier, then of the higher priority; else as they were named. */
static bool goes_first(const struct need *a, const struct need *b)
{
    if (!a->partition || !b->partition)
        return a->partition && !b->partition;
    unsigned x = partition_tier(a->partition), y = partition_tier(b->partition);
    return x != y
               ? x > y
               : a->partition->spec->priority_job_factor > b->partition->spec->priority_job_factor;
}

static void put_in_turn(struct family *family, const struct need *needs)
{
    free(family->turns);
    family->turns = NEW_ARRAY(uint32_t, family->shape->partition_count);
    for (uint32_t p = 0; p < family->shape->partition_count; p++) {
        uint32_t at = p;
        for (; at > 0 && goes_first(&needs[p], &needs[family->turns[at - 1]]); at--)
            family->turns[at] = family->turns[at - 1];
        family->turns[at] = p;
    }
}

static void work_out(struct sched *sched, struct family *family)
{
    const struct shape *shape = family->shape;
    const struct need *needs = shape_needs(sched->state, family->shape);

    free(family->asks);
    family->kinds = (uint32_t)sched->hosts->kinds.len;
    family->asks = NEW_ARRAY(struct ask, shape->partition_count * family->kinds + 1);
    for (size_t p = 0; p < shape->partition_count; p++) {
        struct ask *asks = &family->asks[p * family->kinds];
        uint32_t most = 0;
        if (!mask_has(&family->mask, p) || !needs[p].partition || !needs[p].fits)
            continue;
        for (size_t k = 0; k < family->kinds; k++) {
            ask_most(shape, &needs[p], sched->hosts->kinds.items[k], &asks[k]);
            most = MAX(most, asks[k].most);
        }
        for (size_t k = 0; k < family->kinds; k++) {
            asks[k].least_units = least_units(shape, most);
            asks[k].able = asks[k].able && asks[k].most >= asks[k].least_units;
            if (asks[k].able)
                ask_amounts(shape, &needs[p], sched->hosts->kinds.items[k], &asks[k]);
        }
    }
    put_in_turn(family, needs);
    family->generation = family->shape->generation;
    family->kinds_version = sched->hosts->kinds_version;
}

const struct ask *family_asks(struct sched *sched, struct family *family)
{
    shape_needs(sched->state, family->shape);
    if (!family->asks || family->generation != family->shape->generation ||
        family->kinds_version != sched->hosts->kinds_version) {
        bool wanted = family->wanted;
        wants_del(sched, family);
        work_out(sched, family);
        if (wanted)
            wants_add(sched, family);
    }
    return family->asks;
}

typedef VEC(struct want) want_list;

static void want_insert(want_list *list, struct want want)
{
    size_t at = list->len;

    vec_push(list, want);
    for (; at > 0 && list->items[at - 1].cpus > want.cpus; at--)
        list->items[at] = list->items[at - 1];
    list->items[at] = want;
}

void wants_add(struct sched *sched, struct family *family)
{
    if (family->wanted)
        return;
    const struct ask *asks = family_asks(sched, family);
    const struct need *needs = shape_needs(sched->state, family->shape);
    family->wanted = true;
    for (uint32_t p = 0; p < family->shape->partition_count; p++) {
        bool everywhere = bitset_count(&needs[p].nodes) == sched->hosts->list.len;
        for (uint32_t k = 0; k < family->kinds; k++) {
            const struct ask *ask = &asks[p * family->kinds + k];
            struct want want = { ask->cpus, ask->row, ask->mem_mb, family, p, everywhere };
            struct kind *kind = sched->hosts->kinds.items[k];
            if (family->particular)
                want.cpus = want.row = 0, want.mem_mb = 0;
            if (ask->able)
                want_insert((want_list *)(family->single ? (void *)&kind->wants : &kind->wide),
                            want);
        }
    }
}

static void want_remove(want_list *list, const struct family *family)
{
    size_t kept = 0;

    for (size_t i = 0; i < list->len; i++) {
        if (list->items[i].family != family)
            list->items[kept++] = list->items[i];
    }
    list->len = kept;
}

void wants_del(struct sched *sched, struct family *family)
{
    if (!family->wanted)
        return;
    family->wanted = false;
    vec_each (struct kind *, at, &sched->hosts->kinds) {
        want_remove((want_list *)(void *)&(*at)->wants, family);
        want_remove((want_list *)(void *)&(*at)->wide, family);
    }
}

/* ---- hosts that were freed ---- */

struct has {
    uint32_t cpus, row, spare_row;
};

static struct has host_has(const struct host *host)
{
    uint32_t cols = host->kind->spare.cols;

    return (struct has){ host->free.cpus, kind_cell(host->kind, &host->free) / cols,
                         kind_cell(host->kind, &host->spare) / cols };
}

static bool may_fit(const struct host *host, const struct want *want, struct has has)
{
    return want->row <= has.row && want->mem_mb <= host->free.mem_mb;
}

/* Jobs of the family that end by this may fit on the host. */
static int64_t end_by(const struct host *host, const struct want *want, struct has has)
{
    const struct family *family = want->family;

    if (want->cpus <= host->spare.cpus && want->row <= has.spare_row &&
        want->mem_mb <= host->spare.mem_mb)
        return INT64_MAX;
    if (family->particular || family->booked || !host->blocks.len)
        return INT64_MAX;
    return host->blocks.items[host->blocks.len - 1].start_us;
}

/*
 * By how many hosts a job of the family does not fit at least, whatever else is asked of them: as many
 * must get more room before it is worth a try. 0: that cannot be said.
 */
static uint32_t hosts_lacking(const struct sched *sched, const struct family *family)
{
    uint32_t want = family->shape->min_nodes, most = 0;

    for (uint32_t p = 0; p < family->shape->partition_count; p++) {
        uint32_t count = 0;
        for (uint32_t k = 0; k < family->kinds && count < want; k++) {
            const struct ask *ask = &family->asks[p * family->kinds + k];
            const struct kind *kind = sched->hosts->kinds.items[k];
            if (!ask->able)
                continue;
            count += grid_count(&kind->spare, ask->row, ask->col, want - count);
            count += grid_count(&kind->bound, ask->row, ask->col, want - count);
        }
        most = MAX(most, count);
    }
    return want - most;
}

/* Is the host one of those that the partition gives such jobs? */
static bool is_among(const struct sched *sched, const struct want *want, uint32_t number,
                     uint64_t generation)
{
    if (want->everywhere)
        return true;
    struct shape *shape = want->family->shape;
    const struct need *needs = shape->needs && shape->generation == generation
                                   ? shape->needs
                                   : shape_needs(sched->state, shape);

    return bitset_has(&needs[want->partition].nodes, number);
}

static void wake(struct sched *sched, uint32_t number, const struct host *host,
                 const struct want *want, struct has has)
{
    struct family *family = want->family;

    if (!is_among(sched, want, number, state_generation(sched->state)))
        return;
    const struct ask *ask = &family->asks[want->partition * family->kinds + host->kind->number];
    /* By hosts or by tasks: a host helps with no more than it could ever run. */
    uint32_t helps = family->by_tasks ? ask->most : 1;
    if (family->lacking > helps && !family->particular) {
        family->lacking -= helps;
        return;
    }
    uint32_t lacking = family->particular ? 0 : hosts_lacking(sched, family);
    if (lacking) { /* others took what was freed before */
        family->lacking = lacking;
        family->by_tasks = false;
        return;
    }
    pending_prefetch(sched, family->root->best.id);
    family_mark_ready(sched, family, end_by(host, want, has));
}

/* The first job behind those that were offered the host already. */
static void find_offer(struct sched *sched, uint32_t number, struct host *host)
{
    struct order best = ORDER_LAST;
    struct family *found = NULL;
    struct has has = host_has(host);
    uint64_t generation = state_generation(sched->state);

    for (size_t i = 0; i < host->kind->wants.len; i++) {
        const struct want *want = &host->kind->wants.items[i];
        if (want->cpus > has.cpus)
            break;
        struct family *family = want->family;
        if (!may_fit(host, want, has) || family->end_by_us == INT64_MAX ||
            (order_before(best, family->root->best) && !order_is_last(family->root->best)))
            continue;
        if (!is_among(sched, want, number, generation))
            continue;
        int64_t end = end_by(host, want, has);
        struct order first =
            end == INT64_MAX ? family->root->best : family_first(family, end - sched->now_us, NULL);
        if (order_is_last(first)) /* those that come later are to be tried */
            family_mark_ready(sched, family, end);
        if (order_before(host->offered, first) && order_before(first, best)) {
            best = first;
            found = family;
        }
    }
    if (found)
        pending_prefetch(sched, best.id);
    heap_set(&sched->queue->offers, &host->offer_at, found, best);
}

/* Has the host what a job of the family wants at least? */
static bool may_serve(const struct host *host, struct family *family, const struct ask *asks)
{
    struct has has = host_has(host);

    for (uint32_t p = 0; p < family->shape->partition_count; p++) {
        const struct ask *ask = &asks[p * family->kinds + host->kind->number];
        struct want want = { .row = ask->row, .mem_mb = ask->mem_mb };
        if (ask->able && ask->cpus <= has.cpus && may_fit(host, &want, has))
            return true;
    }
    return false;
}

bool wants_may_offer(struct sched *sched, struct family *family)
{
    enum { HOSTS_MOST = 8 };
    size_t count = sched->queue->offers.items.len;

    if (!count || !family->single) /* the others are woken by themselves */
        return false;
    if (count > HOSTS_MOST)
        return true;
    const struct ask *asks = family_asks(sched, family);
    for (size_t i = 0; i < count; i++) {
        if (may_serve(CONTAINER_OF(sched->queue->offers.items.items[i].at, struct host, offer_at),
                      family, asks))
            return true;
    }
    return false;
}

struct family *wants_offer(struct sched *sched, struct order *order, struct host **host,
                           unsigned *budget)
{
    enum { OFFERS_PER_COST = 8 };
    const struct heap_item *top;
    unsigned looks = 0;

    while ((top = heap_top(&sched->queue->offers))) {
        struct heap_item was = *top;
        *host = CONTAINER_OF(top->at, struct host, offer_at);
        const struct pending *pending = pending_find(sched, was.key.id);
        /* It may be in another family now, and that one gone. */
        const struct class *class = pending && pending->place == PENDING_QUEUED
                                        ? position_class(sched, pending, was.key)
                                        : NULL;
        if (class && class->family == was.family && was.family->end_by_us != INT64_MAX) {
            *order = was.key;
            if (may_serve(*host, was.family, family_asks(sched, was.family)))
                return was.family;
            (*host)->offered =
                was.key; /* others have taken it meanwhile: as if it had been tried */
        }
        find_offer(sched, (uint32_t)(*host - sched->hosts->list.items), *host);
        if (++looks % OFFERS_PER_COST == 0)
            budget_take(budget, 1 + (*host)->kind->wants.len / HOSTS_PER_COST);
        if (!*budget)
            break;
    }
    return NULL;
}

void wants_offered(struct sched *sched, struct host *host, struct order order)
{
    host->offered = order;
    find_offer(sched, (uint32_t)(host - sched->hosts->list.items), host);
}

/* (1): more than families could be tried for. */
static size_t offers_most(const struct kind *kind)
{
    enum { OFFERS_MOST = 128 };

    return OFFERS_MOST + 4 * kind->wants.len;
}

static void mark_single_ready(struct sched *sched, uint32_t number, struct host *host,
                              struct has has)
{
    uint64_t generation = state_generation(sched->state);

    for (size_t i = 0; i < host->kind->wants.len; i++) {
        const struct want *want = &host->kind->wants.items[i];
        if (want->cpus > has.cpus)
            break;
        if (may_fit(host, want, has) && want->family->end_by_us != INT64_MAX &&
            is_among(sched, want, number, generation))
            family_mark_ready(sched, want->family, end_by(host, want, has));
    }
    heap_del(&sched->queue->offers, &host->offer_at);
}

static void absorb(struct sched *sched, uint32_t number, unsigned *budget)
{
    struct host *host = &sched->hosts->list.items[number];
    const struct kind *kind = host->kind;

    host->freed = false;
    host->offered = (struct order){ 0, 0 };
    if (!host->usable) {
        heap_del(&sched->queue->offers, &host->offer_at);
        return;
    }
    struct has has = host_has(host);
    for (size_t i = 0; i < kind->wide.len; i++) {
        const struct want *want = &kind->wide.items[i];
        if (want->cpus > has.cpus)
            break;
        if (may_fit(host, want, has) && want->family->end_by_us != INT64_MAX)
            wake(sched, number, host, want, has);
    }
    if (sched->queue->offers.items.len < offers_most(kind))
        find_offer(sched, number, host);
    else
        mark_single_ready(sched, number, host, has);
    budget_take(budget, 1 + (kind->wants.len + kind->wide.len) / HOSTS_PER_COST);
}

void wants_absorb(struct sched *sched, unsigned *budget)
{
    while (sched->hosts->freed.len && *budget)
        absorb(sched, sched->hosts->freed.items[--sched->hosts->freed.len], budget);
}
