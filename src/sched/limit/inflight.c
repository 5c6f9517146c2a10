/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflight.c - starts that are planned and have not come back
 *
 * A start in flight holds what it will take until core has applied or refused it. Those of one job record
 * come back in the order they went, so the one looked for is nearly always the first.
 *
 * Who was suspended for a job runs again as soon as that has started, if its CPUs are free then: until the start
 * comes back they count as in use, as if it were a start in flight of its own.
 */
#include <stdlib.h>

#include "base/must.h"
#include "sched/limit/limit.h"

static void claim_link(struct sched *sched, struct claim *claim)
{
    struct host *host = &sched->hosts->list.items[claim->host];

    claim->next = host->claims;
    host->claims = claim;
    host_refresh(sched, claim->host);
}

static void claim_unlink(struct sched *sched, struct claim *claim)
{
    struct host *host = &sched->hosts->list.items[claim->host];
    struct claim **at = &host->claims;

    while (*at != claim)
        at = &(*at)->next;
    *at = claim->next;
}

static void claim_done(struct sched *sched, struct claim *claim)
{
    amount_drop(sched, claim->amount);
    bitset_done(&claim->cpus);
    for (size_t i = 0; i < claim->device_kinds; i++)
        bitset_done(&claim->devices[i]);
    free(claim->devices);
}

static void inflight_put(struct sched *sched, uint32_t job_id, struct inflight *inflight)
{
    struct inflight_list *inflights = map_get_num(&sched->limit->inflights, job_id);

    if (!inflights) {
        inflights = NEW(struct inflight_list);
        map_put_num(&sched->limit->inflights, job_id, inflights);
    }
    if (inflights->last)
        inflights->last->next = inflight;
    else
        inflights->first = inflight;
    inflights->last = inflight;
    inflights->count++;
}

static void claim_cpus(struct sched *sched, struct claim *claim, const struct job_part *part)
{
    struct host *host = &sched->hosts->list.items[claim->host];

    bitset_init(&claim->cpus, host->node->cpu_span);
    bitset_each (cpu, &part->cpu_ids) {
        if (cpu >= host->node->cpu_span)
            break;
        bitset_add(&claim->cpus, cpu);
        claim->fresh_cpus += host_cpu_is_free(host, cpu, 1);
    }
}

void inflight_return(struct sched *sched, const struct job *lent, uint32_t with_id)
{
    const struct job_run *run = lent->run;
    struct inflight *inflight = mem_new(sizeof(*inflight) + run->count * sizeof(struct claim));

    inflight->task = NO_TASK;
    for (unsigned i = 0; i < run->count; i++) {
        const struct job_part *part = &run->parts[i];
        if (!part->node)
            continue;
        struct claim *claim = &inflight->claims[inflight->count++];
        struct take take = { .tasks = 1 };
        claim->host = part->node->number;
        claim->job_id = lent->id;
        claim->end_us = job_runs_until(lent);
        claim->uid = lent->owner->uid;
        claim->exclusive = (uint8_t)job_exclusive_kind(sched, lent);
        claim->partition = UINT32_MAX; /* it is counted there already */
        claim->resv = resv_hash(run->reservation);
        claim->mcs = mcs_hash(lent->shape->mcs_label);
        claim->shared = run->shared;
        claim_cpus(sched, claim, part);
        take.cpus = (uint32_t)bitset_count(&claim->cpus);
        claim->amount = amount_take(sched, &take, false);
        claim_link(sched, claim);
    }
    inflight_put(sched, lent->id, inflight);
    vec_push(&sched->limit->returning, (struct returning){ with_id, lent->id });
}

/* The start they were suspended for came back, so they run or do not. */
static void end_returning(struct sched *sched, uint32_t with_id)
{
    for (size_t i = sched->limit->returning.len; i-- > 0;) {
        uint32_t id = sched->limit->returning.items[i].job_id;
        if (sched->limit->returning.items[i].with_id != with_id)
            continue;
        vec_remove(&sched->limit->returning, i);
        inflight_undo(sched, id, NO_TASK);
    }
}

struct inflight *inflight_start(struct sched *sched, const struct job *job, uint32_t task,
                                const struct parts *parts, const struct family *family,
                                int64_t end_us)
{
    size_t count = parts->list.len;
    struct inflight *inflight = mem_new(sizeof(*inflight) + count * sizeof(struct claim));

    MUST(parts->need && count > 0);
    inflight->task = task;
    sched->hosts->topo_exclusive = sched->hosts->topo_exclusive || family->shape->exclusive_topo;
    inflight->held = limits_plan(sched, job, parts);
    inflight->array_id = job->array ? job->array->id : 0;
    inflight->count = count;
    uint64_t resv = resv_hash(parts->resv ? parts->resv->spec->name : NULL);
    uint64_t mcs = mcs_hash(family->shape->mcs_label);
    for (size_t i = 0; i < count; i++) {
        const struct chosen *part = &parts->list.items[i];
        struct claim *claim = &inflight->claims[i];
        claim->host = part->host;
        claim->job_id = job->id;
        claim->end_us = end_us;
        claim->uid = job->owner->uid;
        claim->exclusive = family->exclusive | (family->shape->exclusive_topo ? EXCLUDES_TOPO : 0);
        claim->partition = parts->need->partition->number;
        claim->resv = resv;
        claim->mcs = mcs;
        claim->amount = amount_take(sched, &part->take, parts->need->whole_nodes);
        pick(&sched->hosts->list.items[part->host], family->shape, parts->need, &part->take, claim);
        claim_link(sched, claim);
    }
    inflight_put(sched, job->id, inflight);
    if (inflight->array_id)
        throttle_plan(sched, inflight->array_id, 1);
    if (family->shape->licence_count)
        inflight->licences = licences_claim(sched, job->id, family, parts, end_us);
    return inflight;
}

/* It has it now: host_job_add() looks at the host. */
static bool runs_there(const struct sched *sched, const struct job *started, size_t part,
                       uint32_t host)
{
    return started && started->run && part < started->run->count &&
           started->run->parts[part].node == sched->hosts->list.items[host].node;
}

/* `tried`: it was only thought of, so nobody waits for what it gives back. */
static bool land(struct sched *sched, uint32_t job_id, uint32_t task, const struct job *started,
                 bool tried)
{
    struct inflight_list *inflights = inflights_of(sched, job_id);
    struct inflight *before = NULL, *inflight = inflights ? inflights->first : NULL;

    for (; inflight && inflight->task != task; inflight = inflight->next)
        before = inflight;
    if (!inflight)
        return false;
    if (before)
        before->next = inflight->next;
    else
        inflights->first = inflight->next;
    if (inflights->last == inflight)
        inflights->last = before;
    if (--inflights->count == 0)
        free(map_del_num(&sched->limit->inflights, job_id));
    for (size_t i = 0; i < inflight->count; i++) {
        claim_unlink(sched, &inflight->claims[i]);
        if (!runs_there(sched, started, i, inflight->claims[i].host))
            host_refresh(sched, inflight->claims[i].host);
        claim_done(sched, &inflight->claims[i]);
    }
    if (inflight->array_id)
        throttle_plan(sched, inflight->array_id, -1);
    (tried ? licences_forget : licences_give)(sched, inflight->licences);
    limits_unplan(sched, inflight->held, started || tried);
    free(inflight);
    if (sched->limit->returning.len)
        end_returning(sched, job_id);
    return true;
}

bool inflight_end(struct sched *sched, uint32_t job_id, uint32_t task, const struct job *started)
{
    return land(sched, job_id, task, started, false);
}

void inflight_undo(struct sched *sched, uint32_t job_id, uint32_t task)
{
    land(sched, job_id, task, NULL, true);
}

void inflights_done(struct sched *sched)
{
    map_each (entry, &sched->limit->inflights) {
        struct inflight_list *inflights = entry->value;
        for (struct inflight *inflight = inflights->first, *next; inflight; inflight = next) {
            next = inflight->next;
            for (size_t i = 0; i < inflight->count; i++)
                claim_done(sched, &inflight->claims[i]);
            licences_give(sched, inflight->licences);
            free(inflight->held);
            free(inflight);
        }
        free(inflights);
    }
    map_done(&sched->limit->inflights);
    vec_done(&sched->limit->returning);
    for (size_t i = 0; i < sched->hosts->list.len; i++)
        sched->hosts->list.items[i].claims = NULL;
}
