/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest_cluster.c - what the journal says of nodes, capacity and reservations becomes rows
 *
 * (1) A record says how something is from the entry on. It is compared with the row that is open: when all is the same
 *     nothing is written, otherwise the row ends there and the next begins. So records may come again.
 * (2) A capacity that is `whole` comes in one entry with everything that is out of use or reserved: what is open
 *     and not in that entry is over, however that was missed.
 */
#include "spurdbd/ingest_cluster.h"

#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "proto/node.pb-c.h"

enum { FLAGS_SHOWN = NODE_FLAG_DRAIN | NODE_FLAG_FAIL | NODE_FLAG_NO_RESPOND | NODE_FLAG_MAINT };

struct open_event {
    bool found;
    int64_t start_us, state, flags;
    char *reason, *tres, *nodes;
};

static void event_done(struct open_event *event)
{
    free(event->reason);
    free(event->tres);
    free(event->nodes);
}

static char *text_at(const struct store_row *row, unsigned column)
{
    struct span text = store_row_bytes(row, column);

    return mem_strndup(text.ptr ? text.ptr : "", text.len);
}

static int take_event(void *ctx, const struct store_row *row, struct err *err)
{
    struct open_event *event = ctx;

    (void)err;
    event_done(event);
    event->found = true;
    event->start_us = store_row_int(row, 0);
    event->state = store_row_int(row, 1);
    event->flags = store_row_int(row, 2);
    event->reason = text_at(row, 3);
    event->tres = text_at(row, 4);
    event->nodes = text_at(row, 5);
    return 0;
}

static int find_event(struct store *store, int64_t cluster, const char *node,
                      struct open_event *out, struct err *err)
{
    return store_each(store,
                      "SELECT t_start, state, flags, reason, tres, nodes FROM event"
                      " WHERE cluster = ?1 AND node_name = ?2 AND t_end = 0",
                      STORE_VALUES(STORE_INT(cluster), STORE_TEXT(node)), take_event, out, err);
}

/* What lasted no time is not kept. */
static int end_event(struct store *store, int64_t cluster, const char *node, int64_t time_us,
                     struct err *err)
{
    struct store_values values =
        STORE_VALUES(STORE_INT(cluster), STORE_TEXT(node), STORE_INT(time_us));

    if (store_run(store,
                  "DELETE FROM event WHERE cluster = ?1 AND node_name = ?2 AND t_end = 0"
                  " AND t_start >= ?3",
                  values, err) < 0 ||
        store_run(store,
                  "UPDATE event SET t_end = ?3 WHERE cluster = ?1 AND node_name = ?2"
                  " AND t_end = 0",
                  values, err) < 0)
        return -(int)err->code;
    return 0;
}

static int add_event(struct store *store, int64_t cluster, const JournalNode *node,
                     const char *nodes, int64_t time_us, struct err *err)
{
    return store_run(store,
                     "INSERT INTO event(cluster, node_name, t_start, t_end, state, flags, reason,"
                     " reason_uid, reason_user, tres, nodes)"
                     " VALUES(?1, ?2, ?3, 0, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
                     " ON CONFLICT(cluster, node_name, t_start) DO UPDATE SET t_end = 0,"
                     " state = ?4, flags = ?5, reason = ?6, reason_uid = ?7, reason_user = ?8,"
                     " tres = ?9, nodes = ?10",
                     STORE_VALUES(STORE_INT(cluster), STORE_TEXT(node->name), STORE_INT(time_us),
                                  STORE_INT(node->state), STORE_INT(node->flags & FLAGS_SHOWN),
                                  STORE_TEXT(node->reason), STORE_INT(node->reason_uid),
                                  STORE_TEXT(node->reason_user), STORE_TEXT(node->tres),
                                  STORE_TEXT(nodes)),
                     err);
}

static bool is_out(const JournalNode *node)
{
    if (node->state == NODE_FUTURE)
        return false;
    return node->state == NODE_DOWN || node->state == NODE_ERROR ||
           node->flags & (NODE_FLAG_DRAIN | NODE_FLAG_FAIL);
}

/* (1) */
static int take_node(struct store *store, int64_t cluster, const JournalNode *node, int64_t time_us,
                     struct err *err)
{
    CLEANUP(event_done) struct open_event open = { 0 };

    if (str_is_empty(node->name))
        return 0;
    if (find_event(store, cluster, node->name, &open, err) < 0)
        return -(int)err->code;
    bool same = open.found && open.state == (int64_t)node->state &&
                open.flags == (int64_t)(node->flags & FLAGS_SHOWN) &&
                str_eq(open.reason, node->reason ? node->reason : "") &&
                str_eq(open.tres, node->tres ? node->tres : "");
    if (is_out(node) ? same : !open.found)
        return 0;
    if (open.found && end_event(store, cluster, node->name, time_us, err) < 0)
        return -(int)err->code;
    return is_out(node) ? add_event(store, cluster, node, "", time_us, err) : 0;
}

/* ---- what is over (2) ---- */

typedef VEC(char *) names_vec;

static int take_name(void *ctx, const struct store_row *row, struct err *err)
{
    names_vec *names = ctx;

    (void)err;
    vec_push(names, text_at(row, 0));
    return 0;
}

static bool entry_has(const JournalEntry *entry, const char *node, const char *resv)
{
    for (size_t i = 0; i < entry->n_records; i++) {
        const JournalRecord *record = entry->records[i];
        if (node && record->node && str_eq(record->node->name, node))
            return true;
        if (resv && record->reservation && record->reservation->spec &&
            str_eq(record->reservation->spec->name, resv))
            return true;
    }
    return false;
}

static int end_resv(struct store *store, int64_t cluster, const char *name, int64_t time_us,
                    struct err *err)
{
    struct store_values values =
        STORE_VALUES(STORE_INT(cluster), STORE_TEXT(name), STORE_INT(time_us));

    if (store_run(store,
                  "DELETE FROM resv WHERE cluster = ?1 AND name = ?2 AND ended = 0"
                  " AND t_start >= ?3",
                  values, err) < 0 ||
        store_run(store,
                  "UPDATE resv SET ended = 1, t_end = CASE WHEN t_end > ?3 THEN ?3 ELSE t_end END"
                  " WHERE cluster = ?1 AND name = ?2 AND ended = 0",
                  values, err) < 0)
        return -(int)err->code;
    return 0;
}

static int end_others(struct store *store, int64_t cluster, const JournalEntry *entry,
                      struct err *err)
{
    names_vec nodes = { 0 }, resvs = { 0 };
    struct store_values id = STORE_VALUES(STORE_INT(cluster));
    int code = store_each(store,
                          "SELECT node_name FROM event WHERE cluster = ?1 AND t_end = 0"
                          " AND node_name <> ''",
                          id, take_name, &nodes, err);

    if (code == 0)
        code = store_each(store, "SELECT name FROM resv WHERE cluster = ?1 AND ended = 0", id,
                          take_name, &resvs, err);
    for (size_t i = 0; i < nodes.len && code == 0; i++) {
        if (!entry_has(entry, nodes.items[i], NULL))
            code = end_event(store, cluster, nodes.items[i], entry->time_us, err);
    }
    for (size_t i = 0; i < resvs.len && code == 0; i++) {
        if (!entry_has(entry, NULL, resvs.items[i]))
            code = end_resv(store, cluster, resvs.items[i], entry->time_us, err);
    }
    vec_each (char *, name, &nodes)
        free(*name);
    vec_each (char *, name, &resvs)
        free(*name);
    vec_done(&nodes);
    vec_done(&resvs);
    return code;
}

static int take_capacity(struct store *store, int64_t cluster, const JournalEntry *entry,
                         const JournalCapacity *capacity, struct err *err)
{
    CLEANUP(event_done) struct open_event open = { 0 };
    JournalNode all = JOURNAL_NODE__INIT;

    if (capacity->whole && end_others(store, cluster, entry, err) < 0)
        return -(int)err->code;
    if (find_event(store, cluster, "", &open, err) < 0)
        return -(int)err->code;
    if (open.found && str_eq(open.tres, capacity->tres) && str_eq(open.nodes, capacity->nodes))
        return 0;
    if (open.found && end_event(store, cluster, "", entry->time_us, err) < 0)
        return -(int)err->code;
    all.name = (char *)"";
    all.tres = capacity->tres;
    all.reason = (char *)"Cluster Registered TRES";
    return add_event(store, cluster, &all, capacity->nodes, entry->time_us, err);
}

/* ---- reservations ---- */

struct open_resv {
    bool found;
    int64_t id, start_us;
    char *nodes, *tres;
};

static void resv_done(struct open_resv *resv)
{
    free(resv->nodes);
    free(resv->tres);
}

static int take_resv(void *ctx, const struct store_row *row, struct err *err)
{
    struct open_resv *resv = ctx;

    (void)err;
    resv_done(resv);
    resv->found = true;
    resv->id = store_row_int(row, 0);
    resv->start_us = store_row_int(row, 1);
    resv->nodes = text_at(row, 2);
    resv->tres = text_at(row, 3);
    return 0;
}

static void join_words(struct str *out, char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        str_addf(out, "%s%s", i ? "," : "", words[i]);
}

static int put_resv(struct store *store, int64_t cluster, int64_t id, int64_t start_us,
                    const JournalReservation *msg, struct err *err)
{
    const ReservationSpec *spec = msg->spec;
    CLEANUP(str_done) struct str users = { 0 }, accounts = { 0 }, flags = { 0 };

    join_words(&users, spec->users, spec->n_users);
    join_words(&accounts, spec->accounts, spec->n_accounts);
    join_words(&flags, spec->flags, spec->n_flags);
    return store_run(
        store,
        "INSERT INTO resv(cluster, id, name, t_start, t_end, ended, nodes, node_count, tres,"
        " users, accounts, flags, comment)"
        " VALUES(?1, ?2, ?3, ?4, ?5, 0, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"
        " ON CONFLICT(cluster, id, t_start) DO UPDATE SET t_end = ?5, ended = 0, nodes = ?6,"
        " node_count = ?7, tres = ?8, users = ?9, accounts = ?10, flags = ?11, comment = ?12",
        STORE_VALUES(STORE_INT(cluster), STORE_INT(id), STORE_TEXT(spec->name), STORE_INT(start_us),
                     STORE_INT(spec->end_us), STORE_TEXT(spec->nodes), STORE_INT(msg->node_count),
                     STORE_TEXT(msg->tres), STORE_TEXT(str_text(&users)),
                     STORE_TEXT(str_text(&accounts)), STORE_TEXT(str_text(&flags)),
                     STORE_TEXT(spec->comment)),
        err);
}

static int next_id(struct store *store, int64_t cluster, int64_t *out, struct err *err)
{
    if (store_number(store, "SELECT max(id) FROM resv WHERE cluster = ?1",
                     STORE_VALUES(STORE_INT(cluster)), 0, out, err) < 0)
        return -(int)err->code;
    ++*out;
    return 0;
}

static int take_reservation(struct store *store, int64_t cluster, const JournalReservation *msg,
                            int64_t time_us, struct err *err)
{
    CLEANUP(resv_done) struct open_resv open = { 0 };
    const ReservationSpec *spec = msg->spec;
    int64_t id = 0, start_us;

    if (!spec || str_is_empty(spec->name))
        return 0;
    if (store_each(store,
                   "SELECT id, t_start, nodes, tres FROM resv WHERE cluster = ?1 AND name = ?2"
                   " AND ended = 0",
                   STORE_VALUES(STORE_INT(cluster), STORE_TEXT(spec->name)), take_resv, &open,
                   err) < 0)
        return -(int)err->code;
    bool begun = open.found && open.start_us < time_us;
    bool again = begun && spec->start_us > time_us; /* its next time */
    bool same = open.found && str_eq(open.nodes, spec->nodes ? spec->nodes : "") &&
                str_eq(open.tres, msg->tres ? msg->tres : "");
    if (open.found && !again)
        id = open.id;
    else if (next_id(store, cluster, &id, err) < 0)
        return -(int)err->code;
    start_us = !begun || again ? spec->start_us : same ? open.start_us : time_us;
    if (open.found && (again || !begun || !same) &&
        end_resv(store, cluster, spec->name, time_us, err) < 0)
        return -(int)err->code;
    return put_resv(store, cluster, id, start_us, msg, err);
}

int ingest_cluster(struct store *store, int64_t cluster, const JournalEntry *entry,
                   const JournalRecord *record, struct err *err)
{
    if (record->kind == JOURNAL_NODE && record->node)
        return take_node(store, cluster, record->node, entry->time_us, err);
    if (record->kind == JOURNAL_CAPACITY && record->capacity)
        return take_capacity(store, cluster, entry, record->capacity, err);
    if (record->kind == JOURNAL_RESERVATION && record->reservation)
        return take_reservation(store, cluster, record->reservation, entry->time_us, err);
    if (record->kind == JOURNAL_RESERVATION_ENDED && record->text)
        return end_resv(store, cluster, record->text, entry->time_us, err);
    return 0;
}
