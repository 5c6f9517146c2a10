/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topo.c - switches and blocks: hosts that are near each other
 *
 * A job on several hosts goes below the lowest switch that has enough of them, and there to the
 * fewest leaves: one leaf that is enough and has least too much, or the one that has most, and so
 * on for the rest. A block is a leaf of its own, with everything above all blocks.
 *
 * (1) Leaves come first in switches[], each level behind the one below it.
 * (2) A host without a leaf runs jobs of one host only.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "sched/place/chooser.h"
#include "schema/conf.h"

/* ---- rebuild ---- */

static void read_hosts(const struct sched *sched, const char *text, struct bitset *out)
{
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 };

    bitset_init(out,
                sched->hosts->list.len ? sched->hosts->list.len : state_node_count(sched->state));
    if (str_is_empty(text) || conf_hosts_named(state_config(sched->state), text, &hosts, NULL) < 0)
        return;
    hostlist_each (host, &hosts) {
        char name[LIMIT_NAME_BYTES + 1];
        size_t len = MIN(host.len, sizeof(name) - 1);
        memcpy(name, host.name, len);
        name[len] = '\0';
        const struct node *node = state_node(sched->state, name);
        if (node && node->number < out->bits)
            bitset_add(out, node->number);
    }
}

static struct topo_switch *topo_add(struct topo *topo, uint32_t level)
{
    struct topo_switch *last = &topo->switches[topo->count++];

    last->level = level;
    return last;
}

/* Everything at the top: blocks have no other switch, trees may have several roots. */
static void add_root(struct sched *sched, struct topo *topo)
{
    struct topo_switch *root = topo_add(topo, UINT32_MAX);

    root->leaves = topo->leaves;
    bitset_init(&root->hosts, state_node_count(sched->state));
    for (uint32_t i = 0; i < topo->leaves; i++)
        bitset_or(&root->hosts, &topo->switches[i].hosts);
}

static void read_blocks(struct sched *sched, struct topo *topo, const Config *config)
{
    topo->switches = NEW_ARRAY(struct topo_switch, config->n_blocks + 1);
    for (size_t i = 0; i < config->n_blocks; i++) {
        struct topo_switch *block = topo_add(topo, 0);
        block->leaves = 1;
        read_hosts(sched, config->blocks[i]->nodes, &block->hosts);
    }
    topo->leaves = topo->count;
    add_root(sched, topo);
}

static uint32_t find_switch(const Config *config, const char *name)
{
    for (uint32_t i = 0; i < config->n_switches; i++) {
        if (str_eq(config->switches[i]->name, name))
            return i;
    }
    return UINT32_MAX;
}

/* Switch `i` of the configuration, once all below it are known; at[]: place + 1. */
static bool add_above(struct sched *sched, struct topo *topo, const Config *config, uint32_t i,
                      uint32_t *at)
{
    CLEANUP(hostlist_done) struct hostlist below = { 0 };
    uint32_t level = 0;

    if (hostlist_parse(&below, config->switches[i]->switches, NULL) < 0)
        return false;
    hostlist_each (child, &below) {
        uint32_t number = find_switch(config, child.name);
        if (number == UINT32_MAX || !at[number])
            return false;
        level = MAX(level, topo->switches[at[number] - 1].level + 1);
    }
    struct topo_switch *above = topo_add(topo, level);
    at[i] = topo->count;
    bitset_init(&above->hosts, state_node_count(sched->state));
    hostlist_each (child, &below) {
        const struct topo_switch *one = &topo->switches[at[find_switch(config, child.name)] - 1];
        above->leaves += one->leaves;
        bitset_or(&above->hosts, &one->hosts);
    }
    return true;
}

static int by_level(const void *a, const void *b)
{
    const struct topo_switch *x = a, *y = b;

    return x->level < y->level ? -1 : x->level > y->level;
}

static void read_tree(struct sched *sched, struct topo *topo, const Config *config)
{
    uint32_t *at = NEW_ARRAY(uint32_t, config->n_switches + 1);
    bool more = true;

    topo->switches = NEW_ARRAY(struct topo_switch, config->n_switches);
    for (uint32_t i = 0; i < config->n_switches; i++) {
        if (str_is_empty(config->switches[i]->nodes))
            continue;
        struct topo_switch *leaf = topo_add(topo, 0);
        leaf->leaves = 1;
        read_hosts(sched, config->switches[i]->nodes, &leaf->hosts);
        at[i] = topo->count;
    }
    topo->leaves = topo->count;
    while (more) {
        more = false;
        for (uint32_t i = 0; i < config->n_switches; i++) {
            if (!at[i] && !str_is_empty(config->switches[i]->switches))
                more = add_above(sched, topo, config, i, at) || more;
        }
    }
    qsort(topo->switches + topo->leaves, topo->count - topo->leaves, sizeof(*topo->switches),
          by_level); /* (1) */
    free(at);
}

void topo_read(struct sched *sched)
{
    const Config *config = state_config(sched->state);
    struct topo *topo = &sched->hosts->topo;

    *topo = (struct topo){ .wake_us = INT64_MAX, .blocks = state_has_blocks(sched->state) };
    if (topo->blocks)
        read_blocks(sched, topo, config);
    else if (config->topology_plugin && str_ieq(config->topology_plugin, "tree") &&
             config->n_switches)
        read_tree(sched, topo, config);
    size_t hosts = state_node_count(sched->state);
    topo->leaf_of = NEW_ARRAY(uint32_t, hosts + 1);
    memset(topo->leaf_of, 0xff, hosts * sizeof(*topo->leaf_of));
    for (uint32_t i = 0; i < topo->leaves; i++) {
        bitset_each (host, &topo->switches[i].hosts)
            topo->leaf_of[host] = i;
    }
}

void topo_done(struct sched *sched)
{
    for (uint32_t i = 0; i < sched->hosts->topo.count; i++)
        bitset_done(&sched->hosts->topo.switches[i].hosts);
    free(sched->hosts->topo.switches);
    free(sched->hosts->topo.leaf_of);
    sched->hosts->topo = (struct topo){ 0 };
}

/* ---- choosing ---- */

/* Candidates below one switch, leaf by leaf. */
struct near {
    struct chooser *c;
    struct chosen *list; /* all of them, in order of preference */
    bool *taken;
    size_t count;
    struct bitset among; /* their hosts */
    uint32_t *by_host;   /* and which of them it is */
    uint32_t *by_leaf;   /* candidates, leaf by leaf, in the same order */
    uint32_t *first;     /* where each leaf begins there; one more at the end */
    bool *used_leaf;     /* has one that must be used */
    uint32_t *hosts;     /* by leaf: how many may be taken */
    uint64_t *units;
    uint32_t nodes_left; /* to be found still */
    struct sums have;    /* those that are taken */
    size_t used;         /* hosts taken */
    uint32_t leaves;
};

static uint32_t leaf_of(const struct near *near, size_t i)
{
    return near->c->sched->hosts->topo.leaf_of[near->list[i].host];
}

static void take_one(struct near *near, size_t i)
{
    uint32_t leaf = leaf_of(near, i);

    near->taken[i] = true;
    near->hosts[leaf]--;
    near->units[leaf] -= near->list[i].take.tasks;
    near->used++;
    near->nodes_left -= near->nodes_left > 0;
    sums_add(&near->have, near->c->shape, &near->list[i]);
}

static bool lacks(const struct near *near)
{
    return near->nodes_left || !sums_do(&near->have, near->c->shape);
}

/* Nodes come in segments only where there are blocks, as in Slurm; a leaf gives whole ones then. */
static uint32_t segment_of(const struct near *near)
{
    return near->c->sched->hosts->topo.blocks ? near->c->shape->segment : 0;
}

static uint32_t in_segments(const struct near *near, uint32_t hosts)
{
    uint32_t segment = segment_of(near);

    if (segment && near->c->shape->spread_segments)
        return hosts >= segment ? segment : 0;
    return segment ? hosts / segment * segment : hosts;
}

static uint64_t word_of(const struct bitset *set, size_t word)
{
    return word * 64 < set->bits ? set->words[word] : 0;
}

static void count_leaves(struct near *near, const struct topo_switch *within)
{
    memset(near->hosts, 0, near->c->sched->hosts->topo.leaves * sizeof(*near->hosts));
    memset(near->units, 0, near->c->sched->hosts->topo.leaves * sizeof(*near->units));
    for (size_t word = 0; word * 64 < near->among.bits; word++) {
        uint64_t bits = word_of(&near->among, word) & word_of(&within->hosts, word);
        for (; bits; bits &= bits - 1) {
            uint32_t i = near->by_host[word * 64 + (size_t)__builtin_ctzll(bits)];
            near->hosts[leaf_of(near, i)]++;
            near->units[leaf_of(near, i)] += near->list[i].take.tasks;
        }
    }
}

/* The smallest leaf that is enough alone, or else the one that has most. */
static uint32_t best_leaf(const struct near *near)
{
    uint32_t best = UINT32_MAX, units = near->c->shape->units;
    bool best_does = false;

    for (uint32_t leaf = 0; leaf < near->c->sched->hosts->topo.leaves; leaf++) {
        uint32_t hosts = in_segments(near, near->hosts[leaf]);
        bool does = hosts >= near->nodes_left && near->have.units + near->units[leaf] >= units;
        if (!hosts || (best_does && !does))
            continue;
        if (best == UINT32_MAX || (does && !best_does) ||
            (does ? near->hosts[leaf] < near->hosts[best] : hosts > near->hosts[best])) {
            best = leaf;
            best_does = does;
        }
    }
    return best;
}

static void take_leaf(struct near *near, uint32_t leaf, const struct topo_switch *within)
{
    uint32_t room = in_segments(near, near->hosts[leaf]), segment = segment_of(near);
    uint32_t most = near->c->shape->max_nodes, taken = 0;

    for (uint32_t k = near->first[leaf];
         k < near->first[leaf + 1] && taken < room && near->used < most; k++) {
        uint32_t i = near->by_leaf[k];
        bool more = lacks(near) || (segment && taken % segment);
        if (!more)
            break;
        if (near->taken[i] || !bitset_has(&within->hosts, near->list[i].host))
            continue;
        take_one(near, i);
        taken++;
    }
    near->leaves += taken > 0;
    if (taken && segment && near->c->shape->spread_segments) /* it gives no other one */
        near->hosts[leaf] = 0;
}

/* Those that must be used are taken first; the leaves they are on are used anyway. */
static bool take_must(struct near *near, size_t must, const struct topo_switch *within)
{
    for (size_t i = 0; i < must; i++) {
        if (!bitset_has(&within->hosts, near->list[i].host))
            return false;
    }
    for (size_t i = 0; i < must; i++) {
        near->leaves += !near->used_leaf[leaf_of(near, i)];
        near->used_leaf[leaf_of(near, i)] = true;
        take_one(near, i);
    }
    for (size_t i = 0; i < must && lacks(near); i++) {
        uint32_t before = near->leaves;
        take_leaf(near, leaf_of(near, i), within);
        near->leaves = before;
    }
    return true;
}

static bool take_within(struct near *near, size_t must, const struct topo_switch *within,
                        uint32_t nodes)
{
    const struct shape *shape = near->c->shape;

    memset(near->taken, 0, near->count * sizeof(*near->taken));
    memset(near->used_leaf, 0, near->c->sched->hosts->topo.leaves * sizeof(*near->used_leaf));
    near->nodes_left = nodes;
    sums_init(&near->have, shape);
    near->used = near->leaves = 0;
    count_leaves(near, within);
    if (!take_must(near, must, within))
        return false;
    while (lacks(near) && near->used < shape->max_nodes) {
        uint32_t leaf = best_leaf(near);
        if (leaf == UINT32_MAX)
            break;
        take_leaf(near, leaf, within);
    }
    return !lacks(near);
}

int64_t topo_waits_until(const struct sched *sched, const struct job *job)
{
    const Config *config = state_config(sched->state);
    uint32_t most = config->has_max_switch_wait_s ? config->max_switch_wait_s : 300;

    if (!sched->hosts->topo.leaves || !job->shape->switches)
        return 0;
    return job->eligible_us + (int64_t)MIN(job->shape->switches_wait_s, most) * US_PER_S;
}

/* Has the job waited as long for few switches as it may? */
static bool waited(const struct chooser *c)
{
    int64_t until = topo_waits_until(c->sched, c->job);

    if (c->view.start_us >= until)
        return true;
    if (c->job->id && until > c->sched->now_us)
        c->sched->hosts->topo.wake_us = MIN(c->sched->hosts->topo.wake_us, until);
    return false;
}

static void keep_taken(struct near *near)
{
    struct sched *sched = near->c->sched;
    size_t kept = 0;

    for (size_t i = 0; i < near->count; i++) {
        if (near->taken[i])
            sched->place->candidates.items[kept++] = near->list[i];
    }
    sched->place->candidates.len = kept;
}

/* The lowest level that has enough; of it what needs the fewest leaves. */
static bool search(struct near *near, size_t must, uint32_t nodes)
{
    const struct topo *topo = &near->c->sched->hosts->topo;
    uint32_t best = UINT32_MAX, best_leaves = UINT32_MAX;
    size_t best_spare = SIZE_MAX;

    for (uint32_t i = 0; i < topo->count; i++) {
        const struct topo_switch *at = &topo->switches[i];
        if (best != UINT32_MAX && at->level > topo->switches[best].level)
            break;
        size_t below = 0;
        for (size_t word = 0; word * 64 < near->among.bits; word++)
            below += (size_t)__builtin_popcountll(word_of(&near->among, word) &
                                                  word_of(&at->hosts, word));
        if (below < nodes || !take_within(near, must, at, nodes))
            continue;
        if (near->leaves < best_leaves || (near->leaves == best_leaves && below < best_spare)) {
            best = i;
            best_leaves = near->leaves;
            best_spare = below;
        }
    }
    return best != UINT32_MAX && take_within(near, must, &topo->switches[best], nodes);
}

static void near_init(struct near *near, struct chooser *c)
{
    const struct topo *topo = &c->sched->hosts->topo;
    size_t hosts = c->sched->hosts->list.len;

    near->list = NEW_ARRAY(struct chosen, near->count + 1);
    near->taken = NEW_ARRAY(bool, near->count + 1);
    near->hosts = NEW_ARRAY(uint32_t, topo->leaves + 1);
    near->used_leaf = NEW_ARRAY(bool, topo->leaves + 1);
    near->units = NEW_ARRAY(uint64_t, topo->leaves + 1);
    near->by_host = NEW_ARRAY(uint32_t, hosts + 1);
    near->by_leaf = NEW_ARRAY(uint32_t, near->count + 1);
    near->first = NEW_ARRAY(uint32_t, topo->leaves + 2);
    bitset_init(&near->among, hosts);
    if (near->count)
        memcpy(near->list, c->sched->place->candidates.items, near->count * sizeof(*near->list));
    for (uint32_t i = 0; i < near->count; i++) {
        if (leaf_of(near, i) == UINT32_MAX) /* (2) */
            continue;
        bitset_add(&near->among, near->list[i].host);
        near->by_host[near->list[i].host] = i;
        near->first[leaf_of(near, i) + 2]++;
    }
    for (uint32_t leaf = 2; leaf < topo->leaves + 2; leaf++)
        near->first[leaf] += near->first[leaf - 1];
    for (uint32_t i = 0; i < near->count; i++) {
        if (leaf_of(near, i) != UINT32_MAX)
            near->by_leaf[near->first[leaf_of(near, i) + 1]++] = i;
    }
}

static void near_done(struct near *near)
{
    free(near->list);
    free(near->taken);
    free(near->hosts);
    free(near->used_leaf);
    free(near->units);
    free(near->by_host);
    free(near->by_leaf);
    free(near->first);
    bitset_done(&near->among);
}

bool place_near(struct chooser *c, size_t must)
{
    const struct shape *shape = c->shape;
    struct near near = { .c = c, .count = c->sched->place->candidates.len };

    /* One host is near itself. */
    if (shape->min_nodes == 1 && shape->wish_nodes == 1 && must <= 1) {
        for (size_t i = 0; i < (must ? must : near.count); i++) {
            struct sums alone;
            sums_init(&alone, shape);
            sums_add(&alone, shape, &c->sched->place->candidates.items[i]);
            if (sums_do(&alone, shape)) {
                c->sched->place->candidates.items[0] = c->sched->place->candidates.items[i];
                c->sched->place->candidates.len = 1;
                return true;
            }
        }
    }
    near_init(&near, c);
    bool good = shape->wish_nodes > shape->min_nodes && search(&near, must, shape->wish_nodes);
    good = good || search(&near, must, shape->min_nodes);
    if (good && shape->switches && near.leaves > shape->switches)
        good = waited(c);
    if (good)
        keep_taken(&near);
    near_done(&near);
    return good;
}
