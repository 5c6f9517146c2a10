/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pick.c - which devices of a host, and CPUs near them
 *
 * The set of devices with the best links inside; among equals the one that leaves the devices that
 * are still free best linked to each other, so that the next job finds a good set too.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/pick_priv.h"

enum { SEEDS_MOST = 32, EXACT_MOST = 8 };

/* ---- devices ---- */

static unsigned link_between(const struct devices *devices, size_t a, size_t b)
{
    unsigned link = devices->links ? devices->links[a * devices->count + b] * 2U : 0;

    return link + (devices->near && bitset_eq(&devices->near[a], &devices->near[b]));
}

static unsigned links_to(const struct devices *devices, const struct bitset *set, size_t device)
{
    unsigned sum = 0;

    bitset_each (other, set) {
        if (other != device)
            sum += link_between(devices, device, other);
    }
    return sum;
}

/* Sum over the pairs of a set. */
static unsigned links_within(const struct devices *devices, const struct bitset *set)
{
    unsigned sum = 0;

    bitset_each (device, set)
        sum += links_to(devices, set, device);
    return sum / 2;
}

/* ---- how many of which socket, where that is asked for ---- */

struct quota {
    const uint16_t *of; /* by socket, the last of any; NULL: whatever is best */
    const uint8_t *socket;
};

static unsigned quota_place(const struct quota *quota, size_t device)
{
    unsigned socket = quota->socket ? quota->socket[device] : SOCKET_ANY;

    return MIN(socket, SOCKETS_MOST);
}

/* May the device join the set? */
static bool quota_takes(const struct quota *quota, const struct bitset *set, size_t device)
{
    unsigned place = quota->of ? quota_place(quota, device) : 0, have = 0;

    if (!quota->of)
        return true;
    bitset_each (other, set)
        have += quota_place(quota, other) == place;
    return have < quota->of[place];
}

/* Is the set of these devices as it is asked for? */
static bool quota_has(const struct quota *quota, const uint8_t *at, unsigned n, unsigned set)
{
    uint16_t have[SOCKETS_MOST + 1] = { 0 };

    for (unsigned i = 0; quota->of && i < n; i++)
        have[quota_place(quota, at[i])] += set >> i & 1;
    return !quota->of || memcmp(have, quota->of, sizeof(have)) == 0;
}

/* Adds, one after the other, the device with the best links to the set; the loneliest of equals. */
static void grow(const struct devices *devices, const struct bitset *unused, uint64_t count,
                 const struct quota *quota, struct bitset *set)
{
    for (uint64_t have = bitset_count(set); have < count; have++) {
        size_t best = SIZE_MAX;
        unsigned best_in = 0, best_out = 0;
        bitset_each (device, unused) {
            if (bitset_has(set, device) || !quota_takes(quota, set, device))
                continue;
            unsigned in = links_to(devices, set, device);
            unsigned out = links_to(devices, unused, device) - in;
            if (best == SIZE_MAX || in > best_in || (in == best_in && out < best_out)) {
                best = device;
                best_in = in;
                best_out = out;
            }
        }
        if (best == SIZE_MAX)
            return;
        bitset_add(set, best);
    }
}

static void lowest(const struct bitset *unused, uint64_t count, const struct quota *quota,
                   struct bitset *out)
{
    bitset_each (device, unused) {
        if (!quota_takes(quota, out, device))
            continue;
        if (count-- == 0)
            break;
        bitset_add(out, device);
    }
}

static void best_linked(const struct devices *devices, const struct bitset *unused, uint64_t count,
                        const struct quota *quota, struct bitset *out)
{
    struct bitset set, rest;
    unsigned best_in = 0, best_rest = 0, seeds = 0;
    bool any = false;

    bitset_init(&set, unused->bits);
    bitset_init(&rest, unused->bits);
    bitset_each (seed, unused) {
        if (seeds++ == SEEDS_MOST)
            break;
        bitset_clear(&set);
        if (!quota_takes(quota, &set, seed))
            continue;
        bitset_add(&set, seed);
        grow(devices, unused, count, quota, &set);
        bitset_clear(&rest);
        bitset_or(&rest, unused);
        bitset_minus(&rest, &set);
        unsigned in = links_within(devices, &set), left = links_within(devices, &rest);
        if (!any || in > best_in || (in == best_in && left > best_rest)) {
            any = true;
            best_in = in;
            best_rest = left;
            bitset_clear(out);
            bitset_or(out, &set);
        }
    }
    bitset_done(&set);
    bitset_done(&rest);
}

/* Devices that are in use by shares, or will be. */
static void take_off_shared(const struct host *host, size_t gres, struct bitset *unused)
{
    const struct node *node = host->node;

    if (!node->gres[gres].lent.words)
        return;
    bitset_minus(unused, &node->gres[gres].lent);
    for (const struct claim *claim = host->claims; claim; claim = claim->next) {
        for (size_t i = 0; i < claim->device_kinds; i++) {
            if (node->gres[i].base_at == gres + 1 && claim->devices[i].words)
                bitset_minus(unused, &claim->devices[i]);
        }
    }
}

/* Of few devices every set is looked at: the same aim as best_linked(), and never missed. */
static void best_of_all(const struct devices *devices, const struct bitset *unused, uint64_t count,
                        const struct quota *quota, struct bitset *out)
{
    uint8_t at[EXACT_MOST];
    uint16_t link[EXACT_MOST][EXACT_MOST];
    unsigned n = 0, best_in = 0, best_rest = 0, best = 0;

    bitset_each (device, unused)
        at[n++] = (uint8_t)device;
    for (unsigned a = 0; a < n; a++) {
        for (unsigned b = 0; b < n; b++)
            link[a][b] = a == b ? 0 : (uint16_t)link_between(devices, at[a], at[b]);
    }
    for (unsigned set = 1; set < 1U << n; set++) {
        unsigned in = 0, rest = 0;
        if ((unsigned)__builtin_popcount(set) != count || !quota_has(quota, at, n, set))
            continue;
        for (unsigned a = 0; a < n; a++) {
            for (unsigned b = 0; b < a; b++) {
                in += set >> a & set >> b & 1 ? link[a][b] : 0;
                rest += ~set >> a & ~set >> b & 1 ? link[a][b] : 0;
            }
        }
        if (!best || in > best_in || (in == best_in && rest > best_rest)) {
            best = set;
            best_in = in;
            best_rest = rest;
        }
    }
    for (unsigned a = 0; a < n; a++) {
        if (best >> a & 1)
            bitset_add(out, at[a]);
    }
}

static void take_off_used(const struct host *host, size_t gres, struct bitset *unused)
{
    bitset_fill(unused);
    bitset_minus(unused, &host->node->gres[gres].index);
    take_off_shared(host, gres, unused);
    for (const struct claim *claim = host->claims; claim; claim = claim->next) {
        if (gres < claim->device_kinds && claim->devices[gres].words)
            bitset_minus(unused, &claim->devices[gres]);
    }
}

void host_unused(const struct host *host, size_t gres, struct bitset *out)
{
    *out = (struct bitset){ 0 };
    if (!host->node->gres[gres].index.words)
        return;
    bitset_init(out, host->node->gres[gres].index.bits);
    take_off_used(host, gres, out);
}

/* `of`: devices that shares are of. */
static void pick_devices(const struct host *host, size_t gres, uint64_t count,
                         const struct need *need, uint32_t of, const struct quota *quota,
                         struct bitset *out)
{
    const struct bitset *used = &host->node->gres[gres].index;
    const struct devices *devices = &host->kind->devices[gres];
    uint64_t words[SCRATCH_WORDS];
    struct bitset unused;

    *out = (struct bitset){ 0 };
    if (count && host->node->gres[gres].base_at) {
        bitset_init(out, gres_base(host->node, &host->node->gres[gres])->total);
        for (uint32_t i = 0; i < MAX(of, 1); i++) {
            uint32_t device = shares_device(host, gres, count / MAX(of, 1), need->least, out);
            if (device != UINT32_MAX)
                bitset_add(out, device);
        }
        return;
    }
    if (!used->words || !count)
        return;
    bitset_init(out, used->bits);
    scratch_init(&unused, words, used->bits);
    take_off_used(host, gres, &unused);
    if ((!devices->links && !devices->near) || bitset_count(&unused) <= count)
        lowest(&unused, count, quota, out);
    else if (bitset_count(&unused) <= EXACT_MOST)
        best_of_all(devices, &unused, count, quota, out);
    else
        best_linked(devices, &unused, count, quota, out);
    scratch_done(&unused, words);
}

/* Which of their sockets the devices are of, where that is asked for; false: it is not. */
static bool pick_sockets(const struct host *host, const struct shape *shape,
                         const struct need *need, struct socket_quota *out)
{
    struct bitset unused[TAKE_GRES] = { { 0 } };

    if (need->whole_nodes || !shape_by_socket(shape))
        return false;
    for (size_t g = 0; g < host->node->gres_count && g < TAKE_GRES; g++)
        host_unused(host, g, &unused[g]);
    bool good = fit_sockets(shape, host->node, unused, out);
    for (size_t g = 0; g < TAKE_GRES; g++)
        bitset_done(&unused[g]);
    return good;
}

/* Does the quota say all that is taken of it? */
static bool is_of_sockets(const uint16_t *of, uint64_t count)
{
    for (unsigned socket = 0; socket <= SOCKETS_MOST; socket++)
        count -= MIN(count, of[socket]);
    return count == 0;
}

void pick(const struct host *host, const struct shape *shape, const struct need *need,
          const struct take *take, struct claim *claim)
{
    const struct node *node = host->node;
    uint64_t words[SCRATCH_WORDS];
    struct bitset near = { 0 };
    struct socket_quota quotas;
    bool by_socket = pick_sockets(host, shape, need, &quotas);

    claim->device_kinds = MIN(node->gres_count, (size_t)TAKE_GRES);
    claim->devices = claim->device_kinds ? NEW_ARRAY(struct bitset, claim->device_kinds) : NULL;
    for (size_t i = 0; i < claim->device_kinds; i++) {
        size_t base = node->gres[i].base_at;
        const struct devices *devices = &host->kind->devices[base ? base - 1 : i];
        struct quota quota = { NULL, node->gres[i].socket };
        if (by_socket && is_of_sockets(quotas.of[i], take->gres[i]))
            quota.of = quotas.of[i];
        pick_devices(host, i, take->gres[i], need, take->share_devices, &quota, &claim->devices[i]);
        if (!devices->near || !claim->devices[i].words)
            continue;
        if (!near.words)
            scratch_init(&near, words, node->cpu_span);
        bitset_each (device, &claim->devices[i])
            bitset_or(&near, &devices->near[device]);
    }
    pick_cpus(host, shape, need, take, &near, by_socket, &claim->cpus);
    claim->fresh_cpus = take->cpus;
    claim->shared = need->share > 1;
    if (need->share > 1) {
        claim->fresh_cpus = 0;
        bitset_each (cpu, &claim->cpus)
            claim->fresh_cpus += host_cpu_is_free(host, cpu, 1);
    }
    scratch_done(&near, words);
}
