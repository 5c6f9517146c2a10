/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - what config.c and config_nodes.c share
 */
#ifndef CORE_COMMAND_CONFIG_H
#define CORE_COMMAND_CONFIG_H

#include <string.h>

#include "core/command/command.h"

/* What becomes of the nodes. */
struct node_change {
    struct state *state;
    bool reconfigure;
    bool changed;    /* some node is another, or has another number */
    bool renumbered; /* the latter */
    bool back;       /* one that was removed is there again */
    uint32_t *moved; /* of each there was: its number then; UINT32_MAX: it is no more */
    struct err *err;
    struct map names; /* of nodes in sections that are new */
    uint32_t count;
    uint64_t common;  /* of what besides its section decides what a node is */
    uint64_t *hashes; /* of sections */
    uint32_t *same;   /* the section it is of those there were, + 1; 0: a new one */
    bool *kept;       /* of those there were: one is the same */
    VEC(struct node *) nodes;
};

/* Are they right? `state` may be NULL, and `sections` then: all are looked at. */
int node_change_look(struct node_change *change, struct state *state, const Config *config,
                     const struct sections *sections, struct err *err);
void node_change_do(struct node_change *change, const Config *config);
void node_change_done(struct node_change *change);

/* config_diff.c: CHANGED_ALL when something besides sections is another that decides how jobs are placed. */
unsigned config_differs(const Config *old, const Config *config);

#endif
