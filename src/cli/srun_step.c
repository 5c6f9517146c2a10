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
#include "cli/steps.h"
#include "client/client.h"
#include "schema/job_container.h"
#include "sys/files.h"
#include "sys/host.h"
#include "sys/users.h"

#define RUN_STEP "/spur.NodeAccess/RunStep"

enum { ASK_TRIES = 600, ASK_AGAIN_MS = 100 };

/* ---- where the manager is ---- */

bool srun_find_manager(struct srun *srun, struct srun_node *node, struct err *err)
{
    JobAccessRequest request = JOB_ACCESS_REQUEST__INIT;
    JobAccessReply *reply;
    const char *socket = srun->own ? NULL : steps_own_socket(srun->job_id);

    if (socket) {
        node->address = socket;
        node->token = "";
        return true;
    }
    request.id = arena_printf(&srun->cli.arena, "%u", srun->job_id);
    if (cli_call(&srun->cli, "JobAccess", &request.base, &job_access_reply__descriptor,
                 (ProtobufCMessage **)&reply, err) < 0)
        return false;
    if (str_is_empty(reply->address)) {
        err_code(err, ERR_ALREADY_DONE);
        return false;
    }
    node->address = reply->address;
    node->token = reply->token;
    return true;
}

struct client *srun_connect(struct srun *srun, const struct srun_node *node, struct err *err)
{
    return client_new(
        &(struct client_options){ .addresses = node->address ? node->address : node->node->address,
                                  .token = node->token ? node->token : "",
                                  .retry_ms = node->away_us ? 1 : 0,
                                  .timeout_ms = srun->cli.timeout_ms,
                                  .default_port = 6818 },
        err);
}

/* ---- the request ---- */

static bool argv_has(const struct srun *srun, const char *name)
{
    return alloc_given(&srun->request, name, NULL);
}

/* As it was typed, blanks where the shell had them. */
static char *own_line(struct srun *srun)
{
    CLEANUP(str_done) struct str text = { 0 };
    size_t at = 0;

    if (file_read("/proc/self/cmdline", LIMIT_COMMENT_BYTES, &text, NULL) < 0 || !text.len)
        return NULL;
    for (size_t i = 0; i + 1 < text.len; i++) {
        if (text.data[i] == '\0')
            text.data[i] = ' ';
    }
    while (text.data[at] && text.data[at] != ' ')
        at++;
    return arena_printf(&srun->cli.arena, "srun%s", text.data + at);
}

/* --cpus-per-task of a job with whole nodes: as many tasks as their CPUs have room for. */
static uint32_t tasks_of_nodes(const struct srun *srun)
{
    const Allocation *given =
        srun->own && srun->alloc.job ? srun->alloc.job->status->allocation : NULL;
    const JobSpec *spec = srun->request.spec;
    uint32_t tasks = 0;

    if (!given || spec->has_ntasks || spec->has_ntasks_per_node || !spec->cpus_per_task ||
        !argv_has(srun, "cpus-per-task") || !argv_has(srun, "exclusive"))
        return 0;
    for (size_t i = 0; i < given->n_nodes; i++)
        tasks += given->nodes[i]->cpus / spec->cpus_per_task;
    return tasks;
}

/* What the job's variables say of tasks gives way to what the command says of nodes and tasks. */
static void settle_tasks(struct srun *srun, StepRequest *request)
{
    uint32_t tasks = tasks_of_nodes(srun), each = request->ntasks_per_node;
    bool nodes = argv_has(srun, "nodes"), asked = argv_has(srun, "ntasks");

    if (tasks) {
        request->has_ntasks = true;
        request->ntasks = tasks;
    }
    if (srun->own || !each || argv_has(srun, "ntasks-per-node"))
        return;
    if (nodes && !asked && request->max_nodes) {
        request->has_ntasks = true;
        request->ntasks = request->max_nodes * each;
    } else if (asked && request->has_max_nodes && request->ntasks > request->max_nodes * each) {
        cli_say(
            &srun->cli,
            "warning: can't honor --ntasks-per-node set to %u which doesn't match the requested "
            "tasks %u with the maximum number of requested nodes %u. Ignoring --ntasks-per-node.",
            each, request->ntasks, request->max_nodes);
        request->has_ntasks_per_node = false;
        request->ntasks_per_node = 0;
    }
}

static void fill_request(struct srun *srun, StepRequest *request)
{
    const struct job_request *asked = &srun->request;
    const JobSpec *spec = asked->spec;

    request->has_job_id = true;
    request->job_id = srun->job_id;
    request->name = srun->name;
    request->submit_line = own_line(srun);
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
    if (!str_is_empty(spec->node_sizes) && !srun->own)
        request->min_nodes = request->max_nodes = srun_size(srun);
    if (srun->own && srun->alloc.job->status->allocation) {
        request->has_min_nodes = request->has_max_nodes = true;
        request->min_nodes = request->max_nodes =
            (uint32_t)srun->alloc.job->status->allocation->n_nodes;
    }
    settle_tasks(srun, request);
    if (request->has_ntasks && request->has_min_nodes && request->min_nodes > request->ntasks) {
        if (argv_has(srun, "nodes") && argv_has(srun, "ntasks"))
            cli_say(&srun->cli, "warning: can't run %u processes on %u nodes, setting nnodes to %u",
                    request->ntasks, request->min_nodes, request->ntasks);
        request->min_nodes = request->ntasks;
        request->has_max_nodes = true;
        request->max_nodes = request->ntasks;
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
                     (!srun->own && argv_has(srun, "exclusive")) || srun->beside;
    request->has_first_task = request->has_step_from = true;
    request->first_task = srun->first_task;
    request->step_from = srun->step_from;
    request->overcommit = spec->overcommit;
    request->distribution = spec->distribution;
    request->cpu_freq = spec->cpu_freq;
    request->has_resv_ports = asked->resv_ports != NULL && !asked->interactive;
    if (request->has_resv_ports && asked->resv_ports[0])
        request->resv_ports = (uint32_t)strtoul(asked->resv_ports, NULL, 10);
    request->avoid_ports = (char *)srun->avoid_ports;
    srun_fill_share(srun, request);
    request->has_immediate = request->immediate = !srun->own && spec->immediate;
    if (!srun->own && argv_has(srun, "time") && spec->time_limit_s > 0) {
        request->has_time_limit_s = true;
        request->time_limit_s = spec->time_limit_s;
    }
    request->has_interactive = request->interactive = asked->interactive;
    host_short(srun->host);
    host_address(srun->address);
    request->host = srun->host;
    request->mpi = (char *)srun->mpi;
    request->has_pid = true;
    request->pid = (uint32_t)getpid();
}

/* The managing node went away while we waited; it knows of us when we ask again. */
static bool ask_again(struct srun *srun, struct srun_node *manager, RunStepIn *first,
                      struct err *err)
{
    client_stream_free(TAKE(manager->stream));
    client_free(TAKE(manager->client));
    for (int tries = 0; tries < ASK_TRIES && !srun_interrupted; tries++) {
        poll(NULL, 0, ASK_AGAIN_MS);
        err_clear(err);
        if (!srun_find_manager(srun, manager, err)) {
            if (!srun_may_return(err->code))
                return false;
            continue;
        }
        manager->away_us = 1;
        manager->client = srun_connect(srun, manager, err);
        manager->away_us = 0;
        if (manager->client)
            manager->stream = srun_open_stream(manager->client, first, err);
        if (manager->stream)
            return true;
        client_free(TAKE(manager->client));
    }
    return false;
}

/* What the site says where our options say nothing. */
static void take_site(struct srun *srun, const StepCreated *created)
{
    struct job_request *request = &srun->request;

    if (created->has_kill_on_bad_exit && !job_request_has(request, "kill-on-bad-exit"))
        request->kill_on_bad_exit = created->kill_on_bad_exit;
    if (created->has_wait_s && !job_request_has(request, "wait"))
        request->wait_s = created->wait_s;
    srun->site_kill_wait_s = created->has_kill_wait_s ? created->kill_wait_s : SRUN_KILL_WAIT_S;
}

static bool request_is_immediate(const struct srun *srun)
{
    return !srun->own && srun->request.spec->immediate;
}

/* Waits for the manager's answer. Ctrl-C gives up. */
static int wait_created(struct srun *srun, struct srun_node *manager, RunStepIn *first)
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
            take_site(srun, out->created);
            return 0;
        }
        if (next == CLIENT_MESSAGE && out->what_case == RUN_STEP_OUT__WHAT_WAITING) {
            if (!said && !srun->cli.quiet)
                cli_say(&srun->cli, "Job %u step creation temporarily disabled, retrying (%s)",
                        srun->job_id, out->waiting);
            said = true;
        } else if (next < 0 && err.code == ERR_PORTS_BUSY) {
            return SRUN_PORTS_BUSY;
        } else if (next < 0 && srun_may_return(err.code) && ask_again(srun, manager, first, &err)) {
            continue;
        } else if (next == CLIENT_ENDED || next < 0) {
            cli_error(&srun->cli, "Unable to create step for job %u: %s", srun->job_id,
                      err.text[0] ? err.text : "the node ended the stream");
            return request_is_immediate(srun) ? cli_immediate_code() : cli_error_code();
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

struct client_stream *srun_open_stream(struct client *client, RunStepIn *first, struct err *err)
{
    return client_stream_open(
        client,
        &(struct client_stream_options){ .path = RUN_STEP,
                                         .message = &first->base,
                                         .reply_type = &run_step_out__descriptor,
                                         .open = true },
        err);
}

static void set_node(struct srun *srun, struct srun *part, const StepNode *layout_node)
{
    struct srun_node *node = &srun->nodes[srun->node_count];

    if (str_eq(layout_node->name, part->layout->manager))
        *node = part->manager;
    node->of = part;
    node->node = layout_node;
    if (!node->manager)
        node->address = node->token = NULL;
    node->credit = SRUN_CREDIT;
    for (size_t k = 0; k < layout_node->n_tasks; k++) {
        struct srun_task *task = &srun->tasks[layout_node->tasks[k]];
        task->node = (uint32_t)srun->node_count;
        task->files[0] = task->files[1] = -1;
    }
    srun->node_count++;
}

/* One entry for each node of the layouts, then the managers that have no task. */
void srun_set_nodes(struct srun *srun)
{
    size_t most = srun->part_count;

    for (size_t i = 0; i < srun->part_count; i++) {
        most += srun->parts[i]->layout->n_nodes;
        srun->ntasks += srun->parts[i]->layout->ntasks;
    }
    srun->nodes = ARENA_ARRAY(&srun->cli.arena, struct srun_node, most);
    srun->tasks = ARENA_ARRAY(&srun->cli.arena, struct srun_task, srun->ntasks + 1);
    for (size_t i = 0; i < srun->part_count; i++) {
        struct srun *part = srun->parts[i];
        part->first_node = srun->node_count;
        for (size_t k = 0; k < part->layout->n_nodes; k++)
            set_node(srun, part, part->layout->nodes[k]);
    }
    srun->task_nodes = srun->node_count;
    for (size_t i = 0; i < srun->part_count; i++) {
        struct srun *part = srun->parts[i];
        bool has_tasks = false;
        for (size_t k = 0; k < part->layout->n_nodes; k++)
            has_tasks |= str_eq(part->layout->nodes[k]->name, part->layout->manager);
        if (!has_tasks)
            srun->nodes[srun->node_count++] = part->manager;
        part->manager = (struct srun_node){ 0 };
    }
}

/* Task numbers are indexes: they are what we asked for, each once. */
static bool makes_sense(const struct srun *srun)
{
    const StepLayout *layout = srun->layout;
    uint64_t count = 0;

    if (!layout || !layout->id || layout->ntasks == 0)
        return false;
    for (size_t i = 0; i < layout->n_nodes; i++) {
        count += layout->nodes[i]->n_tasks;
        for (size_t k = 0; k < layout->nodes[i]->n_tasks; k++) {
            uint32_t number = layout->nodes[i]->tasks[k];
            if (number < srun->first_task || number - srun->first_task >= layout->ntasks)
                return false;
        }
    }
    return count == layout->ntasks;
}

int srun_create_once(struct srun *srun)
{
    struct srun_node manager = { .of = srun, .manager = true };
    StepRequest request = STEP_REQUEST__INIT;
    RunStepIn first = RUN_STEP_IN__INIT;
    struct err err = { 0 };

    fill_request(srun, &request);
    srun_fill_hosts(srun, &request);
    first.what_case = RUN_STEP_IN__WHAT_REQUEST;
    first.request = &request;
    if (srun_find_manager(srun, &manager, &err))
        manager.client = srun_connect(srun, &manager, &err);
    if (manager.client)
        manager.stream = srun_open_stream(manager.client, &first, &err);
    if (!manager.stream && err.code == ERR_INVALID_JOB_ID) {
        cli_error(&srun->cli, "Unable to confirm allocation for job %u: %s", srun->job_id,
                  err.text);
        cli_say(&srun->cli, "Check SLURM_JOB_ID environment variable. Expired or invalid job %u",
                srun->job_id);
        return 1;
    }
    if (!manager.stream) {
        cli_error(&srun->cli, "Unable to create step for job %u: %s", srun->job_id, err.text);
        client_free(manager.client);
        return cli_error_code();
    }
    int code = wait_created(srun, &manager, &first);
    if (code == 0) {
        srun->layout =
            step_layout__unpack(NULL, srun->created->layout.len, srun->created->layout.data);
        if (!makes_sense(srun)) {
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
    srun->manager = manager;
    if (srun->waited && !srun->cli.quiet)
        cli_say(&srun->cli, "Step created for StepId=%u.%u", srun->job_id, srun->layout->id->step);
    return 0;
}

/* ---- the launch ---- */

static void fill_launch(struct srun *srun, StepLaunch *launch, StepContainer *container, char *host)
{
    const JobSpec *spec = srun->request.spec;
    struct winsize size = { 0 };

    launch->has_layout = true;
    launch->layout = srun->created->layout;
    launch->n_programs = srun->program_count;
    launch->programs = srun->programs;
    launch->n_env = srun->env.n_env;
    launch->env = srun->env.env;
    launch->n_rlimits = srun->env.n_rlimits;
    launch->rlimits = srun->env.rlimits;
    launch->work_dir = spec->work_dir;
    launch->has_umask = true;
    launch->umask = cli_umask();
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
    if (!srun->own && argv_has(srun, "signal") && spec->signal) {
        launch->has_warn_signal = launch->has_warn_before_s = true;
        launch->warn_signal = spec->signal;
        launch->warn_before_s = spec->has_signal_before_s ? spec->signal_before_s : 60;
    }
    launch->launch_host = host;
    launch->has_preserve_env = launch->preserve_env = srun->request.preserve_env;
    launch->has_wait_for_children = launch->wait_for_children = srun->request.wait_for_children;
    launch->task_prolog = (char *)srun->request.task_prolog;
    launch->task_epilog = (char *)srun->request.task_epilog;
    launch->has_ml_env = launch->ml_env = spec->ml_env;
    if (!srun->own && argv_has(srun, "acctg-freq"))
        launch->acctg_freq = spec->acctg_freq;
    launch->has_debug = true;
    launch->debug = srun->request.node_debug;
    launch->has_oom_kill_step = spec->has_oom_kill_step;
    launch->oom_kill_step = spec->oom_kill_step;
    launch->container = job_container(spec, container) ? container : NULL;
    srun_fill_bind(srun, launch);
}

/* --input=in.%t: the file of each task of the node. */
static void put_inputs(struct srun *srun, const struct srun_node *node, StepLaunch *launch)
{
    const char *dir = node->of->request.spec->work_dir, *pattern = srun->input_pattern;

    launch->n_inputs = 0;
    if (!pattern)
        return;
    launch->inputs = ARENA_ARRAY(&srun->cli.arena, char *, node->node->n_tasks);
    for (size_t i = 0; i < node->node->n_tasks; i++) {
        CLEANUP(str_done) struct str path = { 0 };

        if (pattern[0] != '/')
            str_addf(&path, "%s/", dir);
        srun_expand(srun, pattern, node->node->tasks[i], &path, NULL);
        launch->inputs[launch->n_inputs++] = arena_strdup(&srun->cli.arena, str_text(&path));
    }
}

static void launch_node(struct srun *srun, struct srun_node *node, RunStepIn *in)
{
    struct srun *part = node->of;
    StepLaunch *launch = in->launch;
    size_t index = (size_t)(node - srun->nodes) - part->first_node;
    struct err err = { 0 };

    srun_bcast_use(part, node->node->name);
    launch->env = part->env.env;
    launch->n_env = part->env.n_env;
    srun_x11_use(srun, (size_t)(node - srun->nodes), launch);
    put_inputs(srun, node, launch);
    launch->node = node->node->name;
    launch->has_proof = true;
    launch->proof = (ProtobufCBinaryData){ 0 };
    if (index < part->created->n_proofs)
        launch->proof = part->created->proofs[index];
    launch->has_whole = launch->has_whole_node = srun->whole.len > 0;
    launch->whole = srun->whole;
    launch->whole_node = (uint32_t)(node - srun->nodes);
    node->launched = true;
    srun_verbose_launch(srun, node);
    if (node->stream) {
        client_stream_send(node->stream, &in->base);
        client_pump(node->client, &err);
        return;
    }
    node->client = srun_connect(srun, node, &err);
    if (node->client)
        node->stream = srun_open_stream(node->client, in, &err);
    if (!node->stream) {
        cli_error(&srun->cli, "Task launch for StepId=%u.%u failed on node %s: %s", part->job_id,
                  part->layout->id->step, node->node->name, err.text);
        node->over = true;
        srun->failed = true;
    }
}

int srun_launch(struct srun *srun)
{
    RunStepIn in = RUN_STEP_IN__INIT;

    in.what_case = RUN_STEP_IN__WHAT_LAUNCH;
    for (size_t i = 0; i < srun->part_count; i++) {
        struct srun *part = srun->parts[i];
        StepLaunch launch = STEP_LAUNCH__INIT;
        StepContainer container;
        fill_launch(part, &launch, &container, part->address);
        in.launch = &launch;
        for (size_t k = 0; k < part->layout->n_nodes; k++)
            launch_node(srun, &srun->nodes[part->first_node + k], &in);
    }
    return srun->failed ? 1 : 0;
}

void srun_close(struct srun *srun)
{
    for (size_t i = 0; i < srun->node_count; i++) {
        srun_drop_relays(srun, &srun->nodes[i]);
        vec_done(&srun->nodes[i].exits);
        client_stream_free(srun->nodes[i].stream);
        client_free(srun->nodes[i].client);
    }
    srun->node_count = 0;
    client_stream_free(TAKE(srun->manager.stream));
    client_free(TAKE(srun->manager.client));
    free(TAKE(srun->input));
    user_free(TAKE(srun->user));
    if (srun->layout)
        step_layout__free_unpacked(TAKE(srun->layout), NULL);
}
