/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bind.h - the texts of --cpu-bind, --mem-bind, --gpu-bind and --distribution, read
 */
#ifndef SCHEMA_BIND_H
#define SCHEMA_BIND_H

#include "base/bitset.h"
#include "base/err.h"
#include "base/str.h"

enum bind_kind {
    BIND_DEFAULT, /* nothing said */
    BIND_NONE,
    BIND_THREADS,
    BIND_CORES,
    BIND_SOCKETS,
    BIND_LDOMS,
    BIND_RANK,
    BIND_MAP,
    BIND_MASK,
    BIND_RANK_LDOM,
    BIND_MAP_LDOM,
    BIND_MASK_LDOM,
};

struct bind_cpu {
    enum bind_kind kind;
    struct span list; /* of a map or mask; into the text */
    bool verbose, quiet;
};

enum bind_mem_kind {
    BIND_MEM_DEFAULT, /* nothing said: as NONE */
    BIND_MEM_NONE,
    BIND_MEM_LOCAL, /* of the CPUs that the task is bound to */
    BIND_MEM_RANK,
    BIND_MEM_MAP,
    BIND_MEM_MASK,
};

struct bind_mem {
    enum bind_mem_kind kind;
    struct span list; /* of NUMA nodes */
    bool verbose, quiet;
    bool prefer; /* others too, when there is none left */
    bool sort, nosort;
};

enum bind_gpu_kind {
    BIND_GPU_DEFAULT,
    BIND_GPU_NONE,
    BIND_GPU_CLOSEST,
    BIND_GPU_SINGLE,   /* count tasks share one GPU */
    BIND_GPU_PER_TASK, /* count GPUs for each task */
    BIND_GPU_MAP,
    BIND_GPU_MASK,
};

struct bind_gpu {
    enum bind_gpu_kind kind;
    uint32_t count;
    struct span list;
    bool verbose;
};

enum bind_order { BIND_BLOCK, BIND_CYCLIC, BIND_FCYCLIC };

/* NULL or "" is the default. Every value of a list is checked. */
int bind_read_cpu(const char *text, struct bind_cpu *out, struct err *err);
int bind_read_mem(const char *text, struct bind_mem *out, struct err *err);
int bind_read_gpu(const char *text, struct bind_gpu *out, struct err *err);
/* --tres-bind: GPUs are what tasks can be bound to. */
int bind_read_tres(const char *text, struct bind_gpu *out, struct err *err);

/*
 * What --mem-bind=TEXT leaves in the environment: VERBOSE, TYPE, LIST, PREFER, SORT, or "" for all of it. False
 * when the variable is not set.
 */
bool bind_mem_variable(const char *text, const char *which, struct str *out);

/* How CPUs are dealt over sockets and over the cores of one: cyclic when not said, as in Slurm. */
void bind_read_order(const char *distribution, enum bind_order *sockets, enum bind_order *cores);

/*
 * Value number `index` of "0,3,0x10*2": a number, or the bits of a mask, into `out`. A list that is too
 * short begins again. False when it is no such list.
 */
bool bind_list_nth(struct span list, size_t index, bool mask, struct bitset *out);

/* "0x00ff": as many digits as `bits` fill, but no fewer than one. */
void bind_add_mask(struct str *out, const struct bitset *set, size_t bits);

#endif
