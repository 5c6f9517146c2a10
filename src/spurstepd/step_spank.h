/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_spank.h - where SPANK plugins join in a step
 *
 * spurstepd is static and loads nothing. A step on a node with plugins runs in spurstepd-spank, which is made of the same
 * sources and sets `step_spank` to what calls the plugins (spank_step.c); here it is NULL.
 *
 *     begin        in the supervisor, root: init, options, init_post_opt; as the user: user_init
 *     privileged   in the task's own process, root: task_init_privileged
 *     post_fork    in the supervisor, root, when all tasks have their process: task_post_fork
 *     user         in the task's own process, as the user, before its program: task_init
 *     exited       in the supervisor, root: task_exit
 *     end          in the supervisor, root: exit
 */
#ifndef SPURSTEPD_STEP_SPANK_H
#define SPURSTEPD_STEP_SPANK_H

#include <sys/types.h>

#include "base/err.h"
#include "proto/step.pb-c.h"

/* What a task is about to execute; the functions may put other lists there. */
struct step_spank_task {
    size_t index; /* on this node */
    char **argv, **env;
    int say_fd; /* where its errors go */
    bool argv_changed;
};

struct step_spank {
    /* `say` takes a line for the user. Changes the environment of `task`. */
    int (*begin)(StepTask *task, void (*say)(void *owner, const char *text), void *owner,
                 struct err *err);
    bool (*privileged)(struct step_spank_task *task);
    int (*post_fork)(size_t index, pid_t pid, struct err *err);
    bool (*user)(struct step_spank_task *task);
    void (*exited)(size_t index, int status);
    void (*end)(void);
};
extern const struct step_spank *step_spank;

/*
 * Becomes spurstepd-spank, with the same step and its lock. Returns only when that fails: an errno value.
 */
int step_spank_become(const StepTask *task, int dir_fd, int chan_fd);

/* The strings of env_block become the task's environment; they stay where they are. */
void step_split_env(StepTask *task);

/* A row of step_plugins.c. */
struct tasks;
bool step_spank_wanted(const StepTask *task);
int step_spank_begin(struct tasks *tasks, struct err *err);
void step_spank_exited(struct tasks *tasks, size_t index);
void step_spank_end(struct tasks *tasks);

#endif
