/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_amd.c - AMD GPUs, by the topology that the kernel's compute driver (KFD) shows
 *
 * Each KFD node is a CPU or a GPU; ROCm's runtime counts GPUs in the order of these nodes. Links of
 * type 11 are xGMI.
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spurd/node/inventory_priv.h"

enum { KFD_LINK_XGMI = 11, PROPERTIES_BYTES = 8192, MAX_LINKS = 1024, MAX_NODES = 1024 };

/* PCI device numbers, public in the PCI id database. */
static const struct {
    uint64_t device;
    const char *type;
} types[] = {
    { 0x66a0, "mi50" },   { 0x66a1, "mi60" },   { 0x738c, "mi100" },  { 0x738e, "mi100" },
    { 0x7408, "mi250x" }, { 0x740c, "mi250x" }, { 0x740f, "mi210" },  { 0x74a0, "mi300a" },
    { 0x74a1, "mi300x" }, { 0x74a2, "mi308x" }, { 0x74a5, "mi325x" }, { 0x74a9, "mi300x" },
    { 0x75a0, "mi350x" }, { 0x75a3, "mi355x" },
};

static void name_type(struct gpu *gpu, uint64_t device, uint64_t target)
{
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (types[i].device == device) {
            strcpy(gpu->type, types[i].type);
            return;
        }
    }
    /* 90402 is gfx942: major, two digits of minor, two of stepping in hexadecimal */
    snprintf(gpu->type, sizeof(gpu->type), "gfx%" PRIu64 "%" PRIu64 "%" PRIx64, target / 10000,
             target / 100 % 100, target % 100);
}

static uint64_t property(const char *text, const char *key)
{
    uint64_t value = 0;

    root_number(text, key, &value);
    return value;
}

static void read_memory(const char *root, int node, struct gpu *gpu)
{
    char path[128], text[PROPERTIES_BYTES];

    for (int bank = 0; bank < 8; bank++) {
        snprintf(path, sizeof(path), "/sys/class/kfd/kfd/topology/nodes/%d/mem_banks/%d/properties",
                 node, bank);
        if (!root_read(root, path, text, sizeof(text)))
            return;
        gpu->mem_bytes += property(text, "size_in_bytes");
    }
}

/* False: a CPU, or not there. */
static bool read_node(const char *root, int node, unsigned order, struct gpu *gpu)
{
    char path[128], text[PROPERTIES_BYTES], id[32];

    snprintf(path, sizeof(path), "/sys/class/kfd/kfd/topology/nodes/%d/gpu_id", node);
    if (!root_read(root, path, id, sizeof(id)) || strcmp(id, "0") == 0 || id[0] == '\0')
        return false;
    snprintf(path, sizeof(path), "/sys/class/kfd/kfd/topology/nodes/%d/properties", node);
    if (!root_read(root, path, text, sizeof(text)))
        return false;
    *gpu = (struct gpu){ .order = order, .kfd_node = node, .numa = -1 };
    uint64_t location = property(text, "location_id");
    snprintf(gpu->pci, sizeof(gpu->pci), "%04x:%02x:%02x.%x", (unsigned)property(text, "domain"),
             (unsigned)(location >> 8 & 0xff), (unsigned)(location >> 3 & 0x1f),
             (unsigned)(location & 7));
    snprintf(gpu->file, sizeof(gpu->file), "/dev/dri/renderD%" PRIu64,
             property(text, "drm_render_minor"));
    if (property(text, "unique_id"))
        snprintf(gpu->uuid, sizeof(gpu->uuid), "GPU-%016" PRIx64, property(text, "unique_id"));
    name_type(gpu, property(text, "device_id"), property(text, "gfx_target_version"));
    read_memory(root, node, gpu);
    root_pci_near(root, gpu);
    return true;
}

static const struct gpu *by_node(const struct gpus *gpus, size_t first, uint64_t node)
{
    for (size_t i = first; i < gpus->list.len; i++) {
        if (gpus->list.items[i].kfd_node == (int)node)
            return &gpus->list.items[i];
    }
    return NULL;
}

static void read_links(const char *root, struct gpus *gpus, size_t first)
{
    char path[128], text[PROPERTIES_BYTES];

    for (size_t i = first; i < gpus->list.len; i++) {
        for (int link = 0; link < MAX_LINKS; link++) {
            snprintf(path, sizeof(path),
                     "/sys/class/kfd/kfd/topology/nodes/%d/io_links/%d/properties",
                     gpus->list.items[i].kfd_node, link);
            if (!root_read(root, path, text, sizeof(text)))
                break;
            const struct gpu *to = by_node(gpus, first, property(text, "node_to"));
            if (to && property(text, "type") == KFD_LINK_XGMI)
                gpus_add_pair(gpus, gpus->list.items[i].pci, to->pci);
        }
    }
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

void gpu_amd_find(const char *root, struct gpus *out)
{
    CLEANUP(freep)
    char *path = mem_printf("%s/sys/class/kfd/kfd/topology/nodes", root ? root : "");
    DIR *dir = opendir(path);
    struct dirent *item;
    VEC(int) nodes = { 0 };
    size_t first = out->list.len;
    unsigned order = 0;
    struct gpu gpu;

    if (!dir)
        return;
    while ((item = readdir(dir)) && nodes.len < MAX_NODES) {
        if (item->d_name[0] >= '0' && item->d_name[0] <= '9')
            vec_push(&nodes, atoi(item->d_name));
    }
    closedir(dir);
    qsort(nodes.items, nodes.len, sizeof(int), by_number);
    vec_each (int, node, &nodes) {
        if (read_node(root, *node, order, &gpu)) {
            vec_push(&out->list, gpu);
            order++;
        }
    }
    vec_done(&nodes);
    read_links(root, out, first);
}
