/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_nodes.c - the nodes of a new configuration, under running jobs
 *
 * Nodes keep what was decided about them (down, drain, reasons). What scontrol changed of a node's
 * spec stays only while its own section is as it was and no reconfigure was asked.
 *
 * (1) The order of nodes is the configuration's, then removed ones that still hold jobs.
 * (2) A section that is as it was has the nodes that it had: they are not read again. So a change
 *     costs what it changes, and gives the same as reading all.
 */
#include "core/command/config.h"

#include <stdlib.h>

#include "base/hostlist.h"
#include "schema/conf.h"
#include "wire/pb.h"

enum { FETCH_AHEAD = 16 };

static uint64_t spec_hash(const NodeSpec *spec)
{
    return message_hash(&spec->base, 0);
}

/* What besides a section decides what its nodes are. */
static uint64_t common_hash(const Config *config)
{
    uint64_t hash = config->n_gres;

    for (size_t i = 0; i < config->n_gres; i++)
        hash = message_hash(&config->gres[i]->base, hash);
    for (size_t i = 0; i < config->n_down; i++)
        hash = message_hash(&config->down[i]->base, hash + 1);
    return hash;
}

/* The nodes of one section. */
static int each_of(const Config *config, size_t section,
                   int (*each)(void *ctx, const NodeSpec *node), void *ctx, struct err *err)
{
    Config one = *config;

    one.n_nodes = 1;
    one.nodes = &config->nodes[section];
    return conf_each_node(&one, each, ctx, err);
}

/* ---- looking ---- */

/* (2): which of the sections that there were each one is. Mostly they come in the same order. */
static void find_same(const struct state *state, const Config *config,
                      const struct sections *sections, struct node_change *change)
{
    const struct sections_of *of = sections ? &sections->of[SECTION_NODES] : NULL;
    uint64_t common = change->common = common_hash(config);
    bool known = of && of->old_count == state->sections.len && common == state->sections_common;
    struct map by_hash;
    size_t next = 0;

    map_init(&by_hash);
    change->hashes = NEW_ARRAY(uint64_t, config->n_nodes + 1);
    change->same = NEW_ARRAY(uint32_t, config->n_nodes + 1);
    change->kept = NEW_ARRAY(bool, state->sections.len + 1);
    for (size_t i = 0; i < config->n_nodes; i++) {
        uint64_t hash = known && of->same[i] ? state->sections.items[of->was[i] - 1].hash
                                             : message_hash(&config->nodes[i]->base, common);
        change->hashes[i] = hash;
        if (next >= state->sections.len || state->sections.items[next].hash != hash) {
            bool is_made = map_len(&by_hash);
            for (size_t k = 0; !known && !is_made && k < state->sections.len; k++)
                map_put_num(&by_hash, state->sections.items[k].hash, (void *)(k + 1));
            size_t found =
                known ? (of->same[i] ? of->was[i] : 0) : (size_t)map_get_num(&by_hash, hash);
            if (!found || change->kept[found - 1])
                continue;
            next = found - 1;
        }
        change->kept[next] = true;
        change->same[i] = (uint32_t)++next;
    }
    map_done(&by_hash);
}

/* Is it one of a section that stays? */
static bool stays(const struct node_change *change, const struct node *node)
{
    const struct node_section *sections = change->state->sections.items;
    size_t low = 0, high = change->state->sections.len;

    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (sections[middle].first <= node->number)
            low = middle;
        else
            high = middle;
    }
    return high && node->number < sections[low].first + sections[low].count && change->kept[low];
}

static int look_node(void *ctx, const NodeSpec *spec)
{
    struct node_change *change = ctx;

    if (str_is_empty(spec->name) || strlen(spec->name) > LIMIT_HOST_NAME)
        return err_set(change->err, ERR_CONFIG, "a node has no name");
    const struct node *node = change->state ? node_at(change->state, spec->name) : NULL;
    if (map_has(&change->names, spec->name) || (node && stays(change, node)))
        return err_set(change->err, ERR_CONFIG, "node '%.100s' is there twice", spec->name);
    if (++change->count > LIMIT_NODES)
        return err_set(change->err, ERR_CONFIG, "there are more than %d nodes", LIMIT_NODES);
    if (spec->cpus > LIMIT_CPUS_PER_NODE)
        return err_set(change->err, ERR_CONFIG, "node '%.100s' has too many CPUs", spec->name);
    if (spec->n_gres > TAKE_GRES)
        return err_set(change->err, ERR_CONFIG,
                       "node '%.100s' has more than %d kinds of generic "
                       "resources",
                       spec->name, TAKE_GRES);
    map_put(&change->names, spec->name, change);
    return 0;
}

int node_change_look(struct node_change *change, struct state *state, const Config *config,
                     const struct sections *sections, struct err *err)
{
    static const struct state none;

    *change = (struct node_change){ .state = state, .err = err };
    map_init(&change->names);
    find_same(state ? state : &none, config, sections, change);
    for (size_t i = 0; i < config->n_nodes; i++) {
        if (change->same[i])
            change->count += state->sections.items[change->same[i] - 1].count;
    }
    for (size_t i = 0; i < config->n_nodes; i++) {
        int code = change->same[i] ? 0 : each_of(config, i, look_node, change, err);
        if (code < 0)
            return code;
    }
    return 0;
}

void node_change_done(struct node_change *change)
{
    map_done(&change->names);
    vec_done(&change->nodes);
    free(change->hashes);
    free(change->moved);
    free(change->same);
    free(change->kept);
}

/* ---- doing ---- */

static int put_node(void *ctx, const NodeSpec *spec)
{
    struct node_change *change = ctx;
    struct state *state = change->state;
    struct node *node = node_at(state, spec->name);
    uint64_t hash = spec_hash(spec);

    state->looked_nodes++;
    if (!node) {
        node = node_new(spec);
        node_first_state(state, node);
    } else {
        if (change->reconfigure || node->conf_hash != hash || node->removed)
            node_set_spec(node, spec);
        change->back = change->back || node->removed;
        node->removed = false;
        node_amounts(node);
    }
    node->conf_hash = hash;
    change->changed = true;
    vec_push(&change->nodes, node);
    node_touch(state, node);
    return 0;
}

/* Has scontrol changed a node that is to be as it is configured? */
static bool is_edited(const struct state *state, const struct node_section *section)
{
    for (uint32_t i = 0; i < section->count; i++) {
        const struct node *node = state->nodes.items[section->first + i];
        if (node->spec_hash != node->conf_hash)
            return true;
    }
    return false;
}

static void put_section(struct node_change *change, const Config *config, size_t i)
{
    const struct state *state = change->state;
    const struct node_section *same =
        change->same[i] ? &state->sections.items[change->same[i] - 1] : NULL;

    /* They lie all over the memory. */
    if (same && same->first + FETCH_AHEAD < state->nodes.len)
        __builtin_prefetch(&state->nodes.items[same->first + FETCH_AHEAD]->spec_hash);

    if (!same || (change->reconfigure && is_edited(state, same))) {
        each_of(config, i, put_node, change, NULL);
        return;
    }
    for (uint32_t n = 0; n < same->count; n++)
        vec_push(&change->nodes, state->nodes.items[same->first + n]);
}

static void forget_node(struct state *state, struct node *node)
{
    for (size_t i = 0; i < state->touched_nodes.len; i++) {
        if (state->touched_nodes.items[i] == node) {
            vec_remove(&state->touched_nodes, i);
            break;
        }
    }
    map_del(&state->node_names, node->spec->name);
    state->digest -= node->hash;
    node_free(state, node);
}

static void keep_or_forget(struct node_change *change)
{
    struct state *state = change->state;
    size_t count = change->nodes.len;

    for (size_t i = 0; i < count; i++)
        change->nodes.items[i]->configured = true;
    vec_each (struct node *, at, &state->nodes) {
        struct node *node = *at;
        if (node->configured)
            continue;
        if (node->jobs.len == 0) {
            forget_node(state, node);
            continue;
        }
        node->removed = true;
        vec_push(&change->nodes, node);
    }
    for (size_t i = 0; i < count; i++)
        change->nodes.items[i]->configured = false;
}

/* (1) */
static void renumber(struct node_change *change)
{
    struct state *state = change->state;
    size_t before = state->nodes.len;
    struct node **old = state->nodes.items;

    bool same = before == change->nodes.len;
    for (size_t i = 0; same && i < before; i++)
        same = old[i] == change->nodes.items[i];
    if (same)
        return;
    change->changed = change->renumbered = true;
    keep_or_forget(change);
    change->moved = NEW_ARRAY(uint32_t, before + 1);
    memset(change->moved, 0xff, before * sizeof(uint32_t));
    vec_clear(&state->nodes);
    for (size_t i = 0; i < change->nodes.len; i++) {
        struct node *node = change->nodes.items[i];
        if (node->named)
            change->moved[node->number] = (uint32_t)i;
        node->number = (uint32_t)i;
        vec_push(&state->nodes, node);
        if (!node->named)
            map_put(&state->node_names, node->spec->name, node);
        node->named = true;
    }
}

void node_change_do(struct node_change *change, const Config *config)
{
    VEC(struct node_section) sections = { 0 };
    struct state *state = change->state;

    for (size_t i = 0; i < config->n_nodes; i++) {
        uint32_t first = (uint32_t)change->nodes.len;
        put_section(change, config, i);
        vec_push(&sections, (struct node_section){ change->hashes[i], first,
                                                   (uint32_t)change->nodes.len - first });
    }
    renumber(change);
    vec_done(&state->sections);
    state->sections.items = sections.items;
    state->sections.len = sections.len;
    state->sections.cap = sections.cap;
    state->sections_common = change->common;
}

/* ---- after a restore ---- */

struct marking {
    struct state *state;
    uint32_t next;
    bool in_order; /* nodes stand as they are configured: (1) */
};

static int mark_node(void *ctx, const NodeSpec *spec)
{
    struct marking *marking = ctx;
    struct node *node = node_at(marking->state, spec->name);

    if (node) {
        node->conf_hash = spec_hash(spec);
        node->removed = false;
    }
    marking->in_order = marking->in_order && node && node->number == marking->next++;
    return 0;
}

/* (2) holds for the next configuration too. */
static void find_sections(struct state *state, uint32_t nodes)
{
    const Config *config = state->config;
    uint32_t first = 0;

    state->sections_common = common_hash(config);
    vec_reserve(&state->sections, config->n_nodes);
    for (size_t i = 0; i < config->n_nodes; i++) {
        const NodeSpec *section = config->nodes[i];
        uint64_t hash = message_hash(&section->base, state->sections_common), count = 0;
        if (hostlist_count_text(section->name ? section->name : "", &count, NULL) < 0)
            break;
        vec_push(&state->sections, (struct node_section){ hash, first, (uint32_t)count });
        first += (uint32_t)count;
    }
    if (first != nodes || state->sections.len != config->n_nodes)
        vec_clear(&state->sections);
}

void config_mark_removed(struct state *state)
{
    struct marking marking = { .state = state, .in_order = true };

    vec_each (struct node *, at, &state->nodes)
        (*at)->removed = (*at)->named = true;
    conf_each_node(state->config, mark_node, &marking, NULL);
    if (marking.in_order)
        find_sections(state, marking.next);
}
