/* SPDX-License-Identifier: Apache-2.0 */
/*
 * submit.c - new jobs
 */
#include "core/command/command.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "wire/pb.h"

/* Basic priority: first come, first served; nice moves a job among its neighbours. */
uint32_t job_first_priority(const JobSpec *spec, uint32_t id)
{
    const int64_t top = 4294901760;
    int64_t priority = spec->priority ? spec->priority : top - (int64_t)id - spec->nice;

    return (uint32_t)MIN(MAX(priority, 1), top);
}

/* A job that named no partition, account or QOS keeps the default it was given. */
static struct packed *packed_spec(struct state *state, const PackedComponent *from, JobSpec *spec,
                                  const struct admitted *admitted)
{
    if (!str_is_empty(spec->partition) && str_eq(spec->account, admitted->account) &&
        str_eq(spec->qos, admitted->qos))
        return packed_new(from->spec.data, from->spec.len);
    const struct partition *partition = state_default_partition(state);
    if (str_is_empty(spec->partition))
        spec->partition = arena_strdup(&state->scratch, partition ? partition->spec->name : NULL);
    spec->account = arena_strdup(&state->scratch, admitted->account);
    spec->qos = arena_strdup(&state->scratch, admitted->qos);
    struct span bytes = pb_pack(spec, &state->scratch);
    return packed_new(bytes.ptr, bytes.len);
}

static struct job *new_job(struct state *state, const JobOwner *owner, const PackedComponent *from,
                           JobSpec *spec, struct admitted *admitted)
{
    struct job *job = NEW(struct job);
    struct packed *packed = packed_spec(state, from, spec, admitted);

    job->id = state->next_job_id++;
    job->state = JOB_PENDING;
    job->owner = owner_take(state, owner);
    job_take_spec(state, job, spec, packed);
    job->shape = shape_take(state, admitted);
    job->array = TAKE(admitted->array);
    job->deps = TAKE(admitted->deps);
    if (job->array)
        job->array->id = job->id;
    if (from->payload_digest.len == PAYLOAD_DIGEST_BYTES)
        job->payload = payload_take(state, from->payload_digest.data);
    job->submit_us = state->time_us;
    job->time_limit_s = admitted->time_limit_s;
    job->priority = job_first_priority(spec, job->id);
    job->hold = spec->hold || (spec->has_priority && spec->priority == 0);
    job->reason = job->hold ? REASON_HELD_USER : REASON_NONE;
    job_bind(state, job);
    return job;
}

static int read_components(struct state *state, const CmdSubmit *cmd, JobSpec **specs,
                           struct admitted *admitted, struct err *err)
{
    ProtobufCAllocator allocator = pb_arena(&state->scratch);

    for (size_t i = 0; i < cmd->n_components; i++) {
        const PackedComponent *from = cmd->components[i];
        specs[i] = job_spec__unpack(&allocator, from->spec.len, from->spec.data);
        if (!specs[i])
            return err_code(err, ERR_BAD_MESSAGE);
        if (specs[i]->batch && from->payload_digest.len != PAYLOAD_DIGEST_BYTES)
            return err_code(err, ERR_NO_SCRIPT);
        int code = admit(state, cmd->owner, specs[i], NULL, state->time_us, &admitted[i], err);
        if (code < 0)
            return code;
    }
    return 0;
}

static int room_for(const struct state *state, const struct admitted *admitted, size_t count,
                    struct err *err)
{
    size_t more = 0;

    for (size_t i = 0; i < count; i++)
        more += admitted[i].array ? admitted[i].array->count : 1;
    uint32_t most =
        state->config->max_job_count ? state->config->max_job_count : LIMIT_JOBS_DEFAULT;
    if (state_counts(state).jobs + more > most || state->next_job_id + more > LIMIT_JOB_ID)
        return err_set(err, ERR_MAX_JOB_COUNT, "Maximum job count reached (%u)", most);
    return 0;
}

/* Asked before the command is made, not when it is applied: what was accepted once stays so. */
static int beside_each_other(const struct state *state, const struct admitted *admitted,
                             size_t count, struct err *err)
{
    struct shape **shapes = NEW_ARRAY(struct shape *, count);

    for (size_t i = 0; i < count; i++)
        shapes[i] = admitted[i].known ? admitted[i].known : admitted[i].shape;
    int code = het_could_fit(state, shapes, count, err);
    free(shapes);
    return code;
}

int core_admit_submit(const struct state *state, const JobOwner *owner,
                      const JobSpec *const *components, size_t count, int64_t now_us,
                      struct err *err)
{
    struct admitted *admitted = NEW_ARRAY(struct admitted, count + 1);
    int code = count == 0 || count > LIMIT_HET_COMPONENTS ? err_code(err, ERR_INVALID) : 0;

    for (size_t i = 0; i < count && code == 0; i++) {
        if (components[i]->has_max_nodes && components[i]->max_nodes == 0)
            code = err_code(err, ERR_NODE_COUNT); /* -N 0 */
        else
            code = admit(state, owner, components[i], NULL, now_us, &admitted[i], err);
        if (code == 0 && admitted[i].array && count > 1)
            code = err_set(err, ERR_ARRAY, "A heterogeneous job cannot be an array");
    }
    if (code == 0)
        code = room_for(state, admitted, count, err);
    if (code == 0 && count > 1)
        code = beside_each_other(state, admitted, count, err);
    for (size_t i = 0; i < count && count <= LIMIT_HET_COMPONENTS; i++)
        admitted_done(&admitted[i]);
    free(admitted);
    return code;
}

static void enter(struct state *state, struct job *job, const JobSpec *spec, struct events *out)
{
    job_link(state, job);
    emit_job(out, EVENT_JOB_SUBMITTED, job);
    if (job->deps)
        deps_review(state, job, out);
    else
        job_refresh(state, job, out);
    deps_ask_twins(state, job);
    if (job->beside)
        no_allocate_start(state, job, spec, out);
}

enum err_code apply_submit(struct state *state, const CmdSubmit *cmd, uint32_t *job_id,
                           struct err *err, struct events *out)
{
    size_t count = cmd->n_components;
    if (count == 0 || count > LIMIT_HET_COMPONENTS)
        return ERR_INVALID;
    JobSpec **specs = ARENA_ARRAY(&state->scratch, JobSpec *, count);
    struct admitted *admitted = ARENA_ARRAY(&state->scratch, struct admitted, count);
    int code = read_components(state, cmd, specs, admitted, err);

    for (size_t i = 0; i < count && code == 0; i++) {
        if (admitted[i].array && count > 1)
            code = err_set(err, ERR_ARRAY, "A heterogeneous job cannot be an array");
    }
    if (code == 0)
        code = room_for(state, admitted, count, err);
    if (code == 0)
        *job_id = state->next_job_id;
    for (size_t i = 0; i < count && code == 0; i++) {
        struct job *job = new_job(state, cmd->owner, cmd->components[i], specs[i], &admitted[i]);
        if (count > 1) {
            job_more(job)->het_job_id = *job_id;
            job_more(job)->het_offset = (uint32_t)i;
            job_more(job)->het_count = (uint32_t)count;
        }
        enter(state, job, specs[i], out);
    }
    for (size_t i = 0; i < count; i++)
        admitted_done(&admitted[i]);
    return (enum err_code) - code;
}
