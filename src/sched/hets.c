/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hets.c - heterogeneous jobs: when all components can start at one moment
 *
 * Each component is asked from when on it can start, with those before it in place. Is that later for one of
 * them, all are placed anew from then on.
 *
 * (1) What is tried is among the forecasts of hosts only while this is worked out. When something is
 *     booked there are no others.
 * (2) A component that finds no room beside those before it is placed first the next time: it can use less
 *     than they can. Orders that were not tried may have done; the start is then later than it could be.
 * (3) On very many hosts a start that is tried takes as long as a slice. What is booked goes on from the next
 *     one in the next slice, and nothing behind it is planned meanwhile.
 */
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "sched/sched_priv.h"

/* Of one job, so that it is no hindrance to none of the others; no job has it. */
#define TRIED_ID UINT32_MAX

/* Orders for one start; starts that are tried one after the other, before all that are left are halved. */
enum { MOVES_MOST = 12, STARTS_MOST = 12, LOOKS_MOST = 2048 };

const struct job *het_first(const struct sched *sched, const struct job *job)
{
    const struct job *first =
        job->more && job->more->het_count ? state_job(sched->state, job->more->het_job_id) : NULL;

    return first ? first : job;
}

uint32_t het_count(const struct job *job)
{
    return job->more && job->more->het_count ? job->more->het_count : 1;
}

unsigned het_reason(const struct sched *sched, const struct job *job)
{
    for (uint32_t i = 0; job->more && i < job->more->het_count; i++) {
        const struct job *part = state_job(sched->state, job->more->het_job_id + i);
        if (part && part->state == JOB_PENDING && !job_is_eligible(part))
            return core_job_reason(sched->state, part);
    }
    return 0;
}

/* ---- who is placed first ---- */

/* As they were asked for. */
static void het_turns_begin(struct het_turns *turns)
{
    turns->moves = 0;
    for (uint32_t i = 0; i < turns->count; i++)
        turns->order[i] = i;
}

void het_turns_init(struct het_turns *turns, uint32_t count)
{
    turns->order = count > ARRAY_LEN(turns->few) ? NEW_ARRAY(uint32_t, count) : turns->few;
    turns->count = count;
    het_turns_begin(turns);
}

void het_turns_done(struct het_turns *turns)
{
    if (turns->order != turns->few)
        free(turns->order);
}

/* (2) */
bool het_turns_retry(struct het_turns *turns, uint32_t at)
{
    uint32_t moved = turns->order[at];

    if (at == 0 || turns->moves == (turns->count == 2 ? 1 : MIN(2 * turns->count, MOVES_MOST)))
        return false;
    memmove(&turns->order[1], &turns->order[0], at * sizeof(turns->order[0]));
    turns->order[0] = moved;
    turns->moves++;
    return true;
}

/* ---- the start ---- */

struct together {
    struct sched *sched;
    const struct job *const *jobs;
    struct family **families;
    struct booked *of;
    struct view view;
    unsigned tries;  /* starts that were tried */
    uint64_t looked; /* sched->looked at the beginning */
};

int64_t job_ends_us(const struct job *job, int64_t start_us)
{
    int64_t length = job_length_us(job);

    return start_us + (length == INT64_MAX ? UNLIMITED_US : length);
}

/*
 * Shares may be of a device that was whole before, and what takes the last devices leaves no shares: it is not
 * known yet which they will be.
 */
static struct take with_devices(const struct host *host, const struct take *of)
{
    const struct node *node = host->node;
    struct take take = *of;

    for (size_t i = 0; i < node->gres_count && i < TAKE_GRES; i++) {
        size_t base = node->gres[i].base_at;
        if (!base)
            continue;
        if (of->gres[i])
            take.gres[base - 1] += MAX(of->share_devices, 1);
        if (of->gres[base - 1] && of->gres[base - 1] >= host->free.gres[base - 1])
            take.gres[i] = node->gres[i].per;
    }
    return take;
}

/* (1) */
void tried_put(struct sched *sched, const struct job *job, int64_t start_us, struct booked *of)
{
    for (size_t k = 0; k < of->parts.list.len; k++) {
        const struct chosen *part = &of->parts.list.items[k];
        struct block block = { .start_us = start_us, .job_id = TRIED_ID };
        block.end_us = of->end_us;
        block.partition = of->parts.need->partition->number + 1;
        struct take take = with_devices(&sched->hosts.items[part->host], &part->take);
        block.amount = amount_take(sched, &take, of->parts.need->whole_nodes);
        vec_push(&sched->hosts.items[part->host].forecasts, block);
    }
    of->licences = licences_book(sched, (struct order){ 0, TRIED_ID }, job->shape, &of->parts,
                                 start_us, of->end_us);
}

/* Those of one job are the last of their hosts. */
void tried_take(struct sched *sched, struct booked *of)
{
    for (size_t k = of->parts.list.len; k-- > 0;) {
        struct host *host = &sched->hosts.items[of->parts.list.items[k].host];
        amount_drop(sched, host->forecasts.items[--host->forecasts.len].amount);
    }
    licences_forget(sched, of->licences);
    of->licences = NULL;
}

static void try_add(const struct together *t, uint32_t i)
{
    t->of[i].end_us = job_ends_us(t->jobs[i], t->view.start_us);
    tried_put(t->sched, t->jobs[i], t->view.start_us, &t->of[i]);
}

/*
 * Tries to start all at t->view.start_us. When one cannot, *at is its place, and the result when it could;
 * *at == count: all can.
 */
static int64_t try_all(const struct together *t, const struct het_turns *turns, uint32_t *at)
{
    int64_t start = t->view.start_us;

    for (*at = 0; *at < turns->count; ++*at) {
        uint32_t i = turns->order[*at];
        start = profile_start_from(t->sched, t->families[i], t->jobs[i], &t->view, &t->of[i].parts);
        if (start != t->view.start_us)
            break;
        try_add(t, i);
    }
    for (uint32_t k = *at; k-- > 0;)
        tried_take(t->sched, &t->of[turns->order[k]]);
    return start;
}

/* (3): between two orders; true when the rest is left to the next slice. */
static bool search_pauses(struct together *t, const struct het_turns *turns, int64_t next_us)
{
    struct het_search *search = &t->sched->het_search;

    if (!t->view.sliced || turns->count > ARRAY_LEN(search->order) ||
        t->sched->looked - t->looked < LOOKS_MOST)
        return false;
    /* One at a time: two that took turns would both begin again for ever. */
    if (search->job_id && search->job_id != t->jobs[0]->id &&
        search->saved_us + US_PER_S >= t->view.now_us)
        return false;
    *search = (struct het_search){ .job_id = t->jobs[0]->id, .tries = t->tries, .paused = true };
    search->start_us = t->view.start_us;
    search->saved_us = t->view.now_us;
    search->next_us = next_us;
    search->moves = turns->moves;
    memcpy(search->order, turns->order, turns->count * sizeof(turns->order[0]));
    return true;
}

static void search_resume(struct together *t, struct het_turns *turns, int64_t *next_us)
{
    const struct het_search *search = &t->sched->het_search;

    *next_us = search->next_us;
    t->tries = search->tries;
    turns->moves = search->moves;
    memcpy(turns->order, search->order, turns->count * sizeof(turns->order[0]));
    t->sched->het_search.job_id = 0;
}

static bool search_was_left(const struct together *t)
{
    const struct het_search *search = &t->sched->het_search;

    return t->view.sliced && search->job_id == t->jobs[0]->id &&
           search->saved_us + US_PER_S >= t->view.now_us && search->start_us == t->view.start_us;
}

enum tried { TRIED_NOT, TRIED_YES, TRIED_PART };

/*
 * The same in other orders too; *late is the one that cannot. Not: *next_us is when it may be better. In part:
 * it goes on in the next slice.
 */
static enum tried try_orders(struct together *t, struct het_turns *turns, int64_t *next_us,
                             uint32_t *late)
{
    uint32_t at;

    het_turns_begin(turns);
    *next_us = INT64_MAX;
    if (search_was_left(t))
        search_resume(t, turns, next_us);
    for (;;) {
        int64_t start = try_all(t, turns, &at);
        if (at == turns->count)
            return TRIED_YES;
        *late = turns->order[at];
        /* Alone it cannot before then; beside the others it may be that they could be elsewhere. */
        *next_us = at == 0 ? start : MIN(*next_us, start);
        if (!het_turns_retry(turns, at))
            return TRIED_NOT;
        if (search_pauses(t, turns, *next_us))
            return TRIED_PART;
    }
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

/* When there is more than before on some host, behind t->view.start_us. */
static size_t gather_moments(const struct together *t, int64_t **out)
{
    VEC(int64_t) list = { 0 };

    vec_each (struct host, host, &t->sched->hosts) {
        for (size_t k = 0; k < host->runs.len; k++) {
            if (host->runs.items[k].end_us > t->view.start_us)
                vec_push(&list, host->runs.items[k].end_us);
        }
        for (size_t k = 0; k < host->blocks.len; k++) {
            if (host->blocks.items[k].end_us > t->view.start_us &&
                block_hinders(&host->blocks.items[k], &t->view))
                vec_push(&list, host->blocks.items[k].end_us);
        }
        for (size_t k = 0; k < host->forecasts.len; k++) {
            if (host->forecasts.items[k].end_us > t->view.start_us)
                vec_push(&list, host->forecasts.items[k].end_us);
        }
    }
    if (list.len)
        qsort(list.items, list.len, sizeof(int64_t), by_value);
    t->sched->looked += list.len / 4;
    *out = list.items;
    return list.len;
}

/* The first of all moments that are left, as if what hosts have only grew. */
static int64_t halve(struct together *t, struct het_turns *turns)
{
    int64_t *moments, best = INT64_MAX, next;
    size_t count = gather_moments(t, &moments), low = 0, high = count;
    uint32_t late;

    while (low < high) {
        /* The last one first: then there is all that there will ever be. */
        size_t middle = high == count && best == INT64_MAX ? high - 1 : low + (high - low) / 2;
        t->view.start_us = moments[middle];
        if (try_orders(t, turns, &next, &late) == TRIED_YES) {
            best = moments[middle];
            high = middle;
        } else if (best == INT64_MAX) {
            break;
        } else {
            low = middle + 1;
        }
    }
    free(moments);
    t->view.start_us = best;
    if (best != INT64_MAX) /* the parts are those of the last try */
        try_orders(t, turns, &next, &late);
    return best;
}

static int64_t find_start(struct together *t, struct het_turns *turns, const struct job **last)
{
    const struct het_search *search = &t->sched->het_search;

    t->looked = t->sched->looked;
    if (t->view.sliced && search->job_id == t->jobs[0]->id && search->start_us > t->view.start_us &&
        search->saved_us + US_PER_S >= t->view.now_us)
        t->view.start_us = search->start_us;
    while (t->tries < STARTS_MOST) {
        int64_t next;
        uint32_t late;
        enum tried tried = try_orders(t, turns, &next, &late);
        if (tried == TRIED_PART)
            return HET_LATER;
        if (tried == TRIED_YES)
            return t->view.start_us;
        if (last)
            *last = t->jobs[late];
        if (next == INT64_MAX)
            return INT64_MAX;
        t->view.start_us = next;
        t->tries++;
        turns->moves = 0;
        for (uint32_t i = 0; i < turns->count; i++)
            turns->order[i] = i;
        if (t->tries < STARTS_MOST && search_pauses(t, turns, INT64_MAX))
            return HET_LATER;
    }
    t->view.sliced = false;
    return halve(t, turns);
}

int64_t het_start(struct sched *sched, const struct job *const *jobs, uint32_t count,
                  const struct view *from, bool now_only, struct booked *of,
                  const struct job **last)
{
    struct together t = { .sched = sched, .jobs = jobs, .of = of };
    struct het_turns turns;
    int64_t start = INT64_MAX, next;
    uint32_t late;
    bool able = true;

    t.view = *from;
    t.view.start_us = from->now_us;
    t.view.forecast = true;
    t.view.mine = jobs[0]->id;
    t.families = NEW_ARRAY(struct family *, count);
    het_turns_init(&turns, count);
    for (uint32_t i = 0; i < count; i++) {
        struct mask mask;
        able = job_mask(sched, jobs[i], &mask) && able;
        t.families[i] = family_for(sched, jobs[i]);
    }
    if (able && now_only)
        start = try_orders(&t, &turns, &next, &late) == TRIED_YES ? from->now_us : INT64_MAX;
    else if (able)
        start = find_start(&t, &turns, last);
    for (uint32_t i = 0; i < count; i++) {
        if (start != INT64_MAX && start != HET_LATER)
            of[i].end_us = job_ends_us(jobs[i], start);
        family_free(t.families[i]);
    }
    free(t.families);
    het_turns_done(&turns);
    return start;
}

/* The components of a job that all wait; NULL: some do not. */
static const struct job **components(const struct sched *sched, const struct job *job)
{
    uint32_t count = het_count(job);
    const struct job **jobs = NEW_ARRAY(const struct job *, count);

    for (uint32_t i = 0; i < count; i++) {
        jobs[i] = state_job(sched->state, job->more->het_job_id + i);
        if (!jobs[i] || jobs[i]->state != JOB_PENDING) {
            free(jobs);
            return NULL;
        }
    }
    return jobs;
}

bool het_starts_now(struct sched *sched, const struct job *job, struct order order,
                    struct booked **of)
{
    const struct job **jobs = components(sched, job);
    struct view view = { .now_us = sched->now_us, .order = order };

    *of = NEW_ARRAY(struct booked, het_count(job));
    bool now = jobs && het_start(sched, jobs, het_count(job), &view, true, *of, NULL) != INT64_MAX;
    free(jobs);
    return now;
}

int64_t start_of(struct sched *sched, struct family *family, const struct job *job,
                 const struct view *from, struct booked **of, const struct job **last)
{
    uint32_t count = het_count(job);
    struct view view = *from;

    *of = NEW_ARRAY(struct booked, count);
    if (count == 1) {
        view.mine = job->id;
        int64_t start = profile_start_from(sched, family, job, &view, &(*of)->parts);
        if (start != INT64_MAX)
            (*of)->end_us = job_ends_us(job, start);
        return start;
    }
    const struct job **jobs = components(sched, job);
    int64_t start = jobs ? het_start(sched, jobs, count, &view, false, *of, last) : INT64_MAX;
    free(jobs);
    return start;
}

void booked_free(struct sched *sched, struct booked *of, uint32_t count)
{
    for (uint32_t i = 0; of && i < count; i++) {
        licences_give(sched, of[i].licences);
        vec_done(&of[i].parts.list);
    }
    free(of);
}
