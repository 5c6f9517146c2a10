/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_array.c - job arrays: one record for many tasks
 */
#include "core/test/fixture.h"
#include "core/view/view.h"

static void array_texts(void **unused)
{
    static const struct {
        const char *text;
        uint32_t count, first, last, max_running; /* first and last task id */
        const char *shown;
    } good[] = {
        { "0-99", 100, 0, 99, 0, "0-99" },
        { "0-99:2%5", 50, 0, 98, 5, "0-98:2%5" },
        { "7", 1, 7, 7, 0, "7" },
        { "5,1-3", 4, 1, 5, 0, "1-3,5" },
        { "1-5,3-8", 8, 1, 8, 0, "1-8" },
        { "0-15:4", 4, 0, 12, 0, "0-12:4" },
        { "1-4:2,2-4:2", 4, 1, 4, 0, "1-4" },
        { "10%1", 1, 10, 10, 1, "10%1" },
    };
    static const char *const bad[] = {
        "",
        "a",
        "1-",
        "-1",
        "5-1",
        "1-5:0",
        "1%0",
        "1%",
        "1,,2",
        "1,",
        "1-5:",
        "4294967295",
        "0-4294967295",
        "1 ",
        "1-5%x",
        "100000",
        "99999999999999999999",
    };
    struct err err;

    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct array *array = array_parse(good[i].text, 100000, 1000000, &err);
        struct str shown = { 0 };
        assert_non_null(array);
        assert_int_equal(array->count, good[i].count);
        assert_int_equal(array->waiting, good[i].count);
        assert_int_equal(array_task_id(array, 0), good[i].first);
        assert_int_equal(array_task_id(array, array->count - 1), good[i].last);
        assert_int_equal(array->max_running, good[i].max_running);
        array_format(array, &shown);
        assert_string_equal(str_text(&shown), good[i].shown);
        for (uint32_t n = 0; n < array->count; n++) {
            uint32_t number;
            assert_true(array_find(array, array_task_id(array, n), &number));
            assert_int_equal(number, n);
        }
        str_done(&shown);
        array_free(array);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_null(array_parse(bad[i], 100000, 1000000, &err));
        assert_int_equal(err.code, ERR_ARRAY);
    }
    assert_null(array_parse("0-999", 100000, 999, &err));
    assert_int_equal(err.code, ERR_MAX_JOB_COUNT);
}

static uint32_t submit_array(struct fix *fix, const char *text)
{
    JobSpec spec = fix_spec();

    spec.array = (char *)(uintptr_t)text;
    return fix_submit(fix, &spec);
}

static void assert_id(const struct fix *fix, uint32_t id, const char *shown)
{
    struct str text = { 0 };

    job_format_id(fix_get(fix, id), &text);
    assert_string_equal(str_text(&text), shown);
    str_done(&text);
}

static void tasks_get_records_when_they_start(void **unused)
{
    struct fix *fix = fix_new(2);
    uint32_t id = submit_array(fix, "0-2");
    const struct event *event;

    assert_int_equal(state_counts(fix->state).records, 1);
    assert_int_equal(state_counts(fix->state).pending, 3);
    assert_id(fix, id, "1_[0-2]");
    assert_int_equal(fix_start(fix, id, "n1", 1), ERR_INVALID_JOB_ID); /* which task? */
    assert_int_equal(fix_start_task(fix, id, 9, "n1", 1), ERR_INVALID_JOB_ID);
    assert_int_equal(fix_start_task(fix, id, 1, "n1", 1), ERR_OK);
    assert_int_equal(fix_events(fix, EVENT_JOB_STARTED, &event), 1);
    assert_int_equal(event->job_id, 2); /* the next raw id */
    assert_int_equal(event->array_id, id);
    assert_int_equal(event->task, 1);
    assert_int_equal(fix_start_task(fix, id, 1, "n1", 1), ERR_INVALID_JOB_ID); /* once only */
    assert_id(fix, 2, "1_1");
    assert_id(fix, id, "1_[0,2]");
    assert_int_equal(fix_start_task(fix, id, 0, "n1", 1), ERR_OK);
    assert_int_equal(fix_start_task(fix, id, 2, "n1", 1), ERR_OK);
    assert_id(fix, id, "1_2"); /* the last one takes the array's id */
    assert_int_equal(state_counts(fix->state).records, 3);
    assert_int_equal(state_counts(fix->state).running, 3);
    assert_ptr_equal(state_task(fix->state, id, 0), fix_get(fix, 3));
    assert_ptr_equal(state_task(fix->state, id, 2), fix_get(fix, id));
    assert_null(state_task(fix->state, id, 7));
    fix_finish(fix, 2, 0);
    fix_finish(fix, 3, 256);
    fix_finish(fix, id, 0);
    const struct array *array = fix_get(fix, id)->array;
    assert_int_equal(array->ok, 2);
    assert_int_equal(array->failed, 1);
    fix_free(fix);
}

static void a_throttle_bounds_what_runs(void **unused)
{
    struct fix *fix = fix_new(2);
    uint32_t id = submit_array(fix, "1-4%2");
    JobSpec change = JOB_SPEC__INIT;

    assert_int_equal(fix_start_task(fix, id, 1, "n1", 1), ERR_OK);
    assert_int_equal(fix_start_task(fix, id, 2, "n1", 1), ERR_OK);
    assert_int_equal(fix_start_task(fix, id, 3, "n1", 1), ERR_DISABLED);
    assert_int_equal(fix_reason(fix, id), REASON_ARRAY_TASK_LIMIT);
    fix_finish(fix, 2, 0);
    assert_int_equal(fix_reason(fix, id), REASON_NONE);
    assert_int_equal(fix_start_task(fix, id, 3, "n1", 1), ERR_OK);
    change.array = (char *)"%3";
    assert_int_equal(fix_update(fix, id, &change, false), ERR_OK);
    assert_int_equal(fix_start_task(fix, id, 4, "n1", 1), ERR_OK);
    change.array = (char *)"0-9";
    assert_int_equal(fix_update(fix, id, &change, false), ERR_ARRAY);
    fix_free(fix);
}

static void what_is_said_about_one_task_is_its_own(void **unused)
{
    struct fix *fix = fix_new(2);
    uint32_t id = submit_array(fix, "0-5");
    Command cmd = COMMAND__INIT;
    CmdUpdateJob msg = CMD_UPDATE_JOB__INIT;
    JobSelect jobs = JOB_SELECT__INIT;

    jobs.n_job_ids = 1;
    jobs.job_ids = &id;
    jobs.array_tasks = (char *)"3-4";
    msg.jobs = &jobs;
    SET(&msg, hold, 1);
    cmd.what_case = COMMAND__WHAT_UPDATE_JOB;
    cmd.update_job = &msg;
    assert_int_equal(fix_apply(fix, &cmd), ERR_OK);
    assert_int_equal(fix_events(fix, EVENT_TASK_SPLIT, NULL), 2);
    assert_id(fix, id, "1_[0-2,5]");
    assert_id(fix, 2, "1_3");
    assert_int_equal(fix_reason(fix, 2), REASON_HELD_USER);
    assert_int_equal(fix_reason(fix, id), REASON_NONE);
    assert_int_equal(fix_start(fix, 2, "n1", 1), ERR_JOB_HELD);
    /* The array's id means all of them. */
    assert_int_equal(fix_hold(fix, id, 0, false), ERR_OK);
    assert_int_equal(fix_start(fix, 2, "n1", 1), ERR_OK);
    jobs.array_tasks = (char *)"17";
    assert_int_equal(fix_apply(fix, &cmd), ERR_INVALID_JOB_ID);
    fix_free(fix);
}

static void tasks_are_cancelled_one_by_one_or_all(void **unused)
{
    struct fix *fix = fix_new(2);
    uint32_t id = submit_array(fix, "0-9");
    const struct event *event;

    fix_start_task(fix, id, 0, "n1", 1);
    assert_int_equal(fix_cancel(fix, id, "2-4"), ERR_OK);
    assert_int_equal(fix_events(fix, EVENT_TASKS_CANCELLED, &event), 1);
    assert_string_equal(event->text, "2-4");
    assert_int_equal(state_counts(fix->state).records, 2); /* no records for them */
    assert_int_equal(fix_get(fix, id)->array->failed, 3);
    assert_int_equal(fix_cancel(fix, id, "2"), ERR_ALREADY_DONE);
    assert_int_equal(fix_cancel(fix, id, "0"), ERR_OK); /* runs: its own record */
    assert_phase(fix, 2, PHASE_COMPLETING);
    assert_int_equal(fix_cancel(fix, id, "[5-9,1]"), ERR_OK); /* all that wait */
    assert_phase(fix, id, PHASE_ENDED);
    assert_state(fix, id, JOB_CANCELLED);
    fix_release(fix, 2, "n1");

    uint32_t other = submit_array(fix, "0-9");
    fix_start_task(fix, other, 7, "n1", 1);
    assert_int_equal(fix_cancel(fix, other, NULL), ERR_OK);
    assert_int_equal(fix_events(fix, EVENT_JOB_ENDED, NULL), 2);
    fix_free(fix);
}

static void requeued_tasks_count_again(void **unused)
{
    struct fix *fix = fix_new(2);
    uint32_t id = submit_array(fix, "0-1%1");

    fix_start_task(fix, id, 0, "n1", 1);
    fix_finish(fix, 2, 0);
    assert_int_equal(fix_get(fix, id)->array->ok, 1);
    assert_int_equal(fix_requeue(fix, 2, false), ERR_OK);
    assert_int_equal(fix_get(fix, id)->array->ok, 0);
    assert_int_equal(fix_get(fix, id)->array->active, 1);
    fix_start(fix, 2, "n1", 1);
    assert_int_equal(fix_start_task(fix, id, 1, "n1", 1), ERR_DISABLED);
    fix_free(fix);
}

static void the_arrays_record_is_forgotten_last(void **unused)
{
    struct fix *fix = fix_new(2);
    uint32_t id = submit_array(fix, "0-1");

    fix_start_task(fix, id, 0, "n1", 1);
    fix_start_task(fix, id, 1, "n1", 1);
    fix_finish(fix, id, 0);
    fix_time(fix, 400);
    assert_non_null(state_job(fix->state, id)); /* task 0 still runs */
    fix_finish(fix, 2, 0);
    fix_time(fix, 301);
    assert_int_equal(state_counts(fix->state).records, 0);
    fix_free(fix);
}

static void a_million_tasks_are_cheap(void **unused)
{
    struct fix *fix = fix_new(1);
    Config *config = fix_config(1);

    SET(config, max_array_size, 1000001);
    fix_reconfigure(fix, config, false);
    config__free_unpacked(config, NULL);
    fix->check = false;
    uint32_t id = submit_array(fix, "0-999999%3");
    assert_int_equal(state_counts(fix->state).pending, 1000000);
    assert_int_equal(fix_start_task(fix, id, 999999, "n1", 1), ERR_OK);
    assert_int_equal(fix_cancel(fix, id, "5-999990"), ERR_OK);
    assert_int_equal(state_counts(fix->state).pending, 1000000 - 1 - 999986);
    struct state *copy = fix_copy(fix);
    assert_int_equal(state_counts(copy).pending, state_counts(fix->state).pending);
    state_free(copy);
    fix_free(fix);
}

UNIT_MAIN(UNIT(array_texts), UNIT(tasks_get_records_when_they_start),
          UNIT(a_throttle_bounds_what_runs), UNIT(what_is_said_about_one_task_is_its_own),
          UNIT(tasks_are_cancelled_one_by_one_or_all), UNIT(requeued_tasks_count_again),
          UNIT(the_arrays_record_is_forgotten_last), UNIT(a_million_tasks_are_cheap))
