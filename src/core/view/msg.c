/* SPDX-License-Identifier: Apache-2.0 */
/*
 * msg.c - records as messages
 *
 * job_status_msg() is what a snapshot holds: facts only. job_pack() and job_msg() show the job to
 * people, so the reason is worked out and a held job has priority 0.
 */
#include "core/msg.h"

#include <string.h>

#include "base/hostlist.h"
#include "core/preempt.h"
#include "core/view/msg_fields.h"
#include "core/view/view.h"
#include "wire/pb.h"
#include "wire/pb_add.h"

#define SET_TIME(field, value)           \
    do {                                 \
        out->has_##field = (value) != 0; \
        out->field = (value);            \
    } while (0)

static char *borrowed(const char *text)
{
    return (char *)(uintptr_t)text;
}

static char *set_text(const struct bitset *set, struct arena *arena)
{
    struct str text = { 0 };

    bitset_format(set, &text);
    char *copy = arena_strdup(arena, str_text(&text));
    str_done(&text);
    return copy;
}

/* `like`, of the part before, mostly has the same CPUs: they are written once. */
static void fill_node(const struct job *job, size_t index, const NodeAlloc *like,
                      struct arena *arena, NodeAlloc *out)
{
    const struct job_part *part = &job->run->parts[index];

    node_alloc__init(out);
    out->node = borrowed(part->name);
    SET(cpus, part->cpus);
    SET(tasks, part->tasks);
    SET(mem_mb, part->mem_mb);
    if (part->left || part->spare)
        SET(left, true);
    if (part->spare)
        SET(spare, true);
    bool same = like && part[-1].cpu_ids.bits == part->cpu_ids.bits &&
                bitset_eq(&part[-1].cpu_ids, &part->cpu_ids);
    out->cpu_ids = same ? like->cpu_ids : set_text(&part->cpu_ids, arena);
    out->n_gres = part->gres_count;
    out->gres = ARENA_ARRAY(arena, GresAlloc *, part->gres_count);
    for (size_t i = 0; i < part->gres_count; i++) {
        GresAlloc *gres = out->gres[i] = ARENA_NEW(arena, GresAlloc);
        gres_alloc__init(gres);
        gres->name = borrowed(part->gres[i].name);
        gres->type = borrowed(part->gres[i].type);
        gres->has_count = true;
        gres->count = part->gres[i].count;
        if (part->gres[i].index.words)
            gres->index = set_text(&part->gres[i].index, arena);
    }
}

void alloc_node_msg(const struct job *job, size_t index, struct arena *arena, NodeAlloc *out)
{
    fill_node(job, index, NULL, arena, out);
}

static void fill_alloc(const struct job *job, bool left_too, struct arena *arena, Allocation *out)
{
    allocation__init(out);
    out->partition = borrowed(job->run->partition);
    out->reservation = borrowed(job->run->reservation);
    if (job->shape->licence_any)
        out->licenses = borrowed(job->shape->licences[job->run->licence].name);
    out->nodes = ARENA_ARRAY(arena, NodeAlloc *, job->run->count);
    const NodeAlloc *before = NULL; /* of the part before this one */
    for (unsigned i = 0; i < job->run->count; i++) {
        NodeAlloc *node = NULL;
        if (left_too || (!job->run->parts[i].left && !job->run->parts[i].spare)) {
            node = out->nodes[out->n_nodes++] = ARENA_NEW(arena, NodeAlloc);
            fill_node(job, i, before, arena, node);
        }
        before = node;
    }
}

void alloc_msg(const struct job *job, struct arena *arena, Allocation *out)
{
    fill_alloc(job, false, arena, out);
}

void alloc_all_msg(const struct job *job, struct arena *arena, Allocation *out)
{
    fill_alloc(job, true, arena, out);
}

static void more_msg(const struct job_more *more, JobStatus *out)
{
    out->reason_text = more->reason_text;
    out->admin_comment = more->admin_comment;
    out->system_comment = more->system_comment;
    out->failed_node = more->failed_node;
    out->planned_nodes = more->planned_nodes;
    out->avoid_nodes = more->avoid_nodes;
    SET_TIME(avoid_us, more->avoid_us);
    SET_TIME(backoff_us, more->backoff_us);
    if (more->node_fails)
        SET(node_fails, more->node_fails);
    if (more->avoids)
        SET(avoids, true);
    SET_TIME(preempt_us, more->preempt_us);
    if (more->site_factor)
        SET(site_factor, more->site_factor);
    if (more->het_job_id) {
        SET(het_job_id, more->het_job_id);
        SET(het_offset, more->het_offset);
    }
}

/* NULL when there are none. */
static char *spare_names(const struct job_run *run, struct arena *arena)
{
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 };
    struct str text = { 0 };

    for (unsigned i = 0; i < run->count; i++) {
        if (run->parts[i].spare)
            hostlist_push(&hosts, run->parts[i].name, NULL);
    }
    if (!hostlist_count(&hosts))
        return NULL;
    hostlist_format(&hosts, &text);
    char *copy = arena_strdup(arena, str_text(&text));
    str_done(&text);
    return copy;
}

static void run_msg(const struct job *job, struct arena *arena, JobStatus *out)
{
    const struct job_run *run = job->run;

    SET(start_us, run->start_us);
    SET_TIME(suspend_us, run->suspend_us);
    SET_TIME(suspended_total_us, run->suspended_total_us);
    if (run->has_exit)
        SET(exit_status, run->exit_status);
    out->allocation = ARENA_NEW(arena, Allocation);
    alloc_msg(job, arena, out->allocation);
    out->spare_names = spare_names(run, arena);
    out->partition = borrowed(run->partition);
}

/* With `tasks` the ids of those that wait, which takes time for each of them. */
static void array_msg(const struct job *job, bool tasks, struct arena *arena, JobStatus *out)
{
    SET(array_job_id, job->array->id);
    SET(array_max_running, job->array->max_running);
    if (job->is_task) {
        SET(array_task_id, job->array_task_id);
        return;
    }
    if (!tasks)
        return;
    struct str text = { 0 };
    array_format(job->array, &text);
    out->array_tasks = arena_strdup(arena, str_text(&text));
    str_done(&text);
}

static void status_msg(const struct job *job, bool tasks, struct arena *arena, JobStatus *out)
{
    job_status__init(out);
    SET(state, job->state);
    SET(flags, job->flags);
    SET(reason, job->reason);
    SET(priority, job->priority);
    SET(hold, job->hold);
    SET(submit_us, job->submit_us);
    SET_TIME(eligible_us, job->eligible_us);
    if (job->accrue_us != job->eligible_us) /* 0 too */
        SET(accrue_us, job->accrue_us);
    SET_TIME(end_us, job->end_us);
    SET_TIME(planned_start_us, job->planned_start_us);
    SET(attempt, job->attempt);
    SET(restarts, job->restarts);
    SET(time_limit_s, job->time_limit_s);
    out->qos = borrowed(job->qos);
    out->account = borrowed(job->account);
    out->partition = borrowed(job->shape->partitions[0]);
    if (job->run)
        run_msg(job, arena, out);
    if (job->array)
        array_msg(job, tasks, arena, out);
    if (job->more)
        more_msg(job->more, out);
    if (job->deps) {
        struct str text = { 0 };
        deps_format(job->deps, &text);
        out->dependency = arena_strdup(arena, str_text(&text));
        str_done(&text);
    }
}

void job_status_msg(const struct state *state, const struct job *job, struct arena *arena,
                    JobStatus *out)
{
    status_msg(job, true, arena, out);
}

/* What people see beyond the facts. */

static void shown_msg(const struct state *state, const struct job *job, bool tasks,
                      struct arena *arena, JobStatus *out)
{
    status_msg(job, tasks, arena, out);
    SET(reason, core_job_reason(state, job));
    if (!priority_is_basic(state))
        out->priority = job_priority(state, job);
    if (job->hold && job->state == JOB_PENDING)
        out->priority = 0;
    if (!job->eligible_us && job->state == JOB_PENDING && !job->hold && job_begin_us(job))
        SET(eligible_us, job_begin_us(job));
    int64_t accrue_us = job_accrues_us(state, job);
    SET_TIME(accrue_us, accrue_us);
    if (job->run)
        SET(last_sched_us, job->run->start_us);
    if (job->run && !job->end_us && job->time_limit_s >= 0)
        SET(end_us, job_end_by(job, job->run->start_us + job->run->suspended_total_us));
    if (!job->run && job->shape->partition_count > 1) {
        struct span all;
        if (job_spec_field(job, 3, &all))
            out->partition = arena_strndup(arena, all.ptr, all.len);
    }
    if (job->more && job->more->het_count) {
        struct str ids = { 0 };
        str_addf(&ids, "%u-%u", job->more->het_job_id,
                 job->more->het_job_id + job->more->het_count - 1);
        out->het_ids = arena_strdup(arena, str_text(&ids));
        str_done(&ids);
    }
    if (job->run && !job_has_ended(job) && preempt_is_on(state))
        SET(preemptable_us, preempt_from_us(state, job));
    job_tres_msg(state, job, arena, out);
}

Job *job_msg(const struct state *state, const struct job *job, struct arena *arena)
{
    ProtobufCAllocator allocator = pb_arena(arena);
    Job *out = ARENA_NEW(arena, Job);

    job__init(out);
    SET(id, job->id);
    out->owner = ARENA_NEW(arena, JobOwner);
    job_owner_msg(job->owner, out->owner);
    out->status = ARENA_NEW(arena, JobStatus);
    shown_msg(state, job, true, arena, out->status);
    out->spec = job_spec__unpack(&allocator, job->spec->len, job->spec->data);
    return out;
}

static void pack_into(struct str *out, const void *message)
{
    size_t len = protobuf_c_message_get_packed_size(message);

    str_reserve(out, len + 1);
    protobuf_c_message_pack(message, (uint8_t *)out->data + out->len);
    out->len += len;
    out->data[out->len] = '\0';
}

enum { FIELD_JOB_SPEC = 3, FIELD_SPEC_NAME = 1, FIELD_SPEC_PARTITION = 3 };

void job_words_msg(const struct job *job, const struct job_words *words, JobStatus *out)
{
    if (job->state == JOB_PENDING && !out->reason) {
        SET(reason, words->reason);
        if (words->reason_text)
            out->reason_text = borrowed(words->reason_text);
    }
    if (job->state == JOB_PENDING && words->planned_start_us) {
        SET(planned_start_us, words->planned_start_us);
        if (!str_is_empty(words->planned_nodes))
            out->planned_nodes = borrowed(words->planned_nodes);
    }
    if (words->looked_us)
        SET(last_sched_us, words->looked_us);
    if (words->as_task) {
        SET(array_task_id, words->task);
        out->array_tasks = NULL;
    }
}

static void pack_brief_spec(const struct job *job, struct str *out)
{
    struct str brief = { 0 };
    struct span field;

    if (job_spec_field(job, FIELD_SPEC_NAME, &field))
        pb_add_bytes(&brief, FIELD_SPEC_NAME, field.ptr, field.len);
    if (job_spec_field(job, FIELD_SPEC_PARTITION, &field))
        pb_add_bytes(&brief, FIELD_SPEC_PARTITION, field.ptr, field.len);
    pb_add_bytes(out, FIELD_JOB_SPEC, str_text(&brief), brief.len);
    str_done(&brief);
}

static PriorityParts *priority_msg(const struct state *state, const struct job *job,
                                   const struct partition *partition, struct arena *arena)
{
    PriorityParts *out = ARENA_NEW(arena, PriorityParts);
    struct priority priority;
    size_t count;
    const struct tres *tres = state_tres(state, &count);

    priority_parts__init(out);
    if (partition) {
        job_priority_in(state, job, partition, &priority);
        out->partition_name = borrowed(partition->spec->name);
    } else {
        job_priority_of(state, job, &priority);
    }
    SET(total, priority.total);
    SET(age_factor, priority.factor[PRIO_AGE]);
    SET(assoc_factor, priority.factor[PRIO_ASSOC]);
    SET(fairshare_factor, priority.factor[PRIO_FAIRSHARE]);
    SET(size_factor, priority.factor[PRIO_JOB_SIZE]);
    SET(partition_factor, priority.factor[PRIO_PARTITION]);
    SET(qos_factor, priority.factor[PRIO_QOS]);
    SET(age, priority.part[PRIO_AGE]);
    SET(assoc, priority.part[PRIO_ASSOC]);
    SET(fairshare, priority.part[PRIO_FAIRSHARE]);
    SET(size, priority.part[PRIO_JOB_SIZE]);
    SET(partition, priority.part[PRIO_PARTITION]);
    SET(qos, priority.part[PRIO_QOS]);
    SET(site, priority.part[PRIO_SITE]);
    SET(nice, priority.nice);
    out->tres = ARENA_ARRAY(arena, PriorityTres *, count);
    for (size_t k = 0; k < count; k++) {
        if (!priority.tres_part[k])
            continue;
        PriorityTres *one = out->tres[out->n_tres++] = ARENA_NEW(arena, PriorityTres);
        priority_tres__init(one);
        one->tres = borrowed(tres[k].name);
        one->has_factor = one->has_part = true;
        one->factor = priority.tres_factor[k];
        one->part = priority.tres_part[k];
    }
    return out;
}

/* One for each partition, in the order of the request, where there are several. */
static void add_priorities(const struct state *state, const struct job *job, struct arena *arena,
                           JobStatus *out)
{
    const struct shape *shape = job->shape;

    out->priority_parts = priority_msg(state, job, NULL, arena);
    if (shape->partition_count < 2)
        return;
    out->partition_priorities = ARENA_ARRAY(arena, PriorityParts *, shape->partition_count);
    for (size_t i = 0; i < shape->partition_count; i++) {
        const struct partition *partition = state_partition(state, shape->partitions[i]);
        if (partition)
            out->partition_priorities[out->n_partition_priorities++] =
                priority_msg(state, job, partition, arena);
    }
}

void job_pack(const struct state *state, const struct job *job, enum job_parts parts,
              const struct job_words *words, struct str *out)
{
    struct arena arena;
    Job msg = JOB__INIT;
    JobOwner owner;
    JobStatus status;

    arena_init(&arena);
    msg.has_id = true;
    msg.id = job->id;
    job_owner_msg(job->owner, &owner);
    if (parts != JOB_PACK_FULL)
        owner.n_gids = 0;
    msg.owner = &owner;
    shown_msg(state, job, !words || !words->as_task, &arena, &status);
    if (words)
        job_words_msg(job, words, &status);
    if (parts == JOB_PACK_PRIORITY && job_is_eligible(job))
        add_priorities(state, job, &arena, &status);
    msg.status = &status;
    pack_into(out, &msg);
    if (parts == JOB_PACK_FULL)
        pb_add_bytes(out, FIELD_JOB_SPEC, job->spec->data, job->spec->len);
    else
        pack_brief_spec(job, out);
    arena_done(&arena);
}
