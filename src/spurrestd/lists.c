/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lists.c - lists of jobs, nodes and partitions, written by the field tables that commands use
 *
 * (1) A list of jobs is written as it comes: the controller sends parts, each is written out and forgotten, and
 *     while the caller does not read, the controller is held back. So memory does not grow with the queue.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/controller.pb-c.h"
#include "schema/job_view.h"
#include "schema/names.h"
#include "schema/node_view.h"
#include "spurrestd/answer.h"
#include "spurrestd/ask.h"
#include "spurrestd/events.h"
#include "spurrestd/params.h"
#include "spurrestd/routes.h"
#include "sys/clock.h"
#include "wire/pb_unpack.h"

struct listing {
    struct answer *answer;
    int64_t now_us, changed_us; /* changed_us: the newest change that was seen */
    uint64_t limit, cursor, count, last;
    bool began, more;
    ListPartitionsReply *partitions;
};

static void listing_gone(struct exchange *x)
{
    struct listing *listing = x->data;

    answer_free(listing->answer);
}

static struct listing *listing_new(struct exchange *x)
{
    struct listing *listing = ARENA_NEW(&x->arena, struct listing);

    x->data = listing;
    x->on_gone = listing_gone;
    listing->now_us = clock_wall_us();
    return listing;
}

/* The object and the list begin with the first part, so that an error before it has an answer of its own. */
static struct jsonw *listing_json(struct exchange *x, const char *key)
{
    struct listing *listing = x->data;

    if (!listing->began) {
        listing->began = true;
        listing->answer = answer_new(x);
        jsonw_list(&listing->answer->json, key);
    }
    return &listing->answer->json;
}

static void add_object(struct exchange *x, const struct field_table *table, const void *object,
                       struct jsonw *json)
{
    const struct listing *listing = x->data;
    struct field_ctx ctx = answer_ctx(x, listing->now_us);

    jsonw_object(json, NULL);
    field_add_json(table, object, &ctx, json);
    jsonw_object_end(json);
}

static void send_list(struct exchange *x)
{
    struct listing *listing = x->data;

    x->on_gone = NULL;
    answer_send(TAKE(listing->answer));
}

/* ---- jobs ---- */

static void end_jobs(struct exchange *x)
{
    struct listing *listing = x->data;
    struct jsonw *json = listing_json(x, "jobs");

    jsonw_list_end(json);
    if (!x->version)
        jsonw_text(json, "next_cursor",
                   listing->more
                       ? arena_printf(&x->arena, "%llu", (unsigned long long)listing->last)
                       : "");
    jsonw_set(json, "last_backfill", true, false, 0);
    jsonw_set(json, "last_update", true, false, listing->now_us / 1000000);
    send_list(x);
}

static void on_writable(struct exchange *x)
{
    x->on_writable = NULL;
    ask_resume(x);
}

static void on_jobs(struct exchange *x, const ProtobufCMessage *message)
{
    const ListJobsReply *reply = (const void *)message;
    struct listing *listing = x->data;

    if (reply->has_now_us)
        listing->now_us = reply->now_us;
    struct jsonw *json = listing_json(x, "jobs");
    for (size_t i = 0; i < reply->n_jobs && !listing->more; i++) {
        const Job *job = reply->jobs[i];
        if (job->id <= listing->cursor)
            continue;
        if (listing->limit && listing->count == listing->limit) {
            listing->more = true;
            break;
        }
        add_object(x, &job_fields, job, json);
        listing->count++;
        listing->last = job->id;
    }
    if (listing->more) {
        ask_cancel_all(x);
        end_jobs(x);
        return;
    }
    answer_flush(listing->answer); /* (1) */
    if (!exchange_writable(x)) {
        ask_pause(x);
        x->on_writable = on_writable;
    }
}

static void on_jobs_done(struct exchange *x, const ProtobufCMessage *reply, const struct err *err)
{
    struct listing *listing = x->data;

    (void)reply;
    if (err) {
        answer_free(TAKE(listing->answer));
        x->on_gone = NULL;
        answer_error(x, err, NULL);
        return;
    }
    end_jobs(x);
}

void list_jobs(struct exchange *x)
{
    struct listing *listing = listing_new(x);
    ListJobsRequest *request = ARENA_NEW(&x->arena, ListJobsRequest);
    struct err err = { 0 };

    list_jobs_request__init(request);
    request->has_all_states = request->all_states = true;
    request->has_with_spec = request->with_spec = true;
    bool unchanged;
    x->on_gone = NULL;
    if (params_since(x, EVENTS_JOBS, &unchanged))
        return;
    if (unchanged) {
        end_jobs(x);
        return;
    }
    x->on_gone = listing_gone;
    request->has_hidden_too = request->hidden_too = params_all(x);
    if (params_jobs(x, request, &listing->limit, &listing->cursor, &err) < 0) {
        x->on_gone = NULL;
        answer_error(x, &err, NULL);
        return;
    }
    const struct ask_call call = { .method = "ListJobs",
                                   .message = &request->base,
                                   .reply = &list_jobs_reply__descriptor,
                                   .message_came = on_jobs,
                                   .done = on_jobs_done };
    ask_start(x, &call);
}

static void on_job(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    const GetJobReply *reply = (const void *)message;

    if (err) {
        x->on_gone = NULL;
        if (err->code == ERR_INVALID_JOB_ID && x->version)
            answer_failed(x, 404, err_slurm(err->code), err_text(err->code),
                          arena_printf(&x->arena, "Invalid JobID=%s rejected", x->args[0]), NULL);
        else
            answer_error(x, err, NULL);
        return;
    }
    struct jsonw *json = listing_json(x, "jobs");
    for (size_t i = 0; i < reply->n_jobs; i++)
        add_object(x, &job_fields, reply->jobs[i], json);
    end_jobs(x);
}

void get_job(struct exchange *x)
{
    GetJobRequest *request = ARENA_NEW(&x->arena, GetJobRequest);

    if (params_bad_job(x))
        return;
    listing_new(x);
    get_job_request__init(request);
    request->id = (char *)(uintptr_t)x->args[0];
    const struct ask_call call = { .method = "GetJob",
                                   .message = &request->base,
                                   .reply = &get_job_reply__descriptor,
                                   .done = on_job };
    ask_start(x, &call);
}

/* ---- nodes and partitions ---- */

static void end_list(struct exchange *x, const char *key)
{
    struct listing *listing = x->data;
    struct jsonw *json = listing_json(x, key);

    jsonw_list_end(json);
    jsonw_set(json, "last_update", true, false, listing->now_us / 1000000);
    send_list(x);
}

static void no_such(struct exchange *x, enum err_code code, const char *what)
{
    struct err err = { 0 };

    x->on_gone = NULL;
    if (!x->version) {
        err_set(&err, code, "there is no %s '%s'", what, x->args[0]);
        answer_error(x, &err, NULL);
    } else if (code == ERR_INVALID_NODE_NAME) { /* as recorded, with 200 */
        answer_failed(x, 200, 0, "No error",
                      arena_printf(&x->arena, "Failure to query node %s", x->args[0]), NULL);
    } else {
        struct answer *answer = answer_new(x);
        answer_warn(answer, x->path, "Unable to find partition %s", x->args[0]);
        answer_send(answer);
    }
}

static void on_nodes(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    const ListNodesReply *reply = (const void *)message;
    struct listing *listing = x->data;

    if (err && !(err->code == ERR_INVALID_NODE_NAME && x->args[0])) {
        x->on_gone = NULL;
        answer_error(x, err, NULL);
        return;
    }
    if (x->args[0] && (err || !reply->n_nodes)) {
        no_such(x, ERR_INVALID_NODE_NAME, "node");
        return;
    }
    if (reply->has_now_us)
        listing->now_us = reply->now_us;
    struct jsonw *json = listing_json(x, "nodes");
    for (size_t i = 0; i < reply->n_nodes; i++) {
        add_object(x, &node_fields, reply->nodes[i], json);
        answer_flush(listing->answer);
    }
    end_list(x, "nodes");
}

void list_nodes(struct exchange *x)
{
    ListNodesRequest *request = ARENA_NEW(&x->arena, ListNodesRequest);

    bool unchanged;
    if (params_since(x, EVENTS_NODES, &unchanged))
        return;
    listing_new(x);
    if (unchanged) {
        end_list(x, "nodes");
        return;
    }
    list_nodes_request__init(request);
    if (x->args[0]) {
        request->names = (char **)(uintptr_t)&x->args[0];
        request->n_names = 1;
    }
    const struct ask_call call = { .method = "ListNodes",
                                   .message = &request->base,
                                   .reply = &list_nodes_reply__descriptor,
                                   .done = on_nodes };
    ask_start(x, &call);
}

void get_node(struct exchange *x)
{
    list_nodes(x);
}

/* What its nodes have together is shown too: partitions are written when these have come. */
static void on_their_nodes(struct exchange *x, const ProtobufCMessage *message,
                           const struct err *err)
{
    struct listing *listing = x->data;
    ListPartitionsReply *reply = listing->partitions;

    if (!err)
        partitions_fill_tres(reply, (const void *)message, &x->arena);
    struct jsonw *json = listing_json(x, "partitions");
    for (size_t i = 0; i < reply->n_partitions; i++)
        add_object(x, &partition_fields, reply->partitions[i], json);
    end_list(x, "partitions");
}

static bool keep_partitions(struct exchange *x, const ProtobufCMessage *message)
{
    struct listing *listing = x->data;
    size_t len = protobuf_c_message_get_packed_size(message);
    CLEANUP(freep) uint8_t *packed = mem_new(len + 1);
    ProtobufCMessage *copy = NULL;

    protobuf_c_message_pack(message, packed);
    if (pb_unpack(&list_partitions_reply__descriptor, &x->arena, packed, len, &copy, NULL) < 0)
        return false;
    listing->partitions = (ListPartitionsReply *)copy;
    return true;
}

static void on_partitions(struct exchange *x, const ProtobufCMessage *message,
                          const struct err *err)
{
    const ListPartitionsReply *reply = (const void *)message;
    struct listing *listing = x->data;
    struct err own = { 0 };

    if (err && !(err->code == ERR_INVALID_PARTITION && x->args[0])) {
        x->on_gone = NULL;
        answer_error(x, err, NULL);
        return;
    }
    if (x->args[0] && (err || !reply->n_partitions)) {
        no_such(x, ERR_INVALID_PARTITION, "partition");
        return;
    }
    if (reply->has_now_us)
        listing->now_us = reply->now_us;
    if (!keep_partitions(x, message)) {
        x->on_gone = NULL;
        err_set(&own, ERR_INTERNAL, "the partitions cannot be read");
        answer_error(x, &own, NULL);
        return;
    }
    ListNodesRequest *request = ARENA_NEW(&x->arena, ListNodesRequest);
    list_nodes_request__init(request);
    const struct ask_call call = { .method = "ListNodes",
                                   .message = &request->base,
                                   .reply = &list_nodes_reply__descriptor,
                                   .done = on_their_nodes };
    ask_start(x, &call);
}

void list_partitions(struct exchange *x)
{
    ListPartitionsRequest *request = ARENA_NEW(&x->arena, ListPartitionsRequest);

    bool unchanged;
    if (params_since(x, EVENTS_PARTITIONS, &unchanged))
        return;
    listing_new(x);
    if (unchanged) {
        end_list(x, "partitions");
        return;
    }
    list_partitions_request__init(request);
    request->has_hidden_too = request->hidden_too = params_all(x);
    if (x->args[0]) {
        request->names = (char **)(uintptr_t)&x->args[0];
        request->n_names = 1;
    }
    const struct ask_call call = { .method = "ListPartitions",
                                   .message = &request->base,
                                   .reply = &list_partitions_reply__descriptor,
                                   .done = on_partitions };
    ask_start(x, &call);
}

void get_partition(struct exchange *x)
{
    list_partitions(x);
}
