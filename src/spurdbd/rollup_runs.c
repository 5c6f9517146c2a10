/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rollup_runs.c - runs of jobs in a window, each with what it had and when
 *
 * (1) A run had the TRES of its row since the last resize; a row of `resize` says what it had before.
 * (2) What was suspended is cut out.
 * (3) The window is found as history.c finds it: table `span` bounds how long after it a run may have ended.
 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "spurdbd/rollup.h"

#define MONTH_US  (INT64_C(30) * 86400 * 1000000)
#define SECOND_US INT64_C(1000000)

struct pause {
    struct pause *next;
    int64_t from_s, to_s; /* to_s INT64_MAX: until the run ends */
};
struct resize {
    struct resize *next; /* the one after */
    int64_t at_s;
    struct span before;
};

struct walk {
    struct arena arena;
    struct map pauses, resizes; /* by run */
    VEC(struct rollup_part) parts;
    rollup_each_fn *each;
    void *ctx;
};

static uint64_t run_key(int64_t job_id, int64_t run)
{
    return (uint64_t)job_id << 24 | ((uint64_t)run & 0xffffff);
}

static int take_pause(void *ctx, const struct store_row *row, struct err *err)
{
    struct walk *walk = ctx;
    struct pause *pause = ARENA_NEW(&walk->arena, struct pause);
    uint64_t key = run_key(store_row_int(row, 0), store_row_int(row, 1));
    int64_t to_us = store_row_int(row, 3);

    (void)err;
    pause->from_s = store_row_int(row, 2) / SECOND_US;
    pause->to_s = to_us ? to_us / SECOND_US : INT64_MAX;
    pause->next = map_get_num(&walk->pauses, key);
    map_put_num(&walk->pauses, key, pause);
    return 0;
}

/* The last comes first, so that the list begins with the first. */
static int take_resize(void *ctx, const struct store_row *row, struct err *err)
{
    struct walk *walk = ctx;
    struct resize *resize = ARENA_NEW(&walk->arena, struct resize);
    uint64_t key = run_key(store_row_int(row, 0), store_row_int(row, 1));
    struct span before = store_row_bytes(row, 3);

    (void)err;
    resize->at_s = store_row_int(row, 2) / SECOND_US;
    resize->before = (struct span){ arena_copy(&walk->arena, before.ptr, before.len), before.len };
    resize->next = map_get_num(&walk->resizes, key);
    map_put_num(&walk->resizes, key, resize);
    return 0;
}

/* (2) The part without what lies in a pause. Pauses do not overlap each other. */
static void push_part(struct walk *walk, struct rollup_part part, const struct pause *pause)
{
    for (; pause && part.from_s < part.to_s; pause = pause->next) {
        int64_t from = MAX(pause->from_s, part.from_s), to = MIN(pause->to_s, part.to_s);
        if (from >= to)
            continue;
        push_part(walk, (struct rollup_part){ part.from_s, from, part.tres }, pause->next);
        part.from_s = to;
    }
    if (part.from_s < part.to_s)
        vec_push(&walk->parts, part);
}

/* (1) */
static void find_parts(struct walk *walk, struct rollup_run *run, struct span tres)
{
    uint64_t key = run_key(run->job_id, run->run);
    const struct pause *pauses = map_get_num(&walk->pauses, key);
    const struct resize *resize = map_get_num(&walk->resizes, key);
    int64_t from = run->start_s;

    vec_clear(&walk->parts);
    if (!run->start_s)
        return;
    for (; resize; resize = resize->next) {
        int64_t to = MIN(MAX(resize->at_s, from), run->end_s);
        push_part(walk, (struct rollup_part){ from, to, resize->before }, pauses);
        from = to;
    }
    push_part(walk, (struct rollup_part){ from, run->end_s, tres }, pauses);
    run->parts = walk->parts.items;
    run->part_count = walk->parts.len;
}

static char *text_at(struct arena *arena, const struct store_row *row, unsigned column)
{
    struct span text = store_row_bytes(row, column);

    return arena_strndup(arena, text.ptr, text.len);
}

static const char columns[] =
    "SELECT job_id, run, account, user_name, partition_name, qos, wckey, uid, gid, t_eligible,"
    " t_wait, t_start, t_end, tres_req, tres_alloc, reservation, nodelist, nodes FROM job"
    " WHERE cluster = ?1 ";

static int take_run(void *ctx, const struct store_row *row, struct err *err)
{
    struct walk *walk = ctx;
    struct arena text;
    int64_t eligible = store_row_int(row, 9), waits = store_row_int(row, 10);
    int64_t end = store_row_int(row, 12);

    arena_init(&text);
    struct rollup_run run = {
        .job_id = (uint32_t)store_row_int(row, 0),
        .run = (uint32_t)store_row_int(row, 1),
        .who = { text_at(&text, row, 2), text_at(&text, row, 3), text_at(&text, row, 4),
                 text_at(&text, row, 5), text_at(&text, row, 6), (uint32_t)store_row_int(row, 7) },
        .gid = (uint32_t)store_row_int(row, 8),
        .eligible_s = eligible ? MAX(eligible, waits) / SECOND_US : 0,
        .start_s = store_row_int(row, 11) / SECOND_US,
        .end_s = end ? end / SECOND_US : INT64_MAX,
        .tres_req = store_row_bytes(row, 13),
        .reservation = store_row_bytes(row, 15),
        .nodes = store_row_bytes(row, 16),
        .node_count = store_row_int(row, 17),
    };
    find_parts(walk, &run, store_row_bytes(row, 14));
    int code = walk->each(walk->ctx, &run, err);
    arena_done(&text);
    return code;
}

static int read_runs(struct walk *walk, struct store *store, int64_t cluster, int64_t from_us,
                     int64_t to_us, struct err *err)
{
    CLEANUP(str_done) struct str open = { 0 }, ended = { 0 };
    int64_t longest = 0;

    str_addf(&open, "%sAND t_end = 0", columns);
    str_addf(&ended, "%sAND t_end > ?2 AND t_end <= ?3", columns);
    if (store_number(store, "SELECT max(longest_us) FROM span WHERE month >= ?1",
                     STORE_VALUES(STORE_INT(from_us / MONTH_US)), 0, &longest, err) < 0 ||
        store_each(store, str_text(&open), STORE_VALUES(STORE_INT(cluster)), take_run, walk, err) <
            0)
        return -(int)err->code;
    return store_each(
        store, str_text(&ended),
        STORE_VALUES(STORE_INT(cluster), STORE_INT(from_us), STORE_INT(to_us + longest)), take_run,
        walk, err);
}

int rollup_each_run(struct store *store, int64_t cluster, int64_t from_s, int64_t to_s,
                    rollup_each_fn *each, void *ctx, struct err *err)
{
    struct walk walk = { .each = each, .ctx = ctx };
    int64_t from_us = from_s * SECOND_US, to_us = to_s * SECOND_US;
    struct store_values window =
        STORE_VALUES(STORE_INT(cluster), STORE_INT(from_us), STORE_INT(to_us));

    arena_init(&walk.arena);
    map_init(&walk.pauses);
    map_init(&walk.resizes);
    int code = store_each(store,
                          "SELECT job_id, run, t_from, t_to FROM suspend WHERE cluster = ?1"
                          " AND (t_to = 0 OR t_to > ?2) AND t_from < ?3",
                          window, take_pause, &walk, err);
    if (code == 0)
        code = store_each(store,
                          "SELECT job_id, run, t_us, tres_alloc FROM resize WHERE cluster = ?1"
                          " AND t_us > ?2 ORDER BY t_us DESC",
                          STORE_VALUES(STORE_INT(cluster), STORE_INT(from_us)), take_resize, &walk,
                          err);
    if (code == 0)
        code = read_runs(&walk, store, cluster, from_us, to_us, err); /* (3) */
    map_done(&walk.pauses);
    map_done(&walk.resizes);
    vec_done(&walk.parts);
    arena_done(&walk.arena);
    return code;
}
