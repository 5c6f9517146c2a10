/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.c - plugins are loaded, called and unloaded
 *
 * (1) A plugin may use functions of libslurm. The library of the release that the plugin was compiled for is loaded
 *     beside it, for all to see; one release at a time, that of the first plugin.
 * (2) Names that plugins need from us (spank_*, slurm_error, ...) are exported by the program, and come before those of
 *     that library.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "spank/host_priv.h"

#ifndef SPANK_COMPAT_DIR
#define SPANK_COMPAT_DIR "/usr/local/lib/spur/compat"
#endif

struct spank_host *spank_host_only;

static const char *const call_names[SPANK_CALLS] = {
    [SPANK_INIT] = "slurm_spank_init",
    [SPANK_SLURMD_INIT] = "slurm_spank_slurmd_init",
    [SPANK_INIT_POST_OPT] = "slurm_spank_init_post_opt",
    [SPANK_LOCAL_USER_INIT] = "slurm_spank_local_user_init",
    [SPANK_USER_INIT] = "slurm_spank_user_init",
    [SPANK_TASK_INIT_PRIVILEGED] = "slurm_spank_task_init_privileged",
    [SPANK_TASK_INIT] = "slurm_spank_task_init",
    [SPANK_TASK_POST_FORK] = "slurm_spank_task_post_fork",
    [SPANK_TASK_EXIT] = "slurm_spank_task_exit",
    [SPANK_JOB_PROLOG] = "slurm_spank_job_prolog",
    [SPANK_JOB_EPILOG] = "slurm_spank_job_epilog",
    [SPANK_SLURMD_EXIT] = "slurm_spank_slurmd_exit",
    [SPANK_EXIT] = "slurm_spank_exit",
};

/* By the number that SPANK_PLUGIN() writes into a plugin: 0xMMmmpp. */
static const struct {
    unsigned before; /* the next release */
    const char *release;
    unsigned number;
} releases[] = {
    { 0x170000, "22.05", 38 },
    { 0x190500, "24.11", 42 },
    { UINT32_MAX, "26.05", 45 },
};

const char *spank_host_call_name(enum spank_call call)
{
    return call_names[call];
}

/* ---- libslurm's functions ---- */

static void *open_library(const char *release, unsigned number)
{
    char self[LIMIT_PATH_BYTES], path[LIMIT_PATH_BYTES + 64];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

    snprintf(path, sizeof(path), "%s/%s/libslurm.so.%u", SPANK_COMPAT_DIR, release, number);
    if (access(path, R_OK) < 0 && len > 0) { /* as it was built: src/cli/spur, src/compat/38 */
        self[len] = '\0';
        char *slash = strrchr(self, '/');
        *slash = '\0';
        snprintf(path, sizeof(path), "%s/../compat/%u/libslurm.so.%u", self, number, number);
    }
    return dlopen(path, RTLD_LAZY | RTLD_GLOBAL);
}

/* (1) */
static void load_library(struct spank_host *host, unsigned version)
{
    size_t i = 0;

    if (host->has_library)
        return;
    while (version >= releases[i].before)
        i++;
    host->has_library = open_library(releases[i].release, releases[i].number) != NULL;
    if (!host->has_library)
        spank_log(SPANK_LOG_VERBOSE, "spank: functions of libslurm are not there: %s", dlerror());
}

/* ---- loading ---- */

static void *open_plugin(struct spank_host *host, const char *path)
{
    void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);

    if (library || host->has_library)
        return library;
    load_library(host, 0); /* one that wants all its functions at once */
    return dlopen(path, RTLD_LAZY | RTLD_LOCAL);
}

static int load_symbols(struct spank_plugin *plugin, const char *path, struct err *err)
{
    const char *type = dlsym(plugin->library, "plugin_type");
    bool any = dlsym(plugin->library, "spank_options") != NULL;

    plugin->name = dlsym(plugin->library, "plugin_name");
    if (!type || !plugin->name || strcmp(type, "spank") != 0)
        return err_set(err, ERR_CONFIG,
                       "'%s' is not a SPANK plugin: it has no plugin_type \"spank\"", path);
    for (size_t i = 0; i < SPANK_CALLS; i++) {
        void *found = dlsym(plugin->library, call_names[i]);
        memcpy(&plugin->calls[i], &found, sizeof(found));
        any = any || found;
    }
    return any ? 0
               : err_set(err, ERR_CONFIG, "'%s' has none of the functions of a SPANK plugin", path);
}

static int load_plugin(struct spank_host *host, const struct plugstack_entry *entry,
                       struct err *err)
{
    if (!entry->path)
        return err_set(err, ERR_CONFIG, "there is no plugin '%s' in the plugin directories",
                       entry->name);
    if (plugstack_check_owner(entry->path, err) < 0)
        return -(int)err->code;
    struct spank_plugin *plugin = NEW(struct spank_plugin);
    plugin->entry = entry;
    plugin->library = open_plugin(host, entry->path);
    if (!plugin->library) {
        free(plugin);
        return err_set(err, ERR_CONFIG, "%s", dlerror());
    }
    if (load_symbols(plugin, entry->path, err) < 0) {
        dlclose(plugin->library);
        free(plugin);
        return -(int)err->code;
    }
    const unsigned *version = dlsym(plugin->library, "plugin_version");
    load_library(host, version ? *version : 0);
    vec_push(&host->plugins, plugin);
    return 0;
}

static int load_all(struct spank_host *host, struct err *err)
{
    vec_each (struct plugstack_entry, entry, &host->stack.list) {
        struct err why = { 0 };
        if (load_plugin(host, entry, &why) == 0) {
            if (host->where == SPANK_LOCAL || host->where == SPANK_REMOTE)
                spank_options_load(host, host->plugins.items[host->plugins.len - 1]);
            continue;
        }
        if (entry->required)
            return err_set(err, ERR_CONFIG, "spank: required plugin %s cannot be loaded: %s",
                           entry->name, why.text);
        spank_log(SPANK_LOG_INFO, "spank: optional plugin %s is not loaded: %s", entry->name,
                  why.text);
    }
    return 0;
}

struct spank_host *spank_host_open(enum spank_where where, const struct plugstack_place *place,
                                   bool (*taken)(const char *name), struct spank_job *job,
                                   struct spank_env *env, struct err *err)
{
    struct spank_host *host = NEW(struct spank_host);

    host->where = where;
    host->taken = taken;
    host->job = job;
    host->env = env;
    if (plugstack_read(place, &host->stack, err) < 0) {
        free(host);
        return NULL;
    }
    spank_host_only = host;
    int ret = load_all(host, err);
    if (ret == 0 && where != SPANK_JOB_SCRIPT)
        ret = spank_host_call(host, SPANK_INIT, -1, err);
    if (ret == 0)
        return host;
    spank_host_close(host);
    return NULL;
}

void spank_host_close(struct spank_host *host)
{
    if (!host)
        return;
    spank_options_done(host);
    vec_each (struct spank_plugin *, at, &host->plugins) {
        dlclose((*at)->library);
        free(*at);
    }
    vec_done(&host->plugins);
    spank_env_done(&host->control);
    plugstack_done(&host->stack);
    spank_host_only = NULL;
    free(host);
}

/* ---- calling ---- */

int spank_host_call(struct spank_host *host, enum spank_call call, int task, struct err *err)
{
    for (size_t i = 0; i < host->plugins.len; i++) {
        struct spank_plugin *plugin = host->plugins.items[i];
        struct spank_handle handle = {
            .magic = SPANK_MAGIC, .host = host, .plugin = plugin, .call = call, .task = task
        };
        if (!plugin->calls[call])
            continue;
        int rc = plugin->calls[call](&handle, plugin->entry->argc, plugin->entry->argv);
        handle.magic = 0;
        if (rc >= 0)
            continue;
        if (plugin->entry->required)
            return err_set(err, ERR_INTERNAL, "spank: required plugin %s: %s() failed with rc=%d",
                           plugin->name, call_names[call], rc);
        spank_log(SPANK_LOG_INFO, "spank: optional plugin %s: %s() failed with rc=%d", plugin->name,
                  call_names[call], rc);
    }
    return 0;
}

void spank_host_set_job(struct spank_host *host, struct spank_job *job, struct spank_env *env)
{
    host->job = job;
    host->env = env;
}

void spank_host_set_prepend(struct spank_host *host, struct spank_env *words)
{
    host->prepend = words;
}

struct spank_env *spank_host_job_control(struct spank_host *host)
{
    return &host->control;
}

bool spank_handle_valid(spank_t handle)
{
    return handle && handle->magic == SPANK_MAGIC && handle->host;
}
