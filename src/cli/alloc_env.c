// SPDX-License-Identifier: Apache-2.0
/*
 * alloc_env.c - what an allocation was asked for, as variables: one row each
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/alloc.h"
#include "schema/bind.h"
#include "schema/job_view.h"

#define ROW(fn) static bool fn(const Job *job, const struct job_request *request, struct str *out)

#define SPEC_NUMBER(fn, field)                      \
    ROW(fn)                                         \
    {                                               \
        (void)job;                                  \
        if (request->spec->has_##field)             \
            str_add_u64(out, request->spec->field); \
        return request->spec->has_##field;          \
    }
#define SPEC_TEXT(fn, field)                     \
    ROW(fn)                                      \
    {                                            \
        (void)job;                               \
        if (!str_is_empty(request->spec->field)) \
            str_add(out, request->spec->field);  \
        return out->len > 0;                     \
    }
#define GIVEN(fn, field)                   \
    ROW(fn)                                \
    {                                      \
        (void)job;                         \
        if (!str_is_empty(request->field)) \
            str_add(out, request->field);  \
        return out->len > 0;               \
    }

SPEC_NUMBER(cpus_per_gpu, cpus_per_gpu)
SPEC_NUMBER(mem_per_gpu, mem_per_gpu_mb)
SPEC_NUMBER(ntasks_per_core, ntasks_per_core)
SPEC_NUMBER(ntasks_per_gpu, ntasks_per_gpu)
SPEC_NUMBER(ntasks_per_socket, ntasks_per_socket)
SPEC_NUMBER(threads_per_core, threads_per_core)
SPEC_NUMBER(segment, segment)
SPEC_NUMBER(oom_kill_step, oom_kill_step)
SPEC_TEXT(gpu_bind, gpu_bind)
SPEC_TEXT(cpu_freq, cpu_freq)
SPEC_TEXT(gpu_freq, gpu_freq)
SPEC_TEXT(licenses, licenses)
SPEC_TEXT(container, container)
SPEC_TEXT(container_id, container_name)
SPEC_TEXT(hint, hint)
GIVEN(gpus, gpus)
GIVEN(gpus_per_node, gpus_per_node)
GIVEN(gpus_per_socket, gpus_per_socket)
GIVEN(gpus_per_task, gpus_per_task)

#define MEM_BIND(fn, which)                                              \
    ROW(fn)                                                              \
    {                                                                    \
        (void)job;                                                       \
        return bind_mem_variable(request->spec->mem_bind, (which), out); \
    }
MEM_BIND(mem_bind, "")
MEM_BIND(mem_bind_list, "LIST")
MEM_BIND(mem_bind_prefer, "PREFER")
MEM_BIND(mem_bind_sort, "SORT")
MEM_BIND(mem_bind_type, "TYPE")
MEM_BIND(mem_bind_verbose, "VERBOSE")

ROW(resv_ports) /* without a number it is empty, which means the same */
{
    (void)job;
    if (request->resv_ports)
        str_add(out, request->resv_ports);
    return request->resv_ports != NULL;
}
ROW(overcommit)
{
    (void)job;
    if (request->spec->overcommit)
        str_add(out, "1");
    return out->len > 0;
}
ROW(plane_size)
{
    const char *text = request->spec->distribution;
    const char *plane = text ? strstr(text, "plane=") : NULL;

    (void)job;
    if (plane)
        str_add(out, plane + strlen("plane="));
    return plane != NULL;
}
ROW(tres_per_task)
{
    const JobSpec *spec = request->spec;

    (void)job;
    if (!str_is_empty(spec->tres_per_task)) {
        str_add(out, spec->tres_per_task);
        return true;
    }
    if (spec->has_cpus_per_task)
        str_addf(out, "cpu=%u", spec->cpus_per_task);
    if (!str_is_empty(request->gpus_per_task))
        str_addf(out, "%sgres/gpu=%s", out->len ? "," : "", request->gpus_per_task);
    return out->len > 0;
}
ROW(start_time)
{
    (void)request;
    str_add_i64(out, job_status(job)->start_us / 1000000);
    return job_status(job)->start_us > 0;
}
ROW(end_time)
{
    const JobStatus *status = job_status(job);

    (void)request;
    str_add_i64(out, status->start_us / 1000000 + status->time_limit_s);
    return status->start_us > 0 && status->has_time_limit_s && status->time_limit_s >= 0;
}

static const struct {
    const char *name;
    bool (*write)(const Job *job, const struct job_request *request, struct str *out);
} rows[] = {
    { "SLURM_CONTAINER", container },
    { "SLURM_CONTAINER_ID", container_id },
    { "SLURM_CPUS_PER_GPU", cpus_per_gpu },
    { "SLURM_CPU_FREQ_REQ", cpu_freq },
    { "SLURM_DIST_PLANESIZE", plane_size },
    { "SLURM_GPUS", gpus },
    { "SLURM_GPUS_PER_NODE", gpus_per_node },
    { "SLURM_GPUS_PER_SOCKET", gpus_per_socket },
    { "SLURM_GPUS_PER_TASK", gpus_per_task },
    { "SLURM_GPU_BIND", gpu_bind },
    { "SLURM_GPU_FREQ", gpu_freq },
    { "SLURM_HINT", hint },
    { "SLURM_JOB_END_TIME", end_time },
    { "SLURM_JOB_LICENSES", licenses },
    { "SLURM_JOB_SEGMENT_SIZE", segment },
    { "SLURM_JOB_START_TIME", start_time },
    { "SLURM_MEM_BIND", mem_bind },
    { "SLURM_MEM_BIND_LIST", mem_bind_list },
    { "SLURM_MEM_BIND_PREFER", mem_bind_prefer },
    { "SLURM_MEM_BIND_SORT", mem_bind_sort },
    { "SLURM_MEM_BIND_TYPE", mem_bind_type },
    { "SLURM_MEM_BIND_VERBOSE", mem_bind_verbose },
    { "SLURM_MEM_PER_GPU", mem_per_gpu },
    { "SLURM_NTASKS_PER_CORE", ntasks_per_core },
    { "SLURM_NTASKS_PER_GPU", ntasks_per_gpu },
    { "SLURM_NTASKS_PER_SOCKET", ntasks_per_socket },
    { "SLURM_OOMKILLSTEP", oom_kill_step },
    { "SLURM_OVERCOMMIT", overcommit },
    { "SLURM_RESV_PORTS", resv_ports },
    { "SLURM_THREADS_PER_CORE", threads_per_core },
    { "SLURM_TRES_PER_TASK", tres_per_task },
};

void alloc_put_asked(const Job *job, const struct job_request *request)
{
    CLEANUP(str_done) struct str value = { 0 };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        str_clear(&value);
        if (rows[i].write(job, request, &value))
            setenv(rows[i].name, str_text(&value), 1);
    }
}
