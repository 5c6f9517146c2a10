// SPDX-License-Identifier: Apache-2.0
/*
 * srun_bcast.c - srun --bcast: the program goes to the nodes of the step before it runs there
 */
#include <stdlib.h>
#include <string.h>

#include "cli/copy.h"
#include "cli/srun.h"

#define LIBRARY_PATH "LD_LIBRARY_PATH="

/* Where it goes, with %N for the node. */
static char *destination(struct srun *srun)
{
    struct arena *arena = &srun->cli.arena;
    const char *to = srun->request.bcast, *dir = srun->request.spec->work_dir;

    if (!*to)
        to = arena_printf(arena, "%s/", dir);
    else if (*to != '/')
        to = arena_printf(arena, "%s/%s", dir, to);
    if (str_ends(to, "/"))
        to = arena_printf(arena, "%sslurm_bcast_%u.%u_%%N", to, srun->job_id,
                          srun->layout->id->step);
    return arena_strdup(arena, to);
}

static char *nodes_of(struct srun *srun)
{
    CLEANUP(str_done) struct str text = { 0 };

    for (size_t i = 0; i < srun->layout->n_nodes; i++)
        str_addf(&text, "%s%s", i ? "," : "", srun->layout->nodes[i]->name);
    return arena_strdup(&srun->cli.arena, str_text(&text));
}

static int send_program(struct srun *srun, const char *program, struct err *err)
{
    const struct job_request *asked = &srun->request;
    struct copy_job copy = { .cli = &srun->cli,
                             .job = srun->job_id,
                             .nodes = nodes_of(srun),
                             .block = COPY_BLOCK,
                             .stop = &srun_interrupted };
    struct copy_send what = { .from = program, .to = destination(srun), .force = true };
    bool libs = false;

    if (copy_read_compress(asked->compress, &copy.compress, err) < 0 ||
        copy_read_yes(asked->send_libs, &libs, err) < 0 || copy_find(&copy, err) < 0 ||
        copy_send(&copy, &what, err) < 0)
        return -1;
    srun->bcast = (char *)what.to;
    srun->bcast_libs = libs;
    if (!libs)
        return 0;
    return copy_send_libs(&copy, program, arena_printf(&srun->cli.arena, "%s_libs", what.to),
                          asked->bcast_exclude, true, false, err);
}

int srun_bcast(struct srun *srun)
{
    const JobSpec *spec = srun->request.spec;
    struct err err = { 0 };

    if (!srun->request.bcast)
        return 0;
    if (srun->request.multi_prog || !str_is_empty(spec->container_image) ||
        !str_is_empty(spec->container)) {
        cli_error(&srun->cli, "--bcast is for one program, without --multi-prog or a container");
        return 1;
    }
    if (send_program(srun, srun->programs[0]->args[0], &err) < 0) {
        cli_error(&srun->cli, "Failed to broadcast '%s'. %s", srun->programs[0]->args[0], err.text);
        return 1;
    }
    return 0;
}

static char *for_node(struct srun *srun, const char *node)
{
    CLEANUP(str_done) struct str out = { 0 };

    for (const char *c = srun->bcast; *c; c++) {
        if (c[0] == '%' && c[1] == 'N') {
            str_add(&out, node);
            c++;
        } else {
            str_add_char(&out, *c);
        }
    }
    return arena_strdup(&srun->cli.arena, str_text(&out));
}

/* The directory before what the user has, once for each node. */
static void set_library_path(struct srun *srun, const char *dir)
{
    JobPayload *env = &srun->env;
    const char *own = getenv("LD_LIBRARY_PATH");
    char *text = arena_printf(&srun->cli.arena, LIBRARY_PATH "%s%s%s", dir, own && *own ? ":" : "",
                              own ? own : "");
    size_t at = 0;

    while (at < env->n_env && (env->env[at].len < strlen(LIBRARY_PATH) ||
                               memcmp(env->env[at].data, LIBRARY_PATH, strlen(LIBRARY_PATH)) != 0))
        at++;
    if (at == env->n_env) {
        ProtobufCBinaryData *more =
            ARENA_ARRAY(&srun->cli.arena, ProtobufCBinaryData, env->n_env + 1);
        memcpy(more, env->env, env->n_env * sizeof(*more));
        env->env = more;
        env->n_env++;
    }
    env->env[at] = (ProtobufCBinaryData){ .data = (uint8_t *)text, .len = strlen(text) };
}

void srun_bcast_use(struct srun *srun, const char *node)
{
    if (!srun->bcast)
        return;
    char *path = for_node(srun, node);
    srun->programs[0]->args[0] = path;
    if (srun->bcast_libs)
        set_library_path(srun, arena_printf(&srun->cli.arena, "%s_libs", path));
}
