/* SPDX-License-Identifier: Apache-2.0 */
/*
 * db_history.c - jobs of /slurmdb: the history, as sacct --json writes it
 *
 * (1) Runs are written as they come, and spurdbd is held back while the caller does not read.
 */
#include <stdlib.h>
#include <string.h>

#include "base/timefmt.h"
#include "proto/dbd.pb-c.h"
#include "schema/acct.h"
#include "schema/names.h"
#include "spurrestd/db.h"
#include "spurrestd/params.h"
#include "spurrestd/routes.h"
#include "sys/clock.h"

struct reading {
    struct answer *answer;
    struct acct_ctx ctx;
    size_t found;
    const char *note;
};

static void reading_gone(struct exchange *x)
{
    struct reading *reading = x->data;

    answer_free(reading->answer);
}

static void on_writable(struct exchange *x)
{
    x->on_writable = NULL;
    ask_resume(x);
}

static struct jsonw *reading_json(struct exchange *x)
{
    struct reading *reading = x->data;

    if (!reading->answer) {
        reading->answer = answer_new(x);
        jsonw_list(&reading->answer->json, "jobs");
    }
    return &reading->answer->json;
}

static void on_runs(struct exchange *x, const ProtobufCMessage *message)
{
    const ListHistoryReply *reply = (const void *)message;
    struct reading *reading = x->data;
    struct jsonw *json = reading_json(x);

    if (reply->has_now_us)
        reading->ctx.now_us = reply->now_us;
    if (!str_is_empty(reply->note))
        reading->note = arena_strdup(&x->arena, reply->note);
    for (size_t i = 0; i < reply->n_jobs; i++)
        acct_add_json(&reading->ctx, reply->jobs[i], json);
    reading->found += reply->n_jobs;
    answer_flush(reading->answer); /* (1) */
    if (!exchange_writable(x)) {
        ask_pause(x);
        x->on_writable = on_writable;
    }
}

static void on_done(struct exchange *x, const ProtobufCMessage *reply, const struct err *err)
{
    struct reading *reading = x->data;

    (void)reply;
    x->on_gone = NULL;
    if (err) {
        answer_free(TAKE(reading->answer));
        answer_error(x, err, NULL);
        return;
    }
    jsonw_list_end(reading_json(x));
    if (!reading->found)
        db_warn_nothing(reading->answer, "slurmdb_jobs_get", "_dump_jobs");
    if (reading->note)
        answer_warn(reading->answer, x->path, "%s", reading->note);
    answer_send(TAKE(reading->answer));
}

static void ask_history(struct exchange *x, ListHistoryRequest *request)
{
    struct reading *reading = ARENA_NEW(&x->arena, struct reading);

    reading->ctx.now_us = clock_wall_us();
    x->data = reading;
    x->on_gone = reading_gone;
    const struct ask_call call = { .method = "/spur.Accounting/ListHistory",
                                   .message = &request->base,
                                   .reply = &list_history_reply__descriptor,
                                   .message_came = on_runs,
                                   .done = on_done };
    ask_start(x, &call);
}

/* ---- parameters ---- */

/* "12", "12_3", "12+1", each with ".batch" or ".0" behind it. */
static int add_id(struct exchange *x, const char *text, ListHistoryRequest *request,
                  struct err *err)
{
    AcctJobId *id = ARENA_NEW(&x->arena, AcctJobId);
    char *end;
    unsigned long job = strtoul(text, &end, 10);

    acct_job_id__init(id);
    id->has_job = true;
    id->job = (uint32_t)job;
    if (end != text && (*end == '_' || *end == '+')) {
        bool task = *end == '_';
        const char *rest = end + 1;
        uint32_t number = (uint32_t)strtoul(rest, &end, 10);
        if (end == rest)
            end = (char *)(uintptr_t) "x";
        *(task ? &id->has_task : &id->has_offset) = true;
        *(task ? &id->task : &id->offset) = number;
    }
    if (*end == '.') {
        const char *step = end + 1;
        id->has_step = true;
        id->step = str_eq(step, "batch")    ? (uint32_t)ACCT_STEP_BATCH
                   : str_eq(step, "extern") ? (uint32_t)ACCT_STEP_EXTERN
                                            : (uint32_t)strtoul(step, &end, 10);
        if (str_eq(step, "batch") || str_eq(step, "extern"))
            end = (char *)(uintptr_t) "";
    }
    if (!job || job > UINT32_MAX || *end)
        return err_set(err, ERR_INVALID, "'%.64s' is not a job or a step", text);
    request->ids[request->n_ids++] = id;
    return 0;
}

static int read_ids(struct exchange *x, const char *text, ListHistoryRequest *request,
                    struct err *err)
{
    size_t count;
    char **words = params_list(x, text, &count);

    request->ids = ARENA_ARRAY(&x->arena, AcctJobId *, count + 1);
    for (size_t i = 0; i < count; i++) {
        if (add_id(x, words[i], request, err) < 0)
            return -(int)err->code;
    }
    return 0;
}

static int read_numbers(struct exchange *x, const char *param, uint32_t **out, size_t *n,
                        struct err *err)
{
    size_t count;
    char **words = params_list(x, exchange_query(x, param), &count);

    *out = ARENA_ARRAY(&x->arena, uint32_t, count + 1);
    for (size_t i = 0; i < count; i++) {
        uint64_t number;
        if (!str_to_u64(words[i], UINT32_MAX, &number))
            return err_set(err, ERR_INVALID, "%s: '%.64s' is not a number", param, words[i]);
        (*out)[(*n)++] = (uint32_t)number;
    }
    return 0;
}

/* Names and numbers of users. */
static void read_users(struct exchange *x, ListHistoryRequest *request)
{
    size_t count;
    char **words = params_list(x, exchange_query(x, "users"), &count);

    request->uids = ARENA_ARRAY(&x->arena, uint32_t, count + 1);
    request->users = ARENA_ARRAY(&x->arena, char *, count + 1);
    for (size_t i = 0; i < count; i++) {
        uint64_t uid;
        if (str_to_u64(words[i], UINT32_MAX, &uid))
            request->uids[request->n_uids++] = (uint32_t)uid;
        else
            request->users[request->n_users++] = words[i];
    }
}

static int read_states(struct exchange *x, ListHistoryRequest *request, struct err *err)
{
    size_t count;
    char **words = params_list(x, exchange_query(x, "state"), &count);

    request->states = ARENA_ARRAY(&x->arena, uint32_t, count + 1);
    for (size_t i = 0; i < count; i++) {
        uint32_t value;
        bool is_flag;
        if (!job_state_find(words[i], strlen(words[i]), &value, &is_flag))
            return err_set(err, ERR_JOB_STATE, "'%.64s' is not a state of a job", words[i]);
        if (is_flag && str_ieq(words[i], "REQUEUED"))
            request->has_requeued = request->requeued = true;
        else if (!is_flag)
            request->states[request->n_states++] = value;
    }
    return 0;
}

/* Seconds since 1970, or what sacct takes ("now-1day", "2026-11-18T10:00"). */
static int read_time(struct exchange *x, const char *param, protobuf_c_boolean *has, int64_t *out,
                     struct err *err)
{
    const char *text = exchange_query(x, param);
    int64_t seconds;

    if (str_is_empty(text))
        return 0;
    *has = true;
    if (str_to_i64(text, 0, INT64_C(1) << 40, &seconds)) {
        *out = seconds * 1000000;
        return 0;
    }
    if (timefmt_read_point(text, clock_wall_s(), TIMEFMT_PAST, &seconds, err) < 0)
        return err_wrap(err, "%s", param);
    *out = seconds * 1000000;
    return 0;
}

/* Parameters that choose by what is not kept: said, not ignored. */
static int refuse_others(struct exchange *x, struct err *err)
{
    static const char *const names[] = { "scheduler_unset",          "scheduled_on_submit",
                                         "scheduled_by_main",        "scheduled_by_backfill",
                                         "reservation_id",           "exit_code",
                                         "usage_time_as_submit_time" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (exchange_query(x, names[i]) && !str_is_empty(exchange_query(x, names[i])) &&
            exchange_query_bool(x, names[i]) != 0)
            return err_set(err, ERR_UNSUPPORTED, "jobs cannot be chosen by '%s'", names[i]);
    }
    return 0;
}

static int read_filters(struct exchange *x, ListHistoryRequest *request, struct err *err)
{
    const struct {
        const char *param;
        char ***list;
        size_t *count;
    } lists[] = {
        { "account", &request->accounts, &request->n_accounts },
        { "cluster", &request->clusters, &request->n_clusters },
        { "partition", &request->partitions, &request->n_partitions },
        { "qos", &request->qos, &request->n_qos },
        { "job_name", &request->names, &request->n_names },
        { "wckey", &request->wckeys, &request->n_wckeys },
        { "constraints", &request->constraints, &request->n_constraints },
        { "reason", &request->reasons, &request->n_reasons },
    };

    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        *lists[i].list = params_list(x, exchange_query(x, lists[i].param), lists[i].count);
    read_users(x, request);
    const char *nodes = exchange_query(x, "node");
    request->nodes = str_is_empty(nodes) ? NULL : (char *)(uintptr_t)nodes;
    request->has_duplicates = request->has_no_steps = request->has_payload = true;
    request->duplicates = db_flag(x, "show_duplicates");
    request->no_steps = db_flag(x, "skip_steps");
    request->payload = db_flag(x, "show_batch_script") || db_flag(x, "show_job_environment");
    request->has_no_wait = true;
    request->no_wait = db_flag(x, "disable_wait_for_result");
    if (read_ids(x, exchange_query(x, "step"), request, err) < 0 ||
        read_numbers(x, "association", &request->assocs, &request->n_assocs, err) < 0 ||
        read_numbers(x, "groups", &request->gids, &request->n_gids, err) < 0 ||
        read_states(x, request, err) < 0 ||
        read_time(x, "start_time", &request->has_start_us, &request->start_us, err) < 0 ||
        read_time(x, "end_time", &request->has_end_us, &request->end_us, err) < 0)
        return -(int)err->code;
    return refuse_others(x, err);
}

void db_get_jobs(struct exchange *x)
{
    ListHistoryRequest *request = ARENA_NEW(&x->arena, ListHistoryRequest);
    struct err err = { 0 };

    list_history_request__init(request);
    if (read_filters(x, request, &err) < 0) {
        answer_error(x, &err, NULL);
        return;
    }
    ask_history(x, request);
}

void db_get_job(struct exchange *x)
{
    ListHistoryRequest *request = ARENA_NEW(&x->arena, ListHistoryRequest);
    struct err err = { 0 };

    list_history_request__init(request);
    request->has_duplicates = request->duplicates = true;
    if (read_ids(x, x->args[0], request, &err) < 0) {
        answer_error(x, &err, NULL);
        return;
    }
    ask_history(x, request);
}
