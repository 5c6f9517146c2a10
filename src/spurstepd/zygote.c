/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygote.c - the small process that every supervisor is forked from, and that gives it more to do
 *
 * (1) The directory of an attempt is made here, exclusively, before the fork: whoever asks again
 *     for the same attempt is refused. Its lock passes to the supervisor with the fork, so there
 *     is no moment at which the directory exists and looks abandoned while the step begins. To
 *     one that has had a step before it travels with the request (pool.h).
 * (2) One client at a time, its requests in order. A client that gets our hello therefore knows
 *     that everything its predecessor had asked for is forked or refused.
 */
#include "spurstepd/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/str.h"
#include "proto/step.pb-c.h"
#include "spurstepd/pool.h"
#include "spurstepd/step.h"
#include "spurstepd/step_spank.h"
#include "spurstepd/tasks.h"
#include "sys/clock.h"
#include "sys/files.h"

enum {
    PACKET_BYTES = 256 * 1024,
    MAX_FDS = 2,
    STEPS_MAX = 256, /* of one supervisor, so that what it may lose of its memory is bounded */
};

struct zygote {
    int listen_fd, client_fd;
    char *title;
    size_t title_bytes;
    struct pool pool;
    bool quit;
};

/* One request: its bytes, its step's channel, and the file the task is in when it is long. */
struct request {
    ssize_t len;
    int chan_fd, file_fd;
};

static uint8_t packet[PACKET_BYTES];

static int listen_on(const char *path, struct err *err)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };

    if (strlen(path) >= sizeof(addr.sun_path))
        return err_set(err, ERR_PATH_TOO_LONG, "socket '%s'", path);
    strcpy(addr.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_errno(err, errno, "socket");
    unlink(path);
    mode_t before = umask(0177);
    int ret = bind(fd, (struct sockaddr *)&addr, sizeof(addr));
    umask(before);
    if (ret < 0 || listen(fd, 8) < 0) {
        err_errno(err, errno, "socket '%s'", path);
        close(fd);
        return -(int)ERR_IO;
    }
    return fd;
}

/* Only root and whoever we run as may have steps started. */
static bool trusted(int fd)
{
    struct ucred who;
    socklen_t size = sizeof(who);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 &&
           (who.uid == 0 || who.uid == geteuid());
}

static void greet(struct zygote *zygote)
{
    ZygoteHello hello = ZYGOTE_HELLO__INIT;
    char version[] = SPUR_VERSION;
    uint8_t bytes[128];

    hello.has_protocol = hello.has_pid = true;
    hello.protocol = STEP_PROTOCOL;
    hello.pid = (uint32_t)getpid();
    hello.version = version;
    size_t len = zygote_hello__pack(&hello, bytes);
    if (send(zygote->client_fd, bytes, len, MSG_NOSIGNAL) < 0)
        file_close(&zygote->client_fd);
}

static void accept_client(struct zygote *zygote)
{
    int fd = accept4(zygote->listen_fd, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return;
    if (!trusted(fd)) {
        close(fd);
        return;
    }
    zygote->client_fd = fd;
    greet(zygote);
}

static void take_fds(struct msghdr *msg, struct request *request)
{
    int fds[MAX_FDS], *places[MAX_FDS] = { &request->chan_fd, &request->file_fd };

    for (struct cmsghdr *part = CMSG_FIRSTHDR(msg); part; part = CMSG_NXTHDR(msg, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(fds, CMSG_DATA(part), MIN(count, (size_t)MAX_FDS) * sizeof(int));
        for (size_t i = 0; i < count && i < MAX_FDS; i++) {
            file_close(places[i]);
            *places[i] = fds[i];
        }
    }
}

/* False: the client has gone. */
static bool receive(struct zygote *zygote, struct request *request)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * MAX_FDS)];
    } control;
    struct iovec part = { .iov_base = packet, .iov_len = sizeof(packet) };
    struct msghdr msg = { .msg_iov = &part,
                          .msg_iovlen = 1,
                          .msg_control = control.bytes,
                          .msg_controllen = sizeof(control.bytes) };

    *request = (struct request){ .chan_fd = -1, .file_fd = -1 };
    do
        request->len = recvmsg(zygote->client_fd, &msg, MSG_CMSG_CLOEXEC);
    while (request->len < 0 && errno == EINTR);
    if (request->len <= 0)
        return false;
    take_fds(&msg, request);
    if (msg.msg_flags & MSG_TRUNC)
        request->len = 0;
    return true;
}

/* The step's channel hears why nothing was started; the connection then ends. */
static void refuse(const StepTask *task, int chan_fd, bool already, const char *text)
{
    StepNews news = STEP_NEWS__INIT;
    StepEnded ended = STEP_ENDED__INIT;
    uint8_t bytes[1024];
    char words[256];

    snprintf(words, sizeof(words), "%s", text);
    if (already) {
        news.has_already = news.already = true;
    } else {
        ended.id = task ? task->id : NULL;
        ended.has_launch_failed = ended.launch_failed = true;
        ended.has_ended_us = true;
        ended.ended_us = clock_wall_us();
        ended.text = words;
        news.ended = &ended;
    }
    if (step_news__get_packed_size(&news) <= sizeof(bytes))
        send(chan_fd, bytes, step_news__pack(&news, bytes), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The directory, open and locked (1); -1 when nothing may be started, which was then said. */
static int make_dir(const StepTask *task, int chan_fd)
{
    char text[128];

    if (mkdir(task->dir, 0711) < 0) {
        snprintf(text, sizeof(text), "spool directory: %s", strerror(errno));
        refuse(task, chan_fd, errno == EEXIST, text);
        return -1;
    }
    int fd = open(task->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0) {
        snprintf(text, sizeof(text), "spool directory: %s", strerror(errno));
        refuse(task, chan_fd, false, text);
        file_close(&fd);
        rmdir(task->dir);
        return -1;
    }
    return fd;
}

static void free_task(StepTask *task)
{
    if (task->env_block.len > 0 && task->env_block.data[task->env_block.len - 1] == '\0')
        task->n_env = 0;
    step_task__free_unpacked(task, NULL);
}

/* Plugins are loaded by another program; it does not return. */
static void become_spank(const StepTask *task, int dir_fd, int chan_fd)
{
    char text[256];
    int error = step_spank_become(task, dir_fd, chan_fd);

    snprintf(text, sizeof(text), "SPANK plugins: %s: %s", task->spank->program, strerror(error));
    refuse(task, chan_fd, false, text);
    rmdir(task->dir);
    _exit(1);
}

/* True: nothing is left of it, in this process or below it. */
static bool supervise(struct zygote *zygote, StepTask *task, int dir_fd, int chan_fd)
{
    bool clean = false;

    if (task->spank)
        become_spank(task, dir_fd, chan_fd);
    step_split_env(task);
    snprintf(zygote->title, zygote->title_bytes, "spurstepd: [%u.%s]", task->id->job_id,
             task->name);
    int status =
        task->tasks ? tasks_run(task, dir_fd, chan_fd) : step_run(task, dir_fd, chan_fd, &clean);
    if (!clean)
        _exit(status);
    return clean;
}

/* What was asked of the zygote, who looked at it before it was given to us. */
static StepTask *next_task(struct zygote *zygote, int fds[POOL_FDS])
{
    snprintf(zygote->title, zygote->title_bytes, "spurstepd: idle");
    size_t len = pool_wait(&zygote->pool, packet, sizeof(packet), fds);
    ZygoteRequest *asked = len ? zygote_request__unpack(NULL, len, packet) : NULL;
    StepTask *task = asked ? TAKE(asked->launch) : NULL;

    if (asked)
        zygote_request__free_unpacked(asked, NULL);
    return task;
}

/* Of a supervisor: one step, and as long as nothing is left of it and there are more, another. */
static void become_supervisor(struct zygote *zygote, StepTask *task, int dir_fd, int chan_fd)
{
    int fds[POOL_FDS] = { chan_fd, dir_fd };

    file_close(&zygote->listen_fd);
    file_close(&zygote->client_fd);
    pool_leave(&zygote->pool);
    for (int left = STEPS_MAX; task && supervise(zygote, task, fds[1], fds[0]);) {
        free_task(task);
        if (--left == 0) /* before it offers itself: what is taken must be run */
            break;
        task = next_task(zygote, fds);
    }
    _exit(0);
}

static void launch(struct zygote *zygote, StepTask *task, const struct request *request)
{
    int chan_fd = request->chan_fd;

    if (task->tasks ? !tasks_valid(task) : !step_task_valid(task)) {
        refuse(task, chan_fd, false, "the task is not whole");
        return;
    }
    int dir_fd = make_dir(task, chan_fd);
    if (dir_fd < 0)
        return;
    const int fds[POOL_FDS] = { chan_fd, dir_fd };
    bool inline_task = request->file_fd < 0;
    if (!inline_task || !pool_give(&zygote->pool, packet, (size_t)request->len, fds)) {
        pid_t pid = fork();
        if (pid == 0)
            become_supervisor(zygote, task, dir_fd, chan_fd);
        if (pid < 0) {
            refuse(task, chan_fd, false, strerror(errno));
            rmdir(task->dir);
        }
    }
    close(dir_fd);
}

static StepTask *read_task(int fd)
{
    struct str text = { 0 };
    StepTask *task = NULL;

    if (fd >= 0 && lseek(fd, 0, SEEK_SET) == 0 &&
        file_read_fd(fd, LIMIT_MESSAGE_BYTES, &text, NULL) == 0)
        task = step_task__unpack(NULL, text.len, (const uint8_t *)str_text(&text));
    str_done(&text);
    return task;
}

static void obey(struct zygote *zygote, const struct request *request)
{
    ZygoteRequest *asked = zygote_request__unpack(NULL, (size_t)request->len, packet);

    if (!asked)
        return;
    StepTask *task = asked->in_file ? read_task(request->file_fd) : TAKE(asked->launch);
    if (asked->quit)
        zygote->quit = true;
    else if (task && request->chan_fd >= 0)
        launch(zygote, task, request);
    else if (request->chan_fd >= 0)
        refuse(NULL, request->chan_fd, false, "the task cannot be read");
    if (task)
        step_task__free_unpacked(task, NULL);
    zygote_request__free_unpacked(asked, NULL);
}

static void serve_client(struct zygote *zygote)
{
    struct request request;

    if (!receive(zygote, &request)) {
        file_close(&zygote->client_fd);
        return;
    }
    if (request.len > 0)
        obey(zygote, &request);
    file_close(&request.chan_fd);
    file_close(&request.file_fd);
}

/* False: nobody was connected for idle_s. */
static bool serve(struct zygote *zygote, int idle_s)
{
    bool has_client = zygote->client_fd >= 0;
    struct pollfd ready[] = {
        { .fd = has_client ? zygote->client_fd : zygote->listen_fd, .events = POLLIN },
        { .fd = zygote->pool.offers_fd, .events = POLLIN },
    };
    int count = poll(ready, ARRAY_LEN(ready),
                     !has_client              ? idle_s * 1000
                     : zygote->pool.count > 0 ? POOL_IDLE_MS
                                              : -1);

    if (count == 0 && !has_client)
        return false;
    if (count == 0)
        pool_end_all(&zygote->pool);
    if (count > 0 && ready[1].revents)
        pool_hear(&zygote->pool);
    if (count > 0 && ready[0].revents) {
        if (has_client)
            serve_client(zygote);
        else
            accept_client(zygote);
    }
    return true;
}

int zygote_run(const char *socket_path, int idle_s, char *title, size_t title_bytes,
               struct err *err)
{
    struct zygote zygote = { .client_fd = -1, .title = title, .title_bytes = title_bytes };

    for (int sig = 1; sig <= SIGRTMAX; sig++) /* what is ignored now, scripts would ignore too */
        signal(sig, SIG_DFL);
    signal(SIGCHLD, SIG_IGN); /* supervisors are reaped by the kernel */
    signal(SIGPIPE, SIG_IGN);
    umask(022);
    zygote.listen_fd = listen_on(socket_path, err);
    if (zygote.listen_fd < 0)
        return zygote.listen_fd;
    pool_open(&zygote.pool);
    while (!zygote.quit && serve(&zygote, idle_s))
        ;
    pool_close(&zygote.pool);
    file_close(&zygote.client_fd);
    file_close(&zygote.listen_fd);
    return 0;
}
