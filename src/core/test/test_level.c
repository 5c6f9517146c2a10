/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_level.c - the feature level: how it rises, what it holds back, what stops a replica
 */
#include "core/level.h"
#include "core/test/fixture.h"
#include "core/view/view.h"
#include "wire/pb.h"
#include "wire/pb_add.h"

static enum err_code set_level(struct fix *fix, int level, int pin)
{
    Command cmd = COMMAND__INIT;
    CmdLevel msg = CMD_LEVEL__INIT;

    if (level >= 0)
        SET(&msg, level, (uint32_t)level);
    if (pin >= 0)
        SET(&msg, pin, (uint32_t)pin);
    cmd.what_case = COMMAND__WHAT_LEVEL;
    cmd.level = &msg;
    return fix_apply(fix, &cmd);
}

static void it_rises_and_never_goes_back(void **unused)
{
    static const struct {
        int level, pin;
        enum err_code code;
        unsigned after, pinned;
    } rows[] = {
        { -1, 1, ERR_OK, 1, 1 },       { 2, -1, ERR_INVALID, 1, 1 },
        { -1, 0, ERR_OK, 1, 0 },       { 2, -1, ERR_OK, 2, 0 },
        { 1, -1, ERR_OK, 2, 0 },       { -1, 1, ERR_INVALID, 2, 0 },
        { -1, 2, ERR_OK, 2, 2 },       { LEVEL_NEWEST + 1, 0, ERR_INVALID, 2, 2 },
        { -1, 1000, ERR_OK, 2, 1000 },
    };
    struct fix *fix = fix_new(2);

    assert_int_equal(state_level(fix->state), LEVEL_FIRST);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(set_level(fix, rows[i].level, rows[i].pin), rows[i].code);
        assert_int_equal(state_level(fix->state), rows[i].after);
        assert_int_equal(state_level_pin(fix->state), rows[i].pinned);
        struct state *copy = fix_copy(fix); /* which compares digests */
        assert_int_equal(state_level(copy), rows[i].after);
        assert_int_equal(state_level_pin(copy), rows[i].pinned);
        state_free(copy);
    }
    fix_free(fix);
}

/* With a field of number 1000 at the end: what a newer build would have written. */
static Command *with_unknown(const Command *command)
{
    struct str bytes = { 0 };
    size_t len = command__get_packed_size(command);

    str_reserve(&bytes, len + 16);
    command__pack(command, (uint8_t *)bytes.data);
    bytes.len = len;
    pb_add_bytes(&bytes, 1000, "x", 1);
    Command *copy = command__unpack(NULL, bytes.len, (const uint8_t *)bytes.data);
    str_done(&bytes);
    return copy;
}

static void what_a_newer_build_wrote_stops_a_replica(void **unused)
{
    struct fix *fix = fix_new(1);
    Command empty = COMMAND__INIT, time = COMMAND__INIT, rise = COMMAND__INIT;
    CmdTime about = CMD_TIME__INIT;
    CmdLevel level = CMD_LEVEL__INIT;
    struct err err = { 0 };

    time.what_case = COMMAND__WHAT_TIME;
    time.time = &about;
    rise.what_case = COMMAND__WHAT_LEVEL;
    rise.level = &level;
    SET(&level, level, LEVEL_NEWEST + 1);
    Command *field = with_unknown(&time);
    assert_int_equal(level_check(fix->state, 7, &time, &err), 0);
    /* Before levels a leader passed on what clients said, known or not. */
    assert_int_equal(level_check(fix->state, 7, field, &err), 0);
    assert_int_equal(set_level(fix, LEVEL_LEVELS, -1), ERR_OK);
    assert_int_equal(level_check(fix->state, 7, &time, &err), 0);
    const Command *newer[] = { &empty, field, &rise };
    for (size_t i = 0; i < ARRAY_LEN(newer); i++) {
        err = (struct err){ 0 };
        assert_int_equal(level_check(fix->state, 7, newer[i], &err), -(int)ERR_NEWER_BUILD);
        assert_non_null(strstr(err.text, "entry 7 of the log was written by a newer build"));
        assert_null(strstr(err.text, "accept-loss"));
    }
    command__free_unpacked(field, NULL);
    fix_free(fix);
}

static int collect(void *to, const void *bytes, size_t len)
{
    str_add_len(to, bytes, len);
    return 0;
}

static void put_record(struct str *out, const struct str *record)
{
    for (unsigned i = 0; i < 4; i++)
        str_add_char(out, (char)(record->len >> 8 * i));
    str_add_len(out, record->data, record->len);
}

static enum err_code restore_code(const struct str *bytes)
{
    struct restore *restore = core_restore_begin();
    struct err err = { 0 }, ignored = { 0 };
    int code = core_restore_feed(restore, bytes->data, bytes->len, &err);
    struct state *state = core_restore_end(restore, code < 0 ? &ignored : &err);

    if (state)
        state_free(state);
    else
        assert_null(strstr(err.text, "accept-loss"));
    return state ? ERR_OK : err.code;
}

static void so_does_its_snapshot(void **unused)
{
    struct fix *fix = fix_new(1);
    struct str whole = { 0 }, more = { 0 }, record = { 0 };

    assert_int_equal(set_level(fix, LEVEL_LEVELS, -1), ERR_OK);
    core_snapshot_write(fix->state, collect, &whole);
    assert_int_equal(restore_code(&whole), ERR_OK);
    /* a record of a kind that is not known */
    str_add_len(&more, whole.data, whole.len);
    pb_add_bytes(&record, 1000, "x", 1);
    put_record(&more, &record);
    assert_int_equal(restore_code(&more), ERR_NEWER_BUILD);
    /* a head of a higher level */
    fix->state->level = LEVEL_NEWEST + 1;
    str_clear(&whole);
    core_snapshot_write(fix->state, collect, &whole);
    assert_int_equal(restore_code(&whole), ERR_NEWER_BUILD);
    str_done(&whole);
    str_done(&more);
    str_done(&record);
    fix_free(fix);
}

static void fields_are_held_back_below_their_level(void **unused)
{
    Command cmd = COMMAND__INIT;
    CmdNodeKey key = CMD_NODE_KEY__INIT;
    struct str names = { 0 };
    const char *field = NULL;

    cmd.what_case = COMMAND__WHAT_NODE_KEY;
    cmd.node_key = &key;
    assert_int_equal(level_needed(&cmd, &field), LEVEL_FIRST);
    SET(&key, forgotten, true);
    assert_true(level_needed(&cmd, &field) > LEVEL_LEVELS);
    assert_string_equal(field, "forgotten");
    level_trim(&cmd, LEVEL_LEVELS, &names);
    assert_string_equal(str_text(&names), "forgotten");
    assert_false(key.has_forgotten);
    assert_int_equal(level_needed(&cmd, NULL), LEVEL_FIRST);
    str_done(&names);
}

static void count_job(void *ctx, const struct job *job)
{
    (void)job;
    ++*(unsigned *)ctx;
}

/* max_array_size = 0 refuses arrays, agent_timeout = 0 waits for ever: once no older build reads the log. */
static void zero_means_zero_from_levels_on(void **unused)
{
    struct fix *fix = fix_new(1);
    Config *config = fix_config(1);
    JobSpec spec = fix_spec(), array = fix_spec();
    unsigned due = 0;

    SET(config, max_array_size, 0);
    SET(config, agent_timeout_s, 0);
    SET(&spec, time_limit_s, 60);
    array.array = (char *)"1-3";
    assert_int_equal(fix_reconfigure(fix, config, false), ERR_OK);
    uint32_t id = fix_submit(fix, &spec);
    assert_int_equal(fix_start(fix, id, "n1", 1), ERR_OK);
    int64_t later = fix->now + INT64_C(86400000000);
    assert_true(fix_submit(fix, &array) != 0);
    core_limits_due(fix->state, later, count_job, &due);
    assert_int_equal(due, 1);
    assert_int_equal(set_level(fix, LEVEL_LEVELS, -1), ERR_OK);
    assert_int_equal(fix_submit(fix, &array), 0);
    due = 0;
    core_limits_due(fix->state, later, count_job, &due);
    assert_int_equal(due, 0);
    config__free_unpacked(config, NULL);
    fix_free(fix);
}

UNIT_MAIN(UNIT(it_rises_and_never_goes_back), UNIT(what_a_newer_build_wrote_stops_a_replica),
          UNIT(so_does_its_snapshot), UNIT(fields_are_held_back_below_their_level),
          UNIT(zero_means_zero_from_levels_on))
