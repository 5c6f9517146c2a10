/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resv_nodes.c - which nodes a reservation gets
 */
#include "core/resv/resvs.h"

#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/timefmt.h"
#include "core/feature.h"
#include "schema/conf.h"

#define YEAR_US (INT64_C(365) * 86400 * US_PER_S)

/* Nodes that other reservations have in that time. */
static void taken_nodes(const struct state *state, const ReservationSpec *spec, unsigned flags,
                        struct bitset *out)
{
    bitset_init(out, state->nodes.len);
    vec_each (struct reservation *, at, &state->reservations) {
        if (!str_eq((*at)->spec->name, spec->name) &&
            resv_times_meet((*at)->spec, (*at)->flags, spec, flags))
            bitset_or(out, &(*at)->nodes);
    }
}

bool resv_job_runs_into(const struct job *job, const ReservationSpec *spec)
{
    int64_t end = job_end_by(job, job->run->start_us + job->run->suspended_total_us);

    return !job_has_ended(job) && end > spec->start_us &&
           !str_eq(job->run->reservation, spec->name);
}

static bool is_busy(const struct node *node, const ReservationSpec *spec)
{
    for (size_t i = 0; i < node->jobs.len; i++) {
        if (resv_job_runs_into(node->jobs.items[i], spec))
            return true;
    }
    return false;
}

static int named_nodes(const struct state *state, const ReservationSpec *spec, struct bitset *out,
                       struct err *err)
{
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 };
    const struct partition *partition =
        str_is_empty(spec->partition) ? NULL : partition_at(state, spec->partition);

    bitset_init(out, state->nodes.len);
    if (partition && str_ieq(spec->nodes, "ALL")) {
        bitset_or(out, &partition->nodes);
        return 0;
    }
    int code = conf_hosts(state->config, spec->nodes, &hosts, err);
    if (code < 0)
        return code;
    hostlist_each (host, &hosts) {
        const struct node *node = map_get_len(&state->node_names, host.name, host.len);
        if (node)
            bitset_add(out, node->number);
    }
    return 0;
}

/* Better ones have a greater number; 0 will not do. */
static int suits(const struct node *node, const ReservationSpec *spec, unsigned flags,
                 const char *features)
{
    if (node->state == NODE_FUTURE || (features && !feature_match(features, node)))
        return 0;
    bool busy = is_busy(node, spec);
    if (busy && !(flags & RESV_IGNORE_JOBS))
        return 0;
    return 1 + 2 * node_is_usable(node) + !busy;
}

/* As many as asked, from the partition: those that are up and free first. */
static int counted_nodes(struct state *state, const ReservationSpec *spec, unsigned flags,
                         uint32_t count, const struct bitset *taken, struct bitset *out,
                         struct err *err)
{
    const struct partition *partition = str_is_empty(spec->partition)
                                            ? state_default_partition(state)
                                            : state_partition(state, spec->partition);
    struct features features = { 0 };
    uint32_t found = 0;

    if (!partition)
        return err_code(err, ERR_INVALID_PARTITION);
    if (!str_is_empty(spec->features) &&
        features_read(spec->features, &state->scratch, &features, err) < 0)
        return -(int)err->code;
    if (features.group_count)
        return err_set(err, ERR_UNSUPPORTED,
                       "counts of features in reservations are not supported");
    for (int good = 4; good > 0; good--) {
        bitset_each (number, &partition->nodes) {
            const struct node *node = state->nodes.items[number];
            if (found < count && !bitset_has(taken, number) && !bitset_has(out, number) &&
                suits(node, spec, flags, features.plain) == good) {
                bitset_add(out, number);
                found++;
            }
        }
    }
    if (found == count)
        return 0;
    return err_set(err, ERR_NODES_BUSY, "Requested nodes are busy: only %u of %u could be reserved",
                   found, count);
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

static int check_times(const struct state *state, ReservationSpec *spec, struct err *err)
{
    if (!spec->has_start_us)
        return err_code(err, ERR_INVALID_TIME);
    if (spec->has_duration_s && spec->duration_s > LIMIT_SECONDS)
        return err_code(err, ERR_INVALID_TIME);
    if (!spec->has_end_us) {
        bool given = spec->has_duration_s && spec->duration_s >= 0; /* without: a year */
        spec->end_us = spec->start_us + (given ? spec->duration_s * US_PER_S : YEAR_US);
        spec->has_end_us = true;
    }
    if (spec->end_us <= spec->start_us || spec->end_us <= state->time_us || spec->start_us < 0 ||
        spec->end_us > state->time_us + LIMIT_SECONDS * US_PER_S)
        return err_code(err, ERR_INVALID_TIME);
    return 0;
}

static bool is_for_all(const ReservationSpec *spec)
{
    return !spec->n_users && !spec->n_groups && !spec->n_accounts && !spec->n_qos &&
           !spec->n_allowed_partitions;
}

/* What cannot act is refused, and what would let in everybody where only some were. */
static int check_wishes(struct state *state, const struct reservation *old,
                        const ReservationSpec *spec, struct err *err)
{
    struct features features = { 0 };
    const struct {
        bool given;
        const char *key;
    } keys[] = {
        { !str_is_empty(spec->burst_buffer), "BurstBuffer" },
    };

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        if (keys[i].given)
            return err_set(err, ERR_UNSUPPORTED, "%s of reservations is not supported",
                           keys[i].key);
    }
    if (old && is_for_all(spec) && !is_for_all(old->spec))
        return err_set(err, ERR_RESERVATION_EMPTY,
                       "Reservation request lacks users, groups or accounts");
    if (!str_is_empty(spec->features) &&
        features_read(spec->features, &state->scratch, &features, err) < 0)
        return -(int)err->code;
    return features_known(state, &features, err);
}

static int choose_parts(struct state *state, struct reservation *fresh, struct err *err)
{
    struct bitset named = { 0 };
    bool given = !fresh->spec->n_parts && !str_is_empty(fresh->spec->nodes);
    int code = given ? named_nodes(state, fresh->spec, &named, err) : 0;

    if (code == 0)
        code = resv_request_choose(state, fresh, given ? &named : NULL, err);
    bitset_done(&named);
    return code;
}

/* With which one? */
static int overlaps(const struct state *state, const struct reservation *fresh, struct err *err)
{
    const char *other = "another reservation";

    vec_each (struct reservation *, at, &state->reservations) {
        if (!str_eq((*at)->spec->name, fresh->spec->name) &&
            resv_times_meet((*at)->spec, (*at)->flags, fresh->spec, fresh->flags) &&
            bitset_meets(&(*at)->nodes, &fresh->nodes)) {
            other = (*at)->spec->name;
            break;
        }
    }
    return err_set(err, ERR_RESERVATION_OVERLAP, "%s: %s", err_text(ERR_RESERVATION_OVERLAP),
                   other);
}

static int choose(struct state *state, struct reservation *fresh, struct err *err)
{
    ReservationSpec *spec = fresh->spec;
    struct bitset taken;
    int code = 0;

    taken_nodes(state, spec, fresh->flags, &taken);
    if (fresh->flags & RESV_PART_NODES) {
        const struct partition *partition = partition_at(state, spec->partition);
        bitset_init(&fresh->nodes, state->nodes.len);
        if (!partition)
            code = err_code(err, ERR_INVALID_PARTITION);
        else
            bitset_or(&fresh->nodes, &partition->nodes);
    } else if (!str_is_empty(spec->nodes)) {
        code = named_nodes(state, spec, &fresh->nodes, err);
    } else if (!spec->node_count && fresh->flags & RESV_ANY_NODES) {
        bitset_init(&fresh->nodes, state->nodes.len);
    } else {
        bitset_init(&fresh->nodes, state->nodes.len);
        code =
            counted_nodes(state, spec, fresh->flags, spec->node_count, &taken, &fresh->nodes, err);
    }
    if (code == 0 && bitset_meets(&fresh->nodes, &taken) &&
        !(fresh->flags & (RESV_OVERLAP | RESV_MAINT)))
        code = overlaps(state, fresh, err);
    bitset_done(&taken);
    return code;
}

static int check_busy(const struct state *state, const struct reservation *fresh,
                      const struct reservation *old, struct err *err)
{
    if (fresh->flags & RESV_IGNORE_JOBS)
        return 0;
    bitset_each (number, &fresh->nodes) {
        const struct node *node = state->nodes.items[number];
        bool had = old && number < old->nodes.bits && bitset_has(&old->nodes, number) &&
                   old->spec->start_us <= fresh->spec->start_us;
        if (!had && is_busy(node, fresh->spec))
            return err_code(err, ERR_NODES_BUSY);
    }
    return 0;
}

/* PURGE_COMP=TIME */
static int read_purge(ReservationSpec *spec, struct err *err)
{
    int64_t seconds;

    for (size_t i = 0; i < spec->n_flags; i++) {
        char *equals = strchr(spec->flags[i], '=');
        if (!equals)
            continue;
        *equals = '\0';
        if (!str_ieq(spec->flags[i], "PURGE_COMP") ||
            timefmt_read_duration(equals + 1, &seconds, NULL) < 0 || seconds <= 0 ||
            seconds > LIMIT_SECONDS || seconds > UINT32_MAX)
            return err_set(err, ERR_INVALID, "%.40s=%.40s is no flag of reservations",
                           spec->flags[i], equals + 1);
        spec->has_purge_comp_s = true;
        spec->purge_comp_s = (uint32_t)seconds;
    }
    return 0;
}

int resv_resolve(struct state *state, const struct reservation *old, struct reservation *fresh,
                 bool named, bool again, struct err *err)
{
    ReservationSpec *spec = fresh->spec;
    bool partial = false;
    int code = check_times(state, spec, err);

    if (code == 0)
        code = check_wishes(state, old, spec, err);
    if (code == 0)
        code = read_purge(spec, err);
    if (code == 0)
        code = resv_flags_read(spec, &fresh->flags, err);
    if (code == 0)
        code = resv_request_read(state, fresh, again, &partial, err);
    if (code < 0)
        return code;
    if (named)
        fresh->flags |= RESV_SPEC_NODES;
    else if (str_is_empty(spec->nodes))
        fresh->flags &= ~(unsigned)RESV_SPEC_NODES;
    if (fresh->flags & RESV_SPEC_NODES && fresh->flags & (RESV_REPLACE | RESV_REPLACE_DOWN))
        return err_set(err, ERR_INVALID,
                       "nodes are replaced only where they were given by number (NodeCnt)");
    bool nowhere = str_is_empty(spec->nodes) && !spec->node_count && !partial;
    const struct partition *fallback = state_default_partition(state);
    if (!str_is_empty(spec->partition) && !state_partition(state, spec->partition))
        return err_code(err, ERR_INVALID_PARTITION);
    if (!nowhere && str_is_empty(spec->nodes) && str_is_empty(spec->partition) && fallback) {
        free(spec->partition);
        spec->partition = mem_strdup(fallback->spec->name);
    }
    if (nowhere && fresh->flags & RESV_ANY_NODES && !fresh->licences.len)
        return err_code(err, ERR_RESERVATION_EMPTY);
    if (nowhere && !(fresh->flags & (RESV_PART_NODES | RESV_ANY_NODES))) {
        if (str_is_empty(spec->partition)) /* all of the partition's nodes */
            return err_code(err, ERR_RESERVATION_EMPTY);
        spec->nodes = mem_strdup("ALL");
    }
    code = partial ? choose_parts(state, fresh, err) : choose(state, fresh, err);
    if (code == 0 && !partial)
        code = check_busy(state, fresh, old, err);
    if (code < 0)
        return code;
    if (fresh->flags & RESV_TIME_FLOAT) {
        if (spec->start_us <= state->time_us)
            return err_set(err, ERR_INVALID_TIME, "TIME_FLOAT needs a StartTime that lies ahead");
        spec->has_float_s = true;
        spec->float_s = (spec->start_us - state->time_us) / US_PER_S;
    }
    write_nodes(state, spec, &fresh->nodes);
    resv_flags_write(spec, fresh->flags);
    return 0;
}

/* ---- REPLACE ---- */

static bool must_go(const struct reservation *resv, const struct node *node)
{
    if (!node_is_usable(node))
        return true;
    return resv->flags & RESV_REPLACE && node->jobs.len > 0;
}

bool resv_replace(struct state *state, struct reservation *resv)
{
    struct bitset taken, more;
    struct err ignored;
    bool changed = false;

    if (!(resv->flags & (RESV_REPLACE | RESV_REPLACE_DOWN)))
        return false;
    taken_nodes(state, resv->spec, resv->flags, &taken);
    bitset_or(&taken, &resv->nodes);
    bitset_each (number, &resv->nodes) {
        if (!must_go(resv, state->nodes.items[number]))
            continue;
        bitset_init(&more, state->nodes.len);
        int code = counted_nodes(state, resv->spec, 0, 1, &taken, &more, &ignored);
        size_t other = bitset_next(&more, 0);
        bitset_done(&more);
        if (code < 0 || !node_is_usable(state->nodes.items[other]))
            continue;
        bitset_del(&resv->nodes, number);
        bitset_add(&resv->nodes, other);
        bitset_add(&taken, other);
        changed = true;
    }
    bitset_done(&taken);
    if (changed)
        write_nodes(state, resv->spec, &resv->nodes);
    return changed;
}

/* ---- PART_NODES ---- */

bool resv_follow(struct state *state, struct reservation *resv)
{
    const struct partition *partition = partition_at(state, resv->spec->partition);
    CLEANUP(str_done) struct str before = { 0 };

    if (!(resv->flags & RESV_PART_NODES) || !partition)
        return false;
    str_add(&before, resv->spec->nodes);
    bitset_done(&resv->nodes);
    bitset_init(&resv->nodes, state->nodes.len);
    bitset_or(&resv->nodes, &partition->nodes);
    write_nodes(state, resv->spec, &resv->nodes);
    return !str_eq(str_text(&before), resv->spec->nodes);
}
