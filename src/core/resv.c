/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resv.c - reservations: nodes that belong to somebody for a time
 *
 * (1) A stored spec always has start_us, end_us and the nodes as a host list, whatever was asked.
 * (2) An ended reservation is removed by the CmdTime that its end makes due.
 */
#include "core/state_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "core/pb.h"
#include "schema/conf.h"

void reservation_free(struct reservation *reservation)
{
    if (!reservation)
        return;
    pb_free(reservation->spec);
    bitset_done(&reservation->nodes);
    free(reservation);
}

void reservation_settle(struct state *state, struct reservation *reservation)
{
    state->digest -= reservation->hash;
    reservation->hash = reservation_hash(reservation);
    state->digest += reservation->hash;
}

void reservations_next(struct state *state)
{
    state->next_reservation_us = NEVER;
    vec_each (struct reservation *, at, &state->reservations) {
        const ReservationSpec *spec = (*at)->spec;
        int64_t next = (*at)->active ? spec->end_us : spec->start_us;
        state->next_reservation_us = MIN(state->next_reservation_us, next);
    }
}

static void set_nodes(const struct state *state, struct reservation *reservation)
{
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 };

    bitset_done(&reservation->nodes);
    bitset_init(&reservation->nodes, state->nodes.len);
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

static bool overlaps(const ReservationSpec *a, int64_t start_us, int64_t end_us)
{
    return a->start_us < end_us && start_us < a->end_us;
}

static bool has_flag(const ReservationSpec *spec, const char *flag)
{
    for (size_t i = 0; i < spec->n_flags; i++) {
        if (str_ieq(spec->flags[i], flag))
            return true;
    }
    return false;
}

/* Nodes that other reservations have in that time. */
static void taken_nodes(const struct state *state, const ReservationSpec *spec, struct bitset *out)
{
    bitset_init(out, state->nodes.len);
    vec_each (struct reservation *, at, &state->reservations) {
        if (!str_eq((*at)->spec->name, spec->name) &&
            overlaps((*at)->spec, spec->start_us, spec->end_us))
            bitset_or(out, &(*at)->nodes);
    }
}

static int named_nodes(const struct state *state, const ReservationSpec *spec, struct bitset *out,
                       struct err *err)
{
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 };

    int code = conf_hosts(state->config, spec->nodes, &hosts, err);
    if (code < 0)
        return code;
    bitset_init(out, state->nodes.len);
    hostlist_each (host, &hosts) {
        const struct node *node = map_get_len(&state->node_names, host.name, host.len);
        if (node)
            bitset_add(out, node->number);
    }
    return 0;
}

/* As many as asked, from the partition, those that are up first. */
static int counted_nodes(const struct state *state, const ReservationSpec *spec,
                         const struct bitset *taken, struct bitset *out, struct err *err)
{
    const struct partition *partition =
        spec->partition ? state_partition(state, spec->partition) : state_default_partition(state);
    uint32_t found = 0;

    if (!partition)
        return err_code(err, ERR_INVALID_PARTITION);
    bitset_init(out, state->nodes.len);
    for (int usable = 1; usable >= 0; usable--) {
        bitset_each (number, &partition->nodes) {
            const struct node *node = state->nodes.items[number];
            if (found < spec->node_count && !bitset_has(taken, number) &&
                node_is_usable(node) == (usable == 1) && node->state != NODE_FUTURE) {
                bitset_add(out, number);
                found++;
            }
        }
    }
    if (found == spec->node_count)
        return 0;
    bitset_done(out);
    return err_set(err, ERR_NODES_BUSY, "only %u nodes could be reserved", found);
}

static void write_nodes(const struct state *state, ReservationSpec *spec, const struct bitset *set)
{
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 };
    struct str text = { 0 };

    bitset_each (number, set)
        hostlist_push(&hosts, state->nodes.items[number]->spec->name, NULL);
    hostlist_format(&hosts, &text);
    free(spec->nodes);
    spec->nodes = str_take(&text);
    spec->has_node_count = true;
    spec->node_count = (uint32_t)bitset_count(set);
}

static int check_spec(const struct state *state, ReservationSpec *spec, struct err *err)
{
    if (!spec->has_start_us)
        return err_code(err, ERR_INVALID_TIME);
    if (spec->has_duration_s && (spec->duration_s < 0 || spec->duration_s > LIMIT_SECONDS))
        return err_code(err, ERR_INVALID_TIME);
    if (!spec->has_end_us && spec->has_duration_s) {
        spec->end_us = spec->start_us + spec->duration_s * US_PER_S;
        spec->has_end_us = true;
    }
    if (!spec->has_end_us || spec->end_us <= spec->start_us || spec->end_us <= state->time_us ||
        spec->start_us < 0 || spec->end_us > state->time_us + LIMIT_SECONDS * US_PER_S)
        return err_code(err, ERR_INVALID_TIME);
    if (spec->core_count || spec->tres || spec->burst_buffer || spec->features)
        return err_set(err, ERR_UNSUPPORTED,
                       "reservations of cores, TRES, burst buffers and features are not there yet");
    if (str_is_empty(spec->nodes) && !spec->node_count && str_is_empty(spec->licenses))
        return err_code(err, ERR_RESERVATION_EMPTY);
    return 0;
}

static int resolve(const struct state *state, ReservationSpec *spec, struct bitset *out,
                   struct err *err)
{
    struct bitset taken;
    int code = check_spec(state, spec, err);

    if (code < 0)
        return code;
    taken_nodes(state, spec, &taken);
    if (!str_is_empty(spec->nodes))
        code = named_nodes(state, spec, out, err);
    else if (spec->node_count)
        code = counted_nodes(state, spec, &taken, out, err);
    else
        bitset_init(out, state->nodes.len);
    if (code == 0 && bitset_meets(out, &taken) && !has_flag(spec, "OVERLAP") &&
        !has_flag(spec, "MAINT")) {
        bitset_done(out);
        code = err_code(err, ERR_RESERVATION_OVERLAP);
    }
    bitset_done(&taken);
    return code;
}

static enum err_code put(struct state *state, struct reservation *old, const ReservationSpec *from,
                         struct err *err)
{
    ReservationSpec *spec = pb_copy(from);
    struct bitset nodes = { 0 };
    int code = resolve(state, spec, &nodes, err);

    if (code < 0) {
        pb_free(spec);
        return (enum err_code) - code;
    }
    write_nodes(state, spec, &nodes);
    struct reservation *reservation = old ? old : NEW(struct reservation);
    pb_free(reservation->spec);
    bitset_done(&reservation->nodes);
    reservation->spec = spec;
    reservation->nodes = nodes;
    reservation->active = spec->start_us <= state->time_us;
    if (!old)
        vec_push(&state->reservations, reservation);
    reservation_settle(state, reservation);
    return ERR_OK;
}

static void take_out(struct state *state, struct reservation *reservation)
{
    for (size_t i = 0; i < state->reservations.len; i++) {
        if (state->reservations.items[i] == reservation) {
            vec_remove(&state->reservations, i);
            break;
        }
    }
    state->digest -= reservation->hash;
    reservation_free(reservation);
}

/* Jobs that would wait for ever for it are held, as Slurm does. */
static void hold_jobs_of(struct state *state, const char *name, struct events *out)
{
    for (const struct job *at = state_job_from(state, 0); at;
         at = state_job_from(state, (uint64_t)at->id + 1)) {
        struct job *job = job_at(state, at->id);
        if (job_phase(job) != PHASE_PENDING || !str_eq(job->shape->reservation, name))
            continue;
        job->hold = 2;
        job->reason = REASON_RESV_DELETED;
        job->flags |= JOB_FLAG_RESV_DEL_HOLD;
        job_refresh(state, job, out);
    }
}

static bool is_used(const struct state *state, const char *name)
{
    for (const struct job *job = state_job_from(state, 0); job;
         job = state_job_from(state, (uint64_t)job->id + 1)) {
        if (job->run && job->run->held && str_eq(job->shape->reservation, name))
            return true;
    }
    return false;
}

static enum err_code update(struct state *state, struct reservation *reservation,
                            const ReservationSpec *change, struct err *err)
{
    ReservationSpec *merged = pb_merge(reservation->spec, change, &state->scratch);

    if (change->has_duration_s && !change->has_end_us)
        merged->has_end_us = false;
    if (change->has_node_count && str_is_empty(change->nodes))
        merged->nodes = NULL;
    return put(state, reservation, merged, err);
}

enum err_code apply_reservation(struct state *state, const CmdReservation *cmd, struct err *err,
                                struct events *out)
{
    const char *name = cmd->change ? cmd->change->name : NULL;
    struct reservation *reservation = name ? reservation_at(state, name) : NULL;
    enum err_code code = ERR_OK;

    if (str_is_empty(name) || strlen(name) > LIMIT_NAME_BYTES)
        return ERR_RESERVATION_INVALID;
    if (cmd->create) {
        code = reservation                                     ? ERR_RESERVATION_DUP
               : state->reservations.len >= LIMIT_RESERVATIONS ? ERR_TOO_MANY
                                                               : put(state, NULL, cmd->change, err);
    } else if (!reservation) {
        return ERR_RESERVATION_INVALID;
    } else if (cmd->remove && is_used(state, name)) {
        return ERR_RESERVATION_BUSY;
    } else if (cmd->remove) {
        take_out(state, reservation);
        hold_jobs_of(state, name, out);
    } else {
        code = update(state, reservation, cmd->change, err);
    }
    if (code != ERR_OK)
        return code;
    reservations_next(state);
    emit(out, EVENT_RESERVATION)->text = arena_strdup(&out->arena, name);
    return ERR_OK;
}

void reservations_due(struct state *state, struct events *out)
{
    bool changed = false;

    for (size_t i = 0; i < state->reservations.len;) {
        struct reservation *reservation = state->reservations.items[i];
        if (!reservation->active && reservation->spec->start_us <= state->time_us) {
            reservation->active = true;
            reservation_settle(state, reservation);
            changed = true;
        }
        if (reservation->spec->end_us <= state->time_us) { /* (2) */
            char *name = arena_strdup(&state->scratch, reservation->spec->name);
            take_out(state, reservation);
            hold_jobs_of(state, name, out);
            changed = true;
        } else {
            i++;
        }
    }
    if (changed) {
        reservations_next(state);
        emit(out, EVENT_RESERVATION);
    }
}
