/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.c - why a job waits, in words with numbers
 */
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/timefmt.h"
#include "core/core.h"
#include "sched/explain/explain.h"
#include "schema/reasons.h"

/* Is one of its partitions waiting for this job before all others? */
static bool is_first(const struct sched *sched, const struct family *family, uint32_t job_id)
{
    for (uint32_t i = 0; i < family->partition_queue_count; i++) {
        if (family->partition_queues[i] >= sched->queue->partition_queues.len)
            continue;
        const struct heap_item *top =
            heap_top(&sched->queue->partition_queues.items[family->partition_queues[i]].heap);
        if (!top || top->key.id == job_id)
            return true;
    }
    return false;
}

/* The family of what it waits for; of a het job that of its first component. */
static struct family *family_of(const struct sched *sched, const struct job *job,
                                const struct pending **out)
{
    const struct pending *pending = pending_find(sched, job->id);

    if (!pending && job->more && job->more->het_job_id) {
        const struct job *first = state_job(sched->state, job->more->het_job_id);
        pending = first ? pending_find(sched, first->id) : NULL;
    }
    *out = pending;
    if (!pending || !pending->class)
        return NULL;
    struct family *family = class_of(sched, pending)->family;
    const struct position *position;
    explain_count(sched, family);
    for (unsigned i = 0; family->missing && (position = position_at(sched, pending, job->id, i));
         i++) {
        family = sched->queue->classes.items[position->class - 1]
                     ->family; /* elsewhere there may be enough */
        explain_count(sched, family);
    }
    return family;
}

static bool waits_for_reservation(const struct sched *sched, const struct shape *shape)
{
    const struct reservation *resv =
        shape->reservation ? state_reservation(sched->state, shape->reservation) : NULL;

    return shape->reservation && (!resv || !resv->active);
}

unsigned sched_reason(const struct sched *sched, const struct job *job)
{
    const struct pending *pending;
    struct family *family = family_of(sched, job, &pending);
    unsigned other = het_reason(sched, job);

    if (other)
        return other;
    if (waits_for_reservation(sched, job->shape))
        return REASON_RESERVATION;
    if (!family)
        return REASON_RESOURCES;
    if (family->missing)
        return REASON_NODE_NOT_AVAIL;
    /* Of "a or b": a limit keeps it from those that are free. */
    if (licences_lacking(sched, family->shape) ||
        (family->shape->licence_any && pending->place == PENDING_LIMITED))
        return REASON_LICENSES;
    uint32_t first = job->more && job->more->het_job_id ? job->more->het_job_id : job->id;
    return pending->booked || is_first(sched, family, first) ? REASON_RESOURCES : REASON_PRIORITY;
}

const char *sched_reason_text(const struct sched *sched, const struct job *job)
{
    const struct pending *pending;
    const struct family *family =
        waits_for_reservation(sched, job->shape) ? NULL : family_of(sched, job, &pending);

    return family ? family->missing : NULL;
}

int64_t sched_planned_start(const struct sched *sched, const struct job *job)
{
    job = het_first(sched, job);
    const struct pending *pending = pending_find(sched, job->id);
    const struct booking *booking = pending && pending->booked ? booking_of(sched, job->id) : NULL;
    const struct forecast *forecast = pending && !booking ? forecast_of(sched, job->id) : NULL;
    const struct preempt_hold *hold = pending ? preempt_hold_of(sched, job->id) : NULL;

    if (hold)
        return preempt_hold_start_us(sched, hold);
    return booking ? booking->start_us : forecast ? MAX(forecast->start_us, sched->now_us) : 0;
}

static void add_amounts(struct str *out, const struct shape *shape)
{
    static const char *const of[] = { [GRES_PER_NODE] = " on each node",
                                      [GRES_PER_TASK] = " for each task",
                                      [GRES_PER_SOCKET] = " on each socket",
                                      [GRES_PER_JOB] = "" };

    str_addf(out, "%llu CPU%s", (unsigned long long)shape_cpus(shape),
             shape_cpus(shape) == 1 ? "" : "s");
    for (size_t i = 0; i < shape->gres_count; i++)
        str_addf(out, ", %llu %s%s%s%s", (unsigned long long)shape->gres[i].count,
                 shape->gres[i].name, shape->gres[i].type ? ":" : "",
                 shape->gres[i].type ? shape->gres[i].type : "", of[shape->gres[i].scope]);
    if (shape->has_mem_per_node && shape->mem_per_node_mb)
        str_addf(out, ", %llu MB on each node", (unsigned long long)shape->mem_per_node_mb);
    else if (shape->mem_per_cpu_mb)
        str_addf(out, ", %llu MB for each CPU", (unsigned long long)shape->mem_per_cpu_mb);
    else if (shape->mem_per_gpu_mb)
        str_addf(out, ", %llu MB for each GPU", (unsigned long long)shape->mem_per_gpu_mb);
    else if (shape->mem_per_task_mb)
        str_addf(out, ", %llu MB for each task", (unsigned long long)shape->mem_per_task_mb);
    str_addf(out, " on %u node%s", shape->min_nodes, shape->min_nodes == 1 ? "" : "s");
}

/* What is free of what the job could use. */
static void add_free(const struct sched *sched, struct family *family, struct str *out)
{
    unsigned long long cpus = 0, free_cpus = 0, devices = 0, free_devices = 0;
    const char *name = family->shape->gres_count ? family->shape->gres[0].name : NULL;
    struct bitset hosts;

    explain_hosts(sched, family, &hosts);
    bitset_each (n, &hosts) {
        const struct host *host = &sched->hosts->list.items[n];
        if (!host->usable)
            continue;
        struct room_at room;
        explain_room(sched, family->shape, host, &room);
        cpus += host->node->cpus;
        free_cpus += room.cpus;
        for (size_t g = 0; g < host->node->gres_count && g < TAKE_GRES; g++) {
            if (!name || !str_eq(host->node->gres[g].name, name))
                continue;
            devices += host->node->gres[g].total;
            free_devices += room.gres[g];
        }
    }
    bitset_done(&hosts);
    str_addf(out, "of %u node%s that could run it %u %s usable, with %llu of %llu CPUs",
             family->could, family->could == 1 ? "" : "s", family->usable,
             family->usable == 1 ? "is" : "are", free_cpus, cpus);
    if (name)
        str_addf(out, " and %llu of %llu %s", free_devices, devices, name);
    str_add(out, " free");
}

static void add_licences(const struct sched *sched, const struct shape *shape, struct str *out)
{
    for (size_t i = 0; i < shape->licence_count; i++) {
        const struct licence *have = state_licence(sched->state, shape->licences[i].name);
        if (have)
            str_addf(out, "; %u of licence %s, of which %u of %u %s free", shape->licences[i].count,
                     shape->licences[i].name, have->total - MIN(have->used, have->total),
                     have->total, have->total == 1 ? "is" : "are");
    }
}

const char *explain_node_list(const struct sched *sched, const struct parts *parts,
                              struct arena *arena)
{
    CLEANUP(hostlist_done) struct hostlist list = { 0 };
    struct str text = { 0 };

    for (size_t i = 0; i < parts->list.len; i++)
        hostlist_push(&list, sched->hosts->list.items[parts->list.items[i].host].node->spec->name,
                      NULL);
    hostlist_uniq(&list, NULL); /* components may share some */
    hostlist_format(&list, &text);
    const char *out = arena_strdup(arena, str_text(&text));
    str_done(&text);
    return out;
}

/* Which of its components it is. */
static uint32_t offset_of(const struct job *job)
{
    return job->more && job->more->het_count ? job->more->het_offset : 0;
}

void sched_planned_nodes(const struct sched *sched, const struct job *job, struct str *out)
{
    uint32_t offset = offset_of(job);

    job = het_first(sched, job);
    const struct pending *pending = pending_find(sched, job->id);
    const struct booking *booking = pending && pending->booked ? booking_of(sched, job->id) : NULL;
    const struct forecast *forecast = pending && !booking ? forecast_of(sched, job->id) : NULL;
    const struct preempt_hold *hold = pending ? preempt_hold_of(sched, job->id) : NULL;

    if (hold)
        preempt_hold_names(sched, hold, offset, out);
    else if (booking && offset < booking->count)
        parts_names(sched, &booking->of[offset].parts, out);
    else if (forecast && offset < forecast->count)
        str_add(out, forecast->hosts[offset]);
}

int64_t sched_looked_us(const struct sched *sched)
{
    return sched->now_us;
}

bool sched_has_bookings(const struct sched *sched)
{
    return sched->book->list.len > 0;
}

/* No nodes that are configured have room for all components at once. */
bool explain_never_together(const struct sched *sched, const struct job *const *jobs,
                            uint32_t count)
{
    struct shape **shapes = NEW_ARRAY(struct shape *, count);

    for (uint32_t i = 0; i < count; i++)
        shapes[i] = jobs[i]->shape;
    bool never = het_could_fit(sched->state, shapes, count, NULL) < 0;
    free(shapes);
    return never;
}

static bool never_beside(const struct sched *sched, const struct job *first)
{
    uint32_t count = het_count(first), found = 0;
    const struct job **jobs = NEW_ARRAY(const struct job *, count);

    while (found < count && (jobs[found] = state_job(sched->state, first->id + found)))
        found++;
    bool never = count > 1 && found == count && explain_never_together(sched, jobs, count);
    free(jobs);
    return never;
}

void explain_from(struct sched *sched, const struct job *job, int64_t from_us, int64_t now_us,
                  struct arena *arena, struct explanation *out)
{
    const struct job *first = het_first(sched, job);
    struct view view = { .now_us = now_us, .start_us = from_us, .forecast = true };
    struct booked *of;

    if (out->never || from_us == INT64_MAX)
        return;
    struct family *family = family_for(sched, first);
    int64_t start = start_of(sched, family, first, &view, &of, NULL);
    if (start != INT64_MAX) {
        out->planned_start_us = start;
        out->planned_nodes = explain_node_list(sched, &of[offset_of(job)].parts, arena);
    }
    booked_free(sched, of, het_count(first));
    family_free(family);
}

/* *late_id: the component that the others wait for; *later: the start is not known yet. */
static void explain_start(struct sched *sched, const struct job *job, int64_t now_us,
                          struct arena *arena, struct explanation *out, uint32_t *late_id,
                          bool *later)
{
    const struct job *first = het_first(sched, job);
    const struct booking *booking = first->id ? booking_of(sched, first->id) : NULL;
    const struct forecast *forecast = first->id ? forecast_of(sched, first->id) : NULL;
    struct str names = { 0 };

    if (booking || forecast || (first->id && preempt_hold_of(sched, first->id))) {
        out->planned_start_us = MAX(sched_planned_start(sched, job), now_us);
        sched_planned_nodes(sched, job, &names);
        out->planned_nodes = arena_strdup(arena, str_text(&names));
        str_done(&names);
    } else if (!first->id) {
        if (!out->never)
            explain_from(sched, first, now_us, now_us, arena, out);
    } else if (!out->never && (forecast = answer_for(sched, first, now_us))) {
        bool never = forecast->start_us == INT64_MAX;
        out->planned_start_us = never ? 0 : MAX(forecast->start_us, now_us);
        out->planned_nodes = never ? NULL : arena_strdup(arena, forecast->hosts[offset_of(job)]);
        out->never = never && never_beside(sched, first);
    } else {
        *later = !out->never;
    }
    *late_id = booking ? booking->late_id : forecast ? forecast->late_id : 0;
}

/* Which of its components it waits for. */
static void add_het(const struct sched *sched, const struct job *job, uint32_t late_id,
                    struct str *out)
{
    const struct job *late = late_id ? state_job(sched->state, late_id) : NULL;

    if (!job->more || !job->more->het_count)
        return;
    str_addf(out, "starts together with the other components of job %u", job->more->het_job_id);
    if (late && late->more)
        str_addf(out, "; %u+%u has to wait", late->more->het_job_id, late->more->het_offset);
}

static void add_hold(const struct sched *sched, const struct job *job, struct str *out)
{
    const struct preempt_hold *hold =
        job->id ? preempt_hold_of(sched, het_first(sched, job)->id) : NULL;

    if (!hold)
        return;
    str_add(out, "it starts when these have made room for it: job");
    for (size_t i = 0; i < hold->count; i++)
        str_addf(out, "%s %u", i ? "," : hold->count > 1 ? "s" : "", hold->victims[i].id);
}

static void add_avoided(const struct job *job, int64_t now_us, struct str *out)
{
    const struct job_more *more = job->more;

    if (!more || !more->avoids || more->avoid_us <= now_us)
        return;
    str_addf(out, "does without %s, which failed it, for ", more->avoid_nodes);
    timefmt_write_duration(out, (more->avoid_us - now_us) / 1000000, TIMEFMT_SHORT);
}

static void add_preempted(const struct job *job, struct str *out)
{
    if (job->more && job->more->preempt_us)
        str_addf(out, "it was preempted for job %u and is requeued (restart %u)",
                 job->more->preempted_by, job->restarts);
}

static void add_limit(const struct job *job, struct str *out)
{
    str_addf(out, "partition %s, time limit ", job->shape->partitions[0]);
    timefmt_write_duration(out, job->time_limit_s < 0 ? -1 : job->time_limit_s, TIMEFMT_SHORT);
}

void explain_waiting(struct sched *sched, const struct job *job, int64_t now_us,
                     struct arena *arena, struct explanation *out)
{
    struct str text = { 0 };
    struct family *family = family_for(sched, job);
    uint32_t late_id = 0;
    bool later = false;

    sched_forecast(sched, now_us);
    explain_count(sched, family);
    out->never = family->could == 0;
    out->unusable = family->missing != NULL;
    out->jobs_ahead = explain_ahead(sched, family, job, &text);
    explain_add(out, arena, &text);
    explain_start(sched, job, now_us, arena, out, &late_id, &later);
    explain_nodes(sched, family, job, &text);
    explain_add(out, arena, &text);
    explain_kept(sched, family, now_us, &text);
    explain_add(out, arena, &text);
    explain_ends(sched, family, now_us, &text);
    explain_add(out, arena, &text);
    add_limit(job, &text);
    explain_add(out, arena, &text);
    explain_array(job, &text);
    explain_add(out, arena, &text);
    bool switches = explain_switches(sched, job, now_us, &text);
    explain_add(out, arena, &text);
    if (!out->planned_start_us && !out->never && job->id && !switches &&
        !core_job_reason(sched->state, job))
        str_add(&text, later ? "the start is being worked out: ask again in a moment"
                       : family->missing
                           ? "the start cannot be foreseen: nodes it needs are not usable"
                           : "the start cannot be foreseen: jobs before it have no "
                             "time limit, or it is too far away");
    explain_add(out, arena, &text);
    add_het(sched, job, late_id, &text);
    explain_add(out, arena, &text);
    add_hold(sched, job, &text);
    explain_add(out, arena, &text);
    add_preempted(job, &text);
    explain_add(out, arena, &text);
    add_avoided(job, now_us, &text);
    explain_add(out, arena, &text);
    explain_age(sched, job, &text);
    explain_add(out, arena, &text);
    str_add(&text, "needs ");
    add_amounts(&text, job->shape);
    str_add(&text, "; ");
    if (out->never)
        str_add(&text, family->could ? "its components find no room beside each other, even on "
                                       "empty nodes"
                                     : "no configured node could ever run it");
    else
        add_free(sched, family, &text);
    add_licences(sched, job->shape, &text);
    if (out->jobs_ahead)
        str_addf(&text, "; %u job%s ahead of it", out->jobs_ahead,
                 out->jobs_ahead == 1 ? " is" : "s are");
    out->sentence = arena_strdup(arena, str_text(&text));
    family_free(family);
    str_done(&text);
}

/* The job, or the first of its components, that may not start yet; NULL: all may. */
static const struct job *barred_component(const struct sched *sched, const struct job *job)
{
    const struct job *first = het_first(sched, job);
    uint32_t count = het_count(first);

    if (!job_is_eligible(job))
        return job;
    for (uint32_t i = 0; i < count; i++) {
        const struct job *other = state_job(sched->state, first->id + i);
        if (other && other->state == JOB_PENDING && !job_is_eligible(other))
            return other;
    }
    return NULL;
}

void sched_explain(struct sched *sched, const struct job *job, int64_t now_us, struct arena *arena,
                   struct explanation *out)
{
    *out = (struct explanation){ 0 };
    rebuild_all(sched);
    unsigned reason = core_job_reason(sched->state, job);
    const struct job *barred = barred_component(sched, job);

    if (job->state != JOB_PENDING) {
        out->sentence = ""; /* what became of it says the job itself */
        explain_gone(job, arena, out);
        return;
    }
    if (barred) {
        explain_not_eligible(sched, barred, core_job_reason(sched->state, barred), now_us, arena,
                             out);
        return;
    }
    explain_waiting(sched, job, now_us, arena, out);
    if (explain_limit(sched, job, now_us, arena, out))
        return;
    if (reason == REASON_ARRAY_TASK_LIMIT)
        explain_throttle(sched, job, now_us, arena, out);
    else if (waits_for_reservation(sched, job->shape))
        explain_reservation(sched, job, now_us, arena, out);
    else if (reason)
        explain_partitions(sched, job, arena, out);
}
