// SPDX-License-Identifier: Apache-2.0
/*
 * node_view.c - what follows from a Node
 */
#include "schema/node_view.h"

#include "base/limits.h"
#include "base/map.h"
#include "base/release.h"
#include "base/size.h"
#include "base/vec.h"

const NodeSpec *node_spec(const Node *node)
{
    static const NodeSpec none = NODE_SPEC__INIT;

    return node->spec ? node->spec : &none;
}

const NodeStatus *node_status(const Node *node)
{
    static const NodeStatus none = NODE_STATUS__INIT;

    return node->status ? node->status : &none;
}

const NodeInventory *node_found(const Node *node)
{
    static const NodeInventory none = NODE_INVENTORY__INIT;
    const NodeInventory *found = node_status(node)->found;

    return found ? found : &none;
}

#define CONFIGURED_OR_FOUND(node, member)                        \
    (node_spec(node)->has_##member    ? node_spec(node)->member  \
     : node_found(node)->has_##member ? node_found(node)->member \
                                      : 0)

uint32_t node_cpus(const Node *node)
{
    uint32_t cpus = CONFIGURED_OR_FOUND(node, cpus);

    return cpus ? cpus : node_sockets(node) * node_cores(node) * node_threads(node);
}

uint32_t node_sockets(const Node *node)
{
    return MAX(CONFIGURED_OR_FOUND(node, sockets), 1);
}

uint32_t node_cores(const Node *node)
{
    return MAX(CONFIGURED_OR_FOUND(node, cores_per_socket), 1);
}

uint32_t node_threads(const Node *node)
{
    return MAX(CONFIGURED_OR_FOUND(node, threads_per_core), 1);
}

/* ---- CPUs for the system ---- */

static void keep_listed(const char *list, uint32_t threads, struct bitset *out)
{
    if (!bitset_parse(out, list))
        return;
    for (size_t core = 0; core < out->bits; core += threads) {
        size_t last = MIN(core + threads, out->bits) - 1;
        if (bitset_next(out, core) <= last)
            bitset_add_range(out, core, last);
    }
}

static void keep_last(uint32_t count, uint32_t sockets, uint32_t threads, struct bitset *out)
{
    uint32_t cores = (uint32_t)out->bits / threads, each;

    sockets = cores % sockets ? 1 : sockets;
    each = cores / sockets;
    for (uint32_t i = 0; i < count && i + 1 < cores; i++) {
        uint32_t socket = sockets - 1 - i % sockets, core = each - 1 - i / sockets;
        size_t first = ((size_t)socket * each + core) * threads;
        bitset_add_range(out, first, first + threads - 1);
    }
}

bool node_kept_cpus(const NodeSpec *spec, uint32_t cpus, uint32_t sockets, uint32_t threads,
                    struct bitset *out)
{
    threads = MAX(MIN(threads, cpus), 1);
    bitset_init(out, cpus);
    if (!str_is_empty(spec->cpu_spec_list))
        keep_listed(spec->cpu_spec_list, threads, out);
    else
        keep_last(spec->core_spec, MAX(sockets, 1), threads, out);
    if (bitset_count(out) == cpus) {
        for (uint32_t cpu = 0; cpu < threads; cpu++)
            bitset_del(out, cpu);
    }
    return !bitset_is_empty(out);
}

bool node_keeps_cpus(const Node *node, struct bitset *out)
{
    return node_kept_cpus(node_spec(node), MIN(node_cpus(node), LIMIT_CPUS_PER_NODE),
                          node_sockets(node), node_threads(node), out);
}

uint32_t node_effective_cpus(const Node *node)
{
    struct bitset kept;

    if (!node_spec(node)->core_spec && str_is_empty(node_spec(node)->cpu_spec_list))
        return node_cpus(node);
    node_keeps_cpus(node, &kept);
    uint32_t left = node_cpus(node) - (uint32_t)bitset_count(&kept);
    bitset_done(&kept);
    return left;
}

uint64_t node_memory_mb(const Node *node)
{
    return CONFIGURED_OR_FOUND(node, memory_mb);
}

uint64_t node_tmp_mb(const Node *node)
{
    return CONFIGURED_OR_FOUND(node, tmp_disk_mb);
}

const char *node_address(const Node *node)
{
    const char *addr = node_spec(node)->addr ? node_spec(node)->addr : node_found(node)->addr;

    return addr ? addr : node_spec(node)->name;
}

const char *node_hostname(const Node *node)
{
    const char *host = node_spec(node)->hostname;

    if (!host)
        host = node_found(node)->hostname;
    return host ? host : node_spec(node)->name;
}

const char *node_version(const Node *node)
{
    return node_found(node)->version ? SLURM_RELEASE : "";
}

static GresInventory *const *node_gres(const Node *node, size_t *count)
{
    bool configured = node_spec(node)->n_gres > 0;

    *count = configured ? node_spec(node)->n_gres : node_found(node)->n_gres;
    return configured ? node_spec(node)->gres : node_found(node)->gres;
}

void node_add_gres(struct str *out, const Node *node)
{
    size_t count;
    GresInventory *const *gres = node_gres(node, &count);

    for (size_t i = 0; i < count; i++) {
        str_addf(out, "%s%s", i ? "," : "", gres[i]->name ? gres[i]->name : "");
        if (!str_is_empty(gres[i]->type))
            str_addf(out, ":%s", gres[i]->type);
        str_addf(out, ":%llu", (unsigned long long)gres[i]->count);
    }
}

void node_add_gres_used(struct str *out, const Node *node)
{
    const NodeStatus *status = node_status(node);
    size_t count;
    GresInventory *const *gres = node_gres(node, &count);

    for (size_t i = 0; i < count; i++) {
        const char *index = NULL;
        uint64_t used = 0;

        for (size_t k = 0; k < status->n_alloc_gres; k++) {
            const GresAlloc *one = status->alloc_gres[k];
            bool same = str_eq(one->type, gres[i]->type);
            if (!str_eq(one->name, gres[i]->name) || (!same && !str_is_empty(gres[i]->type)))
                continue; /* what is of no type may be given as of one */
            used += one->count;
            index = same && !str_is_empty(one->index) ? one->index : index;
        }
        str_addf(out, "%s%s", i ? "," : "", gres[i]->name ? gres[i]->name : "");
        if (!str_is_empty(gres[i]->type))
            str_addf(out, ":%s", gres[i]->type);
        str_addf(out, ":%llu(IDX:%s)", (unsigned long long)used, index ? index : "N/A");
    }
}

void node_add_features(struct str *out, const Node *node)
{
    for (size_t i = 0; i < node_spec(node)->n_features; i++)
        str_addf(out, "%s%s", i ? "," : "", node_spec(node)->features[i]);
}

static void add_count(struct str *out, size_t start, const char *name, uint64_t value, bool memory)
{
    if (!value)
        return;
    str_addf(out, "%s%s=", out->len > start ? "," : "", name);
    if (memory)
        size_write(out, value, SIZE_M, SIZE_EXACT);
    else
        str_add_u64(out, value);
}

void tres_add(struct str *out, const struct tres_count *count)
{
    size_t start = out->len;

    add_count(out, start, "cpu", count->cpus, false);
    add_count(out, start, "mem", count->mem_mb, true);
    add_count(out, start, "node", count->nodes, false);
    add_count(out, start, "billing", count->billing, false);
}

/* Adds up by name, in the order names come first. */
static void add_named(struct map *totals, const char *name, uint64_t count)
{
    uintptr_t before = (uintptr_t)map_get(totals, name ? name : "");

    map_put(totals, name ? name : "", (void *)(before + (uintptr_t)count));
}

static void add_totals(struct str *out, struct map *totals)
{
    map_each (entry, totals) {
        if (entry->value)
            str_addf(out, "%sgres/%s=%llu", out->len ? "," : "", entry->key,
                     (unsigned long long)(uintptr_t)entry->value);
    }
    map_done(totals);
}

void tres_add_gres(struct str *out, GresInventory *const *gres, size_t count)
{
    struct map totals;

    map_init(&totals);
    for (size_t i = 0; i < count; i++)
        add_named(&totals, gres[i]->name, gres[i]->count);
    add_totals(out, &totals);
}

void node_add_tres(struct str *out, const Node *node)
{
    uint32_t cpus = node_effective_cpus(node);
    struct tres_count all = { .cpus = cpus, .mem_mb = node_memory_mb(node), .billing = cpus };
    size_t count;
    GresInventory *const *gres = node_gres(node, &count);

    tres_add(out, &all);
    tres_add_gres(out, gres, count);
}

void node_add_tres_used(struct str *out, const Node *node)
{
    const NodeStatus *status = node_status(node);
    struct tres_count used = { .cpus = status->alloc_cpus, .mem_mb = status->alloc_mem_mb };

    struct map totals;

    tres_add(out, &used);
    map_init(&totals);
    for (size_t i = 0; i < status->n_alloc_gres; i++)
        add_named(&totals, status->alloc_gres[i]->name, status->alloc_gres[i]->count);
    add_totals(out, &totals);
}

void partitions_fill_tres(ListPartitionsReply *partitions, const ListNodesReply *nodes,
                          struct arena *arena)
{
    struct map by_name;

    map_init(&by_name);
    for (size_t i = 0; i < nodes->n_nodes; i++)
        map_put(&by_name, node_spec(nodes->nodes[i])->name, nodes->nodes[i]);
    for (size_t i = 0; i < partitions->n_partitions; i++) {
        Partition *partition = partitions->partitions[i];
        struct tres_count count = { 0 };
        struct str text = { 0 };
        VEC(GresInventory *) gres = { 0 };

        for (size_t k = 0; k < partition->n_node_names; k++) {
            const Node *node = map_get(&by_name, partition->node_names[k]);

            if (!node)
                continue;
            count.cpus += node_cpus(node);
            count.mem_mb += node_memory_mb(node);
            count.nodes++;
            for (size_t g = 0; g < node_spec(node)->n_gres; g++)
                vec_push(&gres, node_spec(node)->gres[g]);
        }
        count.billing = partition->has_billing ? partition->billing : count.cpus;
        tres_add(&text, &count);
        tres_add_gres(&text, gres.items, gres.len);
        if (!partition->tres)
            partition->tres = arena_strdup(arena, str_text(&text));
        str_done(&text);
        vec_done(&gres);
    }
    map_done(&by_name);
}
