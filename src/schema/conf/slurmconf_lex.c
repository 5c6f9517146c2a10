/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slurmconf_lex.c - a file in Slurm's notation to lines of key=value
 *
 * A line is any number of key=value, apart by blanks. Blanks may stand around '='. A value with
 * blanks stands in double quotes. '#' begins a comment unless a backslash is before it; a backslash
 * at the end of a line joins the next one to it. "Include PATH" stands alone.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "schema/conf/slurmconf.h"

/* The next line with continuations joined and comments cut off; NULL at the end of the file. */
static char *logical_line(struct slurmconf_lexer *lexer, unsigned *first)
{
    struct str text = { 0 };
    char *out;

    if (lexer->p >= lexer->end)
        return NULL;
    *first = lexer->line;
    for (;;) {
        const char *eol = memchr(lexer->p, '\n', (size_t)(lexer->end - lexer->p));
        const char *stop = eol ? eol : lexer->end;
        bool more = false, comment = false;

        for (const char *p = lexer->p; p < stop && !comment; p++) {
            if (*p == '\\' && p + 1 < stop && p[1] == '#')
                str_add_char(&text, *++p);
            else if (*p == '#')
                comment = true;
            else if (*p == '\\' && (p + 1 == stop || (p + 2 == stop && p[1] == '\r')))
                more = true;
            else
                str_add_char(&text, *p ? *p : ' ');
        }
        lexer->p = eol ? eol + 1 : lexer->end;
        lexer->line++;
        if (!more || lexer->p >= lexer->end)
            break;
    }
    out = arena_strdup(lexer->arena, str_text(&text));
    str_done(&text);
    return out;
}

static char *skip_blanks(char *p)
{
    while (isspace((unsigned char)*p))
        p++;
    return p;
}

static int bad(struct err *err, const char *what, const char *at)
{
    return err_set(err, ERR_SYNTAX, "%s at '%.40s'", what, at);
}

/* A word or a quoted text at *p, moved behind it. */
static int read_value(char **p, const char **out, struct err *err)
{
    char *from = *p, *to;

    if (*from == '"') {
        to = strchr(++from, '"');
        if (!to)
            return bad(err, "a quote is not closed", from - 1);
    } else {
        to = from + strcspn(from, " \t\r\v\f");
    }
    *out = from;
    *p = *to ? to + 1 : to;
    *to = '\0';
    if (!str_is_utf8(from))
        return err_set(err, ERR_SYNTAX, "a value is not UTF-8; convert the file (iconv -t UTF-8)");
    return 0;
}

static int read_pair(char **p, struct slurmconf_pair *pair, struct err *err)
{
    char *from = *p, *end, *eq;

    for (end = from; isalnum((unsigned char)*end) || *end == '_';)
        end++;
    eq = skip_blanks(end);
    if (end == from)
        return bad(err, "expected KEY=VALUE", from);
    if (*eq && strchr("+-*/", *eq) && eq[1] == '=')
        return bad(err, "only '=' is understood between a key and its value", from);
    if (*eq != '=')
        return bad(err, "expected '=' after the key", from);
    *p = skip_blanks(eq + 1);
    *end = '\0';
    pair->key = from;
    return read_value(p, &pair->value, err);
}

static bool read_include(char *p, struct slurmconf_line *line, struct err *err)
{
    if (strncasecmp(p, "include", 7) != 0 || !isspace((unsigned char)p[7]))
        return false;
    p = skip_blanks(p + 7);
    return *p && *p != '=' && read_value(&p, &line->include, err) == 0;
}

int slurmconf_next(struct slurmconf_lexer *lexer, struct slurmconf_line *line, struct err *err)
{
    char *p;

    vec_done(&line->pairs);
    line->include = NULL;
    line->at.file = lexer->file;
    while ((p = logical_line(lexer, &line->at.line))) {
        p = skip_blanks(p);
        if (!*p)
            continue;
        if (read_include(p, line, err))
            return 1;
        for (; *p; p = skip_blanks(p)) {
            struct slurmconf_pair pair;

            if (read_pair(&p, &pair, err) < 0)
                return -1;
            vec_push(&line->pairs, pair);
        }
        return 1;
    }
    return 0;
}
