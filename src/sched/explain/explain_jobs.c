/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_jobs.c - which other jobs one waits for: ahead of it, on its nodes, within its limits
 */
#include <string.h>

#include "base/timefmt.h"
#include "core/core.h"
#include "sched/explain/explain.h"

enum { JOBS_SHOWN = 3, ENDS_LOOKED_AT = 200000 };

static void add_job(const struct job *job, struct str *out)
{
    job_format_id(job, out);
    str_addf(out, " (%s)", job->owner->user);
}

static bool shares_partition_queue(const struct family *a, const struct family *b)
{
    for (uint32_t i = 0; i < a->partition_queue_count; i++) {
        for (uint32_t k = 0; k < b->partition_queue_count; k++) {
            if (a->partition_queues[i] == b->partition_queues[k] &&
                a->partition_queues[i] != UINT32_MAX)
                return true;
        }
    }
    return false;
}

/* The first few of all queues together, in order. */
struct first_jobs {
    struct order items[JOBS_SHOWN];
    size_t count;
};

static void keep_first(struct first_jobs *first, struct order order)
{
    size_t at = first->count;

    for (size_t i = 0; i < first->count; i++) {
        if (first->items[i].id == order.id) /* at another of its places */
            return;
    }
    while (at > 0 && order_before(order, first->items[at - 1]))
        at--;
    if (at == JOBS_SHOWN)
        return;
    first->count = MIN(first->count + 1, (size_t)JOBS_SHOWN);
    memmove(&first->items[at + 1], &first->items[at],
            (first->count - 1 - at) * sizeof(first->items[0]));
    first->items[at] = order;
}

uint32_t explain_ahead(const struct sched *sched, const struct family *family,
                       const struct job *job, struct str *out)
{
    struct first_jobs first = { .count = 0 };
    uint64_t count = 0;

    const struct pending *pending = pending_find(sched, job->id);
    if (!pending)
        return 0;
    if (pending->positions) /* where it comes first */
        family = class_of(sched, pending)->family;
    struct order own = pending_order(sched, job);
    vec_each (struct class *, at, &sched->queue->classes) {
        if (!*at || !shares_partition_queue((*at)->family, family))
            continue;
        struct job_list_cursor cursor = { 0 };
        count += job_list_count_before(&(*at)->queue, own);
        for (size_t i = 0; i < JOBS_SHOWN; i++) {
            struct order order = job_list_next(&(*at)->queue, &cursor);
            if (!order_before(order, own))
                break;
            keep_first(&first, order);
        }
    }
    if (count)
        str_addf(out, "ahead of it: %llu job%s, ", (unsigned long long)count,
                 count == 1 ? "" : "s");
    if (count > first.count)
        str_add(out, "the first are ");
    for (size_t i = 0; i < first.count; i++) {
        const struct job *other = state_job(sched->state, first.items[i].id);
        if (i)
            str_add(out, ", ");
        if (other)
            add_job(other, out);
    }
    return (uint32_t)MIN(count, UINT32_MAX);
}

struct ending {
    int64_t end_us;
    const struct job *job;
};

static void keep_ending(struct ending *items, size_t *count, struct ending one)
{
    size_t at = *count;

    for (size_t i = 0; i < *count; i++) {
        if (items[i].job == one.job)
            return;
    }
    while (at > 0 && (one.end_us < items[at - 1].end_us ||
                      (one.end_us == items[at - 1].end_us && one.job->id < items[at - 1].job->id)))
        at--;
    if (at == JOBS_SHOWN)
        return;
    *count = MIN(*count + 1, (size_t)JOBS_SHOWN);
    memmove(&items[at + 1], &items[at], (*count - 1 - at) * sizeof(items[0]));
    items[at] = one;
}

void explain_ends(const struct sched *sched, const struct family *family, int64_t now_us,
                  struct str *out)
{
    struct bitset hosts;
    struct ending items[JOBS_SHOWN];
    size_t count = 0;

    explain_hosts(sched, family, &hosts);
    bitset_each (n, &hosts) {
        const struct host *host = &sched->hosts->list.items[n];
        for (size_t i = 0; i < host->running.len; i++) { /* by end: most hosts are passed over */
            if (count == JOBS_SHOWN && host->running.items[i].end_us > items[count - 1].end_us)
                break;
            const struct job *job = state_job(sched->state, host->running.items[i].job_id);
            if (job && job->run)
                keep_ending(
                    items, &count,
                    (struct ending){
                        job_end_by(job, job->run->start_us + job->run->suspended_total_us), job });
        }
    }
    for (size_t i = 0; i < count; i++) {
        str_add(out, i ? ", " : "first to end there: ");
        add_job(items[i].job, out);
        if (items[i].end_us == INT64_MAX) {
            str_add(out, " without a time limit");
        } else {
            str_add(out, " within ");
            timefmt_write_duration(out, MAX(items[i].end_us - now_us, 0) / 1000000, TIMEFMT_SHORT);
        }
    }
    bitset_done(&hosts);
}

static bool is_held_by(const struct sched *sched, const struct job *job,
                       const struct holder *holder)
{
    const struct holder *holders[HOLDERS_MOST];
    size_t count = limits_holders(sched->state, job,
                                  state_partition(sched->state, job->run->partition), holders);

    for (size_t i = 0; i < count; i++) {
        if (holders[i] == holder)
            return true;
    }
    return false;
}

void explain_holders(const struct sched *sched, const struct limit_hit *hit, struct str *out)
{
    const struct job *seen[JOBS_SHOWN];
    size_t count = 0, looked = 0;

    for (size_t n = 0; hit->holder && n < sched->hosts->list.len && count < JOBS_SHOWN; n++) {
        const struct node *node = sched->hosts->list.items[n].node;
        for (size_t i = 0; i < node->jobs.len && count < JOBS_SHOWN && looked < ENDS_LOOKED_AT;
             i++, looked++) {
            const struct job *job = node->jobs.items[i];
            bool known = false;
            for (size_t k = 0; k < count; k++)
                known = known || seen[k] == job;
            if (known || !job->run || job_has_ended(job) || !is_held_by(sched, job, hit->holder))
                continue;
            str_add(out, count ? ", " : "in use by: ");
            add_job(job, out);
            seen[count++] = job;
        }
    }
    if (count == JOBS_SHOWN)
        str_add(out, " and maybe more");
}
