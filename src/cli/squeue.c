// SPDX-License-Identifier: Apache-2.0
/*
 * squeue.c - lists jobs: `squeue`, `spur queue`
 */
#include "cli/squeue.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "client/client.h"

static int load_steps(struct squeue *squeue, struct err *err)
{
    ListStepsRequest request = LIST_STEPS_REQUEST__INIT;

    return client_call(squeue->cli.client, "/spur.Controller/ListSteps", &request.base,
                       &list_steps_reply__descriptor, &squeue->round,
                       (ProtobufCMessage **)&squeue->steps, err);
}

/* Nodes that were named must be there. 0, or the exit code after a complaint. */
static int check_nodes(struct squeue *squeue)
{
    ListNodesRequest request = LIST_NODES_REQUEST__INIT;
    char *names[] = { (char *)squeue->args.nodes };
    ListNodesReply *reply;
    struct err err = { 0 };

    if (!squeue->args.nodes)
        return 0;
    request.n_names = 1;
    request.names = names;
    if (cli_call(&squeue->cli, "ListNodes", &request.base, &list_nodes_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) == 0 ||
        err.code != ERR_INVALID_NODE_NAME)
        return 0; /* another error comes again */
    cli_error(&squeue->cli, "Invalid node name %s", squeue->args.nodes);
    return 1;
}

static int load(struct squeue *squeue, queue_jobs *jobs, int64_t *now_us, size_t *known,
                struct err *err)
{
    struct client_stream *stream;
    ProtobufCMessage *message;
    int next;

    if (squeue->nobody)
        return 0;
    if (cli_connect(&squeue->cli, err) < 0)
        return -1;
    stream = client_stream_open(
        squeue->cli.client,
        &(struct client_stream_options){ .path = "/spur.Controller/ListJobs",
                                         .message = &squeue->request.base,
                                         .reply_type = &list_jobs_reply__descriptor },
        err);
    if (!stream)
        return -1;
    while ((next = client_stream_next(stream, &squeue->round, &message, err)) == CLIENT_MESSAGE) {
        const ListJobsReply *reply = (const ListJobsReply *)message;

        *now_us = reply->has_now_us ? reply->now_us : *now_us;
        if (reply->cluster_name)
            squeue->cluster = reply->cluster_name;
        *known += reply->n_jobs;
        if (reply->stale)
            fprintf(stderr, "%s: this may be old: the controller did not ask the others\n",
                    squeue->set.command);
        for (size_t i = 0; i < reply->n_jobs; i++)
            squeue_add(squeue, jobs, reply->jobs[i], *now_us);
    }
    client_stream_free(stream);
    if (next == CLIENT_ENDED && squeue->args.step_flag)
        return load_steps(squeue, err);
    return next == CLIENT_ENDED ? 0 : -1;
}

static int show_once(struct squeue *squeue)
{
    struct field_ctx ctx = cli_field_ctx(0);
    queue_jobs jobs = { 0 };
    struct err err = { 0 };
    size_t known = 0;
    int code = 0;

    if (load(squeue, &jobs, &ctx.now_us, &known, &err) < 0) {
        code = cli_load_error(&squeue->cli, "slurm_load_jobs error:", &err);
    } else if (!known && squeue->args.jobs && !strpbrk(squeue->args.jobs, ", ")) {
        fprintf(stderr, "slurm_load_jobs error: %s\n", err_text(ERR_INVALID_JOB_ID));
        code = 1;
    } else {
        ctx.cluster = squeue->cluster;
        code = squeue_print(squeue, &jobs, &ctx);
    }
    vec_done(&jobs);
    return code;
}

int squeue_main(int argc, char **argv)
{
    struct squeue squeue;
    int code;

    squeue_init(&squeue, argc, argv);
    code = squeue_read(&squeue);
    if (code < 0 && check_nodes(&squeue))
        code = 1;
    while (code < 0) {
        code = show_once(&squeue);
        if (!squeue.args.iterate_s || (code && !squeue.cli.client))
            break;
        sleep(squeue.args.iterate_s);
        puts("");
        arena_reset(&squeue.round);
        code = -1;
    }
    squeue_done(&squeue);
    return code;
}
