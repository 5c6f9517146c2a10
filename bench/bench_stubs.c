/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_stubs.c - P7 live: a real controller, many nodes that are played by this process
 *
 *     bench-stubs SOCKET ADDRESS TOKEN_FILE CONTROLLER_PID NODES JOBS [RUN_MS]
 *
 * SOCKET is the controller's unix socket (we are its administrator), ADDRESS where its nodes
 * connect. Nodes n1 to nN join, say hello and answer grants as spurd does: taken, started and, after
 * RUN_MS, ended. The partition "all" must be down: JOBS jobs of 24 shapes are queued, then it is set up and
 * the controller has to start them all. Meanwhile somebody submits a job every 20 ms.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>

#include "base/str.h"
#include "base/vec.h"
#include "bench/bench.h"
#include "proto/agent.pb-c.h"
#include "proto/controller.pb-c.h"
#include "rpc/rpc.h"
#include "sys/clock.h"
#include "sys/files.h"

enum {
    CONNECTIONS = 16,
    IN_FLIGHT = 8,
    SHAPES = 24,
    PROBE_MS = 20,
    HEARTBEAT_MS = 3000,
    BEAT_EVERY_MS = 30,
    STUCK_MS = 30000,
    BATCH_STEP = 0xfffffffb,
};
#define PUT(message, field, value)     \
    do {                               \
        (message)->has_##field = true; \
        (message)->field = (value);    \
    } while (0)

struct stub {
    struct bench *bench;
    struct rpc_client *client;
    struct rpc_request *stream;
    char name[16];
    char *token; /* of the node, once it has joined */
    uint64_t epoch, beats;
    bool joining, welcomed;
};

struct running { /* in order of their end: all take the same time */
    int64_t end_ms;
    struct stub *stub;
    uint32_t job_id, attempt;
};

struct bench {
    uv_loop_t uv;
    struct rpc_loop *rpc;
    uv_timer_t beat, clock, probe;
    const char *address;
    char *token; /* that lets nodes join */
    struct stub *stubs;
    uint32_t nodes, welcomed, next_beat;
    VEC(struct running) running;
    size_t first_running;
    unsigned run_ms;
    long jobs, submitted, answered, started, ended;
    int64_t last_start_us, last_news_us;
    struct rpc_client *admin;
    SubmitJobRequest request[SHAPES];
    VEC(int64_t) probes; /* latencies, µs */
    DiagReply diag;
    bool done;
};

static void die(const char *what, const struct err *err)
{
    fprintf(stderr, "bench-stubs: %s%s%s\n", what, err ? ": " : "", err ? err->text : "");
    exit(1);
}

/* ---- a node ---- */

static void say(struct stub *stub, NodeMessage *message)
{
    PUT(message, epoch, stub->epoch);
    rpc_request_send(stub->stream, &message->base);
}

static void say_taken(struct stub *stub, uint32_t job_id, uint32_t attempt)
{
    NodeMessage message = NODE_MESSAGE__INIT;
    GrantAck ack = GRANT_ACK__INIT;

    PUT(&ack, job_id, job_id);
    PUT(&ack, attempt, attempt);
    message.what_case = NODE_MESSAGE__WHAT_GRANT_ACK;
    message.grant_ack = &ack;
    say(stub, &message);
}

static void say_started(struct stub *stub, StepId *id)
{
    NodeMessage message = NODE_MESSAGE__INIT;
    StepStarted started = STEP_STARTED__INIT;

    started.id = id;
    PUT(&started, time_us, clock_wall_us());
    PUT(&started, pid, 4711);
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
    PUT(&ended, exit_status, 0);
    PUT(&ended, ended_us, clock_wall_us());
    PUT(&ended, released, true);
    message.what_case = NODE_MESSAGE__WHAT_ENDED;
    message.ended = &ended;
    say(stub, &message);
}

static void end_job(struct bench *bench, const struct running *it)
{
    StepId id = STEP_ID__INIT;

    PUT(&id, job_id, it->job_id);
    PUT(&id, attempt, it->attempt);
    PUT(&id, step, BATCH_STEP);
    say_ended(it->stub, &id);
    if (++bench->ended == bench->jobs)
        uv_stop(&bench->uv);
}

static void on_grant(struct stub *stub, const Grant *grant)
{
    struct bench *bench = stub->bench;
    StepId id = STEP_ID__INIT;

    PUT(&id, job_id, grant->job_id);
    PUT(&id, attempt, grant->attempt);
    PUT(&id, step, BATCH_STEP);
    say_taken(stub, grant->job_id, grant->attempt);
    say_started(stub, &id);
    bench->started++;
    bench->last_start_us = bench->last_news_us = clock_mono_us();
    struct running it = { bench->last_start_us / 1000 + bench->run_ms, stub, grant->job_id,
                          grant->attempt };
    if (bench->run_ms)
        vec_push(&bench->running, it);
    else
        end_job(bench, &it);
}

static void on_clock(uv_timer_t *timer)
{
    struct bench *bench = timer->data;
    int64_t now = clock_mono_us() / 1000;

    while (bench->first_running < bench->running.len &&
           bench->running.items[bench->first_running].end_ms <= now)
        end_job(bench, &bench->running.items[bench->first_running++]);
}

static void beat(struct stub *stub)
{
    NodeMessage message = NODE_MESSAGE__INIT;
    Heartbeat heartbeat = HEARTBEAT__INIT;

    PUT(&heartbeat, seq, ++stub->beats);
    message.what_case = NODE_MESSAGE__WHAT_HEARTBEAT;
    message.heartbeat = &heartbeat;
    if (stub->welcomed)
        say(stub, &message);
}

/* Some nodes each time, all of them every HEARTBEAT_MS: they were not started together. */
static void on_beat(uv_timer_t *timer)
{
    struct bench *bench = timer->data;
    uint32_t count = bench->nodes * BEAT_EVERY_MS / HEARTBEAT_MS + 1;

    for (uint32_t i = 0; i < count; i++)
        beat(&bench->stubs[bench->next_beat++ % bench->nodes]);
    if (bench->started && clock_mono_us() - bench->last_news_us > STUCK_MS * INT64_C(1000)) {
        fprintf(stderr, "bench-stubs: nothing started for %d s (%ld of %ld have)\n",
                STUCK_MS / 1000, bench->started, bench->jobs);
        exit(1);
    }
}

static void on_message(struct rpc_request *request, const ProtobufCMessage *base)
{
    struct stub *stub = rpc_request_data(request);
    const CtlMessage *message = (const void *)base;

    stub->epoch = message->epoch > stub->epoch ? message->epoch : stub->epoch;
    if (message->what_case == CTL_MESSAGE__WHAT_WELCOME && !stub->welcomed) {
        stub->welcomed = true;
        if (++stub->bench->welcomed == stub->bench->nodes)
            uv_stop(&stub->bench->uv);
    } else if (message->what_case == CTL_MESSAGE__WHAT_GRANT) {
        on_grant(stub, message->grant);
    }
}

static void on_session_end(struct rpc_request *request, const ProtobufCMessage *reply,
                           const struct err *err)
{
    const struct stub *stub = rpc_request_data(request);

    (void)reply;
    if (!stub->bench->done)
        die("a session ended", err);
}

static void hello(struct stub *stub)
{
    NodeMessage message = NODE_MESSAGE__INIT;
    NodeHello hello = NODE_HELLO__INIT;
    NodeInventory found = NODE_INVENTORY__INIT;
    GresInventory gpus = GRES_INVENTORY__INIT, *gres[] = { &gpus };
    char boot[32];

    snprintf(boot, sizeof(boot), "boot-%s", stub->name);
    PUT(&found, cpus, 64);
    PUT(&found, memory_mb, 512 * 1024);
    PUT(&found, can_change_user, true);
    PUT(&gpus, count, 8);
    gpus.name = (char *)"gpu";
    found.boot_id = boot;
    found.n_gres = 1;
    found.gres = gres;
    hello.node = stub->name;
    hello.found = &found;
    PUT(&hello, uptime_us, 1000000);
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
}

static void on_joined(struct rpc_request *request, const ProtobufCMessage *message,
                      const struct err *err)
{
    struct stub *stub = rpc_request_data(request);

    if (err)
        die("joining", err);
    stub->token = mem_strdup(((const JoinReply *)(const void *)message)->node_token);
    hello(stub);
}

static void on_state(void *ctx, enum rpc_state state, const struct err *why)
{
    struct stub *stub = ctx;
    JoinRequest join = JOIN_REQUEST__INIT;

    (void)why;
    if (state != RPC_READY || stub->joining)
        return;
    stub->joining = true;
    join.node = stub->name;
    join.token = stub->bench->token;
    rpc_request_start(stub->client, &(struct rpc_request_options){ .path = "/spur.Agents/Join",
                                                                   .message = &join.base,
                                                                   .reply = &join_reply__descriptor,
                                                                   .timeout_ms = STUCK_MS,
                                                                   .data = stub,
                                                                   .on_done = on_joined });
}

static void credentials(void *ctx, struct str *out)
{
    const struct stub *stub = ctx;

    if (stub->token)
        str_addf(out, "Bearer %s", stub->token);
}

static void connect_nodes(struct bench *bench)
{
    struct err err = { 0 };

    bench->stubs = NEW_ARRAY(struct stub, bench->nodes);
    for (uint32_t i = 0; i < bench->nodes; i++) {
        struct stub *stub = &bench->stubs[i];
        const struct rpc_client_options options = {
            .addresses = bench->address, .ctx = stub, .credentials = credentials, .state = on_state
        };
        stub->bench = bench;
        snprintf(stub->name, sizeof(stub->name), "n%u", i + 1);
        stub->client = rpc_client_new(bench->rpc, &options, &err);
        if (!stub->client)
            die("a node", &err);
    }
}

/* ---- jobs ---- */

static void fill_payload(JobPayload *payload)
{
    enum { VARIABLES = 50 };

    payload->n_env = VARIABLES;
    payload->env = NEW_ARRAY(ProtobufCBinaryData, VARIABLES);
    for (size_t i = 0; i < VARIABLES; i++) {
        char *text =
            mem_printf("BENCH_VARIABLE_%03zu=/opt/software/module/%zu/lib64:/usr/lib", i, i);
        payload->env[i] = (ProtobufCBinaryData){ strlen(text), (uint8_t *)text };
    }
    static char script[] = "#!/bin/bash\ntrue\n";
    PUT(payload, script, ((ProtobufCBinaryData){ strlen(script), (uint8_t *)script }));
}

static void make_requests(struct bench *bench)
{
    static JobComponent component[SHAPES], *components[SHAPES][1];
    static JobSpec spec[SHAPES];
    static GresRequest gpus[SHAPES], *gres[SHAPES][1];
    static JobPayload payload;

    job_payload__init(&payload);
    fill_payload(&payload);
    for (unsigned i = 0; i < SHAPES; i++) {
        job_component__init(&component[i]);
        job_spec__init(&spec[i]);
        submit_job_request__init(&bench->request[i]);
        spec[i].name = (char *)"bench";
        spec[i].work_dir = (char *)"/tmp";
        spec[i].std_out = (char *)"/dev/null";
        PUT(&spec[i], batch, true);
        PUT(&spec[i], cpus_per_task, 1 + i % 4);
        PUT(&spec[i], mem_per_node_mb, 1024 * (1 + i % 3));
        PUT(&spec[i], time_limit_s, 600 * (1 + i % 8));
        if (i % 2) {
            gres_request__init(&gpus[i]);
            gpus[i].name = (char *)"gpu";
            PUT(&gpus[i], count, 1 + i % 2);
            PUT(&gpus[i], scope, GRES_PER_NODE);
            gres[i][0] = &gpus[i];
            spec[i].n_gres = 1;
            spec[i].gres = gres[i];
        }
        component[i].spec = &spec[i];
        component[i].payload = &payload;
        components[i][0] = &component[i];
        bench->request[i].n_components = 1;
        bench->request[i].components = components[i];
    }
}

struct slot {
    struct bench *bench;
    struct rpc_client *client;
    int64_t began_us;
    bool probe;
};

static void submit(struct slot *slot);

static void on_submitted(struct rpc_request *request, const ProtobufCMessage *reply,
                         const struct err *err)
{
    struct slot *slot = rpc_request_data(request);
    struct bench *bench = slot->bench;

    (void)reply;
    if (err)
        die("submitting", err);
    if (slot->probe) {
        vec_push(&bench->probes, clock_mono_us() - slot->began_us);
        free(slot);
    } else if (++bench->answered == bench->jobs) {
        uv_stop(&bench->uv);
    } else if (bench->submitted < bench->jobs) {
        submit(slot);
    }
}

static void submit(struct slot *slot)
{
    struct bench *bench = slot->bench;

    slot->began_us = clock_mono_us();
    rpc_request_start(slot->client, &(struct rpc_request_options){
                                        .path = "/spur.Controller/SubmitJob",
                                        .message = &bench->request[bench->submitted % SHAPES].base,
                                        .reply = &submit_job_reply__descriptor,
                                        .wait_ready = true,
                                        .timeout_ms = 60000,
                                        .data = slot,
                                        .on_done = on_submitted });
    bench->submitted += !slot->probe;
}

/* Their jobs run too, behind the others. */
static void on_probe(uv_timer_t *timer)
{
    struct bench *bench = timer->data;
    struct slot *slot = NEW(struct slot);

    *slot = (struct slot){ bench, bench->admin, 0, true };
    submit(slot);
}

static void queue_jobs(struct bench *bench, const char *socket)
{
    struct slot *slots = NEW_ARRAY(struct slot, CONNECTIONS * IN_FLIGHT);
    struct err err = { 0 };

    for (int c = 0; c < CONNECTIONS; c++) {
        struct rpc_client *client =
            rpc_client_new(bench->rpc, &(struct rpc_client_options){ .addresses = socket }, &err);
        if (!client)
            die("connecting", &err);
        for (int i = 0; i < IN_FLIGHT && bench->submitted < bench->jobs; i++) {
            struct slot *slot = &slots[c * IN_FLIGHT + i];
            *slot = (struct slot){ bench, client, 0, false };
            submit(slot);
        }
        bench->admin = client;
    }
    uv_run(&bench->uv, UV_RUN_DEFAULT);
}

/* ---- asking the controller ---- */

static void on_done(struct rpc_request *request, const ProtobufCMessage *reply,
                    const struct err *err)
{
    struct bench *bench = rpc_request_data(request);

    if (err)
        die("asking", err);
    if (reply->descriptor == &diag_reply__descriptor)
        bench->diag = *(const DiagReply *)(const void *)reply;
    uv_stop(&bench->uv);
}

static void ask(struct bench *bench, const char *path, const ProtobufCMessage *message,
                const ProtobufCMessageDescriptor *reply)
{
    rpc_request_start(bench->admin, &(struct rpc_request_options){ .path = path,
                                                                   .message = message,
                                                                   .reply = reply,
                                                                   .wait_ready = true,
                                                                   .timeout_ms = 60000,
                                                                   .data = bench,
                                                                   .on_done = on_done });
    uv_run(&bench->uv, UV_RUN_DEFAULT);
}

static void ask_diag(struct bench *bench)
{
    DiagRequest request = DIAG_REQUEST__INIT;

    PUT(&request, reset, true);
    ask(bench, "/spur.Controller/Diag", &request.base, &diag_reply__descriptor);
}

static double cpu_ms(const char *pid)
{
    char *path = mem_printf("/proc/%s/stat", pid);
    FILE *file = fopen(path, "re");
    unsigned long user = 0, kernel = 0;

    if (!file || fscanf(file, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                        &kernel) != 2)
        user = kernel = 0;
    if (file)
        fclose(file);
    free(path);
    return (double)(user + kernel) * 1000 / (double)sysconf(_SC_CLK_TCK);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void run_all(struct bench *bench, const char *pid)
{
    UpdatePartitionRequest up = UPDATE_PARTITION_REQUEST__INIT;
    PartitionSpec spec = PARTITION_SPEC__INIT;

    spec.name = (char *)"all";
    PUT(&spec, state, PARTITION_UP);
    up.change = &spec;
    ask_diag(bench); /* what was the longest until now is forgotten */
    double cpu = cpu_ms(pid);
    int64_t began = clock_mono_us();
    uv_timer_start(&bench->probe, on_probe, PROBE_MS, PROBE_MS);
    if (bench->run_ms)
        uv_timer_start(&bench->clock, on_clock, 1, 1);
    ask(bench, "/spur.Controller/UpdatePartition", &up.base, &done_reply__descriptor);
    ask_diag(bench);
    printf("live.partition_up   %.1f ms of CPU the longest turn: the planner reads all jobs anew\n",
           (double)bench->diag.turn_cpu_us_max / 1e3);
    if (bench->ended < bench->jobs)
        uv_run(&bench->uv, UV_RUN_DEFAULT);
    double seconds = (double)(bench->last_start_us - began) / 1e6;
    uv_timer_stop(&bench->probe);
    cpu = cpu_ms(pid) - cpu;
    ask_diag(bench);
    printf("P7 live.starts      %.0f per_s (%ld jobs queued, %u stub agents, run time %u ms; "
           "%.3f ms of the controller's CPU a job)\n",
           (double)bench->started / seconds, bench->jobs, bench->nodes, bench->run_ms,
           cpu / (double)bench->started);
    printf(
        "P7 live.turn        %.1f ms of CPU the longest of %llu turns of the loop (%.1f ms by the "
        "clock; %llu over 5 ms)  goal: 5 ms %s\n",
        (double)bench->diag.turn_cpu_us_max / 1e3, (unsigned long long)bench->diag.turns,
        (double)bench->diag.turn_us_max / 1e3, (unsigned long long)bench->diag.turns_long,
        bench->diag.turn_cpu_us_max <= 5000 ? "ok" : "MISSED");
    if (bench->probes.len) {
        qsort(bench->probes.items, bench->probes.len, sizeof(int64_t), by_value);
        printf("P2 live.submit      p50 %.1f ms p99 %.1f ms meanwhile (%zu)\n",
               (double)bench->probes.items[bench->probes.len / 2] / 1e3,
               (double)bench->probes.items[bench->probes.len * 99 / 100] / 1e3, bench->probes.len);
    }
}

int main(int argc, char **argv)
{
    static struct bench bench;
    struct str token = { 0 };
    struct err err = { 0 };

    if (argc < 7) {
        fputs("usage: bench-stubs SOCKET ADDRESS TOKEN_FILE CONTROLLER_PID NODES JOBS [RUN_MS]\n",
              stderr);
        return 2;
    }
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (file_read(argv[3], 4096, &token, &err) < 0)
        die("join token", &err);
    token.data[strcspn(token.data, "\n")] = '\0';
    bench.token = token.data;
    bench.address = argv[2];
    bench.nodes = (uint32_t)atoi(argv[5]);
    bench.jobs = atol(argv[6]);
    bench.run_ms = argc > 7 ? (unsigned)atoi(argv[7]) : 0;
    uv_loop_init(&bench.uv);
    bench.rpc = rpc_loop_new(&bench.uv);
    uv_timer_t *timers[] = { &bench.beat, &bench.clock, &bench.probe };
    for (size_t i = 0; i < 3; i++) {
        uv_timer_init(&bench.uv, timers[i]);
        timers[i]->data = &bench;
    }
    int64_t began = clock_mono_us();
    connect_nodes(&bench);
    uv_run(&bench.uv, UV_RUN_DEFAULT);
    printf("live.hello          %.0f ms until %u nodes had joined and were welcomed\n",
           (double)(clock_mono_us() - began) / 1e3, bench.nodes);
    uv_timer_start(&bench.beat, on_beat, BEAT_EVERY_MS, BEAT_EVERY_MS);
    make_requests(&bench);
    began = clock_mono_us();
    queue_jobs(&bench, argv[1]);
    printf("live.submit         %.0f per_s while nothing may start\n",
           (double)bench.jobs / (double)(clock_mono_us() - began) * 1e6);
    fflush(stdout);
    run_all(&bench, argv[4]);
    bench.done = true;
    fflush(stdout);
    _exit(0);
}
