/* SPDX-License-Identifier: Apache-2.0 */
/*
 * acct_json.c - a run of a job of the history as JSON, in the shape of Slurm's accounting API
 */
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "schema/acct.h"
#include "schema/job_view.h"
#include "schema/names.h"
#include "schema/pattern.h"
#include "schema/reasons.h"

static int64_t seconds(int64_t us)
{
    return us / 1000000;
}

static void add_field(struct jsonw *json, const char *key, const struct acct_line *line,
                      const char *field)
{
    CLEANUP(str_done) struct str text = { 0 };
    const struct acct_field *row = acct_field_find(field, strlen(field));

    row->write(line, row->number, &text);
    jsonw_text(json, key, str_text(&text));
}

static void add_status(struct jsonw *json, const char *key, uint32_t status)
{
    uint32_t signal = status & 0x7f, code = status >> 8 & 0xff;

    jsonw_object(json, key);
    jsonw_list(json, "status");
    jsonw_text(json, NULL, signal ? "SIGNALED" : code ? "ERROR" : "SUCCESS");
    jsonw_list_end(json);
    jsonw_set(json, "return_code", !signal, false, signal ? 0 : code);
    jsonw_object(json, "signal");
    jsonw_set(json, "id", signal != 0, false, signal);
    jsonw_text(json, "name", signal ? name_of(&signal_names, signal) : "");
    jsonw_object_end(json);
    jsonw_object_end(json);
}

static void add_cpu(struct jsonw *json, const char *key, int64_t us)
{
    jsonw_object(json, key);
    jsonw_number(json, "seconds", us / 1000000);
    jsonw_number(json, "microseconds", us % 1000000);
    jsonw_object_end(json);
}

/* ---- TRES ---- */

static const struct {
    const char *type;
    unsigned id;
} tres_ids[] = { { "cpu", 1 },     { "mem", 2 },     { "energy", 3 }, { "node", 4 },
                 { "billing", 5 }, { "fs/disk", 6 }, { "vmem", 7 },   { "pages", 8 } };

unsigned acct_tres_id(const char *name, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(tres_ids); i++) {
        if (strlen(tres_ids[i].type) == len && memcmp(tres_ids[i].type, name, len) == 0)
            return tres_ids[i].id;
    }
    return 1001; /* the first of those that a site names */
}

static void begin_tres(struct jsonw *json, const char *name, size_t len, uint64_t count)
{
    const char *slash = memchr(name, '/', len);
    size_t type_len = slash ? (size_t)(slash - name) : len;

    jsonw_object(json, NULL);
    jsonw_text_len(json, "type", name, type_len);
    jsonw_text_len(json, "name", slash ? slash + 1 : "", slash ? len - type_len - 1 : 0);
    jsonw_number(json, "id", acct_tres_id(name, len));
    jsonw_number(json, "count", (int64_t)count);
}

void acct_add_tres_json(struct jsonw *json, const char *key, const char *text)
{
    const char *cursor = text;
    struct span word;

    jsonw_list(json, key);
    while (cursor && str_next(&cursor, ",", &word)) {
        const char *equals = memchr(word.ptr, '=', word.len);
        if (!equals)
            continue;
        CLEANUP(freep) char *name = mem_strndup(word.ptr, (size_t)(equals - word.ptr));
        begin_tres(json, name, strlen(name), acct_tres(text, name));
        jsonw_object_end(json);
    }
    jsonw_list_end(json);
}

enum part { MAX_OF, MIN_OF, AVERAGE, TOTAL };

static void add_peak(struct jsonw *json, const char *name, const AcctPeak *peak, enum part part,
                     uint32_t tasks)
{
    bool known = peak && (part == MAX_OF   ? peak->has_max
                          : part == MIN_OF ? peak->has_min
                                           : peak->has_total);

    if (!known)
        return;
    begin_tres(json, name, strlen(name),
               part == MAX_OF    ? peak->max
               : part == MIN_OF  ? peak->min
               : part == AVERAGE ? peak->total / MAX(tasks, 1u)
                                 : peak->total);
    if (part == MAX_OF || part == MIN_OF) {
        jsonw_number(json, "task", part == MAX_OF ? peak->max_task : peak->min_task);
        jsonw_text(json, "node", part == MAX_OF ? peak->max_node : peak->min_node);
    }
    jsonw_object_end(json);
}

static void add_usage_part(struct jsonw *json, const char *key, const AcctUsage *usage,
                           enum part part, bool outward)
{
    jsonw_list(json, key);
    if (usage && !outward) {
        AcctPeak cpu_ms = ACCT_PEAK__INIT;
        if (usage->cpu_us) {
            cpu_ms = *usage->cpu_us;
            cpu_ms.total /= 1000, cpu_ms.max /= 1000, cpu_ms.min /= 1000;
        }
        add_peak(json, "cpu", usage->cpu_us ? &cpu_ms : NULL, part, usage->tasks);
        add_peak(json, "mem", usage->rss_bytes, part, usage->tasks);
    }
    if (usage) {
        add_peak(json, "energy", usage->energy_j, part, 1);
        add_peak(json, "fs/disk", outward ? usage->write_bytes : usage->read_bytes, part,
                 usage->tasks);
    }
    if (usage && !outward) {
        add_peak(json, "vmem", usage->vm_bytes, part, usage->tasks);
        add_peak(json, "pages", usage->pages, part, usage->tasks);
        add_peak(json, "gres/gpumem", usage->gpu_mem_bytes, part, 1);
        add_peak(json, "gres/gpuutil", usage->gpu_percent, part, 1);
    }
    jsonw_list_end(json);
}

static void add_usage(struct jsonw *json, const char *key, const AcctUsage *usage, bool outward)
{
    jsonw_object(json, key);
    add_usage_part(json, "max", usage, MAX_OF, outward);
    add_usage_part(json, "min", usage, MIN_OF, outward);
    add_usage_part(json, "average", usage, AVERAGE, outward);
    add_usage_part(json, "total", usage, TOTAL, outward);
    jsonw_object_end(json);
}

/* ---- steps ---- */

static void add_step_nodes(struct jsonw *json, const AcctStep *step)
{
    CLEANUP(hostlist_done) struct hostlist nodes = { 0 };
    CLEANUP(str_done) struct str name = { 0 };

    jsonw_object(json, "nodes");
    jsonw_number(json, "count", step->node_count);
    jsonw_text(json, "range", step->nodes);
    jsonw_list(json, "list");
    if (!str_is_empty(step->nodes) && hostlist_parse(&nodes, step->nodes, NULL) == 0) {
        for (uint64_t i = 0; i < hostlist_count(&nodes); i++) {
            str_clear(&name);
            if (hostlist_nth(&nodes, i, &name))
                jsonw_text(json, NULL, str_text(&name));
        }
    }
    jsonw_list_end(json);
    jsonw_object_end(json);
}

static void add_step_time(struct jsonw *json, const struct acct_line *line)
{
    const AcctStep *step = line->step;
    int64_t user_us, system_us;

    acct_cpu_us(line, &user_us, &system_us);
    jsonw_object(json, "time");
    jsonw_number(json, "elapsed", acct_elapsed_s(line));
    jsonw_set(json, "end", step->has_end_us, false, seconds(step->end_us));
    jsonw_set(json, "start", step->has_start_us, false, seconds(step->start_us));
    jsonw_number(json, "suspended", 0);
    add_cpu(json, "system", system_us);
    if (jsonw_has(json, 43, 0))
        jsonw_set(json, "limit", step->has_time_limit_s, !step->has_time_limit_s,
                  step->time_limit_s / 60);
    add_cpu(json, "total", user_us + system_us);
    add_cpu(json, "user", user_us);
    jsonw_object_end(json);
}

static void add_step_cpu(struct jsonw *json, const struct acct_line *line)
{
    const AcctUsage *usage = line->step->usage;

    jsonw_object(json, "CPU");
    jsonw_object(json, "requested_frequency");
    jsonw_set(json, "min", true, false, 0);
    jsonw_set(json, "max", true, false, 0);
    jsonw_object_end(json);
    add_field(json, "governor", line, "ReqCPUFreqGov");
    jsonw_object_end(json);
    jsonw_text(json, "kill_request_user", "");
    jsonw_list(json, "state");
    jsonw_text(json, NULL, name_of(&job_state_names, line->step->state));
    jsonw_list_end(json);
    jsonw_object(json, "statistics");
    jsonw_object(json, "CPU");
    jsonw_number(json, "actual_frequency", usage ? (int64_t)usage->cpu_khz : 0);
    jsonw_object_end(json);
    jsonw_object(json, "energy");
    bool known = usage && usage->energy_j;
    jsonw_set(json, "consumed", known, false, known ? (int64_t)usage->energy_j->total : 0);
    jsonw_object_end(json);
    jsonw_object_end(json);
}

static void add_step(struct jsonw *json, const struct acct_line *line)
{
    static const char *const files[] = { "stderr",          "stdin",          "stdout",
                                         "stderr_expanded", "stdin_expanded", "stdout_expanded" };
    const AcctStep *step = line->step;

    jsonw_object(json, NULL);
    add_step_time(json, line);
    add_status(json, "exit_code", step->exit_status);
    add_step_nodes(json, step);
    jsonw_object(json, "tasks");
    jsonw_number(json, "count", step->ntasks);
    jsonw_object_end(json);
    add_step_cpu(json, line);
    jsonw_object(json, "step");
    add_field(json, "id", line, "JobIDRaw");
    jsonw_text(json, "name", step->name);
    for (size_t i = 0; i < ARRAY_LEN(files) && jsonw_has(json, 43, 0); i++)
        jsonw_text(json, files[i], ""); /* a step's files are not kept */
    jsonw_object_end(json);
    if (jsonw_has(json, 45, 0))
        jsonw_text(json, "submit_line", step->submit_line);
    if (jsonw_has(json, 0, 44))
        jsonw_text(json, "pid", "");
    jsonw_object(json, "task");
    add_field(json, "distribution", line, "Layout");
    jsonw_object_end(json);
    jsonw_object(json, "tres");
    add_usage(json, "requested", step->usage, false);
    add_usage(json, "consumed", step->usage, true);
    acct_add_tres_json(json, "allocated", step->tres);
    jsonw_object_end(json);
    jsonw_object_end(json);
}

/* ---- the job ---- */

static void add_array(struct jsonw *json, const JobStatus *status)
{
    jsonw_object(json, "array");
    jsonw_number(json, "job_id", status->array_job_id);
    jsonw_object(json, "limits");
    jsonw_object(json, "max");
    jsonw_object(json, "running");
    jsonw_number(json, "tasks", status->array_max_running);
    jsonw_object_end(json);
    jsonw_object_end(json);
    jsonw_object_end(json);
    jsonw_set(json, "task_id", status->has_array_task_id, false, status->array_task_id);
    jsonw_text(json, "task", status->array_tasks);
    jsonw_object_end(json);
}

static void add_time(struct jsonw *json, const struct acct_line *line)
{
    const JobStatus *status = job_status(line->job->job);
    int64_t limit_s = job_limit_s(line->job->job), user_us, system_us;
    int64_t waited = line->job->start_us ? line->job->start_us : line->job->end_us;

    acct_cpu_us(line, &user_us, &system_us);
    jsonw_object(json, "time");
    jsonw_number(json, "elapsed", acct_elapsed_s(line));
    jsonw_number(json, "eligible", seconds(status->eligible_us));
    jsonw_number(json, "end", seconds(acct_end_us(line)));
    jsonw_set(json, "planned", waited != 0, false,
              waited ? MAX(seconds(waited) - seconds(status->eligible_us), 0) : 0);
    jsonw_number(json, "start", seconds(acct_start_us(line)));
    jsonw_number(json, "submission", seconds(status->submit_us));
    jsonw_number(json, "suspended", seconds(line->job->suspended_us));
    add_cpu(json, "system", system_us);
    jsonw_set(json, "limit", limit_s >= 0, limit_s == -1, limit_s >= 0 ? limit_s / 60 : 0);
    add_cpu(json, "total", user_us + system_us);
    add_cpu(json, "user", user_us);
    jsonw_object_end(json);
}

static void add_required(struct jsonw *json, const struct acct_line *line)
{
    const JobSpec *spec = job_spec(line->job->job);
    CLEANUP(str_done) struct str tres = { 0 };

    job_add_tres(&tres, line->job->job, false);
    jsonw_object(json, "required");
    jsonw_number(json, "CPUs", (int64_t)acct_tres(str_text(&tres), "cpu"));
    jsonw_set(json, "memory_per_cpu", spec->has_mem_per_cpu_mb, false,
              (int64_t)spec->mem_per_cpu_mb);
    jsonw_set(json, "memory_per_node", spec->has_mem_per_node_mb, false,
              (int64_t)spec->mem_per_node_mb);
    jsonw_object_end(json);
}

static void add_files(struct jsonw *json, const struct acct_line *line)
{
    struct acct_ctx expanding = *line->ctx;
    struct acct_line expanded = *line;

    expanding.expand = true;
    expanded.ctx = &expanding;
    add_field(json, "stdin_expanded", &expanded, "StdIn");
    add_field(json, "stdout_expanded", &expanded, "StdOut");
    add_field(json, "stderr_expanded", &expanded, "StdErr");
    add_field(json, "stdout", line, "StdOut");
    add_field(json, "stderr", line, "StdErr");
    add_field(json, "stdin", line, "StdIn");
}

static void add_ids(struct jsonw *json, const struct acct_line *line)
{
    const AcctJob *job = line->job;
    const JobStatus *status = job_status(job->job);

    jsonw_text(json, "account", status->account);
    jsonw_object(json, "comment");
    jsonw_text(json, "administrator", status->admin_comment);
    jsonw_text(json, "job", job_spec(job->job)->comment);
    jsonw_text(json, "system", status->system_comment);
    jsonw_object_end(json);
    jsonw_number(json, "allocation_nodes", job->start_us ? job_node_count(job->job) : 0);
    add_array(json, status);
    jsonw_object(json, "association");
    jsonw_text(json, "account", status->account);
    jsonw_text(json, "cluster", job->cluster);
    jsonw_text(json, "partition", "");
    jsonw_text(json, "user", job_owner(job->job)->user);
    jsonw_number(json, "id", job->assoc_id);
    jsonw_object_end(json);
    jsonw_text(json, "block", "");
    jsonw_text(json, "cluster", job->cluster);
    add_field(json, "constraints", line, "Constraints");
    add_field(json, "container", line, "Container");
}

static uint32_t derived_status(const AcctJob *job)
{
    uint32_t worst = 0;

    if (job_status(job->job)->has_derived_status)
        return job_status(job->job)->derived_status;
    for (size_t i = 0; i < job->n_steps; i++) {
        if (job->steps[i]->step != ACCT_STEP_BATCH)
            worst = MAX(worst, job->steps[i]->exit_status);
    }
    return worst;
}

static void add_middle(struct jsonw *json, const struct acct_line *line)
{
    const AcctJob *job = line->job;
    const JobStatus *status = job_status(job->job);

    if (jsonw_has(json, 45, 0))
        add_field(json, "exclusive", line, "Exclusive");
    add_status(json, "exit_code", status->exit_status);
    add_field(json, "extra", line, "Extra");
    add_field(json, "failed_node", line, "FailedNode");
    jsonw_list(json, "flags");
    if (job->start_us)
        jsonw_text(json, NULL, "START_RECEIVED");
    jsonw_list_end(json);
    add_field(json, "group", line, "Group");
    jsonw_object(json, "het");
    jsonw_number(json, "job_id", status->het_job_id);
    jsonw_set(json, "job_offset", status->het_job_id != 0, false, status->het_offset);
    jsonw_object_end(json);
    jsonw_number(json, "job_id", job->job->id);
    add_field(json, "name", line, "JobName");
    add_field(json, "licenses", line, "Licenses");
    jsonw_object(json, "mcs");
    add_field(json, "label", line, "McsLabel");
    jsonw_object_end(json);
    add_field(json, "nodes", line, "NodeList");
    if (jsonw_has(json, 45, 0))
        add_field(json, "oversubscribe", line, "OverSubscribe");
    add_field(json, "partition", line, "Partition");
    jsonw_bool(json, "hold", status->hold != 0);
    jsonw_set(json, "priority", status->has_priority, false, status->priority);
    add_field(json, "qos", line, "QOS");
    add_field(json, "qosreq", line, "QOSREQ");
    if (jsonw_has(json, 45, 0)) {
        jsonw_text(json, "sluid", "");
        jsonw_text(json, "original_sluid", "");
    }
}

static void add_end(struct jsonw *json, const struct acct_line *line)
{
    const AcctJob *job = line->job;
    CLEANUP(str_done) struct str given = { 0 }, asked = { 0 };

    jsonw_text(json, "submit_line", job_spec(job->job)->submit_line);
    if (job->start_us)
        job_add_tres(&given, job->job, true);
    job_add_tres(&asked, job->job, false);
    jsonw_object(json, "tres");
    acct_add_tres_json(json, "allocated", str_text(&given));
    acct_add_tres_json(json, "requested", str_text(&asked));
    jsonw_object_end(json);
    jsonw_text(json, "used_gres", "");
    add_field(json, "user", line, "User");
    jsonw_object(json, "wckey");
    add_field(json, "wckey", line, "WCKey");
    jsonw_list(json, "flags");
    jsonw_list_end(json);
    jsonw_object_end(json);
    add_field(json, "working_directory", line, "WorkDir");
}

static void add_reservation(struct jsonw *json, const struct acct_line *line)
{
    jsonw_object(json, "reservation");
    jsonw_number(json, "id", 0);
    add_field(json, "name", line, "Reservation");
    if (jsonw_has(json, 43, 0))
        add_field(json, "requested", line, "ReqReservation");
    jsonw_object_end(json);
}

void acct_add_json(const struct acct_ctx *ctx, const AcctJob *job, struct jsonw *json)
{
    struct acct_line line = { ctx, job, NULL };
    const JobPayload *payload = job->payload;

    jsonw_object(json, NULL);
    add_ids(json, &line);
    add_status(json, "derived_exit_code", derived_status(job));
    add_time(json, &line);
    add_middle(json, &line);
    add_required(json, &line);
    CLEANUP(freep)
    char *by = job->has_cancelled_by ? mem_printf("%u", job->cancelled_by) : mem_strdup("");
    jsonw_text(json, "kill_request_user", by);
    jsonw_number(json, "restart_cnt", job->run ? job->run - 1 : 0);
    add_reservation(json, &line);
    jsonw_text_len(json, "script",
                   payload && payload->has_script ? (const char *)payload->script.data : "",
                   payload && payload->has_script ? payload->script.len : 0);
    if (jsonw_has(json, 43, 0))
        jsonw_number(json, "segment_size", job_spec(job->job)->segment);
    add_files(json, &line);
    jsonw_object(json, "state");
    jsonw_list(json, "current");
    jsonw_text(json, NULL, job->requeued ? "REQUEUED" : name_of(&job_state_names, job->state));
    jsonw_list_end(json);
    add_field(json, "reason", &line, "Reason");
    jsonw_object_end(json);
    jsonw_list(json, "steps");
    for (size_t i = 0; i < job->n_steps; i++) {
        line.step = job->steps[i];
        add_step(json, &line);
    }
    line.step = NULL;
    jsonw_list_end(json);
    add_end(json, &line);
    jsonw_object_end(json);
}
