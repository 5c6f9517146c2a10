/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inventory.h - what this machine has: CPUs, memory, disk, GPUs and how they hang together
 *
 * Everything is read below a root, so that a recorded tree of another machine can be looked at
 * (--sysroot). CPUs by hwloc; AMD GPUs by the kernel's KFD topology, NVIDIA GPUs by their driver's
 * /proc and, when it is there, NVML.
 */
#ifndef SPURD_INVENTORY_H
#define SPURD_INVENTORY_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "proto/node.pb-c.h"

struct inventory_options {
    const char *root;   /* NULL or "": this machine */
    const char *tmp_fs; /* whose size is TmpDisk; NULL: /tmp */
    const char *nvml;   /* library to load; NULL: libnvidia-ml.so.1 on this machine, none else */
};

struct inventory {
    struct arena arena;
    NodeInventory node;
    unsigned *cpu_map;  /* abstract CPU number to the kernel's, node.cpus long */
    unsigned *numa_map; /* the kernel's number of each NUMA node of node.numa_cpus */
};

/* Fills everything but the names and addresses. inventory_done() in any case. */
int inventory_find(struct inventory *inventory, const struct inventory_options *options,
                   struct err *err);
void inventory_done(struct inventory *inventory);

/* Appends a device kind; `spare` more pointers fit without another allocation. */
GresInventory *inventory_add_gres(struct inventory *inventory, const char *name, const char *type);

/* "0-3" of abstract CPUs becomes "0,2,4,6" of the kernel's; false when one is not there. */
bool inventory_map_cpus(const struct inventory *inventory, const char *abstract, struct str *out);

/* As `slurmd -C` prints it: one line of slurm.conf for this node, and how long it has been up. */
void inventory_print(const NodeInventory *node, const char *name, int64_t up_s, struct str *out);

#endif
