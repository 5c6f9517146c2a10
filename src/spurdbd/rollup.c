/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rollup.c - sums of use by hour, day and month
 *
 * (1) Table usage_state has, for each cluster, the moment up to which everything is summed up. An event that is
 *     about an earlier moment (it came late, or a job's account changed) moves it back, in the transaction that
 *     brings the event; the hours from there on are then made again. So sums equal what the history says.
 * (2) Days are made of hours and months of days, in the transaction that makes the last of them.
 * (3) Hours are kept for some weeks. An earlier hour is made again together with its whole day.
 * (4) A question takes the longest periods that lie within its window; the rest, and what is not summed up yet,
 *     comes from the history.
 */
#include "spurdbd/rollup.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "spurdbd/rollup_cluster.h"

enum { HOUR_S = 3600, HOURS_KEPT_DAYS = 35, LATE_S = 60, FIRST_OWN_TRES = 1001, TRIES = 3 };

/* ---- periods ---- */

int64_t rollup_floor(enum rollup_period period, int64_t at_s)
{
    time_t at = (time_t)at_s;
    struct tm tm;

    localtime_r(&at, &tm);
    if (period == ROLLUP_HOUR)
        return at_s - tm.tm_min * 60 - tm.tm_sec;
    tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
    tm.tm_isdst = -1;
    if (period == ROLLUP_MONTH)
        tm.tm_mday = 1;
    return mktime(&tm);
}

int64_t rollup_next(enum rollup_period period, int64_t at_s)
{
    time_t at = (time_t)rollup_floor(period, at_s);
    struct tm tm;

    if (period == ROLLUP_HOUR)
        return at + HOUR_S;
    localtime_r(&at, &tm);
    tm.tm_isdst = -1;
    if (period == ROLLUP_DAY)
        tm.tm_mday++;
    else
        tm.tm_mon++;
    return mktime(&tm);
}

/* ---- up to where ---- */

int rollup_done(struct store *store, int64_t cluster, int64_t *done_s, struct err *err)
{
    return store_number(store, "SELECT done_s FROM usage_state WHERE cluster = ?1",
                        STORE_VALUES(STORE_INT(cluster)), INT64_MIN, done_s, err);
}

static int set_done(struct store *store, int64_t cluster, int64_t done_s, struct err *err)
{
    return store_run(store,
                     "INSERT INTO usage_state(cluster, done_s) VALUES(?1, ?2)"
                     " ON CONFLICT(cluster) DO UPDATE SET done_s = ?2",
                     STORE_VALUES(STORE_INT(cluster), STORE_INT(done_s)), err);
}

int rollup_restart(struct store *store, int64_t cluster, int64_t from_s, struct err *err)
{
    return store_run(store, "UPDATE usage_state SET done_s = ?2 WHERE cluster = ?1 AND done_s > ?2",
                     STORE_VALUES(STORE_INT(cluster), STORE_INT(from_s)), err);
}

/* ---- from the history ---- */

struct direct {
    struct meter *meter, *resv;
    const struct past *past;
    int64_t from_s, to_s, now_s;
};

static int add_run(void *ctx, const struct rollup_run *run, struct err *err)
{
    struct direct *direct = ctx;
    int64_t upto = MIN(direct->to_s, direct->now_s);
    int64_t waited = run->start_s ? run->start_s : run->end_s;
    unsigned who = 0;

    (void)err;
    if (run->part_count)
        who = meter_who(direct->meter, &run->who);
    for (size_t i = 0; i < run->part_count; i++) {
        const struct rollup_part *part = &run->parts[i];
        meter_add_tres(direct->meter, METER_USED, who, part->tres.ptr, part->tres.len,
                       MAX(part->from_s, direct->from_s), MIN(part->to_s, upto));
    }
    past_use_reservation(direct->past, direct->resv, run, direct->from_s, upto);
    if (run->eligible_s)
        meter_add_tres(direct->meter, METER_PLANNED, 0, run->tres_req.ptr, run->tres_req.len,
                       MAX(run->eligible_s, direct->from_s), MIN(waited, upto));
    return 0;
}

int rollup_direct(struct store *store, int64_t cluster, struct meter *meter, int64_t from_s,
                  int64_t to_s, int64_t now_s, struct err *err)
{
    struct past *past = past_new();
    struct direct direct = { meter, meter_like(meter), past, from_s, to_s, now_s };
    int64_t upto = MIN(to_s, now_s);

    int code = past_read(past, store, cluster, from_s, to_s, err);
    if (code == 0) {
        past_add(past, meter, from_s, upto);
        past_begin_reservations(past, direct.resv, from_s, upto);
        code = rollup_each_run(store, cluster, from_s, to_s, add_run, &direct, err);
        past_end_reservations(past, direct.resv, meter_spans(meter), meter);
    }
    meter_free(direct.resv);
    past_free(past);
    return code;
}

/* ---- names in the database ---- */

struct names {
    struct arena arena;
    struct map tres, tres_ids; /* id → name; name → id */
    struct map whos;           /* id → struct meter_who */
};

static int take_tres(void *ctx, const struct store_row *row, struct err *err)
{
    struct names *names = ctx;
    struct span type = store_row_bytes(row, 1), name = store_row_bytes(row, 2);
    char *whole = arena_printf(&names->arena, "%.*s%s%.*s", (int)type.len, type.ptr,
                               name.len ? "/" : "", (int)name.len, name.ptr);

    (void)err;
    map_put_num(&names->tres, (uint64_t)store_row_int(row, 0), whole);
    map_put(&names->tres_ids, whole, (void *)(uintptr_t)store_row_int(row, 0));
    return 0;
}

static int take_who(void *ctx, const struct store_row *row, struct err *err)
{
    struct names *names = ctx;
    struct meter_who *who = ARENA_NEW(&names->arena, struct meter_who);
    const char **texts[] = { &who->account, &who->user, &who->partition, &who->qos, &who->wckey };

    (void)err;
    for (unsigned i = 0; i < ARRAY_LEN(texts); i++) {
        struct span text = store_row_bytes(row, i + 1);
        *texts[i] = arena_strndup(&names->arena, text.ptr, text.len);
    }
    who->uid = (uint32_t)store_row_int(row, 6);
    map_put_num(&names->whos, (uint64_t)store_row_int(row, 0), who);
    return 0;
}

static int names_read(struct names *names, struct store *store, int64_t cluster, struct err *err)
{
    arena_init(&names->arena);
    map_init(&names->tres);
    map_init(&names->tres_ids);
    map_init(&names->whos);
    if (store_each(store, "SELECT id, type, name FROM acct_tres", STORE_NO_VALUES, take_tres, names,
                   err) < 0)
        return -(int)err->code;
    return store_each(store,
                      "SELECT id, account, user_name, partition_name, qos, wckey, uid"
                      " FROM usage_who WHERE cluster = ?1",
                      STORE_VALUES(STORE_INT(cluster)), take_who, names, err);
}

static void names_done(struct names *names)
{
    map_done(&names->tres);
    map_done(&names->tres_ids);
    map_done(&names->whos);
    arena_done(&names->arena);
}

/* ---- writing hours ---- */

struct writer {
    struct store *store;
    int64_t cluster;
    const struct meter *meter;
    const int64_t *edges;
    struct names *names;
    int64_t *who_ids, *tres_ids; /* by the meter's numbers; 0: not asked yet */
    int code;
    struct err *err;
};

static int64_t new_tres(struct writer *w, const char *name)
{
    const char *slash = strchr(name, '/');
    struct span type = { name, slash ? (size_t)(slash - name) : strlen(name) };
    int64_t id = 0;

    if (store_number(w->store, "SELECT max(id) + 1 FROM acct_tres", STORE_NO_VALUES, 0, &id,
                     w->err) < 0)
        return 0;
    id = MAX(id, FIRST_OWN_TRES);
    if (store_run(w->store, "INSERT INTO acct_tres(id, type, name) VALUES(?1, ?2, ?3)",
                  STORE_VALUES(STORE_INT(id), (struct store_value){ STORE_IS_TEXT, 0, type },
                               STORE_TEXT(slash ? slash + 1 : "")),
                  w->err) < 0)
        return 0;
    map_put(&w->names->tres_ids, name, (void *)(uintptr_t)id);
    return id;
}

static int64_t tres_id(struct writer *w, unsigned tres)
{
    const char *name = meter_tres_at(w->meter, tres);

    if (!w->tres_ids[tres])
        w->tres_ids[tres] = (int64_t)(uintptr_t)map_get(&w->names->tres_ids, name);
    if (!w->tres_ids[tres])
        w->tres_ids[tres] = new_tres(w, name);
    return w->tres_ids[tres];
}

static int64_t who_id(struct writer *w, unsigned number)
{
    const struct meter_who *who = meter_who_at(w->meter, number);
    struct store_values key =
        STORE_VALUES(STORE_INT(w->cluster), STORE_TEXT(who->account), STORE_TEXT(who->user),
                     STORE_TEXT(who->partition), STORE_TEXT(who->qos), STORE_TEXT(who->wckey),
                     STORE_INT(who->uid));
    struct store_values without_uid = { key.items, key.count - 1 };

    if (w->who_ids[number])
        return w->who_ids[number];
    if (store_run(w->store,
                  "INSERT INTO usage_who(cluster, account, user_name, partition_name, qos, wckey,"
                  " uid) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING",
                  key, w->err) < 0 ||
        store_number(w->store,
                     "SELECT id FROM usage_who WHERE cluster = ?1 AND account = ?2"
                     " AND user_name = ?3 AND partition_name = ?4 AND qos = ?5 AND wckey = ?6",
                     without_uid, 0, &w->who_ids[number], w->err) < 0)
        return 0;
    return w->who_ids[number];
}

static void write_used(void *ctx, enum meter_kind kind, size_t span, unsigned who, unsigned tres,
                       int64_t value)
{
    struct writer *w = ctx;

    if (w->code < 0 || kind != METER_USED || !value)
        return;
    int64_t whose = who_id(w, who), what = whose ? tres_id(w, tres) : 0;
    w->code = !whose || !what
                  ? -(int)w->err->code
                  : store_run(w->store,
                              "INSERT INTO usage_sum(cluster, period, t_s, who, tres, amount)"
                              " VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
                              STORE_VALUES(STORE_INT(w->cluster), STORE_INT(ROLLUP_HOUR),
                                           STORE_INT(w->edges[span]), STORE_INT(whose),
                                           STORE_INT(what), STORE_INT(value)),
                              w->err);
}

static int write_cluster(struct writer *w, size_t span, unsigned tres)
{
    struct store_value values[11] = { STORE_INT(w->cluster), STORE_INT(ROLLUP_HOUR),
                                      STORE_INT(w->edges[span]), STORE_NONE };
    int64_t any = 0;

    for (unsigned kind = METER_TOTAL; kind < METER_KINDS; kind++) {
        int64_t value = meter_value(w->meter, (enum meter_kind)kind, span, 0, tres);
        values[3 + kind] = STORE_INT(value);
        any |= value;
    }
    if (!any)
        return 0;
    int64_t id = tres_id(w, tres);
    if (!id)
        return -(int)w->err->code;
    values[3] = STORE_INT(id);
    return store_run(w->store,
                     "INSERT INTO usage_cluster(cluster, period, t_s, tres, total, alloc, down,"
                     " planned_down, reserved, planned, overcommit)"
                     " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                     (struct store_values){ values, ARRAY_LEN(values) }, w->err);
}

static int write_hours(struct writer *w, size_t spans)
{
    w->who_ids = NEW_ARRAY(int64_t, meter_who_count(w->meter) + 1);
    w->tres_ids = NEW_ARRAY(int64_t, meter_tres_count(w->meter) + 1);
    meter_each(w->meter, write_used, w);
    for (size_t span = 0; span < spans && w->code == 0; span++) {
        for (unsigned tres = 0; tres < meter_tres_count(w->meter) && w->code == 0; tres++)
            w->code = write_cluster(w, span, tres);
    }
    free(w->who_ids);
    free(w->tres_ids);
    return w->code;
}

/* ---- days and months: (2) ---- */

static int delete_period(struct store *store, int64_t cluster, enum rollup_period period,
                         int64_t from_s, int64_t to_s, struct err *err)
{
    struct store_values values =
        STORE_VALUES(STORE_INT(cluster), STORE_INT(period), STORE_INT(from_s), STORE_INT(to_s));

    if (store_run(store,
                  "DELETE FROM usage_sum WHERE cluster = ?1 AND period = ?2 AND t_s >= ?3"
                  " AND t_s < ?4",
                  values, err) < 0)
        return -(int)err->code;
    return store_run(store,
                     "DELETE FROM usage_cluster WHERE cluster = ?1 AND period = ?2 AND t_s >= ?3"
                     " AND t_s < ?4",
                     values, err);
}

static int fold(struct store *store, int64_t cluster, enum rollup_period period, int64_t from_s,
                int64_t to_s, struct err *err)
{
    struct store_values values =
        STORE_VALUES(STORE_INT(cluster), STORE_INT(period - 1), STORE_INT(from_s), STORE_INT(to_s),
                     STORE_INT(period));

    if (store_run(store,
                  "INSERT INTO usage_sum(cluster, period, t_s, who, tres, amount)"
                  " SELECT cluster, CAST(?5 AS BIGINT), CAST(?3 AS BIGINT), who, tres, sum(amount)"
                  " FROM usage_sum WHERE cluster = ?1 AND period = ?2 AND t_s >= ?3 AND t_s < ?4"
                  " GROUP BY cluster, who, tres",
                  values, err) < 0)
        return -(int)err->code;
    return store_run(store,
                     "INSERT INTO usage_cluster(cluster, period, t_s, tres, total, alloc, down,"
                     " planned_down, reserved, planned, overcommit)"
                     " SELECT cluster, CAST(?5 AS BIGINT), CAST(?3 AS BIGINT), tres, sum(total),"
                     " sum(alloc), sum(down), sum(planned_down), sum(reserved), sum(planned),"
                     " sum(overcommit) FROM usage_cluster WHERE cluster = ?1 AND period = ?2"
                     " AND t_s >= ?3 AND t_s < ?4 GROUP BY cluster, tres",
                     values, err);
}

/* Hours of one day from `from_s` up to `to_s` were written: its day and month are made or undone. */
static int fold_longer(struct store *store, int64_t cluster, int64_t from_s, int64_t to_s,
                       struct err *err)
{
    for (enum rollup_period period = ROLLUP_DAY; period <= ROLLUP_MONTH; period++) {
        int64_t begin = rollup_floor(period, from_s), end = rollup_next(period, from_s);
        if (delete_period(store, cluster, period, begin, end, err) < 0 ||
            (end == to_s && fold(store, cluster, period, begin, end, err) < 0))
            return -(int)err->code;
    }
    return 0;
}

/* ---- a step ---- */

/* Of a job, or when the cluster was first heard of; 0: never. */
static int first_submission(struct store *store, int64_t cluster, int64_t *out_us, struct err *err)
{
    struct store_values id = STORE_VALUES(STORE_INT(cluster));
    int64_t event_us = 0;

    if (store_number(store, "SELECT min(t_submit) FROM job WHERE cluster = ?1 AND t_submit > 0", id,
                     0, out_us, err) < 0 ||
        store_number(store, "SELECT min(t_start) FROM event WHERE cluster = ?1", id, 0, &event_us,
                     err) < 0)
        return -(int)err->code;
    if (event_us && (!*out_us || event_us < *out_us))
        *out_us = event_us;
    return 0;
}

static int begin_again(struct store *store, int64_t cluster, int64_t from_s, struct err *err)
{
    int64_t first_us = 0;

    if (first_submission(store, cluster, &first_us, err) < 0)
        return -(int)err->code;
    if (from_s <= first_us / 1000000 || !first_us) {
        if (store_run(store, "DELETE FROM usage_state WHERE cluster = ?1",
                      STORE_VALUES(STORE_INT(cluster)), err) < 0 ||
            store_run(store, "DELETE FROM usage_sum WHERE cluster = ?1",
                      STORE_VALUES(STORE_INT(cluster)), err) < 0)
            return -(int)err->code;
        return store_run(store, "DELETE FROM usage_cluster WHERE cluster = ?1",
                         STORE_VALUES(STORE_INT(cluster)), err);
    }
    return rollup_restart(store, cluster, from_s, err);
}

int rollup_again(struct store *store, int64_t cluster, int64_t from_s, struct err *err)
{
    if (store_begin(store, err) < 0)
        return -(int)err->code;
    if (begin_again(store, cluster, from_s, err) < 0 || store_commit(store, err) < 0) {
        store_rollback(store);
        return -(int)err->code;
    }
    return 0;
}

/* Where to begin: (1), (3); INT64_MAX: the history is empty. */
static int first_hour(struct store *store, int64_t cluster, int64_t now_s, int64_t *out,
                      struct err *err)
{
    int64_t kept = rollup_floor(ROLLUP_DAY, now_s) - (int64_t)HOURS_KEPT_DAYS * 86400;
    int64_t first_us = 0;

    if (rollup_done(store, cluster, out, err) < 0)
        return -(int)err->code;
    if (*out == INT64_MIN) {
        if (first_submission(store, cluster, &first_us, err) < 0)
            return -(int)err->code;
        *out = first_us ? first_us / 1000000 : INT64_MAX;
    }
    if (*out != INT64_MAX)
        *out = rollup_floor(*out < kept ? ROLLUP_DAY : ROLLUP_HOUR, *out);
    return 0;
}

/* Up to there everything has happened. An event that comes later than that moves it back. */
static int64_t last_hour(int64_t now_s)
{
    return rollup_floor(ROLLUP_HOUR, now_s - LATE_S);
}

static size_t hours_between(int64_t from_s, int64_t to_s, int64_t *edges, size_t most)
{
    size_t count = 0;

    edges[count++] = from_s;
    while (edges[count - 1] < to_s && count < most) {
        edges[count] = MIN(rollup_next(ROLLUP_HOUR, edges[count - 1]), to_s);
        count++;
    }
    return count;
}

static int write_day(struct store *store, int64_t cluster, int64_t from_s, int64_t to_s,
                     int64_t now_s, struct err *err)
{
    int64_t edges[32];
    size_t count = hours_between(from_s, to_s, edges, ARRAY_LEN(edges));
    struct meter *meter = meter_new(edges, count);
    struct names names = { 0 };
    struct writer writer = { store, cluster, meter, edges, &names, .err = err };
    int64_t kept = rollup_floor(ROLLUP_DAY, now_s) - (int64_t)HOURS_KEPT_DAYS * 86400;

    int code = rollup_direct(store, cluster, meter, from_s, to_s, now_s, err);
    if (code == 0) {
        meter_settle(meter);
        code = names_read(&names, store, cluster, err);
        if (code == 0)
            code = delete_period(store, cluster, ROLLUP_HOUR, from_s, to_s, err);
        if (code == 0)
            code = write_hours(&writer, count - 1);
        if (code == 0)
            code = fold_longer(store, cluster, from_s, to_s, err);
        if (code == 0)
            code = delete_period(store, cluster, ROLLUP_HOUR, 0, kept, err); /* (3) */
        names_done(&names);
    }
    meter_free(meter);
    return code;
}

int rollup_step(struct store *store, int64_t cluster, int64_t now_s, bool *more, struct err *err)
{
    int64_t from, to = 0, last = last_hour(now_s);

    *more = false;
    if (store_begin(store, err) < 0)
        return -(int)err->code;
    int code = first_hour(store, cluster, now_s, &from, err);
    if (code == 0 && from < last) {
        to = MIN(rollup_next(ROLLUP_DAY, from), last);
        code = write_day(store, cluster, from, to, now_s, err);
        if (code == 0)
            code = set_done(store, cluster, to, err);
    }
    if (code == 0)
        code = store_commit(store, err);
    if (code < 0)
        store_rollback(store);
    *more = code == 0 && to && to < last;
    return code;
}

/* ---- questions: (4) ---- */

struct question {
    struct store *store;
    int64_t cluster, now_s, done_s, hours_from_s;
    struct names names;
    struct meter *out;
    size_t span; /* of `out` */
};

static int take_used(void *ctx, const struct store_row *row, struct err *err)
{
    struct question *q = ctx;
    const struct meter_who *who = map_get_num(&q->names.whos, (uint64_t)store_row_int(row, 0));
    const char *tres = map_get_num(&q->names.tres, (uint64_t)store_row_int(row, 1));

    (void)err;
    if (who && tres)
        meter_put(q->out, METER_USED, q->span, meter_who(q->out, who),
                  meter_tres(q->out, tres, strlen(tres)), store_row_int(row, 2));
    return 0;
}

static int take_cluster(void *ctx, const struct store_row *row, struct err *err)
{
    struct question *q = ctx;
    const char *tres = map_get_num(&q->names.tres, (uint64_t)store_row_int(row, 0));

    (void)err;
    for (unsigned kind = METER_TOTAL; tres && kind < METER_KINDS; kind++)
        meter_put(q->out, (enum meter_kind)kind, q->span, 0, meter_tres(q->out, tres, strlen(tres)),
                  store_row_int(row, kind));
    return 0;
}

static int add_period(struct question *q, enum rollup_period period, int64_t from_s, int64_t to_s,
                      struct err *err)
{
    struct store_values values =
        STORE_VALUES(STORE_INT(q->cluster), STORE_INT(period), STORE_INT(from_s), STORE_INT(to_s));

    if (store_each(q->store,
                   "SELECT who, tres, CAST(sum(amount) AS BIGINT) FROM usage_sum"
                   " WHERE cluster = ?1 AND period = ?2 AND t_s >= ?3 AND t_s < ?4"
                   " GROUP BY who, tres ORDER BY who, tres",
                   values, take_used, q, err) < 0)
        return -(int)err->code;
    return store_each(q->store,
                      "SELECT tres, CAST(sum(total) AS BIGINT), CAST(sum(alloc) AS BIGINT),"
                      " CAST(sum(down) AS BIGINT), CAST(sum(planned_down) AS BIGINT),"
                      " CAST(sum(reserved) AS BIGINT), CAST(sum(planned) AS BIGINT),"
                      " CAST(sum(overcommit) AS BIGINT) FROM usage_cluster"
                      " WHERE cluster = ?1 AND period = ?2 AND t_s >= ?3 AND t_s < ?4"
                      " GROUP BY tres ORDER BY tres",
                      values, take_cluster, q, err);
}

struct merge {
    struct question *q;
    const struct meter *from;
};

static void merge_cell(void *ctx, enum meter_kind kind, size_t span, unsigned who, unsigned tres,
                       int64_t value)
{
    const struct merge *merge = ctx;
    struct meter *out = merge->q->out;
    const char *name = meter_tres_at(merge->from, tres);

    (void)span;
    if (value)
        meter_put(out, kind, merge->q->span,
                  kind == METER_USED ? meter_who(out, meter_who_at(merge->from, who)) : 0,
                  meter_tres(out, name, strlen(name)), value);
}

/* Hour by hour, because what fits is worked out by the hour. */
static int add_direct(struct question *q, int64_t from_s, int64_t to_s, struct err *err)
{
    size_t most = (size_t)((to_s - from_s) / HOUR_S) + 3;
    CLEANUP(freep) int64_t *edges = NEW_ARRAY(int64_t, most);
    size_t count = hours_between(from_s, to_s, edges, most);
    struct meter *meter = meter_new(edges, count);
    struct merge merge = { q, meter };

    int code = rollup_direct(q->store, q->cluster, meter, from_s, to_s, q->now_s, err);
    if (code == 0) {
        meter_settle(meter);
        meter_each(meter, merge_cell, &merge);
    }
    meter_free(meter);
    return code;
}

/* The longest period that begins at `at` and ends by `limit`; its end, or 0: none is there. */
static int64_t period_at(const struct question *q, int64_t at, int64_t limit,
                         enum rollup_period *period)
{
    for (int p = ROLLUP_MONTH; p >= ROLLUP_HOUR; p--) {
        *period = (enum rollup_period)p;
        if ((p == ROLLUP_HOUR && at < q->hours_from_s) || rollup_floor(*period, at) != at)
            continue;
        int64_t end = rollup_next(*period, at);
        if (end <= limit)
            return end;
    }
    return 0;
}

static int add_span(struct question *q, int64_t from, int64_t to, struct err *err)
{
    int64_t summed = MIN(to, q->done_s);
    int code = 0;

    while (from < summed && code == 0) {
        enum rollup_period period, next;
        int64_t end = period_at(q, from, summed, &period);
        if (end) {
            for (int64_t more; (more = period_at(q, end, summed, &next)) && next == period;)
                end = more;
            code = add_period(q, period, from, end, err);
        } else {
            end = MIN(rollup_next(from < q->hours_from_s ? ROLLUP_DAY : ROLLUP_HOUR, from), summed);
            code = add_direct(q, from, end, err);
        }
        from = end;
    }
    to = MIN(to, q->now_s);
    if (code == 0 && from < to)
        code = add_direct(q, from, to, err);
    return code;
}

static int sum_once(struct question *q, const int64_t *edges_s, size_t count, struct err *err)
{
    int code = names_read(&q->names, q->store, q->cluster, err);

    q->out = meter_new(edges_s, count);
    for (q->span = 0; q->span + 1 < count && code == 0; q->span++)
        code = add_span(q, edges_s[q->span], edges_s[q->span + 1], err);
    names_done(&q->names);
    return code;
}

int rollup_sum(struct store *store, int64_t cluster, const int64_t *edges_s, size_t count,
               int64_t now_s, struct meter **out, struct err *err)
{
    struct question q = { .store = store, .cluster = cluster, .now_s = now_s };
    int code = 0;

    q.hours_from_s = rollup_floor(ROLLUP_DAY, now_s) - (int64_t)HOURS_KEPT_DAYS * 86400;
    /* Sums that were made or undone while they were read are read again. */
    for (int i = 0; i < TRIES; i++) {
        int64_t after;
        meter_free(TAKE(q.out));
        code = rollup_done(store, cluster, &q.done_s, err);
        if (code == 0)
            code = sum_once(&q, edges_s, count, err);
        if (code == 0)
            code = rollup_done(store, cluster, &after, err);
        if (code < 0 || after == q.done_s)
            break;
    }
    if (code < 0)
        meter_free(q.out);
    else
        *out = q.out;
    return code;
}
