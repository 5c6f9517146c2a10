/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_bind.c - which CPUs each task of a step is bound to on one node
 *
 * (1) A task is dealt its CPUs one by one: the distribution says when to go on to the next socket and,
 *     in a socket, to the next core. Block goes on when nothing is left, cyclic with each task,
 *     fcyclic with each CPU. Then the task gets the whole unit that it is bound to.
 * (2) Nobody asked: tasks are bound to threads, cores or sockets when the step has exactly as many as its
 *     tasks need; else each may use all CPUs of the step. This is Slurm's rule.
 */
#include "spurd/step/step_bind.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

enum unit { UNIT_THREAD, UNIT_CORE, UNIT_SOCKET, UNITS };

struct deal {
    const struct bind_node *node;
    struct bitset all;  /* of the step */
    struct bitset free; /* not dealt yet */
    enum bind_order sockets, cores;
    uint32_t socket;               /* where the next CPU is looked for */
    uint32_t *core_at;             /* in each socket */
    uint32_t *on_core, *on_socket; /* tasks; by number */
    uint32_t per_core, per_socket; /* the most of them */
    uint32_t socket_count;
};

static uint32_t per_socket(const struct bind_node *node)
{
    return MAX(node->cores_per_socket, 1) * MAX(node->threads, 1);
}

static uint32_t width(const struct bind_node *node, enum unit unit)
{
    return unit == UNIT_THREAD ? 1 : unit == UNIT_CORE ? MAX(node->threads, 1) : per_socket(node);
}

/* How many cores or sockets the set touches. */
static uint32_t count_units(const struct bind_node *node, const struct bitset *set, enum unit unit)
{
    uint32_t count = 0, size = width(node, unit);
    size_t last = SIZE_MAX;

    bitset_each (cpu, set) {
        count += cpu / size != last;
        last = cpu / size;
    }
    return count;
}

/* Keeps `most` CPUs of each core; memory_bound: one core of each socket. */
static void thin(const struct bind_node *node, struct bitset *set, uint32_t most, bool one_core)
{
    uint32_t threads = MAX(node->threads, 1), size = per_socket(node), seen = 0;
    size_t core = SIZE_MAX, socket = SIZE_MAX, first = SIZE_MAX;

    bitset_each (cpu, set) {
        if (cpu / threads != core) {
            core = cpu / threads;
            seen = 0;
        }
        if (cpu / size != socket) {
            socket = cpu / size;
            first = core;
        }
        if (++seen > most || (one_core && core != first))
            bitset_del(set, cpu);
    }
}

static bool first_free(const struct deal *deal, size_t from, size_t until, size_t *out)
{
    size_t cpu = bitset_next(&deal->free, from);

    *out = cpu;
    return cpu < until;
}

/* The next CPU in this socket, from its current core on, round. */
static bool next_in_socket(struct deal *deal, uint32_t socket, size_t *out)
{
    const struct bind_node *node = deal->node;
    uint32_t cores = MAX(node->cores_per_socket, 1), threads = MAX(node->threads, 1);

    for (uint32_t i = 0; i < cores; i++) {
        uint32_t core = (deal->core_at[socket] + i) % cores;
        size_t first = ((size_t)socket * cores + core) * threads;
        if (!first_free(deal, first, first + threads, out))
            continue;
        deal->core_at[socket] = deal->cores == BIND_FCYCLIC ? (core + 1) % cores : core;
        return true;
    }
    return false;
}

static size_t next_cpu(struct deal *deal)
{
    for (int again = 0; again < 2; again++) {
        for (uint32_t i = 0; i < deal->socket_count; i++) {
            uint32_t socket = (deal->socket + i) % deal->socket_count;
            size_t cpu;
            if (!next_in_socket(deal, socket, &cpu))
                continue;
            deal->socket =
                deal->sockets == BIND_FCYCLIC ? (socket + 1) % deal->socket_count : socket;
            bitset_del(&deal->free, cpu);
            return cpu;
        }
        bitset_or(&deal->free, &deal->all); /* more tasks than CPUs: from the beginning */
    }
    return 0;
}

/* A unit that has as many tasks as it may gets no more. */
static void close_full(struct deal *deal, enum unit unit, uint32_t most, uint32_t *tasks,
                       const struct bitset *given)
{
    uint32_t size = width(deal->node, unit);
    size_t last = SIZE_MAX;

    if (!most)
        return;
    bitset_each (cpu, given) {
        size_t at = cpu / size;
        if (at == last || at >= deal->node->cpus)
            continue;
        last = at;
        if (++tasks[at] < most)
            continue;
        for (size_t i = at * size; i < (at + 1) * size && i < deal->free.bits; i++)
            bitset_del(&deal->free, i);
    }
}

/* (1) */
static void deal_task(struct deal *deal, uint32_t cpus, struct bitset *out)
{
    uint32_t last = 0;

    for (uint32_t i = 0; i < cpus; i++) {
        size_t cpu = next_cpu(deal);
        bitset_add(out, cpu);
        last = (uint32_t)(cpu / per_socket(deal->node));
    }
    close_full(deal, UNIT_CORE, deal->per_core, deal->on_core, out);
    close_full(deal, UNIT_SOCKET, deal->per_socket, deal->on_socket, out);
    if (deal->cores == BIND_CYCLIC)
        deal->core_at[last] = (deal->core_at[last] + 1) % MAX(deal->node->cores_per_socket, 1);
    if (deal->sockets == BIND_CYCLIC)
        deal->socket = (last + 1) % deal->socket_count;
}

static void widen(const struct bind_node *node, const struct bitset *all, enum unit unit,
                  struct bitset *set)
{
    uint32_t size = width(node, unit);
    struct bitset wide;

    bitset_init(&wide, set->bits);
    bitset_each (cpu, set) {
        size_t first = cpu / size * size;
        bitset_add_range(&wide, first, MIN(first + size, set->bits) - 1);
    }
    bitset_and(&wide, all);
    bitset_or(set, &wide);
    bitset_done(&wide);
}

static void to_kernel(const struct bind_node *node, struct bitset *set)
{
    struct bitset mapped;

    if (!node->map)
        return;
    bitset_init(&mapped, set->bits);
    bitset_each (cpu, set) {
        if (cpu < node->cpus && node->map[cpu] < set->bits)
            bitset_add(&mapped, node->map[cpu]);
    }
    bitset_done(set);
    *set = mapped;
}

static bool ldom(const struct bind_node *node, size_t index, struct bitset *out)
{
    uint32_t size = per_socket(node);
    size_t sockets = MAX(node->cpus / size, 1);

    if (node->ldom_count > 0)
        return index < node->ldom_count && bitset_parse(out, node->ldoms[index]);
    if (index >= sockets)
        return false;
    bitset_add_range(out, index * size, (index + 1) * size - 1);
    to_kernel(node, out);
    return true;
}

static size_t ldoms_of(const struct bind_node *node)
{
    return node->ldom_count ? node->ldom_count : MAX(node->cpus / per_socket(node), 1);
}

static bool add_ldom(const struct bind_node *node, size_t index, struct bitset *out)
{
    struct bitset one;

    bitset_init(&one, out->bits);
    bool good = ldom(node, index, &one);
    if (good)
        bitset_or(out, &one);
    bitset_done(&one);
    return good;
}

static size_t nth(const struct bitset *set, size_t index)
{
    size_t count = bitset_count(set), at = 0;

    index = count ? index % count : 0;
    bitset_each (cpu, set) {
        if (at++ == index)
            return cpu;
    }
    return 0;
}

/* What a list or the rank says, in the kernel's numbers. */
static bool said(const struct bind_node *node, const struct bind_cpu *bind,
                 const struct bitset *own, size_t task, struct bitset *out)
{
    struct bitset value;
    bool good = true;

    switch (bind->kind) {
    case BIND_RANK:
        bitset_add(out, nth(own, task));
        return true;
    case BIND_RANK_LDOM:
        return add_ldom(node, task % ldoms_of(node), out);
    case BIND_MAP:
    case BIND_MASK:
        return bind_list_nth(bind->list, task, bind->kind == BIND_MASK, out);
    default:
        break;
    }
    bitset_init(&value, out->bits);
    good = bind_list_nth(bind->list, task, bind->kind == BIND_MASK_LDOM, &value);
    bitset_each (index, &value)
        good = good && add_ldom(node, index, out);
    bitset_done(&value);
    return good;
}

static int plan_said(const struct bind_node *node, const struct bind_cpu *bind, struct bitset *own,
                     struct bind_plan *out, struct err *err)
{
    to_kernel(node, own);
    for (size_t i = 0; i < out->count; i++) {
        bool good = said(node, bind, own, i, &out->masks[i]);
        bitset_and(&out->masks[i], own);
        if (!good || bitset_is_empty(&out->masks[i]))
            return err_code(err, ERR_CPU_BIND);
    }
    return 0;
}

static bool is_said(enum bind_kind kind)
{
    return kind >= BIND_RANK;
}

/* (2) */
static enum bind_kind by_itself(const struct bind_node *node, const struct bind_ask *ask,
                                const struct bitset *own)
{
    static const enum bind_kind kinds[UNITS] = { BIND_THREADS, BIND_CORES, BIND_SOCKETS };
    uint64_t need = (uint64_t)ask->tasks * MAX(ask->cpus_per_task, 1);

    if (!ask->affinity)
        return BIND_NONE;
    if (ask->threads_per_core == 1 || str_eq(ask->hint, "nomultithread"))
        return BIND_THREADS;
    for (int unit = UNITS - 1; unit >= 0; unit--) {
        if (count_units(node, own, (enum unit)unit) == need)
            return kinds[unit];
    }
    return ask->otherwise;
}

static void plan_dealt(const struct bind_node *node, const struct bind_ask *ask,
                       enum bind_kind kind, const struct bitset *own, const struct bitset *whole,
                       struct bind_plan *out)
{
    struct deal deal = { .node = node, .socket_count = MAX(node->cpus / per_socket(node), 1) };

    bind_read_order(ask->distribution, &deal.sockets, &deal.cores);
    bitset_init_copy(&deal.all, own);
    bitset_init_copy(&deal.free, own);
    deal.core_at = NEW_ARRAY(uint32_t, deal.socket_count);
    deal.per_core = ask->per_core;
    deal.per_socket = ask->per_socket;
    deal.on_core = NEW_ARRAY(uint32_t, node->cpus + 1);
    deal.on_socket = NEW_ARRAY(uint32_t, node->cpus + 1);
    for (size_t i = 0; i < out->count; i++) {
        if (kind == BIND_DEFAULT) {
            bitset_or(&out->masks[i], own);
        } else {
            uint32_t cpus = MIN(MAX(ask->cpus_per_task, 1), (uint32_t)bitset_count(own));
            deal_task(&deal, cpus, &out->masks[i]);
        }
        if (kind == BIND_CORES)
            widen(node, whole, UNIT_CORE, &out->masks[i]);
        if (kind == BIND_SOCKETS || (kind == BIND_LDOMS && node->ldom_count == 0))
            widen(node, own, UNIT_SOCKET, &out->masks[i]);
        to_kernel(node, &out->masks[i]);
    }
    bitset_done(&deal.all);
    bitset_done(&deal.free);
    free(deal.core_at);
    free(deal.on_core);
    free(deal.on_socket);
}

static bool own_cpus(const struct bind_node *node, const struct bind_ask *ask, struct bitset *own)
{
    bitset_init(own, LIMIT_CPU_NUMBER);
    if (str_is_empty(ask->cpu_ids) || !bitset_parse(own, ask->cpu_ids))
        bitset_add_range(own, 0, MAX(node->cpus, 1) - 1);
    return !bitset_is_empty(own);
}

/* LDOMS that are not sockets: the task's CPU leads to its NUMA node. */
static void widen_ldoms(const struct bind_node *node, const struct bitset *own,
                        struct bind_plan *out)
{
    struct bitset kernel;

    bitset_init_copy(&kernel, own);
    to_kernel(node, &kernel);
    for (size_t i = 0; i < out->count; i++) {
        for (size_t k = 0; k < node->ldom_count; k++) {
            struct bitset one;
            bitset_init(&one, LIMIT_CPU_NUMBER);
            if (ldom(node, k, &one) && bitset_meets(&one, &out->masks[i]))
                bitset_or(&out->masks[i], &one);
            bitset_done(&one);
        }
        bitset_and(&out->masks[i], &kernel);
    }
    bitset_done(&kernel);
}

static const char *word_of(enum bind_kind kind)
{
    static const char *const words[] = {
        [BIND_NONE] = "NONE",        [BIND_RANK] = "RANK",        [BIND_MAP] = "MAP ",
        [BIND_MASK] = "MASK",        [BIND_RANK_LDOM] = "LDRANK", [BIND_MAP_LDOM] = "LDMAP ",
        [BIND_MASK_LDOM] = "LDMASK",
    };

    return words[kind] ? words[kind] : "MASK";
}

int bind_plan(const struct bind_node *node, const struct bind_ask *ask, struct bind_plan *out,
              struct err *err)
{
    struct bind_cpu bind;
    struct bitset own, whole;
    int ret = 0;

    *out = (struct bind_plan){ 0 };
    if (bind_read_cpu(ask->cpu_bind, &bind, err) < 0)
        return -(int)err->code;
    out->verbose = bind.verbose;
    own_cpus(node, ask, &own);
    bitset_init_copy(&whole, &own);
    uint32_t most = ask->threads_per_core ? ask->threads_per_core
                    : str_eq(ask->hint, "compute_bound") || str_eq(ask->hint, "memory_bound") ||
                            str_eq(ask->hint, "nomultithread")
                        ? 1
                        : MAX(node->threads, 1);
    thin(node, &own, most, str_eq(ask->hint, "memory_bound"));
    enum bind_kind kind = bind.kind ? bind.kind : by_itself(node, ask, &own);
    out->word = word_of(kind);
    if (kind != BIND_NONE) {
        out->count = ask->tasks;
        out->masks = NEW_ARRAY(struct bitset, out->count + 1);
        for (size_t i = 0; i < out->count; i++)
            bitset_init(&out->masks[i], LIMIT_CPU_NUMBER);
        if (is_said(kind))
            ret = plan_said(node, &bind, &whole, out, err);
        else
            plan_dealt(node, ask, kind, &own, most < node->threads ? &own : &whole, out);
        if (kind == BIND_LDOMS && node->ldom_count)
            widen_ldoms(node, &own, out);
    }
    bitset_done(&own);
    bitset_done(&whole);
    return ret;
}

void bind_done(struct bind_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        bitset_done(&plan->masks[i]);
    free(plan->masks);
    *plan = (struct bind_plan){ 0 };
}

enum bind_kind bind_autobind(const char *task_plugin_param)
{
    static const struct {
        const char *word;
        enum bind_kind kind;
    } words[] = { { "autobind=threads", BIND_THREADS },
                  { "autobind=cores", BIND_CORES },
                  { "autobind=sockets", BIND_SOCKETS } };
    const char *cursor = task_plugin_param;
    struct span word;

    while (cursor && str_next(&cursor, ",", &word)) {
        for (size_t i = 0; i < ARRAY_LEN(words); i++) {
            if (span_ieq(word, words[i].word))
                return words[i].kind;
        }
    }
    return BIND_DEFAULT;
}
