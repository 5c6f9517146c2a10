/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plug.h - what joins in when a step of srun begins and ends: process managers, bindings, containers
 *
 * One row in plug.c for each. A hook that is NULL has nothing to do. begin() runs once, before any task;
 * task() runs before each task starts and may add to its environment, which is the arena's.
 */
#ifndef SPURSTEPD_PLUG_H
#define SPURSTEPD_PLUG_H

#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"
#include "proto/step.pb-c.h"

struct tasks;

/* A task that is about to start. */
struct plug_task {
    size_t index;    /* on this node */
    uint32_t number; /* in the step */
    VEC(char *) env; /* NAME=value, before the step's own */
    VEC(int) keep;   /* descriptors that stay open in it */
};

struct plug {
    const char *name;
    bool (*wanted)(const StepTask *task);
    int (*begin)(struct tasks *tasks, struct err *err);
    int (*task)(struct tasks *tasks, struct plug_task *one, struct arena *arena, struct err *err);
    void (*end)(struct tasks *tasks);
};

int plugs_begin(struct tasks *tasks, struct err *err);
int plugs_task(struct tasks *tasks, struct plug_task *one, struct arena *arena, struct err *err);
void plugs_end(struct tasks *tasks);

#endif
