/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gres_shares.c - shard and mps: parts of GPUs
 *
 * All shares that a job has on a host are of one device, or (--gres-flags=one-task-per-sharing) as
 * many of one as of another: those of a task. A device is given whole or in shares,
 * never both; shares fill up one device before the next is broken
 * (LL_SHARED_GRES: they are of the one that has most left).
 */
#include "base/str.h"
#include "sched/hosts/hosts.h"

struct left {
    uint32_t used;
    bool whole; /* somebody has all of it */
};

static struct left left_of(const struct host *host, size_t gres, size_t device)
{
    const struct node *node = host->node;
    const struct node_gres *shares = &node->gres[gres], *base = gres_base(node, shares);
    size_t at = shares->base_at - 1;
    struct left out = { shares->shares[device], bitset_has(&base->index, device) };

    for (const struct claim *claim = host->claims; claim; claim = claim->next) {
        if (at < claim->device_kinds && claim->devices[at].words)
            out.whole = out.whole || bitset_has(&claim->devices[at], device);
        if (gres < claim->device_kinds && claim->devices[gres].words &&
            bitset_has(&claim->devices[gres], device))
            out.used += (uint32_t)(claim->amount->gres[gres] / bitset_count(&claim->devices[gres]));
    }
    return out;
}

void gres_shares_room(const struct host *host, size_t gres, uint64_t *room)
{
    const struct node *node = host->node;
    const struct node_gres *shares = &node->gres[gres], *base = gres_base(node, shares);
    uint64_t most = 0, broken = 0;

    for (size_t device = 0; device < base->total; device++) {
        struct left left = left_of(host, gres, device);
        if (!left.whole)
            most = MAX(most, shares->per - MIN(left.used, shares->per));
        broken += !left.whole && left.used;
    }
    room[gres] = most;
    room[shares->base_at - 1] -= MIN(broken, room[shares->base_at - 1]);
}

uint32_t gres_shares_device(const struct host *host, size_t gres, uint64_t count, bool most,
                            const struct bitset *except)
{
    const struct node_gres *shares = &host->node->gres[gres];
    const struct node_gres *base = gres_base(host->node, shares);
    uint32_t best = UINT32_MAX, best_used = 0;

    for (uint32_t device = 0; device < base->total; device++) {
        struct left left = left_of(host, gres, device);
        if (left.whole || left.used + count > shares->per || bitset_has(except, device))
            continue;
        if (best == UINT32_MAX || (most ? left.used < best_used : left.used > best_used)) {
            best = device;
            best_used = left.used;
        }
    }
    return best;
}

uint32_t gres_shares_devices(const struct host *host, size_t gres, uint64_t count)
{
    const struct node_gres *shares = &host->node->gres[gres];
    uint32_t devices = 0;

    for (uint32_t device = 0; device < gres_base(host->node, shares)->total; device++) {
        struct left left = left_of(host, gres, device);
        devices += !left.whole && left.used + count <= shares->per;
    }
    return devices;
}

/* ---- the same without some jobs ---- */

static bool is_gone(const struct host *host, uint32_t job_id, int64_t now_us, int64_t when_us)
{
    for (size_t i = 0; i < host->running.len; i++) {
        const struct host_job *run = &host->running.items[i];
        if (run->job_id == job_id) /* one that lends its CPUs keeps its devices */
            return run->out == HOST_JOB_GONE || (when_us > now_us + 1 && run->end_us <= when_us);
    }
    return false;
}

static void count_part(const struct node_gres *shares, const struct node_gres *base, size_t device,
                       const struct job_part *part, struct left *left)
{
    for (size_t g = 0; g < part->gres_count; g++) {
        const struct part_gres *gres = &part->gres[g];
        if (!gres->index.words || device >= gres->index.bits || !bitset_has(&gres->index, device))
            continue;
        if (str_eq(gres->name, shares->name) && str_eq(gres->type, shares->type))
            left->used += (uint32_t)(gres->count / bitset_count(&gres->index));
        if (str_eq(gres->name, base->name) && str_eq(gres->type, base->type))
            left->whole = true;
    }
}

static struct left left_without(const struct host *host, size_t gres, size_t device, int64_t now_us,
                                int64_t when_us)
{
    const struct node *node = host->node;
    const struct node_gres *shares = &node->gres[gres], *base = gres_base(node, shares);
    size_t at = shares->base_at - 1;
    struct left out = { 0 };

    for (size_t i = 0; i < node->jobs.len; i++) {
        const struct job *job = node->jobs.items[i];
        if (is_gone(host, job->id, now_us, when_us))
            continue;
        for (unsigned k = 0; k < job->run->count; k++) {
            if (job->run->parts[k].node == node)
                count_part(shares, base, device, &job->run->parts[k], &out);
        }
    }
    for (const struct claim *claim = host->claims; claim; claim = claim->next) {
        if (at < claim->device_kinds && claim->devices[at].words)
            out.whole = out.whole || bitset_has(&claim->devices[at], device);
        if (gres < claim->device_kinds && claim->devices[gres].words &&
            bitset_has(&claim->devices[gres], device))
            out.used += (uint32_t)(claim->amount->gres[gres] / bitset_count(&claim->devices[gres]));
    }
    return out;
}

void gres_shares_room_without(const struct host *host, int64_t now_us, int64_t when_us,
                              uint64_t *room)
{
    const struct node *node = host->node;

    for (size_t i = 0; i < node->gres_count && i < TAKE_GRES; i++) {
        const struct node_gres *shares = &node->gres[i], *base = gres_base(node, shares);
        uint64_t most = 0, whole = 0;
        for (size_t device = 0; base && device < base->total; device++) {
            struct left left = left_without(host, i, device, now_us, when_us);
            if (!left.whole)
                most = MAX(most, shares->per - MIN(left.used, shares->per));
            whole += !left.whole && !left.used;
        }
        if (!base)
            continue;
        room[i] = most;
        room[shares->base_at - 1] = MIN(room[shares->base_at - 1], whole);
    }
}
