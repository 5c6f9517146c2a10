// SPDX-License-Identifier: Apache-2.0
/*
 * sattach.c - joins a step that runs: sees what its tasks write, and writes to them
 *
 * It reads beside srun, which stays the one that the step answers to: when sattach ends, nothing else
 * does. What was written before it came is not seen again.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "cli/commands.h"
#include "cli/srun.h"
#include "cli/steps.h"
#include "cli/terminal.h"
#include "client/client.h"
#include "sys/files.h"

struct sattach_args {
    bool label, layout, quiet, help, usage, version, pty;
    uint32_t verbose;
    const char *input_filter, *output_filter, *error_filter;
};

#define FLAG(member) OPTION_BOOL(struct sattach_args, member)
#define TEXT(member) OPTION_TEXT(struct sattach_args, member)

/* clang-format off */
static const struct option rows[] = {
    { .name = "error-filter", .arg = "TASK", .read = option_text, .into = TEXT(error_filter), .help = "Standard error of this task only." },
    { .name = "debugger-test", .read = option_flag, .later = "no debugger is told of tasks" },
    { .name = "autocomplete", .arg = "TEXT", .read = option_text, .later = "spur completion writes it for a shell" },
    { .name = "help", .key = 'h', .read = option_flag, .into = FLAG(help), .help = "Show this text." },
    { .name = "input-filter", .arg = "TASK", .read = option_text, .into = TEXT(input_filter), .help = "Standard input to this task only." },
    { .name = "label", .key = 'l', .read = option_flag, .into = FLAG(label), .help = "Put the task's number before each line." },
    { .name = "layout", .read = option_flag, .into = FLAG(layout), .help = "Show which task runs where, and leave." },
    { .name = "output-filter", .arg = "TASK", .read = option_text, .into = TEXT(output_filter), .help = "Standard output of this task only." },
    { .name = "pty", .read = option_flag, .into = FLAG(pty), .help = "Use the terminal that srun --pty gave task 0; its size stays that of srun." },
    { .name = "quiet", .key = 'Q', .read = option_flag, .into = FLAG(quiet), .help = "Say less." },
    { .name = "usage", .key = 'u', .read = option_flag, .into = FLAG(usage), .help = "Show a short summary of options." },
    { .name = "verbose", .key = 'v', .read = option_increase, .into = OPTION_U32(struct sattach_args, verbose), .help = "Say more; may be repeated." },
    { .name = "version", .key = 'V', .read = option_flag, .into = FLAG(version), .help = "Show the version." },
};
/* clang-format on */

const struct option_set sattach_options = { .command = "sattach",
                                            .usage = "[OPTIONS...] JOB.STEP",
                                            .operands = "<jobid.stepid>",
                                            .about = "Joins a step that runs.",
                                            .bit = 1,
                                            .usage_exit = 1,
                                            .rows = rows,
                                            .count = ARRAY_LEN(rows) };

static void show_layout(const struct srun *srun)
{
    const StepLayout *layout = srun->layout;

    printf("Job step layout:\n  %u tasks, %zu nodes (", layout->ntasks, layout->n_nodes);
    for (size_t i = 0; i < layout->n_nodes; i++)
        printf("%s%s", i ? "," : "", layout->nodes[i]->name);
    printf(")\n\n");
    for (size_t i = 0; i < layout->n_nodes; i++) {
        const StepNode *node = layout->nodes[i];
        printf("  Node %zu (%s), %zu task(s): ", i, node->name, node->n_tasks);
        for (size_t k = 0; k < node->n_tasks; k++)
            printf("%u ", node->tasks[k]);
        puts("");
    }
}

static int read_filter(struct srun *srun, const char *text, bool *has, uint32_t *out)
{
    uint64_t task;

    if (!text)
        return 0;
    if (!str_to_u64(text, UINT32_MAX, &task) || task >= srun->ntasks) {
        cli_error(&srun->cli, "Invalid task id '%s'", text);
        return 1;
    }
    *has = true;
    *out = (uint32_t)task;
    return 0;
}

static int set_filters(struct srun *srun, const struct sattach_args *args)
{
    struct srun_sink *out = &srun->sinks[0], *error = &srun->sinks[1];

    *out = (struct srun_sink){ .fd = STDOUT_FILENO };
    *error = (struct srun_sink){ .fd = STDERR_FILENO };
    if (args->pty) { /* it is the terminal of task 0 */
        srun->has_input_task = true;
        srun->request.pty = true;
    }
    return read_filter(srun, args->output_filter, &out->has_only, &out->only) ||
           read_filter(srun, args->error_filter, &error->has_only, &error->only) ||
           read_filter(srun, args->input_filter, &srun->has_input_task, &srun->input_task);
}

/* One more than the highest number: tasks of other components may come before. False: it makes no sense. */
static bool count_tasks(struct srun *srun)
{
    const StepLayout *layout = srun->layout;

    for (size_t i = 0; i < layout->n_nodes; i++) {
        for (size_t k = 0; k < layout->nodes[i]->n_tasks; k++) {
            if (layout->nodes[i]->tasks[k] >= LIMIT_STEP_TASKS)
                return false;
            srun->ntasks = MAX(srun->ntasks, layout->nodes[i]->tasks[k] + 1);
        }
    }
    return srun->ntasks > 0;
}

static int find_step(struct srun *srun, const char *text, uint32_t job, uint32_t step,
                     StepHere **here)
{
    JobAccessReply *access;
    JobStepsReply *reply;
    struct err err = { 0 };

    if (steps_ask_manager(&srun->cli, job, true, step, false, &access, &reply, &err) < 0) {
        cli_error(&srun->cli, "Could not get job step info: %s",
                  err.code == ERR_INVALID_JOB_ID ? err_text(ERR_INVALID_JOB_ID) : err.text);
        return 1;
    }
    for (size_t i = 0; i < reply->n_steps; i++) {
        if (reply->steps[i]->has_layout && reply->steps[i]->n_proofs) {
            *here = reply->steps[i];
            return 0;
        }
    }
    cli_error(&srun->cli, "step %s is not running", text);
    return 1;
}

static void attach(struct srun *srun, const StepHere *here)
{
    const StepLayout *layout = srun->layout;

    srun->nodes = ARENA_ARRAY(&srun->cli.arena, struct srun_node, layout->n_nodes);
    srun->tasks = ARENA_ARRAY(&srun->cli.arena, struct srun_task, srun->ntasks + 1);
    for (size_t i = 0; i < srun->ntasks; i++)
        srun->tasks[i].files[0] = srun->tasks[i].files[1] = -1;
    srun->node_count = layout->n_nodes;
    for (size_t i = 0; i < layout->n_nodes; i++) {
        struct srun_node *node = &srun->nodes[i];
        RunStepIn in = RUN_STEP_IN__INIT;
        StepAttach words = STEP_ATTACH__INIT;
        struct err err = { 0 };
        node->node = layout->nodes[i];
        words.has_layout = words.has_proof = words.has_watch = words.watch = true;
        words.layout = here->layout;
        words.proof = here->proofs[i];
        in.what_case = RUN_STEP_IN__WHAT_ATTACH;
        in.attach = &words;
        node->credit = SRUN_INPUT_BYTES;
        node->client = srun_connect(srun, node, &err);
        if (node->client)
            node->stream = srun_open_stream(node->client, &in, &err);
        if (!node->stream) {
            cli_error(&srun->cli, "%s: %s", node->node->name, err.text);
            srun->failed = true;
            node->over = true;
        }
    }
}

static void on_frame(struct srun *srun, struct srun_node *node, const RunStepOut *out, void *data)
{
    (void)data;
    if (out->has_seq) { /* srun may have had some sent again */
        if (out->seq <= node->seen)
            return;
        node->seen = out->seq;
    }
    switch (out->what_case) {
    case RUN_STEP_OUT__WHAT_DATA:
        srun_output(srun, out->data);
        break;
    case RUN_STEP_OUT__WHAT_EXIT:
        for (size_t i = 0; i < out->exit->n_tasks; i++) {
            int status = (int)out->exit->status;
            int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
            if (out->exit->tasks[i] < srun->ntasks)
                srun_flush_task(srun, out->exit->tasks[i]);
            srun->highest = MAX(srun->highest, code);
        }
        break;
    case RUN_STEP_OUT__WHAT_CREDIT:
        node->credit += (size_t)out->credit;
        break;
    case RUN_STEP_OUT__WHAT_NOTE:
        fprintf(stderr, "%s\n", out->note);
        break;
    case RUN_STEP_OUT__WHAT_SAY:
        fprintf(stderr, "%s\n", out->say);
        break;
    default:
        break;
    }
}

static void on_lost(struct srun *srun, struct srun_node *node, const struct err *err)
{
    if (err->code) {
        cli_error(&srun->cli, "%s: %s", node->node->name, err->text);
        srun->failed = true;
    }
    client_stream_free(TAKE(node->stream));
}

static const struct srun_listener listener = { .message = on_frame, .lost = on_lost };

static bool takes_input(const struct srun *srun, const struct srun_node *node)
{
    for (size_t i = 0; srun->has_input_task && i < node->node->n_tasks; i++) {
        if (node->node->tasks[i] == srun->input_task)
            return node->stream != NULL;
    }
    return node->stream && !srun->has_input_task;
}

static void send_input(struct srun *srun)
{
    uint8_t bytes[4096];
    RunStepIn in = RUN_STEP_IN__INIT;
    StepData data = STEP_DATA__INIT;
    ssize_t len = file_read_soon(srun->input_fd, bytes, sizeof(bytes));

    if (len < 0 && errno == EAGAIN)
        return;
    if (len <= 0) { /* the tasks' input ends when srun's does */
        srun->input_fd = -1;
        return;
    }
    data.has_stream = data.has_data = true;
    data.stream = STEP_STREAM_IN;
    data.data = (ProtobufCBinaryData){ (size_t)len, bytes };
    data.has_task = srun->has_input_task;
    data.task = srun->input_task;
    in.what_case = RUN_STEP_IN__WHAT_DATA;
    in.data = &data;
    for (size_t i = 0; i < srun->node_count; i++) {
        struct srun_node *node = &srun->nodes[i];
        if (!takes_input(srun, node))
            continue;
        client_stream_send(node->stream, &in.base);
        node->credit -= MIN(node->credit, (size_t)len);
    }
}

static bool may_send(const struct srun *srun)
{
    for (size_t i = 0; i < srun->node_count; i++) {
        if (takes_input(srun, &srun->nodes[i]) && srun->nodes[i].credit < 4096)
            return false;
    }
    return srun->input_fd >= 0;
}

static void loop(struct srun *srun)
{
    struct pollfd *fds = NEW_ARRAY(struct pollfd, srun->node_count + 1);
    struct arena arena;
    size_t open = 1;

    arena_init(&arena);
    while (open) {
        open = 0;
        fds[0] = (struct pollfd){ .fd = may_send(srun) ? srun->input_fd : -1, .events = POLLIN };
        for (size_t i = 0; i < srun->node_count; i++) {
            struct srun_node *node = &srun->nodes[i];
            while (node->stream && srun_take(srun, node, &listener, &arena))
                ;
            open += node->stream != NULL;
            fds[1 + i] = (struct pollfd){ .fd = -1 };
            if (node->stream)
                fds[1 + i] = (struct pollfd){ .fd = client_fd(node->client),
                                              .events = client_events(node->client) };
        }
        if (open && poll(fds, srun->node_count + 1, -1) > 0 && fds[0].revents)
            send_input(srun);
    }
    arena_done(&arena);
    free(fds);
}

static int go(struct srun *srun, const struct sattach_args *args, const char *text)
{
    uint32_t job, step = 0;
    bool has_step;
    StepHere *here = NULL;
    char digits[16];

    if (!steps_read_id(text, &job, &has_step, &step) || !has_step) {
        cli_error(&srun->cli, "Invalid job step id: %s", text);
        return 1;
    }
    srun->job_id = job;
    if (find_step(srun, text, job, step, &here))
        return 1;
    srun->layout = step_layout__unpack(NULL, here->layout.len, here->layout.data);
    if (!srun->layout || !srun->layout->id || here->n_proofs < srun->layout->n_nodes ||
        !count_tasks(srun)) {
        cli_error(&srun->cli, "the answer of the node makes no sense");
        return 1;
    }
    if (args->layout) {
        show_layout(srun);
        return 0;
    }
    srun->label_width = snprintf(digits, sizeof(digits), "%u", srun->ntasks - 1);
    srun->request.label = args->label;
    if (set_filters(srun, args))
        return 1;
    attach(srun, here);
    if (srun->request.pty)
        terminal_raw();
    loop(srun);
    terminal_restore();
    srun_close_sinks(srun);
    return srun->failed && !srun->highest ? 1 : srun->highest;
}

int sattach_main(int argc, char **argv)
{
    struct option_set set = sattach_options;
    struct option_ctx ctx = cli_option_ctx();
    struct sattach_args args = { 0 };
    struct srun srun = { .input_fd = STDIN_FILENO, .site_kill_wait_s = SRUN_KILL_WAIT_S };
    struct err err = { 0 };
    char **operands = NEW_ARRAY(char *, argc + 1);
    int count = 0, code;

    set.command = cli_name(argv);
    cli_init(&srun.cli, set.command);
    job_request_init(&srun.request);
    if (option_read_argv(&set, &ctx, &args, argc, argv, OPTION_PERMUTE, operands, &count, &err) < 0)
        code = cli_option_error(&set, &err);
    else if (cli_help(&set, args.help, args.usage, args.version))
        code = 0;
    else if (count != 1) {
        puts("Usage: sattach [options] <jobid.stepid>");
        cli_error(&srun.cli, "too many parameters");
        code = 1;
    } else if (args.pty && (args.input_filter || args.output_filter || args.error_filter)) {
        cli_error(&srun.cli, "--pty cannot be combined with filters");
        code = 1;
    } else
        code = go(&srun, &args, operands[0]);
    srun_close(&srun);
    job_request_done(&srun.request);
    cli_done(&srun.cli);
    free(operands);
    return code;
}
