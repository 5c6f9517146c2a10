/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_mem.c - the memory of which NUMA nodes each task of a step uses
 */
#include "spurd/step/step_mem.h"

#include "base/limits.h"

static unsigned id_of(const struct mem_node *node, size_t index)
{
    return node->ids ? node->ids[index] : (unsigned)index;
}

void mem_all(const struct mem_node *node, struct bitset *out)
{
    for (size_t i = 0; i < node->count; i++) {
        if (id_of(node, i) < out->bits)
            bitset_add(out, id_of(node, i));
    }
    if (node->count == 0)
        bitset_add(out, 0);
}

/* Those with one of these CPUs. */
static void add_local(const struct mem_node *node, const struct bitset *cpus, struct bitset *out)
{
    for (size_t i = 0; i < node->count; i++) {
        struct bitset own;
        bitset_init(&own, LIMIT_CPU_NUMBER);
        if (id_of(node, i) < out->bits && bitset_parse(&own, node->cpus[i]) &&
            bitset_meets(&own, cpus))
            bitset_add(out, id_of(node, i));
        bitset_done(&own);
    }
}

/* Is everything that was asked for there? */
static int check(const struct mem_node *node, const struct bitset *asked, struct err *err)
{
    struct bitset all;
    int ret = 0;

    bitset_init(&all, LIMIT_NUMA_NODES);
    mem_all(node, &all);
    bitset_each (id, asked) {
        if (ret == 0 && !bitset_has(&all, id))
            ret = err_set(err, ERR_INVALID, "NUMA node %zu does not exist", id);
    }
    bitset_done(&all);
    if (ret == 0 && bitset_is_empty(asked))
        ret = err_set(err, ERR_INVALID, "no NUMA node is named");
    return ret;
}

int mem_plan(const struct mem_node *node, const struct bind_mem *bind, size_t task,
             const struct bitset *cpus, struct bitset *out, struct err *err)
{
    bitset_clear(out);
    switch (bind->kind) {
    case BIND_MEM_LOCAL:
        if (cpus)
            add_local(node, cpus, out);
        if (bitset_is_empty(out))
            mem_all(node, out);
        return 0;
    case BIND_MEM_RANK:
        if (task >= out->bits)
            return err_set(err, ERR_INVALID, "NUMA node %zu does not exist", task);
        bitset_add(out, task);
        return check(node, out, err);
    case BIND_MEM_MAP:
    case BIND_MEM_MASK:
        if (!bind_list_nth(bind->list, task, bind->kind == BIND_MEM_MASK, out))
            return err_set(err, ERR_INVALID, "no machine has so many NUMA nodes");
        return check(node, out, err);
    default:
        mem_all(node, out);
        return 0;
    }
}

const char *mem_word(const struct bind_mem *bind)
{
    static const char *const words[] = {
        [BIND_MEM_DEFAULT] = "NONE", [BIND_MEM_NONE] = "NONE", [BIND_MEM_LOCAL] = "LOC",
        [BIND_MEM_RANK] = "RANK",    [BIND_MEM_MAP] = "MAP",   [BIND_MEM_MASK] = "MASK",
    };

    return words[bind->kind];
}
