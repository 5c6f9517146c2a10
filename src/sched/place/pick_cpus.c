/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pick_cpus.c - which CPUs of a host
 *
 * Near the devices; without devices on the socket that has least left, or dealt over the sockets
 * where that is asked for; whole cores where cores are given whole. Where only so many tasks may be on
 * a socket (--ntasks-per-socket), no socket has CPUs of more.
 */
#include "sched/place/pick.h"

/* ---- CPUs ---- */

void pick_free_cpus(const struct host *host, unsigned share, struct bitset *out)
{
    if (share > 1) {
        for (size_t cpu = 0; cpu < out->bits; cpu++) {
            if (host_cpu_is_free(host, cpu, share))
                bitset_add(out, cpu);
        }
        return;
    }
    bitset_fill(out);
    if (node_has_cpu_ids(host->node))
        bitset_minus(out, &host->node->cpu_ids);
    for (const struct claim *claim = host->claims; claim; claim = claim->next)
        bitset_minus(out, &claim->cpus);
}

/* The bits of a word that are within [first, last). */
static uint64_t mask_within(size_t word, size_t first, size_t last)
{
    uint64_t bits = ~UINT64_C(0);

    if (word == first / 64)
        bits &= ~UINT64_C(0) << (first % 64);
    if (last < (word + 1) * 64)
        bits &= (UINT64_C(1) << (last % 64)) - 1;
    return bits;
}

static size_t count_within(const struct bitset *set, size_t first, size_t last)
{
    size_t count = 0;

    for (size_t word = first / 64; word * 64 < last; word++)
        count += (size_t)__builtin_popcountll(set->words[word] & mask_within(word, first, last));
    return count;
}

/* All of them are wanted, and no core is there in part: no need to look at each. */
static bool take_all(struct bitset *from, uint32_t unit, size_t first, size_t last, uint32_t *left,
                     struct bitset *out)
{
    size_t count = count_within(from, first, last);
    bool whole = unit == 1 || (count == last - first && first % unit == 0 && count % unit == 0);

    if (!whole || count > *left)
        return false;
    for (size_t word = first / 64; word * 64 < last; word++) {
        uint64_t bits = from->words[word] & mask_within(word, first, last);
        out->words[word] |= bits;
        from->words[word] &= ~bits;
    }
    *left -= (uint32_t)count;
    return true;
}

/* So many of the lowest bits. */
static uint64_t lowest_bits(uint64_t bits, size_t count)
{
    uint64_t rest = bits;

    while (rest && count--)
        rest &= rest - 1;
    return bits & ~rest;
}

/* Cores of one CPU or two, a word at a time: no word ends within one. */
static void take_words(struct bitset *from, uint32_t unit, size_t first, size_t last,
                       uint32_t *left, struct bitset *out)
{
    const uint64_t even = UINT64_C(0x5555555555555555);

    for (size_t word = first / 64; word * 64 < last && *left; word++) {
        uint64_t bits = from->words[word] & mask_within(word, first, last);
        uint64_t cores = unit == 1 ? bits : bits & bits >> 1 & even; /* by their first CPU */
        cores = lowest_bits(cores, (*left + unit - 1) / unit);
        bits = unit == 1 ? cores : cores | cores << 1;
        out->words[word] |= bits;
        from->words[word] &= ~bits;
        *left -= MIN(*left, (uint32_t)__builtin_popcountll(bits));
    }
}

/* Takes whole cores (or CPUs) of `from` within [first, last) until there are enough. */
static void take_cpus(struct bitset *from, uint32_t unit, size_t first, size_t last, uint32_t *left,
                      struct bitset *out)
{
    if (take_all(from, unit, first, last, left, out))
        return;
    if (unit <= 2 && first % unit == 0 && last % unit == 0) {
        take_words(from, unit, first, last, left, out);
        return;
    }
    for (size_t cpu = bitset_next(from, first); cpu < last && *left; cpu = bitset_next(from, cpu)) {
        size_t core = cpu - cpu % unit;
        bool whole = core + unit <= last;
        for (size_t i = core; whole && i < core + unit; i++)
            whole = bitset_has(from, i);
        if (!whole) {
            cpu++;
            continue;
        }
        for (size_t i = core; i < core + unit; i++) {
            bitset_add(out, i);
            bitset_del(from, i);
        }
        *left -= MIN(*left, unit);
        cpu = core + unit;
    }
}

/* The socket that has enough and least too much; else the one that has most. */
static uint32_t best_socket(const struct bitset *unused, uint32_t sockets, uint32_t want)
{
    size_t each = unused->bits / sockets, best_has = 0;
    uint32_t best = 0;

    for (uint32_t socket = 0; socket < sockets; socket++) {
        size_t has = count_within(unused, socket * each, (socket + 1) * each);
        bool better = best_has >= want ? has >= want && has < best_has : has > best_has;
        if (better) {
            best = socket;
            best_has = has;
        }
    }
    return best;
}

/* Whole cores of a task (`each` CPUs) on one socket, those of the next on the next. */
static void scatter(struct bitset *unused, uint32_t sockets, uint32_t unit, uint32_t each,
                    uint32_t *left, struct bitset *out)
{
    size_t wide = unused->bits / sockets;

    for (uint32_t idle = 0, socket = 0; *left && idle < sockets; socket = (socket + 1) % sockets) {
        uint32_t some = MIN(each, *left), before = some;
        take_cpus(unused, unit, socket * wide, (socket + 1) * wide, &some, out);
        *left -= before - some;
        idle = some == before ? idle + 1 : 0;
    }
}

/* ---- --ntasks-per-socket ---- */

static bool counts_by_socket(const struct shape *shape, const struct need *need)
{
    return shape->tasks_per_socket && !shape->overcommit && !need->whole_nodes;
}

/* Tasks that CPUs of the socket have room for, as many as may be there at most. */
static uint32_t tasks_of_socket(const struct node *node, const struct shape *shape,
                                const struct need *need, const struct bitset *unused, size_t first,
                                size_t last)
{
    uint32_t unit = need_unit(need, node), tasks = shape->tasks_per_socket, room = 0;

    for (size_t core = first; core + unit <= last; core += unit)
        room += count_within(unused, core, core + unit) == unit ? unit : 0;
    tasks = MIN(tasks, room);
    while (tasks && fit_socket_cpus(shape, need, node, tasks) > room)
        tasks--;
    return tasks;
}

uint32_t pick_socket_tasks(const struct host *host, const struct shape *shape,
                           const struct need *need, uint32_t tasks)
{
    const struct node *node = host->node;
    uint32_t sockets = node->sockets, sum = 0;
    size_t wide = node->cpu_span / sockets;
    uint64_t words[SCRATCH_WORDS];
    struct bitset unused;

    if (!counts_by_socket(shape, need))
        return tasks;
    scratch_init(&unused, words, node->cpu_span);
    pick_free_cpus(host, need->share, &unused);
    for (size_t s = 0; s < sockets && sum < tasks; s++)
        sum += tasks_of_socket(node, shape, need, &unused, s * wide, (s + 1) * wide);
    scratch_done(&unused, words);
    tasks = MIN(tasks, sum);
    /* As fit_units() has it: what each node must run. */
    return !shape->tasks_given && tasks < MIN(shape->tasks_per_node, shape->tasks) ? 0 : tasks;
}

/* No more tasks on a socket than may be, sockets near the devices first, and there the nearest CPUs. */
static void fill_sockets(const struct node *node, const struct shape *shape,
                         const struct need *need, const struct take *take, struct bitset *unused,
                         struct bitset *close, uint32_t *left, struct bitset *out)
{
    uint32_t unit = need_unit(need, node), sockets = node->sockets, tasks = take->tasks;
    size_t wide = node->cpu_span / sockets;

    for (size_t i = 0; i < (size_t)sockets * 2 && tasks && *left; i++) {
        size_t first = i % sockets * wide;
        bool is_near = close->words && count_within(close, first, first + wide) > 0;
        if (is_near != (i < sockets) && close->words)
            continue;
        if (!close->words && i >= sockets)
            break;
        uint32_t here = tasks_of_socket(node, shape, need, unused, first, first + wide);
        here = MIN(here, tasks);
        uint32_t some = MIN(fit_socket_cpus(shape, need, node, here), *left), rest = some;
        if (is_near)
            take_cpus(close, unit, first, first + wide, &rest, out);
        bitset_minus(unused, out);
        take_cpus(unused, unit, first, first + wide, &rest, out);
        *left -= some - rest;
        tasks -= here;
    }
}

void pick_cpus(const struct host *host, const struct shape *shape, const struct need *need,
               const struct take *take, const struct bitset *near, bool by_socket,
               struct bitset *out)
{
    const struct node *node = host->node;
    uint32_t unit = need_unit(need, node), sockets = node->sockets;
    uint32_t left = take->cpus;
    uint64_t words[SCRATCH_WORDS], close_words[SCRATCH_WORDS];
    struct bitset unused;

    scratch_init(&unused, words, node->cpu_span);
    pick_free_cpus(host, need->share, &unused);
    bitset_init(out, node->cpu_span);
    struct bitset close = { 0 };
    if (near->words) {
        scratch_init(&close, close_words, unused.bits);
        bitset_or(&close, &unused);
        bitset_and(&close, near);
    }
    if (counts_by_socket(shape, need) && !by_socket)
        fill_sockets(node, shape, need, take, &unused, &close, &left, out);
    if (near->words) {
        if (by_socket) /* some of each */
            scatter(&close, sockets, unit, MAX(take->cpus / MAX(take->tasks, 1), unit), &left, out);
        take_cpus(&close, unit, 0, node->cpu_span, &left, out);
        bitset_minus(&unused, out);
        scratch_done(&close, close_words);
    }
    if (need->scattered && sockets > 1)
        scatter(&unused, sockets, unit, MAX(take->cpus / MAX(take->tasks, 1), unit), &left, out);
    bool rest = left && !take_all(&unused, unit, 0, node->cpu_span, &left, out);
    for (uint32_t i = 0; rest && left && i < sockets; i++) {
        uint32_t socket = best_socket(&unused, sockets, left);
        size_t each = node->cpu_span / sockets;
        take_cpus(&unused, unit, socket * each, (socket + 1) * each, &left, out);
        /* What is left of it are halves of cores. */
        for (size_t cpu = socket * each; left && unit > 1 && cpu < (socket + 1) * each; cpu++)
            bitset_del(&unused, cpu);
    }
    scratch_done(&unused, words);
}
