// SPDX-License-Identifier: Apache-2.0
/*
 * plugins.c - SPANK plugins in sbatch, salloc and srun
 *
 * Options travel as variables, one for each that was given: _SLURM_SPANK_OPTION_PLUGIN_NAME=value. A batch script and
 * what salloc runs have them in their environment, so that srun inside takes them up. What srun sends with a step is
 * named _SPUR_ instead; the node takes these away before the tasks start, so that a task's own srun does not inherit
 * them.
 */
#include "cli/plugins.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/srun.h"
#include "client/conf_file.h"
#include "spank/host.h"

static struct {
    struct spank_host *host;
    struct option_set set;
    const struct option_set *of; /* that it was made of */
    struct option *rows;
    size_t first; /* row of the first plugin's option */
    struct spank_job job;
    struct spank_env env;
} loaded;

static bool is_own(const char *name)
{
    return option_find(loaded.of, name) != NULL;
}

/* Told of by plugins_options(), once it is known which of several values counts. */
static int read_nothing(const struct option_call *call, const char *value, struct err *err)
{
    (void)call, (void)value, (void)err;
    return 0;
}

/* "[N]" stands for a value that may be left out, and nothing else may look like it. */
static const char *arg_name(struct arena *arena, const struct spank_host_option *option)
{
    char *text = arena_strdup(arena, option->arg);

    if (option->has_arg == 0)
        return NULL;
    if (option->has_arg == 1)
        return text[0] == '[' ? arena_printf(arena, "<%s>", text) : text;
    for (char *at = text; *at; at++) {
        if (*at == '[' || *at == ']')
            *at = *at == '[' ? '(' : ')';
    }
    return arena_printf(arena, "[%s]", text);
}

static void make_set(struct arena *arena, const struct option_set *set)
{
    size_t more = spank_host_option_count(loaded.host);

    loaded.rows = ARENA_ARRAY(arena, struct option, set->count + more);
    memcpy(loaded.rows, set->rows, set->count * sizeof(struct option));
    loaded.first = set->count;
    for (size_t i = 0; i < more; i++) {
        const struct spank_host_option *option = spank_host_option(loaded.host, i);
        loaded.rows[set->count + i] = (struct option){
            .name = option->name,
            .arg = arg_name(arena, option),
            .env = { option->variable, option->variable, option->variable },
            .read = read_nothing,
            .heading = "Options provided by plugins:",
            .help = arena_printf(arena, "%s [%s]", option->help, option->plugin),
        };
    }
    loaded.set = *set;
    loaded.set.rows = loaded.rows;
    loaded.set.count = set->count + more;
}

int plugins_open(struct cli *cli, const struct option_set *set)
{
    struct plugstack_place place;
    struct err err = { 0 };

    plugstack_find(conf_file_path(NULL), &place);
    if (plugstack_is_used(&place)) {
        loaded.of = set;
        loaded.host = spank_host_open(set->bit == CMD_SRUN ? SPANK_LOCAL : SPANK_ALLOCATOR, &place,
                                      is_own, NULL, NULL, &err);
        if (!loaded.host)
            cli_error(cli, "%s", err.text);
        else
            make_set(&cli->arena, set);
    }
    plugstack_place_done(&place);
    if (err.code)
        cli_error(cli, "Plug-in initialization failed");
    return err.code ? cli_error_code() : 0;
}

void plugins_close(struct cli *cli)
{
    struct err err = { 0 };

    if (!loaded.host)
        return;
    if (spank_host_call(loaded.host, SPANK_EXIT, -1, &err) < 0)
        cli_error(cli, "%s", err.text);
    spank_host_close(TAKE(loaded.host));
    spank_env_done(&loaded.env);
    loaded.of = NULL;
}

bool plugins_loaded(void)
{
    return loaded.host != NULL;
}

const struct option_set *plugins_set(const struct option_set *set)
{
    return loaded.host && loaded.of == set ? &loaded.set : set;
}

int plugins_options(struct cli *cli, const struct job_request *request)
{
    struct err err = { 0 };

    if (!loaded.host)
        return 0;
    vec_each (struct job_request_given, given, &request->given) {
        if (given->row < loaded.rows + loaded.first || given->row >= loaded.rows + loaded.set.count)
            continue;
        size_t index = (size_t)(given->row - loaded.rows) - loaded.first;
        const char *value = given->value;
        if (value && !*value && spank_host_option(loaded.host, index)->has_arg == 2)
            value = NULL; /* left out, where the variable was made */
        if (spank_host_set_option(loaded.host, index, value, &err) < 0) {
            cli_error(cli, "%s", err.text);
            return cli_error_code();
        }
    }
    if (spank_host_call(loaded.host, SPANK_INIT_POST_OPT, -1, &err) < 0) {
        cli_error(cli, "%s", err.text);
        return cli_error_code();
    }
    return 0;
}

/* ---- what travels ---- */

static const struct spank_host_option *given_option(size_t index)
{
    const struct spank_host_option *option = spank_host_option(loaded.host, index);

    return option->given ? option : NULL;
}

static char *as_variable(const char *prefix, const struct spank_host_option *option)
{
    return mem_printf("%s%s=%s", prefix, option->variable, option->value ? option->value : "");
}

void plugins_fill_spec(JobSpec *spec)
{
    if (!loaded.host)
        return;
    const struct spank_env *control = spank_host_job_control(loaded.host);
    size_t options = spank_host_option_count(loaded.host);
    char **list = NEW_ARRAY(char *, control->list.len + options + 1);
    size_t count = 0;
    vec_each (char *, entry, &control->list)
        list[count++] = mem_strdup(*entry);
    for (size_t i = 0; i < options; i++) {
        if (given_option(i))
            list[count++] = as_variable("", given_option(i));
    }
    if (count == 0) {
        free(list);
        return;
    }
    spec->spank_env = list;
    spec->n_spank_env = count;
}

/* Replaces what the user's environment may have under the same name. */
static void put(struct cli *cli, JobPayload *payload, const char *text)
{
    size_t name = strcspn(text, "=") + 1, at = 0;

    while (at < payload->n_env &&
           (payload->env[at].len < name || memcmp(payload->env[at].data, text, name) != 0))
        at++;
    if (at == payload->n_env) {
        ProtobufCBinaryData *env =
            ARENA_ARRAY(&cli->arena, ProtobufCBinaryData, payload->n_env + 1);
        if (payload->n_env)
            memcpy(env, payload->env, payload->n_env * sizeof(*env));
        payload->env = env;
        payload->n_env++;
    }
    payload->env[at] = (ProtobufCBinaryData){ .data = (uint8_t *)arena_strdup(&cli->arena, text),
                                              .len = strlen(text) };
}

static void fill(struct cli *cli, JobPayload *payload, const char *prefix)
{
    for (size_t i = 0; loaded.host && i < spank_host_option_count(loaded.host); i++) {
        if (!given_option(i))
            continue;
        CLEANUP(freep) char *text = as_variable(prefix, given_option(i));
        put(cli, payload, text);
    }
}

void plugins_fill_payload(struct cli *cli, JobPayload *payload)
{
    fill(cli, payload, "");
}

void plugins_fill_step(struct cli *cli, JobPayload *env)
{
    fill(cli, env, "_SPUR");
}

void plugins_set_env(void)
{
    for (size_t i = 0; loaded.host && i < spank_host_option_count(loaded.host); i++) {
        const struct spank_host_option *option = given_option(i);
        if (option)
            setenv(option->variable, option->value ? option->value : "", 1);
    }
}

/* ---- what plugins may know ---- */

void plugins_allocated(void)
{
    if (!loaded.host)
        return;
    loaded.job = (struct spank_job){ .uid = getuid(), .gid = getgid() };
    spank_host_set_job(loaded.host, &loaded.job, NULL);
}

int plugins_user_init(struct srun *srun)
{
    struct err err = { 0 };

    if (!loaded.host)
        return 0;
    loaded.job = (struct spank_job){
        .uid = getuid(),
        .gid = getgid(),
        .job_id = srun->job_id,
        .step_id = srun->layout->id->step,
        .nnodes = (uint32_t)srun->task_nodes,
        .total_tasks = srun->ntasks,
        .argc = srun->argc,
        .argv = srun->argv,
    };
    for (size_t i = 0; i < srun->env.n_env; i++) {
        CLEANUP(freep)
        char *entry = mem_strndup((char *)srun->env.env[i].data, srun->env.env[i].len);
        spank_env_copy(&loaded.env, &entry, 1);
    }
    spank_host_set_job(loaded.host, &loaded.job, &loaded.env);
    if (spank_host_call(loaded.host, SPANK_LOCAL_USER_INIT, -1, &err) == 0)
        return 0;
    cli_error(&srun->cli, "%s", err.text);
    cli_error(&srun->cli, "Failure in local plugin stack");
    return cli_error_code();
}
