// SPDX-License-Identifier: Apache-2.0
/*
 * queue_steps.c - columns of squeue --steps
 *
 * A row is a step of srun, as its node told the controller, or the batch script of a job.
 */
#include "base/timefmt.h"
#include "cli/queue.h"
#include "cli/steps.h"
#include "schema/job_view.h"

static const struct queue_step *row_of(const struct field_call *call)
{
    return call->object;
}

static const Job *job_of(const struct field_call *call)
{
    return row_of(call)->job;
}

static bool w_id(const struct field_call *call, struct str *out)
{
    char name[STEPS_NAME_BYTES];

    steps_name(queue_step_number(row_of(call)), name);
    job_add_id(out, job_of(call));
    str_addf(out, ".%s", name);
    return true;
}

static bool w_name(const struct field_call *call, struct str *out)
{
    const StepInfo *info = row_of(call)->info;

    str_add(out, !info ? "batch" : info->name ? info->name : "");
    return true;
}

static bool w_limit(const struct field_call *call, struct str *out)
{
    const StepInfo *info = row_of(call)->info;

    if (info && info->has_time_limit_s && info->time_limit_s > 0)
        timefmt_write_duration(out, info->time_limit_s, TIMEFMT_SHORT);
    else
        str_add(out, "UNLIMITED");
    return true;
}

/* The script runs on the first node. */
static bool w_node(const struct field_call *call, struct str *out)
{
    const Allocation *given = job_status(job_of(call))->allocation;
    const StepInfo *info = row_of(call)->info;

    if (info)
        str_add(out, info->nodes ? info->nodes : "");
    else if (given && given->n_nodes && given->nodes[0]->node)
        str_add(out, given->nodes[0]->node);
    return true;
}

static bool w_used(const struct field_call *call, struct str *out)
{
    const StepInfo *info = row_of(call)->info;
    int64_t used = info ? (call->ctx->now_us - info->started_us) / 1000000
                        : job_used_s(job_of(call), call->ctx->now_us);

    timefmt_write_duration(out, MAX(used, 0), TIMEFMT_SHORT);
    return true;
}

static bool w_partition(const struct field_call *call, struct str *out)
{
    const char *partition = job_status(job_of(call))->partition;

    str_add(out, partition ? partition : "");
    return true;
}

static bool w_start(const struct field_call *call, struct str *out)
{
    const StepInfo *info = row_of(call)->info;

    field_add_moment(out, call->ctx, info ? info->started_us : job_status(job_of(call))->start_us);
    return true;
}

static bool w_state(const struct field_call *call, struct str *out)
{
    const StepInfo *info = row_of(call)->info;
    bool suspended = info ? info->suspended : job_status(job_of(call))->state == JOB_SUSPENDED;

    str_add(out, suspended ? "SUSPENDED" : "RUNNING");
    return true;
}

static bool w_user(const struct field_call *call, struct str *out)
{
    const char *user = job_owner(job_of(call))->user;

    str_add(out, user ? user : "");
    return true;
}

static bool w_uid(const struct field_call *call, struct str *out)
{
    str_add_u64(out, job_owner(job_of(call))->uid);
    return true;
}

static bool w_job(const struct field_call *call, struct str *out)
{
    str_add_u64(out, job_of(call)->id);
    return true;
}

static bool w_tasks(const struct field_call *call, struct str *out)
{
    const StepInfo *info = row_of(call)->info;

    str_add_u64(out, info ? info->ntasks : 1);
    return true;
}

static bool w_cpus(const struct field_call *call, struct str *out)
{
    const StepInfo *info = row_of(call)->info;

    str_add_u64(out, info ? info->cpus : 0);
    return true;
}

static bool w_array_job(const struct field_call *call, struct str *out)
{
    const JobStatus *status = job_status(job_of(call));

    str_add_u64(out, status->has_array_job_id ? status->array_job_id : job_of(call)->id);
    return true;
}

static bool w_array_task(const struct field_call *call, struct str *out)
{
    const JobStatus *status = job_status(job_of(call));

    if (status->has_array_task_id)
        str_add_u64(out, status->array_task_id);
    else
        str_add(out, "N/A");
    return true;
}

static bool w_cluster(const struct field_call *call, struct str *out)
{
    str_add(out, call->ctx->cluster ? call->ctx->cluster : "");
    return true;
}

static bool w_per_node(const struct field_call *call, struct str *out)
{
    const StepInfo *info = row_of(call)->info;

    str_add(out, info && info->tres_per_node ? info->tres_per_node : "N/A");
    return true;
}

static bool w_container(const struct field_call *call, struct str *out)
{
    const char *container = job_spec(job_of(call))->container;

    str_add(out, container ? container : "(null)");
    return true;
}

static bool w_network(const struct field_call *call, struct str *out)
{
    const char *network = job_spec(job_of(call))->network;

    str_add(out, network ? network : "(null)");
    return true;
}

static bool w_cpu_freq(const struct field_call *call, struct str *out)
{
    const StepInfo *info = row_of(call)->info;

    str_add(out, info && info->cpu_freq ? info->cpu_freq : "N/A");
    return true;
}

static bool w_na(const struct field_call *call, struct str *out)
{
    (void)call;
    str_add(out, "N/A");
    return true;
}

static bool w_null(const struct field_call *call, struct str *out)
{
    (void)call;
    str_add(out, "(null)");
    return true;
}

/* clang-format off */
static const struct field rows[] = {
    { .write = w_id, .column = { 'i', "StepID", "STEPID" }, .help = "Job and step." },
    { .write = w_job, .column = { 'A', "JobID", "JOBID" }, .help = "Number of the job." },
    { .write = w_name, .column = { 'j', "StepName", "NAME" }, .help = "Name of the step." },
    { .write = w_limit, .column = { 'l', "TimeLimit", "TIME_LIMIT" }, .help = "Limit of the step itself." },
    { .write = w_used, .column = { 'M', "TimeUsed", "TIME" }, .help = "Time it has run." },
    { .write = w_node, .column = { 'N', "NodeList", "NODELIST" }, .help = "Nodes it runs on." },
    { .write = w_partition, .column = { 'P', "Partition", "PARTITION" }, .help = "Partition of the job." },
    { .write = w_start, .column = { 'S', "StartTime", "START_TIME" }, .help = "When it started." },
    { .write = w_state, .column = { 'T', "StepState", "STATE" }, .help = "State of the step." },
    { .write = w_uid, .column = { 'U', "UserID", "UID" }, .help = "Number of its owner." },
    { .write = w_user, .column = { 'u', "UserName", "USER" }, .help = "Its owner." },
    { .write = w_tasks, .column = { 'n', "NumTasks", "TASKS" }, .help = "Number of tasks." },
    { .write = w_cpus, .column = { 'C', "NumCPUs", "CPUS" }, .help = "CPUs of the step." },
    { .write = w_per_node, .column = { 'b', "tres-per-node", "TRES_PER_NODE" }, .help = "Generic resources for each node." },
    { .write = w_array_job, .column = { 0, "ArrayJobID", "ARRAY_JOB_ID" }, .help = "Number of the array." },
    { .write = w_array_task, .column = { 0, "ArrayTaskID", "ARRAY_TASK_ID" }, .help = "Task of the array." },
    { .write = w_cluster, .column = { 0, "Cluster", "CLUSTER" }, .help = "Name of the cluster." },
    { .write = w_container, .column = { 0, "Container", "CONTAINER" }, .help = "Container bundle." },
    { .write = w_null, .column = { 0, "ContainerID", "CONTAINERID" }, .help = "Number of the container." },
    { .write = w_network, .column = { 0, "Network", "NETWORK" }, .help = "Network of the step." },
    { .write = w_cpu_freq, .column = { 0, "CPUFreq", "CPU_FREQ" }, .help = "CPU frequency asked for." },
    { .write = w_na, .column = { 0, "cpus-per-tres", "CPUS_PER_TRES" }, .help = "CPUs for each resource." },
    { .write = w_na, .column = { 0, "mem-per-tres", "MEM_PER_TRES" }, .help = "Memory for each resource." },
    { .write = w_na, .column = { 0, "tres-bind", "TRES_BIND" }, .help = "Binding of tasks to resources." },
    { .write = w_na, .column = { 0, "tres-freq", "TRES_FREQ" }, .help = "Frequency of resources." },
    { .write = w_na, .column = { 0, "tres-per-job", "TRES_PER_JOB" }, .help = "Generic resources of the job." },
    { .write = w_na, .column = { 0, "tres-per-socket", "TRES_PER_SOCKET" }, .help = "Generic resources for each socket." },
    { .write = w_na, .column = { 0, "tres-per-step", "TRES_PER_STEP" }, .help = "Generic resources of the step." },
    { .write = w_na, .column = { 0, "tres-per-task", "TRES_PER_TASK" }, .help = "Generic resources for each task." },
};
/* clang-format on */

const struct field_table step_fields = { .what = "step", .rows = rows, .count = ARRAY_LEN(rows) };

uint32_t queue_step_number(const struct queue_step *row)
{
    return row->info && row->info->id ? row->info->id->step : STEPS_BATCH;
}
