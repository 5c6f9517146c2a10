// SPDX-License-Identifier: Apache-2.0
/*
 * x11.c - `--x11`: where the X server is, and the process that forwards
 */
#include "cli/x11.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "client/client.h"
#include "proto/controller.pb-c.h"
#include "schema/job_view.h"
#include "schema/names.h"
#include "sys/clock.h"
#include "sys/files.h"

enum {
    NO_SERVER = 255,
    WAIT_US = 30 * 1000000,
    AGAIN_S = 2,
    ALONE_US = 600 * 1000000, /* no controller was heard for so long */
    FIRST_WAIT_US = 100000,
    LAST_WAIT_US = 10 * 1000000,
};

/* ---- the X server ---- */

static void read_file(struct str *out)
{
    const char *file = getenv("XAUTHORITY"), *home = getenv("HOME");
    struct passwd *user = home ? NULL : getpwuid(getuid());
    CLEANUP(freep) char *own = NULL;

    if (user)
        home = user->pw_dir;
    if (str_is_empty(file) && home)
        file = own = mem_printf("%s/.Xauthority", home);
    if (!str_is_empty(file))
        file_read(file, LIMIT_XAUTHORITY_BYTES, out, NULL);
}

static bool find_address(struct x11_server *server)
{
    const struct x11_display *display = &server->display;
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM }, *found = NULL;
    char port[16];

    if (!display->host[0]) {
        struct sockaddr_un *address = (struct sockaddr_un *)&server->address;
        address->sun_family = AF_UNIX;
        snprintf(address->sun_path, sizeof(address->sun_path), "/tmp/.X11-unix/X%u",
                 display->number);
        server->address_len = sizeof(*address);
        return true;
    }
    if (str_eq(display->host, "localhost")) /* who forwards listens there and nowhere else */
        hints.ai_family = AF_INET;
    snprintf(port, sizeof(port), "%u", X11_PORT + display->number);
    if (getaddrinfo(display->host, port, &hints, &found) != 0 || !found)
        return false;
    memcpy(&server->address, found->ai_addr, found->ai_addrlen);
    server->address_len = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

int x11_find_server(const struct cli *cli, struct x11_server *out)
{
    CLEANUP(str_done) struct str file = { 0 };
    const char *display = getenv("DISPLAY");
    char host[HOST_NAME_MAX + 1] = "";

    if (str_is_empty(display)) {
        cli_error(cli, "No DISPLAY variable set, cannot setup x11 forwarding.");
        return NO_SERVER;
    }
    if (!x11_read_display(display, &out->display) || !find_address(out)) {
        cli_error(cli, "Error parsing DISPLAY environment variable. Cannot use X11 forwarding.");
        return NO_SERVER;
    }
    gethostname(host, sizeof(host) - 1);
    read_file(&file);
    if (!x11_find_auth(str_text(&file), file.len, &out->display, host, &out->auth)) {
        cli_error(cli, "Could not retrieve magic cookie. Cannot use X11 forwarding.");
        return NO_SERVER;
    }
    return 0;
}

/* ---- the process that forwards ---- */

/* All but these two; -1: none. */
static void close_others(int low, int high)
{
    int first = 3;
    const int keep[] = { low, high };

    for (size_t i = 0; i < ARRAY_LEN(keep); i++) {
        if (keep[i] > first)
            syscall(SYS_close_range, first, keep[i] - 1, 0);
        first = MAX(first, keep[i] + 1);
    }
    syscall(SYS_close_range, first, ~0U, 0);
}

/* Neither the terminal nor a descriptor of the command is ours. */
static void settle_child(int life, int say)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    setsid();
    for (int sig = 1; sig < NSIG; sig++)
        signal(sig, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    for (int fd = 0; fd <= 2; fd++)
        dup2(null, fd);
    close_others(MIN(life, say), MAX(life, say));
}

static bool take_answers(struct x11_node *nodes, size_t count, int fd, struct err *err)
{
    int64_t until = clock_boot_us() + WAIT_US;
    size_t left = count;

    while (left > 0) {
        struct pollfd one = { .fd = fd, .events = POLLIN };
        struct x11_said said;
        int64_t now = clock_boot_us();
        if (now >= until || poll(&one, 1, (int)((until - now) / 1000) + 1) < 0) {
            if (now < until && errno == EINTR)
                continue;
            err_set(err, ERR_DEADLINE, "a node does not answer");
            return false;
        }
        if (!one.revents)
            continue;
        if (read(fd, &said, sizeof(said)) != (ssize_t)sizeof(said) || said.node >= count) {
            err_set(err, ERR_INTERNAL, "the process that forwards has ended");
            return false;
        }
        struct x11_node *node = &nodes[said.node];
        said.text[sizeof(said.text) - 1] = '\0';
        if (said.failed) {
            err_set(err, ERR_UNREACHABLE, "%s: %s", node->name, said.text);
            return false;
        }
        left -= !node->ready;
        node->ready = true;
        snprintf(node->display, sizeof(node->display), "localhost:%u.0", said.display);
        node->xauthority = said.text[0] ? mem_strdup(said.text) : NULL;
    }
    return true;
}

bool x11_start(const struct x11_server *server, struct x11_node *nodes, size_t count,
               struct x11_forward *out, struct err *err)
{
    int life[2] = { -1, -1 }, say[2] = { -1, -1 };

    if (pipe2(life, O_CLOEXEC) < 0 || pipe2(say, O_CLOEXEC) < 0) {
        err_errno(err, errno, "pipe");
        file_close(&life[0]);
        file_close(&life[1]);
        return false;
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        settle_child(life[0], say[1]);
        x11_tunnel(server, nodes, count, life[0], say[1]);
        _exit(0);
    }
    file_close(&life[0]);
    file_close(&say[1]);
    *out = (struct x11_forward){ .pid = pid, .life = life[1] };
    bool good = pid > 0 && take_answers(nodes, count, say[0], err);
    if (pid < 0)
        err_errno(err, errno, "fork");
    file_close(&say[0]);
    if (!good)
        x11_stop(out);
    return good;
}

void x11_stop(struct x11_forward *forward)
{
    if (forward->life >= 0)
        file_close(&forward->life);
    if (forward->pid > 0)
        waitpid(forward->pid, NULL, 0);
    forward->pid = 0;
}

/* ---- for a batch job ---- */

/* Waits until the job runs; false: it has ended, or nobody says anything of it. */
static bool wait_running(struct cli *cli, uint32_t job_id)
{
    for (int64_t heard = clock_boot_us(); clock_boot_us() - heard < ALONE_US;) {
        WatchJobRequest request = WATCH_JOB_REQUEST__INIT;
        struct client_stream *stream = NULL;
        struct err err = { 0 };
        int next = -1;
        request.id = arena_printf(&cli->arena, "%u", job_id);
        if (cli_connect(cli, &err) == 0)
            stream = client_stream_open(
                cli->client,
                &(struct client_stream_options){ .path = "/spur.Controller/WatchJob",
                                                 .message = &request.base,
                                                 .reply_type = &job__descriptor },
                &err);
        while (stream) {
            ProtobufCMessage *message;
            arena_reset(&cli->arena);
            next = client_stream_next(stream, &cli->arena, &message, &err);
            if (next != CLIENT_MESSAGE)
                break;
            heard = clock_boot_us();
            const JobStatus *status = job_status((const Job *)message);
            bool runs = status->state == JOB_RUNNING && !(status->flags & JOB_FLAG_CONFIGURING);
            if (!runs && !job_state_ended(status->state))
                continue;
            client_stream_free(stream);
            return runs;
        }
        client_stream_free(stream);
        if (next == CLIENT_ENDED || err.code == ERR_INVALID_JOB_ID || err.code == ERR_PERMISSION)
            return false;
        client_free(TAKE(cli->client));
        sleep(AGAIN_S); /* controllers change */
    }
    return false;
}

/* Through the node that runs the script, as often as it runs. */
static void stay(const char *name, const struct x11_server *server, uint32_t job_id)
{
    struct x11_node node = { .job_id = job_id, .batch = true };
    useconds_t wait_us = FIRST_WAIT_US;
    struct cli cli;

    cli_init(&cli, name);
    while (wait_running(&cli, job_id)) {
        JobAccessRequest request = JOB_ACCESS_REQUEST__INIT;
        JobAccessReply *reply;
        struct err err = { 0 };
        request.id = arena_printf(&cli.arena, "%u", job_id);
        if (cli_call(&cli, "JobAccess", &request.base, &job_access_reply__descriptor,
                     (ProtobufCMessage **)&reply, &err) == 0 &&
            !str_is_empty(reply->address)) {
            node.address = reply->address;
            node.token = reply->token;
            node.ready = false;
            x11_tunnel(server, &node, 1, -1, -1);
            if (node.ready)
                wait_us = FIRST_WAIT_US;
        }
        usleep(wait_us); /* the script is on its way there, or the job is ending */
        wait_us = MIN(wait_us * 2, LAST_WAIT_US);
    }
    cli_done(&cli);
}

void x11_stay(struct cli *cli, const struct x11_server *server, uint32_t job_id)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (fork() == 0) {
            settle_child(-1, -1);
            if (chdir("/") == 0)
                stay(cli->name, server, job_id);
        }
        _exit(0);
    }
    if (pid > 0)
        waitpid(pid, NULL, 0);
    else
        cli_error(cli, "fork: %m. X11 is not forwarded.");
}
