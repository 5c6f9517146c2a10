/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.c - GPUs of any make, put into the inventory
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bitset.h"
#include "base/limits.h"
#include "spurd/node/inventory_priv.h"

void gpus_done(struct gpus *gpus)
{
    vec_done(&gpus->list);
    free(gpus->pairs);
}

void gpus_add_pair(struct gpus *gpus, const char *a, const char *b)
{
    if (gpus->pair_count == gpus->pair_cap) {
        gpus->pair_cap = MAX(gpus->pair_cap * 2, 64);
        gpus->pairs = mem_resize(gpus->pairs, gpus->pair_cap * sizeof(*gpus->pairs));
    }
    struct gpu_pair *pair = &gpus->pairs[gpus->pair_count++];
    snprintf(pair->a, sizeof(pair->a), "%s", a);
    snprintf(pair->b, sizeof(pair->b), "%s", b);
}

void root_pci_near(const char *root, struct gpu *gpu)
{
    char path[128], text[256];

    gpu->numa = -1;
    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/numa_node", gpu->pci);
    if (root_read(root, path, text, sizeof(text)))
        gpu->numa = atoi(text);
    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/local_cpulist", gpu->pci);
    root_read(root, path, gpu->cpus, sizeof(gpu->cpus));
}

static bool paired(const struct gpus *gpus, const struct gpu *a, const struct gpu *b)
{
    for (size_t i = 0; i < gpus->pair_count; i++) {
        const struct gpu_pair *pair = &gpus->pairs[i];
        if ((str_ieq(pair->a, a->pci) && str_ieq(pair->b, b->pci)) ||
            (str_ieq(pair->a, b->pci) && str_ieq(pair->b, a->pci)))
            return true;
    }
    return false;
}

static uint32_t link_of(const struct gpus *gpus, const struct gpu *a, const struct gpu *b)
{
    if (a == b)
        return GPU_LINK_NONE;
    if (paired(gpus, a, b))
        return GPU_LINK_DIRECT;
    if (a->numa >= 0 && a->numa == b->numa)
        return GPU_LINK_NUMA;
    return GPU_LINK_HOST;
}

static int by_order(const void *a, const void *b)
{
    const struct gpu *x = a, *y = b;
    int type = strcmp(x->type, y->type);

    return type ? type : x->order < y->order ? -1 : x->order > y->order;
}

static void publish_kind(struct inventory *inventory, const struct gpus *gpus,
                         const struct gpu *first, size_t count)
{
    struct arena *arena = &inventory->arena;
    GresInventory *gres = inventory_add_gres(inventory, "gpu", first->type);

    gres->has_count = true;
    gres->count = count;
    gres->files = ARENA_ARRAY(arena, char *, count);
    gres->cpus = ARENA_ARRAY(arena, char *, count);
    gres->ids = ARENA_ARRAY(arena, char *, count);
    gres->numa = ARENA_ARRAY(arena, uint32_t, count);
    gres->links = ARENA_ARRAY(arena, uint32_t, count * count);
    gres->n_files = gres->n_cpus = gres->n_ids = gres->n_numa = count;
    gres->n_links = count * count;
    if (first->mem_bytes) {
        gres->has_mem_mb = true;
        gres->mem_mb = first->mem_bytes / (1024 * 1024);
    }
    for (size_t i = 0; i < count; i++) {
        const struct gpu *gpu = first + i;
        gres->files[i] = arena_strdup(arena, gpu->file);
        gres->cpus[i] = arena_strdup(arena, gpu->cpus);
        gres->ids[i] = arena_strdup(arena, gpu->uuid[0] ? gpu->uuid : gpu->pci);
        gres->numa[i] = (uint32_t)MAX(gpu->numa, 0);
        for (size_t k = 0; k < count; k++)
            gres->links[i * count + k] = link_of(gpus, gpu, first + k);
    }
}

void gpus_publish(struct inventory *inventory, struct gpus *gpus)
{
    struct gpu *items = gpus->list.items;
    size_t total = MIN(gpus->list.len, (size_t)LIMIT_GRES_PER_NODE), same;

    if (total == 0)
        return;
    qsort(items, total, sizeof(*items), by_order);
    for (size_t i = 0; i < total; i += same) {
        for (same = 1; i + same < total && strcmp(items[i].type, items[i + same].type) == 0;)
            same++;
        publish_kind(inventory, gpus, &items[i], same);
    }
}
