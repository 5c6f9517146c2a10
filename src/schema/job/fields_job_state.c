// SPDX-License-Identifier: Apache-2.0
/*
 * fields_job_state.c - ids, states, reasons and times of jobs, as columns and records show them
 */
#include <signal.h>
#include <string.h>

#include "base/timefmt.h"
#include "schema/job/fields_job_priv.h"
#include "schema/job_view.h"
#include "schema/names.h"
#include "schema/reasons.h"

bool job_w_id(const struct field_call *call, struct str *out)
{
    const JobStatus *status = job_status(job_of(call));

    if (status->has_array_task_id || str_is_empty(status->array_tasks)) {
        job_add_id(out, job_of(call));
        return true;
    }
    str_addf(out, "%u_[", status->has_array_job_id ? status->array_job_id : job_of(call)->id);
    job_add_array_tasks(out, job_of(call), call->ctx->array_chars);
    str_add_char(out, ']');
    return true;
}

bool job_w_array_job(const struct field_call *call, struct str *out)
{
    const JobStatus *status = job_status(job_of(call));

    str_add_u64(out, status->has_array_job_id ? status->array_job_id : job_of(call)->id);
    return true;
}

bool job_w_array_job_or_skip(const struct field_call *call, struct str *out)
{
    return job_status(job_of(call))->has_array_job_id && job_w_array_job(call, out);
}

bool job_w_array_task_or_skip(const struct field_call *call, struct str *out)
{
    const JobStatus *status = job_status(job_of(call));

    if (status->has_array_task_id)
        str_add_u64(out, status->array_task_id);
    else if (!str_is_empty(status->array_tasks))
        job_add_array_tasks(out, job_of(call), call->ctx->array_chars);
    else
        return false;
    return true;
}

bool job_w_array_task(const struct field_call *call, struct str *out)
{
    if (!job_w_array_task_or_skip(call, out))
        str_add(out, "N/A");
    return true;
}

bool job_w_het_id_or_skip(const struct field_call *call, struct str *out)
{
    const JobStatus *status = job_status(job_of(call));

    if (!status->het_job_id)
        return false;
    str_add_u64(out, status->het_job_id);
    return true;
}

bool job_w_het_id(const struct field_call *call, struct str *out)
{
    if (!job_w_het_id_or_skip(call, out))
        str_add(out, "N/A");
    return true;
}

bool job_w_het_offset_or_skip(const struct field_call *call, struct str *out)
{
    const JobStatus *status = job_status(job_of(call));

    if (!status->het_job_id)
        return false;
    str_add_u64(out, status->het_offset);
    return true;
}

bool job_w_het_offset(const struct field_call *call, struct str *out)
{
    if (!job_w_het_offset_or_skip(call, out))
        str_add(out, "N/A");
    return true;
}

bool job_w_het_set_or_skip(const struct field_call *call, struct str *out)
{
    const JobStatus *status = job_status(job_of(call));

    if (!status->het_job_id)
        return false;
    str_add(out, status->het_ids ? status->het_ids : "");
    return true;
}

bool job_w_state(const struct field_call *call, struct str *out)
{
    const JobStatus *status = job_status(job_of(call));

    str_add(out, job_state_text(status->state, status->flags));
    return true;
}

bool job_w_state_code(const struct field_call *call, struct str *out)
{
    const JobStatus *status = job_status(job_of(call));

    str_add(out, job_state_code(status->state, status->flags));
    return true;
}

void job_j_state(const struct field_call *call, struct jsonw *json)
{
    const JobStatus *status = job_status(job_of(call));

    jsonw_list(json, "job_state");
    jsonw_text(json, NULL, name_of(&job_state_names, status->state));
    for (size_t i = 0; i < job_flag_names.count; i++) {
        if (job_flag_names.rows[i].value & status->flags)
            jsonw_text(json, NULL, job_flag_names.rows[i].name);
    }
    jsonw_list_end(json);
}

bool job_w_reason(const struct field_call *call, struct str *out)
{
    const JobStatus *status = job_status(job_of(call));

    reason_add(out, status->reason, status->reason_text, status->exit_status);
    return true;
}

/* Blanks would end the value for those who read records word by word. */
bool job_w_reason_record(const struct field_call *call, struct str *out)
{
    size_t start = out->len;

    job_w_reason(call, out);
    for (size_t i = start; i < out->len; i++) {
        if (out->data[i] == ' ')
            out->data[i] = '_';
    }
    return true;
}

bool job_w_nodes_or_reason(const struct field_call *call, struct str *out)
{
    const JobStatus *status = job_status(job_of(call));

    switch (status->state) {
    case JOB_PENDING:
    case JOB_TIMEOUT:
    case JOB_OUT_OF_MEMORY:
    case JOB_DEADLINE:
    case JOB_FAILED:
        str_add_char(out, '(');
        job_w_reason(call, out);
        str_add_char(out, ')');
        break;
    default:
        job_add_nodes(out, job_of(call));
    }
    return true;
}

bool job_w_dependency(const struct field_call *call, struct str *out)
{
    const char *left = job_status(job_of(call))->dependency;
    const char *asked = job_spec(job_of(call))->dependency;

    /* What has come true is gone from the list; a job that started has none left. */
    if (!left && job_status(job_of(call))->state == JOB_PENDING)
        left = asked;
    str_add(out, str_is_empty(left) ? "(null)" : left);
    return true;
}

static void add_exit(struct str *out, uint32_t status)
{
    str_addf(out, "%u:%u", status >> 8 & 0xff, status & 0x7f);
}

bool job_w_exit(const struct field_call *call, struct str *out)
{
    add_exit(out, job_status(job_of(call))->exit_status);
    return true;
}

bool job_w_derived_exit(const struct field_call *call, struct str *out)
{
    add_exit(out, job_status(job_of(call))->derived_status);
    return true;
}

static void json_exit(struct jsonw *json, const char *name, uint32_t status)
{
    uint32_t sig = status & 0x7f;

    jsonw_object(json, name);
    jsonw_list(json, "status");
    jsonw_text(json, NULL, sig ? "SIGNALED" : status ? "ERROR" : "SUCCESS");
    jsonw_list_end(json);
    jsonw_set(json, "return_code", !sig, false, sig ? 0 : status >> 8 & 0xff);
    jsonw_object(json, "signal");
    jsonw_set(json, "id", sig != 0, false, sig);
    jsonw_text(json, "name", sig ? signal_name(sig) : "");
    jsonw_object_end(json);
    jsonw_object_end(json);
}

void job_j_exit(const struct field_call *call, struct jsonw *json)
{
    json_exit(json, "exit_code", job_status(job_of(call))->exit_status);
}

void job_j_derived_exit(const struct field_call *call, struct jsonw *json)
{
    json_exit(json, "derived_exit_code", job_status(job_of(call))->derived_status);
}

bool job_w_used(const struct field_call *call, struct str *out)
{
    timefmt_write_duration(out, job_used_s(job_of(call), call->ctx->now_us), TIMEFMT_SHORT);
    return true;
}

bool job_w_used_long(const struct field_call *call, struct str *out)
{
    timefmt_write_duration(out, job_used_s(job_of(call), call->ctx->now_us), TIMEFMT_LONG);
    return true;
}

static bool add_limit(struct str *out, int64_t limit_s, enum timefmt_style style)
{
    if (limit_s == -2)
        str_add(out, style == TIMEFMT_LONG ? "Partition_Limit" : "NOT_SET");
    else
        timefmt_write_duration(out, limit_s, style);
    return true;
}

bool job_w_limit(const struct field_call *call, struct str *out)
{
    return add_limit(out, job_limit_s(job_of(call)), TIMEFMT_SHORT);
}

bool job_w_limit_long(const struct field_call *call, struct str *out)
{
    return add_limit(out, job_limit_s(job_of(call)), TIMEFMT_LONG);
}

bool job_w_left(const struct field_call *call, struct str *out)
{
    int64_t limit = job_limit_s(job_of(call));
    int64_t used = job_used_s(job_of(call), call->ctx->now_us);

    if (limit < 0)
        return add_limit(out, limit, TIMEFMT_SHORT);
    if (used > limit)
        str_add(out, "INVALID");
    else
        timefmt_write_duration(out, limit - used, TIMEFMT_SHORT);
    return true;
}

int64_t job_n_limit(const struct field_call *call)
{
    int64_t limit = job_limit_s(job_of(call));

    return limit == -2 ? FIELD_ABSENT : limit;
}

bool job_w_time_min(const struct field_call *call, struct str *out)
{
    timefmt_write_duration(out, job_spec(job_of(call))->time_min_s, TIMEFMT_SHORT);
    return true;
}

bool job_w_time_min_record(const struct field_call *call, struct str *out)
{
    if (job_spec(job_of(call))->time_min_s > 0)
        timefmt_write_duration(out, job_spec(job_of(call))->time_min_s, TIMEFMT_LONG);
    else
        str_add(out, "N/A");
    return true;
}

static bool add_moment_or(const struct field_call *call, struct str *out, int64_t us,
                          const char *absent)
{
    if (us > 0)
        field_add_moment(out, call->ctx, us);
    else
        str_add(out, absent);
    return true;
}

bool job_w_start(const struct field_call *call, struct str *out)
{
    return add_moment_or(call, out, job_start_us(job_of(call), call->ctx->now_us), "N/A");
}

bool job_w_start_record(const struct field_call *call, struct str *out)
{
    return add_moment_or(call, out, job_start_us(job_of(call), call->ctx->now_us), "Unknown");
}

bool job_w_end(const struct field_call *call, struct str *out)
{
    return add_moment_or(call, out, job_end_us(job_of(call), call->ctx->now_us), "N/A");
}

bool job_w_end_record(const struct field_call *call, struct str *out)
{
    return add_moment_or(call, out, job_end_us(job_of(call), call->ctx->now_us), "Unknown");
}

int64_t job_n_start(const struct field_call *call)
{
    return job_start_us(job_of(call), call->ctx->now_us);
}

int64_t job_n_end(const struct field_call *call)
{
    return job_end_us(job_of(call), call->ctx->now_us);
}

static int64_t eligible_us(const struct field_call *call)
{
    const Job *job = job_of(call);

    if (job_status(job)->eligible_us > 0)
        return job_status(job)->eligible_us;
    return job_spec(job)->begin_us > call->ctx->now_us ? job_spec(job)->begin_us : 0;
}

bool job_w_eligible(const struct field_call *call, struct str *out)
{
    return add_moment_or(call, out, eligible_us(call), "N/A");
}

bool job_w_eligible_record(const struct field_call *call, struct str *out)
{
    return add_moment_or(call, out, eligible_us(call), "Unknown");
}

bool job_w_deadline(const struct field_call *call, struct str *out)
{
    return add_moment_or(call, out, job_spec(job_of(call))->deadline_us, "N/A");
}

bool job_w_pending_time(const struct field_call *call, struct str *out)
{
    const JobStatus *status = job_status(job_of(call));
    int64_t until = status->start_us > 0 ? status->start_us : call->ctx->now_us;

    if (job_state_ended(status->state) && status->start_us <= 0)
        until = status->end_us;
    str_add_i64(out, MAX(until / 1000000 - status->submit_us / 1000000, 0));
    return true;
}

bool job_w_delay_boot(const struct field_call *call, struct str *out)
{
    timefmt_write_duration(out, job_spec(job_of(call))->delay_boot_s, TIMEFMT_SHORT);
    return true;
}

bool job_w_delay_boot_long(const struct field_call *call, struct str *out)
{
    timefmt_write_duration(out, job_spec(job_of(call))->delay_boot_s, TIMEFMT_LONG);
    return true;
}

bool job_w_preemptable(const struct field_call *call, struct str *out)
{
    int64_t us = job_status(job_of(call))->preemptable_us;

    return us && add_moment_or(call, out, us, "None");
}

bool job_w_preempted(const struct field_call *call, struct str *out)
{
    const JobStatus *status = job_status(job_of(call));

    return (status->preemptable_us || status->preempt_us) &&
           add_moment_or(call, out, status->preempt_us, "None");
}

bool job_w_suspend(const struct field_call *call, struct str *out)
{
    return add_moment_or(call, out, job_status(job_of(call))->suspend_us, "None");
}

int64_t job_n_pre_suspend(const struct field_call *call)
{
    const JobStatus *status = job_status(job_of(call));

    if (status->suspend_us <= 0)
        return 0;
    return status->suspend_us / 1000000 - status->start_us / 1000000 -
           status->suspended_total_us / 1000000;
}

bool job_w_pre_suspend(const struct field_call *call, struct str *out)
{
    str_add_i64(out, MAX(job_n_pre_suspend(call), 0));
    return true;
}

int64_t job_n_hold(const struct field_call *call)
{
    return job_status(job_of(call))->hold != 0;
}
