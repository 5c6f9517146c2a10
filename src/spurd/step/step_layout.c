/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_layout.c - which tasks of a step run on which nodes of an allocation
 *
 * (1) How many tasks a node gets is found by going round: one each, then one more each, up to what its
 *     CPUs hold. Which tasks those are the distribution says: neighbours together (block), dealt out
 *     (cyclic), or in pieces (plane). This is Slurm's order, which programs rely on.
 * (2) A step takes every CPU that the job has on its nodes, unless it asks for exactly what its tasks
 *     need; steps that overlap take nothing from others.
 */
#include "spurd/step/step_layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"

struct pick {
    const Allocation *allocation;
    const struct step_used *used;
    const StepRequest *request;
    bool no_gres;     /* to find out what is missing: devices do not count */
    uint32_t *picked; /* indexes, in order */
    size_t count;
    uint32_t *tasks; /* of each */
    uint32_t ntasks;
};

static uint32_t cpus_of(const struct pick *pick, uint32_t node)
{
    return MAX(pick->allocation->nodes[node]->cpus, 1);
}

static struct step_share share_of(const struct pick *pick, uint32_t node)
{
    return (struct step_share){ .alloc = pick->allocation->nodes[node],
                                .used = &pick->used[node],
                                .request = pick->request };
}

static uint32_t cpus_per_task(const struct pick *pick, uint32_t node)
{
    struct step_share share = share_of(pick, node);

    return step_share_cpus_per_task(&share);
}

/* Tasks that fit on a node: ever (now false), or beside the steps that run there. */
static uint32_t room(const struct pick *pick, uint32_t node, bool now)
{
    const StepRequest *request = pick->request;
    const NodeAlloc *alloc = pick->allocation->nodes[node];
    struct step_share share = share_of(pick, node);
    uint32_t cpus = cpus_of(pick, node), most = STEP_TASKS_PER_NODE_MAX;

    if (request->ntasks_per_node)
        most = request->ntasks_per_node;
    most = MIN(most, step_share_places(&share));
    if (!pick->no_gres)
        most = MIN(most, step_share_tasks(&share, now));
    if (now && !request->overlap) {
        uint32_t used = pick->used[node].cpus;
        if (!request->exact)
            cpus = used ? 0 : cpus; /* (2) */
        else
            cpus = used < cpus ? cpus - used : 0;
        if (request->mem_per_node_mb && alloc->mem_mb &&
            pick->used[node].mem_mb + request->mem_per_node_mb > alloc->mem_mb)
            return 0;
    }
    if (request->overcommit)
        return cpus ? most : 0;
    return MIN(cpus / step_share_cpus_per_task(&share), most);
}

static int parse_hosts(struct hostlist *list, const char *text, struct err *err)
{
    return str_is_empty(text) ? 0 : hostlist_parse(list, text, err);
}

/* Is the node built as the request wants it? */
static bool is_built_so(const struct pick *pick, size_t node)
{
    const struct step_used *used = &pick->used[node];
    const StepRequest *request = pick->request;
    uint32_t cores =
        used->per_socket ? used->per_socket / MAX(used->threads, 1) : cpus_of(pick, (uint32_t)node);

    return request->sockets_per_node <= MAX(used->sockets, 1) && request->cores_per_socket <= cores;
}

/* The nodes it may have, those it must have first, else from `relative` on. */
static int candidates(const struct pick *pick, uint32_t *out, size_t *count, size_t *musts,
                      struct err *err)
{
    CLEANUP(hostlist_done) struct hostlist wanted = { 0 }, excluded = { 0 };
    const Allocation *allocation = pick->allocation;
    size_t n = allocation->n_nodes, first = 0, skip = pick->request->relative;

    *count = *musts = 0;
    while (first < n && (allocation->nodes[first]->left || skip > 0)) {
        skip -= !allocation->nodes[first]->left;
        first++;
    }
    if (parse_hosts(&wanted, pick->request->nodelist, err) < 0 ||
        parse_hosts(&excluded, pick->request->exclude, err) < 0)
        return -(int)err->code;
    size_t behind = 0; /* nodes from the first on: a number that was asked for is of these */
    for (size_t i = first; i < n; i++)
        behind += !allocation->nodes[i]->left;
    if (first >= n || (pick->request->relative && pick->request->min_nodes > behind))
        return err_code(err, ERR_NODE_COUNT);
    hostlist_each (host, &wanted) {
        size_t i = 0;
        while (i < n &&
               (allocation->nodes[i]->left || strcmp(allocation->nodes[i]->node, host.name) != 0))
            i++;
        if (i == n || hostlist_find(&excluded, host.name) >= 0)
            return err_code(err, ERR_NODE_CONFIG_UNAVAILABLE);
    }
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < n; i++) {
            size_t at = (first + i) % n;
            const char *name = allocation->nodes[at]->node;
            bool must = hostlist_find(&wanted, name) >= 0;
            if (allocation->nodes[at]->left || must != (pass == 0) ||
                hostlist_find(&excluded, name) >= 0 || !is_built_so(pick, at))
                continue;
            out[(*count)++] = (uint32_t)at;
            *musts += must;
        }
    }
    return 0;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* How many nodes, from the request: its tasks decide where it does not say. */
static int node_counts(const struct pick *pick, size_t available, size_t musts, size_t *min,
                       size_t *max, struct err *err)
{
    const StepRequest *request = pick->request;

    *min = request->has_min_nodes ? MAX(request->min_nodes, 1) : MAX(musts, 1);
    *max = request->has_max_nodes ? request->max_nodes : request->has_min_nodes ? *min : available;
    if (*min > pick->allocation->n_nodes)
        return err_code(err, ERR_NODE_CONFIG_UNAVAILABLE);
    if (*min > available)
        return err_code(err, ERR_NODE_CONFIG_UNAVAILABLE);
    *max = MIN(*max, available);
    if (request->has_ntasks)
        *max = MIN(*max, MAX(request->ntasks, 1));
    *max = MAX(*max, *min);
    return 0;
}

/* What is asked for the whole step, over the chosen nodes. */
static bool has_devices(const struct pick *pick, bool now)
{
    for (size_t i = 0; !pick->no_gres && i < pick->request->n_gres; i++) {
        const GresRequest *asked = pick->request->gres[i];
        uint64_t count = 0;
        if (asked->scope != GRES_PER_JOB)
            continue;
        for (size_t k = 0; k < pick->count; k++) {
            struct step_share share = share_of(pick, pick->picked[k]);
            count += step_share_count(&share, asked, now);
        }
        if (count < asked->count)
            return false;
    }
    return true;
}

/*
 * Nodes until the tasks fit; at least `min`. False: they do not fit. Without a number of tasks each
 * node gets its share, so all of them are taken.
 */
static bool choose(struct pick *pick, const uint32_t *all, size_t count, size_t min, size_t max,
                   size_t musts, bool now)
{
    const StepRequest *request = pick->request;
    uint64_t fits = 0;

    pick->count = 0;
    for (size_t i = 0; i < count && pick->count < max; i++) {
        uint32_t tasks = room(pick, all[i], now);
        bool enough =
            request->has_ntasks && fits >= request->ntasks && pick->count >= min && i >= musts;
        if (enough)
            break;
        if (tasks == 0) {
            if (i < musts)
                return false;
            continue;
        }
        pick->picked[pick->count++] = all[i];
        fits += tasks;
    }
    if (pick->count < min)
        return false;
    pick->ntasks = request->has_ntasks ? request->ntasks
                                       : (uint32_t)pick->count * MAX(request->ntasks_per_node, 1);
    return fits >= pick->ntasks && has_devices(pick, now);
}

/* --distribution=block,Pack: one each, so that no node is without, then as many as fit, node by node. */
static void pack_out(struct pick *pick)
{
    uint32_t left = pick->ntasks;

    memset(pick->tasks, 0, pick->count * sizeof(*pick->tasks));
    for (size_t i = 0; i < pick->count && left > 0; i++, left--)
        pick->tasks[i] = 1;
    for (size_t i = 0; i < pick->count && left > 0; i++) {
        uint32_t most = room(pick, pick->picked[i], false);
        uint32_t more = MIN(left, most > 1 ? most - 1 : 0);
        pick->tasks[i] += more;
        left -= more;
    }
}

static bool is_packed(const char *distribution)
{
    const char *comma = distribution ? strchr(distribution, ',') : NULL;

    return comma && str_ieq(comma + 1, "pack") &&
           (str_istarts(distribution, "block") || distribution[0] == '*');
}

/* (1) */
static void share_out(struct pick *pick)
{
    uint32_t left = pick->ntasks;

    memset(pick->tasks, 0, pick->count * sizeof(*pick->tasks));
    for (bool over = false; left > 0;) {
        uint32_t before = left;
        for (size_t i = 0; i < pick->count && left > 0; i++) {
            uint32_t most = room(pick, pick->picked[i], false);
            if (pick->request->overcommit && !over)
                most = MIN(
                    most,
                    MAX(cpus_of(pick, pick->picked[i]) / cpus_per_task(pick, pick->picked[i]), 1));
            if (pick->tasks[i] < most) {
                pick->tasks[i]++;
                left--;
            }
        }
        if (before == left && over)
            break;
        over = over || before == left;
    }
}

static uint32_t piece_of(const char *distribution)
{
    if (str_is_empty(distribution) || str_istarts(distribution, "block"))
        return 0;
    if (str_istarts(distribution, "plane="))
        return (uint32_t)MAX(strtoul(distribution + 6, NULL, 10), 1);
    return str_istarts(distribution, "cyclic") ? 1 : 0;
}

/* Deals task numbers to nodes in pieces; 0: each node its own in a row. */
static void deal(const struct pick *pick, uint32_t piece, StepNode **nodes)
{
    uint32_t next = 0;

    while (next < pick->ntasks) {
        for (size_t i = 0; i < pick->count; i++) {
            uint32_t left = pick->tasks[i] - (uint32_t)nodes[i]->n_tasks;
            for (uint32_t k = piece ? MIN(piece, left) : left; k > 0; k--)
                nodes[i]->tasks[nodes[i]->n_tasks++] = next++;
        }
    }
}

/* False: memory is missing, ever or now. */
static bool fill(const struct pick *pick, char *const *addresses, bool now, struct arena *arena,
                 StepLayout *out)
{
    const StepRequest *request = pick->request;
    uint64_t *left = ARENA_ARRAY(arena, uint64_t, request->n_gres + 1);
    bool good = true;

    for (size_t i = 0; i < request->n_gres; i++)
        left[i] = request->gres[i]->count;
    out->n_nodes = pick->count;
    out->nodes = ARENA_ARRAY(arena, StepNode *, pick->count);
    for (size_t i = 0; i < pick->count; i++) {
        uint32_t at = pick->picked[i];
        struct step_share share = share_of(pick, at);
        StepNode *node = out->nodes[i] = ARENA_NEW(arena, StepNode);
        step_node__init(node);
        node->name = share.alloc->node;
        node->address = addresses ? addresses[at] : NULL;
        node->tasks = ARENA_ARRAY(arena, uint32_t, pick->tasks[i] + 1);
        good &=
            step_share_take(&share, pick->tasks[i], pick->count - i - 1, left, now, arena, node);
    }
    out->has_ntasks = true;
    out->ntasks = pick->ntasks;
    out->has_cpus_per_task = request->has_cpus_per_task;
    out->cpus_per_task = request->cpus_per_task;
    return good;
}

/* Why nothing fits even when no other step runs. */
static int never(struct pick *pick, const uint32_t *all, size_t count, size_t min, size_t max,
                 size_t musts, struct err *err)
{
    pick->no_gres = true;
    bool without = choose(pick, all, count, min, max, musts, false);
    pick->no_gres = false;
    return err_code(err, without ? ERR_GRES : ERR_TOO_MANY_CPUS);
}

/* --distribution=arbitrary: the request names the node of each task. */
static int deal_by_hosts(struct pick *pick, const uint32_t *all, size_t count, struct err *err)
{
    const StepRequest *request = pick->request;

    pick->count = 0;
    pick->ntasks = (uint32_t)request->n_hosts;
    for (size_t i = 0; i < request->n_hosts; i++) {
        size_t at = 0, k = 0;
        while (at < count && !str_eq(pick->allocation->nodes[all[at]]->node, request->hosts[i]))
            at++;
        if (at == count)
            return err_code(err, ERR_NODE_CONFIG_UNAVAILABLE);
        while (k < pick->count && pick->picked[k] != all[at])
            k++;
        if (k == pick->count) {
            pick->tasks[k] = 0;
            pick->picked[pick->count++] = all[at];
        }
        pick->tasks[k]++;
    }
    for (size_t k = 0; k < pick->count; k++) {
        if (pick->tasks[k] > room(pick, pick->picked[k], false))
            return err_code(err, ERR_TOO_MANY_CPUS);
        if (pick->tasks[k] > room(pick, pick->picked[k], true))
            return err_code(err, ERR_NODES_BUSY);
    }
    return has_devices(pick, false) ? has_devices(pick, true) ? 0 : err_code(err, ERR_NODES_BUSY)
                                    : err_code(err, ERR_GRES);
}

static void number_by_hosts(const struct pick *pick, StepLayout *out)
{
    for (size_t i = 0; i < pick->request->n_hosts; i++) {
        size_t k = 0;
        while (!str_eq(out->nodes[k]->name, pick->request->hosts[i]))
            k++;
        out->nodes[k]->tasks[out->nodes[k]->n_tasks++] = (uint32_t)i;
    }
}

/* Tasks of other components come before these. */
static void count_on(StepLayout *out, uint32_t first)
{
    for (size_t i = 0; i < out->n_nodes; i++) {
        for (size_t k = 0; k < out->nodes[i]->n_tasks; k++)
            out->nodes[i]->tasks[k] += first;
    }
}

static int choose_nodes(struct pick *pick, const uint32_t *all, size_t count, size_t musts,
                        struct err *err)
{
    size_t min, max;

    if (pick->request->n_hosts)
        return deal_by_hosts(pick, all, count, err);
    if (node_counts(pick, count, musts, &min, &max, err) < 0)
        return -(int)err->code;
    if (!choose(pick, all, count, min, max, musts, false))
        return never(pick, all, count, min, max, musts, err);
    for (size_t i = 0; i < pick->count; i++) {
        const NodeAlloc *alloc = pick->allocation->nodes[pick->picked[i]];
        if (pick->request->mem_per_node_mb && alloc->mem_mb &&
            pick->request->mem_per_node_mb > alloc->mem_mb)
            return err_code(err, ERR_TASK_MEMORY);
    }
    if (!choose(pick, all, count, min, max, musts, true))
        return err_code(err, ERR_NODES_BUSY);
    qsort(pick->picked, pick->count, sizeof(*pick->picked), by_number);
    if (is_packed(pick->request->distribution))
        pack_out(pick);
    else
        share_out(pick);
    return 0;
}

int step_layout(const Allocation *allocation, char *const *addresses, const struct step_used *used,
                const StepRequest *request, struct arena *arena, StepLayout *out, uint32_t *picked,
                struct err *err)
{
    size_t n = allocation->n_nodes, count, musts;
    uint32_t *all = ARENA_ARRAY(arena, uint32_t, n + 1);
    struct pick pick = { .allocation = allocation,
                         .used = used,
                         .request = request,
                         .picked = picked,
                         .tasks = ARENA_ARRAY(arena, uint32_t, n + 1) };

    if (n == 0 || request->n_hosts > STEP_TASKS_MAX || request->first_task > STEP_TASKS_MAX ||
        (request->has_ntasks && (!request->ntasks || request->ntasks > STEP_TASKS_MAX)))
        return err_code(err, ERR_TASK_COUNT);
    if (candidates(&pick, all, &count, &musts, err) < 0)
        return -(int)err->code;
    if (count == 0)
        return err_code(err, ERR_NODE_CONFIG_UNAVAILABLE);
    if (choose_nodes(&pick, all, count, musts, err) < 0)
        return -(int)err->code;
    if (!fill(&pick, addresses, false, arena, out))
        return err_code(err, ERR_TASK_MEMORY);
    if (!fill(&pick, addresses, true, arena, out))
        return err_code(err, ERR_NODES_BUSY);
    if (request->n_hosts)
        number_by_hosts(&pick, out);
    else
        deal(&pick, piece_of(request->distribution), out->nodes);
    count_on(out, request->first_task);
    return 0;
}

/* Without a word: one by one when there are no more tasks than nodes, as srun has it. */
const char *step_layout_word(const StepRequest *request, const StepLayout *layout)
{
    const char *asked = request->distribution;

    if (request->n_hosts)
        return "Arbitrary";
    if (str_is_empty(asked))
        return layout->ntasks <= layout->n_nodes ? "Cyclic" : "Block";
    return str_istarts(asked, "plane")    ? "Plane"
           : str_istarts(asked, "cyclic") ? "Cyclic"
                                          : "Block";
}
