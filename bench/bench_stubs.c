/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_stubs.c - P7 live: a real controller, many nodes that are played by this process
 *
 *     bench-stubs BUILD DIR ADDRESS NODES JOBS [RUN_MS [EVENT...]]
 *
 * DIR is the controller's: its socket (ctl.sock; we are its administrator), log, pid, join token and how
 * it is started again (start). ADDRESS is where its nodes connect. Nodes n1 to nN join, say hello and
 * answer grants as spurd does (bench_stub_nodes.c). The partition "all" must be down: JOBS jobs are
 * queued, then it is set up, and jobs start until the nodes are full. They do not end: while the rest
 * waits, what happens rarely and touches much happens (bench_stub_events.c; EVENT: only those whose name
 * contains it, "none": none). Then those that run end and the controller has to start all others, which
 * end after RUN_MS. Meanwhile somebody submits a job every 20 ms.
 */
#include "bench/bench_stubs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/bench.h"
#include "sys/clock.h"
#include "sys/files.h"

void stub_die(const char *what, const struct err *err)
{
    fprintf(stderr, "bench-stubs: %s%s%s\n", what, err ? ": " : "", err ? err->text : "");
    exit(1);
}

static void on_pause(uv_timer_t *timer)
{
    uv_stop(timer->loop);
}

void stub_wait(struct bench *bench, unsigned ms)
{
    uv_timer_start(&bench->pause, on_pause, ms, 0);
    uv_run(&bench->uv, UV_RUN_DEFAULT);
    uv_timer_stop(&bench->pause);
}

/* ---- asking the controller ---- */

static void on_done(struct rpc_request *request, const ProtobufCMessage *reply,
                    const struct err *err)
{
    struct bench *bench = rpc_request_data(request);

    bench->failed = err != NULL;
    if (err)
        fprintf(stderr, "bench-stubs: asking: %s\n", err->text);
    else if (reply->descriptor == &diag_reply__descriptor)
        bench->diag = *(const DiagReply *)(const void *)reply;
    else if (reply->descriptor == &token_reply__descriptor)
        bench->other_token = mem_strdup(((const TokenReply *)(const void *)reply)->token);
    uv_stop(&bench->uv);
}

static void ask_once(struct bench *bench, const char *path, const ProtobufCMessage *message,
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

/* A connection on which nothing was asked for long is dropped, perhaps just now. */
void stub_ask(struct bench *bench, const char *path, const ProtobufCMessage *message,
              const ProtobufCMessageDescriptor *reply)
{
    ask_once(bench, path, message, reply);
    if (bench->failed)
        ask_once(bench, path, message, reply);
}

void stub_ask_diag(struct bench *bench, bool reset)
{
    DiagRequest request = DIAG_REQUEST__INIT;

    SET(&request, reset, reset);
    stub_ask(bench, "/spur.Controller/Diag", &request.base, &diag_reply__descriptor);
}

static void ask_token(struct bench *bench)
{
    TokenRequest request = TOKEN_REQUEST__INIT;

    request.user = (char *)STUB_OTHER;
    SET(&request, lifespan_s, 3600);
    stub_ask(bench, "/spur.Controller/Token", &request.base, &token_reply__descriptor);
    if (!bench->other_token)
        stub_die("no token for another user", NULL);
}

int stub_controller_pid(const struct bench *bench)
{
    char *path = mem_printf("%s/pid", bench->dir);
    FILE *file = fopen(path, "re");
    int pid = 0;

    if (!file || fscanf(file, "%d", &pid) != 1)
        pid = 0;
    if (file)
        fclose(file);
    free(path);
    return pid;
}

static double cpu_ms(const struct bench *bench)
{
    char *path = mem_printf("/proc/%d/stat", stub_controller_pid(bench));
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

/* ---- the order of things ---- */

/* The longest turn since this was asked last; of the first one: since the controller was started. */
static void print_turn(struct bench *bench)
{
    struct stub_turns turns = stub_turns_end(bench, true);

    bench->over += turns.over > 0;
    printf("; longest turn %.1f ms of CPU%s\n", (double)turns.longest_us / 1e3,
           turns.over ? "  OVER 5 ms" : "");
    fflush(stdout);
}

static void join_nodes(struct bench *bench)
{
    int64_t began = clock_mono_us();

    stub_nodes_connect(bench);
    uv_run(&bench->uv, UV_RUN_DEFAULT);
    printf("live.hello          %.0f ms until %u nodes had joined and were welcomed",
           (double)(clock_mono_us() - began) / 1e3, bench->nodes);
    print_turn(bench);
}

static void queue_jobs(struct bench *bench, bool events)
{
    const struct stub_load first = { .name = "bench" }, last = { .name = "many" };
    int64_t began = clock_mono_us();

    stub_jobs_queue(bench, &first, bench->jobs - bench->many);
    stub_jobs_queue(bench, &last, bench->many);
    printf("live.submit         %.0f per_s while nothing may start",
           (double)bench->jobs / (double)(clock_mono_us() - began) * 1e6);
    print_turn(bench);
    if (!events)
        return;
    const struct stub_load other = { .name = "other", .other = true };
    char after[32];
    snprintf(after, sizeof(after), "afterany:%ld", bench->jobs - bench->many);
    const struct stub_load dependent = { .name = "dependent", .dependency = after };
    ask_token(bench);
    stub_jobs_queue(bench, &other, bench->many);
    stub_jobs_queue(bench, &dependent, bench->many);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void set_partition(struct bench *bench, PartitionState state)
{
    UpdatePartitionRequest update = UPDATE_PARTITION_REQUEST__INIT;
    PartitionSpec spec = PARTITION_SPEC__INIT;

    spec.name = (char *)"all";
    SET(&spec, state, state);
    update.change = &spec;
    stub_ask(bench, "/spur.Controller/UpdatePartition", &update.base, &done_reply__descriptor);
}

/* All end that run, and the controller starts what is left. */
static void run_rest(struct bench *bench)
{
    set_partition(bench, PARTITION_DOWN);
    stub_nodes_end(bench);
    stub_wait_quiet(bench);
    stub_turns_begin(bench, true); /* what was the longest until now is forgotten */
    double cpu = cpu_ms(bench);
    long before = bench->started;
    bench->wanted = bench->ended + (long)bench->diag.jobs_pending + (long)bench->diag.jobs_running;
    bench->last_news_us = clock_mono_us();
    int64_t began = clock_mono_us();
    stub_jobs_probe(bench, true);
    bench->draining = true;
    stub_nodes_release(bench);
    set_partition(bench, PARTITION_UP);
    while (bench->ended < bench->wanted)
        uv_run(&bench->uv, UV_RUN_DEFAULT);
    bench->draining = false;
    stub_jobs_probe(bench, false);
    double seconds = (double)(bench->last_start_us - began) / 1e6;
    cpu = cpu_ms(bench) - cpu;
    struct stub_turns turns = stub_turns_end(bench, true);
    double planned_us = (double)bench->diag.plan_us_total; /* since stub_turns_begin() */
    double placed = (double)(bench->started - before) / planned_us * 1e6;
    printf("P7 live.planner     %.0f placements per second that the planner took (%.1f s by the "
           "clock)  goal: 100000 %s\n",
           placed, planned_us / 1e6, placed >= 1e5 ? "ok" : "MISSED");
    printf("P7 live.starts      %.0f per_s (%ld jobs started, %u stub agents, run time %u ms; "
           "%.3f ms of the controller's CPU a job)\n",
           (double)(bench->started - before) / seconds, bench->started - before, bench->nodes,
           bench->run_ms, cpu / (double)(bench->started - before));
    printf(
        "P7 live.turn        %.1f ms of CPU the longest of %llu turns of the loop (%.1f ms by the "
        "clock, %llu over 5 ms; the machine stood still %.1f ms)  goal: 5 ms %s\n",
        (double)turns.longest_us / 1e3, (unsigned long long)bench->diag.turns,
        (double)bench->diag.turn_us_max / 1e3, (unsigned long long)bench->diag.turns_long,
        (double)turns.stopped_us / 1e3, turns.over ? "MISSED" : "ok");
    bench->over += turns.over > 0;
    if (bench->probes.len) {
        qsort(bench->probes.items, bench->probes.len, sizeof(int64_t), by_value);
        printf("P2 live.submit      p50 %.1f ms p99 %.1f ms meanwhile (%zu)\n",
               (double)bench->probes.items[bench->probes.len / 2] / 1e3,
               (double)bench->probes.items[bench->probes.len * 99 / 100] / 1e3, bench->probes.len);
    }
}

static void start(struct bench *bench)
{
    CLEANUP(freep) char *path = mem_printf("%s/state/keys/join.token", bench->dir);
    struct str token = { 0 };
    struct err err = { 0 };

    if (file_read(path, 4096, &token, &err) < 0)
        stub_die("join token", &err);
    token.data[strcspn(token.data, "\n")] = '\0';
    bench->join_token = token.data;
    bench->socket = mem_printf("unix:%s/ctl.sock", bench->dir);
    uv_loop_init(&bench->uv);
    bench->rpc = rpc_loop_new(&bench->uv);
    uv_timer_t *timers[] = { &bench->beat, &bench->clock, &bench->probe, &bench->pause };
    for (size_t i = 0; i < ARRAY_LEN(timers); i++) {
        uv_timer_init(&bench->uv, timers[i]);
        timers[i]->data = bench;
    }
    bench->admin = rpc_client_new(
        bench->rpc,
        &(struct rpc_client_options){ .addresses = bench->socket, .backoff_max_ms = 100 }, &err);
    if (!bench->admin)
        stub_die("connecting", &err);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    struct rlimit files;

    if (argc < 6) {
        fputs("usage: bench-stubs BUILD DIR ADDRESS NODES JOBS [RUN_MS [EVENT...]]\n", stderr);
        return 2;
    }
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    bench.build = argv[1];
    bench.dir = argv[2];
    bench.address = argv[3];
    bench.nodes = (uint32_t)atoi(argv[4]);
    bench.jobs = atol(argv[5]);
    bench.many = bench.jobs / 10;
    bench.run_ms = argc > 6 ? (unsigned)atoi(argv[6]) : 0;
    bool events = argc <= 7 || strcmp(argv[7], "none") != 0;
    start(&bench);
    stub_watch_start();
    join_nodes(&bench);
    bench.holding = true;
    queue_jobs(&bench, events);
    bench.over += stub_events(&bench, argv + 7, argc > 7 ? (size_t)argc - 7 : 0);
    run_rest(&bench);
    fflush(stdout);
    _exit(bench.over > 0);
}
