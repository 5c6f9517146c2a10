// SPDX-License-Identifier: Apache-2.0
/*
 * fields_job_size.c - what jobs ask for and have, as columns and records show it
 */
#include <stdio.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/timefmt.h"
#include "schema/fields_job_priv.h"
#include "schema/job_view.h"
#include "schema/names.h"
#include "schema/pattern.h"

static bool name_and_number(struct str *out, const char *name, uint32_t number)
{
    str_addf(out, "%s(%u)", str_is_empty(name) ? "nobody" : name, number);
    return true;
}

bool job_w_user(const struct field_call *call, struct str *out)
{
    return name_and_number(out, job_owner(job_of(call))->user, job_owner(job_of(call))->uid);
}

bool job_w_group(const struct field_call *call, struct str *out)
{
    return name_and_number(out, job_owner(job_of(call))->group, job_owner(job_of(call))->gid);
}

static bool decided_or_asked(struct str *out, const char *decided, const char *asked)
{
    const char *text = str_is_empty(decided) ? asked : decided;

    str_add(out, text ? text : "(null)");
    return true;
}

bool job_w_account(const struct field_call *call, struct str *out)
{
    return decided_or_asked(out, job_status(job_of(call))->account,
                            job_spec(job_of(call))->account);
}

bool job_w_qos(const struct field_call *call, struct str *out)
{
    return decided_or_asked(out, job_status(job_of(call))->qos, job_spec(job_of(call))->qos);
}

/* A pending job shows all that it asked for, a started one where it runs. */
bool job_w_partition(const struct field_call *call, struct str *out)
{
    const JobStatus *status = job_status(job_of(call));
    const char *asked = job_spec(job_of(call))->partition;

    if (status->state == JOB_PENDING && !str_is_empty(asked))
        str_add(out, asked);
    else
        decided_or_asked(out, status->partition, asked);
    return true;
}

bool job_w_priority_ratio(const struct field_call *call, struct str *out)
{
    str_addf(out, "%16.14f", (double)job_status(job_of(call))->priority / 4294967295.0);
    return true;
}

int64_t job_n_requeue(const struct field_call *call)
{
    const JobSpec *spec = job_spec(job_of(call));

    return !spec->has_requeue || spec->requeue;
}

bool job_w_requeue(const struct field_call *call, struct str *out)
{
    str_add_i64(out, job_n_requeue(call));
    return true;
}

bool job_w_nodes(const struct field_call *call, struct str *out)
{
    job_add_nodes(out, job_of(call));
    return true;
}

bool job_w_nodes_record(const struct field_call *call, struct str *out)
{
    const JobStatus *status = job_status(job_of(call));

    job_add_nodes(out, job_of(call));
    if (status->state == JOB_PENDING && !str_is_empty(status->planned_nodes))
        str_addf(out, " SchedNodeList=%s", status->planned_nodes);
    return true;
}

bool job_w_batch_host(const struct field_call *call, struct str *out)
{
    const Allocation *given = job_status(job_of(call))->allocation;

    if (!given || !given->n_nodes || !given->nodes[0]->node)
        return false;
    str_add(out, given->nodes[0]->node);
    return true;
}

bool job_w_exec_host(const struct field_call *call, struct str *out)
{
    if (!job_w_batch_host(call, out))
        str_add(out, "n/a");
    return true;
}

int64_t job_n_nodes(const struct field_call *call)
{
    return job_node_count(job_of(call));
}

int64_t job_n_cpus(const struct field_call *call)
{
    return job_cpu_count(job_of(call));
}

int64_t job_n_tasks(const struct field_call *call)
{
    return job_task_count(job_of(call));
}

bool job_w_node_count(const struct field_call *call, struct str *out)
{
    str_add_i64(out, job_n_nodes(call));
    return true;
}

bool job_w_node_count_record(const struct field_call *call, struct str *out)
{
    const JobSpec *spec = job_spec(job_of(call));

    job_w_node_count(call, out);
    if (job_status(job_of(call))->state == JOB_PENDING && spec->max_nodes)
        str_addf(out, "-%u", spec->max_nodes);
    return true;
}

bool job_w_cpu_count(const struct field_call *call, struct str *out)
{
    str_add_i64(out, job_n_cpus(call));
    return true;
}

bool job_w_max_nodes(const struct field_call *call, struct str *out)
{
    str_add_u64(out, MAX(job_spec(job_of(call))->max_nodes, job_node_count(job_of(call))));
    return true;
}

bool job_w_task_count(const struct field_call *call, struct str *out)
{
    str_add_i64(out, job_n_tasks(call));
    return true;
}

int64_t job_n_min_cpus(const struct field_call *call)
{
    const JobSpec *spec = job_spec(job_of(call));
    uint32_t tasks = MAX(spec->ntasks_per_node, 1) * MAX(spec->cpus_per_task, 1);

    return MAX(spec->min_cpus_per_node, tasks);
}

bool job_w_min_cpus(const struct field_call *call, struct str *out)
{
    str_add_i64(out, job_n_min_cpus(call));
    return true;
}

bool job_w_memory(const struct field_call *call, struct str *out)
{
    const JobSpec *spec = job_spec(job_of(call));
    uint64_t mb = spec->has_mem_per_cpu_mb ? spec->mem_per_cpu_mb : spec->mem_per_node_mb;

    if (mb)
        field_add_megabytes(out, mb, call->ctx->noconvert);
    else
        str_add_char(out, '0');
    return true;
}

bool job_w_memory_cpu(const struct field_call *call, struct str *out)
{
    return job_spec(job_of(call))->has_mem_per_cpu_mb && job_w_memory(call, out);
}

bool job_w_memory_node(const struct field_call *call, struct str *out)
{
    return !job_spec(job_of(call))->has_mem_per_cpu_mb && job_w_memory(call, out);
}

bool job_w_min_tmp(const struct field_call *call, struct str *out)
{
    uint64_t mb = job_spec(job_of(call))->tmp_disk_mb;

    if (mb)
        field_add_megabytes(out, mb, call->ctx->noconvert);
    else
        str_add_char(out, '0');
    return true;
}

static void add_or_star(struct str *out, const char *before, bool has, uint32_t number)
{
    str_add(out, before);
    if (has && number)
        str_add_u64(out, number);
    else
        str_add_char(out, '*');
}

bool job_w_sct(const struct field_call *call, struct str *out)
{
    const JobSpec *spec = job_spec(job_of(call));

    add_or_star(out, "", spec->has_sockets_per_node, spec->sockets_per_node);
    add_or_star(out, ":", spec->has_cores_per_socket, spec->cores_per_socket);
    add_or_star(out, ":", spec->has_threads_per_core, spec->threads_per_core);
    return true;
}

bool job_w_bsct(const struct field_call *call, struct str *out)
{
    const JobSpec *spec = job_spec(job_of(call));

    str_add(out, "0:0");
    add_or_star(out, ":", spec->has_cores_per_socket, spec->cores_per_socket);
    add_or_star(out, ":", spec->has_threads_per_core, spec->threads_per_core);
    return true;
}

bool job_w_ntasks_per(const struct field_call *call, struct str *out)
{
    const JobSpec *spec = job_spec(job_of(call));

    str_addf(out, "%u:0", spec->ntasks_per_node);
    add_or_star(out, ":", spec->has_ntasks_per_socket, spec->ntasks_per_socket);
    add_or_star(out, ":", spec->has_ntasks_per_core, spec->ntasks_per_core);
    return true;
}

bool job_w_cpus_per_task(const struct field_call *call, struct str *out)
{
    str_add_u64(out, MAX(job_spec(job_of(call))->cpus_per_task, 1));
    return true;
}

bool job_w_core_spec_record(const struct field_call *call, struct str *out)
{
    const JobSpec *spec = job_spec(job_of(call));

    add_or_star(out, "", spec->has_core_spec, spec->core_spec);
    return true;
}

bool job_w_thread_spec_record(const struct field_call *call, struct str *out)
{
    const JobSpec *spec = job_spec(job_of(call));

    if (!spec->has_thread_spec)
        return false;
    str_add_u64(out, spec->thread_spec);
    return true;
}

static bool tres_or_null(const struct field_call *call, struct str *out, bool given)
{
    size_t start = out->len;

    job_add_tres(out, job_of(call), given);
    if (out->len == start)
        str_add(out, "(null)");
    return true;
}

bool job_w_tres_req(const struct field_call *call, struct str *out)
{
    return tres_or_null(call, out, false);
}

bool job_w_tres_given(const struct field_call *call, struct str *out)
{
    return tres_or_null(call, out, true);
}

bool job_w_tres_alloc(const struct field_call *call, struct str *out)
{
    size_t start = out->len;

    job_add_tres(out, job_of(call), true);
    if (out->len == start)
        job_add_tres(out, job_of(call), false);
    return true;
}

static bool gres_or(const struct field_call *call, struct str *out, GresScope scope,
                    const char *absent)
{
    const JobSpec *spec = job_spec(job_of(call));
    size_t start = out->len;

    if (scope == GRES_PER_TASK && spec->has_cpus_per_task)
        str_addf(out, "cpu=%u", spec->cpus_per_task);
    if (scope == GRES_PER_TASK && spec->tres_per_task)
        str_addf(out, "%s%s", out->len > start ? "," : "", spec->tres_per_task);
    if (scope == GRES_PER_TASK && out->len > start && spec->n_gres) {
        struct str gres = { 0 };

        job_add_gres(&gres, job_of(call), scope, "=");
        if (gres.len)
            str_addf(out, ",%s", str_text(&gres));
        str_done(&gres);
    } else {
        job_add_gres(out, job_of(call), scope, scope == GRES_PER_TASK ? "=" : ":");
    }
    if (out->len > start)
        return true;
    if (absent)
        str_add(out, absent);
    return absent != NULL;
}

bool job_w_gres_node(const struct field_call *call, struct str *out)
{
    return gres_or(call, out, GRES_PER_NODE, "N/A");
}

bool job_w_gres_job(const struct field_call *call, struct str *out)
{
    return gres_or(call, out, GRES_PER_JOB, "N/A");
}

bool job_w_gres_socket(const struct field_call *call, struct str *out)
{
    return gres_or(call, out, GRES_PER_SOCKET, "N/A");
}

bool job_w_gres_task(const struct field_call *call, struct str *out)
{
    return gres_or(call, out, GRES_PER_TASK, "N/A");
}

bool job_w_gres_node_or_skip(const struct field_call *call, struct str *out)
{
    return gres_or(call, out, GRES_PER_NODE, NULL);
}

bool job_w_gres_job_or_skip(const struct field_call *call, struct str *out)
{
    return gres_or(call, out, GRES_PER_JOB, NULL);
}

bool job_w_gres_socket_or_skip(const struct field_call *call, struct str *out)
{
    return gres_or(call, out, GRES_PER_SOCKET, NULL);
}

bool job_w_gres_task_or_skip(const struct field_call *call, struct str *out)
{
    return gres_or(call, out, GRES_PER_TASK, NULL);
}

bool job_w_cpus_per_gpu_or_skip(const struct field_call *call, struct str *out)
{
    const JobSpec *spec = job_spec(job_of(call));

    if (!spec->has_cpus_per_gpu)
        return false;
    str_addf(out, "gres/gpu:%u", spec->cpus_per_gpu);
    return true;
}

bool job_w_cpus_per_gpu(const struct field_call *call, struct str *out)
{
    if (!job_w_cpus_per_gpu_or_skip(call, out))
        str_add(out, "N/A");
    return true;
}

bool job_w_mem_per_gpu_or_skip(const struct field_call *call, struct str *out)
{
    const JobSpec *spec = job_spec(job_of(call));

    if (!spec->has_mem_per_gpu_mb)
        return false;
    str_addf(out, "gres/gpu:%llu", (unsigned long long)spec->mem_per_gpu_mb);
    return true;
}

bool job_w_mem_per_gpu(const struct field_call *call, struct str *out)
{
    if (!job_w_mem_per_gpu_or_skip(call, out))
        str_add(out, "N/A");
    return true;
}

bool job_w_licenses_given(const struct field_call *call, struct str *out)
{
    const Job *job = job_of(call);
    bool holds = job_status(job)->state == JOB_RUNNING || job_status(job)->state == JOB_SUSPENDED;

    const Allocation *allocation = job_status(job)->allocation;
    const char *one = allocation ? allocation->licenses : NULL;

    return decided_or_asked(out, holds ? one : NULL, holds ? job_spec(job)->licenses : NULL);
}

bool job_w_oversubscribe(const struct field_call *call, struct str *out)
{
    str_add(out, job_spec(job_of(call))->oversubscribe ? "YES" : "NO");
    return true;
}

bool job_w_exclusive(const struct field_call *call, struct str *out)
{
    str_add(out, name_of(&exclusive_names, (uint32_t)job_spec(job_of(call))->exclusive));
    return true;
}

void job_j_shared(const struct field_call *call, struct jsonw *json)
{
    const JobSpec *spec = job_spec(job_of(call));

    jsonw_list(json, "shared");
    if (spec->exclusive == EXCLUSIVE_NODE)
        jsonw_text(json, NULL, "none");
    else if (spec->exclusive)
        jsonw_text(json, NULL, spec->exclusive == EXCLUSIVE_USER ? "user" : "mcs");
    else if (spec->oversubscribe)
        jsonw_text(json, NULL, "oversubscribe");
    jsonw_list_end(json);
}

static void add_gres_alloc(struct str *out, const NodeAlloc *part, bool index)
{
    for (size_t i = 0; i < part->n_gres; i++) {
        const GresAlloc *gres = part->gres[i];

        str_addf(out, "%s%s", i ? "," : "", gres->name ? gres->name : "");
        if (!str_is_empty(gres->type))
            str_addf(out, ":%s", gres->type);
        str_addf(out, ":%llu", (unsigned long long)gres->count);
        if (index && !str_is_empty(gres->index))
            str_addf(out, "(IDX:%s)", gres->index);
    }
}

/* All of a kind added up over the nodes. */
bool job_w_gres_given(const struct field_call *call, struct str *out)
{
    const Allocation *given = job_status(job_of(call))->allocation;
    size_t start = out->len;

    if (!given || !given->n_nodes)
        return false;
    for (size_t k = 0; k < given->nodes[0]->n_gres; k++) {
        const GresAlloc *kind = given->nodes[0]->gres[k];
        uint64_t total = 0;

        for (size_t n = 0; n < given->n_nodes; n++) {
            for (size_t i = 0; i < given->nodes[n]->n_gres; i++) {
                const GresAlloc *gres = given->nodes[n]->gres[i];

                if (str_eq(gres->name, kind->name) && str_eq(gres->type, kind->type))
                    total += gres->count;
            }
        }
        str_addf(out, "%s%s", out->len > start ? "," : "", kind->name ? kind->name : "");
        if (!str_is_empty(kind->type))
            str_addf(out, ":%s", kind->type);
        str_addf(out, ":%llu", (unsigned long long)total);
    }
    if (out->len == start)
        str_add(out, "(null)");
    return true;
}

/* One line for neighbours that hold the same. */
bool job_w_parts(const struct field_call *call, struct str *out)
{
    const Allocation *given = job_status(job_of(call))->allocation;
    struct str what = { 0 }, next = { 0 };
    size_t from = 0;

    if (!given || !given->n_nodes)
        return false;
    for (size_t i = 0; i <= given->n_nodes; i++) {
        str_clear(&next);
        if (i < given->n_nodes) {
            const NodeAlloc *part = given->nodes[i];

            str_addf(&next, "CPU_IDs=%s Mem=%llu GRES=", part->cpu_ids ? part->cpu_ids : "",
                     (unsigned long long)part->mem_mb);
            add_gres_alloc(&next, part, true);
        }
        if (i > from && !str_eq(str_text(&what), str_text(&next))) {
            CLEANUP(hostlist_done) struct hostlist list = { 0 };
            struct str names = { 0 };

            for (; from < i; from++)
                hostlist_push(&list, given->nodes[from]->node ? given->nodes[from]->node : "?",
                              NULL);
            hostlist_format(&list, &names);
            if (out->len)
                str_add(out, "\n     Nodes=");
            str_add_visible(out, str_text(&names), names.len);
            str_add_char(out, ' ');
            str_add_visible(out, str_text(&what), what.len);
            str_done(&names);
        }
        str_clear(&what);
        str_add(&what, str_text(&next));
    }
    str_done(&what);
    str_done(&next);
    return true;
}

bool job_w_alloc_node_sid(const struct field_call *call, struct str *out)
{
    const JobSpec *spec = job_spec(job_of(call));

    str_addf(out, "%s:%u", spec->alloc_node ? spec->alloc_node : "(null)", spec->alloc_sid);
    return true;
}

bool job_w_switch_wait(const struct field_call *call, struct str *out)
{
    timefmt_write_duration(out, job_spec(job_of(call))->switches_wait_s, TIMEFMT_SHORT);
    return true;
}

bool job_w_switches_or_skip(const struct field_call *call, struct str *out)
{
    const JobSpec *spec = job_spec(job_of(call));

    if (!spec->switches)
        return false;
    str_addf(out, "%u@", spec->switches);
    timefmt_write_duration(out, spec->switches_wait_s, TIMEFMT_LONG);
    return true;
}

bool job_w_signal_or_skip(const struct field_call *call, struct str *out)
{
    const JobSpec *spec = job_spec(job_of(call));

    if (!spec->has_signal)
        return false;
    str_addf(out, "%s%s%u@%u", spec->signal_at_reservation ? "R:" : "",
             spec->signal_batch_only ? "B:" : "", spec->signal, spec->signal_before_s);
    return true;
}

bool job_w_std_in(const struct field_call *call, struct str *out)
{
    const char *path = job_spec(job_of(call))->std_in;

    str_add(out, path ? path : "/dev/null");
    return true;
}

/* As it was asked for, made absolute; squeue shows patterns unless told to expand them. */
static bool add_output(const struct field_call *call, struct str *out, bool error)
{
    const JobSpec *spec = job_spec(job_of(call));
    const char *path = error ? spec->std_err : spec->std_out;

    if (call->ctx->expand)
        return pattern_output_path(job_of(call), error, out, NULL) == 0;
    if (!path && !error)
        path = job_status(job_of(call))->has_array_job_id ? "slurm-%A_%a.out" : "slurm-%j.out";
    if (!path) {
        str_add(out, "(null)");
        return true;
    }
    if (path[0] != '/' && spec->work_dir)
        str_addf(out, "%s/", spec->work_dir);
    str_add(out, path);
    return true;
}

bool job_w_std_out(const struct field_call *call, struct str *out)
{
    return add_output(call, out, false);
}

bool job_w_std_err(const struct field_call *call, struct str *out)
{
    return add_output(call, out, true);
}

bool job_w_std_in_record(const struct field_call *call, struct str *out)
{
    return job_spec(job_of(call))->batch && job_w_std_in(call, out);
}

bool job_w_std_out_record(const struct field_call *call, struct str *out)
{
    if (!job_spec(job_of(call))->batch)
        return false;
    pattern_output_path(job_of(call), false, out, NULL);
    return true;
}

bool job_w_std_err_record(const struct field_call *call, struct str *out)
{
    if (!job_spec(job_of(call))->batch)
        return false;
    if (job_spec(job_of(call))->std_err)
        pattern_output_path(job_of(call), true, out, NULL);
    return true;
}

void job_j_expanded(const struct field_call *call, struct jsonw *json)
{
    struct str path = { 0 };

    pattern_output_path(job_of(call), false, &path, NULL);
    jsonw_text(json, "stdout_expanded", str_text(&path));
    str_clear(&path);
    pattern_output_path(job_of(call), true, &path, NULL);
    jsonw_text(json, "stderr_expanded", str_text(&path));
    str_done(&path);
}

bool job_w_mail_type(const struct field_call *call, struct str *out)
{
    uint32_t mask = job_spec(job_of(call))->mail_type;

    return mask && name_add_mask(&mail_type_names, mask, ",", out) > 0;
}

bool job_w_mail_user(const struct field_call *call, struct str *out)
{
    const JobSpec *spec = job_spec(job_of(call));
    const char *user = job_owner(job_of(call))->user;

    if (!spec->mail_type && !spec->mail_user)
        return false;
    str_add(out, spec->mail_user ? spec->mail_user : user ? user : "");
    return true;
}

void job_j_tres_given(const struct field_call *call, struct jsonw *json)
{
    struct str text = { 0 };

    job_add_tres(&text, job_of(call), true);
    jsonw_text(json, "tres_alloc_str", str_text(&text));
    str_done(&text);
}

void job_j_batch_host(const struct field_call *call, struct jsonw *json)
{
    struct str host = { 0 };

    job_w_batch_host(call, &host);
    jsonw_text(json, "batch_host", str_text(&host));
    str_done(&host);
}

bool job_w_cluster(const struct field_call *call, struct str *out)
{
    str_add(out, call->ctx->cluster ? call->ctx->cluster : "N/A");
    return true;
}

bool job_w_profile(const struct field_call *call, struct str *out)
{
    const char *profile = job_spec(job_of(call))->profile;

    str_add(out, profile ? profile : "NotSet");
    return true;
}

void job_j_resources(const struct field_call *call, struct jsonw *json)
{
    const Allocation *given = job_status(job_of(call))->allocation;
    struct str nodes = { 0 };

    jsonw_object(json, "job_resources");
    if (given && given->n_nodes) {
        job_add_nodes(&nodes, job_of(call));
        jsonw_object(json, "nodes");
        jsonw_number(json, "count", (int64_t)given->n_nodes);
        jsonw_text(json, "list", str_text(&nodes));
        jsonw_list(json, "allocation");
        for (size_t i = 0; i < given->n_nodes; i++) {
            jsonw_object(json, NULL);
            jsonw_number(json, "index", (int64_t)i);
            jsonw_text(json, "name", given->nodes[i]->node);
            jsonw_object(json, "cpus");
            jsonw_number(json, "count", given->nodes[i]->cpus);
            jsonw_text(json, "ids", given->nodes[i]->cpu_ids);
            jsonw_object_end(json);
            jsonw_object(json, "memory");
            jsonw_number(json, "allocated", (int64_t)given->nodes[i]->mem_mb);
            jsonw_object_end(json);
            jsonw_object_end(json);
        }
        jsonw_list_end(json);
        jsonw_object_end(json);
        jsonw_number(json, "cpus", job_cpu_count(job_of(call)));
    }
    jsonw_object_end(json);
    str_done(&nodes);
}

static bool constant(struct str *out, const char *text)
{
    str_add(out, text);
    return true;
}

bool job_w_null(const struct field_call *call, struct str *out)
{
    return constant(out, "(null)");
}

bool job_w_na(const struct field_call *call, struct str *out)
{
    return constant(out, "N/A");
}

bool job_w_bare_na(const struct field_call *call, struct str *out)
{
    return constant(out, "NA");
}

bool job_w_zero(const struct field_call *call, struct str *out)
{
    return constant(out, "0");
}

bool job_w_no(const struct field_call *call, struct str *out)
{
    return constant(out, "No");
}

bool job_w_empty(const struct field_call *call, struct str *out)
{
    return constant(out, "");
}

bool job_w_main(const struct field_call *call, struct str *out)
{
    return constant(out, "Main");
}
