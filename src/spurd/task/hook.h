/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hook.h - programs of the site that run as the agent: prolog, epilog, reboot, health check
 *
 * `path` may be a pattern (/etc/spur/prolog.d/?*), whose files run one after the other in order of
 * their names; the first that fails ends it. Each gets a session of its own, which is killed when
 * its time is over and when it ends.
 */
#ifndef SPURD_HOOK_H
#define SPURD_HOOK_H

#include <uv.h>

#include "base/err.h"

struct hook;

/* status as waitpid gives it, of the one that failed or of the last; err is set when not 0. */
typedef void (*hook_done_fn)(void *ctx, int status, const struct err *err);

/*
 * `path` may be NULL when hook_first() follows. Takes `env` (env_copy()) and `ctx`, which is freed with the hook. timeout_s 0: none. `done` comes
 * later, never from in here.
 */
struct hook *hook_start(uv_loop_t *uv, const char *path, char **env, unsigned timeout_s,
                        hook_done_fn done, void *ctx);
/* Before it starts, which is later: it runs in this cgroup. Takes the descriptor; -1 is none. */
void hook_in_cgroup(struct hook *hook, int fd);
/* Before it starts: these words run first, before the programs that `path` names. Takes them. */
void hook_first(struct hook *hook, char **words);
/* Kills what runs; `done` is called with ERR_CANCELLED. */
void hook_cancel(struct hook *hook);
/* Kills what runs and says nothing. */
void hook_abandon(struct hook *hook);

#endif
