// SPDX-License-Identifier: Apache-2.0
/*
 * fields_job_files.c - the files, signals and mail of jobs, and columns that are always the same
 */
#include "base/timefmt.h"
#include "schema/job/fields_job_priv.h"
#include "schema/job_view.h"
#include "schema/names.h"
#include "schema/pattern.h"

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

bool job_w_cron(const struct field_call *call, struct str *out)
{
    const Job *job = call->object;

    return constant(out, job->spec && !str_is_empty(job->spec->cron) ? "Yes" : "No");
}

bool job_w_empty(const struct field_call *call, struct str *out)
{
    return constant(out, "");
}

bool job_w_main(const struct field_call *call, struct str *out)
{
    return constant(out, "Main");
}
