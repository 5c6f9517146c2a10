/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_test.c - a job that is only asked about: when and where it would start, and who would make room for it
 */
#include <stdlib.h>

#include "core/core.h"
#include "sched/explain/explain.h"

struct asked {
    struct owner owner;
    struct job *jobs;                     /* one for each component */
    struct billing_group *billing_groups; /* of each: whom it may send away */
    size_t count;
};

static void asked_done(struct asked *asked)
{
    for (size_t i = 0; i < asked->count; i++)
        shape_free(asked->jobs[i].shape);
    free(asked->jobs);
    free(asked->billing_groups);
}

static int ask_for(struct sched *sched, struct asked *asked, const JobSpec *spec, struct err *err)
{
    struct job *job = &asked->jobs[asked->count];
    struct shape *shape = shape_parse(sched->state, spec, err);

    if (!shape)
        return -(int)err->code;
    const struct need *needs = shape_needs(sched->state, shape);
    *job = (struct job){ .owner = &asked->owner, .shape = shape, .state = JOB_PENDING };
    job->time_limit_s = spec->has_time_limit_s ? spec->time_limit_s : -1;
    if (!spec->has_time_limit_s && needs[0].partition &&
        needs[0].partition->spec->has_default_time_s)
        job->time_limit_s = needs[0].partition->spec->default_time_s;
    asked->count++;
    return 0;
}

/* One start for all; the nodes are those of all. */
static void explain_together(struct sched *sched, const struct asked *asked, int64_t now_us,
                             struct arena *arena, struct explanation *out)
{
    uint32_t count = (uint32_t)asked->count;
    const struct job **jobs = NEW_ARRAY(const struct job *, count);
    struct booked *of = NEW_ARRAY(struct booked, count);
    struct parts all = { 0 };

    for (uint32_t i = 0; i < count; i++)
        jobs[i] = &asked->jobs[i];
    struct view view = { .now_us = now_us };
    int64_t start = het_start(sched, jobs, count, &view, false, of, NULL);
    out->planned_start_us = start == INT64_MAX ? 0 : start;
    for (uint32_t i = 0; i < count && start != INT64_MAX; i++) {
        for (size_t k = 0; k < of[i].parts.list.len; k++)
            vec_push(&all.list, of[i].parts.list.items[k]);
    }
    out->planned_nodes = start == INT64_MAX ? NULL : explain_node_list(sched, &all, arena);
    out->never = start == INT64_MAX && explain_never_together(sched, jobs, count);
    out->sentence = out->never
                        ? "its components find no room beside each other, even on empty nodes"
                        : out->sentence;
    vec_done(&all.list);
    booked_free(sched, of, count);
    free(jobs);
}

static void ask_as(struct sched *sched, struct asked *asked, size_t at, const JobOwner *owner,
                   const JobSpec *spec)
{
    bool named = !str_is_empty(spec->account) && owner->user;
    const struct assoc *assoc =
        named ? state_assoc(sched->state, spec->account, owner->user, NULL) : NULL;

    asked->billing_groups[at].qos = str_is_empty(spec->qos) ? assoc ? assoc->default_qos : NULL
                                                            : state_qos(sched->state, spec->qos);
    asked->jobs[at].billing_group = &asked->billing_groups[at];
}

/* It would start now if others made room. */
static void explain_preempting(struct sched *sched, const struct asked *asked, int64_t now_us,
                               struct arena *arena, struct explanation *out)
{
    const struct job **jobs = NEW_ARRAY(const struct job *, asked->count);
    struct parts parts = { 0 };
    id_list victims = { 0 };
    struct str text = { 0 };
    const char *partition;

    for (size_t i = 0; i < asked->count; i++)
        jobs[i] = &asked->jobs[i];
    sched->now_us = MAX(sched->now_us, now_us);
    if (preempt_test(sched, jobs, (uint32_t)asked->count, &parts, &victims, &partition)) {
        for (size_t i = 0; i < victims.len; i++)
            str_addf(&text, "%s%u", i ? "," : "", victims.items[i]);
        out->preempts = arena_strdup(arena, str_text(&text));
        out->partition = asked->count == 1 ? arena_strdup(arena, partition) : NULL;
        out->planned_nodes = explain_node_list(sched, &parts, arena);
        out->planned_start_us = now_us;
    }
    str_done(&text);
    vec_done(&parts.list);
    vec_done(&victims);
    free(jobs);
}

int sched_test(struct sched *sched, const JobOwner *owner, const JobSpec *const *specs,
               size_t count, int64_t now_us, struct arena *arena, struct explanation *out,
               struct err *err)
{
    struct asked asked = { .owner = { .uid = owner->uid,
                                      .gid = owner->gid,
                                      .user = owner->user,
                                      .group = owner->group } };
    int code = 0;

    rebuild_all(sched);
    asked.jobs = NEW_ARRAY(struct job, count);
    asked.billing_groups = NEW_ARRAY(struct billing_group, count);
    for (size_t i = 0; i < count && code == 0; i++)
        code = ask_for(sched, &asked, specs[i], err);
    *out = (struct explanation){ 0 };
    bool unusable = false;
    for (size_t i = 0; i < count && code == 0 && !out->never; i++) {
        *out = (struct explanation){ 0 };
        explain_waiting(sched, &asked.jobs[count - 1 - i], now_us, arena, out);
        out->unusable = unusable = unusable || out->unusable;
    }
    if (code == 0 && count > 1 && !out->never)
        explain_together(sched, &asked, now_us, arena, out);
    for (size_t i = 0; i < count && code == 0; i++)
        ask_as(sched, &asked, i, owner, specs[i]);
    if (code == 0 && !out->never && !out->unusable &&
        (!out->planned_start_us || out->planned_start_us > now_us + US_PER_S))
        explain_preempting(sched, &asked, now_us, arena, out);
    asked_done(&asked);
    return code;
}
