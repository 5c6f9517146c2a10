/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent.c - the agent as a whole: its directories, its configuration, its beginning and its end
 */
#include "spurd/agent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/limits.h"
#include "rpc/jwt.h"
#include "rpc/tls.h"
#include "spurd/access/copy.h"
#include "spurd/access/private.h"
#include "spurd/access/vouch.h"
#include "spurd/access/x11.h"
#include "spurd/agent_priv.h"
#include "spurd/attempt/life.h"
#include "spurd/link/join.h"
#include "spurd/link/send.h"
#include "spurd/link/session.h"
#include "spurd/node/cgroups.h"
#include "spurd/root.h"
#include "spurd/step/step.h"
#include "spurd/task/container.h"
#include "spurd/task/hook.h"
#include "spurd/task/stepd.h"
#include "sys/clock.h"
#include "sys/files.h"
#include "sys/host.h"
#include "sys/log.h"

static const struct session_ops session_ops = { .message = agent_on_message,
                                                .disconnected = agent_on_disconnect };
static const struct steps_ops steps_ops = { .counted = agent_gpu_watch,
                                            .frozen = agent_gang_turns,
                                            .unkillable = agent_unkillable,
                                            .ended = agent_advance };

/* ---- inventory ---- */

static int read_boot_id(struct agent *agent, struct err *err)
{
    CLEANUP(freep) char *path = NULL;
    CLEANUP(str_done) struct str text = { 0 };
    char own[CLOCK_BOOT_ID_BYTES];

    if (!str_is_empty(agent->sysroot)) {
        path = mem_printf("%s/proc/sys/kernel/random/boot_id", agent->sysroot);
        if (file_read(path, sizeof(agent->boot_id) - 1, &text, NULL) == 0) {
            snprintf(agent->boot_id, sizeof(agent->boot_id), "%.*s",
                     (int)strcspn(str_text(&text), "\n"), str_text(&text));
            return 0;
        }
    }
    if (clock_boot_id(own, err) < 0)
        return -(int)ERR_IO;
    snprintf(agent->boot_id, sizeof(agent->boot_id), "%s", own);
    return 0;
}

/* Fake devices: what the configuration says is there, is. */
static void override_gres(struct agent *agent)
{
    const NodeSpec *spec = agent->config->spec;
    NodeInventory *node = &agent->inventory.node;

    if (!spec || !spec->n_gres)
        return;
    node->n_gres = 0;
    node->gres = NULL;
    for (size_t i = 0; i < spec->n_gres; i++) {
        const GresInventory *from = spec->gres[i];
        GresInventory *gres = inventory_add_gres(&agent->inventory, from->name, from->type);
        gres->has_count = true;
        gres->count = from->count;
        gres->has_shared = from->has_shared;
        gres->shared = from->shared;
        gres->n_files = from->n_files;
        gres->files = ARENA_ARRAY(&agent->inventory.arena, char *, from->n_files + 1);
        for (size_t k = 0; k < from->n_files; k++)
            gres->files[k] = arena_strdup(&agent->inventory.arena, from->files[k]);
    }
}

static bool is_found(const NodeInventory *node, const char *name, const char *type)
{
    for (size_t i = 0; i < node->n_gres; i++) {
        if (str_eq(node->gres[i]->name, name) &&
            (str_is_empty(type) || str_is_empty(node->gres[i]->type) ||
             str_eq(node->gres[i]->type, type)))
            return true;
    }
    return false;
}

/* Devices that nobody here knows how to look for: those whose files the configuration names are there when the
 * files are. What has no files and is no GPU is only counted. */
static void add_named_gres(struct agent *agent)
{
    const NodeSpec *spec = agent->config ? agent->config->spec : NULL;
    NodeInventory *node = &agent->inventory.node;

    for (size_t i = 0; spec && i < spec->n_gres; i++) {
        const GresInventory *from = spec->gres[i];
        if (is_found(node, from->name, from->type) || (!from->n_files && str_eq(from->name, "gpu")))
            continue;
        GresInventory *gres = inventory_add_gres(&agent->inventory, from->name, from->type);
        gres->has_count = true;
        gres->count = from->n_files ? 0 : from->count;
        gres->has_shared = from->has_shared;
        gres->shared = from->shared;
        gres->files = ARENA_ARRAY(&agent->inventory.arena, char *, from->n_files + 1);
        for (size_t k = 0; k < from->n_files; k++) {
            if (access(from->files[k], F_OK) < 0)
                continue;
            gres->files[gres->n_files++] = arena_strdup(&agent->inventory.arena, from->files[k]);
            gres->count = gres->shared ? from->count : gres->n_files;
        }
    }
}

void agent_fill_found(struct agent *agent)
{
    NodeInventory *node = &agent->inventory.node;
    struct arena *arena = &agent->inventory.arena;
    char host[HOST_NAME_BYTES];
    const Config *config = agent_common(agent);

    host_name(host);
    node->hostname = arena_strdup(arena, host);
    node->addr = arena_strdup(arena, agent->addr ? agent->addr : host);
    node->version = arena_strdup(arena, SPUR_VERSION);
    node->boot_id = agent->boot_id;
    node->has_boot_us = node->has_started_us = node->has_can_change_user = true;
    node->boot_us = clock_wall_us() - clock_boot_us();
    node->started_us = agent->started_us;
    node->can_change_user = geteuid() == 0;
    node->has_uid = !node->can_change_user;
    node->uid = geteuid();
    node->has_port = agent->port != 0;
    node->port = agent->port;
    node->cgroup = agent->cgroup_words;
    if (agent->config)
        node->config_hash = arena_strdup(arena, agent->config->hash);
    if (config && config->config_overrides)
        override_gres(agent);
    else
        add_named_gres(agent);
}

static int look_around(struct agent *agent, struct err *err)
{
    const Config *config = agent_common(agent);
    const struct inventory_options options = { .root = agent->sysroot,
                                               .nvml = getenv("SPUR_NVML"),
                                               .tmp_fs = config ? config->tmp_fs : NULL };

    if (inventory_find(&agent->inventory, &options, err) < 0)
        return -(int)err->code;
    agent_fill_found(agent);
    return 0;
}

/* ---- configuration ---- */

/* agent.log_level, as the controller tells it. */
static void use_log_level(const struct agent *agent)
{
    const Config *config = agent_common(agent);
    enum log_level level;

    if (config && config->node_log_level && log_level_parse(config->node_log_level, &level))
        log_set_level(MIN(level + agent->verbose, LOG_LEVEL_DEBUG5));
}

static void open_cgroups(struct agent *agent)
{
    const Config *config = agent_common(agent);
    const char *root = agent->cgroup_root ? agent->cgroup_root
                       : config           ? config->cgroup_root
                                          : NULL;

    if (agent->cgroup || !agent->config)
        return;
    /* Several private clusters on one machine may have nodes of the same name. */
    CLEANUP(freep)
    char *name = mem_printf("%s-%08x", agent->name,
                            (unsigned)hash_bytes(agent->spool_dir, strlen(agent->spool_dir), 0));
    agent->cgroup =
        cgroups_open(root, agent->config->cluster_name ? agent->config->cluster_name : "cluster",
                     name, agent->cgroup_words, sizeof(agent->cgroup_words));
    agent->has_controllers = agent->cgroup && cgroups_have(agent->cgroup, NULL);
    agent->has_memory = agent->cgroup && cgroups_have(agent->cgroup, "memory");
    if (agent->cgroup)
        log_info("agent.cgroup", "dir=%s is=%s", agent->cgroup, agent->cgroup_words);
    else
        log_warn("agent.cgroup", "is=%s", agent->cgroup_words);
    if (!agent->has_memory)
        log_warn("agent.memory", "the kernel does not hold jobs to their memory here: steps are "
                                 "sampled, and ended when they are over it");
}

static NodeConfig *copy_config(const NodeConfig *config, struct str *bytes)
{
    size_t len = node_config__get_packed_size(config);

    str_reserve(bytes, len);
    bytes->len = node_config__pack(config, (uint8_t *)bytes->data);
    return node_config__unpack(NULL, bytes->len, (const uint8_t *)bytes->data);
}

void agent_set_config(struct agent *agent, const NodeConfig *config)
{
    CLEANUP(str_done) struct str bytes = { 0 };
    CLEANUP(freep) char *path = mem_printf("%s/config", agent->spool_dir);
    struct err err = { 0 };
    bool same = agent->config && config->hash && str_eq(agent->config->hash, config->hash);

    if (same)
        return;
    NodeConfig *copy = copy_config(config, &bytes);
    if (!copy)
        return;
    if (agent->config)
        node_config__free_unpacked(agent->config, NULL);
    agent->config = copy;
    if (file_write_quick(path, bytes.data, bytes.len, 0600, &err) < 0)
        log_warn("agent.config", "path=%s error=%s", path, err.text);
    log_info("agent.config", "cluster=%s hash=%s", copy->cluster_name ? copy->cluster_name : "",
             copy->hash ? copy->hash : "");
    use_log_level(agent);
    open_cgroups(agent);
    agent_fill_found(agent);
    agent_send_found(agent);
    if (agent->session) /* before that, nobody knows what is held */
        agent_health_config(agent);
    if (agent->session)
        private_check(agent);
}

static void load_config(struct agent *agent)
{
    CLEANUP(str_done) struct str bytes = { 0 };
    CLEANUP(freep) char *path = mem_printf("%s/config", agent->spool_dir);

    if (file_read(path, LIMIT_MESSAGE_BYTES, &bytes, NULL) == 0)
        agent->config = node_config__unpack(NULL, bytes.len, (const uint8_t *)str_text(&bytes));
    strcpy(agent->cgroup_words, "not yet known");
    use_log_level(agent);
    open_cgroups(agent);
}

/* ---- the beginning ---- */

static void write_start(struct agent *agent)
{
    snprintf(agent->table.boot_id, sizeof(agent->table.boot_id), "%s", agent->boot_id);
    snprintf(agent->table.last_node, sizeof(agent->table.last_node), "%s", agent->name);
}

/* The zygote has done all that an earlier run of ours asked of it: now the directories say all. */
static void on_zygote_ready(void *ctx)
{
    struct agent *agent = ctx;
    struct err err = { 0 };

    if (agent->session || agent->stopping)
        return;
    agent->new_boot = !str_eq(agent->table.boot_id, agent->boot_id);
    agent_recover(agent);
    steps_recover(agent);
    write_start(agent);
    if (journal_replace(&agent->journal, attempt_write, &agent->table, &err) < 0)
        log_error("spool.write", "error=%s", err.text);
    agent->session = session_new(agent, &session_ops, &err);
    if (!agent->session)
        log_fatal("session.start", "error=%s", err.text);
    agent_health_config(agent);
    map_each (entry, &agent->table.held)
        agent_advance(agent, entry->value);
}

static int open_journal(struct agent *agent, struct err *err)
{
    CLEANUP(freep) char *path = mem_printf("%s/journal", agent->spool_dir);

    attempt_table_init(&agent->table);
    return journal_open(&agent->journal, agent->uv, path, attempt_replay, &agent->table, err);
}

static void copy_options(struct agent *agent, const struct agent_options *options)
{
    agent->name = mem_strdup(options->name);
    agent->controllers = mem_strdup(options->controllers);
    agent->addr = mem_strdup(options->addr);
    agent->sysroot = mem_strdup(options->sysroot);
    agent->cgroup_root = mem_strdup(options->cgroup_root);
    agent->token_file = mem_strdup(options->token_file);
    agent->allow_plaintext = options->allow_plaintext;
    agent->started_us = clock_wall_us();
    agent->verbose = options->verbose;
}

/* A program that belongs to this spurstepd: beside it, in the build tree, installed. NULL: nowhere. */
static char *find_program(const char *stepd, const char *folder, const char *name)
{
    CLEANUP(freep) char *built = mem_printf("../%s/", folder);
    const char *places[] = { "", built, "../libexec/spur/" };
    const char *slash = strrchr(stepd, '/');

    for (size_t i = 0; slash && i < ARRAY_LEN(places); i++) {
        CLEANUP(freep)
        char *path = mem_printf("%.*s/%s%s", (int)(slash - stepd), stepd, places[i], name);
        if (access(path, X_OK) == 0)
            return TAKE(path);
    }
    return NULL;
}

/* An agent without a configuration file, of a test, has none. */
static void find_plugins(struct agent *agent, const struct agent_options *options)
{
    struct plugstack_place *place = &agent->spank->place;

    if (!options->conf)
        return;
    plugstack_find(options->conf, place);
    if (!str_is_empty(options->plugstack) && str_is_empty(getenv("SPUR_PLUGSTACK"))) {
        free(place->file);
        place->file = mem_strdup(options->plugstack);
    }
    if (!str_is_empty(options->plugin_dir)) {
        free(place->dirs);
        place->dirs = mem_strdup(options->plugin_dir);
    }
}

static int start(struct agent *agent, const struct agent_options *options, struct err *err)
{
    const struct stepd_options stepd = {
        .program = options->program,
        .run_dir = agent->run_dir,
        .ctx = agent,
        .news = agent_step_news,
        .lost = agent_step_lost,
        .ready = on_zygote_ready,
    };

    if (access(options->program, X_OK) < 0)
        return err_errno(err, errno, "spurstepd '%s'", options->program);
    agent->container = find_program(options->program, "container", "spur-container");
    agent->pmix = find_program(options->program, "pmix", "spurstepd-pmix");
    agent->spank = NEW(struct task_spank);
    agent->spank->program = find_program(options->program, "spurstepd", "spurstepd-spank");
    find_plugins(agent, options);
    agent->nvml = find_program(options->program, "spurd", "spurd-nvml");
    if (join_tls(agent, options, err) < 0)
        return -(int)err->code;
    if (options->listen && output_listen(agent, options->listen, err) < 0)
        return err_wrap(err, "listening on '%s'", options->listen);
    if (options->listen && options->host_socket)
        vouch_listen_too(agent, options->host_socket);
    if (steps_open(agent, &steps_ops, err) < 0)
        return err_wrap(err, "directories of steps");
    if (x11_open(agent, err) < 0)
        return err_wrap(err, "directory of displays");
    agent_fill_found(agent);
    agent_start_timers(agent);
    agent->stepd = stepd_new(agent->uv, &stepd, err);
    agent_spank_start(agent);
    return agent->stepd ? 0 : -(int)err->code;
}

/* No node: no hardware, no jobs, no stream; what remains is the socket and the connection. */
static int start_login(struct agent *agent, const struct agent_options *options, struct err *err)
{
    agent->login = true;
    if (agent_open_dirs(agent, options, err) < 0 || join_tls(agent, options, err) < 0 ||
        vouch_listen(agent, options->login_socket, err) < 0)
        return -(int)err->code;
    join_show_ca(agent);
    agent->session = session_new(agent, &session_ops, err);
    log_info("login.started", "host=%s socket=%s", agent->name, options->login_socket);
    return agent->session ? 0 : -(int)err->code;
}

struct agent *agent_new(uv_loop_t *uv, const struct agent_options *options, struct err *err)
{
    struct agent *agent = NEW(struct agent);

    agent->uv = uv;
    agent->lock_fd = -1;
    agent->journal.fd = -1;
    arena_init(&agent->inventory.arena);
    attempt_table_init(&agent->table);
    copy_options(agent, options);
    agent->rpc = rpc_loop_new(uv);
    map_init(&agent->vouched);
    if (options->login_socket) {
        if (start_login(agent, options, err) < 0)
            goto failed;
        return agent;
    }
    if (agent_open_dirs(agent, options, err) < 0 || read_boot_id(agent, err) < 0 ||
        open_journal(agent, err) < 0)
        goto failed;
    agent_lease_init(agent);
    agent_health_init(agent);
    load_config(agent);
    if (look_around(agent, err) < 0 || start(agent, options, err) < 0)
        goto failed;
    log_info("agent.started", "node=%s spool=%s run=%s boot=%s held=%zu", agent->name,
             agent->spool_dir, agent->run_dir, agent->boot_id, map_len(&agent->table.held));
    if (geteuid() != 0)
        log_warn("agent.unprivileged", "uid=%u jobs=%s", (unsigned)geteuid(), "of this user only");
    return agent;
failed:
    agent_stop(agent);
    uv_run(uv, UV_RUN_DEFAULT);
    agent_free(agent);
    return NULL;
}

/* ---- the end ---- */

static void stop_timer(uv_timer_t *timer)
{
    if (timer->data && !uv_is_closing((uv_handle_t *)timer)) {
        uv_timer_stop(timer);
        uv_close((uv_handle_t *)timer, NULL);
    }
}

void agent_stop(struct agent *agent)
{
    if (agent->stopping)
        return;
    agent->stopping = true;
    map_each (entry, &agent->table.held) {
        struct attempt *held = entry->value;
        if (held->chan)
            stepd_close(TAKE(held->chan));
        if (held->hook)
            hook_abandon(TAKE(held->hook));
    }
    steps_close(agent);
    x11_close(agent);
    copies_close(agent);
    session_free(TAKE(agent->session));
    if (agent->server)
        rpc_server_free(TAKE(agent->server));
    stepd_free(TAKE(agent->stepd));
    stop_timer(&agent->beat_timer);
    stop_timer(&agent->resend_timer);
    stop_timer(&agent->keep_timer);
    stop_timer(&agent->sync_timer);
    stop_timer(&agent->health_timer);
    agent_health_stop(agent);
    agent_unkillable_stop(agent);
    agent_gpu_watch_stop(agent);
    agent_spank_stop(agent);
    stop_timer(&agent->lease_timer);
    rpc_loop_free(TAKE(agent->rpc));
}

void agent_end_all(struct agent *agent)
{
    CLEANUP(freep) char *cgroup = mem_strdup(agent->cgroup);
    CLEANUP(freep) char *run_dir = mem_strdup(agent->run_dir);

    agent_stop(agent);
    agent_keep_ends(agent);
    cgroups_end_node(cgroup, run_dir);
}

void agent_free(struct agent *agent)
{
    if (!agent)
        return;
    journal_close(&agent->journal);
    attempt_table_done(&agent->table);
    vouch_done(agent);
    inventory_done(&agent->inventory);
    if (agent->config)
        node_config__free_unpacked(agent->config, NULL);
    if (agent->job_keys)
        jwt_keys_free(agent->job_keys);
    if (agent->tls_client)
        tls_ctx_free(agent->tls_client);
    if (agent->tls_joining)
        tls_ctx_free(agent->tls_joining);
    if (agent->tls_server)
        tls_ctx_free(agent->tls_server);
    file_close(&agent->lock_fd);
    free(agent->name);
    free(agent->controllers);
    free(agent->addr);
    free(agent->spool_dir);
    free(agent->run_dir);
    free(agent->nvml);
    free(agent->sysroot);
    free(agent->cgroup_root);
    free(agent->container);
    free(agent->pmix);
    task_spank_done(agent->spank);
    free(agent->token_file);
    free(agent->lease_file);
    free(agent->cgroup);
    free(agent->socket);
    free(agent->shown_dir);
    free(agent);
}

void agent_child_ended(struct agent *agent)
{
    if (agent->stepd)
        stepd_reap(agent->stepd);
}

uint16_t agent_port(const struct agent *agent)
{
    return agent->port;
}
