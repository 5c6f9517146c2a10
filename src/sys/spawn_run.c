/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn_run.c - running a helper to its end, with a time limit and bounded output
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/clock.h"
#include "sys/files.h"
#include "sys/signals.h"
#include "sys/spawn.h"
#include "sys/spawn_priv.h"

struct run {
    pid_t pid;
    int pidfd, in, out; /* our ends; -1 when done with */
    int stop;           /* -1: none */
    struct span input;
    struct str *into;
    size_t max, kept;
    int64_t deadline_us; /* monotonic; 0: none */
    struct spawn_result result;
};

static void feed(struct run *run)
{
    ssize_t put = write(run->in, run->input.ptr, run->input.len);

    if (put > 0) {
        run->input.ptr += put;
        run->input.len -= (size_t)put;
    }
    /* EPIPE: it does not want more. */
    if (run->input.len == 0 || (put < 0 && errno != EAGAIN && errno != EINTR))
        file_close(&run->in);
}

static void collect(struct run *run)
{
    char chunk[8192];
    ssize_t got = read(run->out, chunk, sizeof(chunk));

    if (got > 0) {
        size_t room = run->into ? run->max - run->kept : 0;
        size_t keep = MIN(room, (size_t)got);
        if (keep)
            str_add_len(run->into, chunk, keep);
        run->kept += keep;
        run->result.truncated |= run->into && keep < (size_t)got;
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        file_close(&run->out);
    }
}

static int wait_ms(const struct run *run)
{
    if (!run->deadline_us)
        return -1;
    int64_t left = run->deadline_us - clock_mono_us();
    return left <= 0 ? 0 : (int)MIN(left / 1000 + 1, 60000);
}

/* Until the process has ended; output that it already wrote is read afterwards. */
static void watch(struct run *run)
{
    for (;;) {
        struct pollfd fds[] = {
            { run->pidfd, POLLIN, 0 },
            { run->out, POLLIN, 0 },
            { run->in, POLLOUT, 0 },
            { run->stop, POLLIN, 0 },
        };
        int ready = poll(fds, ARRAY_LEN(fds), wait_ms(run));

        if (ready < 0 && errno != EINTR)
            break;
        if (ready > 0 && fds[2].revents)
            feed(run);
        if (ready > 0 && fds[1].revents)
            collect(run);
        if (ready > 0 && fds[0].revents)
            return;
        if (ready > 0 && fds[3].revents)
            break;
        if (run->deadline_us && clock_mono_us() >= run->deadline_us)
            break;
    }
    run->result.timed_out = true;
}

static void finish(struct run *run)
{
    /* The leader is not yet reaped, so its process group id cannot belong to anybody else. */
    kill(-run->pid, SIGKILL);
    kill(run->pid, SIGKILL);
    while (waitpid(run->pid, &run->result.status, 0) < 0 && errno == EINTR)
        ;
    while (run->out >= 0) {
        struct pollfd left = { run->out, POLLIN, 0 };
        if (poll(&left, 1, 0) <= 0)
            break;
        collect(run);
    }
}

static int run_real(const struct spawn *spec, struct span input, int timeout_ms, struct str *out,
                    size_t out_max, struct spawn_result *result, struct err *err)
{
    struct run run = { .pidfd = -1,
                       .in = -1,
                       .out = -1,
                       .input = input,
                       .into = out,
                       .max = out_max,
                       .stop = spec->stop_fd > 0 ? spec->stop_fd : -1 };
    CLEANUP(file_close) int child_in = -1;
    CLEANUP(file_close) int child_out = -1;
    struct spawn copy = *spec;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(err, errno, "pipe");
    run.out = ends[0], child_out = ends[1];
    if (pipe2(ends, O_CLOEXEC) < 0) {
        file_close(&run.out);
        return err_errno(err, errno, "pipe");
    }
    child_in = ends[0], run.in = ends[1];
    fcntl(run.in, F_SETFL, O_NONBLOCK);
    fcntl(run.out, F_SETFL, O_NONBLOCK);
    copy.fds = (struct spawn_fd[]){ { child_in, 0 }, { child_out, 1 }, { child_out, 2 } };
    copy.fd_count = 3;
    copy.new_session = true;
    int rc = spawn_start_real(&copy, &run.pid, &run.pidfd, err);
    file_close(&child_in);
    file_close(&child_out);
    if (rc == 0) {
        if (timeout_ms >= 0)
            run.deadline_us = clock_mono_us() + (int64_t)timeout_ms * 1000;
        if (!input.len)
            file_close(&run.in);
        watch(&run);
        finish(&run);
        *result = run.result;
    }
    file_close(&run.in);
    file_close(&run.out);
    file_close(&run.pidfd);
    return rc;
}

static const struct spawn_ops *used;
static void *used_ctx;

void spawn_use(const struct spawn_ops *ops, void *ctx)
{
    used = ops;
    used_ctx = ctx;
}

int spawn_start(const struct spawn *spec, pid_t *pid, int *pidfd, struct err *err)
{
    return used ? used->start(used_ctx, spec, pid, pidfd, err)
                : spawn_start_real(spec, pid, pidfd, err);
}

int spawn_run(const struct spawn *spec, struct span input, int timeout_ms, struct str *out,
              size_t out_max, struct spawn_result *result, struct err *err)
{
    return used ? used->run(used_ctx, spec, input, timeout_ms, out, out_max, result, err)
                : run_real(spec, input, timeout_ms, out, out_max, result, err);
}

void spawn_describe(int status, struct str *out)
{
    if (WIFEXITED(status))
        str_addf(out, "exit %d", WEXITSTATUS(status));
    else if (WIFSIGNALED(status))
        str_addf(out, "signal %d (%s)", WTERMSIG(status), signals_name(WTERMSIG(status)));
    else
        str_addf(out, "status 0x%x", (unsigned)status);
}
