/* SPDX-License-Identifier: Apache-2.0 */
/*
 * echo_server.c - the echo service as a program, for clients that are not ours
 *
 *     echo-server [--keys DIR] [--munge] [--handshake MS] [--idle MS] [--keepalive MS] [--connections N] ADDRESS...
 *
 * --keys makes an authority, a certificate (c1) and a token secret in DIR, if they are not there, and
 * uses them. Prints one line "listening PORT" per address, then "ready", and ends with its standard input.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "echo_service.h"
#include "rpc/jwt.h"
#include "rpc/keys.h"
#include "rpc/tls.h"
#include "sys/log.h"

static struct echo echo;
static char paths[6][512];

static void die(const struct err *err)
{
    fprintf(stderr, "echo-server: %s\n", err->text);
    exit(1);
}

static void use_keys(const char *dir, struct rpc_server_options *options)
{
    static const char *const names[] = { "ca.key", "c1.key", "c1.crt", "secret", "ca.crt" };
    static const char *const hosts[] = { "localhost", "127.0.0.1", "::1" };
    CLEANUP(str_done) struct str secret = { 0 };
    struct err err = { 0 };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        snprintf(paths[i], sizeof(paths[i]), "%s/%s", dir, names[i]);
    struct cert_names cert = { .subject = "controller:c1", .hosts = hosts, .host_count = 3 };
    if (access(paths[0], F_OK) != 0 && (cert_create_ca(dir, "echo", &err) < 0 ||
                                        cert_issue(dir, &cert, paths[1], paths[2], &err) < 0 ||
                                        key_secret_create(paths[3], &err) < 0))
        die(&err);
    struct jwt_keys *keys = jwt_keys_new("echo");
    if (key_secret_load(paths[3], &secret, &err) < 0 ||
        jwt_keys_add_secret(keys, NULL, JWT_CLUSTER, secret.data, secret.len, &err) < 0)
        die(&err);
    options->jwt = keys;
    options->tls = tls_ctx_new(
        &(struct tls_options){
            .server = true, .cert_path = paths[2], .key_path = paths[1], .ca_path = paths[4] },
        &err);
    if (!options->tls)
        die(&err);
}

static int read_options(int argc, char **argv, struct rpc_server_options *options)
{
    int at = 1;

    for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
        const char *name = argv[at] + 2;
        if (strcmp(name, "munge") == 0) {
            options->munge = true;
            continue;
        }
        const char *value = ++at < argc ? argv[at] : "";
        unsigned number = (unsigned)strtoul(value, NULL, 10);
        if (strcmp(name, "keys") == 0)
            use_keys(value, options);
        else if (strcmp(name, "handshake") == 0)
            options->handshake_ms = number;
        else if (strcmp(name, "idle") == 0)
            options->idle_ms = number;
        else if (strcmp(name, "keepalive") == 0)
            options->keepalive_ms = options->keepalive_wait_ms = number;
        else if (strcmp(name, "connections") == 0)
            options->max_connections = number;
        else
            exit(2);
    }
    return at;
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
    static char nothing[64];

    (void)handle, (void)size;
    *buf = uv_buf_init(nothing, sizeof(nothing));
}

static void on_stopped(void *ctx)
{
    (void)ctx;
    rpc_server_free(TAKE(echo.server));
    rpc_loop_free(echo.loop);
}

static void on_input(uv_stream_t *input, ssize_t got, const uv_buf_t *buf)
{
    (void)buf;
    if (got >= 0)
        return;
    uv_close((uv_handle_t *)input, NULL);
    rpc_server_stop(echo.server, 1000, on_stopped, NULL);
}

int main(int argc, char **argv)
{
    struct rpc_server_options options = { 0 };
    struct rlimit files;
    uv_pipe_t input;
    struct err err;

    log_setup(&(struct log_outputs){ .name = "echo-server",
                                     .to_stderr = true,
                                     .stderr_level = LOG_LEVEL_VERBOSE },
              &err);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    int at = read_options(argc, argv, &options);
    echo_start(&echo, uv_default_loop(), &options);
    for (unsigned n = 0; at < argc; at++, n++) {
        if (rpc_server_listen(echo.server, argv[at], &err) < 0)
            die(&err);
        printf("listening %u\n", rpc_server_port(echo.server, n));
    }
    puts("ready");
    fflush(stdout);
    uv_pipe_init(uv_default_loop(), &input, 0);
    uv_pipe_open(&input, 0);
    uv_read_start((uv_stream_t *)&input, on_alloc, on_input);
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    jwt_keys_free((struct jwt_keys *)(uintptr_t)options.jwt);
    tls_ctx_free(options.tls);
    uv_loop_close(uv_default_loop());
    log_shutdown();
    return 0;
}
