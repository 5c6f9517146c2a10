/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pick.c - which devices of a host, and CPUs near them
 *
 * The set of devices with the best links inside; among equals the one that leaves the devices that
 * are still free best linked to each other, so that the next job finds a good set too. Where CPUs must be
 * near them, a set that has these comes before all others, however it is linked.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "sched/place/pick.h"

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

/* ---- CPUs that must be near ---- */

struct ties {
    uint32_t want, unit;       /* CPUs, given in such units; no want: they may be anywhere */
    const struct bitset *cpus; /* nobody has them */
    const struct bitset *near; /* devices of other kinds that are taken already */
};

/* Of the CPUs that are wanted, those that are near the set and free. */
static uint32_t tied(const struct ties *ties, const struct devices *devices,
                     const struct bitset *set)
{
    uint64_t words[SCRATCH_WORDS];
    struct bitset near;
    uint32_t count = 0;

    if (!ties->want || !devices->near)
        return 0;
    scratch_init(&near, words, ties->cpus->bits);
    if (ties->near->words)
        bitset_or(&near, ties->near);
    bitset_each (device, set)
        bitset_or(&near, &devices->near[device]);
    bitset_and(&near, ties->cpus);
    for (size_t cpu = bitset_next(&near, 0); cpu < near.bits; cpu = bitset_next(&near, cpu + 1)) {
        size_t core = cpu - cpu % ties->unit, last = core + ties->unit - 1;
        bool whole = cpu == core && last < near.bits;
        for (size_t i = core; whole && i <= last; i++)
            whole = bitset_has(&near, i);
        count += whole ? ties->unit : 0;
    }
    scratch_done(&near, words);
    return MIN(count, ties->want);
}

/* What is good about a set. */
struct merit {
    uint32_t tied;
    unsigned in, rest; /* links inside, and between what is left */
};

static bool is_better(const struct merit *a, const struct merit *b)
{
    if (a->tied != b->tied)
        return a->tied > b->tied;
    return a->in != b->in ? a->in > b->in : a->rest > b->rest;
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
                 const struct quota *quota, const struct ties *ties, struct bitset *set)
{
    for (uint64_t have = bitset_count(set); have < count; have++) {
        size_t best = SIZE_MAX;
        struct merit most = { 0 };
        bitset_each (device, unused) {
            if (bitset_has(set, device) || !quota_takes(quota, set, device))
                continue;
            struct merit one = { .in = links_to(devices, set, device) };
            one.rest = UINT_MAX - (links_to(devices, unused, device) - one.in);
            bitset_add(set, device);
            one.tied = tied(ties, devices, set);
            bitset_del(set, device);
            if (best == SIZE_MAX || is_better(&one, &most)) {
                best = device;
                most = one;
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
                        const struct quota *quota, const struct ties *ties, struct bitset *out)
{
    struct bitset set, rest;
    struct merit best = { 0 };
    unsigned seeds = 0;
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
        grow(devices, unused, count, quota, ties, &set);
        bitset_clear(&rest);
        bitset_or(&rest, unused);
        bitset_minus(&rest, &set);
        struct merit one = { tied(ties, devices, &set), links_within(devices, &set),
                             links_within(devices, &rest) };
        if (!any || is_better(&one, &best)) {
            any = true;
            best = one;
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

static uint32_t tied_of(const struct ties *ties, const struct devices *devices, const uint8_t *at,
                        unsigned n, unsigned which)
{
    uint64_t words[SCRATCH_WORDS];
    struct bitset set;

    scratch_init(&set, words, devices->count);
    for (unsigned i = 0; i < n; i++) {
        if (which >> i & 1)
            bitset_add(&set, at[i]);
    }
    uint32_t count = tied(ties, devices, &set);
    scratch_done(&set, words);
    return count;
}

/* Of few devices every set is looked at: the same entry as best_linked(), and never missed. */
static void best_of_all(const struct devices *devices, const struct bitset *unused, uint64_t count,
                        const struct quota *quota, const struct ties *ties, struct bitset *out)
{
    uint8_t at[EXACT_MOST];
    uint16_t link[EXACT_MOST][EXACT_MOST];
    struct merit most = { 0 };
    unsigned n = 0, best = 0;

    bitset_each (device, unused)
        at[n++] = (uint8_t)device;
    for (unsigned a = 0; a < n; a++) {
        for (unsigned b = 0; b < n; b++)
            link[a][b] = a == b ? 0 : (uint16_t)link_between(devices, at[a], at[b]);
    }
    for (unsigned set = 1; set < 1U << n; set++) {
        struct merit one = { 0 };
        if ((unsigned)__builtin_popcount(set) != count || !quota_has(quota, at, n, set))
            continue;
        for (unsigned a = 0; a < n; a++) {
            for (unsigned b = 0; b < a; b++) {
                one.in += set >> a & set >> b & 1 ? link[a][b] : 0;
                one.rest += ~set >> a & ~set >> b & 1 ? link[a][b] : 0;
            }
        }
        if (ties->want)
            one.tied = tied_of(ties, devices, at, n, set);
        if (!best || is_better(&one, &most)) {
            best = set;
            most = one;
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
    if (host->node->gres[gres].used)
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

/* Devices that shares of are one whose CPUs are near, if that is wanted and there is one. */
static uint32_t pick_shared(const struct host *host, size_t gres, uint64_t count,
                            const struct need *need, const struct ties *ties,
                            const struct bitset *out)
{
    const struct devices *devices = &host->kind->devices[host->node->gres[gres].base_at - 1];
    struct bitset one, except;
    uint32_t best = UINT32_MAX, device;

    if (!ties->want || !devices->near)
        return gres_shares_device(host, gres, count, need->least, out);
    bitset_init(&one, out->bits);
    bitset_init_copy(&except, out);
    while (best == UINT32_MAX &&
           (device = gres_shares_device(host, gres, count, need->least, &except)) != UINT32_MAX) {
        bitset_clear(&one);
        bitset_or(&one, out);
        bitset_add(&one, device);
        bitset_add(&except, device);
        if (tied(ties, devices, &one) >= ties->want)
            best = device;
    }
    bitset_done(&one);
    bitset_done(&except);
    return best != UINT32_MAX ? best : gres_shares_device(host, gres, count, need->least, out);
}

/* `of`: devices that shares are of. */
static void pick_devices(const struct host *host, size_t gres, uint64_t count,
                         const struct need *need, uint32_t of, const struct quota *quota,
                         const struct ties *ties, struct bitset *out)
{
    const struct bitset *used = &host->node->gres[gres].index;
    const struct devices *devices = &host->kind->devices[gres];
    uint64_t words[SCRATCH_WORDS];
    struct bitset unused;

    *out = (struct bitset){ 0 };
    if (count && host->node->gres[gres].base_at) {
        bitset_init(out, gres_base(host->node, &host->node->gres[gres])->total);
        for (uint32_t i = 0; i < MAX(of, 1); i++) {
            uint32_t device = pick_shared(host, gres, count / MAX(of, 1), need, ties, out);
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
        best_of_all(devices, &unused, count, quota, ties, out);
    else
        best_linked(devices, &unused, count, quota, ties, out);
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
    uint64_t words[SCRATCH_WORDS], free_words[SCRATCH_WORDS];
    struct bitset near = { 0 }, cpus = { 0 };
    struct ties ties = { .cpus = &cpus, .near = &near };
    struct socket_quota quotas;
    bool by_socket = pick_sockets(host, shape, need, &quotas);

    if (need->bound) {
        scratch_init(&cpus, free_words, node->cpu_span);
        pick_free_cpus(host, need->share, &cpus);
        ties.want = take->cpus;
        ties.unit = need_unit(need, node);
    }
    claim->device_kinds = MIN(node->gres_count, (size_t)TAKE_GRES);
    claim->devices = claim->device_kinds ? NEW_ARRAY(struct bitset, claim->device_kinds) : NULL;
    for (size_t i = 0; i < claim->device_kinds; i++) {
        size_t base = node->gres[i].base_at;
        const struct devices *devices = &host->kind->devices[base ? base - 1 : i];
        struct quota quota = { NULL, node->gres[i].socket };
        if (by_socket && is_of_sockets(quotas.of[i], take->gres[i]))
            quota.of = quotas.of[i];
        pick_devices(host, i, take->gres[i], need, take->share_devices, &quota, &ties,
                     &claim->devices[i]);
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
    if (need->bound)
        scratch_done(&cpus, free_words);
}
