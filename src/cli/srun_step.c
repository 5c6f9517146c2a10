// SPDX-License-Identifier: Apache-2.0
/*
 * srun_step.c - asks the managing node for a step and launches it on every node
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hostlist.h"
#include "cli/srun.h"
#include "client/client.h"
#include "sys/files.h"
#include "sys/host.h"

#define RUN_STEP "/spur.NodeAccess/RunStep"

/* ---- where the manager is ---- */

/* Inside a job on its first node, its own socket; else what the controller says. */
static const char *own_socket(const struct srun *srun)
{
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 };
    CLEANUP(str_done) struct str first = { 0 };
    const char *socket = getenv("SPUR_NODE_SOCKET"), *node = getenv("SLURMD_NODENAME");
    const char *list = getenv("SLURM_JOB_NODELIST"), *id = getenv("SLURM_JOB_ID");
    uint64_t job;

    if (srun->own || !socket || !node || !list || !id || !str_to_u64(id, UINT32_MAX, &job) ||
        job != srun->job_id || hostlist_parse(&hosts, list, NULL) < 0 ||
        !hostlist_nth(&hosts, 0, &first) || strcmp(str_text(&first), node) != 0)
        return NULL;
    return socket;
}

static struct client *connect_manager(struct srun *srun, struct err *err)
{
    JobAccessRequest request = JOB_ACCESS_REQUEST__INIT;
    JobAccessReply *reply;
    const char *socket = own_socket(srun);

    if (socket)
        return client_new(&(struct client_options){ .addresses = socket, .token = "" }, err);
    request.id = arena_printf(&srun->cli.arena, "%u", srun->job_id);
    if (cli_call(&srun->cli, "JobAccess", &request.base, &job_access_reply__descriptor,
                 (ProtobufCMessage **)&reply, err) < 0)
        return NULL;
    if (str_is_empty(reply->address)) {
        err_code(err, ERR_ALREADY_DONE);
        return NULL;
    }
    return client_new(&(struct client_options){ .addresses = reply->address,
                                                .token = reply->token,
                                                .default_port = 6818 },
                      err);
}

/* ---- the request ---- */

static bool argv_has(const struct srun *srun, const char *name)
{
    return alloc_given(&srun->request, name, NULL);
}

static void fill_request(struct srun *srun, StepRequest *request)
{
    const struct job_request *asked = &srun->request;
    const JobSpec *spec = asked->spec;

    request->has_job_id = true;
    request->job_id = srun->job_id;
    request->name = srun->name;
    request->has_ntasks = spec->has_ntasks;
    request->ntasks = spec->ntasks;
    request->has_cpus_per_task = spec->has_cpus_per_task;
    request->cpus_per_task = spec->cpus_per_task;
    request->has_ntasks_per_node = spec->has_ntasks_per_node;
    request->ntasks_per_node = spec->ntasks_per_node;
    request->has_min_nodes = spec->has_min_nodes;
    request->min_nodes = spec->min_nodes;
    request->has_max_nodes = spec->has_max_nodes;
    request->max_nodes = spec->max_nodes;
    if (srun->own && srun->alloc.job->status->allocation) {
        request->has_min_nodes = request->has_max_nodes = true;
        request->min_nodes = request->max_nodes =
            (uint32_t)srun->alloc.job->status->allocation->n_nodes;
    }
    if (spec->has_ntasks && request->has_min_nodes && request->min_nodes > spec->ntasks) {
        if (argv_has(srun, "nodes") && argv_has(srun, "ntasks"))
            cli_say(&srun->cli, "warning: can't run %u processes on %u nodes, setting nnodes to %u",
                    spec->ntasks, request->min_nodes, spec->ntasks);
        request->min_nodes = spec->ntasks;
        request->has_max_nodes = true;
        request->max_nodes = spec->ntasks;
    }
    if (!srun->own) {
        request->nodelist = spec->nodelist;
        request->exclude = spec->exclude;
        request->has_relative = asked->relative > 0;
        request->relative = asked->relative;
    }
    request->has_overlap = request->has_exact = request->has_overcommit = true;
    request->overlap = asked->overlap;
    request->exact = asked->exact || (!srun->own && argv_has(srun, "cpus-per-task")) ||
                     (!srun->own && argv_has(srun, "exclusive"));
    request->overcommit = spec->overcommit;
    request->distribution = spec->distribution;
    if (argv_has(srun, "mem") && !srun->own) {
        request->has_mem_per_node_mb = true;
        request->mem_per_node_mb = spec->mem_per_node_mb;
    }
    request->has_immediate = request->immediate = !srun->own && spec->immediate;
}

/* Waits for the manager's answer. Ctrl-C gives up. */
static int wait_created(struct srun *srun, struct srun_node *manager)
{
    struct err err = { 0 };
    bool said = false;

    for (;;) {
        RunStepOut *out;
        int next =
            client_stream_try(manager->stream, &srun->cli.arena, (ProtobufCMessage **)&out, &err);
        if (next == CLIENT_MESSAGE && out->what_case == RUN_STEP_OUT__WHAT_CREATED) {
            srun->created = out->created;
            srun->waited = said;
            return 0;
        }
        if (next == CLIENT_MESSAGE && out->what_case == RUN_STEP_OUT__WHAT_WAITING) {
            if (!said && !srun->cli.quiet)
                cli_say(&srun->cli, "Job %u step creation temporarily disabled, retrying (%s)",
                        srun->job_id, out->waiting);
            said = true;
        } else if (next == CLIENT_ENDED || next < 0) {
            cli_error(&srun->cli, "Unable to create step for job %u: %s", srun->job_id,
                      err.text[0] ? err.text : "the node ended the stream");
            return 1;
        }
        if (srun_interrupted) {
            cli_say(&srun->cli, "Cancelled pending step for job %u", srun->job_id);
            return 1;
        }
        if (next == CLIENT_MESSAGE)
            continue;
        struct pollfd fd = { .fd = client_fd(manager->client),
                             .events = client_events(manager->client) };
        poll(&fd, 1, 1000);
        client_pump(manager->client, &err);
        err_clear(&err);
    }
}

static struct client_stream *open_stream(struct client *client, RunStepIn *first, struct err *err)
{
    return client_stream_open(
        client,
        &(struct client_stream_options){ .path = RUN_STEP,
                                         .message = &first->base,
                                         .reply_type = &run_step_out__descriptor,
                                         .open = true },
        err);
}

/* One entry for each node of the layout; the manager before them when it has no task. */
static void set_nodes(struct srun *srun, struct srun_node *manager)
{
    StepLayout *layout = srun->layout;
    size_t at = 0;
    bool has_tasks = false;

    for (size_t i = 0; i < layout->n_nodes; i++)
        has_tasks |= str_eq(layout->nodes[i]->name, layout->manager);
    srun->nodes = ARENA_ARRAY(&srun->cli.arena, struct srun_node, layout->n_nodes + 1);
    srun->tasks = ARENA_ARRAY(&srun->cli.arena, struct srun_task, layout->ntasks + 1);
    for (size_t i = 0; i < layout->n_nodes; i++) {
        struct srun_node *node = &srun->nodes[at];
        if (str_eq(layout->nodes[i]->name, layout->manager))
            *node = *manager;
        node->node = layout->nodes[i];
        node->credit = SRUN_CREDIT;
        for (size_t k = 0; k < node->node->n_tasks; k++) {
            struct srun_task *task = &srun->tasks[node->node->tasks[k]];
            task->node = (uint32_t)at;
            task->files[0] = task->files[1] = -1;
        }
        at++;
    }
    if (!has_tasks)
        srun->nodes[at++] = *manager;
    srun->node_count = at;
}

int srun_create(struct srun *srun)
{
    struct srun_node manager = { .manager = true };
    StepRequest request = STEP_REQUEST__INIT;
    RunStepIn first = RUN_STEP_IN__INIT;
    struct err err = { 0 };

    fill_request(srun, &request);
    first.what_case = RUN_STEP_IN__WHAT_REQUEST;
    first.request = &request;
    manager.client = connect_manager(srun, &err);
    if (manager.client)
        manager.stream = open_stream(manager.client, &first, &err);
    if (!manager.stream) {
        cli_error(&srun->cli, "Unable to create step for job %u: %s", srun->job_id, err.text);
        client_free(manager.client);
        return 1;
    }
    int code = wait_created(srun, &manager);
    if (code == 0) {
        srun->layout =
            step_layout__unpack(NULL, srun->created->layout.len, srun->created->layout.data);
        if (!srun->layout || !srun->layout->id || srun->layout->ntasks == 0) {
            cli_error(&srun->cli, "Unable to create step for job %u: the answer makes no sense",
                      srun->job_id);
            code = 1;
        }
    }
    if (code) {
        client_stream_free(manager.stream);
        client_free(manager.client);
        return code;
    }
    set_nodes(srun, &manager);
    if (srun->waited && !srun->cli.quiet)
        cli_say(&srun->cli, "Step created for StepId=%u.%u", srun->job_id, srun->layout->id->step);
    return 0;
}

/* ---- the launch ---- */

static mode_t current_umask(void)
{
    mode_t mask = umask(0);

    umask(mask);
    return mask;
}

static void fill_launch(struct srun *srun, StepLaunch *launch, char *host)
{
    const JobSpec *spec = srun->request.spec;
    struct winsize size = { 0 };

    launch->has_layout = launch->has_proof = true;
    launch->layout = srun->created->layout;
    launch->proof = srun->created->proof;
    launch->n_programs = srun->program_count;
    launch->programs = srun->programs;
    launch->n_env = srun->env.n_env;
    launch->env = srun->env.env;
    launch->n_rlimits = srun->env.n_rlimits;
    launch->rlimits = srun->env.rlimits;
    launch->work_dir = spec->work_dir;
    launch->has_umask = true;
    launch->umask = current_umask();
    launch->has_pty = launch->pty = srun->request.pty;
    if (srun->request.pty && ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0) {
        launch->has_rows = launch->has_cols = true;
        launch->rows = size.ws_row;
        launch->cols = size.ws_col;
    }
    launch->has_no_input = launch->no_input = srun->input_fd < 0;
    launch->has_input_task = srun->has_input_task;
    launch->input_task = srun->input_task;
    launch->has_no_output = launch->no_output = srun->sinks[0].none;
    launch->has_no_error = launch->no_error = srun->sinks[1].none;
    if (!srun->own && argv_has(srun, "time") && spec->time_limit_s > 0) {
        launch->has_time_limit_s = true;
        launch->time_limit_s = spec->time_limit_s;
    }
    launch->launch_host = host;
}

int srun_launch(struct srun *srun)
{
    StepLaunch launch = STEP_LAUNCH__INIT;
    RunStepIn in = RUN_STEP_IN__INIT;
    char host[HOST_NAME_BYTES];

    host_short(host);
    fill_launch(srun, &launch, host);
    in.what_case = RUN_STEP_IN__WHAT_LAUNCH;
    in.launch = &launch;
    for (size_t i = 0; i < srun->node_count; i++) {
        struct srun_node *node = &srun->nodes[i];
        struct err err = { 0 };
        if (!node->node)
            continue;
        launch.node = node->node->name;
        node->launched = true;
        if (node->stream) {
            client_stream_send(node->stream, &in.base);
            client_pump(node->client, &err);
            continue;
        }
        node->client = client_new(&(struct client_options){ .addresses = node->node->address,
                                                            .token = "",
                                                            .default_port = 6818 },
                                  &err);
        if (node->client)
            node->stream = open_stream(node->client, &in, &err);
        if (!node->stream) {
            cli_error(&srun->cli, "Task launch for StepId=%u.%u failed on node %s: %s",
                      srun->job_id, srun->layout->id->step, node->node->name, err.text);
            node->over = true;
            srun->failed = true;
        }
    }
    return srun->failed ? 1 : 0;
}

void srun_close(struct srun *srun)
{
    for (size_t i = 0; i < srun->node_count; i++) {
        client_stream_free(srun->nodes[i].stream);
        client_free(srun->nodes[i].client);
    }
    srun->node_count = 0;
    if (srun->layout)
        step_layout__free_unpacked(TAKE(srun->layout), NULL);
}
