/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env_het.c - the variables of each component, for the script of a heterogeneous job
 */
#include <stdio.h>

#include "schema/het.h"
#include "spurd/task/env.h"

static void put_component(struct env *env, const struct env_job *job, const Job *part, size_t index)
{
    struct env_job about = { .job_id = part->id,
                             .owner = job->owner,
                             .spec = part->spec,
                             .status = part->status,
                             .allocation = part->status->allocation,
                             .config = job->config };
    struct env own;
    char name[64];

    env_init(&own, env->arena);
    env_fill(&own, &about, ENV_BATCH);
    for (size_t i = 0; i < het_name_count; i++) {
        const char *value = env_get(&own, het_names[i]);
        if (!value)
            continue;
        snprintf(name, sizeof(name), "%s_HET_GROUP_%zu", het_names[i], index);
        env_set(env, name, value);
        snprintf(name, sizeof(name), "%s_PACK_GROUP_%zu", het_names[i], index);
        env_set(env, name, value);
    }
    env_done(&own);
}

void env_fill_het(struct env *env, const struct env_job *job, Job *const *components, size_t count)
{
    char text[24];

    if (count < 2)
        return;
    snprintf(text, sizeof(text), "%zu", count);
    env_set(env, "SLURM_HET_SIZE", text);
    env_set(env, "SLURM_PACK_SIZE", text);
    for (size_t i = 0; i < count; i++) {
        if (components[i]->spec && components[i]->status)
            put_component(env, job, components[i], i);
    }
}
