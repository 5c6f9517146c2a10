// SPDX-License-Identifier: Apache-2.0
/*
 * srun_signal.c - what srun does when it gets a signal: once, twice, thrice
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/srun.h"
#include "client/client.h"
#include "sys/clock.h"
#include "sys/signals.h"

volatile int srun_interrupted;
int srun_signal_pipe[2] = { -1, -1 };

static void on_signal(int sig)
{
    int saved = errno;
    unsigned char byte = (unsigned char)sig;
    ssize_t ignored = write(srun_signal_pipe[1], &byte, 1);

    (void)ignored;
    if (sig == SIGINT || sig == SIGTERM || sig == SIGHUP || sig == SIGQUIT)
        srun_interrupted = sig;
    errno = saved;
}

/* --ignore-signals; 0, or the exit code after a complaint. */
static int ignore_some(struct srun *srun)
{
    const char *cursor = srun->request.ignore_signals;
    struct span word;

    while (cursor && str_next(&cursor, ",", &word)) {
        CLEANUP(freep) char *name = mem_strndup(word.ptr, word.len);
        int sig = signals_parse(name);
        if (sig <= 0 || signal(sig, SIG_IGN) == SIG_ERR) {
            cli_error(&srun->cli, "Invalid --ignore-signals specification: %s", name);
            return 255;
        }
    }
    return 0;
}

int srun_catch_signals(struct srun *srun)
{
    static const int caught[] = { SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                  SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH };
    struct sigaction action = { .sa_handler = on_signal };

    if (pipe2(srun_signal_pipe, O_CLOEXEC | O_NONBLOCK) < 0)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(caught); i++)
        sigaction(caught[i], &action, NULL);
    signal(SIGTTIN, SIG_IGN); /* in the background of a terminal: no input, but no stop either */
    return ignore_some(srun);
}

/* ---- to the nodes ---- */

void srun_send_all(struct srun *srun, RunStepIn *in)
{
    for (size_t i = 0; i < srun->node_count; i++) {
        struct srun_node *node = &srun->nodes[i];
        if (!node->launched || node->over)
            continue;
        if (node->stream)
            client_stream_send(node->stream, &in->base);
        else if (in->what_case == RUN_STEP_IN__WHAT_SIGNAL && node->signal_count < SRUN_SIGNALS)
            node->signals[node->signal_count++] = in->signal->signal; /* when it is back */
    }
}

void srun_send_signal(struct srun *srun, int sig, JobState why, unsigned wait_s)
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
    srun_send_all(srun, &in);
}

/* The step is ended; the nodes say so and why. */
void srun_end_step(struct srun *srun, JobState why, unsigned wait_s)
{
    int64_t at = clock_boot_us() + (wait_s + SRUN_GIVE_UP_S) * (int64_t)SRUN_SECOND_US;

    srun->killing = true;
    srun->kill_why = why;
    srun->kill_wait_s = wait_s;
    if (!srun->give_up_us || at < srun->give_up_us)
        srun->give_up_us = at;
    srun_send_signal(srun, SIGKILL, why, wait_s);
}

/* ---- from the terminal ---- */

void srun_show_tasks(struct srun *srun)
{
    static const char *const words[] = { "unknown", "running", "exited abnormally", "exited" };
    VEC(uint32_t) list = { 0 };

    for (size_t state = 0; state < ARRAY_LEN(words); state++) {
        CLEANUP(str_done) struct str text = { 0 };
        vec_clear(&list);
        for (uint32_t i = 0; i < srun->ntasks; i++) {
            const struct srun_task *task = &srun->tasks[i];
            size_t is = task->exited ? (task->status ? 2 : 3) : task->started ? 1 : 0;
            if (is == state)
                vec_push(&list, i);
        }
        if (list.len == 0)
            continue;
        srun_add_ranges(&text, list.items, list.len);
        cli_say(&srun->cli, "%s task%s %s: %s", srun_step_name(srun), list.len > 1 ? "s" : "",
                str_text(&text), words[state]);
    }
    vec_done(&list);
}

static void force_end(struct srun *srun)
{
    cli_say(&srun->cli, "forcing job termination");
    if (!srun->aborted)
        cli_say(&srun->cli, "Job step aborted: Waiting up to %u seconds for job step to finish.",
                srun->site_kill_wait_s + 2);
    srun->aborted = true;
    bool at_once = srun->killing || srun->request.quit_on_interrupt || srun->request.pty;
    srun_end_step(srun, JOB_CANCELLED, at_once ? 0 : SRUN_FORCE_WAIT_S);
}

/*
 * Once shows what the tasks do, twice within a second interrupts them and ends those that go on,
 * thrice does not wait for them. With --disable-status the first goes to the tasks at once.
 */
static void on_interrupt(struct srun *srun)
{
    int64_t now = clock_boot_us();
    const struct job_request *asked = &srun->request;

    if (!asked->quit_on_interrupt &&
        (!srun->last_interrupt_us || now - srun->last_interrupt_us > SRUN_SECOND_US)) {
        srun->last_interrupt_us = now;
        if (asked->disable_status) {
            cli_say(&srun->cli, "sending Ctrl-C to %s", srun_step_name(srun));
            srun_send_signal(srun, SIGINT, JOB_PENDING, 0);
            return;
        }
        cli_say(&srun->cli, "interrupt (one more within 1 sec to abort)");
        srun_show_tasks(srun);
        return;
    }
    srun->last_interrupt_us = now;
    if (srun->last_sent_us && now - srun->last_sent_us < SRUN_SECOND_US) {
        force_end(srun);
        return;
    }
    srun->last_sent_us = now;
    cli_say(&srun->cli, "sending Ctrl-C to %s", srun_step_name(srun));
    srun_send_signal(srun, SIGINT, JOB_PENDING, 0);
    force_end(srun);
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
    srun_send_all(srun, &in);
}

void srun_serve_signals(struct srun *srun)
{
    unsigned char sig;

    while (read(srun_signal_pipe[0], &sig, 1) == 1) {
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
            srun_send_signal(srun, sig, JOB_PENDING, 0);
        }
    }
}
