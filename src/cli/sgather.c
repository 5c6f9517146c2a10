// SPDX-License-Identifier: Apache-2.0
/*
 * sgather.c - fetches a file from every node of a job to DEST.NODE here
 *
 * Nodes are read some at a time. A file appears here whole or not at all; the nodes' own are removed
 * afterwards, unless they are to be kept, each only when it has arrived.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/lz.h"
#include "cli/commands.h"
#include "cli/copy.h"
#include "cli/sgather.h"
#include "cli/steps.h"
#include "client/client.h"
#include "sys/clock.h"
#include "sys/files.h"

enum { USUAL_FANOUT = 8, USUAL_TIMEOUT_S = 60, SECOND_NS = 1000000000, POLL_MS = 200 };

struct sgather_args {
    bool compress, force, keep, preserve, recursive, help, usage, version;
    const char *jobid, *nodes;
    uint32_t fanout, timeout, verbose;
};

#define FLAG(member)   OPTION_BOOL(struct sgather_args, member)
#define TEXT(member)   OPTION_TEXT(struct sgather_args, member)
#define NUMBER(member) OPTION_U32(struct sgather_args, member)

/* clang-format off */
static const struct option rows[] = {
    { .name = "compress", .key = 'C', .env = { "SGATHER_COMPRESS" }, .read = option_flag, .into = FLAG(compress), .help = "Compress what is sent." },
    { .name = "fanout", .key = 'F', .arg = "NUMBER", .env = { "SGATHER_FANOUT" }, .read = option_positive, .into = NUMBER(fanout), .help = "How many nodes are read at a time, at most 64; 8 unless given." },
    { .name = "force", .key = 'f', .env = { "SGATHER_FORCE" }, .read = option_flag, .into = FLAG(force), .help = "A node without the file is no error." },
    { .name = "help", .key = 'h', .read = option_flag, .into = FLAG(help), .help = "Show this text." },
    { .name = "jobid", .key = 'j', .arg = "JOB", .read = option_text, .into = TEXT(jobid), .help = "From the nodes of this job; that of the environment unless given." },
    { .name = "keep", .key = 'k', .env = { "SGATHER_KEEP" }, .read = option_flag, .into = FLAG(keep), .help = "Leave the files on the nodes, where they are removed otherwise." },
    { .name = "nodelist", .key = 'w', .arg = "NODES", .read = option_text, .into = TEXT(nodes), .help = "From these nodes of the job only." },
    { .name = "preserve", .key = 'p', .env = { "SGATHER_PRESERVE" }, .read = option_flag, .into = FLAG(preserve), .help = "Keep the times and the whole mode of the files." },
    { .name = "recursive", .key = 'r', .env = { "SGATHER_RECURSIVE" }, .read = option_flag, .into = FLAG(recursive), .help = "Fetch a directory with all that is in it; links stay links." },
    { .name = "timeout", .key = 't', .arg = "SECONDS", .env = { "SGATHER_TIMEOUT" }, .read = option_positive, .into = NUMBER(timeout), .help = "Give up when a node says nothing for so long; 60 unless given." },
    { .name = "usage", .read = option_flag, .into = FLAG(usage), .help = "Show a short summary of options." },
    { .name = "verbose", .key = 'v', .read = option_increase, .into = NUMBER(verbose), .help = "Say what is done." },
    { .name = "version", .key = 'V', .read = option_flag, .into = FLAG(version), .help = "Show the version." },
};
/* clang-format on */

const struct option_set sgather_options = {
    .command = "sgather",
    .usage = "[OPTIONS...] SOURCE DEST",
    .operands = "SOURCE DEST",
    .about = "Fetches a file from every node of a job, each to DEST.NODE here. %N in SOURCE is the "
             "name of each node.",
    .bit = 1,
    .usage_exit = 1,
    .rows = rows,
    .count = ARRAY_LEN(rows),
};

/* One node. */
struct source {
    const CopyHop *hop;
    struct client *client;
    struct client_stream *stream;
    char *path, *temp; /* in the arena */
    int fd;
    struct tree tree;
    bool is_tree;
    bool over, failed, got;
    uint32_t mode;
    int64_t atime_ns, mtime_ns, moved_us;
};

struct gather {
    struct cli cli;
    struct sgather_args args;
    struct copy_job copy;
    CopyPlanReply *plan;
    struct source *sources;
    size_t count;
};

static void end_source(struct gather *gather, struct source *source, const struct err *err)
{
    source->over = true;
    client_stream_free(TAKE(source->stream));
    client_free(TAKE(source->client));
    file_close(&source->fd);
    if (err && source->is_tree)
        tree_drop(&source->tree);
    else if (err && source->temp)
        unlink(source->temp);
    tree_done(&source->tree);
    if (!err) {
        source->got = true;
    } else if (!(gather->args.force && err->code == ERR_NOT_FOUND)) {
        cli_error(&gather->cli, "%s: %s", source->hop->node, err->text);
        source->failed = true;
    }
}

/* Part of a directory: an entry, or more of the last. */
static int save_tree(struct source *source, const CopyPart *part, struct err *err)
{
    CLEANUP(str_done) struct str raw = { 0 };
    const void *bytes = part->data.data;
    size_t len = part->data.len;

    if (source->fd >= 0) /* it began as a file */
        return err_code(err, ERR_BAD_MESSAGE);
    source->is_tree = true;
    if (part->has_raw_bytes) {
        if (part->raw_bytes > LIMIT_COPY_BLOCK || !lz_expand(bytes, len, part->raw_bytes, &raw))
            return err_set(err, ERR_BAD_MESSAGE, "a part cannot be expanded");
        bytes = raw.data;
        len = raw.len;
    }
    return part->name ? tree_begin(&source->tree, part, bytes, len, err)
                      : tree_write(&source->tree, bytes, len, err);
}

static int save(struct source *source, const CopyPart *part, struct err *err)
{
    CLEANUP(str_done) struct str raw = { 0 };

    if (part->name || source->is_tree)
        return save_tree(source, part, err);
    if (part->has_mode) {
        source->mode = part->mode;
        source->atime_ns = part->atime_ns;
        source->mtime_ns = part->mtime_ns;
    }
    if (source->fd < 0) {
        source->fd = open(source->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (source->fd < 0)
            return err_errno(err, errno, "%s", source->temp);
    }
    if (!part->has_raw_bytes)
        return file_write_all(source->fd, part->data.data, part->data.len, err);
    if (part->raw_bytes > LIMIT_COPY_BLOCK ||
        !lz_expand(part->data.data, part->data.len, part->raw_bytes, &raw))
        return err_set(err, ERR_BAD_MESSAGE, "a part cannot be expanded");
    return file_write_all(source->fd, raw.data, raw.len, err);
}

static struct timespec moment(int64_t ns)
{
    int64_t seconds = ns / SECOND_NS, rest = ns % SECOND_NS;

    return (struct timespec){ .tv_sec = seconds - (rest < 0),
                              .tv_nsec = rest < 0 ? rest + SECOND_NS : rest };
}

static int complete_tree(struct source *source, struct err *err)
{
    if (tree_end(&source->tree, err) < 0)
        return -(int)err->code;
    return rename(source->temp, source->path) < 0 ? err_errno(err, errno, "%s", source->path) : 0;
}

static int complete(const struct gather *gather, struct source *source, struct err *err)
{
    const struct timespec times[2] = { moment(source->atime_ns), moment(source->mtime_ns) };
    mode_t mask = umask(0);

    umask(mask);
    if (fchmod(source->fd, gather->args.preserve ? source->mode : source->mode & 0777 & ~mask) <
            0 ||
        (gather->args.preserve && futimens(source->fd, times) < 0) ||
        rename(source->temp, source->path) < 0)
        return err_errno(err, errno, "%s", source->path);
    return 0;
}

/* True: something came. */
static bool serve(struct gather *gather, struct source *source, struct arena *arena)
{
    ProtobufCMessage *message;
    struct err err = { 0 }, lost = { 0 };
    bool any = false;

    client_pump(source->client, &lost); /* the stream says so too */
    while (!source->over) {
        arena_reset(arena);
        err_clear(&err);
        int next = client_stream_try(source->stream, arena, &message, &err);
        if (next == CLIENT_AGAIN)
            break;
        any = true;
        if (next == CLIENT_ENDED)
            err_code(&err, ERR_CONNECTION_LOST);
        if (next == CLIENT_MESSAGE) {
            const CopyPart *part = (const void *)message;
            source->moved_us = clock_boot_us();
            if (save(source, part, &err) == 0 && part->ended &&
                (source->is_tree ? complete_tree(source, &err) : complete(gather, source, &err)) ==
                    0)
                end_source(gather, source, NULL);
        }
        if (err.code)
            end_source(gather, source, &err);
    }
    return any;
}

/* Carries out the plan's order on one node. */
static int open_node(const CopyPlanReply *plan, const CopyHop *hop, struct client **client,
                     struct client_stream **stream, struct err *err)
{
    CopyReadRequest request = COPY_READ_REQUEST__INIT;

    request.has_order = request.has_proof = true;
    request.order = plan->order;
    request.proof = hop->proof;
    *client = client_new(
        &(struct client_options){ .addresses = hop->address, .token = "", .default_port = 6818 },
        err);
    if (*client)
        *stream = client_stream_open(
            *client,
            &(struct client_stream_options){ .path = "/spur.NodeAccess/CopyRead",
                                             .message = &request.base,
                                             .reply_type = &copy_part__descriptor },
            err);
    return *stream ? 0 : -1;
}

static void begin(struct gather *gather, struct source *source)
{
    struct err err = { 0 };

    source->moved_us = clock_boot_us();
    if (open_node(gather->plan, source->hop, &source->client, &source->stream, &err) < 0)
        end_source(gather, source, &err);
}

static void check_late(struct gather *gather, struct source *source)
{
    uint32_t timeout_s = gather->args.timeout ? gather->args.timeout : USUAL_TIMEOUT_S;
    struct err err = { 0 };

    if (source->over || clock_boot_us() - source->moved_us <= (int64_t)timeout_s * 1000000)
        return;
    err_code(&err, ERR_DEADLINE);
    end_source(gather, source, &err);
}

static void fetch_all(struct gather *gather)
{
    size_t fanout = gather->args.fanout ? gather->args.fanout : USUAL_FANOUT, next = 0, open = 1;
    struct pollfd fds[COPY_FANOUT_MOST];
    struct arena arena;

    arena_init(&arena);
    while (open || next < gather->count) {
        open = 0;
        for (size_t i = 0; i < next; i++) {
            struct source *source = &gather->sources[i];
            if (source->over)
                continue;
            while (!source->over && serve(gather, source, &arena))
                ;
            check_late(gather, source);
            if (!source->over)
                fds[open++] = (struct pollfd){ .fd = client_fd(source->client),
                                               .events = client_events(source->client) };
        }
        if (open < fanout && next < gather->count) {
            begin(gather, &gather->sources[next++]);
            open++; /* it is looked at once more, also when it has failed */
        } else if (open) {
            poll(fds, open, POLL_MS);
        }
    }
    arena_done(&arena);
}

/* ---- the nodes' own files ---- */

static int remove_one(struct gather *gather, const CopyPlanReply *plan, const CopyHop *hop,
                      struct err *err)
{
    ProtobufCMessage *message;
    struct client *client = NULL;
    struct client_stream *stream = NULL;
    int ret = open_node(plan, hop, &client, &stream, err);

    if (ret == 0)
        ret = client_stream_next(stream, &gather->cli.arena, &message, err);
    client_stream_free(stream);
    client_free(client);
    return MIN(ret, 0);
}

static bool remove_sources(struct gather *gather, CopyOrder *order)
{
    CopyPlanReply *plan;
    struct err err = { 0 };
    bool good = true;

    order->kind = COPY_REMOVE;
    if (copy_plan(&gather->copy, order, &plan, &err) < 0) {
        cli_error(&gather->cli, "%s", err.text);
        return false;
    }
    for (size_t i = 0; i < gather->count && i < plan->n_hops; i++) {
        err_clear(&err);
        if (!gather->sources[i].got || remove_one(gather, plan, plan->hops[i], &err) == 0)
            continue;
        cli_error(&gather->cli, "%s", err.text);
        good = false;
    }
    return good;
}

/* ---- the command ---- */

static char *full_name(struct cli *cli, const char *name)
{
    char cwd[LIMIT_PATH_BYTES];

    return name[0] == '/'
               ? arena_strdup(&cli->arena, name)
               : arena_printf(&cli->arena, "%s/%s", getcwd(cwd, sizeof(cwd)) ? cwd : "", name);
}

static int find_job(struct gather *gather, struct err *err)
{
    const char *id = gather->args.jobid ? gather->args.jobid : getenv("SLURM_JOB_ID");
    uint32_t job, step;
    bool has_step;

    if (str_is_empty(id))
        return err_set(err, ERR_INVALID,
                       "Need a job id to run this command.  Run from within a Slurm job or use the "
                       "--jobid option.");
    if (!steps_read_id(id, &job, &has_step, &step) || has_step)
        return err_code(err, ERR_INVALID_JOB_ID);
    gather->copy =
        (struct copy_job){ .cli = &gather->cli, .job = job, .nodes = gather->args.nodes };
    if (gather->args.fanout > COPY_FANOUT_MOST)
        return err_set(err, ERR_RANGE, "Invalid fanout %u: at most %d", gather->args.fanout,
                       COPY_FANOUT_MOST);
    return copy_find(&gather->copy, err);
}

static int run(struct gather *gather, const char *from, const char *to)
{
    CopyOrder order = COPY_ORDER__INIT;
    struct err err = { 0 };
    bool good = true;

    order.has_kind = true;
    order.kind = COPY_READ;
    order.path = full_name(&gather->cli, from);
    order.has_compress = order.compress = gather->args.compress;
    order.has_recursive = order.recursive = gather->args.recursive;
    if (find_job(gather, &err) < 0 || copy_plan(&gather->copy, &order, &gather->plan, &err) < 0) {
        cli_error(&gather->cli, "%s", err.text);
        return 1;
    }
    gather->count = gather->plan->n_hops;
    gather->sources = ARENA_ARRAY(&gather->cli.arena, struct source, gather->count);
    for (size_t i = 0; i < gather->count; i++) {
        struct source *source = &gather->sources[i];
        source->hop = gather->plan->hops[i];
        source->fd = -1;
        source->tree = (struct tree){ .fd = -1, .file = -1, .preserve = gather->args.preserve };
        source->path = arena_printf(&gather->cli.arena, "%s.%s", to, source->hop->node);
        source->temp = arena_printf(&gather->cli.arena, "%s.%d.part", source->path, (int)getpid());
        source->tree.root = source->temp;
        if (gather->args.verbose)
            cli_say(&gather->cli, "%s:%s to %s", source->hop->node, order.path, source->path);
    }
    fetch_all(gather);
    if (!gather->args.keep)
        good = remove_sources(gather, &order);
    for (size_t i = 0; i < gather->count; i++)
        good = good && !gather->sources[i].failed;
    return good ? 0 : 1;
}

int sgather_main(int argc, char **argv)
{
    struct option_set set = sgather_options;
    struct option_ctx ctx = cli_option_ctx();
    struct gather gather = { 0 };
    struct err err = { 0 };
    char **operands = NEW_ARRAY(char *, argc + 1);
    int count = 0, code = 1;

    set.command = cli_name(argv);
    cli_init(&gather.cli, set.command);
    if (option_read_env(&set, &ctx, &gather.args, &err) < 0 ||
        option_read_argv(&set, &ctx, &gather.args, argc, argv, OPTION_PERMUTE, operands, &count,
                         &err) < 0)
        code = cli_option_error(&set, &err);
    else if (cli_help(&set, gather.args.help, gather.args.usage, gather.args.version))
        code = 0;
    else if (count != 2)
        cli_error(&gather.cli, "Need two file names, have %d names", count);
    else
        code = run(&gather, operands[0], operands[1]);
    cli_done(&gather.cli);
    freep(&operands);
    return code;
}
