/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hunt.c - who must go for a job to start, at least cost
 *
 * Runs are marked as if they had gone, and the job is placed with what is left (view.without). Hosts
 * where the fewest and cheapest have to go come first; then everybody who can stay, stays.
 *
 * (1) Nobody is named in vain: the job fits without the victims, and does not fit when any one of
 *     them stays. What ends anyway counts as gone.
 */
#include <stdlib.h>

#include "core/preempt.h"
#include "sched/place_priv.h"

struct candidate {
    const struct job *job;
    enum preempt_mode mode;
    uint32_t worth;
};
struct hunt {
    struct sched *sched;
    struct family *family;
    const struct job *job;
    const struct need *need;
    size_t partition;
    struct view view;
    VEC(struct candidate) list; /* the cheapest first */
    VEC(const struct job *) going;
    struct parts parts;
};

static void mark(struct sched *sched, const struct job *job, uint8_t out)
{
    for (unsigned i = 0; i < job->run->count; i++) {
        const struct node *node = job->run->parts[i].node;
        if (!node)
            continue;
        struct host *host = &sched->hosts.items[node->number];
        for (size_t r = 0; r < host->runs.len; r++) {
            if (host->runs.items[r].job_id == job->id)
                host->runs.items[r].out = out;
        }
    }
}

static void mark_candidate(struct sched *sched, const struct candidate *candidate, bool out)
{
    uint8_t how = candidate->mode == PREEMPT_SUSPEND ? RUN_LENDS : RUN_GONE;

    mark(sched, candidate->job, out ? how : RUN_STAYS);
}

static bool is_first_part(const struct job *job, const struct node *node)
{
    for (unsigned i = 0; i < job->run->count; i++) {
        if (job->run->parts[i].node)
            return job->run->parts[i].node == node;
    }
    return false;
}

static bool is_on(const struct job *job, const struct bitset *hosts)
{
    for (unsigned i = 0; i < job->run->count; i++) {
        const struct node *node = job->run->parts[i].node;
        if (node && bitset_has(hosts, node->number))
            return true;
    }
    return false;
}

static int by_cost(const void *a, const void *b, void *arg)
{
    const struct candidate *x = a, *y = b;
    bool youngest = *(const bool *)arg;
    int64_t started = x->job->run->start_us - y->job->run->start_us;

    if (x->worth != y->worth)
        return x->worth < y->worth ? -1 : 1;
    if (!youngest && x->job->priority != y->job->priority)
        return x->job->priority < y->job->priority ? -1 : 1;
    if (started)
        return started > 0 ? -1 : 1;
    return x->job->id > y->job->id ? -1 : x->job->id < y->job->id;
}

static void consider(struct hunt *hunt, const struct job *job)
{
    struct sched *sched = hunt->sched;
    enum job_phase phase = job_phase(job);

    if (phase == PHASE_COMPLETING || phase == PHASE_REQUEUING) {
        vec_push(&hunt->going, job);
        mark(sched, job, RUN_GONE); /* (1) */
        return;
    }
    if (job == hunt->job || hold_waits_for(sched, job->id))
        return;
    enum preempt_mode mode = preempt_mode(sched->state, hunt->job, hunt->need->partition, job);
    if (mode == PREEMPT_OFF)
        return;
    int64_t from = preempt_from_us(sched->state, job);
    if (from > sched->now_us) {
        sched->preempt_wake_us = MIN(sched->preempt_wake_us, from);
        return;
    }
    vec_push(&hunt->list, (struct candidate){ job, mode, preempt_worth(sched->state, job) });
}

static void gather(struct hunt *hunt)
{
    struct sched *sched = hunt->sched;
    bool youngest = state_config(sched->state)->preempt_youngest_first;

    bitset_each (number, &hunt->need->nodes) {
        const struct node *node = sched->hosts.items[number].node;
        for (size_t i = 0; i < node->jobs.len; i++) {
            if (is_first_part(node->jobs.items[i], node) || !node->jobs.items[i]->run)
                consider(hunt, node->jobs.items[i]);
        }
    }
    sched->looked += hunt->need->node_count;
    if (hunt->list.len)
        qsort_r(hunt->list.items, hunt->list.len, sizeof(struct candidate), by_cost, &youngest);
}

/* ---- where ---- */

/* What it costs to let the job use a host. */
struct bid {
    uint32_t host, tasks, jobs;
    uint64_t dear; /* place of the dearest of them */
};

static uint32_t room_for(struct hunt *hunt, uint32_t host)
{
    return place_tasks_at(hunt->sched, hunt->family, hunt->partition, hunt->job, &hunt->view, host);
}

/* Victims are taken from the cheapest on until there is enough room, for so many tasks. */
static struct bid bid_for(struct hunt *hunt, uint32_t number, uint32_t wanted)
{
    struct sched *sched = hunt->sched;
    const struct node *node = sched->hosts.items[number].node;
    struct bid bid = { .host = number, .tasks = room_for(hunt, number) };

    for (size_t i = 0; i < hunt->list.len && bid.tasks < wanted; i++) {
        const struct candidate *candidate = &hunt->list.items[i];
        bool here = false;
        for (size_t k = 0; k < node->jobs.len; k++)
            here = here || node->jobs.items[k] == candidate->job;
        if (!here)
            continue;
        mark_candidate(sched, candidate, true);
        bid.tasks = room_for(hunt, number);
        bid.jobs++;
        bid.dear = i + 1;
    }
    for (size_t i = 0; i < bid.dear; i++)
        mark_candidate(sched, &hunt->list.items[i], false);
    return bid;
}

static int by_jobs(const void *a, const void *b, void *arg)
{
    const struct bid *x = a, *y = b;
    bool strict = *(const bool *)arg;

    if (!strict && x->jobs != y->jobs)
        return x->jobs < y->jobs ? -1 : 1;
    if (x->dear != y->dear)
        return x->dear < y->dear ? -1 : 1;
    if (x->tasks != y->tasks)
        return x->tasks > y->tasks ? -1 : 1;
    return x->host < y->host ? -1 : x->host > y->host;
}

/* The hosts that cost least first. */
static uint32_t *hosts_by_cost(struct hunt *hunt, size_t *count)
{
    const struct shape *shape = hunt->family->shape;
    uint32_t share = (shape->tasks + shape->min_nodes - 1) / shape->min_nodes;
    bool strict = state_config(hunt->sched->state)->preempt_strict_order;
    VEC(struct bid) bids = { 0 };

    bitset_each (number, &hunt->need->nodes) {
        struct bid bid = bid_for(hunt, (uint32_t)number, share);
        if (bid.tasks)
            vec_push(&bids, bid);
    }
    if (bids.len)
        qsort_r(bids.items, bids.len, sizeof(struct bid), by_jobs, &strict);
    uint32_t *hosts = NEW_ARRAY(uint32_t, bids.len + 1);
    for (size_t i = 0; i < bids.len; i++)
        hosts[i] = bids.items[i].host;
    *count = bids.len;
    vec_done(&bids);
    return hosts;
}

static bool fits(struct hunt *hunt, const uint32_t *hosts, size_t count)
{
    return place_among(hunt->sched, hunt->family, hunt->partition, hunt->job, &hunt->view, hosts,
                       count, &hunt->parts);
}

static void mark_all(struct hunt *hunt, bool out)
{
    vec_each (struct candidate, candidate, &hunt->list)
        mark_candidate(hunt->sched, candidate, out);
}

static void cut_to_hosts(struct hunt *hunt)
{
    struct bitset chosen;
    size_t kept = 0;

    bitset_init(&chosen, hunt->sched->hosts.len);
    for (size_t i = 0; i < hunt->parts.list.len; i++)
        bitset_add(&chosen, hunt->parts.list.items[i].host);
    for (size_t i = 0; i < hunt->list.len; i++) {
        if (is_on(hunt->list.items[i].job, &chosen))
            hunt->list.items[kept++] = hunt->list.items[i];
        else
            mark_candidate(hunt->sched, &hunt->list.items[i], false);
    }
    hunt->list.len = kept;
    bitset_done(&chosen);
}

/* (1): what can stay, stays; the dearest is asked first. */
static void spare(struct hunt *hunt, const uint32_t *hosts, size_t count)
{
    for (size_t i = hunt->list.len; i-- > 0;) {
        struct candidate one = hunt->list.items[i];
        mark_candidate(hunt->sched, &one, false);
        if (fits(hunt, hosts, count))
            vec_remove(&hunt->list, i);
        else
            mark_candidate(hunt->sched, &one, true);
    }
    fits(hunt, hosts, count); /* the parts as they are now */
    cut_to_hosts(hunt);
}

/* On the hosts that the last placing took, in their order. */
static uint32_t *chosen_hosts(const struct hunt *hunt, size_t *count)
{
    uint32_t *hosts = NEW_ARRAY(uint32_t, hunt->parts.list.len + 1);

    *count = hunt->parts.list.len;
    for (size_t i = 0; i < *count; i++)
        hosts[i] = hunt->parts.list.items[i].host;
    return hosts;
}

static bool find_victims(struct hunt *hunt)
{
    size_t count = 0, chosen_count = 0;

    if (!hunt->list.len)
        return false;
    uint32_t *hosts = hosts_by_cost(hunt, &count);
    mark_all(hunt, true);
    bool good = fits(hunt, hosts, count);
    if (good) {
        cut_to_hosts(hunt);
        uint32_t *chosen = chosen_hosts(hunt, &chosen_count);
        spare(hunt, chosen, chosen_count);
        free(chosen);
    }
    free(hosts);
    return good;
}

/* ---- what comes of it ---- */

static void hold_put(struct sched *sched, const struct hunt *hunt)
{
    int64_t length = job_length_us(hunt->job);
    struct hold hold = { .job_id = hunt->job->id, .host_count = hunt->parts.list.len };

    book_drop(sched, hunt->job->id);
    hold.count = hunt->list.len + hunt->going.len;
    hold.victims = NEW_ARRAY(struct victim, hold.count + 1);
    hold.named = hunt->list.len;
    for (size_t i = 0; i < hold.count; i++) {
        const struct job *job =
            i < hunt->list.len ? hunt->list.items[i].job : hunt->going.items[i - hunt->list.len];
        hold.victims[i] = (struct victim){ job->id, job->attempt };
    }
    hold.hosts = NEW_ARRAY(uint32_t, hold.host_count + 1);
    for (size_t i = 0; i < hold.host_count; i++) {
        const struct chosen *part = &hunt->parts.list.items[i];
        struct block block = { .start_us = sched->now_us, .job_id = hunt->job->id };
        if (hunt->parts.resv)
            block.resv = resv_hash(hunt->parts.resv->spec->name);
        block.end_us = sched->now_us + (length == INT64_MAX ? UNLIMITED_US : length);
        block.amount = amount_take(sched, &part->take, hunt->need->whole_nodes);
        host_block_add(sched, part->host, block);
        hold.hosts[i] = part->host;
    }
    vec_push(&sched->holds, hold);
}

static void command_put(struct sched *sched, const struct hunt *hunt)
{
    struct arena *arena = &sched->plan_arena;
    CmdPreempt *command = ARENA_NEW(arena, CmdPreempt);

    cmd_preempt__init(command);
    command->has_job_id = true;
    command->job_id = hunt->job->id;
    command->partition = hunt->need->partition->spec->name;
    command->victims = ARENA_ARRAY(arena, uint32_t, hunt->list.len);
    command->attempts = ARENA_ARRAY(arena, uint32_t, hunt->list.len);
    for (size_t i = 0; i < hunt->list.len; i++) {
        command->victims[command->n_victims++] = hunt->list.items[i].job->id;
        command->attempts[command->n_attempts++] = hunt->list.items[i].job->attempt;
    }
    vec_push(&sched->preempts, command);
}

/* Only what ends on the hosts that were chosen is waited for. */
static void cut_going(struct hunt *hunt)
{
    struct bitset chosen;
    size_t kept = 0;

    bitset_init(&chosen, hunt->sched->hosts.len);
    for (size_t i = 0; i < hunt->parts.list.len; i++)
        bitset_add(&chosen, hunt->parts.list.items[i].host);
    for (size_t i = 0; i < hunt->going.len; i++) {
        if (is_on(hunt->going.items[i], &chosen))
            hunt->going.items[kept++] = hunt->going.items[i];
    }
    hunt->going.len = kept;
    bitset_done(&chosen);
}

bool hunt_victims(struct sched *sched, struct family *family, const struct job *job,
                  struct order order, size_t partition)
{
    struct hunt hunt = { .sched = sched, .family = family, .job = job, .partition = partition };
    bool named = false;

    hunt.need = &shape_needs(sched->state, family->shape)[partition];
    hunt.view = (struct view){ .now_us = sched->now_us,
                               .start_us = sched->now_us + 1,
                               .end_us = job_end_by(job, sched->now_us),
                               .mine = job->id,
                               .without = true,
                               .order = order };
    family_asks(sched, family);
    gather(&hunt);
    VEC(struct candidate) all = { 0 };
    vec_each (struct candidate, candidate, &hunt.list)
        vec_push(&all, *candidate);
    VEC(const struct job *) ending = { 0 };
    vec_each (const struct job *, at, &hunt.going)
        vec_push(&ending, *at);
    if (find_victims(&hunt) && hunt.list.len) {
        cut_going(&hunt);
        hold_put(sched, &hunt);
        command_put(sched, &hunt);
        named = true;
    }
    vec_each (struct candidate, candidate, &all)
        mark_candidate(sched, candidate, false);
    vec_each (const struct job *, at, &ending)
        mark(sched, *at, RUN_STAYS);
    vec_done(&all);
    vec_done(&ending);
    vec_done(&hunt.list);
    vec_done(&hunt.going);
    vec_done(&hunt.parts.list);
    return named;
}
