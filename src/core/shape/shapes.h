/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shapes.h - what jobs ask for, and whether a node or a partition has it
 */
#ifndef CORE_SHAPE_SHAPES_H
#define CORE_SHAPE_SHAPES_H

#include "core/cluster/cluster.h"

/* What admit() found out about a job that may be queued. */
struct admitted {
    struct shape *known; /* the shape in the table, or */
    struct shape *shape; /* a new one */
    struct array *array; /* NULL when not an array */
    struct deps *deps;   /* NULL when there are none */
    int64_t time_limit_s;
    const char *account, *qos; /* named or by default; NULL: none */
};

enum { NEED_AMOUNT = INT32_MAX }; /* the bits of an amount that say how much */

/* ---- shape.c ---- */

int shape_read_spare_nodes(struct shape *shape, const JobSpec *spec, struct err *err);
/* Are all features that the request names features of some node? */
int features_known(const struct state *state, const struct features *features, struct err *err);
/* The shape of the spec, if the table has it; NULL otherwise. */
struct shape *shape_find(const struct state *state, const JobSpec *spec, struct arena *arena);
/* Takes a reference to the shape of an admitted job; puts it into the table if it is new. */
struct shape *shape_take(struct state *state, struct admitted *admitted);
void shape_drop(struct state *state, struct shape *shape);
/* Drops it at the next command: until then the planner may still look at it. */
void shape_retire(struct state *state, struct shape *shape);
void shapes_settle(struct state *state);
void needs_free(struct shape *shape);

/* ---- topology_reach.c ---- */

/*
 * Are enough of the need's nodes, with all nodes that the job names, below one switch or in blocks? `amounts` says what
 * each of them has room for: of units, then of shape->also.
 */
bool topology_reach_has(const struct state *state, const struct shape *shape,
                        const struct need *need, const struct bitset *named,
                        uint32_t *const *amounts);
struct topology_reach *topology_reach_new(void);
void topology_reach_free(struct topology_reach *reach);

/* ---- needs.c ---- */

/*
 * Works out the needs of a shape that is `from` with more nodes excluded, if that does not take a look at all
 * nodes. Otherwise it does nothing.
 */
void shape_needs_without(const struct state *state, struct shape *shape, const struct shape *from);

/* ---- fit.c ---- */

/* Has the node the sockets, cores, threads and temporary disk? */
bool fit_structure(const struct shape *shape, const struct node *node);

/* ---- gres_per_socket.c ---- */

/* Has the node, when empty, devices on sockets as the shape asks? */
bool fit_sockets_empty(const struct shape *shape, const struct node *node);

/* ---- shape_gpus.c ---- */

int shape_settle_gpus(struct shape *shape, const JobSpec *spec, uint64_t *tasks, struct err *err);
int shape_settle_units(struct shape *shape, struct err *err);
void shape_set_nodes(struct shape *shape, uint32_t nodes);

/* ---- shape_tres.c ---- */

/* Both read into a shape whose arena exists; licences after the number of tasks is known. */
int shape_read_gres(struct shape *shape, const JobSpec *spec, struct err *err);
int shape_read_licences(struct shape *shape, const JobSpec *spec, struct err *err);

#endif
