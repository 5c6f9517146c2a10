/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask.c - one request at the controller: what rpc and methods.c are for the real one
 *
 * (1) A request is answered exactly once; an answered one is kept until the call returns, so that a
 *     second answer is noticed.
 * (2) The request's bytes are in its arena and go with the answer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/world.h"

void ask_free(struct ask *ask)
{
    people_request(ask->world, ask->request)->open--;
    arena_done(&ask->arena);
    free(ask);
}

static struct ask *own(struct ctl_ask *ask)
{
    return (struct ask *)ask; /* its first member */
}

/* Takes it off the list of open ones; false when nobody hears the answer. */
static bool answer(struct ask *ask)
{
    struct world *world = ask->world;
    struct host *host = ask->host;

    if (ask->answered) {
        world_violation(world, "request %u was answered twice", ask->request); /* (1) */
        return false;
    }
    ask->answered = true;
    map_del_num(&host->asks, ask->number);
    vec_push(&host->answered, ask);
    return host_output(host);
}

/* ---- replies ---- */

static void jobs_reply(const JobsReply *reply, enum err_code *code)
{
    for (size_t i = 0; i < reply->n_results; i++) {
        if (reply->results[i]->code)
            *code = (enum err_code)reply->results[i]->code;
    }
}

static void on_reply(struct ctl_ask *ctl_ask, const ProtobufCMessage *message)
{
    struct ask *ask = own(ctl_ask);
    struct world *world = ask->world;
    enum err_code code = ERR_OK;
    uint32_t job_id = 0;

    if (message->descriptor == &submit_job_reply__descriptor)
        job_id = ((const SubmitJobReply *)message)->job_id;
    else if (message->descriptor == &jobs_reply__descriptor)
        jobs_reply((const JobsReply *)message, &code);
    uint32_t request = ask->request;
    if (answer(ask))
        people_answered(world, request, code, job_id);
}

static void on_fail(struct ctl_ask *ctl_ask, const struct err *err)
{
    struct ask *ask = own(ctl_ask);
    struct world *world = ask->world;
    uint32_t request = ask->request;
    enum err_code code = err->code;

    if (!code)
        world_violation(world, "request %u failed without a code", request);
    TRACE(world, "request %u fails: %s", request, err->text);
    if (answer(ask))
        people_answered(world, request, code, 0);
}

/* A list shows every job that was acknowledged before it was asked for. */
static bool on_send(struct ctl_ask *ctl_ask, struct str *packed)
{
    struct ask *ask = own(ctl_ask);
    struct world *world = ask->world;
    const struct request *request = people_request(world, ask->request);

    if (request->kind == ASK_LIST) {
        ListJobsReply *reply =
            list_jobs_reply__unpack(NULL, packed->len, (const uint8_t *)packed->data);
        for (size_t i = 0; reply && i < reply->n_jobs; i++)
            ask->seen = MAX(ask->seen, reply->jobs[i]->id);
        if (!reply)
            world_violation(world, "a list cannot be read");
        else
            list_jobs_reply__free_unpacked(reply, NULL);
    }
    str_done(packed);
    return true;
}

static void go_on(struct world *world, const struct happening *what)
{
    struct host *host = &world->hosts[what->b];
    struct ask *ask = map_get_num(&host->asks, what->a);

    if (!ask)
        return;
    if (host_is_stopped(host)) {
        world_later(world, host->stopped_until_us - world->now_us, go_on, what->a, what->b, 0);
    } else if (host_enter(host)) {
        ctl_ask_writable(host->ctl, &ask->ask);
        host_leave(host);
    }
}

static bool on_writable(struct ctl_ask *ctl_ask)
{
    struct ask *ask = own(ctl_ask);
    struct world *world = ask->world;

    if (ask->host->dying || rand_chance(&world->rand, 700))
        return true;
    world_later(world, rand_skewed(&world->rand, MS, SEC), go_on, ask->number, ask->host->number,
                0);
    return false;
}

static void on_end(struct ctl_ask *ctl_ask)
{
    struct ask *ask = own(ctl_ask);
    struct world *world = ask->world;
    uint32_t request = ask->request;

    if (people_request(world, request)->kind == ASK_LIST && ask->seen < ask->must_see &&
        !ask->host->dying)
        world_violation(world, "job %u was acknowledged and is not in a later list", ask->must_see);
    if (answer(ask))
        people_answered(world, request, ERR_OK, 0);
}

static const struct ctl_ask_ops ops = {
    .reply = on_reply,
    .fail = on_fail,
    .send = on_send,
    .writable = on_writable,
    .end = on_end,
};

/* ---- requests ---- */

static void *take(void *arena, size_t size)
{
    return arena_alloc(arena, size);
}

static void give(void *arena, void *pointer)
{
    (void)arena, (void)pointer;
}

/* (2) */
static const ProtobufCMessage *into_arena(struct ask *ask, const ProtobufCMessage *message)
{
    ProtobufCAllocator allocator = { take, give, &ask->arena };
    size_t len = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = arena_alloc(&ask->arena, len + 1);

    protobuf_c_message_pack(message, bytes);
    return protobuf_c_message_unpack(message->descriptor, &allocator, len, bytes);
}

static void call_submit(struct ctl *ctl, struct ask *ask, struct request *request)
{
    SubmitJobPackedComponent component = SUBMIT_JOB_PACKED_COMPONENT__INIT,
                             *list[] = { &component };
    SubmitJobPacked message = SUBMIT_JOB_PACKED__INIT;

    component.spec = request->spec;
    component.has_payload = true;
    component.payload =
        (ProtobufCBinaryData){ request->payload.len, (uint8_t *)request->payload.data };
    message.n_components = 1;
    message.components = list;
    ctl_submit(ctl, &ask->ask, into_arena(ask, &message.base));
}

static void call_cancel(struct ctl *ctl, struct ask *ask, struct request *request)
{
    CancelJobsRequest message = CANCEL_JOBS_REQUEST__INIT;
    char *ids[] = { request->target };

    message.n_ids = 1;
    message.ids = ids;
    ctl_cancel(ctl, &ask->ask, into_arena(ask, &message.base));
}

static void call_cancel_mine(struct ctl *ctl, struct ask *ask, struct request *request)
{
    CancelJobsRequest message = CANCEL_JOBS_REQUEST__INIT;

    (void)request;
    message.has_me = message.me = true;
    ctl_cancel(ctl, &ask->ask, into_arena(ask, &message.base));
}

static void call_update(struct ctl *ctl, struct ask *ask, struct request *request)
{
    UpdateJobRequest message = UPDATE_JOB_REQUEST__INIT;
    JobSpec change = JOB_SPEC__INIT;

    if (request->by_name)
        message.name = request->target;
    else
        message.id = request->target;
    if (request->kind == ASK_LIMIT) {
        change.has_time_limit_s = true;
        change.time_limit_s = request->value;
        message.change = &change;
    } else {
        message.has_hold = true;
        message.hold = request->kind == ASK_HOLD;
    }
    ctl_update_job(ctl, &ask->ask, into_arena(ask, &message.base));
}

static void call_requeue(struct ctl *ctl, struct ask *ask, struct request *request)
{
    RequeueRequest message = REQUEUE_REQUEST__INIT;
    char *ids[] = { request->target };

    message.n_ids = 1;
    message.ids = ids;
    ctl_requeue(ctl, &ask->ask, into_arena(ask, &message.base));
}

static void call_suspend(struct ctl *ctl, struct ask *ask, struct request *request)
{
    SuspendRequest message = SUSPEND_REQUEST__INIT;
    char *ids[] = { request->target };

    message.n_ids = 1;
    message.ids = ids;
    message.has_resume = true;
    message.resume = request->kind == ASK_RESUME;
    ctl_suspend(ctl, &ask->ask, into_arena(ask, &message.base));
}

static void call_list(struct ctl *ctl, struct ask *ask, struct request *request)
{
    ListJobsRequest message = LIST_JOBS_REQUEST__INIT;
    struct world *world = ask->world;

    (void)request;
    for (size_t i = 0; i < world->requests.len; i++)
        ask->must_see = MAX(ask->must_see, world->requests.items[i]->job_id);
    message.has_all_states = message.all_states = true;
    message.has_with_spec = true;
    message.with_spec = rand_chance(&world->rand, 500);
    message.has_array_expand = true;
    message.array_expand = rand_chance(&world->rand, 300);
    ask->stream = true;
    ctl_read(ctl, &ask->ask, ctl_list_jobs, into_arena(ask, &message.base),
             world->options.mutation == MUTATE_STALE_READS);
}

static void call_watch(struct ctl *ctl, struct ask *ask, struct request *request)
{
    WatchJobRequest message = WATCH_JOB_REQUEST__INIT;

    message.id = request->target;
    ask->stream = true;
    ctl_read(ctl, &ask->ask, ctl_watch_job, into_arena(ask, &message.base), false);
}

static void call_explain(struct ctl *ctl, struct ask *ask, struct request *request)
{
    ExplainRequest message = EXPLAIN_REQUEST__INIT;

    message.id = request->target;
    ctl_read(ctl, &ask->ask, ctl_explain, into_arena(ask, &message.base), false);
}

static void call_node(struct ctl *ctl, struct ask *ask, struct request *request)
{
    UpdateNodeRequest message = UPDATE_NODE_REQUEST__INIT;

    message.names = request->target;
    message.state = request->word;
    message.reason = (char *)"simulated";
    ctl_update_node(ctl, &ask->ask, into_arena(ask, &message.base));
}

static void call_partition(struct ctl *ctl, struct ask *ask, struct request *request)
{
    UpdatePartitionRequest message = UPDATE_PARTITION_REQUEST__INIT;
    PartitionSpec change = PARTITION_SPEC__INIT;

    change.name = request->target;
    change.has_state = true;
    change.state = (PartitionState)request->value;
    message.change = &change;
    ctl_update_partition(ctl, &ask->ask, into_arena(ask, &message.base));
}

typedef void call_fn(struct ctl *ctl, struct ask *ask, struct request *request);
static call_fn *const calls[ASK_KINDS] = {
    [ASK_SUBMIT] = call_submit,       [ASK_CANCEL] = call_cancel,
    [ASK_HOLD] = call_update,         [ASK_RELEASE] = call_update,
    [ASK_LIMIT] = call_update,        [ASK_REQUEUE] = call_requeue,
    [ASK_SUSPEND] = call_suspend,     [ASK_RESUME] = call_suspend,
    [ASK_LIST] = call_list,           [ASK_WATCH] = call_watch,
    [ASK_EXPLAIN] = call_explain,     [ASK_NODE] = call_node,
    [ASK_PARTITION] = call_partition, [ASK_CANCEL_MINE] = call_cancel_mine,
};

/* The controller reads its file again; nobody waits for this answer. */
static void reconfigure(struct host *host, struct request *request)
{
    struct world *world = host->world;

    world->config_version++;
    Config *config = host_config(world);
    ctl_set_config(host->ctl, config, true, NULL, NULL);
    config__free_unpacked(config, NULL);
    people_answered(world, request->number, ERR_OK, 0);
}

static void identify(struct ask *ask, const struct request *request)
{
    static const uint32_t gids[] = { 100 };

    memcpy(ask->id, request->id, sizeof(ask->id));
    ask->who = (struct ctl_who){
        .uid = request->uid,
        .gid = 100,
        .user = request->uid ? "user" : "root",
        .group = "users",
        .gids = gids,
        .gid_count = 1,
        .is_admin = request->uid == 0,
        .is_operator = request->uid == 0,
        .request_id = ask->id,
    };
}

bool ask_arrive(struct host *host, uint32_t number)
{
    struct world *world = host->world;
    struct request *request = people_request(world, number);

    if (!host_leads(host) || !host_enter(host))
        return false;
    if (request->kind == ASK_RECONFIGURE) {
        reconfigure(host, request);
    } else {
        struct ask *ask = NEW(struct ask);
        arena_init(&ask->arena);
        ask->ask = (struct ctl_ask){ .who = &ask->who, .arena = &ask->arena, .ops = &ops };
        ask->world = world;
        ask->host = host;
        ask->number = ++host->next_ask;
        ask->request = number;
        request->open++;
        identify(ask, request);
        map_put_num(&host->asks, ask->number, ask);
        TRACE(world, "request %u (kind %d, %s) arrives at %s, try %u", number, request->kind,
              request->target, host->name, request->tries);
        ctl_enter(host->ctl);
        calls[request->kind](host->ctl, ask, request);
    }
    host_leave(host);
    return true;
}
