/* SPDX-License-Identifier: Apache-2.0 */
/*
 * book_keep.c - what was promised is kept free
 *
 * A block on each of its hosts. On very many hosts they are made over several slices: nothing behind the job is
 * planned until they are, and what comes before it meanwhile may take it away again.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/book/book.h"

/* Hosts that are blocked in one slice. */
enum { KEEP_MOST = 1024 };

/* ---- when blocks begin ---- */

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

/* The place of the first start that is not before the moment. */
static size_t start_place(const struct sched *sched, int64_t when_us)
{
    size_t low = 0, high = sched->book->block_starts.len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sched->book->block_starts.items[middle] < when_us)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void start_bound(struct sched *sched)
{
    size_t count = sched->book->block_starts.len;

    sched->hosts->last_block_us = count ? sched->book->block_starts.items[count - 1] : INT64_MIN;
}

void book_blocks(struct sched *sched)
{
    vec_clear(&sched->book->block_starts);
    vec_each (struct booking, booking, &sched->book->list) {
        if (booking->start_us > sched->now_us)
            vec_push(&sched->book->block_starts, booking->start_us);
    }
    for (size_t i = 0; i < state_reservation_count(sched->state); i++) {
        int64_t start = state_reservation_at(sched->state, i)->spec->start_us;
        if (start > sched->now_us)
            vec_push(&sched->book->block_starts, start);
    }
    if (sched->book->block_starts.len)
        qsort(sched->book->block_starts.items, sched->book->block_starts.len, sizeof(int64_t),
              by_value);
    start_bound(sched);
}

static void start_add(struct sched *sched, int64_t start_us)
{
    size_t at = start_place(sched, start_us);

    if (start_us <= sched->now_us)
        return;
    vec_push(&sched->book->block_starts, start_us);
    for (size_t i = sched->book->block_starts.len - 1; i > at; i--)
        sched->book->block_starts.items[i] = sched->book->block_starts.items[i - 1];
    sched->book->block_starts.items[at] = start_us;
    start_bound(sched);
}

static void start_del(struct sched *sched, int64_t start_us)
{
    size_t at = start_place(sched, start_us);

    if (at < sched->book->block_starts.len && sched->book->block_starts.items[at] == start_us)
        vec_remove(&sched->book->block_starts, at);
    start_bound(sched);
}

int64_t book_start_before(const struct sched *sched, int64_t when_us)
{
    size_t at = start_place(sched, when_us);

    return at ? sched->book->block_starts.items[at - 1] : INT64_MIN;
}

/* ---- blocks ---- */

static bool is_blocked_for(const struct host *host, uint32_t job_id)
{
    for (size_t i = 0; i < host->blocks.len; i++) {
        if (host->blocks.items[i].job_id == job_id)
            return true;
    }
    return false;
}

/* The other hosts of the leaf switch of that one; NULL: it has none. */
static const struct bitset *leaf_hosts(const struct sched *sched, uint32_t host)
{
    const struct topo *topo = &sched->hosts->topo;
    uint32_t leaf = topo->leaf_of ? topo->leaf_of[host] : UINT32_MAX;

    return leaf == UINT32_MAX ? NULL : &topo->switches[leaf].hosts;
}

/* --exclusive=topo */
static void unblock_leaf(struct sched *sched, const struct booking *booking, uint32_t host)
{
    const struct bitset *hosts = booking->leaves ? leaf_hosts(sched, host) : NULL;

    if (!hosts)
        return;
    bitset_each (other, hosts) {
        if (is_blocked_for(&sched->hosts->list.items[other], booking->job_id))
            host_block_del(sched, (uint32_t)other, booking->job_id);
    }
}

void book_unkeep(struct sched *sched, const struct booking *booking)
{
    for (uint32_t k = 0; k < booking->count; k++) {
        const struct parts *parts = &booking->of[k].parts;
        for (size_t i = 0; i < parts->list.len; i++) {
            host_block_del(sched, parts->list.items[i].host, booking->job_id);
            unblock_leaf(sched, booking, parts->list.items[i].host);
        }
    }
    start_del(sched, booking->start_us);
    if (sched->book->keeping.job_id == booking->job_id)
        sched->book->keeping.job_id = 0;
}

/* Nobody but the job is there then, as far as is known. */
static bool is_empty_then(const struct host *host, const struct booking *booking, int64_t end_us)
{
    int64_t start_us = booking->start_us;

    for (size_t i = 0; i < host->running.len; i++) {
        if (host->running.items[i].end_us > start_us)
            return false;
    }
    for (const struct claim *claim = host->claims; claim; claim = claim->next) {
        if (claim->end_us > start_us)
            return false;
    }
    for (size_t i = 0; i < host->blocks.len; i++) {
        const struct block *other = &host->blocks.items[i];
        if (other->start_us < end_us && other->end_us > start_us)
            return false;
    }
    return true;
}

/* Beside some others it would not start: where it is alone nobody else is to come. */
static bool exclusive_of_others(const struct sched *sched, const struct booking *booking,
                                const struct booked *of)
{
    const struct job *job = state_job(sched->state, booking->job_id + (uint32_t)(of - booking->of));

    return job->shape->exclusive_user || job->shape->exclusive_mcs || job->shape->exclusive_topo ||
           of->parts.need->partition->spec->exclusive_user;
}

/* Nobody comes to its leaf switch either. Where it is on two hosts of one, each is blocked for itself too. */
static void block_leaf(struct sched *sched, const struct booking *booking, struct block block,
                       uint32_t host)
{
    const struct bitset *hosts = booking->leaves ? leaf_hosts(sched, host) : NULL;
    const struct take none = { 0 };

    if (!hosts)
        return;
    bitset_each (other, hosts) {
        if (is_blocked_for(&sched->hosts->list.items[other], booking->job_id))
            continue;
        block.amount = amount_take(sched, &none, true);
        host_block_add(sched, (uint32_t)other, block);
    }
}

static void block(struct sched *sched, const struct booking *booking, const struct booked *of,
                  size_t part)
{
    const struct chosen *chosen = &of->parts.list.items[part];
    const struct host *host = &sched->hosts->list.items[chosen->host];
    struct block block = { .start_us = booking->start_us, .job_id = booking->job_id };
    bool whole = of->parts.need->whole_nodes || (exclusive_of_others(sched, booking, of) &&
                                                 is_empty_then(host, booking, of->end_us));

    block.order = booking->order;
    block.end_us = of->end_us;
    block.resv = resv_hash(of->parts.resv ? of->parts.resv->spec->name : NULL);
    block.amount = amount_take(sched, &chosen->take, whole);
    host_block_add(sched, chosen->host, block);
    block_leaf(sched, booking, block, chosen->host);
}

static void keep_licences(struct sched *sched, const struct booking *booking)
{
    for (uint32_t i = 0; i < booking->count; i++) {
        const struct job *job = state_job(sched->state, booking->job_id + i);
        booking->of[i].licences =
            licences_book(sched, booking->order, job->shape, &booking->of[i].parts,
                          booking->start_us, booking->of[i].end_us);
    }
}

/* The next host; false: it has no room any more. */
static bool keep_next(struct sched *sched, const struct booking *booking, struct keeping *at)
{
    const struct booked *of = &booking->of[at->component];
    uint32_t host = of->parts.list.items[at->part].host;

    block(sched, booking, of, at->part++);
    if (at->slices && !book_host_keeps(sched, &sched->hosts->list.items[host], booking->job_id,
                                       booking->start_us))
        return false;
    if (book_is_behind(sched, booking->order)) /* book.c (1) */
        book_yield_at(sched, booking->order, host);
    return true;
}

static size_t keep_most(const struct sched *sched)
{
    return sched->book->search_looks ? sched->book->search_looks : KEEP_MOST;
}

bool book_keep_continue(struct sched *sched)
{
    struct keeping *at = &sched->book->keeping;
    struct booking booking = *booking_find(sched, at->job_id);
    size_t left = keep_most(sched);

    for (; at->component < booking.count; at->component++, at->part = 0) {
        for (; at->part < booking.of[at->component].parts.list.len; left--) {
            if (!left) {
                at->slices++;
                return false;
            }
            if (!keep_next(sched, &booking, at)) {
                book_drop(sched, booking.job_id);
                return true;
            }
        }
    }
    for (uint32_t i = 0; i < booking.count; i++)
        book_yield_licences(sched, booking.order,
                            state_job(sched->state, booking.job_id + i)->shape);
    at->job_id = 0;
    booking_find(sched, booking.job_id)->kept = true;
    if (booking.releases != sched->releases) /* something was released while it was made */
        sched->book->review_soon = true;
    return true;
}

bool book_keep(struct sched *sched, uint32_t job_id)
{
    struct booking *booking = booking_find(sched, job_id);

    while (sched->book->keeping.job_id) /* of another one, on hosts that are not known here */
        book_keep_continue(sched);
    booking = booking_find(sched, job_id);
    booking->kept = booking->leaves = false;
    for (uint32_t i = 0; i < booking->count; i++) {
        const struct job *job = state_job(sched->state, job_id + i);
        booking->leaves = booking->leaves || job->shape->exclusive_topo;
    }
    keep_licences(sched, booking);
    start_add(sched, booking->start_us);
    sched->book->keeping = (struct keeping){ .job_id = job_id, .order = booking->order };
    size_t parts = 0;
    for (uint32_t i = 0; i < booking->count; i++)
        parts += booking->of[i].parts.list.len;
    if (parts > keep_most(sched)) { /* it took long enough to find them */
        sched->book->keeping.slices = 1;
        return false;
    }
    return book_keep_continue(sched);
}
