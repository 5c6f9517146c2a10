/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_rules.c - what has nothing to do with free resources: limits, partitions, holds, times
 */
#include "base/timefmt.h"
#include "core/core.h"
#include "sched/explain/explain.h"
#include "schema/reasons.h"

/* Lines of an explanation; bounded, and each only when it says something. */
enum { DETAILS_MOST = 12 };

void explain_add(struct explanation *out, struct arena *arena, struct str *text)
{
    if (!out->details)
        out->details = ARENA_ARRAY(arena, const char *, DETAILS_MOST);
    if (text->len && out->detail_count < DETAILS_MOST)
        ((const char **)out->details)[out->detail_count++] = arena_strdup(arena, str_text(text));
    str_clear(text);
}

void explain_array(const struct job *job, struct str *out)
{
    const struct array *array = job->array;

    if (!array)
        return;
    str_addf(out, "array %u: %u task%s, %u waiting, %u running, %u ended", array->id, array->count,
             array->count == 1 ? "" : "s",
             array->count - array->ok - array->failed - array->running, array->running,
             array->ok + array->failed);
    if (array->max_running)
        str_addf(out, ", no more than %u at once", array->max_running);
}

static void no_start(struct explanation *out)
{
    out->planned_start_us = 0;
    out->planned_nodes = NULL;
}

/* A limit is in the way: which, how much, whose. */
bool explain_limit(struct sched *sched, const struct job *job, int64_t now_us, struct arena *arena,
                   struct explanation *out)
{
    struct limit_hit hit;
    struct str text = { 0 };
    int64_t from_us = INT64_MAX;

    if (limits_allow_any(sched->state, job, NULL, &hit))
        return false;
    limit_hit_text(&hit, &text);
    out->sentence = arena_printf(arena, "%s: %s", reason_word(hit.reason), str_text(&text));
    out->never = out->never || (!hit.holder && hit.limit);
    no_start(out);
    str_clear(&text);
    explain_holders(sched, &hit, &text);
    explain_add(out, arena, &text);
    if (!out->never)
        from_us = foresee_limit(sched, job, &hit, now_us, &text);
    explain_add(out, arena, &text);
    explain_from(sched, job, from_us, now_us, arena, out);
    str_done(&text);
    return true;
}

void explain_age(const struct sched *sched, const struct job *job, struct str *out)
{
    struct limit_hit hit;

    if (!job->id || !state_accrue_limit(sched->state, job, &hit))
        return;
    str_add(out, "its age does not count yet: ");
    limit_hit_text(&hit, out);
}

static void add_memory_limit(const struct shape *shape, const PartitionSpec *part, const char *name,
                             struct str *out)
{
    bool by_cpu = part->max_mem_per_cpu_mb && shape->mem_per_cpu_mb > part->max_mem_per_cpu_mb;

    str_addf(out, "it asks for %llu MB %s; partition %s allows %llu MB at most",
             (unsigned long long)(by_cpu ? shape->mem_per_cpu_mb : shape->mem_per_node_mb),
             by_cpu ? "for each CPU" : "on each node", name,
             (unsigned long long)(by_cpu ? part->max_mem_per_cpu_mb : part->max_mem_per_node_mb));
}

/* What one partition has against the job; false: nothing, or what passes. */
static bool add_partition(const struct job *job, const struct need *need, const char *name,
                          struct str *out)
{
    const PartitionSpec *part = need->partition ? need->partition->spec : NULL;
    unsigned nodes = MAX(job->shape->min_nodes, need->least_nodes);

    switch (core_partition_reason(job, need)) {
    case REASON_PART_DOWN:
        str_addf(out, "partition %s is DOWN: jobs may wait there and none starts", name);
        return false;
    case REASON_PART_INACTIVE:
        str_addf(out, "partition %s is INACTIVE: no job starts there", name);
        return false;
    case REASON_PART_NODE_LIMIT:
        str_addf(out, "it %s %u node%s; partition %s takes jobs of %u",
                 need->least_nodes > job->shape->min_nodes ? "needs" : "asks for", nodes,
                 nodes == 1 ? "" : "s", name, MAX(part->min_nodes, 1));
        if (part->has_max_nodes)
            str_addf(out, " to %u nodes", part->max_nodes);
        else
            str_add(out, " or more nodes");
        return true;
    case REASON_PART_TIME_LIMIT:
        str_add(out, "it asks for ");
        timefmt_write_duration(out, job->time_limit_s < 0 ? -1 : job->time_limit_s, TIMEFMT_SHORT);
        str_addf(out, "; partition %s allows ", name);
        timefmt_write_duration(out, part->max_time_s, TIMEFMT_SHORT);
        str_add(out, " at most");
        return true;
    case REASON_ACCOUNT:
        str_addf(out, "partition %s does not take jobs of account %s", name,
                 job->account ? job->account : "(none)");
        return true;
    case REASON_QOS:
        str_addf(out, "partition %s does not take jobs of QOS %s", name,
                 job->qos ? job->qos : "(none)");
        return true;
    case REASON_PN_MEM_LIMIT:
        add_memory_limit(job->shape, part, name, out);
        return true;
    case REASON_NONE:
        return false;
    default:
        str_addf(out,
                 part ? "no set of nodes of partition %s could ever run it"
                      : "there is no partition %s any more",
                 name);
        return true;
    }
}

void explain_partitions(const struct sched *sched, const struct job *job, struct arena *arena,
                        struct explanation *out)
{
    const struct need *needs = shape_needs(sched->state, job->shape);
    struct str text = { 0 };
    bool never = true;

    for (size_t i = 0; i < job->shape->partition_count; i++) {
        if (i)
            str_add(&text, "; ");
        never = add_partition(job, &needs[i], job->shape->partitions[i], &text) && never;
    }
    if (str_is_empty(str_text(&text))) { /* nothing about partitions: what it needs says more */
        str_done(&text);
        return;
    }
    if (never)
        str_add(&text, ": it can never start like this");
    out->sentence = arena_strdup(arena, str_text(&text));
    out->never = never;
    no_start(out);
    str_done(&text);
}

/* What has nothing to do with resources. */
void explain_not_eligible(struct sched *sched, const struct job *job, unsigned reason,
                          int64_t now_us, struct arena *arena, struct explanation *out)
{
    struct str text = { 0 };
    const char *help = reason_help(reason);

    explain_array(job, &text);
    explain_add(out, arena, &text);
    if (reason == REASON_HELD_USER) {
        str_addf(&text, "held by its owner: 'scontrol release %u' lets it go", job->id);
    } else if (reason == REASON_HELD_ADMIN) {
        str_add(&text, "held by an administrator, who alone can release it");
    } else if (reason == REASON_MAX_REQUEUE) {
        str_addf(&text, "held because it was requeued %u time%s", job->restarts,
                 job->restarts == 1 ? "" : "s");
        if (job->more && job->more->node_fails)
            str_addf(&text, ", nodes failed it %u times in a row", job->more->node_fails);
    } else if (reason == REASON_DEPENDENCY || reason == REASON_DEP_INVALID) {
        str_add(&text, reason == REASON_DEPENDENCY ? "waits for other jobs: "
                                                   : "its dependency can never be fulfilled: ");
        core_dependency_words(sched->state, job, &text);
        out->never = reason == REASON_DEP_INVALID;
    } else if (reason == REASON_BEGIN_TIME && job_begin_us(job) > now_us) {
        if (job_begin_us(job) > job->begin_us)
            str_addf(
                &text, "nodes failed it %u times in a row, the last was %s: it is tried again in ",
                job->more->node_fails, job->more->failed_node ? job->more->failed_node : "unknown");
        else
            str_add(&text, "may not start before its time, which is in ");
        timefmt_write_duration(&text, (job_begin_us(job) - now_us) / 1000000, TIMEFMT_SHORT);
    } else {
        str_addf(&text, "waits for %s: %s", reason_word(reason), help ? help : "not eligible yet");
    }
    out->sentence = arena_strdup(arena, str_text(&text));
    sched_forecast(sched, now_us);
    explain_from(sched, job, foresee_eligible(sched, job), now_us, arena, out);
    str_done(&text);
}

/* No task of it starts before one that runs ends. */
void explain_throttle(struct sched *sched, const struct job *job, int64_t now_us,
                      struct arena *arena, struct explanation *out)
{
    const struct array *array = job->array;
    const struct job *first = state_job(sched->state, array->id);
    int64_t end_us = first && first->run ? job_end_by(first, first->run->start_us) : INT64_MAX;

    uint32_t id;
    for (size_t at = 0; (id = slots_walk(&array->record_ids, &at));) {
        const struct job *task = state_job(sched->state, id);
        if (task && task->run && !job_has_ended(task))
            end_us = MIN(end_us, job_end_by(task, task->run->start_us));
    }
    no_start(out);
    explain_from(sched, job, end_us, now_us, arena, out);
    out->sentence =
        arena_printf(arena, "%u of its array's tasks run, and no more than %u may at once",
                     array->running, array->max_running);
}

void explain_reservation(const struct sched *sched, const struct job *job, int64_t now_us,
                         struct arena *arena, struct explanation *out)
{
    const struct reservation *resv = state_reservation(sched->state, job->shape->reservation);
    struct str text = { 0 };

    if (resv) {
        str_addf(&text, "its reservation %s begins in ", resv->spec->name);
        timefmt_write_duration(&text, MAX(resv->spec->start_us - now_us, 0) / 1000000,
                               TIMEFMT_SHORT);
    } else {
        str_addf(&text, "there is no reservation %s", job->shape->reservation);
    }
    str_addf(&text, "; it %s", out->sentence);
    out->sentence = arena_strdup(arena, str_text(&text));
    str_done(&text);
}

void explain_gone(const struct job *job, struct arena *arena, struct explanation *out)
{
    uint32_t by = job->more && job->more->preempt_us ? job->more->preempted_by : 0;
    struct str text = { 0 };

    if (by && job->run && job->run->lent)
        str_addf(&text, "it made room for job %u and goes on when that has ended", by);
    else if (by && job_has_ended(job))
        str_addf(&text, "it made room for job %u", by);
    else if (by)
        str_addf(&text, "it has to make room for job %u", by);
    else if (job->run && job->run->gang)
        str_add(&text, "it takes turns with the jobs that have the same CPUs");
    explain_add(out, arena, &text);
    str_done(&text);
}

bool explain_switches(const struct sched *sched, const struct job *job, int64_t now_us,
                      struct str *out)
{
    int64_t until = topo_waits_until(sched, job);

    if (until <= now_us)
        return false;
    str_addf(out, "it waits for nodes below %u switch%s for another ", job->shape->switches,
             job->shape->switches == 1 ? "" : "es");
    timefmt_write_duration(out, (until - now_us + 999999) / 1000000, TIMEFMT_SHORT);
    str_add(out, " at most, then takes any");
    return true;
}
