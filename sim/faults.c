/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults.c - what goes wrong, and when
 *
 * Each kind has a row: the seed decides which rows a run has, a row comes at random times.
 */
#include "log/etcd_model.h"
#include "sim/flips.h"
#include "sim/world.h"
#include "spurctld/ctl/ctl_priv.h"

static struct machine *some_machine(struct world *world)
{
    return &world->machines[rand_below(&world->rand, world->machine_count)];
}

/* ---- controllers ---- */

/* The leader, mostly. */
static struct host *some_host(struct world *world)
{
    struct host *leader = world_leader(world);

    if (leader && rand_chance(&world->rand, 600))
        return leader;
    return &world->hosts[rand_below(&world->rand, world->host_count)];
}

static void crash(struct world *world)
{
    struct host *host = some_host(world);

    if (!host->ctl)
        return;
    if (rand_chance(&world->rand, 300) && !host_is_stopped(host))
        host_crash(host, "killed");
    else
        host->outputs_left = (int)rand_skewed(&world->rand, 0, 12);
}

static void stop_one(struct world *world)
{
    struct host *host = some_host(world);
    int64_t takes = rand_skewed(&world->rand, 100 * MS, 30 * SEC);

    if (rand_chance(&world->rand, 30))
        takes = rand_between(&world->rand, 100 * SEC, 3600 * SEC); /* ids are forgotten meanwhile */
    if (!host->ctl || host_is_stopped(host))
        return;
    host->stopped_until_us = world->now_us + takes;
    world_count(world, COUNT_STOPS);
    TRACE(world, "%s is stopped for %lld ms", host->name, (long long)(takes / MS));
}

static void clock_jumps(struct world *world)
{
    struct host *host = some_host(world);
    int64_t by = rand_skewed(&world->rand, SEC, 2 * 3600 * SEC);

    if (rand_chance(&world->rand, 500))
        by = -by;
    host->skew_us += by;
    host->most_skew_us = MAX(host->most_skew_us, host->skew_us);
    world_count(world, COUNT_JUMPS);
    TRACE(world, "clock of %s jumps by %lld s", host->name, (long long)(by / SEC));
}

static void disk_well(struct world *world, const struct happening *what)
{
    (void)what;
    TRACE(world, "disk is well again");
    world->hosts[0].disk_full = false;
    world->hosts[0].disk_slow_us = 0;
    if (world->etcd)
        etcd_model_set_full(world->etcd, false);
}

static void disk_ill(struct world *world)
{
    struct host *host = &world->hosts[0];

    if (world->etcd) {
        etcd_model_set_full(world->etcd, true);
        world_count(world, COUNT_DISK_FULL);
        TRACE(world, "etcd is full");
    } else if (rand_chance(&world->rand, 600)) {
        host->disk_full = true;
        world_count(world, COUNT_DISK_FULL);
        TRACE(world, "disk is full");
    } else {
        host->disk_slow_us = rand_skewed(&world->rand, 10 * MS, 3 * SEC);
        TRACE(world, "disk is slow");
    }
    world_later(world, rand_skewed(&world->rand, 100 * MS, 120 * SEC), disk_well, 0, 0, 0);
}

/* ---- controllers and etcd ---- */

static void links_change(struct world *world, const struct happening *what)
{
    (void)what;
    cluster_links(world);
}

static void quorum_back(struct world *world, const struct happening *what)
{
    (void)what;
    TRACE(world, "etcd has a majority again");
    etcd_model_set_quorum(world->etcd, true);
}

static void cut_one(struct world *world)
{
    struct host *host = some_host(world);
    int64_t takes = rand_skewed(&world->rand, 100 * MS, 60 * SEC);

    world_count(world, COUNT_CUTS);
    if (rand_chance(&world->rand, 300)) {
        TRACE(world, "etcd has no majority for %lld ms", (long long)(takes / MS));
        etcd_model_set_quorum(world->etcd, false);
        world_later(world, takes, quorum_back, 0, 0, 0);
        return;
    }
    TRACE(world, "%s is cut off from etcd for %lld ms", host->name, (long long)(takes / MS));
    host->cut_until_us = world->now_us + takes;
    cluster_links(world);
    world_later(world, takes, links_change, 0, 0, 0);
}

/* ---- memory ---- */

/* One at a time: of three, two must be right. */
static void flip(struct world *world)
{
    struct host *host = some_host(world);

    if (!world->etcd || !host->ctl || host_is_stopped(host) || world_is_flipped(world))
        return;
    host->flipped_what = flip_something(host->ctl->state, &world->rand);
    if (!host->flipped_what)
        return;
    host->flipped_us = world->now_us;
    world_count(world, COUNT_FLIPS);
    TRACE(world, "memory of %s is wrong: %s", host->name, host->flipped_what);
}

/* ---- nodes ---- */

static void agent_back(struct world *world, const struct happening *what)
{
    machine_agent_start(world, &world->machines[what->a]);
}

static void agent_dies(struct world *world)
{
    struct machine *machine = some_machine(world);

    machine_agent_kill(world, machine);
    world_later(world, rand_skewed(&world->rand, 50 * MS, 400 * SEC), agent_back, machine->number,
                0, 0);
}

static void power_back(struct world *world, const struct happening *what)
{
    machine_power_on(world, &world->machines[what->a]);
}

static void power_fails(struct world *world)
{
    struct machine *machine = some_machine(world);

    machine_power_off(world, machine);
    world_later(world, rand_skewed(&world->rand, SEC, 500 * SEC), power_back, machine->number, 0,
                0);
}

/* ---- the network ---- */

/* An agent whose pings get no answer gives its connection up. */
static void pings_lost(struct world *world, const struct happening *what)
{
    struct machine *machine = &world->machines[what->a];

    if (machine->session != what->b || !machine->session ||
        MAX(machine->blocked_us[TO_CTL], machine->blocked_us[TO_NODE]) <= world->now_us)
        return;
    TRACE(world, "%s gives up its session", machine->name);
    wire_close(world, machine->session);
    machine_closed(world, machine, machine->session);
}

static void swallow(struct world *world)
{
    if (world->etcd && rand_chance(&world->rand, 300)) {
        cut_one(world);
        return;
    }
    struct machine *machine = some_machine(world);
    int64_t until = world->now_us + rand_skewed(&world->rand, 100 * MS, 450 * SEC);
    unsigned ways = 1 + (unsigned)rand_below(&world->rand, 3);

    world_count(world, COUNT_PARTITIONS);
    if (ways & 1)
        machine->blocked_us[TO_CTL] = until;
    if (ways & 2)
        machine->blocked_us[TO_NODE] = until;
    TRACE(world, "%s: packets swallowed (%u) for %lld ms", machine->name, ways,
          (long long)((until - world->now_us) / MS));
    world_later(world, 15 * SEC, pings_lost, machine->number, machine->session, 0);
}

static void break_one(struct world *world)
{
    struct machine *machine = some_machine(world);

    if (machine->session) {
        TRACE(world, "session of %s breaks", machine->name);
        wire_break(world, machine->session);
    }
}

/* ---- the table ---- */

static const struct row {
    unsigned fault;
    unsigned every_s; /* on average about half of it */
    void (*fn)(struct world *world);
} rows[] = {
    { FAULT_CRASH, 120, crash },       { FAULT_DISK, 200, disk_ill },
    { FAULT_AGENT, 150, agent_dies },  { FAULT_REBOOT, 300, power_fails },
    { FAULT_PARTITION, 150, swallow }, { FAULT_REPORTS, 60, break_one },
    { FAULT_CLOCK, 300, clock_jumps }, { FAULT_STOP, 200, stop_one },
    { FAULT_FLIP, 240, flip },
};

static void happens(struct world *world, const struct happening *what)
{
    const struct row *row = &rows[what->a];

    if (!fault_on(world, row->fault) || world->now_us >= world->work_until_us)
        return;
    row->fn(world);
    world_later(world, rand_skewed(&world->rand, 10 * MS, row->every_s * SEC), happens, what->a, 0,
                0);
}

void faults_choose(struct world *world)
{
    unsigned dice = (unsigned)rand_below(&world->rand, 100);

    if (world->options.only)
        world->faults = world->options.only;
    else if (dice < 5)
        world->faults = 0;
    else if (dice < 50)
        world->faults = 1u << rand_below(&world->rand, 11);
    else
        world->faults = (unsigned)rand_u64(&world->rand) & FAULT_ALL;
}

void faults_begin(struct world *world)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        world_later(world, rand_skewed(&world->rand, SEC, rows[i].every_s * SEC), happens, i, 0, 0);
}

void faults_heal(struct world *world)
{
    TRACE(world, "everything is healed");
    world->healed = true;
    for (unsigned i = 0; i < world->host_count; i++) {
        struct host *host = &world->hosts[i];
        host->disk_full = false;
        host->disk_slow_us = 0;
        host->outputs_left = -1;
        host->skew_us = host->most_skew_us; /* every begin time will come */
    }
    if (world->etcd) {
        etcd_model_set_full(world->etcd, false);
        etcd_model_set_quorum(world->etcd, true);
        cluster_links(world);
    }
    for (unsigned i = 0; i < world->machine_count; i++) {
        struct machine *machine = &world->machines[i];
        machine->blocked_us[TO_CTL] = MIN(machine->blocked_us[TO_CTL], world->now_us);
        machine->blocked_us[TO_NODE] = MIN(machine->blocked_us[TO_NODE], world->now_us);
        machine_power_on(world, machine);
        machine_agent_start(world, machine);
    }
    wire_heal(world);
}
