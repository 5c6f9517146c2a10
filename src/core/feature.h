/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feature.h - which features --constraint asks for, of each node and of all of them together
 *
 * "a&b", "a|b", "(a|b)&c" are asked of each node, evaluated from left to right as in Slurm.
 * "[a|b]" wants all nodes of a job to agree on one of them. "[a*2&b*4]" and "a*2" want so many
 * nodes with each; a node counts for one of them only.
 */
#ifndef CORE_FEATURE_H
#define CORE_FEATURE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/limits.h"
#include "core/node.h"

struct feature_group {
    const char *text;
    uint32_t count; /* nodes; 0 where all nodes agree on a group */
};

/* An expression taken apart. */
struct features {
    const char *plain; /* asked of each node; NULL: nothing */
    struct feature_group *groups;
    size_t group_count;
    bool one_of;    /* all nodes match the same group; else so many match each */
    uint32_t total; /* nodes that are counted */
};

/* All of it from the arena. An empty text asks for nothing. */
int features_read(const char *text, struct arena *arena, struct features *out, struct err *err);
/* `known` gets the name of each feature. */
int features_check(const struct features *features,
                   bool (*known)(const void *ctx, const char *name, size_t len), const void *ctx,
                   struct err *err);
/* Could the node be one of `nodes` nodes of a job? */
bool features_could(const struct features *features, uint32_t nodes, const struct node *node);
/* The groups it matches, a bit each. */
unsigned features_groups(const struct features *features, const struct node *node);

/*
 * Nodes that are held against counted groups one by one. A node is of use when with it more of
 * what is counted can be had than without.
 */
struct feature_tally {
    const struct features *features;
    uint32_t by_groups[1 << LIMIT_FEATURE_GROUPS]; /* nodes by the set of groups they match */
    uint32_t have;                                 /* of features->total */
};
void feature_tally_init(struct feature_tally *tally, const struct features *features);
bool feature_tally_add(struct feature_tally *tally, const struct node *node);

/* Have both the same, in the same order? */
bool feature_same(const struct node *a, const struct node *b);
/* Does the node match a text without counts and brackets? */
bool feature_match(const char *text, const struct node *node);
/* The same of many nodes in turn: neighbours mostly have the same features, and the same answer. */
struct feature_last {
    const struct node *node; /* NULL: none was asked */
    bool answer;
    unsigned groups; /* of features_could_next(): of "[a|b]", those it matches */
};
bool feature_match_next(const char *text, const struct node *node, struct feature_last *last);
bool features_could_next(const struct features *features, uint32_t nodes, const struct node *node,
                         struct feature_last *last);

#endif
