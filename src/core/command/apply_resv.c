/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apply_resv.c - the command that makes, changes or removes a reservation
 */
#include <stdlib.h>
#include <string.h>

#include "core/command/command.h"
#include "wire/pb.h"

enum { PAST_MOST_S = 600 }; /* what may lie in the past when it is made */

/* Words with + are added, with ~ taken away; others are the new list. */
static void merge_words(char ***list, size_t *count, char *const *old, size_t old_count,
                        struct arena *arena)
{
    char **out = ARENA_ARRAY(arena, char *, old_count + *count + 1);
    size_t kept = 0;
    bool relative = *count && ((*list)[0][0] == '+' || (*list)[0][0] == '~');

    if (!relative)
        return;
    for (size_t i = 0; i < old_count; i++) {
        bool gone = false;
        for (size_t k = 0; k < *count; k++)
            gone = gone || str_ieq((*list)[k] + 1, old[i]);
        if (!gone)
            out[kept++] = old[i];
    }
    for (size_t k = 0; k < *count; k++) {
        if ((*list)[k][0] == '+')
            out[kept++] = (*list)[k] + 1;
    }
    *list = out;
    *count = kept;
}

/* In an update flags are added; "-" before one takes it away. */
static void merge_flags(ReservationSpec *merged, const ReservationSpec *old,
                        const ReservationSpec *change, struct arena *arena)
{
    char **out = ARENA_ARRAY(arena, char *, old->n_flags + change->n_flags + 1);
    size_t kept = 0;

    for (size_t i = 0; i < old->n_flags; i++) {
        bool gone = false;
        for (size_t k = 0; k < change->n_flags; k++) {
            const char *word = change->flags[k];
            gone = gone || ((word[0] == '-' || word[0] == '~') && str_ieq(word + 1, old->flags[i]));
        }
        if (!gone)
            out[kept++] = old->flags[i];
    }
    for (size_t k = 0; k < change->n_flags; k++) {
        char *word = change->flags[k];
        if (word[0] != '-' && word[0] != '~')
            out[kept++] = word + (word[0] == '+');
    }
    merged->flags = out;
    merged->n_flags = kept;
}

static enum err_code put(struct state *state, struct reservation *old, ReservationSpec *spec,
                         bool named, bool again, struct err *err)
{
    struct reservation fresh = { .spec = spec };
    int code = resv_resolve(state, old, &fresh, named, again, err);

    if (code < 0) {
        pb_free(spec);
        reservation_clear(&fresh);
        return (enum err_code) - code;
    }
    struct reservation *reservation = old ? old : NEW(struct reservation);
    pb_free(reservation->spec);
    reservation_clear(reservation);
    reservation->spec = spec;
    reservation->nodes = fresh.nodes;
    reservation->flags = fresh.flags;
    reservation->parts = fresh.parts;
    reservation->licences = fresh.licences;
    resv_licences_recount(state, reservation);
    bool was = reservation->active;
    reservation->active = !(fresh.flags & RESV_TIME_FLOAT) && spec->start_us <= state->time_us;
    reservation->over = false;
    if (reservation->active && !was)
        reservation->idle_us = state->time_us;
    if (!old)
        vec_push(&state->reservations, reservation);
    reservation_settle(state, reservation);
    return ERR_OK;
}

/* The numbers of groups that are named now, too. */
static void merge_group_ids(ReservationSpec *merged, const ReservationSpec *old,
                            const ReservationSpec *change, struct arena *arena)
{
    char **out = ARENA_ARRAY(arena, char *, old->n_group_ids + change->n_group_ids + 1);
    size_t count = 0;

    for (size_t i = 0; i < change->n_group_ids; i++)
        out[count++] = change->group_ids[i];
    for (size_t i = 0; i < old->n_group_ids; i++) {
        const char *equals = strchr(old->group_ids[i], '=');
        size_t len = equals ? (size_t)(equals - old->group_ids[i]) : 0;
        bool known = !len;
        for (size_t k = 0; k < change->n_group_ids; k++)
            known = known || strncmp(change->group_ids[k], old->group_ids[i], len + 1) == 0;
        if (!known)
            out[count++] = old->group_ids[i];
    }
    merged->group_ids = out;
    merged->n_group_ids = count;
}

/* On to its next time, as if this one had ended. */
static enum err_code skip(struct state *state, struct reservation *resv, struct err *err)
{
    if (!(resv->flags & RESV_REPEATS)) {
        err_set(err, ERR_INVALID, "reservation %s does not repeat", resv->spec->name);
        return ERR_INVALID;
    }
    if (resv_is_used(resv))
        return ERR_RESERVATION_BUSY;
    resv_next_time(resv->flags, &resv->spec->start_us, &resv->spec->end_us);
    resv->active = resv->spec->start_us <= state->time_us;
    resv->over = false;
    reservation_settle(state, resv);
    return ERR_OK;
}

/* What it may do without. */
static enum err_code unset(ReservationSpec *spec, const CmdReservation *cmd, struct err *err)
{
    static const char *const fields[] = { "users",    "accounts", "groups",
                                          "qos",      "features", "allowed_partitions",
                                          "licenses", "comment",  "max_start_delay_s" };

    for (size_t i = 0; i < cmd->n_clear; i++) {
        bool known = false;
        for (size_t k = 0; k < ARRAY_LEN(fields); k++)
            known = known || str_eq(cmd->clear[i], fields[k]);
        if (!known || !pb_clear(spec, cmd->clear[i])) {
            err_set(err, ERR_INVALID, "%.100s of a reservation cannot be unset", cmd->clear[i]);
            return ERR_INVALID;
        }
    }
    return ERR_OK;
}

static enum err_code update(struct state *state, struct reservation *reservation,
                            const CmdReservation *cmd, struct err *err)
{
    struct arena *arena = &state->scratch;
    const ReservationSpec *old = reservation->spec;
    ReservationSpec own = *cmd->change, *change = &own;

    if (change->skip)
        return skip(state, reservation, err);
    resv_change_length(reservation, change);
    if (resv_change_nodes(state, reservation, change, arena, err) < 0)
        return err->code;
    ReservationSpec *merged = pb_merge(old, change, arena);

    merge_flags(merged, old, change, arena);
    merge_words(&merged->users, &merged->n_users, old->users, old->n_users, arena);
    merge_words(&merged->accounts, &merged->n_accounts, old->accounts, old->n_accounts, arena);
    merge_words(&merged->groups, &merged->n_groups, old->groups, old->n_groups, arena);
    merge_words(&merged->qos, &merged->n_qos, old->qos, old->n_qos, arena);
    merge_words(&merged->allowed_partitions, &merged->n_allowed_partitions, old->allowed_partitions,
                old->n_allowed_partitions, arena);
    merge_group_ids(merged, old, change, arena);
    merged->parts = old->parts;
    merged->n_parts = old->n_parts;
    int64_t length = old->end_us - old->start_us;
    if (change->has_duration_s && !change->has_end_us)
        merged->has_end_us = false;
    else if (change->has_start_us && !change->has_end_us)
        merged->end_us = merged->start_us + length;
    if (change->has_node_count && str_is_empty(change->nodes))
        merged->nodes = NULL;
    bool again = change->has_node_count || change->has_core_count || change->n_core_counts ||
                 change->tres || change->tres_per_node || !str_is_empty(change->nodes);
    if (again && old->n_parts && str_is_empty(change->nodes) &&
        !(reservation->flags & RESV_SPEC_NODES))
        merged->nodes = NULL; /* parts of whichever nodes have them */
    if (again && old->n_parts && !change->has_node_count && !merged->nodes)
        merged->has_node_count = false, merged->node_count = 0;
    ReservationSpec *fresh = pb_copy(merged);
    enum err_code code = unset(fresh, cmd, err);
    if (code != ERR_OK) {
        pb_free(fresh);
        return code;
    }
    return put(state, reservation, fresh, !str_is_empty(change->nodes), again, err);
}

static bool is_forced(const ReservationSpec *spec)
{
    for (size_t i = 0; i < spec->n_flags; i++) {
        if (str_ieq(spec->flags[i], "FORCE_START"))
            return true;
    }
    return false;
}

static enum err_code create(struct state *state, const ReservationSpec *from, const char *name,
                            struct err *err)
{
    ReservationSpec *spec = pb_copy(from);

    free(spec->name);
    spec->name = mem_strdup(name);
    spec->has_skip = spec->has_longer_s = false;
    if (!spec->has_start_us) {
        spec->has_start_us = true;
        spec->start_us = state->time_us;
    }
    if (spec->start_us < state->time_us - PAST_MOST_S * US_PER_S && !is_forced(spec)) {
        pb_free(spec);
        return ERR_INVALID_TIME;
    }
    return put(state, NULL, spec, !str_is_empty(from->nodes), true, err);
}

/* alice_7: the first of those it is for, and the next number. */
static const char *make_name(struct state *state, const ReservationSpec *spec)
{
    const char *whose = spec->n_accounts ? spec->accounts[0]
                        : spec->n_users  ? spec->users[0]
                        : spec->n_groups ? spec->groups[0]
                                         : "resv";
    uint64_t top = 0, number;

    vec_each (struct reservation *, at, &state->reservations) {
        const char *tail = strrchr((*at)->spec->name, '_');
        if (tail && str_to_u64(tail + 1, UINT32_MAX, &number))
            top = MAX(top, number);
    }
    return arena_printf(&state->scratch, "%.64s_%llu", whose + (whose[0] == '-'),
                        (unsigned long long)top + 1);
}

enum err_code apply_reservation(struct state *state, const CmdReservation *cmd, struct err *err,
                                struct events *out)
{
    const char *name = cmd->change ? cmd->change->name : NULL;
    enum err_code code = ERR_OK;

    if (cmd->create && cmd->change && str_is_empty(name))
        name = make_name(state, cmd->change);
    struct reservation *reservation = name ? reservation_at(state, name) : NULL;
    if (str_is_empty(name) || strlen(name) > LIMIT_NAME_BYTES || strchr(name, ','))
        return ERR_RESERVATION_INVALID;
    name = arena_strdup(&state->scratch, name);
    if (cmd->create) {
        code = reservation ? ERR_RESERVATION_DUP
               : state->reservations.len >= LIMIT_RESERVATIONS
                   ? ERR_TOO_MANY
                   : create(state, cmd->change, name, err);
    } else if (!reservation) {
        return ERR_RESERVATION_INVALID;
    } else if (cmd->remove && resv_is_used(reservation)) {
        return ERR_RESERVATION_BUSY;
    } else if (cmd->remove) {
        resv_remove(state, reservation, true, out);
    } else {
        code = update(state, reservation, cmd, err);
    }
    if (code != ERR_OK)
        return code;
    reservations_next(state);
    if (!cmd->remove || cmd->create)
        emit_named(out, EVENT_RESV_CHANGED, name);
    emit_named(out, EVENT_RESERVATION, name);
    return ERR_OK;
}
