/* SPDX-License-Identifier: Apache-2.0 */
/*
 * up_rest.c - spurrestd of a private cluster
 *
 * It never runs as root: `spur up` of root gives it to the user spurrest, or nobody. An ordinary user's cluster has
 * only that user, who may do everything in it anyway.
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "cli/up.h"
#include "client/client.h"
#include "proto/controller.pb-c.h"
#include "sys/files.h"
#include "sys/spawn.h"

enum { PORT = 6820, PASS_S = 600, WAIT_MS = 15000 };

/* A join token for it alone. */
static int get_pass(const struct up_options *o, struct str *out, struct err *err)
{
    CLEANUP(freep) char *list = up_socket_list(o);
    struct client_options options = { .addresses = list, .timeout_ms = 5000, .retry_ms = 5000 };
    JoinTokenRequest request = JOIN_TOKEN_REQUEST__INIT;
    ProtobufCMessage *answer = NULL;
    struct arena arena;
    struct client *client = client_new(&options, err);

    if (!client)
        return -(int)err->code;
    arena_init(&arena);
    request.node = (char *)"rest:up";
    request.has_lifespan_s = true;
    request.lifespan_s = PASS_S;
    int code = client_call(client, "/spur.Controller/JoinToken", &request.base,
                           &token_reply__descriptor, &arena, &answer, err);
    if (code == 0)
        str_add(out, ((const TokenReply *)(const void *)answer)->token);
    arena_done(&arena);
    client_free(client);
    return code;
}

/* Its directory, with the join token until it has joined. */
static int make_dir(const struct up_options *o, const char *dir, const struct spawn_user *user,
                    struct err *err)
{
    CLEANUP(freep) char *token = mem_printf("%s/join.token", dir);
    CLEANUP(freep) char *joined = mem_printf("%s/rest.crt", dir);
    CLEANUP(str_done) struct str pass = { 0 };

    if (file_make_dirs(dir, 0755, err) < 0)
        return -(int)err->code;
    if (access(joined, F_OK) != 0 &&
        (get_pass(o, &pass, err) < 0 || file_write(token, pass.data, pass.len, 0600, err) < 0))
        return -(int)err->code;
    if (user && (chown(dir, user->uid, user->gid) < 0 ||
                 (access(token, F_OK) == 0 && chown(token, user->uid, user->gid) < 0)))
        return err_errno(err, errno, "cannot give '%s' to uid %u", dir, (unsigned)user->uid);
    return 0;
}

static char *controllers(const struct up_options *o)
{
    struct str list = { 0 };

    for (unsigned i = 0; i < o->controllers; i++) {
        if (!up_is_removed(o, i))
            str_addf(&list, "%shttps://127.0.0.1:%u", list.len ? "," : "", up_port(o, i));
    }
    return str_take(&list);
}

/* Its unix socket comes after its port, which may be another process's. The path may be too long for one. */
static bool serves(int dir_fd)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/rest.sock", dir_fd);
    bool up = fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0;
    if (fd >= 0)
        close(fd);
    return up;
}

static int start(const struct up_options *o, const char *dir, const struct spawn_user *user,
                 struct err *err)
{
    CLEANUP(freep) char *list = controllers(o);
    CLEANUP(freep) char *listen = mem_printf("127.0.0.1:%u", o->rest_port);
    CLEANUP(file_close) int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const char *argv[] = { "spurrestd",
                           "-D",
                           "--controller",
                           list,
                           "--listen",
                           listen,
                           "--listen",
                           "unix:/proc/self/fd/8/rest.sock",
                           "--state-dir",
                           "/proc/self/fd/8",
                           "--name",
                           "up",
                           "--token-file",
                           "/proc/self/fd/8/join.token",
                           NULL };

    if (up_start_as(o->dir, "rest", "spurrestd", (char *const *)argv, user, fd, err) < 0)
        return -(int)err->code;
    for (unsigned ms = 0; !serves(fd); ms += 10) {
        struct timespec pause = { 0, 10 * 1000000 };
        if (!up_alive(o->dir, "rest", NULL))
            return err_set(err, ERR_INTERNAL, "spurrestd ended; see %s/log/rest.log", o->dir);
        if (ms > WAIT_MS)
            return err_set(err, ERR_DEADLINE, "spurrestd did not start; see %s/log/rest.log",
                           o->dir);
        nanosleep(&pause, NULL);
    }
    return 0;
}

int up_start_rest(struct up_options *o, struct err *err)
{
    CLEANUP(freep) char *dir = mem_printf("%s/rest", o->dir);
    struct spawn_user other = { 0 };
    const struct spawn_user *user = NULL;
    bool chosen = o->rest_port != 0;

    if (up_alive(o->dir, "rest", NULL))
        return 0;
    if (geteuid() == 0) {
        const struct passwd *entry = getpwnam("spurrest");
        entry = entry ? entry : getpwnam("nobody");
        other.uid = entry ? entry->pw_uid : 65534;
        other.gid = entry ? entry->pw_gid : 65534;
        user = &other;
    }
    if (!chosen)
        o->rest_port = up_port_is_free(PORT) ? PORT : o->base_port + UP_REST_PORT;
    if (make_dir(o, dir, user, err) < 0)
        return -(int)err->code;
    int code = start(o, dir, user, err);
    if (code < 0 && !chosen && o->rest_port == PORT) { /* another cluster was quicker */
        o->rest_port = o->base_port + UP_REST_PORT;
        code = start(o, dir, user, err);
    }
    return code;
}
