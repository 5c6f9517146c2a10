/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - spurrestd: HTTP for programs and people who do not use the commands
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"
#include "proto/controller.pb-c.h"
#include "rpc/address.h"
#include "rpc/tls.h"
#include "spurrestd/ask.h"
#include "spurrestd/conn.h"
#include "spurrestd/events.h"
#include "sys/daemon.h"
#include "sys/files.h"
#include "sys/host.h"
#include "sys/log.h"
#include "sys/slurm_conf.h"
#include "sys/slurm_daemon.h"

enum { LISTEN_MOST = 16, STOP_MS = 3000 };

struct options {
    bool foreground, plaintext;
    int verbose;
    const char *controllers, *state_dir, *token_file, *name, *tls_cert, *tls_key, *tls_ca,
        *log_file, *pid_file, *slurm_conf;
    const char *listen[LISTEN_MOST];
    size_t listen_count;
};

enum { TEXT, FLAG, COUNT, LIST };

/* One row per option: parser, help and man page read it. */
static const struct row {
    const char *name;
    char key;
    const char *arg;
    int kind;
    size_t at;
    const char *help;
} rows[] = {
#define AT(field) offsetof(struct options, field)
    { "controller", 'c', "URL[,URL]", TEXT, AT(controllers),
      "controllers; the one that leads is asked (SPUR_CONTROLLER_ADDR, http://localhost:6817)" },
    { "listen", 'l', "ADDR", LIST, AT(listen),
      "address to listen on, HOST:PORT or unix:/path; may be repeated (localhost:6820)" },
    { "foreground", 'D', NULL, FLAG, AT(foreground), "stay in the foreground, log to stderr" },
    { "name", 0, "NAME", TEXT, AT(name), "name by which it joins, rest:NAME (the host's)" },
    { "state-dir", 0, "DIR", TEXT, AT(state_dir), "its certificate and key (/var/lib/spurrest)" },
    { "token-file", 0, "FILE", TEXT, AT(token_file),
      "join token, of spur token --join --node rest:NAME (/etc/spur/rest.token)" },
    { "tls-cert", 0, "FILE", TEXT, AT(tls_cert),
      "certificate that callers see; read again on HUP" },
    { "tls-key", 0, "FILE", TEXT, AT(tls_key), "its key" },
    { "tls-ca", 0, "FILE", TEXT, AT(tls_ca), "whom to trust, instead of what joining gave" },
    { "allow-plaintext", 0, NULL, FLAG, AT(plaintext),
      "callers and controllers on other hosts may do without TLS" },
    { "log-file", 'L', "FILE", TEXT, AT(log_file), "log there too" },
    { "pid-file", 0, "FILE", TEXT, AT(pid_file), "write the process id there" },
    { "slurm-conf", 0, "FILE", TEXT, AT(slurm_conf),
      "ask the controllers that this slurm.conf names" },
    { "verbose", 'v', NULL, COUNT, AT(verbose), "more detail; may be repeated" },
#undef AT
};

static void print_help(void)
{
    puts("usage: spurrestd [OPTIONS]\n"
         "The REST API: /api/v1, and Slurm's /slurm/v0.0.42 and later.\n");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char left[64];
        snprintf(left, sizeof(left), "%c%c%s --%s%s%s", rows[i].key ? '-' : ' ',
                 rows[i].key ? rows[i].key : ' ', rows[i].key ? "," : " ", rows[i].name,
                 rows[i].arg ? "=" : "", rows[i].arg ? rows[i].arg : "");
        printf("  %-30s %s\n", left, rows[i].help);
    }
    puts("  -V, --version\n  -h, --help\n\n"
         "Called slurmrestd, it takes Slurm's options: slurmrestd --help.");
}

static bool take(struct options *options, const struct row *row, const char *value)
{
    void *field = (char *)options + row->at;

    if (row->kind == TEXT)
        *(const char **)field = value;
    else if (row->kind == FLAG)
        *(bool *)field = true;
    else if (row->kind == COUNT)
        (*(int *)field)++;
    else if (options->listen_count == LISTEN_MOST)
        return false;
    else
        options->listen[options->listen_count++] = value;
    return true;
}

/* -1: go on; otherwise the exit status. */
static int parse(int argc, char **argv, struct options *options)
{
    struct option longs[ARRAY_LEN(rows) + 3] = { 0 };
    char shorts[2 * ARRAY_LEN(rows) + 4] = "Vh";
    int key;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        longs[i] = (struct option){ .name = rows[i].name,
                                    .has_arg = rows[i].arg ? required_argument : no_argument,
                                    .val = 256 + (int)i };
        if (rows[i].key)
            sprintf(shorts + strlen(shorts), "%c%s", rows[i].key, rows[i].arg ? ":" : "");
    }
    longs[ARRAY_LEN(rows)] = (struct option){ .name = "version", .val = 'V' };
    longs[ARRAY_LEN(rows) + 1] = (struct option){ .name = "help", .val = 'h' };
    while ((key = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        if (key == 'V')
            return printf("spur %s\n", SPUR_VERSION) < 0;
        if (key == 'h') {
            print_help();
            return 0;
        }
        size_t at = ARRAY_LEN(rows);
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            if (key == 256 + (int)i || (rows[i].key && key == rows[i].key))
                at = i;
        }
        if (at == ARRAY_LEN(rows) || !take(options, &rows[at], optarg)) {
            fputs("Try 'spurrestd --help'.\n", stderr);
            return 2;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "spurrestd: error: unexpected argument '%s'\n", argv[optind]);
        return 2;
    }
    if (!options->tls_cert != !options->tls_key) {
        fputs("spurrestd: error: --tls-cert and --tls-key go together\n", stderr);
        return 2;
    }
    return -1;
}

/* ---- whose process we are ---- */

static bool owns(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && st.st_uid == geteuid();
}

/*
 * Who shares the controller's uid is an administrator on its host. The controller's sockets there, whose owner it
 * is, say what that uid is.
 */
static int check_user(const char *controllers, struct err *err)
{
    struct address_list list;

    if (geteuid() == 0)
        return err_set(err, ERR_PERMISSION,
                       "spurrestd does not run as root; give it a user of its own (spurrest)");
    if (address_list_parse(controllers, ADDRESS_PORT_CONTROLLER, &list, err) < 0)
        return -(int)err->code;
    for (size_t i = 0; i < list.len; i++) {
        struct address beside;
        const char *path = list.items[i].path;
        if (!path[0] && address_is_local(&list.items[i]) &&
            address_local_socket(list.items[i].port, &beside))
            path = beside.path;
        if (path[0] && owns(path))
            return err_set(err, ERR_PERMISSION,
                           "spurrestd does not run as the controller's user, who is an "
                           "administrator; give it a user of its own (spurrest)");
    }
    return 0;
}

/* ---- running ---- */

struct run {
    struct rest rest;
    uv_signal_t term, intr, quit, hup;
    struct timer stop, join_again;
    int status;
    Empty ping;
    bool serving;
};

static struct run *run_of(struct rest *rest)
{
    return CONTAINER_OF(rest, struct run, rest);
}

static void close_signals(struct run *run)
{
    uv_signal_t *list[] = { &run->term, &run->intr, &run->quit, &run->hup };

    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        if (!uv_is_closing((uv_handle_t *)list[i]))
            uv_close((uv_handle_t *)list[i], NULL);
    }
}

static void drop_all(struct rest *rest)
{
    for (struct conn *conn = rest->conns; conn; conn = conn->next)
        link_close(&conn->link, NULL);
}

static void on_stop_over(struct timer *timer)
{
    struct run *run = CONTAINER_OF(timer, struct run, stop);

    if (run->rest.conns && loop_now_ms(run->rest.loop) < timer->at_ms)
        return;
    drop_all(&run->rest);
    upstream_free(TAKE(run->rest.upstream));
}

/* What is under way may end; then everything is closed, and the loop has nothing more to do. */
static void stop(struct run *run, int status)
{
    struct rest *rest = &run->rest;

    if (rest->stopping)
        return;
    rest->stopping = true;
    run->status = status;
    daemon_notify("STOPPING=1");
    rest_stop_listening(rest);
    events_stop(rest->events);
    close_signals(run);
    loop_timer_clear(rest->loop, &run->join_again);
    bool busy = false;
    for (struct conn *conn = rest->conns; conn; conn = conn->next) {
        if (conn->h2 ? h2c_idle(conn) : h1_idle(conn))
            link_close(&conn->link, NULL);
        else
            busy = true;
    }
    run->stop.fire = on_stop_over;
    loop_timer_set(rest->loop, &run->stop, loop_now_ms(rest->loop) + (busy ? STOP_MS : 0));
}

static void on_end(uv_signal_t *handle, int signum)
{
    log_info("rest.stopping", "signal=%d", signum);
    stop(handle->data, 0);
}

static void on_hup(uv_signal_t *handle, int signum)
{
    struct run *run = handle->data;
    struct err err = { 0 };

    (void)signum;
    log_reopen(NULL);
    if (join_server_tls(&run->rest, &err) < 0)
        log_error("tls.reload", "failed, the old certificate stays: %s", err.text);
    else
        log_info("tls.reload", "done");
}

static void watch(uv_loop_t *uv, struct run *run)
{
    const struct {
        uv_signal_t *handle;
        uv_signal_cb act;
        int number;
    } list[] = {
        { &run->term, on_end, SIGTERM },
        { &run->intr, on_end, SIGINT },
        { &run->quit, on_end, SIGQUIT },
        { &run->hup, on_hup, SIGHUP },
    };

    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        uv_signal_init(uv, list[i].handle);
        list[i].handle->data = run;
        uv_signal_start(list[i].handle, list[i].act, list[i].number);
    }
}

static void on_pong(void *ctx, const ProtobufCMessage *message, const struct err *err)
{
    struct run *run = ctx;
    const PingReply *reply = (const void *)message;

    if (!err && reply->cluster_name)
        snprintf(run->rest.cluster, sizeof(run->rest.cluster), "%s", reply->cluster_name);
    if (err)
        log_warn("rest.controller", "does not answer yet: %s", err->text);
}

static int connect_upstream(struct run *run, struct err *err)
{
    struct rest *rest = &run->rest;
    struct upstream *fresh = upstream_new(rest->loop, rest->options->controllers, rest->tls_client,
                                          rest->options->allow_plaintext, err);

    if (!fresh)
        return -(int)err->code;
    upstream_free(rest->upstream);
    rest->upstream = fresh;
    return 0;
}

/* Everything is there: callers are let in. */
static void serve(struct run *run)
{
    struct rest *rest = &run->rest;
    const struct ask_call call = {
        .method = "Ping", .message = &run->ping.base, .reply = &ping_reply__descriptor, .ours = true
    };
    struct err err = { 0 };

    empty__init(&run->ping);
    ask_own(rest->upstream, &call, run, on_pong, NULL);
    if (run->serving)
        return;
    rest->loopback_only = true;
    for (size_t i = 0; i < rest->options->listen_count; i++) {
        if (rest_listen(rest, rest->options->listen[i], &err) < 0) {
            log_error("rest.listen", "%s", err.text);
            fprintf(stderr, "spurrestd: error: %s\n", err.text);
            stop(run, 1);
            return;
        }
    }
    run->serving = true;
    daemon_ready();
}

static void on_joined(struct rest *rest, const struct err *err);

/* The old connections are closed from the loop, not from inside their own callback. */
static void on_join_again(struct timer *timer)
{
    struct run *run = CONTAINER_OF(timer, struct run, join_again);
    struct err err = { 0 };

    if (!run->rest.joined) {
        join_start(&run->rest, on_joined);
    } else if (connect_upstream(run, &err) < 0) {
        log_error("rest.controller", "%s", err.text);
        stop(run, 1);
    } else {
        serve(run);
    }
}

static void on_joined(struct rest *rest, const struct err *err)
{
    enum { AGAIN_MS = 2000 };
    struct run *run = run_of(rest);
    bool later = err && err_http(err->code) == 503;

    if (rest->stopping)
        return;
    if (later) {
        log_warn("join.waits", "%s", err->text);
    } else if (err) {
        log_error("join.failed", "callers must show a token: %s", err->text);
        serve(run);
        return;
    }
    loop_timer_set(rest->loop, &run->join_again, loop_now_ms(rest->loop) + (later ? AGAIN_MS : 0));
}

static void begin(struct run *run)
{
    if (run->rest.joined || !run->rest.options->token_file) {
        if (!run->rest.joined)
            log_warn("join.none", "there is no join token: callers must show a token");
        serve(run);
    } else {
        join_start(&run->rest, on_joined);
    }
}

static int run_daemon(const struct rest_options *options, struct err *err)
{
    uv_loop_t uv;
    struct run *run = NEW(struct run);
    struct rest *rest = &run->rest;

    uv_loop_init(&uv);
    rest->uv = &uv;
    rest->options = options;
    rest->loop = rpc_loop_new(&uv);
    run->join_again.fire = on_join_again;
    rest->events = events_new(rest);
    map_init(&rest->tokens);
    int code = file_make_dirs(options->state_dir, 0700, err);
    if (code == 0)
        code = join_tls(rest, err);
    if (code == 0)
        code = connect_upstream(run, err);
    if (code == 0) {
        watch(&uv, run);
        begin(run);
        uv_run(&uv, UV_RUN_DEFAULT);
        code = -run->status;
    }
    events_stop(rest->events);
    upstream_free(rest->upstream);
    events_free(rest->events);
    rpc_loop_free(rest->loop);
    uv_run(&uv, UV_RUN_DEFAULT);
    uv_loop_close(&uv);
    caller_forget_all(rest);
    map_done(&rest->tokens);
    tls_ctx_free(rest->tls_server);
    tls_ctx_free(rest->tls_client);
    tls_ctx_free(rest->tls_before);
    free(run);
    return code;
}

/* 10,000 callers need as many descriptors. */
static void raise_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int start_log(const struct options *options, struct err *err)
{
    enum log_level level = MIN(LOG_LEVEL_INFO + (unsigned)options->verbose, LOG_LEVEL_COUNT - 1);
    const struct log_outputs log = {
        .name = "spurrestd",
        .file = options->log_file,
        .to_stderr = options->foreground || !options->log_file,
        .to_journald = getenv("JOURNAL_STREAM") != NULL,
        .stderr_level = level,
        .file_level = level,
        .journald_level = level,
    };

    return log_setup(&log, err);
}

int main(int argc, char **argv)
{
    static const char *const local[] = { "localhost:6820" };
    struct options options = { 0 };
    struct err err = { 0 };
    char host[HOST_NAME_BYTES];
    int code = slurm_daemon_is(argv[0]) ? slurm_daemon_arguments(&argc, &argv) : -1;
    CLEANUP(str_done) struct str named = { 0 };

    if (code < 0)
        code = parse(argc, argv, &options);
    if (code >= 0)
        return code;
    host_short(host);
    const char *env = getenv("SPUR_CONTROLLER_ADDR");
    if (!options.controllers && options.slurm_conf && str_is_empty(env)) {
        if (slurm_conf_controllers(options.slurm_conf, &named, &err) < 0) {
            fprintf(stderr, "spurrestd: error: %s\n", err.text);
            return 1;
        }
        options.controllers = str_text(&named);
    }
    struct rest_options rest = {
        .controllers = options.controllers  ? options.controllers
                       : !str_is_empty(env) ? env
                                            : "http://localhost:6817",
        .listen = options.listen_count ? options.listen : local,
        .listen_count = options.listen_count ? options.listen_count : ARRAY_LEN(local),
        .state_dir = options.state_dir ? options.state_dir : "/var/lib/spurrest",
        .token_file = options.token_file,
        .name = options.name ? options.name : host,
        .tls_cert = options.tls_cert,
        .tls_key = options.tls_key,
        .tls_ca = options.tls_ca,
        .allow_plaintext = options.plaintext,
    };
    if (!rest.token_file && access("/etc/spur/rest.token", R_OK) == 0)
        rest.token_file = "/etc/spur/rest.token";
    code = check_user(rest.controllers, &err);
    if (code == 0 && !options.foreground)
        code = daemon_detach(&err);
    if (code == 0)
        code = start_log(&options, &err);
    if (code == 0 && options.pid_file) {
        CLEANUP(freep) char *text = mem_printf("%d\n", (int)getpid());
        code = file_write_quick(options.pid_file, text, strlen(text), 0644, &err);
    }
    raise_limit();
    if (code == 0)
        code = run_daemon(&rest, &err);
    if (code < 0 && err.text[0])
        fprintf(stderr, "spurrestd: error: %s\n", err.text);
    if (options.pid_file)
        unlink(options.pid_file);
    log_shutdown();
    return code < 0 ? 1 : 0;
}
