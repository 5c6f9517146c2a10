/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables_check.c - may it be so, may this person do so, and what do controllers get to know
 */
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/map.h"
#include "base/vec.h"
#include "spurdbd/tables.h"
#include "wire/pb_unpack.h"

/* ---- does all refer to what is there? ---- */

struct names {
    struct map clusters, accounts, users, qos, assocs;
};

static void put_name(struct map *map, const char *name, void *value)
{
    if (!str_is_empty(name))
        map_put(map, name, value);
}

static void names_init(struct names *names, const ListTablesReply *tables)
{
    map_init(&names->clusters);
    map_init(&names->accounts);
    map_init(&names->users);
    map_init(&names->qos);
    map_init(&names->assocs);
    for (size_t i = 0; i < tables->n_clusters; i++)
        put_name(&names->clusters, tables->clusters[i]->name, names);
    for (size_t i = 0; i < tables->n_accounts; i++)
        put_name(&names->accounts, tables->accounts[i]->name, names);
    for (size_t i = 0; i < tables->n_users; i++)
        put_name(&names->users, tables->users[i]->name, names);
    for (size_t i = 0; i < tables->n_qos; i++)
        put_name(&names->qos, tables->qos[i]->qos->name, names);
}

static void names_done(struct names *names)
{
    map_done(&names->clusters);
    map_done(&names->accounts);
    map_done(&names->users);
    map_done(&names->qos);
    map_done(&names->assocs);
}

static int name_ok(const char *what, const char *name, struct err *err)
{
    if (str_is_empty(name) || strlen(name) > LIMIT_NAME_BYTES)
        return err_set(err, ERR_INVALID, "%s needs a name of at most %d characters", what,
                       LIMIT_NAME_BYTES);
    if (strpbrk(name, " ,'\"|:=\n\t\\") || !str_is_utf8(name))
        return err_set(err, ERR_INVALID, "'%.100s' cannot be the name of %s", name, what);
    return 0;
}

static int check_names(const ListTablesReply *tables, struct err *err)
{
    int code = 0;

    for (size_t i = 0; i < tables->n_clusters && code == 0; i++)
        code = name_ok("a cluster", tables->clusters[i]->name, err);
    for (size_t i = 0; i < tables->n_accounts && code == 0; i++)
        code = name_ok("an account", tables->accounts[i]->name, err);
    for (size_t i = 0; i < tables->n_users && code == 0; i++)
        code = name_ok("a user", tables->users[i]->name, err);
    for (size_t i = 0; i < tables->n_qos && code == 0; i++)
        code = name_ok("a QOS", tables->qos[i]->qos->name, err);
    for (size_t i = 0; i < tables->n_wckeys && code == 0; i++)
        code = name_ok("a workload key", tables->wckeys[i]->name, err);
    return code;
}

static int check_qos_names(const struct names *names, const char *who, char *const *list,
                           size_t count, const char *one, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!map_has(&names->qos, list[i]))
            return err_set(err, ERR_INVALID, "%.100s: there is no QOS '%.100s'", who, list[i]);
    }
    if (!str_is_empty(one) && !map_has(&names->qos, one))
        return err_set(err, ERR_INVALID, "%.100s: there is no QOS '%.100s'", who, one);
    return 0;
}

static int check_assoc(struct names *names, const AcctAssoc *assoc, struct err *err)
{
    const ConfUser *limits = assoc->limits;
    bool is_account = str_is_empty(limits->name);
    bool is_root = is_account && str_eq(limits->account, "root");
    CLEANUP(str_done) struct str key = { 0 };

    if (!map_has(&names->clusters, assoc->cluster))
        return err_set(err, ERR_INVALID, "there is no cluster '%.100s'", assoc->cluster);
    if (!map_has(&names->accounts, limits->account))
        return err_set(err, ERR_INVALID, "there is no account '%.100s'", limits->account);
    if (!is_account && !map_has(&names->users, limits->name))
        return err_set(err, ERR_INVALID, "there is no user '%.100s'", limits->name);
    const char *parent = is_account ? assoc->parent : limits->account;
    str_addf(&key, "%s\n%s", assoc->cluster, parent ? parent : "");
    if (!is_root && !map_has(&names->assocs, str_text(&key))) /* parents come first */
        return err_set(err, ERR_INVALID,
                       is_account ? "account '%.100s' cannot be below '%.100s' on cluster '%.100s'"
                                  : "user '%.100s': account '%.100s' is not on cluster '%.100s'",
                       is_account ? limits->account : limits->name, parent ? parent : "",
                       assoc->cluster);
    if (is_account) {
        size_t depth = (size_t)(uintptr_t)map_get(&names->assocs, str_text(&key)) + 1;
        if (depth > LIMIT_ACCOUNT_DEPTH)
            return err_set(err, ERR_INVALID, "account '%.100s' is more than %d levels below root",
                           limits->account, LIMIT_ACCOUNT_DEPTH);
        str_clear(&key);
        str_addf(&key, "%s\n%s", assoc->cluster, limits->account);
        map_put(&names->assocs, str_text(&key), (void *)(uintptr_t)depth);
    }
    return check_qos_names(names, is_account ? limits->account : limits->name, limits->qos_list,
                           limits->n_qos_list, limits->default_qos, err);
}

/* Whoever has associations on a cluster has one default account there. */
static int check_defaults(const ListTablesReply *tables, struct err *err)
{
    struct map defaults;
    struct str key = { 0 };
    int code = 0;

    map_init(&defaults);
    for (int pass = 0; pass < 2 && code == 0; pass++) {
        for (size_t i = 0; i < tables->n_assocs && code == 0; i++) {
            const ConfUser *limits = tables->assocs[i]->limits;
            if (str_is_empty(limits->name))
                continue;
            str_clear(&key);
            str_addf(&key, "%s\n%s", tables->assocs[i]->cluster, limits->name);
            if (pass == 0 && limits->is_default)
                map_put(&defaults, str_text(&key), &defaults);
            if (pass == 1 && !map_has(&defaults, str_text(&key)))
                code = err_set(err, ERR_INVALID,
                               "user '%.100s' would have no default account on cluster '%.100s': "
                               "give it another one first (modify user ... set DefaultAccount=)",
                               limits->name, tables->assocs[i]->cluster);
        }
    }
    map_done(&defaults);
    str_done(&key);
    return code;
}

/* ---- no more kinds of TRES than controllers count ---- */

/* Besides cpu, mem, node and billing. */
enum { TRES_KINDS = 12 };

struct tres_kinds {
    char names[TRES_KINDS][LIMIT_NAME_BYTES];
    size_t count;
};

static int add_kinds(struct tres_kinds *kinds, const char *text, struct err *err)
{
    static const char *const fixed[] = { "cpu", "mem", "node", "billing" };
    struct span word;

    while (text && str_next(&text, ",", &word)) {
        const char *eq = memchr(word.ptr, '=', word.len);
        struct span name = { word.ptr, eq ? (size_t)(eq - word.ptr) : word.len };
        bool known = false;
        for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
            known = known || span_ieq(name, fixed[i]);
        for (size_t i = 0; i < kinds->count; i++)
            known = known || span_ieq(name, kinds->names[i]);
        if (known || name.len >= LIMIT_NAME_BYTES)
            continue;
        if (kinds->count == TRES_KINDS)
            return err_set(err, ERR_INVALID,
                           "'%.*s': limits name more than %d kinds of TRES besides cpu, mem, node "
                           "and billing, which is all that controllers count",
                           (int)name.len, name.ptr, TRES_KINDS);
        snprintf(kinds->names[kinds->count++], LIMIT_NAME_BYTES, "%.*s", (int)name.len, name.ptr);
    }
    return 0;
}

/* All fields of the message whose names say that they hold amounts of TRES. */
static int add_limits(struct tres_kinds *kinds, const ProtobufCMessage *message, struct err *err)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;

    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        if (field->type != PROTOBUF_C_TYPE_STRING || field->label == PROTOBUF_C_LABEL_REPEATED ||
            !strstr(field->name, "tres"))
            continue;
        const char *text =
            *(const char *const *)(const void *)((const char *)message + field->offset);
        if (add_kinds(kinds, text, err) < 0)
            return -(int)err->code;
    }
    return 0;
}

static int check_tres(const ListTablesReply *tables, struct err *err)
{
    struct tres_kinds kinds = { 0 };
    int code = 0;

    for (size_t i = 0; i < tables->n_qos && code == 0; i++)
        code = add_limits(&kinds, &tables->qos[i]->qos->base, err);
    for (size_t i = 0; i < tables->n_assocs && code == 0; i++)
        code = add_limits(&kinds, &tables->assocs[i]->limits->base, err);
    return code;
}

int tables_check(const ListTablesReply *tables, struct err *err)
{
    struct names names;
    int code = check_names(tables, err);

    names_init(&names, tables);
    for (size_t i = 0; i < tables->n_assocs && code == 0; i++)
        code = check_assoc(&names, tables->assocs[i], err);
    for (size_t i = 0; i < tables->n_qos && code == 0; i++) {
        const ConfQos *qos = tables->qos[i]->qos;
        code = check_qos_names(&names, qos->name, qos->qos_preempt, qos->n_qos_preempt, NULL, err);
    }
    for (size_t i = 0; i < tables->n_coords && code == 0; i++) {
        if (!map_has(&names.users, tables->coords[i]->user) ||
            !map_has(&names.accounts, tables->coords[i]->account))
            code = err_set(err, ERR_INVALID, "there is no user '%.100s' or no account '%.100s'",
                           tables->coords[i]->user, tables->coords[i]->account);
    }
    if (code == 0)
        code = check_defaults(tables, err);
    if (code == 0)
        code = check_tres(tables, err);
    names_done(&names);
    return code;
}

/* ---- who may do what ---- */

static const char *parent_of(const ListTablesReply *tables, const char *cluster,
                             const char *account)
{
    for (size_t i = 0; i < tables->n_assocs; i++) {
        const AcctAssoc *assoc = tables->assocs[i];
        if (str_is_empty(assoc->limits->name) && str_eq(assoc->limits->account, account) &&
            (!cluster || str_eq(assoc->cluster, cluster)))
            return assoc->parent;
    }
    return NULL;
}

/* Of the account, or of one above it. */
static bool coordinates(const ListTablesReply *tables, const char *user, const char *cluster,
                        const char *account)
{
    for (unsigned depth = 0; user && !str_is_empty(account) && depth <= LIMIT_ACCOUNT_DEPTH;
         depth++) {
        for (size_t i = 0; i < tables->n_coords; i++) {
            if (str_eq(tables->coords[i]->user, user) &&
                str_eq(tables->coords[i]->account, account))
                return true;
        }
        account = parent_of(tables, cluster, account);
    }
    return false;
}

static const AcctUser *user_named(const ListTablesReply *tables, const char *name)
{
    for (size_t i = 0; i < tables->n_users; i++) {
        if (str_eq(tables->users[i]->name, name))
            return tables->users[i];
    }
    return NULL;
}

static bool coordinates_any(const ListTablesReply *tables, const char *user)
{
    for (size_t i = 0; user && i < tables->n_coords; i++) {
        if (str_eq(tables->coords[i]->user, user))
            return true;
    }
    return false;
}

/* Among accounts that the asker coordinates: is it there, and where it would be? */
static bool may_coordinate(const ListTablesReply *tables, const AcctEdit *edit, const char *name)
{
    if (edit->coord)
        return coordinates(tables, name, NULL, edit->coord->account);
    if (edit->assoc) {
        const AcctAssoc *assoc = edit->assoc;
        bool is_account = str_is_empty(assoc->limits->name);
        const char *account = assoc->limits->account;
        const char *was = is_account ? parent_of(tables, assoc->cluster, account) : account;
        return is_account ? coordinates(tables, name, assoc->cluster, assoc->parent) &&
                                (!was || coordinates(tables, name, assoc->cluster, was))
                          : coordinates(tables, name, assoc->cluster, account);
    }
    if (edit->account)
        return edit->remove || parent_of(tables, NULL, edit->account->name)
                   ? coordinates(tables, name, NULL, parent_of(tables, NULL, edit->account->name))
                   : coordinates_any(tables, name);
    if (edit->user) /* a new one, for an association that is checked too */
        return !edit->remove && !user_named(tables, edit->user->name) &&
               coordinates_any(tables, name);
    return false;
}

/* The only thing that it changes is which of the user's own accounts is the default. */
static bool is_own_default(const ListTablesReply *tables, const AcctEdit *edit, const char *name)
{
    if (!name || !edit->assoc || edit->remove || !str_eq(edit->assoc->limits->name, name))
        return false;
    for (size_t i = 0; i < tables->n_assocs; i++) {
        const AcctAssoc *old = tables->assocs[i];
        if (!str_eq(old->cluster, edit->assoc->cluster) || !str_eq(old->limits->name, name) ||
            !str_eq(old->limits->account, edit->assoc->limits->account) ||
            !str_eq(old->limits->partition ? old->limits->partition : "",
                    edit->assoc->limits->partition ? edit->assoc->limits->partition : ""))
            continue;
        ConfUser was = *old->limits, now = *edit->assoc->limits;
        was.has_is_default = now.has_is_default = false;
        uint8_t one[4096], two[4096];
        size_t len = conf_user__get_packed_size(&was);
        return len == conf_user__get_packed_size(&now) && len <= sizeof(one) &&
               conf_user__pack(&was, one) == conf_user__pack(&now, two) &&
               memcmp(one, two, len) == 0;
    }
    return false;
}

/* One row per kind of edit: the level that it takes, and whether a coordinator may among its accounts. */
enum edit_kind {
    EDIT_CLUSTER,
    EDIT_ACCOUNT,
    EDIT_USER,
    EDIT_ASSOC,
    EDIT_QOS,
    EDIT_WCKEY,
    EDIT_COORD,
};
static const struct {
    const char *what;
    unsigned level;
    bool coordinator;
} rules[] = {
    [EDIT_CLUSTER] = { "clusters", ADMIN_FULL, false },
    [EDIT_ACCOUNT] = { "accounts", ADMIN_OPERATOR, true },
    [EDIT_USER] = { "users", ADMIN_OPERATOR, true },
    [EDIT_ASSOC] = { "associations", ADMIN_OPERATOR, true },
    [EDIT_QOS] = { "QOS", ADMIN_OPERATOR, false },
    [EDIT_WCKEY] = { "workload keys", ADMIN_OPERATOR, false },
    [EDIT_COORD] = { "coordinators", ADMIN_OPERATOR, true },
};

static enum edit_kind kind_of(const AcctEdit *edit)
{
    return edit->cluster   ? EDIT_CLUSTER
           : edit->account ? EDIT_ACCOUNT
           : edit->user    ? EDIT_USER
           : edit->assoc   ? EDIT_ASSOC
           : edit->qos     ? EDIT_QOS
           : edit->wckey   ? EDIT_WCKEY
                           : EDIT_COORD;
}

static bool is_whole(const AcctEdit *edit)
{
    return (edit->cluster && edit->cluster->name) || (edit->account && edit->account->name) ||
           (edit->user && edit->user->name) ||
           (edit->assoc && edit->assoc->cluster && edit->assoc->limits &&
            edit->assoc->limits->account && edit->assoc->limits->name) ||
           (edit->qos && edit->qos->qos && edit->qos->qos->name) ||
           (edit->wckey && edit->wckey->name && edit->wckey->cluster && edit->wckey->user) ||
           (edit->coord && edit->coord->account && edit->coord->user);
}

int tables_may(const ListTablesReply *tables, const AcctEdit *edit,
               const struct tables_asker *asker, struct err *err)
{
    if (!is_whole(edit))
        return err_set(err, ERR_INVALID, "an edit names what it is about");
    enum edit_kind kind = kind_of(edit);
    if (edit->remove && ((edit->account && str_eq(edit->account->name, "root")) ||
                         (edit->user && str_eq(edit->user->name, "root")) ||
                         (edit->qos && str_eq(edit->qos->qos->name, "normal"))))
        return err_set(err, ERR_INVALID, "root and the QOS 'normal' cannot be removed");
    const AcctUser *was = edit->user ? user_named(tables, edit->user->name) : NULL;
    unsigned level = rules[kind].level;
    if (edit->user &&
        ((was ? was->admin_level : 0) == ADMIN_FULL || edit->user->admin_level == ADMIN_FULL))
        level = ADMIN_FULL;
    bool plain = !edit->user || (was ? was->admin_level : 0) == edit->user->admin_level;
    if (asker->level >= level ||
        (rules[kind].coordinator && plain && may_coordinate(tables, edit, asker->name)) ||
        is_own_default(tables, edit, asker->name))
        return 0;
    return err_set(err, ERR_PERMISSION, "%s may not change %s: that takes %s%s",
                   asker->name ? asker->name : "who asks", rules[kind].what,
                   level == ADMIN_FULL ? "an administrator" : "an operator or administrator",
                   rules[kind].coordinator ? ", or a coordinator of the account" : "");
}

/* ---- PrivateData ---- */

static bool has_word(const char *words, const char *word)
{
    struct span found;

    while (words && str_next(&words, ", ", &found)) {
        if (span_ieq(found, word) || span_ieq(found, "all"))
            return true;
    }
    return false;
}

static bool is_in(const ListTablesReply *tables, const char *user, const char *account)
{
    for (size_t i = 0; user && i < tables->n_assocs; i++) {
        if (str_eq(tables->assocs[i]->limits->name, user) &&
            str_eq(tables->assocs[i]->limits->account, account))
            return true;
    }
    return coordinates(tables, user, NULL, account);
}

bool tables_coordinates(const ListTablesReply *tables, const char *user, const char *account)
{
    return user && coordinates(tables, user, NULL, account);
}

void tables_hide(ListTablesReply *tables, const struct tables_asker *asker,
                 const char *private_data)
{
    bool users = has_word(private_data, "users"), accounts = has_word(private_data, "accounts");
    size_t kept = 0;
    ListTablesReply all = *tables;

    if (asker->level >= ADMIN_OPERATOR)
        return;
    tables->n_transactions = 0;
    if (accounts) {
        for (size_t i = 0; i < all.n_accounts; i++) {
            if (is_in(&all, asker->name, all.accounts[i]->name))
                tables->accounts[kept++] = all.accounts[i];
        }
        tables->n_accounts = kept;
    }
    kept = 0;
    AcctAssoc **list = all.assocs;
    for (size_t i = 0; i < all.n_assocs && (users || accounts); i++) {
        const ConfUser *limits = list[i]->limits;
        bool own = str_eq(limits->name, asker->name) ||
                   coordinates(&all, asker->name, NULL, limits->account);
        bool shown = own || (str_is_empty(limits->name)
                                 ? !accounts || is_in(&all, asker->name, limits->account)
                                 : !users && !accounts);
        list[i]->has_deleted = true;
        if (!shown)
            list[i]->deleted = true; /* marked first: the walk reads the others */
    }
    for (size_t i = 0; i < all.n_assocs && (users || accounts); i++) {
        if (!list[i]->deleted)
            tables->assocs[kept++] = list[i];
    }
    if (users || accounts)
        tables->n_assocs = kept;
    kept = 0;
    for (size_t i = 0; i < all.n_users && users; i++) {
        if (str_eq(all.users[i]->name, asker->name))
            tables->users[kept++] = all.users[i];
    }
    if (users)
        tables->n_users = kept;
}

/* ---- what controllers get to know ---- */

/* The limits have the same numbers in both messages; names and parents do not. */
static ConfAccount *account_of(const AcctAssoc *assoc, struct arena *arena)
{
    ConfUser limits = *assoc->limits;
    ProtobufCMessage *message = NULL;
    struct err err = { 0 };

    limits.account = limits.partition = NULL;
    limits.has_is_default = false;
    limits.name = assoc->limits->account;
    size_t len = conf_user__get_packed_size(&limits);
    uint8_t *bytes = arena_alloc(arena, len + 1);
    conf_user__pack(&limits, bytes);
    if (pb_unpack(&conf_account__descriptor, arena, bytes, len, &message, &err) < 0)
        return NULL;
    ConfAccount *account = (ConfAccount *)message;
    if (!str_eq(account->name, "root"))
        account->parent = assoc->parent;
    return account;
}

static ConfUser *user_of(const AcctAssoc *assoc, struct arena *arena)
{
    ConfUser *user = ARENA_NEW(arena, ConfUser);

    *user = *assoc->limits;
    if (str_is_empty(user->partition))
        user->partition = NULL;
    return user;
}

static void describe(const ListTablesReply *tables, ConfAccount *account)
{
    for (size_t i = 0; i < tables->n_accounts; i++) {
        if (str_eq(tables->accounts[i]->name, account->name)) {
            account->description = tables->accounts[i]->description;
            account->organization = tables->accounts[i]->organization;
        }
    }
}

static void add_admins(const ListTablesReply *tables, struct arena *arena, Config *out)
{
    out->db_admins = ARENA_ARRAY(arena, char *, tables->n_users + 1);
    out->db_operators = ARENA_ARRAY(arena, char *, tables->n_users + 1);
    out->db_coordinators = ARENA_ARRAY(arena, char *, tables->n_coords + 1);
    for (size_t i = 0; i < tables->n_users; i++) {
        if (tables->users[i]->admin_level == ADMIN_FULL)
            out->db_admins[out->n_db_admins++] = tables->users[i]->name;
        if (tables->users[i]->admin_level == ADMIN_OPERATOR)
            out->db_operators[out->n_db_operators++] = tables->users[i]->name;
    }
    for (size_t i = 0; i < tables->n_coords; i++)
        out->db_coordinators[out->n_db_coordinators++] =
            arena_printf(arena, "%s %s", tables->coords[i]->account, tables->coords[i]->user);
}

Config *tables_config(const ListTablesReply *tables, const char *cluster, struct arena *arena)
{
    Config *out = ARENA_NEW(arena, Config);

    config__init(out);
    out->accounts = ARENA_ARRAY(arena, ConfAccount *, tables->n_assocs + 1);
    out->users = ARENA_ARRAY(arena, ConfUser *, tables->n_assocs + 1);
    out->qos = ARENA_ARRAY(arena, ConfQos *, tables->n_qos + 1);
    for (size_t i = 0; i < tables->n_qos; i++) {
        if (!tables->qos[i]->deleted)
            out->qos[out->n_qos++] = tables->qos[i]->qos;
    }
    for (size_t i = 0; i < tables->n_assocs; i++) {
        const AcctAssoc *assoc = tables->assocs[i];
        if (assoc->deleted || !str_eq(assoc->cluster, cluster))
            continue;
        if (!str_is_empty(assoc->limits->name)) {
            out->users[out->n_users++] = user_of(assoc, arena);
            continue;
        }
        ConfAccount *account = account_of(assoc, arena);
        if (account) {
            describe(tables, account);
            out->accounts[out->n_accounts++] = account;
        }
    }
    add_admins(tables, arena, out);
    return out;
}

/* ---- adopting the sections of a file ---- */

struct adopting {
    struct arena *arena;
    const char *cluster;
    AcctEdit *edits;
    size_t count;
};

static AcctEdit *add_edit(struct adopting *adopting, const char *action, const char *what)
{
    AcctEdit *edit = &adopting->edits[adopting->count++];

    acct_edit__init(edit);
    edit->action = (char *)(uintptr_t)action;
    edit->what = (char *)(uintptr_t)what;
    edit->info = (char *)"adopted from the configuration file";
    return edit;
}

static AcctAssoc *new_assoc(struct adopting *adopting, ConfUser *limits)
{
    AcctAssoc *assoc = ARENA_NEW(adopting->arena, AcctAssoc);

    acct_assoc__init(assoc);
    assoc->cluster = (char *)(uintptr_t)adopting->cluster;
    assoc->limits = limits;
    return assoc;
}

static void adopt_account(struct adopting *adopting, const ConfAccount *conf)
{
    AcctAccount *account = ARENA_NEW(adopting->arena, AcctAccount);
    ConfAccount limits = *conf;
    ProtobufCMessage *message = NULL;
    struct err err = { 0 };

    acct_account__init(account);
    account->name = conf->name;
    account->description = conf->description ? conf->description : conf->name;
    account->organization = conf->organization ? conf->organization
                            : conf->parent     ? conf->parent
                                               : conf->name;
    add_edit(adopting, "Add Accounts", conf->name)->account = account;
    limits.parent = limits.description = limits.organization = NULL;
    size_t len = conf_account__get_packed_size(&limits);
    uint8_t *bytes = arena_alloc(adopting->arena, len + 1);
    conf_account__pack(&limits, bytes);
    if (pb_unpack(&conf_user__descriptor, adopting->arena, bytes, len, &message, &err) < 0)
        return;
    ConfUser *user = (ConfUser *)message;
    user->account = user->name;
    user->name = (char *)"";
    AcctAssoc *assoc = new_assoc(adopting, user);
    if (!str_eq(conf->name, "root"))
        assoc->parent = conf->parent ? conf->parent : (char *)"root";
    add_edit(adopting, "Add Associations", conf->name)->assoc = assoc;
}

/* Without a section that says so, the first account of a user is its default. */
static bool is_first(const Config *config, size_t at)
{
    for (size_t i = 0; i < config->n_users; i++) {
        if (str_eq(config->users[i]->name, config->users[at]->name) &&
            (i < at || config->users[i]->is_default))
            return false;
    }
    return true;
}

static void adopt_user(struct adopting *adopting, const Config *config, size_t at)
{
    AcctUser *user = ARENA_NEW(adopting->arena, AcctUser);
    ConfUser *limits = ARENA_NEW(adopting->arena, ConfUser);

    acct_user__init(user);
    *limits = *config->users[at];
    user->name = limits->name;
    if (!str_eq(user->name, "root"))
        add_edit(adopting, "Add Users", user->name)->user = user;
    if (!limits->is_default && is_first(config, at))
        limits->has_is_default = limits->is_default = true;
    add_edit(adopting, "Add Associations", limits->name)->assoc = new_assoc(adopting, limits);
}

/* In a file root may use every QOS unless it says otherwise. */
static void adopt_root(struct adopting *adopting, const Config *config)
{
    ConfUser *limits = ARENA_NEW(adopting->arena, ConfUser);

    for (size_t i = 0; i < config->n_accounts; i++) {
        if (str_eq(config->accounts[i]->name, "root"))
            return;
    }
    conf_user__init(limits);
    limits->account = (char *)"root";
    limits->name = (char *)"";
    limits->has_fairshare = true;
    limits->fairshare = 1;
    add_edit(adopting, "Modify Associations", "root")->assoc = new_assoc(adopting, limits);
}

size_t tables_adopt(const ListTablesReply *tables, const Config *config, const char *cluster,
                    struct arena *arena, AcctEdit **out)
{
    struct adopting adopting = { .arena = arena, .cluster = cluster };

    (void)tables;
    adopting.edits = ARENA_ARRAY(arena, AcctEdit,
                                 config->n_qos + 2 * config->n_accounts + 2 * config->n_users + 2);
    for (size_t i = 0; i < config->n_qos; i++) {
        AcctQos *qos = ARENA_NEW(arena, AcctQos);
        acct_qos__init(qos);
        qos->qos = config->qos[i];
        add_edit(&adopting, "Add QOS", config->qos[i]->name)->qos = qos;
    }
    adopt_root(&adopting, config);
    for (size_t i = 0; i < config->n_accounts; i++)
        adopt_account(&adopting, config->accounts[i]);
    for (size_t i = 0; i < config->n_users; i++)
        adopt_user(&adopting, config, i);
    *out = adopting.edits;
    return adopting.count;
}
