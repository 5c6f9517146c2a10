/* SPDX-License-Identifier: Apache-2.0 */
/*
 * position.c - a job of several partitions has a place for each tier and priority
 *
 * In a partition of a lower tier, or where its priority is less, it must not go before those who are first there. So
 * it is in several families at once, each with the partitions of one rank: where it stands first (pending->class), and
 * its positions behind that.
 *
 * (1) Echoes are in the queues of their classes when, and only when, the job is in its own.
 * (2) It is booked once: of its places that are among the first, for the one that lets it start first. Another one
 *     is compared with that when so much was released since that it may be worth it.
 * (3) Waiting for a limit, or in the line of its owner, it has one place only.
 * (4) A heterogeneous job has one place. Each component could be at the best of its places; the job is where the
 *     last of them would be: it does not overtake in one partition because of what it is in another.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/queue/queue.h"

static uint64_t rank_in(const struct sched *sched, const struct job *job,
                        const struct partition *partition, bool own)
{
    unsigned tier = MIN(partition_tier(partition), (unsigned)UINT16_MAX);

    return (uint64_t)(UINT16_MAX - tier) << 48 | predict_place(sched, job, partition, own);
}

/* There are too many: the last two become one, behind all that either was behind. */
static unsigned join_last(struct queue_place *list, unsigned count)
{
    struct queue_place *one = &list[count - 2], *last = &list[count - 1];

    for (size_t i = 0; i < sizeof(one->mask.bits) / sizeof(one->mask.bits[0]); i++)
        one->mask.bits[i] |= last->mask.bits[i];
    one->rank = last->rank;
    return count - 1;
}

/* Into the list by rank; there is room for one more than there may be. */
static unsigned add_place(struct queue_place *list, unsigned count, uint64_t rank, size_t partition)
{
    unsigned at = 0;

    while (at < count && list[at].rank < rank)
        at++;
    if (at == count || list[at].rank != rank) {
        memmove(&list[at + 1], &list[at], (count - at) * sizeof(*list));
        list[at] = (struct queue_place){ .rank = rank };
        count++;
    }
    list[at].mask.bits[partition / 64] |= UINT64_C(1) << (partition % 64);
    return count;
}

/* The best of those that a component would have. */
static uint64_t best_rank(const struct sched *sched, const struct job *job, const struct mask *mask,
                          bool own)
{
    const struct need *needs = shape_needs(sched->state, job->shape);
    uint64_t best = UINT64_MAX;

    for (size_t i = 0; i < job->shape->partition_count; i++) {
        if (mask_has(mask, i))
            best = MIN(best, rank_in(sched, job, needs[i].partition, own));
    }
    return best;
}

/* (4) */
static unsigned het_place(const struct sched *sched, const struct job *first,
                          const struct mask *mask, bool own, struct queue_place *out)
{
    out[0] = (struct queue_place){ best_rank(sched, first, mask, own), *mask };
    for (uint32_t i = 1; i < het_count(first); i++) {
        const struct job *job = state_job(sched->state, first->id + i);
        struct mask where;
        if (job && job_mask(sched, job, &where))
            out[0].rank = MAX(out[0].rank, best_rank(sched, job, &where, own));
    }
    return 1;
}

unsigned positions_of_job(const struct sched *sched, const struct job *job, bool own,
                          struct queue_place *out)
{
    const struct need *needs = shape_needs(sched->state, job->shape);
    struct mask mask;
    unsigned count = 0;

    if (!job_mask(sched, job, &mask))
        return 0;
    if (het_count(job) > 1)
        return het_place(sched, job, &mask, own, out);
    for (size_t i = 0; i < job->shape->partition_count; i++) {
        if (!mask_has(&mask, i))
            continue;
        count = add_place(out, count, rank_in(sched, job, needs[i].partition, own), i);
        if (count == POSITIONS_MOST)
            count = join_last(out, count);
    }
    return count;
}

const struct position *position_at(const struct sched *sched, const struct pending *pending,
                                   uint32_t job_id, unsigned i)
{
    const struct position *list =
        i < pending->positions ? map_get_num(&sched->queue->positions, job_id) : NULL;

    return list ? &list[i] : NULL;
}

void positions_put(struct sched *sched, struct pending *pending, uint32_t job_id,
                   const struct position *list, unsigned count)
{
    struct position *copy =
        NEW_ARRAY(struct position, count + 1); /* the last: when its own was compared */

    memcpy(copy, list, count * sizeof(*copy));
    map_put_num(&sched->queue->positions, job_id, copy);
    pending->positions = (uint8_t)count;
}

void positions_rank(struct sched *sched, const struct pending *pending, const struct job *job)
{
    struct position *list =
        pending->positions ? map_get_num(&sched->queue->positions, job->id) : NULL;
    struct queue_place places[POSITIONS_MOST];

    if (!list || positions_of_job(sched, job, false, places) != pending->positions + 1U)
        return; /* it is put elsewhere soon */
    for (unsigned i = 0; i < pending->positions; i++)
        list[i].rank = places[i + 1].rank;
}

void positions_del(struct sched *sched, struct pending *pending, uint32_t job_id)
{
    if (pending->positions)
        free(map_del_num(&sched->queue->positions, job_id));
    pending->positions = 0;
}

struct class *position_class(const struct sched *sched, const struct pending *pending,
                             struct order order)
{
    const struct position *position;

    if (pending->rank == order.rank)
        return class_of(sched, pending);
    for (unsigned i = 0; (position = position_at(sched, pending, order.id, i)); i++) {
        if (position->rank == order.rank)
            return sched->queue->classes.items[position->class - 1];
    }
    return NULL;
}

struct order position_in_partition(const struct sched *sched, const struct pending *pending,
                                   uint32_t job_id, uint32_t partition_queue)
{
    const struct position *position;

    for (unsigned i = 0; (position = position_at(sched, pending, job_id, i)); i++) {
        const struct family *family = sched->queue->classes.items[position->class - 1]->family;
        for (uint32_t k = 0; k < family->partition_queue_count; k++) {
            if (family->partition_queues[k] == partition_queue)
                return (struct order){ position->rank, job_id };
        }
    }
    return (struct order){ pending->rank, job_id };
}

struct order position_booked(const struct sched *sched, const struct pending *pending,
                             uint32_t job_id)
{
    if (!pending->booked)
        return ORDER_LAST;
    const struct position *position =
        pending->booked > 1 ? position_at(sched, pending, job_id, (unsigned)pending->booked - 2)
                            : NULL;

    return (struct order){ position ? position->rank : pending->rank, job_id };
}

void positions_booked(struct sched *sched, const struct pending *pending, uint32_t job_id, int by)
{
    const struct position *position;

    class_of(sched, pending)->family->booked += (uint32_t)by;
    for (unsigned i = 0; (position = position_at(sched, pending, job_id, i)); i++)
        sched->queue->classes.items[position->class - 1]->family->booked += (uint32_t)by;
}

uint8_t position_number(const struct sched *sched, const struct pending *pending,
                        struct order order)
{
    const struct position *position;

    for (unsigned i = 0; (position = position_at(sched, pending, order.id, i)); i++) {
        if (position->rank == order.rank)
            return (uint8_t)(i + 2);
    }
    return 1;
}

void positions_need_booking(struct sched *sched, const struct pending *pending, uint32_t job_id)
{
    const struct position *position;

    for (unsigned i = 0; (position = position_at(sched, pending, job_id, i)); i++)
        family_needs_booking(sched, sched->queue->classes.items[position->class - 1]->family,
                             (struct order){ position->rank, job_id });
}

static struct position *record_of(const struct sched *sched, const struct pending *pending,
                                  struct order order)
{
    struct position *list = map_get_num(&sched->queue->positions, order.id);
    unsigned at = 0;

    while (at < pending->positions && list[at].rank != order.rank)
        at++;
    return &list[at];
}

bool position_is_due(const struct sched *sched, const struct pending *pending, struct order order)
{
    const struct position *position = record_of(sched, pending, order);

    return !position->compared ||
           (sched->releases + 1 - position->compared) * COST_PER_RELEASE > position->cost;
}

void position_compared(struct sched *sched, const struct pending *pending, struct order order,
                       uint64_t cost)
{
    struct position *position = record_of(sched, pending, order);

    position->compared = sched->releases + 1;
    position->cost = cost;
}

void positions_done(struct sched *sched)
{
    map_each (entry, &sched->queue->positions)
        free(entry->value);
    map_done(&sched->queue->positions);
}
