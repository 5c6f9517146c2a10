/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chase.c - who must go for a job to start, at least cost; in slices
 *
 * Hosts say what they would cost (bids.c). On those where the fewest and cheapest have to go the job is
 * placed as if all had gone (hunt.c); then everybody who can stay, stays. At last all of it is looked at
 * once more, and the room is held (holds.c).
 *
 * (1) Nobody is named in vain: the job fits without the victims, and does not fit when any one of
 *     them stays. What ends anyway counts as gone.
 * (2) Between slices anything may happen. Jobs are kept by id and attempt; the last step trusts none of
 *     the others.
 */
#include <stdlib.h>

#include "sched/hunt_priv.h"

/* Rooms that are looked at to find out who can stay, before only the seats that are planned are. */
enum { LOOKS_MOST = 16384, MARKS_PER_COST = 8, TEST_BUDGET = 4000 };

void chase_begin(struct sched *sched, uint32_t job_id, uint32_t lane)
{
    chase_end(sched);
    sched->chase.job_id = job_id;
    sched->chase.lane = lane;
}

void chase_end(struct sched *sched)
{
    struct chase *chase = &sched->chase;

    chase->job_id = chase->component = 0;
    chase->phase = CHASE_BIDS;
    chase->next = 0;
    vec_clear(&chase->bids);
    vec_clear(&chase->hosts);
    vec_clear(&chase->ends);
    vec_clear(&chase->list);
    vec_clear(&chase->by_cost);
    vec_clear(&chase->seats);
    vec_clear(&chase->order);
    map_clear(&chase->by_id);
}

void chase_done(struct sched *sched)
{
    struct chase *chase = &sched->chase;

    vec_done(&chase->bids);
    vec_done(&chase->hosts);
    vec_done(&chase->ends);
    vec_done(&chase->list);
    vec_done(&chase->by_cost);
    vec_done(&chase->seats);
    vec_done(&chase->order);
    map_done(&chase->by_id);
}

bool chase_suits(struct sched *sched, const struct job *job, uint32_t lane,
                 bool (*has_prey)(const struct sched *sched, const struct job *job,
                                  const struct partition *partition))
{
    struct hunt hunt;
    bool some = false, good = hunt_open(&hunt, sched, job, lane, NULL);

    for (unsigned s = 0; s < hunt.side_count && good && !some; s++)
        some = has_prey(sched, hunt.sides[s].job, hunt.sides[s].partition);
    hunt_close(&hunt);
    return some;
}

/* ---- which hosts ---- */

static enum chase_result ask_hosts(struct hunt *hunt, unsigned *budget)
{
    struct chase *chase = hunt->chase;
    const struct hunter *hunter = &hunt->hunters[chase->component];

    if (!bids_ask(hunt, hunter, budget))
        return CHASE_GOES_ON;
    budget_take(budget, 1 + chase->bids.len / MARKS_PER_COST);
    if (!bids_best(hunt, hunter))
        return CHASE_IN_VAIN;
    chase->next = 0;
    if (++chase->component == hunt->count)
        chase->phase = CHASE_GATHER;
    return CHASE_GOES_ON;
}

/* ---- who is there ---- */

static uint32_t id_of_part(const struct job *job, uint32_t offset)
{
    return het_count(job) > 1 ? job->more->het_job_id + offset : job->id;
}

static void take_in(struct hunt *hunt, const struct job *job)
{
    struct chase *chase = hunt->chase;
    const struct job *first = hunt_stands_for(hunt->sched, job);
    struct quarry one = { .id = first->id, .attempt = first->attempt };

    if (hunt_quarry(hunt, job->id))
        return;
    one.going = hunt_is_going(hunt, first);
    if (!one.going && !hunt_may_take(hunt, first, &one)) {
        if (!first->run->lent) /* hunt.c (3) */
            return;
        one.out = RUN_RETURNS;
    }
    vec_push(&chase->list, one);
    for (uint32_t i = 0; i < het_count(first); i++)
        map_put_num(&chase->by_id, id_of_part(first, i), (void *)(uintptr_t)chase->list.len);
}

static int by_cost(const void *a, const void *b, void *arg)
{
    const struct hunt *hunt = arg;
    const struct quarry *list = hunt->chase->list.items;

    return hunt_by_cost(&list[*(const uint32_t *)a], &list[*(const uint32_t *)b],
                        state_config(hunt->sched->state)->preempt_youngest_first);
}

/* Everybody on the hosts, once; those who may have to go the cheapest first. */
static enum chase_result gather(struct hunt *hunt, unsigned *budget)
{
    struct chase *chase = hunt->chase;

    for (; *budget && chase->next < chase->hosts.len; chase->next++) {
        const struct node *node = hunt->sched->hosts.items[chase->hosts.items[chase->next]].node;
        for (size_t i = 0; i < node->jobs.len; i++)
            take_in(hunt, node->jobs.items[i]);
        budget_take(budget, 1 + node->jobs.len / 2);
    }
    if (chase->next < chase->hosts.len)
        return CHASE_GOES_ON;
    for (uint32_t i = 0; i < chase->list.len; i++) {
        const struct quarry *quarry = &chase->list.items[i];
        if (!quarry->going && !quarry->lent && quarry->out != RUN_RETURNS)
            vec_push(&chase->by_cost, i);
    }
    if (chase->by_cost.len)
        qsort_r(chase->by_cost.items, chase->by_cost.len, sizeof(uint32_t), by_cost, hunt);
    budget_take(budget, chase->by_cost.len / MARKS_PER_COST);
    chase->phase = CHASE_PLACE;
    return chase->list.len ? CHASE_GOES_ON : CHASE_IN_VAIN;
}

/* ---- do they fit, and where ---- */

static void use_hosts(struct hunt *hunt)
{
    struct chase *chase = hunt->chase;

    for (uint32_t i = 0; i < hunt->count; i++) {
        size_t from = i ? chase->ends.items[i - 1] : 0;
        hunt->hunters[i].hosts = &chase->hosts.items[from];
        hunt->hunters[i].host_count = chase->ends.items[i] - from;
    }
    for (size_t i = 0; i < chase->order.len; i++)
        hunt->turns.order[i] = chase->order.items[i];
}

static int by_host(const void *a, const void *b, void *arg)
{
    const struct seat *x = a, *y = b;
    const struct hunt *hunt = arg;

    if (x->host != y->host)
        return x->host < y->host ? -1 : 1;
    for (uint32_t i = 0; i < hunt->count; i++) { /* as they were placed */
        uint32_t component = hunt->turns.order[i];
        if (x->component == component || y->component == component)
            return x->component == y->component ? 0 : x->component == component ? -1 : 1;
    }
    return 0;
}

/* From now on it is these hosts. */
static void take_seats(struct hunt *hunt)
{
    struct chase *chase = hunt->chase;

    vec_clear(&chase->seats);
    vec_clear(&chase->hosts);
    vec_clear(&chase->ends);
    vec_clear(&chase->order);
    for (uint32_t i = 0; i < hunt->count; i++) {
        const struct parts *parts = &hunt->hunters[i].of.parts;
        for (size_t k = 0; k < parts->list.len; k++) {
            const struct chosen *part = &parts->list.items[k];
            vec_push(&chase->seats, (struct seat){ part->host, i, part->take });
            vec_push(&chase->hosts, part->host);
        }
        vec_push(&chase->ends, chase->hosts.len);
        vec_push(&chase->order, hunt->turns.order[i]);
    }
    qsort_r(chase->seats.items, chase->seats.len, sizeof(struct seat), by_host, hunt);
    use_hosts(hunt);
}

/* The first seat on the host, or the place where it would be. */
static size_t seat_at(const struct chase *chase, uint32_t host)
{
    size_t low = 0, high = chase->seats.len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (chase->seats.items[middle].host < host)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool has_seat(const struct chase *chase, uint32_t host)
{
    size_t at = seat_at(chase, host);

    return at < chase->seats.len && chase->seats.items[at].host == host;
}

/* The quarry as it is now, with its components in turn; NULL: no more of them, or it has gone. */
static const struct job *next_part(const struct hunt *hunt, const struct quarry *quarry,
                                   uint32_t *offset)
{
    const struct job *job = state_job(hunt->sched->state, quarry->id);

    if (!job || !job->run || job->attempt != quarry->attempt)
        return NULL;
    while (*offset < het_count(job)) {
        const struct job *one = state_job(hunt->sched->state, id_of_part(job, (*offset)++));
        if (one && one->run)
            return one;
    }
    return NULL;
}

static bool is_at_seats(const struct hunt *hunt, const struct quarry *quarry)
{
    const struct job *job;

    for (uint32_t at = 0; (job = next_part(hunt, quarry, &at));) {
        for (unsigned i = 0; i < job->run->count; i++) {
            const struct node *node = job->run->parts[i].node;
            if (node && has_seat(hunt->chase, node->number))
                return true;
        }
    }
    return false;
}

/* Who is not on the hosts that were chosen need not go; who goes anyway is not waited for. */
static void cut_to_seats(struct hunt *hunt)
{
    vec_each (struct quarry, quarry, &hunt->chase->list)
        quarry->stays = quarry->stays || quarry->out == RUN_RETURNS || !is_at_seats(hunt, quarry);
}

static bool fits_marked(struct hunt *hunt)
{
    use_hosts(hunt);
    hunt_mark_all(hunt, 0);
    bool good = hunt_fits(hunt);
    hunt_unmark_all(hunt);
    return good;
}

static enum chase_result place_all(struct hunt *hunt, unsigned *budget)
{
    struct chase *chase = hunt->chase;

    budget_take(budget, COST_TRY + chase->hosts.len);
    if (!fits_marked(hunt) || !hunt_is_allowed(hunt))
        return CHASE_IN_VAIN;
    take_seats(hunt);
    cut_to_seats(hunt);
    budget_take(budget, chase->list.len / MARKS_PER_COST);
    chase->next = chase->by_cost.len;
    chase->phase = CHASE_SPARE;
    return CHASE_GOES_ON;
}

/* ---- (1): what can stay, stays ---- */

/* Does every host that it is on still have room for the seats there? */
static bool seats_fit(struct hunt *hunt, const struct quarry *quarry, unsigned *budget)
{
    struct chase *chase = hunt->chase;
    const struct job *job;

    for (uint32_t at = 0; (job = next_part(hunt, quarry, &at));) {
        budget_take(budget, job->run->count);
        for (unsigned i = 0; i < job->run->count; i++) {
            const struct node *node = job->run->parts[i].node;
            size_t first = node ? seat_at(chase, node->number) : chase->seats.len, last = first;
            while (last < chase->seats.len && chase->seats.items[last].host == node->number)
                last++;
            if (last > first && !hunt_seats_fit(hunt, &chase->seats.items[first], last - first))
                return false;
        }
    }
    return true;
}

/*
 * The dearest is asked first. Of very many it is asked only whether the seats that are planned still
 * fit, not whether others would.
 */
static enum chase_result spare(struct hunt *hunt, unsigned *budget)
{
    struct chase *chase = hunt->chase;
    bool many = chase->by_cost.len * chase->hosts.len > LOOKS_MOST;

    for (uint32_t i = 0; i < hunt->count; i++)
        many = many && !hunt->hunters[i].family->particular;
    while (*budget && chase->next > 0) {
        struct quarry *quarry = &chase->list.items[chase->by_cost.items[--chase->next]];
        if (quarry->stays)
            continue;
        quarry->stays = true;
        uint64_t looked = hunt->sched->looked;
        if (many ? !seats_fit(hunt, quarry, budget) : !fits_marked(hunt))
            quarry->stays = false;
        budget_take(budget, 1 + (many ? 0 : chase->hosts.len + (hunt->sched->looked - looked) / 2));
    }
    if (chase->next == 0)
        chase->phase = CHASE_END;
    return CHASE_GOES_ON;
}

/* ---- what comes of it ---- */

/* (2): once more, with who is still there. */
static enum chase_result settle(struct hunt *hunt, unsigned *budget)
{
    struct chase *chase = hunt->chase;
    bool some = false;

    budget_take(budget, COST_TRY + chase->list.len / MARKS_PER_COST + 2 * chase->hosts.len);
    if (!fits_marked(hunt) || !hunt_is_allowed(hunt))
        return CHASE_IN_VAIN;
    take_seats(hunt);
    cut_to_seats(hunt);
    vec_each (struct quarry, quarry, &chase->list) {
        const struct job *job = state_job(hunt->sched->state, quarry->id);
        /* Who only ends anyway is waited for without this; who was told to is not told again. */
        some = some || (!quarry->stays &&
                        (!quarry->going || (job && job->more && job->more->preempt_end_us)));
    }
    if (!some)
        return CHASE_IN_VAIN;
    hold_put(hunt);
    return CHASE_NAMED;
}

static enum chase_result (*const steps[])(struct hunt *hunt, unsigned *budget) = {
    [CHASE_BIDS] = ask_hosts, [CHASE_GATHER] = gather, [CHASE_PLACE] = place_all,
    [CHASE_SPARE] = spare,    [CHASE_END] = settle,
};

enum chase_result chase_on(struct sched *sched, unsigned *budget)
{
    struct chase *chase = &sched->chase;
    const struct job *job = state_job(sched->state, chase->job_id);
    enum chase_result result = CHASE_IN_VAIN;
    struct hunt hunt;

    if (hunt_open(&hunt, sched, job, chase->lane, NULL)) {
        do {
            result = steps[chase->phase](&hunt, budget);
        } while (result == CHASE_GOES_ON && *budget);
    }
    hunt_close(&hunt);
    return result;
}

/* ---- a job that is only asked about ---- */

/* What the steps found out, but nobody is told. */
static bool tell_apart(struct hunt *hunt, struct parts *parts, id_list *victims)
{
    struct chase *chase = hunt->chase;

    if (!fits_marked(hunt))
        return false;
    take_seats(hunt);
    cut_to_seats(hunt);
    vec_clear(victims);
    vec_each (struct quarry, quarry, &chase->list) {
        if (!quarry->stays && !quarry->going)
            vec_push(victims, quarry->id);
    }
    vec_clear(&parts->list);
    for (uint32_t k = 0; k < hunt->count; k++) {
        for (size_t i = 0; i < hunt->hunters[k].of.parts.list.len; i++)
            vec_push(&parts->list, hunt->hunters[k].of.parts.list.items[i]);
    }
    return victims->len > 0;
}

bool chase_test(struct sched *sched, const struct job *const *jobs, uint32_t count, uint32_t lane,
                struct parts *parts, id_list *victims)
{
    struct chase kept = sched->chase;
    enum chase_result result = CHASE_IN_VAIN;
    unsigned budget = TEST_BUDGET;
    struct hunt hunt;
    bool good = false;

    sched->chase = (struct chase){ .lane = lane };
    if (hunt_open_asked(&hunt, sched, jobs, count, lane)) {
        do {
            result = steps[sched->chase.phase](&hunt, &budget);
            budget = sched->takes_time ? TEST_BUDGET : budget;
        } while (result == CHASE_GOES_ON && sched->chase.phase != CHASE_END && budget);
        good = result == CHASE_GOES_ON && sched->chase.phase == CHASE_END &&
               tell_apart(&hunt, parts, victims);
    }
    hunt_close(&hunt);
    chase_done(sched);
    sched->chase = kept;
    return good;
}
