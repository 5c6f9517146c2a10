// SPDX-License-Identifier: Apache-2.0
/*
 * fields_job_size.c - how much of a node jobs ask for and have: nodes, CPUs, tasks, memory
 */
#include "schema/job/fields_job_priv.h"
#include "schema/job_view.h"

int64_t job_n_nodes(const struct field_call *call)
{
    return job_node_count(job_of(call));
}

int64_t job_n_cpus(const struct field_call *call)
{
    return job_cpu_count(job_of(call));
}

int64_t job_n_tasks(const struct field_call *call)
{
    return job_task_count(job_of(call));
}

bool job_w_node_count(const struct field_call *call, struct str *out)
{
    str_add_i64(out, job_n_nodes(call));
    return true;
}

bool job_w_node_count_record(const struct field_call *call, struct str *out)
{
    const JobSpec *spec = job_spec(job_of(call));

    if (job_status(job_of(call))->state == JOB_PENDING && !str_is_empty(spec->node_sizes)) {
        str_add(out, spec->node_sizes);
        return true;
    }
    job_w_node_count(call, out);
    if (job_status(job_of(call))->state == JOB_PENDING && spec->max_nodes)
        str_addf(out, "-%u", spec->max_nodes);
    return true;
}

bool job_w_cpu_count(const struct field_call *call, struct str *out)
{
    str_add_i64(out, job_n_cpus(call));
    return true;
}

bool job_w_max_nodes(const struct field_call *call, struct str *out)
{
    str_add_u64(out, MAX(job_spec(job_of(call))->max_nodes, job_node_count(job_of(call))));
    return true;
}

bool job_w_task_count(const struct field_call *call, struct str *out)
{
    str_add_i64(out, job_n_tasks(call));
    return true;
}

int64_t job_n_min_cpus(const struct field_call *call)
{
    const JobSpec *spec = job_spec(job_of(call));
    uint32_t tasks = MAX(spec->ntasks_per_node, 1) * MAX(spec->cpus_per_task, 1);

    return MAX(spec->min_cpus_per_node, tasks);
}

bool job_w_min_cpus(const struct field_call *call, struct str *out)
{
    str_add_i64(out, job_n_min_cpus(call));
    return true;
}

/* What it asks for, else what the partition gives it. */
static bool memory_of(const struct field_call *call, uint64_t *mb)
{
    const JobSpec *spec = job_spec(job_of(call));
    const JobStatus *status = job_status(job_of(call));
    bool by_cpu = spec->has_mem_per_cpu_mb || status->has_def_mem_per_cpu_mb;

    *mb = spec->has_mem_per_cpu_mb    ? spec->mem_per_cpu_mb
          : spec->has_mem_per_node_mb ? spec->mem_per_node_mb
          : by_cpu                    ? status->def_mem_per_cpu_mb
                                      : status->def_mem_per_node_mb;
    return by_cpu;
}

bool job_w_memory(const struct field_call *call, struct str *out)
{
    uint64_t mb;

    memory_of(call, &mb);
    if (mb)
        field_add_megabytes(out, mb, call->ctx->noconvert);
    else
        str_add_char(out, '0');
    return true;
}

bool job_w_memory_cpu(const struct field_call *call, struct str *out)
{
    uint64_t mb;

    return memory_of(call, &mb) && job_w_memory(call, out);
}

bool job_w_memory_node(const struct field_call *call, struct str *out)
{
    uint64_t mb;

    return !memory_of(call, &mb) && job_w_memory(call, out);
}

bool job_w_min_tmp(const struct field_call *call, struct str *out)
{
    uint64_t mb = job_spec(job_of(call))->tmp_disk_mb;

    if (mb)
        field_add_megabytes(out, mb, call->ctx->noconvert);
    else
        str_add_char(out, '0');
    return true;
}

static void add_or_star(struct str *out, const char *before, bool has, uint32_t number)
{
    str_add(out, before);
    if (has && number)
        str_add_u64(out, number);
    else
        str_add_char(out, '*');
}

/* Cores and threads that a hint stands for. */
static void add_cores_threads(struct str *out, const JobSpec *spec)
{
    bool memory = str_ieq(spec->hint, "memory_bound");
    bool one =
        memory || str_ieq(spec->hint, "compute_bound") || str_ieq(spec->hint, "nomultithread");

    add_or_star(out, ":", spec->has_cores_per_socket || memory,
                memory ? 1 : spec->cores_per_socket);
    add_or_star(out, ":", spec->has_threads_per_core || one, one ? 1 : spec->threads_per_core);
}

bool job_w_sct(const struct field_call *call, struct str *out)
{
    const JobSpec *spec = job_spec(job_of(call));

    add_or_star(out, "", spec->has_sockets_per_node, spec->sockets_per_node);
    add_cores_threads(out, spec);
    return true;
}

bool job_w_bsct(const struct field_call *call, struct str *out)
{
    const JobSpec *spec = job_spec(job_of(call));

    str_add(out, "0:0");
    add_cores_threads(out, spec);
    return true;
}

bool job_w_ntasks_per(const struct field_call *call, struct str *out)
{
    const JobSpec *spec = job_spec(job_of(call));

    str_addf(out, "%u:0", spec->ntasks_per_node);
    add_or_star(out, ":", spec->has_ntasks_per_socket, spec->ntasks_per_socket);
    add_or_star(out, ":", spec->has_ntasks_per_core, spec->ntasks_per_core);
    return true;
}

bool job_w_cpus_per_task(const struct field_call *call, struct str *out)
{
    str_add_u64(out, MAX(job_spec(job_of(call))->cpus_per_task, 1));
    return true;
}

bool job_w_core_spec_record(const struct field_call *call, struct str *out)
{
    const JobSpec *spec = job_spec(job_of(call));

    add_or_star(out, "", spec->has_core_spec, spec->core_spec);
    return true;
}

bool job_w_thread_spec_record(const struct field_call *call, struct str *out)
{
    const JobSpec *spec = job_spec(job_of(call));

    if (!spec->has_thread_spec)
        return false;
    str_add_u64(out, spec->thread_spec);
    return true;
}
