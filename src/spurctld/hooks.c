/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooks.c - programs of the site, run by a worker beside the loop
 *
 * Workers also check credentials, so programs never have more than some of them; the others wait.
 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "spurctld/serve.h"
#include "sys/log.h"
#include "sys/spawn.h"

enum { HOOKS_AT_ONCE = 2, HOOKS_WAITING_MAX = 10000 };

struct hook_run {
    struct hook_run *next; /* that waits */
    uv_work_t work;
    struct server *server;
    struct arena arena;
    char **argv, **env;
    const char *what, *input;
    unsigned timeout_s;
    uint32_t job_id, attempt;
    int status;
    struct err err;
};

static char **copy_list(struct arena *arena, char *const *list)
{
    size_t count = 0;

    while (list && list[count])
        count++;
    char **out = ARENA_ARRAY(arena, char *, count + 1);
    for (size_t i = 0; i < count; i++)
        out[i] = arena_strdup(arena, list[i]);
    return out;
}

static void run(uv_work_t *work)
{
    struct hook_run *hook = work->data;
    struct spawn spec = { .path = hook->argv[0], .argv = hook->argv, .env = hook->env };
    struct span input = { hook->input, strlen(hook->input) };
    struct spawn_result result = { 0 };

    if (spawn_run(&spec, input, (int)hook->timeout_s * 1000, NULL, 0, &result, &hook->err) < 0)
        hook->status = -1;
    else
        hook->status = result.timed_out ? -1 : result.status;
}

static void hook_free(struct hook_run *hook)
{
    arena_done(&hook->arena);
    free(hook);
}

static void ran(uv_work_t *work, int cancelled);

static void start_waiting(struct server *server)
{
    struct server_hooks *hooks = &server->hooks;

    while (hooks->first && (!server->ctl || hooks->running < HOOKS_AT_ONCE)) {
        struct hook_run *hook = hooks->first;
        hooks->first = hook->next;
        hooks->waiting--;
        if (!server->ctl) {
            hook_free(hook);
            continue;
        }
        hooks->running++;
        uv_queue_work(server->uv, &hook->work, run, ran);
    }
}

static void ran(uv_work_t *work, int cancelled)
{
    struct hook_run *hook = work->data;
    struct server *server = hook->server;

    if (!cancelled && hook->server->ctl) {
        if (hook->err.code)
            log_warn("hook.start", "what=%s text=%s", hook->what, hook->err.text);
        ctl_hook_done(hook->server->ctl, hook->what, hook->job_id, hook->attempt, hook->status);
    }
    hook_free(hook);
    server->hooks.running--;
    start_waiting(server);
}

void server_hook(void *ctx, const struct ctl_hook *given)
{
    struct server *server = ctx;
    struct server_hooks *hooks = &server->hooks;

    if (hooks->waiting >= HOOKS_WAITING_MAX) {
        log_warn("hook.dropped", "what=%s job=%u ignored: too many wait", given->what,
                 given->job_id);
        return;
    }
    struct hook_run *hook = NEW(struct hook_run);
    arena_init(&hook->arena);
    hook->server = server;
    hook->argv = copy_list(&hook->arena, given->argv);
    hook->env = copy_list(&hook->arena, given->env);
    hook->what = arena_strdup(&hook->arena, given->what);
    hook->input = arena_strdup(&hook->arena, given->input ? given->input : "");
    hook->timeout_s = given->timeout_s;
    hook->job_id = given->job_id;
    hook->attempt = given->attempt;
    hook->work.data = hook;
    if (hooks->first)
        hooks->last->next = hook;
    else
        hooks->first = hook;
    hooks->last = hook;
    hooks->waiting++;
    start_waiting(server);
}
