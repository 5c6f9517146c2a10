/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stepd.c - the zygote's client
 */
#include "spurd/task/stepd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "spurd/task/stepd_priv.h"
#include "sys/files.h"
#include "sys/log.h"
#include "sys/spawn.h"

enum { INLINE_BYTES = 100 * 1024, RETRY_MS = 5, SPAWN_WAIT_TRIES = 1000 };

static void try_later(struct stepd *stepd);
static void flush(struct stepd *stepd);

static void free_handle(uv_handle_t *handle)
{
    free(handle);
}

static void drop_zygote(struct stepd *stepd)
{
    if (stepd->poll) {
        uv_poll_stop(stepd->poll);
        uv_close((uv_handle_t *)TAKE(stepd->poll), free_handle);
    }
    file_close(&stepd->fd);
    stepd->ready = false;
}

static void ask_to_quit(struct stepd *stepd)
{
    ZygoteRequest request = ZYGOTE_REQUEST__INIT;
    uint8_t bytes[16];

    request.has_quit = request.quit = true;
    send(stepd->fd, bytes, zygote_request__pack(&request, bytes), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Its first packet. A zygote of an older build would run older supervisors. */
static void on_hello(struct stepd *stepd, const uint8_t *bytes, size_t len)
{
    ZygoteHello *hello = zygote_hello__unpack(NULL, len, bytes);
    bool same = hello && hello->protocol == STEP_PROTOCOL && str_eq(hello->version, SPUR_VERSION);

    if (same) {
        log_debug("zygote.hello", "pid=%u", hello->pid);
        stepd->ready = true;
        stepd->spawned = false;
        stepd->tries = 0;
    } else {
        log_info("zygote.replaced", "version=%s ours=%s",
                 hello && hello->version ? hello->version : "?", SPUR_VERSION);
        ask_to_quit(stepd);
        drop_zygote(stepd);
        unlink(stepd->socket_path);
        try_later(stepd);
    }
    if (hello)
        zygote_hello__free_unpacked(hello, NULL);
    if (!same)
        return;
    stepd->options.ready(stepd->options.ctx);
    flush(stepd);
}

static void on_zygote(uv_poll_t *poll, int status, int events)
{
    struct stepd *stepd = poll->data;
    uint8_t bytes[512];

    (void)status;
    if (events & (UV_READABLE | UV_DISCONNECT)) {
        ssize_t len = recv(stepd->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (len == 0 || (len < 0 && errno != EAGAIN && errno != EINTR)) {
            log_warn("zygote.lost", "queued=%zu", stepd->queue.len);
            drop_zygote(stepd);
            try_later(stepd);
            return;
        }
        if (len > 0 && !stepd->ready)
            on_hello(stepd, bytes, (size_t)len);
    }
    if (stepd->ready)
        flush(stepd);
}

static bool connect_zygote(struct stepd *stepd)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    CLEANUP(file_close)
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    strcpy(addr.sun_path, stepd->socket_path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
        return false;
    stepd->fd = fd;
    fd = -1;
    stepd->poll = NEW(uv_poll_t);
    uv_poll_init(stepd->uv, stepd->poll, stepd->fd);
    stepd->poll->data = stepd;
    uv_poll_start(stepd->poll, UV_READABLE | UV_DISCONNECT, on_zygote);
    return true;
}

static int spawn_zygote(struct stepd *stepd, struct err *err)
{
    char name[] = "spurstepd", flag[] = "--zygote";
    char *argv[] = { name, flag, stepd->socket_path, NULL };
    CLEANUP(freep) char *log_path = mem_printf("%s/spurstepd.log", stepd->run_dir);
    CLEANUP(file_close)
    int log_fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const struct spawn_fd fds[] = { { .from = log_fd, .to = 2 } };
    const struct spawn spec = { .path = stepd->program,
                                .argv = argv,
                                .env = NULL,
                                .cwd = "/",
                                .fds = fds,
                                .fd_count = log_fd >= 0 ? 1 : 0,
                                .new_session = true };

    stepd_reap(stepd);
    return spawn_start(&spec, &stepd->pid, NULL, err);
}

/* Connects, or starts one and connects a little later. */
static void try_now(uv_timer_t *timer)
{
    struct stepd *stepd = timer->data;
    struct err err = { 0 };

    if (stepd->fd >= 0 || stepd->stopping || connect_zygote(stepd))
        return;
    if (!stepd->spawned || stepd->tries > SPAWN_WAIT_TRIES) {
        stepd->tries = 0;
        stepd->spawned = spawn_zygote(stepd, &err) == 0;
        if (!stepd->spawned)
            log_error("zygote.start", "program=%s error=%s", stepd->program, err.text);
    }
    try_later(stepd);
}

static void try_later(struct stepd *stepd)
{
    if (stepd->stopping)
        return;
    stepd->tries++;
    uv_timer_start(&stepd->timer, try_now, stepd->spawned ? RETRY_MS : 20 * RETRY_MS, 0);
}

struct stepd *stepd_new(uv_loop_t *uv, const struct stepd_options *options, struct err *err)
{
    CLEANUP(freep) char *path = mem_printf("%s/zygote.%d.sock", options->run_dir, STEP_PROTOCOL);

    if (strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
        err_set(err, ERR_PATH_TOO_LONG, "socket '%s' (see --run-dir)", path);
        return NULL;
    }
    struct stepd *stepd = NEW(struct stepd);
    stepd->uv = uv;
    stepd->options = *options;
    stepd->program = mem_strdup(options->program);
    stepd->run_dir = mem_strdup(options->run_dir);
    stepd->socket_path = TAKE(path);
    stepd->fd = -1;
    uv_timer_init(uv, &stepd->timer);
    stepd->timer.data = stepd;
    uv_timer_start(&stepd->timer, try_now, 0, 0);
    return stepd;
}

void stepd_reap(struct stepd *stepd)
{
    if (stepd->pid > 0 && waitpid(stepd->pid, NULL, WNOHANG) != 0)
        stepd->pid = 0;
}

bool stepd_is_ready(const struct stepd *stepd)
{
    return stepd->ready;
}

static void launch_done(struct launch *launch)
{
    free(launch->bytes);
    file_close(&launch->chan_fd);
    file_close(&launch->file_fd);
}

static void stepd_closed(uv_handle_t *handle)
{
    struct stepd *stepd = handle->data;

    free(stepd->program);
    free(stepd->run_dir);
    free(stepd->socket_path);
    vec_done(&stepd->queue);
    free(stepd);
}

void stepd_free(struct stepd *stepd)
{
    if (!stepd)
        return;
    stepd->stopping = true;
    drop_zygote(stepd);
    vec_each (struct launch, launch, &stepd->queue)
        launch_done(launch);
    uv_timer_stop(&stepd->timer);
    uv_close((uv_handle_t *)&stepd->timer, stepd_closed);
}

/* ---- launches ---- */

static ssize_t send_launch(const struct stepd *stepd, const struct launch *launch)
{
    const int fds[2] = { launch->chan_fd, launch->file_fd };
    size_t count = launch->file_fd >= 0 ? 2 : 1;
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(fds))];
    } control = { 0 };
    struct iovec part = { .iov_base = launch->bytes, .iov_len = launch->len };
    struct msghdr msg = { .msg_iov = &part,
                          .msg_iovlen = 1,
                          .msg_control = &control,
                          .msg_controllen = CMSG_SPACE(sizeof(int) * count) };

    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_RIGHTS;
    control.head.cmsg_len = CMSG_LEN(sizeof(int) * count);
    memcpy(CMSG_DATA(&control.head), fds, sizeof(int) * count);
    return sendmsg(stepd->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void flush(struct stepd *stepd)
{
    size_t sent = 0;

    while (sent < stepd->queue.len && send_launch(stepd, &stepd->queue.items[sent]) > 0)
        launch_done(&stepd->queue.items[sent++]);
    if (sent) {
        stepd->queue.len -= sent;
        memmove(stepd->queue.items, stepd->queue.items + sent,
                stepd->queue.len * sizeof(struct launch));
    }
    int events = UV_READABLE | UV_DISCONNECT | (stepd->queue.len ? UV_WRITABLE : 0);
    if (stepd->poll)
        uv_poll_start(stepd->poll, events, on_zygote);
}

static int put_in_file(const StepTask *task, size_t len, struct err *err)
{
    CLEANUP(freep) uint8_t *bytes = mem_try(len);
    CLEANUP(file_close) int fd = memfd_create("spur-task", MFD_CLOEXEC);

    if (!bytes)
        return err_code(err, ERR_NO_MEMORY);
    step_task__pack(task, bytes);
    if (fd < 0)
        return err_errno(err, errno, "memfd");
    if (file_write_all(fd, bytes, len, err) < 0)
        return -(int)err->code;
    int out = fd;
    fd = -1;
    return out;
}

struct step_chan *stepd_launch_as(struct stepd *stepd, const StepTask *task,
                                  const struct step_chan_ops *ops, void *owner, struct err *err)
{
    ZygoteRequest request = ZYGOTE_REQUEST__INIT;
    struct launch launch = { .chan_fd = -1, .file_fd = -1 };
    size_t len = step_task__get_packed_size(task);
    int pair[2];

    if (len > INLINE_BYTES) {
        launch.file_fd = put_in_file(task, len, err);
        if (launch.file_fd < 0)
            return NULL;
        request.has_in_file = request.in_file = true;
    } else {
        request.launch = (StepTask *)task;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        err_errno(err, errno, "socketpair");
        file_close(&launch.file_fd);
        return NULL;
    }
    launch.len = zygote_request__get_packed_size(&request);
    launch.bytes = mem_new(launch.len);
    zygote_request__pack(&request, launch.bytes);
    launch.chan_fd = pair[1];
    vec_push(&stepd->queue, launch);
    struct step_chan *chan = stepd_chan_new(stepd, pair[0], owner);
    chan->ops = ops;
    if (stepd->ready)
        flush(stepd);
    return chan;
}

struct step_chan *stepd_launch(struct stepd *stepd, const StepTask *task, void *owner,
                               struct err *err)
{
    return stepd_launch_as(stepd, task, NULL, owner, err);
}
