// SPDX-License-Identifier: Apache-2.0
/*
 * fields_job_who.c - who a job is of, where it is queued and where it runs
 */
#include "schema/job/fields_job_priv.h"
#include "schema/job_view.h"

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

bool job_decided_or_asked(struct str *out, const char *decided, const char *asked)
{
    const char *text = str_is_empty(decided) ? asked : decided;

    str_add(out, text ? text : "(null)");
    return true;
}

bool job_w_account(const struct field_call *call, struct str *out)
{
    return job_decided_or_asked(out, job_status(job_of(call))->account,
                                job_spec(job_of(call))->account);
}

bool job_w_qos(const struct field_call *call, struct str *out)
{
    return job_decided_or_asked(out, job_status(job_of(call))->qos, job_spec(job_of(call))->qos);
}

/* A pending job shows all that it asked for, a started one where it runs. */
bool job_w_partition(const struct field_call *call, struct str *out)
{
    const JobStatus *status = job_status(job_of(call));
    const char *asked = job_spec(job_of(call))->partition;

    if (status->state == JOB_PENDING && !str_is_empty(asked))
        str_add(out, asked);
    else
        job_decided_or_asked(out, status->partition, asked);
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

void job_j_batch_host(const struct field_call *call, struct jsonw *json)
{
    struct str host = { 0 };

    job_w_batch_host(call, &host);
    jsonw_text(json, "batch_host", str_text(&host));
    str_done(&host);
}
