/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon.c - going to the background, and telling systemd
 */
#include "sys/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "sys/files.h"

static int parent_pipe = -1;

static void wait_for_verdict(pid_t child, int pipe_fd)
{
    char verdict;
    ssize_t got;

    do
        got = read(pipe_fd, &verdict, 1);
    while (got < 0 && errno == EINTR);
    if (got == 1)
        _exit(0);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    _exit(WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : 1);
}

static int to_null(int first, int last, struct err *err)
{
    CLEANUP(file_close) int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0)
        return err_errno(err, errno, "/dev/null");
    for (int fd = first; fd <= last; fd++) {
        if (dup2(null, fd) < 0)
            return err_errno(err, errno, "/dev/null");
    }
    return 0;
}

int daemon_detach(struct err *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(err, errno, "pipe");
    pid_t child = fork();
    if (child < 0) {
        int saved = errno;
        close(ends[0]);
        close(ends[1]);
        return err_errno(err, saved, "fork");
    }
    if (child > 0) {
        close(ends[1]);
        wait_for_verdict(child, ends[0]);
    }
    close(ends[0]);
    parent_pipe = ends[1];
    if (setsid() < 0)
        return err_errno(err, errno, "setsid");
    return to_null(STDIN_FILENO, STDOUT_FILENO, err);
}

void daemon_ready(void)
{
    if (parent_pipe >= 0) {
        if (write(parent_pipe, "+", 1) < 0 || to_null(STDERR_FILENO, STDERR_FILENO, NULL) < 0)
            errno = 0; /* the parent is gone, or there is no /dev/null: we serve all the same */
        file_close(&parent_pipe);
    }
    daemon_notify("READY=1\nMAINPID=%ld", (long)getpid());
}

bool daemon_notify(const char *fmt, ...)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    CLEANUP(str_done) struct str text = { 0 };
    CLEANUP(file_close) int fd = -1;
    va_list args;

    if (str_is_empty(path) || (*path != '/' && *path != '@') ||
        strlen(path) >= sizeof(addr.sun_path))
        return false;
    memcpy(addr.sun_path, path, strlen(path));
    if (*path == '@')
        addr.sun_path[0] = '\0'; /* an abstract name */
    va_start(args, fmt);
    str_vaddf(&text, fmt, args);
    va_end(args);
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return fd >= 0 &&
           sendto(fd, str_text(&text), text.len, MSG_NOSIGNAL, (const struct sockaddr *)&addr,
                  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path))) >= 0;
}

int64_t daemon_watchdog_us(void)
{
    const char *text = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    int64_t limit, whose;

    if (!text || !str_to_i64(text, 1, INT64_MAX, &limit))
        return 0;
    if (pid && str_to_i64(pid, 1, INT32_MAX, &whose) && whose != getpid())
        return 0;
    return limit / 2;
}
