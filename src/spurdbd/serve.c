/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.c - the life of spurdbd: configuration, database, sockets, the loop, the end
 */
#include "spurdbd/serve.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/conf_file.h"
#include "rpc/address.h"
#include "rpc/jwt.h"
#include "rpc/tls.h"
#include "spurdbd/schema.h"
#include "sys/clock.h"
#include "sys/daemon.h"
#include "sys/files.h"
#include "sys/log.h"
#include "sys/users.h"

#define STATE_DIR "/var/lib/spurdb"

static void on_drained(void *ctx)
{
    struct dbd *dbd = ctx;

    uv_stop(dbd->uv);
}

void dbd_stop(struct dbd *dbd, const char *why)
{
    if (dbd->stopping)
        return;
    log_info("dbd.stopping", "why=%s", why);
    daemon_notify("STOPPING=1");
    dbd->stopping = true;
    dbd_feeds_end(dbd);
    rpc_server_stop(dbd->rpc, 500, on_drained, dbd);
}

static void on_signal(uv_signal_t *handle, int signo)
{
    dbd_stop(handle->data, signo == SIGINT ? "SIGINT" : "SIGTERM");
}

static void start_signals(struct dbd *dbd)
{
    static const int signals[] = { SIGTERM, SIGINT };

    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        uv_signal_init(dbd->uv, &dbd->signals[i]);
        dbd->signals[i].data = dbd;
        uv_signal_start(&dbd->signals[i], on_signal, signals[i]);
    }
}

/* ---- settings ---- */

/* Without a file there is nothing to be read from it: the options say where the database is. */
static int load_conf(struct dbd *dbd, struct err *err)
{
    const char *path = conf_file_path(dbd->options->conf_path);

    if (!dbd->options->conf_path && access(path, F_OK) != 0) {
        dbd->conf = conf_defaults();
        return 0;
    }
    dbd->conf = conf_file_load(path, err);
    return dbd->conf ? 0 : -(int)err->code;
}

static void set_paths(struct dbd *dbd)
{
    const ConfLocal *local = conf_local(dbd->conf);
    const char *named = getenv("SPUR_DATABASE_URL");
    struct address beside;

    dbd->state_dir = mem_strdup(dbd->options->state_dir ? dbd->options->state_dir : STATE_DIR);
    if (dbd->options->url)
        dbd->url = mem_strdup(dbd->options->url);
    else if (!str_is_empty(named))
        dbd->url = mem_strdup(named);
    else if (!str_is_empty(local->accounting_url))
        dbd->url = mem_strdup(local->accounting_url);
    else
        dbd->url = mem_printf("sqlite:%s/spur.db", dbd->state_dir);
    if (dbd->options->socket)
        dbd->socket = mem_strdup(dbd->options->socket);
    else if (address_local_socket(ADDRESS_PORT_ACCOUNTING, &beside))
        dbd->socket = mem_strdup(beside.path);
}

/* ---- the database ---- */

static void migrate(uv_work_t *work)
{
    struct dbd *dbd = work->data;
    struct store *store = NULL;

    if (dbd_open(dbd, &store, &dbd->failure) < 0)
        dbd->failed = dbd->failure.code != ERR_DB_CONNECTION;
    store_close(store);
}

static void migrated(uv_work_t *work, int status)
{
    struct dbd *dbd = work->data;

    (void)status;
    if (dbd->failed)
        dbd_stop(dbd, "the tables could not be brought up to date");
}

/*
 * Without its database spurdbd answers with a sentence, and leaders keep what it does not take. The same holds while
 * tables of an older version are changed, which may take minutes.
 */
static int open_database(struct dbd *dbd, struct err *err)
{
    CLEANUP(store_closep) struct store *store = NULL;
    unsigned version = 0;
    int code = store_open(dbd->url, &store, err);

    if (code == 0)
        code = schema_found(store, &version, err);
    if (code == -(int)ERR_DB_CONNECTION) {
        log_error("database.away", "text=%s; it is tried again", err->text);
        return 0;
    }
    if (code < 0)
        return code;
    if (dbd->options->migrate && version > 0 && version < schema_version()) {
        log_info("schema.migrates", "from=%u to=%u", version, schema_version());
        dbd->migration.data = dbd;
        return uv_queue_work(dbd->uv, &dbd->migration, migrate, migrated);
    }
    code = dbd_settle(dbd, store, err);
    if (code == 0)
        dbd->writer = TAKE(store);
    return code;
}

/* spurctld runs as a user of its own; the same as ours in a private cluster. */
static void find_controller_user(struct dbd *dbd)
{
    const char *name = conf_local(dbd->conf)->user;
    struct user *user = NULL;

    dbd->controller_uid = (uint32_t)geteuid();
    if (users_by_name(str_is_empty(name) ? "spur" : name, &user, NULL) == 0)
        dbd->controller_uid = user->uid;
    user_free(user);
}

/* STATE_DIR/keys holds what makes us known to other hosts; without it only this host is served. */
static int load_tls(struct dbd *dbd, struct err *err)
{
    CLEANUP(freep) char *ca = mem_printf("%s/keys/ca.crt", dbd->state_dir);
    CLEANUP(freep) char *cert = mem_printf("%s/keys/dbd.crt", dbd->state_dir);
    CLEANUP(freep) char *key = mem_printf("%s/keys/dbd.key", dbd->state_dir);
    struct tls_options options = {
        .server = true, .cert_path = cert, .key_path = key, .ca_path = ca
    };

    if (access(cert, F_OK) != 0)
        return 0;
    dbd->tls = tls_ctx_new(&options, err);
    return dbd->tls ? 0 : err_wrap(err, "certificate of spurdbd");
}

/* ---- sockets ---- */

static int make_socket_dir(const char *path, struct err *err)
{
    CLEANUP(freep) char *dir = mem_strdup(path);
    char *slash = strrchr(dir, '/');

    if (!slash || slash == dir)
        return 0;
    *slash = '\0';
    return access(dir, F_OK) == 0 ? 0 : file_make_dirs(dir, 0755, err);
}

static int listen_all(struct dbd *dbd, struct err *err)
{
    CLEANUP(freep) char *unix_address = mem_printf("unix:%s", dbd->socket);

    if (make_socket_dir(dbd->socket, err) < 0 || rpc_server_listen(dbd->rpc, unix_address, err) < 0)
        return -(int)err->code;
    if (!dbd->options->listen)
        return rpc_server_listen(dbd->rpc, "[::]:6819", err);
    for (size_t i = 0; dbd->options->listen[i]; i++) {
        if (rpc_server_listen(dbd->rpc, dbd->options->listen[i], err) < 0)
            return -(int)err->code;
    }
    return 0;
}

static int start_rpc(struct dbd *dbd, struct err *err)
{
    dbd->jwt = jwt_keys_new(conf_config(dbd->conf)->cluster_name);
    struct rpc_server_options options = {
        .ctx = dbd,
        .roles = dbd_roles,
        .jwt = dbd->jwt,
        .tls = dbd->tls,
        .munge = true,
        .allow_plaintext = conf_local(dbd->conf)->allow_plaintext,
    };

    dbd->rpc = rpc_server_new(dbd->rpc_loop, &options, err);
    return dbd->rpc ? dbd_methods(dbd, err) : -(int)err->code;
}

static int start(struct dbd *dbd, struct err *err)
{
    if (load_conf(dbd, err) < 0)
        return -(int)err->code;
    if (purge_read(conf_local(dbd->conf), &dbd->purge, err) < 0)
        return -(int)err->code;
    set_paths(dbd);
    if (!dbd->socket)
        return err_set(err, ERR_INVALID, "the path of the socket would be too long: --socket");
    find_controller_user(dbd);
    /* Who dials while the database is opened waits for it. */
    if (file_make_dirs(dbd->state_dir, 0700, err) < 0 || load_tls(dbd, err) < 0 ||
        start_rpc(dbd, err) < 0 || listen_all(dbd, err) < 0)
        return -(int)err->code;
    return open_database(dbd, err);
}

/* ---- the end ---- */

static void close_handle(uv_handle_t *handle, void *arg)
{
    (void)arg;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

static void finish(struct dbd *dbd)
{
    rpc_server_free(TAKE(dbd->rpc));
    rpc_loop_free(dbd->rpc_loop);
    for (size_t i = 0; i < ARRAY_LEN(dbd->signals); i++)
        close_handle((uv_handle_t *)&dbd->signals[i], NULL);
    close_handle((uv_handle_t *)&dbd->rollup, NULL);
    close_handle((uv_handle_t *)&dbd->purging, NULL);
    uv_run(dbd->uv, UV_RUN_DEFAULT); /* workers end, calls are answered */
    uv_walk(dbd->uv, close_handle, NULL);
    uv_run(dbd->uv, UV_RUN_DEFAULT);
    uv_loop_close(dbd->uv);
    vec_each (struct store *, reader, &dbd->readers)
        store_close(*reader);
    vec_done(&dbd->readers);
    store_close(dbd->writer);
    vec_done(&dbd->feeds);
    vec_done(&dbd->calls);
    dbd_users_free(dbd);
    if (dbd->jwt)
        jwt_keys_free(dbd->jwt);
    if (dbd->tls)
        tls_ctx_free(dbd->tls);
    conf_free(dbd->conf);
    free(dbd->state_dir);
    free(dbd->url);
    free(dbd->socket);
}

int dbd_run(const struct dbd_options *options, struct err *err)
{
    uv_loop_t loop;
    struct dbd dbd = { .uv = &loop, .options = options, .start_us = clock_wall_us() };

    map_init(&dbd.users);
    map_init(&dbd.revoked);
    uv_loop_init(&loop);
    uv_timer_init(&loop, &dbd.rollup);
    uv_timer_init(&loop, &dbd.purging);
    dbd.rpc_loop = rpc_loop_new(&loop);
    start_signals(&dbd);
    int code = start(&dbd, err);
    if (code == 0) {
        CLEANUP(str_done) struct str shown = { 0 };
        store_add_shown(&shown, dbd.url);
        dbd.serves_us = clock_wall_us();
        daemon_ready();
        log_info("dbd.serves", "socket=%s database=%s version=%s", dbd.socket, str_text(&shown),
                 SPUR_VERSION);
        dbd_rollup_start(&dbd);
        dbd_purge_start(&dbd);
        uv_run(&loop, UV_RUN_DEFAULT);
        log_info("dbd.stopped", "entries=%llu", (unsigned long long)dbd.entries);
    }
    dbd.stopping = true;
    finish(&dbd);
    if (dbd.failed) {
        *err = dbd.failure;
        code = -(int)err->code;
    }
    return code;
}
