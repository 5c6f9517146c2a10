/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.c - the machines of controllers: process, disk and clock
 *
 * The process is the real controller logic (src/spurctld/ctl/ctl_*.c), alone on the memory engine of
 * the log, or one of three on the real etcd engine with a model of etcd under it (cluster.c).
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

enum { BUSY_MOST = 1000 };

bool host_output(struct host *host)
{
    host->touched = true;
    if (host->dying)
        return false;
    if (host->outputs_left == 0) {
        host->dying = true; /* (1) */
        world_count(host->world, COUNT_MIDWAY);
        TRACE(host->world, "%s dies midway", host->name);
        return false;
    }
    if (host->outputs_left > 0)
        host->outputs_left--;
    return true;
}

int64_t host_wall(const struct host *host)
{
    return host->world->now_us + host->skew_us;
}

bool host_leads(const struct host *host)
{
    return host->ctl && ctl_is_leading(host->ctl);
}

bool host_is_stopped(const struct host *host)
{
    return host->stopped_until_us > host->world->now_us;
}

/* The process that it is about; NULL: it is gone, or stopped and will hear of it when it goes on. */
static struct host *host_at(struct world *world, uint64_t number, uint64_t life,
                            const struct happening *what)
{
    struct host *host = &world->hosts[number];

    if (host->life != life || !host->ctl)
        return NULL;
    if (!host_is_stopped(host))
        return host;
    struct happening again = *what;
    again.at_us = host->stopped_until_us;
    if (what->bytes) {
        again.bytes = mem_new(what->len + 1);
        memcpy(again.bytes, what->bytes, what->len);
    }
    queue_push(&world->queue, again);
    return NULL;
}

/* ---- what the logic asks of its process ---- */

static int64_t io_now(void *ctx)
{
    return host_wall(ctx);
}

static int64_t io_mono(void *ctx)
{
    const struct host *host = ctx;

    return host->world->now_us;
}

/* Now and then a turn of the loop that has much to do: what can wait is put off. */
static int64_t io_busy(void *ctx)
{
    const struct host *host = ctx;

    return rand_chance(&host->world->rand, 200) ? 10 * MS : 0;
}

static void timer_fires(struct world *world, const struct happening *what)
{
    enum ctl_timer timer = (enum ctl_timer)(what->a & 0xff);
    struct host *host = host_at(world, what->a >> 8, what->b, what);

    if (!host || host->timer_turn[timer] != what->c)
        return;
    if (timer == CTL_TIMER_REHASH && world->options.mutation == MUTATE_BLIND)
        return;
    if (!host_enter(host))
        return;
    TRACE(world, "%s timer %d", host->name, (int)timer);
    ctl_timer(host->ctl, timer);
    host_leave(host);
}

static void io_timer(void *ctx, enum ctl_timer timer, int64_t at_us)
{
    struct host *host = ctx;
    int64_t left_us = at_us - host_wall(host); /* (3) */

    host->timer_turn[timer]++;
    if (at_us && !host->dying)
        world_later(host->world, left_us > 0 ? (left_us + 999) / 1000 * 1000 : 0, timer_fires,
                    (uint64_t)host->number << 8 | timer, host->life, host->timer_turn[timer]);
}

static void io_send(void *ctx, uint64_t session, const CtlMessage *message)
{
    struct host *host = ctx;

    if (host_output(host))
        wire_to_node(host->world, session, message);
}

static void io_hang_up(void *ctx, uint64_t session)
{
    struct host *host = ctx;

    if (host_output(host))
        wire_hang_up(host->world, session);
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

static void io_hook(void *ctx, const struct ctl_hook *hook)
{
    (void)hook; /* mail: nothing follows from it */
    host_output(ctx);
}

static void poll_now(struct world *world, const struct happening *what)
{
    struct host *host = host_at(world, what->a, what->b, what);

    if (!host || !host_enter(host))
        return;
    host->poll_due = false;
    ctl_poll(host->ctl);
    host_leave(host);
}

static void io_wake(void *ctx)
{
    struct host *host = ctx;

    if (host->dying || host->poll_due)
        return;
    host->poll_due = true;
    world_later(host->world, rand_between(&host->world->rand, 5, 60), poll_now, host->number,
                host->life, 0);
}

static void io_fence(void *ctx, const char *why)
{
    struct host *host = ctx;

    host->touched = true;
    if (host->dying)
        return;
    TRACE(host->world, "%s fences itself: %s", host->name, why);
    if (!strstr(why, "input/output error"))
        world_violation(host->world, "%s fenced itself: %s", host->name, why);
    host->broken = host->dying = true;
}

/* ---- comparing with others ---- */

static void compare_now(struct world *world, const struct happening *what)
{
    struct host *host = host_at(world, what->a, what->b, what);

    if (!host || !host_enter(host))
        return;
    suspects_compare(world, host);
    ctl_marks_asked(host->ctl);
    host_leave(host);
}

static void io_ask_marks(void *ctx)
{
    struct host *host = ctx;

    world_later(host->world, rand_between(&host->world->rand, MS, 5 * MS), compare_now,
                host->number, host->life, 0);
}

/* The process ends its life and begins the next. */
static void io_reload(void *ctx, uint64_t agreed, const char *why)
{
    struct host *host = ctx;

    (void)agreed; /* there are no snapshots where there are several */
    host->touched = true;
    if (host->dying)
        return;
    TRACE(host->world, "%s reads its state again: %s", host->name, why);
    if (!host->world->result->count[COUNT_FLIPS])
        world_violation(host->world, "%s reads its state again, and nothing was wrong: %s",
                        host->name, why);
    world_count(host->world, COUNT_RELOADS);
    host->reloaded = state_head(ctl_state(host->ctl)).index;
    host->broken = host->dying = true;
}

/* ---- the disk of a lone controller ---- */

static void trace_batch(struct host *host)
{
    struct log_batch batch = memory_flying(ctl_log(host->ctl));
    struct log_walk walk;
    struct log_entry entry;

    for (log_walk_init(&walk, &batch); log_walk_next(&walk, &entry);)
        check_trace_command(host->world, entry.command);
}

static void settle_now(struct world *world, const struct happening *what)
{
    struct host *host = host_at(world, what->a, what->b, what);

    if (!host)
        return;
    host->settle_due = false;
    bool broken = fault_on(world, FAULT_DISK) && rand_chance(&world->rand, 1);
    if (broken)
        world_count(world, COUNT_DISK_BROKEN);
    else if (host->disk_full)
        world_count(world, COUNT_REFUSED);
    if (world->options.trace)
        trace_batch(host);
    if (!broken && !host->disk_full) {
        struct log_batch batch = memory_flying(ctl_log(host->ctl));
        check_written(world, &batch);
    }
    TRACE(world, "disk %s", broken ? "error" : host->disk_full ? "full" : "written");
    memory_settle(ctl_log(host->ctl), broken            ? MEMORY_BROKEN
                                      : host->disk_full ? MEMORY_FULL
                                                        : MEMORY_COMMIT);
}

static void disk_go(struct host *host)
{
    struct world *world = host->world;

    if (world->etcd || host->settle_due || !memory_in_flight(ctl_log(host->ctl)))
        return;
    host->settle_due = true;
    world_later(world, rand_skewed(&world->rand, 100, 3 * MS) + host->disk_slow_us, settle_now,
                host->number, host->life, 0);
}

static void flush_now(struct world *world, const struct happening *what)
{
    struct host *host = host_at(world, what->a, what->b, what);

    if (!host || !host_enter(host))
        return;
    host->flush_due = false;
    ctl_flush(host->ctl);
    host_leave(host);
}

/* ---- snapshots: written by a child that sees the state as it was ---- */

static int write_piece(void *to, const void *bytes, size_t len)
{
    return snapshot_write(to, bytes, len, NULL);
}

static void snapshot_ends(struct world *world, const struct happening *what)
{
    struct host *host = host_at(world, what->a, what->b, what);
    struct snapshot_reader *reader = NULL;
    struct span bytes = { (char *)what->bytes, what->len };
    struct err err = { 0 };

    if (!host || !host_enter(host))
        return;
    host->snapshot_due = false;
    snapshot_open_memory(bytes, &reader, &err);
    struct log_point point = snapshot_point(reader);
    snapshot_close(reader);
    memory_disk_snapshot(host->disk, point, bytes);
    if (log_snapshot_taken(ctl_log(host->ctl), point, &err) < 0)
        world_violation(world, "snapshot %llu was refused: %s", (unsigned long long)point.index,
                        err.text);
    world_count(world, COUNT_SNAPSHOTS);
    TRACE(world, "%s has a snapshot of index %llu", host->name, (unsigned long long)point.index);
    host_leave(host);
}

static void snapshot_maybe(struct host *host)
{
    struct world *world = host->world;
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
    world_later_bytes(world, world->now_us + rand_skewed(&world->rand, MS, 5 * SEC), snapshot_ends,
                      host->number, host->life, (uint8_t *)str_take(&bytes), len);
}

/* ---- calls into the process ---- */

bool host_enter(struct host *host)
{
    struct world *world = host->world;

    if (!host->ctl || world->violated)
        return false;
    world->result->step++;
    world_count(world, COUNT_STEPS);
    /* Nobody may be busy for ever without time passing; but much waits for one that was stopped. */
    bool goes_on = world->now_us == host->stopped_until_us;
    host->busy = world->now_us == host->busy_us && !goes_on ? host->busy + 1 : 0;
    host->busy_us = world->now_us;
    if (host->busy > BUSY_MOST)
        world_violation(world, "%s was called %u times in the same moment", host->name, host->busy);
    return !world->violated;
}

static void bury(struct host *host, const char *why);

static void free_answered(struct host *host)
{
    for (size_t i = 0; i < host->answered.len; i++)
        ask_free(host->answered.items[i]);
    vec_clear(&host->answered);
}

void host_leave(struct host *host)
{
    struct world *world = host->world;

    host->touched = false;
    if (host->dying) {
        check_step(host); /* what it has applied is durable, whoever heard of it */
        bury(host, host->broken ? "its disk failed" : "midway");
        return;
    }
    /* The end of a turn of the loop; sometimes the turn takes more than one happening. */
    if (rand_chance(&world->rand, 800)) {
        ctl_flush(host->ctl);
    } else if (!host->flush_due) {
        host->flush_due = true;
        world_later(world, rand_between(&world->rand, 10, 400), flush_now, host->number, host->life,
                    0);
    }
    disk_go(host);
    check_step(host);
    snapshot_maybe(host);
    free_answered(host);
}

/* ---- life and death ---- */

static void start_now(struct world *world, const struct happening *what)
{
    host_start(&world->hosts[what->a]);
}

/* (2) */
static void end_disk(struct host *host)
{
    struct world *world = host->world;
    struct log *log = ctl_log(host->ctl);

    if (world->etcd || !memory_in_flight(log))
        return;
    bool written = rand_chance(&world->rand, 500);
    struct log_batch batch = memory_flying(log);
    world_count(world, COUNT_INFLIGHT);
    TRACE(world, "batch in flight %s", written ? "written" : "lost");
    if (written)
        check_written(world, &batch);
    memory_settle(log, written ? MEMORY_COMMIT : MEMORY_FULL);
}

static void bury(struct host *host, const char *why)
{
    struct world *world = host->world;

    host->dying = true;
    world_count(world, COUNT_CRASHES);
    TRACE(world, "%s dies (%s)%s", host->name, why, host_leads(host) ? ", leading" : "");
    end_disk(host);
    cluster_host_dies(host);
    ctl_free(host->ctl);
    host->ctl = NULL;
    map_each (entry, &host->asks)
        ask_free(entry->value);
    map_clear(&host->asks);
    free_answered(host);
    host->dying = host->broken = host->led = false;
    host->flipped_us = 0;
    host->outputs_left = -1;
    host->poll_due = host->settle_due = host->flush_due = host->snapshot_due = false;
    if (world->options.mutation == MUTATE_LYING_DISK)
        memory_disk_forget(host->disk, 1);
    wire_host_died(host);
    if (!world->violated)
        world_later(world, rand_skewed(&world->rand, 20 * MS, 40 * SEC), start_now, host->number, 0,
                    0);
}

void host_crash(struct host *host, const char *why)
{
    if (host->ctl)
        bury(host, why);
}

static struct log *open_log(void *arg, const struct log_owner *owner, void *owner_ctx,
                            struct err *err)
{
    struct host *host = arg;
    struct world *world = host->world;
    struct log_config config = {
        .dir = "",
        .name = host->name,
        .owner = owner,
        .owner_ctx = owner_ctx,
        .snapshot_bytes = (uint64_t)rand_skewed(&world->rand, 2000, 100000),
    };

    if (world->etcd)
        config.snapshot_bytes =
            INT64_MAX; /* the log is not trimmed: peers fetch no snapshots yet */
    return world->etcd ? cluster_open_log(host, &config, err) : log_memory_new(&config, host->disk);
}

void host_start(struct host *host)
{
    static const uint8_t cluster_id[16] = "simulated spur";
    struct world *world = host->world;
    struct ctl_io io = {
        .ctx = host,
        .now_us = io_now,
        .mono_us = io_mono,
        .busy_us = io_busy,
        .timer = io_timer,
        .send = io_send,
        .hang_up = io_hang_up,
        .digest = io_digest,
        .hook = io_hook,
        .wake = io_wake,
        .fence = io_fence,
        .ask_marks = io_ask_marks,
        .reload = io_reload,
    };
    struct ctl_options options = { .name = host->name,
                                   .address = host->name,
                                   .cluster_id = cluster_id,
                                   .ids_per_command = 3,
                                   .wide_from = 1,
                                   .controllers = host->world->host_count,
                                   .reloaded = host->reloaded,
                                   .reloads = host->reloaded != 0 };
    struct err err = { 0 };

    if (host->ctl || world->violated)
        return;
    host->reloaded = 0;
    host->life++;
    suspects_started(host);
    TRACE(world, "%s starts, life %llu", host->name, (unsigned long long)host->life);
    host->ctl = ctl_new(&io, &options, open_log, host, &err);
    if (!host->ctl) {
        world_violation(world, "%s does not start: %s", host->name, err.text);
        return;
    }
    check_recovered(host);
    if (!host_enter(host))
        return;
    Config *config = host_config(world);
    ctl_set_config(host->ctl, config, false, NULL, NULL);
    config__free_unpacked(config, NULL);
    host_leave(host);
}

void host_init(struct world *world, struct host *host, unsigned number)
{
    host->world = world;
    host->number = number;
    snprintf(host->name, sizeof(host->name), "c%u", number + 1);
    host->disk = memory_disk_new();
    host->outputs_left = -1;
    map_init(&host->asks);
}

void host_done(struct host *host)
{
    host->dying = true;
    cluster_host_dies(host);
    ctl_free(host->ctl);
    host->ctl = NULL;
    map_each (entry, &host->asks)
        ask_free(entry->value);
    map_done(&host->asks);
    free_answered(host);
    vec_done(&host->answered);
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
    unsigned version = world->config_version;
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
