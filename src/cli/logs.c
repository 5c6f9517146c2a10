// SPDX-License-Identifier: Apache-2.0
/*
 * logs.c - `spur logs JOB`: the output of a job, through its node, without a shared file system
 *
 * The controller names the node and gives a token for this job there; the node sends the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/accounting.h"
#include "cli/commands.h"
#include "cli/submit.h"
#include "client/client.h"
#include "proto/agent.pb-c.h"
#include "schema/job_view.h"
#include "schema/pattern.h"
#include "sys/files.h"

static int copy_chunks(struct client_stream *stream, struct err *err)
{
    for (;;) {
        struct arena arena;
        ProtobufCMessage *message;
        const OutputChunk *chunk;
        bool ended = false;
        int next;

        arena_init(&arena);
        next = client_stream_next(stream, &arena, &message, err);
        if (next == CLIENT_MESSAGE) {
            chunk = (const OutputChunk *)message;
            ended = chunk->ended;
            if (chunk->has_data &&
                file_write_all(STDOUT_FILENO, chunk->data.data, chunk->data.len, err) < 0)
                next = -(int)ERR_IO;
        }
        arena_done(&arena);
        if (next < 0)
            return next;
        if (next == CLIENT_ENDED || ended)
            return 0;
    }
}

int logs_copy(struct cli *cli, const char *id, bool error, bool follow, uint64_t tail_lines,
              struct err *err)
{
    JobAccessRequest ask = JOB_ACCESS_REQUEST__INIT;
    ReadOutputRequest read = READ_OUTPUT_REQUEST__INIT;
    JobAccessReply *access;
    struct client_stream *stream;
    struct client *node;
    int result;

    ask.id = (char *)id;
    result = cli_call(cli, "JobAccess", &ask.base, &job_access_reply__descriptor,
                      (ProtobufCMessage **)&access, err);
    if (result < 0)
        return result;
    if (access->job && access->job->spec && !access->job->spec->batch)
        return err_set(err, ERR_INVALID,
                       "it has no script, so its output went to the srun or salloc that made it");
    if (str_is_empty(access->address))
        return err_set(err, ERR_JOB_PENDING, "job %s has not started, so there is no output", id);
    read.has_job_id = true;
    read.job_id = access->job ? access->job->id : 0;
    read.has_error = read.has_follow = true;
    read.error = error;
    read.follow = follow;
    read.has_tail_lines = tail_lines > 0;
    read.tail_lines = tail_lines;
    node = client_new(&(struct client_options){ .addresses = access->address,
                                                .token = access->token,
                                                .default_port = 6818 },
                      err);
    if (!node)
        return -(int)ERR_UNREACHABLE;
    fflush(stdout);
    stream = client_stream_open(
        node,
        &(struct client_stream_options){ .path = "/spur.NodeAccess/ReadOutput",
                                         .message = &read.base,
                                         .reply_type = &output_chunk__descriptor },
        err);
    result = stream ? copy_chunks(stream, err) : -(int)ERR_UNREACHABLE;
    client_stream_free(stream);
    client_free(node);
    return result;
}

struct logs_args {
    bool follow, error, help, usage, version;
    uint32_t tail;
};

/*
 * Of a job that the controller has forgotten: the file that it wrote, where this host has it, as whoever asks
 * may read it.
 */
static int copy_past(struct cli *cli, const char *id, bool error, struct err *err)
{
    CLEANUP(str_done) struct str path = { 0 }, nodes = { 0 };
    CLEANUP(file_close) int fd = -1;
    const AcctJob *past;
    char block[65536];
    ssize_t got;

    if (accounting_find(cli, id, &past, err) < 0)
        return -(int)err->code;
    if (!job_spec(past->job)->batch)
        return err_set(err, ERR_INVALID,
                       "it has no script, so its output went to the srun or salloc that made it");
    if (pattern_output_path(past->job, error, &path, err) < 0)
        return -(int)err->code;
    fd = open(str_text(&path), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        int why = errno;
        job_add_nodes(&nodes, past->job);
        return err_errno(err, why, "it ran on %s long ago, and its output '%s' cannot be read here",
                         str_text(&nodes), str_text(&path));
    }
    fflush(stdout);
    while ((got = read(fd, block, sizeof(block))) > 0) {
        if (file_write_all(STDOUT_FILENO, block, (size_t)got, err) < 0)
            return -(int)err->code;
    }
    return got < 0 ? err_errno(err, errno, "'%s'", str_text(&path)) : 0;
}

/* Through its node, or from the history; what the controller said holds when there is no history. */
static int copy_any(struct cli *cli, const char *id, const struct logs_args *args, struct err *err)
{
    struct err past = { 0 };
    int code = logs_copy(cli, id, args->error, args->follow, args->tail, err);

    if (code != -(int)ERR_INVALID_JOB_ID || args->tail)
        return code;
    int found = copy_past(cli, id, args->error, &past);
    if (found == 0)
        return 0;
    if (past.code != ERR_UNSUPPORTED && past.code != ERR_UNREACHABLE)
        *err = past;
    return -(int)err->code;
}

static const struct option rows[] = {
    { .name = "error",
      .key = 'e',
      .read = option_flag,
      .into = OPTION_BOOL(struct logs_args, error),
      .help = "Standard error instead of standard output." },
    { .name = "follow",
      .key = 'f',
      .read = option_flag,
      .into = OPTION_BOOL(struct logs_args, follow),
      .help = "Go on until the job has ended." },
    { .name = "tail",
      .key = 'n',
      .arg = "LINES",
      .read = option_number,
      .into = OPTION_U32(struct logs_args, tail),
      .help = "Begin with the last LINES lines." },
    { .name = "help",
      .key = 'h',
      .read = option_flag,
      .into = OPTION_BOOL(struct logs_args, help),
      .help = "Show this text." },
};

const struct option_set logs_options = {
    .command = "spur logs",
    .usage = "[-f] [-e] [-n LINES] JOB",
    .about = "Shows the output of a job, through its node.",
    .bit = 1,
    .usage_exit = 1,
    .rows = rows,
    .count = ARRAY_LEN(rows),
};

int logs_main(int argc, char **argv)
{
    struct option_set set = logs_options;
    struct option_ctx ctx = cli_option_ctx();
    struct logs_args args = { 0 };
    struct err err = { 0 };
    struct cli cli;
    char **operands = NEW_ARRAY(char *, argc + 1);
    int count = 0, code = 0;

    set.command = cli_name(argv);
    cli_init(&cli, set.command);
    if (option_read_argv(&set, &ctx, &args, argc, argv, OPTION_PERMUTE, operands, &count, &err) <
        0) {
        code = cli_option_error(&set, &err);
    } else if (cli_help(&set, args.help, false, false)) {
        code = 0;
    } else if (count != 1) {
        cli_error(&cli, "one job id is needed");
        code = 1;
    } else if (copy_any(&cli, operands[0], &args, &err) < 0) {
        cli_error(&cli, "job %s: %s", operands[0], err.text);
        code = 1;
    }
    cli_done(&cli);
    freep(&operands);
    return code;
}
