/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env_rows.c - one row per variable
 */
#include <inttypes.h>
#include <string.h>
#include <sys/wait.h>

#include "base/hostlist.h"
#include "schema/bind.h"
#include "schema/names.h"
#include "spurd/task/env_priv.h"

enum { B = ENV_BATCH, P = ENV_PROLOG, E = ENV_EPILOG, ALL = B | P | E };

#define ROW(fn) static bool fn(const struct env_job *job, struct str *out)

/* ---- small writers ---- */

static bool text(struct str *out, const char *value)
{
    if (str_is_empty(value))
        return false;
    str_add(out, value);
    return true;
}

static bool number(struct str *out, bool present, uint64_t value)
{
    if (present)
        str_add_u64(out, value);
    return present;
}

#define SPEC_TEXT(fn, field)                \
    ROW(fn)                                 \
    {                                       \
        return text(out, job->spec->field); \
    }
#define SPEC_NUMBER(fn, field)                                        \
    ROW(fn)                                                           \
    {                                                                 \
        return number(out, job->spec->has_##field, job->spec->field); \
    }
#define FIXED(fn, value)           \
    ROW(fn)                        \
    {                              \
        (void)job;                 \
        return text(out, (value)); \
    }

FIXED(zero, "0")
ROW(oom_kill_step)
{
    return text(out, env_oom_kill_step(job->spec, job->config) ? "1" : "0");
}
ROW(oom_asked)
{
    return number(out, job->spec->has_oom_kill_step, job->spec->oom_kill_step);
}

FIXED(batch_word, "BATCH")
FIXED(step_word, "-5") /* the batch step's number as Slurm prints it */
FIXED(ompi_word, "--external-launcher")
FIXED(prolog_word, "prolog_slurmd")
FIXED(epilog_word, "epilog_slurmd")

/* ---- who and what ---- */

ROW(job_id)
{
    return number(out, true, job->job_id);
}
ROW(spur_job)
{
    str_addf(out, "%u.%u", job->job_id, job->attempt);
    return true;
}
ROW(node_socket)
{
    return text(out, job->socket);
}
ROW(uid)
{
    return number(out, true, job->owner->uid);
}
ROW(gid)
{
    return number(out, true, job->owner->gid);
}
ROW(user)
{
    if (text(out, job->owner->user))
        return true;
    return number(out, true, job->owner->uid);
}
ROW(group)
{
    return text(out, job->owner->group);
}
ROW(account)
{
    return text(out,
                job->status && job->status->account ? job->status->account : job->spec->account);
}
ROW(qos)
{
    return text(out, job->status && job->status->qos ? job->status->qos : job->spec->qos);
}
ROW(partition)
{
    if (job->allocation && text(out, job->allocation->partition))
        return true;
    return text(out, job->status && job->status->partition ? job->status->partition
                                                           : job->spec->partition);
}
ROW(cluster)
{
    return text(out, job->cluster);
}
ROW(node)
{
    return text(out, job->node);
}
ROW(restarts)
{
    return number(out, true, job->status ? job->status->restarts : 0);
}
ROW(exclusive)
{
    return text(out, name_of(&exclusive_names,
                             job->spec->has_exclusive ? job->spec->exclusive : EXCLUSIVE_NO));
}
ROW(oversubscribe)
{
    return text(out, job->spec->has_oversubscribe && job->spec->oversubscribe ? "YES" : "NO");
}
ROW(start_time)
{
    return number(out, job->start_us > 0, (uint64_t)(job->start_us / 1000000));
}
ROW(end_time)
{
    return number(out, job->start_us > 0 && job->time_limit_s >= 0,
                  (uint64_t)(job->start_us / 1000000 + job->time_limit_s));
}
SPEC_TEXT(name, name)
SPEC_TEXT(comment, comment)
SPEC_TEXT(features, features)
SPEC_TEXT(extra, extra)
SPEC_TEXT(licenses, licenses)
SPEC_TEXT(reservation, reservation)
SPEC_TEXT(dependency, dependency)
SPEC_TEXT(network, network)
SPEC_TEXT(container, container)
SPEC_TEXT(container_id, container_name)
SPEC_TEXT(profile, profile)
SPEC_TEXT(work_dir, work_dir)
SPEC_TEXT(distribution, distribution)
SPEC_TEXT(hint, hint)
#define MEM_BIND(fn, which)                                          \
    ROW(fn)                                                          \
    {                                                                \
        return bind_mem_variable(job->spec->mem_bind, (which), out); \
    }
MEM_BIND(mem_bind, "")
MEM_BIND(mem_bind_list, "LIST")
MEM_BIND(mem_bind_prefer, "PREFER")
MEM_BIND(mem_bind_type, "TYPE")
MEM_BIND(mem_bind_verbose, "VERBOSE")
SPEC_TEXT(gpu_bind, gpu_bind)
SPEC_TEXT(gpu_freq, gpu_freq)
SPEC_TEXT(cpu_freq, cpu_freq)
SPEC_TEXT(tres_bind, tres_bind)

ROW(std_in)
{
    return text(out, job->std_in ? job->std_in : "/dev/null");
}
ROW(std_out)
{
    return text(out, job->std_out);
}
ROW(std_err)
{
    return text(out, job->std_err ? job->std_err : job->std_out);
}

/* ---- nodes, tasks, CPUs, memory ---- */

static size_t node_count(const struct env_job *job)
{
    size_t count = 0;

    for (size_t i = 0; job->allocation && i < job->allocation->n_nodes; i++)
        count += !job->allocation->nodes[i]->left;
    return MAX(count, 1);
}
ROW(node_list)
{
    CLEANUP(hostlist_done) struct hostlist list = { 0 };

    if (!job->allocation || job->allocation->n_nodes == 0)
        return text(out, job->node);
    for (size_t i = 0; i < job->allocation->n_nodes; i++) {
        if (!job->allocation->nodes[i]->left)
            hostlist_push(&list, job->allocation->nodes[i]->node, NULL);
    }
    hostlist_format(&list, out);
    return true;
}
ROW(num_nodes)
{
    return number(out, true, node_count(job));
}
/* Counts of one field over the nodes, and at least one. */
static bool counts(const struct env_job *job, struct str *out, uint32_t (*of)(const NodeAlloc *))
{
    size_t all = job->allocation ? job->allocation->n_nodes : 0, len = 0;
    CLEANUP(freep) uint32_t *list = NEW_ARRAY(uint32_t, all + 1);

    for (size_t i = 0; i < all; i++) {
        if (!job->allocation->nodes[i]->left)
            list[len++] = MAX(of(job->allocation->nodes[i]), 1);
    }
    if (len == 0)
        list[len++] = job->here ? MAX(of(job->here), 1) : 1;
    env_add_counts(out, list, len);
    return true;
}
static uint32_t cpus_of(const NodeAlloc *alloc)
{
    return alloc->cpus;
}
static uint32_t tasks_of(const NodeAlloc *alloc)
{
    return alloc->tasks;
}
ROW(cpus_per_node)
{
    return counts(job, out, cpus_of);
}
ROW(tasks_per_node)
{
    return counts(job, out, tasks_of);
}
ROW(cpus_on_node)
{
    return number(out, true, job->here ? MAX(job->here->cpus, 1) : 1);
}
ROW(ntasks)
{
    const JobSpec *spec = job->spec;

    if (spec->has_ntasks)
        return number(out, true, spec->ntasks);
    return number(out, spec->has_ntasks_per_node,
                  (uint64_t)spec->ntasks_per_node * node_count(job));
}
SPEC_NUMBER(cpus_per_task, cpus_per_task)
SPEC_NUMBER(ntasks_per_node, ntasks_per_node)
SPEC_NUMBER(ntasks_per_socket, ntasks_per_socket)
SPEC_NUMBER(ntasks_per_core, ntasks_per_core)
SPEC_NUMBER(ntasks_per_gpu, ntasks_per_gpu)
SPEC_NUMBER(cpus_per_gpu, cpus_per_gpu)
SPEC_NUMBER(threads_per_core, threads_per_core)
SPEC_NUMBER(mem_per_gpu, mem_per_gpu_mb)
SPEC_NUMBER(segment, segment)

static bool asked_memory(const JobSpec *spec)
{
    return spec->has_mem_per_node_mb || spec->has_mem_per_cpu_mb || spec->has_mem_per_gpu_mb;
}
ROW(mem_per_node)
{
    if (job->spec->has_mem_per_node_mb) {
        bool all = job->spec->mem_per_node_mb == 0;
        return number(out, true, all && job->here ? job->here->mem_mb : job->spec->mem_per_node_mb);
    }
    return !asked_memory(job->spec) && job->config && !job->config->def_mem_per_cpu_mb &&
           number(out, job->config->def_mem_per_node_mb > 0, job->config->def_mem_per_node_mb);
}
ROW(mem_per_cpu)
{
    if (job->spec->has_mem_per_cpu_mb)
        return number(out, true, job->spec->mem_per_cpu_mb);
    return !asked_memory(job->spec) && job->config &&
           number(out, job->config->def_mem_per_cpu_mb > 0, job->config->def_mem_per_cpu_mb);
}
ROW(overcommit)
{
    return job->spec->overcommit && text(out, "1");
}
ROW(plane_size)
{
    const char *plane = job->spec->distribution ? strstr(job->spec->distribution, "plane=") : NULL;

    return plane && text(out, plane + strlen("plane="));
}
ROW(topology_addr)
{
    return text(out, job->topology ? job->topology : job->node);
}
ROW(topology_pattern)
{
    for (const char *at = job->topology; at && (at = strchr(at, '.')); at++)
        str_add(out, "switch.");
    str_add(out, "node");
    return true;
}

/* ---- GPUs as asked for ---- */

static bool asked_gpus(const struct env_job *job, struct str *out, GresScope scope)
{
    const char *comma = "";

    for (size_t i = 0; i < job->spec->n_gres; i++) {
        const GresRequest *gres = job->spec->gres[i];
        if (!str_eq(gres->name, "gpu") || gres->scope != scope)
            continue;
        str_addf(out, "%s%s%s%" PRIu64, comma, gres->type ? gres->type : "", gres->type ? ":" : "",
                 gres->count);
        comma = ",";
    }
    return *comma != '\0';
}
ROW(gpus)
{
    return asked_gpus(job, out, GRES_PER_JOB);
}
ROW(gpus_per_socket)
{
    return asked_gpus(job, out, GRES_PER_SOCKET);
}
ROW(tres_per_task)
{
    CLEANUP(str_done) struct str gpu = { 0 };

    if (text(out, job->spec->tres_per_task))
        return true;
    bool has_gpu = asked_gpus(job, &gpu, GRES_PER_TASK);
    if (job->spec->has_cpus_per_task)
        str_addf(out, "cpu=%u", job->spec->cpus_per_task);
    if (has_gpu)
        str_addf(out, "%sgres/gpu=%s", job->spec->has_cpus_per_task ? "," : "", str_text(&gpu));
    return out->len > 0;
}

/* ---- arrays ---- */

ROW(array_job)
{
    return job->status && job->status->has_array_task_id &&
           number(out, job->status->has_array_job_id, job->status->array_job_id);
}
ROW(array_task)
{
    return job->status && number(out, job->status->has_array_task_id, job->status->array_task_id);
}
#define ARRAY_NUMBER(fn, field)                                     \
    ROW(fn)                                                         \
    {                                                               \
        return number(out, job->array.count > 0, job->array.field); \
    }
ARRAY_NUMBER(array_count, count)
ARRAY_NUMBER(array_max, max)
ARRAY_NUMBER(array_min, min)
ARRAY_NUMBER(array_step, step)

/* ---- the end ---- */

ROW(exit_code)
{
    return job->ended && number(out, true, job->ended->exit_status);
}
ROW(exit_code2)
{
    if (!job->ended)
        return false;
    int status = (int)job->ended->exit_status;
    str_addf(out, "%d:%d", status >> 8 & 0xff, status & 0x7f);
    return true;
}

ROW(derived_code)
{
    return number(out, true, job->derived_status);
}

const struct env_row env_rows[] = {
    { "SLURM_JOB_ID", ALL, job_id },
    { "SLURM_JOBID", ALL, job_id },
    { "SLURM_JOB_NAME", B, name },
    { "SLURM_JOB_UID", ALL, uid },
    { "SLURM_JOB_GID", ALL, gid },
    { "SLURM_JOB_USER", ALL, user },
    { "SLURM_JOB_GROUP", P | E, group },
    { "SLURM_JOB_ACCOUNT", ALL, account },
    { "SLURM_JOB_QOS", ALL, qos },
    { "SLURM_JOB_PARTITION", ALL, partition },
    { "SLURM_JOB_RESERVATION", ALL, reservation },
    { "SLURM_JOB_LICENSES", ALL, licenses },
    { "SLURM_JOB_DEPENDENCY", B, dependency },
    { "SLURM_JOB_COMMENT", P | E, comment },
    { "SLURM_JOB_CONSTRAINTS", P | E, features },
    { "SLURM_JOB_EXTRA", P | E, extra },
    { "SLURM_JOB_EXCLUSIVE", ALL, exclusive },
    { "SLURM_JOB_OVERSUBSCRIBE", ALL, oversubscribe },
    { "SLURM_JOB_START_TIME", ALL, start_time },
    { "SLURM_JOB_END_TIME", ALL, end_time },
    { "SLURM_JOB_STDIN", P | E, std_in },
    { "SLURM_JOB_STDOUT", P | E, std_out },
    { "SLURM_JOB_STDERR", P | E, std_err },
    { "SLURM_JOB_WORK_DIR", P | E, work_dir },
    { "SLURM_JOB_RESTART_COUNT", P | E, restarts },
    { "SLURM_RESTART_COUNT", B, restarts },
    { "SLURM_JOB_SEGMENT_SIZE", B, segment },
    { "SLURM_CLUSTER_NAME", ALL, cluster },
    { "SLURMD_NODENAME", ALL, node },
    { "HOSTNAME", B, node },

    { "SLURM_JOB_NODELIST", ALL, node_list },
    { "SLURM_NODELIST", B, node_list },
    { "SLURM_JOB_NUM_NODES", ALL, num_nodes },
    { "SLURM_NNODES", B, num_nodes },
    { "SLURM_JOB_CPUS_PER_NODE", ALL, cpus_per_node },
    { "SLURM_CPUS_ON_NODE", B, cpus_on_node },
    { "SLURM_TASKS_PER_NODE", B, tasks_per_node },
    { "SLURM_NTASKS", B, ntasks },
    { "SLURM_NPROCS", B, ntasks },
    { "SLURM_NTASKS_PER_NODE", B, ntasks_per_node },
    { "SLURM_NTASKS_PER_SOCKET", B, ntasks_per_socket },
    { "SLURM_NTASKS_PER_CORE", B, ntasks_per_core },
    { "SLURM_NTASKS_PER_GPU", B, ntasks_per_gpu },
    { "SLURM_CPUS_PER_TASK", B, cpus_per_task },
    { "SLURM_CPUS_PER_GPU", B, cpus_per_gpu },
    { "SLURM_THREADS_PER_CORE", B, threads_per_core },
    { "SLURM_MEM_PER_NODE", B, mem_per_node },
    { "SLURM_MEM_PER_CPU", B, mem_per_cpu },
    { "SLURM_MEM_PER_GPU", B, mem_per_gpu },
    { "SLURM_TRES_PER_TASK", B, tres_per_task },
    { "SLURM_TRES_BIND", B, tres_bind },
    { "SLURM_DISTRIBUTION", B, distribution },
    { "SLURM_DIST_PLANESIZE", B, plane_size },
    { "SLURM_HINT", B, hint },
    { "SBATCH_MEM_BIND", B, mem_bind },
    { "SBATCH_MEM_BIND_LIST", B, mem_bind_list },
    { "SBATCH_MEM_BIND_PREFER", B, mem_bind_prefer },
    { "SBATCH_MEM_BIND_TYPE", B, mem_bind_type },
    { "SBATCH_MEM_BIND_VERBOSE", B, mem_bind_verbose },
    { "SLURM_MEM_BIND", B, mem_bind },
    { "SLURM_OVERCOMMIT", B, overcommit },
    { "SLURM_NETWORK", B, network },
    { "SLURM_CONTAINER", B, container },
    { "SLURM_CONTAINER_ID", B, container_id },
    { "SLURM_PROFILE", B, profile },
    { "SLURM_TOPOLOGY_ADDR", B, topology_addr },
    { "SLURM_TOPOLOGY_ADDR_PATTERN", B, topology_pattern },

    { "SLURM_GPUS", B, gpus },
    { "SLURM_GPUS_PER_SOCKET", B, gpus_per_socket },
    { "SLURM_GPU_BIND", B, gpu_bind },
    { "SLURM_GPU_FREQ", B, gpu_freq },
    { "SLURM_CPU_FREQ_REQ", B, cpu_freq },
    { "SLURM_GPUS_ON_NODE", B, env_gpu_count },
    { "SLURM_SHARDS_ON_NODE", B, env_shards },
    { "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", ALL, env_mps_percent },
    { "SLURM_JOB_GPUS", ALL, env_gpu_indexes },
    { "CUDA_VISIBLE_DEVICES", ALL, env_gpu_cuda },
    { "ROCR_VISIBLE_DEVICES", ALL, env_gpu_rocr },
    { "HIP_VISIBLE_DEVICES", ALL, env_gpu_hip },
    { "GPU_DEVICE_ORDINAL", ALL, env_gpu_other },
    { "ZE_AFFINITY_MASK", B, env_gpu_other },

    { "SLURM_ARRAY_JOB_ID", B, array_job },
    { "SLURM_ARRAY_TASK_ID", B, array_task },
    { "SLURM_ARRAY_TASK_COUNT", B, array_count },
    { "SLURM_ARRAY_TASK_MAX", B, array_max },
    { "SLURM_ARRAY_TASK_MIN", B, array_min },
    { "SLURM_ARRAY_TASK_STEP", B, array_step },

    { "SLURM_GTIDS", B, zero },
    { "SLURM_LOCALID", B, zero },
    { "SLURM_NODEID", B, zero },
    { "SLURM_PROCID", B, zero },
    { "SLURM_PRIO_PROCESS", B, zero },
    { "SLURM_OOM_KILL_STEP", B, oom_kill_step },
    { "SLURM_OOMKILLSTEP", B, oom_asked },
    { "SLURM_STEP_ID", B, step_word },
    { "SLURM_STEPID", B, step_word },
    { "ENVIRONMENT", B, batch_word },
    { "OMPI_MCA_plm_slurm_args", B, ompi_word },
    { "PWD", B, work_dir },
    { "SPUR_JOB", B, spur_job },
    { "SPUR_NODE_SOCKET", B, node_socket },

    { "SPUR_ML_ENV", B, env_ml_flag },
    { "SPUR_ML_PORT", B, env_ml_made_port },
    { "MASTER_ADDR", B, env_ml_address },
    { "MASTER_PORT", B, env_ml_master_port },
    { "WORLD_SIZE", B, env_ml_world },
    { "LOCAL_WORLD_SIZE", B, env_ml_local_world },
    { "RANK", B, env_ml_zero },
    { "LOCAL_RANK", B, env_ml_zero },
    { "NODE_RANK", B, env_ml_zero },

    { "SLURM_SCRIPT_CONTEXT", P, prolog_word },
    { "SLURM_SCRIPT_CONTEXT", E, epilog_word },
    { "SLURM_JOB_EXIT_CODE", E, exit_code },
    { "SLURM_JOB_EXIT_CODE2", E, exit_code2 },
    { "SLURM_JOB_DERIVED_EC", E, derived_code },
};
const size_t env_row_count = ARRAY_LEN(env_rows);
