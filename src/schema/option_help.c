// SPDX-License-Identifier: Apache-2.0
/*
 * option_help.c - help, man page and shell completion, written from the rows of a table
 */
#include <ctype.h>
#include <string.h>

#include "schema/option.h"

enum { HELP_COLUMN = 34, HELP_WIDTH = 78 };

static bool listed(const struct option_set *set, const struct option *row)
{
    return option_applies(set, row) && row->help && !row->later;
}

/* "--time=TIME" or "--nice[=N]" */
static void add_form(struct str *out, const struct option *row)
{
    size_t len = row->arg ? strlen(row->arg) : 0;

    str_addf(out, "--%s", row->name);
    if (option_arity(row) == 1)
        str_addf(out, "=%s", row->arg);
    else if (option_arity(row) == 2)
        str_addf(out, "[=%.*s]", (int)(len - 2), row->arg + 1);
}

static void add_wrapped(struct str *out, const char *text, size_t column)
{
    const char *cursor = text;
    struct span word;
    size_t at = column;

    while (str_next(&cursor, " ", &word)) {
        if (at + word.len + 1 > HELP_WIDTH) {
            str_add_char(out, '\n');
            str_add_fill(out, ' ', column);
            at = column;
        } else if (at > column) {
            str_add_char(out, ' ');
            at++;
        }
        str_add_len(out, word.ptr, word.len);
        at += word.len;
    }
    str_add_char(out, '\n');
}

void option_add_usage(const struct option_set *set, struct str *out)
{
    str_addf(out, "Usage: %s %s\n", set->command, set->usage);
}

void option_add_help(const struct option_set *set, struct str *out)
{
    option_add_usage(set, out);
    if (set->about)
        str_addf(out, "%s\n", set->about);
    str_add(out, "\nOptions:\n");
    for (size_t i = 0; i < set->count; i++) {
        const struct option *row = &set->rows[i];
        size_t start = out->len;

        if (!listed(set, row))
            continue;
        str_add(out, "  ");
        if (row->key)
            str_addf(out, "-%c, ", row->key);
        else
            str_add(out, "    ");
        add_form(out, row);
        if (out->len - start >= HELP_COLUMN) {
            str_add_char(out, '\n');
            str_add_fill(out, ' ', HELP_COLUMN);
        } else {
            str_add_fill(out, ' ', HELP_COLUMN - (out->len - start));
        }
        add_wrapped(out, row->help, HELP_COLUMN);
    }
    for (const struct option_section *at = set->sections; at && at->title; at++) {
        str_addf(out, "\n%s\n  ", at->title);
        add_wrapped(out, at->text, 2);
    }
}

/* troff reads a leading dot or apostrophe and every backslash as its own. */
static void add_troff(struct str *out, const char *text)
{
    if (*text == '.' || *text == '\'')
        str_add(out, "\\&");
    for (; *text; text++) {
        if (*text == '\\')
            str_add(out, "\\e");
        else if (*text == '-')
            str_add(out, "\\-");
        else
            str_add_char(out, *text);
    }
}

void option_add_man(const struct option_set *set, struct str *out)
{
    unsigned column = (unsigned)__builtin_ctz(set->bit ? set->bit : 1);

    str_add(out, ".TH ");
    for (const char *c = set->command; *c; c++)
        str_add_char(out, (char)toupper((unsigned char)*c));
    str_addf(out, " 1 \"\" \"Spur %s\"\n.SH NAME\n%s \\- ", SPUR_VERSION, set->command);
    add_troff(out, set->about);
    str_addf(out, "\n.SH SYNOPSIS\n.B %s\n", set->command);
    add_troff(out, set->usage);
    str_add(out, "\n.SH OPTIONS\n");
    for (size_t i = 0; i < set->count; i++) {
        const struct option *row = &set->rows[i];
        struct str form = { 0 };

        if (!listed(set, row))
            continue;
        add_form(&form, row);
        str_add(out, ".TP\n");
        if (row->key)
            str_addf(out, "\\fB\\-%c\\fR, ", row->key);
        str_add(out, "\\fB");
        add_troff(out, str_text(&form));
        str_add(out, "\\fR\n");
        add_troff(out, row->help);
        if (row->env[column])
            str_addf(out, " Variable: %s.", row->env[column]);
        str_add_char(out, '\n');
        str_done(&form);
    }
    for (const struct option_section *at = set->sections; at && at->title; at++) {
        str_addf(out, ".SH %s\n", at->title);
        add_troff(out, at->text);
        str_add_char(out, '\n');
    }
}
