/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hunt.c - would a job start if these were gone?
 *
 * Runs are marked as if they had gone, and the job is placed with what is left (view.without). The
 * components of a heterogeneous job are placed one after the other; where those before are is a forecast
 * meanwhile.
 *
 * (1) A component makes use of nobody's going whom it could not send away itself, even if another one can.
 * (2) Marks are there for a call only: outside of it no run is marked.
 * (3) Who is suspended runs again as soon as its CPUs are free and nobody waits for that any more; who does may
 *     start elsewhere. If it may be sent away it is told to stay suspended, else its CPUs count as in use.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/hunt_priv.h"

/* ---- who hunts ---- */

static size_t place_in_shape(const struct sched *sched, struct shape *shape, uint32_t number)
{
    const struct need *needs = shape_needs(sched->state, shape);

    for (size_t p = 0; p < shape->partition_count; p++) {
        if (needs[p].partition && needs[p].partition->number == number)
            return p;
    }
    return SIZE_MAX;
}

static bool choose_partition(struct sched *sched, struct hunter *hunter, uint32_t number)
{
    struct shape *shape = hunter->job->shape;
    size_t p = place_in_shape(sched, shape, number);

    family_asks(sched, hunter->family);
    for (size_t i = 0; p == SIZE_MAX || !family_may_use(sched, hunter->family, p); i++) {
        if (i == shape->partition_count)
            return false;
        p = hunter->family->turns[i];
    }
    hunter->partition = p;
    hunter->need = &shape_needs(sched->state, shape)[p];
    return true;
}

static bool same_side(const struct sched *sched, const struct side *side,
                      const struct hunter *hunter)
{
    const struct job *a = side->job, *b = hunter->job;

    return side->partition == hunter->need->partition && job_qos(a) == job_qos(b) &&
           job_priority(sched->state, a) == job_priority(sched->state, b) &&
           str_eq(a->shape->reservation, b->shape->reservation);
}

static bool choose_side(struct hunt *hunt, struct hunter *hunter)
{
    unsigned at = 0;

    while (at < hunt->side_count && !same_side(hunt->sched, &hunt->sides[at], hunter))
        at++;
    if (at == SIDES_MOST)
        return false;
    if (at == hunt->side_count)
        hunt->sides[hunt->side_count++] = (struct side){ hunter->job, hunter->need->partition };
    hunter->side = at;
    return true;
}

static bool hunter_init(struct hunt *hunt, uint32_t at, uint32_t lane, struct order order)
{
    struct sched *sched = hunt->sched;
    struct hunter *hunter = &hunt->hunters[at];
    const struct pend *pend = at ? NULL : pend_find(sched, hunt->job->id);
    struct mask mask;

    hunter->job = hunt->jobs ? hunt->jobs[at]
                  : at       ? state_job(sched->state, hunt->job->id + at)
                             : hunt->job;
    if (!hunter->job || !job_mask(sched, hunter->job, &mask))
        return false;
    hunter->own = !pend || !pend->class || pend->echoes; /* in any of its partitions */
    hunter->family = hunter->own ? family_for(sched, hunter->job) : class_of(sched, pend)->family;
    if (!choose_partition(sched, hunter, lane) || !choose_side(hunt, hunter))
        return false;
    hunter->view = (struct view){ .now_us = sched->now_us,
                                  .start_us = sched->now_us + 1,
                                  .end_us = job_end_by(hunter->job, sched->now_us),
                                  .mine = hunt->job->id,
                                  .without = true,
                                  .forecast = hunt->count > 1,
                                  .order = order };
    return true;
}

static bool open_all(struct hunt *hunt, uint32_t count, uint32_t lane, const uint32_t *lanes)
{
    const struct job *job = hunt->job;
    const struct pend *pend = pend_find(hunt->sched, job->id);
    bool good = true;

    hunt->chase = &hunt->sched->chase;
    hunt->count = count;
    hunt->hunters = NEW_ARRAY(struct hunter, hunt->count);
    het_turns_init(&hunt->turns, hunt->count);
    struct order order = pend ? echo_in_lane(hunt->sched, pend, job->id, lanes ? lanes[0] : lane)
                              : (struct order){ UINT64_MAX, job->id };
    for (uint32_t i = 0; i < hunt->count && good; i++)
        good = hunter_init(hunt, i, lanes ? lanes[i] : lane, order);
    return good;
}

bool hunt_open(struct hunt *hunt, struct sched *sched, const struct job *job, uint32_t lane,
               const uint32_t *lanes)
{
    *hunt = (struct hunt){ .sched = sched, .job = job };
    return open_all(hunt, het_count(job), lane, lanes);
}

bool hunt_open_asked(struct hunt *hunt, struct sched *sched, const struct job *const *jobs,
                     uint32_t count, uint32_t lane)
{
    *hunt = (struct hunt){ .sched = sched, .job = jobs[0], .jobs = jobs };
    return open_all(hunt, count, lane, NULL);
}

void hunt_close(struct hunt *hunt)
{
    for (uint32_t i = 0; i < hunt->count; i++) {
        if (hunt->hunters[i].own)
            family_free(hunt->hunters[i].family);
        vec_done(&hunt->hunters[i].of.parts.list);
    }
    free(hunt->hunters);
    het_turns_done(&hunt->turns);
}

/* ---- who may go ---- */

static bool ends(const struct job *job)
{
    enum job_phase phase = job_phase(job);

    return phase == PHASE_COMPLETING || phase == PHASE_REQUEUING || phase == PHASE_ENDED;
}

const struct job *hunt_stands_for(const struct sched *sched, const struct job *job)
{
    const struct job *first = het_first(sched, job);

    return first->run && ends(first) == ends(job) ? first : job;
}

bool hunt_is_going(const struct hunt *hunt, const struct job *job)
{
    return ends(job) ||
           (job->more && job->more->preempt_end_us && job->more->preempted_by == hunt->job->id);
}

bool hunt_may_take(struct hunt *hunt, const struct job *job, struct quarry *out)
{
    struct sched *sched = hunt->sched;
    enum preempt_mode mode = PREEMPT_OFF;

    *out = (struct quarry){ .id = job->id, .attempt = job->attempt };
    if (hold_waits_for(sched, job->id))
        return false;
    for (unsigned s = 0; s < hunt->side_count; s++) {
        enum preempt_mode its =
            preempt_mode(sched->state, hunt->sides[s].job, hunt->sides[s].partition, job);
        out->sides |= its == PREEMPT_OFF ? 0 : UINT64_C(1) << s;
        mode = its == PREEMPT_OFF ? mode : its;
    }
    if (mode == PREEMPT_OFF)
        return false;
    bool sized = sched->predict.preempts;
    if (sized && !horizon_goes_before(sched, hunt->job, job))
        return false;
    int64_t from = preempt_from_us(sched->state, job);
    if (from > sched->now_us) {
        sched->preempt_wake_us = MIN(sched->preempt_wake_us, from);
        return false;
    }
    out->out = mode == PREEMPT_SUSPEND ? RUN_LENDS : RUN_GONE;
    out->lent = job->run->lent;
    out->worth = sized ? horizon_worth(sched, job) : preempt_worth(sched->state, job);
    out->priority = job->priority;
    out->start_us = job->run->start_us;
    return true;
}

int hunt_by_cost(const struct quarry *x, const struct quarry *y, bool youngest)
{
    if (x->worth != y->worth)
        return x->worth < y->worth ? -1 : 1;
    if (!youngest && x->priority != y->priority)
        return x->priority < y->priority ? -1 : 1;
    if (x->start_us != y->start_us)
        return x->start_us > y->start_us ? -1 : 1;
    return x->id > y->id ? -1 : x->id < y->id;
}

struct quarry *hunt_quarry(const struct hunt *hunt, uint32_t job_id)
{
    uintptr_t at = (uintptr_t)map_get_num(&hunt->chase->by_id, job_id);

    return at ? &hunt->chase->list.items[at - 1] : NULL;
}

/* ---- marks ---- */

/* (1) */
void hunt_mark_host(const struct hunt *hunt, uint32_t number, unsigned side)
{
    struct host *host = &hunt->sched->hosts.items[number];

    for (size_t i = 0; i < host->runs.len; i++) {
        struct run *run = &host->runs.items[i];
        const struct quarry *quarry = hunt_quarry(hunt, run->job_id);
        run->out = RUN_STAYS;
        if (quarry && quarry->going)
            run->out = RUN_GONE;
        else if (quarry && quarry->out == RUN_RETURNS)
            run->out = RUN_RETURNS;
        else if (quarry && !quarry->lent && !quarry->stays && quarry->sides >> side & 1)
            run->out = quarry->out;
    }
}

void hunt_unmark_host(const struct hunt *hunt, uint32_t number)
{
    struct host *host = &hunt->sched->hosts.items[number];

    for (size_t i = 0; i < host->runs.len; i++)
        host->runs.items[i].out = RUN_STAYS;
}

void hunt_mark_all(const struct hunt *hunt, unsigned side)
{
    for (size_t i = 0; i < hunt->chase->hosts.len; i++)
        hunt_mark_host(hunt, hunt->chase->hosts.items[i], side);
}

void hunt_unmark_all(const struct hunt *hunt)
{
    for (size_t i = 0; i < hunt->chase->hosts.len; i++)
        hunt_unmark_host(hunt, hunt->chase->hosts.items[i]);
}

static const struct run *run_of(const struct host *host, uint32_t job_id)
{
    for (size_t i = 0; i < host->runs.len; i++) {
        if (host->runs.items[i].job_id == job_id)
            return &host->runs.items[i];
    }
    return NULL;
}

/* Jobs that have each CPU then; UINT8_MAX: one that does not share it. */
static void count_users(const struct host *host, const struct bitset *cpus, bool shared,
                        uint8_t *users)
{
    bitset_each (cpu, cpus) {
        if (cpu >= host->node->cpu_span)
            break;
        users[cpu] = shared && users[cpu] < UINT8_MAX - 1 ? users[cpu] + 1 : UINT8_MAX;
    }
}

uint32_t host_cpus_without(const struct host *host, const struct view *view, int64_t when_us)
{
    const struct node *node = host->node;
    uint8_t *users = NEW_ARRAY(uint8_t, node->cpu_span);
    uint32_t count = 0;

    for (size_t i = 0; i < node->jobs.len; i++) {
        const struct job_run *of = node->jobs.items[i]->run;
        const struct run *run = run_of(host, node->jobs.items[i]->id);
        bool marked = view->without && run && run->out != RUN_STAYS;
        bool returns = marked && run->out == RUN_RETURNS;
        bool ends = run && when_us > view->now_us + 1 && run->end_us <= when_us;
        if (!returns && (of->lent || ends || marked))
            continue;
        for (unsigned k = 0; k < of->count; k++) {
            if (of->parts[k].node == node)
                count_users(host, &of->parts[k].cpu_ids, of->shared && !returns, users);
        }
    }
    for (const struct claim *claim = host->claims; claim; claim = claim->next) {
        if (when_us <= view->now_us + 1 || claim->end_us > when_us)
            count_users(host, &claim->cpus, claim->shared, users);
    }
    for (uint32_t cpu = 0; cpu < node->cpu_span; cpu++)
        count += !node_keeps(node, cpu) && users[cpu] < MAX(view->share, 1);
    free(users);
    return count;
}

/* ---- do they fit? ---- */

static bool hunter_fits(struct hunt *hunt, struct hunter *hunter)
{
    struct parts *parts = &hunter->of.parts;

    if (hunt->chase && hunt->side_count > 1)
        hunt_mark_all(hunt, hunter->side);
    if (hunter->family->shape->licence_count &&
        !licences_fit(hunt->sched, hunter->family, &hunter->view, &parts->licence))
        return false;
    return place_among(hunt->sched, hunter->family, hunter->partition, hunter->job, &hunter->view,
                       hunter->hosts, hunter->host_count, parts);
}

bool hunt_fits(struct hunt *hunt)
{
    uint32_t at, *order = hunt->turns.order;

    hunt->turns.moves = 0;
    do {
        for (at = 0; at < hunt->count; at++) {
            struct hunter *hunter = &hunt->hunters[order[at]];
            if (!hunter_fits(hunt, hunter))
                break;
            hunter->of.end_us = job_ends_us(hunter->job, hunter->view.start_us);
            if (hunt->count > 1)
                tried_put(hunt->sched, hunter->job, hunter->view.start_us, &hunter->of);
        }
        for (uint32_t k = at; hunt->count > 1 && k-- > 0;)
            tried_take(hunt->sched, &hunt->hunters[order[k]].of);
    } while (at < hunt->count && het_turns_retry(&hunt->turns, at));
    return at == hunt->count;
}

bool hunt_is_allowed(struct hunt *hunt)
{
    struct limit_hit hit;
    uint32_t at = 0;

    if (!state_enforce(hunt->sched->state))
        return true;
    struct held **held = NEW_ARRAY(struct held *, hunt->count);
    for (; at < hunt->count; at++) {
        struct hunter *hunter = &hunt->hunters[at];
        if (limits_in_way_of(hunt->sched, hunter->job, &hunter->of.parts, &hit))
            break;
        held[at] = limits_plan(hunt->sched, hunter->job, &hunter->of.parts);
    }
    bool good = at == hunt->count;
    while (at > 0)
        limits_unplan(hunt->sched, held[--at], true);
    free(held);
    return good;
}

static bool seat_fits(struct hunt *hunt, const struct seat *seat)
{
    const struct hunter *hunter = &hunt->hunters[seat->component];

    if (hunt->chase)
        hunt_mark_host(hunt, seat->host, hunter->side);
    return place_tasks_at(hunt->sched, hunter->family, hunter->partition, hunter->job,
                          &hunter->view, seat->host) >= seat->take.tasks;
}

bool hunt_seats_fit(struct hunt *hunt, const struct seat *seats, size_t count)
{
    struct sched *sched = hunt->sched;
    struct host *host = &sched->hosts.items[seats[0].host];
    size_t at = 0;

    for (; at < count && seat_fits(hunt, &seats[at]); at++) {
        const struct hunter *hunter = &hunt->hunters[seats[at].component];
        struct block block = { .start_us = hunter->view.start_us, .job_id = UINT32_MAX };
        block.end_us = hunter->view.end_us;
        block.partition = hunter->need->partition->number + 1;
        block.amount = amount_take(sched, &seats[at].take, hunter->need->whole_nodes);
        vec_push(&host->forecasts, block);
    }
    for (size_t k = 0; k < at; k++)
        amount_drop(sched, host->forecasts.items[--host->forecasts.len].amount);
    hunt_unmark_host(hunt, seats[0].host);
    return at == count;
}
