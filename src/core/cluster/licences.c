/* SPDX-License-Identifier: Apache-2.0 */
/*
 * licences.c - licences of the cluster, and which a job has
 */
#include "core/cluster/cluster.h"
#include "core/resv.h"

const struct licence *state_licence(const struct state *state, const char *name)
{
    vec_each (struct licence, licence, &state->licences) {
        if (str_eq(licence->name, name))
            return licence;
    }
    return NULL;
}

const struct licence *state_licence_at(const struct state *state, size_t number)
{
    return &state->licences.items[number];
}

size_t state_licence_count(const struct state *state)
{
    return state->licences.len;
}

void licences_count(struct state *state, const struct job *job, int sign)
{
    const struct shape *shape = job->shape;

    for (size_t i = 0; i < shape->licence_count; i++) {
        struct licence *licence =
            (struct licence *)(uintptr_t)state_licence(state, shape->licences[i].name);
        if (!licence || (shape->licence_any && i != job->run->licence))
            continue;
        licence->used = sign > 0 ? licence->used + shape->licences[i].count
                                 : licence->used - MIN(licence->used, shape->licences[i].count);
    }
}
