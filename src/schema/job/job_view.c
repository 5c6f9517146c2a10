// SPDX-License-Identifier: Apache-2.0
/*
 * job_view.c - what follows from a Job and the time
 */
#include "schema/job_view.h"

#include "base/hostlist.h"
#include "base/map.h"
#include "schema/names.h"
#include "schema/node_view.h"

const JobStatus *job_status(const Job *job)
{
    static const JobStatus none = JOB_STATUS__INIT;

    return job->status ? job->status : &none;
}

const JobSpec *job_spec(const Job *job)
{
    static const JobSpec none = JOB_SPEC__INIT;

    return job->spec ? job->spec : &none;
}

const JobOwner *job_owner(const Job *job)
{
    static const JobOwner none = JOB_OWNER__INIT;

    return job->owner ? job->owner : &none;
}

int64_t job_used_s(const Job *job, int64_t now_us)
{
    const JobStatus *status = job_status(job);
    int64_t until = now_us, used;

    if (status->start_us <= 0 || status->state == JOB_PENDING)
        return 0;
    if (status->end_us > 0 && job_state_ended(status->state))
        until = status->end_us;
    else if (status->state == JOB_SUSPENDED && status->suspend_us > 0)
        until = status->suspend_us;
    used = until / 1000000 - status->start_us / 1000000 - status->suspended_total_us / 1000000;
    return MAX(used, 0);
}

int64_t job_limit_s(const Job *job)
{
    if (job_status(job)->has_time_limit_s)
        return job_status(job)->time_limit_s;
    if (job_spec(job)->has_time_limit_s)
        return job_spec(job)->time_limit_s;
    return -2;
}

int64_t job_start_us(const Job *job, int64_t now_us)
{
    const JobStatus *status = job_status(job);
    const JobSpec *spec = job_spec(job);

    if (status->state != JOB_PENDING)
        return status->start_us > 0 ? status->start_us : status->end_us;
    if (status->planned_start_us > 0)
        return status->planned_start_us;
    int64_t begin_us = MAX(spec->begin_us, status->backoff_us);
    return begin_us > now_us ? begin_us : 0;
}

int64_t job_end_us(const Job *job, int64_t now_us)
{
    const JobStatus *status = job_status(job);
    int64_t start = job_start_us(job, now_us), limit = job_limit_s(job);

    if (job_state_ended(status->state))
        return status->end_us;
    return start > 0 && limit >= 0 ? start + limit * 1000000 + status->suspended_total_us : 0;
}

uint32_t job_node_count(const Job *job)
{
    const JobStatus *status = job_status(job);

    if (status->allocation && status->allocation->n_nodes)
        return (uint32_t)status->allocation->n_nodes;
    if (status->num_nodes)
        return status->num_nodes;
    return MAX(job_spec(job)->min_nodes, 1);
}

uint32_t job_task_count(const Job *job)
{
    const JobSpec *spec = job_spec(job);

    if (job_status(job)->num_tasks)
        return job_status(job)->num_tasks;
    if (spec->ntasks)
        return spec->ntasks;
    return job_node_count(job) * MAX(spec->ntasks_per_node, 1);
}

uint32_t job_cpu_count(const Job *job)
{
    if (job_status(job)->num_cpus)
        return job_status(job)->num_cpus;
    return job_task_count(job) * MAX(job_spec(job)->cpus_per_task, 1);
}

void job_add_id(struct str *out, const Job *job)
{
    const JobStatus *status = job_status(job);

    if (status->has_array_task_id)
        str_addf(out, "%u_%u", status->array_job_id, status->array_task_id);
    else if (!str_is_empty(status->array_tasks))
        str_addf(out, "%u_[%s]", status->has_array_job_id ? status->array_job_id : job->id,
                 status->array_tasks);
    else if (status->has_het_job_id && status->het_job_id)
        str_addf(out, "%u+%u", status->het_job_id, status->het_offset);
    else
        str_add_u64(out, job->id);
}

void job_add_array_tasks(struct str *out, const Job *job, size_t most)
{
    const char *tasks = job_status(job)->array_tasks;
    size_t ids = strcspn(tasks, "%");

    if (most && ids > most)
        str_addf(out, "%.*s...%s", (int)(MAX(most, 4) - 4), tasks, tasks + ids);
    else
        str_add(out, tasks);
}

void job_add_nodes(struct str *out, const Job *job)
{
    const Allocation *given = job_status(job)->allocation;
    CLEANUP(hostlist_done) struct hostlist list = { 0 };

    if (!given || !given->n_nodes)
        return;
    for (size_t i = 0; i < given->n_nodes; i++) {
        if (given->nodes[i]->node)
            hostlist_push(&list, given->nodes[i]->node, NULL);
    }
    hostlist_sort(&list, NULL);
    hostlist_format(&list, out);
}

void job_add_gres(struct str *out, const Job *job, GresScope scope, const char *joiner)
{
    const JobSpec *spec = job_spec(job);
    bool any = false;

    for (size_t i = 0; i < spec->n_gres; i++) {
        const GresRequest *gres = spec->gres[i];

        if (gres->scope != scope || !gres->name)
            continue;
        str_addf(out, "%sgres/%s", any ? "," : "", gres->name);
        if (!str_is_empty(gres->type))
            str_addf(out, ":%s", gres->type);
        str_addf(out, "%s%llu", joiner, (unsigned long long)gres->count);
        any = true;
    }
}

/* How many of a resource the whole job asks for: per node and per task are multiplied. */
static uint64_t asked_gres(const Job *job, const char *name)
{
    const JobSpec *spec = job_spec(job);
    uint64_t total = 0;

    for (size_t i = 0; i < spec->n_gres; i++) {
        uint64_t times = spec->gres[i]->scope == GRES_PER_NODE   ? job_node_count(job)
                         : spec->gres[i]->scope == GRES_PER_TASK ? job_task_count(job)
                                                                 : 1;

        if (str_eq(spec->gres[i]->name, name))
            total += spec->gres[i]->count * times;
    }
    return total;
}

static void add_asked_tres(struct str *out, const Job *job)
{
    const JobSpec *spec = job_spec(job);
    uint32_t cpus = job_cpu_count(job), nodes = job_node_count(job);
    struct tres_count count = { .cpus = cpus, .nodes = nodes, .billing = cpus };

    count.mem_mb = job_status(job)->mem_mb    ? job_status(job)->mem_mb
                   : spec->has_mem_per_cpu_mb ? spec->mem_per_cpu_mb * cpus
                                              : spec->mem_per_node_mb * nodes;
    tres_add(out, &count);
    for (size_t i = 0; i < spec->n_gres; i++) {
        const char *name = spec->gres[i]->name;
        bool first = name != NULL;

        for (size_t k = 0; k < i; k++)
            first &= !str_eq(spec->gres[k]->name, name);
        if (first)
            str_addf(out, ",gres/%s=%llu", name, (unsigned long long)asked_gres(job, name));
    }
}

static void add_given_tres(struct str *out, const Allocation *given)
{
    struct tres_count count = { .nodes = given->n_nodes };
    struct map totals;

    map_init(&totals);
    for (size_t i = 0; i < given->n_nodes; i++) {
        const NodeAlloc *part = given->nodes[i];

        count.cpus += part->cpus;
        count.mem_mb += part->mem_mb;
        for (size_t k = 0; k < part->n_gres; k++) {
            const char *name = part->gres[k]->name ? part->gres[k]->name : "";
            uintptr_t before = (uintptr_t)map_get(&totals, name);

            map_put(&totals, name, (void *)(before + (uintptr_t)part->gres[k]->count));
        }
    }
    count.billing = count.cpus;
    tres_add(out, &count);
    map_each (entry, &totals)
        str_addf(out, ",gres/%s=%llu", entry->key, (unsigned long long)(uintptr_t)entry->value);
    map_done(&totals);
}

void job_add_tres(struct str *out, const Job *job, bool given)
{
    const JobStatus *status = job_status(job);
    const char *said = given ? status->tres_alloc : status->tres_req;

    if (said)
        str_add(out, said);
    else if (!given)
        add_asked_tres(out, job);
    else if (status->allocation && status->allocation->n_nodes)
        add_given_tres(out, status->allocation);
}
