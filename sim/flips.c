/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flips.c - memory of a controller's state that changes by itself
 *
 * Each row changes what nobody decides by, so that only the comparison can find it.
 */
#include "sim/flips.h"

#include "core/record/record.h"

static const char *flip_head(struct state *state, struct rand *rand)
{
    (void)rand;
    state->journal_acked ^= 1 << 20;
    return "head";
}

static const char *flip_digest(struct state *state, struct rand *rand)
{
    state->digest ^= UINT64_C(1) << rand_below(rand, 64);
    return "digest";
}

static struct job *some_job(struct state *state, struct rand *rand)
{
    uint64_t from = rand_below(rand, state_head(state).next_job_id);

    return (struct job *)(uintptr_t)state_job_from(state, from);
}

static const char *flip_job(struct state *state, struct rand *rand)
{
    struct job *job = some_job(state, rand);

    if (!job)
        return NULL;
    job->submit_us ^= 1;
    return "job";
}

static const char *flip_written_job(struct state *state, struct rand *rand)
{
    struct job *job = some_job(state, rand);

    if (!job)
        return NULL;
    job->submit_us ^= 1;
    job_touch(state, job); /* as a command would in the next moment */
    return "job that is written";
}

static const char *flip_node(struct state *state, struct rand *rand)
{
    if (!state->nodes.len)
        return NULL;
    state->nodes.items[rand_below(rand, state->nodes.len)]->reason_us ^= 1 << 30;
    return "node";
}

static const char *flip_config(struct state *state, struct rand *rand)
{
    (void)rand;
    state->config->kill_wait_s ^= 1 << 20;
    return "configuration";
}

static const char *(*const flips[])(struct state *state, struct rand *rand) = {
    flip_head, flip_digest, flip_job, flip_written_job, flip_node, flip_config,
};

const char *flip_something(struct state *state, struct rand *rand)
{
    return flips[rand_below(rand, ARRAY_LEN(flips))](state, rand);
}
