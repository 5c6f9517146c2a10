/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables.c - rows of accounts, users, associations, QOS and what belongs to them
 *
 * (1) A row has the columns that statements select by, and the packed message. Id and `deleted` are columns.
 * (2) What is removed takes along what hangs on it: an account its associations and coordinators, a user also its
 *     workload keys, a cluster its associations. tables_check() sees to all else.
 */
#include "spurdbd/tables.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/map.h"
#include "base/vec.h"
#include "wire/pb_unpack.h"

struct reading {
    struct arena *arena;
    ListTablesReply *out;
    VEC(void *) list;
};

static char *text_at(const struct reading *reading, const struct store_row *row, unsigned column)
{
    struct span text = store_row_bytes(row, column);

    return arena_strndup(reading->arena, text.ptr, text.len);
}

static void *message_at(const struct reading *reading, const struct store_row *row, unsigned column,
                        const ProtobufCMessageDescriptor *type, struct err *err)
{
    struct span bytes = store_row_bytes(row, column);
    ProtobufCMessage *message = NULL;

    pb_unpack(type, reading->arena, bytes.ptr, bytes.len, &message, err);
    return message;
}

/* ---- one function per table: id, deleted, message ---- */

#define TAKE_ROW(function, type, descriptor, ...)                                \
    static int function(void *ctx, const struct store_row *row, struct err *err) \
    {                                                                            \
        struct reading *reading = ctx;                                           \
        type *message = message_at(reading, row, 2, descriptor, err);            \
        if (!message)                                                            \
            return -(int)err->code;                                              \
        message->has_deleted = true;                                             \
        message->deleted = store_row_int(row, 1) != 0;                           \
        __VA_ARGS__;                                                             \
        vec_push(&reading->list, message);                                       \
        return 0;                                                                \
    }
#define SET_ID              \
    message->has_id = true; \
    message->id = (uint32_t)store_row_int(row, 0)

TAKE_ROW(take_account, AcctAccount, &acct_account__descriptor, )
TAKE_ROW(take_user, AcctUser, &acct_user__descriptor, )
TAKE_ROW(take_assoc, AcctAssoc, &acct_assoc__descriptor, SET_ID)
TAKE_ROW(take_qos, AcctQos, &acct_qos__descriptor, SET_ID)
TAKE_ROW(take_wckey, AcctWckey, &acct_wckey__descriptor, SET_ID)

static int take_cluster(void *ctx, const struct store_row *row, struct err *err)
{
    struct reading *reading = ctx;
    AcctClusterRow *cluster = ARENA_NEW(reading->arena, AcctClusterRow);

    (void)err;
    acct_cluster_row__init(cluster);
    cluster->has_id = cluster->has_deleted = cluster->has_changes = true;
    cluster->id = (uint32_t)store_row_int(row, 0);
    cluster->deleted = store_row_int(row, 1) != 0;
    cluster->name = text_at(reading, row, 2);
    cluster->changes = (uint64_t)store_row_int(row, 3);
    cluster->classification = text_at(reading, row, 4);
    cluster->repair = text_at(reading, row, 5);
    vec_push(&reading->list, cluster);
    return 0;
}

static int take_coord(void *ctx, const struct store_row *row, struct err *err)
{
    struct reading *reading = ctx;
    AcctCoord *coord = ARENA_NEW(reading->arena, AcctCoord);

    (void)err;
    acct_coord__init(coord);
    coord->account = text_at(reading, row, 0);
    coord->user = text_at(reading, row, 1);
    vec_push(&reading->list, coord);
    return 0;
}

static int take_tres(void *ctx, const struct store_row *row, struct err *err)
{
    struct reading *reading = ctx;
    AcctTres *tres = ARENA_NEW(reading->arena, AcctTres);

    (void)err;
    acct_tres__init(tres);
    tres->has_id = true;
    tres->id = (uint32_t)store_row_int(row, 0);
    tres->type = text_at(reading, row, 1);
    tres->name = text_at(reading, row, 2);
    vec_push(&reading->list, tres);
    return 0;
}

static int take_transaction(void *ctx, const struct store_row *row, struct err *err)
{
    struct reading *reading = ctx;
    AcctTransaction *one = ARENA_NEW(reading->arena, AcctTransaction);

    (void)err;
    acct_transaction__init(one);
    one->has_time_us = true;
    one->time_us = store_row_int(row, 0);
    one->action = text_at(reading, row, 1);
    one->actor = text_at(reading, row, 2);
    one->what = text_at(reading, row, 3);
    one->info = text_at(reading, row, 4);
    one->cluster = text_at(reading, row, 5);
    vec_push(&reading->list, one);
    return 0;
}

struct list {
    void **items;
    size_t count;
};

static int read_list(struct reading *reading, struct store *store, const char *sql,
                     store_each_fn *take, struct list *out, struct err *err)
{
    vec_clear(&reading->list);
    if (store_each(store, sql, STORE_NO_VALUES, take, reading, err) < 0)
        return -(int)err->code;
    out->count = reading->list.len;
    out->items = ARENA_ARRAY(reading->arena, void *, out->count + 1);
    for (size_t i = 0; i < out->count; i++)
        out->items[i] = reading->list.items[i];
    return 0;
}

/* ---- the order of associations ---- */

static int by_name(const void *a, const void *b)
{
    const AcctAssoc *left = *(AcctAssoc *const *)a, *right = *(AcctAssoc *const *)b;
    bool left_account = str_is_empty(left->limits->name);
    bool right_account = str_is_empty(right->limits->name);

    if (left_account != right_account)
        return left_account ? 1 : -1; /* users come before the accounts below */
    int order = left_account ? strcmp(left->limits->account, right->limits->account)
                             : strcmp(left->limits->name, right->limits->name);
    if (order == 0 && !left_account)
        order = strcmp(left->limits->partition ? left->limits->partition : "",
                       right->limits->partition ? right->limits->partition : "");
    return order ? order : (left->id > right->id) - (left->id < right->id);
}

typedef VEC(AcctAssoc *) assoc_vec;

static void below_key(struct str *key, const char *cluster, const char *account)
{
    str_clear(key);
    str_addf(key, "%s\n%s", cluster, account);
}

static void add_below(struct map *below, const char *cluster, const char *account, unsigned depth,
                      assoc_vec *out)
{
    struct str key = { 0 };

    below_key(&key, cluster, account);
    assoc_vec *children =
        map_del(below, str_text(&key)); /* each once, also when they are a circle */
    str_done(&key);
    if (!children)
        return;
    qsort(children->items, children->len, sizeof(*children->items), by_name);
    for (size_t i = 0; i < children->len; i++) {
        AcctAssoc *assoc = children->items[i];
        vec_push(out, assoc);
        if (str_is_empty(assoc->limits->name) && depth < LIMIT_ACCOUNT_DEPTH + 2)
            add_below(below, cluster, assoc->limits->account, depth + 1, out);
    }
    vec_done(children);
    free(children);
}

static void put_below(struct map *below, AcctAssoc *assoc)
{
    bool is_account = str_is_empty(assoc->limits->name);
    const char *parent = !is_account ? assoc->limits->account : assoc->parent ? assoc->parent : "";
    struct str key = { 0 };

    below_key(&key, assoc->cluster, parent);
    assoc_vec *children = map_get(below, str_text(&key));
    if (!children) {
        children = mem_new(sizeof(*children));
        memset(children, 0, sizeof(*children));
        map_put(below, str_text(&key), children);
    }
    vec_push(children, assoc);
    str_done(&key);
}

/* Depth first; what hangs on nothing comes last. */
static void put_in_order(ListTablesReply *tables)
{
    struct map below;
    assoc_vec out = { 0 };

    map_init(&below);
    for (size_t i = 0; i < tables->n_assocs; i++)
        put_below(&below, tables->assocs[i]);
    for (size_t i = 0; i < tables->n_clusters; i++)
        add_below(&below, tables->clusters[i]->name, "", 0, &out);
    map_each (entry, &below) {
        assoc_vec *children = entry->value;
        for (size_t i = 0; i < children->len; i++)
            vec_push(&out, children->items[i]);
        vec_done(children);
        free(children);
    }
    for (size_t i = 0; i < out.len; i++)
        tables->assocs[i] = out.items[i];
    tables->n_assocs = out.len;
    vec_done(&out);
    map_done(&below);
}

/* ---- all ---- */

int tables_read(struct store *store, struct arena *arena, const struct tables_want *want,
                ListTablesReply **out, struct err *err)
{
    ListTablesReply *tables = ARENA_NEW(arena, ListTablesReply);
    struct reading reading = { .arena = arena, .out = tables };
    struct list list[9] = { 0 };
    int64_t revision = 0;
    const struct {
        const char *sql, *all;
        store_each_fn *take;
    } reads[] = {
        { "SELECT id, deleted, name, changes, classification, repair FROM acct_cluster WHERE deleted = 0"
          " ORDER BY name",
          "SELECT id, deleted, name, changes, classification, repair FROM acct_cluster ORDER BY name",
          take_cluster },
        { "SELECT 0, deleted, bytes FROM acct_account WHERE deleted = 0 ORDER BY name",
          "SELECT 0, deleted, bytes FROM acct_account ORDER BY name", take_account },
        { "SELECT 0, deleted, bytes FROM acct_user WHERE deleted = 0 ORDER BY name",
          "SELECT 0, deleted, bytes FROM acct_user ORDER BY name", take_user },
        { "SELECT id, deleted, bytes FROM acct_assoc WHERE deleted = 0 ORDER BY id",
          "SELECT id, deleted, bytes FROM acct_assoc ORDER BY id", take_assoc },
        { "SELECT id, deleted, bytes FROM acct_qos WHERE deleted = 0 ORDER BY id",
          "SELECT id, deleted, bytes FROM acct_qos ORDER BY id", take_qos },
        { "SELECT id, type, name FROM acct_tres ORDER BY id", NULL, take_tres },
        { "SELECT id, deleted, bytes FROM acct_wckey WHERE deleted = 0 ORDER BY id",
          "SELECT id, deleted, bytes FROM acct_wckey ORDER BY id", take_wckey },
        { "SELECT account, user_name FROM acct_coord ORDER BY account, user_name", NULL,
          take_coord },
        { "SELECT t_us, action, actor, what, info, cluster FROM acct_transaction ORDER BY id", NULL,
          take_transaction },
    };

    list_tables_reply__init(tables);
    for (size_t i = 0; i < ARRAY_LEN(reads); i++) {
        const char *sql = want->deleted && reads[i].all ? reads[i].all : reads[i].sql;
        if (i == 8 && !want->transactions)
            continue;
        if (read_list(&reading, store, sql, reads[i].take, &list[i], err) < 0) {
            vec_done(&reading.list);
            return -(int)err->code;
        }
    }
    vec_done(&reading.list);
    if (store_number(store, "SELECT max(revision) FROM acct_revision", STORE_NO_VALUES, 0,
                     &revision, err) < 0)
        return -(int)err->code;
#define GIVE(n, name)                 \
    tables->n_##name = list[n].count; \
    tables->name = (void *)list[n].items
    GIVE(0, clusters);
    GIVE(1, accounts);
    GIVE(2, users);
    GIVE(3, assocs);
    GIVE(4, qos);
    GIVE(5, tres);
    GIVE(6, wckeys);
    GIVE(7, coords);
    GIVE(8, transactions);
#undef GIVE
    tables->has_revision = true;
    tables->revision = (uint64_t)revision;
    put_in_order(tables);
    *out = tables;
    return 0;
}

/* ---- writing ---- */

static struct store_value packed(const void *message, struct str *out)
{
    const ProtobufCMessage *base = message;
    size_t len = protobuf_c_message_get_packed_size(base);

    str_clear(out);
    str_reserve(out, len + 1);
    out->len = protobuf_c_message_pack(base, (uint8_t *)out->data);
    return STORE_BYTES(out->data, out->len);
}

static int put_assoc(struct store *store, const AcctAssoc *assoc, bool remove, struct err *err)
{
    CLEANUP(str_done) struct str bytes = { 0 };
    const ConfUser *limits = assoc->limits;

    return store_run(store,
                     "INSERT INTO acct_assoc(cluster, account, user_name, partition_name, deleted,"
                     " bytes) VALUES(?1, ?2, ?3, ?4, ?5, ?6)"
                     " ON CONFLICT(cluster, account, user_name, partition_name)"
                     " DO UPDATE SET deleted = excluded.deleted, bytes = excluded.bytes",
                     STORE_VALUES(STORE_TEXT(assoc->cluster), STORE_TEXT(limits->account),
                                  STORE_TEXT(limits->name), STORE_TEXT(limits->partition),
                                  STORE_INT(remove), packed(assoc, &bytes)),
                     err);
}

static int put_named(struct store *store, const char *sql, const char *name, const void *message,
                     bool remove, struct err *err)
{
    CLEANUP(str_done) struct str bytes = { 0 };

    return store_run(store, sql,
                     STORE_VALUES(STORE_TEXT(name), STORE_INT(remove), packed(message, &bytes)),
                     err);
}

static int put_account(struct store *store, const AcctAccount *account, bool remove,
                       struct err *err)
{
    struct store_values name = STORE_VALUES(STORE_TEXT(account->name));

    if (put_named(store,
                  "INSERT INTO acct_account(name, deleted, bytes) VALUES(?1, ?2, ?3)"
                  " ON CONFLICT(name) DO UPDATE SET deleted = excluded.deleted,"
                  " bytes = excluded.bytes",
                  account->name, account, remove, err) < 0)
        return -(int)err->code;
    if (!remove)
        return 0;
    if (store_run(store, "UPDATE acct_assoc SET deleted = 1 WHERE account = ?1", name, err) < 0 ||
        store_run(store, "DELETE FROM acct_coord WHERE account = ?1", name, err) < 0) /* (2) */
        return -(int)err->code;
    return 0;
}

static int put_user(struct store *store, const AcctUser *user, bool remove, struct err *err)
{
    struct store_values name = STORE_VALUES(STORE_TEXT(user->name));

    if (put_named(store,
                  "INSERT INTO acct_user(name, deleted, bytes) VALUES(?1, ?2, ?3)"
                  " ON CONFLICT(name) DO UPDATE SET deleted = excluded.deleted,"
                  " bytes = excluded.bytes",
                  user->name, user, remove, err) < 0)
        return -(int)err->code;
    if (!remove)
        return 0;
    if (store_run(store, "UPDATE acct_assoc SET deleted = 1 WHERE user_name = ?1", name, err) < 0 ||
        store_run(store, "UPDATE acct_wckey SET deleted = 1 WHERE user_name = ?1", name, err) < 0 ||
        store_run(store, "DELETE FROM acct_coord WHERE user_name = ?1", name, err) < 0) /* (2) */
        return -(int)err->code;
    return 0;
}

static int put_cluster(struct store *store, const AcctClusterRow *cluster, bool remove,
                       int64_t now_us, struct err *err)
{
    struct store_values name = STORE_VALUES(STORE_TEXT(cluster->name));

    if (remove) {
        if (store_run(store, "UPDATE acct_cluster SET deleted = 1 WHERE name = ?1", name, err) <
                0 ||
            store_run(store, "UPDATE acct_assoc SET deleted = 1 WHERE cluster = ?1", name, err) < 0)
            return -(int)err->code;
        return 0;
    }
    if (tables_register(store, cluster->name, now_us, err) < 0 ||
        store_run(store, "UPDATE acct_cluster SET classification = ?2 WHERE name = ?1",
                  STORE_VALUES(STORE_TEXT(cluster->name), STORE_TEXT(cluster->classification)),
                  err) < 0)
        return -(int)err->code;
    return 0;
}

static int put_wckey(struct store *store, const AcctWckey *wckey, bool remove, struct err *err)
{
    CLEANUP(str_done) struct str bytes = { 0 };

    return store_run(store,
                     "INSERT INTO acct_wckey(cluster, user_name, name, deleted, bytes)"
                     " VALUES(?1, ?2, ?3, ?4, ?5) ON CONFLICT(cluster, user_name, name)"
                     " DO UPDATE SET deleted = excluded.deleted, bytes = excluded.bytes",
                     STORE_VALUES(STORE_TEXT(wckey->cluster), STORE_TEXT(wckey->user),
                                  STORE_TEXT(wckey->name), STORE_INT(remove),
                                  packed(wckey, &bytes)),
                     err);
}

static int put_coord(struct store *store, const AcctCoord *coord, bool remove, struct err *err)
{
    struct store_values who = STORE_VALUES(STORE_TEXT(coord->account), STORE_TEXT(coord->user));

    return store_run(store,
                     remove ? "DELETE FROM acct_coord WHERE account = ?1 AND user_name = ?2"
                            : "INSERT INTO acct_coord(account, user_name) VALUES(?1, ?2)"
                              " ON CONFLICT(account, user_name) DO NOTHING",
                     who, err);
}

static int put_qos(struct store *store, const AcctQos *qos, bool remove, struct err *err)
{
    return put_named(store,
                     "INSERT INTO acct_qos(name, deleted, bytes) VALUES(?1, ?2, ?3)"
                     " ON CONFLICT(name) DO UPDATE SET deleted = excluded.deleted,"
                     " bytes = excluded.bytes",
                     qos->qos->name, qos, remove, err);
}

/* Jobs that have not ended hold what they run in. */
static int no_jobs(struct store *store, const AcctEdit *edit, struct err *err)
{
    const char *column = edit->account ? "account" : "user_name", *name = NULL;
    int64_t jobs = 0;

    if (!edit->remove)
        return 0;
    name = edit->account ? edit->account->name : edit->user ? edit->user->name : NULL;
    if (edit->assoc) {
        const ConfUser *limits = edit->assoc->limits;
        if (store_number(store,
                         "SELECT count(*) FROM job WHERE t_end = 0 AND account = ?1 AND"
                         " (user_name = ?2 OR ?2 = '')",
                         STORE_VALUES(STORE_TEXT(limits->account), STORE_TEXT(limits->name)), 0,
                         &jobs, err) < 0)
            return -(int)err->code;
        name = limits->account;
    } else if (name) {
        CLEANUP(freep)
        char *sql = mem_printf("SELECT count(*) FROM job WHERE t_end = 0 AND %s = ?1", column);
        if (store_number(store, sql, STORE_VALUES(STORE_TEXT(name)), 0, &jobs, err) < 0)
            return -(int)err->code;
    }
    if (!jobs)
        return 0;
    return err_set(err, ERR_INVALID,
                   "Job(s) active, cancel job(s) before remove: '%s' has %lld of them", name,
                   (long long)jobs);
}

static int write_transaction(struct store *store, const AcctEdit *edit, const char *actor,
                             int64_t now_us, struct err *err)
{
    if (str_is_empty(edit->action))
        return 0;
    return store_run(store,
                     "INSERT INTO acct_transaction(t_us, action, actor, what, info, cluster)"
                     " VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
                     STORE_VALUES(STORE_INT(now_us), STORE_TEXT(edit->action), STORE_TEXT(actor),
                                  STORE_TEXT(edit->what), STORE_TEXT(edit->info),
                                  STORE_TEXT(edit->assoc ? edit->assoc->cluster : "")),
                     err);
}

int tables_edit(struct store *store, const AcctEdit *edit, const char *actor, int64_t now_us,
                struct err *err)
{
    int code = no_jobs(store, edit, err);

    if (code == 0 && edit->cluster)
        code = put_cluster(store, edit->cluster, edit->remove, now_us, err);
    if (code == 0 && edit->account)
        code = put_account(store, edit->account, edit->remove, err);
    if (code == 0 && edit->user)
        code = put_user(store, edit->user, edit->remove, err);
    if (code == 0 && edit->assoc)
        code = put_assoc(store, edit->assoc, edit->remove, err);
    if (code == 0 && edit->qos)
        code = put_qos(store, edit->qos, edit->remove, err);
    if (code == 0 && edit->wckey)
        code = put_wckey(store, edit->wckey, edit->remove, err);
    if (code == 0 && edit->coord)
        code = put_coord(store, edit->coord, edit->remove, err);
    return code < 0 ? code : write_transaction(store, edit, actor, now_us, err);
}

/* ---- what is there of itself ---- */

static int put_first_tres(struct store *store, struct err *err)
{
    static const struct {
        int id;
        const char *type, *name;
    } first[] = {
        { 1, "cpu", "" },     { 2, "mem", "" },    { 3, "energy", "" }, { 4, "node", "" },
        { 5, "billing", "" }, { 6, "fs", "disk" }, { 7, "vmem", "" },   { 8, "pages", "" },
    };

    for (size_t i = 0; i < ARRAY_LEN(first); i++) {
        if (store_run(store,
                      "INSERT INTO acct_tres(id, type, name) VALUES(?1, ?2, ?3)"
                      " ON CONFLICT(id) DO NOTHING",
                      STORE_VALUES(STORE_INT(first[i].id), STORE_TEXT(first[i].type),
                                   STORE_TEXT(first[i].name)),
                      err) < 0)
            return -(int)err->code;
    }
    return 0;
}

/* The account and the user root, the QOS normal. */
static int put_first(struct store *store, struct err *err)
{
    AcctAccount account = ACCT_ACCOUNT__INIT;
    AcctUser user = ACCT_USER__INIT;
    AcctQos qos = ACCT_QOS__INIT;
    ConfQos conf = CONF_QOS__INIT;
    int64_t there = 0;

    account.name = user.name = (char *)"root";
    account.description = (char *)"default root account";
    account.organization = (char *)"root";
    user.has_admin_level = true;
    user.admin_level = ADMIN_FULL;
    conf.name = (char *)"normal";
    conf.description = (char *)"Normal QOS default";
    qos.qos = &conf;
    if (store_number(store, "SELECT count(*) FROM acct_user WHERE name = 'root'", STORE_NO_VALUES,
                     0, &there, err) < 0)
        return -(int)err->code;
    if (there)
        return 0;
    if (put_first_tres(store, err) < 0 || put_account(store, &account, false, err) < 0 ||
        put_user(store, &user, false, err) < 0 || put_qos(store, &qos, false, err) < 0)
        return -(int)err->code;
    return 0;
}

static int put_roots(struct store *store, const char *cluster, struct err *err)
{
    AcctAssoc assoc = ACCT_ASSOC__INIT;
    ConfUser limits = CONF_USER__INIT;
    char *normal = (char *)"normal";

    assoc.cluster = (char *)(uintptr_t)cluster;
    assoc.limits = &limits;
    limits.account = (char *)"root";
    limits.name = (char *)"";
    limits.has_fairshare = true;
    limits.fairshare = 1;
    limits.qos_list = &normal;
    limits.n_qos_list = 1;
    if (put_assoc(store, &assoc, false, err) < 0)
        return -(int)err->code;
    limits.name = (char *)"root";
    limits.n_qos_list = 0;
    limits.has_is_default = limits.is_default = true;
    return put_assoc(store, &assoc, false, err);
}

int tables_register(struct store *store, const char *cluster, int64_t now_us, struct err *err)
{
    struct store_values name = STORE_VALUES(STORE_TEXT(cluster));
    int64_t there = 0;

    (void)now_us;
    if (store_number(store, "SELECT count(*) FROM acct_cluster WHERE name = ?1 AND deleted = 0",
                     name, 0, &there, err) < 0)
        return -(int)err->code;
    if (there)
        return 0;
    if (put_first(store, err) < 0 ||
        store_run(store,
                  "INSERT INTO acct_cluster(name, deleted, changes, classification)"
                  " VALUES(?1, 0, 0, '') ON CONFLICT(name) DO UPDATE SET deleted = 0",
                  name, err) < 0 ||
        put_roots(store, cluster, err) < 0)
        return -(int)err->code;
    return 0;
}

int tables_need_repair(struct store *store, const char *cluster, const char *why, struct err *err)
{
    return store_run(store, "UPDATE acct_cluster SET repair = ?2 WHERE name = ?1",
                     STORE_VALUES(STORE_TEXT(cluster), STORE_TEXT(why)), err);
}

int tables_repaired(struct store *store, const char *cluster, uint64_t number, struct err *err)
{
    return store_run(store, "UPDATE acct_cluster SET repair = '', changes = ?2 WHERE name = ?1",
                     STORE_VALUES(STORE_TEXT(cluster), STORE_INT(number)), err);
}

int tables_next_change(struct store *store, const char *cluster, struct err *err)
{
    return store_run(store, "UPDATE acct_cluster SET changes = changes + 1 WHERE name = ?1",
                     STORE_VALUES(STORE_TEXT(cluster)), err);
}

int tables_next_revision(struct store *store, uint64_t *out, struct err *err)
{
    int64_t revision = 0;

    if (store_run(store,
                  "INSERT INTO acct_revision(revision)"
                  " SELECT coalesce(max(revision), 0) + 1 FROM acct_revision",
                  STORE_NO_VALUES, err) < 0 ||
        store_run(store,
                  "DELETE FROM acct_revision WHERE revision <"
                  " (SELECT max(revision) FROM acct_revision)",
                  STORE_NO_VALUES, err) < 0 ||
        store_number(store, "SELECT max(revision) FROM acct_revision", STORE_NO_VALUES, 0,
                     &revision, err) < 0)
        return -(int)err->code;
    *out = (uint64_t)revision;
    return 0;
}
