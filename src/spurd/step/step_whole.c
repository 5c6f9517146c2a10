/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_whole.c - a srun over several components of a heterogeneous job, as its tasks see it
 */
#include "spurd/step/step_whole.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/limits.h"
#include "base/map.h"
#include "spurd/step/step_layout.h"
#include "wire/pb_unpack.h"

/* Our own part of it must be what the manager proved. */
static bool has_here(const StepLayout *whole, uint32_t node, const StepNode *here)
{
    const StepNode *same = node < whole->n_nodes ? whole->nodes[node] : NULL;

    return same && str_eq(same->name, here->name) && same->n_tasks == here->n_tasks &&
           memcmp(same->tasks, here->tasks, here->n_tasks * sizeof(uint32_t)) == 0;
}

static bool is_sound(const StepLayout *whole)
{
    if (!whole->id || whole->n_nodes == 0 || whole->ntasks > STEP_TASKS_MAX)
        return false;
    for (size_t i = 0; i < whole->n_nodes; i++) {
        const StepNode *node = whole->nodes[i];
        if (str_is_empty(node->name) || node->n_tasks == 0)
            return false;
        for (size_t k = 0; k < node->n_tasks; k++) {
            if (node->tasks[k] >= whole->ntasks)
                return false;
        }
    }
    return true;
}

int step_whole(struct step_resources *give, size_t index, struct arena *arena, StepTasks *out,
               struct err *err)
{
    const StepLaunch *launch = give->launch;
    ProtobufCMessage *message;

    give->whole = give->layout;
    give->whole_node = index;
    if (!launch->has_whole)
        return 0;
    if (pb_unpack(&step_layout__descriptor, arena, launch->whole.data, launch->whole.len, &message,
                  err) < 0)
        return -(int)err->code;
    const StepLayout *whole = (const StepLayout *)message;
    if (!is_sound(whole) || !has_here(whole, launch->whole_node, give->here))
        return err_set(err, ERR_BAD_MESSAGE, "the step as a whole makes no sense");
    give->whole = whole;
    give->whole_node = launch->whole_node;
    out->has_whole = out->has_whole_node = true;
    out->whole = launch->whole;
    out->whole_node = launch->whole_node;
    return 0;
}

size_t step_whole_places(const StepLayout *layout, size_t *places)
{
    struct map seen;
    size_t count = 0;

    map_init(&seen);
    for (size_t i = 0; i < layout->n_nodes; i++) {
        const char *name = layout->nodes[i]->name;
        size_t before = (size_t)(uintptr_t)map_get(&seen, name);
        if (!before) {
            before = ++count;
            map_put(&seen, name, (void *)(uintptr_t)before);
        }
        places[i] = before - 1;
    }
    map_done(&seen);
    return count;
}

void step_whole_env(const StepLayout *whole, struct env *env)
{
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 };
    CLEANUP(str_done) struct str names = { 0 }, counts = { 0 };
    CLEANUP(freep) uint32_t *cpus = NEW_ARRAY(uint32_t, whole->n_nodes + 1);
    CLEANUP(freep) size_t *places = NEW_ARRAY(size_t, whole->n_nodes + 1);
    size_t count = step_whole_places(whole, places);
    char text[24];

    for (size_t i = 0, next = 0; i < whole->n_nodes; i++) {
        if (places[i] == next) {
            hostlist_push(&hosts, whole->nodes[i]->name, NULL);
            next++;
        }
        cpus[places[i]] += whole->nodes[i]->cpus;
    }
    hostlist_format(&hosts, &names);
    env_add_counts(&counts, cpus, count);
    snprintf(text, sizeof(text), "%zu", count);
    env_set(env, "SLURM_JOB_NODELIST", str_text(&names));
    env_set(env, "SLURM_NODELIST", str_text(&names));
    env_set(env, "SLURM_JOB_NUM_NODES", text);
    env_set(env, "SLURM_JOB_CPUS_PER_NODE", str_text(&counts));
}
