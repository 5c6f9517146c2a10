/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml_main.c - spurd-nvml: writes down, again and again, what NVIDIA's GPUs do
 *
 *   spurd-nvml LIBRARY DIR MILLISECONDS
 *
 * A program of its own, because supervisors are static and spurd is not to depend on a driver's library
 * that may hang or crash. It runs while jobs have such GPUs, and ends with its standard input: with spurd.
 *
 * DIR/nvidiaN (as in /dev/nvidiaN) has a line "device PERCENT BYTES" and, unless the driver does not know
 * them, "processes" and then "PID PERCENT BYTES" for each. Files appear whole.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"

enum { NVML_OK = 0, NVML_SMALL = 7, DEVICES_MAX = 64, PROCESSES_MAX = 1024 };

typedef void *nvml_device;
struct nvml_memory {
    unsigned long long total, free, used;
};
struct nvml_rates {
    unsigned gpu, memory;
};
struct nvml_process { /* of version 2 and 3 of the call */
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance, compute_instance;
};
struct nvml_use {
    unsigned pid;
    unsigned long long time_us;
    unsigned sm, memory, encoder, decoder;
};

static struct {
    int (*init)(void);
    int (*count)(unsigned *);
    int (*by_index)(unsigned, nvml_device *);
    int (*minor)(nvml_device, unsigned *);
    int (*memory)(nvml_device, struct nvml_memory *);
    int (*rates)(nvml_device, struct nvml_rates *);
    int (*compute)(nvml_device, unsigned *, struct nvml_process *);  /* this one and the next two */
    int (*graphics)(nvml_device, unsigned *, struct nvml_process *); /* may be NULL */
    int (*use)(nvml_device, struct nvml_use *, unsigned *, unsigned long long);
} nvml;

static const struct {
    const char *name, *older;
    void *place;
    bool needed;
} symbols[] = {
    { "nvmlInit_v2", NULL, &nvml.init, true },
    { "nvmlDeviceGetCount_v2", NULL, &nvml.count, true },
    { "nvmlDeviceGetHandleByIndex_v2", NULL, &nvml.by_index, true },
    { "nvmlDeviceGetMinorNumber", NULL, &nvml.minor, true },
    { "nvmlDeviceGetMemoryInfo", NULL, &nvml.memory, true },
    { "nvmlDeviceGetUtilizationRates", NULL, &nvml.rates, true },
    { "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2",
      &nvml.compute, false },
    { "nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2",
      &nvml.graphics, false },
    { "nvmlDeviceGetProcessUtilization", NULL, &nvml.use, false },
};

static const char *load(const char *library)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

    if (!handle)
        return dlerror();
    for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
        void *found = dlsym(handle, symbols[i].name);
        if (!found && symbols[i].older)
            found = dlsym(handle, symbols[i].older);
        if (!found && symbols[i].needed)
            return symbols[i].name;
        memcpy(symbols[i].place, &found, sizeof(found));
    }
    return nvml.init() == NVML_OK ? NULL : "nvmlInit";
}

/* One process on one GPU. */
struct seen {
    unsigned pid, percent;
    uint64_t bytes;
};

struct seen_list {
    struct seen items[2 * PROCESSES_MAX];
    size_t len;
};

static struct seen *seen_of(struct seen_list *list, unsigned pid)
{
    for (size_t i = 0; i < list->len; i++) {
        if (list->items[i].pid == pid)
            return &list->items[i];
    }
    if (list->len == ARRAY_LEN(list->items))
        return &list->items[list->len - 1];
    list->items[list->len] = (struct seen){ .pid = pid };
    return &list->items[list->len++];
}

static bool add_processes(nvml_device device, struct seen_list *list,
                          int (*call)(nvml_device, unsigned *, struct nvml_process *))
{
    static struct nvml_process found[PROCESSES_MAX];
    unsigned count = PROCESSES_MAX;

    if (!call || call(device, &count, found) != NVML_OK)
        return false;
    for (unsigned i = 0; i < MIN(count, (unsigned)PROCESSES_MAX); i++) {
        if (found[i].bytes != UINT64_MAX) /* not known */
            seen_of(list, found[i].pid)->bytes += found[i].bytes;
    }
    return true;
}

/* The driver keeps several samples of each; the newest that it has since `since_us` counts. */
static void add_use(nvml_device device, struct seen_list *list, unsigned long long *since_us)
{
    static struct nvml_use found[PROCESSES_MAX];
    unsigned count = PROCESSES_MAX;
    unsigned long long newest = *since_us;

    if (!nvml.use || nvml.use(device, found, &count, *since_us) != NVML_OK)
        return;
    for (unsigned i = 0; i < MIN(count, (unsigned)PROCESSES_MAX); i++) {
        if (found[i].pid)
            seen_of(list, found[i].pid)->percent = MIN(found[i].sm, 100U);
        newest = MAX(newest, found[i].time_us);
    }
    *since_us = newest;
}

static void write_device(const char *dir, nvml_device device, unsigned long long *since_us)
{
    static struct seen_list list;
    struct nvml_rates rates = { 0 };
    struct nvml_memory memory = { 0 };
    char path[512], fresh[520];
    unsigned minor;

    if (nvml.minor(device, &minor) != NVML_OK)
        return;
    nvml.rates(device, &rates);
    nvml.memory(device, &memory);
    snprintf(path, sizeof(path), "%s/nvidia%u", dir, minor);
    snprintf(fresh, sizeof(fresh), "%s.new", path);
    FILE *file = fopen(fresh, "we");
    if (!file)
        return;
    fprintf(file, "device %u %llu\n", rates.gpu, memory.used);
    list.len = 0;
    if (add_processes(device, &list, nvml.compute)) {
        add_processes(device, &list, nvml.graphics);
        add_use(device, &list, since_us);
        fprintf(file, "processes\n");
        for (size_t i = 0; i < list.len; i++)
            fprintf(file, "%u %u %" PRIu64 "\n", list.items[i].pid, list.items[i].percent,
                    list.items[i].bytes);
    }
    if (fclose(file) == 0)
        rename(fresh, path);
}

int main(int argc, char **argv)
{
    unsigned long long since_us[DEVICES_MAX] = { 0 };
    struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

    if (argc != 4) {
        fprintf(stderr, "usage: spurd-nvml LIBRARY DIR MILLISECONDS\n");
        return 2;
    }
    const char *wrong = load(argv[1]);
    if (wrong) {
        fprintf(stderr, "spurd-nvml: %s: %s\n", argv[1], wrong);
        return 1;
    }
    int every_ms = MAX(atoi(argv[3]), 100);
    do {
        unsigned count = 0;
        nvml.count(&count);
        for (unsigned i = 0; i < MIN(count, (unsigned)DEVICES_MAX); i++) {
            nvml_device device;
            if (nvml.by_index(i, &device) == NVML_OK)
                write_device(argv[2], device, &since_us[i]);
        }
    } while (poll(&in, 1, every_ms) == 0);
    return 0;
}
