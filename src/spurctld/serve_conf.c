// SPDX-License-Identifier: Apache-2.0
/*
 * serve_conf.c - the configuration file: read, with every node on its own, and put to the log
 *
 * (1) Reading the file, looking at ten thousand nodes and finding out what is another takes long: a
 *     worker does it, from hashes of what the cluster has. What it found may hold no longer when it is
 *     agreed; then it is done again.
 * (2) One reads at a time. Who asks while one does is answered after the next: the file may have been
 *     written since.
 * (3) Whoever asked is answered when all is agreed and applied, or with why it is not.
 */
#include <stdlib.h>
#include <string.h>

#include "client/conf_file.h"
#include "core/config_change.h"
#include "spurctld/serve.h"
#include "sys/log.h"

enum { TRIES = 10 };

/* The level of the file, with what the command line adds to it. */
void server_log_level(const struct server *server)
{
    enum log_level level = LOG_LEVEL_INFO;

    if (conf_local(server->conf)->log_level)
        log_level_parse(conf_local(server->conf)->log_level, &level);
    log_set_level(MIN(level + server->options->verbose, LOG_LEVEL_DEBUG5));
}

/* ---- at the start ---- */

int server_load_conf(struct server *server, struct err *err)
{
    struct conf *conf = conf_file_load(server->options->conf_path, err);

    if (!conf)
        return -(int)err->code;
    conf_free(server->conf);
    server->conf = conf;
    conf_file_log(conf);
    return 0;
}

/* The file's accounts are not used: spurdbd has them. */
static void leave_accounts(Config **config, const Config *kept)
{
    Config *joined = config_with_accounts(*config, kept);

    if (config_has_accounts(*config))
        log_warn("accounts.file",
                 "sections [[qos]], [[accounts]] and [[users]] of the file are not used: spurdbd "
                 "has the accounts; remove them");
    config__free_unpacked(*config, NULL);
    *config = joined;
}

/* Whoever asks for associations and has none would refuse every job. */
static int has_associations(const Config *config, struct err *err)
{
    const char *enforce = config->accounting_enforce;

    if (str_is_empty(enforce) || strcasestr(enforce, "none") || config->n_users ||
        config->n_accounts)
        return 0;
    return err_set(err, ERR_CONFIG,
                   "accounting.enforce is '%s', and no account or user is known: every job would "
                   "be refused. Take it out, add accounts and users with sacctmgr (or as "
                   "[[accounts]] and [[users]]), then put it back",
                   enforce);
}

int server_propose_conf(struct server *server, struct err *err)
{
    Config *config = NULL, *kept = ctl_accounts_kept(server->ctl);
    int code = conf_expand(server->conf, &config, err);

    if (code == 0 && kept)
        leave_accounts(&config, kept);
    if (code == 0 && (code = core_admit_config(config, err)) == 0 &&
        (server_is_several(server) || (code = has_associations(config, err)) == 0))
        ctl_set_config(server->ctl, config, false, NULL, NULL);
    if (kept)
        config__free_unpacked(kept, NULL);
    if (config)
        config__free_unpacked(config, NULL);
    return code;
}

/* ---- when asked ---- */

struct reload {
    uv_work_t work;
    struct server *server;
    VEC(struct rpc_call *) calls; /* who asked */
    unsigned tries;
    bool at_once; /* in one command: in several it was refused */
    /* what the worker is given, and what it gives */
    struct config_base base;
    Config *kept; /* accounts that are not the file's, or NULL */
    struct conf *conf;
    Config *config;
    struct config_changes changes;
    struct err err;
};

static void drop(struct reload *reload)
{
    config_base_done(&reload->base);
    config_changes_done(&reload->changes);
    if (reload->config)
        config__free_unpacked(reload->config, NULL);
    if (reload->kept)
        config__free_unpacked(reload->kept, NULL);
    conf_free(reload->conf);
    reload->config = reload->kept = NULL;
    reload->conf = NULL;
    reload->changes = (struct config_changes){ 0 };
}

/* In a worker. */
static void load(uv_work_t *work)
{
    struct reload *reload = work->data;
    struct err *err = &reload->err;

    reload->conf = conf_file_load(reload->server->options->conf_path, err);
    if (!reload->conf || conf_expand(reload->conf, &reload->config, err) < 0)
        return;
    if (reload->kept)
        leave_accounts(&reload->config, reload->kept);
    if (core_admit_config(reload->config, err) == 0 && has_associations(reload->config, err) == 0)
        config_changes_make(&reload->changes, &reload->base, reload->config, true,
                            reload->at_once ? SIZE_MAX : CTL_CONFIG_SECTIONS);
}

static void drop_in_worker(uv_work_t *work)
{
    drop(work->data);
}

static void answer(struct reload *reload, const struct err *err)
{
    DoneReply reply = DONE_REPLY__INIT;

    for (size_t i = 0; reload->server->rpc && i < reload->calls.len; i++) {
        if (err)
            rpc_fail(reload->calls.items[i], err);
        else
            rpc_reply(reload->calls.items[i], &reply.base);
    }
    vec_clear(&reload->calls);
}

static void begin(struct server *server);
static void read_again(struct reload *reload);

static void reload_free(struct reload *reload)
{
    if (!reload)
        return;
    drop(reload);
    vec_done(&reload->calls);
    free(reload);
}

static void dropped(uv_work_t *work, int status)
{
    struct reload *reload = work->data;
    struct server *server = reload->server;

    (void)status;
    reload_free(reload);
    server->reload = NULL;
    if (server->ctl && server->reload_calls.len)
        begin(server); /* (2) */
}

/* (3) */
static void end(struct reload *reload, const struct err *err)
{
    answer(reload, err);
    uv_queue_work(reload->server->uv, &reload->work, drop_in_worker, dropped);
}

static void dropped_before(uv_work_t *work, int status)
{
    struct reload *reload = work->data;

    (void)status;
    if (reload->server->ctl) {
        read_again(reload);
    } else {
        reload->server->reload = NULL;
        reload_free(reload);
    }
}

static void agreed(void *arg, const struct err *err)
{
    struct reload *reload = arg;
    bool several = reload->changes.list.len > 1;
    bool moved = err && err->code == ERR_TRANSITION;

    if (!err || ++reload->tries > TRIES || !(moved || (several && err->code != ERR_NOT_LEADER))) {
        end(reload, err);
        return;
    }
    reload->at_once = reload->at_once || !moved;
    uv_queue_work(reload->server->uv, &reload->work, drop_in_worker, dropped_before); /* (1) */
}

static void loaded(uv_work_t *work, int status)
{
    struct reload *reload = work->data;
    struct server *server = reload->server;
    struct err err = { 0 };

    (void)status;
    if (!server->ctl) { /* we end */
        server->reload = NULL;
        reload_free(reload);
        return;
    }
    if (reload->err.code) {
        end(reload, &reload->err);
        return;
    }
    struct conf *old = server->conf;
    server->conf = TAKE(reload->conf);
    reload->conf = old;
    conf_file_log(server->conf);
    server_log_level(server);
    log_info("ctl.reconfigured", "file=%s", conf_file_path(server->options->conf_path));
    if (ctl_is_leading(server->ctl)) {
        ctl_change_config(server->ctl, &reload->changes, agreed, reload);
        ctl_flush(server->ctl);
        return;
    }
    ctl_set_config(server->ctl, reload->config, true, NULL, NULL); /* for when we lead */
    err_code(&err, ERR_NOT_LEADER);
    end(reload, &err);
}

static void read_again(struct reload *reload)
{
    reload->err = (struct err){ 0 };
    config_base_take(ctl_state(reload->server->ctl), &reload->base);
    reload->kept = ctl_accounts_kept(reload->server->ctl);
    uv_queue_work(reload->server->uv, &reload->work, load, loaded);
}

static void begin(struct server *server)
{
    struct reload *reload = NEW(struct reload);

    reload->server = server;
    reload->work.data = reload;
    vec_each (struct rpc_call *, at, &server->reload_calls)
        vec_push(&reload->calls, *at);
    vec_clear(&server->reload_calls);
    server->reload = reload;
    read_again(reload);
}

void server_on_reconfigure(struct rpc_call *call, const ProtobufCMessage *request)
{
    struct server *server = rpc_call_ctx(call);

    (void)request;
    vec_push(&server->reload_calls, call);
    if (!server->reload)
        begin(server);
}

void server_conf_end(struct server *server)
{
    reload_free(server->reload);
    server->reload = NULL;
    vec_done(&server->reload_calls);
    conf_free(server->conf);
}
