/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.c - the machine of the controller: its process, disk and clock
 *
 * The process is the real controller logic (src/spurctld/ctl_*.c) on the memory engine of the log.
 *
 * (1) A crash may come between any two outputs: host_output() counts them, and from the one that
 *     does not get out on nothing does. The process then ends when the call returns; what it did
 *     after that output reached nobody, so it is as if it had died there.
 * (2) Whether the batch that was being written is on the disk is decided when the process dies.
 *     All that was ever said to be durable is.
 * (3) Timers are set by wall time and run by true time, as uv timers do.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "log/snapshot.h"
#include "sim/world.h"

bool host_output(struct world *world)
{
    struct host *host = &world->host;

    if (host->dying)
        return false;
    if (host->outputs_left == 0) {
        host->dying = true; /* (1) */
        world_count(world, COUNT_MIDWAY);
        TRACE(world, "ctl dies midway");
        return false;
    }
    if (host->outputs_left > 0)
        host->outputs_left--;
    return true;
}

int64_t host_wall(const struct world *world)
{
    return world->now_us + world->host.skew_us;
}

/* ---- what the logic asks of its process ---- */

static int64_t io_now(void *ctx)
{
    return host_wall(ctx);
}

static int64_t io_mono(void *ctx)
{
    const struct world *world = ctx;

    return world->now_us;
}

static void timer_fires(struct world *world, const struct happening *what)
{
    struct host *host = &world->host;

    if (host->life != what->b || host->timer_turn[what->a] != what->c || !host_enter(world))
        return;
    TRACE(world, "ctl timer %d", (int)what->a);
    ctl_timer(host->ctl, (enum ctl_timer)what->a);
    host_leave(world);
}

static void io_timer(void *ctx, enum ctl_timer timer, int64_t at_us)
{
    struct world *world = ctx;
    struct host *host = &world->host;
    int64_t left_us = at_us - host_wall(world); /* (3) */

    host->timer_turn[timer]++;
    if (at_us && !host->dying)
        world_later(world, left_us > 0 ? (left_us + 999) / 1000 * 1000 : 0, timer_fires, timer,
                    host->life, host->timer_turn[timer]);
}

static void io_send(void *ctx, uint64_t session, const CtlMessage *message)
{
    if (host_output(ctx))
        wire_to_node(ctx, session, message);
}

static void io_hang_up(void *ctx, uint64_t session)
{
    if (host_output(ctx))
        wire_hang_up(ctx, session);
}

/* Not SHA-256: nobody attacks here, and it is called often. */
static void io_digest(void *ctx, const void *bytes, size_t len, uint8_t out[32])
{
    (void)ctx;
    for (uint64_t i = 0; i < 4; i++) {
        uint64_t part = hash_bytes(bytes, len, i);
        memcpy(out + 8 * i, &part, 8);
    }
}

static void hook_ends(struct world *world, const struct happening *what)
{
    if (world->host.life != what->c || !host_enter(world))
        return;
    ctl_hook_done(world->host.ctl, (const char *)what->bytes, (uint32_t)what->a, (uint32_t)what->b,
                  0);
    host_leave(world);
}

static void io_hook(void *ctx, const struct ctl_hook *hook)
{
    struct world *world = ctx;

    if (!host_output(world))
        return;
    queue_push(&world->queue, (struct happening){
                                  .at_us = world->now_us + rand_skewed(&world->rand, MS, SEC),
                                  .fn = hook_ends,
                                  .a = hook->job_id,
                                  .b = hook->attempt,
                                  .c = world->host.life,
                                  .bytes = (uint8_t *)mem_strdup(hook->what),
                              });
}

static void poll_now(struct world *world, const struct happening *what)
{
    struct host *host = &world->host;

    if (host->life != what->a || !host_enter(world))
        return;
    host->poll_due = false;
    ctl_poll(host->ctl);
    host_leave(world);
}

static void io_wake(void *ctx)
{
    struct world *world = ctx;
    struct host *host = &world->host;

    if (host->dying || host->poll_due)
        return;
    host->poll_due = true;
    world_later(world, rand_between(&world->rand, 5, 60), poll_now, host->life, 0, 0);
}

static void io_fence(void *ctx, const char *why)
{
    struct world *world = ctx;

    if (world->host.dying)
        return;
    TRACE(world, "ctl fences itself: %s", why);
    if (!strstr(why, "input/output error"))
        world_violation(world, "the controller fenced itself: %s", why);
    world->host.broken = world->host.dying = true;
}

/* ---- the disk ---- */

static void trace_batch(struct world *world)
{
    struct log_batch batch = memory_flying(ctl_log(world->host.ctl));
    struct log_walk walk;
    struct log_entry entry;

    for (log_walk_init(&walk, &batch); log_walk_next(&walk, &entry);) {
        Command *command =
            command__unpack(NULL, entry.command.len, (const uint8_t *)entry.command.ptr);
        const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(
            &command__descriptor, (unsigned)command->what_case);
        char about[64] = "";
        if (command->what_case == COMMAND__WHAT_START && command->start->n_starts) {
            const JobStart *start = command->start->starts[0];
            snprintf(about, sizeof(about), "%u.%u task %d on %s", start->job_id, start->attempt,
                     start->has_array_task_id ? (int)start->array_task_id : -1,
                     start->allocation->nodes[0]->node);
        } else if (command->what_case == COMMAND__WHAT_FINISH) {
            snprintf(about, sizeof(about), "%u.%u", command->finish->job_id,
                     command->finish->attempt);
        } else if (command->what_case == COMMAND__WHAT_RELEASE) {
            snprintf(about, sizeof(about), "%u.%u by %s", command->release->job_id,
                     command->release->attempt, command->release->nodes[0]);
        }
        TRACE(world, "  command %s %s", field ? field->name : "?", about);
        command__free_unpacked(command, NULL);
    }
}

static void settle_now(struct world *world, const struct happening *what)
{
    struct host *host = &world->host;

    if (host->life != what->a || !host->ctl)
        return;
    host->settle_due = false;
    bool broken = fault_on(world, FAULT_DISK) && rand_chance(&world->rand, 1);
    if (broken)
        world_count(world, COUNT_DISK_BROKEN);
    else if (host->disk_full)
        world_count(world, COUNT_REFUSED);
    if (world->options.trace)
        trace_batch(world);
    if (!broken && !host->disk_full) {
        struct log_batch batch = memory_flying(ctl_log(host->ctl));
        check_written(world, &batch);
    }
    TRACE(world, "disk %s", broken ? "error" : host->disk_full ? "full" : "written");
    memory_settle(ctl_log(host->ctl), broken            ? MEMORY_BROKEN
                                      : host->disk_full ? MEMORY_FULL
                                                        : MEMORY_COMMIT);
}

static void disk_go(struct world *world)
{
    struct host *host = &world->host;

    if (host->settle_due || !memory_in_flight(ctl_log(host->ctl)))
        return;
    host->settle_due = true;
    world_later(world, rand_skewed(&world->rand, 100, 3 * MS) + host->disk_slow_us, settle_now,
                host->life, 0, 0);
}

static void flush_now(struct world *world, const struct happening *what)
{
    struct host *host = &world->host;

    if (host->life != what->a || !host_enter(world))
        return;
    host->flush_due = false;
    ctl_flush(host->ctl);
    host_leave(world);
}

/* ---- snapshots: written by a child that sees the state as it was ---- */

struct child {
    struct log_point point;
    struct str bytes;
};

static int write_piece(void *to, const void *bytes, size_t len)
{
    return snapshot_write(to, bytes, len, NULL);
}

static void snapshot_ends(struct world *world, const struct happening *what)
{
    struct host *host = &world->host;
    struct log_point point = { .index = what->a, .crc = (uint32_t)what->b };
    struct err err = { 0 };

    if (host->life != what->c || !host_enter(world))
        return;
    host->snapshot_due = false;
    memory_disk_snapshot(host->disk, point, (struct span){ (char *)what->bytes, what->len });
    if (log_snapshot_taken(ctl_log(host->ctl), point, &err) < 0)
        world_violation(world, "snapshot %llu was refused: %s", (unsigned long long)point.index,
                        err.text);
    world_count(world, COUNT_SNAPSHOTS);
    TRACE(world, "snapshot of index %llu", (unsigned long long)point.index);
    host_leave(world);
}

static void snapshot_maybe(struct world *world)
{
    struct host *host = &world->host;
    struct log_point point = log_point(ctl_log(host->ctl));
    struct str bytes = { 0 };

    if (host->snapshot_due || !log_wants_snapshot(ctl_log(host->ctl)))
        return;
    host->snapshot_due = true;
    struct snapshot_writer *writer = snapshot_create_memory(point, &bytes);
    if (core_snapshot_write(ctl_state(host->ctl), write_piece, writer) < 0)
        world_violation(world, "a snapshot could not be written");
    snapshot_finish(writer, NULL);
    size_t len = bytes.len;
    queue_push(&world->queue,
               (struct happening){ .at_us = world->now_us + rand_skewed(&world->rand, MS, 5 * SEC),
                                   .fn = snapshot_ends,
                                   .a = point.index,
                                   .b = point.crc,
                                   .c = host->life,
                                   .bytes = (uint8_t *)str_take(&bytes),
                                   .len = len });
}

/* ---- calls into the process ---- */

bool host_enter(struct world *world)
{
    if (!world->host.ctl || world->violated)
        return false;
    world->result->step++;
    world_count(world, COUNT_STEPS);
    return true;
}

static void bury(struct world *world, const char *why);

void host_leave(struct world *world)
{
    struct host *host = &world->host;

    if (host->dying) {
        check_step(world); /* what it has applied is durable, whoever heard of it */
        bury(world, host->broken ? "its disk failed" : "midway");
        return;
    }
    /* The end of a turn of the loop; sometimes the turn takes more than one happening. */
    if (rand_chance(&world->rand, 800)) {
        ctl_flush(host->ctl);
    } else if (!host->flush_due) {
        host->flush_due = true;
        world_later(world, rand_between(&world->rand, 10, 400), flush_now, host->life, 0, 0);
    }
    disk_go(world);
    check_step(world);
    snapshot_maybe(world);
    for (size_t i = 0; i < host->answered.len; i++)
        ask_free(host->answered.items[i]);
    vec_clear(&host->answered);
}

/* ---- life and death ---- */

static void start_now(struct world *world, const struct happening *what)
{
    (void)what;
    host_start(world);
}

static void bury(struct world *world, const char *why)
{
    struct host *host = &world->host;
    struct log *log = ctl_log(host->ctl);

    host->dying = true;
    world_count(world, COUNT_CRASHES);
    if (memory_in_flight(log)) { /* (2) */
        bool written = rand_chance(&world->rand, 500);
        world_count(world, COUNT_INFLIGHT);
        TRACE(world, "ctl dies (%s), batch in flight %s", why, written ? "written" : "lost");
        struct log_batch batch = memory_flying(log);
        if (written)
            check_written(world, &batch);
        memory_settle(log, written ? MEMORY_COMMIT : MEMORY_FULL);
    } else {
        TRACE(world, "ctl dies (%s)", why);
    }
    ctl_free(host->ctl);
    host->ctl = NULL;
    map_each (entry, &host->asks)
        ask_free(entry->value);
    map_clear(&host->asks);
    for (size_t i = 0; i < host->answered.len; i++)
        ask_free(host->answered.items[i]);
    vec_clear(&host->answered);
    host->dying = host->broken = false;
    host->outputs_left = -1;
    host->poll_due = host->settle_due = host->flush_due = host->snapshot_due = false;
    if (world->options.mutation == MUTATE_LYING_DISK)
        memory_disk_forget(host->disk, 1);
    wire_host_died(world);
    if (!world->violated)
        world_later(world, rand_skewed(&world->rand, 20 * MS, 40 * SEC), start_now, 0, 0, 0);
}

void host_crash(struct world *world, const char *why)
{
    if (world->host.ctl)
        bury(world, why);
}

static struct log *open_log(void *arg, const struct log_owner *owner, void *owner_ctx,
                            struct err *err)
{
    struct world *world = arg;
    struct log_config config = {
        .dir = "",
        .name = "c1",
        .owner = owner,
        .owner_ctx = owner_ctx,
        .snapshot_bytes = (uint64_t)rand_skewed(&world->rand, 2000, 100000),
    };

    (void)err;
    return log_memory_new(&config, world->host.disk);
}

void host_start(struct world *world)
{
    static const uint8_t cluster_id[16] = "simulated spur";
    struct host *host = &world->host;
    struct ctl_io io = {
        .ctx = world,
        .now_us = io_now,
        .mono_us = io_mono,
        .timer = io_timer,
        .send = io_send,
        .hang_up = io_hang_up,
        .digest = io_digest,
        .hook = io_hook,
        .wake = io_wake,
        .fence = io_fence,
    };
    struct ctl_options options = { .name = "c1", .address = "c1:6817", .cluster_id = cluster_id };
    struct err err = { 0 };

    if (host->ctl || world->violated)
        return;
    host->life++;
    TRACE(world, "ctl starts, life %llu", (unsigned long long)host->life);
    host->ctl = ctl_new(&io, &options, open_log, world, &err);
    if (!host->ctl) {
        world_violation(world, "the controller does not start: %s", err.text);
        return;
    }
    check_recovered(world);
    host_enter(world);
    Config *config = host_config(world);
    ctl_set_config(host->ctl, config, false);
    config__free_unpacked(config, NULL);
    host_leave(world);
}

void host_init(struct world *world)
{
    struct host *host = &world->host;

    host->disk = memory_disk_new();
    host->follower = state_new();
    host->outputs_left = -1;
    map_init(&host->asks);
}

void host_done(struct world *world)
{
    struct host *host = &world->host;

    host->dying = true;
    ctl_free(host->ctl);
    host->ctl = NULL;
    map_each (entry, &host->asks)
        ask_free(entry->value);
    map_done(&host->asks);
    for (size_t i = 0; i < host->answered.len; i++)
        ask_free(host->answered.items[i]);
    vec_done(&host->answered);
    state_free(host->follower);
    memory_disk_free(host->disk);
}

/* ---- configuration ---- */

static PartitionSpec *partition(const char *name, bool is_default, const char *nodes)
{
    PartitionSpec *spec = NEW(PartitionSpec);

    partition_spec__init(spec);
    spec->name = mem_strdup(name);
    spec->has_is_default = true;
    spec->is_default = is_default;
    spec->nodes = mem_strdup(nodes);
    spec->has_state = true;
    spec->state = PARTITION_UP;
    spec->has_default_time_s = true;
    spec->default_time_s = 600;
    return spec;
}

static NodeSpec *node_spec(const struct machine *machine)
{
    NodeSpec *spec = NEW(NodeSpec);

    node_spec__init(spec);
    spec->name = mem_strdup(machine->name);
    spec->has_cpus = spec->has_memory_mb = true;
    spec->cpus = machine->cpus;
    spec->memory_mb = machine->mem_mb;
    return spec;
}

/* What the file says now; each reconfigure finds another version. The caller frees it. */
Config *host_config(struct world *world)
{
    Config *config = NEW(Config);
    unsigned version = world->host.config_version;
    char all[32], half[32];

    config__init(config);
    snprintf(all, sizeof(all), "n[1-%u]", world->machine_count);
    snprintf(half, sizeof(half), "n[1-%u]", (world->machine_count + 1) / 2);
    config->cluster_name = mem_strdup("sim");
    config->hash = mem_printf("version-%u", version);
    config->n_nodes = world->machine_count;
    config->nodes = NEW_ARRAY(NodeSpec *, world->machine_count);
    for (unsigned i = 0; i < world->machine_count; i++)
        config->nodes[i] = node_spec(&world->machines[i]);
    config->n_partitions = version % 3 == 2 ? 3 : 2;
    config->partitions = NEW_ARRAY(PartitionSpec *, 3);
    config->partitions[0] = partition("all", true, all);
    config->partitions[1] = partition("half", false, half);
    if (version % 3 == 2)
        config->partitions[2] = partition("extra", false, all);
    config->has_min_job_age_s = config->has_agent_timeout_s = config->has_node_timeout_s = true;
    config->min_job_age_s = 7 * 24 * 3600;
    config->agent_timeout_s = AGENT_TIMEOUT_S;
    config->node_timeout_s = NODE_TIMEOUT_S;
    config->has_kill_wait_s = config->has_return_to_service = config->has_job_requeue = true;
    config->kill_wait_s = KILL_WAIT_S;
    config->return_to_service = 2;
    config->job_requeue = true;
    if (world->has_prolog)
        config->prolog = mem_strdup("/etc/spur/prolog");
    config->has_max_batch_requeue = true;
    config->max_batch_requeue = 1000; /* people would have to release what is held after five */
    return config;
}
