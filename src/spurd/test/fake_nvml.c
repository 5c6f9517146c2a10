/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_nvml.c - a stand-in for NVIDIA's library: GPUs 0-1 linked with each other, 2-3 on a switch
 *
 * Devices are known by the bus of their PCI address, as in trees/a100-4.tree.
 */
#include <stdint.h>
#include <stdio.h>
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

API int nvmlInit_v2(void);
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
int nvmlDeviceGetMemoryInfo(void *device, struct memory *out)
{
    (void)device;
    *out = (struct memory){ .total = 85899345920ULL };
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
