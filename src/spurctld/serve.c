/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.c - binds the controller's logic to libuv, sockets and files
 *
 * One loop. What was proposed in a turn of it goes to the log at its end (prepare), so that
 * everything that came in together becomes durable together.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/feature_level.h"
#include "base/limits.h"
#include "client/conf_file.h"
#include "log/journal.h"
#include "log/sqlite.h"
#include "rpc/address.h"
#include "spurctld/feed.h"
#include "spurctld/ha/controller_join.h"
#include "spurctld/ha/links.h"
#include "spurctld/ha/peers.h"
#include "spurctld/serve.h"
#include "sys/clock.h"
#include "sys/daemon.h"
#include "sys/digest.h"
#include "sys/files.h"
#include "sys/host.h"
#include "sys/log.h"

int server_run(const struct server_options *options, struct err *err);

#define RELOADS_FORGOTTEN_US INT64_C(900000000)
enum { HANDOVER_LOOK_MS = 10, HANDOVER_MOST_MS = 1500 };

/* ---- what the logic asks of the process ---- */

static int64_t io_now(void *ctx)
{
    (void)ctx;
    return clock_wall_us();
}

static int64_t io_mono(void *ctx)
{
    (void)ctx;
    return clock_mono_us();
}

static void io_digest(void *ctx, const void *bytes, size_t len, uint8_t out[32])
{
    struct server *server = ctx;

    payload_seen_digest(&server->recall, bytes, len, out);
}

static void io_wake(void *ctx)
{
    struct server *server = ctx;

    wake_send(&server->wake);
}

/* The log's word does not hold any more: nothing may be answered after this. */
static void io_fence(void *ctx, const char *why)
{
    (void)ctx;
    log_fatal("ctl.fenced", "text=%s", why);
    log_shutdown();
    _exit(70);
}

static void io_need_snapshot(void *ctx, uint64_t index)
{
    struct server *server = ctx;

    if (server->peers)
        peers_need_snapshot(server->peers, index);
}

static unsigned io_peers_level(void *ctx)
{
    struct server *server = ctx;

    if (!server_is_several(server) || (server->membership.etcd && server->membership.list.len == 1))
        return UINT32_MAX;
    if (server->membership.list.len < 2)
        return 0; /* an etcd of the site, and nobody is named */
    return server->links ? links_level(server->links) : (unsigned)LEVEL_FIRST;
}

static void io_ask_marks(void *ctx)
{
    struct server *server = ctx;

    if (server->links)
        links_ask_marks(server->links);
    else if (server->ctl)
        ctl_marks_asked(server->ctl);
}

static void io_reload(void *ctx, uint64_t agreed, const char *why)
{
    struct server *server = ctx;

    (void)why;                   /* it is in the log */
    server->reload_state = true; /* looked at in this turn of the loop */
    server->reload_agreed = agreed;
}

static void io_level(void *ctx, unsigned level)
{
    server_ha_level(ctx, level);
}

static void io_controllers(void *ctx)
{
    struct server *server = ctx;

    server->list_changed = true; /* looked at in this turn of the loop */
}

static void on_wake(void *ctx)
{
    struct server *server = ctx;

    if (server->ctl)
        ctl_poll(server->ctl);
}

static void on_signal(uv_signal_t *handle, int signo)
{
    struct server *server = handle->data;
    struct err err = { 0 };

    if (signo == SIGHUP) {
        if (log_reopen(&err) < 0)
            log_error("log.reopen", "text=%s", err.text);
    } else if (signo == SIGCHLD) {
        server_snapshot_child(server);
        server_forked_queries_ended(server);
    } else {
        server->stop_asked = true;
        server_stop(server, signo == SIGTERM ? "SIGTERM" : "SIGINT");
    }
}

/* ---- start ---- */

static struct log *open_log(void *arg, const struct log_owner *owner, void *owner_ctx,
                            struct err *err)
{
    struct server *server = arg;
    struct log_config config = {
        .dir = server->state_dir,
        .name = server->options->name,
        .owner = owner,
        .owner_ctx = owner_ctx,
        .accept_loss = server->options->accept_loss,
        .snapshot_bytes = conf_local(server->conf)->snapshot_bytes,
    };

    return server_is_several(server) ? server_open_etcd(server, &config, err)
                                     : log_sqlite_new(&config);
}

/* Commands look for the socket of the port that they would connect to: the same function names it. */
static char *default_socket(const struct server *server)
{
    const ConfLocal *local = conf_local(server->conf);
    const char *const *listen = server->options->listen;
    const char *text = listen && listen[0]    ? listen[0]
                       : local->n_listen_addr ? local->listen_addr[0]
                                              : "";
    struct address address = { 0 };

    if (str_is_empty(text) || address_parse(text, ADDRESS_PORT_CONTROLLER, &address, NULL) < 0 ||
        address.path[0])
        address.port = ADDRESS_PORT_CONTROLLER;
    address_local_socket(address.port, &address);
    return mem_strdup(address.path);
}

static void set_paths(struct server *server)
{
    const ConfLocal *local = conf_local(server->conf);
    const struct server_options *o = server->options;
    const char *dir = o->state_dir ? o->state_dir : local->state_dir;

    server->state_dir = mem_strdup(dir ? dir : SERVER_STATE_DIR);
    server->socket = o->socket       ? mem_strdup(o->socket)
                     : local->socket ? mem_strdup(local->socket)
                                     : default_socket(server);
}

/* Where others reach us when we lead: as it was said, or as the list of controllers has us. */
static void set_address(struct server *server)
{
    const struct controller *self = membership_find(&server->membership, server->options->name);

    if (!server->address && self)
        server->address = controller_url(self, 0);
}

/* Beside our socket, for commands that another controller or a node answers. */
static void show_ca(const struct server *server)
{
    CLEANUP(freep) char *own = mem_printf("%s/keys/ca.crt", server->state_dir);
    const char *slash = strrchr(server->socket, '/');
    CLEANUP(freep)
    char *shown = mem_printf("%.*s/ca.crt", slash ? (int)(slash - server->socket) : 1,
                             slash ? server->socket : ".");
    CLEANUP(str_done) struct str text = { 0 };
    struct err err = { 0 };

    if (file_read(own, LIMIT_CONFIG_BYTES, &text, &err) < 0 ||
        file_write_quick(shown, text.data, text.len, 0644, &err) < 0)
        log_warn("ctl.ca", "path=%s commands here cannot ask nodes: %s", shown, err.text);
}

static const char *cluster_name(const struct server *server)
{
    const char *name = conf_config(server->conf)->cluster_name;

    return name ? name : "spur";
}

static int listen_all(struct server *server, struct err *err)
{
    const ConfLocal *local = conf_local(server->conf);
    CLEANUP(freep) char *unix_address = mem_printf("unix:%s", server->socket);
    CLEANUP(freep) char *dir = mem_strdup(server->socket);
    char *slash = strrchr(dir, '/');

    if (slash && slash != dir) {
        *slash = '\0';
        if (file_make_dirs(dir, 0755, err) < 0)
            return err_wrap(err, "directory of the socket");
    }
    if (rpc_server_listen(server->rpc, unix_address, err) < 0)
        return -(int)err->code;
    show_ca(server);
    if (server->options->listen) {
        for (size_t i = 0; server->options->listen[i]; i++) {
            if (rpc_server_listen(server->rpc, server->options->listen[i], err) < 0)
                return -(int)err->code;
        }
        return 0;
    }
    for (size_t i = 0; i < local->n_listen_addr; i++) {
        if (rpc_server_listen(server->rpc, local->listen_addr[i], err) < 0)
            return -(int)err->code;
    }
    if (!local->n_listen_addr)
        return rpc_server_listen(server->rpc, "[::]:6817", err);
    return 0;
}

static int start_rpc(struct server *server, struct err *err)
{
    const ConfLocal *local = conf_local(server->conf);
    struct rpc_server_options options = {
        .ctx = server,
        .roles = server_roles,
        .answered = server_audit_answered,
        .jwt = server->secrets.verify,
        .tls = server->secrets.tls,
        .munge = true,
        .allow_plaintext = local->allow_plaintext,
    };

    server->rpc = rpc_server_new(server->rpc_loop, &options, err);
    return server->rpc ? server_methods(server, err) : -(int)err->code;
}

static void start_handles(struct server *server)
{
    static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGCHLD };

    server_loop_init(server);
    if (wake_init(&server->wake, server->uv, on_wake, server) < 0)
        abort(); /* no descriptor at the start of a process */
    uv_timer_init(server->uv, &server->handover);
    server->handover.data = server;
    uv_timer_init(server->uv, &server->revoke);
    server->revoke.data = server;
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        uv_signal_init(server->uv, &server->signals[i]);
        server->signals[i].data = server;
        uv_signal_start(&server->signals[i], on_signal, signals[i]);
    }
}

/* Follows from the cluster's key, so that every controller and every restart has the same. */
static int make_step_secret(struct server *server, uint8_t out[DIGEST_BYTES], struct err *err)
{
    CLEANUP(freep) char *path = mem_printf("%s/keys/cluster.key", server->state_dir);
    CLEANUP(str_done) struct str key = { 0 };

    if (file_read(path, LIMIT_CONFIG_BYTES, &key, err) < 0)
        return -(int)err->code;
    str_add(&key, "steps");
    digest_sha256(str_text(&key), key.len, out);
    return 0;
}

static int open_secrets(struct server *server, struct err *err)
{
    const char *name = server->options->name;
    const struct controller *self = membership_find(&server->membership, name);

    return secrets_open(&server->secrets, server->state_dir, cluster_name(server), name,
                        self ? self->host : NULL, conf_local(server->conf)->jwt_key, err);
}

/* The state of one cluster is not served under another's name: tokens and accounts would be mixed. */
static int check_cluster(struct server *server, struct err *err)
{
    CLEANUP(freep) char *path = mem_printf("%s/keys/cluster.name", server->state_dir);
    CLEANUP(str_done) struct str had = { 0 };
    const char *name = cluster_name(server);

    if (access(path, F_OK) < 0)
        return file_write(path, name, strlen(name), 0600, err);
    if (file_read(path, LIMIT_HOST_NAME, &had, err) < 0)
        return -(int)err->code;
    if (str_eq(str_text(&had), name))
        return 0;
    return err_set(err, ERR_CONFIG,
                   "'%s' holds the state of cluster '%s', and cluster_name is '%s': name the right "
                   "one, or another state_dir",
                   server->state_dir, str_text(&had), name);
}

static int start(struct server *server, struct err *err)
{
    struct ctl_io io = {
        .ctx = server,
        .now_us = io_now,
        .mono_us = io_mono,
        .busy_us = server_busy_us,
        .timer = server_timer,
        .send = server_session_send,
        .hang_up = server_session_hang_up,
        .digest = io_digest,
        .hook = server_hook,
        .diag = server_diag,
        .aside = server_forked_query,
        .wake = io_wake,
        .fence = io_fence,
        .need_snapshot = io_need_snapshot,
        .peers_level = io_peers_level,
        .ask_marks = io_ask_marks,
        .reload = io_reload,
        .level = io_level,
        .revoked = server_revoked,
        .controllers = io_controllers,
        .journal = server_journal,
        .restored = server_journal_restored,
        .grown = server_huge_pages_grown,
    };

    if (server_load_conf(server, err) < 0)
        return -(int)err->code;
    set_paths(server);
    server->list_changed = true;
    if (file_make_dirs(server->state_dir, 0700, err) < 0 ||
        membership_load(&server->membership, server->state_dir, server->conf, err) < 0 ||
        (!conf_local(server->conf)->n_etcd &&
         membership_settle(&server->membership, server->state_dir, err) < 0) ||
        open_secrets(server, err) < 0 || start_rpc(server, err) < 0)
        return -(int)err->code;
    if (check_cluster(server, err) < 0)
        return -(int)err->code;
    set_address(server);
    uint8_t step_secret[DIGEST_BYTES];
    if (make_step_secret(server, step_secret, err) < 0)
        return -(int)err->code;
    struct ctl_options options = {
        .name = server->options->name,
        .address = server->address,
        .cluster_id = server->secrets.cluster_id,
        .verify_key = server->secrets.public_key,
        .step_secret = step_secret,
        .uid = geteuid(),
        .several = server_is_several(server),
        .controllers = (unsigned)server->membership.list.len,
        .reloaded = server->reloaded,
        .reloads = server->reloads,
    };
    if (!server_is_several(server))
        options.controllers = 1;
    if (server_journal_open(server, err) < 0)
        return -(int)err->code;
    options.journaled = journal_last(server->journal);
    server->ctl = ctl_new(&io, &options, open_log, server, err);
    if (!server->ctl || server_journal_settle(server, err) < 0 ||
        server_propose_conf(server, err) < 0)
        return -(int)err->code;
    if (server->peers)
        peers_check_payloads(server->peers);
    server_huge_pages_ready(server);
    server_loop_start(server);
    ctl_flush(server->ctl);
    if (listen_all(server, err) < 0)
        return -(int)err->code;
    return server_start_links(server, err);
}

/* ---- the end ---- */

static void on_drained(void *ctx)
{
    struct server *server = ctx;

    uv_stop(server->uv);
}

/* We listen until another one may lead: who is refused takes us for dead. */
static void on_handover(uv_timer_t *timer)
{
    struct server *server = timer->data;

    if (server->handover_left > 0 && log_leader(ctl_log(server->ctl)).self) {
        server->handover_left--;
        return;
    }
    uv_timer_stop(timer);
    rpc_server_stop(server->rpc, 500, on_drained, server);
}

void server_stop(struct server *server, const char *why)
{
    if (server->stopping)
        return;
    log_info("ctl.stopping", "why=%s", why);
    daemon_notify("STOPPING=1");
    server->stopping = true;
    for (int i = 0; i < CTL_TIMERS; i++)
        uv_timer_stop(&server->timers[i]);
    if (server_is_several(server)) {
        log_hold_back(ctl_log(server->ctl), true);
        log_resign(ctl_log(server->ctl));
        server->handover_left = HANDOVER_MOST_MS / HANDOVER_LOOK_MS;
    }
    uv_timer_start(&server->handover, on_handover, 0, HANDOVER_LOOK_MS);
}

static void close_handle(uv_handle_t *handle, void *arg)
{
    (void)arg;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

static void finish(struct server *server)
{
    server_ha_prove_no_more(server);
    server_huge_pages_end(server);
    server_forked_queries_end(server);
    rpc_server_free(TAKE(server->rpc));
    feed_free(TAKE(server->feed));
    links_free(server->links);
    peers_free(server->peers);
    if (server->move != MOVE_NOT)
        server_log_migrate(server);
    else if (server->stopping && !server->removed && !server->reload_state)
        server_snapshot_end(server);
    if (server->reload_state)
        server_snapshot_abandon(server);
    ctl_free(TAKE(server->ctl)); /* what is on its way to the disk is still applied */
    if (server->reload_state)
        server_reload_snapshots(server);
    server_journal_end(server);
    server_hooks_end(server);
    if (server->removed)
        server_put_aside(server);
    server_ha_done(server);
    membership_done(&server->membership);
    membership_done(&server->moved_membership);
    secrets_done(&server->secrets);
    payload_seen_done(&server->recall);
    rpc_loop_free(server->rpc_loop);
    wake_close(&server->wake, NULL);
    uv_walk(server->uv, close_handle, NULL);
    uv_run(server->uv, UV_RUN_DEFAULT);
    uv_loop_close(server->uv);
    file_close(&server->hooks_stop);
    server_users_free(server);
    map_done(&server->sessions);
    server_conf_end(server);
    free(server->methods);
    call_stats_done(&server->calls);
    free(server->accounting);
    free(server->state_dir);
    free(server->socket);
    free(server->address);
}

/* What one life of the server leaves to the next. */
struct lives {
    bool again;       /* there is one */
    int64_t moved_us; /* when the log began to move; 0: it did not */
    /* The state is read again because it was wrong at this index; 0: it is not. */
    uint64_t reloaded;
    unsigned reloads; /* see ctl_options */
};

static int run_once(const struct server_options *options, struct lives *lives, struct err *err)
{
    uv_loop_t loop;
    struct server server = { .uv = &loop,
                             .options = options,
                             .start_us = clock_wall_us(),
                             .moved_us = lives->moved_us,
                             .reloaded = lives->reloaded,
                             .reloads = lives->reloads };

    server.address = options->advertise ? mem_strdup(options->advertise) : NULL;
    map_init(&server.sessions);
    map_init(&server.users);
    uv_loop_init(&loop);
    server.rpc_loop = rpc_loop_new(&loop);
    start_handles(&server);
    int code = server_hooks_open(&server, err);
    if (code == 0)
        code = start(&server, err);
    if (code == 0) {
        daemon_ready();
        log_info("ctl.serves", "name=%s socket=%s state=%s version=%s", options->name,
                 server.socket, server.state_dir, SPUR_VERSION);
        uv_run(&loop, UV_RUN_DEFAULT);
        log_info("ctl.stopped", "name=%s", options->name);
    }
    *lives = (struct lives){ .moved_us = server.move != MOVE_NOT ? server.moved_us : 0,
                             .reloads = lives->reloads + 1 };
    if (clock_wall_us() - server.start_us > RELOADS_FORGOTTEN_US)
        lives->reloads = 1;
    if (server.reload_state && server.ctl)
        lives->reloaded = MAX(state_head(ctl_state(server.ctl)).index, UINT64_C(1));
    lives->again = lives->moved_us || (lives->reloaded && !server.stop_asked);
    finish(&server);
    return code < 0 ? code : server.exit_code;
}

/* The state directory before there is a server; a host that enters may have no configuration yet. */
static char *enter_dir(const struct server_options *options)
{
    struct err ignored = { 0 };
    CLEANUP(conf_freep)
    struct conf *conf = options->state_dir ? NULL : conf_file_load(options->conf_path, &ignored);
    const char *configured = conf ? conf_local(conf)->state_dir : NULL;

    return mem_strdup(options->state_dir ? options->state_dir
                      : configured       ? configured
                                         : SERVER_STATE_DIR);
}

static int enter(const struct server_options *options, struct err *err)
{
    if (!options->join)
        return 0;
    CLEANUP(freep) char *dir = enter_dir(options);
    return server_controller_join(options, dir, err);
}

int server_run(const struct server_options *given, struct err *err)
{
    struct server_options options = *given;
    char host[HOST_NAME_BYTES];
    struct lives lives = { 0 };

    host_short(host);
    if (!options.name)
        options.name = host;
    int code = enter(&options, err);
    if (code == 0) {
        do
            code = run_once(&options, &lives, err);
        while (code == 0 && lives.again);
    }
    return code;
}
