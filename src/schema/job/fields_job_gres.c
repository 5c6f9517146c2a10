// SPDX-License-Identifier: Apache-2.0
/*
 * fields_job_gres.c - TRES, generic resources and licences of jobs, asked for and given
 */
#include "base/hostlist.h"
#include "schema/job/fields_job_priv.h"
#include "schema/job_view.h"
#include "schema/names.h"

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

bool job_w_tres_bind_or_skip(const struct field_call *call, struct str *out)
{
    const JobSpec *spec = job_spec(job_of(call));

    if (!spec->tres_bind && !spec->gpu_bind)
        return false;
    str_addf(out, "%s%s", spec->tres_bind ? "" : "gres/gpu:",
             spec->tres_bind ? spec->tres_bind : spec->gpu_bind);
    return true;
}

bool job_w_gpu_freq_or_skip(const struct field_call *call, struct str *out)
{
    const char *freq = job_spec(job_of(call))->gpu_freq;

    if (freq)
        str_addf(out, "gpu:%s", freq);
    return freq;
}

bool job_w_gpu_freq(const struct field_call *call, struct str *out)
{
    if (!job_w_gpu_freq_or_skip(call, out))
        str_add(out, "N/A");
    return true;
}

bool job_w_enforce_or_skip(const struct field_call *call, struct str *out)
{
    const JobSpec *spec = job_spec(job_of(call));

    if (spec->has_enforce_binding)
        str_add(out, spec->enforce_binding ? "Yes" : "No");
    return spec->has_enforce_binding;
}

bool job_w_spread_or_skip(const struct field_call *call, struct str *out)
{
    bool spread = job_spec(job_of(call))->spread_job;

    if (spread)
        str_add(out, "Yes");
    return spread;
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

    return job_decided_or_asked(out, holds ? one : NULL, holds ? job_spec(job)->licenses : NULL);
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

void job_j_tres_given(const struct field_call *call, struct jsonw *json)
{
    struct str text = { 0 };

    job_add_tres(&text, job_of(call), true);
    jsonw_text(json, "tres_alloc_str", str_text(&text));
    str_done(&text);
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
