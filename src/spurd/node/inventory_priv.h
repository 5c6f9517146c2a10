/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inventory_priv.h - what the parts of the inventory share
 */
#ifndef SPURD_INVENTORY_PRIV_H
#define SPURD_INVENTORY_PRIV_H

#include "base/vec.h"
#include "spurd/node/inventory.h"

/* Between two devices; a larger number is nearer. GresInventory.links holds these. */
enum gpu_link { GPU_LINK_NONE, GPU_LINK_HOST, GPU_LINK_NUMA, GPU_LINK_SWITCH, GPU_LINK_DIRECT };

struct gpu {
    char type[64];
    char file[64];
    char pci[32];
    char uuid[64];
    char cpus[256]; /* near CPUs, the kernel's numbers */
    int numa;       /* -1: not known */
    uint64_t mem_bytes;
    unsigned order; /* among its kind: what the vendor's runtime counts by */
    int kfd_node;
};
struct gpus {
    VEC(struct gpu) list;
    struct gpu_pair {
        char a[32], b[32]; /* PCI addresses that are linked directly */
    } * pairs;
    size_t pair_count, pair_cap;
};

void gpus_done(struct gpus *gpus);
void gpus_add_pair(struct gpus *gpus, const char *a, const char *b);

void gpu_amd_find(const char *root, struct gpus *out);
void gpu_nvidia_find(const char *root, struct gpus *out);
/* Memory, order of links; does nothing when the library cannot be had. */
void gpu_nvml_refine(const char *library, struct gpus *gpus);

/* Groups by type, with link matrices, into inventory. */
void gpus_publish(struct inventory *inventory, struct gpus *gpus);

/* A small file below the root, without its last newline. */
bool root_read(const char *root, const char *path, char *out, size_t room);
/* "key value" in such a file's text. */
bool root_number(const char *text, const char *key, uint64_t *out);
/* NUMA node and near CPUs of a PCI device. */
void root_pci_near(const char *root, struct gpu *gpu);

#endif
