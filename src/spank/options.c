/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - options that plugins register, and what was given of them
 */
#include <ctype.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "spank/host_priv.h"

enum { OPTIONS_MAX = 1024 };

#define VARIABLE     "_SLURM_SPANK_OPTION_"
#define JOB_VARIABLE "SPANK_" VARIABLE /* of prolog and epilog */

/* Names may hold what variables may not. */
static char *variable_of(const char *plugin, const char *option)
{
    char *text = mem_printf(VARIABLE "%s_%s", plugin, option);

    for (char *at = text; *at; at++) {
        if (!isalnum((unsigned char)*at))
            *at = '_';
    }
    return text;
}

static struct option_row *find(const struct spank_host *host, const struct spank_plugin *plugin,
                               const char *name)
{
    vec_each (struct option_row *, at, &host->options) {
        if ((!plugin || (*at)->plugin == plugin) && strcmp((*at)->shown.name, name) == 0)
            return *at;
    }
    return NULL;
}

int spank_options_add(struct spank_host *host, struct spank_plugin *plugin,
                      const struct spank_option *option)
{
    if (!option || str_is_empty(option->name) || !option->usage || option->has_arg < 0 ||
        option->has_arg > 2)
        return ESPANK_BAD_ARG;
    if (strlen(option->name) > SPANK_OPTION_MAXLEN || host->options.len == OPTIONS_MAX)
        return ESPANK_NOSPACE;
    if ((host->taken && host->taken(option->name)) || find(host, NULL, option->name)) {
        spank_log(SPANK_LOG_ERROR,
                  "spank: plugin %s: option \"%s\" exists already; the plugin's is not added",
                  plugin->name, option->name);
        return ESPANK_ERROR;
    }
    struct option_row *row = NEW(struct option_row);
    row->shown = (struct spank_host_option){
        .name = mem_strdup(option->name),
        .arg = mem_strdup(option->arginfo && *option->arginfo ? option->arginfo : "arg"),
        .help = mem_strdup(option->usage),
        .plugin = plugin->name,
        .has_arg = option->has_arg,
        .variable = variable_of(plugin->name, option->name),
    };
    row->plugin = plugin;
    row->val = option->val;
    row->cb = option->cb;
    vec_push(&host->options, row);
    return ESPANK_SUCCESS;
}

void spank_options_load(struct spank_host *host, struct spank_plugin *plugin)
{
    const struct spank_option *table = dlsym(plugin->library, "spank_options");

    for (; table && table->name; table++)
        spank_options_add(host, plugin, table);
}

void spank_options_done(struct spank_host *host)
{
    vec_each (struct option_row *, at, &host->options) {
        free((char *)(*at)->shown.name);
        free((char *)(*at)->shown.arg);
        free((char *)(*at)->shown.help);
        free((*at)->shown.variable);
        free((*at)->shown.value);
        free(*at);
    }
    vec_done(&host->options);
}

size_t spank_host_option_count(const struct spank_host *host)
{
    return host->options.len;
}

const struct spank_host_option *spank_host_option(const struct spank_host *host, size_t index)
{
    return &host->options.items[index]->shown;
}

int spank_host_set_option(struct spank_host *host, size_t index, const char *value, struct err *err)
{
    struct option_row *row = host->options.items[index];

    free(row->shown.value);
    row->shown.given = true;
    row->shown.value = row->shown.has_arg ? mem_strdup(value) : NULL;
    if (!row->cb || row->cb(row->val, row->shown.value, host->where == SPANK_REMOTE) >= 0)
        return 0;
    if (value && row->shown.has_arg)
        return err_set(err, ERR_RANGE, "Invalid --%s argument: %s", row->shown.name, value);
    return err_set(err, ERR_RANGE, "Invalid --%s specification", row->shown.name);
}

int spank_host_set_options_from(struct spank_host *host, const struct spank_env *env,
                                const char *prefix, struct err *err)
{
    for (size_t i = 0; i < host->options.len; i++) {
        CLEANUP(freep)
        char *name = mem_printf("%s%s", prefix, host->options.items[i]->shown.variable);
        const char *value = spank_env_get(env, name);
        if (!value || host->options.items[i]->shown.given)
            continue;
        /* An option whose argument was left out is a variable without text. */
        if (spank_host_set_option(
                host, i, *value || host->options.items[i]->shown.has_arg == 1 ? value : NULL, err) <
            0)
            return -(int)err->code;
    }
    return 0;
}

/* ---- what plugins call ---- */

spank_err_t spank_option_register(spank_t handle, struct spank_option *option)
{
    if (!spank_handle_valid(handle))
        return ESPANK_BAD_ARG;
    if (handle->host->where == SPANK_JOB_SCRIPT)
        return ESPANK_ERROR;
    if (handle->call != SPANK_INIT) {
        spank_log(SPANK_LOG_ERROR,
                  "spank: plugin %s: options can be registered in slurm_spank_init() only",
                  handle->plugin->name);
        return ESPANK_BAD_ARG;
    }
    return spank_options_add(handle->host, handle->plugin, option);
}

/* Prolog and epilog know of options by their environment. */
static spank_err_t get_from_env(spank_t handle, const struct spank_option *option, char **out)
{
    CLEANUP(freep) char *name = variable_of(handle->plugin->name, option->name);
    CLEANUP(freep) char *full = mem_printf("SPANK_%s", name);
    char *value = getenv(full);

    if (!value)
        return ESPANK_ERROR;
    if (option->has_arg && out)
        *out = *value || option->has_arg == 1 ? value : NULL;
    return ESPANK_SUCCESS;
}

spank_err_t spank_option_getopt(spank_t handle, struct spank_option *option, char **out)
{
    if (!spank_handle_valid(handle) || !option || str_is_empty(option->name))
        return ESPANK_BAD_ARG;
    if (out)
        *out = NULL;
    if (handle->host->where == SPANK_SLURMD || handle->call == SPANK_INIT)
        return ESPANK_NOT_AVAIL;
    if (handle->host->where == SPANK_JOB_SCRIPT)
        return get_from_env(handle, option, out);
    const struct option_row *row = find(handle->host, handle->plugin, option->name);
    if (!row || !row->shown.given)
        return ESPANK_ERROR;
    if (option->has_arg && out)
        *out = row->shown.value;
    return ESPANK_SUCCESS;
}
