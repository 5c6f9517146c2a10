/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forked_queries.c - forked children that answer what takes long (ctl_forked.c)
 *
 * Few at once: each is a copy of this process, and what is written meanwhile is copied. The others wait
 * in line. A child keeps none of our descriptors, or a connection that we close would stay open.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spurctld/serve.h"
#include "sys/clock.h"
#include "sys/files.h"
#include "sys/log.h"

enum {
    AT_ONCE = 2,
    CHILD_S = 60, /* then it ends itself */
    ANSWER_BYTES = 64 * 1024 * 1024,
    PIPE_FD = 3,
};

#define MEND_EVERY_US INT64_C(10000000)
#define TELL_EVERY_US INT64_C(600000000)

struct forked_child {
    struct server *server;
    struct ctl_forked *aside; /* NULL: the server has ended */
    uv_pipe_t pipe;
    pid_t pid;
    struct str said;
};

/* In the child. The length first, so that half an answer is none. */
static void work(struct ctl_forked *aside, int fd)
{
    static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGCHLD };
    struct str out = { 0 };

    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        signal(signals[i], SIG_DFL); /* libuv's would write to the parent's loop */
    if (fd != PIPE_FD && dup2(fd, PIPE_FD) < 0)
        _exit(1);
    close_range(PIPE_FD + 1, ~0U, 0);
    alarm(CHILD_S);
    ctl_forked_work(aside, &out);
    uint64_t len = out.len;
    _exit(file_write_all(PIPE_FD, &len, sizeof(len), NULL) < 0 ||
          file_write_all(PIPE_FD, str_text(&out), out.len, NULL) < 0);
}

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *buf)
{
    (void)handle, (void)wanted;
    *buf = uv_buf_init(mem_try(65536), 65536);
    if (!buf->base)
        buf->len = 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct forked_child *child = handle->data;

    str_done(&child->said);
    free(child);
}

static void finish_child(struct forked_child *child)
{
    struct server *server = child->server;
    struct span said = { str_text(&child->said), child->said.len };
    struct ctl_forked *aside = TAKE(child->aside);
    uint64_t len = 0;

    if (said.len >= sizeof(len))
        memcpy(&len, said.ptr, sizeof(len));
    if (said.len < sizeof(len) || said.len != len + sizeof(len)) {
        log_warn("aside.failed", "pid=%ld bytes=%zu", (long)child->pid, said.len);
        said = (struct span){ 0 };
    } else {
        said = (struct span){ said.ptr + sizeof(len), (size_t)len };
    }
    uv_close((uv_handle_t *)&child->pipe, on_closed);
    for (size_t i = 0; i < server->asides.children.len; i++) {
        if (server->asides.children.items[i] == child)
            vec_remove(&server->asides.children, i);
    }
    vec_push(&server->asides.ended, child->pid);
    if (aside)
        ctl_forked_done(aside, said);
    server_forked_queries_ended(server);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    struct forked_child *child = stream->data;

    if (got > 0)
        str_add_len(&child->said, buf->base, (size_t)got);
    free(buf->base);
    if (got < 0 || child->said.len > ANSWER_BYTES)
        finish_child(child);
}

/* Does it itself when there can be no child. */
static void start_child(struct server *server, struct ctl_forked *aside)
{
    int fds[2];
    pid_t pid = pipe2(fds, O_CLOEXEC) == 0 ? fork() : -1;

    if (pid == 0)
        work(aside, fds[1]);
    if (pid < 0) {
        log_warn("aside.fork", "failed");
        ctl_forked_done(aside, (struct span){ 0 });
        return;
    }
    struct forked_child *child = NEW(struct forked_child);
    close(fds[1]);
    *child = (struct forked_child){ .server = server, .aside = aside, .pid = pid };
    uv_pipe_init(server->uv, &child->pipe, 0);
    child->pipe.data = child;
    uv_pipe_open(&child->pipe, fds[0]);
    uv_read_start((uv_stream_t *)&child->pipe, on_room, on_read);
    vec_push(&server->asides.children, child);
    if (clock_mono_us() - server->asides.told_us > TELL_EVERY_US) {
        server->asides.told_us = clock_mono_us();
        log_info("aside.begin", "pid=%ld: a copy of this process answers what takes long",
                 (long)pid);
    }
}

void server_forked_query(void *ctx, struct ctl_forked *aside)
{
    struct server *server = ctx;

    vec_push(&server->asides.waiting, aside);
}

void server_forked_queries_turn(struct server *server)
{
    while (server->asides.waiting.len && server->asides.children.len < AT_ONCE &&
           !server->stopping) {
        struct ctl_forked *aside = server->asides.waiting.items[0];
        if (!ctl_forked_is_wanted(aside)) {
            vec_remove(&server->asides.waiting, 0);
            ctl_forked_drop(aside);
            continue;
        }
        if (!server_may_fork(server))
            return;
        vec_remove(&server->asides.waiting, 0);
        start_child(server, aside);
    }
}

void server_forked_queries_ended(struct server *server)
{
    for (size_t i = server->asides.ended.len; i-- > 0;) {
        if (waitpid(server->asides.ended.items[i], NULL, WNOHANG) == 0)
            continue;
        vec_remove(&server->asides.ended, i);
        if (clock_mono_us() - server->asides.mended_us > MEND_EVERY_US) {
            server->asides.mended_us = clock_mono_us();
            server_huge_pages_mend(server);
        }
    }
}

void server_forked_queries_end(struct server *server)
{
    vec_each (struct forked_child *, child, &server->asides.children) {
        kill((*child)->pid, SIGKILL);
        waitpid((*child)->pid, NULL, 0);
        (*child)->aside = NULL; /* the controller frees it */
        uv_close((uv_handle_t *)&(*child)->pipe, on_closed);
    }
    vec_each (pid_t, pid, &server->asides.ended)
        waitpid(*pid, NULL, 0);
    vec_done(&server->asides.children);
    vec_done(&server->asides.ended);
    vec_done(&server->asides.waiting);
}
