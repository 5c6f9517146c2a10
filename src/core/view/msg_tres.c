// SPDX-License-Identifier: Apache-2.0
/*
 * msg_tres.c - what a job asks for and has, in numbers and as TRES with what they are billed as
 */
#include "core/view/msg_fields.h"
#include "core/view/view.h"

/* What a job has or asks for, added up over its nodes. */
struct sums {
    uint64_t nodes, cpus, tasks, mem_mb, billing;
    struct {
        const char *name;
        uint64_t count;
    } gres[TAKE_GRES];
    size_t gres_count;
};

static void add_gres(struct sums *sums, const char *name, uint64_t count)
{
    size_t i = 0;

    while (i < sums->gres_count && !str_eq(sums->gres[i].name, name))
        i++;
    if (i == TAKE_GRES)
        return;
    sums->gres[i].name = name;
    sums->gres[i].count += count;
    sums->gres_count = MAX(sums->gres_count, i + 1);
}

static void sum_given(const struct job_run *run, struct sums *out)
{
    out->nodes = run_nodes(run);
    for (unsigned i = 0; i < run->count; i++) {
        const struct job_part *part = &run->parts[i];
        if (part->left || part->spare)
            continue;
        out->cpus += part->cpus;
        out->mem_mb += part->mem_mb;
        out->tasks += part->tasks;
        for (size_t g = 0; g < part->gres_count; g++)
            add_gres(out, part->gres[g].name, part->gres[g].count);
    }
}

static void sum_asked(const struct state *state, const struct job *job, struct sums *out)
{
    const struct shape *shape = job->shape;
    const struct need *need = shape_needs(state, job->shape);

    out->nodes = shape->min_nodes - shape->spare;
    out->cpus = shape_cpus(shape) / shape->min_nodes * out->nodes +
                (shape->spare ? 0 : shape_cpus(shape) % shape->min_nodes);
    out->tasks = shape->tasks / shape->min_nodes * out->nodes +
                 (shape->spare ? 0 : shape->tasks % shape->min_nodes);
    out->mem_mb = need->mem_per_node_mb * out->nodes + need->mem_per_cpu_mb * out->cpus +
                  need->mem_per_gpu_mb * shape_gpus(shape) + shape->mem_per_task_mb * out->tasks;
    for (size_t i = 0; i < shape->gres_count; i++) {
        const struct shape_gres *gres = &shape->gres[i];
        add_gres(out, gres->name, shape_gres_all(shape, gres, out->nodes, out->tasks));
    }
}

/* "cpu=2,mem=1000M,node=1,billing=2,gres/gpu=2". Half gigabytes become G, as Slurm has it. */
static void add_tres(const struct sums *sums, struct str *out)
{
    str_add(out, "cpu=");
    str_add_u64(out, sums->cpus);
    if (sums->mem_mb) {
        bool exact = sums->mem_mb % 512 == 0 && sums->mem_mb >= 1024;
        str_add(out, ",mem=");
        str_add_u64(out, exact ? sums->mem_mb / 1024 : sums->mem_mb);
        if (exact && sums->mem_mb % 1024)
            str_add(out, ".50");
        str_add_char(out, exact ? 'G' : 'M');
    }
    str_add(out, ",node=");
    str_add_u64(out, sums->nodes);
    str_add(out, ",billing=");
    str_add_u64(out, sums->billing);
    for (size_t i = 0; i < sums->gres_count; i++) {
        str_add(out, ",gres/");
        str_add(out, sums->gres[i].name);
        str_add_char(out, '=');
        str_add_u64(out, sums->gres[i].count);
    }
}

static char *sums_text(const struct sums *sums, struct arena *arena)
{
    struct str text = { 0 };

    add_tres(sums, &text);
    char *copy = arena_strdup(arena, str_text(&text));
    str_done(&text);
    return copy;
}

/* Shared by all jobs that ask the same, where CPUs alone are billed. */
static char *asked_text(const struct state *state, const struct job *job, struct sums *asked,
                        struct arena *arena)
{
    struct shape *shape = job->shape;
    struct charge charge;

    if (partition_has_weights(state, shape_needs(state, shape)->partition)) {
        charge_asked(state, job, 0, &charge);
        asked->billing = charge.tres[TRES_BILLING];
        return sums_text(asked, arena);
    }
    asked->billing = asked->cpus;
    if (!shape->tres) {
        struct str text = { 0 };
        add_tres(asked, &text);
        shape->tres = str_take(&text);
    }
    return shape->tres;
}

static char *given_text(const struct job *job, struct sums *given, struct arena *arena)
{
    given->billing = job->run->has_billing ? job->run->billing : given->cpus;
    return sums_text(given, arena);
}

static void set_default_memory(const struct state *state, const struct job *job, JobStatus *out)
{
    const struct shape *shape = job->shape;
    const struct need *need = shape_needs(state, job->shape);

    if (shape->has_mem_per_node || shape->mem_per_cpu_mb || shape->mem_per_gpu_mb)
        return;
    if (need->mem_per_cpu_mb)
        SET(def_mem_per_cpu_mb, need->mem_per_cpu_mb);
    if (need->mem_per_node_mb)
        SET(def_mem_per_node_mb, need->mem_per_node_mb);
}

void job_tres_msg(const struct state *state, const struct job *job, struct arena *arena,
                  JobStatus *out)
{
    struct sums asked = { 0 }, given = { 0 };
    const struct sums *sums = &asked;

    sum_asked(state, job, &asked);
    out->tres_req = asked_text(state, job, &asked, arena);
    if (job->run) {
        sum_given(job->run, &given);
        sums = &given;
        out->tres_alloc = given_text(job, &given, arena);
    }
    SET(num_nodes, (uint32_t)sums->nodes);
    if (!job->run && !job->shape->spare) /* as many as its tasks take at least */
        out->num_nodes = MAX(out->num_nodes, shape_needs(state, job->shape)->least_nodes);
    SET(num_cpus, (uint32_t)MIN(sums->cpus, UINT32_MAX));
    SET(num_tasks, (uint32_t)(sums->tasks ? sums->tasks : asked.tasks));
    if (sums->mem_mb)
        SET(mem_mb, sums->mem_mb);
    set_default_memory(state, job, out);
}
