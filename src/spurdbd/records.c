/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records.c - questions about nodes out of use, reservations and runs that no controller knows of
 */
#include "spurdbd/records.h"

#include <stdlib.h>

#include "base/vec.h"
#include "proto/job.pb-c.h"

enum { RECORDS_MOST = 100000 };

struct reading {
    struct arena *arena;
    const ListRecordsRequest *request;
    VEC(AcctEvent *) events;
    VEC(AcctReservation *) reservations;
};

static char *text_at(const struct reading *reading, const struct store_row *row, unsigned column)
{
    struct span text = store_row_bytes(row, column);

    return arena_strndup(reading->arena, text.ptr ? text.ptr : "", text.len);
}

static bool wants(const ListRecordsRequest *request, const char *cluster)
{
    for (size_t i = 0; i < request->n_clusters; i++) {
        if (str_ieq(request->clusters[i], cluster))
            return true;
    }
    return request->n_clusters == 0;
}

static int is_full(size_t count, struct err *err)
{
    return count < RECORDS_MOST
               ? 0
               : err_set(err, ERR_TOO_MANY,
                         "there are more than %d records: ask for a shorter time", RECORDS_MOST);
}

static int take_event(void *ctx, const struct store_row *row, struct err *err)
{
    struct reading *reading = ctx;
    AcctEvent *event = ARENA_NEW(reading->arena, AcctEvent);

    acct_event__init(event);
    event->cluster = text_at(reading, row, 0);
    if (!wants(reading->request, event->cluster))
        return 0;
    event->has_start_us = event->has_state = event->has_flags = event->has_reason_uid = true;
    event->node = text_at(reading, row, 1);
    event->start_us = store_row_int(row, 2);
    event->end_us = store_row_int(row, 3);
    event->has_end_us = event->end_us != 0;
    event->state = (uint32_t)store_row_int(row, 4);
    event->flags = (uint32_t)store_row_int(row, 5);
    event->reason = text_at(reading, row, 6);
    event->reason_uid = (uint32_t)store_row_int(row, 7);
    event->reason_user = text_at(reading, row, 8);
    event->tres = text_at(reading, row, 9);
    event->nodes = text_at(reading, row, 10);
    vec_push(&reading->events, event);
    return is_full(reading->events.len, err);
}

static int take_reservation(void *ctx, const struct store_row *row, struct err *err)
{
    struct reading *reading = ctx;
    AcctReservation *resv = ARENA_NEW(reading->arena, AcctReservation);

    acct_reservation__init(resv);
    resv->cluster = text_at(reading, row, 0);
    if (!wants(reading->request, resv->cluster))
        return 0;
    resv->has_id = resv->has_start_us = resv->has_end_us = resv->has_node_count = true;
    resv->id = (uint32_t)store_row_int(row, 1);
    resv->name = text_at(reading, row, 2);
    resv->start_us = store_row_int(row, 3);
    resv->end_us = store_row_int(row, 4);
    resv->nodes = text_at(reading, row, 5);
    resv->node_count = (uint32_t)store_row_int(row, 6);
    resv->tres = text_at(reading, row, 7);
    resv->users = text_at(reading, row, 8);
    resv->accounts = text_at(reading, row, 9);
    resv->flags = text_at(reading, row, 10);
    resv->comment = text_at(reading, row, 11);
    vec_push(&reading->reservations, resv);
    return is_full(reading->reservations.len, err);
}

struct use {
    int64_t from_us, upto_us, cpu_us;
};

static int add_use(void *ctx, const struct store_row *row, struct err *err)
{
    struct use *use = ctx;
    int64_t from = MAX(store_row_int(row, 0), use->from_us), end = store_row_int(row, 1);
    int64_t upto = end ? MIN(end, use->upto_us) : use->upto_us;

    (void)err;
    if (upto > from)
        use->cpu_us += (upto - from) * store_row_int(row, 2);
    return 0;
}

/* How long it would have been idle, had its jobs used all of its CPUs while they ran. */
static int add_unused(struct store *store, AcctReservation *resv, int64_t now_us, struct err *err)
{
    struct use use = { .from_us = resv->start_us, .upto_us = MIN(resv->end_us, now_us) };
    int64_t cpus =
        resv->tres && str_starts(resv->tres, "cpu=") ? strtoll(resv->tres + 4, NULL, 10) : 0;

    if (use.upto_us <= use.from_us)
        return 0;
    if (store_each(store,
                   "SELECT j.t_start, j.t_end, j.cpus FROM job j JOIN cluster c ON c.id = j.cluster"
                   " WHERE j.reservation = ?1 AND j.reservation <> '' AND c.name = ?2"
                   " AND j.t_start > 0 AND j.t_start <= ?4 AND (j.t_end = 0 OR j.t_end >= ?3)",
                   STORE_VALUES(STORE_TEXT(resv->name), STORE_TEXT(resv->cluster),
                                STORE_INT(use.from_us), STORE_INT(use.upto_us)),
                   add_use, &use, err) < 0)
        return -(int)err->code;
    int64_t used_us = cpus ? use.cpu_us / cpus : 0, all_us = use.upto_us - use.from_us;
    resv->has_unused_s = true;
    resv->unused_s = (uint64_t)(MAX(all_us - used_us, 0) / 1000000);
    return 0;
}

int records_read(struct store *store, const ListRecordsRequest *request, int64_t now_us,
                 struct arena *arena, ListRecordsReply *out, struct err *err)
{
    struct reading reading = { .arena = arena, .request = request };
    struct store_values window = STORE_VALUES(
        STORE_INT(request->start_us), STORE_INT(request->has_end_us ? request->end_us : now_us));
    int code = 0;

    if (request->events)
        code = store_each(store,
                          "SELECT c.name, e.node_name, e.t_start, e.t_end, e.state, e.flags,"
                          " e.reason, e.reason_uid, e.reason_user, e.tres, e.nodes"
                          " FROM event e JOIN cluster c ON c.id = e.cluster"
                          " WHERE e.t_start <= ?2 AND (e.t_end = 0 OR e.t_end >= ?1)"
                          " ORDER BY c.name, e.t_start, e.node_name",
                          window, take_event, &reading, err);
    if (code == 0 && request->reservations)
        code = store_each(store,
                          "SELECT c.name, r.id, r.name, r.t_start, r.t_end, r.nodes, r.node_count,"
                          " r.tres, r.users, r.accounts, r.flags, r.comment"
                          " FROM resv r JOIN cluster c ON c.id = r.cluster"
                          " WHERE r.t_start <= ?2 AND r.t_end >= ?1"
                          " ORDER BY c.name, r.t_start, r.id",
                          window, take_reservation, &reading, err);
    for (size_t i = 0; i < reading.reservations.len && code == 0; i++)
        code = add_unused(store, reading.reservations.items[i], now_us, err);
    out->n_events = reading.events.len;
    out->n_reservations = reading.reservations.len;
    out->events = ARENA_ARRAY(arena, AcctEvent *, out->n_events + 1);
    out->reservations = ARENA_ARRAY(arena, AcctReservation *, out->n_reservations + 1);
    for (size_t i = 0; i < out->n_events; i++)
        out->events[i] = reading.events.items[i];
    for (size_t i = 0; i < out->n_reservations; i++)
        out->reservations[i] = reading.reservations.items[i];
    vec_done(&reading.events);
    vec_done(&reading.reservations);
    return code;
}

int records_end_runs(struct store *store, const FixRunawayRequest *request, uint32_t *fixed,
                     struct err *err)
{
    *fixed = 0;
    for (size_t i = 0; i < request->n_db_ids; i++) {
        struct store_values id =
            STORE_VALUES(STORE_INT(request->db_ids[i]), STORE_INT(JOB_COMPLETED));
        int64_t open = 0;
        if (store_number(store, "SELECT count(*) FROM job WHERE db_id = ?1 AND t_end = 0",
                         STORE_VALUES(STORE_INT(request->db_ids[i])), 0, &open, err) < 0 ||
            store_run(store,
                      "UPDATE job SET state = ?2, t_end = CASE WHEN t_start > 0 THEN t_start"
                      " WHEN t_eligible > 0 THEN t_eligible ELSE t_submit END"
                      " WHERE db_id = ?1 AND t_end = 0",
                      id, err) < 0)
            return -(int)err->code;
        *fixed += (uint32_t)open;
    }
    return 0;
}
