/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_earliest.c - from when on each host has what a job wants of it
 *
 * Part of earliest_start.c. All hosts are asked, or only those that may have it early enough.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/book/earliest_start.h"

/* From such a part of all hosts on it pays to ask first which may be empty in time; how often. */
enum { SOONEST_PART = 16, SOONEST_TRIES = 3 };

int host_earliest_by_time(const void *a, const void *b)
{
    const struct host_earliest *x = a, *y = b;

    if (x->from_us != y->from_us)
        return x->from_us < y->from_us ? -1 : 1;
    return x->host < y->host ? -1 : x->host > y->host;
}

/* What so many units take of an empty host of the kind. */
static bool amount_for(const struct family *family, const struct need *need,
                       const struct kind *kind, const struct ask *ask, uint32_t units,
                       struct amount *out)
{
    const struct node *node = kind->sample;
    uint64_t gres[TAKE_GRES] = { 0 };
    struct take take;

    *out = (struct amount){ 0 };
    if (!ask->able || ask->most < units)
        return false;
    for (size_t i = 0; i < node->gres_count && i < TAKE_GRES; i++)
        gres[i] = gres_most(&node->gres[i]);
    struct room room = { node->cpus, kind->most_mem_mb, gres, true };
    fit_part(family->shape, need, node, &room, units, &take);
    out->whole = need->whole_nodes || need->mem_all;
    out->cpus = need->share > 1 ? 1 : take.cpus;
    out->mem_mb = out->whole && need->mem_all ? 0 : take.mem_mb;
    memcpy(out->gres, take.gres, sizeof(out->gres));
    return true;
}

void host_earliest_select_nth(struct host_earliest *list, size_t len, size_t nth)
{
    size_t low = 0, high = len;

    while (high - low > 16) {
        struct host_earliest pivot = list[low + (high - low) / 2];
        size_t i = low, k = high - 1;
        while (i <= k) {
            while (host_earliest_by_time(&list[i], &pivot) < 0)
                i++;
            while (host_earliest_by_time(&pivot, &list[k]) < 0)
                k--;
            if (i <= k) {
                struct host_earliest swap = list[i];
                list[i++] = list[k];
                list[k] = swap;
                if (k-- == 0)
                    break;
            }
        }
        if (k != SIZE_MAX && nth <= k)
            high = k + 1;
        else if (nth >= i)
            low = i;
        else
            return;
    }
    qsort(list + low, high - low, sizeof(*list), host_earliest_by_time);
}

void host_earliest_sort_by(struct host_earliest *list, size_t len, int64_t start_us)
{
    size_t count = 0;

    for (size_t i = 0; i < len; i++) {
        if (list[i].from_us <= start_us) {
            struct host_earliest swap = list[count];
            list[count++] = list[i];
            list[i] = swap;
        }
    }
    qsort(list, count, sizeof(*list), host_earliest_by_time);
}

/* The latest of the offers comes first: a heap, while no more than so many are kept. */
static void offer_sift(host_earliest_list *list, size_t at)
{
    struct host_earliest item = list->items[at];

    for (;;) {
        size_t child = at * 2 + 1;
        if (child + 1 < list->len && list->items[child + 1].from_us > list->items[child].from_us)
            child++;
        if (child >= list->len || list->items[child].from_us <= item.from_us)
            break;
        list->items[at] = list->items[child];
        at = child;
    }
    list->items[at] = item;
}

/* Keeps the `most` earliest; what comes at or after the result is of no use. */
static int64_t offer_keep(host_earliest_list *list, struct host_earliest offer, size_t most)
{
    if (list->len < most) {
        vec_push(list, offer);
        for (size_t i = list->len == most ? most / 2 : 0; i-- > 0;)
            offer_sift(list, i);
    } else {
        list->items[0] = offer;
        offer_sift(list, 0);
    }
    return list->len == most ? list->items[0].from_us : INT64_MAX;
}

/* What is asked of each kind of host, worked out once for all of them. */
struct resv_request {
    struct amount amount;
    uint64_t devices;
    bool able;
};

/*
 * Nothing of it now, and nothing that ends there in time. Every host is asked this and most are
 * passed over, so there is nothing in it to be guessed wrong: no branches.
 */
static bool pass_over(const struct host_summary *host_summary, const struct resv_request *wish,
                      int64_t soon_us, int64_t before_us)
{
    unsigned now = (unsigned)(wish->amount.cpus <= host_summary->cpus) &
                   (unsigned)(wish->amount.mem_mb <= host_summary->mem_mb) &
                   (unsigned)(wish->devices <= host_summary->devices);
    unsigned later =
        (unsigned)(host_summary->first_end_us < before_us) & (unsigned)(soon_us < before_us);
    unsigned taken =
        (unsigned)wish->amount.whole & (unsigned)(host_summary->last_end_us >= before_us);

    return (!(now | later)) | taken;
}

/* What every kind of host is asked for at least. */
static struct resv_request least_of(const struct resv_request *wishes, size_t count)
{
    struct resv_request least = { 0 };

    for (size_t k = 0; k < count; k++) {
        const struct resv_request *wish = &wishes[k];
        if (!wish->able)
            continue;
        if (!least.able)
            least = *wish;
        least.amount.whole = least.amount.whole && wish->amount.whole;
        least.amount.cpus = MIN(least.amount.cpus, wish->amount.cpus);
        least.amount.mem_mb = MIN(least.amount.mem_mb, wish->amount.mem_mb);
        least.devices = MIN(least.devices, wish->devices);
    }
    return least;
}

/* host_earliest(), if it was not asked before; when the search is paused INT64_MAX. */
static int64_t ask_host(const struct question *q, uint32_t number, const struct amount *amount,
                        int64_t before_us)
{
    const struct host *host = &q->sched->hosts->list.items[number];
    struct search *search = q->view.search;

    if (!search)
        return host_earliest(q->sched, host, amount, &q->view, q->length_us, before_us);
    struct said *said = search->keeps ? &search->said.items[number] : NULL;
    if (said && said->turn == search->said_turn &&
        (said->from_us != INT64_MAX || said->before_us >= before_us))
        return said->from_us < before_us ? said->from_us : INT64_MAX;
    if (!search_may(search, host_effort(host)))
        return INT64_MAX;
    q->sched->looked++;
    int64_t from = host_earliest(q->sched, host, amount, &q->view, q->length_us, before_us);
    if (said)
        *said = (struct said){ from, before_us, search->said_turn };
    return from;
}

/* Fills the offers of hosts: the `most` that have it first, before that time. */
static void gather(const struct question *q, uint32_t tasks, size_t most, int64_t before,
                   host_earliest_list *out)
{
    struct sched *sched = q->sched;
    const struct need *need = &shape_needs(sched->state, q->family->shape)[q->partition];
    const struct ask *asks = &q->family->asks[q->partition * q->family->kinds];
    struct resv_request *wishes = NEW_ARRAY(struct resv_request, sched->hosts->kinds.len + 1);
    int64_t soon = q->view.now_us + US_PER_S;

    hosts_summarise(sched);
    for (size_t k = 0; k < sched->hosts->kinds.len; k++) {
        const struct kind *kind = sched->hosts->kinds.items[k];
        wishes[k].able = amount_for(q->family, need, kind, &asks[k], tasks, &wishes[k].amount);
        wishes[k].devices = kind_devices(kind, wishes[k].amount.gres);
    }
    struct resv_request least = least_of(wishes, sched->hosts->kinds.len);
    for (size_t first = 0; least.able && first < need->nodes.bits && !search_paused(q->view.search);
         first += SUMMARY_BLOCK) {
        uint64_t bits = need->nodes.words[first / 64] >> first % 64 & ((1U << SUMMARY_BLOCK) - 1);
        if (!bits || pass_over(hosts_summary_block(sched, first), &least, soon, before))
            continue;
        for (; bits; bits &= bits - 1) {
            uint32_t number = (uint32_t)first + (uint32_t)__builtin_ctzll(bits);
            const struct host_summary *host_summary = &sched->hosts->summaries.items[number];
            if (host_summary->kind == UINT32_MAX || !wishes[host_summary->kind].able ||
                pass_over(host_summary, &wishes[host_summary->kind], soon, before))
                continue;
            struct host_earliest offer = { .host = number };
            sched->looked += !q->view.search;
            offer.from_us = ask_host(q, number, &wishes[host_summary->kind].amount, before);
            if (offer.from_us >= before)
                continue;
            int64_t last = offer_keep(out, offer, most);
            before = MIN(before, last);
        }
    }
    q->at->passes++;
    free(wishes);
}

/* When each of the hosts is empty at the earliest. */
static void gather_ends(const struct question *q, uint32_t tasks, host_earliest_list *out)
{
    struct sched *sched = q->sched;
    const struct need *need = &shape_needs(sched->state, q->family->shape)[q->partition];
    const struct ask *asks = &q->family->asks[q->partition * q->family->kinds];
    int64_t from = MAX(q->view.start_us, q->view.now_us);

    hosts_summarise(sched);
    for (size_t word = 0; word * 64 < need->nodes.bits; word++) {
        for (uint64_t bits = need->nodes.words[word]; bits; bits &= bits - 1) {
            uint32_t number = (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(bits);
            const struct host_summary *host_summary = &sched->hosts->summaries.items[number];
            if (host_summary->kind == UINT32_MAX || !asks[host_summary->kind].able ||
                asks[host_summary->kind].most < tasks)
                continue;
            vec_push(out, ((struct host_earliest){ MAX(host_summary->last_end_us, from), number }));
        }
    }
    q->at->passes++;
}

static size_t count_by(const host_earliest_list *list, int64_t start_us)
{
    size_t count = 0;

    for (size_t i = 0; i < list->len; i++)
        count += list->items[i].from_us <= start_us;
    return count;
}

/* Leaves those that have it by then. */
static void keep_by(host_earliest_list *list, int64_t start_us)
{
    size_t count = 0;

    for (size_t i = 0; i < list->len; i++) {
        if (list->items[i].from_us <= start_us)
            list->items[count++] = list->items[i];
    }
    list->len = count;
}

/*
 * Many whole hosts: only those are asked that may be empty early enough. Fills the offers of all that have
 * it when enough do, and by then; false: that is not known.
 */
static bool gather_soonest(const struct question *q, uint32_t tasks, host_earliest_list *out)
{
    size_t wanted = q->family->shape->min_nodes, look = wanted;
    host_earliest_list ends = { 0 };
    bool enough = false;

    gather_ends(q, tasks, &ends);
    for (unsigned tries = 0; !enough && tries < SOONEST_TRIES && look <= ends.len; tries++) {
        host_earliest_select_nth(ends.items, ends.len, look - 1);
        int64_t by = ends.items[look - 1].from_us;
        if (by == INT64_MAX)
            break;
        vec_clear(out);
        gather(q, tasks, SIZE_MAX, by + 1, out);
        enough = out->len >= wanted;
        if (!enough) /* some are booked: as many more, and some */
            look = count_by(&ends, by) + (wanted - out->len) * 5 / 4 + 16;
    }
    vec_done(&ends);
    if (enough) {
        host_earliest_select_nth(out->items, out->len, wanted - 1);
        keep_by(out, out->items[wanted - 1].from_us);
    }
    return enough;
}

void host_earliest_gather(const struct question *q, uint32_t tasks, bool few)
{
    const struct shape *shape = q->family->shape;
    const struct need *need = &shape_needs(q->sched->state, q->family->shape)[q->partition];
    host_earliest_list *offers = &q->at->earliest;

    if (q->at->gathered && (!q->view.search || q->at->changes == q->view.search->changes))
        return;
    q->at->gathered = q->at->counted = false;
    q->at->passes = 0;
    bool soonest = few && shape->min_nodes > 1 &&
                   shape->min_nodes >= need->node_count / SOONEST_PART && need->whole_nodes &&
                   gather_soonest(q, tasks, offers);
    if (!soonest) {
        vec_clear(offers);
        gather(q, tasks, few ? shape->min_nodes : SIZE_MAX, INT64_MAX, offers);
    }
    if (!soonest && few && shape->min_nodes > 1 && offers->len == shape->min_nodes) {
        /* When enough have it is known; now all that do by then, for a choice. */
        int64_t then = offers->items[0].from_us;
        vec_clear(offers);
        gather(q, tasks, SIZE_MAX, then + 1, offers);
    }
    q->at->changes = q->view.search ? q->view.search->changes : 0;
    q->at->gathered = !search_paused(q->view.search);
    if (!q->at->gathered)
        return;
    uint64_t passed = (uint64_t)q->at->passes * (need->node_count / 4);
    q->sched->looked += passed;
    if (q->view.search)
        q->view.search->asked += passed;
}
