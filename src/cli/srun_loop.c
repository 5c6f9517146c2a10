// SPDX-License-Identifier: Apache-2.0
/*
 * srun_loop.c - until all tasks have ended: streams, signals, timers
 *
 * One poll() over the connections to the nodes, standard input, and a pipe that the signal handlers
 * write to. Output is written when it comes, and waits for whoever reads it: that holds the node back.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/srun.h"
#include "client/client.h"
#include "sys/clock.h"

enum {
    SECOND_US = 1000000,
    KILL_WAIT_S = 30,
    FORCE_WAIT_S = 5,
    GIVE_UP_S = 10, /* after the time that the node has to end the tasks */
};

volatile int srun_interrupted;
static int signal_pipe[2] = { -1, -1 };

static void on_signal(int sig)
{
    int saved = errno;
    unsigned char byte = (unsigned char)sig;
    ssize_t ignored = write(signal_pipe[1], &byte, 1);

    (void)ignored;
    if (sig == SIGINT || sig == SIGTERM || sig == SIGHUP || sig == SIGQUIT)
        srun_interrupted = sig;
    errno = saved;
}

void srun_catch_signals(void)
{
    static const int caught[] = { SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                  SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH };
    struct sigaction action = { .sa_handler = on_signal };

    if (pipe2(signal_pipe, O_CLOEXEC | O_NONBLOCK) < 0)
        return;
    for (size_t i = 0; i < ARRAY_LEN(caught); i++)
        sigaction(caught[i], &action, NULL);
    signal(SIGTTIN, SIG_IGN); /* in the background of a terminal: no input, but no stop either */
}

/* ---- to the nodes ---- */

static void send_all(struct srun *srun, RunStepIn *in)
{
    for (size_t i = 0; i < srun->node_count; i++) {
        struct srun_node *node = &srun->nodes[i];
        if (node->launched && !node->over && node->stream)
            client_stream_send(node->stream, &in->base);
    }
}

static void send_signal(struct srun *srun, int sig, JobState why, unsigned wait_s)
{
    RunStepIn in = RUN_STEP_IN__INIT;
    StepTaskSignal words = STEP_TASK_SIGNAL__INIT;

    words.has_signal = true;
    words.signal = (uint32_t)sig;
    words.has_kill_wait_s = words.has_why = sig == SIGKILL;
    words.why = why;
    words.kill_wait_s = wait_s;
    in.what_case = RUN_STEP_IN__WHAT_SIGNAL;
    in.signal = &words;
    send_all(srun, &in);
}

/* The step is ended; the nodes say so and why. */
static void end_step(struct srun *srun, JobState why, unsigned wait_s)
{
    int64_t at = clock_boot_us() + (wait_s + GIVE_UP_S) * (int64_t)SECOND_US;

    srun->killing = true;
    if (!srun->give_up_us || at < srun->give_up_us)
        srun->give_up_us = at;
    send_signal(srun, SIGKILL, why, wait_s);
}

static const char *step_name(const struct srun *srun)
{
    static char text[48];

    snprintf(text, sizeof(text), "StepId=%u.%u", srun->job_id, srun->layout->id->step);
    return text;
}

/* ---- from the nodes ---- */

static void add_ranges(struct str *out, const uint32_t *tasks, size_t count)
{
    for (size_t i = 0; i < count;) {
        size_t run = 1;
        while (i + run < count && tasks[i + run] == tasks[i] + run)
            run++;
        str_addf(out, "%s%u", out->len ? "," : "", tasks[i]);
        if (run > 1)
            str_addf(out, "-%u", tasks[i + run - 1]);
        i += run;
    }
}

static void say_exit(struct srun *srun, const struct srun_node *node, const uint32_t *tasks,
                     size_t count, int status)
{
    CLEANUP(str_done) struct str which = { 0 };

    if (status == 0 && srun->request.verbose == 0)
        return;
    add_ranges(&which, tasks, count);
    const char *word = count > 1 ? "tasks" : "task";
    if (status == 0)
        cli_say(&srun->cli, "%s: %s %s: Completed", node->node->name, word, str_text(&which));
    else if (WIFSIGNALED(status))
        cli_error(&srun->cli, "%s: %s %s: %s%s", node->node->name, word, str_text(&which),
                  strsignal(WTERMSIG(status)), WCOREDUMP(status) ? " (core dumped)" : "");
    else
        cli_error(&srun->cli, "%s: %s %s: Exited with exit code %d", node->node->name, word,
                  str_text(&which), WEXITSTATUS(status));
}

static void note_status(struct srun *srun, int status)
{
    int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);

    if (code > srun->highest) {
        srun->highest = code;
        srun->highest_status = status;
    }
    srun->killed_by_9 |= WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* Tasks that ended the same way one after the other are said together. */
struct exits {
    struct srun_node *node;
    int status;
    VEC(uint32_t) tasks;
};

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static void flush_exits(struct srun *srun, struct exits *exits)
{
    if (exits->tasks.len == 0)
        return;
    qsort(exits->tasks.items, exits->tasks.len, sizeof(uint32_t), by_number);
    say_exit(srun, exits->node, exits->tasks.items, exits->tasks.len, exits->status);
    vec_clear(&exits->tasks);
    if (exits->status != 0 && srun->request.kill_on_bad_exit && !srun->killing) {
        cli_say(&srun->cli, "Terminating %s", step_name(srun));
        srun->aborted = true;
        end_step(srun, JOB_FAILED, KILL_WAIT_S);
    }
}

static void on_exit_of(struct srun *srun, struct srun_node *node, const StepExit *over,
                       struct exits *exits)
{
    for (size_t i = 0; i < over->n_tasks; i++) {
        uint32_t number = over->tasks[i];
        if (number >= srun->layout->ntasks || srun->tasks[number].exited)
            continue;
        srun_flush_task(srun, number);
        srun->tasks[number].exited = true;
        srun->tasks[number].status = (int)over->status;
        srun->exited++;
        note_status(srun, (int)over->status);
        if (!srun->first_exit_us)
            srun->first_exit_us = clock_boot_us();
        if (exits->tasks.len && (exits->node != node || exits->status != (int)over->status))
            flush_exits(srun, exits);
        exits->node = node;
        exits->status = (int)over->status;
        vec_push(&exits->tasks, number);
    }
}

static void on_say(struct srun *srun, const char *text)
{
    fprintf(stderr, "%s\n", text);
    if (srun->killing || srun->aborted)
        return;
    srun->aborted = true;
    cli_say(&srun->cli, "Job step aborted: Waiting up to %d seconds for job step to finish.",
            KILL_WAIT_S + 2);
}

static void on_over(struct srun *srun, struct srun_node *node, const StepOver *over)
{
    node->over = true;
    if (over->launch_failed) {
        cli_error(&srun->cli, "Task launch for %s failed on node %s: %s", step_name(srun),
                  node->node->name, over->text ? over->text : "not said why");
        srun->failed = true;
    } else if (over->has_state && over->state == JOB_OUT_OF_MEMORY) {
        fprintf(stderr,
                "slurmstepd: error: Detected oom_kill event in %s. Some of the step tasks "
                "have been OOM Killed.\n",
                step_name(srun));
    }
}

static void on_message(struct srun *srun, struct srun_node *node, const RunStepOut *out,
                       struct exits *exits)
{
    switch (out->what_case) {
    case RUN_STEP_OUT__WHAT_RUNNING:
        node->running = true;
        for (size_t i = 0; node->node && i < node->node->n_tasks; i++)
            srun->tasks[node->node->tasks[i]].started = true;
        if (srun->request.verbose)
            cli_say(&srun->cli, "Node %s, %zu tasks started", node->node->name,
                    node->node->n_tasks);
        break;
    case RUN_STEP_OUT__WHAT_DATA:
        srun_output(srun, out->data);
        break;
    case RUN_STEP_OUT__WHAT_EXIT:
        on_exit_of(srun, node, out->exit, exits);
        break;
    case RUN_STEP_OUT__WHAT_CREDIT:
        node->credit += (size_t)out->credit;
        break;
    case RUN_STEP_OUT__WHAT_SAY:
        on_say(srun, out->say);
        break;
    case RUN_STEP_OUT__WHAT_OVER:
        on_over(srun, node, out->over);
        break;
    default:
        break;
    }
}

/* The stream ended before the node said that all is over. */
static void on_lost(struct srun *srun, struct srun_node *node, const struct err *err)
{
    client_stream_free(TAKE(node->stream));
    if (node->over || !node->launched) {
        node->over = true;
        return;
    }
    node->over = true;
    srun->failed = true;
    cli_error(&srun->cli, "Node failure on %s: %s", node->node->name,
              err->text[0] ? err->text : "the connection ended");
    for (size_t i = 0; i < node->node->n_tasks; i++) {
        struct srun_task *task = &srun->tasks[node->node->tasks[i]];
        srun->exited += !task->exited;
        task->exited = true;
    }
    if (!srun->killing && !srun->request.spec->no_kill)
        end_step(srun, JOB_NODE_FAIL, FORCE_WAIT_S);
}

static void serve_node(struct srun *srun, struct srun_node *node)
{
    struct err err = { 0 };
    struct exits exits = { 0 };
    struct arena arena;

    if (!node->stream)
        return;
    client_pump(node->client, &err);
    arena_init(&arena);
    while (node->stream) {
        ProtobufCMessage *message;
        arena_reset(&arena);
        err_clear(&err);
        int next = client_stream_try(node->stream, &arena, &message, &err);
        if (next == CLIENT_AGAIN)
            break;
        if (next == CLIENT_MESSAGE)
            on_message(srun, node, (const RunStepOut *)message, &exits);
        else
            on_lost(srun, node, &err);
    }
    flush_exits(srun, &exits);
    vec_done(&exits.tasks);
    arena_done(&arena);
}

/* ---- standard input ---- */

static bool takes_input(const struct srun *srun, const struct srun_node *node)
{
    if (!node->launched || node->over || !node->stream)
        return false;
    if (srun->request.pty)
        return node->node->tasks[0] == 0;
    return !srun->has_input_task ||
           (size_t)srun->tasks[srun->input_task].node == (size_t)(node - srun->nodes);
}

/* What every node has room for. */
static size_t input_room(const struct srun *srun)
{
    size_t room = SRUN_INPUT_BYTES;
    bool any = false;

    for (size_t i = 0; i < srun->node_count; i++) {
        if (!takes_input(srun, &srun->nodes[i]))
            continue;
        any = true;
        room = MIN(room, srun->nodes[i].credit);
    }
    return any ? room : 0;
}

static void send_input(struct srun *srun)
{
    static uint8_t bytes[SRUN_INPUT_BYTES];
    RunStepIn in = RUN_STEP_IN__INIT;
    StepData data = STEP_DATA__INIT;
    ssize_t len = read(srun->input_fd, bytes, input_room(srun));

    if (len < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    data.has_stream = data.has_data = true;
    data.stream = STEP_STREAM_IN;
    data.data = (ProtobufCBinaryData){ (size_t)MAX(len, 0), bytes };
    data.has_eof = data.eof = len <= 0;
    in.what_case = RUN_STEP_IN__WHAT_DATA;
    in.data = &data;
    for (size_t i = 0; i < srun->node_count; i++) {
        struct srun_node *node = &srun->nodes[i];
        if (!takes_input(srun, node))
            continue;
        client_stream_send(node->stream, &in.base);
        node->credit -= MIN(node->credit, data.data.len);
    }
    if (len <= 0) {
        if (srun->input_fd > STDERR_FILENO)
            close(srun->input_fd);
        srun->input_fd = -1;
    }
}

/* ---- signals ---- */

static void show_tasks(struct srun *srun)
{
    static const char *const words[] = { "unknown", "running", "exited abnormally", "exited" };
    VEC(uint32_t) list = { 0 };

    for (size_t state = 0; state < ARRAY_LEN(words); state++) {
        CLEANUP(str_done) struct str text = { 0 };
        vec_clear(&list);
        for (uint32_t i = 0; i < srun->layout->ntasks; i++) {
            const struct srun_task *task = &srun->tasks[i];
            size_t is = task->exited ? (task->status ? 2 : 3) : task->started ? 1 : 0;
            if (is == state)
                vec_push(&list, i);
        }
        if (list.len == 0)
            continue;
        add_ranges(&text, list.items, list.len);
        cli_say(&srun->cli, "%s task%s %s: %s", step_name(srun), list.len > 1 ? "s" : "",
                str_text(&text), words[state]);
    }
    vec_done(&list);
}

static void force_end(struct srun *srun)
{
    cli_say(&srun->cli, "forcing job termination");
    if (!srun->aborted)
        cli_say(&srun->cli, "Job step aborted: Waiting up to %d seconds for job step to finish.",
                KILL_WAIT_S + 2);
    srun->aborted = true;
    end_step(srun, JOB_CANCELLED, srun->killing ? 0 : FORCE_WAIT_S);
}

/* Once shows what the tasks do, twice within a second interrupts them, thrice ends them. */
static void on_interrupt(struct srun *srun)
{
    int64_t now = clock_boot_us();
    const struct job_request *asked = &srun->request;

    if (!asked->quit_on_interrupt && !asked->disable_status &&
        (!srun->last_interrupt_us || now - srun->last_interrupt_us > SECOND_US)) {
        srun->last_interrupt_us = now;
        cli_say(&srun->cli, "interrupt (one more within 1 sec to abort)");
        show_tasks(srun);
        return;
    }
    srun->last_interrupt_us = now;
    if (srun->last_sent_us && now - srun->last_sent_us < SECOND_US) {
        force_end(srun);
        return;
    }
    srun->last_sent_us = now;
    cli_say(&srun->cli, "sending Ctrl-C to %s", step_name(srun));
    send_signal(srun, SIGINT, JOB_PENDING, 0);
}

static void on_window(struct srun *srun)
{
    RunStepIn in = RUN_STEP_IN__INIT;
    StepWindow window = STEP_WINDOW__INIT;
    struct winsize size = { 0 };

    if (!srun->request.pty || ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0)
        return;
    window.has_rows = window.has_cols = true;
    window.rows = size.ws_row;
    window.cols = size.ws_col;
    in.what_case = RUN_STEP_IN__WHAT_WINDOW;
    in.window = &window;
    send_all(srun, &in);
}

static void serve_signals(struct srun *srun)
{
    unsigned char sig;

    while (read(signal_pipe[0], &sig, 1) == 1) {
        switch (sig) {
        case SIGINT:
            on_interrupt(srun);
            break;
        case SIGTERM:
        case SIGHUP:
        case SIGQUIT:
            force_end(srun);
            break;
        case SIGWINCH:
            on_window(srun);
            break;
        default:
            send_signal(srun, sig, JOB_PENDING, 0);
        }
    }
}

/* ---- the loop ---- */

static bool all_over(const struct srun *srun)
{
    for (size_t i = 0; i < srun->node_count; i++) {
        if (srun->nodes[i].launched && !srun->nodes[i].over)
            return false;
    }
    return true;
}

/* --wait, and nodes that do not end what they were told to end. */
static int64_t do_due(struct srun *srun)
{
    int64_t now = clock_boot_us(), next = 0, at;

    if (srun->request.wait_s && srun->first_exit_us && !srun->killing) {
        at = srun->first_exit_us + srun->request.wait_s * (int64_t)SECOND_US;
        if (now >= at) {
            cli_say(&srun->cli, "First task exited %us ago", srun->request.wait_s);
            show_tasks(srun);
            cli_say(&srun->cli, "Terminating %s", step_name(srun));
            srun->aborted = true;
            end_step(srun, JOB_CANCELLED, FORCE_WAIT_S);
        } else {
            next = at;
        }
    }
    if (srun->give_up_us && (!next || srun->give_up_us < next))
        next = srun->give_up_us;
    return next;
}

static void serve(struct srun *srun, struct pollfd *fds, size_t count)
{
    if (fds[0].revents)
        serve_signals(srun);
    if (fds[1].revents && srun->input_fd >= 0)
        send_input(srun);
    if (fds[2].revents && srun->own)
        alloc_check(&srun->alloc);
    for (size_t i = 0; i < count; i++)
        serve_node(srun, &srun->nodes[i]);
}

static void loop(struct srun *srun)
{
    struct pollfd *fds = NEW_ARRAY(struct pollfd, srun->node_count + 3);

    while (!all_over(srun)) {
        int64_t due = do_due(srun), now = clock_boot_us();
        int wait_ms = due ? (int)MAX((due - now) / 1000 + 1, 0) : -1;

        if (srun->give_up_us && now >= srun->give_up_us) {
            cli_error(&srun->cli, "Timed out waiting for job step to complete");
            srun->failed = true;
            break;
        }
        bool may_read = srun->input_fd >= 0 && input_room(srun) > 0;
        fds[0] = (struct pollfd){ .fd = signal_pipe[0], .events = POLLIN };
        fds[1] = (struct pollfd){ .fd = may_read ? srun->input_fd : -1, .events = POLLIN };
        fds[2] = (struct pollfd){ .fd = srun->own ? alloc_fd(&srun->alloc) : -1, .events = POLLIN };
        for (size_t i = 0; i < srun->node_count; i++) {
            struct srun_node *node = &srun->nodes[i];
            fds[3 + i] = (struct pollfd){ .fd = node->stream ? client_fd(node->client) : -1,
                                          .events = POLLIN };
            if (node->stream)
                fds[3 + i].events = client_events(node->client);
        }
        if (poll(fds, srun->node_count + 3, wait_ms) < 0 && errno != EINTR)
            break;
        serve(srun, fds, srun->node_count);
    }
    free(fds);
}

/* The manager takes the step's share back before we say that it is over. */
static void leave(struct srun *srun)
{
    for (size_t i = 0; i < srun->node_count; i++) {
        struct srun_node *node = &srun->nodes[i];
        struct err err = { 0 };
        if (!node->manager || !node->stream)
            continue;
        client_stream_finish(node->stream);
        for (int tries = 0; tries < 20 && node->stream; tries++) {
            client_pump(node->client, &err);
            ProtobufCMessage *message;
            if (client_stream_try(node->stream, &srun->cli.arena, &message, &err) != CLIENT_AGAIN)
                break;
            struct pollfd fd = { .fd = client_fd(node->client),
                                 .events = client_events(node->client) };
            poll(&fd, 1, 50);
        }
    }
}

static void set_raw(struct srun *srun)
{
    struct termios raw;

    if (!srun->request.pty || tcgetattr(STDIN_FILENO, &srun->before) < 0)
        return;
    raw = srun->before;
    cfmakeraw(&raw);
    srun->raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

int srun_loop(struct srun *srun)
{
    set_raw(srun);
    loop(srun);
    if (srun->raw)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &srun->before);
    if (srun->killed_by_9 || (srun->killing && srun->highest > 128))
        cli_say(&srun->cli, "Force Terminated %s", step_name(srun));
    leave(srun);
    if (srun->failed && srun->highest == 0) {
        srun->highest = 1;
        srun->highest_status = 1 << 8;
    }
    return srun->highest;
}
