/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flights.c - starts that are planned and have not come back
 *
 * A flight holds what it will take until core has applied or refused it. Those of one job record
 * come back in the order they went, so the one looked for is nearly always the first.
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

struct flight *flight_begin(struct sched *sched, const struct job *job, uint32_t task,
                            const struct parts *parts, const struct family *family, int64_t end_us)
{
    size_t count = parts->list.len;
    struct flight *flight = mem_new(sizeof(*flight) + count * sizeof(struct claim));
    struct flights *flights = flights_of(sched, job->id);

    flight->task = task;
    sched->topo_minds = sched->topo_minds || family->shape->exclusive_topo;
    flight->held = limits_plan(sched, job, parts);
    flight->array_id = job->array ? job->array->id : 0;
    flight->count = count;
    for (size_t i = 0; i < count; i++) {
        const struct chosen *part = &parts->list.items[i];
        struct claim *claim = &flight->claims[i];
        claim->host = part->host;
        claim->job_id = job->id;
        claim->end_us = end_us;
        claim->uid = job->owner->uid;
        claim->minds = family->minds | (family->shape->exclusive_topo ? MINDS_TOPO : 0);
        claim->partition = parts->need->partition->number;
        claim->resv = resv_hash(parts->resv ? parts->resv->spec->name : NULL);
        claim->mcs = mcs_hash(family->shape->mcs_label);
        claim->amount = amount_take(sched, &part->take, parts->need->whole_nodes);
        pick(&sched->hosts.items[part->host], parts->need, &part->take, claim);
        claim_link(sched, claim);
    }
    if (!flights) {
        flights = NEW(struct flights);
        map_put_num(&sched->flights, job->id, flights);
    }
    if (flights->last)
        flights->last->next = flight;
    else
        flights->first = flight;
    flights->last = flight;
    flights->count++;
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

bool flight_land(struct sched *sched, uint32_t job_id, uint32_t task, const struct job *started)
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
    licences_give(sched, flight->licences);
    limits_unplan(sched, flight->held, started != NULL);
    free(flight);
    return true;
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
    for (size_t i = 0; i < sched->hosts.len; i++)
        sched->hosts.items[i].claims = NULL;
}
