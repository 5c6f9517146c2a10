/* SPDX-License-Identifier: Apache-2.0 */
/*
 * book_bounds.c - how many jobs of one user or association are promised a start
 *
 * Without a bound the first user with many jobs has all the promises of a partition, and with them its nodes.
 * The first in order have them. Who is passed over is looked at again when bookings were made or dropped.
 */
#include "core/accounts.h"
#include "sched/book/book.h"

static bool has_bounds(const Config *config)
{
    return config->bookings_per_user || config->bookings_per_account;
}

bool book_is_bounded(struct sched *sched, struct order order)
{
    const Config *config = state_config(sched->state);
    const struct job *job = state_job(sched->state, order.id);
    uint32_t of_user = 0, of_account = 0;

    if (!has_bounds(config) || !job)
        return false;
    for (size_t i = 0; i < sched->book->list.len; i++) {
        const struct job *other = state_job(sched->state, sched->book->list.items[i].job_id);
        if (!order_before(sched->book->list.items[i].order, order))
            break;
        if (!other)
            continue;
        of_user += other->owner->uid == job->owner->uid;
        of_account += job_assoc(job) ? job_assoc(other) == job_assoc(job)
                                     : str_eq(other->account, job->account) &&
                                           other->owner->uid == job->owner->uid;
    }
    if ((!config->bookings_per_user || of_user < config->bookings_per_user) &&
        (!config->bookings_per_account || of_account < config->bookings_per_account))
        return false;
    if (position_booked(sched, pending_find(sched, order.id), order.id).rank == order.rank)
        book_drop(sched, order.id); /* others of his came before it */
    return true;
}

void book_bounds_changed(struct sched *sched)
{
    if (!has_bounds(state_config(sched->state)))
        return;
    for (uint32_t n = 0; n < sched->queue->partition_queues.len; n++) {
        const struct partition_queue *partition_queue = &sched->queue->partition_queues.items[n];
        partition_queue_needs_booking(sched, n, NO_ORDER);
        if (partition_queue->booked.len)
            partition_queue_needs_booking(
                sched, n, partition_queue->booked.items[partition_queue->booked.len - 1]);
    }
}
