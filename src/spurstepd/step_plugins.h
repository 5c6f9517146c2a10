/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_plugins.h - what joins in when a step of srun begins and ends: process managers, bindings, containers
 *
 * One row in step_plugins.c for each. A hook that is NULL has nothing to do. begin() runs once, before any task;
 * task() runs before each task starts and may add to its environment, which is the arena's.
 */
#ifndef SPURSTEPD_STEP_PLUGINS_H
#define SPURSTEPD_STEP_PLUGINS_H

#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"
#include "proto/step.pb-c.h"

struct tasks;

/* A task that is about to start. */
struct step_plugin_task {
    size_t index;    /* on this node */
    uint32_t number; /* in the step */
    VEC(char *) env; /* NAME=value, before the step's own */
    VEC(int) keep;   /* descriptors that stay open in it, and are closed here when it has started */
};

struct step_plugin {
    const char *name;
    bool (*wanted)(const StepTask *task);
    int (*begin)(struct tasks *tasks, struct err *err);
    int (*task)(struct tasks *tasks, struct step_plugin_task *one, struct arena *arena,
                struct err *err);
    /* Another node's supervisor said something (relay.h). */
    void (*relay)(struct tasks *tasks, uint32_t from, const uint8_t *bytes, size_t len);
    void (*exited)(struct tasks *tasks, size_t index);
    void (*stop)(struct tasks *tasks); /* every task has ended */
    void (*end)(struct tasks *tasks);
};

/* Adds which task it is, and what it alone was given. */
void step_plugin_numbers(struct tasks *tasks, struct step_plugin_task *one, struct arena *arena);

int step_plugins_begin(struct tasks *tasks, struct err *err);
int step_plugins_task(struct tasks *tasks, struct step_plugin_task *one, struct arena *arena,
                      struct err *err);
void step_plugins_relay(struct tasks *tasks, uint32_t from, const uint8_t *bytes, size_t len);
void step_plugins_exited(struct tasks *tasks, size_t index); /* that task has ended */
void step_plugins_stop(struct tasks *tasks);
void step_plugins_end(struct tasks *tasks);

#endif
