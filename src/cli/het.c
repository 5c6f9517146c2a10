// SPDX-License-Identifier: Apache-2.0
/*
 * het.c - heterogeneous jobs on the command line
 */
#include "cli/het.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "schema/het.h"
#include "schema/request.h"

#define GROUP "_HET_GROUP_"

/* How many operands come before ":"; all when there is none. */
static int before_colon(char **operands, int count)
{
    int at = 0;

    while (at < count && strcmp(operands[at], ":") != 0)
        at++;
    return at;
}

static int read_one(const struct option_set *set, const struct option_ctx *ctx, struct arena *arena,
                    int argc, char **argv, struct het_words *out, int *left, struct err *err)
{
    struct job_request scratch;
    int count = 0;

    out->operands = ARENA_ARRAY(arena, char *, argc + 2);
    job_request_init(&scratch);
    int ret = option_read_words(set, ctx, &scratch, LEVEL_ARGV, argc, argv, OPTION_STOP,
                                out->operands, &count, err);
    job_request_done(&scratch);
    if (ret < 0)
        return ret;
    out->words = argv;
    out->count = argc - count;
    out->operand_count = before_colon(out->operands, count);
    *left = count - out->operand_count;
    out->operands[out->operand_count] = NULL;
    return 0;
}

int het_split(const struct option_set *set, const struct option_ctx *ctx, struct arena *arena,
              int argc, char **argv, struct het_words **out, size_t *count, struct err *err)
{
    struct het_words *list = ARENA_ARRAY(arena, struct het_words, LIMIT_HET_COMPONENTS);

    if (argc > LIMIT_ARGS_COUNT)
        return err_set(err, ERR_TOO_MANY, "more than %d arguments", LIMIT_ARGS_COUNT);
    for (*count = 0;;) {
        int left;
        if (*count == LIMIT_HET_COMPONENTS)
            return err_set(err, ERR_TOO_MANY, "more than %d components", LIMIT_HET_COMPONENTS);
        if (read_one(set, ctx, arena, argc, argv, &list[*count], &left, err) < 0)
            return -(int)ERR_INVALID;
        (*count)++;
        if (left == 0)
            break;
        argv += argc - left + 1; /* behind the colon */
        argc = left - 1;
    }
    *out = list;
    return 0;
}

/* NAME=value of NAME_HET_GROUP_n=value; NULL: it is not this component's. */
static char *own_entry(const char *entry, unsigned group, struct arena *arena)
{
    const char *equals = strchr(entry, '='), *at = strstr(entry, GROUP);
    char number[16];

    snprintf(number, sizeof(number), "%u", group);
    if (!equals || !at || at > equals || !het_has_name(entry, (size_t)(at - entry)) ||
        strncmp(at + strlen(GROUP), number, strlen(number)) != 0 ||
        at + strlen(GROUP) + strlen(number) != equals)
        return NULL;
    return arena_printf(arena, "%.*s%s", (int)(at - entry), entry, equals);
}

char **het_env(char *const *env, unsigned group, struct arena *arena)
{
    size_t count = 0, at = 0;

    while (env[count])
        count++;
    char **out = ARENA_ARRAY(arena, char *, count + 1);
    for (size_t i = 0; i < count; i++) {
        char *own = own_entry(env[i], group, arena);
        if (own)
            out[at++] = own;
        else if (!het_has_name(env[i], strcspn(env[i], "=")))
            out[at++] = env[i];
    }
    return out;
}
