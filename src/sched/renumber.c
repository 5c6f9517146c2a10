/* SPDX-License-Identifier: Apache-2.0 */
/*
 * renumber.c - nodes that come, go or have other numbers, while the queue stays as it is
 *
 * A host that was there keeps what is known of it, at its new number: what runs there, what starts
 * there, what reservations keep of it. What it has free, and who could use it, is worked out again in
 * slices, as for nodes that have something else (rebuild.c (4)).
 *
 * (1) Nodes that are no more were freed: their hosts are known by their address, and by nothing else.
 * (2) Nothing refers to a host by its number but what is given up before, starts that are under way and
 *     what is made anew here. Starts on a host that is no more are taken back.
 */
#include <stdlib.h>

#include "sched/plan.h"

enum { GONE = UINT32_MAX };

typedef VEC(uint32_t) number_list;

/* (1): of each host, its number now. */
static uint32_t *new_numbers(const struct sched *sched)
{
    uint32_t *out = NEW_ARRAY(uint32_t, sched->hosts->list.len + 1);
    size_t count = state_node_count(sched->state);
    struct map numbers;
    bool made = false;

    map_init(&numbers);
    for (size_t i = 0, next = 0; i < sched->hosts->list.len; i++, next++) {
        const struct node *node = sched->hosts->list.items[i].node;
        if (next < count && state_node_at(sched->state, next) == node) {
            out[i] = (uint32_t)next;
            continue;
        }
        for (size_t n = 0; n < count && !made; n++)
            map_put_num(&numbers, (uintptr_t)state_node_at(sched->state, n),
                        (void *)(uintptr_t)(n + 1));
        made = true;
        size_t at = (size_t)(uintptr_t)map_get_num(&numbers, (uintptr_t)node);
        out[i] = at ? (uint32_t)at - 1 : GONE;
        next = at ? at - 1 : next - 1;
    }
    map_done(&numbers);
    return out;
}

/* (2) */
static void take_back(struct sched *sched, const uint32_t *numbers, number_list *ids)
{
    for (size_t i = 0; i < sched->hosts->list.len; i++) {
        const struct claim *claim;
        while (numbers[i] == GONE && (claim = sched->hosts->list.items[i].claims)) {
            uint32_t id = claim->job_id;
            struct inflight_list *inflights;
            while ((inflights = inflights_of(sched, id)))
                inflight_end(sched, id, inflights->first->task, NULL);
            vec_push(ids, id);
        }
    }
}

static void host_earliest_clear(struct sched *sched)
{
    for (size_t i = 0; i < sched->queue->offers.items.len; i++)
        *sched->queue->offers.items.items[i].at = 0;
    vec_clear(&sched->queue->offers.items);
}

static void put_host(struct host *to, const struct host *from, uint32_t number)
{
    *to = *from;
    for (struct claim *claim = to->claims; claim; claim = claim->next)
        claim->host = number;
}

/* They stand among each other as they did: in their place, first those that go down, then up. */
static void shift(struct sched *sched, const uint32_t *numbers, size_t before, size_t count)
{
    struct host *hosts = sched->hosts->list.items;
    uint32_t next = (uint32_t)count;

    for (uint32_t i = 0; i < before; i++) {
        if (numbers[i] < i)
            put_host(&hosts[numbers[i]], &hosts[i], numbers[i]);
    }
    for (uint32_t i = (uint32_t)before; i-- > 0;) {
        if (numbers[i] == GONE)
            continue;
        if (numbers[i] > i)
            put_host(&hosts[numbers[i]], &hosts[i], numbers[i]);
        while (--next > numbers[i])
            hosts[next] = (struct host){ 0 };
    }
    while (next-- > 0)
        hosts[next] = (struct host){ 0 };
}

/* Some have changed places. */
static void shuffle(struct sched *sched, const uint32_t *numbers, size_t before, size_t count)
{
    struct host *old = sched->hosts->list.items, *hosts = NEW_ARRAY(struct host, count + 1);

    for (size_t i = 0; i < before; i++) {
        if (numbers[i] != GONE)
            put_host(&hosts[numbers[i]], &old[i], numbers[i]);
    }
    free(old);
    sched->hosts->list.items = hosts;
    sched->hosts->list.cap = count + 1;
}

static void move(struct sched *sched, const uint32_t *numbers)
{
    size_t count = state_node_count(sched->state), before = sched->hosts->list.len;
    uint32_t next = 0;
    bool in_order = true;

    for (size_t i = 0; i < before; i++) {
        if (numbers[i] == GONE) {
            host_free(sched, &sched->hosts->list.items[i]);
            continue;
        }
        in_order = in_order && numbers[i] >= next;
        next = numbers[i] + 1;
    }
    if (in_order) {
        vec_reserve(&sched->hosts->list, count);
        shift(sched, numbers, before, count);
    } else {
        shuffle(sched, numbers, before, count);
    }
    sched->hosts->list.len = count;
    vec_each (struct host, host, &sched->hosts->list) {
        host->usable = host->freed = false; /* so that it looks freed to those that wait */
        host->spare_cell = host->bound_cell = NO_CELL;
    }
}

static void make_summaries(struct sched *sched)
{
    vec_clear(&sched->hosts->summaries);
    vec_clear(&sched->hosts->summary_blocks);
    for (size_t i = 0; i < sched->hosts->list.len; i++)
        vec_push(&sched->hosts->summaries, (struct host_summary){ .kind = UINT32_MAX });
    for (size_t i = 0; i < sched->hosts->list.len; i += SUMMARY_BLOCK)
        vec_push(&sched->hosts->summary_blocks, (struct summary_block){ .stale = true });
}

static void take_new(struct sched *sched)
{
    for (uint32_t i = 0; i < sched->hosts->list.len; i++) {
        struct host *host = &sched->hosts->list.items[i];
        if (host->node)
            continue;
        host->node = state_node_at(sched->state, i);
        host->kind = kind_of(sched, host->node);
        host->kind->hosts++;
        host_read_jobs(sched, i);
    }
}

void hosts_renumber(struct sched *sched)
{
    uint32_t *numbers = new_numbers(sched);
    number_list ids = { 0 };

    searches_done(sched);
    take_back(sched, numbers, &ids);
    host_earliest_clear(sched);
    vec_clear(&sched->hosts->freed);
    move(sched, numbers);
    make_summaries(sched);
    kinds_renumber(sched);
    take_new(sched);
    topo_done(sched);
    topo_read(sched);
    rebuild_reservations(sched);
    vec_each (uint32_t, id, &ids)
        sched_again(sched, *id);
    vec_done(&ids);
    free(numbers);
}
