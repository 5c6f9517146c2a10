/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chooser.h - choosing hosts: what the files of this folder share
 *
 * place.c makes a chooser for one job and one partition. place_sizes.c tries the numbers of nodes that the job
 * may have; for each, place_grid.c or place_scan.c gathers candidates, topo.c cuts them to few switches, and
 * place_distribute.c gives them tasks and GPUs.
 */
#ifndef SCHED_PLACE_CHOOSER_H
#define SCHED_PLACE_CHOOSER_H

#include "sched/place/search.h"

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

/* Adds a candidate, whose take says what it has room for: units as tasks, and shape->also as gres. */
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
    const struct reservation *resv; /* that the job runs in; NULL: none */
    bool down;                      /* the least loaded host first */
    bool bound;                     /* hosts with blocks are considered */
    bool no_licence;                /* the job does not start for lack of a licence */
    struct sums sums;               /* of the candidates */
    uint32_t looked;
};

/* ---- place.c ---- */

/* What the job could have of the host. */
void place_room(const struct chooser *c, uint32_t number, struct room_at *at);
/* How many units of the job the host has room for, exactly; and its room, unless that is 0. */
uint32_t units_at(struct chooser *c, uint32_t number, struct room_at *at);
/* In a view without some jobs: is the job one of those that are left out? */
bool run_is_out(const struct host *host, uint32_t job_id);
void candidates_clear(struct chooser *c);
void candidate(struct chooser *c, uint32_t number, uint32_t units);
int chosen_by_units(const void *a, const void *b); /* for qsort: the roomiest first */
/* Cuts the candidates to those that are used; the first `must` are used in any case. */
bool enough(struct chooser *c, size_t must);

/* ---- place_sizes.c ---- */

typedef bool place_fn(struct chooser *c);
/* Tries the numbers of nodes that job and partition allow. */
bool place_sized(struct chooser *c, place_fn *choose);

/* ---- place_constraints.c ---- */

/* Are there enough CPUs near the GPUs of that part? */
bool bound_suits(const struct chooser *c, const struct host *host, const struct take *take);
/* How many of the tasks can each have its shares on a device of its own. */
uint32_t lone_tasks(const struct chooser *c, const struct host *host, uint32_t tasks);
uint32_t bound_units(const struct chooser *c, const struct host *host, const struct room *room,
                     uint32_t units);
/* Are there devices on sockets as the job asks? Fills in what is taken of each kind, unless `take` is NULL. */
bool sockets_suit(const struct chooser *c, const struct host *host, struct take *take);
/* Does the exclusive use of leaf switches (--exclusive=topo) allow the job on this host? */
bool leaf_suits(const struct chooser *c, uint32_t number);

/* ---- place_grid.c ---- */

/* Finds hosts by the grids: for requests that the grids know everything of. */
bool place_by_grid(struct chooser *c);

/* ---- place_scan.c ---- */

/* Looks at host after host: for all other requests. */
bool place_by_scan(struct chooser *c);

/* ---- topo.c ---- */

/* Cuts the candidates to those on the fewest switches; the first `must` are used in any case. */
bool place_near(struct chooser *c, size_t must);

/* ---- place_distribute.c ---- */

/* Gives the candidates tasks and GPUs; false when these do not find room. */
bool place_distribute(struct chooser *c, struct parts *parts);

#endif
