// SPDX-License-Identifier: Apache-2.0
/*
 * option.c - reads options from words and from the environment by the rows of a table
 *
 * The messages are those of getopt_long(), because users and scripts know them.
 */
#include "schema/option.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"

int option_arity(const struct option *row)
{
    if (!row->arg)
        return 0;
    return row->arg[0] == '[' && strchr(row->arg, ']')[1] == '\0' ? 2 : 1;
}

const struct option *option_find(const struct option_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++) {
        if (option_applies(set, &set->rows[i]) && strcmp(set->rows[i].name, name) == 0)
            return &set->rows[i];
    }
    return NULL;
}

const struct option *option_find_update(const struct option_set *set, const char *key, size_t len)
{
    char wanted[64];

    snprintf(wanted, sizeof(wanted), "%.*s", (int)MIN(len, sizeof(wanted) - 1), key);
    for (size_t i = 0; i < set->count; i++) {
        const char *cursor = set->rows[i].update;
        struct span word;

        while (cursor && str_next(&cursor, ",", &word)) {
            if (span_ieq(word, wanted))
                return &set->rows[i];
        }
    }
    return NULL;
}

const char *option_getenv(const struct option_ctx *ctx, const char *name)
{
    size_t len = strlen(name);

    for (char *const *entry = ctx->env; entry && *entry; entry++) {
        if (strncmp(*entry, name, len) == 0 && (*entry)[len] == '=')
            return *entry + len + 1;
    }
    return NULL;
}

static int call_row(const struct option_call *call, const char *value, struct err *err)
{
    int result;

    if (call->row->later)
        result = err_set(err, ERR_UNSUPPORTED, "--%s is not supported yet: %s", call->row->name,
                         call->row->later);
    else
        result = call->row->read(call, value, err);
    if (result < 0)
        err_option(err, call->row->name);
    else if (call->set->seen)
        call->set->seen(call, value);
    return result;
}

static bool same_option(const struct option *a, const struct option *b)
{
    return a->read == b->read && a->into.kind == b->into.kind && a->into.offset == b->into.offset &&
           a->value == b->value && a->later == b->later && a->into.kind != INTO_NOTHING;
}

/* The row a long name means, exactly or as the only one that begins so. */
static const struct option *find_long(const struct option_set *set, const char *word, size_t len,
                                      struct err *err)
{
    const struct option *found = NULL;
    struct str list = { 0 };
    bool ambiguous = false;

    for (size_t i = 0; i < set->count; i++) {
        const struct option *row = &set->rows[i];

        if (!option_applies(set, row) || strncmp(row->name, word, len) != 0)
            continue;
        if (strlen(row->name) == len) {
            str_done(&list);
            return row;
        }
        str_addf(&list, " '--%s'", row->name);
        if (found && !same_option(found, row))
            ambiguous = true;
        if (!found)
            found = row;
    }
    if (ambiguous)
        err_set(err, ERR_UNKNOWN_OPTION, "option '--%.*s' is ambiguous; possibilities:%s", (int)len,
                word, str_text(&list));
    str_done(&list);
    return ambiguous ? NULL : found;
}

static const struct option *find_key(const struct option_set *set, int key)
{
    for (size_t i = 0; i < set->count; i++) {
        if (option_applies(set, &set->rows[i]) && set->rows[i].key == key)
            return &set->rows[i];
    }
    return NULL;
}

struct words {
    int at, count;
    char **list;
};

static int read_long(struct option_call *call, struct words *words, struct err *err)
{
    const char *word = words->list[words->at] + 2;
    const char *equals = strchr(word, '=');
    size_t len = equals ? (size_t)(equals - word) : strlen(word);
    const char *value = equals ? equals + 1 : NULL;
    struct err found_err = { 0 };

    call->row = find_long(call->set, word, len, &found_err);
    if (!call->row) {
        if (found_err.code)
            return err_set(err, found_err.code, "%s", found_err.text);
        return err_set(err, ERR_UNKNOWN_OPTION, "unrecognized option '--%s'", word);
    }
    if (value && option_arity(call->row) == 0)
        return err_set(err, ERR_UNKNOWN_OPTION, "option '--%s' doesn't allow an argument",
                       call->row->name);
    if (!value && option_arity(call->row) == 1) {
        if (words->at + 1 >= words->count)
            return err_set(err, ERR_UNKNOWN_OPTION, "option '--%s' requires an argument",
                           call->row->name);
        value = words->list[++words->at];
    }
    return call_row(call, value, err);
}

static int read_short(struct option_call *call, struct words *words, struct err *err)
{
    for (const char *key = words->list[words->at] + 1; *key; key++) {
        const char *value = NULL;
        int arity, result;

        call->row = find_key(call->set, (unsigned char)*key);
        if (!call->row)
            return err_set(err, ERR_UNKNOWN_OPTION, "invalid option -- '%c'", *key);
        arity = option_arity(call->row);
        if (arity != 0 && key[1])
            value = key + 1;
        else if (arity == 1) {
            if (words->at + 1 >= words->count)
                return err_set(err, ERR_UNKNOWN_OPTION, "option requires an argument -- '%c'",
                               *key);
            value = words->list[++words->at];
        }
        result = call_row(call, value, err);
        if (result < 0)
            return result;
        if (value)
            break;
    }
    return 0;
}

int option_read_words(const struct option_set *set, const struct option_ctx *ctx, void *target,
                      enum option_level level, int count, char **list, enum option_mode mode,
                      char **operands, int *operand_count, struct err *err)
{
    struct option_call call = { .set = set, .ctx = ctx, .target = target, .level = level };
    struct words words = { .count = count, .list = list };
    bool options = true;
    int left = 0;

    for (; words.at < count; words.at++) {
        char *word = list[words.at];
        int result = 0;

        if (!options || word[0] != '-' || word[1] == '\0') {
            operands[left++] = word;
            if (mode == OPTION_STOP)
                options = false;
            continue;
        }
        if (strcmp(word, "--") == 0) {
            options = false;
            continue;
        }
        result = word[1] == '-' ? read_long(&call, &words, err) : read_short(&call, &words, err);
        if (result < 0)
            return result;
    }
    *operand_count = left;
    return 0;
}

int option_read_argv(const struct option_set *set, const struct option_ctx *ctx, void *target,
                     int argc, char **argv, enum option_mode mode, char **operands,
                     int *operand_count, struct err *err)
{
    if (argc > LIMIT_ARGS_COUNT)
        return err_set(err, ERR_TOO_MANY, "more than %d arguments", LIMIT_ARGS_COUNT);
    return option_read_words(set, ctx, target, LEVEL_ARGV, argc > 0 ? argc - 1 : 0, argv + 1, mode,
                             operands, operand_count, err);
}

static const char *first_of(const struct option_ctx *ctx, const char *names)
{
    const char *value = NULL;
    struct span word;

    while (!value && str_next(&names, ",", &word)) {
        char name[64];

        snprintf(name, sizeof(name), "%.*s", (int)word.len, word.ptr);
        value = option_getenv(ctx, name);
    }
    return value;
}

int option_read_env(const struct option_set *set, const struct option_ctx *ctx, void *target,
                    struct err *err)
{
    struct option_call call = {
        .set = set, .ctx = ctx, .target = target, .level = LEVEL_ENVIRONMENT
    };
    unsigned column = (unsigned)__builtin_ctz(set->bit ? set->bit : 1);
    int result;

    for (size_t i = 0; i < set->count; i++) {
        const struct option *row = &set->rows[i];
        const char *value;

        if (!option_applies(set, row) || !row->env[column])
            continue;
        value = first_of(ctx, row->env[column]);
        if (!value)
            continue;
        call.row = row;
        /* A flag's variable counts by being set, except that -v may say how often. */
        result = call_row(
            &call, option_arity(row) == 0 && row->read != option_increase ? NULL : value, err);
        if (result < 0)
            return result;
    }
    return 0;
}

int option_read_one(const struct option_set *set, const struct option_ctx *ctx, void *target,
                    enum option_level level, const char *name, const char *value, struct err *err)
{
    struct option_call call = { .set = set, .ctx = ctx, .target = target, .level = level };

    call.row = option_find(set, name);
    if (!call.row)
        return err_set(err, ERR_UNKNOWN_OPTION, "unrecognized option '--%s'", name);
    return call_row(&call, value, err);
}

int option_call_row(const struct option_set *set, const struct option_ctx *ctx, void *target,
                    const struct option *row, const char *value, struct err *err)
{
    struct option_call call = {
        .set = set, .row = row, .ctx = ctx, .target = target, .level = LEVEL_ARGV
    };

    return call_row(&call, value, err);
}
