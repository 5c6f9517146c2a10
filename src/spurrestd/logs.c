/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logs.c - the output of a job, through its node
 *
 * The controller names the node and gives a token for this job there; the node sends the file, and it goes out as it
 * comes. A client that is no longer needed is freed by the loop, not from inside its own callbacks.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/agent.pb-c.h"
#include "proto/controller.pb-c.h"
#include "rpc/link.h"
#include "spurrestd/answer.h"
#include "spurrestd/ask.h"
#include "spurrestd/params.h"
#include "spurrestd/rest.h"
#include "spurrestd/routes.h"

struct log_reader {
    struct exchange *x; /* NULL: it is over */
    struct rpc_client *client;
    struct rpc_request *request;
    struct rpc_loop *loop;
    struct timer later;
    ReadOutputRequest read;
    char *token;
};

static void on_later(struct timer *timer)
{
    struct log_reader *reader = CONTAINER_OF(timer, struct log_reader, later);

    rpc_client_free(reader->client);
    free(reader->token);
    free(reader);
}

static void let_go(struct log_reader *reader)
{
    reader->x = NULL;
    reader->later.fire = on_later;
    loop_timer_set(reader->loop, &reader->later, loop_now_ms(reader->loop));
}

static void reader_gone(struct exchange *x)
{
    struct log_reader *reader = x->data;

    if (reader->request)
        rpc_request_cancel(TAKE(reader->request));
    let_go(reader);
}

static void credentials(void *ctx, struct str *out)
{
    const struct log_reader *reader = ctx;

    str_addf(out, "Bearer %s", reader->token);
}

static void begin(struct exchange *x)
{
    if (!x->began)
        exchange_begin(x, 200, "text/plain; charset=utf-8");
}

static void on_writable(struct exchange *x)
{
    struct log_reader *reader = x->data;

    x->on_writable = NULL;
    if (reader->request)
        rpc_request_resume(reader->request);
}

static void on_chunk(struct rpc_request *request, const ProtobufCMessage *message)
{
    struct log_reader *reader = rpc_request_data(request);
    const OutputChunk *chunk = (const void *)message;
    struct exchange *x = reader->x;

    if (!x)
        return;
    begin(x);
    if (chunk->has_data)
        exchange_write(x, (const char *)chunk->data.data, chunk->data.len);
    if (!exchange_writable(x)) {
        rpc_request_pause(request);
        x->on_writable = on_writable;
    }
}

static void on_read(struct rpc_request *request, const ProtobufCMessage *reply,
                    const struct err *err)
{
    struct log_reader *reader = rpc_request_data(request);
    struct exchange *x = reader->x;

    (void)reply;
    reader->request = NULL;
    if (!x)
        return;
    x->on_gone = NULL;
    x->on_writable = NULL;
    let_go(reader);
    if (err && x->began) {
        exchange_abort(x);
    } else if (err) {
        answer_error(x, err, NULL);
    } else {
        begin(x);
        exchange_end(x);
    }
}

static void read_output(struct exchange *x, const JobAccessReply *access)
{
    struct log_reader *reader = NEW(struct log_reader);
    uint64_t lines = 0;
    struct err err = { 0 };
    CLEANUP(freep) char *peer = mem_printf("node:%s", access->node);

    reader->loop = x->rest->loop;
    reader->token = mem_strdup(access->token);
    reader->x = x;
    read_output_request__init(&reader->read);
    reader->read.has_job_id = true;
    reader->read.job_id = access->job ? access->job->id : 0;
    reader->read.has_error = reader->read.has_follow = true;
    reader->read.error = exchange_query_bool(x, "error") == 1;
    reader->read.follow = exchange_query_bool(x, "follow") == 1;
    if (!str_is_empty(exchange_query(x, "tail")) &&
        str_to_u64(exchange_query(x, "tail"), 1000000, &lines)) {
        reader->read.has_tail_lines = true;
        reader->read.tail_lines = lines;
    }
    reader->read.has_offset =
        !str_is_empty(exchange_query(x, "offset")) &&
        str_to_u64(exchange_query(x, "offset"), INT64_MAX, &reader->read.offset);
    const struct rpc_client_options options = {
        .addresses = access->address,
        .default_port = 6818,
        .ctx = reader,
        .tls = x->rest->tls_client,
        .peer = peer,
        .allow_plaintext = x->rest->options->allow_plaintext,
        .credentials = credentials,
    };
    reader->client = rpc_client_new(x->rest->loop, &options, &err);
    if (!reader->client) {
        free(reader->token);
        free(reader);
        answer_error(x, &err, NULL);
        return;
    }
    const struct rpc_request_options request = { .path = "/spur.NodeAccess/ReadOutput",
                                                 .message = &reader->read.base,
                                                 .reply = &output_chunk__descriptor,
                                                 .wait_ready = true,
                                                 .timeout_ms = reader->read.follow ? 0 : 60000,
                                                 .data = reader,
                                                 .on_message = on_chunk,
                                                 .on_done = on_read };
    x->data = reader;
    x->on_gone = reader_gone;
    reader->request = rpc_request_start(reader->client, &request);
}

static void on_access(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    const JobAccessReply *access = (const void *)message;
    struct err own = { 0 };

    if (!err && access->job && access->job->spec && !access->job->spec->batch)
        err_set(&own, ERR_INVALID,
                "job %s has no script: its output went to the srun or salloc that "
                "made it",
                x->args[0]);
    else if (!err && str_is_empty(access->address))
        err_set(&own, ERR_JOB_PENDING, "job %s has not started, so there is no output", x->args[0]);
    if (err || own.code)
        answer_error(x, err ? err : &own, NULL);
    else
        read_output(x, access);
}

void get_logs(struct exchange *x)
{
    JobAccessRequest *request = ARENA_NEW(&x->arena, JobAccessRequest);

    if (params_bad_job(x))
        return;
    job_access_request__init(request);
    request->id = (char *)(uintptr_t)x->args[0];
    const struct ask_call call = { .method = "JobAccess",
                                   .message = &request->base,
                                   .reply = &job_access_reply__descriptor,
                                   .done = on_access };
    ask_start(x, &call);
}
