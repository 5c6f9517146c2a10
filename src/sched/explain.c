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

/* Hosts that could serve the family, and those of them that are usable now; counted once. */
static void count_hosts(const struct sched *sched, struct family *family)
{
    const struct need *needs = shape_needs(sched->state, family->shape);
    struct bitset seen;

    if (family->counted == sched->epoch + 1)
        return;
    family->counted = sched->epoch + 1;
    family->could = family->usable = 0;
    bitset_init(&seen, sched->hosts.len);
    for (size_t i = 0; i < family->shape->partition_count; i++) {
        if (needs[i].partition && needs[i].nodes.bits == seen.bits)
            bitset_or(&seen, &needs[i].nodes);
    }
    bitset_each (number, &seen) {
        family->could++;
        family->usable += sched->hosts.items[number].usable;
    }
    bitset_done(&seen);
}

/* Is one of its partitions waiting for this job before all others? */
static bool is_first(const struct sched *sched, const struct family *family, uint32_t job_id)
{
    for (uint32_t i = 0; i < family->lane_count; i++) {
        if (family->lanes[i] >= sched->lanes.len)
            continue;
        const struct heap_item *top = heap_top(&sched->lanes.items[family->lanes[i]].heap);
        if (!top || top->key.id == job_id)
            return true;
    }
    return false;
}

unsigned sched_reason(const struct sched *sched, const struct job *job)
{
    const struct pend *pend = pend_find(sched, job->id);
    const struct job *first = job;

    if (!pend && job->more && job->more->het_job_id) { /* what its first component waits for */
        first = state_job(sched->state, job->more->het_job_id);
        pend = first ? pend_find(sched, first->id) : NULL;
    }
    if (!pend)
        return REASON_RESOURCES;
    struct family *family = class_of(sched, pend)->family;
    count_hosts(sched, family);
    if (family->usable < family->shape->min_nodes || family->usable == 0)
        return REASON_NODE_NOT_AVAIL;
    if (licences_lacking(sched, family->shape))
        return REASON_LICENSES;
    return pend->booked || is_first(sched, family, first->id) ? REASON_RESOURCES : REASON_PRIORITY;
}

int64_t sched_planned_start(const struct sched *sched, const struct job *job)
{
    const struct pend *pend = pend_find(sched, job->id);
    const struct booking *booking = pend && pend->booked ? booking_of(sched, job->id) : NULL;
    const struct forecast *forecast = pend && !booking ? forecast_of(sched, job->id) : NULL;

    return booking ? booking->start_us : forecast ? MAX(forecast->start_us, sched->now_us) : 0;
}

static uint32_t jobs_ahead(const struct sched *sched, const struct job *job)
{
    uint64_t count = 0;

    if (!pend_find(sched, job->id))
        return 0;
    struct order order = class_order(sched, job);
    vec_each (struct class *, at, &sched->classes) {
        if (*at)
            count += line_count_before(&(*at)->queue, order);
    }
    return (uint32_t)MIN(count, UINT32_MAX);
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
    if (shape->has_mem_per_node && shape->mem_per_node_mb)
        str_addf(out, ", %llu MB on each node", (unsigned long long)shape->mem_per_node_mb);
    else if (shape->mem_per_cpu_mb)
        str_addf(out, ", %llu MB for each CPU", (unsigned long long)shape->mem_per_cpu_mb);
    str_addf(out, " on %u node%s", shape->min_nodes, shape->min_nodes == 1 ? "" : "s");
}

/* What is free of what the job could use. */
static void add_free(const struct sched *sched, struct family *family, struct str *out)
{
    const struct need *needs = shape_needs(sched->state, family->shape);
    unsigned long long cpus = 0, free_cpus = 0, devices = 0, free_devices = 0;
    const char *name = family->shape->gres_count ? family->shape->gres[0].name : NULL;

    for (uint32_t n = 0; n < sched->hosts.len; n++) {
        const struct host *host = &sched->hosts.items[n];
        bool serves = false;
        for (size_t p = 0; p < family->shape->partition_count; p++)
            serves = serves || (needs[p].partition && bitset_has(&needs[p].nodes, n));
        if (!serves || !host->usable)
            continue;
        cpus += host->node->cpus;
        free_cpus += host->free.cpus;
        for (size_t g = 0; g < host->node->gres_count && g < TAKE_GRES; g++) {
            if (!name || !str_eq(host->node->gres[g].name, name))
                continue;
            devices += host->node->gres[g].total;
            free_devices += host->free.gres[g];
        }
    }
    str_addf(out, "of %u node%s that could run it %u %s usable, with %llu of %llu CPUs",
             family->could, family->could == 1 ? "" : "s", family->usable,
             family->usable == 1 ? "is" : "are", free_cpus, cpus);
    if (name)
        str_addf(out, " and %llu of %llu %s", free_devices, devices, name);
    str_add(out, " free");
}

void parts_names(const struct sched *sched, const struct parts *parts, struct str *out)
{
    CLEANUP(hostlist_done) struct hostlist list = { 0 };

    for (size_t i = 0; i < parts->list.len; i++)
        hostlist_push(&list, sched->hosts.items[parts->list.items[i].host].node->spec->name, NULL);
    hostlist_format(&list, out);
}

static const char *node_list(const struct sched *sched, const struct parts *parts,
                             struct arena *arena)
{
    struct str text = { 0 };

    parts_names(sched, parts, &text);
    const char *out = arena_strdup(arena, str_text(&text));
    str_done(&text);
    return out;
}

static void explain_start(struct sched *sched, struct family *family, const struct job *job,
                          int64_t now_us, struct arena *arena, struct explanation *out)
{
    const struct booking *booking = job->id ? booking_of(sched, job->id) : NULL;
    const struct forecast *forecast = job->id ? forecast_of(sched, job->id) : NULL;
    struct parts parts = { 0 };

    if (booking) {
        out->planned_start_us = MAX(booking->start_us, now_us);
        out->planned_nodes = node_list(sched, &booking->parts, arena);
        return;
    }
    if (forecast) {
        out->planned_start_us = MAX(forecast->start_us, now_us);
        out->planned_nodes = arena_strdup(arena, forecast->hosts);
        return;
    }
    int64_t start =
        out->never ? INT64_MAX : profile_start(sched, family, job, now_us, true, &parts);
    if (start != INT64_MAX) {
        out->planned_start_us = start;
        out->planned_nodes = node_list(sched, &parts, arena);
    }
    vec_done(&parts.list);
}

static const char *hold_text(const struct sched *sched, uint32_t job_id, struct arena *arena)
{
    const struct hold *hold = hold_of(sched, job_id);
    struct str text = { 0 };

    str_add(&text, "it starts when these have made room for it: job");
    for (size_t i = 0; i < hold->count; i++)
        str_addf(&text, "%s %u", i ? "," : hold->count > 1 ? "s" : "", hold->victims[i].id);
    const char *out = arena_strdup(arena, str_text(&text));
    str_done(&text);
    return out;
}

static void explain_waiting(struct sched *sched, const struct job *job, int64_t now_us,
                            struct arena *arena, struct explanation *out)
{
    struct str text = { 0 }, detail = { 0 };
    const char **details = ARENA_ARRAY(arena, const char *, 5);
    struct family *family = family_for(sched, job);

    sched_forecast(sched, now_us);
    count_hosts(sched, family);
    out->never = family->could == 0;
    out->jobs_ahead = jobs_ahead(sched, job);
    explain_start(sched, family, job, now_us, arena, out);
    str_add(&text, "needs ");
    add_amounts(&text, job->shape);
    str_add(&text, "; ");
    if (out->never)
        str_add(&text, "no configured node could ever run it");
    else
        add_free(sched, family, &text);
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
    if (!out->planned_start_us && !out->never)
        details[out->detail_count++] =
            "the start cannot be foreseen: nodes it needs are not usable";
    if (hold_of(sched, job->id))
        details[out->detail_count++] = hold_text(sched, job->id, arena);
    if (job->more && job->more->preempt_us)
        details[out->detail_count++] =
            arena_printf(arena, "it was preempted for job %u and is requeued (restart %u)",
                         job->more->preempted_by, job->restarts);
    out->details = details;
    family_free(family);
    str_done(&text);
    str_done(&detail);
}

/* A limit is in the way: which, how much, whose. */
static bool explain_limit(const struct sched *sched, const struct job *job, struct arena *arena,
                          struct explanation *out)
{
    struct limit_hit hit;
    struct str text = { 0 };

    if (limits_allow_any(sched->state, job, NULL, &hit))
        return false;
    limit_hit_text(&hit, &text);
    out->sentence = arena_printf(arena, "%s: %s", reason_word(hit.reason), str_text(&text));
    out->never = !hit.holder && hit.limit;
    out->planned_start_us = 0;
    out->planned_nodes = NULL;
    str_done(&text);
    return true;
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
        if (explain_limit(sched, job, arena, out))
            return;
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
