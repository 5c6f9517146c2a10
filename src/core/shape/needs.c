// SPDX-License-Identifier: Apache-2.0
/*
 * needs.c - a shape resolved for one partition: defaults, and which nodes could ever serve it
 */
#include <stdlib.h>
#include <string.h>

#include "core/shape/shapes.h"

static bool memory_is_counted(const struct state *state)
{
    const char *how = state->config->select_parameters;

    return how && strcasestr(how, "memory");
}

static void need_memory(const struct state *state, const struct shape *shape, struct need *need)
{
    const PartitionSpec *part = need->partition->spec;
    const Config *config = state->config;

    if (shape->mem_per_task_mb) {
        need->mem_all = false;
    } else if (shape->has_mem_per_node) {
        need->mem_per_node_mb = shape->mem_per_node_mb;
        need->mem_all = shape->mem_per_node_mb == 0;
    } else if (shape->mem_per_cpu_mb) {
        need->mem_per_cpu_mb = shape->mem_per_cpu_mb;
    } else if (shape->mem_per_gpu_mb) {
        need->mem_per_gpu_mb = shape->mem_per_gpu_mb;
    } else if (part->def_mem_per_gpu_mb && shape_gpus(shape)) {
        need->mem_per_gpu_mb = part->def_mem_per_gpu_mb;
    } else if (part->def_mem_per_node_mb) {
        need->mem_per_node_mb = part->def_mem_per_node_mb;
    } else if (part->def_mem_per_cpu_mb) {
        need->mem_per_cpu_mb = part->def_mem_per_cpu_mb;
    } else if (config->def_mem_per_gpu_mb && shape_gpus(shape)) {
        need->mem_per_gpu_mb = config->def_mem_per_gpu_mb;
    } else if (config->def_mem_per_node_mb) {
        need->mem_per_node_mb = config->def_mem_per_node_mb;
    } else if (config->def_mem_per_cpu_mb) {
        need->mem_per_cpu_mb = config->def_mem_per_cpu_mb;
    } else {
        need->mem_all = memory_is_counted(state);
    }
}

static void need_units(const struct state *state, const struct shape *shape, struct need *need)
{
    const char *how = state->config->select_parameters;
    const char *own = need->partition->spec->select_parameters;

    if (!str_is_empty(own) && !str_ieq(own, "NONE"))
        how = own;
    need->by_core = !how || !strcasestr(how, "CR_CPU");
    need->by_socket = how && strcasestr(how, "CR_Socket");
    need->max_cpus_per_node = need->partition->spec->max_cpus_per_node;
    need->max_cpus_per_socket = need->partition->spec->max_cpus_per_socket;
    need->tasks_per_core = shape->tasks_per_core;
    need->scattered = shape->scattered;
    if (!need->tasks_per_core && !shape->multithread && how &&
        strcasestr(how, "CR_ONE_TASK_PER_CORE"))
        need->tasks_per_core = 1;
}

/* A word of SelectTypeParameters, unless the job says otherwise. */
static bool need_word(const struct state *state, const char *word, bool asked, bool yes)
{
    const char *how = state->config->select_parameters;

    return asked ? yes : how && strcasestr(how, word);
}

static void need_sharing(const struct shape *shape, struct need *need)
{
    const struct partition *partition = need->partition;

    need->whole_nodes = shape->exclusive || partition->whole_nodes;
    need->share = 1;
    if (!need->whole_nodes && (partition->share_forced || shape->oversubscribe))
        need->share = MAX(partition->max_share, 1);
}

/* What was found of the last node: most are like it. */
struct alike {
    bool known;
    uint64_t fit_hash;
    uint32_t able;
    uint32_t also[TAKE_GRES]; /* as shape->also */
    struct feature_last features;
};

/*
 * Of so many tasks, those whose CPUs can be near their devices. The more devices, the less each adds: so
 * the largest number that will do is found by halving.
 */
static uint32_t near_tasks(const struct shape *shape, const struct need *need,
                           const struct node *node, const struct room *room, uint32_t tasks)
{
    uint32_t lo = 0, hi = tasks;
    struct take take;

    while (lo < hi) {
        uint32_t mid = lo + (hi - lo + 1) / 2;
        fit_part(shape, need, node, room, mid, &take);
        if (take.cpus <= gres_locality_most(node, &take))
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

/* Of so many tasks, those that the devices allow by where they are. */
static uint32_t placed_tasks(const struct shape *shape, const struct need *need,
                             const struct node *node, const struct room *room, uint32_t tasks)
{
    if (tasks && shape_by_socket(shape) && !fit_sockets_empty(shape, node))
        return 0;
    return tasks && need->bound ? near_tasks(shape, need, node, room, tasks) : tasks;
}

/* Tasks that such a node, empty, could run, whatever its features are. */
static uint32_t could_hold(const struct shape *shape, const struct need *need,
                           const struct node *node, uint32_t *also)
{
    uint64_t totals[TAKE_GRES];
    struct room room = { need_cpus(need, node), node->mem_mb, totals, true };

    for (size_t i = 0; i < node->gres_count && i < TAKE_GRES; i++)
        totals[i] = gres_most(&node->gres[i]);
    if (!fit_structure(shape, node))
        return 0;
    fit_also(shape, need, node, &room, also);
    return placed_tasks(shape, need, node, &room, fit_units(shape, need, node, &room));
}

/* Tasks that the empty node could run; 0 when it is none of the job's nodes at all. */
static uint32_t could_run(const struct shape *shape, const struct need *need,
                          const struct node *node, struct alike *alike)
{
    if (node->removed)
        return 0;
    if (!alike->known || alike->fit_hash != node->fit_hash)
        alike->able = could_hold(shape, need, node, alike->also);
    alike->known = true;
    alike->fit_hash = node->fit_hash;
    if (!alike->able ||
        !features_could_next(&shape->features, shape->min_nodes, node, &alike->features))
        return 0;
    return alike->able;
}

static int most_first(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x > y ? -1 : x < y;
}

/* A node that the job names is one of its nodes, so it goes before all that have more room. */
enum { NAMED_SHIFT = 31 };

static uint32_t amount_of(uint32_t able, bool named)
{
    return MIN(able, (uint32_t)NEED_AMOUNT) | (uint32_t)named << NAMED_SHIFT;
}

/* Have all these nodes, empty, so much of it together? Then the fewest of them that have. */
static unsigned enough_nodes(const struct shape *shape, uint64_t total, uint32_t *amounts,
                             size_t count, size_t listed)
{
    uint64_t sum = 0;
    size_t most = MIN(count, shape->max_nodes), least = 0, there = most;

    for (size_t i = 0; i < shape->size_count; i++) /* the largest that is there */
        most = shape->sizes[i] <= there ? shape->sizes[i] : most;

    if (count < MAX(shape->min_nodes, listed) || listed > shape->max_nodes)
        return 0;
    qsort(amounts, count, sizeof(*amounts), most_first);
    if (listed && !(amounts[listed - 1] >> NAMED_SHIFT)) /* not all of them are among these */
        return 0;
    for (; least < most && (sum < total || least < listed); least++)
        sum += amounts[least] & NEED_AMOUNT;
    return sum >= total ? (unsigned)MAX(MAX(least, shape->min_nodes), 1) : 0;
}

/* Are there as many nodes with each feature as are counted? */
static bool enough_counted(const struct state *state, const struct shape *shape,
                           const struct need *need)
{
    struct feature_tally tally;

    feature_tally_init(&tally, &shape->features);
    bitset_each (number, &need->nodes)
        feature_tally_add(&tally, state->nodes.items[number]);
    return tally.have == shape->features.total;
}

/* Is one of the alternatives on enough nodes? */
static unsigned enough_alike(const struct shape *shape, const struct need *need, uint64_t total,
                             const uint32_t *amounts, size_t listed)
{
    uint32_t *some = NEW_ARRAY(uint32_t, need->node_count + 1);
    unsigned least = 0;

    for (size_t g = 0; g < shape->features.group_count; g++) {
        size_t count = 0, at = 0;
        bitset_each (number, &need->nodes) {
            if (bitset_has(&need->alike[g], number))
                some[count++] = amounts[at];
            at++;
        }
        unsigned nodes = enough_nodes(shape, total, some, count, listed);
        least = least && nodes ? MIN(least, nodes) : MAX(least, nodes);
    }
    free(some);
    return least;
}

/* The fewest nodes that have so much of it; 0: it does not fit. `amounts` go with need->nodes. */
static unsigned least_for(const struct shape *shape, const struct need *need, uint64_t total,
                          uint32_t *amounts, size_t listed)
{
    if (shape->features.one_of)
        return enough_alike(shape, need, total, amounts, listed);
    return enough_nodes(shape, total, amounts, need->node_count, listed);
}

static void need_rules(const struct state *state, const struct shape *shape, struct need *need)
{
    need_memory(state, shape, need);
    need_sharing(shape, need);
    need->bound = need_word(state, "ENFORCE_BINDING_GRES", shape->has_bound, shape->bound);
    need->least = need_word(state, "LL_SHARED_GRES", false, false);
    need->lone = need_word(state, "ONE_TASK_PER_SHARING_GRES", shape->has_lone, shape->lone);
    need_units(state, shape, need);
    need->max_tasks = state->config->max_tasks_per_node;
    need->cpus_per_gpu = shape->cpus_per_gpu ? shape->cpus_per_gpu
                         : need->partition->spec->def_cpu_per_gpu
                             ? need->partition->spec->def_cpu_per_gpu
                             : state->config->def_cpu_per_gpu;
}

/* Nodes that are looked through. */
struct finding {
    struct bitset listed, excluded;
    struct alike alike;
    uint32_t *amounts[TAKE_GRES + 1]; /* with need->nodes: units, then of each of shape->also */
    size_t groups;
};

/* The fewest nodes that could run it; 0: it does not fit. */
static unsigned whole_job_fits(const struct state *state, const struct shape *shape,
                               const struct need *need, const struct finding *finding)
{
    size_t listed = finding->listed.words ? bitset_count(&finding->listed) : 0;

    if (!shape->features.one_of && shape->features.group_count &&
        !enough_counted(state, shape, need))
        return 0;
    unsigned least = least_for(shape, need, shape->units, finding->amounts[0], listed);
    for (size_t i = 0; least && i < shape->also_count; i++) {
        unsigned nodes =
            least_for(shape, need, shape->also[i].total, finding->amounts[i + 1], listed);
        least = nodes ? MAX(least, nodes) : 0;
    }
    return least;
}

static void find_nodes(const struct state *state, const struct shape *shape, struct need *need,
                       struct finding *finding, const struct bitset *among)
{
    bitset_each (number, among) {
        if (finding->excluded.words && bitset_has(&finding->excluded, number))
            continue;
        uint32_t able = could_run(shape, need, state->nodes.items[number], &finding->alike);
        if (!able)
            continue;
        bool named = finding->listed.words && bitset_has(&finding->listed, number);
        bitset_add(&need->nodes, number);
        for (size_t i = 0; i < shape->also_count; i++)
            finding->amounts[i + 1][need->node_count] = amount_of(finding->alike.also[i], named);
        finding->amounts[0][need->node_count++] = amount_of(able, named);
        for (size_t g = 0; g < finding->groups; g++) {
            if (finding->alike.features.groups >> g & 1)
                bitset_add(&need->alike[g], number);
        }
    }
}

/*
 * A job that names as many nodes as it may have can have no others: these are looked for only to say why it
 * does not fit. False when not all that are named will do.
 */
static bool find_all(const struct state *state, const struct shape *shape, struct need *need,
                     struct finding *finding)
{
    const struct bitset *listed = &finding->listed;
    struct bitset among;

    bitset_init_copy(&among, &need->partition->nodes);
    bool only = listed->words && bitset_count(listed) >= shape->max_nodes;
    if (only)
        bitset_and(&among, listed);
    find_nodes(state, shape, need, finding, &among);
    bool good = !listed->words || bitset_within(listed, &need->nodes);
    if (only && !good) {
        bitset_done(&among);
        bitset_init_copy(&among, &need->partition->nodes);
        bitset_minus(&among, listed);
        find_nodes(state, shape, need, finding, &among);
    }
    bitset_done(&among);
    return good;
}

static void work_out(const struct state *state, const struct shape *shape, struct need *need)
{
    struct finding finding = { 0 };

    for (size_t i = 0; i <= shape->also_count; i++)
        finding.amounts[i] = NEW_ARRAY(uint32_t, state->nodes.len + 1);
    bitset_init(&need->nodes, state->nodes.len);
    finding.groups = shape->features.one_of ? shape->features.group_count : 0;
    if (finding.groups)
        need->alike = NEW_ARRAY(struct bitset, finding.groups);
    for (size_t g = 0; g < finding.groups; g++)
        bitset_init(&need->alike[g], state->nodes.len);
    bool good =
        !shape->nodelist || state_node_set(state, shape->nodelist, &finding.listed, NULL) == 0;
    if (shape->exclude)
        state_node_set(state, shape->exclude, &finding.excluded, NULL);
    need_rules(state, shape, need);
    good = find_all(state, shape, need, &finding) && good;
    bool together = topology_reach_has(state, shape, need, &finding.listed, finding.amounts);
    if (good)
        need->least_nodes = whole_job_fits(state, shape, need, &finding);
    need->apart = need->least_nodes && !together;
    if (need->apart)
        need->least_nodes = 0;
    need->fits = need->least_nodes > 0;
    bitset_done(&finding.listed);
    bitset_done(&finding.excluded);
    for (size_t i = 0; i <= shape->also_count; i++)
        free(finding.amounts[i]);
}

uint64_t state_generation(const struct state *state)
{
    return state->generation;
}

static void work_out_all(const struct state *state, struct shape *shape)
{
    needs_free(shape);
    shape->needs = NEW_ARRAY(struct need, shape->partition_count);
    for (size_t i = 0; i < shape->partition_count; i++) {
        struct need *need = &shape->needs[i];
        need->partition = state_partition(state, shape->partitions[i]);
        if (need->partition)
            work_out(state, shape, need);
        else
            bitset_init(&need->nodes, state->nodes.len);
    }
}

/* In the partition where it is of the fewest; 0: it fits nowhere. */
static unsigned fewest_nodes(const struct shape *shape)
{
    unsigned least = 0;

    for (size_t i = 0; i < shape->partition_count; i++) {
        unsigned nodes = shape->needs[i].least_nodes;
        least = least && nodes ? MIN(least, nodes) : MAX(least, nodes);
    }
    return least;
}

const struct need *shape_needs(const struct state *state, struct shape *shape)
{
    if (shape->needs && shape->generation == state->generation)
        return shape->needs;
    shape_set_nodes(shape, shape->asked_nodes);
    work_out_all(state, shape);
    /* GPUs of the whole job are of so many nodes at least, and everything else is as if that was asked for. */
    unsigned least = shape->dealt ? fewest_nodes(shape) : 0;
    if (least > shape->asked_nodes) {
        shape_set_nodes(shape, least);
        work_out_all(state, shape);
    }
    shape->generation = state->generation;
    return shape->needs;
}

/* ---- the same without some nodes ---- */

enum { LOOKS = 64 };

/* Is there one among the first of them that runs all tasks? */
static bool one_runs_all(const struct state *state, const struct shape *shape,
                         const struct need *need)
{
    struct alike alike = { 0 };
    unsigned looks = 0;

    bitset_each (number, &need->nodes) {
        if (could_run(shape, need, state->nodes.items[number], &alike) >= shape->units)
            return true;
        if (++looks == LOOKS)
            break;
    }
    return false;
}

/* What enough_nodes() would say; false when that takes a look at all of them. */
static bool least_is_known(const struct state *state, const struct shape *shape, struct need *need,
                           bool did_fit)
{
    unsigned least = MAX(shape->min_nodes, 1);

    if (!did_fit || need->node_count < least)
        need->least_nodes = 0;
    else if (shape->units <= least || (least == 1 && one_runs_all(state, shape, need)))
        need->least_nodes = least;
    else
        return false;
    need->fits = need->least_nodes > 0;
    return true;
}

/* Nothing but what it excludes differs, and nothing depends on which nodes are left. */
static bool comparable(const struct state *state, const struct shape *shape,
                       const struct shape *from)
{
    if (shape->needs || !from->needs || from->generation != state->generation ||
        shape->partition_count != from->partition_count || shape->nodelist || !shape->exclude ||
        shape->size_count || shape->features.group_count || shape_has_job_gres(shape))
        return false;
    for (size_t i = 0; i < shape->partition_count; i++) {
        if (!str_eq(shape->partitions[i], from->partitions[i]))
            return false;
    }
    return true;
}

static bool derive_all(const struct state *state, struct shape *shape, const struct shape *from,
                       const struct bitset *excluded)
{
    shape->needs = NEW_ARRAY(struct need, shape->partition_count);
    for (size_t i = 0; i < shape->partition_count; i++) {
        struct need *need = &shape->needs[i];
        *need = from->needs[i];
        bitset_init_copy(&need->nodes, &from->needs[i].nodes);
        bitset_minus(&need->nodes, excluded);
        need->node_count = (unsigned)bitset_count(&need->nodes);
        if (!least_is_known(state, shape, need, from->needs[i].fits))
            return false;
    }
    return true;
}

void shape_needs_without(const struct state *state, struct shape *shape, const struct shape *from)
{
    struct bitset excluded = { 0 }, before = { 0 };

    if (!comparable(state, shape, from))
        return;
    bool more = state_node_set(state, shape->exclude, &excluded, NULL) == 0 &&
                (!from->exclude || (state_node_set(state, from->exclude, &before, NULL) == 0 &&
                                    bitset_within(&before, &excluded)));
    if (more) {
        shape_set_nodes(shape, shape->asked_nodes);
        if (derive_all(state, shape, from, &excluded))
            shape->generation = state->generation;
        else
            needs_free(shape);
    }
    bitset_done(&excluded);
    bitset_done(&before);
}
