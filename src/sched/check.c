/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - does every invariant of the planner hold?
 */
#include "sched/sched_check.h"

#include <string.h>

#include "sched/limit/limit_counter.h"
#include "sched/plan.h"

static int broken(struct err *err, const char *what, uint32_t number)
{
    return err_set(err, ERR_INTERNAL, "planner: %s (%u)", what, number);
}

/* priv (1): free is what core says less claims; nothing is claimed twice. */
static int check_host(const struct sched *sched, uint32_t number, struct err *err)
{
    const struct host *host = &sched->hosts->list.items[number];
    const struct node *node = host->node;
    uint64_t cpus = node->cpus_used, mem = node->mem_used_mb;
    uint32_t jobs = node->jobs_active;

    if (node != state_node_at(sched->state, number))
        return broken(err, "a host is another node", number);
    for (const struct claim *claim = host->claims; claim; claim = claim->next) {
        cpus += claim->fresh_cpus;
        mem += claim->amount->mem_mb;
        jobs++;
        if (claim->amount->cpus != bitset_count(&claim->cpus))
            return broken(err, "a claim has not the CPUs it counts", number);
        for (size_t g = 0; g < claim->device_kinds; g++) {
            const struct node_gres *base = gres_base(node, &node->gres[g]);
            const struct bitset *used = base ? &base->index : &node->gres[g].index;
            if (claim->devices[g].words && bitset_meets(&claim->devices[g], used))
                return broken(err, "a claimed device is in use", number);
        }
    }
    if (!host->whole && host->free.cpus > node->cpus - MIN(cpus, node->cpus))
        return broken(err, "a host counts CPUs that are in use", number);
    if (host->free.mem_mb > node->mem_mb - MIN(mem, node->mem_mb))
        return broken(err, "a host counts memory that is in use", number);
    if (host->jobs != jobs || host->running.len != node->jobs.len)
        return broken(err, "a host does not know its jobs", number);
    if (host->spare.cpus > host->free.cpus || host->spare.mem_mb > host->free.mem_mb)
        return broken(err, "a host has more to spare than is free", number);
    if (host->usable != node_is_usable(node))
        return broken(err, "a host is not as usable as its node", number);
    if (host->usable && host->spare_cell != kind_cell(host->kind, &host->spare))
        return broken(err, "a host is in the wrong cell", number);
    for (size_t i = 1; i < host->running.len; i++) {
        if (host->running.items[i].end_us < host->running.items[i - 1].end_us)
            return broken(err, "ends are not in order", number);
    }
    return 0;
}

/* What is said of hosts side by side is not less than one of them has. */
static int check_summary_block(const struct sched *sched, uint32_t number, struct err *err)
{
    const struct summary_block *summary_block =
        &sched->hosts->summary_blocks.items[number / SUMMARY_BLOCK];
    const struct host_summary *best = &summary_block->best,
                              *host_summary = &sched->hosts->summaries.items[number];

    if (summary_block->stale || host_summary->kind == UINT32_MAX)
        return 0;
    if (best->first_end_us > host_summary->first_end_us ||
        best->last_end_us > host_summary->last_end_us || best->mem_mb < host_summary->mem_mb ||
        best->cpus < host_summary->cpus || best->devices < host_summary->devices)
        return broken(err, "a host has more than is said of it", number);
    return 0;
}

static int check_tree(const struct class *class, const struct class *parent, size_t *classes,
                      struct err *err)
{
    struct order best;

    if (!class)
        return 0;
    ++*classes;
    if (class->parent != parent)
        return broken(err, "a class has another parent", class->number);
    best = job_list_head(&class->queue);
    if (class->left && order_before(class->left->best, best))
        best = class->left->best;
    if (class->right && order_before(class->right->best, best))
        best = class->right->best;
    if (best.id != class->best.id || best.rank != class->best.rank)
        return broken(err, "a class does not know its first job", class->number);
    if (check_tree(class->left, class, classes, err) < 0)
        return -1;
    return check_tree(class->right, class, classes, err);
}

static int check_families(const struct sched *sched, struct err *err)
{
    bool stops = state_config(sched->state)->limit_stop;
    size_t count = 0;

    map_each (entry, &sched->queue->families) {
        for (struct family *family = entry->value; family; family = family->same) {
            size_t classes = 0;
            count++;
            if (check_tree(family->root, NULL, &classes, err) < 0)
                return -1;
            if (classes != family->class_count || !classes)
                return broken(err, "a family has lost classes", family->class_count);
            /* A family that may fit must be found, unless it is held up by others. */
            if (family->end_by_us == INT64_MAX && !sched->queue->in_order && !stops &&
                !family->ready_at && !order_is_last(family->root->best))
                return broken(err, "a hot family is not in the heap", family->root->best.id);
        }
    }
    return count == sched->queue->family_count ? 0 : broken(err, "families are miscounted", 0);
}

/* A job that waits for a limit is in its owner's limit queue, where it would be by its rank. */
static bool is_in_its_limit_queue(const struct sched *sched, const struct pending *pending,
                                  uint32_t job_id)
{
    const struct limit_queue *queue = sched->limit->queues.items[pending->limit_queue - 1];
    const struct family *family = class_of(sched, pending)->family;
    struct order order = { pending->rank, job_id };

    for (size_t i = 0; queue && i < queue->bins.len; i++) {
        const struct bin *bin = queue->bins.items[i].bin;
        struct job_list_cursor cursor = { 0 };
        struct order at = queue->heads.items[i];
        while (bin->family == family && !order_is_last(at)) {
            at = job_list_next(&bin->jobs, &cursor);
            if (at.id == order.id && at.rank == order.rank)
                return true;
        }
    }
    return false;
}

static int check_bins(const struct limit_queue *queue, struct err *err)
{
    for (size_t i = 0; i < queue->bins.len; i++) {
        const struct bin_at *at = &queue->bins.items[i];
        if (queue->heads.items[i].id != job_list_head(&at->bin->jobs).id)
            return broken(err, "a bin begins with another job", queue->number);
        if (at->shut ? at->bin->open_at : !queue->open)
            return broken(err, "a bin is open and is not", queue->number);
    }
    return 0;
}

/* Somebody will look at every limit queue again. */
static int check_limit_queues(const struct sched *sched, struct err *err)
{
    for (size_t i = 0; i < sched->limit->queues.len; i++) {
        const struct limit_queue *queue = sched->limit->queues.items[i];
        bool known = !queue || queue->outs || queue->review;
        for (const struct limit_waiter *at = queue ? queue->waiters : NULL; at; at = at->next) {
            if (at->here != (at->at != 0))
                return broken(err, "a line is not at its gate", queue->number);
            known = known || at->here;
        }
        if (!known)
            return broken(err, "a line waits for nothing", queue->number);
        if (queue && check_bins(queue, err) < 0)
            return -1;
    }
    return 0;
}

/*
 * Every eligible job has a class, and is queued unless it is planned or throttled, or its turn after a
 * change has not come.
 */
static int check_jobs(const struct sched *sched, struct err *err)
{
    bool settled = !sched->plan->refused.len && !sched->queue->reclass && !sched->plan->reclass_id;

    for (const struct job *job = state_job_from(sched->state, 1); job;
         job = state_job_from(sched->state, (uint64_t)job->id + 1)) {
        const struct pending *pending = pending_find(sched, job->id);
        bool het = job->more && job->more->het_job_id && job->more->het_offset > 0;
        if (pending && !job_is_eligible(job))
            return broken(err, "a job is in the queue that may not start", job->id);
        if (!pending && job_is_eligible(job) && !het && settled &&
            core_partition_reason(job, &shape_needs(sched->state, job->shape)[0]) == 0)
            return broken(err, "a job is not in the queue", job->id);
        if (pending && pending->place == PENDING_LIMITED && pending->limit_queue &&
            !is_in_its_limit_queue(sched, pending, job->id))
            return broken(err, "a job is not in its line", job->id);
    }
    return 0;
}

static int check_bookings(const struct sched *sched, struct err *err)
{
    for (size_t i = 0; i < sched->book->list.len; i++) {
        const struct booking *booking = &sched->book->list.items[i];
        if (i && order_before(booking->order, sched->book->list.items[i - 1].order))
            return broken(err, "bookings are not in order", booking->job_id);
        if (!pending_find(sched, booking->job_id))
            return broken(err, "a job is booked that does not wait", booking->job_id);
    }
    return 0;
}

int sched_check(const struct sched *sched, struct err *err)
{
    if (!rebuild_is_done(sched))
        return 0;
    if (sched->hosts->list.len != state_node_count(sched->state))
        return broken(err, "hosts are not the nodes", (uint32_t)sched->hosts->list.len);
    for (uint32_t n = 0; n < sched->hosts->list.len; n++) {
        if (check_host(sched, n, err) < 0 || check_summary_block(sched, n, err) < 0)
            return -1;
    }
    if (check_families(sched, err) < 0 || check_jobs(sched, err) < 0 ||
        check_limit_queues(sched, err) < 0)
        return -1;
    return check_bookings(sched, err);
}
