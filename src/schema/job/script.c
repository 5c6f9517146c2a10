// SPDX-License-Identifier: Apache-2.0
/*
 * script.c - finds and reads the option lines of a batch script
 */
#include "schema/script.h"

#include <ctype.h>
#include <string.h>

#include "base/limits.h"

int script_check(const char *script, size_t len, struct err *err)
{
    if (len == 0)
        return err_set(err, ERR_NO_SCRIPT, "Batch script is empty!");
    if (len < 2 || memcmp(script, "#!", 2) != 0)
        return err_set(err, ERR_SCRIPT_NO_SHEBANG,
                       "This does not look like a batch script.  The first\n"
                       "line must start with #! followed by the path to an interpreter.\n"
                       "For instance: #!/bin/sh");
    if (memchr(script, '\0', len))
        return err_set(err, ERR_NO_SCRIPT,
                       "The SLURM controller does not allow scripts that\n"
                       "contain a NULL character '\\0'.");
    for (const char *at = script; (at = memchr(at, '\r', len - (size_t)(at - script))); at++) {
        if (at + 1 < script + len && at[1] == '\n')
            return err_set(err, ERR_NO_SCRIPT,
                           "Batch script contains DOS line breaks (\\r\\n)\n"
                           "instead of expected UNIX line breaks (\\n).");
    }
    return 0;
}

/* Copies one word to `out` and returns what follows it, or NULL when a quote has no end. */
static const char *take_word(const char *at, const char *end, char *out, char *unmatched)
{
    char quote = '\0';

    for (; at < end; at++) {
        if (quote) {
            if (*at == quote)
                quote = '\0';
            else if (*at == '\\' && quote == '"' && at + 1 < end && strchr("\"\\$`", at[1]))
                *out++ = *++at;
            else
                *out++ = *at;
        } else if (*at == '"' || *at == '\'') {
            quote = *at;
        } else if (*at == '\\' && at + 1 < end) {
            *out++ = *++at;
        } else if (isspace((unsigned char)*at)) {
            break;
        } else {
            *out++ = *at;
        }
    }
    *out = '\0';
    *unmatched = quote;
    return quote ? NULL : at;
}

int script_split(struct arena *arena, const char *line, size_t len, char ***words, int *count,
                 struct err *err)
{
    const char *at = line, *end = line + len;
    size_t most = MIN(len / 2 + 1, LIMIT_ARGS_COUNT);
    char **list = ARENA_ARRAY(arena, char *, most + 1);
    size_t used = 0;

    for (;;) {
        char *word, quote;

        while (at < end && isspace((unsigned char)*at))
            at++;
        if (at >= end || *at == '#')
            break;
        if (used == most)
            return err_set(err, ERR_TOO_MANY, "more than %zu words in one line", most);
        word = arena_alloc(arena, (size_t)(end - at) + 1);
        at = take_word(at, end, word, &quote);
        if (!at)
            return err_set(err, ERR_SYNTAX, "Unmatched `%c` in [%.*s]", quote, (int)MIN(len, 200),
                           line);
        list[used++] = word;
    }
    list[used] = NULL;
    *words = list;
    *count = (int)used;
    return 0;
}

/* What follows `magic` at the start of the line, or NULL. */
static const char *after_magic(const char *line, size_t len, const char *magic)
{
    size_t magic_len = strlen(magic);

    if (len < magic_len || memcmp(line, magic, magic_len) != 0)
        return NULL;
    if (len > magic_len && !isspace((unsigned char)line[magic_len]))
        return NULL;
    return line + magic_len;
}

struct reader {
    const struct option_set *set;
    const struct option_ctx *ctx;
    struct job_request *request;
    unsigned wanted, component; /* asked for, reached */
    unsigned line_number;
};

static int read_line(struct reader *reader, const char *line, size_t len, struct err *err)
{
    struct arena *arena = &reader->request->arena;
    const char *rest = after_magic(line, len, "#SBATCH");
    bool pbs = !rest;
    char **words, **operands;
    int count, left = 0;

    if (pbs)
        rest = reader->request->ignore_pbs ? NULL : after_magic(line, len, "#PBS");
    if (!rest)
        return 0;
    if (script_split(arena, rest, (size_t)(line + len - rest), &words, &count, err) < 0)
        return err_wrap(err, "line %u", reader->line_number);
    if (!pbs && count == 1 &&
        (strcmp(words[0], "hetjob") == 0 || strcmp(words[0], "packjob") == 0)) {
        reader->component++;
        return 0;
    }
    if (reader->component != reader->wanted)
        return 0;
    if (pbs)
        return script_read_pbs(reader->set, reader->ctx, reader->request, count, words, err);
    operands = ARENA_ARRAY(arena, char *, count + 1);
    if (option_read_words(reader->set, reader->ctx, reader->request, LEVEL_SCRIPT, count, words,
                          OPTION_STOP, operands, &left, err) < 0)
        return -(int)ERR_INVALID;
    if (left)
        return err_set(err, ERR_INVALID, "Invalid directive found in batch script: %s",
                       operands[0]);
    return 0;
}

int script_read_options(const struct option_set *set, const struct option_ctx *ctx,
                        struct job_request *request, const char *script, size_t len,
                        unsigned component, unsigned *components, struct err *err)
{
    struct reader reader = { .set = set, .ctx = ctx, .request = request, .wanted = component };
    const char *end = script + len;

    for (const char *line = script; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line)), *first = line;
        size_t line_len = (size_t)((stop ? stop : end) - line);

        while (first < line + line_len && isspace((unsigned char)*first))
            first++;
        if (first < line + line_len && *first != '#')
            break;
        reader.line_number++;
        if (line_len > LIMIT_COMMENT_BYTES)
            return err_set(err, ERR_TOO_LARGE, "line %u is longer than %d bytes",
                           reader.line_number, LIMIT_COMMENT_BYTES);
        if (read_line(&reader, line, line_len, err) < 0)
            return -(int)ERR_INVALID;
        if (reader.component >= LIMIT_HET_COMPONENTS)
            return err_set(err, ERR_TOO_MANY, "more than %d components", LIMIT_HET_COMPONENTS);
        line = stop ? stop + 1 : end;
    }
    if (components)
        *components = reader.component + 1;
    return 0;
}
