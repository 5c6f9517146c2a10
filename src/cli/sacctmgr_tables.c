/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sacctmgr_tables.c - settings of associations and QOS by name, and what the tables hold
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/timefmt.h"
#include "cli/accounting.h"
#include "cli/sacctmgr.h"
#include "client/client.h"

enum { SHARE_PARENT = 0x7fffffff };

/* clang-format off */
const struct setting assoc_settings[] = {
    { "DefaultQOS", { "DefQOS" }, "default_qos", KEY_TEXT, "Def QOS", 9, true },
    { "Fairshare", { "Share", "Shares" }, "fairshare", KEY_SHARE, "Share", 9, false },
    { "GrpJobs", { NULL }, "grp_jobs", KEY_COUNT, "GrpJobs", 7, false },
    { "GrpJobsAccrue", { NULL }, "grp_jobs_accrue", KEY_COUNT, "GrpJobsAccrue", 13, false },
    { "GrpSubmitJobs", { "GrpSubmit" }, "grp_submit", KEY_COUNT, "GrpSubmit", 9, false },
    { "GrpTRES", { NULL }, "grp_tres", KEY_TRES, "GrpTRES", 13, false },
    { "GrpTRESMins", { NULL }, "grp_tres_mins", KEY_TRES, "GrpTRESMins", 13, false },
    { "GrpTRESRunMins", { "GrpTRESRunMin" }, "grp_tres_run_mins", KEY_TRES, "GrpTRESRunMins", 13, false },
    { "GrpWall", { NULL }, "grp_wall_s", KEY_MINUTES, "GrpWall", 11, false },
    { "MaxJobs", { NULL }, "max_jobs", KEY_COUNT, "MaxJobs", 7, true },
    { "MaxJobsAccrue", { NULL }, "max_jobs_accrue", KEY_COUNT, "MaxJobsAccrue", 13, true },
    { "MaxSubmitJobs", { "MaxSubmit" }, "max_submit", KEY_COUNT, "MaxSubmit", 9, true },
    { "MaxTRESMinsPerJob", { "MaxTRESMins", "MaxTRESMinsPJ" }, "max_tres_mins_per_job", KEY_TRES, "MaxTRESMins", 13, true },
    { "MaxTRESPerJob", { "MaxTRES", "MaxTRESPJ" }, "max_tres_per_job", KEY_TRES, "MaxTRES", 13, true },
    { "MaxTRESPerNode", { "MaxTRESPN" }, "max_tres_per_node", KEY_TRES, "MaxTRESPerNode", 14, true },
    { "MaxWallDurationPerJob", { "MaxWall", "MaxWallPJ" }, "max_wall_s", KEY_MINUTES, "MaxWall", 11, true },
    { "Priority", { NULL }, "assoc_priority", KEY_COUNT, "Priority", 10, true },
    { "QOS", { "QosLevel" }, "qos_list", KEY_LIST, "QOS", 20, true },
    { NULL },
};
const struct setting qos_settings[] = {
    { "Description", { "Descr" }, "description", KEY_TEXT, "Descr", 20, false },
    { "Flags", { NULL }, "qos_flags", KEY_LIST, "Flags", 20, false },
    { "GraceTime", { NULL }, "qos_grace_time_s", KEY_SECONDS, "GraceTime", 10, false },
    { "GrpJobs", { NULL }, "grp_jobs", KEY_COUNT, "GrpJobs", 7, false },
    { "GrpJobsAccrue", { NULL }, "grp_jobs_accrue", KEY_COUNT, "GrpJobsAccrue", 13, false },
    { "GrpSubmitJobs", { "GrpSubmit" }, "grp_submit", KEY_COUNT, "GrpSubmit", 9, false },
    { "GrpTRES", { NULL }, "grp_tres", KEY_TRES, "GrpTRES", 13, false },
    { "GrpTRESMins", { NULL }, "grp_tres_mins", KEY_TRES, "GrpTRESMins", 13, false },
    { "GrpTRESRunMins", { "GrpTRESRunMin" }, "grp_tres_run_mins", KEY_TRES, "GrpTRESRunMins", 13, false },
    { "GrpWall", { NULL }, "grp_wall_s", KEY_MINUTES, "GrpWall", 11, false },
    { "LimitFactor", { NULL }, "limit_factor", KEY_DECIMAL, "LimitFactor", 11, false },
    { "MaxJobsAccruePA", { "MaxJobsAccruePerAccount" }, "max_jobs_accrue_per_account", KEY_COUNT, "MaxJobsAccruePA", 15, false },
    { "MaxJobsAccruePU", { "MaxJobsAccruePerUser" }, "max_jobs_accrue", KEY_COUNT, "MaxJobsAccruePU", 15, false },
    { "MaxJobsPA", { "MaxJobsPerAccount" }, "max_jobs_per_account", KEY_COUNT, "MaxJobsPA", 9, false },
    { "MaxJobsPU", { "MaxJobsPerUser", "MaxJobs" }, "max_jobs", KEY_COUNT, "MaxJobsPU", 9, false },
    { "MaxSubmitJobsPA", { "MaxSubmitJobsPerAccount", "MaxSubmitPA" }, "max_submit_per_account", KEY_COUNT, "MaxSubmitPA", 11, false },
    { "MaxSubmitJobsPU", { "MaxSubmitJobsPerUser", "MaxSubmitPU", "MaxSubmitJobs" }, "max_submit", KEY_COUNT, "MaxSubmitPU", 11, false },
    { "MaxTRESMinsPerJob", { "MaxTRESMins", "MaxTRESMinsPJ" }, "max_tres_mins_per_job", KEY_TRES, "MaxTRESMins", 13, false },
    { "MaxTRESPerAccount", { "MaxTRESPA" }, "max_tres_per_account", KEY_TRES, "MaxTRESPA", 13, false },
    { "MaxTRESPerJob", { "MaxTRES", "MaxTRESPJ" }, "max_tres_per_job", KEY_TRES, "MaxTRES", 13, false },
    { "MaxTRESPerNode", { "MaxTRESPN" }, "max_tres_per_node", KEY_TRES, "MaxTRESPerNode", 14, false },
    { "MaxTRESPerUser", { "MaxTRESPU" }, "max_tres_per_user", KEY_TRES, "MaxTRESPU", 13, false },
    { "MaxTRESRunMinsPerAccount", { "MaxTRESRunMinsPA" }, "max_tres_run_mins_per_account", KEY_TRES, "MaxTRESRunMinsPA", 22, false },
    { "MaxTRESRunMinsPerUser", { "MaxTRESRunMinsPU" }, "max_tres_run_mins_per_user", KEY_TRES, "MaxTRESRunMinsPU", 22, false },
    { "MaxWallDurationPerJob", { "MaxWall", "MaxWallPJ" }, "max_wall_s", KEY_MINUTES, "MaxWall", 11, false },
    { "MinPrioThreshold", { "MinPrioThres" }, "min_prio_threshold", KEY_COUNT, "MinPrioThres", 12, false },
    { "MinTRESPerJob", { "MinTRES" }, "min_tres_per_job", KEY_TRES, "MinTRES", 13, false },
    { "Preempt", { NULL }, "qos_preempt", KEY_LIST, "Preempt", 10, false },
    { "PreemptExemptTime", { NULL }, "qos_preempt_exempt_s", KEY_MINUTES, "PreemptExemptTime", 19, false },
    { "PreemptMode", { NULL }, "qos_preempt_mode", KEY_TEXT, "PreemptMode", 11, false },
    { "Priority", { NULL }, "qos_priority", KEY_COUNT, "Priority", 10, false },
    { "UsageFactor", { NULL }, "usage_factor", KEY_DECIMAL, "UsageFactor", 11, false },
    { "UsageThreshold", { "UsageThres" }, "usage_threshold", KEY_DECIMAL, "UsageThres", 10, false },
    { NULL },
};
/* clang-format on */

bool word_is(const char *typed, const char *name)
{
    size_t len = strlen(typed);

    return str_ieq(typed, name) || (len >= 3 && str_istarts(name, typed)) ||
           (len > 3 && len == strlen(name) + 1 && (typed[len - 1] | 32) == 's' &&
            str_istarts(typed, name));
}

const struct setting *setting_find(const struct setting *table, const char *name)
{
    for (int exact = 1; exact >= 0; exact--) {
        for (const struct setting *row = table; row->name; row++) {
            if (exact ? str_ieq(name, row->name) : word_is(name, row->name))
                return row;
            for (size_t i = 0; i < ARRAY_LEN(row->also) && row->also[i]; i++) {
                if (exact ? str_ieq(name, row->also[i]) : word_is(name, row->also[i]))
                    return row;
            }
        }
    }
    return NULL;
}

/* ---- fields of messages ---- */

struct place {
    const ProtobufCFieldDescriptor *field;
    void *value;
    protobuf_c_boolean *has; /* of numbers */
    size_t *count;           /* of lists */
};

static struct place place_of(const struct setting *setting, const void *message)
{
    const ProtobufCMessage *base = message;
    struct place place = { .field = protobuf_c_message_descriptor_get_field_by_name(
                               base->descriptor, setting->field) };
    char *at = (char *)(uintptr_t)message;

    if (!place.field)
        return place;
    place.value = at + place.field->offset;
    if (place.field->label == PROTOBUF_C_LABEL_REPEATED)
        place.count = (size_t *)(void *)(at + place.field->quantifier_offset);
    else if (place.field->type != PROTOBUF_C_TYPE_STRING)
        place.has = (protobuf_c_boolean *)(void *)(at + place.field->quantifier_offset);
    return place;
}

static bool complain(const struct manager *m, const struct setting *setting, const char *value)
{
    fprintf(stderr, " Bad %s value: %s\n", setting->name, value);
    (void)m;
    return false;
}

static bool put_number(const struct manager *m, const struct setting *setting,
                       const struct place *place, const char *value)
{
    uint64_t number = 0;
    int64_t seconds = 0;
    struct err err = { 0 };

    if (str_eq(value, "-1") || !*value) {
        *place->has = false;
        return true;
    }
    if (setting->kind == KEY_SHARE && str_ieq(value, "parent"))
        number = SHARE_PARENT;
    else if (setting->kind == KEY_COUNT || setting->kind == KEY_SHARE) {
        if (!str_to_u64(value, SHARE_PARENT, &number))
            return complain(m, setting, value);
    } else if (setting->kind == KEY_SECONDS && str_to_u64(value, UINT32_MAX, &number)) {
        seconds = (int64_t)number;
    } else if (timefmt_read_duration(value, &seconds, &err) < 0) {
        return complain(m, setting, value);
    }
    *place->has = true;
    if (setting->kind == KEY_MINUTES || setting->kind == KEY_SECONDS)
        *(int64_t *)place->value = seconds;
    else
        *(uint32_t *)place->value = (uint32_t)number;
    return true;
}

static bool is_tres(struct span name)
{
    static const char *const plain[] = { "cpu",    "mem",  "node",  "billing",
                                         "energy", "vmem", "pages", "fs/disk" };
    static const char *const kinds[] = { "gres/", "license/", "bb/", "ic/" };

    for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
        if (span_ieq(name, plain[i]))
            return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (name.len > strlen(kinds[i]) && strncasecmp(name.ptr, kinds[i], strlen(kinds[i])) == 0)
            return true;
    }
    return false;
}

/* The amount that a list has for a TRES; empty: none. */
static struct span tres_amount(const char *list, struct span name)
{
    struct span word;

    while (list && str_next(&list, ",", &word)) {
        if (word.len > name.len && word.ptr[name.len] == '=' &&
            strncasecmp(word.ptr, name.ptr, name.len) == 0)
            return (struct span){ word.ptr + name.len + 1, word.len - name.len - 1 };
    }
    return (struct span){ NULL, 0 };
}

/* What is said takes the place of what was; -1 takes it away, and alone takes all away. */
static bool put_tres(struct manager *m, const struct setting *setting, char **at, const char *value)
{
    CLEANUP(str_done) struct str out = { 0 };
    const char *cursor = *at;
    struct span word;

    if (str_eq(value, "-1") || !*value) {
        *at = NULL;
        return true;
    }
    for (const char *check = value; str_next(&check, ",", &word);) {
        const char *equal = memchr(word.ptr, '=', word.len);
        size_t digits = equal ? word.len - (size_t)(equal - word.ptr) - 1 : 0;
        if (!equal || !is_tres((struct span){ word.ptr, (size_t)(equal - word.ptr) }) || !digits ||
            (strspn(equal + 1, "0123456789KMGTPkmgtp") < digits &&
             strncmp(equal + 1, "-1", digits) != 0))
            return complain(m, setting, value);
    }
    while (cursor && str_next(&cursor, ",", &word)) {
        const char *equal = memchr(word.ptr, '=', word.len);
        struct span name = { word.ptr, equal ? (size_t)(equal - word.ptr) : word.len };
        if (!tres_amount(value, name).ptr)
            str_addf(&out, "%s%.*s", out.len ? "," : "", (int)word.len, word.ptr);
    }
    for (cursor = value; str_next(&cursor, ",", &word);) {
        if (word.len < 3 || strncmp(word.ptr + word.len - 3, "=-1", 3) != 0)
            str_addf(&out, "%s%.*s", out.len ? "," : "", (int)word.len, word.ptr);
    }
    *at = out.len ? arena_strdup(&m->cli.arena, str_text(&out)) : NULL;
    return true;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void put_list(struct manager *m, const struct place *place, const struct word *word,
                     bool lower)
{
    struct names said = { 0 };
    char **old = *(char ***)place->value;
    size_t count = 0, most = *place->count;

    if (!str_eq(word->value, "-1"))
        cli_split(&m->cli, word->value, ",", &said.items, &said.count);
    char **list = ARENA_ARRAY(&m->cli.arena, char *, most + said.count + 1);
    for (size_t i = 0; word->how != '=' && i < most; i++) {
        if (!(said.count && names_have(&said, old[i])))
            list[count++] = old[i];
    }
    for (size_t i = 0; word->how != '-' && i < said.count; i++) {
        for (char *at = said.items[i]; lower && *at; at++)
            *at = *at >= 'A' && *at <= 'Z' ? (char)(*at | 32) : *at;
        list[count++] = said.items[i];
    }
    qsort(list, count, sizeof(*list), by_text);
    *(char ***)place->value = list;
    *place->count = count;
}

bool setting_put(struct manager *m, const struct setting *setting, void *message,
                 const struct word *word)
{
    struct place place = place_of(setting, message);
    char *end;

    if (!place.field || !word->value)
        return complain(m, setting, word->value ? word->value : "(none)");
    if (word->how != '=' && setting->kind != KEY_LIST) {
        fprintf(stderr, " %s takes no += or -=\n", setting->name);
        return false;
    }
    switch (setting->kind) {
    case KEY_LIST:
        put_list(m, &place, word, !str_eq(setting->name, "Flags"));
        return true;
    case KEY_TRES:
        return put_tres(m, setting, place.value, word->value);
    case KEY_DECIMAL:
        strtod(word->value, &end);
        if (*end)
            return complain(m, setting, word->value);
        *(char **)place.value =
            *word->value == '-' ? NULL : arena_strdup(&m->cli.arena, word->value);
        return true;
    case KEY_TEXT:
        *(char **)place.value = *word->value && !str_eq(word->value, "-1")
                                    ? arena_strdup(&m->cli.arena, word->value)
                                    : NULL;
        return true;
    default:
        return put_number(m, setting, &place, word->value);
    }
}

bool setting_get(const struct setting *setting, const void *message, bool raw, struct str *out)
{
    struct place place = place_of(setting, message);

    if (!place.field)
        return false;
    if (place.count) {
        for (size_t i = 0; i < *place.count; i++)
            str_addf(out, "%s%s", i ? "," : "", (*(char ***)place.value)[i]);
        return *place.count > 0;
    }
    if (!place.has) {
        const char *text = *(char **)place.value;
        if (str_is_empty(text))
            return false;
        if (setting->kind == KEY_DECIMAL)
            str_addf(out, "%.6f", strtod(text, NULL));
        else
            str_add(out, text);
        return true;
    }
    if (!*place.has)
        return false;
    if (setting->kind == KEY_SHARE && *(uint32_t *)place.value == SHARE_PARENT)
        str_add(out, "parent");
    else if (setting->kind == KEY_COUNT || setting->kind == KEY_SHARE)
        str_addf(out, "%u", *(uint32_t *)place.value);
    else if (raw)
        str_addf(out, "%lld",
                 (long long)(*(int64_t *)place.value / (setting->kind == KEY_MINUTES ? 60 : 1)));
    else
        timefmt_write_duration(out, *(int64_t *)place.value, TIMEFMT_LONG);
    return true;
}

/* ---- lists of names ---- */

struct names names_of(struct manager *m, const char *list)
{
    struct names names = { 0 };

    cli_split(&m->cli, list, ",", &names.items, &names.count);
    for (size_t i = 0; i < names.count; i++) {
        for (char *at = names.items[i]; *at; at++)
            *at = *at >= 'A' && *at <= 'Z' ? (char)(*at | 32) : *at;
    }
    return names;
}

bool names_have(const struct names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++) {
        if (name && strcasecmp(names->items[i], name) == 0)
            return true;
    }
    return names->count == 0;
}

/* ---- tables ---- */

int manager_connect(struct manager *m)
{
    struct err err = { 0 };

    if (!m->client)
        m->client = accounting_connect(&m->cli, &err);
    return m->client ? 0 : accounting_error(&m->cli, &err);
}

int manager_load(struct manager *m, bool deleted, bool transactions)
{
    ListTablesRequest request = LIST_TABLES_REQUEST__INIT;
    ProtobufCMessage *message;
    struct err err = { 0 };

    if (m->offline)
        return 0;
    request.has_with_deleted = request.has_transactions = true;
    request.with_deleted = deleted;
    request.transactions = transactions;
    if (!m->client)
        m->client = accounting_connect(&m->cli, &err);
    if (!m->client ||
        client_call(m->client, "/spur.Accounts/List", &request.base, &list_tables_reply__descriptor,
                    &m->cli.arena, &message, &err) < 0)
        return accounting_error(&m->cli, &err);
    m->tables = (const void *)message;
    return 0;
}

const AcctAssoc *assoc_find(const struct manager *m, const char *cluster, const char *account,
                            const char *user, const char *partition)
{
    for (size_t i = 0; i < m->tables->n_assocs; i++) {
        const AcctAssoc *assoc = m->tables->assocs[i];
        const ConfUser *limits = assoc->limits;
        if (!assoc->deleted && str_eq(assoc->cluster, cluster) &&
            str_eq(limits->account, account) && str_eq(limits->name, user ? user : "") &&
            str_eq(limits->partition ? limits->partition : "", partition ? partition : ""))
            return assoc;
    }
    return NULL;
}

const AcctAssoc *assoc_above(const struct manager *m, const AcctAssoc *assoc)
{
    bool is_account = str_is_empty(assoc->limits->name);

    if (is_account && str_is_empty(assoc->parent))
        return NULL;
    return assoc_find(m, assoc->cluster, is_account ? assoc->parent : assoc->limits->account, "",
                      "");
}

unsigned assoc_depth(const struct manager *m, const AcctAssoc *assoc)
{
    unsigned depth = 0;

    while (depth < 64 && (assoc = assoc_above(m, assoc)))
        depth++;
    return depth;
}

const AcctAccount *account_find(const struct manager *m, const char *name)
{
    for (size_t i = 0; i < m->tables->n_accounts; i++) {
        if (str_eq(m->tables->accounts[i]->name, name) && !m->tables->accounts[i]->deleted)
            return m->tables->accounts[i];
    }
    return NULL;
}

const AcctUser *user_find(const struct manager *m, const char *name)
{
    for (size_t i = 0; i < m->tables->n_users; i++) {
        if (str_eq(m->tables->users[i]->name, name) && !m->tables->users[i]->deleted)
            return m->tables->users[i];
    }
    return NULL;
}

const AcctQos *qos_find(const struct manager *m, const char *name)
{
    for (size_t i = 0; i < m->tables->n_qos; i++) {
        if (str_eq(m->tables->qos[i]->qos->name, name) && !m->tables->qos[i]->deleted)
            return m->tables->qos[i];
    }
    return NULL;
}

const char *default_account(const struct manager *m, const char *cluster, const char *user)
{
    for (size_t i = 0; i < m->tables->n_assocs; i++) {
        const AcctAssoc *assoc = m->tables->assocs[i];
        if (!assoc->deleted && assoc->limits->is_default && str_eq(assoc->limits->name, user) &&
            (!cluster || str_eq(assoc->cluster, cluster)))
            return assoc->limits->account;
    }
    return NULL;
}

const ConfUser *limits_with(const struct manager *m, const AcctAssoc *assoc,
                            const struct setting *setting)
{
    struct str text = { 0 };
    bool has = false;

    while (assoc && !has) {
        has = setting_get(setting, assoc->limits, false, &text);
        if (has || !setting->inherited)
            break;
        assoc = assoc_above(m, assoc);
    }
    str_done(&text);
    return has ? assoc->limits : NULL;
}
