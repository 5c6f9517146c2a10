/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinds.c - nodes that are built alike
 *
 * Nodes of one kind have the same CPUs, weight, generic resources and links between devices; they
 * may differ in memory, features and partitions, which are looked at one by one. Kinds are in the
 * order in which they are used up: lower weight first, then those with fewer devices, so that work
 * without GPUs keeps off nodes that have them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "sched/hosts/hosts.h"

enum { ROWS_MOST = 65, COLS_MOST = 513 };

static uint64_t hash_text(const char *text, uint64_t seed)
{
    return text ? hash_bytes(text, strlen(text), seed) : hash_mix(seed);
}

static uint64_t hash_devices(const struct node *node, const struct node_gres *gres, uint64_t hash)
{
    const GresInventory *from = gres_inventory(node, gres);

    hash = hash_text(gres->name, hash);
    hash = hash_text(gres->type, hash);
    hash = hash_mix(hash ^ gres->total ^ (gres->shared ? UINT64_C(1) << 63 : 0));
    if (!from)
        return hash;
    hash = hash_bytes(from->links, from->n_links * sizeof(*from->links), hash);
    hash = hash_bytes(from->numa, from->n_numa * sizeof(*from->numa), hash);
    for (size_t i = 0; i < from->n_cpus; i++)
        hash = hash_text(from->cpus[i], hash);
    return hash;
}

static uint64_t kind_hash(const struct node *node)
{
    uint64_t hash = hash_mix(node->cpus | (uint64_t)node->threads << 32);

    hash = hash_mix(hash ^ node->weight ^ (uint64_t)node->spec->sockets << 32);
    hash = hash_mix(hash ^ node->cpu_span);
    if (node->kept.words)
        hash = hash_bytes(node->kept.words, (node->kept.bits + 63) / 64 * sizeof(uint64_t), hash);
    for (size_t i = 0; i < node->gres_count; i++)
        hash = hash_devices(node, &node->gres[i], hash);
    if (node->found) {
        for (size_t i = 0; i < node->found->n_numa_cpus; i++)
            hash = hash_text(node->found->numa_cpus[i], hash);
    }
    return hash;
}

/* CPUs near each device. */
static void read_near(const struct node_gres *gres, struct devices *out)
{
    if (!gres->near)
        return;
    out->near = NEW_ARRAY(struct bitset, out->count);
    for (uint32_t i = 0; i < out->count; i++)
        bitset_init_copy(&out->near[i], &gres->near[i]);
}

static void read_links(const GresInventory *from, struct devices *out)
{
    size_t cells = (size_t)out->count * out->count;

    if (from->n_links < cells && from->n_numa < out->count)
        return;
    out->links = NEW_ARRAY(uint8_t, cells);
    for (uint32_t a = 0; a < out->count; a++) {
        for (uint32_t b = 0; b < out->count; b++) {
            uint32_t link = from->n_links >= cells           ? from->links[a * out->count + b]
                            : from->numa[a] == from->numa[b] ? 2
                                                             : 1;
            out->links[a * out->count + b] = (uint8_t)MIN(link, 4);
        }
    }
}

static void read_devices(struct kind *kind, const struct node *node)
{
    for (size_t i = 0; i < node->gres_count && i < TAKE_GRES; i++) {
        const struct node_gres *gres = &node->gres[i];
        const GresInventory *from = gres_inventory(node, gres);
        struct devices *out = &kind->devices[i];
        out->count = gres->index.words ? (uint32_t)gres->index.bits : 0;
        if (out->count && from) {
            read_near(gres, out);
            read_links(from, out);
        }
    }
}

/* GPUs make the rows; where there are none, whatever devices there are. */
static void choose_rows(struct kind *kind, const struct node *node)
{
    bool gpus = false;

    for (size_t i = 0; i < node->gres_count && i < TAKE_GRES; i++)
        gpus = gpus || str_eq(node->gres[i].name, "gpu");
    for (size_t i = 0; i < node->gres_count && i < TAKE_GRES; i++) {
        kind->in_row[i] = gpus ? str_eq(node->gres[i].name, "gpu") : !node->gres[i].shared;
        if (kind->in_row[i])
            kind->devices_total += (uint32_t)MIN(node->gres[i].total, UINT32_MAX / TAKE_GRES);
    }
}

static struct kind *kind_new(const struct node *node, uint64_t hash, size_t hosts)
{
    struct kind *kind = NEW(struct kind);

    kind->hash = hash;
    kind->sample = node;
    kind->weight = node->weight;
    read_devices(kind, node);
    choose_rows(kind, node);
    while ((kind->devices_total >> kind->row_shift) >= ROWS_MOST)
        kind->row_shift++;
    while ((node->cpus >> kind->col_shift) >= COLS_MOST)
        kind->col_shift++;
    uint32_t rows = (kind->devices_total >> kind->row_shift) + 1;
    uint32_t cols = (node->cpus >> kind->col_shift) + 1;
    grid_init(&kind->spare, rows, cols, hosts);
    grid_init(&kind->bound, rows, cols, hosts);
    return kind;
}

static bool preferred(const struct kind *a, const struct kind *b)
{
    if (a->weight != b->weight)
        return a->weight < b->weight;
    if (a->devices_total != b->devices_total)
        return a->devices_total < b->devices_total;
    if (a->sample->cpus != b->sample->cpus)
        return a->sample->cpus < b->sample->cpus;
    return a->sample->number < b->sample->number;
}

struct kind *kind_of(struct sched *sched, const struct node *node)
{
    uint64_t hash = kind_hash(node);

    for (size_t i = 0; i < sched->hosts->kinds.len; i++) {
        if (sched->hosts->kinds.items[i]->hash == hash)
            return sched->hosts->kinds.items[i];
    }
    struct kind *kind = kind_new(node, hash, state_node_count(sched->state));
    size_t at = sched->hosts->kinds.len;
    vec_push(&sched->hosts->kinds, kind);
    for (; at > 0 && preferred(kind, sched->hosts->kinds.items[at - 1]); at--)
        sched->hosts->kinds.items[at] = sched->hosts->kinds.items[at - 1];
    sched->hosts->kinds.items[at] = kind;
    for (; at < sched->hosts->kinds.len; at++)
        sched->hosts->kinds.items[at]->number = (uint32_t)at;
    sched->hosts->kinds_version++;
    return kind;
}

static void kind_free(struct kind *kind)
{
    for (size_t i = 0; i < TAKE_GRES; i++) {
        struct devices *devices = &kind->devices[i];
        for (uint32_t k = 0; devices->near && k < devices->count; k++)
            bitset_done(&devices->near[k]);
        free(devices->near);
        free(devices->links);
    }
    grid_done(&kind->spare);
    grid_done(&kind->bound);
    vec_done(&kind->wants);
    vec_done(&kind->wide);
    free(kind);
}

void kind_leave(struct sched *sched, struct kind *kind, const struct node *node)
{
    if (--kind->hosts == 0) {
        vec_remove(&sched->hosts->kinds, kind->number);
        for (size_t i = kind->number; i < sched->hosts->kinds.len; i++)
            sched->hosts->kinds.items[i]->number = (uint32_t)i;
        kind_free(kind);
        sched->hosts->kinds_version++;
        return;
    }
    for (size_t i = 0; kind->sample == node && i < sched->hosts->list.len; i++) {
        const struct host *other = &sched->hosts->list.items[i];
        if (other->kind == kind && other->node != node)
            kind->sample = other->node;
    }
}

static void grid_anew(struct grid *grid, size_t hosts)
{
    uint32_t rows = grid->rows, cols = grid->cols;

    grid_done(grid);
    grid_init(grid, rows, cols, hosts);
}

/* Samples of who is no more may not be looked at. */
void kinds_renumber(struct sched *sched)
{
    vec_each (struct kind *, at, &sched->hosts->kinds) {
        (*at)->hosts = 0;
        (*at)->most_mem_mb = 0; /* host_changed() */
    }
    vec_each (struct host, host, &sched->hosts->list) {
        if (host->kind && !host->kind->hosts++)
            host->kind->sample = host->node;
    }
    for (size_t i = sched->hosts->kinds.len; i-- > 0;) {
        struct kind *kind = sched->hosts->kinds.items[i];
        if (kind->hosts) {
            grid_anew(&kind->spare, sched->hosts->list.len);
            grid_anew(&kind->bound, sched->hosts->list.len);
        } else {
            vec_remove(&sched->hosts->kinds, i);
            kind_free(kind);
        }
    }
    for (size_t i = 1; i < sched->hosts->kinds.len; i++) { /* mostly they are in order */
        struct kind *kind = sched->hosts->kinds.items[i];
        size_t at = i;
        for (; at > 0 && preferred(kind, sched->hosts->kinds.items[at - 1]); at--)
            sched->hosts->kinds.items[at] = sched->hosts->kinds.items[at - 1];
        sched->hosts->kinds.items[at] = kind;
    }
    for (size_t i = 0; i < sched->hosts->kinds.len; i++)
        sched->hosts->kinds.items[i]->number = (uint32_t)i;
    sched->hosts->kinds_version++;
}

uint64_t kind_devices(const struct kind *kind, const uint64_t *gres)
{
    uint64_t devices = 0;

    for (size_t i = 0; i < kind->sample->gres_count && i < TAKE_GRES; i++)
        devices += kind->in_row[i] ? gres[i] : 0;
    return devices;
}

uint32_t kind_cell(const struct kind *kind, const struct room_at *room)
{
    uint64_t devices = kind_devices(kind, room->gres);
    uint32_t row = (uint32_t)MIN(devices >> kind->row_shift, kind->spare.rows - 1);
    uint32_t col = MIN(room->cpus >> kind->col_shift, kind->spare.cols - 1);
    return row * kind->spare.cols + col;
}

void kinds_done(struct sched *sched)
{
    vec_each (struct kind *, at, &sched->hosts->kinds)
        kind_free(*at);
    vec_done(&sched->hosts->kinds);
}
