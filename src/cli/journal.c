// SPDX-License-Identifier: Apache-2.0
/*
 * journal.c - `spur journal`: what became of jobs and steps, as accounting will read it
 */
#include "cli/journal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/steps.h"
#include "client/client.h"
#include "schema/job_view.h"
#include "schema/names.h"

struct journal_args {
    const char *from, *upto, *ack;
    bool json, follow, stale, help;
};

#define FLAG(member) OPTION_BOOL(struct journal_args, member)
#define TEXT(member) OPTION_TEXT(struct journal_args, member)

/* clang-format off */
static const struct option rows[] = {
    { .name = "ack", .arg = "INDEX", .read = option_text, .into = TEXT(ack), .help = "Say that everything up to this entry of the log is kept elsewhere: it may go." },
    { .name = "follow", .key = 'f', .read = option_flag, .into = FLAG(follow), .help = "Go on with what is added." },
    { .name = "from", .arg = "INDEX", .read = option_text, .into = TEXT(from), .help = "Begin with this entry of the log." },
    { .name = "help", .key = 'h', .read = option_flag, .into = FLAG(help), .help = "Show this text." },
    { .name = "json", .read = option_flag, .into = FLAG(json), .help = "One JSON object for each entry, on a line of its own." },
    { .name = "stale", .read = option_flag, .into = FLAG(stale), .help = "What the controller that is asked has, whoever leads." },
    { .name = "upto", .arg = "INDEX", .read = option_text, .into = TEXT(upto), .help = "End with this entry of the log." },
};
/* clang-format on */

const struct option_set journal_options = {
    .command = "spur journal",
    .usage = "[--from INDEX] [--upto INDEX] [--json] [-f] | --ack INDEX",
    .about = "Shows what became of jobs and steps, as accounting reads it; for administrators.",
    .bit = 1,
    .usage_exit = 1,
    .rows = rows,
    .count = ARRAY_LEN(rows),
};

static const char *const kinds[] = {
    [JOURNAL_SUBMITTED] = "submitted",
    [JOURNAL_SPLIT] = "split",
    [JOURNAL_STARTED] = "started",
    [JOURNAL_CHANGED] = "changed",
    [JOURNAL_SUSPENDED] = "suspended",
    [JOURNAL_RESUMED] = "resumed",
    [JOURNAL_ENDED] = "ended",
    [JOURNAL_REQUEUED] = "requeued",
    [JOURNAL_STEP] = "step",
    [JOURNAL_TASKS_CANCELLED] = "tasks_cancelled",
    [JOURNAL_NODE] = "node",
    [JOURNAL_CAPACITY] = "capacity",
    [JOURNAL_PAYLOAD] = "payload",
    [JOURNAL_RESERVATION] = "reservation",
    [JOURNAL_STEP_STARTED] = "step_started",
    [JOURNAL_RESERVATION_ENDED] = "reservation_ended",
};

static void add_pair(struct str *out, const char *key, const char *text)
{
    if (str_is_empty(text))
        return;
    str_addf(out, " %s=", key);
    str_add_visible(out, text, strlen(text));
}

static void add_end(struct str *out, JobState state, uint32_t status)
{
    str_addf(out, " state=%s exit=%u:%u", name_of(&job_state_names, state), status >> 8 & 0xff,
             status & 0x7f);
}

static void add_time(struct str *out, const struct field_ctx *ctx, const char *key, int64_t us)
{
    if (us <= 0)
        return;
    str_addf(out, " %s=", key);
    field_add_moment(out, ctx, us);
}

static void add_usage(struct str *out, const Usage *usage)
{
    if (!usage)
        return;
    int64_t cpu_ms = (usage->user_us + usage->system_us) / 1000;
    str_addf(out, " cpu=%" PRId64 ".%03" PRId64, cpu_ms / 1000, cpu_ms % 1000);
    str_addf(out, " rss=%" PRIu64 "K", usage->max_rss_bytes / 1024);
}

static void add_job(struct str *out, const JournalRecord *record, const struct field_ctx *ctx)
{
    const Job *job = record->job;
    const JobStatus *status = job_status(job);
    bool over = record->kind == JOURNAL_ENDED || record->kind == JOURNAL_REQUEUED;

    add_pair(out, "user", job_owner(job)->user);
    add_pair(out, "name", job_spec(job)->name);
    add_pair(out, "account", status->account);
    add_pair(out, "qos", status->qos);
    add_pair(out, "partition", status->partition);
    if (status->has_array_task_id)
        str_addf(out, " array=%u_%u", status->array_job_id, status->array_task_id);
    str_add(out, " tres=");
    job_add_tres(out, job, status->allocation != NULL);
    if (status->allocation) {
        str_add(out, " nodes=");
        job_add_nodes(out, job);
    }
    if (over) {
        add_end(out, record->end_state, status->exit_status);
        add_time(out, ctx, "start", record->start_us);
        add_time(out, ctx, "end", record->end_us);
        add_usage(out, record->usage);
    }
}

static void add_step(struct str *out, const StepPart *part, const struct field_ctx *ctx)
{
    char name[STEPS_NAME_BYTES];

    steps_name(part->id ? part->id->step : 0, name);
    str_addf(out, ".%s", name);
    add_pair(out, "name", part->name);
    add_pair(out, "node", part->node);
    add_pair(out, "nodes", part->nodes);
    str_addf(out, " tasks=%u/%u cpus=%u", part->tasks_here, part->ntasks, part->cpus);
    add_end(out, part->state, part->exit_status);
    add_time(out, ctx, "start", part->started_us);
    add_time(out, ctx, "end", part->ended_us);
    add_usage(out, part->usage);
}

static void add_node(struct str *out, const JournalNode *node)
{
    add_pair(out, "node", node->name);
    str_addf(out, " state=%s flags=%#x", name_of(&node_state_names, (int)node->state), node->flags);
    add_pair(out, "reason", node->reason);
    add_pair(out, "by", node->reason_user);
    add_pair(out, "tres", node->tres);
}

static void add_reservation(struct str *out, const JournalReservation *resv,
                            const struct field_ctx *ctx)
{
    add_pair(out, "name", resv->spec->name);
    add_time(out, ctx, "start", resv->spec->start_us);
    add_time(out, ctx, "end", resv->spec->end_us);
    add_pair(out, "nodes", resv->spec->nodes);
    add_pair(out, "tres", resv->tres);
}

static void add_lines(struct str *out, const JournalEntry *entry, const struct field_ctx *ctx)
{
    if (entry->lost_from)
        str_addf(out, "# %" PRIu64 " to %" PRIu64 " is not here\n", entry->lost_from, entry->index);
    for (size_t i = 0; i < entry->n_records; i++) {
        const JournalRecord *record = entry->records[i];
        const char *kind = record->kind < (int)ARRAY_LEN(kinds) ? kinds[record->kind] : NULL;
        str_addf(out, "%" PRIu64 " ", entry->index);
        field_add_moment(out, ctx, entry->time_us);
        str_addf(out, " %s", kind ? kind : "?");
        if (record->job_id)
            str_addf(out, " job=%u", record->job_id);
        if (record->step)
            add_step(out, record->step, ctx);
        if (record->attempt)
            str_addf(out, " attempt=%u", record->attempt);
        if (record->job)
            add_job(out, record, ctx);
        if (record->node)
            add_node(out, record->node);
        if (record->capacity) {
            add_pair(out, "nodes", record->capacity->nodes);
            add_pair(out, "tres", record->capacity->tres);
        }
        if (record->reservation && record->reservation->spec)
            add_reservation(out, record->reservation, ctx);
        if (record->payload)
            str_addf(out, " script=%zu env=%zu", record->payload->script.len,
                     record->payload->n_env);
        add_pair(out, "text", record->text);
        str_add_char(out, '\n');
    }
}

static int print_entries(struct client_stream *stream, bool json, struct err *err)
{
    struct field_ctx ctx = cli_field_ctx(0);
    CLEANUP(str_done) struct str out = { 0 };

    for (;;) {
        struct arena arena;
        ProtobufCMessage *message;
        arena_init(&arena);
        int next = client_stream_next(stream, &arena, &message, err);
        const ReadJournalReply *reply = (const void *)message;
        for (size_t i = 0; next == CLIENT_MESSAGE && i < reply->n_entries; i++) {
            if (json)
                journal_add_json(&out, &reply->entries[i]->base);
            else
                add_lines(&out, reply->entries[i], &ctx);
        }
        arena_done(&arena);
        if (next < 0 || next == CLIENT_ENDED || !cli_flush(&out))
            return next < 0 ? next : 0;
    }
}

static int read_journal(struct cli *cli, const ReadJournalRequest *request, bool json,
                        struct err *err)
{
    if (cli_connect(cli, err) < 0)
        return -(int)err->code;
    struct client_stream *stream =
        client_stream_open(cli->client,
                           &(struct client_stream_options){
                               .path = "/spur.Controller/ReadJournal",
                               .message = &request->base,
                               .reply_type = &read_journal_reply__descriptor,
                           },
                           err);
    int code = stream ? print_entries(stream, json, err) : -(int)err->code;
    client_stream_free(stream);
    return code;
}

static int ack(struct cli *cli, uint64_t index, struct err *err)
{
    AckJournalRequest request = ACK_JOURNAL_REQUEST__INIT;
    ProtobufCMessage *reply;

    request.has_index = true;
    request.index = index;
    return cli_call(cli, "AckJournal", &request.base, &done_reply__descriptor, &reply, err);
}

static bool read_index(struct cli *cli, const char *option, const char *text, uint64_t *out)
{
    if (!text || str_to_u64(text, UINT64_MAX - 1, out))
        return true;
    cli_error(cli, "--%s: '%s' is no number of an entry", option, text);
    return false;
}

static int run(struct cli *cli, const struct journal_args *args)
{
    ReadJournalRequest request = READ_JOURNAL_REQUEST__INIT;
    uint64_t acked = 0;
    struct err err = { 0 };

    if (!read_index(cli, "from", args->from, &request.from) ||
        !read_index(cli, "upto", args->upto, &request.upto) ||
        !read_index(cli, "ack", args->ack, &acked))
        return 1;
    request.has_from = args->from != NULL;
    request.has_upto = args->upto != NULL;
    request.has_follow = request.has_stale = true;
    request.follow = args->follow;
    request.stale = args->stale;
    int code = args->ack ? ack(cli, acked, &err) : read_journal(cli, &request, args->json, &err);
    if (code < 0)
        cli_error(cli, "%s", err.text);
    return code < 0;
}

int journal_main(int argc, char **argv)
{
    struct option_set set = journal_options;
    struct option_ctx ctx = cli_option_ctx();
    struct journal_args args = { 0 };
    struct err err = { 0 };
    struct cli cli;
    char **operands = NEW_ARRAY(char *, argc + 1);
    int count = 0, code = 1;

    set.command = cli_name(argv);
    cli_init(&cli, set.command);
    if (option_read_argv(&set, &ctx, &args, argc, argv, OPTION_PERMUTE, operands, &count, &err) < 0)
        code = cli_option_error(&set, &err);
    else if (cli_help(&set, args.help, false, false))
        code = 0;
    else if (count)
        cli_error(&cli, "'%s': nothing but options is expected", operands[0]);
    else
        code = run(&cli, &args);
    cli_done(&cli);
    freep(&operands);
    return code;
}
