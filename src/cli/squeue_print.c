// SPDX-License-Identifier: Apache-2.0
/*
 * squeue_print.c - which jobs squeue shows, and how
 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/squeue.h"
#include "cli/steps.h"
#include "schema/job_view.h"
#include "schema/jsonw.h"

/* -s 12, -s 12.batch, -s 12_3.0; a row of no step: any of the job's. */
static bool step_listed(const char *steps, const Job *job, const struct queue_step *row)
{
    const char *cursor = steps;
    struct span word;
    struct str id = { 0 };
    char name[STEPS_NAME_BYTES] = "";
    bool found = false;

    job_add_id(&id, job);
    if (row)
        steps_name(queue_step_number(row), name);
    while (!found && str_next(&cursor, ",", &word)) {
        bool same = word.len >= id.len && strncmp(word.ptr, str_text(&id), id.len) == 0;
        struct span rest = { word.ptr + id.len, same ? word.len - id.len : 0 };
        found = same && (rest.len == 0 ||
                         (rest.ptr[0] == '.' &&
                          (!row || span_eq((struct span){ rest.ptr + 1, rest.len - 1 }, name))));
    }
    str_done(&id);
    return found;
}

static bool has_script(const Job *job)
{
    return !job->spec || !job->spec->has_batch || job->spec->batch;
}

static bool shown(const struct squeue *squeue, const Job *job, int64_t now_us)
{
    const struct squeue_args *args = &squeue->args;
    const JobStatus *status = job_status(job);
    int64_t used = job_used_s(job, now_us);

    if (!queue_state_matches(&squeue->states, job) ||
        (args->jobs && !queue_id_matches(args->jobs, job)))
        return false;
    if (args->not_me && job_owner(job)->uid == geteuid())
        return false;
    if ((args->over_s && used <= args->over_s) || (args->under_s && used >= args->under_s))
        return false;
    if ((args->over_s || args->under_s) && status->state != JOB_RUNNING)
        return false;
    if (args->steps && !step_listed(args->steps, job, NULL))
        return false;
    return !args->step_flag || status->state == JOB_RUNNING || status->state == JOB_SUSPENDED;
}

/* The priority that the job has in the one partition that its line is about. */
static void set_priority(Job *job)
{
    JobStatus *status = job->status;

    for (size_t i = 0; i < status->n_partition_priorities; i++) {
        const PriorityParts *parts = status->partition_priorities[i];
        if (str_eq(parts->partition_name, job->spec->partition) && status->priority)
            status->priority = parts->total;
    }
}

/* -P: a job that waits in several partitions has a line for each. */
void squeue_add(struct squeue *squeue, queue_jobs *jobs, const Job *job, int64_t now_us)
{
    const char *cursor = job_spec(job)->partition;
    struct arena *arena = &squeue->round;
    struct span word;

    if (!shown(squeue, job, now_us))
        return;
    if (!squeue->args.priority || job_status(job)->state != JOB_PENDING || !cursor ||
        !strchr(cursor, ',')) {
        vec_push(jobs, job);
        return;
    }
    while (str_next(&cursor, ",", &word)) {
        Job *one = arena_copy(arena, job, sizeof(*job));

        one->spec = arena_copy(arena, job->spec, sizeof(*job->spec));
        one->spec->partition = arena_strndup(arena, word.ptr, word.len);
        one->status = arena_copy(arena, job->status, sizeof(*job->status));
        set_priority(one);
        vec_push(jobs, one);
    }
}

static const char *or_null(const char *text)
{
    return text ? text : "(null)";
}

static const char *yes(bool value)
{
    return value ? "true" : "false";
}

static void print_args(const struct squeue_args *args)
{
    static const char line[] = "-----------------------------";

    printf("%s\nall         = %s\narray       = %s\nfederation  = false\n", line, yes(args->all),
           yes(args->array));
    printf("format      = %s\niterate     = %u\njob_flag    = %d\njobs        = %s\n",
           or_null(args->format ? args->format : args->names_format), args->iterate_s,
           args->job_flag, or_null(args->jobs));
    printf("licenses    = %s\nlocal       = false\nnames       = %s\nnodes       = %s\n",
           or_null(args->licenses), or_null(args->names), args->nodes ? args->nodes : "");
    printf("only_job_state = %s\npartitions  = %s\npriority    = %s\nreservation = %s\n",
           yes(args->only_state), or_null(args->partitions), yes(args->priority),
           or_null(args->reservation));
    printf("sibling      = false\nsort        = %s\nstart_flag  = %d\nstates      = %s\n",
           or_null(args->sort), args->start, or_null(args->states));
    printf("step_flag   = %d\nsteps       = %s\nusers       = %s\nverbose     = %u\n%s\n\n\n",
           args->step_flag, or_null(args->steps), or_null(args->users), args->verbose, line);
}

static void print_date(int64_t now_us)
{
    time_t now = (time_t)(now_us / 1000000);
    struct tm parts;
    char text[64];

    localtime_r(&now, &parts);
    if (strftime(text, sizeof(text), "%a %b %d %H:%M:%S %Y", &parts))
        puts(text);
}

/* By their numbers, of which the script has the highest. */
static void each_step(struct squeue *squeue, const Job *job,
                      void (*each)(struct squeue *squeue, const struct queue_step *row,
                                   const struct field_ctx *ctx, void *to),
                      const struct field_ctx *ctx, void *to)
{
    const char *wanted = squeue->args.steps;
    struct queue_step script = { job, NULL };

    for (size_t i = 0; squeue->steps && i < squeue->steps->n_steps; i++) {
        struct queue_step row = { job, squeue->steps->steps[i] };
        if (row.info->id && row.info->id->job_id == job->id &&
            (!wanted || step_listed(wanted, job, &row)))
            each(squeue, &row, ctx, to);
    }
    if (has_script(job) && (!wanted || step_listed(wanted, job, &script)))
        each(squeue, &script, ctx, to);
}

static void add_step(struct squeue *squeue, const struct queue_step *row,
                     const struct field_ctx *ctx, void *out)
{
    columns_add_row(&squeue->columns, row, ctx, out);
}

static void add_step_json(struct squeue *squeue, const struct queue_step *row,
                          const struct field_ctx *ctx, void *json)
{
    (void)squeue;
    steps_add_json(json, row, ctx);
}

static void print_json(struct squeue *squeue, const queue_jobs *jobs, const struct field_ctx *ctx)
{
    struct str out = { 0 };
    struct jsonw json;

    cli_json_begin(&json, &out, squeue->args.yaml, squeue->argv,
                   squeue->args.step_flag ? NULL : "openapi_job_info_resp");
    jsonw_list(&json, squeue->args.step_flag ? "steps" : "jobs");
    for (size_t i = 0; i < jobs->len; i++) {
        if (squeue->args.step_flag) {
            each_step(squeue, jobs->items[i], add_step_json, ctx, &json);
        } else {
            jsonw_object(&json, NULL);
            field_add_json(&job_fields, jobs->items[i], ctx, &json);
            jsonw_object_end(&json);
        }
        if (out.len > 1 << 16 && !cli_flush(&out))
            break;
    }
    jsonw_list_end(&json);
    if (!squeue->args.step_flag) {
        jsonw_set(&json, "last_backfill", true, false, 0);
        jsonw_set(&json, "last_update", true, false, ctx->now_us / 1000000);
    }
    cli_json_end(&json, squeue->argc, squeue->argv, ctx->cluster);
    cli_flush(&out);
    str_done(&out);
}

static int print_table(struct squeue *squeue, queue_jobs *jobs, const struct field_ctx *ctx)
{
    struct str out = { 0 };
    struct err err = { 0 };
    int code = 0;

    if (squeue->args.verbose)
        print_args(&squeue->args);
    if (squeue->args.long_form || squeue->args.iterate_s || squeue->args.verbose)
        print_date(ctx->now_us);
    if (squeue->args.verbose)
        printf("last_update_time=0 records=%zu\n", jobs->len);
    if (!squeue->args.no_header)
        columns_add_header(&squeue->columns, &out);
    if (queue_sort(jobs, squeue->sort, ctx, &err) < 0) {
        cli_flush(&out);
        cli_error(&squeue->cli, "Invalid sort specification: %s", err.text);
        code = 1;
    } else {
        vec_each (const Job *, job, jobs) {
            if (squeue->args.step_flag)
                each_step(squeue, *job, add_step, ctx, &out);
            else
                columns_add_row(&squeue->columns, *job, ctx, &out);
            if (out.len > 1 << 16 && !cli_flush(&out))
                break;
        }
    }
    cli_flush(&out);
    str_done(&out);
    return code;
}

int squeue_print(struct squeue *squeue, queue_jobs *jobs, const struct field_ctx *now)
{
    struct field_ctx ctx = *now;

    ctx.noconvert = squeue->args.noconvert;
    ctx.expand = squeue->args.expand;
    if (squeue->args.has_json) {
        print_json(squeue, jobs, &ctx);
        return 0;
    }
    return print_table(squeue, jobs, &ctx);
}
