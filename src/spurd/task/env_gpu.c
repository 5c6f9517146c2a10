/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env_gpu.c - which GPUs a job may use, in the words of each vendor's runtime
 *
 * ROCm's runtime numbers devices after ROCR_VISIBLE_DEVICES has taken some away, and reads
 * CUDA_VISIBLE_DEVICES too: setting both hides everything. So a variable is set only for the make
 * that a node has, and all of them where the make is not known (fake devices, as Slurm does it).
 */
#include <string.h>

#include "base/bitset.h"
#include "base/limits.h"
#include "spurd/task/env_priv.h"

enum gpu_make { GPU_ANY, GPU_AMD, GPU_NVIDIA };

static enum gpu_make make_of(const struct env_job *job)
{
    for (size_t i = 0; job->found && i < job->found->n_gres; i++) {
        const GresInventory *gres = job->found->gres[i];
        if (!str_eq(gres->name, "gpu") || gres->n_files == 0)
            continue;
        if (strstr(gres->files[0], "/dev/dri/") || strstr(gres->files[0], "/dev/kfd"))
            return GPU_AMD;
        if (strstr(gres->files[0], "/dev/nvidia"))
            return GPU_NVIDIA;
    }
    return GPU_ANY;
}

static uint64_t total(const struct env_job *job, const char *name)
{
    uint64_t count = 0;

    for (size_t i = 0; i < job->here->n_gres; i++)
        count += str_eq(job->here->gres[i]->name, name) ? job->here->gres[i]->count : 0;
    return count;
}

/* GPUs, and shares of them: the index of a share is that of its GPU. */
static bool is_of_gpu(const GresAlloc *gres)
{
    return str_eq(gres->name, "gpu") || str_eq(gres->name, "shard") || str_eq(gres->name, "mps");
}

/* Devices of one name are numbered over all its types; an allocation counts within one type. */
static size_t first_of_type(const struct env_job *job, const GresAlloc *alloc)
{
    size_t first = 0;

    for (size_t i = 0; job->found && i < job->found->n_gres; i++) {
        const GresInventory *gres = job->found->gres[i];
        if (!str_eq(gres->name, "gpu"))
            continue;
        if (str_eq(gres->type, alloc->type))
            return first;
        first += gres->count;
    }
    return 0;
}

bool env_gpu_indexes(const struct env_job *job, struct str *out)
{
    struct bitset set;
    const char *comma = "";

    if (!job->here || total(job, "gpu") + total(job, "shard") + total(job, "mps") == 0)
        return false;
    bitset_init(&set, LIMIT_GRES_PER_NODE);
    for (size_t i = 0; i < job->here->n_gres; i++) {
        const GresAlloc *gres = job->here->gres[i];
        struct bitset part;
        if (!is_of_gpu(gres) || str_is_empty(gres->index))
            continue;
        bitset_init(&part, LIMIT_GRES_PER_NODE);
        if (bitset_parse(&part, gres->index)) {
            size_t first = first_of_type(job, gres);
            bitset_each (index, &part) {
                if (first + index < LIMIT_GRES_PER_NODE)
                    bitset_add(&set, first + index);
            }
        }
        bitset_done(&part);
    }
    size_t before = out->len;
    bitset_each (index, &set) {
        str_addf(out, "%s%zu", comma, index);
        comma = ",";
    }
    bitset_done(&set);
    return out->len > before;
}

bool env_gpu_count(const struct env_job *job, struct str *out)
{
    uint64_t count = job->here ? total(job, "gpu") : 0;

    str_add_u64(out, count);
    return count > 0;
}

bool env_shards(const struct env_job *job, struct str *out)
{
    uint64_t count = job->here ? total(job, "shard") : 0;

    str_add_u64(out, count);
    return count > 0;
}

static uint64_t here_is(const struct env_job *job, const char *name)
{
    uint64_t count = 0;

    for (size_t i = 0; job->found && i < job->found->n_gres; i++)
        count += str_eq(job->found->gres[i]->name, name) ? job->found->gres[i]->count : 0;
    return count;
}

bool env_mps_percent(const struct env_job *job, struct str *out)
{
    uint64_t mine = job->here ? total(job, "mps") : 0, gpus = here_is(job, "gpu");
    uint64_t each = gpus ? here_is(job, "mps") / gpus : 0; /* of one GPU */

    str_add_u64(out, mine * 100 / (each ? each : 100));
    return mine > 0;
}

/* As runtimes count them. */
static bool visible(const struct env_job *job, struct str *out)
{
    size_t before = out->len;

    if (!env_gpu_indexes(job, out))
        return false;
    return !job->gpu_local || env_gpu_renumber(out, before);
}

bool env_gpu_renumber(struct str *out, size_t from)
{
    size_t count = 1;

    for (const char *at = str_text(out) + from; *at; at++)
        count += *at == ',';
    str_truncate(out, from);
    for (size_t i = 0; i < count; i++)
        str_addf(out, "%s%zu", i ? "," : "", i);
    return true;
}

bool env_gpu_cuda(const struct env_job *job, struct str *out)
{
    return make_of(job) != GPU_AMD && visible(job, out);
}

bool env_gpu_rocr(const struct env_job *job, struct str *out)
{
    return make_of(job) != GPU_NVIDIA && visible(job, out);
}

/* HIP counts what ROCR_VISIBLE_DEVICES has left. */
bool env_gpu_hip(const struct env_job *job, struct str *out)
{
    size_t before = out->len;

    return make_of(job) == GPU_AMD && visible(job, out) && env_gpu_renumber(out, before);
}

bool env_gpu_other(const struct env_job *job, struct str *out)
{
    return make_of(job) == GPU_ANY && visible(job, out);
}
