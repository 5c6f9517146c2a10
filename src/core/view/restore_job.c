/* SPDX-License-Identifier: Apache-2.0 */
/*
 * restore_job.c - one job from its snapshot record
 */
#include "core/view/view.h"

#include <stdlib.h>
#include <string.h>

#include "wire/pb.h"

static int damaged(struct err *err, uint32_t id, const char *what)
{
    return err_set(err, ERR_CORRUPT, "snapshot: job %u: %s", id, what);
}

static void take_set(struct bitset *set, const char *text, size_t at_least)
{
    size_t bits = at_least;

    /* The highest number may be above what the node has now. */
    for (const char *at = text; at && *at; at += strcspn(at, "-,"), at += *at ? 1 : 0) {
        uint64_t number = strtoull(at, NULL, 10);
        if (number < LIMIT_CPUS_PER_NODE)
            bits = MAX(bits, (size_t)number + 1);
    }
    bitset_init(set, bits);
    if (!str_is_empty(text))
        bitset_parse(set, text);
}

/* They are in the order of the nodes: *next is the one behind the last that was found. */
static bool is_releasing(const SnapshotJob *msg, const char *node, size_t *next)
{
    bool is = *next < msg->n_releasing && str_eq(msg->releasing[*next], node);

    *next += is;
    return is;
}

static void take_part(struct state *state, const SnapshotJob *msg, const NodeAlloc *alloc,
                      size_t *next, struct job_part *part)
{
    struct node *node = node_at(state, alloc->node);

    part->node = node && is_releasing(msg, alloc->node, next) ? node : NULL;
    part->name = part->node ? node_word(state, node)
                            : words_take(&state->words, alloc->node ? alloc->node : "");
    part->spare = alloc->spare;
    part->left = alloc->left && !alloc->spare;
    part->cpus = alloc->cpus;
    part->tasks = alloc->tasks;
    part->mem_mb = alloc->mem_mb;
    take_set(&part->cpu_ids, alloc->cpu_ids, node ? node->cpu_span : 0);
    part->gres = alloc->n_gres ? NEW_ARRAY(struct part_gres, alloc->n_gres) : NULL;
    part->gres_count = alloc->n_gres;
    for (size_t i = 0; i < alloc->n_gres; i++) {
        const GresAlloc *gres = alloc->gres[i];
        part->gres[i].name = words_take(&state->words, gres->name ? gres->name : "");
        part->gres[i].type = words_take(&state->words, gres->type);
        part->gres[i].count = gres->count;
        if (gres->index)
            take_set(&part->gres[i].index, gres->index, 0);
    }
}

static void take_run(struct state *state, struct job *job, const SnapshotJob *msg)
{
    const JobStatus *status = msg->status;
    const Allocation *allocation = status->allocation;
    struct job_run *run = mem_new(sizeof(*run) + allocation->n_nodes * sizeof(struct job_part));

    run->count = (unsigned)allocation->n_nodes;
    run->start_us = status->start_us;
    run->suspend_us = status->suspend_us;
    run->suspended_total_us = status->suspended_total_us;
    run->partition = words_take(&state->words, allocation->partition ? allocation->partition : "");
    run->reservation = words_take(&state->words, allocation->reservation);
    run->exit_status = status->exit_status;
    run->has_exit = status->has_exit_status;
    run->whole_nodes = msg->whole_nodes;
    run->shared = msg->shared;
    run->skipped_us = msg->skipped_us;
    run->has_billing = msg->has_billing;
    run->billing = msg->billing;
    run->lent = msg->lent;
    run->gang = msg->gang;
    run->prolog = (enum run_site)MIN(msg->site_prolog, SITE_DONE);
    run->epilog = (enum run_site)MIN(msg->site_epilog, SITE_DONE);
    run->boot = (enum run_site)MIN(msg->site_boot, SITE_DONE);
    for (size_t i = 0; i < job->shape->licence_count; i++) {
        if (str_eq(job->shape->licences[i].name, allocation->licenses))
            run->licence = (uint32_t)i;
    }
    job->run = run;
    size_t next = 0;
    for (unsigned i = 0; i < run->count; i++) {
        take_part(state, msg, allocation->nodes[i], &next, &run->parts[i]);
        if (run->parts[i].node)
            alloc_hold(state, job, &run->parts[i]);
    }
    run->parts_hash = run_hash_parts(run);
}

static void take_more(struct job *job, const SnapshotJob *msg)
{
    const JobStatus *status = msg->status;

    if (!status->reason_text && !status->admin_comment && !status->system_comment &&
        !status->failed_node && !status->planned_nodes && !status->preempt_us && !msg->het_count &&
        !msg->preempted_by && !msg->unbound_attempt && !msg->mail_sent && !status->site_factor &&
        !status->avoid_nodes && !status->node_fails && !status->backoff_us)
        return;
    struct job_more *more = job_more(job);
    job_set_text(&more->reason_text, status->reason_text);
    job_set_text(&more->admin_comment, status->admin_comment);
    job_set_text(&more->system_comment, status->system_comment);
    job_set_text(&more->failed_node, status->failed_node);
    job_set_text(&more->planned_nodes, status->planned_nodes);
    job_set_text(&more->avoid_nodes, status->avoid_nodes);
    more->avoid_us = status->avoid_us;
    more->backoff_us = status->backoff_us;
    more->node_fails = (uint16_t)status->node_fails;
    more->avoids = status->avoids && status->avoid_nodes;
    more->preempt_us = status->preempt_us;
    more->site_factor = status->site_factor;
    more->preempt_end_us = msg->preempt_end_us;
    more->preempt_requeue = msg->preempt_requeue;
    more->preempted_by = msg->preempted_by;
    more->unbound_attempt = msg->unbound_attempt;
    more->mail_sent = msg->mail_sent & MAIL_TIMES;
    more->het_job_id = status->het_job_id;
    more->het_offset = status->het_offset;
    more->het_count = msg->het_count;
}

static void take_bits(struct array *array, const uint8_t *bits, size_t len)
{
    if (len != ((size_t)array->count + 3) / 4)
        return;
    for (uint32_t n = 0; n < array->count; n++)
        array_set(array, n, bits[n / 4] >> n % 4 * 2 & 3);
}

/* The array's own record makes the array; its tasks find it there. */
static int take_array(struct state *state, struct job *job, const SnapshotJob *msg,
                      const JobSpec *spec, struct err *err)
{
    const JobStatus *status = msg->status;

    if (!status->has_array_job_id)
        return 0;
    if (msg->has_array_bits) {
        if (str_is_empty(spec->array))
            return damaged(err, job->id, "its array is not there");
        job->array = array_parse(spec->array, LIMIT_ARRAY_TASKS, UINT32_MAX, err);
        if (!job->array)
            return -(int)ERR_CORRUPT;
        job->array->id = job->id;
        job->array->max_running = status->array_max_running;
        job->array->last_start_us = msg->array_last_start_us;
        take_bits(job->array, msg->array_bits.data, msg->array_bits.len);
    } else {
        const struct job *first = job_at(state, status->array_job_id);
        if (!first || !first->array || first->array->id != first->id)
            return damaged(err, job->id, "its array is not there");
        job->array = first->array;
    }
    job->is_task = status->has_array_task_id;
    job->array_task_id = status->array_task_id;
    if (!job->is_task)
        return msg->has_array_bits ? 0 : damaged(err, job->id, "it is no task");
    uint32_t number;
    if (!array_find(job->array, job->array_task_id, &number))
        return damaged(err, job->id, "there is no such task");
    if (job->id != job->array->id && array_record(state, job->array, job->array_task_id))
        return damaged(err, job->id, "its task is there twice");
    return 0;
}

static void count_in_array(struct job *job)
{
    if (!job->array || !job->is_task)
        return;
    switch (job_phase(job)) {
    case PHASE_CONFIGURING:
    case PHASE_RUNNING:
    case PHASE_SUSPENDED:
        job->array->running++;
        break;
    case PHASE_PENDING:
    case PHASE_REQUEUING:
        job->array->unstarted++;
        break;
    default:
        break;
    }
}

static void take_status(struct job *job, const JobStatus *status)
{
    job->state = (uint8_t)status->state;
    job->flags = status->flags;
    job->hold = (uint8_t)status->hold;
    job->reason = (uint16_t)status->reason;
    job->restarts = (uint16_t)status->restarts;
    job->attempt = status->attempt;
    job->priority = status->priority;
    job->time_limit_s = status->time_limit_s;
    job->submit_us = status->submit_us;
    job->eligible_us = status->eligible_us;
    job->accrue_us = status->has_accrue_us ? status->accrue_us : status->eligible_us;
    job->planned_start_us = status->planned_start_us;
    job->end_us = status->end_us;
}

/* What the phase needs to be there is there. */
static bool is_consistent(const struct job *job)
{
    switch (job_phase(job)) {
    case PHASE_CONFIGURING:
    case PHASE_RUNNING:
    case PHASE_SUSPENDED:
    case PHASE_COMPLETING:
    case PHASE_REQUEUING:
        return job->run != NULL;
    default:
        return !job_holds(job);
    }
}

static int fill(struct state *state, struct job *job, const SnapshotJob *msg, const JobSpec *spec,
                struct err *err)
{
    take_status(job, msg->status);
    take_more(job, msg);
    if (msg->payload_digest.len == PAYLOAD_DIGEST_BYTES)
        job->payload = payload_take(state, msg->payload_digest.data);
    if (msg->status->dependency) {
        job->deps = deps_read(msg->status->dependency);
        if (!job->deps)
            return damaged(err, job->id, "its dependency cannot be read");
    }
    int code = take_array(state, job, msg, spec, err);
    if (code == 0 && msg->status->allocation)
        take_run(state, job, msg);
    if (code == 0 && !is_consistent(job))
        code = damaged(err, job->id, "its state and its nodes do not go together");
    return code;
}

static void undo(struct state *state, struct job *job)
{
    for (unsigned i = 0; job->run && i < job->run->count; i++) {
        if (job->run->parts[i].node)
            alloc_give(state, job, &job->run->parts[i]);
    }
    vec_clear(&state->touched);
    if (job->array && job->array->id != job->id)
        job->array = NULL;
    job_free(state, job, NULL);
}

int restore_job(struct state *state, const SnapshotJob *msg, struct err *err)
{
    ProtobufCAllocator allocator = pb_arena(&state->scratch);

    if (!msg->id || !msg->status || job_at(state, msg->id))
        return damaged(err, msg->id, "it is not right");
    JobSpec *spec = job_spec__unpack(&allocator, msg->spec.len, msg->spec.data);
    if (!spec)
        return damaged(err, msg->id, "its spec cannot be read");
    JobSpec shaped = *spec;
    backoff_exclude(&(struct job_more){ .avoid_nodes = msg->status->avoid_nodes,
                                        .avoids = msg->status->avoids && msg->status->avoid_nodes },
                    &shaped, &state->scratch);
    struct admitted admitted = { .known = shape_find(state, &shaped, &state->scratch) };
    if (!admitted.known)
        admitted.shape = shape_parse(state, &shaped, err);
    if (!admitted.known && !admitted.shape)
        return damaged(err, msg->id, "its spec is not right");
    struct job *job = NEW(struct job);
    job->id = msg->id;
    job->owner = owner_take(state, msg->owner);
    job->shape = shape_take(state, &admitted);
    job_take_spec(state, job, spec, packed_new(msg->spec.data, msg->spec.len));
    int code = fill(state, job, msg, spec, err);
    if (code < 0) {
        undo(state, job);
        return code;
    }
    job_bind(state, job);
    job_link(state, job);
    count_in_array(job);
    site_hooks_restored(state, job);
    if (job->run && job->run->lent && job->state == JOB_SUSPENDED)
        suspended_for_add(state, job);
    if (job->run && job->run->gang && job->state == JOB_SUSPENDED)
        gang_add(state, job);
    return 0;
}
