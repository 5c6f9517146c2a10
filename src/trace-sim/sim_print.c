/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_print.c - a simulation as text and as JSON
 */
#include <stdlib.h>
#include <string.h>

#include "base/timefmt.h"
#include "schema/jsonw.h"
#include "trace-sim/sim.h"

static const char *fates[] = {
    [SIM_WAITS] = "WAITING", [SIM_RUNS] = "RUNNING",        [SIM_STANDS] = "SUSPENDED",
    [SIM_ENDED] = "ENDED",   [SIM_PREEMPTED] = "PREEMPTED", [SIM_REFUSED] = "REFUSED"
};

static void add_time(struct str *out, const char *before, double seconds)
{
    struct str text = { 0 };

    timefmt_write_duration(&text, (int64_t)(seconds + 0.5), TIMEFMT_SHORT);
    str_addf(out, "%s%13s", before, str_text(&text));
    str_done(&text);
}

void sim_print_head(struct str *out, const struct sim_run *run)
{
    const struct sim_trace *trace = run->trace;

    str_addf(out, "%zu jobs of %zu users on %zu nodes with %u %s\n", trace->jobs.len,
             trace->users.len, run->nodes.len, run->units, run->of_gpus ? "GPUs" : "CPUs");
    if (trace->cut)
        str_add(out, "the last line of the trace does not end: the file may be cut\n");
    if (trace->skipped)
        str_addf(out, "%u lines are left out: no run time, or no size\n", trace->skipped);
    if (trace->raised)
        str_addf(out, "%u time limits are below the run time and were raised to it\n",
                 trace->raised);
}

void sim_print_table_head(struct str *out)
{
    str_addf(out, "%-16s %7s %13s %13s %13s %13s %13s %13s %9s %13s %6s %6s %6s %9s\n", "POLICY",
             "ENDED", "WAIT(AVG)", "P50", "P99", "DONE(AVG)", "P50", "P99", "SLOWDOWN", "MAKESPAN",
             "USED", "FRAGM", "FAIR", "CMDS/S");
}

void sim_print_row(struct str *out, const char *policy, const struct sim_run *run,
                   const struct sim_figures *f)
{
    str_addf(out, "%-16s %7zu", policy, f->jobs);
    add_time(out, " ", f->wait.avg);
    add_time(out, " ", (double)f->wait.p50);
    add_time(out, " ", (double)f->wait.p99);
    add_time(out, " ", f->completion.avg);
    add_time(out, " ", (double)f->completion.p50);
    add_time(out, " ", (double)f->completion.p99);
    str_addf(out, " %9.1f", f->slowdown);
    add_time(out, " ", (double)f->makespan_s);
    str_addf(out, " %5.1f%% %5.1f%% %6.3f %9.0f\n", f->used * 100, f->fragmented * 100, f->fairness,
             run->sum.cpu_ms > 0 ? (double)run->sum.events / run->sum.cpu_ms * 1e3 : 0);
    if (run->stopped)
        str_addf(out, "  interrupted after %lld simulated seconds: %zu jobs not submitted\n",
                 (long long)run->now_s, run->trace->jobs.len - run->submitted - run->refused);
    if (f->running || f->waiting)
        str_addf(out, "  %zu jobs run, %zu wait\n", f->running, f->waiting);
    if (run->sum.preempted)
        str_addf(out,
                 "  %llu preemptions: %llu requeued, %llu suspended, %llu cancelled; %.2f%% of all "
                 "%s time was run in vain\n",
                 (unsigned long long)run->sum.preempted, (unsigned long long)run->sum.requeued,
                 (unsigned long long)run->sum.suspended, (unsigned long long)run->sum.cancelled,
                 f->lost * 100, run->of_gpus ? "GPU" : "CPU");
    if (run->sum.rounded)
        str_addf(out,
                 "  %u jobs want a part of a GPU and got all of it: these nodes have neither shard "
                 "nor mps\n",
                 run->sum.rounded);
    if (run->sum.unnamed)
        str_addf(out, "  %u jobs name a partition or QOS that this cluster has not: left out\n",
                 run->sum.unnamed);
    if (f->refused)
        str_addf(out, "  %zu jobs are refused, the first one of line %u: %s\n", f->refused,
                 run->refused_line, run->why_refused);
}

void sim_print_users(struct str *out, const struct sim_run *run, const struct sim_figures *f)
{
    str_addf(out, "%-20s %8s %13s %9s %12s\n", "USER", "JOBS", "WAIT(AVG)", "SLOWDOWN",
             run->of_gpus ? "GPU-HOURS" : "CPU-HOURS");
    vec_each (struct sim_user, user, &f->users) {
        if (!user->jobs)
            continue;
        struct str name = { 0 };
        str_add_visible(&name, user->name, strlen(user->name));
        str_addf(out, "%-20s %8zu", name.len ? str_text(&name) : "-", user->jobs);
        add_time(out, " ", user->wait_s);
        str_addf(out, " %9.1f %12.1f\n", user->slowdown, user->unit_s / 3600);
        str_done(&name);
    }
}

void sim_print_jobs(struct str *out, const struct sim_run *run)
{
    str_addf(out, "%-10s %-10s %12s %12s %12s %9s\n", "JOB", "STATE", "SUBMIT_S", "START_S",
             "END_S", "PREEMPTED");
    vec_each (struct sim_job, job, &run->trace->jobs)
        str_addf(out, "%-10u %-10s %12lld %12lld %12lld %9u\n", job->number, fates[job->fate],
                 (long long)job->submit_s, (long long)job->start_s, (long long)job->end_s,
                 job->preempted);
}

/* ---- JSON ---- */

static void json_spread(struct jsonw *json, const char *key, const struct sim_spread *spread)
{
    jsonw_object(json, key);
    jsonw_decimal(json, "avg", (int64_t)(spread->avg * 10 + 0.5), 1);
    jsonw_number(json, "p50", spread->p50);
    jsonw_number(json, "p99", spread->p99);
    jsonw_number(json, "max", spread->most);
    jsonw_object_end(json);
}

static void json_users(struct jsonw *json, const struct sim_figures *f)
{
    jsonw_list(json, "users");
    vec_each (struct sim_user, user, &f->users) {
        if (!user->jobs)
            continue;
        jsonw_object(json, NULL);
        jsonw_text(json, "user", user->name);
        jsonw_number(json, "jobs", (int64_t)user->jobs);
        jsonw_decimal(json, "wait_s", (int64_t)(user->wait_s * 10 + 0.5), 1);
        jsonw_decimal(json, "bounded_slowdown", (int64_t)(user->slowdown * 1000 + 0.5), 3);
        jsonw_decimal(json, "unit_hours", (int64_t)(user->unit_s / 360 + 0.5), 1);
        jsonw_object_end(json);
    }
    jsonw_list_end(json);
}

static void json_jobs(struct jsonw *json, const struct sim_run *run)
{
    jsonw_list(json, "jobs");
    vec_each (struct sim_job, job, &run->trace->jobs) {
        jsonw_object(json, NULL);
        jsonw_number(json, "job", job->number);
        jsonw_text(json, "state", fates[job->fate]);
        jsonw_number(json, "submit_s", job->submit_s);
        jsonw_number(json, "start_s", job->start_s);
        jsonw_number(json, "end_s", job->end_s);
        jsonw_number(json, "preempted", job->preempted);
        jsonw_object_end(json);
    }
    jsonw_list_end(json);
}

void sim_json(struct jsonw *json, const char *policy, const struct sim_run *run,
              const struct sim_figures *f, bool jobs)
{
    jsonw_object(json, NULL);
    jsonw_text(json, "policy", policy);
    jsonw_bool(json, "interrupted", run->stopped);
    jsonw_number(json, "nodes", (int64_t)run->nodes.len);
    jsonw_text(json, "unit", run->of_gpus ? "gpu" : "cpu");
    jsonw_number(json, "units", run->units);
    jsonw_number(json, "ended", (int64_t)f->jobs);
    jsonw_number(json, "running", (int64_t)f->running);
    jsonw_number(json, "waiting", (int64_t)f->waiting);
    jsonw_number(json, "refused", (int64_t)f->refused);
    jsonw_number(json, "skipped", run->trace->skipped);
    jsonw_bool(json, "cut", run->trace->cut);
    json_spread(json, "wait_s", &f->wait);
    json_spread(json, "completion_s", &f->completion);
    jsonw_decimal(json, "bounded_slowdown", (int64_t)(f->slowdown * 1000 + 0.5), 3);
    jsonw_number(json, "makespan_s", f->makespan_s);
    jsonw_decimal(json, "utilisation", (int64_t)(f->used * 1e6 + 0.5), 6);
    jsonw_decimal(json, "fragmentation", (int64_t)(f->fragmented * 1e6 + 0.5), 6);
    jsonw_decimal(json, "fairness", (int64_t)(f->fairness * 1e6 + 0.5), 6);
    jsonw_number(json, "most_waiting", (int64_t)run->sum.most_waiting);
    jsonw_number(json, "commands", (int64_t)run->sum.events);
    jsonw_number(json, "refused_starts", (int64_t)run->sum.refused_starts);
    jsonw_decimal(json, "cpu_ms", (int64_t)(run->sum.cpu_ms * 10 + 0.5), 1);
    jsonw_number(json, "preempted", (int64_t)run->sum.preempted);
    jsonw_number(json, "requeued", (int64_t)run->sum.requeued);
    jsonw_number(json, "suspended", (int64_t)run->sum.suspended);
    jsonw_number(json, "cancelled", (int64_t)run->sum.cancelled);
    jsonw_decimal(json, "lost", (int64_t)(f->lost * 1e6 + 0.5), 6);
    jsonw_number(json, "rounded_gpus", run->sum.rounded);
    jsonw_number(json, "unknown_names", run->sum.unnamed);
    json_users(json, f);
    if (jobs)
        json_jobs(json, run);
    jsonw_object_end(json);
}
