/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_deps.c - jobs that wait for other jobs
 */
#include "core/test/fixture.h"
#include "core/view/view.h"

static uint32_t submit_after(struct fix *fix, const char *fmt, uint32_t a, uint32_t b)
{
    char text[200];
    JobSpec spec = fix_spec();

    snprintf(text, sizeof(text), fmt, a, b);
    spec.name = (char *)"waiter";
    spec.dependency = text;
    return fix_submit(fix, &spec);
}

enum what { STARTS, ENDS_OK, ENDS_FAILED, IS_CANCELLED };
enum then { WAITS, GOES, NEVER_GOES };

static void make(struct fix *fix, uint32_t id, enum what what)
{
    switch (what) {
    case STARTS:
        assert_int_equal(fix_start(fix, id, "n1", 1), ERR_OK);
        break;
    case ENDS_OK:
        fix_start(fix, id, "n1", 1);
        assert_int_equal(fix_finish(fix, id, 0), ERR_OK);
        break;
    case ENDS_FAILED:
        fix_start(fix, id, "n1", 1);
        assert_int_equal(fix_finish(fix, id, 256), ERR_OK);
        break;
    case IS_CANCELLED:
        assert_int_equal(fix_cancel(fix, id, NULL), ERR_OK);
        break;
    }
}

static enum then then_of(struct fix *fix, uint32_t id)
{
    return job_is_eligible(fix_get(fix, id))           ? GOES
           : fix_reason(fix, id) == REASON_DEP_INVALID ? NEVER_GOES
                                                       : WAITS;
}

static void each_type_waits_for_what_it_says(void **unused)
{
    static const struct {
        const char *type;
        enum what what;
        enum then then;
    } rows[] = {
        { "after:%u", STARTS, GOES },
        { "after:%u", IS_CANCELLED, GOES },
        { "afterany:%u", STARTS, WAITS },
        { "afterany:%u", ENDS_OK, GOES },
        { "afterany:%u", ENDS_FAILED, GOES },
        { "afterany:%u", IS_CANCELLED, GOES },
        { "afterburstbuffer:%u", ENDS_OK, GOES },
        { "afterok:%u", STARTS, WAITS },
        { "afterok:%u", ENDS_OK, GOES },
        { "afterok:%u", ENDS_FAILED, NEVER_GOES },
        { "afterok:%u", IS_CANCELLED, NEVER_GOES },
        { "aftercorr:%u", ENDS_OK, GOES },
        { "aftercorr:%u", ENDS_FAILED, NEVER_GOES },
        { "afternotok:%u", STARTS, WAITS },
        { "afternotok:%u", ENDS_OK, NEVER_GOES },
        { "afternotok:%u", ENDS_FAILED, GOES },
        { "afternotok:%u", IS_CANCELLED, GOES },
        { "%u", ENDS_FAILED, GOES },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fix *fix = fix_new(1);
        uint32_t first = fix_job(fix), second = submit_after(fix, rows[i].type, first, 0);
        assert_int_equal(then_of(fix, second), WAITS);
        assert_int_equal(fix_reason(fix, second), REASON_DEPENDENCY);
        make(fix, first, rows[i].what);
        if (then_of(fix, second) != rows[i].then)
            fail_msg("row %zu: %s", i, rows[i].type);
        /* The same when the first was over before. */
        if (rows[i].what != STARTS) {
            uint32_t third = submit_after(fix, rows[i].type, first, 0);
            assert_int_equal(then_of(fix, third), rows[i].then);
        }
        fix_free(fix);
    }
}

static void lists_join_by_all_or_any(void **unused)
{
    static const struct {
        const char *text;
        enum what first, second;
        enum then after_first, after_second;
    } rows[] = {
        { "afterok:%u:%u", ENDS_OK, ENDS_OK, WAITS, GOES },
        { "afterok:%u,afterany:%u", ENDS_OK, ENDS_FAILED, WAITS, GOES },
        { "afterok:%u,afterok:%u", ENDS_FAILED, ENDS_OK, NEVER_GOES, NEVER_GOES },
        { "afterok:%u?afterok:%u", ENDS_FAILED, ENDS_OK, WAITS, GOES },
        { "afterok:%u?afterok:%u", ENDS_OK, ENDS_FAILED, GOES, GOES },
        { "afterok:%u?afterok:%u", ENDS_FAILED, ENDS_FAILED, WAITS, NEVER_GOES },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fix *fix = fix_new(1);
        uint32_t a = fix_job(fix), b = fix_job(fix), id = submit_after(fix, rows[i].text, a, b);
        make(fix, a, rows[i].first);
        if (then_of(fix, id) != rows[i].after_first)
            fail_msg("row %zu after the first", i);
        make(fix, b, rows[i].second);
        if (then_of(fix, id) != rows[i].after_second)
            fail_msg("row %zu after the second", i);
        fix_free(fix);
    }
}

static void what_is_no_dependency_is_refused(void **unused)
{
    static const char *const bad[] = {
        "afterok",
        "afterok:",
        "afterok:x",
        "afterok:1:",
        "after:1+",
        "afterok:1+5",
        "afterok:1,",
        "afterok:1,after:1?afterany:1",
        "nonsense:1",
        "afterok:0",
        "afterok:99999",
        "afterok:1 ",
        "singleton:1",
        "afterok:1_7",
        "afterok:1(failed)",
        "?",
        "afterok:4294967296",
        "after:1+99999999",
    };
    struct fix *fix = fix_new(1);

    fix_job(fix);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        JobSpec spec = fix_spec();
        spec.dependency = (char *)(uintptr_t)bad[i];
        if (fix_submit(fix, &spec))
            fail_msg("'%s' was accepted", bad[i]);
        assert_int_equal(fix_answer(fix)->code, ERR_DEPENDENCY);
    }
    fix_free(fix);
}

static void who_is_forgotten_is_not_waited_for(void **unused)
{
    struct fix *fix = fix_new(1);
    uint32_t old = fix_job(fix), other = fix_job(fix);

    make(fix, old, ENDS_FAILED);
    fix_time(fix, 400);
    assert_null(state_job(fix->state, old));
    assert_int_equal(then_of(fix, submit_after(fix, "afterok:%u", old, 0)), GOES);
    uint32_t both = submit_after(fix, "afterok:%u,afterany:%u", old, other);
    assert_int_equal(then_of(fix, both), WAITS);
    assert_int_equal(then_of(fix, submit_after(fix, "afterok:%u?afterany:%u", old, other)), GOES);
    make(fix, other, ENDS_OK);
    assert_int_equal(then_of(fix, both), GOES);
    fix_free(fix);
}

static void minutes_after_a_start(void **unused)
{
    struct fix *fix = fix_new(1);
    uint32_t first = fix_job(fix), second = submit_after(fix, "after:%u+5", first, 0);

    make(fix, first, STARTS);
    assert_int_equal(then_of(fix, second), WAITS);
    assert_true(core_next_due(fix->state) <= fix->now + INT64_C(300000000));
    fix_time(fix, 299);
    assert_int_equal(then_of(fix, second), WAITS);
    fix_time(fix, 2);
    assert_int_equal(then_of(fix, second), GOES);
    fix_free(fix);
}

static void singletons_run_one_at_a_time(void **unused)
{
    struct fix *fix = fix_new(1);
    JobSpec spec = fix_spec();
    spec.dependency = (char *)"singleton";
    spec.name = (char *)"only";
    uint32_t a = fix_submit(fix, &spec), b = fix_submit(fix, &spec), c = fix_submit(fix, &spec);
    uint32_t other = fix_submit_as(fix, 1001, &spec);

    assert_int_equal(then_of(fix, a), GOES);
    assert_int_equal(then_of(fix, b), WAITS);
    assert_int_equal(then_of(fix, other), GOES); /* another user's */
    make(fix, a, STARTS);
    assert_int_equal(then_of(fix, b), WAITS);
    fix_finish(fix, a, 256);
    assert_int_equal(then_of(fix, b), GOES);
    assert_int_equal(then_of(fix, c), WAITS);
    fix_cancel(fix, b, NULL);
    assert_int_equal(then_of(fix, c), GOES);
    spec.name = (char *)"elsewhere";
    spec.dependency = NULL;
    uint32_t plain = fix_submit(fix, &spec);
    spec.dependency = (char *)"singleton";
    uint32_t d = fix_submit(fix, &spec);
    assert_int_equal(then_of(fix, d), WAITS);
    JobSpec change = JOB_SPEC__INIT;
    change.name = (char *)"renamed";
    fix_update(fix, plain, &change, false);
    JobSpec touch = JOB_SPEC__INIT;
    touch.comment = (char *)"look again";
    fix_update(fix, d, &touch, false);
    assert_int_equal(then_of(fix, d), GOES);
    fix_free(fix);
}

static void impossible_dependencies_can_kill(void **unused)
{
    struct fix *fix = fix_new(1);
    uint32_t first = fix_job(fix);
    char text[64];
    JobSpec spec = fix_spec();
    snprintf(text, sizeof(text), "afterok:%u", first);
    spec.dependency = text;
    SET(&spec, kill_on_invalid_dep, true);
    uint32_t second = fix_submit(fix, &spec);
    snprintf(text, sizeof(text), "afterok:%u", second);
    uint32_t third = fix_submit(fix, &spec); /* the end of one is the end of the next */

    make(fix, first, IS_CANCELLED);
    assert_state(fix, second, JOB_CANCELLED);
    assert_int_equal(fix_reason(fix, second), REASON_DEP_INVALID);
    assert_state(fix, third, JOB_CANCELLED);

    Config *config = fix_config(1);
    SET(config, kill_invalid_depend, true);
    fix_reconfigure(fix, config, false);
    config__free_unpacked(config, NULL);
    uint32_t fourth = submit_after(fix, "afterok:%u", first, 0);
    assert_state(fix, fourth, JOB_CANCELLED);
    fix_free(fix);
}

static void arrays_as_a_whole_and_by_task(void **unused)
{
    struct fix *fix = fix_new(1);
    JobSpec spec = fix_spec();
    spec.array = (char *)"1-2";
    uint32_t array = fix_submit(fix, &spec);
    uint32_t whole = submit_after(fix, "afterok:%u", array, 0);
    uint32_t any = submit_after(fix, "afterany:%u_*", array, 0);
    uint32_t one = submit_after(fix, "afterok:%u_1", array, 0);
    uint32_t started = submit_after(fix, "after:%u", array, 0);

    uint32_t first = state_head(fix->state).next_job_id;
    fix_start_task(fix, array, 1, "n1", 1);
    assert_int_equal(then_of(fix, started), WAITS);
    fix_finish(fix, first, 0);
    assert_int_equal(then_of(fix, one), GOES);
    assert_int_equal(then_of(fix, whole), WAITS);
    fix_start_task(fix, array, 2, "n1", 1);
    assert_int_equal(then_of(fix, started), GOES);
    fix_finish(fix, array, 256);
    assert_int_equal(then_of(fix, whole), NEVER_GOES);
    assert_int_equal(then_of(fix, any), GOES);
    fix_free(fix);
}

static void twins_follow_their_twins(void **unused)
{
    struct fix *fix = fix_new(1);
    JobSpec spec = fix_spec();
    char text[64];
    spec.array = (char *)"1-3";
    uint32_t first = fix_submit(fix, &spec);
    snprintf(text, sizeof(text), "aftercorr:%u", first);
    spec.dependency = text;
    spec.array = (char *)"1-4";
    uint32_t second = fix_submit(fix, &spec);

    /* Task 4 has no twin and need not wait. */
    assert_int_equal(then_of(fix, state_task(fix->state, second, 4)->id), GOES);
    assert_int_equal(then_of(fix, second), WAITS);
    uint32_t task = state_head(fix->state).next_job_id;
    fix_start_task(fix, first, 2, "n1", 1);
    fix_finish(fix, task, 0);
    const struct job *twin = state_task(fix->state, second, 2);
    assert_int_not_equal(twin->id, second);
    assert_int_equal(then_of(fix, twin->id), GOES);
    task = state_head(fix->state).next_job_id;
    fix_start_task(fix, first, 1, "n1", 1);
    fix_finish(fix, task, 256);
    assert_int_equal(then_of(fix, state_task(fix->state, second, 1)->id), NEVER_GOES);
    fix_start_task(fix, first, 3, "n1", 1);
    fix_finish(fix, first, 0);
    assert_int_equal(then_of(fix, second), GOES); /* the last task has the array's record */
    assert_true(fix_get(fix, second)->is_task);
    fix_free(fix);
}

static void no_circles(void **unused)
{
    struct fix *fix = fix_new(1);
    uint32_t a = fix_job(fix), b = submit_after(fix, "afterok:%u", a, 0);
    uint32_t c = submit_after(fix, "afterok:%u", b, 0);
    JobSpec change = JOB_SPEC__INIT;
    char text[64];

    change.dependency = text;
    snprintf(text, sizeof(text), "afterok:%u", a);
    assert_int_equal(fix_update(fix, a, &change, false), ERR_CIRCULAR_DEPENDENCY);
    snprintf(text, sizeof(text), "afterok:%u", c);
    assert_int_equal(fix_update(fix, a, &change, false), ERR_CIRCULAR_DEPENDENCY);
    assert_null(fix_get(fix, a)->deps);
    snprintf(text, sizeof(text), "afterany:%u", a);
    assert_int_equal(fix_update(fix, c, &change, false), ERR_OK);
    text[0] = '\0'; /* nothing any more */
    assert_int_equal(fix_update(fix, c, &change, false), ERR_OK);
    assert_int_equal(then_of(fix, c), GOES);
    fix_free(fix);
}

/* CmdTime as the leader gives it: at once, as long as something is due. Events of that kind. */
static size_t go_on(struct fix *fix, enum event_kind kind)
{
    size_t count = fix_events(fix, kind, NULL);

    while (core_next_due(fix->state) <= fix->state->time_us) {
        fix_time(fix, 0);
        size_t some = fix_events(fix, kind, NULL);
        assert_true(some <= 320);
        count += some;
    }
    return count;
}

static void long_chains_and_many_waiters(void **unused)
{
    enum { MANY = 3000 };
    struct fix *fix = fix_new(1);
    JobSpec spec = fix_spec();
    char text[64];

    fix->check = false;
    uint32_t first = fix_job(fix);
    spec.dependency = text;
    SET(&spec, kill_on_invalid_dep, true);
    for (uint32_t i = 0; i < MANY; i++) {
        snprintf(text, sizeof(text), "afterok:%u", first + i);
        assert_int_equal(fix_submit(fix, &spec), first + i + 1);
    }
    fix_cancel(fix, first, NULL); /* all the way down, without a stack */
    assert_int_equal(go_on(fix, EVENT_JOB_ENDED), MANY + 1);
    uint32_t hub = fix_job(fix);
    snprintf(text, sizeof(text), "afterok:%u", hub);
    for (uint32_t i = 0; i < MANY; i++)
        fix_submit(fix, &spec);
    make(fix, hub, ENDS_OK);
    assert_true(fix_events(fix, EVENT_JOB_ELIGIBLE, NULL) < 100);
    assert_int_equal(go_on(fix, EVENT_JOB_ELIGIBLE), MANY);
    fix->check = true;
    fix_time(fix, 0);
    fix_free(fix);
}

static void what_is_left_survives_a_restart(void **unused)
{
    struct fix *fix = fix_new(1);
    uint32_t a = fix_job(fix), b = fix_job(fix);
    uint32_t id = submit_after(fix, "afterok:%u?afterok:%u", a, b);
    struct str text = { 0 };

    make(fix, a, ENDS_FAILED);
    struct state *copy = fix_copy(fix);
    deps_format(state_job(copy, id)->deps, &text);
    assert_string_equal(str_text(&text), "afterok:1(failed)?afterok:2(unfulfilled)");
    str_done(&text);
    state_free(copy);
    fix_time(fix, 400); /* a is forgotten; what it became is not */
    assert_null(state_job(fix->state, a));
    make(fix, b, ENDS_OK);
    assert_int_equal(then_of(fix, id), GOES);
    fix_free(fix);
}

UNIT_MAIN(UNIT(each_type_waits_for_what_it_says), UNIT(lists_join_by_all_or_any),
          UNIT(who_is_forgotten_is_not_waited_for), UNIT(what_is_no_dependency_is_refused),
          UNIT(minutes_after_a_start), UNIT(singletons_run_one_at_a_time),
          UNIT(impossible_dependencies_can_kill), UNIT(arrays_as_a_whole_and_by_task),
          UNIT(twins_follow_their_twins), UNIT(no_circles), UNIT(long_chains_and_many_waiters),
          UNIT(what_is_left_survives_a_restart))
