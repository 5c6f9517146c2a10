/* SPDX-License-Identifier: Apache-2.0 */
/*
 * purge.c - what is older than the site wants to keep goes
 *
 * A run takes its steps, suspensions, resizes and script along. A few hundred at a time, so that entries of the
 * journal are not held up.
 */
#include "spurdbd/purge.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "base/vec.h"

enum { PURGE_RUNS = 500 };

bool purge_read_age(const char *text, int64_t *seconds)
{
    static const struct {
        const char *unit;
        int64_t seconds;
    } units[] = {
        { "", INT64_C(30) * 86400 },
        { "month", INT64_C(30) * 86400 },
        { "months", INT64_C(30) * 86400 },
        { "day", 86400 },
        { "days", 86400 },
        { "hour", 3600 },
        { "hours", 3600 },
    };
    char *end;

    if (str_is_empty(text)) {
        *seconds = 0;
        return true;
    }
    long long number = strtoll(text, &end, 10);
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (end != text && number > 0 && number < 100000 && str_ieq(end, units[i].unit)) {
            *seconds = number * units[i].seconds;
            return true;
        }
    }
    return false;
}

int purge_read(const ConfLocal *local, struct purge *out, struct err *err)
{
    const struct {
        const char *name, *text;
        int64_t *into;
    } rows[] = {
        { "purge_job_after", local->purge_job_after, &out->job_s },
        { "purge_step_after", local->purge_step_after, &out->step_s },
        { "purge_event_after", local->purge_event_after, &out->event_s },
        { "purge_resv_after", local->purge_resv_after, &out->resv_s },
        { "purge_txn_after", local->purge_txn_after, &out->txn_s },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (!purge_read_age(rows[i].text, rows[i].into))
            return err_set(err, ERR_INVALID,
                           "[accounting] %s = \"%s\": expected a number and hours, days or months",
                           rows[i].name, rows[i].text);
    }
    return 0;
}

struct old_run {
    int64_t db_id, cluster, job_id, run;
};
typedef VEC(struct old_run) old_runs;

static int take_run(void *ctx, const struct store_row *row, struct err *err)
{
    old_runs *runs = ctx;

    (void)err;
    vec_push(runs, (struct old_run){ store_row_int(row, 0), store_row_int(row, 1),
                                     store_row_int(row, 2), store_row_int(row, 3) });
    return 0;
}

static int find_runs(struct store *store, int64_t before_us, old_runs *out, struct err *err)
{
    return store_each(store,
                      "SELECT db_id, cluster, job_id, run FROM job WHERE t_end > 0 AND t_end < ?1"
                      " ORDER BY t_end LIMIT ?2",
                      STORE_VALUES(STORE_INT(before_us), STORE_INT(PURGE_RUNS)), take_run, out,
                      err);
}

static int remove_run(struct store *store, const struct old_run *run, struct err *err)
{
    static const char *const with_it[] = {
        "DELETE FROM step WHERE cluster = ?1 AND job_id = ?2 AND run = ?3",
        "DELETE FROM suspend WHERE cluster = ?1 AND job_id = ?2 AND run = ?3",
        "DELETE FROM resize WHERE cluster = ?1 AND job_id = ?2 AND run = ?3",
    };
    struct store_values key =
        STORE_VALUES(STORE_INT(run->cluster), STORE_INT(run->job_id), STORE_INT(run->run));

    for (size_t i = 0; i < ARRAY_LEN(with_it); i++) {
        if (store_run(store, with_it[i], key, err) < 0)
            return -(int)err->code;
    }
    if (store_run(store, "DELETE FROM job WHERE db_id = ?1", STORE_VALUES(STORE_INT(run->db_id)),
                  err) < 0 ||
        store_run(store,
                  "DELETE FROM payload WHERE cluster = ?1 AND job_id = ?2 AND NOT EXISTS"
                  " (SELECT 1 FROM job WHERE job.cluster = ?1 AND job.job_id = ?2)",
                  STORE_VALUES(STORE_INT(run->cluster), STORE_INT(run->job_id)), err) < 0)
        return -(int)err->code;
    return 0;
}

static int purge_jobs(struct store *store, int64_t before_us, bool *left, uint64_t *removed,
                      struct err *err)
{
    old_runs runs = { 0 };
    int code = find_runs(store, before_us, &runs, err);

    for (size_t i = 0; i < runs.len && code == 0; i++)
        code = remove_run(store, &runs.items[i], err);
    *left = *left || runs.len == PURGE_RUNS;
    *removed += runs.len;
    vec_done(&runs);
    return code;
}

int purge_some(struct store *store, const struct purge *purge, int64_t now_us, bool *left,
               uint64_t *removed, struct err *err)
{
    const struct {
        int64_t age_s;
        const char *sql;
    } rest[] = {
        { purge->step_s, "DELETE FROM step WHERE t_end > 0 AND t_end < ?1" },
        { purge->event_s, "DELETE FROM event WHERE t_end > 0 AND t_end < ?1" },
        { purge->resv_s, "DELETE FROM resv WHERE ended = 1 AND t_end < ?1" },
        { purge->txn_s, "DELETE FROM acct_transaction WHERE t_us < ?1" },
    };
    int code = store_begin(store, err);

    *left = false;
    if (code == 0 && purge->job_s)
        code = purge_jobs(store, now_us - purge->job_s * 1000000, left, removed, err);
    for (size_t i = 0; i < ARRAY_LEN(rest) && code == 0 && !*left; i++) {
        if (rest[i].age_s)
            code = store_run(store, rest[i].sql,
                             STORE_VALUES(STORE_INT(now_us - rest[i].age_s * 1000000)), err);
    }
    if (code == 0)
        code = store_commit(store, err);
    if (code < 0)
        store_rollback(store);
    return code;
}
