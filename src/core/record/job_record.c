/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_record.c - the parts of a job record: owner, payload, spec, texts, what an attempt has
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/must.h"
#include "core/msg.h"
#include "core/record/record.h"
#include "wire/pb.h"

const struct owner *owner_take(struct state *state, const JobOwner *msg)
{
    static const JobOwner nobody = JOB_OWNER__INIT;
    const JobOwner *from = msg ? msg : &nobody;
    struct span key = pb_pack(from, &state->scratch);
    struct owner_record *record =
        (struct owner_record *)intern_find(&state->owners, key.ptr, key.len);

    if (record) {
        record->head.refs++;
        return &record->owner;
    }
    /* One piece of memory: record, gids, key, names. */
    const char *user = from->user ? from->user : "", *group = from->group ? from->group : "";
    size_t gids = from->n_gids * sizeof(uint32_t), names = strlen(user) + strlen(group) + 2;
    record = mem_new(sizeof(*record) + gids + key.len + names);
    char *tail = (char *)(record + 1);
    if (gids)
        memcpy(tail, from->gids, gids);
    record->owner.gids = (const uint32_t *)(void *)tail;
    memcpy(tail + gids, key.ptr, key.len);
    record->key = (struct span){ tail + gids, key.len };
    char *text = tail + gids + key.len;
    strcpy(text, user);
    strcpy(text + strlen(user) + 1, group);
    record->owner.user = text;
    record->owner.group = text + strlen(user) + 1;
    record->owner.uid = from->uid;
    record->owner.gid = from->gid;
    record->owner.gid_count = from->n_gids;
    intern_put(&state->owners, &record->head);
    return &record->owner;
}

static struct owner_record *owner_record(const struct owner *owner)
{
    return CONTAINER_OF((struct owner *)(uintptr_t)owner, struct owner_record, owner);
}

const struct owner *owner_share(const struct owner *owner)
{
    owner_record(owner)->head.refs++;
    return owner;
}

void owner_drop(struct state *state, const struct owner *owner)
{
    struct owner_record *record = owner_record(owner);

    if (intern_drop(&state->owners, &record->head))
        free(record);
}

const struct payload *payload_take(struct state *state, const uint8_t *digest)
{
    struct payload *payload =
        (struct payload *)intern_find(&state->payloads, digest, PAYLOAD_DIGEST_BYTES);

    if (payload) {
        payload->refs++;
        return payload;
    }
    payload = NEW(struct payload);
    memcpy(payload->digest, digest, PAYLOAD_DIGEST_BYTES);
    intern_put(&state->payloads, (struct interned *)payload);
    return payload;
}

void payload_drop(struct state *state, const struct payload *payload, struct events *out)
{
    struct payload *mine = (struct payload *)(uintptr_t)payload;

    if (!mine || !intern_drop(&state->payloads, (struct interned *)mine))
        return;
    if (out)
        emit(out, EVENT_PAYLOAD_DROPPED)->digest =
            arena_copy(&out->arena, mine->digest, sizeof(mine->digest));
    free(mine);
}

struct packed *packed_new(const void *bytes, size_t len)
{
    struct packed *packed = mem_new(sizeof(*packed) + len);

    packed->refs = 1;
    packed->len = (uint32_t)len;
    if (len)
        memcpy(packed->data, bytes, len);
    return packed;
}

void packed_drop(struct packed *packed)
{
    MUST(!packed || packed->refs > 0);
    if (packed && --packed->refs == 0)
        free(packed);
}

struct job_more *job_more(struct job *job)
{
    if (!job->more)
        job->more = NEW(struct job_more);
    return job->more;
}

void job_set_text(char **text, const char *to)
{
    char *copy = mem_strdup(to);

    free(*text);
    *text = copy;
}

void job_say_why(struct job *job, const char *text)
{
    if (text || job->more)
        job_set_text(&job_more(job)->reason_text, text);
}

void job_more_free(struct job_more *more)
{
    if (!more)
        return;
    free(more->reason_text);
    free(more->admin_comment);
    free(more->system_comment);
    free(more->failed_node);
    free(more->planned_nodes);
    free(more->avoid_nodes);
    free(more);
}

struct job_more *job_more_copy(const struct job_more *more)
{
    if (!more)
        return NULL;
    struct job_more *copy = NEW(struct job_more);
    *copy = *more;
    copy->due_at = 0;
    copy->reason_text = mem_strdup(more->reason_text);
    copy->admin_comment = mem_strdup(more->admin_comment);
    copy->system_comment = mem_strdup(more->system_comment);
    copy->failed_node = mem_strdup(more->failed_node);
    copy->planned_nodes = mem_strdup(more->planned_nodes);
    copy->avoid_nodes = mem_strdup(more->avoid_nodes);
    return copy;
}

void run_free(struct state *state, struct job_run *run)
{
    if (!run)
        return;
    for (unsigned i = 0; i < run->count; i++) {
        struct job_part *part = &run->parts[i];
        for (size_t g = 0; g < part->gres_count; g++) {
            words_drop(&state->words, part->gres[g].name);
            words_drop(&state->words, part->gres[g].type);
            if (!run->pool)
                bitset_done(&part->gres[g].index);
        }
        if (!run->pool) {
            free(part->gres);
            bitset_done(&part->cpu_ids);
        }
        if (!part->node) /* job.h (4) */
            words_drop(&state->words, part->name);
    }
    words_drop(&state->words, run->reservation);
    words_drop(&state->words, run->partition);
    if (run->pool)
        arena_done(run->pool);
    free(run->pool);
    free(run);
}

struct span job_name(const struct job *job)
{
    struct span name = { "", 0 };

    job_spec_field(job, 1, &name);
    return name;
}

bool job_spec_field(const struct job *job, unsigned field, struct span *out)
{
    return pb_field(job->spec->data, job->spec->len, field, out);
}

bool job_has_script(const struct state *state, const struct job *job)
{
    const struct job *first =
        job->more && job->more->het_count ? job_at(state, job->more->het_job_id) : job;

    return first && first->batch;
}

bool job_may_requeue(const struct state *state, const struct job *job)
{
    if (!job_has_script(state, job))
        return false;
    if (job->requeue != JOB_ASKED_NOT)
        return job->requeue == JOB_ASKED_YES;
    return !state->config->has_job_requeue || state->config->job_requeue;
}

bool job_is_bound(const struct state *state, const struct job *job)
{
    return job_may_requeue(state, job) &&
           !(job->more && job->more->unbound_attempt == job->attempt);
}

void job_unbind(struct state *state, struct job *job)
{
    job_more(job)->unbound_attempt = job->attempt;
    job_touch(state, job);
}

int64_t job_end_by(const struct job *job, int64_t start_us)
{
    if (job->time_limit_s < 0)
        return NEVER;
    return start_us + job->time_limit_s * US_PER_S;
}

void job_format_id(const struct job *job, struct str *out)
{
    if (!job->array) {
        str_add_u64(out, job->id);
    } else if (job->is_task) {
        str_addf(out, "%u_%u", job->array->id, job->array_task_id);
    } else {
        str_addf(out, "%u_[", job->array->id);
        array_format(job->array, out);
        str_add_char(out, ']');
    }
}

void job_owner_msg(const struct owner *owner, JobOwner *out)
{
    job_owner__init(out);
    out->has_uid = out->has_gid = true;
    out->uid = owner->uid;
    out->gid = owner->gid;
    if (*owner->user)
        out->user = (char *)(uintptr_t)owner->user;
    if (*owner->group)
        out->group = (char *)(uintptr_t)owner->group;
    out->n_gids = owner->gid_count;
    out->gids = (uint32_t *)(uintptr_t)owner->gids;
}
