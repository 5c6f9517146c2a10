/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_nvml.c - a stand-in for NVIDIA's library: GPUs 0-1 linked with each other, 2-3 on a switch
 *
 * Devices are known by the bus of their PCI address, as in trees/a100-4.tree. Who uses them is in the file
 * that FAKE_NVML_USE names, a line "DEVICE PID PERCENT BYTES" each; with FAKE_NVML_BLIND the library does not
 * know processes.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

struct memory {
    unsigned long long total, free, used;
};
struct pci {
    char legacy[16];
    unsigned domain, bus, device, pci_device, pci_subsystem;
    char bus_id[32];
};

struct rates {
    unsigned gpu, memory;
};
struct process {
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance, compute_instance;
};
struct use {
    unsigned pid;
    unsigned long long time_us;
    unsigned sm, memory, encoder, decoder;
};

API int nvmlInit_v2(void);
API int nvmlDeviceGetCount_v2(unsigned *count);
API int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
API int nvmlDeviceGetMinorNumber(void *device, unsigned *out);
API int nvmlDeviceGetUtilizationRates(void *device, struct rates *out);
API int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process *out);
API int nvmlDeviceGetProcessUtilization(void *device, struct use *out, unsigned *count,
                                        unsigned long long since_us);
API int nvmlShutdown(void);
API int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **device);
API int nvmlDeviceGetMemoryInfo(void *device, struct memory *out);
API int nvmlDeviceGetNvLinkState(void *device, unsigned link, unsigned *active);
API int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned link, struct pci *out);
API int nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned link, unsigned *out);

static const unsigned buses[] = { 0x07, 0x0f, 0x87, 0x90 };

static int index_of(void *device)
{
    return (int)(intptr_t)device - 1;
}

int nvmlInit_v2(void)
{
    return 0;
}
int nvmlShutdown(void)
{
    return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **device)
{
    unsigned domain, bus;

    if (sscanf(address, "%x:%x", &domain, &bus) != 2)
        return 2;
    for (int i = 0; i < 4; i++) {
        if (buses[i] == bus) {
            *device = (void *)(intptr_t)(i + 1);
            return 0;
        }
    }
    return 6;
}
/* The users of a device, at most `room`. */
static unsigned users(void *device, struct process *out, unsigned *percents, unsigned room)
{
    const char *path = getenv("FAKE_NVML_USE");
    FILE *file = path ? fopen(path, "r") : NULL;
    unsigned count = 0, one, pid, percent;
    unsigned long long bytes;

    while (file && fscanf(file, "%u %u %u %llu", &one, &pid, &percent, &bytes) == 4) {
        if ((int)one != index_of(device) || count == room)
            continue;
        out[count] = (struct process){ .pid = pid, .bytes = bytes };
        percents[count++] = percent;
    }
    if (file)
        fclose(file);
    return count;
}

enum { USERS = 16 };

int nvmlDeviceGetMemoryInfo(void *device, struct memory *out)
{
    struct process list[USERS];
    unsigned percents[USERS], count = users(device, list, percents, USERS);

    *out = (struct memory){ .total = 85899345920ULL };
    for (unsigned i = 0; i < count; i++)
        out->used += list[i].bytes;
    return 0;
}
int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = 4;
    return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = (void *)(intptr_t)(index + 1);
    return index < 4 ? 0 : 2;
}
int nvmlDeviceGetMinorNumber(void *device, unsigned *out)
{
    *out = (unsigned)index_of(device);
    return 0;
}
int nvmlDeviceGetUtilizationRates(void *device, struct rates *out)
{
    struct process list[USERS];
    unsigned percents[USERS], count = users(device, list, percents, USERS);

    *out = (struct rates){ 0 };
    for (unsigned i = 0; i < count; i++)
        out->gpu += percents[i];
    return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process *out)
{
    unsigned percents[USERS];

    if (getenv("FAKE_NVML_BLIND"))
        return 3;
    *count = users(device, out, percents, *count < USERS ? *count : USERS);
    return 0;
}
int nvmlDeviceGetProcessUtilization(void *device, struct use *out, unsigned *count,
                                    unsigned long long since_us)
{
    struct process list[USERS];
    unsigned percents[USERS], found = users(device, list, percents, USERS);

    for (unsigned i = 0; i < found && i < *count; i++)
        out[i] = (struct use){ .pid = list[i].pid, .time_us = since_us + 1, .sm = percents[i] };
    *count = found;
    return 0;
}
int nvmlDeviceGetNvLinkState(void *device, unsigned link, unsigned *active)
{
    (void)device;
    *active = link < 2;
    return link < 12 ? 0 : 3;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned link, struct pci *out)
{
    int other = index_of(device) ^ 1;

    (void)link;
    memset(out, 0, sizeof(*out));
    snprintf(out->bus_id, sizeof(out->bus_id), "00000000:%02X:00.0", buses[other]);
    return 0;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned link, unsigned *out)
{
    (void)link;
    *out = index_of(device) >= 2 ? 2 : 0;
    return 0;
}
