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
 * (3) In a search this is done over several slices, see search.h: het_at says how far it came. Between them
 *     nothing that is tried is among the forecasts, and nothing behind a job that is to be booked is planned.
 */
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "sched/book/book.h"

/* Of one job, so that it is no hindrance to none of the others; no job has it. */
#define TRIED_ID UINT32_MAX

/* Orders for one start; starts that are tried one after the other, before all that are left are halved. */
enum { MOVES_MOST = 12, STARTS_MOST = 12 };

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
    struct view view;
    struct het_at *at;
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
        struct take take = with_devices(&sched->hosts->list.items[part->host], &part->take);
        block.amount = amount_take(sched, &take, of->parts.need->whole_nodes);
        vec_push(&sched->hosts->list.items[part->host].forecasts, block);
    }
    of->licences = licences_book(sched, (struct order){ 0, TRIED_ID }, job->shape, &of->parts,
                                 start_us, of->end_us);
}

/* Those of one job are the last of their hosts. */
void tried_take(struct sched *sched, struct booked *of)
{
    for (size_t k = of->parts.list.len; k-- > 0;) {
        struct host *host = &sched->hosts->list.items[of->parts.list.items[k].host];
        amount_drop(sched, host->forecasts.items[--host->forecasts.len].amount);
    }
    licences_forget(sched, of->licences);
    of->licences = NULL;
}

static void try_add(const struct together *t, uint32_t i)
{
    struct booked *of = &t->at->of[i];

    of->end_us = job_ends_us(t->jobs[i], t->view.start_us);
    tried_put(t->sched, t->jobs[i], t->view.start_us, of);
}

static void take_all(const struct together *t)
{
    for (uint32_t k = t->at->at; k-- > 0;)
        tried_take(t->sched, &t->at->of[t->at->turns.order[k]]);
}

/* Is there still room for what is to be there, on hosts that changed since? */
static bool still_fits(const struct together *t, uint32_t i)
{
    const struct parts *parts = &t->at->of[i].parts;
    struct view view = t->view;

    view.end_us = t->at->of[i].end_us;
    view.resv = resv_hash(parts->resv ? parts->resv->spec->name : NULL);
    for (size_t k = 0; k < parts->list.len; k++) {
        const struct chosen *part = &parts->list.items[k];
        const struct host *host = &t->sched->hosts->list.items[part->host];
        if (!bitset_has(&t->view.search->touched, part->host))
            continue;
        struct amount amount = { .whole = parts->need->whole_nodes,
                                 .cpus = part->take.cpus,
                                 .mem_mb = part->take.mem_mb };
        memcpy(amount.gres, part->take.gres, sizeof(amount.gres));
        if (!host->usable || !host_has_room(t->sched, host, &amount, &view))
            return false;
    }
    return true;
}

/* Those that were in place are again, if there is room for them. Otherwise from the first one on. */
static void put_back(const struct together *t)
{
    struct het_at *at = t->at;
    uint32_t placed = at->at;

    for (at->at = 0; at->at < placed; at->at++) {
        uint32_t i = at->turns.order[at->at];
        if (t->view.search->keeps && !still_fits(t, i))
            break;
        try_add(t, i);
    }
    if (at->at < placed) {
        take_all(t);
        at->at = 0;
        earliest_start_at_done(&t->view.search->earliest);
        t->view.search->earliest = (struct earliest_start_at){ 0 };
        search_lost(t->sched, t->view.search);
    }
    if (t->view.search->keeps)
        bitset_clear(&t->view.search->touched);
}

/*
 * Tries to start all at t->view.start_us. When one cannot, *failed is its place, and the result when it could;
 * *failed == count: all can.
 */
static int64_t try_all(const struct together *t, uint32_t *failed)
{
    struct het_at *at = t->at;
    int64_t start = t->view.start_us;

    if (at->at)
        put_back(t);
    for (; at->at < at->turns.count; at->at++) {
        uint32_t i = at->turns.order[at->at];
        start = earliest_start(t->sched, t->families[i], t->jobs[i], &t->view, &at->of[i].parts);
        if (start != t->view.start_us)
            break;
        try_add(t, i);
    }
    take_all(t);
    *failed = at->at;
    if (start != LATER)
        at->at = 0;
    return start;
}

enum tried { TRIED_NOT, TRIED_YES, TRIED_PART };

/*
 * The same in other orders too; *late is the one that cannot. Not: at->next_us is when it may be better. In part:
 * it goes on in the next slice.
 */
static enum tried try_orders(const struct together *t, uint32_t *late)
{
    struct het_at *at = t->at;
    uint32_t failed;

    if (!at->turned)
        het_turns_begin(&at->turns);
    if (!at->turned)
        at->next_us = INT64_MAX;
    at->turned = true;
    for (;;) {
        int64_t start = try_all(t, &failed);
        if (start == LATER)
            return TRIED_PART;
        at->turned = false;
        if (failed == at->turns.count)
            return TRIED_YES;
        *late = at->turns.order[failed];
        /* Alone it cannot before then; beside the others it may be that they could be elsewhere. */
        at->next_us = failed == 0 ? start : MIN(at->next_us, start);
        if (!het_turns_retry(&at->turns, failed))
            return TRIED_NOT;
        at->turned = true;
    }
}

static void moment_add(const struct together *t, int64_t when_us)
{
    if (when_us > t->at->start_us)
        vec_push(&t->at->halving.list, when_us);
}

/* When there is more than before on some host, behind the start that was tried last; false: not yet all. */
static bool gather_moments(const struct together *t)
{
    struct halving *halving = &t->at->halving;

    for (; halving->next < t->sched->hosts->list.len; halving->next++) {
        const struct host *host = &t->sched->hosts->list.items[halving->next];
        if (!search_may(t->view.search, host_effort(host)))
            return false;
        for (size_t k = 0; k < host->running.len; k++)
            moment_add(t, host->running.items[k].end_us);
        for (size_t k = 0; k < host->blocks.len; k++) {
            if (block_hinders(&host->blocks.items[k], &t->view))
                moment_add(t, host->blocks.items[k].end_us);
        }
        for (size_t k = 0; k < host->forecasts.len; k++)
            moment_add(t, host->forecasts.items[k].end_us);
    }
    t->sched->looked += halving->list.len / 4;
    halving_begin(halving);
    return true;
}

/* The first of all moments that are left, as if what hosts have only grew. */
static int64_t halve(struct together *t)
{
    struct halving *halving = &t->at->halving;
    uint32_t late;

    if (!halving->gathered && !gather_moments(t))
        return LATER;
    while (halving_next(halving, &t->view.start_us)) {
        enum tried tried = try_orders(t, &late);
        if (tried == TRIED_PART)
            return LATER;
        halving_said(halving, tried == TRIED_YES);
    }
    t->view.start_us = halving->best_us;
    if (halving->best_us == INT64_MAX)
        return INT64_MAX;
    enum tried tried = try_orders(t, &late); /* the parts are those of the last try */
    if (tried == TRIED_PART)
        return LATER;
    return tried == TRIED_YES ? halving->best_us : INT64_MAX;
}

static int64_t find_start(struct together *t)
{
    struct het_at *at = t->at;

    for (; at->tries < STARTS_MOST; at->tries++) {
        uint32_t late;
        t->view.start_us = at->start_us;
        enum tried tried = try_orders(t, &late);
        if (tried == TRIED_PART)
            return LATER;
        if (tried == TRIED_YES)
            return at->start_us;
        at->late = late + 1;
        if (at->next_us == INT64_MAX)
            return INT64_MAX;
        at->start_us = at->next_us;
    }
    return halve(t);
}

static void het_at_begin(struct het_at *at, uint32_t count, int64_t start_us)
{
    if (at->begun)
        return;
    *at = (struct het_at){ .begun = true, .start_us = start_us };
    het_turns_init(&at->turns, count);
    at->of = NEW_ARRAY(struct booked, count);
}

void het_at_done(struct sched *sched, struct het_at *at)
{
    if (!at->begun)
        return;
    booked_free(sched, at->of, at->turns.count);
    het_turns_done(&at->turns);
    halving_done(&at->halving);
}

int64_t het_start(struct sched *sched, const struct job *const *jobs, uint32_t count,
                  const struct view *from, bool now_only, struct booked *of,
                  const struct job **last)
{
    struct together t = { .sched = sched, .jobs = jobs };
    struct het_at own = { 0 };
    int64_t start = INT64_MAX;
    uint32_t late;
    bool able = true;

    t.view = *from;
    t.view.start_us = MAX(from->start_us, from->now_us);
    t.view.forecast = true;
    t.view.mine = jobs[0]->id;
    t.at = from->search ? &from->search->het : &own;
    het_at_begin(t.at, count, t.view.start_us);
    t.families = NEW_ARRAY(struct family *, count);
    for (uint32_t i = 0; i < count; i++) {
        struct mask mask;
        able = job_mask(sched, jobs[i], &mask) && able;
        t.families[i] = family_for(sched, jobs[i]);
    }
    if (able && now_only)
        start = try_orders(&t, &late) == TRIED_YES ? from->now_us : INT64_MAX;
    else if (able)
        start = find_start(&t);
    if (last && t.at->late)
        *last = jobs[t.at->late - 1];
    for (uint32_t i = 0; i < count; i++) {
        if (start != INT64_MAX && start != LATER) {
            struct booked was = of[i];
            of[i] = t.at->of[i];
            of[i].end_us = job_ends_us(jobs[i], start);
            t.at->of[i] = was;
        }
        family_free(t.families[i]);
    }
    free(t.families);
    if (start != LATER) {
        het_at_done(sched, t.at);
        *t.at = (struct het_at){ 0 };
    }
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
        int64_t start = earliest_start(sched, family, job, &view, &(*of)->parts);
        if (start != INT64_MAX && start != LATER)
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
