/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_constraints.c - jobs whose CPUs must be near their GPUs, or that want a switch or block for themselves
 */
#include <stdlib.h>

#include "sched/place/chooser.h"
#include "sched/place/pick.h"

/* ---- what is free at the start of the view, as far as it is known who has which ---- */

static void add_devices_of(const struct job *job, const struct node *node, size_t gres,
                           struct bitset *out)
{
    for (unsigned k = 0; k < job->run->count; k++) {
        const struct job_part *part = &job->run->parts[k];
        for (size_t i = 0; part->node == node && i < part->gres_count; i++) {
            const struct part_gres *held = &part->gres[i];
            if (held->index.bits == out->bits && str_eq(held->name, node->gres[gres].name) &&
                str_eq(held->type, node->gres[gres].type))
                bitset_or(out, &held->index);
        }
    }
}

/* What of the run is still there in the view. */
static bool run_holds(const struct chooser *c, const struct host *host, const struct job *job)
{
    if (c->view.without)
        return !run_is_out(host, job->id);
    return c->view.start_us <= c->view.now_us || job_runs_until(job) > c->view.start_us;
}

/* Devices that nobody has then. */
static void unused_then(const struct chooser *c, const struct host *host, struct bitset *out)
{
    const struct node *node = host->node;

    for (size_t g = 0; g < node->gres_count && g < TAKE_GRES; g++) {
        host_unused(host, g, &out[g]);
        if (!out[g].words || (c->view.start_us <= c->view.now_us && !c->view.without))
            continue;
        /* Who goes leaves what it has. */
        for (size_t i = 0; i < node->jobs.len; i++) {
            const struct job *job = node->jobs.items[i];
            if (!run_holds(c, host, job))
                add_devices_of(job, node, g, &out[g]);
        }
    }
}

/* CPUs that nobody has then. */
static void cpus_then(const struct chooser *c, const struct host *host, struct bitset *out)
{
    const struct node *node = host->node;

    bitset_init(out, node->cpu_span);
    pick_free_cpus(host, c->need->share, out);
    for (size_t i = 0; i < node->jobs.len; i++) {
        const struct job *job = node->jobs.items[i];
        for (unsigned k = 0; !run_holds(c, host, job) && k < job->run->count; k++) {
            const struct job_part *part = &job->run->parts[k];
            if (part->node == node && part->cpu_ids.bits == out->bits)
                bitset_or(out, &part->cpu_ids);
        }
    }
}

/* ---- --gres-flags=enforce-binding ---- */

/* CPUs that are near any of the devices; false when nobody knows which these are. */
static bool near_cpus(const struct host *host, const struct claim *claim, struct bitset *out)
{
    bool known = false;

    bitset_init(out, host->node->cpu_span);
    for (size_t i = 0; i < claim->device_kinds; i++) {
        size_t base = host->node->gres[i].base_at;
        const struct devices *devices = &host->kind->devices[base ? base - 1 : i];
        if (!devices->near || !claim->devices[i].words)
            continue;
        bitset_each (device, &claim->devices[i])
            bitset_or(out, &devices->near[device]);
        known = true;
    }
    return known;
}

/* The device that has most of these CPUs near it adds them; false: none has any more. */
static bool add_widest(const struct devices *devices, const struct bitset *unused,
                       const struct bitset *cpus, struct bitset *have)
{
    size_t most = 0, best = 0;
    struct bitset near;

    for (size_t i = 0; i < devices->count; i++) {
        if (unused->words && !bitset_has(unused, i))
            continue;
        bitset_init_copy(&near, &devices->near[i]);
        bitset_and(&near, cpus);
        bitset_minus(&near, have);
        size_t more = bitset_count(&near);
        bitset_done(&near);
        if (more > most) {
            most = more;
            best = i;
        }
    }
    if (!most)
        return false;
    bitset_init_copy(&near, &devices->near[best]);
    bitset_and(&near, cpus);
    bitset_or(have, &near);
    bitset_done(&near);
    return true;
}

/* Will there be so many CPUs near devices that are free? */
static bool near_then(const struct chooser *c, const struct host *host, const struct take *take)
{
    const struct node *node = host->node;
    struct bitset unused[TAKE_GRES] = { { 0 } }, cpus, have;
    const struct bitset any = { 0 };
    bool known = false;

    unused_then(c, host, unused);
    cpus_then(c, host, &cpus);
    bitset_init(&have, node->cpu_span);
    for (size_t g = 0; g < node->gres_count && g < TAKE_GRES; g++) {
        size_t base = node->gres[g].base_at;
        const struct devices *devices = &host->kind->devices[base ? base - 1 : g];
        uint64_t count = base ? MAX(take->share_devices, 1) : take->gres[g];
        if (!devices->near || !take->gres[g])
            continue;
        known = true;
        while (count-- && add_widest(devices, base ? &any : &unused[g], &cpus, &have))
            ;
    }
    bool good = !known || bitset_count(&have) >= take->cpus;
    for (size_t g = 0; g < TAKE_GRES; g++)
        bitset_done(&unused[g]);
    bitset_done(&cpus);
    bitset_done(&have);
    return good;
}

bool bound_suits(const struct chooser *c, const struct host *host, const struct take *take)
{
    struct claim claim = { 0 };
    struct bitset near;
    bool good = true;

    if (take->cpus > gres_locality_most(host->node, take))
        return false;
    if (c->view.start_us > c->view.now_us || c->view.without)
        return near_then(c, host, take);
    pick(host, c->shape, c->need, take, &claim);
    if (near_cpus(host, &claim, &near)) {
        bitset_minus(&claim.cpus, &near);
        good = bitset_count(&claim.cpus) == 0;
    }
    bitset_done(&near);
    bitset_done(&claim.cpus);
    for (size_t i = 0; i < claim.device_kinds; i++)
        bitset_done(&claim.devices[i]);
    free(claim.devices);
    return good;
}

uint32_t bound_units(const struct chooser *c, const struct host *host, const struct room *room,
                     uint32_t units)
{
    struct take take;

    for (; units; units--) {
        fit_part(c->shape, c->need, host->node, room, units, &take);
        if (bound_suits(c, host, &take))
            break;
    }
    return units;
}

/* ---- --gpus-per-socket ---- */

static bool is_by_socket(const struct shape *shape, const struct node_gres *gres)
{
    for (size_t i = 0; i < shape->gres_count; i++) {
        if (shape->gres[i].scope == GRES_PER_SOCKET && gres_matches(&shape->gres[i], gres))
            return true;
    }
    return false;
}

bool sockets_suit(const struct chooser *c, const struct host *host, struct take *take)
{
    struct bitset unused[TAKE_GRES] = { { 0 } };
    struct socket_quota quota;
    const struct node *node = host->node;

    unused_then(c, host, unused);
    bool good = fit_sockets(c->shape, node, unused, &quota);
    for (size_t g = 0; g < node->gres_count && g < TAKE_GRES; g++) {
        uint64_t sum = 0;
        for (unsigned socket = 0; socket <= SOCKETS_MOST; socket++)
            sum += quota.of[g][socket];
        if (good && take && !c->need->whole_nodes && is_by_socket(c->shape, &node->gres[g]))
            take->gres[g] = sum;
        bitset_done(&unused[g]);
    }
    return good;
}

/* ---- --gres-flags=one-task-per-sharing ---- */

uint32_t lone_tasks(const struct chooser *c, const struct host *host, uint32_t tasks)
{
    const struct node *node = host->node;

    for (size_t i = 0; i < c->shape->gres_count; i++) {
        const struct shape_gres *want = &c->shape->gres[i];
        for (size_t g = 0; g < node->gres_count && g < TAKE_GRES; g++) {
            if (want->scope == GRES_PER_TASK && node->gres[g].base_at &&
                str_eq(want->name, node->gres[g].name))
                tasks = MIN(tasks, gres_shares_devices(host, g, want->count));
        }
    }
    return tasks;
}

/* ---- --exclusive=topo ---- */

/* Bookings of others that are there while the job would be. */
static bool host_has_booked(const struct chooser *c, const struct host *host)
{
    for (size_t i = 0; i < host->blocks.len; i++) {
        const struct block *block = &host->blocks.items[i];
        if (block->job_id && block->start_us < c->view.end_us && block->end_us > c->view.start_us &&
            block_hinders(block, &c->view))
            return true;
    }
    return false;
}

/* What has ended by then is there no more. */
static bool host_has_others(const struct chooser *c, const struct host *host)
{
    bool mine = c->shape->exclusive_topo, later = c->view.start_us > c->view.now_us;

    for (const struct claim *claim = host->claims; claim; claim = claim->next) {
        if (claim->job_id != c->job->id && (mine || claim->exclusive & EXCLUDES_TOPO) &&
            !(later && claim->end_us <= c->view.start_us))
            return true;
    }
    for (size_t i = 0; i < host->node->jobs.len; i++) {
        const struct job *other = host->node->jobs.items[i];
        if (other->id != c->job->id && !other->run->lent &&
            (mine || other->shape->exclusive_topo) &&
            !(later && job_runs_until(other) <= c->view.start_us))
            return true;
    }
    return mine && later && host_has_booked(c, host);
}

bool leaf_suits(const struct chooser *c, uint32_t number)
{
    const struct topo *topo = &c->sched->hosts->topo;
    uint32_t leaf = topo->leaf_of ? topo->leaf_of[number] : UINT32_MAX;

    if (leaf == UINT32_MAX)
        return !host_has_others(c, &c->sched->hosts->list.items[number]);
    bitset_each (other, &topo->switches[leaf].hosts) {
        if (host_has_others(c, &c->sched->hosts->list.items[other]))
            return false;
    }
    return true;
}
