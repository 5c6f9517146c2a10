/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.c - the phases of a run
 *
 * A cluster is made, people work on it while things go wrong, then everything is healed and must
 * come to rest: every job ended, every node free. The first violation ends the run.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "log/etcd_model.h"
#include "sim/world.h"
#include "sys/clock.h"
#include "sys/log.h"
#include "sys/rng.h"

enum { REST_WITHIN_S = 8 * 3600, LOOK_EVERY_S = 30 };

static const char *const mutation_names[MUTATE_COUNT] = {
    [MUTATE_NOTHING] = "nothing",
    [MUTATE_LYING_DISK] = "lying-disk",
    [MUTATE_NEW_REQUEST_ID] = "new-request-id",
    [MUTATE_NO_TOMBSTONES] = "no-tombstones",
    [MUTATE_DROP_REPORTS] = "drop-reports",
    [MUTATE_EARLY_RELEASE] = "early-release",
    [MUTATE_WRONG_EXIT] = "wrong-exit",
    [MUTATE_SPLIT_STATE] = "split-state",
    [MUTATE_STALE_READS] = "stale-reads",
    [MUTATE_BLIND] = "blind",
};

const char *sim_mutation_name(enum sim_mutation mutation)
{
    return mutation_names[mutation];
}

void world_later_bytes(struct world *world, int64_t at_us, happen_fn *fn, uint64_t a, uint64_t b,
                       uint8_t *bytes, size_t len)
{
    queue_push(&world->queue, (struct happening){ .at_us = MAX(at_us, world->now_us),
                                                  .fn = fn,
                                                  .a = a,
                                                  .b = b,
                                                  .bytes = bytes,
                                                  .len = len });
}

void world_later(struct world *world, int64_t delay_us, happen_fn *fn, uint64_t a, uint64_t b,
                 uint64_t c)
{
    queue_push(
        &world->queue,
        (struct happening){ .at_us = world->now_us + delay_us, .fn = fn, .a = a, .b = b, .c = c });
}

struct host *world_leader(struct world *world)
{
    struct host *best = NULL;

    for (unsigned i = 0; i < world->host_count; i++) {
        struct host *host = &world->hosts[i];
        if (host_leads(host) && (!best || state_head(ctl_state(host->ctl)).epoch >
                                              state_head(ctl_state(best->ctl)).epoch))
            best = host;
    }
    return best;
}

void world_count(struct world *world, enum sim_count count)
{
    world->result->count[count]++;
}

void world_trace(struct world *world, const char *fmt, ...)
{
    va_list args;

    if (world->result->step < world->options.trace_from)
        return;
    fprintf(world->options.trace, "%12.6f %6llu  ",
            (double)(world->now_us - world->begin_us) / (double)SEC,
            (unsigned long long)world->result->step);
    va_start(args, fmt);
    vfprintf(world->options.trace, fmt, args);
    va_end(args);
    fputc('\n', world->options.trace);
}

void world_violation(struct world *world, const char *fmt, ...)
{
    va_list args;

    if (world->violated)
        return;
    world->violated = world->result->violated = true;
    world->result->time_us = world->now_us - world->begin_us;
    va_start(args, fmt);
    vsnprintf(world->result->what, sizeof(world->result->what), fmt, args);
    va_end(args);
    TRACE(world, "VIOLATION: %s", world->result->what);
}

/* ---- clock and log of the code that is simulated ---- */

static int64_t wall(void *ctx)
{
    const struct world *world = ctx;

    return host_wall(&world->hosts[0]);
}

static int64_t mono(void *ctx)
{
    const struct world *world = ctx;

    return world->now_us;
}

static int boot_id(void *ctx, char out[CLOCK_BOOT_ID_BYTES], struct err *err)
{
    (void)ctx, (void)err;
    snprintf(out, CLOCK_BOOT_ID_BYTES, "00000000-0000-0000-0000-000000000001");
    return 0;
}

static const struct clock_ops clock_ops = { wall, mono, mono, boot_id };

static void log_line(void *ctx, enum log_level level, const char *event, const char *text)
{
    (void)level;
    world_trace(ctx, "  log %s %s", event, text);
}

static void log_nothing(void *ctx, enum log_level level, const char *event, const char *text)
{
    (void)ctx, (void)level, (void)event, (void)text;
}

/* ---- the run ---- */

static void switch_on(struct world *world, const struct happening *what)
{
    machine_power_on(world, &world->machines[what->a]);
}

static void make(struct world *world)
{
    world->begin_us = world->now_us = INT64_C(1700000000) * SEC;
    world->work_until_us = world->now_us + RUN_WORK_S * SEC;
    map_init(&world->sessions);
    map_init(&world->truth.runs);
    map_init(&world->truth.alive);
    map_init(&world->truth.jobs);
    map_init(&world->truth.effects);
    faults_choose(world);
    world->machine_count = (unsigned)rand_skewed(&world->rand, 1, 16);
    world->machines = NEW_ARRAY(struct machine, world->machine_count);
    for (unsigned i = 0; i < world->machine_count; i++) {
        machine_init(world, &world->machines[i], i);
        world_later(world, rand_skewed(&world->rand, MS, 30 * SEC), switch_on, i, 0, 0);
    }
    world->host_count = world->options.controllers       ? world->options.controllers
                        : rand_chance(&world->rand, 120) ? HOSTS
                                                         : 1;
    if (world->host_count > 1)
        world->etcd = etcd_model_new(rand_u64(&world->rand));
    world->has_prolog = rand_chance(&world->rand, 300);
    world->result->faults = world->faults;
    world->result->nodes = world->machine_count;
    world->result->controllers = world->host_count;
    for (unsigned i = 0; i < world->host_count; i++)
        host_init(world, &world->hosts[i], i);
    world->follower = state_new();
}

static void unmake(struct world *world)
{
    for (unsigned i = 0; i < world->host_count; i++)
        host_done(&world->hosts[i]);
    cluster_done(world);
    state_free(world->follower);
    vec_done(&world->digests);
    queue_done(&world->queue);
    wire_done(world);
    for (unsigned i = 0; i < world->machine_count; i++)
        machine_done(&world->machines[i]);
    free(world->machines);
    people_done(world);
    truth_done(&world->truth);
}

/* Lets time pass until then; stops at a violation. */
static void pass(struct world *world, int64_t until_us)
{
    struct happening what;

    while (!world->violated) {
        int64_t next = world->queue.heap.len ? world->queue.heap.items[0].at_us : INT64_MAX;
        int64_t etcd = cluster_next_us(world);
        if (MIN(next, etcd) > until_us)
            break;
        world->now_us = MIN(next, etcd);
        cluster_move_clock(world);
        if (etcd < next) {
            etcd_model_step(world->etcd);
            continue;
        }
        queue_pop(&world->queue, &what);
        what.fn(world, &what);
        free(what.bytes);
    }
    if (!world->violated)
        world->now_us = MAX(world->now_us, until_us);
    cluster_move_clock(world);
}

static void come_to_rest(struct world *world)
{
    int64_t deadline = world->now_us + REST_WITHIN_S * SEC;

    faults_heal(world);
    while (!world->violated && !check_quiet(world, false) && world->now_us < deadline) {
        people_let_go(world);
        pass(world, world->now_us + LOOK_EVERY_S * SEC);
    }
    if (!world->violated)
        check_quiet(world, true);
}

void sim_run(const struct sim_options *options, struct sim_result *result)
{
    struct world *world = NEW(struct world);

    memset(result, 0, sizeof(*result));
    world->options = *options;
    world->result = result;
    rand_seed(&world->rand, options->seed);
    rng_seed(options->seed); /* what the engine draws for itself */
    clock_use(&clock_ops, world);
    log_use(options->trace ? log_line : log_nothing, world);
    make(world);
    TRACE(world, "seed %llu: %u controllers, %u nodes, faults %x",
          (unsigned long long)options->seed, world->host_count, world->machine_count,
          world->faults);
    for (unsigned i = 0; i < world->host_count; i++)
        host_start(&world->hosts[i]);
    people_begin(world);
    faults_begin(world);
    suspects_begin(world);
    pass(world, world->work_until_us);
    if (!world->violated)
        come_to_rest(world);
    for (unsigned i = 0; i < world->host_count; i++) {
        if (world->hosts[i].ctl)
            result->digest += core_digest(ctl_state(world->hosts[i].ctl));
    }
    unmake(world);
    log_use(NULL, NULL);
    clock_use(NULL, NULL);
    rng_unseed();
    free(world);
}
