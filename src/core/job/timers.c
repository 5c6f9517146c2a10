/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timers.c - what happens because time has passed
 *
 * Heaps of the next moment at which each job needs CmdTime; ties go by id. What is due follows from
 * the records and the configuration alone, never from the time, so a restored state has the same.
 *
 * (1) What the configuration says (MinJobAge, OverTimeLimit, ...) is added to all times of a heap
 *     when it is asked for the first one. So no job is looked at when it changes.
 * (2) A partition's own OverTimeLimit is in the times of its heap: timers_follow() when that changes.
 * (3) While there is something to tell (dep_notify.c) nothing here is due: a job that is to be told may be
 *     here with a time that is not right any more.
 * (4) Time that did not pass (a clock that was set, nobody who led) is kept once for all running jobs
 *     and added as (1) is; what a job has of its own is relative to that.
 */
#include "core/job/jobs.h"
#include "core/level.h"

#include <string.h>

#include "base/hash.h"

/*
 * The node enforces the limit; the controller ends what outlived it by this much and by the time
 * after which it gives up a node: until then the job may have begun late, or ended in time on a node
 * that cannot say so.
 */
enum { DEFAULT_KILL_WAIT_S = 30, DEFAULT_MIN_JOB_AGE_S = 300 };
enum { DEFAULT_AGENT_TIMEOUT_S = 300 };
/* CPUs of a suspended job wait so long for the job that it was suspended for. */
enum { LENT_WAIT_S = 60 };

/* How long a node may be silent before it is given up with its jobs. */
int64_t timers_silence_s(const struct state *state)
{
    const Config *config = state->config;

    return config->has_agent_timeout_s && config->agent_timeout_s ? config->agent_timeout_s
                                                                  : DEFAULT_AGENT_TIMEOUT_S;
}

/* Jobs of a silent node stay for ever. Builds before levels waited for the default. */
static bool waits_for_ever(const struct state *state)
{
    const Config *config = state->config;

    return config->has_agent_timeout_s && !config->agent_timeout_s &&
           state_level(state) >= LEVEL_LEVELS;
}

/* A partition's own, or NULL. */
static const uint32_t *own_over(const struct state *state, const struct job *job)
{
    const struct partition *partition = partition_at(state, job->run->partition);

    return partition && partition->spec->has_over_time_limit_min
               ? &partition->spec->over_time_limit_min
               : NULL;
}

static int64_t over_us(uint32_t minutes)
{
    return minutes > 60 * 24 * 366 ? NEVER : minutes * 60 * US_PER_S;
}

static int64_t plus(int64_t us, int64_t more)
{
    return us == NEVER || more == NEVER ? NEVER : us + more;
}

/* (1), (4) */
static int64_t added(const struct state *state, enum timer_kind in)
{
    const Config *config = state->config;
    int64_t kill_wait = config->has_kill_wait_s ? config->kill_wait_s : DEFAULT_KILL_WAIT_S;
    int64_t limit =
        (kill_wait + timers_silence_s(state) + LIMIT_GRACE_S) * US_PER_S + state->skipped_us;
    if (waits_for_ever(state))
        limit = NEVER;
    int64_t age = config->has_min_job_age_s ? config->min_job_age_s : DEFAULT_MIN_JOB_AGE_S;

    switch (in) {
    case TIMER_LIMIT:
        return plus(over_us(config->over_time_limit_min), limit);
    case TIMER_LIMIT_OWN:
        return limit;
    case TIMER_FORGET:
        return age ? age * US_PER_S : NEVER;
    default:
        return 0;
    }
}

/* (2) */
static int64_t limit_due(const struct state *state, const struct job *job, enum timer_kind *in)
{
    int64_t end =
        job_end_by(job, job->run->start_us + job->run->suspended_total_us + job->run->skipped_us);
    const uint32_t *over = own_over(state, job);

    *in = over ? TIMER_LIMIT_OWN : TIMER_LIMIT;
    return over ? plus(end, over_us(*over)) : end;
}

/* After this a pending job cannot end before its deadline. */
int64_t timers_deadline(const struct job *job, bool pending)
{
    if (!job->more || !job->more->deadline_us)
        return NEVER;
    if (!pending)
        return job->more->deadline_us;
    int64_t shortest = job->more->time_min_s   ? job->more->time_min_s
                       : job->time_limit_s > 0 ? job->time_limit_s
                                               : 0;
    return job->more->deadline_us - shortest * US_PER_S;
}

/* It makes room then, or its CPUs are not kept for who wanted them any longer. */
int64_t timers_preempt(const struct job *job)
{
    if (job->more && job->more->preempt_end_us)
        return job->more->preempt_end_us;
    if (job->run->lent && job->more && job->more->preempted_by)
        return job->more->preempt_us + LENT_WAIT_S * US_PER_S;
    return NEVER;
}

static int64_t forget_due(const struct job *job)
{
    return job->array && job->id == job->array->id && job->array->records ? NEVER : job->end_us;
}

/* What is told of a running job's time limit, the last part first. */
static const struct {
    uint16_t mail;
    unsigned percent;
} told[] = {
    { MAIL_TIME100, 100 },
    { MAIL_TIME90, 90 },
    { MAIL_TIME80, 80 },
    { MAIL_TIME50, 50 },
};

static int64_t told_at(const struct job *job, unsigned percent)
{
    int64_t limit_us = job->time_limit_s * US_PER_S;

    return job->run->start_us + job->run->suspended_total_us + limit_us / 100 * percent;
}

int64_t timers_mail_due(const struct job *job)
{
    uint16_t left = job->more ? job->more->mail_times & ~job->more->mail_sent : 0;
    int64_t due = NEVER;

    if (!left || job->time_limit_s <= 0)
        return NEVER;
    for (size_t i = 0; i < ARRAY_LEN(told); i++) {
        if (left & told[i].mail)
            due = told_at(job, told[i].percent);
    }
    return due;
}

/* Of several that were reached meanwhile the last one says it all. */
void timers_mail(struct state *state, struct job *job, struct events *out)
{
    uint16_t left = job->more->mail_times & ~job->more->mail_sent;
    uint32_t last = 0;

    for (size_t i = 0; i < ARRAY_LEN(told); i++) {
        if (!(left & told[i].mail) || told_at(job, told[i].percent) > state->time_us)
            continue;
        last = last ? last : told[i].mail;
        job->more->mail_sent |= told[i].mail;
    }
    emit_job(out, EVENT_JOB_TIME, job)->mail = last;
    timers_update(state, job);
    job_touch(state, job);
}

/* When it is due, in which heap, and when it is besides. */
static int64_t due_of(const struct state *state, const struct job *job, enum timer_kind *in,
                      int64_t *besides)
{
    int64_t due = NEVER;

    *in = TIMER_FIXED;
    *besides = NEVER;
    switch (job_phase(job)) {
    case PHASE_PENDING:
        if (!job->hold && !job->deps && !job->eligible_us)
            due = job_begin_us(job);
        due = MIN(MIN(due, backoff_due(job)), deps_due(state, job));
        return MIN(due, timers_deadline(job, true));
    case PHASE_CONFIGURING: /* the limit counts from the launch */
        return timers_deadline(job, false);
    case PHASE_RUNNING:
        *besides = MIN(MIN(timers_mail_due(job), timers_deadline(job, false)), timers_preempt(job));
        return limit_due(state, job, in);
    case PHASE_ENDED:
        *in = TIMER_FORGET;
        return forget_due(job);
    case PHASE_SUSPENDED:
        return timers_preempt(job);
    case PHASE_COMPLETING:
    case PHASE_REQUEUING:
        break;
    }
    return NEVER;
}

/* ---- heaps ---- */

static bool sooner(const struct timer *a, const struct timer *b)
{
    return a->us != b->us ? a->us < b->us : a->job->id < b->job->id;
}

/* Where a job keeps its place in a heap, + 1. */
static uint32_t *place_of(struct job *job, enum timer_kind in)
{
    return in == TIMER_BESIDES ? &job->more->due_at : &job->due_at;
}

static void put(struct timer_heap *heap, enum timer_kind in, size_t at, struct timer due)
{
    *paged_at(heap, at) = due;
    *place_of(due.job, in) = (uint32_t)at + 1;
}

static void sift(struct timer_heap *heap, enum timer_kind in, size_t at)
{
    struct timer due = *paged_at(heap, at);

    for (; at > 0 && sooner(&due, paged_at(heap, (at - 1) / 2)); at = (at - 1) / 2)
        put(heap, in, at, *paged_at(heap, (at - 1) / 2));
    for (;;) {
        size_t child = at * 2 + 1;
        if (child + 1 < heap->len && sooner(paged_at(heap, child + 1), paged_at(heap, child)))
            child++;
        if (child >= heap->len || !sooner(paged_at(heap, child), &due))
            break;
        put(heap, in, at, *paged_at(heap, child));
        at = child;
    }
    put(heap, in, at, due);
}

static void leave(struct state *state, struct job *job, enum timer_kind in)
{
    struct timer_heap *heap = &state->timers[in];
    uint32_t *place = place_of(job, in);

    if (!*place)
        return;
    size_t at = *place - 1;
    *place = 0;
    struct timer last = *paged_at(heap, heap->len - 1);
    paged_pop(heap);
    if (at < heap->len) {
        put(heap, in, at, last);
        sift(heap, in, at);
    }
}

static void enter(struct state *state, struct job *job, enum timer_kind in, int64_t us)
{
    struct timer_heap *heap = &state->timers[in];
    uint32_t *place = place_of(job, in);

    if (*place) {
        paged_at(heap, *place - 1)->us = us;
        sift(heap, in, *place - 1);
    } else {
        paged_push(heap, (struct timer){ us, job });
        *place = (uint32_t)heap->len;
        sift(heap, in, heap->len - 1);
    }
}

void timers_remove(struct state *state, struct job *job)
{
    leave(state, job, (enum timer_kind)job->timer_kind);
    if (job->more)
        leave(state, job, TIMER_BESIDES);
}

void timers_update(struct state *state, struct job *job)
{
    int64_t besides;
    enum timer_kind in;
    int64_t us = due_of(state, job, &in, &besides);

    if (us == NEVER || in != (enum timer_kind)job->timer_kind)
        leave(state, job, (enum timer_kind)job->timer_kind);
    job->timer_kind = in & 3;
    if (us != NEVER)
        enter(state, job, in, us);
    if (besides != NEVER)
        enter(state, job, TIMER_BESIDES, besides);
    else if (job->more)
        leave(state, job, TIMER_BESIDES);
}

void timers_restored(struct state *state)
{
    for (const struct job *job = state_job_from(state, 0); job;
         job = state_job_from(state, (uint64_t)job->id + 1))
        timers_update(state, job_at(state, job->id));
}

uint64_t timers_partitions(const struct state *state)
{
    uint64_t sum = 0;

    vec_each (struct partition *, at, &state->partitions) {
        const PartitionSpec *spec = (*at)->spec;
        if (spec->has_over_time_limit_min)
            sum += hash_bytes(spec->name, strlen(spec->name), spec->over_time_limit_min);
    }
    return sum;
}

static void follow(struct state *state, struct job *job, void *ctx)
{
    (void)ctx;
    if (job_phase(job) == PHASE_RUNNING)
        timers_update(state, job);
}

void timers_follow(struct state *state, uint64_t before)
{
    if (timers_partitions(state) != before)
        node_jobs_each(state, follow, NULL);
}

/* The first of all heaps; NULL when nothing is due ever. */
const struct timer *timers_first(const struct state *state, int64_t *us)
{
    const struct timer *first = NULL;

    *us = NEVER;
    for (enum timer_kind in = 0; in < TIMER_HEAPS; in++) {
        if (!state->timers[in].len)
            continue;
        const struct timer *top = paged_at(&state->timers[in], 0);
        int64_t at = plus(top->us, added(state, in));
        if (at < *us || (first && at == *us && top->job->id < first->job->id)) {
            *us = at;
            first = top;
        }
    }
    return first;
}

int64_t core_next_due(const struct state *state)
{
    int64_t due;

    if (state->dep_pending.first)
        return state->time_us;
    timers_first(state, &due);
    due = MIN(due, gang_next_us(state));
    due = MIN(MIN(due, state->next_reboot_us), state->next_trigger_us);
    return MIN(MIN(due, usage_next_due(state)), state->next_reservation_us);
}

size_t timers_count(const struct state *state)
{
    size_t count = 0;

    for (enum timer_kind in = 0; in < TIMER_BESIDES; in++)
        count += state->timers[in].len;
    return count;
}

int timers_check(const struct state *state, struct err *err)
{
    for (enum timer_kind in = 0; in < TIMER_HEAPS; in++) {
        const struct timer_heap *heap = &state->timers[in];
        for (size_t i = 0; i < heap->len; i++) {
            const struct timer *item = paged_at(heap, i);
            struct job *job = item->job;
            enum timer_kind is;
            int64_t besides, us = due_of(state, job, &is, &besides);
            bool right = state->dep_pending.first && job->deps ? true /* (3) */
                         : in == TIMER_BESIDES                 ? item->us == besides
                                                               : item->us == us && is == in;
            if (!right || *place_of(job, in) != i + 1)
                return err_set(err, ERR_INTERNAL, "core: job %u: its due time is not right",
                               job->id);
            if (i && sooner(item, paged_at(heap, (i - 1) / 2)))
                return err_set(err, ERR_INTERNAL, "core: due: not a heap at %zu", i);
        }
    }
    return 0;
}

/* ---- time ---- */

struct below {
    const struct timer_heap *heap;
    int64_t until_us; /* in the times of the heap */
    void (*each)(void *ctx, const struct job *job);
    void *ctx;
};

static void limits_below(const struct below *below, size_t at)
{
    if (at >= below->heap->len || paged_at(below->heap, at)->us > below->until_us)
        return;
    below->each(below->ctx, paged_at(below->heap, at)->job);
    limits_below(below, at * 2 + 1); /* as deep as the heap */
    limits_below(below, at * 2 + 2);
}

void core_limits_due(const struct state *state, int64_t now_us,
                     void (*each)(void *ctx, const struct job *job), void *ctx)
{
    static const enum timer_kind rows[] = { TIMER_LIMIT, TIMER_LIMIT_OWN };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t more = added(state, rows[i]);
        struct below below = { &state->timers[rows[i]], now_us - more, each, ctx };
        if (more != NEVER)
            limits_below(&below, 0);
    }
}
