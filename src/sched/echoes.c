/* SPDX-License-Identifier: Apache-2.0 */
/*
 * echoes.c - a job of several partitions has a place for each tier and priority
 *
 * In a partition of a lower tier, or where its priority is less, it must not go before those who are first there. So
 * it is in several families at once, each with the partitions of one rank: where it stands first (pend->class), and
 * its echoes behind that.
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

#include "sched/sched_priv.h"

static uint64_t rank_in(const struct sched *sched, const struct job *job,
                        const struct partition *partition, bool own)
{
    unsigned tier = MIN(partition_tier(partition), (unsigned)UINT16_MAX);

    return (uint64_t)(UINT16_MAX - tier) << 48 | predict_place(sched, job, partition, own);
}

/* There are too many: the last two become one, behind all that either was behind. */
static unsigned join_last(struct place_in_line *list, unsigned count)
{
    struct place_in_line *one = &list[count - 2], *last = &list[count - 1];

    for (size_t i = 0; i < sizeof(one->mask.bits) / sizeof(one->mask.bits[0]); i++)
        one->mask.bits[i] |= last->mask.bits[i];
    one->rank = last->rank;
    return count - 1;
}

/* Into the list by rank; there is room for one more than there may be. */
static unsigned add_place(struct place_in_line *list, unsigned count, uint64_t rank,
                          size_t partition)
{
    unsigned at = 0;

    while (at < count && list[at].rank < rank)
        at++;
    if (at == count || list[at].rank != rank) {
        memmove(&list[at + 1], &list[at], (count - at) * sizeof(*list));
        list[at] = (struct place_in_line){ .rank = rank };
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
                          const struct mask *mask, bool own, struct place_in_line *out)
{
    out[0] = (struct place_in_line){ best_rank(sched, first, mask, own), *mask };
    for (uint32_t i = 1; i < het_count(first); i++) {
        const struct job *job = state_job(sched->state, first->id + i);
        struct mask where;
        if (job && job_mask(sched, job, &where))
            out[0].rank = MAX(out[0].rank, best_rank(sched, job, &where, own));
    }
    return 1;
}

unsigned echo_places(const struct sched *sched, const struct job *job, bool own,
                     struct place_in_line *out)
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
        if (count == PLACES_MOST)
            count = join_last(out, count);
    }
    return count;
}

const struct echo *echo_at(const struct sched *sched, const struct pend *pend, uint32_t job_id,
                           unsigned i)
{
    const struct echo *list = i < pend->echoes ? map_get_num(&sched->echoes, job_id) : NULL;

    return list ? &list[i] : NULL;
}

void echoes_put(struct sched *sched, struct pend *pend, uint32_t job_id, const struct echo *list,
                unsigned count)
{
    struct echo *copy = NEW_ARRAY(struct echo, count + 1); /* the last: when its own was compared */

    memcpy(copy, list, count * sizeof(*copy));
    map_put_num(&sched->echoes, job_id, copy);
    pend->echoes = (uint8_t)count;
}

void echoes_rank(struct sched *sched, const struct pend *pend, const struct job *job)
{
    struct echo *list = pend->echoes ? map_get_num(&sched->echoes, job->id) : NULL;
    struct place_in_line places[PLACES_MOST];

    if (!list || echo_places(sched, job, false, places) != pend->echoes + 1U)
        return; /* it is put elsewhere soon */
    for (unsigned i = 0; i < pend->echoes; i++)
        list[i].rank = places[i + 1].rank;
}

void echoes_del(struct sched *sched, struct pend *pend, uint32_t job_id)
{
    if (pend->echoes)
        free(map_del_num(&sched->echoes, job_id));
    pend->echoes = 0;
}

struct class *echo_class(const struct sched *sched, const struct pend *pend, struct order order)
{
    const struct echo *echo;

    if (pend->rank == order.rank)
        return class_of(sched, pend);
    for (unsigned i = 0; (echo = echo_at(sched, pend, order.id, i)); i++) {
        if (echo->rank == order.rank)
            return sched->classes.items[echo->class - 1];
    }
    return NULL;
}

struct order echo_in_lane(const struct sched *sched, const struct pend *pend, uint32_t job_id,
                          uint32_t lane)
{
    const struct echo *echo;

    for (unsigned i = 0; (echo = echo_at(sched, pend, job_id, i)); i++) {
        const struct family *family = sched->classes.items[echo->class - 1]->family;
        for (uint32_t k = 0; k < family->lane_count; k++) {
            if (family->lanes[k] == lane)
                return (struct order){ echo->rank, job_id };
        }
    }
    return (struct order){ pend->rank, job_id };
}

struct order echo_booked(const struct sched *sched, const struct pend *pend, uint32_t job_id)
{
    if (!pend->booked)
        return ORDER_LAST;
    const struct echo *echo =
        pend->booked > 1 ? echo_at(sched, pend, job_id, (unsigned)pend->booked - 2) : NULL;

    return (struct order){ echo ? echo->rank : pend->rank, job_id };
}

void echoes_booked(struct sched *sched, const struct pend *pend, uint32_t job_id, int by)
{
    const struct echo *echo;

    class_of(sched, pend)->family->booked += (uint32_t)by;
    for (unsigned i = 0; (echo = echo_at(sched, pend, job_id, i)); i++)
        sched->classes.items[echo->class - 1]->family->booked += (uint32_t)by;
}

uint8_t echo_number(const struct sched *sched, const struct pend *pend, struct order order)
{
    const struct echo *echo;

    for (unsigned i = 0; (echo = echo_at(sched, pend, order.id, i)); i++) {
        if (echo->rank == order.rank)
            return (uint8_t)(i + 2);
    }
    return 1;
}

void echoes_doubt(struct sched *sched, const struct pend *pend, uint32_t job_id)
{
    const struct echo *echo;

    for (unsigned i = 0; (echo = echo_at(sched, pend, job_id, i)); i++)
        family_doubt(sched, sched->classes.items[echo->class - 1]->family,
                     (struct order){ echo->rank, job_id });
}

static struct echo *record_of(const struct sched *sched, const struct pend *pend,
                              struct order order)
{
    struct echo *list = map_get_num(&sched->echoes, order.id);
    unsigned at = 0;

    while (at < pend->echoes && list[at].rank != order.rank)
        at++;
    return &list[at];
}

bool echo_is_due(const struct sched *sched, const struct pend *pend, struct order order)
{
    const struct echo *echo = record_of(sched, pend, order);

    return !echo->compared ||
           (sched->releases + 1 - echo->compared) * COST_PER_RELEASE > echo->cost;
}

void echo_compared(struct sched *sched, const struct pend *pend, struct order order, uint64_t cost)
{
    struct echo *echo = record_of(sched, pend, order);

    echo->compared = sched->releases + 1;
    echo->cost = cost;
}

void echoes_done(struct sched *sched)
{
    map_each (entry, &sched->echoes)
        free(entry->value);
    map_done(&sched->echoes);
}
