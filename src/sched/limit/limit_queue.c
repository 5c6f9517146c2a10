/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limit_queue.c - jobs that a limit keeps from starting, in limit queues by owner
 *
 * A job that may not start is taken out of its class and put into the limit queue of its owner. All jobs
 * of a limit queue have the same association, QOS, user and partitions: the same holders count them.
 *
 * (1) All jobs of a limit queue have the same fair share, so they are in order without it and no turn of
 *     the priorities moves them.
 * (2) Jobs of a limit queue that have the same shape are in one bin: mostly the first of it answers for
 *     all of them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "sched/limit/limit_counter.h"

/* ---- limit queues ---- */

static uint32_t partition_of(const struct sched *sched, const struct job *job, size_t i)
{
    const struct need *needs = shape_needs(sched->state, job->shape);

    return needs[i].partition ? needs[i].partition->number : UINT32_MAX;
}

static uint64_t key_of(const struct sched *sched, const struct job *job)
{
    uint64_t key = hash_mix(job->owner->uid);

    key = hash_mix(key ^ (job_assoc(job) ? job_assoc(job)->holder.number : UINT32_MAX));
    key = hash_mix(key ^ (job_qos(job) ? job_qos(job)->index : UINT32_MAX));
    if (job->account)
        key = hash_bytes(job->account, strlen(job->account), key);
    for (size_t i = 0; i < job->shape->partition_count; i++)
        key = hash_mix(key ^ partition_of(sched, job, i));
    return key;
}

static bool is_of(const struct sched *sched, const struct limit_queue *queue, const struct job *job)
{
    bool same = queue->uid == job->owner->uid && queue->assoc == job_assoc(job) &&
                queue->qos == job_qos(job) && str_eq(queue->account, job->account) &&
                queue->partition_count == job->shape->partition_count;

    for (size_t i = 0; same && i < queue->partition_count; i++)
        same = queue->partitions[i] == partition_of(sched, job, i);
    return same;
}

static struct limit_queue *limit_queue_new(struct sched *sched, const struct job *job, uint64_t key)
{
    struct limit_queue *queue = NEW(struct limit_queue);

    *queue = (struct limit_queue){ .key = key,
                                   .assoc = job_assoc(job),
                                   .qos = job_qos(job),
                                   .uid = job->owner->uid,
                                   .rules = sched->limit->rules,
                                   .account = mem_strdup(job->account),
                                   .partition_count = job->shape->partition_count };
    queue->partitions = NEW_ARRAY(uint32_t, queue->partition_count);
    for (size_t i = 0; i < queue->partition_count; i++)
        queue->partitions[i] = partition_of(sched, job, i);
    if (sched->limit->free_queues.len) {
        queue->number = sched->limit->free_queues.items[--sched->limit->free_queues.len];
        sched->limit->queues.items[queue->number] = queue;
    } else {
        queue->number = (uint32_t)sched->limit->queues.len;
        vec_push(&sched->limit->queues, queue);
    }
    queue->same = map_put_num(&sched->limit->queue_keys, key, queue);
    return queue;
}

uint32_t limit_queue_of(struct sched *sched, const struct job *job)
{
    uint64_t key = key_of(sched, job);
    struct limit_queue *queue = map_get_num(&sched->limit->queue_keys, key);

    while (queue && !is_of(sched, queue, job))
        queue = queue->same;
    return (queue ? queue : limit_queue_new(sched, job, key))->number + 1;
}

bool limit_queue_has(const struct sched *sched, uint32_t queue, const struct job *job)
{
    return is_of(sched, sched->limit->queues.items[queue - 1], job);
}

bool bin_open(const struct sched *sched, struct bin *bin)
{
    struct family *family = bin->family;
    uint32_t head = job_list_head(&bin->jobs).id;

    if (bin->open_at && bin->keyed == head && bin->keyed_turn == sched->limit->turn)
        return false;
    bin->keyed = head;
    bin->keyed_turn = sched->limit->turn;
    if (!bin->open_at)
        bin->side = family->open_side;
    heap_set(&family->opens[bin->side], &bin->open_at, family,
             pending_order(sched, state_job(sched->state, head)));
    return true;
}

void bin_shut(struct bin *bin)
{
    heap_del(&bin->family->opens[bin->side], &bin->open_at);
}

static void bin_free(struct bin *bin)
{
    bin_shut(bin);
    job_list_done(&bin->jobs);
    free(bin);
}

static void limit_queue_free(struct limit_queue *queue)
{
    limit_waiters_free(queue);
    vec_each (struct bin_at, at, &queue->bins)
        bin_free(at->bin);
    vec_done(&queue->bins);
    vec_done(&queue->families);
    vec_done(&queue->heads);
    free(queue->account);
    free(queue->partitions);
    free(queue);
}

void limit_queue_tidy(struct sched *sched, struct limit_queue *queue)
{
    struct limit_queue *chain = map_get_num(&sched->limit->queue_keys, queue->key);

    if (queue->bins.len || queue->outs || queue->review)
        return;
    limit_queue_renew(sched, queue);
    if (chain == queue && queue->same) {
        map_put_num(&sched->limit->queue_keys, queue->key, queue->same);
    } else if (chain == queue) {
        map_del_num(&sched->limit->queue_keys, queue->key);
    } else {
        while (chain->same != queue)
            chain = chain->same;
        chain->same = queue->same;
    }
    sched->limit->queues.items[queue->number] = NULL;
    vec_push(&sched->limit->free_queues, queue->number);
    limit_queue_free(queue);
}

static size_t bin_index(const struct limit_queue *queue, const struct family *family)
{
    size_t at = 0;

    while (at < queue->families.len && queue->families.items[at] != family)
        at++;
    return at;
}

/* All jobs of a family ask for the same. */
void family_charge(const struct sched *sched, struct family *family, const struct job *job)
{
    struct charge charge;

    if (family->charge && family->charge_rules == sched->limit->rules)
        return;
    charge_asked(sched->state, job, 0, &charge);
    family->charge_rules = sched->limit->rules;
    if (!family->charge)
        family->charge = NEW_ARRAY(uint64_t, TRES_MOST);
    memcpy(family->charge, charge.tres, sizeof(charge.tres));
}

static struct bin *bin_new(struct limit_queue *queue, struct family *family)
{
    struct bin *bin = NEW(struct bin);

    bin->family = family;
    bin->queue = queue;
    bin->shortest_us = INT64_MAX;
    return bin;
}

void limit_queue_put(struct sched *sched, uint32_t number, const struct class *class,
                     struct order order)
{
    struct limit_queue *queue = number ? sched->limit->queues.items[number - 1] : NULL;

    if (!queue)
        return;
    size_t at = bin_index(queue, class->family);
    if (at == queue->bins.len) {
        struct bin *made = bin_new(queue, class->family);
        family_charge(sched, class->family, state_job(sched->state, order.id));
        vec_push(&queue->bins,
                 (struct bin_at){ .family = class->family, .bin = made, .shut = true });
        vec_push(&queue->families, class->family);
        vec_push(&queue->heads, ORDER_LAST);
    }
    struct bin *bin = queue->bins.items[at].bin;
    job_list_put(&bin->jobs, order);
    queue->heads.items[at] = job_list_head(&bin->jobs);
    bin->shortest_us = MIN(bin->shortest_us, class->limit_us);
    queue->bins.items[at].shortest_us = bin->shortest_us;
    if (bin->open_at)
        bin_open(sched, bin);
    if (order_before(order, queue->head) || (queue->bins.len == 1 && queue->head.id != order.id)) {
        queue->head = queue->bins.len == 1 ? queue->heads.items[0] : order;
        queue->first = (struct order){ 0, 0 };
    }
}

void limit_queue_del(struct sched *sched, uint32_t number, const struct class *class,
                     struct order order)
{
    struct limit_queue *queue = number ? sched->limit->queues.items[number - 1] : NULL;
    size_t at = queue ? bin_index(queue, class->family) : 0;

    if (!queue || at == queue->bins.len)
        return;
    struct bin_at *place = &queue->bins.items[at];
    job_list_del(&place->bin->jobs, order);
    queue->heads.items[at] = job_list_head(&place->bin->jobs);
    if (!place->bin->jobs.count) {
        bin_free(place->bin);
        *place = queue->bins.items[--queue->bins.len];
        queue->families.items[at] = queue->families.items[--queue->families.len];
        queue->heads.items[at] = queue->heads.items[--queue->heads.len];
    } else if (place->bin->open_at) {
        bin_open(sched, place->bin);
    }
    if (!queue->bins.len)
        limit_counter_unwait(queue, 0, FOR_OVER);
    if (queue->head.id == order.id) {
        queue->head = ORDER_LAST;
        queue->first = (struct order){ 0, 0 };
        vec_each (struct order, other, &queue->heads)
            queue->head = order_before(*other, queue->head) ? *other : queue->head;
    }
    limit_queue_tidy(sched, queue);
}

struct order limit_queue_first(const struct sched *sched, struct limit_queue *queue)
{
    if (!queue->bins.len)
        return ORDER_LAST;
    if (!queue->first.id || queue->first_turn != sched->limit->turn) {
        queue->first = pending_order(sched, state_job(sched->state, queue->head.id));
        queue->first_turn = sched->limit->turn;
    }
    return queue->first;
}

void limit_queue_block(struct sched *sched, struct limit_queue *queue, const struct family *family,
                       const struct limit_hit *hit)
{
    size_t count;
    int64_t most = (int64_t)MIN(hit->most, (uint64_t)INT64_MAX / 2);

    if (queue->partition_count > 1 || hit->is == LIMIT_OTHER) {
        limit_counter_wait(sched, queue, hit->holder, FOR_ANY, 0);
    } else if (hit->is == LIMIT_JOBS) {
        limit_counter_wait(sched, queue, hit->holder, FOR_JOBS, 1 - most);
    } else {
        size_t tres = (size_t)(hit->tres - state_tres(sched->state, &count));
        limit_counter_wait(sched, queue, hit->holder, (unsigned)tres,
                           (int64_t)family->charge[tres] - most);
    }
}

void limit_queue_hit(struct sched *sched, uint32_t number, const struct class *class,
                     const struct limit_hit *hit, bool over)
{
    struct limit_queue *queue = sched->limit->queues.items[number - 1];

    limit_queue_renew(sched, queue);
    if (over) {
        queue->over_at = sched->limit->falls;
        limit_counter_wait(sched, queue, hit->holder, FOR_OVER, 0);
    } else if (!queue->outs) { /* else it is looked at soon */
        limit_queue_block(sched, queue, class->family, hit);
    }
}

bool limit_queues_done_some(struct sched *sched, unsigned *budget)
{
    while (sched->limit->queues.len && *budget) {
        struct limit_queue *queue = sched->limit->queues.items[--sched->limit->queues.len];
        budget_take(budget, 1 + (queue ? queue->bins.len : 0));
        if (queue)
            limit_queue_free(queue);
    }
    return !sched->limit->queues.len;
}

void limit_queues_done(struct sched *sched)
{
    vec_each (struct limit_queue *, queue, &sched->limit->queues) {
        if (*queue)
            limit_queue_free(*queue);
    }
    vec_done(&sched->limit->queues);
    vec_done(&sched->limit->free_queues);
    vec_done(&sched->limit->queue_reviews);
    vec_done(&sched->queue->woken);
    map_done(&sched->limit->queue_keys);
    limit_counters_done(sched);
}
