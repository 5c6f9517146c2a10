/* SPDX-License-Identifier: Apache-2.0 */
/*
 * het_fit.c - could the components of a heterogeneous job ever run beside each other?
 *
 * Each fits alone, admit.c has seen to that. For the nodes that one of them may use, all components that
 * may use no others are added up: is it more than these nodes have, empty, they never start.
 *
 * (1) Only the least that each component can do with is counted, so what is refused is impossible. What is
 *     possible only by amounts and not by node is not found; the planner says so (sched_explain).
 */
#include "core/shape/shapes.h"

#include <stdlib.h>

struct least {
    const struct shape *shape;
    struct bitset nodes; /* it may use no others */
    bool whole;          /* nodes for itself */
    bool shares;         /* CPUs with others */
    uint64_t cpus, mem_mb;
};

/* Its named nodes are all that it uses. */
static bool only_listed(const struct shape *shape, size_t listed)
{
    return shape->max_nodes <= listed || shape->tasks <= listed;
}

static void least_init(const struct state *state, struct shape *shape, struct least *out)
{
    const struct need *needs = shape_needs(state, shape);
    struct bitset listed = { 0 };

    *out = (struct least){ .shape = shape, .whole = true, .mem_mb = UINT64_MAX };
    bitset_init(&out->nodes, state->nodes.len);
    for (size_t i = 0; i < shape->partition_count; i++) {
        if (!needs[i].partition || !needs[i].fits)
            continue;
        bitset_or(&out->nodes, &needs[i].nodes);
        out->whole = out->whole && needs[i].whole_nodes;
        out->shares = out->shares || needs[i].share > 1;
        out->mem_mb = MIN(out->mem_mb, needs[i].mem_per_node_mb);
    }
    out->cpus = shape_cpus(shape);
    out->mem_mb = out->mem_mb == UINT64_MAX ? 0 : out->mem_mb * shape->min_nodes;
    if (shape->nodelist && state_node_set(state, shape->nodelist, &listed, NULL) == 0 &&
        only_listed(shape, bitset_count(&listed)) && bitset_within(&listed, &out->nodes)) {
        bitset_done(&out->nodes);
        out->nodes = listed;
        listed = (struct bitset){ 0 };
    }
    bitset_done(&listed);
}

static int most_first(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x > y ? -1 : x < y;
}

/* What the `count` nodes of the set that have most of it have together. */
static uint64_t sum_of_most(uint64_t *amounts, size_t have, size_t count)
{
    uint64_t sum = 0;

    qsort(amounts, have, sizeof(*amounts), most_first);
    for (size_t i = 0; i < MIN(have, count); i++)
        sum += amounts[i];
    return sum;
}

static uint64_t gres_least(const struct shape *shape, const char *name)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < shape->gres_count; i++) {
        const struct shape_gres *gres = &shape->gres[i];
        if (!str_eq(gres->name, name))
            continue;
        sum += gres->scope == GRES_PER_JOB    ? gres->count
               : gres->scope == GRES_PER_TASK ? gres->count * shape->tasks
                                              : gres->count * shape->min_nodes;
    }
    return sum;
}

static uint64_t gres_of(const struct state *state, const struct bitset *nodes, const char *name)
{
    uint64_t sum = 0;

    bitset_each (number, nodes) {
        const struct node *node = state->nodes.items[number];
        for (size_t i = 0; i < node->gres_count; i++)
            sum += str_eq(node->gres[i].name, name) ? node->gres[i].total : 0;
    }
    return sum;
}

static int too_much(struct err *err, const char *what, uint64_t need, uint64_t have)
{
    return err_set(err, ERR_NODE_CONFIG_UNAVAILABLE,
                   "Requested node configuration is not available: the components together need "
                   "%llu %s of %llu",
                   (unsigned long long)need, what, (unsigned long long)have);
}

static int check_gres(const struct state *state, const struct least *list, size_t count,
                      const struct bitset *among, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t g = 0; g < list[i].shape->gres_count; g++) {
            const char *name = list[i].shape->gres[g].name;
            uint64_t sum = 0, have = gres_of(state, among, name);
            for (size_t k = 0; k < count; k++)
                sum += bitset_within(&list[k].nodes, among) ? gres_least(list[k].shape, name) : 0;
            if (bitset_within(&list[i].nodes, among) && sum > have)
                return too_much(err, name, sum, have);
        }
    }
    return 0;
}

/* What is left when `whole` nodes are taken, at most. */
static int check_amounts(const struct state *state, const struct bitset *among, size_t whole,
                         uint64_t cpus, uint64_t mem_mb, struct err *err)
{
    size_t count = bitset_count(among), at = 0;
    uint64_t *have_cpus = NEW_ARRAY(uint64_t, count + 1),
             *have_mem = NEW_ARRAY(uint64_t, count + 1);
    int code = 0;

    bitset_each (number, among) {
        have_cpus[at] = state->nodes.items[number]->cpus;
        have_mem[at++] = state->nodes.items[number]->mem_mb;
    }
    uint64_t most_cpus = sum_of_most(have_cpus, count, count - whole);
    uint64_t most_mem = sum_of_most(have_mem, count, count - whole);
    if (cpus > most_cpus)
        code = too_much(err, "CPUs", cpus, most_cpus);
    else if (mem_mb > most_mem)
        code = too_much(err, "MB", mem_mb, most_mem);
    free(have_cpus);
    free(have_mem);
    return code;
}

/* Nodes that it must have most of the CPUs of, so that no two such components can share one. */
static uint64_t nodes_filled(const struct least *least, uint32_t most_cpus)
{
    const struct shape *shape = least->shape;

    if (least->whole)
        return shape->min_nodes;
    if (least->shares || shape->overcommit)
        return 0;
    if ((uint64_t)shape->cpus_per_task * 2 > most_cpus)
        return shape->tasks;
    return shape->max_nodes == 1 && least->cpus * 2 > most_cpus ? 1 : 0;
}

static uint32_t most_cpus_of(const struct state *state, const struct bitset *nodes)
{
    uint32_t most = 0;

    bitset_each (number, nodes)
        most = MAX(most, state->nodes.items[number]->cpus);
    return most;
}

static int check_among(const struct state *state, const struct least *list, size_t count,
                       const struct bitset *among, struct err *err)
{
    size_t nodes = bitset_count(among);
    uint64_t whole = 0, cpus = 0, mem_mb = 0, others = 0, filled = 0;
    uint32_t most_cpus = most_cpus_of(state, among);

    for (size_t i = 0; i < count; i++) {
        if (!bitset_within(&list[i].nodes, among))
            continue;
        filled += nodes_filled(&list[i], most_cpus);
        if (list[i].whole) {
            whole += list[i].shape->min_nodes;
            continue;
        }
        others = 1;
        mem_mb += list[i].mem_mb;
        if (!list[i].shares && !list[i].shape->overcommit)
            cpus += list[i].cpus;
    }
    if (whole + others > nodes)
        return too_much(err, "nodes", whole + others, nodes);
    if (filled > nodes)
        return too_much(err, "nodes", filled, nodes);
    int code = check_amounts(state, among, whole, cpus, mem_mb, err);
    return code < 0 ? code : check_gres(state, list, count, among, err);
}

static int check_licences(const struct state *state, const struct least *list, size_t count,
                          struct err *err)
{
    for (size_t l = 0; l < state->licences.len; l++) {
        const struct licence *licence = &state->licences.items[l];
        uint64_t sum = 0;
        for (size_t i = 0; i < count; i++) {
            const struct shape *shape = list[i].shape;
            for (size_t k = 0; k < shape->licence_count && !shape->licence_any; k++)
                sum +=
                    str_eq(shape->licences[k].name, licence->name) ? shape->licences[k].count : 0;
        }
        if (sum > licence->total)
            return err_set(err, ERR_LICENSES, "Invalid license specification: %.100s",
                           licence->name);
    }
    return 0;
}

int het_could_fit(const struct state *state, struct shape *const *shapes, size_t count,
                  struct err *err)
{
    struct least *list = NEW_ARRAY(struct least, count);
    int code = 0;

    for (size_t i = 0; i < count; i++)
        least_init(state, shapes[i], &list[i]);
    code = check_licences(state, list, count, err);
    for (size_t i = 0; i < count && code == 0; i++)
        code = check_among(state, list, count, &list[i].nodes, err);
    for (size_t i = 0; i < count; i++)
        bitset_done(&list[i].nodes);
    free(list);
    return code;
}
