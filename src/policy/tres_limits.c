/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tres_limits.c - TRES and limits: from their texts in the configuration to numbers
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "policy/accounts.h"
#include "wire/pb.h"

static const struct tres_limit_row {
    const char *field;
    bool is_tres;
    unsigned index;
} tres_limit_rows[] = {
    { "grp_jobs", false, GRP_JOBS },
    { "grp_submit", false, GRP_SUBMIT },
    { "grp_jobs_accrue", false, GRP_ACCRUE },
    { "grp_wall_s", false, GRP_WALL },
    { "max_jobs", false, MAX_JOBS },
    { "max_submit", false, MAX_SUBMIT },
    { "max_jobs_per_account", false, MAX_JOBS_ACCT },
    { "max_submit_per_account", false, MAX_SUBMIT_ACCT },
    { "max_jobs_accrue", false, MAX_ACCRUE },
    { "max_jobs_accrue_per_account", false, MAX_ACCRUE_ACCT },
    { "max_wall_s", false, MAX_WALL },
    { "grp_tres", true, GRP_TRES },
    { "grp_tres_mins", true, GRP_TRES_MINS },
    { "grp_tres_run_mins", true, GRP_TRES_RUN_MINS },
    { "max_tres_per_job", true, MAX_TRES_JOB },
    { "max_tres_per_node", true, MAX_TRES_NODE },
    { "max_tres_mins_per_job", true, MAX_TRES_MINS_JOB },
    { "max_tres_per_user", true, MAX_TRES_USER },
    { "max_tres_per_account", true, MAX_TRES_ACCT },
    { "max_tres_run_mins_per_user", true, MAX_TRES_RUN_MINS_USER },
    { "max_tres_run_mins_per_account", true, MAX_TRES_RUN_MINS_ACCT },
    { "min_tres_per_job", true, MIN_TRES_JOB },
};

/* ---- TRES ---- */

static enum tres_kind kind_of(const char *name)
{
    static const struct {
        const char *prefix;
        enum tres_kind kind;
    } rows[] = {
        { "gres/", TRES_IS_GRES },
        { "license/", TRES_IS_LICENSE },
        { "bb/", TRES_IS_BB },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (strncmp(name, rows[i].prefix, strlen(rows[i].prefix)) == 0)
            return rows[i].kind;
    }
    return strcmp(name, "energy") == 0 ? TRES_IS_ENERGY : TRES_IS_OTHER;
}

size_t tres_find(const struct accounts *accounts, const char *name, size_t len)
{
    for (size_t i = 0; i < accounts->tres_count; i++) {
        if (strlen(accounts->tres[i].name) == len &&
            strncasecmp(accounts->tres[i].name, name, len) == 0)
            return i;
    }
    return TRES_MOST;
}

static void tres_add(struct accounts *accounts, const char *name, size_t len)
{
    if (!len || tres_find(accounts, name, len) < TRES_MOST || accounts->tres_count == TRES_MOST)
        return;
    struct tres *tres = &accounts->tres[accounts->tres_count++];
    char *copy = arena_strndup(&accounts->arena, name, len);
    char *what = strchr(copy, '/');
    tres->name = arena_strdup(&accounts->arena, copy);
    tres->kind = kind_of(tres->name);
    if (!what)
        return;
    char *colon = strchr(what, ':');
    if (colon)
        *colon = '\0';
    tres->what = what + 1;
    tres->type = colon ? colon + 1 : NULL;
}

static void tres_add_text(struct accounts *accounts, const char *text)
{
    struct span word;

    while (text && str_next(&text, ",", &word)) {
        const char *eq = memchr(word.ptr, '=', word.len);
        tres_add(accounts, word.ptr, eq ? (size_t)(eq - word.ptr) : word.len);
    }
}

/* The fields of tres_limit_rows in one kind of message, looked for by name once; NULL: it has none. */
static const ProtobufCFieldDescriptor *const *fields_of(struct accounts *accounts,
                                                        const ProtobufCMessage *from)
{
    struct tres_limit_fields *at = accounts->tres_limit_fields;

    while (at && at->of != from->descriptor)
        at = at->next;
    if (at)
        return at->fields;
    at = arena_alloc(&accounts->arena, sizeof(*at));
    at->fields =
        ARENA_ARRAY(&accounts->arena, const ProtobufCFieldDescriptor *, ARRAY_LEN(tres_limit_rows));
    for (size_t i = 0; i < ARRAY_LEN(tres_limit_rows); i++)
        at->fields[i] = protobuf_c_message_descriptor_get_field_by_name(from->descriptor,
                                                                        tres_limit_rows[i].field);
    at->of = from->descriptor;
    at->next = accounts->tres_limit_fields;
    accounts->tres_limit_fields = at;
    return at->fields;
}

static const char *field_text(const ProtobufCMessage *from, const ProtobufCFieldDescriptor *field)
{
    return field ? *(const char *const *)(const void *)((const char *)from + field->offset) : NULL;
}

static void tres_of_limits(struct accounts *accounts, const ProtobufCMessage *from)
{
    const ProtobufCFieldDescriptor *const *fields = fields_of(accounts, from);

    for (size_t i = 0; i < ARRAY_LEN(tres_limit_rows); i++) {
        if (tres_limit_rows[i].is_tres)
            tres_add_text(accounts, field_text(from, fields[i]));
    }
}

bool tres_are_named(struct accounts *accounts, const ProtobufCMessage *from)
{
    const ProtobufCFieldDescriptor *const *fields = fields_of(accounts, from);
    bool named = false;

    for (size_t i = 0; i < ARRAY_LEN(tres_limit_rows); i++) {
        const char *text = tres_limit_rows[i].is_tres ? field_text(from, fields[i]) : NULL;
        struct span word;
        while (text && str_next(&text, ",", &word)) {
            const char *eq = memchr(word.ptr, '=', word.len);
            size_t len = eq ? (size_t)(eq - word.ptr) : word.len;
            named = named || tres_find(accounts, word.ptr, len) >= TRES_FIXED;
        }
    }
    return named;
}

static uint64_t hash_text(const char *text, uint64_t hash)
{
    return text ? hash_bytes(text, strlen(text), hash + 1) : hash + 2;
}

uint64_t tres_texts_hash(const Config *config)
{
    uint64_t hash = hash_text(config->weight_tres, 0);

    for (size_t i = 0; i < config->n_accounting_tres; i++)
        hash = hash_text(config->accounting_tres[i], hash);
    for (size_t i = 0; i < config->n_partitions; i++)
        hash = hash_text(config->partitions[i]->tres_billing_weights, hash);
    for (size_t i = 0; i < config->n_gres_types; i++)
        hash = hash_text(config->gres_types[i], hash);
    return hash;
}

void tres_collect(struct accounts *accounts, const Config *config)
{
    static const char *const fixed[] = { "cpu", "mem", "node", "billing" };
    static const enum tres_kind kinds[] = { TRES_IS_CPU, TRES_IS_MEM, TRES_IS_NODE,
                                            TRES_IS_BILLING };

    for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
        tres_add(accounts, fixed[i], strlen(fixed[i]));
        accounts->tres[i].kind = kinds[i];
    }
    for (size_t i = 0; i < config->n_accounting_tres; i++)
        tres_add_text(accounts, config->accounting_tres[i]);
    for (size_t i = 0; i < config->n_qos; i++)
        tres_of_limits(accounts, &config->qos[i]->base);
    for (size_t i = 0; i < config->n_accounts; i++)
        tres_of_limits(accounts, &config->accounts[i]->base);
    for (size_t i = 0; i < config->n_users; i++)
        tres_of_limits(accounts, &config->users[i]->base);
    tres_add_text(accounts, config->weight_tres);
    for (size_t i = 0; i < config->n_partitions; i++)
        tres_add_text(accounts, config->partitions[i]->tres_billing_weights);
    for (size_t i = 0; i < config->n_gres_types; i++) {
        const char *name = arena_printf(&accounts->arena, "gres/%s", config->gres_types[i]);
        tres_add(accounts, name, strlen(name));
    }
}

/* ---- numbers ---- */

uint64_t thousandths(const char *text, uint64_t otherwise)
{
    uint64_t whole = 0, part = 0, unit = 100;

    if (str_is_empty(text) || !strchr("0123456789.", *text))
        return otherwise;
    for (; *text >= '0' && *text <= '9' && whole < UINT64_MAX / 100000; text++)
        whole = whole * 10 + (uint64_t)(*text - '0');
    for (text += *text == '.'; *text >= '0' && *text <= '9'; text++, unit /= 10)
        part += unit * (uint64_t)(*text - '0');
    return whole * 1000 + part;
}

/* Of memory a number without unit is MB; a weight is then per MB. */
static uint64_t scaled(const struct tres *tres, uint64_t number, char unit, bool weight)
{
    static const char units[] = "KMGTP";
    const char *at = unit ? strchr(units, unit & ~0x20) : NULL;

    if (!at)
        return number;
    int power = (int)(at - units) - (tres->kind == TRES_IS_MEM ? 1 : -1);
    for (; power > 0; power--)
        number = weight ? number / 1024 : number > UINT64_MAX / 1024 ? number : number * 1024;
    for (; power < 0; power++)
        number = weight ? number * 1024 : number / 1024;
    return number;
}

static void each_tres(const struct accounts *accounts, const char *text, bool weight,
                      uint64_t out[TRES_MOST], uint32_t *has)
{
    struct span word;

    while (text && str_next(&text, ",", &word)) {
        const char *eq = memchr(word.ptr, '=', word.len);
        size_t index =
            eq ? tres_find(accounts, word.ptr, (size_t)(eq - word.ptr)) : (size_t)TRES_MOST;
        char number[32] = "";
        if (index == TRES_MOST)
            continue;
        size_t len = MIN((size_t)(word.ptr + word.len - eq - 1), sizeof(number) - 1);
        memcpy(number, eq + 1, len);
        char unit = len && strchr("KMGTPkmgtp", number[len - 1]) ? number[len - 1] : '\0';
        uint64_t value = thousandths(number, 0);
        /* A weight of memory per G is too small a number in thousandths per MB: kept times 1024. */
        if (weight && accounts->tres[index].kind == TRES_IS_MEM)
            value *= 1024;
        out[index] = scaled(&accounts->tres[index], weight ? value : value / 1000, unit, weight);
        *has |= 1U << index;
    }
}

void tres_weights(const struct accounts *accounts, const char *text, uint64_t out[TRES_MOST],
                  uint32_t *has)
{
    *has = 0;
    memset(out, 0, TRES_MOST * sizeof(*out));
    each_tres(accounts, text, true, out, has);
}

void tres_limits_none(struct tres_limits *tres_limits)
{
    memset(tres_limits, 0xff, sizeof(*tres_limits)); /* NO_LIMIT */
    memset(tres_limits->has_tres, 0, sizeof(tres_limits->has_tres));
}

static bool field_number(const ProtobufCMessage *from, const ProtobufCFieldDescriptor *field,
                         uint64_t *out)
{
    const char *at = (const char *)from;

    if (!field || !pb_has(from, field))
        return false;
    if (field->type == PROTOBUF_C_TYPE_INT64) {
        int64_t value = *(const int64_t *)(const void *)(at + field->offset);
        *out = value < 0 ? NO_LIMIT : (uint64_t)value;
    } else {
        *out = *(const uint32_t *)(const void *)(at + field->offset);
    }
    return true;
}

/* What is not given stays as it is. */
void tres_limits_read(struct accounts *accounts, const ProtobufCMessage *from,
                      struct tres_limits *out)
{
    const ProtobufCFieldDescriptor *const *fields = fields_of(accounts, from);

    for (size_t i = 0; i < ARRAY_LEN(tres_limit_rows); i++) {
        const struct tres_limit_row *row = &tres_limit_rows[i];
        if (row->is_tres)
            each_tres(accounts, field_text(from, fields[i]), false, out->tres[row->index],
                      &out->has_tres[row->index]);
        else
            field_number(from, fields[i], &out->count[row->index]);
    }
}

bool tres_limits_age(const struct tres_limits *tres_limits)
{
    return tres_limits->count[GRP_ACCRUE] != NO_LIMIT ||
           tres_limits->count[MAX_ACCRUE] != NO_LIMIT ||
           tres_limits->count[MAX_ACCRUE_ACCT] != NO_LIMIT;
}
