/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preempt_search.c - who must go for a job to start, at least cost; in slices
 *
 * Hosts say what they would cost (preempt_cost.c). On those where the fewest and cheapest have to go the job is
 * placed as if all had gone (preempt_trial.c); then everybody who can stay, stays. At last all of it is looked at
 * once more, and the room is held (preempt_hold.c).
 *
 * (1) Nobody is named in in vain: the job fits without the victims, and does not fit when any one of
 *     them stays. What ends anyway counts as gone.
 * (2) Between slices anything may happen. Jobs are kept by id and attempt; the last step trusts none of
 *     the others.
 */
#include <stdlib.h>

#include "sched/preempt/preempt_trial.h"

/* Rooms that are looked at to find out who can stay, before only the seats that are planned are. */
enum { LOOKS_MOST = 16384, MARKS_PER_COST = 8, TEST_BUDGET = 4000 };

void preempt_search_begin(struct sched *sched, uint32_t job_id, uint32_t partition_queue)
{
    preempt_search_end(sched);
    sched->preempt->search.job_id = job_id;
    sched->preempt->search.partition_queue = partition_queue;
}

void preempt_search_end(struct sched *sched)
{
    struct preempt_search *search = &sched->preempt->search;

    search->job_id = search->component = 0;
    search->phase = PREEMPT_SEARCH_COSTS;
    search->next = 0;
    vec_clear(&search->host_costs);
    vec_clear(&search->hosts);
    vec_clear(&search->ends);
    vec_clear(&search->list);
    vec_clear(&search->by_cost);
    vec_clear(&search->seats);
    vec_clear(&search->order);
    map_clear(&search->by_id);
}

void preempt_search_done(struct sched *sched)
{
    struct preempt_search *search = &sched->preempt->search;

    vec_done(&search->host_costs);
    vec_done(&search->hosts);
    vec_done(&search->ends);
    vec_done(&search->list);
    vec_done(&search->by_cost);
    vec_done(&search->seats);
    vec_done(&search->order);
    map_done(&search->by_id);
}

bool preempt_search_suits(struct sched *sched, const struct job *job, uint32_t partition_queue,
                          bool (*has_preemptible)(const struct sched *sched, const struct job *job,
                                                  const struct partition *partition))
{
    struct preempt_trial trial;
    bool some = false, good = preempt_trial_open(&trial, sched, job, partition_queue, NULL);

    for (unsigned s = 0; s < trial.side_count && good && !some; s++)
        some = has_preemptible(sched, trial.sides[s].job, trial.sides[s].partition);
    preempt_trial_close(&trial);
    return some;
}

/* ---- which hosts ---- */

static enum preempt_search_result ask_hosts(struct preempt_trial *trial, unsigned *budget)
{
    struct preempt_search *search = trial->search;
    const struct preemptor *preemptor = &trial->preemptors[search->component];

    if (!preempt_cost_gather(trial, preemptor, budget))
        return PREEMPT_SEARCH_GOES_ON;
    budget_take(budget, 1 + search->host_costs.len / MARKS_PER_COST);
    if (!preempt_cost_cheapest(trial, preemptor))
        return PREEMPT_SEARCH_FAILED;
    search->next = 0;
    if (++search->component == trial->count)
        search->phase = PREEMPT_SEARCH_GATHER;
    return PREEMPT_SEARCH_GOES_ON;
}

/* ---- who is there ---- */

static uint32_t id_of_part(const struct job *job, uint32_t offset)
{
    return het_count(job) > 1 ? job->more->het_job_id + offset : job->id;
}

static void take_in(struct preempt_trial *trial, const struct job *job)
{
    struct preempt_search *search = trial->search;
    const struct job *first = preempt_trial_stands_for(trial->sched, job);
    struct victim one = { .id = first->id, .attempt = first->attempt };

    if (preempt_trial_victim(trial, job->id))
        return;
    one.going = preempt_trial_is_going(trial, first);
    if (!one.going && !preempt_trial_may_take(trial, first, &one)) {
        if (!first->run->lent) /* preempt_trial.c (3) */
            return;
        one.out = HOST_JOB_RETURNS;
    }
    vec_push(&search->list, one);
    for (uint32_t i = 0; i < het_count(first); i++)
        map_put_num(&search->by_id, id_of_part(first, i), (void *)(uintptr_t)search->list.len);
}

static int by_cost(const void *a, const void *b, void *arg)
{
    const struct preempt_trial *trial = arg;
    const struct victim *list = trial->search->list.items;

    return preempt_trial_by_cost(&list[*(const uint32_t *)a], &list[*(const uint32_t *)b],
                                 state_config(trial->sched->state)->preempt_youngest_first);
}

/* Everybody on the hosts, once; those who may have to go the cheapest first. */
static enum preempt_search_result gather(struct preempt_trial *trial, unsigned *budget)
{
    struct preempt_search *search = trial->search;

    for (; *budget && search->next < search->hosts.len; search->next++) {
        const struct node *node =
            trial->sched->hosts->list.items[search->hosts.items[search->next]].node;
        for (size_t i = 0; i < node->jobs.len; i++)
            take_in(trial, node->jobs.items[i]);
        budget_take(budget, 1 + node->jobs.len / 2);
    }
    if (search->next < search->hosts.len)
        return PREEMPT_SEARCH_GOES_ON;
    for (uint32_t i = 0; i < search->list.len; i++) {
        const struct victim *victim = &search->list.items[i];
        if (!victim->going && !victim->lent && victim->out != HOST_JOB_RETURNS)
            vec_push(&search->by_cost, i);
    }
    if (search->by_cost.len)
        qsort_r(search->by_cost.items, search->by_cost.len, sizeof(uint32_t), by_cost, trial);
    budget_take(budget, search->by_cost.len / MARKS_PER_COST);
    search->phase = PREEMPT_SEARCH_PLACE;
    return search->list.len ? PREEMPT_SEARCH_GOES_ON : PREEMPT_SEARCH_FAILED;
}

/* ---- do they fit, and where ---- */

static void use_hosts(struct preempt_trial *trial)
{
    struct preempt_search *search = trial->search;

    for (uint32_t i = 0; i < trial->count; i++) {
        size_t from = i ? search->ends.items[i - 1] : 0;
        trial->preemptors[i].hosts = &search->hosts.items[from];
        trial->preemptors[i].host_count = search->ends.items[i] - from;
    }
    for (size_t i = 0; i < search->order.len; i++)
        trial->turns.order[i] = search->order.items[i];
}

static int by_host(const void *a, const void *b, void *arg)
{
    const struct seat *x = a, *y = b;
    const struct preempt_trial *trial = arg;

    if (x->host != y->host)
        return x->host < y->host ? -1 : 1;
    for (uint32_t i = 0; i < trial->count; i++) { /* as they were placed */
        uint32_t component = trial->turns.order[i];
        if (x->component == component || y->component == component)
            return x->component == y->component ? 0 : x->component == component ? -1 : 1;
    }
    return 0;
}

/* From now on it is these hosts. */
static void take_seats(struct preempt_trial *trial)
{
    struct preempt_search *search = trial->search;

    vec_clear(&search->seats);
    vec_clear(&search->hosts);
    vec_clear(&search->ends);
    vec_clear(&search->order);
    for (uint32_t i = 0; i < trial->count; i++) {
        const struct parts *parts = &trial->preemptors[i].of.parts;
        for (size_t k = 0; k < parts->list.len; k++) {
            const struct chosen *part = &parts->list.items[k];
            vec_push(&search->seats, (struct seat){ part->host, i, part->take });
            vec_push(&search->hosts, part->host);
        }
        vec_push(&search->ends, search->hosts.len);
        vec_push(&search->order, trial->turns.order[i]);
    }
    qsort_r(search->seats.items, search->seats.len, sizeof(struct seat), by_host, trial);
    use_hosts(trial);
}

/* The first seat on the host, or the place where it would be. */
static size_t seat_at(const struct preempt_search *search, uint32_t host)
{
    size_t low = 0, high = search->seats.len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (search->seats.items[middle].host < host)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool has_seat(const struct preempt_search *search, uint32_t host)
{
    size_t at = seat_at(search, host);

    return at < search->seats.len && search->seats.items[at].host == host;
}

/* The victim as it is now, with its components in turn; NULL: no more of them, or it has gone. */
static const struct job *next_part(const struct preempt_trial *trial, const struct victim *victim,
                                   uint32_t *offset)
{
    const struct job *job = state_job(trial->sched->state, victim->id);

    if (!job || !job->run || job->attempt != victim->attempt)
        return NULL;
    while (*offset < het_count(job)) {
        const struct job *one = state_job(trial->sched->state, id_of_part(job, (*offset)++));
        if (one && one->run)
            return one;
    }
    return NULL;
}

static bool is_at_seats(const struct preempt_trial *trial, const struct victim *victim)
{
    const struct job *job;

    for (uint32_t at = 0; (job = next_part(trial, victim, &at));) {
        for (unsigned i = 0; i < job->run->count; i++) {
            const struct node *node = job->run->parts[i].node;
            if (node && has_seat(trial->search, node->number))
                return true;
        }
    }
    return false;
}

/* Who is not on the hosts that were chosen need not go; who goes anyway is not waited for. */
static void cut_to_seats(struct preempt_trial *trial)
{
    vec_each (struct victim, victim, &trial->search->list)
        victim->stays =
            victim->stays || victim->out == HOST_JOB_RETURNS || !is_at_seats(trial, victim);
}

static bool fits_marked(struct preempt_trial *trial)
{
    use_hosts(trial);
    preempt_trial_mark_all(trial, 0);
    bool good = preempt_trial_fits(trial);
    preempt_trial_unmark_all(trial);
    return good;
}

static enum preempt_search_result place_all(struct preempt_trial *trial, unsigned *budget)
{
    struct preempt_search *search = trial->search;

    budget_take(budget, COST_TRY + search->hosts.len);
    if (!fits_marked(trial) || !preempt_trial_is_allowed(trial))
        return PREEMPT_SEARCH_FAILED;
    take_seats(trial);
    cut_to_seats(trial);
    budget_take(budget, search->list.len / MARKS_PER_COST);
    search->next = search->by_cost.len;
    search->phase = PREEMPT_SEARCH_SPARE;
    return PREEMPT_SEARCH_GOES_ON;
}

/* ---- (1): what can stay, stays ---- */

/* Does every host that it is on still have room for the seats there? */
static bool seats_fit(struct preempt_trial *trial, const struct victim *victim, unsigned *budget)
{
    struct preempt_search *search = trial->search;
    const struct job *job;

    for (uint32_t at = 0; (job = next_part(trial, victim, &at));) {
        budget_take(budget, job->run->count);
        for (unsigned i = 0; i < job->run->count; i++) {
            const struct node *node = job->run->parts[i].node;
            size_t first = node ? seat_at(search, node->number) : search->seats.len, last = first;
            while (last < search->seats.len && search->seats.items[last].host == node->number)
                last++;
            if (last > first &&
                !preempt_trial_seats_fit(trial, &search->seats.items[first], last - first))
                return false;
        }
    }
    return true;
}

/*
 * The dearest is asked first. Of very many it is asked only whether the seats that are planned still
 * fit, not whether others would.
 */
static enum preempt_search_result spare(struct preempt_trial *trial, unsigned *budget)
{
    struct preempt_search *search = trial->search;
    bool many = search->by_cost.len * search->hosts.len > LOOKS_MOST;

    for (uint32_t i = 0; i < trial->count; i++)
        many = many && !trial->preemptors[i].family->particular;
    while (*budget && search->next > 0) {
        struct victim *victim = &search->list.items[search->by_cost.items[--search->next]];
        if (victim->stays)
            continue;
        victim->stays = true;
        uint64_t looked = trial->sched->looked;
        if (many ? !seats_fit(trial, victim, budget) : !fits_marked(trial))
            victim->stays = false;
        budget_take(budget,
                    1 + (many ? 0 : search->hosts.len + (trial->sched->looked - looked) / 2));
    }
    if (search->next == 0)
        search->phase = PREEMPT_SEARCH_END;
    return PREEMPT_SEARCH_GOES_ON;
}

/* ---- what comes of it ---- */

/* (2): once more, with who is still there. */
static enum preempt_search_result settle(struct preempt_trial *trial, unsigned *budget)
{
    struct preempt_search *search = trial->search;
    bool some = false;

    budget_take(budget, COST_TRY + search->list.len / MARKS_PER_COST + 2 * search->hosts.len);
    if (!fits_marked(trial) || !preempt_trial_is_allowed(trial))
        return PREEMPT_SEARCH_FAILED;
    take_seats(trial);
    cut_to_seats(trial);
    vec_each (struct victim, victim, &search->list) {
        const struct job *job = state_job(trial->sched->state, victim->id);
        /* Who only ends anyway is waited for without this; who was told to is not told again. */
        some = some || (!victim->stays &&
                        (!victim->going || (job && job->more && job->more->preempt_end_us)));
    }
    if (!some)
        return PREEMPT_SEARCH_FAILED;
    preempt_hold_put(trial);
    return PREEMPT_SEARCH_NAMED;
}

static enum preempt_search_result (*const steps[])(struct preempt_trial *trial,
                                                   unsigned *budget) = {
    [PREEMPT_SEARCH_COSTS] = ask_hosts, [PREEMPT_SEARCH_GATHER] = gather,
    [PREEMPT_SEARCH_PLACE] = place_all, [PREEMPT_SEARCH_SPARE] = spare,
    [PREEMPT_SEARCH_END] = settle,
};

enum preempt_search_result preempt_search_continue(struct sched *sched, unsigned *budget)
{
    struct preempt_search *search = &sched->preempt->search;
    const struct job *job = state_job(sched->state, search->job_id);
    enum preempt_search_result result = PREEMPT_SEARCH_FAILED;
    struct preempt_trial trial;

    if (preempt_trial_open(&trial, sched, job, search->partition_queue, NULL)) {
        do {
            result = steps[search->phase](&trial, budget);
        } while (result == PREEMPT_SEARCH_GOES_ON && *budget);
    }
    preempt_trial_close(&trial);
    return result;
}

/* ---- a job that is only asked about ---- */

/* What the steps found out, but nobody is told. */
static bool tell_apart(struct preempt_trial *trial, struct parts *parts, id_list *victims)
{
    struct preempt_search *search = trial->search;

    if (!fits_marked(trial))
        return false;
    take_seats(trial);
    cut_to_seats(trial);
    vec_clear(victims);
    vec_each (struct victim, victim, &search->list) {
        if (!victim->stays && !victim->going)
            vec_push(victims, victim->id);
    }
    vec_clear(&parts->list);
    for (uint32_t k = 0; k < trial->count; k++) {
        for (size_t i = 0; i < trial->preemptors[k].of.parts.list.len; i++)
            vec_push(&parts->list, trial->preemptors[k].of.parts.list.items[i]);
    }
    return victims->len > 0;
}

bool preempt_search_test(struct sched *sched, const struct job *const *jobs, uint32_t count,
                         uint32_t partition_queue, struct parts *parts, id_list *victims)
{
    struct preempt_search kept = sched->preempt->search;
    enum preempt_search_result result = PREEMPT_SEARCH_FAILED;
    unsigned budget = TEST_BUDGET;
    struct preempt_trial trial;
    bool good = false;

    sched->preempt->search = (struct preempt_search){ .partition_queue = partition_queue };
    if (preempt_trial_open_asked(&trial, sched, jobs, count, partition_queue)) {
        do {
            result = steps[sched->preempt->search.phase](&trial, &budget);
            budget = sched->forecast->takes_time ? TEST_BUDGET : budget;
        } while (result == PREEMPT_SEARCH_GOES_ON &&
                 sched->preempt->search.phase != PREEMPT_SEARCH_END && budget);
        good = result == PREEMPT_SEARCH_GOES_ON &&
               sched->preempt->search.phase == PREEMPT_SEARCH_END &&
               tell_apart(&trial, parts, victims);
    }
    preempt_trial_close(&trial);
    preempt_search_done(sched);
    sched->preempt->search = kept;
    return good;
}
