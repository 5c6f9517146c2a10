/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage.c - `spur usage`: what I and my accounts used, what it cost, and what is left of limits
 *
 * Use of the past comes from spurdbd, limits and what they count now from the controller.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/map.h"
#include "base/timefmt.h"
#include "base/vec.h"
#include "cli/accounting.h"
#include "cli/commands.h"
#include "cli/rates.h"
#include "client/client.h"
#include "proto/acct.pb-c.h"
#include "proto/controller.pb-c.h"
#include "proto/usage.pb-c.h"
#include "schema/job_view.h"
#include "sys/clock.h"
#include "sys/users.h"

struct usage_args {
    const char *since, *user;
    bool help;
};

#define TEXT(member) OPTION_TEXT(struct usage_args, member)
/* clang-format off */
static const struct option rows[] = {
    { .name = "help", .key = 'h', .read = option_flag, .into = OPTION_BOOL(struct usage_args, help), .help = "Show this text." },
    { .name = "since", .key = 'S', .arg = "TIME", .read = option_text, .into = TEXT(since), .help = "From this time on: 3days, 12hours, or a date; default: the first of this month." },
    { .name = "user", .key = 'u', .arg = "USER", .read = option_text, .into = TEXT(user), .help = "Of another user, as far as PrivateData shows it." },
};
/* clang-format on */

const struct option_set usage_options = {
    .command = "spur usage",
    .usage = "[OPTIONS]",
    .about =
        "Shows what you and your accounts used and what it cost (accounting.rates), and of each "
        "limit how much is left and when it frees.",
    .bit = 1,
    .usage_exit = 1,
    .rows = rows,
    .count = ARRAY_LEN(rows),
};

struct bill {
    char *who; /* "alice in physics", "account physics" */
    VEC(struct rates_line) lines;
};

struct usage {
    struct cli cli;
    const struct usage_args *args;
    const char *user;
    int64_t now_s, since_s;
    const char *rates;
    const UsageReply *reply;
    const ListSharesReply *shares;
    VEC(struct bill) bills;
    struct str out;
};

/* ---- asking ---- */

static int64_t first_of_month(int64_t now_s)
{
    time_t at = (time_t)now_s;
    struct tm tm;

    localtime_r(&at, &tm);
    tm.tm_mday = 1;
    tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
    tm.tm_isdst = -1;
    return mktime(&tm);
}

/* "3days" is so long ago; everything else is a moment. */
static bool read_since(struct usage *u)
{
    struct err err = { 0 };
    const char *text = u->args->since;

    if (!text) {
        u->since_s = MIN(first_of_month(u->now_s), u->now_s - 1);
        return true;
    }
    char *past = arena_printf(&u->cli.arena, "now-%s", text);
    if ((timefmt_read_point(past, u->now_s, TIMEFMT_PAST, &u->since_s, &err) < 0 &&
         timefmt_read_point(text, u->now_s, TIMEFMT_PAST, &u->since_s, &err) < 0)) {
        cli_error(&u->cli, "'%s' is neither a time nor how long ago: %s", text, err.text);
        return false;
    }
    if (u->since_s >= u->now_s) {
        cli_error(&u->cli, "'%s' is not in the past", text);
        return false;
    }
    return true;
}

static int ask_past(struct usage *u, struct err *err)
{
    UsageRequest request = USAGE_REQUEST__INIT;
    int64_t edges[] = { u->since_s, u->now_s };
    ProtobufCMessage *message = NULL;
    struct client *client = accounting_connect(&u->cli, err);

    if (!client)
        return -(int)err->code;
    request.edges_s = edges;
    request.n_edges_s = 2;
    int code = client_call(client, "/spur.Reports/Sum", &request.base, &usage_reply__descriptor,
                           &u->cli.arena, &message, err);
    client_free(client);
    u->reply = (const void *)message;
    return code;
}

static int ask_controller(struct usage *u, struct err *err)
{
    ListSharesRequest shares = LIST_SHARES_REQUEST__INIT;
    GetConfigRequest config = GET_CONFIG_REQUEST__INIT;
    ProtobufCMessage *message = NULL;

    if (cli_call(&u->cli, "GetConfig", &config.base, &get_config_reply__descriptor, &message, err) <
        0)
        return -(int)err->code;
    const GetConfigReply *reply = (const void *)message;
    u->rates = reply->local ? reply->local->accounting_rates : NULL;
    shares.has_limits = shares.limits = true;
    if (client_call(u->cli.client, "/spur.Shares/List", &shares.base,
                    &list_shares_reply__descriptor, &u->cli.arena, &message, err) < 0)
        return -(int)err->code;
    u->shares = (const void *)message;
    return 0;
}

/* ---- what was used ---- */

static void charge(struct usage *u, char *who, const char *tres, int64_t amount)
{
    struct bill *bill = NULL;

    for (size_t i = 0; i < u->bills.len && !bill; i++)
        bill = str_eq(u->bills.items[i].who, who) ? &u->bills.items[i] : NULL;
    if (!bill) {
        vec_push(&u->bills, (struct bill){ .who = who });
        bill = &u->bills.items[u->bills.len - 1];
    }
    for (size_t i = 0; i < bill->lines.len; i++) {
        if (str_eq(bill->lines.items[i].tres, tres)) {
            bill->lines.items[i].amount += amount;
            return;
        }
    }
    vec_push(&bill->lines, (struct rates_line){ tres, amount });
}

static bool is_mine(const struct usage *u, const char *account)
{
    for (size_t i = 0; i < u->shares->n_rows; i++) {
        const ShareRow *row = u->shares->rows[i];
        if (str_eq(row->user, u->user) && str_eq(row->account, account))
            return true;
    }
    return false;
}

/* First the user's own, then the accounts that the user is in, with everybody's use. */
static void make_bills(struct usage *u)
{
    const UsageReply *reply = u->reply;
    struct arena *arena = &u->cli.arena;

    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < reply->n_row_who; i++) {
            const UsageWho *who = reply->who[reply->row_who[i]];
            const char *tres = reply->tres[reply->row_tres[i]];
            if (round == 0 && str_eq(who->user, u->user))
                charge(u,
                       str_is_empty(who->account)
                           ? arena_strdup(arena, who->user)
                           : arena_printf(arena, "%s in %s", who->user, who->account),
                       tres, reply->row_amount[i]);
            if (round == 1 && !reply->hidden && is_mine(u, who->account))
                charge(u, arena_printf(arena, "account %s", who->account), tres,
                       reply->row_amount[i]);
        }
    }
}

static int64_t amount_of(const struct bill *bill, const char *tres)
{
    for (size_t i = 0; i < bill->lines.len; i++) {
        if (str_eq(bill->lines.items[i].tres, tres))
            return bill->lines.items[i].amount;
    }
    return 0;
}

static void add_bills(struct usage *u)
{
    size_t width = 3;

    for (size_t i = 0; i < u->bills.len; i++)
        width = MAX(width, strlen(u->bills.items[i].who));
    str_addf(&u->out, "%-*s  %12s  %12s", (int)width, "WHO", "CPU-HOURS", "GPU-HOURS");
    str_add(&u->out, u->rates ? "          COST\n" : "\n");
    for (size_t i = 0; i < u->bills.len; i++) {
        const struct bill *bill = &u->bills.items[i];
        str_addf(&u->out, "%-*s  %12.2f  %12.2f", (int)width, bill->who,
                 (double)amount_of(bill, "cpu") / 3600, (double)amount_of(bill, "gres/gpu") / 3600);
        if (u->rates)
            str_addf(&u->out, "  %12.2f", rates_cost(u->rates, bill->lines.items, bill->lines.len));
        str_add_char(&u->out, '\n');
    }
    if (!u->bills.len)
        str_add(&u->out, "nothing\n");
    if (u->reply->hidden)
        str_add(&u->out, "What others of your accounts used is private here (PrivateData).\n");
}

/* ---- what is left ---- */

/* Is the account, or somebody in it, below `above`? */
static bool is_below(const struct usage *u, const char *account, const char *above)
{
    while (!str_is_empty(account)) {
        const char *next = NULL;
        if (str_eq(account, above))
            return true;
        for (size_t i = 0; i < u->shares->n_rows && !next; i++) {
            const ShareRow *row = u->shares->rows[i];
            if (!*row->user && str_eq(row->account, account))
                next = row->parent;
        }
        account = next;
    }
    return false;
}

struct next_end {
    const struct usage *u;
    const ShareRow *row;
    int64_t end_us;
    uint32_t job;
};

static void take_job(struct next_end *next, const Job *job)
{
    const JobStatus *status = job_status(job);
    int64_t limit_s = job_limit_s(job);
    int64_t end_us = status->start_us + limit_s * 1000000;

    if (*next->row->user ? !str_eq(job_owner(job)->user, next->row->user) ||
                               !str_eq(status->account, next->row->account)
                         : !is_below(next->u, status->account, next->row->account))
        return;
    if (limit_s > 0 && (!next->end_us || end_us < next->end_us)) {
        next->end_us = end_us;
        next->job = job->id;
    }
}

/* When the first running job that the row counts must end. */
static int find_next_end(struct usage *u, struct next_end *next, struct err *err)
{
    ListJobsRequest request = LIST_JOBS_REQUEST__INIT;
    JobState running = JOB_RUNNING;
    struct client_stream_options options = { .path = "/spur.Controller/ListJobs",
                                             .message = &request.base,
                                             .reply_type = &list_jobs_reply__descriptor };
    ProtobufCMessage *message;
    struct arena arena;
    int got = CLIENT_ENDED;

    request.states = &running;
    request.n_states = 1;
    arena_init(&arena);
    struct client_stream *stream = client_stream_open(u->cli.client, &options, err);
    while (stream && (got = client_stream_next(stream, &arena, &message, err)) == CLIENT_MESSAGE) {
        const ListJobsReply *reply = (const void *)message;
        for (size_t i = 0; i < reply->n_jobs; i++)
            take_job(next, reply->jobs[i]);
        arena_reset(&arena);
    }
    client_stream_free(stream);
    arena_done(&arena);
    return stream && got == CLIENT_ENDED ? 0 : -(int)err->code;
}

static void add_when(struct usage *u, int64_t us)
{
    timefmt_write_point(&u->out, us / 1000000, u->now_s, NULL);
    if (us / 1000000 > u->now_s) {
        str_add(&u->out, " (in ");
        timefmt_write_duration(&u->out, us / 1000000 - u->now_s, TIMEFMT_SHORT);
        str_add_char(&u->out, ')');
    }
}

static int add_limit(struct usage *u, const ShareRow *row, const ShareLimit *limit, struct err *err)
{
    struct next_end next = { .u = u, .row = row };
    uint64_t left = limit->most > limit->used ? limit->most - limit->used : 0;

    if (*row->user)
        str_addf(&u->out, "%s in %s: ", row->user, row->account);
    else
        str_addf(&u->out, "account %s: ", row->account);
    str_addf(&u->out, "%s%s%s: %" PRIu64 " of %" PRIu64 "%s, %" PRIu64 " left", limit->name,
             limit->tres ? " " : "", limit->tres ? limit->tres : "", limit->used, limit->most,
             limit->past ? " minutes used" : " in use", left);
    if (limit->past && limit->has_frees_us) {
        str_add(&u->out, "; it has decayed below the limit at ");
        add_when(u, limit->frees_us);
    } else if (limit->past && !left) {
        str_add(&u->out, "; use does not decay here");
    } else if (!limit->past && limit->used) {
        if (find_next_end(u, &next, err) < 0)
            return -(int)err->code;
        if (next.end_us) {
            str_addf(&u->out, "; job %u frees some by ", next.job);
            add_when(u, next.end_us);
        }
    }
    str_add_char(&u->out, '\n');
    return 0;
}

static int add_limits(struct usage *u, struct err *err)
{
    bool any = false;

    for (size_t i = 0; i < u->shares->n_rows; i++) {
        const ShareRow *row = u->shares->rows[i];
        bool mine = str_eq(row->user, u->user);
        for (size_t k = 0; k < u->shares->n_rows && !mine && !*row->user; k++)
            mine = str_eq(u->shares->rows[k]->user, u->user) &&
                   is_below(u, u->shares->rows[k]->account, row->account);
        for (size_t k = 0; k < row->n_limits && mine; k++) {
            if (!any)
                str_add(&u->out, "\nLIMITS\n");
            any = true;
            if (add_limit(u, row, row->limits[k], err) < 0)
                return -(int)err->code;
        }
    }
    if (!any)
        str_add(&u->out, "\nNo limits on what runs at a time or was used.\n");
    return 0;
}

/* ---- the command ---- */

static int run(struct usage *u)
{
    struct user *me = NULL;
    struct err err = { 0 };
    int code = 1;

    u->now_s = clock_wall_us() / 1000000;
    u->user = u->args->user;
    if (!u->user && users_by_uid(geteuid(), &me, &err) == 0)
        u->user = me->name;
    if (!u->user)
        u->user = arena_printf(&u->cli.arena, "%u", (unsigned)geteuid());
    if (!read_since(u)) {
        code = 1;
    } else if (ask_controller(u, &err) < 0) {
        code = cli_load_error(&u->cli, "spur usage: error:", &err);
    } else if (ask_past(u, &err) < 0) {
        code = accounting_error(&u->cli, &err);
    } else {
        str_add(&u->out, "Use since ");
        timefmt_write_point(&u->out, u->since_s, u->now_s, NULL);
        str_add_char(&u->out, '\n');
        make_bills(u);
        add_bills(u);
        code = add_limits(u, &err) < 0 ? cli_load_error(&u->cli, "spur usage: error:", &err) : 0;
        cli_flush(&u->out);
    }
    user_free(me);
    return code;
}

int usage_main(int argc, char **argv)
{
    struct option_set set = usage_options;
    struct option_ctx ctx = cli_option_ctx();
    struct usage_args args = { 0 };
    struct usage u = { .args = &args };
    struct err err = { 0 };
    char **operands = NEW_ARRAY(char *, argc + 1);
    int count = 0, code = 0;

    set.command = cli_name(argv);
    cli_init(&u.cli, set.command);
    if (option_read_argv(&set, &ctx, &args, argc, argv, OPTION_PERMUTE, operands, &count, &err) <
        0) {
        code = cli_option_error(&set, &err);
    } else if (count) {
        cli_error(&u.cli, "'%s' is not an option; -u names a user", operands[0]);
        code = 1;
    } else if (!cli_help(&set, args.help, false, false)) {
        code = run(&u);
    }
    for (size_t i = 0; i < u.bills.len; i++)
        vec_done(&u.bills.items[i].lines);
    vec_done(&u.bills);
    str_done(&u.out);
    cli_done(&u.cli);
    free(operands);
    return code;
}
