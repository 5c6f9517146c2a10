/* SPDX-License-Identifier: Apache-2.0 */
/*
 * licences.c - licences of the cluster, and which a job has
 */
#include "core/resv.h"
#include "core/state_priv.h"

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

static bool is_free(const struct state *state, const struct shape_licence *want, const char *resv)
{
    const struct licence *licence = state_licence(state, want->name);
    uint64_t gone =
        licence ? (uint64_t)licence->used + resv_licences_kept(state, resv, want->name) : 0;

    return licence && want->count + gone <= licence->total;
}

bool licences_choose(const struct state *state, const struct shape *shape,
                     const Allocation *allocation, uint32_t *choice)
{
    const char *named = allocation->licenses;

    *choice = 0;
    for (size_t i = 0; i < shape->licence_count; i++) {
        bool good = is_free(state, &shape->licences[i], allocation->reservation);
        if (!shape->licence_any && !good)
            return false;
        if (shape->licence_any && good &&
            (str_is_empty(named) || str_eq(named, shape->licences[i].name))) {
            *choice = (uint32_t)i;
            return true;
        }
    }
    return !shape->licence_any;
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
