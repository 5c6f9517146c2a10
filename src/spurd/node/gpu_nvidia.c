/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_nvidia.c - NVIDIA GPUs, by what their driver shows in /proc
 */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spurd/node/inventory_priv.h"

enum { INFORMATION_BYTES = 8192 };

/* The text after "Key:" and its blanks, up to the end of the line. */
static bool value_of(const char *text, const char *key, char *out, size_t room)
{
    const char *at = strstr(text, key);

    if (!at)
        return false;
    at += strlen(key);
    at += strspn(at, ": \t");
    snprintf(out, room, "%.*s", (int)strcspn(at, "\n"), at);
    return true;
}

/*
 * "NVIDIA A100-SXM4-80GB" is a100, "NVIDIA GeForce RTX 4090" is rtx4090: the short names that
 * people write in --gres.
 */
static void name_type(const char *model, char *out, size_t room)
{
    static const char *const makers[] = { "NVIDIA ", "Tesla ", "GeForce ", "Quadro " };
    static const char *const families[] = { "rtx", "gtx", "titan" };
    size_t len = 0;

    for (size_t i = 0; i < ARRAY_LEN(makers); i++) {
        if (str_istarts(model, makers[i]))
            model += strlen(makers[i]);
    }
    for (bool more = true; more && len + 1 < room;) {
        while (isalnum((unsigned char)*model) && len + 1 < room)
            out[len++] = (char)tolower((unsigned char)*model++);
        out[len] = '\0';
        more = false;
        for (size_t i = 0; i < ARRAY_LEN(families); i++)
            more = more || str_eq(out, families[i]);
        more = more && *model == ' ';
        model += more;
    }
    if (len == 0)
        snprintf(out, room, "nvidia");
}

static bool read_gpu(const char *root, const char *pci, struct gpu *gpu)
{
    char path[300], text[INFORMATION_BYTES], model[128], minor[16];

    snprintf(path, sizeof(path), "/proc/driver/nvidia/gpus/%.200s/information", pci);
    if (!root_read(root, path, text, sizeof(text)) ||
        !value_of(text, "Model", model, sizeof(model)))
        return false;
    *gpu = (struct gpu){ .numa = -1 };
    snprintf(gpu->pci, sizeof(gpu->pci), "%s", pci);
    value_of(text, "GPU UUID", gpu->uuid, sizeof(gpu->uuid));
    if (value_of(text, "Device Minor", minor, sizeof(minor)))
        gpu->order = (unsigned)atoi(minor);
    snprintf(gpu->file, sizeof(gpu->file), "/dev/nvidia%u", gpu->order);
    name_type(model, gpu->type, sizeof(gpu->type));
    root_pci_near(root, gpu);
    return true;
}

void gpu_nvidia_find(const char *root, struct gpus *out)
{
    CLEANUP(freep) char *path = mem_printf("%s/proc/driver/nvidia/gpus", root ? root : "");
    DIR *dir = opendir(path);
    struct dirent *item;
    struct gpu gpu;

    if (!dir)
        return;
    while ((item = readdir(dir))) {
        if (item->d_name[0] != '.' && strlen(item->d_name) < sizeof(gpu.pci) &&
            read_gpu(root, item->d_name, &gpu))
            vec_push(&out->list, gpu);
    }
    closedir(dir);
}
