/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_core.c - what the state costs: time per command, bytes per job (P9), restart (P12)
 *
 * Jobs have distinct names, paths and payloads, as P9 asks. The floor of a command is unpacking its
 * bytes; the floor of a snapshot is copying it.
 */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "core/core.h"
#include "core/msg.h"
#include "core/query.h"
#include "wire/pb.h"
#include "wire/set.h"

enum { JOBS = 100000, NODES = 1000, TASKS = 1000000, RUNS = 50000 };

/* Time of this process alone: other load on the machine does not count. */
static double cpu_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

#define BEST(rounds, work)                         \
    ({                                             \
        double best_ = 1e300;                      \
        for (int r_ = 0; r_ < (rounds); r_++) {    \
            double begin_ = cpu_ms();              \
            work;                                  \
            double took_ = cpu_ms() - begin_;      \
            best_ = took_ < best_ ? took_ : best_; \
        }                                          \
        best_;                                     \
    })

struct run {
    struct state *state;
    struct events events;
    uint64_t index;
    int64_t now;
    double unpack_ms, apply_ms;
};

static size_t heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

static struct span packed(Command *cmd, int64_t now)
{
    SET(cmd, time_us, now);
    size_t len = command__get_packed_size(cmd);
    uint8_t *bytes = malloc(len + 1);
    command__pack(cmd, bytes);
    return (struct span){ (char *)bytes, len };
}

/* Unpacks as the controller does, and applies `count` commands; all must be accepted. */
static void apply_all(struct run *run, const struct span *all, size_t count)
{
    Command **cmds = malloc(sizeof(Command *) * count);
    struct arena arena;

    arena_init(&arena);
    ProtobufCAllocator allocator = pb_arena(&arena);
    double begin = cpu_ms();
    for (size_t i = 0; i < count; i++)
        cmds[i] = command__unpack(&allocator, all[i].len, (const uint8_t *)all[i].ptr);
    double middle = cpu_ms();
    for (size_t i = 0; i < count; i++) {
        events_clear(&run->events);
        core_apply(run->state, ++run->index, cmds[i], &run->events);
        if (run->events.list.items[run->events.list.len - 1].code != ERR_OK)
            abort();
    }
    run->apply_ms = cpu_ms() - middle;
    run->unpack_ms = middle - begin;
    arena_done(&arena);
    free(cmds);
}

static void free_all(struct span *all, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free((char *)(uintptr_t)all[i].ptr);
}

static void give(struct run *run, Command *cmd)
{
    struct span bytes = packed(cmd, run->now += 10);

    apply_all(run, &bytes, 1);
    free_all(&bytes, 1);
}

static void configure(struct run *run)
{
    Command cmd = COMMAND__INIT;
    CmdConfig msg = CMD_CONFIG__INIT;
    Config config = CONFIG__INIT;
    NodeSpec nodes = NODE_SPEC__INIT, *list[1] = { &nodes };
    PartitionSpec part = PARTITION_SPEC__INIT, *parts[1] = { &part };
    char name[32];

    snprintf(name, sizeof(name), "n[1-%d]", NODES);
    nodes.name = name;
    SET(&nodes, cpus, 64);
    SET(&nodes, memory_mb, 256000);
    part.name = (char *)"main";
    part.nodes = (char *)"ALL";
    SET(&part, is_default, true);
    config.n_nodes = config.n_partitions = 1;
    config.nodes = list;
    config.partitions = parts;
    SET(&config, max_array_size, 4000001);
    SET(&config, max_job_count, 4000000);
    msg.config = &config;
    cmd.what_case = COMMAND__WHAT_CONFIG;
    cmd.config = &msg;
    give(run, &cmd);
    for (int i = 1; i <= NODES; i++) {
        Command up = COMMAND__INIT;
        CmdNodeUp node = CMD_NODE_UP__INIT;
        NodeInventory found = NODE_INVENTORY__INIT;
        snprintf(name, sizeof(name), "n%d", i);
        SET(&found, cpus, 64);
        SET(&found, memory_mb, 256000);
        node.node = name;
        node.found = &found;
        up.what_case = COMMAND__WHAT_NODE_UP;
        up.node_up = &node;
        give(run, &up);
    }
}

static struct span submission(struct run *run, int number, const char *array)
{
    Command cmd = COMMAND__INIT;
    CmdSubmit submit = CMD_SUBMIT__INIT;
    JobOwner owner = JOB_OWNER__INIT;
    PackedComponent component = PACKED_COMPONENT__INIT, *components[1] = { &component };
    JobSpec spec = JOB_SPEC__INIT;
    char name[64], dir[128], path[160], line[200];
    uint8_t digest[32] = { 0 }, request[16] = { 0 };
    struct arena arena;

    arena_init(&arena);
    snprintf(name, sizeof(name), "experiment-%06d", number);
    snprintf(dir, sizeof(dir), "/home/alice/projects/run-%06d", number);
    snprintf(path, sizeof(path), "/home/alice/projects/run-%06d/slurm-%%j.out", number);
    snprintf(line, sizeof(line), "sbatch -J experiment-%06d job.sh", number);
    spec.name = name;
    spec.work_dir = dir;
    spec.std_out = path;
    spec.submit_line = line;
    spec.command = (char *)"/home/alice/job.sh";
    spec.alloc_node = (char *)"login1";
    spec.partition = (char *)"main";
    spec.array = (char *)(uintptr_t)array;
    SET(&spec, batch, true);
    SET(&spec, time_limit_s, 3600);
    SET(&spec, ntasks, 1);
    SET(&spec, cpus_per_task, 1);
    SET(&spec, mem_per_cpu_mb, 1000);
    memcpy(digest, &number, sizeof(number));
    memcpy(request, &number, sizeof(number));
    struct span bytes = pb_pack(&spec, &arena);
    SET(&component, spec, ((ProtobufCBinaryData){ bytes.len, (uint8_t *)(uintptr_t)bytes.ptr }));
    SET(&component, payload_digest, ((ProtobufCBinaryData){ sizeof(digest), digest }));
    SET(&owner, uid, 1000);
    SET(&owner, gid, 1000);
    owner.user = (char *)"alice";
    owner.group = (char *)"alice";
    submit.owner = &owner;
    submit.n_components = 1;
    submit.components = components;
    SET(&cmd, request_id, ((ProtobufCBinaryData){ sizeof(request), request }));
    SET(&cmd, uid, 1000);
    cmd.what_case = COMMAND__WHAT_SUBMIT;
    cmd.submit = &submit;
    struct span out = packed(&cmd, run->now += 10);
    arena_done(&arena);
    return out;
}

static void submit_all(struct run *run)
{
    struct span *all = malloc(sizeof(*all) * JOBS);
    size_t spec_bytes = 0;

    for (int i = 0; i < JOBS; i++)
        all[i] = submission(run, i, NULL);
    size_t before = heap_bytes();
    apply_all(run, all, JOBS);
    size_t used = heap_bytes() - before;
    free_all(all, JOBS);
    free(all);
    for (const struct job *job = state_job_from(run->state, 0); job;
         job = state_job_from(run->state, (uint64_t)job->id + 1))
        spec_bytes += job->spec->len;
    bench_print("core.submit", run->apply_ms * 1e3 / JOBS, "us", run->unpack_ms * 1e3 / JOBS);
    bench_print("core.pending_job", (double)used / JOBS, "B", (double)spec_bytes / JOBS);
}

static struct span start_of(struct run *run, int i)
{
    Command cmd = COMMAND__INIT;
    CmdStart msg = CMD_START__INIT;
    JobStart one = JOB_START__INIT, *starts[1] = { &one };
    Allocation allocation = ALLOCATION__INIT;
    NodeAlloc node = NODE_ALLOC__INIT, *nodes[1] = { &node };
    char name[16], cpus[8];

    snprintf(name, sizeof(name), "n%d", i % NODES + 1);
    snprintf(cpus, sizeof(cpus), "%d", i / NODES % 64);
    node.node = name;
    SET(&node, cpus, 1);
    SET(&node, tasks, 1);
    SET(&node, mem_mb, 1000);
    node.cpu_ids = cpus;
    allocation.n_nodes = 1;
    allocation.nodes = nodes;
    allocation.partition = (char *)"main";
    SET(&one, job_id, (uint32_t)i + 1);
    SET(&one, attempt, 1);
    one.allocation = &allocation;
    msg.n_starts = 1;
    msg.starts = starts;
    cmd.what_case = COMMAND__WHAT_START;
    cmd.start = &msg;
    return packed(&cmd, run->now += 10);
}

static struct span finish_of(struct run *run, int i)
{
    Command cmd = COMMAND__INIT;
    CmdFinish msg = CMD_FINISH__INIT;
    char name[16], *released = name;

    snprintf(name, sizeof(name), "n%d", i % NODES + 1);
    SET(&msg, job_id, (uint32_t)i + 1);
    SET(&msg, attempt, 1);
    SET(&msg, exit_status, 0);
    msg.n_released = 1;
    msg.released = &released;
    cmd.what_case = COMMAND__WHAT_FINISH;
    cmd.finish = &msg;
    return packed(&cmd, run->now += 10);
}

static void start_and_finish(struct run *run)
{
    struct span *all = malloc(sizeof(*all) * RUNS);

    for (int i = 0; i < RUNS; i++)
        all[i] = start_of(run, i);
    apply_all(run, all, RUNS);
    bench_print("core.start", run->apply_ms * 1e3 / RUNS, "us", run->unpack_ms * 1e3 / RUNS);
    free_all(all, RUNS);
    for (int i = 0; i < RUNS; i++)
        all[i] = finish_of(run, i);
    apply_all(run, all, RUNS);
    bench_print("core.finish", run->apply_ms * 1e3 / RUNS, "us", run->unpack_ms * 1e3 / RUNS);
    free_all(all, RUNS);
    free(all);
}

static void array(struct run *run)
{
    char text[32];

    snprintf(text, sizeof(text), "0-%d", TASKS - 1);
    struct span bytes = submission(run, JOBS + 1, text);
    size_t before = heap_bytes();
    apply_all(run, &bytes, 1);
    bench_print("core.array_task", (double)(heap_bytes() - before) / TASKS, "B", 0.25);
    free_all(&bytes, 1);
}

static int collect(void *to, const void *bytes, size_t len)
{
    str_add_len(to, bytes, len);
    return 0;
}

static void snapshot(struct run *run)
{
    struct str bytes = { 0 };
    struct err err = { 0 };
    struct str copy = { 0 };

    double write = BEST(3, (str_clear(&bytes), core_snapshot_write(run->state, collect, &bytes)));
    double floor = BEST(3, (str_clear(&copy), str_add_len(&copy, bytes.data, bytes.len)));
    double begin = cpu_ms();
    struct restore *restore = core_restore_begin();
    if (core_restore_feed(restore, bytes.data, bytes.len, &err) < 0)
        abort();
    struct state *state = core_restore_end(restore, &err);
    if (!state || core_digest(state) != core_digest(run->state))
        abort();
    double read = cpu_ms() - begin;
    state_free(state);
    bench_print("core.snapshot_100k", write, "ms", floor);
    bench_print("core.restore_100k", read, "ms", floor);
    str_done(&bytes);
    str_done(&copy);
}

static void list(struct run *run)
{
    ListJobsRequest request = LIST_JOBS_REQUEST__INIT;
    struct str out = { 0 };
    struct query *query = NULL;
    struct err err = { 0 };

    if (query_new(run->state, &request, &query, &err) < 0)
        abort();
    double brief = BEST(3, {
        struct query_cursor cursor = { 0 };
        const struct job *job;
        uint32_t task;
        str_clear(&out);
        while ((job = query_next(query, run->state, &cursor, NULL, &task)))
            job_pack(run->state, job, JOB_PACK_BRIEF, NULL, &out);
    });
    struct str copy = { 0 };
    double floor = BEST(3, (str_clear(&copy), str_add_len(&copy, out.data, out.len)));
    bench_print("core.list_100k", brief, "ms", floor);
    query_free(query);
    str_done(&out);
    str_done(&copy);
}

int main(void)
{
    struct run run = { .state = state_new(), .now = 1700000000000000 };

    events_init(&run.events);
    configure(&run);
    submit_all(&run);
    list(&run);
    snapshot(&run);
    start_and_finish(&run);
    array(&run);
    events_done(&run.events);
    state_free(run.state);
    return 0;
}
