/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sreport_print.c - titles and columns of `sreport`
 *
 * (1) Without format= the columns are as narrow as Slurm's are then; with it, and where a percentage stands
 *     beside an amount, they have the widths of the table.
 */
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/timefmt.h"
#include "cli/sreport.h"

enum column_id {
    COL_ACCOUNT,
    COL_ALLOCATED,
    COL_ASSOCIATIONS,
    COL_CLUSTER,
    COL_COUNT,
    COL_DOWN,
    COL_END,
    COL_ENERGY,
    COL_FLAGS,
    COL_ID,
    COL_IDLE,
    COL_LOGIN,
    COL_NAME,
    COL_NODES,
    COL_OVER,
    COL_PLANNED,
    COL_PLANNED_DOWN,
    COL_PROPER,
    COL_QOS,
    COL_REPORTED,
    COL_START,
    COL_TOTAL_TIME,
    COL_TRES_NAME,
    COL_TRES_TIME,
    COL_USED,
    COL_WCKEY,
    COL_SIZE, /* number of the group behind it */
    COL_SIZE_TOTAL,
    COL_SIZE_SHARE,
};

enum { IN_CLUSTER = 1, IN_JOB = 2, IN_RESERVATION = 4, IN_USER = 8 };

static const struct column {
    const char *word, *header;
    enum column_id id;
    unsigned reports;
    int width, wide; /* wide: with percentages beside amounts */
    int narrow;      /* without format=; 0: as `width` */
} columns[] = {
    { "Accounts", "Account", COL_ACCOUNT, IN_CLUSTER | IN_USER, 15, 15, 0 },
    { "Account", "Account", COL_ACCOUNT, IN_JOB, 9, 9, 0 },
    { "Allocated", "Allocated", COL_ALLOCATED, IN_CLUSTER, 12, 20, 8 },
    { "Allocated", "Allocated", COL_ALLOCATED, IN_RESERVATION, 20, 29, 0 },
    { "Associations", "Associations", COL_ASSOCIATIONS, IN_RESERVATION, 15, 15, 0 },
    { "Cluster", "Cluster", COL_CLUSTER, IN_CLUSTER | IN_JOB | IN_RESERVATION | IN_USER, 9, 9, 0 },
    { "TresCount", "TRES Count", COL_COUNT, IN_CLUSTER, 10, 10, 0 },
    { "TresCount", "TRES count", COL_COUNT, IN_RESERVATION, 10, 10, 0 },
    { "Down", "Down", COL_DOWN, IN_CLUSTER, 10, 18, 8 },
    { "End", "End", COL_END, IN_RESERVATION, 19, 19, 0 },
    { "Energy", "Energy", COL_ENERGY, IN_CLUSTER | IN_USER, 10, 18, 8 },
    { "Flags", "Flags", COL_FLAGS, IN_RESERVATION, 20, 20, 0 },
    { "Idle", "Idle", COL_IDLE, IN_CLUSTER, 12, 20, 8 },
    { "Idle", "Idle", COL_IDLE, IN_RESERVATION, 20, 29, 0 },
    { "Login", "Login", COL_LOGIN, IN_CLUSTER | IN_USER, 9, 9, 0 },
    { "Name", "Name", COL_NAME, IN_RESERVATION, 9, 9, 0 },
    { "Nodes", "Nodes", COL_NODES, IN_RESERVATION, 15, 15, 0 },
    { "OverCommitted", "Over Comm", COL_OVER, IN_CLUSTER, 9, 18, 0 },
    { "Planned", "Planned", COL_PLANNED, IN_CLUSTER, 9, 18, 8 },
    { "PlannedDown", "PLND Down", COL_PLANNED_DOWN, IN_CLUSTER, 10, 18, 8 },
    { "PLNDDown", "PLND Down", COL_PLANNED_DOWN, IN_CLUSTER, 10, 18, 8 },
    { "Proper", "Proper Name", COL_PROPER, IN_CLUSTER | IN_USER, 15, 15, 0 },
    { "QOS", "QOS", COL_QOS, IN_CLUSTER, 12, 12, 0 },
    { "Reported", "Reported", COL_REPORTED, IN_CLUSTER, 12, 20, 8 },
    { "ReservationId", "Id", COL_ID, IN_RESERVATION, 8, 8, 0 },
    { "Start", "Start", COL_START, IN_RESERVATION, 19, 19, 0 },
    { "TotalTime", "TotalTime", COL_TOTAL_TIME, IN_RESERVATION, 9, 9, 0 },
    { "TresName", "TRES Name", COL_TRES_NAME, IN_CLUSTER | IN_RESERVATION | IN_USER, 14, 14, 0 },
    { "TresTime", "TRES Time", COL_TRES_TIME, IN_RESERVATION, 9, 9, 0 },
    { "Used", "Used", COL_USED, IN_CLUSTER | IN_USER, 10, 18, 8 },
    { "WCKey", "WCKey", COL_WCKEY, IN_CLUSTER, 15, 15, 0 },
    { "Wckey", "Wckey", COL_WCKEY, IN_JOB, 9, 9, 0 },
};

struct shown {
    enum column_id id;
    size_t group;
    const char *header;
    int width;
};
typedef VEC(struct shown) shown_list;

/* ---- which columns ---- */

static unsigned kind_of(enum report_id id)
{
    return id == REPORT_TOP                                         ? IN_USER
           : id == REPORT_RESERVATION                               ? IN_RESERVATION
           : id >= REPORT_SIZES_ACCOUNT && id <= REPORT_SIZES_WCKEY ? IN_JOB
                                                                    : IN_CLUSTER;
}

static const struct column *find_column(unsigned kind, struct span word)
{
    const struct column *found = NULL;

    for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
        if (!(columns[i].reports & kind) || strlen(columns[i].word) < word.len ||
            strncasecmp(columns[i].word, word.ptr, word.len) != 0)
            continue;
        if (strlen(columns[i].word) == word.len)
            return &columns[i];
        if (!found)
            found = &columns[i];
    }
    return found;
}

static const char *default_format(const struct sreport *r)
{
    bool tres = r->tres_text != NULL;

    switch (r->id) {
    case REPORT_ACCOUNT_BY_USER:
        return tres ? "Cluster,Accounts,Login,Proper,TresName,Used"
                    : "Cluster,Accounts,Login,Proper,Used,Energy";
    case REPORT_ACCOUNT_BY_QOS:
        return tres ? "Cluster,Accounts,QOS,TresName,Used" : "Cluster,Accounts,QOS,Used,Energy";
    case REPORT_USER_BY_ACCOUNT:
    case REPORT_TOP:
        return tres ? "Cluster,Login,Proper,Accounts,TresName,Used"
                    : "Cluster,Login,Proper,Accounts,Used,Energy";
    case REPORT_USER_BY_WCKEY:
        return tres ? "Cluster,Login,Proper,WCKey,TresName,Used"
                    : "Cluster,Login,Proper,WCKey,Used";
    case REPORT_WCKEY_BY_USER:
        return tres ? "Cluster,WCKey,Login,Proper,TresName,Used"
                    : "Cluster,WCKey,Login,Proper,Used";
    case REPORT_CLUSTER:
        return tres ? "Cluster,TresName,Allocated,Down,PLNDDown,Idle,Planned,Reported"
                    : "Cluster,Allocated,Down,PLNDDown,Idle,Planned,Reported";
    case REPORT_RESERVATION:
        return "Cluster,Name,Start,End,TresName,Allocated,Idle";
    case REPORT_SIZES_WCKEY:
        return "Cluster,Wckey";
    default:
        return "Cluster,Account";
    }
}

static void add_size_columns(struct sreport *r, shown_list *out)
{
    const char *unit = str_eq(r->tres.items[0], "cpu") ? "CPUs" : "TRES";

    for (size_t i = 0; i < r->groups.len; i++) {
        char *header;
        if (r->individual)
            header = arena_printf(&r->cli.arena, "%" PRId64 " %s", r->groups.items[i], unit);
        else if (i + 1 == r->groups.len)
            header = arena_printf(&r->cli.arena, ">= %" PRId64 " %s", r->groups.items[i], unit);
        else
            header = arena_printf(&r->cli.arena, "%" PRId64 "-%" PRId64 " %s", r->groups.items[i],
                                  r->groups.items[i + 1] - 1, unit);
        vec_push(out, (struct shown){ COL_SIZE, i, header, 13 });
    }
    vec_push(out, (struct shown){ COL_SIZE_TOTAL, 0, "Total Count", 11 });
    vec_push(out, (struct shown){ COL_SIZE_SHARE, 0, "% of cluster", 12 });
}

static bool read_format(struct sreport *r, shown_list *out)
{
    const char *cursor = r->format ? r->format : default_format(r);
    bool wide = r->time >= TIME_SECONDS_PERCENT;
    struct span word;

    while (str_next(&cursor, ",", &word)) {
        const char *percent = memchr(word.ptr, '%', word.len);
        struct span name = { word.ptr, percent ? (size_t)(percent - word.ptr) : word.len };
        const struct column *column = find_column(kind_of(r->id), name);
        if (!column) {
            cli_error(&r->cli, "Unknown field '%.*s'", (int)name.len, name.ptr);
            return false;
        }
        int width = wide                           ? column->wide
                    : column->narrow && !r->format ? column->narrow /* (1) */
                                                   : column->width;
        if (column->id == COL_ACCOUNT && r->tree)
            width = -20;
        if (percent)
            width = atoi(percent + 1);
        vec_push(out, (struct shown){ column->id, 0, column->header, width });
    }
    if (kind_of(r->id) == IN_JOB)
        add_size_columns(r, out);
    return true;
}

/* ---- cells ---- */

static double in_unit(const struct sreport *r, int64_t seconds)
{
    switch (r->time) {
    case TIME_MINUTES:
    case TIME_MINUTES_PERCENT:
        return (double)seconds / 60;
    case TIME_HOURS:
    case TIME_HOURS_PERCENT:
        return (double)seconds / 3600;
    default:
        return (double)seconds;
    }
}

static void add_amount(const struct sreport *r, int64_t amount, int64_t total, struct str *out)
{
    double percent = total > 0 ? 100.0 * (double)amount / (double)total : 0;

    if (r->time == TIME_PERCENT)
        str_addf(out, "%.2f%%", percent);
    else if (r->time >= TIME_SECONDS_PERCENT)
        str_addf(out, "%.0f(%.2f%%)", in_unit(r, amount), percent);
    else
        str_addf(out, "%.0f", in_unit(r, amount));
}

static void add_proper(const char *login, struct str *out)
{
    const struct passwd *user = login ? getpwnam(login) : NULL;

    if (user && user->pw_gecos)
        str_add_len(out, user->pw_gecos, strcspn(user->pw_gecos, ","));
}

static void add_cell(const struct sreport *r, const struct shown *at, const struct report_row *row,
                     struct str *out)
{
    const char *text = NULL;

    switch (at->id) {
    case COL_ACCOUNT:
        if (r->tree)
            str_add_fill(out, ' ', row->depth);
        text = row->account;
        break;
    case COL_CLUSTER:
        text = row->cluster;
        break;
    case COL_LOGIN:
        text = row->login;
        break;
    case COL_PROPER:
        add_proper(row->login, out);
        break;
    case COL_WCKEY:
        text = row->wckey;
        break;
    case COL_QOS:
        text = row->qos;
        break;
    case COL_TRES_NAME:
        text = row->tres;
        break;
    case COL_NAME:
        text = row->name;
        break;
    case COL_NODES:
        text = row->nodes;
        break;
    case COL_FLAGS:
        text = row->flags;
        break;
    case COL_ASSOCIATIONS:
        text = row->associations;
        break;
    case COL_ID:
        str_addf(out, "%u", row->id);
        break;
    case COL_COUNT:
        str_addf(out, "%" PRId64, row->count);
        break;
    case COL_START:
        timefmt_write_point(out, row->start_s, r->now_s, NULL);
        break;
    case COL_END:
        timefmt_write_point(out, row->end_s, r->now_s, NULL);
        break;
    case COL_TOTAL_TIME:
        str_addf(out, "%.0f", in_unit(r, row->end_s - row->start_s));
        break;
    case COL_TRES_TIME:
        str_addf(out, "%.0f", in_unit(r, row->total));
        break;
    case COL_USED:
        add_amount(r, row->used, row->total, out);
        break;
    case COL_ENERGY:
        str_addf(out, "%" PRId64, row->energy);
        break;
    case COL_ALLOCATED:
        add_amount(r, row->alloc, row->total, out);
        break;
    case COL_DOWN:
        add_amount(r, row->down, row->total, out);
        break;
    case COL_PLANNED_DOWN:
        add_amount(r, row->planned_down, row->total, out);
        break;
    case COL_IDLE:
        add_amount(r, row->idle, row->total, out);
        break;
    case COL_PLANNED:
        add_amount(r, row->planned, row->total, out);
        break;
    case COL_OVER:
        add_amount(r, row->over, row->total, out);
        break;
    case COL_REPORTED:
        add_amount(r, row->reported, row->total, out);
        break;
    case COL_SIZE:
    case COL_SIZE_TOTAL: {
        int64_t amount = at->id == COL_SIZE ? row->sizes[at->group] : row->used;
        if (r->job_count)
            str_addf(out, "%" PRId64, amount);
        else
            add_amount(r, amount, row->total, out);
        break;
    }
    case COL_SIZE_SHARE:
        str_addf(out, "%.2f%%", row->total ? 100.0 * (double)row->used / (double)row->total : 0.0);
        break;
    }
    if (text)
        str_add(out, text);
}

/* ---- lines ---- */

static void put(const struct sreport *r, const struct shown *at, const char *text, bool last,
                bool header, struct str *out)
{
    size_t width = (size_t)abs(at->width), len = strlen(text);

    if (r->parsable || r->parsable2) {
        str_addf(out, "%s%s", text, last && !r->parsable ? "" : "|");
        return;
    }
    if (at->width > 0)
        str_add_fill(out, ' ', width - MIN(len, width));
    str_add_len(out, text, MIN(len, width));
    if (len > width && width && !header)
        out->data[out->len - 1] = '+';
    if (at->width < 0)
        str_add_fill(out, ' ', width - MIN(len, width));
    str_add_char(out, ' ');
}

static void put_header(const struct sreport *r, const shown_list *shown, struct str *out)
{
    for (size_t i = 0; i < shown->len; i++)
        put(r, &shown->items[i], shown->items[i].header, i + 1 == shown->len, true, out);
    str_add_char(out, '\n');
    if (r->parsable || r->parsable2)
        return;
    for (size_t i = 0; i < shown->len; i++) {
        str_add_fill(out, '-', (size_t)abs(shown->items[i].width));
        str_add_char(out, ' ');
    }
    str_add_char(out, '\n');
}

static const char *const units[] = {
    [TIME_SECONDS] = "Seconds",
    [TIME_MINUTES] = "Minutes",
    [TIME_HOURS] = "Hours",
    [TIME_PERCENT] = "Percentage of Total",
    [TIME_SECONDS_PERCENT] = "Seconds/Percentage of Total",
    [TIME_MINUTES_PERCENT] = "Minutes/Percentage of Total",
    [TIME_HOURS_PERCENT] = "Hours/Percentage of Total",
};

static void put_title(const struct sreport *r, struct str *out)
{
    static const char *const names[] = {
        [REPORT_ACCOUNT_BY_USER] = "Cluster/Account/User Utilization",
        [REPORT_ACCOUNT_BY_QOS] = "Cluster/Account/QOS Utilization",
        [REPORT_USER_BY_ACCOUNT] = "Cluster/User/Account Utilization",
        [REPORT_USER_BY_WCKEY] = "Cluster/User/WCKey Utilization",
        [REPORT_CLUSTER] = "Cluster Utilization",
        [REPORT_WCKEY_BY_USER] = "Cluster/WCKey/User Utilization",
        [REPORT_SIZES_ACCOUNT] = "Job Sizes",
        [REPORT_SIZES_BOTH] = "Job Sizes by Account and Wckey",
        [REPORT_SIZES_WCKEY] = "Job Sizes by Wckey",
        [REPORT_RESERVATION] = "Reservation Utilization",
    };
    bool plain = r->id == REPORT_CLUSTER || r->id == REPORT_RESERVATION;

    str_add_fill(out, '-', 80);
    str_add_char(out, '\n');
    if (r->id == REPORT_TOP)
        str_addf(out, "Top %u Users ", r->top);
    else
        str_addf(out, "%s ", names[r->id]);
    timefmt_write_point(out, r->start_s, r->now_s, NULL);
    str_add(out, " - ");
    timefmt_write_point(out, r->end_s - 1, r->now_s, NULL);
    if (!plain)
        str_addf(out, " (%" PRId64 " secs)", r->end_s - r->start_s);
    str_add_char(out, '\n');
    if (kind_of(r->id) == IN_JOB && r->job_count)
        str_add(out, "Units are in number of jobs ran\n");
    else if (kind_of(r->id) == IN_JOB)
        str_addf(out, "Time reported in %s\n", units[r->time]);
    else if (r->time == TIME_PERCENT)
        str_addf(out, "Usage reported in %s\n", units[r->time]);
    else
        str_addf(out, "Usage reported in %s %s\n",
                 r->tres_text || r->id == REPORT_RESERVATION ? "TRES" : "CPU", units[r->time]);
    str_add_fill(out, '-', 80);
    str_add_char(out, '\n');
}

int report_print(struct sreport *r)
{
    shown_list shown = { 0 };
    struct str cell = { 0 };
    bool good = read_format(r, &shown);

    if (good && !r->no_header) {
        put_title(r, &r->out);
        put_header(r, &shown, &r->out);
    }
    for (size_t i = 0; good && i < r->rows.len; i++) {
        for (size_t k = 0; k < shown.len; k++) {
            str_clear(&cell);
            add_cell(r, &shown.items[k], &r->rows.items[i], &cell);
            put(r, &shown.items[k], str_text(&cell), k + 1 == shown.len, false, &r->out);
        }
        str_add_char(&r->out, '\n');
    }
    cli_flush(&r->out);
    str_done(&cell);
    vec_done(&shown);
    return good ? 0 : 1;
}
