/* SPDX-License-Identifier: Apache-2.0 */
/*
 * db_lists.c - lists of /slurmdb: accounts, users, associations, QOS, clusters, TRES, workload keys
 *
 * All tables come in one answer of spurdbd; a handler picks what the parameters ask for.
 */
#include <string.h>

#include "proto/dbd.pb-c.h"
#include "rpc/address.h"
#include "schema/acct_objects.h"
#include "spurrestd/db.h"
#include "spurrestd/rest.h"
#include "spurrestd/routes.h"
#include "sys/clock.h"

bool db_flag(const struct exchange *x, const char *name)
{
    const char *text = exchange_query(x, name);

    return text && (!*text || exchange_query_bool(x, name) != 0);
}

bool db_listed(const char *list, const char *text)
{
    const char *cursor = list;
    struct span word;

    if (str_is_empty(list))
        return true;
    while (str_next(&cursor, ",", &word)) {
        if (span_ieq(word, text ? text : ""))
            return true;
    }
    return false;
}

bool db_matches(const struct exchange *x, const char *param, const char *text)
{
    return db_listed(exchange_query(x, param), text);
}

static bool matches_id(const struct exchange *x, uint32_t id)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", id);
    return db_matches(x, "id", text);
}

void db_ask_tables(struct exchange *x, bool with_deleted, ask_done *done)
{
    ListTablesRequest *request = ARENA_NEW(&x->arena, ListTablesRequest);

    list_tables_request__init(request);
    request->has_with_deleted = true;
    request->with_deleted = with_deleted;
    const struct ask_call call = { .method = "/spur.Accounts/List",
                                   .message = &request->base,
                                   .reply = &list_tables_reply__descriptor,
                                   .done = done };
    ask_start(x, &call);
}

void db_warn_nothing(struct answer *answer, const char *call, const char *source)
{
    answer_warn(answer, source, "%s() found nothing", call);
}

/* ---- one list: which of the tables' rows, and how they are written ---- */

/* Whether row `i` is asked for; writes it into `json` when that is given. False behind the last: *end. */
typedef bool pick_fn(const struct exchange *x, const ListTablesReply *tables, size_t i, bool *end,
                     struct jsonw *json);

static bool pick_account(const struct exchange *x, const ListTablesReply *tables, size_t i,
                         bool *end, struct jsonw *json)
{
    unsigned with = 0;

    if ((*end = i >= tables->n_accounts))
        return false;
    const AcctAccount *account = tables->accounts[i];
    if ((x->args[0] && !str_eq(x->args[0], account->name)) ||
        !db_matches(x, "description", account->description))
        return false;
    with |= db_flag(x, "WithAssociations") || db_flag(x, "with_assocs") ? ACCT_WITH_ASSOCS : 0;
    with |= db_flag(x, "WithCoordinators") || db_flag(x, "with_coords") ? ACCT_WITH_COORDS : 0;
    if (json)
        acct_account_json(tables, account, with, json);
    return true;
}

static const char *user_default(const ListTablesReply *tables, const char *user)
{
    for (size_t i = 0; i < tables->n_assocs; i++) {
        const ConfUser *limits = tables->assocs[i]->limits;
        if (str_eq(limits->name, user) && limits->is_default)
            return limits->account;
    }
    return "";
}

static bool pick_user(const struct exchange *x, const ListTablesReply *tables, size_t i, bool *end,
                      struct jsonw *json)
{
    static const char *const levels[] = { "None", "Operator", "Administrator" };
    unsigned with = db_flag(x, "without_defaults") ? 0 : ACCT_WITH_DEFAULTS;

    if ((*end = i >= tables->n_users))
        return false;
    const AcctUser *user = tables->users[i];
    const char *level = exchange_query(x, "admin_level");
    if ((x->args[0] && !str_eq(x->args[0], user->name)) ||
        (!str_eq(level ? level : "Not Set", "Not Set") &&
         !db_listed(level, levels[MIN(user->admin_level, 2u)])) ||
        !db_matches(x, "default_account", user_default(tables, user->name)) ||
        !db_matches(x, "default_wckey", user->default_wckey))
        return false;
    with |= db_flag(x, "with_assocs") ? ACCT_WITH_ASSOCS : 0;
    with |= db_flag(x, "with_coords") ? ACCT_WITH_COORDS : 0;
    with |= db_flag(x, "with_wckeys") ? ACCT_WITH_WCKEYS : 0;
    if (json)
        acct_user_json(tables, user, with, json);
    return true;
}

static bool may_use_qos(const struct exchange *x, const ConfUser *limits)
{
    const char *wanted = exchange_query(x, "qos");

    for (size_t i = 0; i < limits->n_qos_list; i++) {
        if (db_listed(wanted, limits->qos_list[i]))
            return true;
    }
    return str_is_empty(wanted);
}

/* Whether one of the accounts that were named is this one, or lies above it. */
static bool below_account(const struct exchange *x, const ListTablesReply *tables,
                          const AcctAssoc *assoc)
{
    const char *wanted = exchange_query(x, "account"), *account = assoc->limits->account;
    bool below = db_flag(x, "Include sub acct information");

    for (unsigned depth = 0; depth < 64 && account; depth++) {
        if (db_listed(wanted, account))
            return true;
        if (!below)
            return false;
        const AcctAssoc *above = acct_account_assoc(tables, assoc->cluster, account);
        account = above ? above->parent : NULL;
    }
    return false;
}

static bool pick_assoc(const struct exchange *x, const ListTablesReply *tables, size_t i, bool *end,
                       struct jsonw *json)
{
    if ((*end = i >= tables->n_assocs))
        return false;
    const AcctAssoc *assoc = tables->assocs[i];
    const ConfUser *limits = assoc->limits;
    AcctAssoc shown = *assoc;
    ConfUser own = *limits;
    if (!below_account(x, tables, assoc) || !db_matches(x, "cluster", assoc->cluster) ||
        !db_matches(x, "user", limits->name) ||
        !db_matches(x, "partition", limits->partition ? limits->partition : "") ||
        !db_matches(x, "parent_account", assoc->parent) || !matches_id(x, assoc->id) ||
        !may_use_qos(x, limits) || (db_flag(x, "Filter to only defaults") && !limits->is_default))
        return false;
    shown.limits = &own;
    if (!db_flag(x, "Exclude limits from parents"))
        acct_assoc_inherit(tables, &shown);
    if (!db_matches(x, "default_qos", own.default_qos))
        return false;
    if (db_flag(x, "Exclude parent id/name"))
        shown.parent = NULL;
    if (json)
        acct_assoc_json(tables, &shown, json);
    return true;
}

static bool pick_qos(const struct exchange *x, const ListTablesReply *tables, size_t i, bool *end,
                     struct jsonw *json)
{
    if ((*end = i >= tables->n_qos))
        return false;
    const AcctQos *qos = tables->qos[i];
    const char *mode = qos->qos->qos_preempt_mode;
    if ((x->args[0] && !str_eq(x->args[0], qos->qos->name)) ||
        !db_matches(x, "name", qos->qos->name) ||
        !db_matches(x, "description", qos->qos->description) || !matches_id(x, qos->id) ||
        !db_matches(x, "preempt_mode", str_is_empty(mode) ? "DISABLED" : mode))
        return false;
    if (json)
        acct_qos_json(qos, json);
    return true;
}

static bool pick_cluster(const struct exchange *x, const ListTablesReply *tables, size_t i,
                         bool *end, struct jsonw *json)
{
    if ((*end = i >= tables->n_clusters))
        return false;
    const AcctClusterRow *cluster = tables->clusters[i];
    if ((x->args[0] && !str_eq(x->args[0], cluster->name)) ||
        !db_matches(x, "cluster", cluster->name) ||
        !db_matches(x, "classification", cluster->classification) ||
        !db_matches(x, "federation", "") || !db_matches(x, "rpc_version", "0"))
        return false;
    if (json)
        acct_cluster_json(tables, cluster, json);
    return true;
}

static bool pick_tres(const struct exchange *x, const ListTablesReply *tables, size_t i, bool *end,
                      struct jsonw *json)
{
    (void)x;
    if ((*end = i >= tables->n_tres))
        return false;
    if (json)
        acct_tres_json(tables->tres[i], json);
    return true;
}

static bool is_default_wckey(const ListTablesReply *tables, const AcctWckey *wckey)
{
    for (size_t i = 0; i < tables->n_users; i++) {
        if (str_eq(tables->users[i]->name, wckey->user))
            return str_eq(tables->users[i]->default_wckey, wckey->name);
    }
    return false;
}

static bool pick_wckey(const struct exchange *x, const ListTablesReply *tables, size_t i, bool *end,
                       struct jsonw *json)
{
    char id[16];

    if ((*end = i >= tables->n_wckeys))
        return false;
    const AcctWckey *wckey = tables->wckeys[i];
    snprintf(id, sizeof(id), "%u", wckey->id);
    if ((x->args[0] && !str_eq(x->args[0], id)) || !db_matches(x, "cluster", wckey->cluster) ||
        !matches_id(x, wckey->id) || !db_matches(x, "name", wckey->name) ||
        !db_matches(x, "user", wckey->user) ||
        (db_flag(x, "only_defaults") && !is_default_wckey(tables, wckey)))
        return false;
    if (json)
        acct_wckey_json(wckey, json);
    return true;
}

static bool pick_none(const struct exchange *x, const ListTablesReply *tables, size_t i, bool *end,
                      struct jsonw *json)
{
    (void)x, (void)tables, (void)i, (void)json;
    *end = true;
    return false;
}

static const struct list {
    const char *key, *call, *source;
    pick_fn *pick;
    const char *deleted; /* the parameter that asks for what was deleted */
} lists[] = {
    { "accounts", "slurmdb_accounts_get", "_dump_accounts", pick_account, "DELETED" },
    { "users", "slurmdb_users_get", "_dump_users", pick_user, NULL },
    { "associations", "slurmdb_associations_get", "_dump_assoc_cond", pick_assoc,
      "Include deleted associations" },
    { "qos", "slurmdb_qos_get", "_dump_qos", pick_qos, "Include deleted QOS" },
    { "clusters", "slurmdb_clusters_get", "_dump_clusters", pick_cluster, NULL },
    { "TRES", "slurmdb_tres_get", "_dump_tres", pick_tres, NULL },
    { "wckeys", "slurmdb_wckeys_get", "_dump_wckeys", pick_wckey, NULL },
    { "instances", "slurmdb_instances_get", "_dump_instance_cond", pick_none, NULL },
};
enum { ACCOUNTS, USERS, ASSOCS, QOS, CLUSTERS, TRES, WCKEYS, INSTANCES };

struct listing {
    const struct list *list;
    bool only_one;
};

static size_t add_list(struct answer *answer, const struct list *list, const char *key,
                       const ListTablesReply *tables, bool only_one)
{
    size_t found = 0;
    bool end = false;

    jsonw_list(&answer->json, key);
    for (size_t i = 0; !end && !(only_one && found); i++)
        found += list->pick(answer->x, tables, i, &end, &answer->json);
    jsonw_list_end(&answer->json);
    return found;
}

static void on_tables(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    const struct listing *listing = x->data;

    if (err) {
        answer_error(x, err, NULL);
        return;
    }
    struct answer *answer = answer_new(x);
    if (!add_list(answer, listing->list, listing->list->key, (const void *)message,
                  listing->only_one))
        db_warn_nothing(answer, listing->list->call, listing->list->source);
    answer_send(answer);
}

/* What accounts used is in sreport's tables, which are not here yet. */
static bool asks_for_usage(struct exchange *x)
{
    struct err err = { 0 };

    if (!db_flag(x, "Include usage") && !db_flag(x, "with_usage"))
        return false;
    err_set(&err, ERR_UNSUPPORTED, "usage is not part of this list: see /slurm/v0.0.%u/shares",
            x->version);
    answer_error(x, &err, NULL);
    return true;
}

static void list(struct exchange *x, unsigned which, bool only_one)
{
    struct listing *listing = ARENA_NEW(&x->arena, struct listing);
    const char *deleted = lists[which].deleted;

    if (asks_for_usage(x))
        return;
    listing->list = &lists[which];
    listing->only_one = only_one;
    x->data = listing;
    db_ask_tables(x, db_flag(x, "with_deleted") || (deleted && db_flag(x, deleted)), on_tables);
}

void db_get_accounts(struct exchange *x)
{
    list(x, ACCOUNTS, false);
}

void db_get_users(struct exchange *x)
{
    list(x, USERS, false);
}

void db_get_assocs(struct exchange *x)
{
    list(x, ASSOCS, false);
}

void db_get_assoc(struct exchange *x)
{
    list(x, ASSOCS, true);
}

void db_get_qos(struct exchange *x)
{
    list(x, QOS, false);
}

void db_get_clusters(struct exchange *x)
{
    list(x, CLUSTERS, false);
}

void db_get_tres(struct exchange *x)
{
    list(x, TRES, false);
}

void db_get_wckeys(struct exchange *x)
{
    list(x, WCKEYS, false);
}

void db_get_instances(struct exchange *x)
{
    list(x, INSTANCES, false);
}

/* ---- everything at once ---- */

static void on_all(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    static const struct {
        unsigned list;
        const char *key;
    } order[] = { { CLUSTERS, "clusters" },  { TRES, "tres" }, { ACCOUNTS, "accounts" },
                  { USERS, "users" },        { QOS, "qos" },   { WCKEYS, "wckeys" },
                  { ASSOCS, "associations" } };

    if (err) {
        answer_error(x, err, NULL);
        return;
    }
    /* Accounts and users come with their associations, coordinators and workload keys. */
    static const struct exchange_pair with[] = { { "with_assocs", "" },
                                                 { "with_coords", "" },
                                                 { "with_wckeys", "" } };
    for (size_t i = 0; i < ARRAY_LEN(with) && x->query_count < EXCHANGE_PAIRS; i++)
        x->query[x->query_count++] = with[i];
    struct answer *answer = answer_new(x);
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        add_list(answer, &lists[order[i].list], order[i].key, (const void *)message, false);
        answer_flush(answer);
    }
    if (x->version < 45)
        add_list(answer, &lists[INSTANCES], "instances", (const void *)message, false);
    answer_send(answer);
}

void db_get_config(struct exchange *x)
{
    db_ask_tables(x, false, on_all);
}

/* ---- how spurdbd is ---- */

static void on_ping(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    const int64_t *since_us = x->data;

    (void)message;
    if (err && (err->code == ERR_UNAUTHENTICATED || err->code == ERR_PERMISSION)) {
        answer_error(x, err, NULL);
        return;
    }
    struct answer *answer = answer_new(x);
    struct jsonw *json = &answer->json;
    jsonw_list(json, "pings");
    jsonw_object(json, NULL);
    jsonw_text(json, "hostname", x->rest->options->controllers);
    jsonw_bool(json, "responding", err == NULL);
    jsonw_number(json, "latency", clock_mono_us() - *since_us);
    jsonw_bool(json, "primary", true);
    if (jsonw_has(json, 45, 0))
        jsonw_text(json, "status", err ? "DOWN" : "UP");
    jsonw_object_end(json);
    jsonw_list_end(json);
    answer_send(answer);
}

static void ask_status(struct exchange *x, ask_done *done)
{
    AcctStatusRequest *request = ARENA_NEW(&x->arena, AcctStatusRequest);
    int64_t *since_us = ARENA_NEW(&x->arena, int64_t);

    acct_status_request__init(request);
    *since_us = clock_mono_us();
    x->data = since_us;
    const struct ask_call call = { .method = "/spur.Accounting/Status",
                                   .message = &request->base,
                                   .reply = &acct_status_reply__descriptor,
                                   .done = done };
    ask_start(x, &call);
}

void db_get_ping(struct exchange *x)
{
    ask_status(x, on_ping);
}

static void on_diag(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    static const char *const rollups[] = { "hourly", "daily", "monthly" };
    const AcctStatusReply *status = (const void *)message;

    if (err) {
        answer_error(x, err, NULL);
        return;
    }
    struct answer *answer = answer_new(x);
    struct jsonw *json = &answer->json;
    jsonw_object(json, "statistics");
    jsonw_number(json, "time_start", status->start_us / 1000000);
    jsonw_object(json, "rollups"); /* spurdbd has none: usage is summed when it is asked for */
    for (size_t i = 0; i < ARRAY_LEN(rollups); i++) {
        jsonw_object(json, rollups[i]);
        jsonw_number(json, "count", 0);
        jsonw_number(json, "last_run", 0);
        jsonw_object(json, "duration");
        jsonw_number(json, "last", 0);
        jsonw_number(json, "max", 0);
        jsonw_number(json, "time", 0);
        jsonw_object_end(json);
        jsonw_object_end(json);
    }
    jsonw_object_end(json);
    jsonw_list(json, "RPCs");
    jsonw_object(json, NULL);
    jsonw_text(json, "rpc", "Feed");
    jsonw_number(json, "count", (int64_t)status->batches);
    jsonw_object(json, "time");
    jsonw_number(json, "average", 0);
    jsonw_number(json, "total", 0);
    jsonw_object_end(json);
    jsonw_object_end(json);
    jsonw_list_end(json);
    jsonw_list(json, "users");
    jsonw_list_end(json);
    jsonw_object_end(json);
    answer_send(answer);
}

void db_get_diag(struct exchange *x)
{
    ask_status(x, on_diag);
}

/* What spurdbd keeps it keeps for ever: nothing is purged or archived. */
static void add_purge(struct jsonw *json, const char *what)
{
    char key[48];

    snprintf(key, sizeof(key), "Purge%sAfter", what);
    jsonw_object(json, key);
    jsonw_bool(json, "set", false);
    jsonw_number(json, "hours", 0);
    jsonw_number(json, "days", 0);
    jsonw_number(json, "months", 0);
    jsonw_bool(json, "archive", false);
    jsonw_object_end(json);
}

static void on_conf(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    static const char *const purged[] = { "Event", "Job",   "Resv",      "Step",  "Suspend",
                                          "TXN",   "Usage", "JobScript", "JobEnv" };
    static const char *const unused[] = {
        "ArchiveDir", "ArchiveScript",     "DbdAddr",     "DbdBackupHost",
        "DbdHost",    "DebugLevel",        "LogFile",     "MaxQueryTimeRange",
        "PidFile",    "StoragePassScript", "StorageUser", "DebugLevelSyslog"
    };
    static const char *const empty[] = { "Flags", "Parameters", "PersistConnFlags" };
    const AcctStatusReply *status = (const void *)message;

    if (err) {
        answer_error(x, err, NULL);
        return;
    }
    struct answer *answer = answer_new(x);
    struct jsonw *json = &answer->json;
    jsonw_object(json, "slurmdbd_conf");
    for (size_t i = 0; i < ARRAY_LEN(unused); i++) /* what spurdbd has no setting for */
        jsonw_text(json, unused[i], "");
    for (size_t i = 0; i < ARRAY_LEN(empty); i++) {
        jsonw_list(json, empty[i]);
        jsonw_list_end(json);
    }
    jsonw_number(json, "CommitDelay", 0);
    jsonw_number(json, "MaxPurgeLimit", 0);
    jsonw_number(json, "DbdPort", ADDRESS_PORT_ACCOUNTING);
    jsonw_text(json, "DefaultQOS", "normal");
    jsonw_text(json, "StorageLoc", status->database);
    for (size_t i = 0; i < ARRAY_LEN(purged); i++)
        add_purge(json, purged[i]);
    jsonw_bool(json, "TrackWCKey", true);
    jsonw_bool(json, "TrackSlurmctldDown", false);
    jsonw_object_end(json);
    answer_send(answer);
}

void db_get_conf(struct exchange *x)
{
    ask_status(x, on_conf);
}
