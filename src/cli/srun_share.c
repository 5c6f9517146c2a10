// SPDX-License-Identifier: Apache-2.0
/*
 * srun_share.c - which part of the allocation a step asks for, and how its tasks are bound
 *
 * An allocation of srun's own was made for its one step, which has all of it. Inside another's, what the
 * command line says counts; the environment there describes the allocation, not the step.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/hostlist.h"
#include "base/limits.h"
#include "cli/srun.h"
#include "schema/bind.h"
#include "sys/files.h"

enum { HOSTFILE_BYTES = 16 * 1024 * 1024 };

static const char *given(const struct srun *srun, const char *name)
{
    const char *value = NULL;

    return alloc_given(&srun->request, name, &value) ? value : NULL;
}

/* cpu=2,gres/gpu:1: CPUs into the request, the rest as devices of each task. */
static void add_tres(struct srun *srun, const char *list, JobSpec *out, StepRequest *request)
{
    struct span word;

    while (str_next(&list, ",", &word)) {
        CLEANUP(freep) char *text = mem_strndup(word.ptr, word.len);
        uint64_t count;
        if (str_istarts(text, "gres/")) {
            job_request_add_gres(out, text + 5, GRES_PER_TASK, false, NULL);
        } else if ((str_istarts(text, "cpu=") || str_istarts(text, "cpu:")) &&
                   str_to_u64(text + 4, UINT16_MAX, &count) && count > 0) {
            request->has_cpus_per_task = true;
            request->cpus_per_task = (uint32_t)count;
        } else {
            cli_say(&srun->cli, "warning: --tres-per-task: %s has no meaning for a step", text);
        }
    }
}

/* Devices that each task of the job was to have are those of each task of the step too. */
static void add_devices_of_job(const char *list, JobSpec *out)
{
    struct span word;

    while (list && str_next(&list, ",", &word)) {
        CLEANUP(freep) char *text = mem_strndup(word.ptr, word.len);
        if (str_istarts(text, "gres/"))
            job_request_add_gres(out, text + 5, GRES_PER_TASK, false, NULL);
    }
}

static void add_gres(struct srun *srun, StepRequest *request)
{
    static const struct {
        const char *name;
        GresScope scope;
        bool gpus;
    } rows[] = {
        { "gres", GRES_PER_NODE, false },         { "gpus-per-node", GRES_PER_NODE, true },
        { "gpus", GRES_PER_JOB, true },           { "gpus-per-socket", GRES_PER_SOCKET, true },
        { "gpus-per-task", GRES_PER_TASK, true },
    };
    JobSpec own = JOB_SPEC__INIT;
    const char *none = getenv("SLURM_STEP_GRES");
    bool any = false;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *value = given(srun, rows[i].name);
        any |= value != NULL;
        job_request_add_gres(&own, value, rows[i].scope, rows[i].gpus, NULL);
    }
    if (given(srun, "tres-per-task")) {
        any = true;
        add_tres(srun, given(srun, "tres-per-task"), &own, request);
    }
    if (!any && srun->request.gpus_per_task)
        job_request_add_gres(&own, srun->request.gpus_per_task, GRES_PER_TASK, true, NULL);
    else if (!any)
        add_devices_of_job(srun->request.spec->tres_per_task, &own);
    request->n_gres = own.n_gres;
    request->gres = ARENA_ARRAY(&srun->cli.arena, GresRequest *, own.n_gres + 1);
    for (size_t i = 0; i < own.n_gres; i++) {
        GresRequest *copy = request->gres[i] = ARENA_NEW(&srun->cli.arena, GresRequest);
        *copy = *own.gres[i];
        copy->name = arena_strdup(&srun->cli.arena, copy->name);
        copy->type = copy->type ? arena_strdup(&srun->cli.arena, copy->type) : NULL;
    }
    job_request_clear_gres(&own);
    request->has_no_gres = true;
    request->no_gres = own.n_gres == 0 && (str_eq(given(srun, "gres"), "none") ||
                                           (!any && none && strcmp(none, "none") == 0));
}

/* GPUs of the whole step that the request asks for; 0: it does not say so. */
static uint64_t gpus_of(const StepRequest *request)
{
    for (size_t i = 0; i < request->n_gres; i++) {
        const GresRequest *gres = request->gres[i];
        if (str_eq(gres->name, "gpu") && gres->scope == GRES_PER_JOB)
            return gres->count;
        if (str_eq(gres->name, "gpu") && gres->scope == GRES_PER_NODE && request->has_min_nodes)
            return gres->count * request->min_nodes;
    }
    return 0;
}

/* --ntasks-per-gpu: tasks from GPUs, or GPUs from tasks. */
static void settle_per_gpu(struct srun *srun, StepRequest *request)
{
    const JobSpec *spec = srun->request.spec;
    uint64_t gpus = gpus_of(request);

    if (!given(srun, "ntasks-per-gpu"))
        return;
    if (gpus && !given(srun, "ntasks")) {
        request->has_ntasks = true;
        request->ntasks = (uint32_t)MIN(gpus * spec->ntasks_per_gpu, UINT32_MAX);
    } else if (request->n_gres == 0 && request->has_ntasks) {
        GresRequest *gres = ARENA_NEW(&srun->cli.arena, GresRequest);
        gres_request__init(gres);
        gres->name = arena_strdup(&srun->cli.arena, "gpu");
        gres->has_count = gres->has_scope = true;
        gres->count = (request->ntasks + spec->ntasks_per_gpu - 1) / spec->ntasks_per_gpu;
        gres->scope = GRES_PER_JOB;
        request->gres[request->n_gres++] = gres;
    }
}

void srun_fill_share(struct srun *srun, StepRequest *request)
{
    const JobSpec *spec = srun->request.spec;

    if (srun->own)
        return;
    add_gres(srun, request);
    settle_per_gpu(srun, request);
    if (given(srun, "mem")) {
        request->has_mem_per_node_mb = true;
        request->mem_per_node_mb = spec->mem_per_node_mb;
    } else if (given(srun, "mem-per-cpu")) {
        request->has_mem_per_cpu_mb = true;
        request->mem_per_cpu_mb = spec->mem_per_cpu_mb;
    } else if (given(srun, "mem-per-gpu")) {
        request->has_mem_per_gpu_mb = true;
        request->mem_per_gpu_mb = spec->mem_per_gpu_mb;
    }
    if (given(srun, "cpus-per-gpu")) {
        request->has_cpus_per_gpu = request->exact = true;
        request->cpus_per_gpu = spec->cpus_per_gpu;
    }
    if (given(srun, "sockets-per-node") || given(srun, "extra-node-info")) {
        request->has_sockets_per_node = true;
        request->sockets_per_node = spec->sockets_per_node;
    }
    if (given(srun, "cores-per-socket") || given(srun, "extra-node-info")) {
        request->has_cores_per_socket = true;
        request->cores_per_socket = spec->cores_per_socket;
    }
    if (given(srun, "ntasks-per-core")) {
        request->has_ntasks_per_core = true;
        request->ntasks_per_core = spec->ntasks_per_core;
    }
    if (given(srun, "ntasks-per-socket")) {
        request->has_ntasks_per_socket = true;
        request->ntasks_per_socket = spec->ntasks_per_socket;
    }
    if (spec->has_threads_per_core) {
        request->has_threads_per_core = true;
        request->threads_per_core = spec->threads_per_core;
    }
}

/* What --cpu-bind says; else -B S[:C[:T]] binds tasks to the smallest that it names, as in Slurm. */
static char *implied_bind(struct srun *srun)
{
    static const char *const units[] = { "sockets", "cores", "threads" };
    const char *info = given(srun, "extra-node-info");
    char *said = srun->request.spec->cpu_bind;
    struct bind_cpu bind;
    size_t parts = 0;

    if (!info || bind_read_cpu(said, &bind, NULL) < 0 || bind.kind != BIND_DEFAULT)
        return said;
    for (const char *at = info; (at = strchr(at, ':')); at++)
        parts++;
    return parts < ARRAY_LEN(units) ? arena_printf(&srun->cli.arena, "%s%s%s", said ? said : "",
                                                   said ? "," : "", units[parts])
                                    : said;
}

static bool asks_devices(const struct srun *srun)
{
    static const char *const names[] = { "gres", "gpus", "gpus-per-node", "gpus-per-socket" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (given(srun, names[i]))
            return true;
    }
    return false;
}

/* GPUs of each task: each is bound to its own. */
static void bind_gpus(const struct srun *srun, const JobSpec *spec, StepBind *bind)
{
    JobSpec own = JOB_SPEC__INIT;
    const JobSpec *lists[] = { spec, &own };

    if (!asks_devices(srun))
        add_devices_of_job(spec->tres_per_task, &own);
    for (size_t l = 0; l < ARRAY_LEN(lists) && !bind->has_gpus_per_task; l++) {
        for (size_t i = 0; i < lists[l]->n_gres; i++) {
            const GresRequest *gres = lists[l]->gres[i];
            if (!str_eq(gres->name, "gpu") || gres->scope != GRES_PER_TASK)
                continue;
            bind->has_gpus_per_task = true;
            bind->gpus_per_task += (uint32_t)gres->count;
        }
    }
    job_request_clear_gres(&own);
}

void srun_fill_bind(struct srun *srun, StepLaunch *launch)
{
    const JobSpec *spec = srun->request.spec;
    StepBind *bind = launch->bind = ARENA_NEW(&srun->cli.arena, StepBind);

    step_bind__init(bind);
    bind->cpu_bind = implied_bind(srun);
    bind->mem_bind = spec->mem_bind;
    bind->gpu_freq = spec->gpu_freq;
    bind->gpu_bind = spec->gpu_bind ? spec->gpu_bind : spec->tres_bind;
    bind->distribution = spec->distribution;
    bind->hint = spec->hint;
    bind->has_threads_per_core = spec->has_threads_per_core;
    bind->threads_per_core = spec->threads_per_core;
    bind->has_ntasks_per_core = spec->has_ntasks_per_core;
    bind->ntasks_per_core = spec->ntasks_per_core;
    bind->has_ntasks_per_socket = spec->has_ntasks_per_socket;
    bind->ntasks_per_socket = spec->ntasks_per_socket;
    bind->has_ntasks_per_gpu = spec->has_ntasks_per_gpu;
    bind->ntasks_per_gpu = spec->ntasks_per_gpu;
    bind_gpus(srun, spec, bind);
    launch->has_nice = true;
    launch->nice = getpriority(PRIO_PROCESS, 0);
}

/* ---- --distribution=arbitrary ---- */

static int read_hosts(struct srun *srun, const char *path, struct str *out)
{
    struct err err = { 0 };

    if (file_read(path, HOSTFILE_BYTES, out, &err) < 0) {
        cli_error(&srun->cli, "SLURM_HOSTFILE: %s", err.text);
        return 1;
    }
    return 0;
}

/* Tasks are placed by a list of hosts: --distribution says so, or SLURM_HOSTFILE does and nothing else is said. */
static bool has_hosts(const struct srun *srun)
{
    const JobSpec *spec = srun->request.spec;

    if (!str_is_empty(spec->distribution))
        return str_istarts(spec->distribution, "arbitrary");
    return !str_is_empty(getenv("SLURM_HOSTFILE")) && !given(srun, "nodelist");
}

/* One host for each task, from the file or --nodelist. */
static int list_hosts(struct srun *srun, char ***out, size_t *count)
{
    const JobSpec *spec = srun->request.spec;
    const char *path = getenv("SLURM_HOSTFILE");
    CLEANUP(str_done) struct str text = { 0 };
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 };
    struct span word;
    size_t cap = 0;

    if (!path && str_is_empty(spec->nodelist)) {
        cli_error(&srun->cli, "--distribution=arbitrary needs SLURM_HOSTFILE or --nodelist");
        return 1;
    }
    if (path ? read_hosts(srun, path, &text) : (str_add(&text, spec->nodelist), 0))
        return 1;
    for (const char *cursor = str_text(&text); str_next(&cursor, "\n", &word);) {
        CLEANUP(freep) char *line = mem_strndup(word.ptr, word.len);
        struct err err = { 0 };
        line[strcspn(line, "#")] = '\0';
        char *name = str_trim(line);
        hostlist_done(&hosts);
        hosts = (struct hostlist){ 0 };
        if (*name && hostlist_parse(&hosts, name, &err) < 0) {
            cli_error(&srun->cli, "%s", err.text);
            return 1;
        }
        hostlist_each (host, &hosts) {
            if (*count == cap) {
                char **more = ARENA_ARRAY(&srun->cli.arena, char *, cap = cap * 2 + 16);
                if (*count)
                    memcpy(more, *out, *count * sizeof(char *));
                *out = more;
            }
            (*out)[(*count)++] = arena_strdup(&srun->cli.arena, host.name);
        }
    }
    if (spec->has_ntasks && given(srun, "ntasks") && spec->ntasks > *count) {
        cli_error(&srun->cli, "Required node count not satisfied: %u tasks, %zu lines of hosts",
                  spec->ntasks, *count);
        return 1;
    }
    if (spec->has_ntasks && given(srun, "ntasks"))
        *count = spec->ntasks;
    return 0;
}

int srun_read_hosts(struct srun *srun)
{
    JobSpec *spec = srun->request.spec;
    CLEANUP(str_done) struct str names = { 0 };
    uint32_t nodes = 0, most = 0;

    if (!has_hosts(srun))
        return 0;
    if (list_hosts(srun, &srun->hosts, &srun->host_count))
        return 1;
    if (srun->request.jobid || !srun->host_count)
        return 0;
    for (size_t i = 0; i < srun->host_count; i++) { /* each node once */
        bool seen = false;
        uint32_t tasks = 0;
        for (size_t k = 0; k < srun->host_count; k++) {
            bool same = strcmp(srun->hosts[i], srun->hosts[k]) == 0;
            seen = seen || (same && k < i);
            tasks += same;
        }
        most = MAX(most, tasks);
        if (seen)
            continue;
        str_addf(&names, "%s%s", nodes++ ? "," : "", srun->hosts[i]);
    }
    free(spec->nodelist);
    spec->nodelist = str_take(&names);
    spec->has_min_nodes = spec->has_max_nodes = spec->has_ntasks = true;
    spec->min_nodes = spec->max_nodes = nodes;
    spec->ntasks = (uint32_t)srun->host_count;
    spec->has_min_cpus_per_node = true; /* whichever node has most tasks has room for them */
    spec->min_cpus_per_node = MAX(spec->min_cpus_per_node,
                                  most * MAX(spec->has_cpus_per_task ? spec->cpus_per_task : 1, 1));
    return 0;
}

void srun_fill_hosts(struct srun *srun, StepRequest *request)
{
    if (!srun->host_count)
        return;
    request->hosts = srun->hosts;
    request->n_hosts = srun->host_count;
    request->has_ntasks = true;
    request->ntasks = (uint32_t)srun->host_count;
    request->has_min_nodes = request->has_max_nodes = false;
    request->nodelist = NULL;
    request->distribution = (char *)"arbitrary";
}
