/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_plugins.c - what joins in when a step of srun begins and ends, one row each
 */
#include "spurstepd/step_plugins.h"

#include <stdio.h>

#include "spurstepd/freq.h"
#include "spurstepd/gpu_freq.h"
#include "spurstepd/mem_sort.h"
#include "spurstepd/pmi.h"
#include "spurstepd/pmix.h"
#include "spurstepd/relay.h"
#include "spurstepd/step_spank.h"
#include "spurstepd/tasks_priv.h"

/* Which task it is: every program under srun knows it by these. */
void step_plugin_numbers(struct tasks *tasks, struct step_plugin_task *one, struct arena *arena)
{
    vec_push(&one->env, arena_printf(arena, "SLURM_PROCID=%u", one->number));
    vec_push(&one->env, arena_printf(arena, "SLURM_LOCALID=%zu", one->index));
    const StepTaskOne *asked = tasks->task->tasks->list[one->index];
    for (size_t i = 0; i < asked->n_env; i++)
        vec_push(&one->env, asked->env[i]);
}

static int numbers_task(struct tasks *tasks, struct step_plugin_task *one, struct arena *arena,
                        struct err *err)
{
    (void)err;
    step_plugin_numbers(tasks, one, arena);
    return 0;
}

static const struct step_plugin plugs[] = {
    { .name = "numbers", .task = numbers_task },
    { .name = "spank",
      .wanted = step_spank_wanted,
      .begin = step_spank_begin,
      .exited = step_spank_exited,
      .end = step_spank_end },
    { .name = "freq", .wanted = freq_wanted, .begin = freq_begin, .end = freq_end },
    { .name = "gpu-freq", .wanted = gpu_freq_wanted, .begin = gpu_freq_begin, .end = gpu_freq_end },
    { .name = "sort", .wanted = mem_sort_wanted, .begin = mem_sort_begin },
    { .name = "relay", .wanted = relay_wanted, .begin = relay_begin, .end = relay_end },
    { .name = "pmi2",
      .wanted = pmi_wanted,
      .begin = pmi_begin,
      .task = pmi_task,
      .relay = pmi_relay,
      .exited = pmi_exited,
      .end = pmi_end },
    { .name = "pmix",
      .wanted = pmix_wanted,
      .begin = pmix_begin,
      .task = pmix_task,
      .relay = pmix_relay,
      .exited = pmix_exited,
      .stop = pmix_stop,
      .end = pmix_end },
};

static bool wanted(const struct step_plugin *plug, const struct tasks *tasks)
{
    return !plug->wanted || plug->wanted(tasks->task);
}

int step_plugins_begin(struct tasks *tasks, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(plugs); i++) {
        if (plugs[i].begin && wanted(&plugs[i], tasks) && plugs[i].begin(tasks, err) < 0)
            return err_wrap(err, "%s", plugs[i].name);
    }
    return 0;
}

int step_plugins_task(struct tasks *tasks, struct step_plugin_task *one, struct arena *arena,
                      struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(plugs); i++) {
        if (plugs[i].task && wanted(&plugs[i], tasks) && plugs[i].task(tasks, one, arena, err) < 0)
            return err_wrap(err, "%s", plugs[i].name);
    }
    return 0;
}

void step_plugins_relay(struct tasks *tasks, uint32_t from, const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(plugs); i++) {
        if (plugs[i].relay && wanted(&plugs[i], tasks))
            plugs[i].relay(tasks, from, bytes, len);
    }
}

void step_plugins_exited(struct tasks *tasks, size_t index)
{
    for (size_t i = 0; i < ARRAY_LEN(plugs); i++) {
        if (plugs[i].exited && wanted(&plugs[i], tasks))
            plugs[i].exited(tasks, index);
    }
}

void step_plugins_stop(struct tasks *tasks)
{
    for (size_t i = ARRAY_LEN(plugs); i-- > 0;) {
        if (plugs[i].stop && wanted(&plugs[i], tasks))
            plugs[i].stop(tasks);
    }
}

void step_plugins_end(struct tasks *tasks)
{
    for (size_t i = ARRAY_LEN(plugs); i-- > 0;) {
        if (plugs[i].end && wanted(&plugs[i], tasks))
            plugs[i].end(tasks);
    }
}
