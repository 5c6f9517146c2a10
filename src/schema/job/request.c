// SPDX-License-Identifier: Apache-2.0
/*
 * request.c - what several options together ask for
 */
#include "schema/request.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/size.h"

void job_request_init(struct job_request *request)
{
    *request = (struct job_request){ .spec = NEW(JobSpec) };
    job_spec__init(request->spec);
    arena_init(&request->arena);
}

void job_request_done(struct job_request *request)
{
    if (request->spec)
        job_spec__free_unpacked(request->spec, NULL);
    arena_done(&request->arena);
    vec_done(&request->given);
    *request = (struct job_request){ 0 };
}

void job_request_clear_gres(JobSpec *spec)
{
    for (size_t i = 0; i < spec->n_gres; i++)
        gres_request__free_unpacked(spec->gres[i], NULL);
    free(spec->gres);
    spec->gres = NULL;
    spec->n_gres = 0;
}

static int bad_gres(struct err *err, const char *text)
{
    return err_set(err, ERR_RANGE, "Invalid generic resource (gres) specification: %s", text);
}

/* One of "name", "name:count", "name:type", "name:type:count"; for GPUs without the name. */
static int add_one(JobSpec *spec, struct span word, GresScope scope, bool gpus_only,
                   struct err *err)
{
    char *text = mem_strndup(word.ptr, word.len), *parts[3] = { NULL }, *at = text, *save = NULL;
    uint64_t count = 1;
    size_t used = 0, first = gpus_only ? 0 : 1;
    GresRequest *gres;

    if (!gpus_only && (str_istarts(at, "gres:") || str_istarts(at, "gres/")))
        at += 5;
    if (strstr(at, "::") || str_ends(at, ":") || str_ends(at, "=")) { /* a part is missing */
        bad_gres(err, text);
        free(text);
        return -(int)ERR_RANGE;
    }
    for (char *part = strtok_r(at, ":=", &save); part; part = strtok_r(NULL, ":=", &save)) {
        if (used == 3) {
            bad_gres(err, text);
            free(text);
            return -(int)ERR_RANGE;
        }
        parts[used++] = part;
    }
    /* The last part is a count when it begins with a digit. */
    if (used > first && parts[used - 1][0] >= '0' && parts[used - 1][0] <= '9') {
        if (size_read_count(parts[used - 1], UINT32_MAX, SIZE_STEP_1024, &count, NULL) < 0) {
            bad_gres(err, text);
            free(text);
            return -(int)ERR_RANGE;
        }
        used--;
    }
    if (used > first + 1 || used < first || *text == ':' || spec->n_gres >= LIMIT_GRES_KINDS) {
        bad_gres(err, text);
        free(text);
        return -(int)ERR_RANGE;
    }
    gres = NEW(GresRequest);
    gres_request__init(gres);
    gres->name = mem_strdup(gpus_only ? "gpu" : parts[0]);
    gres->type = used > first ? mem_strdup(parts[first]) : NULL;
    gres->has_count = gres->has_scope = true;
    gres->count = count;
    gres->scope = scope;
    spec->gres = mem_resize(spec->gres, (spec->n_gres + 1) * sizeof(GresRequest *));
    spec->gres[spec->n_gres++] = gres;
    free(text);
    return 0;
}

int job_request_add_gres(JobSpec *spec, const char *text, GresScope scope, bool gpus_only,
                         struct err *err)
{
    const char *cursor = text;
    struct span word;

    if (!text || str_ieq(text, "none"))
        return 0;
    while (str_next(&cursor, ",", &word)) {
        if (add_one(spec, word, scope, gpus_only, err) < 0)
            return -(int)ERR_RANGE;
    }
    return 0;
}

static int settle_gres(struct job_request *request, struct err *err)
{
    const struct {
        const char *text;
        GresScope scope;
        bool gpus;
    } asked[] = {
        { request->gres, GRES_PER_NODE, false },
        { request->gpus_per_node, GRES_PER_NODE, true },
        { request->gpus, GRES_PER_JOB, true },
        { request->gpus_per_socket, GRES_PER_SOCKET, true },
        { request->gpus_per_task, GRES_PER_TASK, true },
    };

    job_request_clear_gres(request->spec);
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        if (job_request_add_gres(request->spec, asked[i].text, asked[i].scope, asked[i].gpus, err) <
            0)
            return -(int)ERR_RANGE;
    }
    return 0;
}

int job_request_finish(struct job_request *request, struct err *err)
{
    JobSpec *spec = request->spec;

    if (spec->has_mem_per_node_mb + spec->has_mem_per_cpu_mb + spec->has_mem_per_gpu_mb > 1)
        return err_set(err, ERR_SYNTAX,
                       "--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.");
    if (spec->kill_on_invalid_dep && !spec->dependency)
        spec->has_kill_on_invalid_dep = spec->kill_on_invalid_dep = false;
    return settle_gres(request, err);
}

void job_request_inherit(struct job_request *request, const struct job_request *first)
{
    JobSpec *spec = request->spec;
    const JobSpec *from = first->spec;

    if (!spec->has_time_limit_s && from->has_time_limit_s) {
        spec->has_time_limit_s = true;
        spec->time_limit_s = from->time_limit_s;
    }
    if (!spec->begin_us && from->begin_us) {
        spec->has_begin_us = true;
        spec->begin_us = from->begin_us;
    }
    if (!spec->deadline_us && from->deadline_us) {
        spec->has_deadline_us = true;
        spec->deadline_us = from->deadline_us;
    }
}

static uint64_t gpus_by(const JobSpec *spec, GresScope scope)
{
    uint64_t gpus = 0;

    for (size_t i = 0; i < spec->n_gres; i++) {
        if (spec->gres[i]->scope == scope && str_eq(spec->gres[i]->name, "gpu"))
            gpus += spec->gres[i]->count;
    }
    return gpus;
}

/* Tasks that --ntasks-per-gpu, or --gpus with --gpus-per-task, make; 0: none of them. */
static uint64_t tasks_by_gpus(const JobSpec *spec)
{
    uint64_t all = gpus_by(spec, GRES_PER_JOB), each = gpus_by(spec, GRES_PER_TASK);
    uint64_t nodes = gpus_by(spec, GRES_PER_NODE) * MAX(spec->min_nodes, 1);

    if (spec->ntasks_per_gpu)
        return (all ? all : nodes) * spec->ntasks_per_gpu;
    return each && all % each == 0 ? all / each : 0;
}

/* GPUs, -B 2:4 and -N2 --sockets-per-node=2 say how many tasks there are, when nothing else does. */
static void settle_tasks(struct job_request *request)
{
    JobSpec *spec = request->spec;
    bool nodes = spec->min_nodes && spec->min_nodes == spec->max_nodes;
    uint64_t tasks = tasks_by_gpus(spec);

    if (spec->has_ntasks || spec->has_ntasks_per_node)
        return;
    if (tasks) {
        spec->has_ntasks = true;
        spec->ntasks = (uint32_t)MIN(tasks, UINT32_MAX);
        return;
    }
    tasks = MAX(spec->min_nodes, 1);
    if ((!nodes && !job_request_has(request, "extra-node-info")) ||
        (!spec->sockets_per_node && !spec->cores_per_socket && !spec->threads_per_core))
        return;
    tasks *= MAX(spec->sockets_per_node, 1);
    tasks *= MAX(spec->cores_per_socket, 1);
    tasks *= MAX(spec->threads_per_core, 1);
    spec->has_ntasks = true;
    spec->ntasks = (uint32_t)MIN(tasks, UINT32_MAX);
}

bool job_request_settle_counts(struct job_request *request, struct str *warning)
{
    JobSpec *spec = request->spec;

    settle_tasks(request);
    if (!spec->has_ntasks || !spec->ntasks || spec->ntasks >= spec->min_nodes)
        return false;
    str_addf(warning, "can't run %u processes on %u nodes, setting nnodes to %u", spec->ntasks,
             spec->min_nodes, spec->ntasks);
    spec->has_max_nodes = true;
    spec->min_nodes = spec->max_nodes = spec->ntasks;
    return true;
}

static int by_name(const void *a, const void *b)
{
    const struct job_request_given *const *x = a, *const *y = b;

    return strcmp((*x)->row->name, (*y)->row->name);
}

bool job_request_has(const struct job_request *request, const char *name)
{
    vec_each (const struct job_request_given, given, &request->given) {
        if (str_eq(given->row->name, name))
            return true;
    }
    return false;
}

void job_request_add_given(const struct job_request *request, const char *command, struct str *out)
{
    const struct job_request_given **sorted;
    size_t count = 0;

    sorted = NEW_ARRAY(const struct job_request_given *, request->given.len + 1);
    vec_each (struct job_request_given, given, &request->given)
        sorted[count++] = given;
    qsort(sorted, count, sizeof(sorted[0]), by_name);
    str_addf(out, "%s: defined options\n%s: -------------------- --------------------\n", command,
             command);
    for (size_t i = 0; i < count; i++) {
        const char *value = sorted[i]->value;

        str_addf(out, "%s: %-20s: ", command, sorted[i]->row->name);
        if (sorted[i]->row->read == option_increase)
            str_add_u64(out, request->verbose);
        else
            str_add_visible(out, value ? value : "set", value ? strlen(value) : 3);
        str_add_char(out, '\n');
    }
    str_addf(out, "%s: -------------------- --------------------\n%s: end of defined options\n",
             command, command);
    free(sorted);
}
