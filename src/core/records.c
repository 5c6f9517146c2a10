/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records.c - the life of records: made, found, shared, forgotten
 */
#include "core/state_priv.h"

#include <stdlib.h>
#include <string.h>

#include "core/pb.h"

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

static void payload_drop(struct state *state, const struct payload *payload, struct events *out)
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

static void more_free(struct job_more *more)
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

static struct job_more *more_copy(const struct job_more *more)
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

JobSpec *job_spec_unpack(const struct job *job)
{
    return job_spec__unpack(NULL, job->spec->len, job->spec->data);
}

static uint8_t asked(bool has, bool value)
{
    return !has ? JOB_ASKED_NOT : value ? JOB_ASKED_YES : JOB_ASKED_NO;
}

void job_take_spec(struct state *state, struct job *job, const JobSpec *spec, struct packed *packed)
{
    const char *account = words_take(&state->words, spec->account);
    const char *qos = words_take(&state->words, spec->qos);

    words_drop(&state->words, job->account);
    words_drop(&state->words, job->qos);
    packed_drop(job->spec);
    job->account = account;
    job->qos = qos;
    job->spec = packed;
    job->batch = spec->batch;
    job->no_kill = spec->no_kill;
    job->beside = spec->no_allocate;
    job->requeue = asked(spec->has_requeue, spec->requeue) & 3;
    job->kill_on_invalid_dep = asked(spec->has_kill_on_invalid_dep, spec->kill_on_invalid_dep) & 3;
    job->nice = spec->nice;
    job->direct_priority = spec->has_priority && spec->priority > 0;
    job->begin_us = spec->begin_us;
    if (spec->deadline_us || job->more)
        job_more(job)->deadline_us = spec->deadline_us;
    if (spec->time_min_s || job->more)
        job_more(job)->time_min_s = (uint32_t)spec->time_min_s;
    if (spec->mail_type & MAIL_TIMES || job->more)
        job_more(job)->mail_times = spec->mail_type & MAIL_TIMES;
}

static size_t weight(const struct job *job)
{
    return job_is_meta(job) ? job->array->waiting : 1;
}

void job_count(struct state *state, const struct job *job, int sign)
{
    size_t *count = &state->by_phase[job_phase(job)];

    *count = sign > 0 ? *count + weight(job) : *count - weight(job);
    if (job->shape->reservation && job_phase(job) == PHASE_PENDING) {
        if (sign > 0)
            map_put_num(&state->resv_jobs, job->id, state);
        else
            map_del_num(&state->resv_jobs, job->id);
    }
    limits_count(state, job, sign, weight(job));
}

void job_link(struct state *state, struct job *job)
{
    index_put(&state->jobs, job);
    state->records++;
    if (job->array && job->id != job->array->id)
        array_index_put(job->array, job);
    if (!job_has_ended(job))
        job_name_link(state, job);
    if (job->deps)
        deps_register(state, job);
    job_count(state, job, 1);
    accrue_wait(state, job);
    timers_update(state, job);
    job_touch(state, job);
}

void job_free(struct state *state, struct job *job, struct events *out)
{
    if (job->array && job->id == job->array->id)
        array_free(job->array);
    payload_drop(state, job->payload, out);
    billing_group_drop(state, job->billing_group);
    owner_drop(state, job->owner);
    shape_drop(state, job->shape);
    words_drop(&state->words, job->account);
    words_drop(&state->words, job->qos);
    packed_drop(job->spec);
    run_free(state, job->run);
    deps_free(job->deps);
    more_free(job->more);
    free(job);
}

void job_forget(struct state *state, struct job *job, struct events *out)
{
    uint32_t id = job->id;
    struct array *array = job->array && job->array->id != id ? job->array : NULL;

    changes_forgot(&state->changes, id, state->index);
    job_count(state, job, -1);
    timers_remove(state, job);
    if (!job_has_ended(job))
        job_name_unlink(state, job);
    if (job->deps)
        deps_unregister(state, job);
    if (job->touched) {
        for (size_t i = 0; i < state->touched.len; i++) {
            if (state->touched.items[i] == job) {
                vec_remove(&state->touched, i);
                break;
            }
        }
    }
    state->digest -= job->hash;
    if (array)
        array_index_del(array, job);
    index_del(&state->jobs, id);
    state->records--;
    job_free(state, job, out);
    emit(out, EVENT_JOB_FORGOTTEN)->job_id = id;
    /* The record with the array's id outlives the others; perhaps it was waiting for this. */
    if (array && array->records == 0) {
        struct job *first = job_at(state, array->id);
        if (first)
            timers_update(state, first);
    }
}

/* A task's record begins as a copy of what the array's record says. */
static struct job *task_from(struct state *state, const struct job *meta, uint32_t number)
{
    struct job *task = NEW(struct job);

    *task = *meta;
    task->id = state->next_job_id++;
    task->is_task = true;
    task->array_task_id = array_task_id(meta->array, number);
    task->touched = false;
    task->name_next = task->name_prev = task->due_at = 0;
    task->hash = 0;
    task->planned_start_us = 0;
    owner_share(task->owner);
    billing_group_record(task->billing_group)->head.refs++;
    task->shape->head.refs++;
    task->spec->refs++;
    if (task->payload)
        ((struct payload *)(uintptr_t)task->payload)->refs++;
    task->account = words_take(&state->words, meta->account);
    task->qos = words_take(&state->words, meta->qos);
    task->deps = deps_copy(meta->deps);
    task->more = more_copy(meta->more);
    task->timer_kind = TIMER_FIXED;
    return task;
}

struct job *array_split(struct state *state, struct job *meta, uint32_t number, struct events *out)
{
    struct array *array = meta->array;
    struct job *task = meta;

    job_count(state, meta, -1);
    bool last = array->waiting == 1;
    array_set(array, number, TASK_ACTIVE);
    array->unstarted++;
    if (last) {
        meta->is_task = true;
        meta->array_task_id = array_task_id(array, number);
    }
    job_count(state, meta, 1);
    job_touch(state, meta);
    if (!last) {
        task = task_from(state, meta, number);
        job_link(state, task);
        deps_follow(state, task, meta);
    }
    struct event *event = emit_job(out, EVENT_TASK_SPLIT, task);
    event->array_id = array->id;
    event->task = task->array_task_id;
    return task;
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
