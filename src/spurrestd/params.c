/* SPDX-License-Identifier: Apache-2.0 */
/*
 * params.c - what a path or a query says, read and checked
 */
#include "spurrestd/params.h"

#include <string.h>

#include "schema/names.h"
#include "spurrestd/answer.h"
#include "spurrestd/events.h"
#include "spurrestd/rest.h"

enum { LIST_MOST = 1000, PAGE_MOST = 100000 };

char **params_list(struct exchange *x, const char *text, size_t *count)
{
    char **list = ARENA_ARRAY(&x->arena, char *, LIST_MOST);
    const char *cursor = text;
    struct span word;

    *count = 0;
    while (text && *count < LIST_MOST && str_next(&cursor, ",", &word))
        list[(*count)++] = arena_strndup(&x->arena, word.ptr, word.len);
    return list;
}

static int read_states(struct exchange *x, const char *text, ListJobsRequest *request,
                       struct err *err)
{
    size_t count;
    char **words = params_list(x, text, &count);

    request->states = ARENA_ARRAY(&x->arena, JobState, count);
    for (size_t i = 0; i < count; i++) {
        uint32_t value;
        bool is_flag;
        if (!job_state_find(words[i], strlen(words[i]), &value, &is_flag))
            return err_set(err, ERR_JOB_STATE, "'%.64s' is not a state of a job", words[i]);
        if (is_flag) {
            request->has_flag_mask = true;
            request->flag_mask |= value;
        } else {
            request->states[request->n_states++] = (JobState)value;
        }
    }
    if (count)
        request->all_states = request->n_states == 0;
    return 0;
}

static int read_number(struct exchange *x, const char *name, uint64_t most, uint64_t *out,
                       struct err *err)
{
    const char *text = exchange_query(x, name);

    *out = 0;
    if (!str_is_empty(text) && !str_to_u64(text, most, out))
        return err_set(err, ERR_INVALID, "%s '%.32s' is not a number up to %llu", name, text,
                       (unsigned long long)most);
    return 0;
}

int params_jobs(struct exchange *x, ListJobsRequest *request, uint64_t *limit, uint64_t *cursor,
                struct err *err)
{
    *limit = *cursor = 0;
    if (x->version)
        return 0;
    request->users = params_list(x, exchange_query(x, "user"), &request->n_users);
    request->accounts = params_list(x, exchange_query(x, "account"), &request->n_accounts);
    request->partitions = params_list(x, exchange_query(x, "partition"), &request->n_partitions);
    request->names = params_list(x, exchange_query(x, "name"), &request->n_names);
    request->qos = params_list(x, exchange_query(x, "qos"), &request->n_qos);
    request->nodes = params_list(x, exchange_query(x, "node"), &request->n_nodes);
    if (read_states(x, exchange_query(x, "state"), request, err) < 0 ||
        read_number(x, "limit", PAGE_MOST, limit, err) < 0 ||
        read_number(x, "cursor", UINT32_MAX, cursor, err) < 0)
        return -(int)err->code;
    return 0;
}

bool params_bad_job(struct exchange *x)
{
    const char *id = x->args[0];
    bool good = id[0] >= '0' && id[0] <= '9' && strlen(id) < 64 &&
                strspn(id, "0123456789_+[]-,:%") == strlen(id);
    struct err err = { 0 };

    if (good)
        return false;
    err_set(&err, ERR_INVALID, "'%.64s' is not a job id", id);
    if (x->version)
        answer_failed(x, 422, 9000, "Query empty or not RFC7320 compliant",
                      "Rejecting request. Failure parsing parameters", NULL);
    else
        answer_error(x, &err, NULL);
    return true;
}

static bool has_flag(const struct exchange *x, const char *flag)
{
    const char *cursor = exchange_query(x, "flags");
    struct span word;

    while (cursor && str_next(&cursor, ",", &word)) {
        if (span_ieq(word, flag))
            return true;
    }
    return false;
}

bool params_all(const struct exchange *x)
{
    return has_flag(x, "ALL");
}

/* Details are always there, and so are all of this cluster; there are no federations, so none has siblings. */
static int check_flags(const struct exchange *x, struct err *err)
{
    static const char *const known[] = { "ALL",     "DETAIL",     "MIXED", "LOCAL",
                                         "SIBLING", "FEDERATION", "FUTURE" };
    const char *cursor = exchange_query(x, "flags");
    struct span word;

    while (cursor && str_next(&cursor, ",", &word)) {
        bool found = false;
        for (size_t i = 0; i < ARRAY_LEN(known); i++)
            found = found || span_ieq(word, known[i]);
        if (!found)
            return err_set(err, ERR_INVALID, "flags: '%.*s' is not a flag of a list",
                           (int)MIN(word.len, 64), word.ptr);
    }
    return 0;
}

bool params_since(struct exchange *x, unsigned what, bool *unchanged)
{
    const char *text = exchange_query(x, "update_time");
    struct err err = { 0 };
    int64_t since_s;

    *unchanged = false;
    if (!x->version)
        return false;
    if (check_flags(x, &err) == 0 && !str_is_empty(text)) {
        if (!str_to_i64(text, 0, INT64_C(1) << 40, &since_s))
            err_set(&err, ERR_INVALID, "update_time '%.32s' is not seconds since 1970", text);
        else
            *unchanged = !events_changed(x->rest->events, (enum events_of)what, since_s);
    }
    if (err.code)
        answer_error(x, &err, NULL);
    return err.code != 0;
}
