/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_snapshot.c - snapshots: complete, and never believed when damaged
 */
#include "core/test/fixture.h"
#include "core/view/view.h"

static int collect(void *to, const void *bytes, size_t len)
{
    str_add_len(to, bytes, len);
    return 0;
}

static int refuse(void *to, const void *bytes, size_t len)
{
    unsigned *left = to;

    return (*left)-- ? 0 : -(int)ERR_DISK_FULL;
}

/* A state with some of everything. */
static struct fix *busy(void)
{
    struct fix *fix = fix_new(3);
    JobSpec spec = fix_spec();

    uint32_t a = fix_job(fix);
    fix_start_two(fix, a, "n1", "n2");
    spec.array = (char *)"0-9%4";
    uint32_t array = fix_submit(fix, &spec);
    fix_start_task(fix, array, 3, "n3", 1);
    fix_cancel(fix, array, "7");
    spec.array = NULL;
    spec.dependency = (char *)"afterok:1,singleton";
    fix_submit(fix, &spec);
    spec.dependency = NULL;
    SET(&spec, begin_us, fix->now + 1000000000);
    SET(&spec, deadline_us, fix->now + INT64_C(9000000000));
    fix_submit(fix, &spec);
    fix_hold(fix, fix_job(fix), 2, true);
    JobSpec change = JOB_SPEC__INIT;
    SET(&change, requeue, false);
    fix_update(fix, a, &change, true);
    SET(&change, requeue, true);
    fix_update(fix, a, &change, true);
    assert_int_equal(fix_get(fix, a)->more->unbound_attempt, fix_get(fix, a)->attempt);
    fix_node_state(fix, "n2", "DRAIN", "soon");
    return fix;
}

static void everything_comes_back(void **unused)
{
    struct fix *fix = busy();
    struct state *copy = fix_copy(fix);
    struct state_counts a = state_counts(fix->state), b = state_counts(copy);
    struct state_head x = state_head(fix->state), y = state_head(copy);

    assert_int_equal(a.records, b.records);
    assert_int_equal(a.jobs, b.jobs);
    assert_int_equal(a.pending, b.pending);
    assert_int_equal(a.running, b.running);
    assert_int_equal(a.payloads, b.payloads);
    assert_int_equal(x.index, y.index);
    assert_int_equal(x.epoch, y.epoch);
    assert_int_equal(x.next_job_id, y.next_job_id);
    assert_string_equal(x.leader, y.leader);
    assert_int_equal(core_next_due(fix->state), core_next_due(copy));
    assert_int_equal(state_job(copy, 1)->more->unbound_attempt, 1);
    assert_string_equal(state_node(copy, "n2")->reason, "soon");
    assert_int_equal(state_node(copy, "n2")->cpus_used, 2);
    state_free(copy);
    fix_free(fix);
}

static void a_writer_can_fail(void **unused)
{
    struct fix *fix = busy();
    unsigned left = 5;

    assert_int_equal(core_snapshot_write(fix->state, refuse, &left), -(int)ERR_DISK_FULL);
    fix_free(fix);
}

static struct state *read_back(const char *bytes, size_t len)
{
    struct restore *restore = core_restore_begin();
    struct err err = { 0 };

    core_restore_feed(restore, bytes, len, &err);
    struct state *state = core_restore_end(restore, &err);
    if (!state)
        assert_true(err.code != ERR_OK && err.text[0]);
    return state;
}

static void damage_is_noticed(void **unused)
{
    struct fix *fix = busy();
    struct str bytes = { 0 };

    core_snapshot_write(fix->state, collect, &bytes);
    struct state *good = read_back(bytes.data, bytes.len);
    assert_non_null(good);
    state_free(good);
    /* Cut short anywhere. */
    for (size_t len = 0; len < bytes.len; len += 1 + len % 13)
        assert_null(read_back(bytes.data, len));
    /* A bit flipped anywhere: refused, or it meant nothing (the tag of a field that is 0). */
    size_t accepted = 0, tried = 0;
    for (size_t at = 0; at < bytes.len; at += 2, tried++) {
        bytes.data[at] ^= (char)(1 << at % 8);
        struct state *state = read_back(bytes.data, bytes.len);
        if (state) {
            accepted++;
            assert_int_equal(core_digest(state), core_digest(fix->state));
            state_free(state);
        }
        bytes.data[at] ^= (char)(1 << at % 8);
    }
    assert_true(accepted * 20 < tried);
    str_done(&bytes);
    fix_free(fix);
}

static void order_matters(void **unused)
{
    struct err err;
    uint8_t junk[64];

    for (size_t i = 0; i < sizeof(junk); i++)
        junk[i] = (uint8_t)(i * 37);
    assert_null(read_back((char *)junk, sizeof(junk)));
    assert_null(read_back("", 0));
    struct restore *restore = core_restore_begin();
    uint8_t huge[4] = { 255, 255, 255, 255 };
    assert_true(core_restore_feed(restore, huge, 4, &err) < 0);
    assert_null(core_restore_end(restore, &err));
}

UNIT_MAIN(UNIT(everything_comes_back), UNIT(a_writer_can_fail), UNIT(damage_is_noticed),
          UNIT(order_matters))
