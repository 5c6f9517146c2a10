// SPDX-License-Identifier: Apache-2.0
/*
 * sbcast.c - copies a file to every node of a job
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hostlist.h"
#include "base/limits.h"
#include "base/size.h"
#include "cli/commands.h"
#include "cli/copy.h"
#include "cli/steps.h"

struct sbcast_args {
    bool force, preserve, help, usage, version, no_allocation;
    const char *compress, *send_libs, *exclude, *jobid, *size, *nodes;
    uint32_t fanout, timeout, verbose;
};

#define FLAG(member)   OPTION_BOOL(struct sbcast_args, member)
#define TEXT(member)   OPTION_TEXT(struct sbcast_args, member)
#define NUMBER(member) OPTION_U32(struct sbcast_args, member)

/* Without a tree every node gets the file from the first; there is a bound to that. */
static int read_treewidth(const struct option_call *call, const char *value, struct err *err)
{
    if (!str_ieq(value, "off"))
        return option_positive(call, value, err);
    option_set_number(call, COPY_FANOUT_MOST);
    return 0;
}

/* clang-format off */
static const struct option rows[] = {
    { .name = "compress", .key = 'C', .arg = "[LIBRARY]", .env = { "SBCAST_COMPRESS" }, .read = option_text, .into = TEXT(compress), .help = "Compress what is sent: lz4, which is also meant without a value, or none." },
    { .name = "exclude", .arg = "NONE|DIRECTORY,...", .env = { "SBCAST_EXCLUDE" }, .read = option_text, .into = TEXT(exclude), .help = "Shared objects below these directories are not sent by --send-libs; /lib,/usr/lib,/lib64,/usr/lib64 unless given." },
    { .name = "fanout", .key = 'F', .arg = "NUMBER", .env = { "SBCAST_FANOUT" }, .read = option_positive, .into = NUMBER(fanout), .help = "To how many nodes a node passes the file on, at most 64; 8 unless given." },
    { .name = "force", .key = 'f', .env = { "SBCAST_FORCE" }, .read = option_flag, .into = FLAG(force), .help = "Replace a file that is there." },
    { .name = "autocomplete", .arg = "TEXT", .read = option_text, .later = "spur completion writes it for a shell" },
    { .name = "help", .read = option_flag, .into = FLAG(help), .help = "Show this text." },
    { .name = "jobid", .key = 'j', .arg = "JOB[.STEP]", .read = option_text, .into = TEXT(jobid), .help = "To the nodes of this job, or step; that of the environment unless given." },
    { .name = "no-allocation", .key = 'Z', .read = option_flag, .into = FLAG(no_allocation), .later = "files are copied to nodes of a job", .help = "Without a job." },
    { .name = "nodelist", .key = 'w', .arg = "NODES", .read = option_text, .into = TEXT(nodes), .help = "To these nodes of the job only." },
    { .name = "preserve", .key = 'p', .env = { "SBCAST_PRESERVE" }, .read = option_flag, .into = FLAG(preserve), .help = "Keep the times and the whole mode of the file." },
    { .name = "send-libs", .arg = "[yes|no]", .env = { "SBCAST_SEND_LIBS" }, .read = option_text, .into = TEXT(send_libs), .help = "Send the shared objects that the program needs too, into DEST_libs. Programs find them there when LD_LIBRARY_PATH names that directory; srun --bcast sees to that by itself." },
    { .name = "size", .key = 's', .arg = "SIZE", .env = { "SBCAST_SIZE" }, .read = option_text, .into = TEXT(size), .help = "Bytes in a block, with k or m; at most 4m, and 512k unless given." },
    { .name = "timeout", .key = 't', .arg = "SECONDS", .env = { "SBCAST_TIMEOUT" }, .read = option_positive, .into = NUMBER(timeout), .help = "Give up when a node makes no progress for so long; 100 unless given." },
    { .name = "treewidth", .arg = "NUMBER|off", .read = read_treewidth, .into = NUMBER(fanout), .help = "Another name of --fanout; off is the most there can be." },
    { .name = "usage", .read = option_flag, .into = FLAG(usage), .help = "Show a short summary of options." },
    { .name = "verbose", .key = 'v', .read = option_increase, .into = NUMBER(verbose), .help = "Say what is done." },
    { .name = "version", .key = 'V', .read = option_flag, .into = FLAG(version), .help = "Show the version." },
};
/* clang-format on */

const struct option_set sbcast_options = {
    .command = "sbcast",
    .usage = "[OPTIONS...] SOURCE DEST",
    .operands = "SOURCE DEST",
    .about =
        "Copies a file to every node of a job, as the job's user. DEST is a file; when it ends "
        "with / the file keeps its name. %N in it is the name of each node.",
    .bit = 1,
    .usage_exit = 1,
    .rows = rows,
    .count = ARRAY_LEN(rows),
};

static int read_size(const char *text, size_t *out, struct err *err)
{
    char *end;

    *out = COPY_BLOCK;
    if (!text)
        return 0;
    unsigned long long size = strtoull(text, &end, 10);
    unsigned shift = *end == 'k' || *end == 'K' ? 10 : *end == 'm' || *end == 'M' ? 20 : 0;
    if (end == text || text[0] == '-' || (shift ? end[1] : end[0]) || size == 0 ||
        size > (1ULL << 40))
        return err_set(err, ERR_INVALID, "Invalid block size '%s'", text);
    *out = (size_t)MIN(size << shift, (unsigned long long)LIMIT_COPY_BLOCK);
    return 0;
}

/* The nodes of a step, in the arena. */
static int nodes_of_step(struct cli *cli, uint32_t job, uint32_t step, const char **nodes,
                         struct err *err)
{
    CLEANUP(str_done) struct str text = { 0 };
    JobAccessReply *access;
    JobStepsReply *reply;

    if (steps_ask_manager(cli, job, true, step, false, &access, &reply, err) < 0)
        return -1;
    for (size_t i = 0; i < reply->n_steps && !*nodes; i++) {
        const StepHere *here = reply->steps[i];
        StepLayout *layout = here->has_layout
                                 ? step_layout__unpack(NULL, here->layout.len, here->layout.data)
                                 : NULL;
        for (size_t k = 0; layout && k < layout->n_nodes; k++)
            str_addf(&text, "%s%s", k ? "," : "", layout->nodes[k]->name);
        if (layout) {
            step_layout__free_unpacked(layout, NULL);
            *nodes = arena_strdup(&cli->arena, str_text(&text));
        } else if (step == STEPS_BATCH) {
            *nodes = access->node;
        }
    }
    return *nodes ? 0 : err_set(err, ERR_NOT_FOUND, "Invalid job step id specified");
}

static int find_job(struct copy_job *copy, const struct sbcast_args *args, struct err *err)
{
    const char *id = args->jobid ? args->jobid : getenv("SLURM_JOB_ID");
    uint32_t step = 0;
    bool has_step = false;

    if (str_is_empty(id))
        return err_set(err, ERR_INVALID,
                       "Need a job id to run this command.  Run from within a Slurm job or use the "
                       "--jobid option.");
    if (!steps_read_id(id, &copy->job, &has_step, &step))
        return err_set(err, ERR_INVALID_JOB_ID, "Invalid job id specified");
    copy->nodes = args->nodes;
    if (has_step && !args->nodes &&
        nodes_of_step(copy->cli, copy->job, step, &copy->nodes, err) < 0)
        return -1;
    return copy_find(copy, err);
}

static char *full_name(struct cli *cli, const char *from, const char *to)
{
    char cwd[LIMIT_PATH_BYTES];
    const char *slash = strrchr(from, '/');

    if (to[0] != '/')
        to = arena_printf(&cli->arena, "%s/%s", getcwd(cwd, sizeof(cwd)) ? cwd : "", to);
    if (str_ends(to, "/"))
        to = arena_printf(&cli->arena, "%s%s", to, slash ? slash + 1 : from);
    return arena_strdup(&cli->arena, to);
}

static int run(struct cli *cli, const struct sbcast_args *args, const char *from, const char *to,
               struct err *err)
{
    struct copy_job copy = { .cli = cli, .timeout_s = args->timeout, .fanout = args->fanout };
    bool libs = false;

    if (copy_read_compress(args->compress, &copy.compress, err) < 0 ||
        copy_read_yes(args->send_libs, &libs, err) < 0 ||
        read_size(args->size, &copy.block, err) < 0)
        return -1;
    if (copy.fanout > COPY_FANOUT_MOST)
        return err_set(err, ERR_RANGE, "Invalid fanout %u: at most %d", copy.fanout,
                       COPY_FANOUT_MOST);
    if (find_job(&copy, args, err) < 0)
        return -1;
    if (access(from, R_OK) < 0)
        return err_set(err, ERR_NOT_FOUND, "Can't open `%s`: %m", from);
    const struct copy_send what = { .from = from,
                                    .to = full_name(cli, from, to),
                                    .force = args->force,
                                    .preserve = args->preserve };
    if (args->verbose)
        cli_say(cli,
                "jobid      = %u\nblock_size = %zu\ncompress   = %s\nforce      = %s\n"
                "preserve   = %s\nsend_libs  = %s\nsource     = %s\ndest       = %s",
                copy.job, copy.block, copy.compress ? "lz4" : "none",
                args->force ? "true" : "false", args->preserve ? "true" : "false",
                libs ? "true" : "false", from, what.to);
    if (copy_send(&copy, &what, err) < 0)
        return -1;
    return libs ? copy_send_libs(&copy, from, arena_printf(&cli->arena, "%s_libs", what.to),
                                 args->exclude, args->force, args->preserve, err)
                : 0;
}

int sbcast_main(int argc, char **argv)
{
    struct option_set set = sbcast_options;
    struct option_ctx ctx = cli_option_ctx();
    struct sbcast_args args = { 0 };
    struct err err = { 0 };
    struct cli cli;
    char **operands = NEW_ARRAY(char *, argc + 1);
    int count = 0, code = 1;

    set.command = cli_name(argv);
    cli_init(&cli, set.command);
    if (option_read_env(&set, &ctx, &args, &err) < 0 ||
        option_read_argv(&set, &ctx, &args, argc, argv, OPTION_PERMUTE, operands, &count, &err) < 0)
        code = cli_option_error(&set, &err);
    else if (cli_help(&set, args.help, args.usage, args.version))
        code = 0;
    else if (count != 2)
        cli_error(&cli, "Need two file names, have %d names", count);
    else if (run(&cli, &args, operands[0], operands[1], &err) < 0)
        cli_error(&cli, "%s", err.text);
    else
        code = 0;
    cli_done(&cli);
    freep(&operands);
    return code;
}
