/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.c - why a job waits, in words with numbers
 */
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "core/core.h"
#include "sched/sched_priv.h"
#include "schema/reasons.h"

/* Nodes that could serve the job, and those of them that are usable now. */
static void count_nodes(const struct sched *sched, const struct job *job, unsigned *could,
                        unsigned *usable)
{
    const struct need *needs = shape_needs(sched->state, job->shape);
    struct bitset seen;

    *could = *usable = 0;
    bitset_init(&seen, state_node_count(sched->state));
    for (size_t i = 0; i < job->shape->partition_count; i++) {
        if (needs[i].partition)
            bitset_or(&seen, &needs[i].nodes);
    }
    bitset_each (n, &seen) {
        ++*could;
        *usable += node_is_usable(state_node_at(sched->state, n));
    }
    bitset_done(&seen);
}

unsigned sched_reason(const struct sched *sched, const struct job *job)
{
    unsigned could, usable;

    if (job_is_meta(job) && array_room(job->array) == 0)
        return REASON_ARRAY_TASK_LIMIT;
    if (sched->top_job && sched->top_job != job->id)
        return REASON_PRIORITY;
    count_nodes(sched, job, &could, &usable);
    if (usable < job->shape->min_nodes || usable == 0)
        return REASON_NODE_NOT_AVAIL;
    return REASON_RESOURCES;
}

int64_t sched_planned_start(const struct sched *sched, const struct job *job)
{
    return sched->top_job == job->id && sched->top_start_us != INT64_MAX ? sched->top_start_us : 0;
}

static uint32_t jobs_ahead(const struct sched *sched, const struct job *job)
{
    const struct entry *mine = map_get_num(&sched->entries, job->id);
    uint32_t count = 0;

    if (!mine)
        return 0;
    map_each (at, &sched->entries) {
        const struct entry *other = at->value;
        count += other != mine && entry_before(other, mine);
    }
    return count;
}

static void add_amounts(struct str *out, const struct shape *shape)
{
    str_addf(out, "%llu CPU%s", (unsigned long long)shape_cpus(shape),
             shape_cpus(shape) == 1 ? "" : "s");
    for (size_t i = 0; i < shape->gres_count; i++)
        str_addf(out, ", %llu %s%s%s%s", (unsigned long long)shape->gres[i].count,
                 shape->gres[i].name, shape->gres[i].type ? ":" : "",
                 shape->gres[i].type ? shape->gres[i].type : "",
                 shape->gres[i].scope == GRES_PER_NODE ? " on each node" : "");
    if (shape->has_mem_per_node)
        str_addf(out, ", %llu MB on each node", (unsigned long long)shape->mem_per_node_mb);
    str_addf(out, " on %u node%s", shape->min_nodes, shape->min_nodes == 1 ? "" : "s");
}

/* What is free of what the job could use. */
static void add_free(const struct sched *sched, const struct job *job, struct str *out)
{
    const struct need *needs = shape_needs(sched->state, job->shape);
    unsigned long long cpus = 0, free_cpus = 0, gpus = 0, free_gpus = 0;
    unsigned could, usable;

    count_nodes(sched, job, &could, &usable);
    for (size_t n = 0; n < state_node_count(sched->state); n++) {
        const struct node *node = state_node_at(sched->state, n);
        uint64_t gres[TAKE_GRES];
        struct room room;
        if (!needs[0].partition || !bitset_has(&needs[0].nodes, n) || !node_is_usable(node))
            continue;
        room_now(sched, node, NULL, gres, &room);
        cpus += node->cpus;
        free_cpus += room.cpus;
        for (size_t g = 0; g < node->gres_count && g < TAKE_GRES; g++) {
            gpus += node->gres[g].total;
            free_gpus += gres[g];
        }
    }
    str_addf(out, "of %u node%s that could run it %u %s usable, with %llu of %llu CPUs", could,
             could == 1 ? "" : "s", usable, usable == 1 ? "is" : "are", free_cpus, cpus);
    if (job->shape->gres_count)
        str_addf(out, " and %llu of %llu generic resources", free_gpus, gpus);
    str_add(out, " free");
}

static const char *node_list(const struct sched *sched, const struct parts *parts,
                             struct arena *arena)
{
    struct hostlist list = { 0 };
    struct str text = { 0 };
    struct err err;

    for (size_t i = 0; i < parts->list.len; i++)
        hostlist_push(&list, state_node_at(sched->state, parts->list.items[i].node)->spec->name,
                      &err);
    hostlist_format(&list, &text);
    const char *out = arena_strdup(arena, str_text(&text));
    hostlist_done(&list);
    str_done(&text);
    return out;
}

static void explain_waiting(struct sched *sched, const struct job *job, int64_t now_us,
                            struct arena *arena, struct explanation *out)
{
    struct str text = { 0 }, detail = { 0 };
    struct parts parts = { 0 };
    const char **details = ARENA_ARRAY(arena, const char *, 3);
    unsigned could, usable;

    count_nodes(sched, job, &could, &usable);
    out->never = could == 0;
    out->jobs_ahead = jobs_ahead(sched, job);
    int64_t start = out->never ? INT64_MAX : shadow(sched, job, now_us, &parts);
    if (start != INT64_MAX) {
        out->planned_start_us = start;
        out->planned_nodes = node_list(sched, &parts, arena);
    }
    str_add(&text, "needs ");
    add_amounts(&text, job->shape);
    str_add(&text, "; ");
    if (out->never)
        str_add(&text, "no configured node could ever run it");
    else
        add_free(sched, job, &text);
    if (out->jobs_ahead)
        str_addf(&text, "; %u job%s ahead of it", out->jobs_ahead,
                 out->jobs_ahead == 1 ? " is" : "s are");
    out->sentence = arena_strdup(arena, str_text(&text));
    str_addf(&detail, "partition %s, time limit ", job->shape->partitions[0]);
    if (job->time_limit_s < 0)
        str_add(&detail, "UNLIMITED");
    else
        str_addf(&detail, "%lld minutes", (long long)(job->time_limit_s + 59) / 60);
    details[out->detail_count++] = arena_strdup(arena, str_text(&detail));
    if (start == INT64_MAX && !out->never)
        details[out->detail_count++] =
            "the start cannot be foreseen: running jobs have no time limit, or nodes are down";
    out->details = details;
    vec_done(&parts.list);
    str_done(&text);
    str_done(&detail);
}

void sched_explain(struct sched *sched, const struct job *job, int64_t now_us, struct arena *arena,
                   struct explanation *out)
{
    *out = (struct explanation){ 0 };
    unsigned reason = core_job_reason(sched->state, job);

    if (job->state != JOB_PENDING) {
        out->sentence = job_has_ended(job) ? "has ended" : "is running";
    } else if (!job_is_eligible(job)) {
        const char *help = reason_help(reason);
        out->sentence = arena_printf(arena, "waits for %s: %s", reason_word(reason),
                                     help ? help : "not eligible yet");
    } else {
        explain_waiting(sched, job, now_us, arena, out);
        if (reason) {
            const char *help = reason_help(reason);
            out->sentence = arena_printf(arena, "%s (%s): %s", reason_word(reason),
                                         help ? help : "", out->sentence);
        }
    }
}

int sched_test(struct sched *sched, const JobOwner *owner, const JobSpec *spec, int64_t now_us,
               struct arena *arena, struct explanation *out, struct err *err)
{
    struct shape *shape = shape_parse(sched->state, spec, err);

    if (!shape)
        return -(int)err->code;
    struct owner who = {
        .uid = owner->uid, .gid = owner->gid, .user = owner->user, .group = owner->group
    };
    struct job job = { .owner = &who, .shape = shape, .state = JOB_PENDING };
    const struct need *needs = shape_needs(sched->state, shape);
    job.time_limit_s = spec->has_time_limit_s ? spec->time_limit_s : -1;
    if (!spec->has_time_limit_s && needs[0].partition &&
        needs[0].partition->spec->has_default_time_s)
        job.time_limit_s = needs[0].partition->spec->default_time_s;
    *out = (struct explanation){ 0 };
    explain_waiting(sched, &job, now_us, arena, out);
    shape_free(shape);
    return 0;
}
