// SPDX-License-Identifier: Apache-2.0
/*
 * steps_json.c - a step that runs, as Slurm's commands write it in JSON
 */
#include "cli/queue.h"
#include "cli/steps.h"
#include "schema/job_view.h"
#include "schema/jsonw.h"

enum { NO_TASK_ID = 0xfffffffe };

/* Batch scripts have frequencies that are set and 0, steps none. */
static void add_frequency(struct jsonw *json, bool batch)
{
    static const char *const keys[] = { "min", "max", "governor" };

    jsonw_object(json, "cpu");
    jsonw_object(json, "frequency");
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        jsonw_set(json, keys[i], batch, false, 0);
    jsonw_object_end(json);
    jsonw_object_end(json);
}

static void add_tres(struct jsonw *json, const StepInfo *info)
{
    static const char *const keys[] = { "cpu", "memory", "step", "node", "socket", "task" };

    jsonw_object(json, "tres");
    jsonw_object(json, "per");
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        jsonw_text(json, keys[i], info && str_eq(keys[i], "node") ? info->tres_per_node : NULL);
    jsonw_object_end(json);
    jsonw_text(json, "allocation", info ? info->tres : NULL);
    jsonw_text(json, "binding", NULL);
    jsonw_text(json, "frequency", NULL);
    jsonw_object_end(json);
}

static void add_time(struct jsonw *json, const struct queue_step *row, const struct field_ctx *ctx)
{
    const StepInfo *info = row->info;
    int64_t start_us = info ? info->started_us : job_status(row->job)->start_us;
    int64_t used_s = info ? (ctx->now_us - start_us) / 1000000 : job_used_s(row->job, ctx->now_us);
    bool limited = info && info->has_time_limit_s && info->time_limit_s > 0;

    jsonw_object(json, "time");
    jsonw_set(json, "running", true, false, MAX(used_s, 0));
    jsonw_set(json, "start", true, false, start_us / 1000000);
    jsonw_set(json, "limit", limited, !limited, limited ? info->time_limit_s / 60 : 0);
    jsonw_object_end(json);
}

static void add_id(struct jsonw *json, const struct queue_step *row)
{
    CLEANUP(str_done) struct str text = { 0 };
    char name[STEPS_NAME_BYTES];

    steps_name(queue_step_number(row), name);
    job_add_id(&text, row->job);
    str_addf(&text, ".%s", name);
    jsonw_text(json, "id", str_text(&text));
}

static void add_files(struct jsonw *json, const StepInfo *info)
{
    static const char *const keys[] = { "stderr",         "stdin",           "stdout",
                                        "stdin_expanded", "stdout_expanded", "stderr_expanded" };

    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        jsonw_text(json, keys[i], NULL); /* a step's streams are its srun's */
    jsonw_text(json, "submit_line", info ? info->submit_line : NULL);
}

void steps_add_json(struct jsonw *json, const struct queue_step *row, const struct field_ctx *ctx)
{
    const StepInfo *info = row->info;
    const JobStatus *status = job_status(row->job);
    const Allocation *given = status->allocation;
    const char *first = given && given->n_nodes ? given->nodes[0]->node : NULL;
    bool suspended = info ? info->suspended : status->state == JOB_SUSPENDED;

    jsonw_object(json, NULL);
    jsonw_object(json, "array");
    jsonw_number(json, "job_id", status->has_array_task_id ? status->array_job_id : 0);
    jsonw_number(json, "task_id", status->has_array_task_id ? status->array_task_id : NO_TASK_ID);
    jsonw_object_end(json);
    jsonw_text(json, "cluster", ctx->cluster);
    jsonw_text(json, "container", job_spec(row->job)->container);
    jsonw_text(json, "container_id", NULL);
    add_frequency(json, !info);
    add_tres(json, info);
    jsonw_text(json, "name", info ? info->name : "batch");
    jsonw_text(json, "network", job_spec(row->job)->network);
    jsonw_text(json, "nodes", info ? info->nodes : first);
    jsonw_number(json, "number_cpus", info ? info->cpus : 0);
    jsonw_number(json, "number_tasks", info ? info->ntasks : 1);
    jsonw_text(json, "partition", status->partition);
    jsonw_text(json, "reserved_ports", NULL);
    add_time(json, row, ctx);
    jsonw_text(json, "runtime", NULL);
    jsonw_object(json, "srun");
    jsonw_text(json, "host", info ? info->host : NULL);
    jsonw_number(json, "pid", info ? info->pid : 0);
    jsonw_object_end(json);
    jsonw_list(json, "state");
    jsonw_text(json, NULL, suspended ? "SUSPENDED" : "RUNNING");
    jsonw_list_end(json);
    add_id(json, row);
    add_files(json, info);
    jsonw_object(json, "task");
    jsonw_text(json, "distribution", info && info->distribution ? info->distribution : "Unknown");
    jsonw_object_end(json);
    jsonw_text(json, "user", job_owner(row->job)->user);
    jsonw_object_end(json);
}
