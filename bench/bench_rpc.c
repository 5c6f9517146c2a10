/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_rpc.c - what a call costs: in flight on one connection, from a command, over many connections
 *
 * An echo server runs in another process. Floors of the same run: 32-byte messages over a bare socket,
 * 16 in flight; a process that only starts and ends; bytes over a bare socket. Bounds of the project: a
 * command with one call within 3 ms and 6 libraries, 100,000 calls/s, 1,000 connections. Timings are only
 * held against their bounds with --strict, because other load adds to them.
 */
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "echo_service.h"
#include "rpc/keys.h"
#include "rpc/tls.h"
#include "sys/files.h"

enum { IN_FLIGHT = 16, CALLS = 100000, ROUNDS = 5, CONNECTIONS = 1000, SPAWNS = 50 };
enum { CHUNK = 64 * 1024, CHUNKS = 4000 };

static char dir[64], unix_address[128], tcp_address[64], tls_address[64];
static char ca_path[128], key_path[128], cert_path[128];
static struct rpc_loop *loop;
static struct tls_ctx *trust;
static bool broken;

static void must(bool held, const char *what)
{
    if (!held) {
        printf("BOUND BROKEN: %s\n", what);
        broken = true;
    }
}

static void make_keys(void)
{
    struct err err;

    snprintf(ca_path, sizeof(ca_path), "%s/ca.crt", dir);
    snprintf(key_path, sizeof(key_path), "%s/c1.key", dir);
    snprintf(cert_path, sizeof(cert_path), "%s/c1.crt", dir);
    if (cert_create_ca(dir, "bench", &err) < 0 ||
        cert_issue(dir, &(struct cert_names){ .subject = "controller:c1" }, key_path, cert_path,
                   &err) < 0)
        abort();
    setenv("SPUR_CA", ca_path, 1);
}

/* ---- the server, in a child ---- */

static pid_t serve(void)
{
    int ready[2];
    uint16_t port = 0;

    if (pipe(ready) < 0)
        abort();
    pid_t pid = fork();
    if (pid == 0) {
        struct echo echo = { 0 };
        struct err err;
        struct rpc_server_options options = { .tls = tls_ctx_new(
                                                  &(struct tls_options){ .server = true,
                                                                         .cert_path = cert_path,
                                                                         .key_path = key_path },
                                                  &err) };
        echo_start(&echo, uv_default_loop(), &options);
        if (rpc_server_listen(echo.server, unix_address, &err) < 0 ||
            rpc_server_listen(echo.server, "127.0.0.1:0", &err) < 0)
            _exit(1);
        port = rpc_server_port(echo.server, 1);
        if (write(ready[1], &port, sizeof(port)) != sizeof(port))
            _exit(1);
        alarm(300);
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
        _exit(0);
    }
    if (pid < 0 || read(ready[0], &port, sizeof(port)) != sizeof(port))
        abort();
    snprintf(tcp_address, sizeof(tcp_address), "127.0.0.1:%u", port);
    snprintf(tls_address, sizeof(tls_address), "https://127.0.0.1:%u", port);
    return pid;
}

static long memory_kb(pid_t pid)
{
    char path[64], line[128];
    long kb = 0;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file))
        sscanf(line, "VmRSS: %ld", &kb);
    if (file)
        fclose(file);
    return kb;
}

/* ---- many calls on one connection ---- */

static unsigned started, finished;

static void start_call(struct rpc_client *client);

static void on_done(struct rpc_request *request, const ProtobufCMessage *reply,
                    const struct err *err)
{
    struct rpc_client *client = rpc_request_data(request);

    (void)reply;
    if (err) {
        fprintf(stderr, "bench: %s\n", err->text);
        abort();
    }
    finished++;
    if (started < CALLS)
        start_call(client);
}

static void start_call(struct rpc_client *client)
{
    static EchoMessage message = ECHO_MESSAGE__INIT;

    started++;
    message.text = (char *)(uintptr_t) "sixteen letters.";
    rpc_request_start(client, &(struct rpc_request_options){ .path = "/echo.Echo/Say",
                                                             .message = &message.base,
                                                             .reply = &echo_message__descriptor,
                                                             .timeout_ms = 60000,
                                                             .wait_ready = true,
                                                             .data = client,
                                                             .on_done = on_done });
}

static struct rpc_client *connect_to(const char *address)
{
    struct err err;
    struct rpc_client *client = rpc_client_new(
        loop, &(struct rpc_client_options){ .addresses = address, .tls = trust }, &err);

    if (!client)
        abort();
    return client;
}

static void many_calls(struct rpc_client *client)
{
    started = finished = 0;
    for (int i = 0; i < IN_FLIGHT; i++)
        start_call(client);
    while (finished < CALLS)
        uv_run(uv_default_loop(), UV_RUN_ONCE);
}

/* The floor: the same count of small messages, joined as we join them, echoed by another process. */
static void bare_messages(int fd)
{
    char block[32 * IN_FLIGHT] = { 0 };

    for (int i = 0; i < CALLS / IN_FLIGHT; i++) {
        size_t got = 0;
        if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block))
            abort();
        while (got < sizeof(block)) {
            ssize_t n = read(fd, block + got, sizeof(block) - got);
            if (n <= 0)
                abort();
            got += (size_t)n;
        }
    }
}

static pid_t bare_peer(int *fd, bool echo)
{
    static char block[CHUNK];
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
        abort();
    pid_t pid = fork();
    if (pid == 0) {
        ssize_t n;
        close(pair[0]);
        while ((n = read(pair[1], block, sizeof(block))) > 0) {
            if (echo && write(pair[1], block, (size_t)n) != n)
                break;
        }
        _exit(0);
    }
    close(pair[1]);
    *fd = pair[0];
    return pid;
}

static void calls_in_flight(void)
{
    int fd;
    pid_t peer = bare_peer(&fd, true);
    double floor = BENCH_BEST(ROUNDS, bare_messages(fd));

    close(fd);
    waitpid(peer, NULL, 0);
    struct {
        const char *name, *address;
    } kinds[] = { { "rpc.unary.unix", unix_address },
                  { "rpc.unary.tcp", tcp_address },
                  { "rpc.unary.tls", tls_address } };
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct rpc_client *client = connect_to(kinds[i].address);
        double ms = BENCH_BEST(ROUNDS, many_calls(client));
        printf("%-32s %10.0f /s   (%.1f of floor, %d in flight)\n", kinds[i].name,
               CALLS / ms * 1000, ms / floor, IN_FLIGHT);
        if (i == 0)
            must(CALLS / ms * 1000 >= 100000, "100,000 unary calls/s");
        rpc_client_free(client);
    }
}

/* ---- a stream ---- */

static unsigned stream_done;
static size_t stream_bytes;

static void on_message(struct rpc_request *request, const ProtobufCMessage *message)
{
    (void)request;
    stream_bytes += ((const EchoMessage *)(const void *)message)->data.len;
}

static void on_stream_done(struct rpc_request *request, const ProtobufCMessage *reply,
                           const struct err *err)
{
    (void)request, (void)reply;
    stream_done = err ? 2 : 1;
}

static void stream(struct rpc_client *client)
{
    static uint8_t data[CHUNK];
    EchoMessage message = ECHO_MESSAGE__INIT;

    message.has_number = message.has_data = true;
    message.number = CHUNKS;
    message.data = (ProtobufCBinaryData){ sizeof(data), data };
    stream_done = 0;
    stream_bytes = 0;
    rpc_request_start(client, &(struct rpc_request_options){ .path = "/echo.Echo/Count",
                                                             .message = &message.base,
                                                             .reply = &echo_message__descriptor,
                                                             .wait_ready = true,
                                                             .on_message = on_message,
                                                             .on_done = on_stream_done });
    while (!stream_done)
        uv_run(uv_default_loop(), UV_RUN_ONCE);
    if (stream_done != 1 || stream_bytes != (size_t)CHUNK * CHUNKS)
        abort();
}

static void bare_bytes(int fd)
{
    static char block[CHUNK];

    for (int i = 0; i < CHUNKS; i++) {
        size_t sent = 0;
        while (sent < sizeof(block)) {
            ssize_t n = write(fd, block + sent, sizeof(block) - sent);
            if (n <= 0)
                abort();
            sent += (size_t)n;
        }
    }
}

static void streaming(pid_t server)
{
    int fd;
    pid_t peer = bare_peer(&fd, false);
    double floor = BENCH_BEST(3, bare_bytes(fd));

    close(fd);
    waitpid(peer, NULL, 0);
    struct rpc_client *client = connect_to(unix_address);
    stream(client);
    long before = memory_kb(server);
    double ms = BENCH_BEST(3, stream(client));
    double megabytes = (double)CHUNK * CHUNKS / 1e6;
    printf("%-32s %10.0f MB/s (%.1f of floor)\n", "rpc.stream.unix", megabytes / ms * 1000,
           ms / floor);
    printf("%-32s %10ld KB   (the server, while %.0f MB went through)\n", "rpc.stream.growth",
           memory_kb(server) - before, megabytes * 3);
    rpc_client_free(client);
}

/* ---- a command ---- */

extern char **environ;

static void spawn(const char *program, const char *argument)
{
    char *argv[] = { (char *)(uintptr_t)program, (char *)(uintptr_t)argument, NULL };
    pid_t pid;
    int status;

    if (posix_spawn(&pid, program, NULL, NULL, argv, environ) != 0 ||
        waitpid(pid, &status, 0) != pid || status != 0)
        abort();
}

static void one_command(const char *self)
{
    char program[4200], line[64] = "";
    int libraries = 99, threads = 99;

    snprintf(program, sizeof(program), "%.*s/rpc-command", (int)(strrchr(self, '/') - self), self);
    double nothing = BENCH_BEST(SPAWNS, spawn(program, "--nothing"));
    double minimal = BENCH_BEST(SPAWNS, spawn("/bin/true", NULL));
    double ms = BENCH_BEST(SPAWNS, spawn(program, unix_address));
    bench_print("rpc.command.unix", ms, "ms", minimal);
    must(ms <= 3, "a command with one call within 3 ms");
    ms = BENCH_BEST(SPAWNS, spawn(program, tcp_address));
    bench_print("rpc.command.tcp", ms, "ms", minimal);
    ms = BENCH_BEST(SPAWNS, spawn(program, tls_address));
    bench_print("rpc.command.tls", ms, "ms", minimal);
    bench_print("rpc.command.no-call", nothing, "ms", minimal);
    snprintf(program + strlen(program), 32, " --libraries");
    FILE *out = popen(program, "r");
    if (!out || !fgets(line, sizeof(line), out) || sscanf(line, "%d %d", &libraries, &threads) != 2)
        abort();
    pclose(out);
    printf("%-32s %10d      (beyond libc; %d thread)\n", "rpc.command.libraries", libraries,
           threads);
    must(libraries <= 6 && threads == 1, "6 libraries and one thread");
}

/* ---- many connections ---- */

static void on_one_done(struct rpc_request *request, const ProtobufCMessage *reply,
                        const struct err *err)
{
    (void)request, (void)reply;
    if (err)
        fprintf(stderr, "bench: %s\n", err->text);
    else
        finished++;
    started++;
}

static void many_connections(pid_t server)
{
    static struct rpc_client *clients[CONNECTIONS];
    EchoMessage message = ECHO_MESSAGE__INIT;
    long before = memory_kb(server);
    double begin = bench_ms();

    started = finished = 0;
    for (int i = 0; i < CONNECTIONS; i++) {
        clients[i] = connect_to(tcp_address);
        rpc_request_start(clients[i],
                          &(struct rpc_request_options){ .path = "/echo.Echo/Say",
                                                         .message = &message.base,
                                                         .reply = &echo_message__descriptor,
                                                         .wait_ready = true,
                                                         .timeout_ms = 30000,
                                                         .on_done = on_one_done });
    }
    while (started < CONNECTIONS)
        uv_run(uv_default_loop(), UV_RUN_ONCE);
    double ms = bench_ms() - begin;
    printf("%-32s %10.1f ms   (connected and called, %u of %d served)\n", "rpc.connections", ms,
           finished, CONNECTIONS);
    printf("%-32s %10.1f KB   (of the server, each)\n", "rpc.connections.memory",
           (double)(memory_kb(server) - before) / CONNECTIONS);
    must(finished == CONNECTIONS, "1,000 connections served");
    for (int i = 0; i < CONNECTIONS; i++)
        rpc_client_free(clients[i]);
}

int main(int argc, char **argv)
{
    bool strict = argc > 1 && strcmp(argv[1], "--strict") == 0;
    char self[4096];

    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[len > 0 ? len : 0] = '\0';
    strcpy(dir, "/tmp/spur-bench.XXXXXX");
    if (!mkdtemp(dir))
        return 1;
    snprintf(unix_address, sizeof(unix_address), "unix:%s/s", dir);
    struct err err;
    make_keys();
    pid_t server = serve();
    trust = tls_ctx_new(&(struct tls_options){ .ca_path = ca_path }, &err);
    loop = rpc_loop_new(uv_default_loop());
    calls_in_flight();
    streaming(server);
    one_command(self);
    many_connections(server);
    rpc_loop_free(loop);
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    tls_ctx_free(trust);
    file_remove_tree(dir, &err);
    return broken && strict;
}
