// SPDX-License-Identifier: Apache-2.0
/*
 * control_steps.c - scontrol show step, listpids and liststeps
 *
 * What runs anywhere is asked of the controller, processes are asked of the spurd of this host.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/release.h"
#include "base/timefmt.h"
#include "cli/control.h"
#include "cli/queue.h"
#include "cli/steps.h"
#include "client/client.h"
#include "schema/field.h"
#include "schema/freq.h"
#include "schema/job_view.h"
#include "schema/jsonw.h"
#include "sys/host.h"

/* ---- show step ---- */

static void show_info(const struct control *control, const StepInfo *info, const Job *job,
                      const struct field_ctx *ctx)
{
    const char *gap = control->one_line ? " " : "\n   ";
    CLEANUP(str_done) struct str start = { 0 }, limit = { 0 }, label = { 0 }, asked = { 0 };
    const char *partition = job_status(job)->partition;
    char name[STEPS_NAME_BYTES];

    steps_name(info->id->step, name);
    field_add_moment(&start, ctx, info->started_us);
    if (info->has_time_limit_s && info->time_limit_s > 0)
        timefmt_write_duration(&limit, info->time_limit_s, TIMEFMT_LONG);
    else
        str_add(&limit, "UNLIMITED");
    job_add_id(&label, job);
    printf("StepId=%s.%s UserId=%u StartTime=%s TimeLimit=%s%s", str_text(&label), name,
           job_owner(job)->uid, str_text(&start), str_text(&limit), gap);
    printf("State=%s Partition=%s NodeList=%s%s", info->suspended ? "SUSPENDED" : "RUNNING",
           partition ? partition : "", info->nodes ? info->nodes : "", gap);
    printf("Nodes=%u CPUs=%u Tasks=%u Name=%s Network=(null)%s", info->node_count, info->cpus,
           info->ntasks, info->name ? info->name : "", gap);
    printf("TRES=%s%s", info->tres ? info->tres : "(null)", gap);
    struct freq freq;
    if (freq_read(info->cpu_freq, &freq, NULL) == 0)
        freq_add(&freq, &asked);
    printf("ResvPorts=%s%sCPUFreqReq=%s",
           str_is_empty(info->resv_ports) ? "(null)" : info->resv_ports, gap,
           asked.len ? str_text(&asked) : "Default");
    if (info->distribution)
        printf(" Dist=%s", info->distribution);
    printf("%sSrunHost:Pid=%s:%u\n%s", gap, info->host ? info->host : "(null)", info->pid,
           control->one_line ? "" : "\n");
}

static bool batch_info(const Job *job, StepInfo *out)
{
    const JobStatus *status = job_status(job);
    const Allocation *given = status->allocation;
    const JobSpec *spec = job->spec;

    if ((status->state != JOB_RUNNING && status->state != JOB_SUSPENDED) || !given ||
        !given->n_nodes || (spec && spec->has_batch && !spec->batch))
        return false;
    out->name = (char *)"batch";
    out->started_us = status->start_us;
    out->nodes = given->nodes[0]->node;
    out->node_count = out->ntasks = 1;
    out->suspended = status->state == JOB_SUSPENDED;
    return true;
}

struct wanted {
    uint32_t step;
    bool has_step;
    char *id;        /* "12", "12+1"; NULL: all */
    steps_jobs jobs; /* that it stands for */
    unsigned shown;
    struct jsonw json;
    struct str out;
};

static void show_one(const struct control *control, const StepInfo *info, bool script,
                     const Job *job, const struct field_ctx *ctx, struct wanted *wanted)
{
    wanted->shown++;
    if (control->json)
        steps_add_json(&wanted->json, &(struct queue_step){ job, script ? NULL : info }, ctx);
    else
        show_info(control, info, job, ctx);
}

static void show_of_job(struct control *control, const Job *job, const ListStepsReply *steps,
                        const struct field_ctx *ctx, struct wanted *wanted)
{
    StepInfo batch = STEP_INFO__INIT;
    StepId id = STEP_ID__INIT;

    id.job_id = job->id;
    id.step = STEPS_BATCH;
    batch.id = &id;
    /* The script first, as Slurm has it. */
    if (batch_info(job, &batch) && (!wanted->has_step || wanted->step == STEPS_BATCH))
        show_one(control, &batch, true, job, ctx, wanted);
    for (size_t i = 0; i < steps->n_steps; i++) {
        const StepInfo *info = steps->steps[i];
        if (!info->id || info->id->job_id != job->id ||
            (wanted->has_step && info->id->step != wanted->step))
            continue;
        show_one(control, info, false, job, ctx, wanted);
    }
}

static int each_job(struct control *control, struct wanted *wanted, struct err *err)
{
    ListJobsRequest request = LIST_JOBS_REQUEST__INIT;
    struct field_ctx ctx = cli_field_ctx(0);
    ListStepsReply *steps;
    ProtobufCMessage *message;
    int next;

    if (wanted->id && steps_find_jobs(&control->cli, wanted->id, &wanted->jobs, err) < 0)
        return -1;
    if (steps_list(&control->cli, wanted->jobs.items, wanted->jobs.len, &steps, err) < 0)
        return -1;
    request.n_ids = wanted->id ? 1 : 0;
    request.ids = &wanted->id;
    request.has_with_spec = request.with_spec = true;
    request.has_hidden_too = request.hidden_too = true;
    if (cli_connect(&control->cli, err) < 0)
        return -1;
    struct client_stream *stream = client_stream_open(
        control->cli.client,
        &(struct client_stream_options){ .path = "/spur.Controller/ListJobs",
                                         .message = &request.base,
                                         .reply_type = &list_jobs_reply__descriptor },
        err);
    if (!stream)
        return -1;
    while ((next = client_stream_next(stream, &control->cli.arena, &message, err)) ==
           CLIENT_MESSAGE) {
        const ListJobsReply *reply = (const ListJobsReply *)message;
        ctx.now_us = reply->now_us;
        for (size_t i = 0; i < reply->n_jobs; i++)
            show_of_job(control, reply->jobs[i], steps, &ctx, wanted);
    }
    client_stream_free(stream);
    return next == CLIENT_ENDED ? 0 : -1;
}

static void wanted_done(struct wanted *wanted)
{
    vec_done(&wanted->jobs);
    str_done(&wanted->out);
}

static int show_steps_of(struct control *control, int argc, char **argv)
{
    CLEANUP(wanted_done) struct wanted wanted = { 0 };
    struct err err = { 0 };
    uint32_t job;

    if (argc && !steps_read_id(argv[0], &job, &wanted.has_step, &wanted.step)) {
        fprintf(stderr, "slurm_get_job_steps error: %s\n", err_text(ERR_INVALID_JOB_ID));
        return 1;
    }
    if (argc)
        wanted.id = arena_printf(&control->cli.arena, "%.*s", (int)strcspn(argv[0], "."), argv[0]);
    (control->yaml ? jsonw_init_yaml : jsonw_init)(&wanted.json, &wanted.out);
    jsonw_object(&wanted.json, NULL);
    jsonw_list(&wanted.json, "steps");
    if (each_job(control, &wanted, &err) < 0) {
        fprintf(stderr, "slurm_get_job_steps error: %s\n", err.text);
        return 1;
    }
    if (control->json) {
        jsonw_list_end(&wanted.json);
        cli_json_end(&wanted.json, control->argc, control->argv, NULL);
        cli_flush(&wanted.out);
        return 0;
    }
    if (wanted.shown)
        return 0;
    if (wanted.id) {
        fprintf(stderr, "Job step %s not found\n", argv[0]);
        return 1;
    }
    puts("No job steps in the system");
    return 0;
}

int control_show_steps(struct control *control, int argc, char **argv)
{
    size_t count;
    char **ids = control_names(control, argc, argv, &count);
    int code = 0;

    if (count < 2 || control->json)
        return show_steps_of(control, argc, argv);
    for (size_t i = 0; i < count; i++)
        code |= show_steps_of(control, 1, &ids[i]);
    return code;
}

/* ---- this node ---- */

/* By the socket of the job we are in, else of the spurd that owns this host's usual place. */
static struct client *connect_here(struct err *err)
{
    const char *socket = getenv("SPUR_NODE_SOCKET");

    return client_new(
        &(struct client_options){ .addresses = socket ? socket : "unix:/run/spur/spurd.sock",
                                  .token = "",
                                  .retry_ms = 1 },
        err);
}

static int ask_here(struct control *control, int argc, char **argv, JobStepsReply **out)
{
    JobStepsRequest request = JOB_STEPS_REQUEST__INIT;
    struct err err = { 0 };
    bool has_step = false;
    uint32_t step = 0;

    if (argc && strcmp(argv[0], "*") != 0) {
        if (!steps_read_id(argv[0], &request.job_id, &has_step, &step)) {
            fprintf(stderr, "Invalid job id %s\n", argv[0]);
            return 1;
        }
        request.has_job_id = true;
    }
    request.has_step = has_step;
    request.step = step;
    request.has_usage = request.usage = true;
    struct client *node = connect_here(&err);
    int ret = -1;
    if (node)
        ret = client_call(node, "/spur.NodeAccess/JobSteps", &request.base,
                          &job_steps_reply__descriptor, &control->cli.arena,
                          (ProtobufCMessage **)out, &err);
    client_free(node);
    if (ret < 0)
        fprintf(stderr, "Unable to ask the spurd of this node: %s\n", err.text);
    return ret < 0;
}

int control_listpids(struct control *control, int argc, char **argv)
{
    JobStepsReply *reply;

    if (ask_here(control, argc, argv, &reply))
        return 1;
    if (argc && reply->n_steps == 0) {
        fprintf(stderr, "Job step %s does not exist on this node.\n", argv[0]);
        return 1;
    }
    printf("PID      JOBID    STEPID   LOCALID GLOBALID\n");
    for (size_t i = 0; i < reply->n_steps; i++) {
        const StepHere *here = reply->steps[i];
        for (size_t k = 0; k < here->n_tasks; k++) {
            const StepTaskUsage *task = here->tasks[k];
            for (size_t p = 0; p < task->n_pids; p++) {
                if (p == 0)
                    printf("%-8u %-8u %-8s %-7zu %-8u\n", task->pids[p], here->id->job_id,
                           here->name, k, task->task);
                else
                    printf("%-8u %-8u %-8s %-7s %-8s\n", task->pids[p], here->id->job_id,
                           here->name, "-", "-");
            }
        }
    }
    return 0;
}

int control_liststeps(struct control *control, int argc, char **argv)
{
    JobStepsReply *reply;

    (void)argc, (void)argv;
    if (ask_here(control, 0, NULL, &reply))
        return 1;
    printf("JOBID      STEPID    \n");
    for (size_t i = 0; i < reply->n_steps; i++) {
        if (reply->steps[i]->here)
            printf("%-10u %-10s\n", reply->steps[i]->id->job_id, reply->steps[i]->name);
    }
    return 0;
}

int control_listjobs(struct control *control, int argc, char **argv)
{
    JobStepsReply *reply;
    uint32_t last = 0;

    (void)argc, (void)argv;
    if (ask_here(control, 0, NULL, &reply))
        return 1;
    printf("JOBID     \n");
    for (size_t i = 0; i < reply->n_steps; i++) {
        if (!reply->steps[i]->here || reply->steps[i]->id->job_id == last)
            continue;
        last = reply->steps[i]->id->job_id;
        printf("%-10u\n", last);
    }
    return 0;
}

/* The job that has the process on this node; 0: none. */
static uint32_t job_of_pid(const JobStepsReply *reply, uint32_t pid)
{
    for (size_t i = 0; i < reply->n_steps; i++) {
        const StepHere *here = reply->steps[i];

        for (size_t k = 0; k < here->n_tasks; k++) {
            for (size_t p = 0; p < here->tasks[k]->n_pids; p++) {
                if (here->tasks[k]->pids[p] == pid)
                    return here->id->job_id;
            }
        }
    }
    return 0;
}

int control_pidinfo(struct control *control, int argc, char **argv)
{
    GetJobRequest request = GET_JOB_REQUEST__INIT;
    struct field_ctx ctx = cli_field_ctx(0);
    CLEANUP(str_done) struct str end = { 0 };
    GetJobReply *job;
    JobStepsReply *reply;
    struct err err = { 0 };
    uint64_t pid;

    if (!str_to_u64(argv[0], INT32_MAX, &pid)) {
        fprintf(stderr, "invalid pid: %s\n", argv[0]);
        return 1;
    }
    if (ask_here(control, 0, NULL, &reply))
        return 1;
    uint32_t id = job_of_pid(reply, (uint32_t)pid);
    request.id = arena_printf(&control->cli.arena, "%u", id);
    if (!id ||
        cli_call(&control->cli, "GetJob", &request.base, &get_job_reply__descriptor,
                 (ProtobufCMessage **)&job, &err) < 0 ||
        !job->n_jobs) {
        fprintf(stderr, "slurm_get_end_time error: %s\n",
                id ? err.text : err_text(ERR_INVALID_JOB_ID));
        return 1;
    }
    int64_t end_us = job_end_us(job->jobs[0], ctx.now_us);
    field_add_moment(&end, &ctx, end_us);
    printf("Slurm JobId=%u ends at %s\nslurm_get_rem_time is %lld\n", id, str_text(&end),
           end_us ? (long long)((end_us - ctx.now_us) / 1000000) : (long long)UINT32_MAX);
    return 0;
}

int control_notify(struct control *control, int argc, char **argv)
{
    SignalStepRequest request = SIGNAL_STEP_REQUEST__INIT;
    CLEANUP(str_done) struct str text = { 0 };
    ProtobufCMessage *reply;
    struct err err = { 0 };

    for (int i = 1; i < argc; i++)
        str_addf(&text, "%s%s", i > 1 ? " " : "", argv[i]);
    request.id = argv[0];
    request.text = (char *)str_text(&text);
    if (cli_call(&control->cli, "SignalStep", &request.base, &done_reply__descriptor, &reply,
                 &err) == 0)
        return 0;
    fprintf(stderr, "job notify failure: %s\n", err.text);
    return 1;
}

int control_show_slurmd(struct control *control, int argc, char **argv)
{
    JobStepsReply *reply;
    struct str steps = { 0 };
    char host[HOST_NAME_BYTES];

    (void)argc, (void)argv;
    if (ask_here(control, 0, NULL, &reply)) {
        fprintf(stderr, "slurm_load_slurmd_status: the agent of this host does not answer\n");
        return 1;
    }
    host_short(host);
    for (size_t i = 0; i < reply->n_steps; i++) {
        if (reply->steps[i]->here)
            str_addf(&steps, "%s%u.%s", steps.len ? "," : "", reply->steps[i]->id->job_id,
                     reply->steps[i]->name);
    }
    printf("Active Steps             = %s\n", steps.len ? str_text(&steps) : "NONE");
    printf("Actual CPUs              = %ld\n", sysconf(_SC_NPROCESSORS_ONLN));
    printf("Actual real memory       = %lld MB\n",
           (long long)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / (1024 * 1024));
    printf("Hostname                 = %s\n", host);
    printf("Version                  = %s\n\n", SLURM_RELEASE);
    str_done(&steps);
    return 0;
}
