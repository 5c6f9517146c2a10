// SPDX-License-Identifier: Apache-2.0
/*
 * topology_reach.c - which nodes a job can have together: those below one switch, or whole segments of blocks
 *
 * (1) As the planner has it: a node that is below no switch and in no block runs jobs of one node only.
 * (2) What is read follows from the configuration and the nodes, so it is read again with the needs.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "core/shape/shapes.h"
#include "schema/conf.h"

/* Trees: the switches that are below no other. Blocks: each of them. */
struct topology_reach {
    uint64_t stamp; /* generation + 1 */
    bool blocks;
    struct bitset *sets;
    size_t count;
};

static void clear(struct topology_reach *reach)
{
    for (size_t i = 0; i < reach->count; i++)
        bitset_done(&reach->sets[i]);
    free(reach->sets);
    *reach = (struct topology_reach){ 0 };
}

struct topology_reach *topology_reach_new(void)
{
    return NEW(struct topology_reach);
}

void topology_reach_free(struct topology_reach *reach)
{
    if (reach)
        clear(reach);
    free(reach);
}

static void add_nodes(const struct state *state, const char *text, struct bitset *out)
{
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 };

    if (str_is_empty(text) || conf_hosts(state->config, text, &hosts, NULL) < 0)
        return;
    hostlist_each (host, &hosts) {
        const struct node *node = map_get_len(&state->node_names, host.name, host.len);
        if (node)
            bitset_add(out, node->number);
    }
}

/* Switches by name, and which of them are below another. */
struct tree {
    const struct state *state;
    struct map by_name; /* index + 1 */
    bool *below;
};

static size_t find_switch(const struct tree *tree, struct span name)
{
    return (size_t)(uintptr_t)map_get_len(&tree->by_name, name.ptr, name.len);
}

/* All nodes below a switch; `depth` ends a circle. */
static void add_below(const struct tree *tree, const ConfSwitch *at, size_t depth,
                      struct bitset *out)
{
    CLEANUP(hostlist_done) struct hostlist names = { 0 };

    add_nodes(tree->state, at->nodes, out);
    if (!depth || str_is_empty(at->switches) || hostlist_parse(&names, at->switches, NULL) < 0)
        return;
    hostlist_each (name, &names) {
        size_t child = find_switch(tree, (struct span){ name.name, name.len });
        if (child)
            add_below(tree, tree->state->config->switches[child - 1], depth - 1, out);
    }
}

static void mark_below(struct tree *tree, const ConfSwitch *at)
{
    CLEANUP(hostlist_done) struct hostlist names = { 0 };

    if (str_is_empty(at->switches) || hostlist_parse(&names, at->switches, NULL) < 0)
        return;
    hostlist_each (name, &names) {
        size_t child = find_switch(tree, (struct span){ name.name, name.len });
        if (child)
            tree->below[child - 1] = true;
    }
}

static void read_tree(const struct state *state, struct topology_reach *reach)
{
    const Config *config = state->config;
    struct tree tree = { .state = state, .below = NEW_ARRAY(bool, config->n_switches) };

    map_init(&tree.by_name);
    for (size_t i = 0; i < config->n_switches; i++)
        map_put(&tree.by_name, config->switches[i]->name, (void *)(uintptr_t)(i + 1));
    for (size_t i = 0; i < config->n_switches; i++)
        mark_below(&tree, config->switches[i]);
    reach->sets = NEW_ARRAY(struct bitset, config->n_switches);
    for (size_t i = 0; i < config->n_switches; i++) {
        if (tree.below[i])
            continue;
        bitset_init(&reach->sets[reach->count], state->nodes.len);
        add_below(&tree, config->switches[i], config->n_switches, &reach->sets[reach->count++]);
    }
    map_done(&tree.by_name);
    free(tree.below);
}

static void read_blocks(const struct state *state, struct topology_reach *reach)
{
    const Config *config = state->config;

    reach->blocks = true;
    reach->sets = NEW_ARRAY(struct bitset, config->n_blocks);
    for (size_t i = 0; i < config->n_blocks; i++) {
        bitset_init(&reach->sets[reach->count], state->nodes.len);
        add_nodes(state, config->blocks[i]->nodes, &reach->sets[reach->count++]);
    }
}

bool state_has_blocks(const struct state *state)
{
    return str_ieq(state->config->topology_plugin, "block") && state->config->n_blocks;
}

/* (2) */
static const struct topology_reach *topology_reach_of(const struct state *state)
{
    const Config *config = state->config;
    struct topology_reach *reach = state->topology_reach;

    if (reach->stamp == state->generation + 1)
        return reach;
    clear(reach);
    reach->stamp = state->generation + 1;
    if (state_has_blocks(state))
        read_blocks(state, reach);
    else if (str_ieq(config->topology_plugin, "tree") && config->n_switches)
        read_tree(state, reach);
    return reach;
}

/* So many of the nodes in whole segments; where there are none, all that are in blocks. */
static uint64_t in_blocks(const struct topology_reach *reach, const struct shape *shape,
                          const struct bitset *nodes)
{
    uint64_t sum = 0, segment = MAX(shape->segment, 1);

    for (size_t i = 0; i < reach->count; i++) {
        uint64_t have = bitset_count_both(&reach->sets[i], nodes) / segment * segment;
        sum += shape->segment && shape->spread_segments ? MIN(have, segment) : have;
    }
    return sum;
}

/* Have those of the need's nodes that are among these so much of everything together? */
static bool has_all(const struct shape *shape, const struct need *need, const struct bitset *within,
                    uint32_t *const *amounts)
{
    for (size_t k = 0; k <= shape->also_count; k++) {
        uint64_t sum = 0, total = k ? shape->also[k - 1].total : shape->units;
        size_t at = 0;
        bitset_each (number, &need->nodes) {
            sum += bitset_has(within, number) ? amounts[k][at] & NEED_AMOUNT : 0;
            at++;
        }
        if (sum < total)
            return false;
    }
    return true;
}

/* Does one node do? */
static bool one_has_all(const struct shape *shape, const struct need *need,
                        uint32_t *const *amounts)
{
    bool any = false;

    for (size_t i = 0; i < need->node_count && !any; i++) {
        any = (amounts[0][i] & NEED_AMOUNT) >= shape->units;
        for (size_t k = 0; k < shape->also_count; k++)
            any = any && (amounts[k + 1][i] & NEED_AMOUNT) >= shape->also[k].total;
    }
    return any;
}

bool topology_reach_has(const struct state *state, const struct shape *shape,
                        const struct need *need, const struct bitset *named,
                        uint32_t *const *amounts)
{
    const struct topology_reach *reach = topology_reach_of(state);

    if (!reach->count || shape->spread || shape->contiguous ||
        (shape->min_nodes < 2 && one_has_all(shape, need, amounts)))
        return true;
    if (reach->blocks) {
        size_t within = 0;
        for (size_t i = 0; named->words && i < reach->count; i++)
            within += bitset_count_both(&reach->sets[i], named);
        return in_blocks(reach, shape, &need->nodes) >= shape->min_nodes &&
               (!named->words || within >= bitset_count(named));
    }
    for (size_t i = 0; i < reach->count; i++) {
        if (bitset_count_both(&reach->sets[i], &need->nodes) >= shape->min_nodes &&
            (!named->words || bitset_within(named, &reach->sets[i])) &&
            has_all(shape, need, &reach->sets[i], amounts))
            return true;
    }
    return false;
}
