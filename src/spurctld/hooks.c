/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooks.c - programs of the site, run by a worker beside the loop
 *
 * Workers also check credentials, so programs never have more than some of them; the others wait. What must
 * run does not wait behind mail. Programs of one series (the mails about one job or array) run one
 * after another, so that the mail about its beginning is sent before the one about its end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/arena.h"
#include "spurctld/serve.h"
#include "sys/log.h"
#include "sys/spawn.h"

enum { HOOKS_WAITING_MAX = 10000 };

static const unsigned at_once[] = { 2, SERVER_WORKERS - 6 };

struct hook_run {
    struct hook_run *next; /* that waits, or of server_hooks.active */
    uv_work_t work;
    struct server *server;
    struct arena arena;
    char **argv, **env;
    const char *what, *input;
    unsigned timeout_s;
    bool must_run, has_user;
    struct spawn_user user;
    uint32_t job_id, attempt, series;
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
    struct spawn spec = { .path = hook->argv[0],
                          .argv = hook->argv,
                          .env = hook->env,
                          .stop_fd = hook->must_run ? hook->server->hooks_stop : -1 };
    if (hook->has_user && geteuid() == 0)
        spec.user = &hook->user;
    else if (hook->has_user && hook->user.uid != geteuid()) {
        hook->status = -1;
        err_set(&hook->err, ERR_PERMISSION, "only root can run a program of uid %u",
                (unsigned)hook->user.uid);
        return;
    }
    struct span input = { hook->input, strlen(hook->input) };
    struct spawn_result result = { 0 };
    int wait_ms = hook->timeout_s >= CTL_HOOK_NO_LIMIT_S ? -1 : (int)hook->timeout_s * 1000;

    if (spawn_run(&spec, input, wait_ms, NULL, 0, &result, &hook->err) < 0)
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

static bool series_is_active(const struct server_hooks *hooks, uint32_t series)
{
    const struct hook_run *hook = hooks->active;

    while (series && hook && hook->series != series)
        hook = hook->next;
    return series && hook;
}

/* Takes the first that may run out of the queue: not one whose series has a program running. */
static struct hook_run *next_waiting(struct server_hooks *hooks)
{
    struct hook_run **link = &hooks->first, *before = NULL;

    while (*link && series_is_active(hooks, (*link)->series)) {
        before = *link;
        link = &before->next;
    }
    struct hook_run *hook = *link;
    if (!hook)
        return NULL;
    *link = hook->next;
    if (hooks->last == hook)
        hooks->last = before;
    hooks->waiting--;
    return hook;
}

static void start_waiting(struct server *server, bool must_run)
{
    struct server_hooks *hooks = &server->hooks[must_run];
    struct hook_run *hook;

    while ((!server->ctl || hooks->running < at_once[must_run]) && (hook = next_waiting(hooks))) {
        if (!server->ctl) {
            hook_free(hook);
            continue;
        }
        hooks->running++;
        hook->next = hooks->active;
        hooks->active = hook;
        uv_queue_work(server->uv, &hook->work, run, ran);
    }
}

static void leave_active(struct server_hooks *hooks, struct hook_run *hook)
{
    struct hook_run **link = &hooks->active;

    while (*link != hook)
        link = &(*link)->next;
    *link = hook->next;
    hooks->running--;
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
    bool must_run = hook->must_run;
    leave_active(&server->hooks[must_run], hook);
    hook_free(hook);
    start_waiting(server, must_run);
}

void server_hook(void *ctx, const struct ctl_hook *given)
{
    struct server *server = ctx;
    struct server_hooks *hooks = &server->hooks[given->must_run];

    if (hooks->waiting >= HOOKS_WAITING_MAX && !given->must_run) {
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
    hook->must_run = given->must_run;
    if (given->user) {
        gid_t *groups = ARENA_ARRAY(&hook->arena, gid_t, given->user->gid_count + 1);
        for (size_t i = 0; i < given->user->gid_count; i++)
            groups[i] = given->user->gids[i];
        hook->user = (struct spawn_user){ given->user->uid, given->user->gid, groups,
                                          given->user->gid_count };
        hook->has_user = true;
    }
    hook->job_id = given->job_id;
    hook->attempt = given->attempt;
    hook->series = given->series;
    hook->work.data = hook;
    if (hooks->first)
        hooks->last->next = hook;
    else
        hooks->first = hook;
    hooks->last = hook;
    hooks->waiting++;
    start_waiting(server, given->must_run);
}

int server_hooks_open(struct server *server, struct err *err)
{
    server->hooks_stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return server->hooks_stop < 0 ? err_errno(err, errno, "eventfd") : 0;
}

/* Who leads next runs it from its beginning. */
void server_hooks_end(struct server *server)
{
    uint64_t one = 1;

    if (server->hooks_stop > 0 && write(server->hooks_stop, &one, sizeof(one)) < 0)
        log_warn("hook.stop", "errno=%d", errno);
}
