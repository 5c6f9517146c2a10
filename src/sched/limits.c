/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits.c - jobs that a limit of their association or QOS keeps from starting
 *
 * core says in the depth of the account tree whether a job may start (limits_allow). Here is only
 * what makes that cheap for a long queue: a job that may not is taken out of its class and put into
 * the line of the holder whose counter is in the way. It is looked at again when that counter falls.
 *
 * (1) Starts that are planned and not applied are counted in sched->planned, so that no more are
 *     planned than the limit has room for.
 * (2) When a counter falls, no more than RELEASE_MOST jobs of the line go back to their classes: of
 *     those that do not find room, the same number is tried with the next one that ends.
 * (3) Limits on past usage fall with time; each turn of the priorities looks at all lines.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/sched_priv.h"

enum { RELEASE_MOST = 32, SWEEP_SLICE = 512, SWEEP_PER_BUDGET = 8 };

struct held {
    size_t count;
    int64_t seconds;
    struct charge charge;
    const struct holder *holders[HOLDERS_MOST];
};

/* ---- lines of holders ---- */

static struct line *line_of(struct sched *sched, uint32_t holder, bool make)
{
    struct line *line = map_get_num(&sched->limited, holder);

    if (!line && make) {
        line = NEW(struct line);
        map_put_num(&sched->limited, holder, line);
    }
    return line;
}

void limited_put(struct sched *sched, uint32_t holder, struct order order)
{
    if (holder != NO_HOLDER)
        line_put(line_of(sched, holder, true), order);
}

void limited_del(struct sched *sched, uint32_t holder, struct order order)
{
    struct line *line = holder == NO_HOLDER ? NULL : line_of(sched, holder, false);

    if (!line)
        return;
    line_del(line, order);
    if (order_is_last(line_head(line))) {
        map_del_num(&sched->limited, holder);
        line_done(line);
        free(line);
    }
}

static void release(struct sched *sched, uint32_t holder)
{
    for (unsigned i = 0; i < RELEASE_MOST; i++) { /* (2) */
        struct line *line = line_of(sched, holder, false);
        const struct job *job = line ? state_job(sched->state, line_head(line).id) : NULL;
        struct limit_hit hit;
        if (!job)
            return;
        if (!limits_allow_any(sched->state, job, &sched->planned, &hit)) {
            if (hit.holder && hit.holder->number == holder)
                return;
            class_limit_job(sched, job, &hit); /* it waits for another now */
            continue;
        }
        class_settle(sched, job);
    }
}

/* ---- what the planner asks ---- */

bool limits_in_way(struct sched *sched, const struct job *job)
{
    struct limit_hit hit;

    if (!state_enforce(sched->state) || limits_allow_any(sched->state, job, &sched->planned, &hit))
        return false;
    class_limit_job(sched, job, &hit);
    return true;
}

bool limits_stop(const struct sched *sched, uint32_t job_id)
{
    struct limit_hit hit;

    return state_enforce(sched->state) &&
           !limits_allow_any(sched->state, state_job(sched->state, job_id), &sched->planned, &hit);
}

static void charge_parts(const struct sched *sched, const struct job *job,
                         const struct parts *parts, struct charge *out)
{
    memset(out, 0, sizeof(*out));
    for (size_t i = 0; i < parts->list.len; i++) {
        const struct chosen *part = &parts->list.items[i];
        const struct node *node = sched->hosts.items[part->host].node;
        charge_add_node(sched->state, out, part->take.cpus, part->take.mem_mb);
        for (size_t g = 0; g < node->gres_count && g < TAKE_GRES; g++) {
            if (part->take.gres[g])
                charge_add(sched->state, out, node->gres[g].name, node->gres[g].type,
                           part->take.gres[g]);
        }
    }
    charge_close(sched->state, out, job->shape, parts->need->partition);
}

bool limits_in_way_of(struct sched *sched, const struct job *job, const struct parts *parts,
                      struct limit_hit *hit)
{
    struct charge charge;

    if (!state_enforce(sched->state))
        return false;
    charge_parts(sched, job, parts, &charge);
    return !limits_allow(sched->state, job, parts->need->partition, &charge, &sched->planned, hit);
}

/* ---- (1) ---- */

struct held *limits_plan(struct sched *sched, const struct job *job, const struct parts *parts)
{
    struct held *held;

    if (!state_enforce(sched->state))
        return NULL;
    held = NEW(struct held);
    charge_parts(sched, job, parts, &held->charge);
    held->count = limits_holders(sched->state, job, parts->need->partition, held->holders);
    held->seconds = limits_seconds(job);
    tallies_add(sched->state, &sched->planned, held->holders, held->count, &held->charge,
                held->seconds, 1);
    return held;
}

void limits_unplan(struct sched *sched, struct held *held)
{
    if (!held)
        return;
    tallies_add(sched->state, &sched->planned, held->holders, held->count, &held->charge,
                held->seconds, -1);
    for (size_t i = 0; i < held->count && map_len(&sched->limited); i++)
        release(sched, held->holders[i]->number);
    free(held);
}

void limits_freed(struct sched *sched, const struct job *job)
{
    const struct holder *holders[HOLDERS_MOST];

    if (!map_len(&sched->limited))
        return;
    const char *partition = job->run ? job->run->partition : job->shape->partitions[0];
    size_t count =
        limits_holders(sched->state, job, state_partition(sched->state, partition), holders);
    for (size_t i = 0; i < count; i++)
        release(sched, holders[i]->number);
}

/* ---- turns of the priorities ---- */

/* (3), and each job to its new place in the order, some in each slice. */
void limits_sweep(struct sched *sched, unsigned *budget)
{
    uint64_t turn = state_priority_turn(sched->state);

    if (sched->turn != turn) {
        sched->turn = turn;
        sched->sweep_id = priority_is_basic(sched->state) ? 0 : 1;
        vec_clear(&sched->review);
        map_each (entry, &sched->limited)
            vec_push(&sched->review, (uint32_t)entry->num);
    }
    while (sched->review.len && *budget) {
        release(sched, sched->review.items[--sched->review.len]);
        *budget -= MIN(*budget, RELEASE_MOST);
    }
    for (unsigned done = 0; sched->sweep_id && done < SWEEP_SLICE && *budget; done++) {
        const struct job *job = state_job_from(sched->state, sched->sweep_id);
        sched->sweep_id = job && job->id < UINT32_MAX ? job->id + 1 : 0;
        if (!job)
            break;
        const struct pend *pend = pend_find(sched, job->id);
        if (pend && pend->class && class_rank_is_old(sched, job))
            class_refresh(sched, job);
        if (done % SWEEP_PER_BUDGET == 0)
            --*budget;
    }
}

void limits_done(struct sched *sched)
{
    map_each (entry, &sched->limited) {
        line_done(entry->value);
        free(entry->value);
    }
    map_done(&sched->limited);
    vec_done(&sched->review);
    tallies_done(&sched->planned);
}
