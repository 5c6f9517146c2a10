/* SPDX-License-Identifier: Apache-2.0 */
/*
 * acct_objects.c - accounts, users, associations and QOS as objects of Slurm's API
 *
 * (1) Rows whose names begin alike stand together: an object inside an object is opened once.
 */
#include "schema/acct_objects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/acct.h"

/* clang-format off */
const struct acct_row acct_assoc_rows[] = { /* of ConfUser (1) */
    { .json = "accounting", .form = ACCT_WORDS },
    { .json = "account", .field = "account", .form = ACCT_TEXT },
    { .json = "cluster", .form = ACCT_GIVEN },
    { .json = "comment", .form = ACCT_TEXT, .set = "comment" },
    { .json = "default/qos", .field = "default_qos", .form = ACCT_TEXT, .set = "defaultqos" },
    { .json = "flags", .form = ACCT_GIVEN },
    { .json = "max/jobs/per/count", .field = "grp_jobs", .form = ACCT_COUNT, .set = "grpjobs" },
    { .json = "max/jobs/per/accruing", .field = "grp_jobs_accrue", .form = ACCT_COUNT, .set = "grpjobsaccrue" },
    { .json = "max/jobs/per/submitted", .field = "grp_submit", .form = ACCT_COUNT, .set = "grpsubmitjobs" },
    { .json = "max/jobs/per/wall_clock", .field = "max_wall_s", .form = ACCT_MINUTES, .set = "maxwalldurationperjob" },
    { .json = "max/jobs/active", .field = "max_jobs", .form = ACCT_COUNT, .set = "maxjobs" },
    { .json = "max/jobs/accruing", .field = "max_jobs_accrue", .form = ACCT_COUNT, .set = "maxjobsaccrue" },
    { .json = "max/jobs/total", .field = "max_submit", .form = ACCT_COUNT, .set = "maxsubmitjobs" },
    { .json = "max/tres/total", .field = "grp_tres", .form = ACCT_TRES, .set = "grptres" },
    { .json = "max/tres/group/minutes", .field = "grp_tres_mins", .form = ACCT_TRES, .set = "grptresmins" },
    { .json = "max/tres/group/active", .field = "grp_tres_run_mins", .form = ACCT_TRES, .set = "grptresrunmins" },
    { .json = "max/tres/minutes/total", .form = ACCT_TRES, .set = "maxtresrunmins" },
    { .json = "max/tres/minutes/per/job", .field = "max_tres_mins_per_job", .form = ACCT_TRES, .set = "maxtresminsperjob" },
    { .json = "max/tres/per/job", .field = "max_tres_per_job", .form = ACCT_TRES, .set = "maxtresperjob" },
    { .json = "max/tres/per/node", .field = "max_tres_per_node", .form = ACCT_TRES, .set = "maxtrespernode" },
    { .json = "max/per/account/wall_clock", .field = "grp_wall_s", .form = ACCT_MINUTES, .set = "grpwall" },
    { .json = "id", .form = ACCT_GIVEN },
    { .json = "is_default", .field = "is_default", .form = ACCT_BOOL },
    { .json = "lineage", .form = ACCT_GIVEN },
    { .json = "min/priority_threshold", .form = ACCT_COUNT, .set = "minpriothresh" },
    { .json = "parent_account", .form = ACCT_GIVEN, .set = "parent" },
    { .json = "partition", .field = "partition", .form = ACCT_TEXT },
    { .json = "priority", .field = "assoc_priority", .form = ACCT_COUNT, .set = "priority" },
    { .json = "qos", .field = "qos_list", .form = ACCT_WORDS, .set = "qoslevel" },
    { .json = "shares_raw", .field = "fairshare", .form = ACCT_NUMBER, .set = "fairshare" },
    { .json = "user", .field = "name", .form = ACCT_TEXT },
};
const size_t acct_assoc_row_count = ARRAY_LEN(acct_assoc_rows);

#define L "limits/max/"
const struct acct_row acct_qos_rows[] = { /* of ConfQos (1) */
    { .json = "description", .field = "description", .form = ACCT_TEXT },
    { .json = "flags", .field = "qos_flags", .form = ACCT_FLAGS },
    { .json = "id", .form = ACCT_GIVEN },
    { .json = "limits/grace_time", .field = "qos_grace_time_s", .form = ACCT_SECONDS },
    { .json = L "active_jobs/accruing", .field = "grp_jobs_accrue", .form = ACCT_COUNT },
    { .json = L "active_jobs/count", .field = "grp_jobs", .form = ACCT_COUNT },
    { .json = L "jobs/count", .field = "grp_submit", .form = ACCT_COUNT },
    { .json = L "jobs/active_jobs/per/account", .field = "max_jobs_per_account", .form = ACCT_COUNT },
    { .json = L "jobs/active_jobs/per/user", .field = "max_jobs", .form = ACCT_COUNT },
    { .json = L "jobs/per/account", .field = "max_submit_per_account", .form = ACCT_COUNT },
    { .json = L "jobs/per/user", .field = "max_submit", .form = ACCT_COUNT },
    { .json = L "tres/total", .field = "grp_tres", .form = ACCT_TRES },
    { .json = L "tres/minutes/total", .field = "grp_tres_mins", .form = ACCT_TRES },
    { .json = L "tres/minutes/per/qos", .field = "grp_tres_run_mins", .form = ACCT_TRES },
    { .json = L "tres/minutes/per/job", .field = "max_tres_mins_per_job", .form = ACCT_TRES },
    { .json = L "tres/minutes/per/account", .field = "max_tres_run_mins_per_account", .form = ACCT_TRES },
    { .json = L "tres/minutes/per/user", .field = "max_tres_run_mins_per_user", .form = ACCT_TRES },
    { .json = L "tres/per/account", .field = "max_tres_per_account", .form = ACCT_TRES },
    { .json = L "tres/per/job", .field = "max_tres_per_job", .form = ACCT_TRES },
    { .json = L "tres/per/node", .field = "max_tres_per_node", .form = ACCT_TRES },
    { .json = L "tres/per/user", .field = "max_tres_per_user", .form = ACCT_TRES },
    { .json = L "wall_clock/per/qos", .field = "grp_wall_s", .form = ACCT_MINUTES },
    { .json = L "wall_clock/per/job", .field = "max_wall_s", .form = ACCT_MINUTES },
    { .json = L "accruing/per/account", .field = "max_jobs_accrue_per_account", .form = ACCT_COUNT },
    { .json = L "accruing/per/user", .field = "max_jobs_accrue", .form = ACCT_COUNT },
    { .json = "limits/factor", .field = "limit_factor", .form = ACCT_DECIMAL },
    { .json = "limits/min/priority_threshold", .field = "min_prio_threshold", .form = ACCT_COUNT },
    { .json = "limits/min/tres/per/job", .field = "min_tres_per_job", .form = ACCT_TRES },
    { .json = "name", .field = "name", .form = ACCT_TEXT },
    { .json = "preempt/list", .field = "qos_preempt", .form = ACCT_WORDS },
    { .json = "preempt/mode", .field = "qos_preempt_mode", .form = ACCT_MODE },
    { .json = "preempt/exempt_time", .field = "qos_preempt_exempt_s", .form = ACCT_COUNT },
    { .json = "priority", .field = "qos_priority", .form = ACCT_COUNT },
    { .json = "usage_factor", .field = "usage_factor", .form = ACCT_DECIMAL },
    { .json = "usage_threshold", .field = "usage_threshold", .form = ACCT_DECIMAL },
};
#undef L
const size_t acct_qos_row_count = ARRAY_LEN(acct_qos_rows);

static const struct {
    const char *flag, *word;
} qos_flags[] = {
    { "DenyOnLimit", "DENY_LIMIT" },
    { "EnforceUsageThreshold", "ENFORCE_USAGE_THRESHOLD" },
    { "NoDecay", "NO_DECAY" },
    { "NoReserve", "NO_RESERVE" },
    { "OverPartQOS", "OVERRIDE_PARTITION_QOS" },
    { "PartitionMaxNodes", "PARTITION_MAXIMUM_NODE" },
    { "PartitionMinNodes", "PARTITION_MINIMUM_NODE" },
    { "PartitionTimeLimit", "PARTITION_TIME_LIMIT" },
    { "Relative", "RELATIVE" },
    { "RequiresReservation", "REQUIRED_RESERVATION" },
    { "UsageFactorSafe", "USAGE_FACTOR_SAFE" },
};
/* clang-format on */

const char *acct_qos_flag_word(const char *flag)
{
    for (size_t i = 0; i < ARRAY_LEN(qos_flags); i++) {
        if (str_ieq(flag, qos_flags[i].flag))
            return qos_flags[i].word;
    }
    return NULL;
}

const char *acct_qos_flag_of(const char *word)
{
    for (size_t i = 0; i < ARRAY_LEN(qos_flags); i++) {
        if (str_ieq(word, qos_flags[i].word) || str_ieq(word, qos_flags[i].flag))
            return qos_flags[i].flag;
    }
    return NULL;
}

/* ---- a value ---- */

/* What a field holds, whatever its type. */
struct value {
    bool has;
    int64_t number;
    const char *text;
    char *const *list;
    size_t count;
};

static struct value value_of(const ProtobufCMessage *message, const char *name)
{
    const ProtobufCFieldDescriptor *field =
        name ? protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name) : NULL;
    const char *at = (const char *)message;
    struct value value = { 0 };

    if (!field)
        return value;
    const void *place = at + field->offset, *quantifier = at + field->quantifier_offset;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        value.list = *(char *const *const *)place;
        value.count = *(const size_t *)quantifier;
        value.has = value.count > 0;
    } else if (field->type == PROTOBUF_C_TYPE_STRING) {
        value.text = *(const char *const *)place;
        value.has = !str_is_empty(value.text);
    } else {
        value.has = *(const protobuf_c_boolean *)quantifier;
        value.number = !value.has                              ? 0
                       : field->type == PROTOBUF_C_TYPE_UINT32 ? *(const uint32_t *)place
                       : field->type == PROTOBUF_C_TYPE_BOOL   ? *(const protobuf_c_boolean *)place
                                                               : *(const int64_t *)place;
    }
    return value;
}

/* Both have it then; a text or a list is borrowed. */
static void copy_field(void *to, const void *from, const ProtobufCFieldDescriptor *field)
{
    bool is_text = field->type == PROTOBUF_C_TYPE_STRING;
    size_t bytes = is_text || field->label == PROTOBUF_C_LABEL_REPEATED ? sizeof(void *)
                   : field->type == PROTOBUF_C_TYPE_UINT32              ? sizeof(uint32_t)
                                                                        : sizeof(int64_t);

    memcpy((char *)to + field->offset, (const char *)from + field->offset, bytes);
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        memcpy((char *)to + field->quantifier_offset, (const char *)from + field->quantifier_offset,
               sizeof(size_t));
    else if (!is_text)
        memcpy((char *)to + field->quantifier_offset, (const char *)from + field->quantifier_offset,
               sizeof(protobuf_c_boolean));
}

static void add_flags(const struct value *value, const char *key, struct jsonw *json)
{
    jsonw_list(json, key);
    for (size_t i = 0; i < value->count; i++) {
        const char *word = acct_qos_flag_word(value->list[i]);
        if (word)
            jsonw_text(json, NULL, word);
    }
    jsonw_list_end(json);
}

/* "requeue" is [ "REQUEUE" ]; nothing is [ "DISABLED" ]. */
static void add_mode(const struct value *value, const char *key, struct jsonw *json)
{
    static const char *const modes[] = { "SUSPEND", "REQUEUE", "CANCEL", "GANG" };
    const char *cursor = value->text;
    struct span word;
    bool any = false;

    jsonw_list(json, key);
    while (cursor && str_next(&cursor, ",", &word)) {
        for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
            if (span_ieq(word, modes[i])) {
                jsonw_text(json, NULL, modes[i]);
                any = true;
            }
        }
    }
    if (!any)
        jsonw_text(json, NULL, "DISABLED");
    jsonw_list_end(json);
}

static void add_value(const struct acct_row *row, const struct value *value, const char *key,
                      struct jsonw *json)
{
    switch (row->form) {
    case ACCT_TEXT:
        jsonw_text(json, key, value->text);
        break;
    case ACCT_NUMBER:
    case ACCT_SECONDS:
        jsonw_number(json, key, value->number);
        break;
    case ACCT_BOOL:
        jsonw_bool(json, key, value->number != 0);
        break;
    case ACCT_COUNT:
    case ACCT_MINUTES:
        jsonw_set(json, key, value->has, !value->has,
                  value->number / (row->form == ACCT_MINUTES ? 60 : 1));
        break;
    case ACCT_DECIMAL:
        jsonw_set_double(json, key, value->has, !value->has,
                         value->has ? strtod(value->text, NULL) : 0);
        break;
    case ACCT_TRES:
        acct_add_tres_json(json, key, value->text);
        break;
    case ACCT_WORDS:
        jsonw_list(json, key);
        for (size_t i = 0; i < value->count; i++)
            jsonw_text(json, NULL, value->list[i]);
        jsonw_list_end(json);
        break;
    case ACCT_FLAGS:
        add_flags(value, key, json);
        break;
    case ACCT_MODE:
        add_mode(value, key, json);
        break;
    case ACCT_GIVEN:
        break;
    }
}

/* ---- an object, by its rows ---- */

typedef void given_fn(const void *object, const struct acct_row *row, struct jsonw *json);

/* Closes what the next name does not lie in, opens what it does. (1) */
static const char *move_to(struct jsonw *json, char *open, size_t size, const char *name)
{
    size_t same = 0;
    const char *slash;

    for (size_t i = 0; open[i] && open[i] == name[i]; i++) {
        if (open[i] == '/')
            same = i + 1;
    }
    for (const char *at = open + same; (at = strchr(at, '/')); at++)
        jsonw_object_end(json);
    while ((slash = strchr(name + same, '/'))) {
        char part[64];
        snprintf(part, sizeof(part), "%.*s", (int)(slash - name - (ptrdiff_t)same), name + same);
        jsonw_object(json, part);
        same = (size_t)(slash - name) + 1;
    }
    snprintf(open, size, "%.*s", (int)same, name);
    return name + same;
}

static void add_rows(const struct acct_row *rows, size_t count, const ProtobufCMessage *message,
                     const void *object, given_fn *given, struct jsonw *json)
{
    char open[128] = "";

    for (size_t i = 0; i < count; i++) {
        struct value value = value_of(message, rows[i].field);
        if (!jsonw_has(json, rows[i].since, rows[i].until))
            continue;
        const char *key = move_to(json, open, sizeof(open), rows[i].json);
        if (rows[i].form == ACCT_GIVEN)
            given(object, &rows[i], json);
        else
            add_value(&rows[i], &value, key, json);
    }
    move_to(json, open, sizeof(open), "");
}

static void add_deleted(struct jsonw *json, bool deleted, const char *else_word)
{
    jsonw_list(json, "flags");
    if (deleted)
        jsonw_text(json, NULL, "DELETED");
    else if (else_word)
        jsonw_text(json, NULL, else_word);
    jsonw_list_end(json);
}

/* ---- associations ---- */

struct assoc_object {
    const ListTablesReply *tables;
    const AcctAssoc *assoc;
};

const AcctAssoc *acct_account_assoc(const ListTablesReply *tables, const char *cluster,
                                    const char *account)
{
    for (size_t i = 0; i < tables->n_assocs; i++) {
        const AcctAssoc *assoc = tables->assocs[i];
        if (str_eq(assoc->cluster, cluster) && str_is_empty(assoc->limits->name) &&
            str_eq(assoc->limits->account, account))
            return assoc;
    }
    return NULL;
}

void acct_assoc_inherit(const ListTablesReply *tables, AcctAssoc *assoc)
{
    static const char *const inherited[] = { "default_qos",      "max_jobs",
                                             "max_jobs_accrue",  "max_submit",
                                             "max_wall_s",       "max_tres_mins_per_job",
                                             "max_tres_per_job", "max_tres_per_node",
                                             "assoc_priority",   "qos_list" };
    bool is_account = str_is_empty(assoc->limits->name);
    const AcctAssoc *above = acct_account_assoc(
        tables, assoc->cluster, is_account ? assoc->parent : assoc->limits->account);

    for (unsigned depth = 0; above && depth < 64; depth++) {
        for (size_t i = 0; i < ARRAY_LEN(inherited); i++) {
            const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field_by_name(
                assoc->limits->base.descriptor, inherited[i]);
            if (!value_of(&assoc->limits->base, inherited[i]).has)
                copy_field(assoc->limits, above->limits, field);
        }
        above = acct_account_assoc(tables, above->cluster, above->parent);
    }
}

/* "/physics/optics/0-alice/": the accounts above it, without root. */
static void add_lineage(const struct assoc_object *object, struct str *out)
{
    const AcctAssoc *assoc = object->assoc;
    const char *names[64], *account = assoc->limits->account;
    size_t count = 0;

    while (!str_is_empty(account) && !str_eq(account, "root") && count < ARRAY_LEN(names)) {
        const AcctAssoc *above = acct_account_assoc(object->tables, assoc->cluster, account);
        names[count++] = account;
        account = above ? above->parent : NULL;
    }
    str_add_char(out, '/');
    while (count)
        str_addf(out, "%s/", names[--count]);
    if (!str_is_empty(assoc->limits->name))
        str_addf(out, "0-%s/", assoc->limits->name);
    if (!str_is_empty(assoc->limits->partition))
        str_addf(out, "%s/", assoc->limits->partition);
}

static void assoc_given(const void *ctx, const struct acct_row *row, struct jsonw *json)
{
    const struct assoc_object *object = ctx;
    const AcctAssoc *assoc = object->assoc;
    CLEANUP(str_done) struct str lineage = { 0 };

    if (str_eq(row->json, "cluster")) {
        jsonw_text(json, "cluster", assoc->cluster);
    } else if (str_eq(row->json, "flags")) {
        add_deleted(json, assoc->deleted, NULL);
    } else if (str_eq(row->json, "id")) {
        jsonw_number(json, "id", assoc->id);
    } else if (str_eq(row->json, "parent_account")) {
        jsonw_text(json, "parent_account", assoc->parent);
    } else {
        add_lineage(object, &lineage);
        jsonw_text(json, "lineage", str_text(&lineage));
    }
}

void acct_assoc_json(const ListTablesReply *tables, const AcctAssoc *assoc, struct jsonw *json)
{
    const struct assoc_object object = { tables, assoc };

    jsonw_object(json, NULL);
    add_rows(acct_assoc_rows, acct_assoc_row_count, &assoc->limits->base, &object, assoc_given,
             json);
    jsonw_object_end(json);
}

static void add_short_assoc(struct jsonw *json, const char *key, const AcctAssoc *assoc)
{
    jsonw_object(json, key);
    jsonw_text(json, "account", assoc ? assoc->limits->account : "");
    jsonw_text(json, "cluster", assoc ? assoc->cluster : "");
    jsonw_text(json, "partition", assoc ? assoc->limits->partition : "");
    jsonw_text(json, "user", assoc ? assoc->limits->name : "");
    jsonw_number(json, "id", assoc ? assoc->id : 0);
    jsonw_object_end(json);
}

/* Those of an account, or those of a user. */
static void add_short_assocs(const ListTablesReply *tables, const char *account, const char *user,
                             bool with, struct jsonw *json)
{
    jsonw_list(json, "associations");
    for (size_t i = 0; with && i < tables->n_assocs; i++) {
        const AcctAssoc *assoc = tables->assocs[i];
        if (account ? str_eq(assoc->limits->account, account) : str_eq(assoc->limits->name, user))
            add_short_assoc(json, NULL, assoc);
    }
    jsonw_list_end(json);
}

/* ---- the others ---- */

static void add_coords(const ListTablesReply *tables, const char *account, const char *user,
                       bool with, struct jsonw *json)
{
    jsonw_list(json, "coordinators");
    for (size_t i = 0; with && i < tables->n_coords; i++) {
        const AcctCoord *coord = tables->coords[i];
        if (!(account ? str_eq(coord->account, account) : str_eq(coord->user, user)))
            continue;
        jsonw_object(json, NULL);
        jsonw_text(json, "name", account ? coord->user : coord->account);
        jsonw_bool(json, "direct", true);
        jsonw_object_end(json);
    }
    jsonw_list_end(json);
}

void acct_account_json(const ListTablesReply *tables, const AcctAccount *account, unsigned with,
                       struct jsonw *json)
{
    jsonw_object(json, NULL);
    add_short_assocs(tables, account->name, NULL, with & ACCT_WITH_ASSOCS, json);
    add_coords(tables, account->name, NULL, with & ACCT_WITH_COORDS, json);
    jsonw_text(json, "description", account->description);
    jsonw_text(json, "name", account->name);
    jsonw_text(json, "organization", account->organization);
    add_deleted(json, account->deleted, NULL);
    jsonw_object_end(json);
}

static const char *default_account_of(const ListTablesReply *tables, const char *user)
{
    for (size_t i = 0; i < tables->n_assocs; i++) {
        const ConfUser *limits = tables->assocs[i]->limits;
        if (str_eq(limits->name, user) && limits->is_default && !tables->assocs[i]->deleted)
            return limits->account;
    }
    return "";
}

void acct_user_json(const ListTablesReply *tables, const AcctUser *user, unsigned with,
                    struct jsonw *json)
{
    static const char *const levels[] = { "None", "Operator", "Administrator" };

    jsonw_object(json, NULL);
    jsonw_list(json, "administrator_level");
    jsonw_text(json, NULL, levels[MIN(user->admin_level, 2u)]);
    jsonw_list_end(json);
    add_short_assocs(tables, NULL, user->name, with & ACCT_WITH_ASSOCS, json);
    add_coords(tables, NULL, user->name, with & ACCT_WITH_COORDS, json);
    jsonw_object(json, "default");
    if (jsonw_has(json, 44, 0))
        jsonw_number(json, "qos", 0);
    bool defaults = with & ACCT_WITH_DEFAULTS;
    jsonw_text(json, "account", defaults ? default_account_of(tables, user->name) : "");
    jsonw_text(json, "wckey", defaults ? user->default_wckey : "");
    jsonw_object_end(json);
    add_deleted(json, user->deleted, "NONE");
    jsonw_text(json, "name", user->name);
    jsonw_text(json, "old_name", "");
    jsonw_list(json, "wckeys");
    for (size_t i = 0; (with & ACCT_WITH_WCKEYS) && i < tables->n_wckeys; i++) {
        if (str_eq(tables->wckeys[i]->user, user->name))
            acct_wckey_json(tables->wckeys[i], json);
    }
    jsonw_list_end(json);
    jsonw_object_end(json);
}

static void qos_given(const void *ctx, const struct acct_row *row, struct jsonw *json)
{
    const AcctQos *qos = ctx;

    jsonw_number(json, row->json, qos->id);
}

void acct_qos_json(const AcctQos *qos, struct jsonw *json)
{
    jsonw_object(json, NULL);
    add_rows(acct_qos_rows, acct_qos_row_count, &qos->qos->base, qos, qos_given, json);
    jsonw_object_end(json);
}

void acct_cluster_json(const ListTablesReply *tables, const AcctClusterRow *cluster,
                       struct jsonw *json)
{
    jsonw_object(json, NULL);
    jsonw_object(json, "controller");
    jsonw_text(json, "host", cluster->control_host);
    jsonw_number(json, "port", cluster->control_port);
    jsonw_object_end(json);
    jsonw_list(json, "flags");
    if (cluster->deleted && jsonw_has(json, 43, 0))
        jsonw_text(json, NULL, "DELETED");
    if (!cluster->registered)
        jsonw_text(json, NULL, "REGISTERING");
    jsonw_list_end(json);
    jsonw_text(json, "name", cluster->name);
    jsonw_text(json, "nodes", "");
    if (jsonw_has(json, 0, 44))
        jsonw_text(json, "select_plugin", "");
    jsonw_object(json, "associations");
    add_short_assoc(json, "root", acct_account_assoc(tables, cluster->name, "root"));
    jsonw_object_end(json);
    jsonw_number(json, "rpc_version", 0);
    jsonw_list(json, "tres");
    jsonw_list_end(json);
    jsonw_object_end(json);
}

void acct_tres_json(const AcctTres *tres, struct jsonw *json)
{
    jsonw_object(json, NULL);
    jsonw_text(json, "type", tres->type);
    jsonw_text(json, "name", tres->name);
    jsonw_number(json, "id", tres->id);
    jsonw_number(json, "count", 0);
    jsonw_object_end(json);
}

void acct_wckey_json(const AcctWckey *wckey, struct jsonw *json)
{
    jsonw_object(json, NULL);
    jsonw_list(json, "accounting");
    jsonw_list_end(json);
    jsonw_text(json, "cluster", wckey->cluster);
    jsonw_number(json, "id", wckey->id);
    jsonw_text(json, "name", wckey->name);
    jsonw_text(json, "user", wckey->user);
    add_deleted(json, wckey->deleted, NULL);
    jsonw_object_end(json);
}
