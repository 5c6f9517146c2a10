/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_priv.h - choosing hosts: what place.c, place_grid.c, place_scan.c and topo.c share
 */
#ifndef SCHED_PLACE_CHOOSER_H
#define SCHED_PLACE_CHOOSER_H

#include "sched/sched_priv.h"

/* What some hosts have together. */
struct sums {
    uint64_t units;
    uint64_t also[TAKE_GRES]; /* of shape->also */
};

static inline void sums_init(struct sums *sums, const struct shape *shape)
{
    sums->units = 0;
    for (size_t i = 0; i < shape->also_count; i++)
        sums->also[i] = 0;
}

/* A candidate comes; its take says what it has room for: units as tasks, and shape->also as gres. */
static inline void sums_add(struct sums *sums, const struct shape *shape, const struct chosen *one)
{
    sums->units += one->take.tasks;
    for (size_t i = 0; i < shape->also_count; i++)
        sums->also[i] += one->take.gres[i];
}

static inline void sums_del(struct sums *sums, const struct shape *shape, const struct chosen *one)
{
    sums->units -= one->take.tasks;
    for (size_t i = 0; i < shape->also_count; i++)
        sums->also[i] -= one->take.gres[i];
}

static inline bool sums_do(const struct sums *sums, const struct shape *shape)
{
    bool good = sums->units >= shape->units;

    for (size_t i = 0; i < shape->also_count; i++)
        good = good && sums->also[i] >= shape->also[i].total;
    return good;
}

struct chooser {
    struct sched *sched;
    const struct family *family;
    const struct shape *shape;
    const struct job *job;
    const struct need *need;
    const struct ask *asks; /* of the partition, by kind */
    struct view view;
    const struct reservation *resv; /* that it is to run in; NULL: none */
    bool down;                      /* the least loaded host first */
    bool bound;                     /* hosts with blocks may do */
    bool no_licence;                /* that is why it does not start */
    struct sums sums;               /* of the candidates */
    uint32_t looked;
};

/* ---- place.c ---- */

/* What the job could have of the host. */
void place_room(const struct chooser *c, uint32_t number, struct room_at *at);
/* Units of the job that the host could have, exact, and its room unless there are none. */
uint32_t units_at(struct chooser *c, uint32_t number, struct room_at *at);
/* In a view without some jobs: is it none of those that are there? */
bool run_is_out(const struct host *host, uint32_t job_id);
void candidates_clear(struct chooser *c);
void candidate(struct chooser *c, uint32_t number, uint32_t units);
int chosen_by_units(const void *a, const void *b); /* for qsort: the roomiest first */
/* The list is cut to what is used; the first `must` are used in any case. */
bool enough(struct chooser *c, size_t must);

/* ---- place_sizes.c ---- */

typedef bool place_fn(struct chooser *c);
/* Tries the numbers of nodes that job and partition allow. */
bool place_sized(struct chooser *c, place_fn *choose);

/* ---- place_constraints.c ---- */

/* Would the CPUs of that part be near its GPUs? */
bool bound_suits(const struct chooser *c, const struct host *host, const struct take *take);
/* Tasks that each can have its shares of a device of its own. */
uint32_t lone_tasks(const struct chooser *c, const struct host *host, uint32_t tasks);
uint32_t bound_units(const struct chooser *c, const struct host *host, const struct room *room,
                     uint32_t units);
/* Are there devices on sockets as asked for? What is taken of each kind goes into `take`, if not NULL. */
bool sockets_suit(const struct chooser *c, const struct host *host, struct take *take);
/* Nobody on its leaf switch minds others, or is there if the job does. */
bool leaf_suits(const struct chooser *c, uint32_t number);

/* ---- place_grid.c ---- */

/* By what they have free: for what the grids know all of. */
bool place_by_grid(struct chooser *c);

/* ---- place_scan.c ---- */

/* Host by host: for what the grid knows nothing of. */
bool place_by_scan(struct chooser *c);

/* ---- topo.c ---- */

/* Cuts the candidates to those on the fewest switches; the first `must` are used in any case. */
bool place_near(struct chooser *c, size_t must);

/* place_distribute.c: tasks and GPUs to the candidates; false when they do not find room. */
bool place_distribute(struct chooser *c, struct parts *parts);

#endif
