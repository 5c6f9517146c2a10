/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diag.c - the controller's statistics in Slurm's words
 *
 * One planner places every job, so its passes are both what Slurm calls the main scheduler and
 * backfill. A pass ends when every job that could start was looked at, or when its slice of time is
 * over and the next one goes on.
 */
#include "schema/diag.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Slurm's message for the same request. A method without a row has a name and a number of its own. */
static const struct {
    const char *method, *slurm;
    unsigned id;
} messages[] = {
    { "SubmitJob", "REQUEST_SUBMIT_BATCH_JOB", 4003 },
    { "ListJobs", "REQUEST_JOB_INFO", 2003 },
    { "GetJob", "REQUEST_JOB_INFO_SINGLE", 2021 },
    { "CancelJobs", "REQUEST_KILL_JOBS", 5041 },
    { "UpdateJob", "REQUEST_UPDATE_JOB", 3001 },
    { "ListSteps", "REQUEST_JOB_STEP_INFO", 2005 },
    { "SignalStep", "REQUEST_CANCEL_JOB_STEP", 5005 },
    { "ListNodes", "REQUEST_NODE_INFO", 2007 },
    { "ListPartitions", "REQUEST_PARTITION_INFO", 2009 },
    { "ListReservations", "REQUEST_RESERVATION_INFO", 2024 },
    { "ListLicenses", "REQUEST_LICENSE_INFO", 1021 },
    { "UpdateNode", "REQUEST_UPDATE_NODE", 3002 },
    { "Ping", "REQUEST_PING", 1008 },
    { "Token", "REQUEST_AUTH_TOKEN", 5039 },
    { "Diag", "REQUEST_STATS_INFO", 2035 },
    { "Session", "MESSAGE_NODE_REGISTRATION_STATUS", 1002 },
};
enum { OWN_FIRST = 20000 }; /* numbers of methods that Slurm does not have */

struct message {
    const char *name;
    unsigned id;
};

static struct message message_of(const CallStat *call)
{
    unsigned hash = 0;

    for (size_t i = 0; i < ARRAY_LEN(messages); i++) {
        if (str_eq(messages[i].method, call->name))
            return (struct message){ messages[i].slurm, messages[i].id };
    }
    for (const char *c = call->name ? call->name : ""; *c; c++)
        hash = hash * 31 + (unsigned char)*c;
    return (struct message){ call->name ? call->name : "", OWN_FIRST + hash % 10000 };
}

static uint64_t average(const CallStat *call)
{
    return call->count ? call->total_us / call->count : 0;
}

static int compare(uint64_t a, uint64_t b)
{
    return a < b ? 1 : a > b ? -1 : 0; /* the larger first */
}

static int by_count(const void *a, const void *b)
{
    return compare((*(CallStat *const *)a)->count, (*(CallStat *const *)b)->count);
}

static int by_average(const void *a, const void *b)
{
    return compare(average(*(CallStat *const *)a), average(*(CallStat *const *)b));
}

static int by_total(const void *a, const void *b)
{
    return compare((*(CallStat *const *)a)->total_us, (*(CallStat *const *)b)->total_us);
}

static int by_message(const void *a, const void *b)
{
    return compare(message_of(*(CallStat *const *)b).id, message_of(*(CallStat *const *)a).id);
}

static int by_uid(const void *a, const void *b)
{
    return compare((*(CallStat *const *)b)->id, (*(CallStat *const *)a)->id);
}

void diag_sort(DiagReply *reply, enum diag_order order)
{
    int (*const how[])(const void *, const void *) = { by_count, by_message, by_average, by_total };

    qsort(reply->calls_by_method, reply->n_calls_by_method, sizeof(CallStat *), how[order]);
    qsort(reply->calls_by_user, reply->n_calls_by_user, sizeof(CallStat *),
          order == DIAG_BY_ID ? by_uid : how[order]);
}

static void add_time(struct str *out, const char *what, int64_t us)
{
    time_t s = (time_t)(us / 1000000);
    char text[64] = "";
    struct tm tm;

    if (localtime_r(&s, &tm))
        strftime(text, sizeof(text), "%a %b %d %H:%M:%S %Y", &tm);
    str_addf(out, "%s%s (%lld)\n", what, text, (long long)s);
}

static uint64_t per(uint64_t sum, uint64_t count)
{
    return count ? sum / count : 0;
}

static uint64_t per_minute(const DiagReply *reply)
{
    uint64_t minutes = (uint64_t)MAX(reply->now_us - reply->since_us, 0) / 60000000;

    return reply->plans / MAX(minutes, 1);
}

static void add_jobs(const DiagReply *reply, struct str *out)
{
    str_addf(out,
             "\nJobs submitted: %llu\nJobs started:   %llu\nJobs completed: %llu\n"
             "Jobs canceled:  %llu\nJobs failed:    %llu\n\n",
             (unsigned long long)reply->jobs_submitted, (unsigned long long)reply->jobs_started,
             (unsigned long long)reply->jobs_completed, (unsigned long long)reply->jobs_cancelled,
             (unsigned long long)reply->jobs_failed);
    add_time(out, "Job states ts:  ", reply->now_us);
    str_addf(out, "Jobs pending:   %llu\nJobs running:   %llu\n",
             (unsigned long long)reply->jobs_pending, (unsigned long long)reply->jobs_running);
}

static void add_main(const DiagReply *reply, struct str *out)
{
    str_addf(out,
             "\nMain schedule statistics (microseconds):\n\tLast cycle:   %llu\n"
             "\tMax cycle:    %llu\n\tTotal cycles: %llu\n",
             (unsigned long long)reply->plan_us_last, (unsigned long long)reply->plan_us_max,
             (unsigned long long)reply->plans);
    if (reply->plans)
        str_addf(out,
                 "\tMean cycle:   %llu\n\tMean depth cycle:  %llu\n\tCycles per minute: %llu\n",
                 (unsigned long long)per(reply->plan_us_total, reply->plans),
                 (unsigned long long)per(reply->plan_starts, reply->plans),
                 (unsigned long long)per_minute(reply));
    str_addf(out,
             "\tLast queue length: %llu\n\nMain scheduler exit:\n\tEnd of job queue: %llu\n"
             "\tHit default_queue_depth: 0\n\tHit sched_max_job_start: 0\n"
             "\tBlocked on licenses: 0\n\tHit max_rpc_cnt: 0\n\tTimeout (max_sched_time): 0\n",
             (unsigned long long)reply->jobs_pending, (unsigned long long)reply->plans);
}

static void add_backfill(const DiagReply *reply, struct str *out)
{
    str_addf(out,
             "\nBackfilling stats\n"
             "\tTotal backfilled jobs (since last slurm start): %llu\n"
             "\tTotal backfilled jobs (since last stats cycle start): %llu\n"
             "\tTotal backfilled heterogeneous job components: 0\n\tTotal cycles: %llu\n",
             (unsigned long long)reply->plan_backfilled, (unsigned long long)reply->plan_backfilled,
             (unsigned long long)reply->plans);
    add_time(out, "\tLast cycle when: ", reply->plan_last_us);
    str_addf(out, "\tLast cycle: %llu\n\tMax cycle:  %llu\n",
             (unsigned long long)reply->plan_us_last, (unsigned long long)reply->plan_us_max);
    if (reply->plans)
        str_addf(out, "\tMean cycle: %llu\n",
                 (unsigned long long)per(reply->plan_us_total, reply->plans));
    str_addf(out,
             "\tLast depth cycle: %llu\n\tLast depth cycle (try sched): %llu\n"
             "\tLast queue length: %llu\n\tLast table size: 0\n\nBackfill exit\n"
             "\tEnd of job queue: %llu\n\tHit bf_max_job_start: 0\n\tHit bf_max_job_test: 0\n"
             "\tSystem state changed: 0\n\tHit table size limit (bf_node_space_size): 0\n"
             "\tTimeout (bf_max_time): 0\n",
             (unsigned long long)reply->jobs_pending, (unsigned long long)reply->jobs_pending,
             (unsigned long long)reply->jobs_pending, (unsigned long long)reply->plans);
}

static void add_calls(const DiagReply *reply, struct str *out)
{
    str_add(out, "\nRemote Procedure Call statistics by message type\n");
    for (size_t i = 0; i < reply->n_calls_by_method; i++) {
        const CallStat *call = reply->calls_by_method[i];
        struct message message = message_of(call);

        str_addf(out, "\t%-40s(%5u) count:%-6llu ave_time:%-6llu total_time:%llu\n", message.name,
                 message.id, (unsigned long long)call->count, (unsigned long long)average(call),
                 (unsigned long long)call->total_us);
    }
    str_add(out, "\nRemote Procedure Call statistics by user\n");
    for (size_t i = 0; i < reply->n_calls_by_user; i++) {
        const CallStat *call = reply->calls_by_user[i];
        char number[16];

        snprintf(number, sizeof(number), "%u", call->id);
        str_addf(out, "\t%-16s(%8u) count:%-6llu ave_time:%-6llu total_time:%llu\n",
                 call->name ? call->name : number, call->id, (unsigned long long)call->count,
                 (unsigned long long)average(call), (unsigned long long)call->total_us);
    }
    str_add(out, "\nPending RPC statistics\n\tNo pending RPCs\n");
}

void diag_add_text(const DiagReply *reply, int64_t latency_us, struct str *out)
{
    static const char stars[] = "*******************************************************\n";

    str_add(out, stars);
    add_time(out, "sdiag output at ", reply->now_us);
    add_time(out, "Data since      ", reply->since_us);
    str_add(out, stars);
    str_addf(out,
             "Server thread count:  1\nRPC queue enabled:    0\nAgent queue size:     0\n"
             "Agent count:          %llu\nAgent thread count:   0\nDBD Agent queue size: %llu\n",
             (unsigned long long)reply->nodes_connected, (unsigned long long)reply->journal_unsent);
    add_jobs(reply, out);
    add_main(reply, out);
    add_backfill(reply, out);
    str_addf(out, "\nLatency for 1000 calls to gettimeofday(): %lld microseconds\n",
             (long long)latency_us);
    add_calls(reply, out);
}

static void json_u64(struct jsonw *json, const char *key, uint64_t value)
{
    jsonw_number(json, key, (int64_t)value);
}

static void json_time(struct jsonw *json, const char *key, int64_t us)
{
    jsonw_set(json, key, true, false, us / 1000000);
}

/* An object of counters, of which one grows: a pass always ends with the queue. */
static void json_exits(struct jsonw *json, const char *key, const char *const *names,
                       uint64_t first)
{
    jsonw_object(json, key);
    for (size_t i = 0; names[i]; i++)
        json_u64(json, names[i], i == 0 ? first : 0);
    jsonw_object_end(json);
}

static void json_schedule(const DiagReply *reply, struct jsonw *json)
{
    static const char *const exits[] = { "end_job_queue",
                                         "default_queue_depth",
                                         "max_job_start",
                                         "max_rpc_cnt",
                                         "max_sched_time",
                                         "licenses",
                                         NULL };

    json_u64(json, "schedule_cycle_max", reply->plan_us_max);
    json_u64(json, "schedule_cycle_last", reply->plan_us_last);
    json_u64(json, "schedule_cycle_sum", reply->plan_us_total);
    json_u64(json, "schedule_cycle_total", reply->plans);
    json_u64(json, "schedule_cycle_mean", per(reply->plan_us_total, reply->plans));
    json_u64(json, "schedule_cycle_mean_depth", per(reply->plan_starts, reply->plans));
    json_u64(json, "schedule_cycle_per_minute", per_minute(reply));
    json_u64(json, "schedule_cycle_depth", reply->plan_starts);
    json_exits(json, "schedule_exit", exits, reply->plans);
    json_u64(json, "schedule_queue_length", reply->jobs_pending);
}

static void json_jobs(const DiagReply *reply, struct jsonw *json)
{
    json_u64(json, "jobs_submitted", reply->jobs_submitted);
    json_u64(json, "jobs_started", reply->jobs_started);
    json_u64(json, "jobs_completed", reply->jobs_completed);
    json_u64(json, "jobs_canceled", reply->jobs_cancelled);
    json_u64(json, "jobs_failed", reply->jobs_failed);
    json_u64(json, "jobs_pending", reply->jobs_pending);
    json_u64(json, "jobs_running", reply->jobs_running);
    json_time(json, "job_states_ts", reply->now_us);
}

static void json_backfill(const DiagReply *reply, struct jsonw *json)
{
    static const char *const exits[] = { "end_job_queue",
                                         "bf_max_job_start",
                                         "bf_max_job_test",
                                         "bf_max_time",
                                         "bf_node_space_size",
                                         "state_changed",
                                         NULL };
    static const char *const none[] = { "bf_table_size", "bf_table_size_sum",
                                        "bf_table_size_mean" };

    uint64_t queue = per(reply->plan_queue_sum, reply->plans);

    json_u64(json, "bf_backfilled_jobs", reply->plan_backfilled);
    json_u64(json, "bf_last_backfilled_jobs", reply->plan_backfilled);
    json_u64(json, "bf_backfilled_het_jobs", 0);
    json_u64(json, "bf_cycle_counter", reply->plans);
    json_u64(json, "bf_cycle_mean", per(reply->plan_us_total, reply->plans));
    json_u64(json, "bf_depth_mean", queue);
    json_u64(json, "bf_depth_mean_try", queue);
    json_u64(json, "bf_cycle_sum", reply->plan_us_total);
    json_u64(json, "bf_cycle_last", reply->plan_us_last);
    json_u64(json, "bf_cycle_max", reply->plan_us_max);
    json_exits(json, "bf_exit", exits, reply->plans);
    json_u64(json, "bf_last_depth", reply->jobs_pending);
    json_u64(json, "bf_last_depth_try", reply->jobs_pending);
    json_u64(json, "bf_depth_sum", reply->plan_queue_sum);
    json_u64(json, "bf_depth_try_sum", reply->plan_queue_sum);
    json_u64(json, "bf_queue_len", reply->jobs_pending);
    json_u64(json, "bf_queue_len_mean", queue);
    json_u64(json, "bf_queue_len_sum", reply->plan_queue_sum);
    for (size_t i = 0; i < ARRAY_LEN(none); i++)
        json_u64(json, none[i], 0);
    json_time(json, "bf_when_last_cycle", reply->plan_last_us);
    jsonw_bool(json, "bf_active", false);
}

static void json_call_cost(const CallStat *call, struct jsonw *json)
{
    json_u64(json, "total_time", call->total_us);
    jsonw_set(json, "average_time", true, false, (int64_t)average(call));
}

static void json_calls(const DiagReply *reply, struct jsonw *json)
{
    static const char *const none[] = { "queued", "dropped", "cycle_last", "cycle_max" };

    jsonw_list(json, "rpcs_by_message_type");
    for (size_t i = 0; i < reply->n_calls_by_method; i++) {
        const CallStat *call = reply->calls_by_method[i];
        struct message message = message_of(call);

        jsonw_object(json, NULL);
        json_u64(json, "type_id", message.id);
        jsonw_text(json, "message_type", message.name);
        json_u64(json, "count", call->count);
        for (size_t k = 0; k < ARRAY_LEN(none); k++)
            json_u64(json, none[k], 0);
        json_call_cost(call, json);
        jsonw_object_end(json);
    }
    jsonw_list_end(json);
    jsonw_list(json, "rpcs_by_user");
    for (size_t i = 0; i < reply->n_calls_by_user; i++) {
        const CallStat *call = reply->calls_by_user[i];
        char number[16];

        snprintf(number, sizeof(number), "%u", call->id);
        jsonw_object(json, NULL);
        json_u64(json, "user_id", call->id);
        jsonw_text(json, "user", call->name ? call->name : number);
        json_u64(json, "count", call->count);
        json_call_cost(call, json);
        jsonw_object_end(json);
    }
    jsonw_list_end(json);
    jsonw_list(json, "pending_rpcs");
    jsonw_list_end(json);
    jsonw_list(json, "pending_rpcs_by_hostlist");
    jsonw_list_end(json);
}

void diag_add_json(const DiagReply *reply, int64_t latency_us, struct jsonw *json)
{
    jsonw_object(json, "statistics");
    json_time(json, "req_time", reply->now_us);
    json_time(json, "req_time_start", reply->since_us);
    json_u64(json, "server_thread_count", 1);
    json_u64(json, "agent_queue_size", 0);
    json_u64(json, "agent_count", reply->nodes_connected);
    json_u64(json, "agent_thread_count", 0);
    json_u64(json, "dbd_agent_queue_size", reply->journal_unsent);
    json_u64(json, "gettimeofday_latency", (uint64_t)MAX(latency_us, 0));
    json_schedule(reply, json);
    json_jobs(reply, json);
    json_backfill(reply, json);
    json_calls(reply, json);
    jsonw_object_end(json);
}
