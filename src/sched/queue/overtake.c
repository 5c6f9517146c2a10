/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overtake.c - how long a job may be overtaken
 *
 * With `order = "predict"` the job goes first of which least is left. That alone would let large
 * ones wait for ever. How long they may wait is measured against what the order of submission would
 * have given: whatever the order is, the same work is waiting, so a job that comes would wait as
 * long as the partition needs for all that is there.
 *
 * (1) The work of a partition is the sum over its jobs, waiting and running, of the time that is
 *     expected of them times their share of the partition. A running job's part of it shrinks with
 *     time, down to nothing; its end sets right what was expected wrongly.
 * (2) Each job that comes is counted with the time in which it would have been done. The 99th
 *     percentile of these, times `order_patience`, is the limit: a job is due when it would not
 *     be done within it if it did not start now, but not before it has waited its own part of that
 *     time. Those that are due go before all others, in the order they came.
 *     Of fewer than a hundred jobs the one that would take longest says nothing about itself: then
 *     it is time to start, not to be done, that counts.
 * (3) Of a thousand jobs `order_late`, and one at the begin, may be later: when one of the largest
 *     (LARGE_PART) is due, it goes behind all others instead, until it has waited LATE_TIMES as long.
 * (4) What was counted weighs half as much after HALF_LIFE_S.
 * (5) Each job has a record here from when it may start until it ends. Nothing is looked for: two
 *     heaps have those that wait, by when they may be due at the earliest. An entry whose job does
 *     not wait any more is dropped when it comes up, and all such when they are too many.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "sched/queue/histogram.h"
#include "sched/queue/queue.h"

enum {
    SHARE_ONE = 1 << 20,
    COUNTED_S = 1 << 22, /* of a job's time no more than this is counted as work */
    LATEST_PART = 100,   /* the limit is that of one in a hundred */
    LARGE_PART = 50,     /* the largest of fifty */
    HALF_LIFE_S = 30 * 86400,
    LATE_ONE = 1000,
    LATE_TIMES = 4,  /* the whole limit */
    LEFT_LEAST = 50, /* a job that runs longer than expected has this part of it left */
    LOOK_MOST = 256, /* in a slice */
    TIDY_ABOVE = 1024,
    RATIO = 82, /* 1.25: so much larger must one be that is pushed aside; in 1/256 doublings */
};
#define WORK_MOST (INT64_C(1) << 61)

struct overtake {
    uint64_t generation; /* of what the partition has */
    uint64_t cpus, gpus;
    int64_t work;                /* of those that wait: seconds x share */
    int64_t run_share, run_ends; /* of those that run, and their share x expected end */
    struct moments ends;         /* of those that run */
    struct moments nears, owns;  /* (5): by when they came less what is left; by their own part */
    struct moments olds;         /* by order_bound, where there is one */
    struct histogram delays, sizes; /* (2), (3) */
    int64_t far_s, halved_s, now_s;
    int64_t late; /* that may still be, in 1/LATE_ONE */
};

enum whereabouts { ENTRY_IDLE, ENTRY_WAITS, ENTRY_RUNS };
struct overtake_entry {
    struct overtake *in;
    int64_t work, end_s; /* as counted there */
    int64_t since_s, own_s, ran_s;
    uint32_t share;
    uint8_t where, lot;
    bool counted, listed;
};

/* ---- partitions ---- */

static void read_amounts(struct overtake *overtake, const struct sched *sched,
                         const struct partition *partition)
{
    overtake->generation = state_generation(sched->state) + 1;
    overtake->cpus = overtake->gpus = 0;
    for (size_t i = bitset_next(&partition->nodes, 0); i < state_node_count(sched->state);
         i = bitset_next(&partition->nodes, i + 1)) {
        const struct node *node = state_node_at(sched->state, (uint32_t)i);
        overtake->cpus += node->cpus;
        for (size_t g = 0; g < node->gres_count; g++)
            overtake->gpus += str_eq(node->gres[g].name, "gpu") ? node->gres[g].total : 0;
    }
}

/* Of the first partition that the job names. */
static struct overtake *overtake_for(struct sched *sched, const struct job *job)
{
    const struct partition *partition = NULL;

    for (size_t i = 0; i < job->shape->partition_count && !partition; i++)
        partition = state_partition(sched->state, job->shape->partitions[i]);
    if (!partition)
        return NULL;
    const char *name = partition->spec->name;
    uint64_t key = hash_bytes(name, strlen(name), 1) | 1;
    struct overtake *overtake = map_get_num(&sched->queue->predict.overtakes, key);
    if (!overtake) {
        overtake = NEW(struct overtake);
        overtake->late = LATE_ONE;
        map_put_num(&sched->queue->predict.overtakes, key, overtake);
    }
    if (overtake->generation != state_generation(sched->state) + 1)
        read_amounts(overtake, sched, partition);
    return overtake;
}

static uint32_t part_of(uint64_t some, uint64_t all)
{
    return all ? (uint32_t)(MIN(some, all) * SHARE_ONE / all) : 0;
}

static uint32_t share_of(const struct overtake *overtake, const struct job *job)
{
    uint32_t cpus = part_of(shape_cpus(job->shape), overtake->cpus);
    uint32_t gpus = part_of(shape_gpus(job->shape), overtake->gpus);

    return MAX(MAX(cpus, gpus), 1);
}

/* ---- (1) ---- */

static struct overtake_entry *overtake_entry_of(const struct sched *sched, uint32_t job_id)
{
    return map_get_num(&sched->queue->predict.entries, job_id);
}

static int64_t left_of(const struct sched *sched, const struct job *job,
                       const struct overtake_entry *entry, int64_t all)
{
    int64_t ran = entry ? entry->ran_s : 0;

    if (entry && entry->where == ENTRY_RUNS && job->run)
        ran += (sched->now_us - job->run->start_us) / US_PER_S;
    /* One that has run long will run long, unless its limit is in the way. */
    int64_t most = job->time_limit_s > 0 ? job->time_limit_s - ran : HISTOGRAM_LARGEST;
    return MAX(MAX(all - ran, MIN(ran, most)), all / LEFT_LEAST + 1);
}

static int64_t left_s(const struct sched *sched, const struct job *job,
                      const struct overtake_entry *entry)
{
    return left_of(sched, job, entry, predict_run_s(sched, job));
}

static void uncount(struct overtake_entry *entry)
{
    struct overtake *in = entry->in;

    if (!entry->counted)
        return;
    if (entry->where == ENTRY_WAITS) {
        in->work -= entry->work;
    } else if (entry->where == ENTRY_RUNS) {
        in->run_share -= entry->share;
        in->run_ends -= entry->share * entry->end_s;
    }
    entry->counted = false;
}

/* Running jobs that are over their time have nothing left that we know of. */
static void pass_to(struct sched *sched, struct overtake *in, int64_t now_s)
{
    while (moment_is_due(&in->ends, now_s)) {
        struct moment end = moment_take(&in->ends);
        struct overtake_entry *entry = overtake_entry_of(sched, end.job_id);
        if (entry && entry->in == in && entry->where == ENTRY_RUNS && entry->end_s <= end.at_s)
            uncount(entry);
    }
}

/* How long the partition needs for all that is there. */
static int64_t backlog_s(const struct overtake *in, int64_t now_s)
{
    return MAX((in->work + in->run_ends - in->run_share * now_s) / SHARE_ONE, 0);
}

static void count(struct sched *sched, const struct job *job, struct overtake_entry *entry,
                  int64_t now_s)
{
    struct overtake *in = entry->in;
    int64_t left = MIN(left_s(sched, job, entry), COUNTED_S);

    if (entry->where == ENTRY_WAITS) {
        int64_t tasks = job_is_meta(job) ? MAX(job->array->waiting, 1) : 1;
        entry->work = left * entry->share;
        entry->work = entry->work > WORK_MOST / tasks ? 0 : entry->work * tasks;
        if (in->work > WORK_MOST - entry->work)
            entry->work = 0;
        in->work += entry->work;
    } else {
        entry->end_s = now_s + left;
        in->run_share += entry->share;
        in->run_ends += entry->share * entry->end_s;
        moment_put(&in->ends, (struct moment){ entry->end_s, job->id });
    }
    entry->counted = true;
}

/* ---- (2), (3), (4) ---- */

static void grow_old(struct overtake *in, uint32_t late, int64_t now_s)
{
    if (!in->halved_s)
        in->halved_s = now_s;
    for (; now_s - in->halved_s >= HALF_LIFE_S && in->delays.total; in->halved_s += HALF_LIFE_S) {
        histogram_halve(&in->delays);
        histogram_halve(&in->sizes);
        in->late = MIN(in->late, LATE_ONE + (int64_t)(in->delays.total * late));
    }
    in->halved_s = MAX(in->halved_s, now_s - HALF_LIFE_S);
}

static void arrive(struct sched *sched, const struct job *job, struct overtake_entry *entry,
                   int64_t now_s)
{
    struct overtake *in = entry->in;
    int64_t run = predict_run_s(sched, job), size = run * entry->share;
    int64_t tasks = job_is_meta(job) ? MAX(job->array->waiting, 1) : 1;

    grow_old(in, sched->queue->predict.late, now_s);
    entry->since_s = job->eligible_us / US_PER_S;
    entry->own_s = backlog_s(in, now_s);
    histogram_add(&in->sizes, size);
    histogram_add(&in->delays, entry->own_s + run);
    in->far_s = histogram_value(histogram_top(&in->delays, LATEST_PART));
    in->late += sched->queue->predict.late * tasks;
}

static int64_t patient(const struct sched *sched, int64_t seconds)
{
    return MIN(seconds * sched->queue->predict.patience / 100, HISTOGRAM_LARGEST);
}

static void list(struct sched *sched, const struct job *job, struct overtake_entry *entry)
{
    if (entry->listed || entry->lot == OVERTAKE_DUE)
        return;
    entry->listed = true;
    if (sched->queue->predict.bound_s < HISTOGRAM_LARGEST)
        moment_put(&entry->in->olds,
                   (struct moment){ entry->since_s + sched->queue->predict.bound_s, job->id });
    moment_put(&entry->in->nears,
               (struct moment){ entry->since_s - left_s(sched, job, entry), job->id });
}

/* (5); also where nothing is ever planned, on a controller that follows. */
static void tidy(struct sched *sched, struct moments *heap)
{
    struct moments kept = { 0 };

    if (heap->items.len < TIDY_ABOVE + 2 * map_len(&sched->queue->predict.entries))
        return;
    vec_each (struct moment, at, &heap->items) {
        if (overtake_entry_of(sched, at->job_id))
            moment_put(&kept, *at);
    }
    vec_done(&heap->items);
    *heap = kept;
}

void overtake_hear(struct sched *sched, const struct job *job, int64_t ran_us)
{
    enum job_phase phase = job_phase(job);
    int64_t now_s = state_head(sched->state).time_us / US_PER_S;
    struct overtake_entry *entry = overtake_entry_of(sched, job->id);
    bool runs = phase == PHASE_RUNNING || phase == PHASE_CONFIGURING || phase == PHASE_SUSPENDED;

    if (job_has_ended(job)) {
        overtake_forget(sched, job->id);
        return;
    }
    if (!entry) {
        struct overtake *in = runs || job_is_eligible(job) ? overtake_for(sched, job) : NULL;
        if (!in)
            return;
        entry = NEW(struct overtake_entry);
        *entry =
            (struct overtake_entry){ .in = in, .lot = OVERTAKE_USUAL, .share = share_of(in, job) };
        map_put_num(&sched->queue->predict.entries, job->id, entry);
        pass_to(sched, in, now_s);
        arrive(sched, job, entry, now_s);
    }
    uncount(entry);
    entry->ran_s += ran_us / US_PER_S;
    entry->where = runs ? ENTRY_RUNS : job_is_eligible(job) ? ENTRY_WAITS : ENTRY_IDLE;
    if (entry->where != ENTRY_IDLE)
        count(sched, job, entry, now_s);
    if (entry->where == ENTRY_WAITS)
        list(sched, job, entry);
    tidy(sched, &entry->in->ends);
    tidy(sched, &entry->in->nears);
    tidy(sched, &entry->in->owns);
    tidy(sched, &entry->in->olds);
}

void overtake_forget(struct sched *sched, uint32_t job_id)
{
    struct overtake_entry *entry = map_del_num(&sched->queue->predict.entries, job_id);

    if (entry)
        uncount(entry);
    free(entry);
}

void overtake_done(struct sched *sched)
{
    map_each (entry, &sched->queue->predict.entries)
        free(entry->value);
    map_each (entry, &sched->queue->predict.overtakes) {
        struct overtake *in = entry->value;
        vec_done(&in->ends.items);
        vec_done(&in->nears.items);
        vec_done(&in->owns.items);
        vec_done(&in->olds.items);
        free(in);
    }
    map_done(&sched->queue->predict.entries);
    map_done(&sched->queue->predict.overtakes);
    map_init(&sched->queue->predict.entries);
    map_init(&sched->queue->predict.overtakes);
}

/* ---- what the order goes by ---- */

enum overtake_lot overtake_lot(const struct sched *sched, const struct job *job, int64_t *since_s)
{
    const struct overtake_entry *entry = overtake_entry_of(sched, job->id);

    *since_s = entry ? entry->since_s : job->submit_us / US_PER_S;
    return entry ? entry->lot : OVERTAKE_USUAL;
}

int64_t overtake_size(const struct sched *sched, const struct job *job)
{
    const struct overtake_entry *entry = overtake_entry_of(sched, job->id);

    int64_t left = left_of(sched, job, entry, predict_usual_s(sched, job));

    return predict_log(left) * 3 / 2 + predict_log(entry ? entry->share : 1);
}

bool overtake_waits(const struct sched *sched, struct order order)
{
    return sched->queue->predict.preempts && (order.rank >> OVERTAKE_SHIFT & 3) != OVERTAKE_DUE;
}

int64_t overtake_ran_s(const struct sched *sched, uint32_t job_id)
{
    const struct overtake_entry *entry = overtake_entry_of(sched, job_id);

    return entry ? entry->ran_s : 0;
}

bool overtake_goes_before(const struct sched *sched, const struct job *job,
                          const struct job *victim)
{
    const struct overtake_entry *mine = overtake_entry_of(sched, job->id),
                                *its = overtake_entry_of(sched, victim->id);

    if (!mine || !its || mine->lot != its->lot)
        return mine && its && mine->lot < its->lot;
    return mine->lot != OVERTAKE_DUE &&
           overtake_size(sched, job) + RATIO <= overtake_size(sched, victim);
}

uint32_t overtake_worth(const struct sched *sched, const struct job *victim)
{
    const struct overtake_entry *entry = overtake_entry_of(sched, victim->id);
    uint32_t lot = entry ? entry->lot : OVERTAKE_USUAL;

    return (OVERTAKE_LATE - lot) << 20 |
           (uint32_t)((1 << 20) - 1 - MIN(overtake_size(sched, victim), (1 << 20) - 1));
}

/* ---- those whose time has come ---- */

/* When it is due, as things are. (2), (3) */
static int64_t due_s(const struct sched *sched, const struct job *job,
                     const struct overtake_entry *entry)
{
    bool known = entry->in->delays.total >= LATEST_PART;
    int64_t far = patient(sched, entry->in->far_s) - (known ? left_s(sched, job, entry) : 0);

    if (entry->lot == OVERTAKE_LATE)
        far = entry->in->far_s * LATE_TIMES;
    return entry->since_s +
           MIN(MAX(far, patient(sched, entry->own_s)), sched->queue->predict.bound_s);
}

static bool is_large(const struct sched *sched, const struct job *job,
                     const struct overtake_entry *entry)
{
    const struct histogram *sizes = &entry->in->sizes;

    return histogram_bucket(predict_run_s(sched, job) * entry->share) >=
           histogram_tip(sizes, LARGE_PART);
}

/* To where it comes up when it may be due. */
static void list_again(struct sched *sched, const struct job *job, struct overtake_entry *entry,
                       int64_t now_s)
{
    int64_t own_s = entry->since_s + patient(sched, entry->own_s);
    bool known = entry->in->delays.total >= LATEST_PART;

    entry->listed = true;
    if (own_s > now_s || !known || entry->lot == OVERTAKE_LATE)
        moment_put(&entry->in->owns, (struct moment){ due_s(sched, job, entry), job->id });
    else
        moment_put(&entry->in->nears,
                   (struct moment){ entry->since_s - left_s(sched, job, entry), job->id });
}

/* It came up in one of the heaps. */
static void look_at(struct sched *sched, struct moments *from, int64_t now_s)
{
    uint32_t job_id = moment_take(from).job_id;
    const struct job *job = state_job(sched->state, job_id);
    struct overtake_entry *entry = overtake_entry_of(sched, job_id);

    if (!entry)
        return;
    if (from != &entry->in->olds)
        entry->listed = false;
    if (!job || entry->where != ENTRY_WAITS || entry->lot == OVERTAKE_DUE)
        return;
    if (due_s(sched, job, entry) > now_s) {
        if (!entry->listed)
            list_again(sched, job, entry, now_s);
        return;
    }
    if (entry->lot == OVERTAKE_USUAL && sched->queue->predict.patience &&
        sched->queue->predict.late && entry->in->late >= LATE_ONE &&
        is_large(sched, job, entry)) { /* (3) */
        entry->in->late -= LATE_ONE;
        entry->lot = OVERTAKE_LATE;
        list_again(sched, job, entry, now_s);
    } else {
        entry->lot = OVERTAKE_DUE;
    }
    sched->hooks->reorder(sched, job);
    sched->queue->preempt_changed = true;
}

/* When the next one may be due: only then somebody has to make room for it. */
static void wake_at(struct sched *sched, const struct overtake *in)
{
    int64_t next_s = INT64_MAX / US_PER_S;

    if (!sched->queue->predict.preempts)
        return;
    if (in->olds.items.len)
        next_s = MIN(next_s, in->olds.items.items[0].at_s);
    if (in->owns.items.len)
        next_s = MIN(next_s, in->owns.items.items[0].at_s);
    if (in->nears.items.len)
        next_s = MIN(next_s, in->nears.items.items[0].at_s + patient(sched, in->far_s));
    sched->queue->preempt_wake_us =
        MIN(sched->queue->preempt_wake_us, MAX(next_s * US_PER_S, sched->now_us + 1));
}

void overtake_look(struct sched *sched, unsigned *budget)
{
    int64_t now_s = sched->now_us / US_PER_S;

    if (sched->queue->predict.by != ORDER_BY_SIZE)
        return;
    map_each (entry, &sched->queue->predict.overtakes) {
        struct overtake *in = entry->value;
        int64_t from_s = now_s - patient(sched, in->far_s);
        for (unsigned n = 0; n<LOOK_MOST && * budget> 1; n++) {
            struct moments *from = moment_is_due(&in->olds, now_s)     ? &in->olds
                                   : moment_is_due(&in->owns, now_s)   ? &in->owns
                                   : moment_is_due(&in->nears, from_s) ? &in->nears
                                                                       : NULL;
            if (!from)
                break;
            look_at(sched, from, now_s);
            budget_take(budget, 1);
        }
        wake_at(sched, in);
    }
}
