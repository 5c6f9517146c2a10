/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_marks.c - marks of two replicas are the same, and memory that nobody changed is found
 */
#include <string.h>

#include "core/level.h"
#include "core/test/fixture.h"
#include "core/view/view.h"

static void cancel_nothing(struct fix *fix, unsigned times)
{
    while (times--)
        fix_cancel(fix, 4000000, NULL); /* refused, and an entry all the same */
}

static struct fix *busy(void)
{
    struct fix *fix = fix_new(3);
    JobSpec spec = fix_spec();

    fix->check = false;
    fix_start_two(fix, fix_job(fix), "n1", "n2");
    spec.array = (char *)"0-9%4";
    fix_start_task(fix, fix_submit(fix, &spec), 3, "n3", 1);
    return fix;
}

static void marks_are_taken_by_entries(void **unused)
{
    struct fix *fix = busy();
    struct state_mark mark, now;

    cancel_nothing(fix, MARK_EVERY * 3);
    assert_int_equal(core_marks(fix->state), fix->index / MARK_EVERY);
    for (size_t i = 0; i < core_marks(fix->state); i++) {
        mark = core_mark(fix->state, i);
        assert_int_equal(mark.index, (fix->index / MARK_EVERY - i) * MARK_EVERY);
    }
    cancel_nothing(fix, MARK_EVERY - (unsigned)(fix->index % MARK_EVERY));
    assert_true(core_mark_now(fix->state, &now));
    assert_true(core_mark_at(fix->state, fix->index, &mark));
    assert_memory_equal(&mark, &now, sizeof(mark));
    assert_int_equal(now.digest, core_digest(fix->state));
    assert_false(core_mark_at(fix->state, fix->index - 1, &mark));
    fix_free(fix);
    (void)unused;
}

static void the_newest_are_kept(void **unused)
{
    struct fix *fix = busy();
    struct state_mark mark;

    cancel_nothing(fix, MARK_EVERY * (MARKS_KEPT + 2));
    assert_int_equal(core_marks(fix->state), MARKS_KEPT);
    assert_false(core_mark_at(fix->state, MARK_EVERY, &mark));
    assert_int_equal(core_mark(fix->state, 0).index, fix->index / MARK_EVERY * MARK_EVERY);
    fix_free(fix);
    (void)unused;
}

/* From the level on from which on others know the field. */
static void snapshots_hold_them(void **unused)
{
    struct fix *fix = busy();
    CmdLevel level = CMD_LEVEL__INIT;
    Command command = COMMAND__INIT;

    cancel_nothing(fix, MARK_EVERY * 2);
    struct state *before = fix_copy(fix);
    assert_int_equal(core_marks(before), 0);
    SET(&level, level, LEVEL_LEVELS);
    command.what_case = COMMAND__WHAT_LEVEL;
    command.level = &level;
    fix_apply(fix, &command);
    struct state *copy = fix_copy(fix);
    assert_int_equal(core_marks(copy), core_marks(fix->state));
    assert_true(core_marks(copy) > 0);
    for (size_t i = 0; i < core_marks(copy); i++) {
        struct state_mark a = core_mark(fix->state, i), b = core_mark(copy, i);
        assert_memory_equal(&a, &b, sizeof(a));
    }
    assert_int_equal(core_digest(copy),
                     core_digest(fix->state)); /* and the digest has none of it */
    copy->marks.kept[0].digest++;
    assert_int_equal(core_digest(copy), core_digest(fix->state));
    state_free(before);
    state_free(copy);
    fix_free(fix);
    (void)unused;
}

/* ---- memory that changes by itself ---- */

static struct job *first_job(struct state *state)
{
    return (struct job *)(uintptr_t)state_job_from(state, 1);
}

static void flip_job(struct state *state)
{
    first_job(state)->priority ^= 4;
}

static void flip_spec(struct state *state)
{
    first_job(state)->spec->data[3] ^= 1;
}

static void flip_tasks(struct state *state)
{
    state_job_from(state, 2)->array->bits[0] ^= 2;
}

static void flip_node(struct state *state)
{
    state->nodes.items[1]->reason_us ^= 1024;
}

static void flip_node_spec(struct state *state)
{
    state->nodes.items[2]->spec->cpus ^= 64;
}

static void flip_partition(struct state *state)
{
    state->partitions.items[0]->spec->max_time_s ^= 1;
    state->partitions.items[0]->spec->has_max_time_s = true;
}

static void flip_section(struct state *state)
{
    state->config->nodes[0]->memory_mb ^= 8;
}

static void flip_setting(struct state *state)
{
    state->config->kill_wait_s ^= 8;
    state->config->has_kill_wait_s = true;
}

static const struct {
    void (*flip)(struct state *state);
    const char *says;
} flips[] = {
    { flip_job, "job 1" },         { flip_spec, "job 1" },
    { flip_tasks, "job 2" },       { flip_node, "node n2" },
    { flip_node_spec, "node n3" }, { flip_partition, "partition main" },
    { flip_section, "section" },   { flip_setting, "configuration" },
};

/* The pass finds it; the digest does not, as nobody changed the record. */
static void untouched_records_are_found(void **unused)
{
    for (size_t i = 0; i < ARRAY_LEN(flips); i++) {
        struct fix *fix = busy();
        struct rehash at = { 0 };
        struct err err = { 0 };
        uint64_t digest = core_digest(fix->state);
        int code = 0;

        assert_int_equal(core_verify(fix->state, &err), 0);
        while (at.passes == 0)
            assert_int_equal(core_rehash(fix->state, &at, 1, &err), 0);
        flips[i].flip(fix->state);
        assert_int_equal(core_digest(fix->state), digest);
        for (at = (struct rehash){ 0 }; at.passes == 0 && code == 0;)
            code = core_rehash(fix->state, &at, 2, &err);
        assert_int_equal(code, -(int)ERR_CORRUPT);
        assert_non_null(strstr(err.text, flips[i].says));
        assert_true(core_verify(fix->state, &err) < 0);
        fix_free(fix);
    }
    (void)unused;
}

/* One that is changed afterwards is in the digest, and with it in the next mark. */
static void touched_records_are_in_the_marks(void **unused)
{
    struct fix *fix = busy();
    struct state *other = fix_copy(fix);
    struct rehash at = { 0 };
    struct err err = { 0 };

    first_job(fix->state)->submit_us ^= 1;
    job_touch(fix->state, first_job(fix->state));
    settle(fix->state);
    assert_int_not_equal(core_digest(fix->state), core_digest(other));
    while (at.passes == 0) /* which is now what was kept */
        assert_int_equal(core_rehash(fix->state, &at, 100, &err), 0);
    state_free(other);
    fix_free(fix);
    (void)unused;
}

static void a_wrong_digest_is_not_verified(void **unused)
{
    struct fix *fix = busy();
    struct err err = { 0 };

    fix->state->digest ^= 1;
    assert_true(core_verify(fix->state, &err) < 0);
    assert_non_null(strstr(err.text, "digest"));
    fix->state->digest ^= 1;
    fix_free(fix);
    (void)unused;
}

UNIT_MAIN(UNIT(marks_are_taken_by_entries), UNIT(the_newest_are_kept), UNIT(snapshots_hold_them),
          UNIT(untouched_records_are_found), UNIT(touched_records_are_in_the_marks),
          UNIT(a_wrong_digest_is_not_verified))
