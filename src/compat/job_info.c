// SPDX-License-Identifier: Apache-2.0
/*
 * job_info.c - jobs as slurm_job_info_t; loading and freeing them
 *
 * A list comes as a stream in chunks, so that no more than one chunk of messages is in memory beside the records.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/map.h"
#include "base/vec.h"
#include "client/client.h"
#include "compat/compat.h"
#include "schema/job_view.h"
#include "schema/pattern.h"
#include "sys/clock.h"

/* What a row may ask of. */
struct job_source {
    const Job *job;
    const JobSpec *spec;
    const JobStatus *status;
    const char *node_list; /* of its allocation, or NULL */
    int64_t now_us;
    uint16_t show_flags;
};

/* ---- what a job has on its nodes; opaque to clients ---- */

struct job_resources {
    bitstr_t *core_bitmap; /* NULL: libslurm-perl looks here, and goes no further */
    uint32_t count;
    char **names;
    uint32_t *cpus;
    char **cpu_ids;
};

void compat_free_resources(job_resources_t **resources)
{
    job_resources_t *mine = *resources;

    if (!mine)
        return;
    compat_free_strings(&mine->names, mine->count);
    compat_free_strings(&mine->cpu_ids, mine->count);
    slurm_xfree((void **)&mine->cpus);
    slurm_xfree((void **)resources);
}

static job_resources_t *resources_of(const struct job_source *in)
{
    const Allocation *given = in->status->allocation;

    if (!given || !given->n_nodes)
        return NULL;
    job_resources_t *out = compat_alloc(sizeof(*out));
    out->count = (uint32_t)given->n_nodes;
    out->names = compat_alloc(given->n_nodes * sizeof(char *));
    out->cpu_ids = compat_alloc(given->n_nodes * sizeof(char *));
    out->cpus = compat_alloc(given->n_nodes * sizeof(uint32_t));
    for (size_t i = 0; i < given->n_nodes; i++) {
        out->names[i] = compat_text(given->nodes[i]->node);
        out->cpu_ids[i] = compat_text(given->nodes[i]->cpu_ids);
        out->cpus[i] = given->nodes[i]->cpus;
    }
    return out;
}

#if EXPORTS_slurm_job_cpus_allocated_on_node
static int find_node(const job_resources_t *resources, const char *name)
{
    for (uint32_t i = 0; resources && name && i < resources->count; i++) {
        if (str_eq(resources->names[i], name))
            return (int)i;
    }
    return -1;
}

static bool node_ok(const job_resources_t *resources, int node_id)
{
    if (resources && node_id >= 0 && (uint32_t)node_id < resources->count)
        return true;
    errno = EINVAL;
    return false;
}

int slurm_job_cpus_allocated_on_node_id(job_resources_t *job_resrcs_ptr, int node_id)
{
    return node_ok(job_resrcs_ptr, node_id) ? (int)job_resrcs_ptr->cpus[node_id] : -1;
}

int slurm_job_cpus_allocated_on_node(job_resources_t *job_resrcs_ptr, const char *node_name)
{
    return slurm_job_cpus_allocated_on_node_id(job_resrcs_ptr,
                                               find_node(job_resrcs_ptr, node_name));
}

int slurm_job_cpus_allocated_str_on_node_id(char *cpus, size_t cpus_len,
                                            job_resources_t *job_resrcs_ptr, int node_id)
{
    if (!cpus || !cpus_len || !node_ok(job_resrcs_ptr, node_id))
        return SLURM_ERROR;
    const char *ids = job_resrcs_ptr->cpu_ids[node_id];
    snprintf(cpus, cpus_len, "%s", ids ? ids : "");
    return SLURM_SUCCESS;
}

int slurm_job_cpus_allocated_str_on_node(char *cpus, size_t cpus_len,
                                         job_resources_t *job_resrcs_ptr, const char *node_name)
{
    return slurm_job_cpus_allocated_str_on_node_id(cpus, cpus_len, job_resrcs_ptr,
                                                   find_node(job_resrcs_ptr, node_name));
}
#endif

/* ---- what rows ask for ---- */

static char *batch_host(const struct job_source *in)
{
    const Allocation *given = in->status->allocation;

    return given && given->n_nodes && in->spec->batch ? compat_text(given->nodes[0]->node) : NULL;
}

static double billing_of(const struct job_source *in)
{
    const char *tres = in->status->tres_alloc, *at = tres ? strstr(tres, "billing=") : NULL;

    return at                       ? strtod(at + 8, NULL)
           : in->status->allocation ? job_cpu_count(in->job)
                                    : (double)NO_VAL;
}

static uint64_t bit_flags(const struct job_source *in)
{
    const JobSpec *spec = in->spec;
    uint64_t flags = JOB_CPUS_SET;

    flags |= spec->has_kill_on_invalid_dep
                 ? (spec->kill_on_invalid_dep ? KILL_INV_DEP : NO_KILL_INV_DEP)
                 : 0;
    flags |= spec->spread_job ? SPREAD_JOB : 0;
    flags |= spec->use_min_nodes ? USE_MIN_NODES : 0;
    flags |= spec->enforce_binding ? GRES_ENFORCE_BIND : 0;
    flags |= spec->has_ntasks ? JOB_NTASKS_SET : 0;
    return flags;
}

static uint16_t core_spec(const struct job_source *in)
{
    if (in->spec->has_thread_spec)
        return (uint16_t)(in->spec->thread_spec | CORE_SPEC_THREAD);
    return in->spec->has_core_spec ? (uint16_t)in->spec->core_spec : NO_VAL16;
}

static uint16_t pn_min_cpus(const struct job_source *in)
{
    uint32_t per_task = MAX(in->spec->cpus_per_task, 1) * MAX(in->spec->ntasks_per_node, 1);

    return (uint16_t)MAX(in->spec->min_cpus_per_node, per_task);
}

static uint64_t pn_min_memory(const struct job_source *in)
{
    const JobSpec *spec = in->spec;

    if (spec->has_mem_per_cpu_mb)
        return spec->mem_per_cpu_mb | MEM_PER_CPU;
    if (spec->has_mem_per_node_mb)
        return spec->mem_per_node_mb;
    if (in->status->has_def_mem_per_cpu_mb)
        return in->status->def_mem_per_cpu_mb | MEM_PER_CPU;
    return in->status->def_mem_per_node_mb;
}

KEEP(
    HAS_slurm_job_info_t_shared, static uint16_t shared_of(const struct job_source *in) {
        switch (in->spec->exclusive) {
        case EXCLUSIVE_NODE:
            return 0;
        case EXCLUSIVE_USER:
            return 2;
        case EXCLUSIVE_MCS:
            return 3;
        case EXCLUSIVE_TOPO:
            return 4;
        default:
            return in->spec->oversubscribe ? 1 : NO_VAL16;
        }
    })

static char *tres_text(const struct job_source *in, bool given)
{
    struct str out = { 0 };

    job_add_tres(&out, in->job, given);
    return compat_take(&out);
}

static char *gres_text(const struct job_source *in, GresScope scope)
{
    struct str out = { 0 };

    if (in->spec->n_gres)
        job_add_gres(&out, in->job, scope, ":");
    return compat_take(&out);
}

static uint32_t gres_detail_count(const struct job_source *in)
{
    const Allocation *given = in->status->allocation;

    return given && (in->show_flags & SHOW_DETAIL) && in->spec->n_gres ? (uint32_t)given->n_nodes
                                                                       : 0;
}

/* "gpu:a100:2(IDX:0-1)" of each node. */
static char **gres_details(const struct job_source *in)
{
    uint32_t count = gres_detail_count(in);

    if (!count)
        return NULL;
    char **out = compat_alloc(count * sizeof(char *));
    for (uint32_t i = 0; i < count; i++) {
        const NodeAlloc *node = in->status->allocation->nodes[i];
        struct str text = { 0 };
        for (size_t k = 0; k < node->n_gres; k++) {
            const GresAlloc *gres = node->gres[k];
            str_addf(&text, "%s%s%s%s:%llu", k ? "," : "", gres->name, gres->type ? ":" : "",
                     gres->type ? gres->type : "", (unsigned long long)gres->count);
            if (gres->index)
                str_addf(&text, "(IDX:%s)", gres->index);
        }
        out[i] = compat_take(&text);
    }
    return out;
}

/* As it was asked for; slurm_get_job_stdout() and its like fill in the patterns. */
static char *std_file(const struct job_source *in, const char *path)
{
    if (str_is_empty(path))
        return NULL;
    if (path[0] == '/' || !in->spec->work_dir)
        return compat_text(path);
    return slurm_xstrdup_printf("%s/%s", in->spec->work_dir, path);
}

KEEP(
    HAS_slurm_job_info_t_step_id, static slurm_step_id_t step_id_of(uint32_t job_id) {
        return (slurm_step_id_t){ .job_id = job_id, .step_id = NO_VAL, .step_het_comp = NO_VAL };
    })

static void fill(slurm_job_info_t *out, const struct job_source *in)
{
    const Job *job = in->job;
    const JobSpec *spec = in->spec;
    const JobStatus *status = in->status;
    const JobOwner *owner = job_owner(job);

#define FILL(member, ...) \
    IF_MEMBER(slurm_job_info_t_##member, out->member = (__typeof__(out->member))(__VA_ARGS__);)
#define SKIP(member, why)
#undef KEEP_STRUCT
#include "compat/job_info_rows.h"
#undef FILL
#undef SKIP
}

static void fill_job(slurm_job_info_t *out, struct job_source *in, const Job *job)
{
    struct str nodes = { 0 };

    in->job = job;
    in->spec = job_spec(job);
    in->status = job_status(job);
    job_add_nodes(&nodes, job);
    in->node_list = nodes.len ? nodes.data : NULL;
    fill(out, in);
    str_done(&nodes);
}

/* ---- loading ---- */

struct load {
    job_info_msg_t **out;
    uint32_t user_id, job_id;
    bool by_user;
    uint16_t show_flags;
};

static job_info_msg_t *message_of(int64_t now_us, slurm_job_info_t *jobs, uint32_t count)
{
    job_info_msg_t *msg = compat_alloc(sizeof(*msg));

    msg->last_update = compat_seconds(now_us);
    msg->record_count = count;
    msg->job_array = jobs;
    return msg;
}

/* Room for one more: doubled, so that a long list is copied a few times only. */
static slurm_job_info_t *grow(slurm_job_info_t *jobs, uint32_t count, uint32_t *room)
{
    if (count < *room)
        return jobs;
    uint32_t more = *room ? *room * 2 : 64;
    slurm_job_info_t *larger = compat_alloc(more * sizeof(*larger));
    if (count)
        memcpy(larger, jobs, count * sizeof(*larger));
    slurm_xfree((void **)&jobs);
    *room = more;
    return larger;
}

static int connect_first(struct session *session, struct err *err)
{
    Empty request = EMPTY__INIT;
    ProtobufCMessage *reply;

    if (session->client)
        return 0;
    return compat_call(session, "Ping", &request.base, &ping_reply__descriptor, &reply, err);
}

static int load_list(struct session *session, void *args, struct err *err)
{
    struct load *load = args;
    struct job_source in = { .show_flags = load->show_flags, .now_us = clock_wall_us() };
    ListJobsRequest request = LIST_JOBS_REQUEST__INIT;
    char user[16], *users[] = { user };
    slurm_job_info_t *jobs = NULL;
    uint32_t count = 0, room = 0;
    ProtobufCMessage *message;
    struct arena arena;
    int next;

    if (connect_first(session, err) < 0)
        return -1;
    if (compat_know_nodes(session, err) < 0)
        return -1;
    request.has_all_states = request.all_states = true;
    request.has_with_spec = request.with_spec = true;
    request.has_hidden_too = request.hidden_too = (load->show_flags & SHOW_ALL) != 0;
    if (load->by_user) {
        snprintf(user, sizeof(user), "%u", load->user_id);
        request.users = users;
        request.n_users = 1;
        request.hidden_too = request.has_hidden_too = true;
    }
    struct client_stream *stream = client_stream_open(
        session->client,
        &(struct client_stream_options){ .path = "/spur.Controller/ListJobs",
                                         .message = &request.base,
                                         .reply_type = &list_jobs_reply__descriptor },
        err);
    if (!stream)
        return -1;
    arena_init(&arena);
    while ((next = client_stream_next(stream, &arena, &message, err)) == CLIENT_MESSAGE) {
        const ListJobsReply *reply = (const ListJobsReply *)message;

        for (size_t i = 0; i < reply->n_jobs; i++) {
            jobs = grow(jobs, count, &room);
            fill_job(&jobs[count++], &in, reply->jobs[i]);
        }
        arena_reset(&arena);
    }
    arena_done(&arena);
    client_stream_free(stream);
    job_info_msg_t *msg = message_of(in.now_us, jobs, count);
    if (next != CLIENT_ENDED) {
        slurm_free_job_info_msg(msg);
        return -1;
    }
    *load->out = msg;
    return 0;
}

int compat_get_job(struct session *session, uint32_t job_id, GetJobReply **reply, struct err *err)
{
    GetJobRequest request = GET_JOB_REQUEST__INIT;

    request.id = arena_printf(&session->arena, "%u", job_id);
    return compat_call(session, "GetJob", &request.base, &get_job_reply__descriptor,
                       (ProtobufCMessage **)reply, err);
}

static int load_one(struct session *session, void *args, struct err *err)
{
    struct load *load = args;
    struct job_source in = { .show_flags = load->show_flags, .now_us = clock_wall_us() };
    GetJobReply *reply;

    if (compat_get_job(session, load->job_id, &reply, err) < 0)
        return -1;
    if (compat_know_nodes(session, err) < 0)
        return -1;
    slurm_job_info_t *jobs = reply->n_jobs ? compat_alloc(reply->n_jobs * sizeof(*jobs)) : NULL;
    for (size_t i = 0; i < reply->n_jobs; i++)
        fill_job(&jobs[i], &in, reply->jobs[i]);
    *load->out = message_of(in.now_us, jobs, (uint32_t)reply->n_jobs);
    return 0;
}

int slurm_load_jobs(time_t update_time, job_info_msg_t **job_info_msg_pptr, uint16_t show_flags)
{
    NEED(job_info_msg_pptr, SLURM_ERROR);
    struct load load = { .out = job_info_msg_pptr, .show_flags = show_flags };

    return compat_run(load_list, &load);
}

int slurm_load_job_user(job_info_msg_t **job_info_msg_pptr, uint32_t user_id, uint16_t show_flags)
{
    NEED(job_info_msg_pptr, SLURM_ERROR);
    struct load load = {
        .out = job_info_msg_pptr, .show_flags = show_flags, .user_id = user_id, .by_user = true
    };

    return compat_run(load_list, &load);
}

int slurm_load_job(job_info_msg_t **resp, JOB_PARAM, uint16_t show_flags)
{
    NEED(resp, SLURM_ERROR);
    struct load load = { .out = resp, .show_flags = show_flags, .job_id = JOB_ID };

    return compat_run(load_one, &load);
}

void slurm_free_job_info_msg(job_info_msg_t *job_buffer_ptr)
{
    if (!job_buffer_ptr)
        return;
    compat_free_job_info_msg_t(job_buffer_ptr);
    slurm_xfree((void **)&job_buffer_ptr);
}

void slurm_free_job_info(job_info_t *job)
{
    if (!job)
        return;
    compat_free_slurm_job_info_t(job);
    slurm_xfree((void **)&job);
}

/* ---- files ---- */

static void expand(char *buf, int buf_size, const job_info_t *job, const char *path,
                   const char *otherwise)
{
    struct pattern_job pattern = { .job_id = job->job_id,
                                   .array_job_id = job->array_job_id,
                                   .array_task_id = job->array_task_id,
                                   .user = job->user_name,
                                   .name = job->name,
                                   .host = job->batch_host,
                                   .restarts = job->restart_cnt };
    struct str whole = { 0 }, out = { 0 };

    if (!path && otherwise[0] != '/')
        str_addf(&whole, "%s/", job->work_dir ? job->work_dir : "");
    str_add(&whole, path ? path : otherwise);
    if (pattern_expand(str_text(&whole), &pattern, &out, NULL) < 0)
        str_clear(&out);
    if (buf && buf_size > 0)
        snprintf(buf, (size_t)buf_size, "%s", str_text(&out));
    str_done(&whole);
    str_done(&out);
}

void slurm_get_job_stdout(char *buf, int buf_size, job_info_t *job_ptr)
{
    GUARD();

    if (job_ptr)
        expand(buf, buf_size, job_ptr, job_ptr->std_out,
               job_ptr->array_job_id ? "slurm-%A_%a.out" : "slurm-%j.out");
}

void slurm_get_job_stderr(char *buf, int buf_size, job_info_t *job_ptr)
{
    GUARD();

    if (job_ptr && job_ptr->std_err)
        expand(buf, buf_size, job_ptr, job_ptr->std_err, "");
    else
        slurm_get_job_stdout(buf, buf_size, job_ptr);
}

void slurm_get_job_stdin(char *buf, int buf_size, job_info_t *job_ptr)
{
    GUARD();

    if (job_ptr)
        expand(buf, buf_size, job_ptr, job_ptr->std_in, "/dev/null");
}

#if EXPORTS_slurm_xlate_job_id
/* "12", "12_3": the number of the job; 0 when there is none. */
struct xlate {
    char *text;
    uint32_t id;
};

static int xlate(struct session *session, void *args, struct err *err)
{
    struct xlate *asked = args;
    GetJobRequest request = GET_JOB_REQUEST__INIT;
    GetJobReply *reply;

    request.id = asked->text;
    if (compat_call(session, "GetJob", &request.base, &get_job_reply__descriptor,
                    (ProtobufCMessage **)&reply, err) < 0)
        return -1;
    asked->id = reply->n_jobs ? reply->jobs[0]->id : 0;
    return 0;
}

uint32_t slurm_xlate_job_id(char *job_id_str)
{
    struct xlate asked = { .text = job_id_str };
    uint64_t number;

    if (job_id_str && str_to_u64(job_id_str, UINT32_MAX, &number))
        return (uint32_t)number;
    return job_id_str && compat_run(xlate, &asked) == SLURM_SUCCESS ? asked.id : 0;
}
#endif
