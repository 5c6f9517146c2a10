// SPDX-License-Identifier: Apache-2.0
/*
 * gres_locality.c - where the devices of a node are: CPUs near each, and its socket
 *
 * (1) What is not known of a device is no bound: all CPUs are near it, and it is of any socket.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "core/cluster/cluster.h"

static const GresInventory *find_gres(GresInventory *const *list, size_t count,
                                      const struct node_gres *gres)
{
    for (size_t i = 0; i < count; i++) {
        const char *type = str_is_empty(list[i]->type) ? NULL : list[i]->type;
        if (str_eq(list[i]->name, gres->name) && (!gres->type || !type || str_eq(type, gres->type)))
            return list[i];
    }
    return NULL;
}

const GresInventory *gres_inventory(const struct node *node, const struct node_gres *gres)
{
    const GresInventory *found =
        node->found ? find_gres(node->found->gres, node->found->n_gres, gres) : NULL;

    if (found && (found->n_links || found->n_cpus || found->n_numa))
        return found;
    const GresInventory *spec = find_gres(node->spec->gres, node->spec->n_gres, gres);
    return spec ? spec : found;
}

/* The one socket that all these CPUs are of. */
static uint8_t socket_of(const struct node *node, const struct bitset *cpus)
{
    size_t sockets = node->sockets, each = node->cpu_span / sockets;
    size_t first = bitset_next(cpus, 0) / each;

    if (sockets > SOCKETS_MOST)
        return SOCKET_ANY;
    bitset_each (cpu, cpus) {
        if (cpu / each != first)
            return SOCKET_ANY;
    }
    return (uint8_t)first;
}

/* From what is said of the device or of its NUMA node. */
static void read_near(const struct node *node, const GresInventory *from, struct node_gres *gres)
{
    size_t count = gres->index.bits;

    if (from->n_cpus < count && (from->n_numa < count || !node->found || !node->found->n_numa_cpus))
        return;
    gres->near = NEW_ARRAY(struct bitset, count);
    gres->socket = mem_new(count);
    for (size_t i = 0; i < count; i++) {
        bitset_init(&gres->near[i], node->cpu_span);
        if (from->n_cpus >= count)
            bitset_parse(&gres->near[i], from->cpus[i]);
        else if (from->numa[i] < node->found->n_numa_cpus)
            bitset_parse(&gres->near[i], node->found->numa_cpus[from->numa[i]]);
        if (bitset_is_empty(&gres->near[i])) /* (1) */
            bitset_fill(&gres->near[i]);
        gres->socket[i] = socket_of(node, &gres->near[i]);
        if (node->kept.words)
            bitset_minus(&gres->near[i], &node->kept);
    }
}

void node_read_gres_locality(struct node *node)
{
    for (size_t i = 0; i < node->gres_count; i++) {
        struct node_gres *gres = &node->gres[i];
        const GresInventory *from = gres->index.words ? gres_inventory(node, gres) : NULL;
        if (from)
            read_near(node, from, gres);
    }
}

void gres_locality_free(struct node_gres *gres)
{
    for (size_t i = 0; gres->near && i < gres->index.bits; i++)
        bitset_done(&gres->near[i]);
    free(gres->near);
    free(gres->socket);
}

uint64_t gres_hash(const struct node_gres *gres, uint64_t hash)
{
    hash = hash_bytes(gres->name, strlen(gres->name), hash ^ gres->total);
    hash = gres->type ? hash_bytes(gres->type, strlen(gres->type), hash) : hash_mix(hash);
    for (size_t i = 0; gres->near && i < gres->index.bits; i++)
        hash = hash_bytes(gres->near[i].words, (gres->near[i].bits + 63) / 64 * sizeof(uint64_t),
                          hash);
    return hash;
}

/* ---- the most CPUs that are near so many devices ---- */

/* Adds the CPUs of the device that has most which are not there yet; false: none has. */
static bool add_widest(const struct node_gres *gres, struct bitset *have)
{
    size_t most = 0, best = 0;

    for (size_t i = 0; i < gres->index.bits; i++) {
        size_t more = bitset_count(&gres->near[i]) - bitset_count_both(&gres->near[i], have);
        if (more > most) {
            most = more;
            best = i;
        }
    }
    if (most)
        bitset_or(have, &gres->near[best]);
    return most > 0;
}

uint64_t gres_locality_most(const struct node *node, const struct take *take)
{
    struct bitset have;
    bool known = false;

    bitset_init(&have, node->cpu_span);
    for (size_t i = 0; i < node->gres_count && i < TAKE_GRES; i++) {
        const struct node_gres *base = gres_base(node, &node->gres[i]);
        const struct node_gres *gres = base ? base : &node->gres[i];
        uint64_t devices = base ? MAX(take->share_devices, 1) : take->gres[i];
        if (!gres->near || !take->gres[i])
            continue;
        known = true;
        while (devices-- && add_widest(gres, &have))
            ;
    }
    size_t cpus = bitset_count(&have);
    bitset_done(&have);
    return known ? cpus : UINT32_MAX;
}
