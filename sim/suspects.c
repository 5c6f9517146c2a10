/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suspects.c - controllers that hear each other, and depose a leader that they do not
 *
 * src/spurctld/ctl/suspect.c decides, as in the real process; here is who hears whom. A process that is
 * not there is refused, one that is stopped or cut off says nothing, and with partitions two
 * of them may lose sight of each other for a while, in one direction.
 */
#include <string.h>

#include "sim/world.h"
#include "spurctld/ctl/agree.h"
#include "spurctld/ctl/suspect.h"

#define LOOK_US (250 * MS)

bool suspects_reach(const struct world *world, const struct host *from, const struct host *to)
{
    return !host_is_stopped(to) && from->cut_until_us <= world->now_us &&
           to->cut_until_us <= world->now_us && from->deaf_us[to->number] <= world->now_us;
}

static int64_t now_ms(const struct world *world)
{
    return (world->now_us - world->begin_us) / MS;
}

static void hear_others(struct world *world, struct host *host)
{
    for (unsigned i = 0; i < world->host_count; i++) {
        struct host *other = &world->hosts[i];
        if (other == host || !suspects_reach(world, host, other))
            continue;
        if (other->ctl)
            suspect_heard(&host->suspect, i, other->life, now_ms(world));
        else
            suspect_gone(&host->suspect, i, now_ms(world));
    }
}

void suspects_compare(struct world *world, struct host *host)
{
    struct agree_said said;

    for (unsigned i = 0; i < world->host_count && host->ctl && !host->dying; i++) {
        struct host *other = &world->hosts[i];
        if (other == host || !other->ctl || !suspects_reach(world, host, other) ||
            world->options.mutation == MUTATE_BLIND)
            continue;
        ctl_marks_say(other->ctl, &said);
        ctl_marks_heard(host->ctl, other->name, &said);
    }
}

bool world_is_flipped(const struct world *world)
{
    for (unsigned i = 0; i < world->host_count; i++) {
        if (world->hosts[i].ctl && world->hosts[i].flipped_us)
            return true;
    }
    return false;
}

static size_t number_of(const struct world *world, const char *name)
{
    for (unsigned i = 0; i < world->host_count; i++) {
        if (strcmp(world->hosts[i].name, name) == 0)
            return i;
    }
    return SIZE_MAX;
}

static void ask_others(struct world *world, struct host *host, size_t leader, int64_t term)
{
    for (unsigned i = 0; i < world->host_count; i++) {
        struct host *other = &world->hosts[i];
        if (host->suspect.peers[i].asked && other->ctl && suspects_reach(world, host, other))
            suspect_answer(&host->suspect, i, term,
                           suspect_hears(&other->suspect, leader, now_ms(world)));
    }
}

static void look(struct world *world, struct host *host)
{
    struct log_leader leader = log_leader(ctl_log(host->ctl));
    size_t number = leader.self ? SIZE_MAX : number_of(world, leader.name);
    int64_t term = leader.term;
    enum suspect_act act = suspect_look(&host->suspect, number, term, now_ms(world));

    if (act == SUSPECT_ASK) {
        ask_others(world, host, number, term);
        act = suspect_look(&host->suspect, number, term, now_ms(world));
    }
    if (act != SUSPECT_DEPOSE || !host_enter(host))
        return;
    TRACE(world, "%s deposes %s", host->name, leader.name);
    world_count(world, COUNT_DEPOSED);
    log_depose(ctl_log(host->ctl), term);
    host_leave(host);
}

static void go_deaf(struct world *world)
{
    struct rand *rand = &world->suspect_rand;

    if (!fault_on(world, FAULT_PARTITION) || !rand_chance(rand, 5))
        return;
    struct host *host = &world->hosts[rand_below(rand, world->host_count)];
    host->deaf_us[rand_below(rand, world->host_count)] =
        world->now_us + rand_skewed(rand, 200 * MS, 20 * SEC);
}

static void look_all(struct world *world, const struct happening *what)
{
    (void)what;
    go_deaf(world);
    for (unsigned i = 0; i < world->host_count; i++) {
        struct host *host = &world->hosts[i];
        if (!host->ctl || host_is_stopped(host))
            continue;
        hear_others(world, host);
        if (fault_on(world, FAULT_FLIP) || world_is_flipped(world)) {
            if (!host_enter(host))
                return;
            suspects_compare(world, host);
            host_leave(host);
        }
        if (host->ctl)
            look(world, host);
    }
    if (!world->healed ||
        world_is_flipped(world)) /* then the lease is enough, and there may be hours to go */
        world_later(world, LOOK_US, look_all, 0, 0, 0);
}

void suspects_started(struct host *host)
{
    suspect_init(&host->suspect, host->world->host_count, host->number, now_ms(host->world));
}

void suspects_begin(struct world *world)
{
    if (world->host_count < 2)
        return;
    rand_seed(&world->suspect_rand, world->options.seed ^ UINT64_C(0x5e5bec7)); /* of its own */
    world_later(world, LOOK_US, look_all, 0, 0, 0);
}
