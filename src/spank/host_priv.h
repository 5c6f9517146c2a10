/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_priv.h - the stack of loaded plugins
 */
#ifndef SPANK_HOST_PRIV_H
#define SPANK_HOST_PRIV_H

#include <slurm/spank.h>

#include "spank/host.h"

enum { SPANK_MAGIC = 0x5350414e };

struct spank_plugin {
    const struct plugstack_entry *entry;
    const char *name;
    void *library;
    spank_f *calls[SPANK_CALLS];
};

struct option_row {
    struct spank_host_option shown;
    const struct spank_plugin *plugin;
    int val;
    spank_opt_cb_f cb;
};

struct spank_host {
    enum spank_where where;
    struct plugstack stack;
    VEC(struct spank_plugin *) plugins;
    VEC(struct option_row *) options;
    bool (*taken)(const char *name);
    struct spank_job *job;
    struct spank_env *env, *prepend;
    struct spank_env control;
    bool has_library; /* libspur_compat is loaded */
};

/* What a plugin gets as spank_t, for one call. */
struct spank_handle {
    unsigned magic;
    struct spank_host *host;
    struct spank_plugin *plugin;
    enum spank_call call;
    int task; /* place in job->tasks; -1: none */
};

/* The stack of this process; NULL: none. */
extern struct spank_host *spank_host_only;

bool spank_handle_valid(spank_t handle);
/* Of a struct spank_option of `plugin`; registration outside a call too (spank_options[]). */
int spank_options_add(struct spank_host *host, struct spank_plugin *plugin,
                      const struct spank_option *option);
/* Adds spank_options[] of the plugin, if it has one. */
void spank_options_load(struct spank_host *host, struct spank_plugin *plugin);
void spank_options_done(struct spank_host *host);

void spank_log(enum spank_log_level level, const char *format, ...) PRINTF(2, 3);

#endif
