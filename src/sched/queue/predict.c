/* SPDX-License-Identifier: Apache-2.0 */
/*
 * predict.c - who goes first, where that is not the priority
 *
 * By default the order is the priority. With `order = "sjf"` it is the time limit. With `order =
 * "predict"` those go first of which least is left to do, by what is expected of them, until they
 * have waited long enough: overtake.c.
 *
 * (1) What is expected is learned from jobs that ended, nothing else. Jobs are alike when user, name
 *     and shape are the same; failing that user and shape, shape, or nothing at all. Each of these
 *     has two guesses, the mean of what such jobs ran and the part of all their limits that they used,
 *     and keeps count of how far off each has been. The guess that was least wrong is taken.
 * (2) No more than KEYS_MOST kinds of jobs are known. When there are more, those not seen since the
 *     last time are forgotten.
 * (3) Whole numbers only, so that every replica has the same order. The memory itself is not part
 *     of the state: after a restart it begins with the jobs that are not forgotten yet, and others
 *     go by their limits until it is back.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "core/preempt.h"
#include "sched/queue/queue.h"

enum {
    KEYS_MOST = 1 << 16,
    PART_ONE = 4096,
    ENOUGH = 3, /* of which so many must have been seen */
    LOG_PARTS = 16,
    LEVELS = 4,        /* of likeness */
    ANEW_AFTER = 64,   /* jobs learned, and a quarter more than before: all places anew */
    UNKNOWN_S = 86400, /* a job without a limit of which nothing is known */
    LARGEST_S = 1 << 30,
};
/* A job counts so much of what is known of its kind; more kinds of jobs need more of them. */
static const uint32_t windows[LEVELS] = { 16, 16, 64, 256 };
/* Places are moments after this one, in seconds. */
#define PLACES_BEGIN_S INT64_C(1500000000)

void predict_init(struct sched *sched)
{
    map_init(&sched->queue->predict.young);
    map_init(&sched->queue->predict.old);
    map_init(&sched->queue->predict.overtakes);
    map_init(&sched->queue->predict.entries);
}

static void forget(struct map *map)
{
    map_each (entry, map)
        free(entry->value);
    map_done(map);
    map_init(map);
}

void predict_done(struct sched *sched)
{
    overtake_done(sched);
    forget(&sched->queue->predict.young);
    forget(&sched->queue->predict.old);
    map_done(&sched->queue->predict.young);
    map_done(&sched->queue->predict.old);
    map_done(&sched->queue->predict.overtakes);
    map_done(&sched->queue->predict.entries);
}

/* ---- what is known ---- */

static void keys_of(const struct job *job, uint64_t keys[LEVELS])
{
    struct span name = job_name(job);
    uint64_t shape = job->shape->head.hash;
    uint64_t user = hash_mix(shape ^ (uint64_t)job->owner->uid << 32);

    keys[0] = hash_bytes(name.ptr, name.len, user) | 1;
    keys[1] = hash_mix(user + 1) | 1;
    keys[2] = hash_mix(shape + 2) | 1;
    keys[3] = 1;
}

static struct seen *find(const struct predict *predict, uint64_t key)
{
    struct seen *seen = map_get_num(&predict->young, key);

    return seen ? seen : map_get_num(&predict->old, key);
}

/* (2) */
static struct seen *find_or_make(struct predict *predict, uint64_t key)
{
    struct seen *seen = map_get_num(&predict->young, key);

    if (seen)
        return seen;
    seen = map_del_num(&predict->old, key);
    if (!seen)
        seen = NEW(struct seen);
    if (map_len(&predict->young) >= KEYS_MOST) {
        forget(&predict->old);
        map_done(&predict->old);
        predict->old = predict->young;
        map_init(&predict->young);
    }
    map_put_num(&predict->young, key, seen);
    return seen;
}

int64_t predict_log(int64_t value)
{
    uint64_t number = value < 1 ? 1 : (uint64_t)value;
    unsigned top = 63 - (unsigned)__builtin_clzll(number);
    uint64_t rest = top >= 8 ? number >> (top - 8) : number << (8 - top);

    return (int64_t)top * 256 + (int64_t)(rest - 256);
}

static int64_t bounded(int64_t seconds)
{
    return MIN(MAX(seconds, 1), LARGEST_S);
}

static int64_t by_part(const struct seen *seen, int64_t limit_s)
{
    int64_t part = seen->ran_s * PART_ONE / MAX(seen->limit_s, 1);

    return bounded(bounded(limit_s) * MIN(part, 4 * PART_ONE) / PART_ONE);
}

static void count_miss(uint32_t *miss, int64_t guess_s, int64_t ran_s, uint32_t weight)
{
    int64_t off = predict_log(guess_s) - predict_log(ran_s);

    off = off < 0 ? -off : off;
    *miss = (uint32_t)((int64_t)*miss + (off - (int64_t)*miss) / (int64_t)weight);
}

static void see(struct seen *seen, uint32_t window, int64_t ran_s, int64_t limit_s)
{
    uint32_t weight = MIN(seen->count + 1, window);

    if (seen->count) {
        uint32_t trials = MIN(seen->count, window);
        count_miss(&seen->miss[0], seen->mean_s, ran_s, trials);
        count_miss(&seen->miss[1], by_part(seen, limit_s), ran_s, trials);
    }
    seen->mean_s += (ran_s - seen->mean_s) / (int64_t)weight;
    seen->log += (predict_log(ran_s) * LOG_PARTS - seen->log) / (int64_t)weight;
    if (limit_s > 0) { /* of both together: one that asked for much counts for much */
        bool full = seen->count == window;
        seen->ran_s += ran_s - (full ? seen->ran_s / window : 0);
        seen->limit_s += bounded(limit_s) - (full ? seen->limit_s / window : 0);
    }
    seen->count = MIN(seen->count + 1, window);
}

static void learn(struct sched *sched, const struct job *job, int64_t start_us, int64_t end_us)
{
    struct predict *predict = &sched->queue->predict;
    uint64_t keys[LEVELS];

    if (predict->by != ORDER_BY_SIZE || start_us <= 0 || end_us < start_us ||
        job->state == JOB_CANCELLED || job->state == JOB_NODE_FAIL)
        return;
    int64_t ran = bounded((end_us - start_us) / US_PER_S + overtake_ran_s(sched, job->id));
    keys_of(job, keys);
    for (int i = 0; i < LEVELS; i++)
        see(find_or_make(predict, keys[i]), windows[i], ran, job->time_limit_s);
    if (++predict->learned >= predict->reread + predict->reread / 4 + ANEW_AFTER) {
        predict->reread = predict->learned;
        sched->queue->sweep_id =
            1; /* each job to its new place, some in each slice: limits_sweep() */
    }
}

void predict_hear(struct sched *sched, const struct event *event)
{
    const struct job *job = event->job;

    if (sched->queue->predict.by != ORDER_BY_SIZE)
        return;
    switch (event->kind) {
    case EVENT_JOB_FORGOTTEN:
        overtake_forget(sched, event->job_id);
        return;
    case EVENT_JOB_ENDED:
        learn(sched, job, event->start_us, event->end_us);
        break;
    case EVENT_JOB_SUBMITTED:
    case EVENT_JOB_ELIGIBLE:
    case EVENT_JOB_WAITING:
    case EVENT_JOB_STARTED:
    case EVENT_JOB_CLEAN:
    case EVENT_JOB_CHANGED:
    case EVENT_JOB_SUSPENDED:
    case EVENT_JOB_RESUMED:
    case EVENT_TASKS_CANCELLED:
    case EVENT_TASK_SPLIT:
    case EVENT_JOB_REQUEUED:
        break;
    default:
        return;
    }
    const struct job *first = event->array_id ? state_job(sched->state, event->array_id) : NULL;
    bool kept = event->kind == EVENT_JOB_REQUEUED && event->end_state == JOB_PREEMPTED;
    overtake_hear(sched, job, kept ? event->end_us - event->start_us : 0);
    if (first && first != job)
        overtake_hear(sched, first, 0);
}

/* The jobs that there were before there was such an order, as far as they are still known. */
static void recall(struct sched *sched)
{
    for (const struct job *job = state_job_from(sched->state, 1); job;
         job = state_job_from(sched->state, (uint64_t)job->id + 1)) {
        if (job_has_ended(job) && job->run)
            learn(sched, job, job->run->start_us, job->end_us);
        else
            overtake_hear(sched, job, 0);
    }
    if (sched->queue->predict.learned)
        sched->queue->sweep_id = 1;
}

void predict_read_config(struct sched *sched)
{
    const Config *config = state_config(sched->state);
    const char *order = config->scheduler_order;
    struct predict *predict = &sched->queue->predict;
    enum order_by was = predict->by;

    predict->by = str_ieq(order, "sjf")       ? ORDER_BY_LIMIT
                  : str_ieq(order, "predict") ? ORDER_BY_SIZE
                                              : ORDER_BY_PRIORITY;
    predict->preempts = predict->by == ORDER_BY_SIZE && preempt_by_size(sched->state);
    predict->patience = config->has_order_patience ? config->order_patience : 75;
    predict->late = config->has_order_late ? config->order_late : 9;
    predict->bound_s = config->has_order_bound_s && config->order_bound_s >= 0
                           ? MIN(config->order_bound_s, LARGEST_S)
                           : LARGEST_S;
    if (predict->by != ORDER_BY_SIZE)
        overtake_done(sched);
    else if (was != ORDER_BY_SIZE)
        recall(sched);
}

/* What predict_log() is the logarithm of. */
static int64_t from_log(int64_t log)
{
    int64_t top = log / 256, rest = 256 + log % 256;

    return bounded(top >= 8 ? rest << (top - 8) : rest >> (8 - top));
}

static int64_t guess(const struct sched *sched, const struct job *job, bool usual)
{
    int64_t limit = job->time_limit_s > 0 ? bounded(job->time_limit_s) : 0;
    int64_t best = limit ? limit : UNKNOWN_S;
    uint32_t miss = UINT32_MAX;
    uint64_t keys[LEVELS];

    keys_of(job, keys);
    for (int i = 0; i < LEVELS; i++) {
        const struct seen *seen = find(&sched->queue->predict, keys[i]);
        if (!seen || seen->count < ENOUGH)
            continue;
        if (seen->miss[0] < miss) {
            miss = seen->miss[0];
            best = usual ? from_log(seen->log / LOG_PARTS) : bounded(seen->mean_s);
        }
        if (limit && seen->miss[1] < miss) {
            miss = seen->miss[1];
            best = by_part(seen, limit);
        }
    }
    return limit ? MIN(best, limit) : best;
}

int64_t predict_run_s(const struct sched *sched, const struct job *job)
{
    return guess(sched, job, false);
}

int64_t predict_usual_s(const struct sched *sched, const struct job *job)
{
    return guess(sched, job, true);
}

/* ---- the order ---- */

static uint32_t place_at(int64_t seconds)
{
    return (uint32_t)MIN(MAX(seconds, 0), (int64_t)UINT32_MAX);
}

/* Two bits for its lot, then by size; what is due goes by the time it came. */
static uint64_t place_by_size(const struct sched *sched, const struct job *job)
{
    int64_t since_s;
    enum overtake_lot lot = overtake_lot(sched, job, &since_s);

    if (lot == OVERTAKE_DUE)
        return place_at(since_s - PLACES_BEGIN_S + job->nice);
    return (uint64_t)lot << OVERTAKE_SHIFT |
           (uint64_t)MAX(overtake_size(sched, job) + job->nice, 0);
}

uint64_t predict_place(const struct sched *sched, const struct job *job,
                       const struct partition *partition, bool own)
{
    switch (sched->queue->predict.by) {
    case ORDER_BY_LIMIT:
        return place_at((job->time_limit_s > 0 ? bounded(job->time_limit_s) : LARGEST_S) +
                        job->nice);
    case ORDER_BY_SIZE:
        return place_by_size(sched, job);
    default:
        if (priority_is_basic(sched->state))
            return UINT32_MAX - job->priority;
        return (UINT64_C(1) << 48) - 1 - job_order_key_in(sched->state, job, partition, own);
    }
}
