/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_nvml.c - what only NVIDIA's management library knows: memory and NVLink
 *
 * Loaded when it is there. The few declarations are ours, by the library's published interface.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "spurd/node/inventory_priv.h"

enum { NVML_OK = 0, NVML_LINKS = 18, NVML_REMOTE_SWITCH = 2 };

typedef void *nvml_device;
struct nvml_memory {
    unsigned long long total, free, used;
};
struct nvml_pci {
    char legacy[16];
    unsigned domain, bus, device, pci_device, pci_subsystem;
    char bus_id[32];
};

struct nvml {
    void *handle;
    int (*init)(void);
    int (*shutdown)(void);
    int (*by_pci)(const char *, nvml_device *);
    int (*memory)(nvml_device, struct nvml_memory *);
    int (*link_state)(nvml_device, unsigned, unsigned *);
    int (*link_remote)(nvml_device, unsigned, struct nvml_pci *);
    int (*link_kind)(nvml_device, unsigned, unsigned *); /* may be NULL: older libraries */
};

static bool load(struct nvml *nvml, const char *library)
{
    *nvml = (struct nvml){ .handle = dlopen(library, RTLD_NOW | RTLD_LOCAL) };
    if (!nvml->handle)
        return false;
    const struct {
        const char *name;
        void *place;
    } symbols[] = {
        { "nvmlInit_v2", &nvml->init },
        { "nvmlShutdown", &nvml->shutdown },
        { "nvmlDeviceGetHandleByPciBusId_v2", &nvml->by_pci },
        { "nvmlDeviceGetMemoryInfo", &nvml->memory },
        { "nvmlDeviceGetNvLinkState", &nvml->link_state },
        { "nvmlDeviceGetNvLinkRemotePciInfo_v2", &nvml->link_remote },
        { "nvmlDeviceGetNvLinkRemoteDeviceType", &nvml->link_kind },
    };
    for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
        void *found = dlsym(nvml->handle, symbols[i].name);
        memcpy(symbols[i].place, &found, sizeof(found));
    }
    if (nvml->init && nvml->shutdown && nvml->by_pci && nvml->memory && nvml->link_state &&
        nvml->link_remote && nvml->init() == NVML_OK)
        return true;
    dlclose(nvml->handle);
    return false;
}

/* NVML writes the domain with eight digits; the kernel with four. */
static void short_address(const char *bus_id, char out[32])
{
    const char *colon = strchr(bus_id, ':');
    size_t skip = colon && colon - bus_id == 8 ? 4 : 0;

    snprintf(out, 32, "%.31s", bus_id + skip);
}

/* Through a switch every GPU reaches every other that is on one. */
static bool read_links(const struct nvml *nvml, nvml_device device, const struct gpu *gpu,
                       struct gpus *gpus)
{
    bool on_switch = false;

    for (unsigned link = 0; link < NVML_LINKS; link++) {
        unsigned active = 0, kind = 0;
        struct nvml_pci remote = { 0 };
        char address[32];
        if (nvml->link_state(device, link, &active) != NVML_OK || !active)
            continue;
        if (nvml->link_kind && nvml->link_kind(device, link, &kind) == NVML_OK &&
            kind == NVML_REMOTE_SWITCH) {
            on_switch = true;
            continue;
        }
        if (nvml->link_remote(device, link, &remote) == NVML_OK) {
            short_address(remote.bus_id, address);
            gpus_add_pair(gpus, gpu->pci, address);
        }
    }
    return on_switch;
}

void gpu_nvml_refine(const char *library, struct gpus *gpus)
{
    struct nvml nvml;
    VEC(size_t) switched = { 0 };
    bool any = false;

    vec_each (struct gpu, gpu, &gpus->list)
        any = any || strstr(gpu->file, "nvidia");
    if (!any || !load(&nvml, library))
        return;
    for (size_t i = 0; i < gpus->list.len; i++) {
        struct gpu *gpu = &gpus->list.items[i];
        struct nvml_memory memory;
        nvml_device device;
        if (!strstr(gpu->file, "nvidia") || nvml.by_pci(gpu->pci, &device) != NVML_OK)
            continue;
        if (nvml.memory(device, &memory) == NVML_OK)
            gpu->mem_bytes = memory.total;
        if (read_links(&nvml, device, gpu, gpus))
            vec_push(&switched, i);
    }
    for (size_t i = 0; i < switched.len; i++) {
        for (size_t k = i + 1; k < switched.len; k++)
            gpus_add_pair(gpus, gpus->list.items[switched.items[i]].pci,
                          gpus->list.items[switched.items[k]].pci);
    }
    vec_done(&switched);
    nvml.shutdown();
    dlclose(nvml.handle);
}
