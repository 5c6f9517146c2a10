/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limit_stop.c - a job that waits for a limit holds up those behind it (scheduler.assoc_limit_stop)
 *
 * Without that, others go on, and a large job of an account that is at its limit may wait for ever while small
 * ones use up what is freed. With it, nothing behind the job starts in its partitions until it may go.
 *
 * (1) Jobs that wait for limits are in limit queues by owner and partitions; the first of a limit queue answers for it. One
 *     that no limit keeps any more waits for nodes like others, and holds up nobody.
 */
#include "sched/limit/limit_counter.h"

static bool is_of_limit_queue(const struct limit_queue *queue, uint32_t partition)
{
    for (size_t i = 0; i < queue->partition_count; i++) {
        if (queue->partitions[i] == partition)
            return true;
    }
    return false;
}

static bool partition_queue_is_stopped(struct sched *sched, uint32_t partition, struct order order)
{
    for (size_t i = 0; i < sched->limit->queues.len; i++) {
        struct limit_queue *queue = sched->limit->queues.items[i];
        if (!queue || !queue->bins.len || !is_of_limit_queue(queue, partition))
            continue;
        struct order first = limit_queue_first(sched, queue);
        if (order_before(first, order) && limits_stop(sched, first.id)) /* (1) */
            return true;
    }
    return false;
}

bool limit_stop_blocks(struct sched *sched, const struct family *family, struct order order)
{
    if (!state_config(sched->state)->limit_stop || !sched->limit->queues.len)
        return false;
    sched->looked += sched->limit->queues.len;
    for (uint32_t i = 0; i < family->partition_queue_count; i++) {
        if (family->partition_queues[i] != UINT32_MAX &&
            !partition_queue_is_stopped(sched, family->partition_queues[i], order))
            return false;
    }
    return true;
}
