/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resv.c - reservations: nodes that belong to somebody for a time
 *
 * (1) A stored spec always has start_us, end_us and the nodes as a host list, whatever was asked.
 */
#include "core/resv/resvs.h"

#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "wire/pb.h"

/* What follows from its spec. */
void reservation_clear(struct reservation *reservation)
{
    bitset_done(&reservation->nodes);
    vec_done(&reservation->parts);
    vec_each (struct resv_licence, at, &reservation->licences)
        free(at->name);
    vec_done(&reservation->licences);
}

void reservation_free(struct reservation *reservation)
{
    if (!reservation)
        return;
    pb_free(reservation->spec);
    reservation_clear(reservation);
    free(reservation);
}

void resv_derive(struct reservation *reservation)
{
    struct err ignored;

    if (resv_flags_read(reservation->spec, &reservation->flags, &ignored) < 0)
        reservation->flags = 0;
    resv_licences_derive(reservation);
}

void reservation_settle(struct state *state, struct reservation *reservation)
{
    state->digest -= reservation->hash;
    reservation->hash = reservation_hash(reservation);
    state->digest += reservation->hash;
}

static void set_nodes(const struct state *state, struct reservation *reservation)
{
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 };

    bitset_done(&reservation->nodes);
    bitset_init(&reservation->nodes, state->nodes.len);
    resv_parts_derive(state, reservation);
    const struct partition *partition = reservation->flags & RESV_PART_NODES
                                            ? partition_at(state, reservation->spec->partition)
                                            : NULL;
    if (partition && partition->nodes.bits == reservation->nodes.bits) {
        bitset_or(&reservation->nodes, &partition->nodes);
        return;
    }
    if (str_is_empty(reservation->spec->nodes) ||
        hostlist_parse(&hosts, reservation->spec->nodes, NULL) < 0)
        return;
    hostlist_each (host, &hosts) {
        const struct node *node = map_get_len(&state->node_names, host.name, host.len);
        if (node)
            bitset_add(&reservation->nodes, node->number);
    }
}

void reservations_renumber(struct state *state)
{
    vec_each (struct reservation *, at, &state->reservations)
        set_nodes(state, *at);
}

/* ---- time ---- */

void resv_job(struct state *state, const struct job *job, int by)
{
    struct reservation *resv =
        job->run->reservation ? reservation_at(state, job->run->reservation) : NULL;

    if (!resv)
        return;
    resv->jobs = by > 0 ? resv->jobs + 1 : resv->jobs - (resv->jobs > 0);
    resv_licences_count(resv, job, by);
    if (by < 0 && !resv->jobs && !state->restoring) {
        resv->idle_us = state->time_us;
        reservation_settle(state, resv);
    }
    reservations_next(state);
}

/* steps of one that floats */

int64_t resv_over_run_us(const struct state *state, const struct reservation *resv)
{
    uint32_t minutes = state->config->resv_over_run_min;

    if (resv->flags & RESV_FLEX || (state->config->has_resv_over_run_min && minutes == UINT32_MAX))
        return NEVER;
    return state->config->has_resv_over_run_min ? minutes * 60 * US_PER_S : 0;
}

bool resv_is_used(const struct reservation *resv)
{
    return resv->jobs > 0;
}

/* (2) */
int64_t resv_due_us(const struct state *state, const struct reservation *resv)
{
    const ReservationSpec *spec = resv->spec;
    int64_t due = resv->active ? spec->end_us : spec->start_us;
    int64_t over = resv_over_run_us(state, resv);

    if (resv->over) /* it has ended; its jobs have not */
        return over == NEVER ? NEVER : spec->end_us + over;
    if (resv->flags & RESV_TIME_FLOAT)
        return spec->start_us - spec->float_s * US_PER_S + FLOAT_STEP_S * US_PER_S;
    if (resv->flags & RESV_PURGE_COMP && resv->active && !resv_is_used(resv))
        due = MIN(due, resv->idle_us + spec->purge_comp_s * US_PER_S);
    return due;
}

void reservations_next(struct state *state)
{
    state->next_reservation_us = NEVER;
    vec_each (struct reservation *, at, &state->reservations)
        state->next_reservation_us = MIN(state->next_reservation_us, resv_due_us(state, *at));
}
