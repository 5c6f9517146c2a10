/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shapes.h - what jobs ask for, and whether a node or a partition has it
 */
#ifndef CORE_SHAPE_SHAPES_H
#define CORE_SHAPE_SHAPES_H

#include "core/cluster/cluster.h"

struct admitted {
    struct shape *known; /* the one in the table, or */
    struct shape *shape; /* a new one */
    struct array *array; /* NULL when not an array */
    struct deps *deps;   /* NULL when there are none */
    int64_t time_limit_s;
    const char *account, *qos; /* those that hold by default too; NULL: none */
};

/*
 * topology_reach.c: are as many of the need's nodes, and all that are named, below one switch or in blocks? `amounts` are
 * what each of them has room for: of units, then of shape->also.
 */
enum { NEED_AMOUNT = INT32_MAX }; /* the bits of an amount that say how much */

/* ---- shape.c ---- */

int shape_read_spare_nodes(struct shape *shape, const JobSpec *spec, struct err *err);
/* What it asks for, of whom it is. */
int features_known(const struct state *state, const struct features *features, struct err *err);
struct shape *shape_find(const struct state *state, const JobSpec *spec, struct arena *arena);
/* One more reference to the shape of an admitted job, putting it into the table if it is new. */
struct shape *shape_take(struct state *state, struct admitted *admitted);
void shape_drop(struct state *state, struct shape *shape);
/* The same at the next command: until then the planner may still look at it. */
void shape_retire(struct state *state, struct shape *shape);
void shapes_settle(struct state *state);
void needs_free(struct shape *shape);

/* ---- topology_reach.c ---- */

bool topology_reach_has(const struct state *state, const struct shape *shape,
                        const struct need *need, const struct bitset *named,
                        uint32_t *const *amounts);
struct topology_reach *topology_reach_new(void);
void topology_reach_free(struct topology_reach *reach);

/* ---- needs.c ---- */

/*
 * Works out the needs of a shape that is `from` with more nodes excluded, if that takes no look at all
 * nodes; else nothing is done.
 */
void shape_needs_without(const struct state *state, struct shape *shape, const struct shape *from);

/* ---- fit.c ---- */

/* Into a shape whose arena is there; licences after the number of tasks */
/* It has the sockets, cores, threads and temporary disk */
bool fit_structure(const struct shape *shape, const struct node *node);

/* ---- gres_per_socket.c ---- */

/* Of a node that nobody is on */
bool fit_sockets_empty(const struct shape *shape, const struct node *node);

/* ---- shape_gpus.c ---- */

int shape_settle_gpus(struct shape *shape, const JobSpec *spec, uint64_t *tasks, struct err *err);
int shape_settle_units(struct shape *shape, struct err *err);
void shape_set_nodes(struct shape *shape, uint32_t nodes);

/* ---- shape_tres.c ---- */

int shape_read_gres(struct shape *shape, const JobSpec *spec, struct err *err);
int shape_read_licences(struct shape *shape, const JobSpec *spec, struct err *err);

#endif
