// SPDX-License-Identifier: Apache-2.0
/*
 * option_help.c - help, man page and shell completion, written from the rows of a table
 */
#include <ctype.h>
#include <stdio.h>
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

/* Headings of help: which options stand under which. What is in none is under the first. */
static const struct {
    const char *title, *names; /* of options, a comma before and behind each */
} groups[] = {
    { "Constraint options:",
      ",cluster-constraint,constraint,contiguous,mincpus,mem,prefer,reservation,tmp,nodelist,exclude,"
      "nodefile,switches,batch," },
    { "Consumable resources related options:",
      ",exclusive,mem-per-cpu,mem-per-gpu,oversubscribe,resv-ports,gres,gres-flags,gpus,gpus-per-node,"
      "gpus-per-socket,gpus-per-task,cpus-per-gpu,tres-per-task,licenses," },
    { "Affinity/Multi-core options:",
      ",extra-node-info,sockets-per-node,cores-per-socket,threads-per-core,ntasks-per-core,"
      "ntasks-per-socket,hint,mem-bind,cpu-bind," },
    { "Help options:", ",help,usage," },
    { "Other options:", ",version," },
};

static size_t group_of(const struct option *row)
{
    char name[64];

    snprintf(name, sizeof(name), ",%s,", row->name);
    for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
        if (strstr(groups[i].names, name))
            return i + 1;
    }
    return 0;
}

/* Slurm writes what a value is in small letters: --begin=time; a single one stays: --nodes=N. */
static void add_value_name(struct str *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        bool lone = !(i && isalpha((unsigned char)text[i - 1])) &&
                    !(i + 1 < len && isalpha((unsigned char)text[i + 1]));

        str_add_char(out, lone ? text[i] : (char)tolower((unsigned char)text[i]));
    }
}

/* The same as add_form() in Slurm's manner. */
static void add_slurm_form(struct str *out, const struct option *row)
{
    size_t len = row->arg ? strlen(row->arg) : 0;

    str_addf(out, "--%s", row->name);
    if (option_arity(row) == 1) {
        str_add_char(out, '=');
        add_value_name(out, row->arg, len);
    } else if (option_arity(row) == 2) {
        str_add(out, "[=");
        add_value_name(out, row->arg + 1, len - 2);
        str_add_char(out, ']');
    }
}

void option_add_usage(const struct option_set *set, struct str *out)
{
    if (!set->operands) {
        str_addf(out, "Usage: %s %s\n", set->command, set->usage);
        return;
    }
    str_addf(out, "Usage: %s", set->command);
    for (size_t i = 0; i < set->count; i++) {
        const struct option *row = &set->rows[i];

        if (!listed(set, row) || group_of(row) == ARRAY_LEN(groups) - 1)
            continue;
        str_add(out, " [");
        if (row->key && option_arity(row) != 2) {
            str_addf(out, "-%c", row->key);
            if (row->arg) {
                str_add_char(out, ' ');
                add_value_name(out, row->arg, strlen(row->arg));
            }
        } else {
            add_slurm_form(out, row);
        }
        str_add_char(out, ']');
    }
    str_addf(out, "%s%s\n", *set->operands ? " " : "", set->operands);
}

static void add_option(const struct option *row, bool slurm, struct str *out)
{
    size_t start = out->len;

    str_add(out, "  ");
    if (row->key)
        str_addf(out, "-%c, ", row->key);
    else
        str_add(out, "    ");
    if (slurm)
        add_slurm_form(out, row);
    else
        add_form(out, row);
    if (out->len - start >= HELP_COLUMN) {
        str_add_char(out, '\n');
        str_add_fill(out, ' ', HELP_COLUMN);
    } else {
        str_add_fill(out, ' ', HELP_COLUMN - (out->len - start));
    }
    add_wrapped(out, row->help, HELP_COLUMN);
}

static void add_group(const struct option_set *set, size_t group, const char *title,
                      struct str *out)
{
    bool any = false;

    for (size_t i = 0; i < set->count; i++) {
        if (!listed(set, &set->rows[i]) || set->rows[i].heading || group_of(&set->rows[i]) != group)
            continue;
        if (!any)
            str_addf(out, "\n%s\n", title);
        any = true;
        add_option(&set->rows[i], true, out);
    }
}

/* Options that have a heading of their own: those of plugins. */
static void add_headed(const struct option_set *set, struct str *out)
{
    const char *last = NULL;

    for (size_t i = 0; i < set->count; i++) {
        if (!listed(set, &set->rows[i]) || !set->rows[i].heading)
            continue;
        if (!str_eq(set->rows[i].heading, last))
            str_addf(out, "\n%s\n", set->rows[i].heading);
        last = set->rows[i].heading;
        add_option(&set->rows[i], false, out);
    }
}

void option_add_help(const struct option_set *set, struct str *out)
{
    if (set->operands && str_starts(set->operands, "[<OPTION>]") &&
        !str_starts(set->command, "spur "))
        str_addf(out, "%s %s\n", set->command, set->operands);
    else if (set->operands)
        str_addf(out, "Usage: %s [OPTIONS]%s%s\n", set->command, *set->operands ? " " : "",
                 str_starts(set->operands, "[<OPTION>] ") ? set->operands + 11 : set->operands);
    else
        option_add_usage(set, out);
    if (set->about)
        str_addf(out, "%s\n", set->about);
    if (set->operands) {
        add_group(set, 0, set->first_heading ? set->first_heading : "Options:", out);
        for (size_t i = 0; i < ARRAY_LEN(groups); i++)
            add_group(set, i + 1, groups[i].title, out);
        add_headed(set, out);
    } else {
        str_add(out, "\nOptions:\n");
        for (size_t i = 0; i < set->count; i++) {
            if (listed(set, &set->rows[i]))
                add_option(&set->rows[i], false, out);
        }
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
