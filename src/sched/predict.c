/* SPDX-License-Identifier: Apache-2.0 */
/*
 * predict.c - who goes first, where that is not the priority
 *
 * By default the order is the priority. With `order = "sjf"` it is the time limit. With `order =
 * "predict"` a job's place is a moment: when it was submitted, and later by `order_stretch` hours
 * times the square root of its expected size in GPU-hours, but by no more than `order_bound`. So a
 * small job overtakes large ones that came shortly before it, and nobody is overtaken by what came
 * more than the bound after him. The root keeps the largest from waiting for ever in a long queue.
 *
 * (1) What is expected is learned from jobs that ended, nothing else. Jobs are alike when user, name
 *     and shape are the same; failing that user and shape, shape, or nothing at all. Each of these
 *     has two guesses, the mean of what such jobs ran and the part of their limit that they used,
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
#include "sched/sched_priv.h"

enum {
    KEYS_MOST = 1 << 16,
    PART_ONE = 4096,
    WINDOW = 16,       /* a job counts 1/16 of what is known of its kind */
    ENOUGH = 3,        /* of which so many must have been seen */
    LEVELS = 4,        /* of likeness */
    ANEW_AFTER = 64,   /* jobs learned, and a quarter more than before: all places anew */
    UNKNOWN_S = 86400, /* a job without a limit of which nothing is known */
    LARGEST_S = 1 << 30,
};
/* Places are moments after this one, in seconds. */
#define PLACES_BEGIN_S INT64_C(1500000000)

void predict_init(struct sched *sched)
{
    map_init(&sched->predict.young);
    map_init(&sched->predict.old);
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
    forget(&sched->predict.young);
    forget(&sched->predict.old);
    map_done(&sched->predict.young);
    map_done(&sched->predict.old);
}

void predict_read_config(struct sched *sched)
{
    const Config *config = state_config(sched->state);
    const char *order = config->scheduler_order;

    sched->predict.by = str_ieq(order, "sjf")       ? ORDER_BY_LIMIT
                        : str_ieq(order, "predict") ? ORDER_BY_SIZE
                                                    : ORDER_BY_PRIORITY;
    sched->predict.stretch = config->has_order_stretch ? config->order_stretch : 20;
    sched->predict.bound_s = config->has_order_bound_s && config->order_bound_s >= 0
                                 ? MIN(config->order_bound_s, LARGEST_S)
                                 : LARGEST_S;
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

/* Binary logarithm in 1/256, straight between powers of two. */
static int64_t log2_256(int64_t value)
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
    return bounded(bounded(limit_s) * seen->part / PART_ONE);
}

static void count_miss(uint32_t *miss, int64_t guess_s, int64_t ran_s, uint32_t weight)
{
    int64_t off = log2_256(guess_s) - log2_256(ran_s);

    off = off < 0 ? -off : off;
    *miss = (uint32_t)((int64_t)*miss + (off - (int64_t)*miss) / (int64_t)weight);
}

static void see(struct seen *seen, int64_t ran_s, int64_t limit_s)
{
    int64_t part = limit_s > 0 ? ran_s * PART_ONE / bounded(limit_s) : PART_ONE;
    uint32_t weight = MIN(seen->count + 1, WINDOW);

    if (seen->count) {
        uint32_t trials = MIN(seen->count, WINDOW);
        count_miss(&seen->miss[0], seen->mean_s, ran_s, trials);
        count_miss(&seen->miss[1], by_part(seen, limit_s), ran_s, trials);
    }
    seen->mean_s += (ran_s - seen->mean_s) / (int64_t)weight;
    seen->part += (MIN(part, 4 * PART_ONE) - seen->part) / (int64_t)weight;
    seen->count = MIN(seen->count + 1, WINDOW);
}

static void learn(struct sched *sched, const struct job *job, int64_t start_us, int64_t end_us)
{
    struct predict *predict = &sched->predict;
    uint64_t keys[LEVELS];

    if (predict->by != ORDER_BY_SIZE || start_us <= 0 || end_us < start_us ||
        job->state == JOB_CANCELLED || job->state == JOB_NODE_FAIL)
        return;
    int64_t ran = bounded((end_us - start_us) / US_PER_S);
    keys_of(job, keys);
    for (int i = 0; i < LEVELS; i++)
        see(find_or_make(predict, keys[i]), ran, job->time_limit_s);
    if (++predict->learned >= predict->reread + predict->reread / 4 + ANEW_AFTER) {
        predict->reread = predict->learned;
        sched->sweep_id = 1; /* each job to its new place, some in each slice: limits_sweep() */
    }
}

void predict_learn(struct sched *sched, const struct event *event)
{
    learn(sched, event->job, event->start_us, event->end_us);
}

void predict_recall(struct sched *sched)
{
    for (const struct job *job = state_job_from(sched->state, 1);
         sched->predict.by == ORDER_BY_SIZE && job;
         job = state_job_from(sched->state, (uint64_t)job->id + 1)) {
        if (job_has_ended(job) && job->run)
            learn(sched, job, job->run->start_us, job->end_us);
    }
    if (sched->predict.learned)
        sched->sweep_id = 1;
}

int64_t predict_run_s(const struct sched *sched, const struct job *job)
{
    int64_t limit = job->time_limit_s > 0 ? bounded(job->time_limit_s) : 0;
    int64_t best = limit ? limit : UNKNOWN_S;
    uint32_t miss = UINT32_MAX;
    uint64_t keys[LEVELS];

    keys_of(job, keys);
    for (int i = 0; i < LEVELS; i++) {
        const struct seen *seen = find(&sched->predict, keys[i]);
        if (!seen || seen->count < ENOUGH)
            continue;
        if (seen->miss[0] < miss) {
            miss = seen->miss[0];
            best = bounded(seen->mean_s);
        }
        if (limit && seen->miss[1] < miss) {
            miss = seen->miss[1];
            best = by_part(seen, limit);
        }
    }
    return limit ? MIN(best, limit) : best;
}

/* ---- the order ---- */

/* The whole part of the square root. */
static int64_t root(int64_t value)
{
    int64_t out = 0;

    for (int64_t bit = INT64_C(1) << 30; bit; bit >>= 1) {
        if ((out | bit) * (out | bit) <= value)
            out |= bit;
    }
    return out;
}

static uint32_t place_at(int64_t seconds)
{
    return (uint32_t)MIN(MAX(seconds, 0), (int64_t)UINT32_MAX);
}

uint64_t predict_place(const struct sched *sched, const struct job *job, bool own)
{
    const struct predict *predict = &sched->predict;
    int64_t width = (int64_t)MIN(MAX(shape_gpus(job->shape), job->shape->min_nodes), 1 << 20);

    switch (predict->by) {
    case ORDER_BY_LIMIT:
        return place_at((job->time_limit_s > 0 ? bounded(job->time_limit_s) : LARGEST_S) +
                        job->nice);
    case ORDER_BY_SIZE: {
        /* No product overflows: 2^30 s, 2^20 wide, 2^12; the root is below 2^31, the stretch 2^20. */
        int64_t size = predict_run_s(sched, job) * MAX(width, 1);
        int64_t later = (int64_t)predict->stretch * root(size * 3600);
        return place_at(job->submit_us / US_PER_S - PLACES_BEGIN_S + MIN(later, predict->bound_s) +
                        job->nice);
    }
    default:
        if (priority_is_basic(sched->state))
            return UINT32_MAX - job->priority;
        return (UINT64_C(1) << 48) - 1 -
               (own ? job_order_key_own(sched->state, job) : job_order_key(sched->state, job));
    }
}
