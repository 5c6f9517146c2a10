/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backoff.c - a job that a node failed, or could not start, starts again, elsewhere, and not at any rate
 *
 * (1) After the first failure it may start at once; after each that follows it waits twice as long as
 *     before, and after too many it is held. One that ran for long counts from the beginning.
 * (2) The nodes that failed it are none of its nodes for a while, if it can run without them: its shape is
 *     that of its spec with these excluded. The spec stays as it was asked for.
 * (3) Whoever releases or changes the job takes it from there.
 */
#include "core/job/jobs.h"

#include "base/hostlist.h"
#include "wire/pb.h"

enum { DEFAULT_MAX_FAILS = 5, AVOID_MOST = 16, FORGET_S = 3600 };

int64_t job_begin_us(const struct job *job)
{
    return job->more ? MAX(job->begin_us, job->more->backoff_us) : job->begin_us;
}

/* (1) */
static int64_t delay_us(const Config *config, unsigned fails)
{
    uint64_t delay = fails > 1 ? config->requeue_delay_s : 0;

    for (unsigned i = 2; i < fails && delay < config->requeue_delay_max_s; i++)
        delay *= 2;
    return (int64_t)MIN(delay, config->requeue_delay_max_s) * US_PER_S;
}

static void add_avoided(struct job_more *more, const char *name)
{
    CLEANUP(hostlist_done) struct hostlist list = { 0 };
    CLEANUP(str_done) struct str text = { 0 };

    if (more->avoid_nodes && hostlist_parse(&list, more->avoid_nodes, NULL) == 0 &&
        hostlist_count(&list) >= AVOID_MOST) {
        hostlist_done(&list);
        list = (struct hostlist){ 0 };
    }
    hostlist_push(&list, name, NULL);
    hostlist_uniq(&list, NULL);
    hostlist_format(&list, &text);
    job_set_text(&more->avoid_nodes, str_text(&text));
}

static bool failed_too_often(const struct state *state, const struct job *job)
{
    const Config *config = state->config;

    return job->more->node_fails >
           (config->has_max_batch_requeue ? config->max_batch_requeue : DEFAULT_MAX_FAILS);
}

bool backoff_count(struct state *state, struct job *job, const char *node)
{
    const Config *config = state->config;
    struct job_more *more = job_more(job);

    if (!config->has_requeue_delay_s)
        return false; /* a configuration from before there was any */
    if (job->run && state->time_us - job->run->start_us > FORGET_S * US_PER_S)
        more->node_fails = 0;
    more->node_fails += more->node_fails < UINT16_MAX;
    int64_t delay = delay_us(config, more->node_fails);
    more->backoff_us = delay ? state->time_us + delay : 0;
    more->avoid_us = state->time_us + (int64_t)config->avoid_failed_node_s * US_PER_S;
    add_avoided(more, node);
    return failed_too_often(state, job);
}

void job_requeue_without(struct state *state, struct job *job, const char *node, struct events *out)
{
    bool enough = backoff_count(state, job, node);

    job_requeue(state, job, JOB_NODE_FAIL, enough ? 2 : 0, 0,
                enough ? REASON_MAX_REQUEUE : REASON_NONE, state->time_us, out);
}

void backoff_share(const struct job *job, struct job *other)
{
    if (!job->more || !job->more->avoid_nodes)
        return;
    job_set_text(&job_more(other)->avoid_nodes, job->more->avoid_nodes);
    other->more->avoid_us = job->more->avoid_us;
}

/* ---- (2) ---- */

void backoff_exclude(const struct job_more *more, JobSpec *spec, struct arena *arena)
{
    CLEANUP(hostlist_done) struct hostlist list = { 0 };
    CLEANUP(str_done) struct str text = { 0 };

    if (!more || !more->avoids)
        return;
    if ((!str_is_empty(spec->exclude) && hostlist_parse(&list, spec->exclude, NULL) < 0) ||
        hostlist_parse(&list, more->avoid_nodes, NULL) < 0)
        return;
    hostlist_uniq(&list, NULL);
    hostlist_format(&list, &text);
    spec->exclude = arena_strdup(arena, str_text(&text));
}

static bool fits_somewhere(const struct state *state, struct shape *shape)
{
    const struct need *needs = shape_needs(state, shape);

    for (size_t i = 0; i < shape->partition_count; i++) {
        if (needs[i].partition && needs[i].fits)
            return true;
    }
    return false;
}

/* Gives it the shape of its spec, with what it avoids excluded or not; false when it must stay. */
static bool reshape(struct state *state, struct job *job)
{
    ProtobufCAllocator allocator = pb_arena(&state->scratch);
    JobSpec *spec = job_spec__unpack(&allocator, job->spec->len, job->spec->data);

    if (!spec)
        return false;
    backoff_exclude(job->more, spec, &state->scratch);
    struct admitted admitted = { .known = shape_find(state, spec, &state->scratch) };
    if (!admitted.known)
        admitted.shape = shape_parse(state, spec, NULL);
    if (admitted.shape)
        shape_needs_without(state, admitted.shape, job->shape);
    struct shape *shape = admitted.known ? admitted.known : admitted.shape;
    bool good = shape && (!job->more->avoids || fits_somewhere(state, shape));
    if (good) {
        job_count(state, job, -1);
        shape = shape_take(state, &admitted);
        shape_retire(state, job->shape);
        job->shape = shape;
        job_count(state, job, 1);
        job_touch(state, job);
    }
    admitted_done(&admitted);
    return good;
}

void backoff_pending(struct state *state, struct job *job)
{
    struct job_more *more = job->more;

    if (!more || !more->avoid_nodes)
        return;
    bool did = more->avoids;
    more->avoids = more->avoid_us > state->time_us;
    if (more->avoids && reshape(state, job))
        return;
    more->avoids = false;
    if (did)
        reshape(state, job);
    job_set_text(&more->avoid_nodes, NULL);
    more->avoid_us = 0;
}

void backoff_forget(struct job *job, bool nodes_too)
{
    struct job_more *more = job->more;

    if (!more)
        return;
    more->backoff_us = 0;
    more->node_fails = 0;
    if (!nodes_too)
        return;
    job_set_text(&more->avoid_nodes, NULL);
    more->avoid_us = 0;
    more->avoids = false;
}

int64_t backoff_due(const struct job *job)
{
    return job->more && job->more->avoids ? job->more->avoid_us : NEVER;
}
