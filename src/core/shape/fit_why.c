// SPDX-License-Identifier: Apache-2.0
/*
 * fit_why.c - why no configured node could ever run a job, in a sentence
 *
 * The first of these that holds: no node has the features, the structure, so many CPUs, so much
 * memory, so many of a resource; no node has all of it at once; too few nodes do; too few tasks fit.
 */
#include <inttypes.h>
#include <string.h>

#include "core/shape.h"
#include "core/shape/shapes.h"

/* Over the nodes of a partition: the least that is asked of one of them, the most that one has. */
struct survey {
    const char *of; /* "it" is the partition */
    size_t nodes;
    bool structure, features, cpus_ok, mem_ok, sockets, near_ok, gres_ok[TAKE_GRES];
    uint64_t near_have;
    uint64_t cpus, cpus_have, mem_mb, mem_have_mb;
    uint64_t gres[TAKE_GRES], gres_have[TAKE_GRES];
};

static void survey_add(struct survey *survey, const struct shape *shape,
                       const struct node_amounts *one)
{
    bool first = survey->nodes++ == 0;

    survey->structure |= one->structure;
    survey->features |= one->features;
    survey->sockets |= one->sockets;
    survey->near_ok |= one->cpus <= one->cpus_near;
    survey->near_have = MAX(survey->near_have, one->cpus_near);
    survey->cpus_ok |= one->cpus <= one->cpus_have;
    survey->cpus = first ? one->cpus : MIN(survey->cpus, one->cpus);
    survey->cpus_have = MAX(survey->cpus_have, one->cpus_have);
    survey->mem_ok |= one->mem_mb <= one->mem_have_mb;
    survey->mem_mb = first ? one->mem_mb : MIN(survey->mem_mb, one->mem_mb);
    survey->mem_have_mb = MAX(survey->mem_have_mb, one->mem_have_mb);
    for (size_t i = 0; i < shape->gres_count && i < TAKE_GRES; i++) {
        survey->gres_ok[i] |= one->gres[i] <= one->gres_have[i];
        survey->gres[i] = first ? one->gres[i] : MIN(survey->gres[i], one->gres[i]);
        survey->gres_have[i] = MAX(survey->gres_have[i], one->gres_have[i]);
    }
}

static void look_around(const struct state *state, const struct shape *shape,
                        const struct need *need, const struct bitset *among, struct survey *out)
{
    struct bitset excluded = { 0 };

    if (shape->exclude)
        state_node_set(state, shape->exclude, &excluded, NULL);
    bitset_each (number, among) {
        struct node_amounts one = { 0 };
        if (excluded.words && bitset_has(&excluded, number))
            continue;
        fit_amounts(shape, need, state->nodes.items[number], &one);
        survey_add(out, shape, &one);
    }
    bitset_done(&excluded);
}

static void add_most(struct str *out, const char *of, const char *what, const char *type,
                     uint64_t have, uint64_t want)
{
    if (!have) {
        str_addf(out, "no node of %s has %s%s%s", of, what, type ? ":" : "", type ? type : "");
        return;
    }
    str_addf(out, "a node of %s has at most %" PRIu64 " %s%s%s, and %" PRIu64 " are needed on one",
             of, have, what, type ? ":" : "", type ? type : "", want);
}

/* No node serves. */
static void none_serves(const struct shape *shape, const struct survey *seen, struct str *out)
{
    if (!seen->nodes) {
        str_addf(out, "no node of %s is left", seen->of);
        return;
    }
    if (!seen->features) {
        str_addf(out, "no node of %s has the features that are asked for", seen->of);
        return;
    }
    if (!seen->structure) {
        str_addf(out, "no node of %s has the sockets, cores, threads or temporary disk", seen->of);
        return;
    }
    if (!seen->cpus_ok) {
        add_most(out, seen->of, "CPUs", NULL, seen->cpus_have, seen->cpus);
        return;
    }
    for (size_t i = 0; i < shape->gres_count && i < TAKE_GRES; i++) {
        if (seen->gres_ok[i])
            continue;
        add_most(out, seen->of, shape->gres[i].name, shape->gres[i].type, seen->gres_have[i],
                 seen->gres[i]);
        return;
    }
    if (!seen->mem_ok)
        add_most(out, seen->of, "MB of memory", NULL, seen->mem_have_mb, seen->mem_mb);
    else if (!seen->sockets)
        str_addf(out, "no node of %s has so many devices on each of so many sockets", seen->of);
    else if (!seen->near_ok)
        add_most(out, seen->of, "CPUs near so many devices", NULL, seen->near_have, seen->cpus);
    else
        str_addf(out, "no node of %s has all that is needed at once", seen->of);
}

/* Those that it names do not serve, or have too little room. */
static void named_nodes(const struct state *state, const struct shape *shape,
                        const struct need *need, struct str *out)
{
    struct bitset named = { 0 }, other = { 0 };
    struct survey seen = { .of = "them" };

    if (state_node_set(state, shape->nodelist, &named, NULL) == 0 && shape->exclude &&
        state_node_set(state, shape->exclude, &other, NULL) == 0 && bitset_meets(&named, &other)) {
        str_addf(out, "nodes of %.200s are asked for and excluded", shape->nodelist);
    } else if (named.words && !bitset_within(&named, &need->nodes)) {
        bitset_minus(&named, &need->nodes);
        look_around(state, shape, need, &named, &seen);
        str_addf(out, "of the nodes %.200s not all serve: ", shape->nodelist);
        none_serves(shape, &seen, out);
    } else {
        str_addf(out, "%u tasks are needed, and the nodes %.200s%s have not the room for so many",
                 shape->tasks, shape->nodelist,
                 named.words && bitset_count(&named) < shape->max_nodes ? " with others" : "");
    }
    bitset_done(&named);
    bitset_done(&other);
}

/* What all its nodes, empty, have of the GPUs that are for the whole job. */
static uint64_t all_gpus(const struct state *state, const struct need *need,
                         const struct shape_gres *want)
{
    uint64_t sum = 0;

    bitset_each (number, &need->nodes) {
        const struct node *node = state->nodes.items[number];
        for (size_t i = 0; i < node->gres_count; i++)
            sum += gres_matches(want, &node->gres[i]) ? gres_most(&node->gres[i]) : 0;
    }
    return sum;
}

/* All of them together have not enough of it. */
static void too_little(const struct state *state, const struct shape *shape,
                       const struct need *need, struct str *out)
{
    const char *few = shape->max_nodes < need->node_count ? " on so few nodes" : "";

    for (size_t i = 0; shape->dealt && i < shape->gres_count; i++) {
        const struct shape_gres *want = &shape->gres[i];
        uint64_t have = want->scope == GRES_PER_JOB ? all_gpus(state, need, want) : 0;
        if (want->scope != GRES_PER_JOB || have >= want->count)
            continue;
        str_addf(out, "%" PRIu64 " %s%s%s are needed, and its nodes have %" PRIu64 " together",
                 want->count, want->name, want->type ? ":" : "", want->type ? want->type : "",
                 have);
        return;
    }
    if (shape->dealt)
        str_addf(out,
                 "%u tasks and %" PRIu64 " GPUs are needed, and its nodes have not the room"
                 " for so many%s%s",
                 shape->tasks, shape_gpus(shape),
                 need->bound ? " with CPUs near their devices" : "", few);
    else
        str_addf(out, "%u tasks are needed, and its nodes have not the room for so many%s%s",
                 shape->tasks, need->bound ? " with CPUs near their devices" : "", few);
}

void fit_why(const struct state *state, const struct shape *shape, const struct need *need,
             struct str *out)
{
    struct survey seen = { .of = "it" };

    str_addf(out, "partition %s: ", need->partition->spec->name);
    look_around(state, shape, need, &need->partition->nodes, &seen);
    if (need->node_count == 0)
        none_serves(shape, &seen, out);
    else if (need->node_count < shape->min_nodes)
        str_addf(out, "%u nodes are needed, and %u of it could ever serve", shape->min_nodes,
                 need->node_count);
    else if (need->apart && shape->segment && state_has_blocks(state))
        str_addf(out, "%u nodes in segments of %u are needed, and its blocks have not so many",
                 shape->min_nodes, shape->segment);
    else if (need->apart && (shape->min_nodes < 2 || shape->dealt))
        str_addf(out, "%u tasks%s are needed, and no nodes below one switch have the room for them",
                 shape->tasks, shape->dealt ? " and so many GPUs" : "");
    else if (need->apart)
        str_addf(out,
                 "%u nodes%s%.200s are needed, and not so many of it are below one switch or "
                 "in blocks",
                 shape->min_nodes, shape->nodelist ? " with " : "",
                 shape->nodelist ? shape->nodelist : "");
    else if (shape->nodelist)
        named_nodes(state, shape, need, out);
    else if (shape->features.group_count)
        str_add(out, "not enough nodes of it have the features that are asked for");
    else
        too_little(state, shape, need, out);
}
