/* SPDX-License-Identifier: Apache-2.0 */
/*
 * db_changes.c - changes of /slurmdb: what a request says becomes edits, and spurdbd makes all or none
 *
 * (1) Edits are made from tables that were just read, and say so; when somebody changed them meanwhile, spurdbd
 *     refuses and all is done again.
 * (2) An object that is there already gets what the request says and keeps the rest, as sacctmgr modify does.
 * (3) Who may do what is spurdbd's to say: tables_check.c there.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "schema/acct_objects.h"
#include "spurrestd/body.h"
#include "spurrestd/db.h"
#include "spurrestd/rest.h"
#include "spurrestd/routes.h"
#include "wire/pb_unpack.h"

enum { TRIES = 5, SHARE_PARENT = 0x7fffffff };

struct change;
typedef int build_fn(struct change *change, struct err *err);

struct change {
    struct exchange *x;
    json_t *body;
    build_fn *build;
    const ListTablesReply *tables; /* while edits are built */
    VEC(AcctEdit *) edits;         /* in the arena of the exchange, or borrowed from the tables */
    VEC(const char *) done;        /* names of what was removed or added, for the answer */
    const char *key;               /* of the answer's list, or of its text; NULL: neither */
    bool as_text;
    const char *nothing; /* the call of Slurm that found nothing, when that is no error */
    ChangeTablesRequest *request;
    unsigned tries;
    struct warning warnings[16];
    size_t warned;
};

static void change_done(struct change *change)
{
    json_decref(change->body);
    change->body = NULL;
    vec_done(&change->edits);
    vec_done(&change->done);
    change->x->on_gone = NULL;
}

static void change_gone(struct exchange *x)
{
    change_done(x->data);
}

static void fail(struct change *change, const struct err *err)
{
    struct exchange *x = change->x;

    change_done(change);
    answer_error(x, err, NULL);
}

static void succeed(struct change *change)
{
    struct exchange *x = change->x;
    struct answer *answer = answer_new(x);
    struct str text = { 0 };

    for (size_t i = 0; i < change->done.len; i++)
        str_addf(&text, "%s%s", i ? "\n" : "", change->done.items[i]);
    if (change->as_text) {
        jsonw_text(&answer->json, change->key, str_text(&text));
    } else if (change->key) {
        jsonw_list(&answer->json, change->key);
        for (size_t i = 0; i < change->done.len; i++)
            jsonw_text(&answer->json, NULL, change->done.items[i]);
        jsonw_list_end(&answer->json);
    }
    str_done(&text);
    if (change->nothing && !change->edits.len)
        db_warn_nothing(answer, change->nothing, "delete");
    for (size_t i = 0; i < change->warned; i++)
        answer_warn(answer, change->warnings[i].source, "%s", change->warnings[i].text);
    change_done(change);
    answer_send(answer);
}

static void on_tables(struct exchange *x, const ProtobufCMessage *message, const struct err *err);

static void on_changed(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    struct change *change = x->data;

    (void)message;
    if (err && err->code == ERR_TRANSITION && ++change->tries < TRIES) /* (1) */
        db_ask_tables(x, false, on_tables);
    else if (err)
        fail(change, err);
    else
        succeed(change);
}

/* The edits borrow from an answer that ends with this call, and may have to be sent again: copied whole. */
static int copy_request(struct change *change, struct err *err)
{
    ChangeTablesRequest request = CHANGE_TABLES_REQUEST__INIT;
    ProtobufCMessage *copy = NULL;

    request.has_revision = true;
    request.revision = change->tables->revision;
    request.edits = change->edits.items;
    request.n_edits = change->edits.len;
    size_t len = change_tables_request__get_packed_size(&request);
    CLEANUP(freep) uint8_t *packed = mem_new(len + 1);
    change_tables_request__pack(&request, packed);
    if (pb_unpack(&change_tables_request__descriptor, &change->x->arena, packed, len, &copy, err) <
        0)
        return -(int)err->code;
    change->request = (ChangeTablesRequest *)copy;
    return 0;
}

static void on_tables(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    struct change *change = x->data;
    struct err own = { 0 };

    if (err) {
        fail(change, err);
        return;
    }
    change->tables = (const void *)message;
    vec_clear(&change->edits);
    vec_clear(&change->done);
    change->warned = 0;
    if (change->build(change, &own) < 0 || (change->edits.len && copy_request(change, &own) < 0)) {
        fail(change, &own);
        return;
    }
    change->tables = NULL;
    if (!change->edits.len) {
        succeed(change);
        return;
    }
    const struct ask_call call = { .method = "/spur.Accounts/Change",
                                   .message = &change->request->base,
                                   .reply = &change_tables_reply__descriptor,
                                   .change = true,
                                   .done = on_changed };
    ask_start(x, &call);
}

static struct change *change_new(struct exchange *x, build_fn *build, bool with_body)
{
    struct change *change = ARENA_NEW(&x->arena, struct change);
    struct err err = { 0 };

    if (with_body) {
        change->body = body_read(x);
        if (!change->body)
            return NULL;
        if (!json_is_object(change->body)) {
            json_decref(change->body);
            err_set(&err, ERR_INVALID, "the body is not an object");
            answer_error(x, &err, NULL);
            return NULL;
        }
    }
    change->x = x;
    change->build = build;
    x->data = change;
    x->on_gone = change_gone;
    return change;
}

static void change_start(struct change *change)
{
    if (change)
        db_ask_tables(change->x, false, on_tables);
}

static void warn(struct change *change, const char *where, const char *field)
{
    struct arena *arena = &change->x->arena;

    if (change->warned < ARRAY_LEN(change->warnings))
        change->warnings[change->warned++] =
            (struct warning){ arena_printf(arena, "Ignoring unknown field \"%.64s\"", field),
                              arena_strdup(arena, where) };
}

/* ---- edits ---- */

static AcctEdit *edit_new(struct change *change, bool remove, const char *action, const char *what)
{
    AcctEdit *edit = ARENA_NEW(&change->x->arena, AcctEdit);

    acct_edit__init(edit);
    edit->has_remove = true;
    edit->remove = remove;
    edit->action = (char *)(uintptr_t)action;
    edit->what = (char *)(uintptr_t)what;
    vec_push(&change->edits, edit);
    return edit;
}

static char *keep(struct change *change, const char *text)
{
    return arena_strdup(&change->x->arena, text);
}

/* Names are in lower case, as sacctmgr writes them. */
static char *lower(struct change *change, const char *text)
{
    char *copy = keep(change, text);

    for (char *at = copy; at && *at; at++)
        *at = *at >= 'A' && *at <= 'Z' ? (char)(*at | 32) : *at;
    return copy;
}

static void add_done(struct change *change, const char *name)
{
    vec_push(&change->done, (const char *)keep(change, name));
}

static const AcctAccount *account_find(const ListTablesReply *tables, const char *name)
{
    for (size_t i = 0; i < tables->n_accounts; i++) {
        if (str_eq(tables->accounts[i]->name, name))
            return tables->accounts[i];
    }
    return NULL;
}

static const AcctUser *user_find(const ListTablesReply *tables, const char *name)
{
    for (size_t i = 0; i < tables->n_users; i++) {
        if (str_eq(tables->users[i]->name, name))
            return tables->users[i];
    }
    return NULL;
}

static const AcctAssoc *assoc_find(const ListTablesReply *tables, const char *cluster,
                                   const char *account, const char *user, const char *partition)
{
    for (size_t i = 0; i < tables->n_assocs; i++) {
        const AcctAssoc *assoc = tables->assocs[i];
        const ConfUser *limits = assoc->limits;
        if (str_eq(assoc->cluster, cluster) && str_eq(limits->account, account) &&
            str_eq(limits->name ? limits->name : "", user) &&
            str_eq(limits->partition ? limits->partition : "", partition))
            return assoc;
    }
    return NULL;
}

static AcctAssoc *assoc_copy(struct change *change, const AcctAssoc *assoc)
{
    AcctAssoc *copy = ARENA_NEW(&change->x->arena, AcctAssoc);

    *copy = *assoc;
    copy->limits = ARENA_NEW(&change->x->arena, ConfUser);
    *copy->limits = *assoc->limits;
    return copy;
}

static AcctAssoc *assoc_new(struct change *change, const char *cluster, const char *account,
                            const char *user, const char *partition)
{
    AcctAssoc *assoc = ARENA_NEW(&change->x->arena, AcctAssoc);

    acct_assoc__init(assoc);
    assoc->limits = ARENA_NEW(&change->x->arena, ConfUser);
    conf_user__init(assoc->limits);
    assoc->cluster = keep(change, cluster);
    assoc->limits->account = keep(change, account);
    assoc->limits->name = keep(change, user);
    assoc->limits->partition = *partition ? keep(change, partition) : NULL;
    assoc->limits->has_fairshare = true;
    assoc->limits->fairshare = 1;
    return assoc;
}

/* A user's first association on a cluster is the default one. */
static bool has_default(const struct change *change, const char *cluster, const char *user)
{
    for (size_t i = 0; i < change->tables->n_assocs; i++) {
        const AcctAssoc *assoc = change->tables->assocs[i];
        if (str_eq(assoc->cluster, cluster) && str_eq(assoc->limits->name, user) &&
            assoc->limits->is_default)
            return true;
    }
    for (size_t i = 0; i < change->edits.len; i++) {
        const AcctAssoc *assoc = change->edits.items[i]->assoc;
        if (assoc && str_eq(assoc->cluster, cluster) && str_eq(assoc->limits->name, user) &&
            assoc->limits->is_default)
            return true;
    }
    return false;
}

static void move_default(struct change *change, const char *user, const char *account)
{
    for (size_t i = 0; i < change->tables->n_assocs; i++) {
        const AcctAssoc *old = change->tables->assocs[i];
        bool is = str_eq(old->limits->account, account);
        if (!str_eq(old->limits->name, user) || old->limits->is_default == is ||
            !assoc_find(change->tables, old->cluster, account, user, ""))
            continue;
        AcctAssoc *copy = assoc_copy(change, old);
        copy->limits->has_is_default = true;
        copy->limits->is_default = is;
        edit_new(change, false, "Modify Associations", keep(change, user))->assoc = copy;
    }
}

/* ---- values ---- */

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static const json_t *value_at(const json_t *object, const char *path)
{
    char part[64];

    while (object && *path) {
        size_t len = strcspn(path, "/");
        snprintf(part, sizeof(part), "%.*s", (int)len, path);
        object = json_object_get(object, part);
        path += len + (path[len] == '/');
    }
    return object;
}

/* [ { type, name, count } ] is "cpu=8,gres/gpu=2"; NULL: there is something else. */
static char *read_tres(struct change *change, const json_t *list)
{
    struct str out = { 0 };
    const json_t *item;
    char *text = NULL;
    size_t i;
    bool good = json_is_array(list);

    json_array_foreach((json_t *)(uintptr_t)list, i, item)
    {
        const char *type = text_of(item, "type"), *name = text_of(item, "name");
        const json_t *count = json_object_get(item, "count");
        good = good && type && json_is_integer(count) && !strpbrk(type, ",=") &&
               !(name && strpbrk(name, ",="));
        if (good)
            str_addf(&out, "%s%s%s%s=%lld", out.len ? "," : "", type, str_is_empty(name) ? "" : "/",
                     name ? name : "", (long long)json_integer_value(count));
    }
    if (good)
        text = keep(change, str_text(&out));
    str_done(&out);
    return text;
}

static int read_words(struct change *change, const json_t *list, bool flags, char ***out,
                      size_t *count, struct err *err)
{
    const json_t *item;
    size_t i;

    if (!json_is_array(list))
        return err_set(err, ERR_INVALID, "it is not a list");
    *out = ARENA_ARRAY(&change->x->arena, char *, json_array_size(list) + 1);
    *count = 0;
    json_array_foreach((json_t *)(uintptr_t)list, i, item)
    {
        const char *text = json_string_value(item);
        const char *word = text && flags ? acct_qos_flag_of(text) : text;
        if (flags && text && (str_eq(text, "NOT_SET") || str_eq(text, "NONE")))
            continue;
        if (!word)
            return err_set(err, ERR_INVALID, "'%.64s' is not known", text ? text : "");
        (*out)[(*count)++] = keep(change, word);
    }
    return 0;
}

enum given { GIVEN_NOT, GIVEN_NONE, GIVEN_VALUE };

/* A number, or { set, infinite, number }. */
static enum given read_set(const json_t *value, double *out)
{
    if (json_is_number(value)) {
        *out = json_number_value(value);
        return *out == -1 ? GIVEN_NONE : GIVEN_VALUE;
    }
    if (json_is_true(json_object_get(value, "infinite")))
        return GIVEN_NONE;
    if (!json_is_true(json_object_get(value, "set")))
        return GIVEN_NOT;
    *out = json_number_value(json_object_get(value, "number"));
    return GIVEN_VALUE;
}

static char *read_mode(struct change *change, const json_t *list)
{
    struct str out = { 0 };
    const json_t *item;
    size_t i;

    json_array_foreach((json_t *)(uintptr_t)list, i, item)
    {
        const char *text = json_string_value(item);
        if (text && !str_eq(text, "DISABLED"))
            str_addf(&out, "%s%s", out.len ? "," : "", text);
    }
    char *text = out.len ? lower(change, str_text(&out)) : NULL;
    str_done(&out);
    return text;
}

static int put_number(void *place, protobuf_c_boolean *has, const struct acct_row *row,
                      const json_t *value, bool wide, struct err *err)
{
    double number = 0;
    enum given given = json_is_boolean(value) ? (number = json_is_true(value), GIVEN_VALUE)
                                              : read_set(value, &number);

    if (given == GIVEN_NOT)
        return 0;
    if (given == GIVEN_VALUE &&
        (number < 0 || number > SHARE_PARENT || number != (double)(int64_t)number))
        return err_set(err, ERR_INVALID, "%s is not a number up to %d", row->json, SHARE_PARENT);
    *has = given == GIVEN_VALUE;
    if (row->form == ACCT_BOOL)
        *(protobuf_c_boolean *)place = number != 0;
    else if (wide)
        *(int64_t *)place = (int64_t)number * (row->form == ACCT_MINUTES ? 60 : 1);
    else
        *(uint32_t *)place = (uint32_t)number;
    return 0;
}

/* One value into its field. Text that is empty takes away. */
static int put_value(struct change *change, const struct acct_row *row, const json_t *value,
                     ProtobufCMessage *message, struct err *err)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, row->field);
    char *at = (char *)message;
    void *place = at + field->offset, *quantifier = at + field->quantifier_offset;
    double number = 0;

    switch (row->form) {
    case ACCT_TEXT:
        if (!json_is_string(value))
            return err_set(err, ERR_INVALID, "%s is not a text", row->json);
        *(char **)place = *json_string_value(value) ? keep(change, json_string_value(value)) : NULL;
        return 0;
    case ACCT_TRES: {
        char *text = read_tres(change, value);
        if (!text)
            return err_set(err, ERR_INVALID, "%s is not a list of { type, name, count }",
                           row->json);
        *(char **)place = *text ? text : NULL;
        return 0;
    }
    case ACCT_WORDS:
    case ACCT_FLAGS:
        if (read_words(change, value, row->form == ACCT_FLAGS, place, quantifier, err) < 0)
            return err_wrap(err, "%s", row->json);
        return 0;
    case ACCT_MODE:
        *(char **)place = read_mode(change, value);
        return 0;
    case ACCT_DECIMAL: {
        enum given given = read_set(value, &number);
        if (given != GIVEN_NOT)
            *(char **)place =
                given == GIVEN_NONE ? NULL : arena_printf(&change->x->arena, "%.6f", number);
        return 0;
    }
    default:
        return put_number(place, quantifier, row, value, field->type == PROTOBUF_C_TYPE_INT64, err);
    }
}

/* What has no field here may only be absent or empty. */
static bool says_something(const json_t *value)
{
    double number;

    if (json_is_object(value))
        return read_set(value, &number) == GIVEN_VALUE;
    return value && !(json_is_string(value) && !*json_string_value(value)) &&
           !(json_is_array(value) && !json_array_size(value)) && !json_is_null(value);
}

/* The names that rows have, so that others are noticed. */
static bool known_key(const struct acct_row *rows, size_t count, const char *path, bool sets)
{
    size_t len = strlen(path);

    for (size_t i = 0; i < count; i++) {
        const char *name = sets ? rows[i].set : rows[i].json;
        if (name && strncmp(name, path, len) == 0 && (name[len] == '\0' || name[len] == '/'))
            return true;
    }
    return false;
}

static int put_rows(struct change *change, const struct acct_row *rows, size_t count,
                    const json_t *object, bool sets, ProtobufCMessage *message, struct err *err)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        if (!known_key(rows, count, key, sets))
            warn(change, change->x->path, key);
    }
    for (size_t i = 0; i < count; i++) {
        const char *name = sets ? rows[i].set : rows[i].json;
        const json_t *found = name ? value_at(object, name) : NULL;
        bool identity = !sets && (str_eq(name, "account") || str_eq(name, "user") ||
                                  str_eq(name, "partition") || str_eq(name, "name"));
        if (!found || json_is_null(found) || rows[i].form == ACCT_GIVEN || identity)
            continue;
        if (!rows[i].field && says_something(found))
            return err_set(err, ERR_UNSUPPORTED, "%s cannot be set: there is no such thing here",
                           name);
        if (rows[i].field && put_value(change, &rows[i], found, message, err) < 0)
            return -(int)err->code;
    }
    return 0;
}

/* The list of a request; each item is an object. */
static int each_of(struct change *change, const char *key, bool needed,
                   int (*each)(struct change *change, json_t *item, struct err *err),
                   struct err *err)
{
    json_t *list = json_object_get(change->body, key), *item;
    size_t i;

    if (!list && !needed)
        return 0;
    if (!json_is_array(list))
        return err_set(err, ERR_INVALID, "the body has no list '%s'", key);
    json_array_foreach(list, i, item)
    {
        if (!json_is_object(item))
            return err_set(err, ERR_INVALID, "%s[%zu] is not an object", key, i);
        if (each(change, item, err) < 0)
            return err_wrap(err, "%s[%zu]", key, i);
    }
    return 0;
}

/* ---- accounts ---- */

static void add_coord(struct change *change, const char *account, const char *user)
{
    AcctCoord *coord = ARENA_NEW(&change->x->arena, AcctCoord);

    for (size_t i = 0; i < change->tables->n_coords; i++) {
        if (str_eq(change->tables->coords[i]->account, account) &&
            str_eq(change->tables->coords[i]->user, user))
            return;
    }
    acct_coord__init(coord);
    coord->account = keep(change, account);
    coord->user = keep(change, user);
    edit_new(change, false, "Add Coordinators", coord->user)->coord = coord;
}

static int put_account(struct change *change, json_t *item, struct err *err)
{
    const char *name = text_of(item, "name"), *description = text_of(item, "description");
    const char *organization = text_of(item, "organization");
    AcctAccount *account = ARENA_NEW(&change->x->arena, AcctAccount);
    const json_t *coord;
    size_t i;

    if (str_is_empty(name))
        return err_set(err, ERR_INVALID, "an account needs a name");
    name = lower(change, name);
    const AcctAccount *old = account_find(change->tables, name);
    acct_account__init(account);
    account->name = keep(change, name);
    account->description = keep(change, description ? description : old ? old->description : name);
    account->organization = keep(change, organization ? organization
                                         : old        ? old->organization
                                                      : name);
    if (!old || !str_eq(old->description, account->description) ||
        !str_eq(old->organization, account->organization))
        edit_new(change, false, old ? "Modify Accounts" : "Add Accounts", account->name)->account =
            account;
    json_array_foreach(json_object_get(item, "coordinators"), i, coord)
    {
        if (text_of(coord, "name"))
            add_coord(change, name, text_of(coord, "name"));
    }
    return 0;
}

static int build_accounts(struct change *change, struct err *err)
{
    return each_of(change, "accounts", true, put_account, err);
}

void db_post_accounts(struct exchange *x)
{
    change_start(change_new(x, build_accounts, true));
}

/* ---- users ---- */

static int read_level(const json_t *value, uint32_t *out, struct err *err)
{
    static const char *const levels[] = { "None", "Operator", "Administrator" };
    const char *text = json_is_array(value) ? json_string_value(json_array_get(value, 0))
                                            : json_string_value(value);

    if (!text || str_eq(text, "Not Set"))
        return 0;
    for (uint32_t i = 0; i < ARRAY_LEN(levels); i++) {
        if (str_ieq(text, levels[i])) {
            *out = i;
            return 1;
        }
    }
    return err_set(err, ERR_INVALID, "'%.64s' is not None, Operator or Administrator", text);
}

static AcctUser *user_copy(struct change *change, const char *name, const AcctUser *old)
{
    AcctUser *user = ARENA_NEW(&change->x->arena, AcctUser);

    acct_user__init(user);
    if (old)
        *user = *old;
    user->name = keep(change, name);
    user->has_admin_level = true;
    return user;
}

static void add_wckey(struct change *change, const char *cluster, const char *user,
                      const char *name)
{
    AcctWckey *wckey = ARENA_NEW(&change->x->arena, AcctWckey);

    for (size_t i = 0; i < change->tables->n_wckeys; i++) {
        const AcctWckey *old = change->tables->wckeys[i];
        if (str_eq(old->cluster, cluster) && str_eq(old->user, user) && str_eq(old->name, name))
            return;
    }
    acct_wckey__init(wckey);
    wckey->cluster = keep(change, cluster);
    wckey->user = keep(change, user);
    wckey->name = keep(change, name);
    edit_new(change, false, "Add WCKeys", wckey->name)->wckey = wckey;
}

static int put_user(struct change *change, json_t *item, struct err *err)
{
    const char *name = text_of(item, "name"), *old_name = text_of(item, "old_name");
    const json_t *defaults = json_object_get(item, "default"), *entry;
    uint32_t level = 0;
    size_t i;

    if (str_is_empty(name))
        return err_set(err, ERR_INVALID, "a user needs a name");
    if (!str_is_empty(old_name) && !str_eq(old_name, name))
        return err_set(err, ERR_UNSUPPORTED,
                       "old_name: a user is renamed in the directory service, not here");
    name = lower(change, name);
    const AcctUser *old = user_find(change->tables, name);
    int said = read_level(json_object_get(item, "administrator_level"), &level, err);
    if (said < 0)
        return said;
    AcctUser *user = user_copy(change, name, old);
    if (said)
        user->admin_level = level;
    if (text_of(defaults, "wckey"))
        user->default_wckey = keep(change, text_of(defaults, "wckey"));
    if (!old || old->admin_level != user->admin_level ||
        !str_eq(old->default_wckey ? old->default_wckey : "",
                user->default_wckey ? user->default_wckey : ""))
        edit_new(change, false, old ? "Modify Users" : "Add Users", user->name)->user = user;
    if (!str_is_empty(text_of(defaults, "account")))
        move_default(change, name, text_of(defaults, "account"));
    json_array_foreach(json_object_get(item, "coordinators"), i, entry)
    {
        if (text_of(entry, "name"))
            add_coord(change, text_of(entry, "name"), name);
    }
    json_array_foreach(json_object_get(item, "wckeys"), i, entry)
    {
        if (text_of(entry, "name"))
            add_wckey(change,
                      text_of(entry, "cluster") ? text_of(entry, "cluster")
                                                : change->x->rest->cluster,
                      name, text_of(entry, "name"));
    }
    return 0;
}

static int build_users(struct change *change, struct err *err)
{
    return each_of(change, "users", true, put_user, err);
}

void db_post_users(struct exchange *x)
{
    change_start(change_new(x, build_users, true));
}

/* ---- associations ---- */

static AcctAssoc *assoc_for(struct change *change, const char *cluster, const char *account,
                            const char *user, const char *partition, bool *is_new)
{
    const AcctAssoc *old = assoc_find(change->tables, cluster, account, user, partition);

    *is_new = !old;
    if (old)
        return assoc_copy(change, old);
    AcctAssoc *assoc = assoc_new(change, cluster, account, user, partition);
    if (!*user)
        assoc->parent = keep(change, "root");
    assoc->limits->has_is_default = *user;
    assoc->limits->is_default = *user && !has_default(change, cluster, user);
    return assoc;
}

static int put_assoc(struct change *change, json_t *item, struct err *err)
{
    const char *account = text_of(item, "account"), *user = text_of(item, "user");
    const char *cluster = text_of(item, "cluster"), *partition = text_of(item, "partition");
    const char *parent = text_of(item, "parent_account");
    bool is_new;

    if (str_is_empty(account))
        return err_set(err, ERR_INVALID, "an association needs an account");
    if (str_is_empty(cluster))
        cluster = change->x->rest->cluster;
    AcctAssoc *assoc =
        assoc_for(change, cluster, account, user ? user : "", partition ? partition : "", &is_new);
    if (!str_is_empty(parent))
        assoc->parent = keep(change, parent);
    if (put_rows(change, acct_assoc_rows, acct_assoc_row_count, item, false, &assoc->limits->base,
                 err) < 0)
        return -(int)err->code;
    edit_new(change, false, is_new ? "Add Associations" : "Modify Associations",
             keep(change, str_is_empty(user) ? account : user))
        ->assoc = assoc;
    return 0;
}

static int build_assocs(struct change *change, struct err *err)
{
    return each_of(change, "associations", true, put_assoc, err);
}

void db_post_assocs(struct exchange *x)
{
    change_start(change_new(x, build_assocs, true));
}

/* The texts of a list; `other` when there is none. */
static size_t names_of(struct change *change, const json_t *list, const char *other, char ***out)
{
    struct err err = { 0 };
    size_t count = 0;

    if (json_array_size(list) && read_words(change, list, false, out, &count, &err) == 0)
        return count;
    *out = ARENA_ARRAY(&change->x->arena, char *, 1);
    if (!other)
        return 0;
    (*out)[0] = keep(change, other);
    return 1;
}

/* The association that one combination names, with the settings of the condition. */
static int add_one(struct change *change, const json_t *condition, const char *cluster,
                   const char *account, const char *user, const char *partition, bool *added,
                   struct err *err)
{
    const json_t *settings = json_object_get(condition, "association");
    const char *parent = text_of(settings, "parent");
    bool is_new;
    AcctAssoc *assoc = assoc_for(change, cluster, account, user, partition, &is_new);

    if (!is_new)
        return 0;
    if (!*user && !str_is_empty(parent))
        assoc->parent = keep(change, parent);
    if (put_rows(change, acct_assoc_rows, acct_assoc_row_count, settings, true,
                 &assoc->limits->base, err) < 0)
        return -(int)err->code;
    edit_new(change, false, "Add Associations", keep(change, *user ? user : account))->assoc =
        assoc;
    *added = true;
    return 0;
}

static int build_accounts_assoc(struct change *change, struct err *err)
{
    const json_t *condition = json_object_get(change->body, "association_condition");
    json_t *about = json_object_get(change->body, "account");
    char **accounts, **clusters;
    size_t n = names_of(change, json_object_get(condition, "accounts"), NULL, &accounts);
    size_t m = names_of(change, json_object_get(condition, "clusters"), change->x->rest->cluster,
                        &clusters);

    if (!n)
        return err_set(err, ERR_INVALID, "association_condition.accounts names no account");
    for (size_t i = 0; i < n; i++) {
        bool added = false;
        accounts[i] = lower(change, accounts[i]);
        json_t *item = json_is_object(about) ? json_copy(about) : json_object();
        json_object_set_new(item, "name", json_string(accounts[i]));
        int code = put_account(change, item, err);
        json_decref(item);
        for (size_t k = 0; k < m && code == 0; k++)
            code = add_one(change, condition, clusters[k], accounts[i], "", "", &added, err);
        if (code < 0)
            return code;
        if (added)
            add_done(change, accounts[i]);
    }
    return 0;
}

void db_post_accounts_assoc(struct exchange *x)
{
    struct change *change = change_new(x, build_accounts_assoc, true);

    if (change) {
        change->key = "added_accounts";
        change->as_text = true;
    }
    change_start(change);
}

static int add_user_assocs(struct change *change, const json_t *condition, const char *user,
                           bool *added, struct err *err)
{
    char **accounts, **clusters, **partitions;
    size_t a = names_of(change, json_object_get(condition, "accounts"), NULL, &accounts);
    size_t c = names_of(change, json_object_get(condition, "clusters"), change->x->rest->cluster,
                        &clusters);
    size_t p = names_of(change, json_object_get(condition, "partitions"), "", &partitions);
    int code = 0;

    for (size_t i = 0; i < c; i++) {
        for (size_t k = 0; k < a * p && code == 0; k++)
            code = add_one(change, condition, clusters[i], accounts[k / p], user, partitions[k % p],
                           added, err);
    }
    return code;
}

static int build_users_assoc(struct change *change, struct err *err)
{
    const json_t *condition = json_object_get(change->body, "association_condition");
    const json_t *about = json_object_get(change->body, "user");
    char **users, **wckeys;
    size_t n = names_of(change, json_object_get(condition, "users"), NULL, &users);
    size_t w = names_of(change, json_object_get(condition, "wckeys"), NULL, &wckeys);
    const char *account = text_of(about, "defaultaccount");

    if (!n)
        return err_set(err, ERR_INVALID, "association_condition.users names no user");
    for (size_t i = 0; i < n; i++) {
        const char *wckey = text_of(about, "defaultwckey");
        bool added = false;
        users[i] = lower(change, users[i]);
        json_t *item = json_pack("{s:s, s:O*, s:{s:s*, s:s*}}", "name", users[i],
                                 "administrator_level", json_object_get(about, "adminlevel"),
                                 "default", "account", account, "wckey", wckey);
        int code = put_user(change, item, err);
        json_decref(item);
        if (code == 0)
            code = add_user_assocs(change, condition, users[i], &added, err);
        if (code < 0)
            return code;
        for (size_t k = 0; k < w; k++)
            add_wckey(change, change->x->rest->cluster, users[i], wckeys[k]);
        if (added)
            add_done(change, users[i]);
    }
    return 0;
}

void db_post_users_assoc(struct exchange *x)
{
    struct change *change = change_new(x, build_users_assoc, true);

    if (change) {
        change->key = "added_users";
        change->as_text = true;
    }
    change_start(change);
}

/* ---- QOS, clusters, workload keys ---- */

static int put_qos(struct change *change, json_t *item, struct err *err)
{
    const char *name = text_of(item, "name");
    AcctQos *qos = ARENA_NEW(&change->x->arena, AcctQos);
    const AcctQos *old = NULL;

    if (str_is_empty(name))
        return err_set(err, ERR_INVALID, "a QOS needs a name");
    name = lower(change, name);
    for (size_t i = 0; i < change->tables->n_qos; i++) {
        if (str_eq(change->tables->qos[i]->qos->name, name))
            old = change->tables->qos[i];
    }
    acct_qos__init(qos);
    if (old)
        *qos = *old;
    qos->qos = ARENA_NEW(&change->x->arena, ConfQos);
    conf_qos__init(qos->qos);
    if (old)
        *qos->qos = *old->qos;
    else
        qos->qos->description = keep(change, name);
    qos->qos->name = keep(change, name);
    if (put_rows(change, acct_qos_rows, acct_qos_row_count, item, false, &qos->qos->base, err) < 0)
        return -(int)err->code;
    edit_new(change, false, old ? "Modify QOS" : "Add QOS", qos->qos->name)->qos = qos;
    return 0;
}

static int build_qos(struct change *change, struct err *err)
{
    return each_of(change, "qos", true, put_qos, err);
}

void db_post_qos(struct exchange *x)
{
    change_start(change_new(x, build_qos, true));
}

static int put_cluster(struct change *change, json_t *item, struct err *err)
{
    const char *name = text_of(item, "name");
    AcctClusterRow *row = ARENA_NEW(&change->x->arena, AcctClusterRow);

    if (str_is_empty(name))
        return err_set(err, ERR_INVALID, "a cluster needs a name");
    for (size_t i = 0; i < change->tables->n_clusters; i++) {
        if (str_eq(change->tables->clusters[i]->name, name))
            return 0; /* what else an object says of it, its controller says */
    }
    acct_cluster_row__init(row);
    row->name = keep(change, name);
    edit_new(change, false, "Add Clusters", row->name)->cluster = row;
    return 0;
}

static int build_clusters(struct change *change, struct err *err)
{
    return each_of(change, "clusters", true, put_cluster, err);
}

void db_post_clusters(struct exchange *x)
{
    change_start(change_new(x, build_clusters, true));
}

static int put_wckey(struct change *change, json_t *item, struct err *err)
{
    const char *name = text_of(item, "name"), *user = text_of(item, "user");
    const char *cluster = text_of(item, "cluster");

    if (str_is_empty(name) || str_is_empty(user))
        return err_set(err, ERR_INVALID, "a workload key needs a name and a user");
    add_wckey(change, str_is_empty(cluster) ? change->x->rest->cluster : cluster, user, name);
    return 0;
}

static int build_wckeys(struct change *change, struct err *err)
{
    return each_of(change, "wckeys", true, put_wckey, err);
}

void db_post_wckeys(struct exchange *x)
{
    change_start(change_new(x, build_wckeys, true));
}

/* What refers to something comes behind it. */
static int build_config(struct change *change, struct err *err)
{
    static const struct {
        const char *key;
        int (*each)(struct change *change, json_t *item, struct err *err);
    } order[] = { { "clusters", put_cluster },   { "qos", put_qos },
                  { "accounts", put_account },   { "users", put_user },
                  { "associations", put_assoc }, { "wckeys", put_wckey } };

    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        if (each_of(change, order[i].key, false, order[i].each, err) < 0)
            return -(int)err->code;
    }
    return 0;
}

void db_post_config(struct exchange *x)
{
    change_start(change_new(x, build_config, true));
}

void db_post_tres(struct exchange *x)
{
    struct err err = { 0 };

    err_set(&err, ERR_UNSUPPORTED,
            "TRES are not added by hand: they follow from the cluster's nodes and its setting "
            "accounting.tres (Slurm: AccountingStorageTRES)");
    answer_error(x, &err, NULL);
}

/* ---- deletions ---- */

static void start_delete(struct exchange *x, build_fn *build, const char *key, const char *nothing)
{
    struct change *change = change_new(x, build, false);

    change->key = key;
    change->nothing = nothing;
    change_start(change);
}

static int build_no_account(struct change *change, struct err *err)
{
    const AcctAccount *account = account_find(change->tables, change->x->args[0]);

    (void)err;
    if (account) {
        edit_new(change, true, "Remove Accounts", account->name)->account =
            (AcctAccount *)(uintptr_t)account;
        add_done(change, account->name);
    }
    return 0;
}

void db_delete_account(struct exchange *x)
{
    start_delete(x, build_no_account, "removed_accounts", "slurmdb_accounts_remove");
}

static int build_no_user(struct change *change, struct err *err)
{
    const AcctUser *user = user_find(change->tables, change->x->args[0]);

    (void)err;
    if (user)
        edit_new(change, true, "Remove Users", user->name)->user = (AcctUser *)(uintptr_t)user;
    return 0;
}

void db_delete_user(struct exchange *x)
{
    start_delete(x, build_no_user, NULL, "slurmdb_users_remove");
}

static char **without(struct change *change, char *const *list, size_t *count, const char *name)
{
    char **left = ARENA_ARRAY(&change->x->arena, char *, *count + 1);
    size_t n = 0;

    for (size_t i = 0; i < *count; i++) {
        if (!str_eq(list[i], name))
            left[n++] = list[i];
    }
    *count = n;
    return left;
}

/* Who may use it or has it as default does no more, and none preempts it. */
static void forget_qos(struct change *change, const char *name)
{
    for (size_t i = 0; i < change->tables->n_assocs; i++) {
        AcctAssoc *copy = assoc_copy(change, change->tables->assocs[i]);
        size_t before = copy->limits->n_qos_list;
        bool is_default = str_eq(copy->limits->default_qos, name);
        copy->limits->qos_list =
            without(change, copy->limits->qos_list, &copy->limits->n_qos_list, name);
        if (is_default)
            copy->limits->default_qos = NULL;
        if (is_default || before != copy->limits->n_qos_list)
            edit_new(change, false, "Modify Associations", copy->limits->account)->assoc = copy;
    }
    for (size_t i = 0; i < change->tables->n_qos; i++) {
        const AcctQos *old = change->tables->qos[i];
        AcctQos *copy = ARENA_NEW(&change->x->arena, AcctQos);
        *copy = *old;
        copy->qos = ARENA_NEW(&change->x->arena, ConfQos);
        *copy->qos = *old->qos;
        copy->qos->qos_preempt =
            without(change, old->qos->qos_preempt, &copy->qos->n_qos_preempt, name);
        if (copy->qos->n_qos_preempt != old->qos->n_qos_preempt && !str_eq(old->qos->name, name))
            edit_new(change, false, "Modify QOS", copy->qos->name)->qos = copy;
    }
}

static int build_no_qos(struct change *change, struct err *err)
{
    (void)err;
    for (size_t i = 0; i < change->tables->n_qos; i++) {
        AcctQos *qos = change->tables->qos[i];
        if (!str_eq(qos->qos->name, change->x->args[0]))
            continue;
        forget_qos(change, qos->qos->name);
        edit_new(change, true, "Remove QOS", qos->qos->name)->qos = qos;
        add_done(change, qos->qos->name);
    }
    return 0;
}

void db_delete_qos(struct exchange *x)
{
    start_delete(x, build_no_qos, "removed_qos", "slurmdb_qos_remove");
}

static int build_no_cluster(struct change *change, struct err *err)
{
    (void)err;
    for (size_t i = 0; i < change->tables->n_clusters; i++) {
        AcctClusterRow *row = change->tables->clusters[i];
        if (!str_eq(row->name, change->x->args[0]))
            continue;
        edit_new(change, true, "Remove Clusters", row->name)->cluster = row;
        add_done(change, row->name);
    }
    return 0;
}

void db_delete_cluster(struct exchange *x)
{
    start_delete(x, build_no_cluster, "deleted_clusters", "slurmdb_clusters_remove");
}

static int build_no_wckey(struct change *change, struct err *err)
{
    char id[16];

    (void)err;
    for (size_t i = 0; i < change->tables->n_wckeys; i++) {
        AcctWckey *wckey = change->tables->wckeys[i];
        snprintf(id, sizeof(id), "%u", wckey->id);
        if (!str_eq(id, change->x->args[0]))
            continue;
        edit_new(change, true, "Remove WCKeys", wckey->name)->wckey = wckey;
        add_done(change, wckey->name);
    }
    return 0;
}

void db_delete_wckey(struct exchange *x)
{
    start_delete(x, build_no_wckey, "deleted_wckeys", "slurmdb_wckeys_remove");
}

/* Those that the parameters name; a request without any would name all, and names none. */
static int build_no_assocs(struct change *change, struct err *err)
{
    static const char *const params[] = { "account",   "cluster", "id",         "parent_account",
                                          "partition", "user",    "default_qos" };
    const struct exchange *x = change->x;
    bool any = false;
    char id[16];

    for (size_t i = 0; i < ARRAY_LEN(params); i++)
        any = any || !str_is_empty(exchange_query(x, params[i]));
    if (!any)
        return err_set(err, ERR_INVALID,
                       "no parameter names associations (account, cluster, user, partition, id)");
    for (size_t i = 0; i < change->tables->n_assocs; i++) {
        AcctAssoc *assoc = change->tables->assocs[i];
        const ConfUser *limits = assoc->limits;
        snprintf(id, sizeof(id), "%u", assoc->id);
        if (!db_matches(x, "account", limits->account) ||
            !db_matches(x, "cluster", assoc->cluster) || !db_matches(x, "id", id) ||
            !db_matches(x, "user", limits->name) ||
            !db_matches(x, "partition", limits->partition ? limits->partition : "") ||
            !db_matches(x, "parent_account", assoc->parent) ||
            !db_matches(x, "default_qos", limits->default_qos))
            continue;
        edit_new(change, true, "Remove Associations", limits->account)->assoc = assoc;
        add_done(change,
                 arena_printf(&change->x->arena, "C = %-10s A = %-20s U = %-9s", assoc->cluster,
                              limits->account, limits->name ? limits->name : ""));
    }
    return 0;
}

void db_delete_assocs(struct exchange *x)
{
    start_delete(x, build_no_assocs, "removed_associations", "slurmdb_associations_remove");
}
