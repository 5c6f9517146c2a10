/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape.h - what a job asks for, as the planner and admission see it
 *
 * Jobs that ask for the same share one shape. A shape says what was asked; a need is that, resolved
 * for one partition: defaults filled in, and the set of nodes that could ever serve it. Needs are
 * worked out when they are first wanted and again after nodes or partitions changed.
 *
 * The same arithmetic answers "could this node ever run it" (admission, with all a node has) and
 * "does it fit now" (planner, with what is free): fit_units() and fit_part().
 */
#ifndef CORE_SHAPE_H
#define CORE_SHAPE_H

#include "base/bitset.h"
#include "base/err.h"
#include "core/feature.h"
#include "core/intern.h"
#include "core/node.h"
#include "core/state.h"
#include "proto/job.pb-c.h"

/* A node has no more kinds of generic resources than this. */
enum { TAKE_GRES = 16 };

struct shape_gres {
    const char *name, *type; /* type may be NULL: any */
    uint64_t count;
    GresScope scope;
};

/* Of the whole job: tasks (gres is TAKE_GRES), or devices of another type. */
struct shape_total {
    size_t gres; /* in shape->gres */
    uint64_t total;
};

struct shape_licence {
    const char *name;
    uint32_t count;
};

/* One need per partition that the job names, in its order. */
struct need {
    const struct partition *partition; /* NULL: there is none of that name any more */
    struct bitset nodes;               /* that could run a part of the job if they were empty */
    struct bitset *alike; /* where all are to agree on a feature: those of each group; else NULL */
    unsigned node_count;
    unsigned least_nodes; /* the fewest of them that could run the whole job */
    bool fits;            /* all these nodes, empty, could run the whole job */
    bool apart;           /* but they are not below one switch, or not in whole segments */
    bool whole_nodes;     /* each node for itself */
    bool mem_all;         /* all memory of each node */
    unsigned share;       /* jobs that may share a CPU */
    uint64_t mem_per_node_mb, mem_per_cpu_mb, mem_per_gpu_mb;
    uint32_t cpus_per_gpu;
    uint32_t max_tasks; /* per node; 0: no bound */
    uint32_t tasks_per_core;
    uint32_t max_cpus_per_socket; /* of the partition's jobs together; 0: no bound */
    uint32_t max_cpus_per_node;
    bool by_core;   /* CPUs are given as whole cores */
    bool by_socket; /* or as whole sockets */
    bool bound;     /* CPUs only near its GPUs */
    bool lone;      /* shares of each task are of another device */
    bool least;     /* shares are of the device that has most left */
    bool scattered; /* cores are dealt over the sockets */
};

struct shape {
    struct interned head;
    uint32_t min_nodes, max_nodes; /* max UINT32_MAX: as many as it takes */
    const uint32_t *sizes;         /* the numbers that will do, ascending; all between where none */
    size_t size_count;
    uint32_t tasks, cpus_per_task;
    /* What its nodes have together, each at least one: tasks, or GPUs of the whole job. fit.c (3) */
    uint32_t units;
    size_t dealt;           /* 0: tasks; else where in `gres` they are, + 1 */
    uint32_t tasks_per_gpu; /* of those: tasks that are where a GPU is; 0: anywhere */
    size_t also_count;      /* and what they must have together besides */
    struct shape_total *also;
    uint32_t tasks_per_node, tasks_per_socket, tasks_per_core; /* 0: no bound */
    uint32_t spare;      /* of these, nodes in reserve; spare_nodes.c */
    uint32_t wish_nodes; /* as many as this when they are free now; min_nodes at least */
    uint32_t asked_nodes, asked_tasks, asked_wish; /* of the request alone; see shape_gpus.c */
    uint32_t min_cpus_per_node, cpus_per_gpu;
    uint32_t core_spec, thread_spec; /* of each node left to the system */
    uint32_t switches, segment;      /* at most so many leaf switches; nodes of a segment; 0 */
    uint32_t
        resv_warn_s; /* goes so long after a signal when a reservation wants its nodes; 0: no */
    uint32_t switches_wait_s;         /* how long to wait for them at most */
    uint32_t sockets, cores, threads; /* what a node must have at least; 0: anything */
    uint64_t mem_per_node_mb, mem_per_cpu_mb, mem_per_gpu_mb, mem_per_task_mb, tmp_mb;
    bool has_mem_per_node, tasks_given;
    bool exclusive, exclusive_user, oversubscribe, overcommit, contiguous, spread;
    bool exclusive_mcs, exclusive_topo;
    bool has_bound, bound; /* CPUs only near its GPUs, or not; else as the cluster says */
    bool has_lone, lone;   /* shares of each task of another device */
    bool spread_segments;  /* each in a block of its own */
    bool licence_any;      /* one of the licences, not all */
    bool reboot;           /* its nodes are started anew first */
    bool one_thread;       /* a CPU of the request is a whole core */
    bool multithread;      /* tasks may share cores, whatever the cluster's habit */
    bool scattered;        /* cores are dealt over the sockets of a node */
    size_t gres_count, partition_count, licence_count;
    struct shape_gres *gres;
    struct shape_licence *licences;
    const char **partitions;                                  /* names, at least one */
    const char *nodelist, *exclude, *reservation, *mcs_label; /* NULL when not given */
    const char *batch; /* features of the node that comes first; NULL: any */
    struct features features, prefer;
    struct arena *arena; /* everything above */
    struct span key;
    struct need *needs; /* partition_count of them, or NULL */
    char *tres;         /* what it asks for as text, made with the needs when first wanted */
    uint64_t generation;
    uint64_t names_known; /* generation + 1 in which some node had each feature and resource */
};

/* A shape of its own for a spec that no job has, such as a question; free it. */
struct shape *shape_parse(const struct state *state, const JobSpec *spec, struct err *err);
void shape_free(struct shape *shape);

/* May it have so many nodes? */
bool shape_takes_nodes(const struct shape *shape, size_t count);
/* The smallest number of CPUs the job can run with. */
uint64_t shape_cpus(const struct shape *shape);
uint64_t shape_gpus(const struct shape *shape);
/* What so many nodes and tasks ask for of one resource. */
uint64_t shape_gres_all(const struct shape *shape, const struct shape_gres *gres, uint64_t nodes,
                        uint64_t tasks);
/* Does it want devices for all of it together, on whatever nodes? */
bool shape_has_job_gres(const struct shape *shape);

/* Grows whenever needs may have become others. */
uint64_t state_generation(const struct state *state);
/* Needs of the shape, worked out if they are old. Indexed as shape->partitions. */
const struct need *shape_needs(const struct state *state, struct shape *shape);

/*
 * Could components of these shapes ever run beside each other? What is refused never can; what is not may
 * be possible by amounts only.
 */
int het_could_fit(const struct state *state, struct shape *const *shapes, size_t count,
                  struct err *err);

/* Why this partition would not run the job, whatever is free: REASON_PART_*; 0: it would. */
unsigned core_partition_reason(const struct job *job, const struct need *need);

/* CPUs are given in units of so many: threads of a core, a socket, or single ones. */
uint32_t need_unit(const struct need *need, const struct node *node);

/* CPUs of the node that the partition's jobs may have together. */
uint32_t need_cpus(const struct need *need, const struct node *node);

/* What one node has left, or has at all. `gres` goes with node->gres. */
struct room {
    uint32_t cpus; /* a multiple of the node's threads where cores are given whole */
    uint64_t mem_mb;
    const uint64_t *gres;
    bool empty; /* nobody has anything there */
};

/* How many units of the job (shape->units) a node with such room could have; 0: none. */
uint32_t fit_units(const struct shape *shape, const struct need *need, const struct node *node,
                   const struct room *room);
/* And how much of each of shape->also, into `out`. */
void fit_also(const struct shape *shape, const struct need *need, const struct node *node,
              const struct room *room, uint32_t *out);

struct take {
    uint32_t cpus, tasks;
    uint64_t mem_mb;
    uint64_t gres[TAKE_GRES]; /* as node->gres */
    uint32_t share_devices;   /* that shares are of, as many of each; 0: one */
};
/* What one node has of a job. */
struct portion {
    uint32_t tasks;
    uint64_t gres[TAKE_GRES]; /* of those for the whole job, as shape->gres; else not set */
};
/* With so many units: of what the job has besides the same part, or the least. */
void portion_of(const struct shape *shape, uint32_t units, bool least, struct portion *out);
bool fit_holds(const struct shape *shape, const struct need *need, const struct node *node,
               const struct room *room, const struct portion *portion);
/* What that takes of the node; it must have room for it. */
void fit_portion(const struct shape *shape, const struct need *need, const struct node *node,
                 const struct room *room, const struct portion *portion, struct take *out);
/* The same for so many units and an equal part of everything else. */
void fit_part(const struct shape *shape, const struct need *need, const struct node *node,
              const struct room *room, uint32_t units, struct take *out);

/* CPUs of a socket that so many tasks there take. */
uint32_t fit_socket_cpus(const struct shape *shape, const struct need *need,
                         const struct node *node, uint32_t tasks);

bool gres_matches(const struct shape_gres *want, const struct node_gres *have);

/* The most CPUs that are near so many devices, whoever is there; UINT32_MAX: not known. gres_locality.c */
uint64_t gres_locality_most(const struct node *node, const struct take *take);

/* Devices by kind (as node->gres) and socket; the last stands for any. gres_per_socket.c */
struct socket_quota {
    uint16_t of[TAKE_GRES][SOCKETS_MOST + 1];
};
bool shape_by_socket(const struct shape *shape);
/* How many of these unused devices are taken of which sockets; false: they do not do. */
bool fit_sockets(const struct shape *shape, const struct node *node, const struct bitset *unused,
                 struct socket_quota *out);

/* The least that the job takes of an empty node, and what the node has. */
struct node_amounts {
    bool structure, features; /* it has enough sockets and so on; the features */
    bool sockets;             /* its devices are on sockets as asked for */
    uint64_t cpus_near;       /* of its CPUs, those that are near the devices, where that matters */
    uint64_t cpus, cpus_have, mem_mb, mem_have_mb;
    uint64_t gres[TAKE_GRES], gres_have[TAKE_GRES]; /* as shape->gres */
};
void fit_amounts(const struct shape *shape, const struct need *need, const struct node *node,
                 struct node_amounts *out);
/* Why even all nodes of the partition, empty, would not run the job: a sentence. fit_why.c */
void fit_why(const struct state *state, const struct shape *shape, const struct need *need,
             struct str *out);

#endif
