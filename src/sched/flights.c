/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flights.c - starts that are planned and have not come back
 *
 * A flight holds what it will take until core has applied or refused it. Those of one job record
 * come back in the order they went, so the one looked for is nearly always the first.
 *
 * Who was suspended for a job runs again as soon as that has started, if its CPUs are free then: until the start
 * comes back they count as in use, as if it were a flight of its own.
 */
#include <stdlib.h>

#include "sched/sched_priv.h"

static void claim_link(struct sched *sched, struct claim *claim)
{
    struct host *host = &sched->hosts.items[claim->host];

    claim->next = host->claims;
    host->claims = claim;
    host_refresh(sched, claim->host);
}

static void claim_unlink(struct sched *sched, struct claim *claim)
{
    struct host *host = &sched->hosts.items[claim->host];
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

static void flight_put(struct sched *sched, uint32_t job_id, struct flight *flight)
{
    struct flights *flights = map_get_num(&sched->flights, job_id);

    if (!flights) {
        flights = NEW(struct flights);
        map_put_num(&sched->flights, job_id, flights);
    }
    if (flights->last)
        flights->last->next = flight;
    else
        flights->first = flight;
    flights->last = flight;
    flights->count++;
}

static void claim_cpus(struct sched *sched, struct claim *claim, const struct job_part *part)
{
    struct host *host = &sched->hosts.items[claim->host];

    bitset_init(&claim->cpus, host->node->cpu_span);
    bitset_each (cpu, &part->cpu_ids) {
        if (cpu >= host->node->cpu_span)
            break;
        bitset_add(&claim->cpus, cpu);
        claim->fresh_cpus += host_cpu_is_free(host, cpu, 1);
    }
}

void flight_return(struct sched *sched, const struct job *lent, uint32_t with_id)
{
    const struct job_run *run = lent->run;
    struct flight *flight = mem_new(sizeof(*flight) + run->count * sizeof(struct claim));

    flight->task = NO_TASK;
    for (unsigned i = 0; i < run->count; i++) {
        const struct job_part *part = &run->parts[i];
        if (!part->node)
            continue;
        struct claim *claim = &flight->claims[flight->count++];
        struct take take = { .tasks = 1 };
        claim->host = part->node->number;
        claim->job_id = lent->id;
        claim->end_us = job_runs_until(lent);
        claim->uid = lent->owner->uid;
        claim->minds = (uint8_t)job_minds(sched, lent);
        claim->partition = UINT32_MAX; /* it is counted there already */
        claim->resv = resv_hash(run->reservation);
        claim->mcs = mcs_hash(lent->shape->mcs_label);
        claim->shared = run->shared;
        claim_cpus(sched, claim, part);
        take.cpus = (uint32_t)bitset_count(&claim->cpus);
        claim->amount = amount_take(sched, &take, false);
        claim_link(sched, claim);
    }
    flight_put(sched, lent->id, flight);
    vec_push(&sched->returning, (struct returning){ with_id, lent->id });
}

/* The start they were suspended for came back, so they run or do not. */
static void land_returning(struct sched *sched, uint32_t with_id)
{
    for (size_t i = sched->returning.len; i-- > 0;) {
        uint32_t id = sched->returning.items[i].job_id;
        if (sched->returning.items[i].with_id != with_id)
            continue;
        vec_remove(&sched->returning, i);
        flight_undo(sched, id, NO_TASK);
    }
}

struct flight *flight_begin(struct sched *sched, const struct job *job, uint32_t task,
                            const struct parts *parts, const struct family *family, int64_t end_us)
{
    size_t count = parts->list.len;
    struct flight *flight = mem_new(sizeof(*flight) + count * sizeof(struct claim));

    flight->task = task;
    sched->topo_minds = sched->topo_minds || family->shape->exclusive_topo;
    flight->held = limits_plan(sched, job, parts);
    flight->array_id = job->array ? job->array->id : 0;
    flight->count = count;
    uint64_t resv = resv_hash(parts->resv ? parts->resv->spec->name : NULL);
    uint64_t mcs = mcs_hash(family->shape->mcs_label);
    for (size_t i = 0; i < count; i++) {
        const struct chosen *part = &parts->list.items[i];
        struct claim *claim = &flight->claims[i];
        claim->host = part->host;
        claim->job_id = job->id;
        claim->end_us = end_us;
        claim->uid = job->owner->uid;
        claim->minds = family->minds | (family->shape->exclusive_topo ? MINDS_TOPO : 0);
        claim->partition = parts->need->partition->number;
        claim->resv = resv;
        claim->mcs = mcs;
        claim->amount = amount_take(sched, &part->take, parts->need->whole_nodes);
        pick(&sched->hosts.items[part->host], family->shape, parts->need, &part->take, claim);
        claim_link(sched, claim);
    }
    flight_put(sched, job->id, flight);
    if (flight->array_id)
        throttle_plan(sched, flight->array_id, 1);
    if (family->shape->licence_count)
        flight->licences = licences_claim(sched, job->id, family, parts, end_us);
    return flight;
}

/* It has it now: host_run_add() looks at the host. */
static bool runs_there(const struct sched *sched, const struct job *started, size_t part,
                       uint32_t host)
{
    return started && started->run && part < started->run->count &&
           started->run->parts[part].node == sched->hosts.items[host].node;
}

/* `tried`: it was only thought of, so nobody waits for what it gives back. */
static bool land(struct sched *sched, uint32_t job_id, uint32_t task, const struct job *started,
                 bool tried)
{
    struct flights *flights = flights_of(sched, job_id);
    struct flight *before = NULL, *flight = flights ? flights->first : NULL;

    for (; flight && flight->task != task; flight = flight->next)
        before = flight;
    if (!flight)
        return false;
    if (before)
        before->next = flight->next;
    else
        flights->first = flight->next;
    if (flights->last == flight)
        flights->last = before;
    if (--flights->count == 0)
        free(map_del_num(&sched->flights, job_id));
    for (size_t i = 0; i < flight->count; i++) {
        claim_unlink(sched, &flight->claims[i]);
        if (!runs_there(sched, started, i, flight->claims[i].host))
            host_refresh(sched, flight->claims[i].host);
        claim_done(sched, &flight->claims[i]);
    }
    if (flight->array_id)
        throttle_plan(sched, flight->array_id, -1);
    (tried ? licences_forget : licences_give)(sched, flight->licences);
    limits_unplan(sched, flight->held, started || tried);
    free(flight);
    if (sched->returning.len)
        land_returning(sched, job_id);
    return true;
}

bool flight_land(struct sched *sched, uint32_t job_id, uint32_t task, const struct job *started)
{
    return land(sched, job_id, task, started, false);
}

void flight_undo(struct sched *sched, uint32_t job_id, uint32_t task)
{
    land(sched, job_id, task, NULL, true);
}

void flights_done(struct sched *sched)
{
    map_each (entry, &sched->flights) {
        struct flights *flights = entry->value;
        for (struct flight *flight = flights->first, *next; flight; flight = next) {
            next = flight->next;
            for (size_t i = 0; i < flight->count; i++)
                claim_done(sched, &flight->claims[i]);
            licences_give(sched, flight->licences);
            free(flight->held);
            free(flight);
        }
        free(flights);
    }
    map_done(&sched->flights);
    vec_done(&sched->returning);
    for (size_t i = 0; i < sched->hosts.len; i++)
        sched->hosts.items[i].claims = NULL;
}
