/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shares.c - shard and mps: parts of GPUs
 *
 * All shares that a job has on a host are of one device, or (--gres-flags=one-task-per-sharing) as
 * many of one as of another: those of a task. A device is given whole or in shares,
 * never both; shares fill up one device before the next is broken.
 */
#include "sched/sched_priv.h"

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

void shares_room(const struct host *host, size_t gres, uint64_t *room)
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

uint32_t shares_device(const struct host *host, size_t gres, uint64_t count,
                       const struct bitset *except)
{
    const struct node_gres *shares = &host->node->gres[gres];
    const struct node_gres *base = gres_base(host->node, shares);
    uint32_t best = UINT32_MAX, best_used = 0;

    for (uint32_t device = 0; device < base->total; device++) {
        struct left left = left_of(host, gres, device);
        if (left.whole || left.used + count > shares->per || bitset_has(except, device))
            continue;
        if (best == UINT32_MAX || left.used > best_used) {
            best = device;
            best_used = left.used;
        }
    }
    return best;
}

uint32_t shares_devices(const struct host *host, size_t gres, uint64_t count)
{
    const struct node_gres *shares = &host->node->gres[gres];
    uint32_t devices = 0;

    for (uint32_t device = 0; device < gres_base(host->node, shares)->total; device++) {
        struct left left = left_of(host, gres, device);
        devices += !left.whole && left.used + count <= shares->per;
    }
    return devices;
}
