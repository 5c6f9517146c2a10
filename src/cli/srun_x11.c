// SPDX-License-Identifier: Apache-2.0
/*
 * srun_x11.c - srun --x11: which nodes of the step forward, and what their tasks find in the environment
 */
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "cli/srun.h"
#include "cli/x11.h"

struct srun_x11 {
    struct x11_server server;
    struct x11_forward forward;
    struct x11_node *nodes;
    size_t *of; /* by node of the step: place in `nodes`, counted from one; 0: none */
    size_t count;
};

int srun_x11_ask(struct srun *srun)
{
    bool told = alloc_given(&srun->request, "x11", NULL);

    if (!srun->request.x11 || (!told && !getenv("DISPLAY")))
        return 0;
    srun->x11 = ARENA_NEW(&srun->cli.arena, struct srun_x11);
    srun->x11->forward.life = -1;
    int code = x11_find_server(&srun->cli, &srun->x11->server);
    if (code)
        srun->x11 = NULL;
    return told ? code : 0;
}

/* The first and the last node are the job's. */
static void job_ends(const struct srun *srun, struct str *first, struct str *last)
{
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 };
    const char *list = getenv("SLURM_JOB_NODELIST");

    if (!list || hostlist_parse(&hosts, list, NULL) < 0 || hostlist_count(&hosts) == 0) {
        str_add(first, srun->nodes[0].node->name);
        str_add(last, srun->nodes[srun->task_nodes - 1].node->name);
        return;
    }
    hostlist_nth(&hosts, 0, first);
    hostlist_nth(&hosts, hostlist_count(&hosts) - 1, last);
}

static bool is_asked(const struct srun *srun, const char *node, const struct str *first,
                     const struct str *last)
{
    const char *mode = srun->request.x11;

    if (strcmp(mode, "all") == 0)
        return true;
    return str_eq(node, str_text(strcmp(mode, "last") == 0 ? last : first));
}

static void fill_node(const struct srun *srun, const struct srun_node *node, struct x11_node *out)
{
    const struct srun *part = node->of;
    size_t index = (size_t)(node - srun->nodes) - part->first_node;

    *out = (struct x11_node){ .name = node->node->name,
                              .address = node->address ? node->address : node->node->address,
                              .token = node->token,
                              .job_id = part->job_id,
                              .layout = part->created->layout };
    if (index < part->created->n_proofs)
        out->proof = part->created->proofs[index];
}

int srun_x11_start(struct srun *srun)
{
    CLEANUP(str_done) struct str first = { 0 }, last = { 0 };
    struct srun_x11 *x11 = srun->x11;
    struct err err = { 0 };

    if (!x11)
        return 0;
    x11->nodes = ARENA_ARRAY(&srun->cli.arena, struct x11_node, srun->task_nodes);
    x11->of = ARENA_ARRAY(&srun->cli.arena, size_t, srun->task_nodes);
    job_ends(srun, &first, &last);
    for (size_t i = 0; i < srun->task_nodes; i++) {
        if (!is_asked(srun, srun->nodes[i].node->name, &first, &last))
            continue;
        fill_node(srun, &srun->nodes[i], &x11->nodes[x11->count++]);
        x11->of[i] = x11->count;
    }
    if (!x11->count || x11_start(&x11->server, x11->nodes, x11->count, &x11->forward, &err))
        return 0;
    x11->count = 0;
    cli_error(&srun->cli, "X11 forwarding failed: %s", err.text);
    return alloc_given(&srun->request, "x11", NULL) ? 1 : 0;
}

static bool is_ours(const ProtobufCBinaryData *env)
{
    return (env->len >= 8 && memcmp(env->data, "DISPLAY=", 8) == 0) ||
           (env->len >= 11 && memcmp(env->data, "XAUTHORITY=", 11) == 0);
}

static void put(struct srun *srun, StepLaunch *launch, const char *name, const char *value)
{
    char *text = arena_printf(&srun->cli.arena, "%s=%s", name, value);

    launch->env[launch->n_env++] =
        (ProtobufCBinaryData){ .data = (uint8_t *)text, .len = strlen(text) };
}

void srun_x11_use(struct srun *srun, size_t node, StepLaunch *launch)
{
    const struct srun_x11 *x11 = srun->x11;

    if (!x11 || !x11->count || !x11->of[node])
        return;
    const struct x11_node *ours = &x11->nodes[x11->of[node] - 1];
    const ProtobufCBinaryData *before = launch->env;
    size_t count = launch->n_env;
    launch->env = ARENA_ARRAY(&srun->cli.arena, ProtobufCBinaryData, count + 2);
    launch->n_env = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_ours(&before[i]))
            launch->env[launch->n_env++] = before[i];
    }
    put(srun, launch, "DISPLAY", ours->display);
    if (ours->xauthority)
        put(srun, launch, "XAUTHORITY", ours->xauthority);
}

void srun_x11_stop(struct srun *srun)
{
    struct srun_x11 *x11 = srun->x11;

    if (!x11)
        return;
    x11_stop(&x11->forward);
    for (size_t i = 0; i < x11->count; i++)
        free(TAKE(x11->nodes[i].xauthority));
    x11->count = 0;
}
