/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inventory.c - what this machine has: CPUs, memory, disk
 */
#include "spurd/node/inventory.h"

#include <errno.h>
#include <hwloc.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

#include "base/bitset.h"
#include "base/limits.h"
#include "spurd/node/inventory_priv.h"
#include "sys/files.h"

enum { SMALL_FILE = 64 * 1024, MEGA = 1024 * 1024 };

bool root_read(const char *root, const char *path, char *out, size_t room)
{
    CLEANUP(freep) char *full = mem_printf("%s%s", root ? root : "", path);
    CLEANUP(str_done) struct str text = { 0 };

    if (file_read(full, SMALL_FILE, &text, NULL) < 0 || text.len >= room)
        return false;
    while (text.len > 0 && (text.data[text.len - 1] == '\n' || text.data[text.len - 1] == ' '))
        str_truncate(&text, text.len - 1);
    strcpy(out, str_text(&text));
    return true;
}

bool root_number(const char *text, const char *key, uint64_t *out)
{
    size_t len = strlen(key);

    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, len) == 0 && (line[len] == ' ' || line[len] == ':'))
            return sscanf(line + len + 1, "%" SCNu64, out) == 1;
        if (!*line)
            break;
    }
    return false;
}

static void find_memory(NodeInventory *node, const char *root)
{
    char text[8192];
    uint64_t kb;

    if (root_read(root, "/proc/meminfo", text, sizeof(text)) &&
        root_number(text, "MemTotal", &kb)) {
        node->has_memory_mb = true;
        node->memory_mb = kb / 1024;
    }
}

static void find_disk(NodeInventory *node, const char *path)
{
    struct statvfs info;

    if (statvfs(path ? path : "/tmp", &info) == 0) {
        node->has_tmp_disk_mb = true;
        node->tmp_disk_mb = (uint64_t)info.f_blocks * info.f_frsize / MEGA;
    }
}

static void find_numa(struct inventory *inventory, hwloc_topology_t topology)
{
    NodeInventory *node = &inventory->node;
    int count = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);

    node->numa_cpus = ARENA_ARRAY(&inventory->arena, char *, MAX(count, 1));
    inventory->numa_map = ARENA_ARRAY(&inventory->arena, unsigned, MAX(count, 1));
    for (int i = 0; i < count; i++) {
        hwloc_obj_t obj = hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, (unsigned)i);
        char *text = NULL;
        if (hwloc_bitmap_list_asprintf(&text, obj->cpuset) >= 0) {
            inventory->numa_map[node->n_numa_cpus] = obj->os_index;
            node->numa_cpus[node->n_numa_cpus++] = arena_strdup(&inventory->arena, text);
        }
        free(text);
    }
}

/* Sockets and cores that are not all alike are counted by the first, as Slurm does. */
static int find_cpus(struct inventory *inventory, hwloc_topology_t topology, struct err *err)
{
    NodeInventory *node = &inventory->node;
    int pus = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
    int cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    int sockets = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE);

    if (pus <= 0 || pus > LIMIT_CPUS_PER_NODE)
        return err_set(err, ERR_INTERNAL, "hwloc found %d CPUs", pus);
    sockets = MAX(sockets, 1);
    cores = cores > 0 ? cores : pus;
    node->has_cpus = node->has_boards = node->has_sockets = true;
    node->has_cores_per_socket = node->has_threads_per_core = true;
    node->cpus = (uint32_t)pus;
    node->boards = 1;
    node->sockets = (uint32_t)sockets;
    node->cores_per_socket = (uint32_t)MAX(cores / sockets, 1);
    node->threads_per_core = (uint32_t)MAX(pus / cores, 1);
    inventory->cpu_map = ARENA_ARRAY(&inventory->arena, unsigned, pus);
    for (int i = 0; i < pus; i++)
        inventory->cpu_map[i] =
            hwloc_get_obj_by_type(topology, HWLOC_OBJ_PU, (unsigned)i)->os_index;
    find_numa(inventory, topology);
    return 0;
}

static int load_cpus(struct inventory *inventory, const char *root, struct err *err)
{
    hwloc_topology_t topology;
    CLEANUP(freep) char *before = mem_strdup(getenv("HWLOC_FSROOT"));

    if (!str_is_empty(root))
        setenv("HWLOC_FSROOT", root, 1);
    if (hwloc_topology_init(&topology) < 0)
        return err_errno(err, errno, "hwloc");
    /* A cgroup that spurd happens to be in says nothing about the machine. */
    hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    int ret = hwloc_topology_load(topology) < 0 ? err_errno(err, errno, "hwloc")
                                                : find_cpus(inventory, topology, err);
    hwloc_topology_destroy(topology);
    if (before)
        setenv("HWLOC_FSROOT", before, 1);
    else
        unsetenv("HWLOC_FSROOT");
    return ret;
}

static void find_system(struct inventory *inventory)
{
    struct utsname name;

    if (uname(&name) < 0)
        return;
    inventory->node.arch = arena_strdup(&inventory->arena, name.machine);
    inventory->node.os =
        arena_printf(&inventory->arena, "%s %s %s", name.sysname, name.release, name.version);
}

GresInventory *inventory_add_gres(struct inventory *inventory, const char *name, const char *type)
{
    NodeInventory *node = &inventory->node;
    GresInventory **list = ARENA_ARRAY(&inventory->arena, GresInventory *, node->n_gres + 1);
    GresInventory *gres = ARENA_NEW(&inventory->arena, GresInventory);

    gres_inventory__init(gres);
    gres->name = arena_strdup(&inventory->arena, name);
    gres->type = str_is_empty(type) ? NULL : arena_strdup(&inventory->arena, type);
    if (node->n_gres)
        memcpy(list, node->gres, node->n_gres * sizeof(*list));
    list[node->n_gres++] = gres;
    node->gres = list;
    return gres;
}

int inventory_find(struct inventory *inventory, const struct inventory_options *options,
                   struct err *err)
{
    struct gpus gpus = { 0 };
    const char *root = options->root;

    memset(inventory, 0, sizeof(*inventory));
    arena_init(&inventory->arena);
    node_inventory__init(&inventory->node);
    if (load_cpus(inventory, root, err) < 0)
        return err_wrap(err, "inventory");
    find_memory(&inventory->node, root);
    find_disk(&inventory->node, options->tmp_fs);
    find_system(inventory);
    gpu_amd_find(root, &gpus);
    gpu_nvidia_find(root, &gpus);
    if (options->nvml || str_is_empty(root))
        gpu_nvml_refine(options->nvml ? options->nvml : "libnvidia-ml.so.1", &gpus);
    gpus_publish(inventory, &gpus);
    gpus_done(&gpus);
    return 0;
}

void inventory_done(struct inventory *inventory)
{
    arena_done(&inventory->arena);
}

bool inventory_map_cpus(const struct inventory *inventory, const char *abstract, struct str *out)
{
    struct bitset asked, mapped;
    bool ok;

    bitset_init(&asked, inventory->node.cpus);
    bitset_init(&mapped, LIMIT_CPU_NUMBER);
    ok = bitset_parse(&asked, abstract) && !bitset_is_empty(&asked);
    bitset_each (cpu, &asked) {
        if (inventory->cpu_map[cpu] < LIMIT_CPU_NUMBER)
            bitset_add(&mapped, inventory->cpu_map[cpu]);
    }
    if (ok)
        bitset_format(&mapped, out);
    bitset_done(&asked);
    bitset_done(&mapped);
    return ok;
}

void inventory_print(const NodeInventory *node, const char *name, int64_t up_s, struct str *out)
{
    str_addf(out,
             "NodeName=%s CPUs=%u Boards=%u SocketsPerBoard=%u CoresPerSocket=%u "
             "ThreadsPerCore=%u RealMemory=%" PRIu64,
             name, node->cpus, node->boards, node->sockets / MAX(node->boards, 1U),
             node->cores_per_socket, node->threads_per_core, node->memory_mb);
    if (node->tmp_disk_mb)
        str_addf(out, " TmpDisk=%" PRIu64, node->tmp_disk_mb);
    for (size_t i = 0; i < node->n_gres; i++) {
        const GresInventory *gres = node->gres[i];
        str_addf(out, "%s%s%s%s:%" PRIu64, i ? "," : " Gres=", gres->name, gres->type ? ":" : "",
                 gres->type ? gres->type : "", gres->count);
    }
    str_addf(out, "\nUpTime=%" PRId64 "-%02d:%02d:%02d\n", up_s / 86400, (int)(up_s / 3600 % 24),
             (int)(up_s / 60 % 60), (int)(up_s % 60));
}
