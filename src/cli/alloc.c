// SPDX-License-Identifier: Apache-2.0
/*
 * alloc.c - an allocation as srun and salloc get it, hold it and give it back
 */
#include "cli/alloc.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hostlist.h"
#include "base/limits.h"
#include "base/timefmt.h"
#include "client/client.h"
#include "schema/het.h"
#include "schema/job_view.h"
#include "schema/names.h"
#include "schema/reasons.h"
#include "sys/clock.h"
#include "sys/host.h"

bool alloc_given(const struct job_request *request, const char *name, const char **value)
{
    vec_each (struct job_request_given, given, &request->given) {
        if (given->level != LEVEL_ARGV || strcmp(given->row->name, name) != 0)
            continue;
        if (value)
            *value = given->value;
        return true;
    }
    return false;
}

static void set_text(char **at, const char *text)
{
    if (!*at)
        *at = mem_strdup(text);
}

void alloc_fill_spec(struct job_request *request, const char *name, char **argv, int argc)
{
    JobSpec *spec = request->spec;
    char host[HOST_NAME_BYTES], cwd[LIMIT_PATH_BYTES];
    struct str line = { 0 };
    pid_t session = getsid(0);

    host_short(host);
    set_text(&spec->name, name);
    set_text(&spec->work_dir, getcwd(cwd, sizeof(cwd)) ? cwd : "/");
    set_text(&spec->alloc_node, host);
    for (int i = 0; i < argc && line.len < LIMIT_COMMENT_BYTES; i++)
        str_addf(&line, "%s%s", i ? " " : "", i ? argv[i] : cli_name(argv));
    set_text(&spec->submit_line, str_text(&line));
    str_done(&line);
    spec->has_batch = true;
    spec->batch = false;
    spec->has_alloc_sid = session > 0;
    spec->alloc_sid = (uint32_t)MAX(session, 0);
}

/* What the controller said, its own words first, then the general text. */
static int refused(struct alloc *alloc, const struct err *err, bool test_only)
{
    const char *general = err_text(err->code);

    if (err->text[0] && strcmp(err->text, general) != 0)
        cli_error(alloc->cli, "%s", err->text);
    else if (err->code == ERR_GRES) {
        cli_error(alloc->cli, "%s", general);
        return cli_error_code();
    }
    if (test_only)
        fprintf(stderr, "allocation failure: %s\n", general);
    else if (alloc->is_salloc)
        cli_error(alloc->cli, "Job submit/allocate failed: %s", general);
    else
        cli_error(alloc->cli, "Unable to allocate resources: %s", general);
    return cli_error_code();
}

static void say_planned(struct alloc *alloc, const SubmitJobReply *reply)
{
    struct str when = { 0 };

    timefmt_write_point(&when, reply->planned_start_us / 1000000, clock_wall_us() / 1000000,
                        getenv("SLURM_TIME_FORMAT"));
    cli_say(alloc->cli, "Job %u to start at %s a using %u processors on nodes %s in partition %s",
            reply->job_id, str_text(&when), reply->planned_cpus,
            reply->planned_nodes ? reply->planned_nodes : "", reply->partition);
    if (reply->preempts)
        cli_say(alloc->cli, "  Preempts: %s", reply->preempts);
    str_done(&when);
}

static int submit(struct alloc *alloc, struct job_request *const *requests, size_t count)
{
    SubmitJobRequest request = SUBMIT_JOB_REQUEST__INIT;
    const struct job_request *asked = requests[0];
    SubmitJobReply *reply;
    struct err err = { 0 };

    request.components = ARENA_ARRAY(&alloc->cli->arena, JobComponent *, count);
    for (size_t i = 0; i < count; i++) {
        JobComponent *component = ARENA_NEW(&alloc->cli->arena, JobComponent);
        job_component__init(component);
        component->spec = requests[i]->spec;
        request.components[request.n_components++] = component;
    }
    request.has_test_only = request.test_only = asked->test_only;
    if (cli_call(alloc->cli, "SubmitJob", &request.base, &submit_job_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) < 0)
        return refused(alloc, &err, asked->test_only);
    if (reply->message && !asked->test_only)
        cli_say(alloc->cli, "%s", reply->message);
    if (asked->test_only) {
        say_planned(alloc, reply);
        return -1;
    }
    if (asked->spec->hold)
        cli_say(alloc->cli, "Job is in held state, pending scheduler release");
    alloc->id = reply->job_id;
    alloc->count = count;
    alloc->jobs = ARENA_ARRAY(&alloc->cli->arena, Job *, count);
    alloc->near = ARENA_ARRAY(&alloc->cli->arena, struct client_stream *, count);
    return 0;
}

static struct client_stream *watch_job(struct alloc *alloc, uint32_t id, bool hold, struct err *err)
{
    WatchJobRequest request = WATCH_JOB_REQUEST__INIT;

    request.id = arena_printf(&alloc->cli->arena, "%u", id);
    request.has_hold = request.hold = hold;
    if (cli_connect(alloc->cli, err) < 0)
        return NULL;
    return client_stream_open(alloc->cli->client,
                              &(struct client_stream_options){ .path = "/spur.Controller/WatchJob",
                                                               .message = &request.base,
                                                               .reply_type = &job__descriptor },
                              err);
}

static int open_watch(struct alloc *alloc, struct err *err)
{
    if (alloc->watch)
        client_stream_free(TAKE(alloc->watch));
    alloc->watch = watch_job(alloc, alloc->id, alloc->hold, err);
    return alloc->watch ? 0 : -1;
}

/* 1: a record came, 0: nothing yet, -1: over or lost, which `alloc` says. */
static int next_record(struct alloc *alloc, Job **job)
{
    ProtobufCMessage *message;
    struct err err = { 0 };
    int next =
        alloc->watch ? client_stream_try(alloc->watch, &alloc->cli->arena, &message, &err) : -1;

    if (next == CLIENT_AGAIN)
        return 0;
    if (next == CLIENT_MESSAGE) {
        *job = (Job *)message;
        return 1;
    }
    client_stream_free(TAKE(alloc->watch));
    if (next == CLIENT_ENDED) {
        alloc->ended = true;
        return -1;
    }
    /* The controller may be changing: the job is still there. */
    if (open_watch(alloc, &err) < 0) {
        cli_error(alloc->cli, "Unable to watch job %u: %s", alloc->id, err.text);
        return -1;
    }
    return 0;
}

static void note(struct alloc *alloc, const Job *job)
{
    const JobStatus *status = job_status(job);

    alloc->state = status->state;
    alloc->reason = status->reason;
    if (job_state_ended(status->state))
        alloc->ended = true;
}

int alloc_fd(const struct alloc *alloc)
{
    return alloc->watch && alloc->cli->client ? client_fd(alloc->cli->client) : -1;
}

bool alloc_check(struct alloc *alloc)
{
    struct err err = { 0 };
    Job *job;
    int next;

    if (alloc->ended || !alloc->watch)
        return !alloc->ended;
    client_pump(alloc->cli->client, &err);
    while ((next = next_record(alloc, &job)) > 0)
        note(alloc, job);
    return !alloc->ended;
}

static bool is_ready(const Job *job)
{
    const JobStatus *status = job_status(job);

    return status->state == JOB_RUNNING && !(status->flags & JOB_FLAG_CONFIGURING);
}

/*
 * Are the nodes of all components ready? They start together, but some are prepared before others; what
 * ends one of them ends the first, whose stream says so.
 */
static bool all_ready(struct alloc *alloc)
{
    bool all = alloc->jobs[0] != NULL;

    for (size_t i = 1; i < alloc->count; i++) {
        struct client_stream **stream = &alloc->near[i];
        ProtobufCMessage *message;
        struct err err = { 0 };
        int next = CLIENT_AGAIN;
        if (alloc->jobs[i])
            continue;
        if (!*stream)
            *stream = watch_job(alloc, alloc->id + (uint32_t)i, false, &err);
        while (*stream && !alloc->jobs[i] &&
               (next = client_stream_try(*stream, &alloc->cli->arena, &message, &err)) ==
                   CLIENT_MESSAGE) {
            if (is_ready((Job *)message))
                alloc->jobs[i] = (Job *)message;
        }
        if (alloc->jobs[i] || next != CLIENT_AGAIN)
            client_stream_free(TAKE(*stream));
        all &= alloc->jobs[i] != NULL;
    }
    return all;
}

static void say_waiting(struct alloc *alloc)
{
    if (alloc->cli->quiet)
        return;
    if (alloc->reason == REASON_PART_DOWN)
        cli_say(alloc->cli, "Partition in DOWN state");
    if (alloc->is_salloc)
        cli_say(alloc->cli, "Pending job allocation %u", alloc->id);
    cli_say(alloc->cli, "job %u queued and waiting for resources", alloc->id);
}

static void wait_some(struct alloc *alloc, int64_t until_us)
{
    struct pollfd fd = { .fd = alloc_fd(alloc), .events = POLLIN };
    int64_t left = until_us ? MAX(until_us - clock_boot_us(), 0) / 1000 + 1 : 1000;

    if (alloc->cli->client)
        fd.events = client_events(alloc->cli->client);
    poll(&fd, 1, (int)MIN(left, INT64_C(1000)));
}

/* Until it runs. Says that it waits when it does not run at once. */
static int wait_running(struct alloc *alloc, volatile int *interrupted)
{
    enum { AT_ONCE_US = 150000, SECOND_US = 1000000 };
    int64_t began = clock_boot_us();
    int64_t give_up = alloc->immediate_s >= 0 ? began + MAX(alloc->immediate_s, 1) * SECOND_US : 0;
    bool said = false;

    for (;;) {
        struct err err = { 0 };
        Job *job;
        int next;

        while ((next = next_record(alloc, &job)) > 0) {
            note(alloc, job);
            if (is_ready(job))
                alloc->job = alloc->jobs[0] = job;
        }
        if (!alloc->ended && all_ready(alloc)) {
            if (said && !alloc->cli->quiet)
                cli_say(alloc->cli, "job %u has been allocated resources", alloc->id);
            return 0;
        }
        int64_t now = clock_boot_us();
        if (alloc->ended) {
            cli_error(alloc->cli, "Job allocation %u has been revoked", alloc->id);
            return 1;
        }
        if (*interrupted) {
            if (alloc->is_salloc)
                cli_say(alloc->cli, "Job aborted due to signal");
            else
                cli_say(alloc->cli, "Job allocation %u has been revoked", alloc->id);
            alloc_cancel(alloc);
            return 1;
        }
        if (give_up && now >= give_up) {
            alloc_cancel(alloc);
            cli_error(alloc->cli, "Unable to allocate resources: %s", err_text(ERR_NODES_BUSY));
            return cli_immediate_code();
        }
        if (!said && now - began >= AT_ONCE_US) {
            said = true;
            say_waiting(alloc);
        }
        int64_t until = said ? give_up : began + AT_ONCE_US;
        wait_some(alloc, until);
        if (alloc->cli->client)
            client_pump(alloc->cli->client, &err);
    }
}

int alloc_get(struct alloc *alloc, struct job_request *const *requests, size_t count,
              volatile int *interrupted)
{
    struct err err = { 0 };
    int code = submit(alloc, requests, count);

    if (code != 0)
        return code;
    if (open_watch(alloc, &err) < 0) {
        cli_error(alloc->cli, "Unable to watch job %u: %s", alloc->id, err.text);
        alloc_cancel(alloc);
        return 1;
    }
    return wait_running(alloc, interrupted);
}

void alloc_finish(struct alloc *alloc, int status)
{
    FinishJobRequest request = FINISH_JOB_REQUEST__INIT;
    ProtobufCMessage *reply;
    struct err err = { 0 };

    if (alloc->ended || !alloc->id)
        return;
    request.has_job_id = request.has_exit_status = true;
    request.job_id = alloc->id;
    request.exit_status = (uint32_t)status;
    if (cli_call(alloc->cli, "FinishJob", &request.base, &done_reply__descriptor, &reply, &err) <
            0 &&
        err.code != ERR_ALREADY_DONE && err.code != ERR_INVALID_JOB_ID)
        cli_error(alloc->cli, "Unable to relinquish job %u: %s", alloc->id, err.text);
    alloc->ended = true;
}

void alloc_cancel(struct alloc *alloc)
{
    CancelJobsRequest request = CANCEL_JOBS_REQUEST__INIT;
    ProtobufCMessage *reply;
    struct err err = { 0 };
    char id[16], *ids[] = { id };

    if (alloc->ended || !alloc->id)
        return;
    snprintf(id, sizeof(id), "%u", alloc->id);
    request.n_ids = 1;
    request.ids = ids;
    if (cli_call(alloc->cli, "CancelJobs", &request.base, &jobs_reply__descriptor, &reply, &err) <
        0)
        cli_error(alloc->cli, "Unable to cancel job %u: %s", alloc->id, err.text);
    alloc->ended = true;
}

void alloc_done(struct alloc *alloc)
{
    for (size_t i = 0; i < alloc->count; i++)
        client_stream_free(TAKE(alloc->near[i]));
    client_stream_free(TAKE(alloc->watch));
}

/* ---- the environment ---- */

static void put(const char *name, const char *value)
{
    if (!str_is_empty(value))
        setenv(name, value, 1);
}

static void put_number(const char *name, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    setenv(name, text, 1);
}

/* "2(x3),1" */
static void add_counts(struct str *out, const Allocation *allocation, bool tasks)
{
    for (size_t i = 0; i < allocation->n_nodes;) {
        uint32_t count = tasks ? allocation->nodes[i]->tasks : allocation->nodes[i]->cpus;
        size_t same = 1;
        while (i + same < allocation->n_nodes &&
               (tasks ? allocation->nodes[i + same]->tasks : allocation->nodes[i + same]->cpus) ==
                   count)
            same++;
        str_addf(out, "%s%u", out->len ? "," : "", count);
        if (same > 1)
            str_addf(out, "(x%zu)", same);
        i += same;
    }
}

void alloc_put_nodes(const Allocation *allocation)
{
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 };
    CLEANUP(str_done) struct str names = { 0 }, cpus = { 0 }, tasks = { 0 };

    for (size_t i = 0; i < allocation->n_nodes; i++)
        hostlist_push(&hosts, allocation->nodes[i]->node, NULL);
    hostlist_format(&hosts, &names);
    add_counts(&cpus, allocation, false);
    add_counts(&tasks, allocation, true);
    put("SLURM_JOB_NODELIST", str_text(&names));
    put("SLURM_NODELIST", str_text(&names));
    put_number("SLURM_JOB_NUM_NODES", allocation->n_nodes);
    put_number("SLURM_NNODES", allocation->n_nodes);
    put("SLURM_JOB_CPUS_PER_NODE", str_text(&cpus));
    put("SLURM_TASKS_PER_NODE", str_text(&tasks));
}

/* What srun inside takes over: a step of an allocation with an image runs in it. */
static void put_container(const JobSpec *spec)
{
    put("SRUN_CONTAINER", spec->container);
    put("SRUN_CONTAINER_IMAGE", spec->container_image);
    put("SRUN_CONTAINER_MOUNTS", spec->container_mounts);
    put("SRUN_CONTAINER_WORKDIR", spec->container_workdir);
    put("SRUN_CONTAINER_NAME", spec->container_name);
    put("SRUN_CONTAINER_ENV", spec->container_env);
    put("SRUN_CONTAINER_MOUNT_HOME", spec->container_mount_home ? "1" : NULL);
    put("SRUN_CONTAINER_ENTRYPOINT", spec->container_entrypoint ? "1" : NULL);
    put("SRUN_CONTAINER_READONLY", spec->container_readonly ? "1" : NULL);
    put("SRUN_CONTAINER_REMAP_ROOT", spec->container_remap_root ? "1" : NULL);
}

static void put_job(const Job *job, const struct job_request *request, const char *cluster)
{
    const JobStatus *status = job_status(job);
    const JobSpec *spec = request->spec;
    char host[HOST_NAME_BYTES], cwd[LIMIT_PATH_BYTES];

    host_short(host);
    put_number("SLURM_JOB_ID", job->id);
    put_number("SLURM_JOBID", job->id);
    put("SLURM_JOB_NAME", spec->name);
    put("SLURM_JOB_ACCOUNT", status->account);
    put("SLURM_JOB_QOS", status->qos);
    put("SLURM_JOB_PARTITION", status->partition);
    put("SLURM_JOB_RESERVATION", spec->reservation);
    put("SLURM_CLUSTER_NAME", cluster);
    put("SLURM_SUBMIT_DIR", getcwd(cwd, sizeof(cwd)) ? cwd : "/");
    put("SLURM_SUBMIT_HOST", host);
    if (status->allocation)
        alloc_put_nodes(status->allocation);
    if (spec->has_ntasks) {
        put_number("SLURM_NTASKS", spec->ntasks);
        put_number("SLURM_NPROCS", spec->ntasks);
    }
    if (spec->has_cpus_per_task)
        put_number("SLURM_CPUS_PER_TASK", spec->cpus_per_task);
    if (spec->has_ntasks_per_node)
        put_number("SLURM_NTASKS_PER_NODE", spec->ntasks_per_node);
    if (spec->has_mem_per_node_mb)
        put_number("SLURM_MEM_PER_NODE", spec->mem_per_node_mb);
    if (spec->has_mem_per_cpu_mb)
        put_number("SLURM_MEM_PER_CPU", spec->mem_per_cpu_mb);
    put("SLURM_DISTRIBUTION", spec->distribution);
    put("OMPI_MCA_plm_slurm_args", "--external-launcher"); /* mpirun's daemons, as in batch jobs */
    put("SPUR_ML_ENV", spec->ml_env ? "1" : NULL);
    alloc_put_asked(job, request);
}

void alloc_set_env(const Job *job, const struct job_request *request, const char *cluster)
{
    put_container(request->spec);
    put_job(job, request, cluster);
}

void alloc_set_het_env(const struct alloc *alloc, struct job_request *const *requests)
{
    char name[64];

    if (alloc->count < 2)
        return;
    for (size_t i = alloc->count; i-- > 0;) { /* the first last: its are ours */
        for (size_t k = 0; k < het_name_count; k++)
            unsetenv(het_names[k]);
        put_job(alloc->jobs[i], requests[i], NULL);
        for (size_t k = 0; k < het_name_count; k++) {
            const char *value = getenv(het_names[k]);
            snprintf(name, sizeof(name), "%s_HET_GROUP_%zu", het_names[k], i);
            put(name, value);
            snprintf(name, sizeof(name), "%s_PACK_GROUP_%zu", het_names[k], i);
            put(name, value);
        }
    }
    put_number("SLURM_HET_SIZE", alloc->count);
    put_number("SLURM_PACK_SIZE", alloc->count);
}
