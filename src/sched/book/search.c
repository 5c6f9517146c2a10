/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.c - a start that is worked out over several slices
 */
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "sched/book/book.h"

/* Jobs of so many nodes keep answers at once. */
enum { WIDE_NODES = 256 };

static void restart(struct sched *sched, struct search *search)
{
    earliest_start_at_done(&search->earliest);
    het_at_done(sched, &search->het);
    search->earliest = (struct earliest_start_at){ 0 };
    search->het = (struct het_at){ 0 };
}

void search_end(struct sched *sched, struct search *search)
{
    restart(sched, search);
    search->job_id = 0;
    search->paused = false;
}

void search_forget(struct sched *sched, uint32_t job_id)
{
    for (unsigned i = 0; i < SEARCHES; i++) {
        if (sched->book->searches[i].job_id == job_id)
            search_end(sched, &sched->book->searches[i]);
    }
}

void searches_done(struct sched *sched)
{
    for (unsigned i = 0; i < SEARCHES; i++) {
        struct search *search = &sched->book->searches[i];
        search_end(sched, search);
        vec_done(&search->said);
        vec_done(&search->seen);
        bitset_done(&search->touched);
        *search = (struct search){ 0 };
    }
    vec_done(&sched->book->touches);
}

/* As many answers as there are hosts; none is known. */
static void make_room(const struct sched *sched, struct search *search)
{
    size_t hosts = sched->hosts->list.len;

    if (search->said.len == hosts && search->touched.bits == hosts)
        return;
    vec_clear(&search->said);
    vec_clear(&search->seen);
    vec_reserve(&search->said, hosts);
    vec_reserve(&search->seen, hosts);
    if (hosts) {
        memset(search->said.items, 0, hosts * sizeof(*search->said.items));
        memset(search->seen.items, 0, hosts * sizeof(*search->seen.items));
    }
    search->said.len = search->seen.len = hosts;
    search->said_turn = search->seen_turn = 1;
    bitset_done(&search->touched);
    bitset_init(&search->touched, hosts);
}

static bool is_the_same(const struct sched *sched, const struct search *search, uint32_t job_id,
                        struct order order)
{
    return search->job_id == job_id && search->order.rank == order.rank &&
           search->generation == state_generation(sched->state) &&
           (!search->keeps || search->said.len == sched->hosts->list.len);
}

struct search *search_begin(struct sched *sched, unsigned which, const struct job *job,
                            struct order order, uint64_t effort)
{
    struct search *search = &sched->book->searches[which];

    MUST(which < SEARCHES);
    if (!is_the_same(sched, search, job->id, order)) {
        bool again = search->job_id == job->id;
        search_end(sched, search);
        if (!again)
            search->urgency = search->lost = 0;
        search->job_id = job->id;
        search->order = order;
        search->now_us = sched->now_us;
        search->releases = sched->releases;
        search->generation = state_generation(sched->state);
        search->cost = search->asked = 0;
        search->keeps = job->shape->min_nodes >= WIDE_NODES || which == SEARCH_FORECAST;
        if (search->keeps)
            make_room(sched, search);
    } else if (!search->keeps) {
        search->keeps = true;
        make_room(sched, search);
        bitset_fill(&search->touched); /* it is not known what changed until now */
        search_asks(search);
    }
    if (search->lost > 2 * sched->hosts->list.len + 16) { /* (4) */
        search->urgency += search->urgency < 40;
        search->lost = 0;
    }
    if (sched->book->search_looks)
        effort = sched->book->search_looks;
    search->worked = search->paused = false;
    search->left = (int64_t)(MIN(effort, (uint64_t)UINT32_MAX) << MIN(search->urgency, 30));
    return search;
}

void search_lost(const struct sched *sched, struct search *search)
{
    if (search)
        search->lost += sched->hosts->list.len + 1;
}

void search_hold(struct sched *sched)
{
    for (unsigned i = 0; i < SEARCHES; i++)
        sched->book->touches_held = sched->book->touches_held || sched->book->searches[i].job_id;
}

void search_unhold(struct sched *sched, bool happened)
{
    sched->book->touches_held = false;
    for (size_t i = 0; happened && i < sched->book->touches.len; i++)
        search_touch(sched, sched->book->touches.items[i]);
    vec_clear(&sched->book->touches);
}

void search_touch(struct sched *sched, uint32_t number)
{
    sched->hosts->changes++;
    if (sched->book->touches_held) {
        vec_push(&sched->book->touches, number);
        return;
    }
    for (unsigned i = 0; i < SEARCHES; i++) {
        struct search *search = &sched->book->searches[i];
        if (!search->job_id)
            continue;
        search->changes++;
        if (number >= search->said.len)
            continue;
        struct said *said = &search->said.items[number];
        struct seen_room *seen = &search->seen.items[number];
        search->lost += said->turn == search->said_turn || seen->turn == search->seen_turn;
        said->turn = seen->turn = 0;
        bitset_add(&search->touched, number);
    }
}

void search_asks(struct search *search)
{
    if (!search || !search->keeps)
        return;
    search->said_turn++;
    search->seen_turn++;
}

void search_sees(struct search *search, int64_t start_us)
{
    if (!search || !search->keeps || search->seen_us == start_us)
        return;
    search->seen_us = start_us;
    search->seen_turn++;
}

/* ---- moments ---- */

/* The nth smallest comes to its place among those from low to high. */
static void select_value(int64_t *list, size_t low, size_t high, size_t nth)
{
    while (high - low > 1) {
        int64_t pivot = list[low + (high - low) / 2];
        size_t i = low, k = high - 1;
        while (i <= k) {
            while (list[i] < pivot)
                i++;
            while (pivot < list[k])
                k--;
            if (i <= k) {
                int64_t swap = list[i];
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
}

void halving_begin(struct halving *halving)
{
    halving->low = 0;
    halving->high = halving->list.len;
    halving->middle = SIZE_MAX;
    halving->best_us = INT64_MAX;
    halving->gathered = true;
}

bool halving_next(struct halving *halving, int64_t *when_us)
{
    if (halving->middle == SIZE_MAX) {
        if (halving->low >= halving->high)
            return false;
        /* The last one first: then there is all that there will ever be. */
        halving->middle = halving->best_us == INT64_MAX
                              ? halving->high - 1
                              : halving->low + (halving->high - halving->low) / 2;
        select_value(halving->list.items, halving->low, halving->high, halving->middle);
    }
    *when_us = halving->list.items[halving->middle];
    return true;
}

void halving_said(struct halving *halving, bool good)
{
    if (good) {
        halving->best_us = halving->list.items[halving->middle];
        halving->high = halving->middle;
    } else if (halving->best_us == INT64_MAX) {
        halving->low = halving->high; /* never */
    } else {
        halving->low = halving->middle + 1;
    }
    halving->middle = SIZE_MAX;
}

void halving_done(struct halving *halving)
{
    vec_done(&halving->list);
    *halving = (struct halving){ 0 };
}
