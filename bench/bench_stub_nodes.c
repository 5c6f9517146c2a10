/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_stub_nodes.c - nodes that answer as spurd does, all in this process
 *
 * A node joins once, says hello with what it holds whenever it has a connection, and answers a grant:
 * taken, started and, after run_ms or when it is told, ended. What is revoked is released at once. Of a job of
 * several nodes the first one starts the script when it is told that all have taken their grants.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/bench_stubs.h"
#include "sys/clock.h"

enum { HEARTBEAT_MS = 3000, BEAT_EVERY_MS = 30, BACKOFF_MS = 200, BATCH_STEP = 0xfffffffb };

/* ---- what it says ---- */

static void say(struct stub *stub, NodeMessage *message)
{
    SET(message, epoch, stub->epoch);
    if (stub->stream)
        rpc_request_send(stub->stream, &message->base);
}

static void say_taken(struct stub *stub, struct held job)
{
    NodeMessage message = NODE_MESSAGE__INIT;
    GrantAck ack = GRANT_ACK__INIT;

    SET(&ack, job_id, job.job_id);
    SET(&ack, attempt, job.attempt);
    message.what_case = NODE_MESSAGE__WHAT_GRANT_ACK;
    message.grant_ack = &ack;
    say(stub, &message);
}

static void say_started(struct stub *stub, StepId *id)
{
    NodeMessage message = NODE_MESSAGE__INIT;
    StepStarted started = STEP_STARTED__INIT;

    started.id = id;
    SET(&started, time_us, clock_wall_us());
    SET(&started, pid, 4711);
    message.what_case = NODE_MESSAGE__WHAT_STARTED;
    message.started = &started;
    say(stub, &message);
}

static void say_ended(struct stub *stub, StepId *id)
{
    NodeMessage message = NODE_MESSAGE__INIT;
    StepEnded ended = STEP_ENDED__INIT;
    Usage usage = USAGE__INIT;

    ended.id = id;
    ended.usage = &usage;
    SET(&ended, exit_status, 0);
    SET(&ended, ended_us, clock_wall_us());
    SET(&ended, released, true);
    message.what_case = NODE_MESSAGE__WHAT_ENDED;
    message.ended = &ended;
    say(stub, &message);
}

static void say_released(struct stub *stub, struct held job)
{
    NodeMessage message = NODE_MESSAGE__INIT;
    Released released = RELEASED__INIT;

    SET(&released, job_id, job.job_id);
    SET(&released, attempt, job.attempt);
    message.what_case = NODE_MESSAGE__WHAT_RELEASED;
    message.released = &released;
    say(stub, &message);
}

static void beat(struct stub *stub)
{
    NodeMessage message = NODE_MESSAGE__INIT;
    Heartbeat heartbeat = HEARTBEAT__INIT;

    SET(&heartbeat, seq, ++stub->beats);
    message.what_case = NODE_MESSAGE__WHAT_HEARTBEAT;
    message.heartbeat = &heartbeat;
    say(stub, &message);
}

/* ---- jobs on it ---- */

static StepId batch_step(struct held job)
{
    StepId id = STEP_ID__INIT;

    SET(&id, job_id, job.job_id);
    SET(&id, attempt, job.attempt);
    SET(&id, step, BATCH_STEP);
    return id;
}

static struct held *find_held(struct stub *stub, uint32_t job_id, uint32_t attempt)
{
    vec_each (struct held, held, &stub->held) {
        if (held->job_id == job_id && held->attempt == attempt)
            return held;
    }
    return NULL;
}

static bool drop_held(struct stub *stub, struct held job)
{
    struct held *held = find_held(stub, job.job_id, job.attempt);

    if (held)
        vec_remove(&stub->held, (size_t)(held - stub->held.items));
    return held != NULL;
}

static void end_job(struct bench *bench, struct stub *stub, struct held job)
{
    StepId id = batch_step(job);

    if (!drop_held(stub, job))
        return;
    say_ended(stub, &id);
    if (++bench->ended >= bench->wanted && bench->draining)
        uv_stop(&bench->uv);
}

static void start_script(struct stub *stub, struct held *held)
{
    struct bench *bench = stub->bench;
    StepId id = batch_step(*held);

    held->script = true;
    say_started(stub, &id);
    bench->started++;
    bench->last_start_us = bench->last_news_us = clock_mono_us();
    struct running it = { bench->last_start_us / 1000 + bench->run_ms, stub, *held };
    if (bench->holding)
        return;
    if (bench->run_ms)
        vec_push(&bench->running, it);
    else
        end_job(bench, stub, *held);
}

static void on_grant(struct stub *stub, const Grant *grant)
{
    struct held job = { grant->job_id, grant->attempt, false };

    drop_held(stub, job); /* it may come twice */
    vec_push(&stub->held, job);
    say_taken(stub, job);
    if (grant->launch)
        start_script(stub, &stub->held.items[stub->held.len - 1]);
}

static void on_launch(struct stub *stub, const Launch *launch)
{
    struct held *held = find_held(stub, launch->job_id, launch->attempt);

    if (held && !held->script)
        start_script(stub, held);
}

static void on_revoke(struct stub *stub, const Revoke *revoke)
{
    struct held job = { revoke->job_id, revoke->attempt, false };

    drop_held(stub, job);
    say_released(stub, job);
}

static void on_clock(uv_timer_t *timer)
{
    struct bench *bench = timer->data;
    int64_t now = clock_mono_us() / 1000;

    while (bench->first_running < bench->running.len &&
           bench->running.items[bench->first_running].end_ms <= now) {
        struct running it = bench->running.items[bench->first_running++];
        end_job(bench, it.stub, it.job);
    }
}

long stub_nodes_end(struct bench *bench)
{
    long count = 0;

    for (uint32_t i = 0; i < bench->nodes; i++) {
        struct stub *stub = &bench->stubs[i];
        for (size_t k = stub->held.len; k-- > 0;) {
            count += stub->held.items[k].script;
            if (stub->held.items[k].script)
                end_job(bench, stub, stub->held.items[k]);
        }
    }
    return count;
}

void stub_nodes_release(struct bench *bench)
{
    bench->holding = false;
    uv_timer_start(&bench->clock, on_clock, 1, 1);
}

/* ---- its session ---- */

static void on_message(struct rpc_request *request, const ProtobufCMessage *base)
{
    struct stub *stub = rpc_request_data(request);
    const CtlMessage *message = (const void *)base;

    if (stub->bench->silent)
        return;
    stub->epoch = message->epoch > stub->epoch ? message->epoch : stub->epoch;
    if (message->what_case == CTL_MESSAGE__WHAT_WELCOME && !stub->welcomed) {
        stub->welcomed = true;
        if (++stub->bench->welcomed == stub->bench->nodes)
            uv_stop(&stub->bench->uv);
    } else if (message->what_case == CTL_MESSAGE__WHAT_GRANT) {
        on_grant(stub, message->grant);
    } else if (message->what_case == CTL_MESSAGE__WHAT_LAUNCH) {
        on_launch(stub, message->launch);
    } else if (message->what_case == CTL_MESSAGE__WHAT_REVOKE) {
        on_revoke(stub, message->revoke);
    }
}

static void on_session_end(struct rpc_request *request, const ProtobufCMessage *reply,
                           const struct err *err)
{
    struct stub *stub = rpc_request_data(request);

    (void)reply;
    (void)err;
    stub->stream = NULL; /* it says hello again when it has a connection */
    stub->bench->welcomed -= stub->welcomed;
    stub->welcomed = false;
}

static void add_held(const struct stub *stub, NodeHello *hello)
{
    hello->held = NEW_ARRAY(HeldGrant *, stub->held.len + 1);
    for (size_t i = 0; i < stub->held.len; i++) {
        HeldGrant *grant = hello->held[hello->n_held++] = NEW(HeldGrant);
        held_grant__init(grant);
        SET(grant, job_id, stub->held.items[i].job_id);
        SET(grant, attempt, stub->held.items[i].attempt);
        SET(grant, ready, true);
        SET(grant, running, stub->held.items[i].script);
        SET(grant, launched, stub->held.items[i].script);
    }
}

static void hello(struct stub *stub)
{
    NodeMessage message = NODE_MESSAGE__INIT;
    NodeHello hello = NODE_HELLO__INIT;
    NodeInventory found = NODE_INVENTORY__INIT;
    GresInventory gpus = GRES_INVENTORY__INIT, *gres[] = { &gpus };
    char boot[48];

    snprintf(boot, sizeof(boot), "boot-%s-%u", stub->name, stub->boots);
    SET(&found, cpus, 64);
    SET(&found, memory_mb, 512 * 1024);
    SET(&found, can_change_user, true);
    SET(&gpus, count, 8);
    gpus.name = (char *)"gpu";
    found.boot_id = boot;
    found.n_gres = 1;
    found.gres = gres;
    hello.node = stub->name;
    hello.found = &found;
    SET(&hello, uptime_us, 1000000);
    add_held(stub, &hello);
    message.what_case = NODE_MESSAGE__WHAT_HELLO;
    message.hello = &hello;
    stub->stream = rpc_request_start(
        stub->client, &(struct rpc_request_options){ .path = "/spur.Agents/Session",
                                                     .message = &message.base,
                                                     .reply = &ctl_message__descriptor,
                                                     .open = true,
                                                     .data = stub,
                                                     .on_message = on_message,
                                                     .on_done = on_session_end });
    for (size_t i = 0; i < hello.n_held; i++)
        free(hello.held[i]);
    free(hello.held);
}

/* Some nodes each time, all of them every HEARTBEAT_MS: they were not started together. */
static void on_beat(uv_timer_t *timer)
{
    struct bench *bench = timer->data;
    uint32_t count = bench->nodes * BEAT_EVERY_MS / HEARTBEAT_MS + 1;

    for (uint32_t i = 0; i < count && !bench->silent; i++) {
        struct stub *stub = &bench->stubs[bench->next_beat++ % bench->nodes];
        if (stub->welcomed)
            beat(stub);
        else if (!stub->stream && stub->token && rpc_client_state(stub->client) == RPC_READY)
            hello(stub); /* the controller hung up */
    }
    if (bench->draining && clock_mono_us() - bench->last_news_us > STUB_STUCK_MS * INT64_C(1000)) {
        fprintf(stderr, "bench-stubs: nothing started for %d s (%ld of %ld have ended)\n",
                STUB_STUCK_MS / 1000, bench->ended, bench->wanted);
        exit(1);
    }
}

/* ---- its connection ---- */

static void on_joined(struct rpc_request *request, const ProtobufCMessage *message,
                      const struct err *err)
{
    struct stub *stub = rpc_request_data(request);

    if (err)
        stub_die("joining", err);
    stub->token = mem_strdup(((const JoinReply *)(const void *)message)->node_token);
    hello(stub);
}

static void join(struct stub *stub)
{
    JoinRequest join = JOIN_REQUEST__INIT;

    stub->joining = true;
    join.node = stub->name;
    join.token = stub->bench->join_token;
    rpc_request_start(stub->client, &(struct rpc_request_options){ .path = "/spur.Agents/Join",
                                                                   .message = &join.base,
                                                                   .reply = &join_reply__descriptor,
                                                                   .timeout_ms = STUB_STUCK_MS,
                                                                   .data = stub,
                                                                   .on_done = on_joined });
}

static void on_state(void *ctx, enum rpc_state state, const struct err *why)
{
    struct stub *stub = ctx;

    (void)why;
    if (state != RPC_READY || stub->bench->silent)
        return;
    if (!stub->joining)
        join(stub);
    else if (stub->token && !stub->stream)
        hello(stub);
}

static void credentials(void *ctx, struct str *out)
{
    const struct stub *stub = ctx;

    if (stub->token)
        str_addf(out, "Bearer %s", stub->token);
}

static void connect_node(struct stub *stub)
{
    const struct rpc_client_options options = { .addresses = stub->bench->address,
                                                .ctx = stub,
                                                .credentials = credentials,
                                                .state = on_state,
                                                .backoff_max_ms = BACKOFF_MS };
    struct err err = { 0 };

    stub->client = rpc_client_new(stub->bench->rpc, &options, &err);
    if (!stub->client)
        stub_die("a node", &err);
}

void stub_nodes_connect(struct bench *bench)
{
    bench->stubs = NEW_ARRAY(struct stub, bench->nodes);
    for (uint32_t i = 0; i < bench->nodes; i++) {
        struct stub *stub = &bench->stubs[i];
        stub->bench = bench;
        snprintf(stub->name, sizeof(stub->name), "n%u", i + 1);
        connect_node(stub);
    }
    uv_timer_start(&bench->beat, on_beat, BEAT_EVERY_MS, BEAT_EVERY_MS);
}

void stub_nodes_again(struct bench *bench, bool rebooted)
{
    for (uint32_t i = 0; i < bench->nodes; i++) {
        struct stub *stub = &bench->stubs[i];
        rpc_client_free(stub->client);
        stub->stream = NULL;
        if (rebooted) {
            stub->boots++;
            vec_clear(&stub->held);
        }
    }
    for (uint32_t i = 0; i < bench->nodes; i++)
        connect_node(&bench->stubs[i]);
}
