// SPDX-License-Identifier: Apache-2.0
/*
 * queue_steps.c - columns of squeue --steps
 *
 * A batch script is a step of its job. Steps of srun are not listed yet, because the controller
 * does not know of them.
 */
#include "base/timefmt.h"
#include "cli/queue.h"
#include "schema/job_view.h"

static const Job *job_of(const struct field_call *call)
{
    return call->object;
}

static bool w_id(const struct field_call *call, struct str *out)
{
    job_add_id(out, job_of(call));
    str_add(out, ".batch");
    return true;
}

static bool w_batch(const struct field_call *call, struct str *out)
{
    str_add(out, "batch");
    return true;
}

static bool w_unlimited(const struct field_call *call, struct str *out)
{
    str_add(out, "UNLIMITED");
    return true;
}

/* The script runs on the first node. */
static bool w_node(const struct field_call *call, struct str *out)
{
    const Allocation *given = job_status(job_of(call))->allocation;

    if (given && given->n_nodes && given->nodes[0]->node)
        str_add(out, given->nodes[0]->node);
    return true;
}

static bool w_used(const struct field_call *call, struct str *out)
{
    timefmt_write_duration(out, job_used_s(job_of(call), call->ctx->now_us), TIMEFMT_SHORT);
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
    field_add_moment(out, call->ctx, job_status(job_of(call))->start_us);
    return true;
}

static bool w_state(const struct field_call *call, struct str *out)
{
    str_add(out, job_status(job_of(call))->state == JOB_SUSPENDED ? "SUSPENDED" : "RUNNING");
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

static bool w_one(const struct field_call *call, struct str *out)
{
    str_add_char(out, '1');
    return true;
}

/* clang-format off */
static const struct field rows[] = {
    { .write = w_id, .column = { 'i', "StepID", "STEPID" }, .help = "Job and step." },
    { .write = w_job, .column = { 'A', "JobID", "JOBID" }, .help = "Number of the job." },
    { .write = w_batch, .column = { 'j', "StepName", "NAME" }, .help = "Name of the step." },
    { .write = w_unlimited, .column = { 'l', "TimeLimit", "TIME_LIMIT" }, .help = "Limit of the step itself." },
    { .write = w_used, .column = { 'M', "TimeUsed", "TIME" }, .help = "Time it has run." },
    { .write = w_node, .column = { 'N', "NodeList", "NODELIST" }, .help = "Nodes it runs on." },
    { .write = w_partition, .column = { 'P', "Partition", "PARTITION" }, .help = "Partition of the job." },
    { .write = w_start, .column = { 'S', "StartTime", "START_TIME" }, .help = "When it started." },
    { .write = w_state, .column = { 'T', "StepState", "STATE" }, .help = "State of the step." },
    { .write = w_uid, .column = { 'U', "UserID", "UID" }, .help = "Number of its owner." },
    { .write = w_user, .column = { 'u', "UserName", "USER" }, .help = "Its owner." },
    { .write = w_one, .column = { 'n', "NumTasks", "TASKS" }, .help = "Number of tasks." },
};
/* clang-format on */

const struct field_table step_fields = { .what = "step", .rows = rows, .count = ARRAY_LEN(rows) };
