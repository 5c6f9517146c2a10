/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hunt.c - who must go for a job to start, at least cost
 *
 * Runs are marked as if they had gone, and the job is placed with what is left (view.without). Hosts
 * where the fewest and cheapest have to go come first (bids.c); then everybody who can stay, stays.
 *
 * (1) Nobody is named in vain: the job fits without the victims, and does not fit when any one of
 *     them stays. What ends anyway counts as gone.
 */
#include <stdlib.h>

#include "core/preempt.h"
#include "sched/hunt_priv.h"

/* At hosts, to find out who can stay. */
enum { LOOKS_MOST = 16384 };

void hunt_mark(struct sched *sched, const struct job *job, uint8_t out)
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

void hunt_mark_candidate(struct sched *sched, const struct candidate *candidate, bool out)
{
    uint8_t how = candidate->mode == PREEMPT_SUSPEND ? RUN_LENDS : RUN_GONE;

    hunt_mark(sched, candidate->job, out ? how : RUN_STAYS);
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

int hunt_by_cost(const void *a, const void *b, void *arg)
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

bool hunt_is_going(const struct job *job)
{
    enum job_phase phase = job_phase(job);

    return phase == PHASE_COMPLETING || phase == PHASE_REQUEUING;
}

bool hunt_may_take(struct hunt *hunt, const struct job *job, struct candidate *out)
{
    struct sched *sched = hunt->sched;

    if (job == hunt->job || hold_waits_for(sched, job->id))
        return false;
    enum preempt_mode mode = preempt_mode(sched->state, hunt->job, hunt->need->partition, job);
    if (mode == PREEMPT_OFF)
        return false;
    int64_t from = preempt_from_us(sched->state, job);
    if (from > sched->now_us) {
        sched->preempt_wake_us = MIN(sched->preempt_wake_us, from);
        return false;
    }
    *out = (struct candidate){ job, mode, preempt_worth(sched->state, job) };
    return true;
}

/* Everybody on the hosts, once; what ends anyway is marked. (1) */
static void gather(struct hunt *hunt, const uint32_t *hosts, size_t count)
{
    struct sched *sched = hunt->sched;
    bool youngest = state_config(sched->state)->preempt_youngest_first;
    size_t kept = 0;

    for (size_t h = 0; h < count; h++) {
        const struct node *node = sched->hosts.items[hosts[h]].node;
        for (size_t i = 0; i < node->jobs.len; i++) {
            struct candidate one;
            if (hunt_is_going(node->jobs.items[i])) {
                vec_push(&hunt->going, node->jobs.items[i]);
                hunt_mark(sched, node->jobs.items[i], RUN_GONE);
            } else if (hunt_may_take(hunt, node->jobs.items[i], &one)) {
                vec_push(&hunt->list, one);
            }
        }
    }
    if (hunt->list.len)
        qsort_r(hunt->list.items, hunt->list.len, sizeof(struct candidate), hunt_by_cost,
                &youngest);
    for (size_t i = 0; i < hunt->list.len;
         i++) { /* one that is on several hosts is there so often */
        if (!kept || hunt->list.items[kept - 1].job != hunt->list.items[i].job)
            hunt->list.items[kept++] = hunt->list.items[i];
    }
    hunt->list.len = kept;
}

static bool fits(struct hunt *hunt, const uint32_t *hosts, size_t count)
{
    return place_among(hunt->sched, hunt->family, hunt->partition, hunt->job, &hunt->view, hosts,
                       count, &hunt->parts);
}

static void mark_all(struct hunt *hunt, bool out)
{
    vec_each (struct candidate, candidate, &hunt->list)
        hunt_mark_candidate(hunt->sched, candidate, out);
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
            hunt_mark_candidate(hunt->sched, &hunt->list.items[i], false);
    }
    hunt->list.len = kept;
    bitset_done(&chosen);
}

/* Does every host that the job is on still have room for the part that it is to get? */
static bool parts_fit(struct hunt *hunt, const struct job *stays)
{
    for (unsigned i = 0; i < stays->run->count; i++) {
        const struct node *node = stays->run->parts[i].node;
        size_t low = 0, high = node ? hunt->parts.list.len : 0;
        while (low < high) { /* they are in order */
            size_t middle = low + (high - low) / 2;
            if (hunt->parts.list.items[middle].host < node->number)
                low = middle + 1;
            else
                high = middle;
        }
        if (!node || low == hunt->parts.list.len ||
            hunt->parts.list.items[low].host != node->number)
            continue;
        if (place_tasks_at(hunt->sched, hunt->family, hunt->partition, hunt->job, &hunt->view,
                           node->number) < hunt->parts.list.items[low].take.tasks)
            return false;
    }
    return true;
}

/*
 * (1): what can stay, stays; the dearest is asked first. Of very many it is asked only whether the
 * parts that are planned still fit, not whether others would.
 */
static void spare(struct hunt *hunt, const uint32_t *hosts, size_t count)
{
    bool many = hunt->list.len * count > LOOKS_MOST && !hunt->family->particular;

    for (size_t i = hunt->list.len; i-- > 0;) {
        struct candidate one = hunt->list.items[i];
        hunt_mark_candidate(hunt->sched, &one, false);
        if (many ? parts_fit(hunt, one.job) : fits(hunt, hosts, count))
            vec_remove(&hunt->list, i);
        else
            hunt_mark_candidate(hunt->sched, &one, true);
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

static bool find_victims(struct hunt *hunt, const uint32_t *hosts, size_t count)
{
    size_t chosen_count = 0;

    if (!hunt->list.len)
        return false;
    mark_all(hunt, true);
    if (!fits(hunt, hosts, count))
        return false;
    cut_to_hosts(hunt);
    uint32_t *chosen = chosen_hosts(hunt, &chosen_count);
    spare(hunt, chosen, chosen_count);
    free(chosen);
    return true;
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
        bool seen = false;
        for (size_t k = 0; k < kept; k++)
            seen = seen || hunt->going.items[k] == hunt->going.items[i];
        if (!seen && is_on(hunt->going.items[i], &chosen))
            hunt->going.items[kept++] = hunt->going.items[i];
    }
    hunt->going.len = kept;
    bitset_done(&chosen);
}

void hunt_init(struct hunt *hunt, struct sched *sched, const struct job *job, size_t partition)
{
    const struct pend *pend = pend_find(sched, job->id);

    *hunt = (struct hunt){ .sched = sched, .job = job, .partition = partition };
    hunt->family = class_of(sched, pend)->family;
    hunt->need = &shape_needs(sched->state, job->shape)[partition];
    hunt->view = (struct view){ .now_us = sched->now_us,
                                .start_us = sched->now_us + 1,
                                .end_us = job_end_by(job, sched->now_us),
                                .mine = job->id,
                                .without = true,
                                .order = { pend->rank, job->id } };
    family_asks(sched, hunt->family);
}

bool hunt_victims(struct hunt *hunt, const uint32_t *hosts, size_t count)
{
    struct sched *sched = hunt->sched;
    VEC(struct candidate) all = { 0 };
    VEC(const struct job *) ending = { 0 };
    bool named = false;

    gather(hunt, hosts, count);
    vec_each (struct candidate, candidate, &hunt->list)
        vec_push(&all, *candidate);
    vec_each (const struct job *, at, &hunt->going)
        vec_push(&ending, *at);
    if (find_victims(hunt, hosts, count) && hunt->list.len) {
        cut_going(hunt);
        hold_put(sched, hunt);
        command_put(sched, hunt);
        named = true;
    }
    vec_each (struct candidate, candidate, &all)
        hunt_mark_candidate(sched, candidate, false);
    vec_each (const struct job *, at, &ending)
        hunt_mark(sched, *at, RUN_STAYS);
    vec_done(&all);
    vec_done(&ending);
    vec_done(&hunt->list);
    vec_done(&hunt->going);
    vec_done(&hunt->parts.list);
    return named;
}
