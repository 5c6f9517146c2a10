/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_job_life.c - the life of a job: start, end, cancel, hold, requeue, suspend, time
 */
#include "core/test/fixture.h"
#include "core/view/view.h"
#include "schema/reasons.h"
#include "wire/pb.h"

static void a_job_starts_runs_and_ends(void **unused)
{
    struct fix *fix = fix_new(2);
    const struct event *event;

    uint32_t id = fix_job(fix);
    assert_int_equal(id, 1);
    assert_int_equal(fix_events(fix, EVENT_JOB_SUBMITTED, NULL), 1);
    assert_int_equal(fix_events(fix, EVENT_JOB_ELIGIBLE, NULL), 1);
    assert_phase(fix, id, PHASE_PENDING);
    assert_int_equal(fix_start(fix, id, "n1", 2), ERR_OK);
    assert_int_equal(fix_events(fix, EVENT_JOB_STARTED, &event), 1);
    assert_int_equal(event->attempt, 1);
    assert_phase(fix, id, PHASE_RUNNING); /* one node, no prolog: nothing to prepare */
    assert_int_equal(state_node(fix->state, "n1")->cpus_used, 2);
    assert_int_equal(fix_finish(fix, id, 0), ERR_OK);
    assert_int_equal(fix_events(fix, EVENT_JOB_ENDED, &event), 1);
    assert_int_equal(event->end_state, JOB_COMPLETED);
    assert_int_equal(fix_events(fix, EVENT_JOB_RELEASED, NULL), 1);
    assert_int_equal(fix_events(fix, EVENT_JOB_CLEAN, NULL), 1);
    assert_int_equal(fix_events(fix, EVENT_JOB_ENDING, NULL), 0);
    assert_phase(fix, id, PHASE_ENDED);
    assert_int_equal(state_node(fix->state, "n1")->cpus_used, 0);
    assert_int_equal(fix_finish(fix, id, 0), ERR_ALREADY_DONE);
    fix_free(fix);
}

static void ends_have_slurms_states(void **unused)
{
    static const struct {
        uint32_t status;
        JobState state;
        unsigned reason;
    } rows[] = {
        { 0, JOB_COMPLETED, REASON_NONE },
        { 1 << 8, JOB_FAILED, REASON_FAIL_EXIT_CODE },
        { 9, JOB_FAILED, REASON_FAIL_SIGNAL },
    };
    struct fix *fix = fix_new(1);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint32_t id = fix_job(fix);
        fix_start(fix, id, "n1", 2);
        assert_int_equal(fix_finish(fix, id, rows[i].status), ERR_OK);
        assert_state(fix, id, rows[i].state);
        assert_int_equal(fix_reason(fix, id), rows[i].reason);
        assert_int_equal(fix_get(fix, id)->run->exit_status, rows[i].status);
    }
    fix_free(fix);
}

static void nodes_are_free_when_they_say_so(void **unused)
{
    struct fix *fix = fix_new(3);
    uint32_t id = fix_job(fix);

    assert_int_equal(fix_start_two(fix, id, "n1", "n2"), ERR_OK);
    assert_phase(fix, id, PHASE_CONFIGURING);
    assert_int_equal(fix_release(fix, id, "n2"), ERR_TRANSITION);
    assert_int_equal(fix_ready(fix, id), ERR_OK);
    assert_phase(fix, id, PHASE_RUNNING);
    assert_int_equal(fix_ready(fix, id), ERR_JOB_NOT_RUNNING);
    assert_int_equal(fix_finish(fix, id, 0), ERR_OK);
    assert_phase(fix, id, PHASE_COMPLETING);
    assert_int_equal(fix_events(fix, EVENT_JOB_ENDING, NULL), 1);
    assert_int_equal(state_node(fix->state, "n1")->cpus_used, 0);
    assert_int_equal(state_node(fix->state, "n2")->cpus_used, 2);
    assert_int_equal(fix_release(fix, id, "n3"), ERR_OK); /* not its node: nothing */
    assert_phase(fix, id, PHASE_COMPLETING);
    assert_int_equal(fix_release(fix, id, "n2"), ERR_OK);
    assert_phase(fix, id, PHASE_ENDED);
    assert_state(fix, id, JOB_COMPLETED);
    fix_free(fix);
}

static void reports_of_old_attempts_change_nothing(void **unused)
{
    struct fix *fix = fix_new(1);
    uint32_t id = fix_job(fix);
    Command cmd = COMMAND__INIT;
    CmdFinish msg = CMD_FINISH__INIT;

    fix_start(fix, id, "n1", 2);
    assert_int_equal(fix_requeue(fix, id, false), ERR_OK);
    assert_int_equal(fix_release(fix, id, "n1"), ERR_OK);
    fix_start(fix, id, "n1", 2);
    assert_int_equal(fix_get(fix, id)->attempt, 2);
    SET(&msg, job_id, id);
    SET(&msg, attempt, 1);
    SET(&msg, exit_status, 0);
    cmd.what_case = COMMAND__WHAT_FINISH;
    cmd.finish = &msg;
    assert_int_equal(fix_apply(fix, &cmd), ERR_STALE_ATTEMPT);
    assert_int_equal(fix_events(fix, EVENT_REJECTED, NULL), 1);
    assert_phase(fix, id, PHASE_RUNNING);
    fix_free(fix);
}

static void cancel_works_in_every_phase(void **unused)
{
    struct fix *fix = fix_new(2);

    uint32_t pending = fix_job(fix);
    assert_int_equal(fix_cancel(fix, pending, NULL), ERR_OK);
    assert_phase(fix, pending, PHASE_ENDED);
    assert_state(fix, pending, JOB_CANCELLED);
    assert_int_equal(fix_cancel(fix, pending, NULL), ERR_ALREADY_DONE);

    uint32_t running = fix_job(fix);
    fix_start(fix, running, "n1", 2);
    assert_int_equal(fix_cancel(fix, running, NULL), ERR_OK);
    assert_int_equal(fix_events(fix, EVENT_JOB_ENDING, NULL), 1);
    assert_phase(fix, running, PHASE_COMPLETING);
    assert_int_equal(fix_cancel(fix, running, NULL), ERR_ALREADY_DONE);
    /* The script's end comes after: its code is kept, the state stays. */
    assert_int_equal(fix_finish(fix, running, 15), ERR_OK);
    assert_state(fix, running, JOB_CANCELLED);
    assert_int_equal(fix_get(fix, running)->run->exit_status, 15);

    uint32_t configuring = fix_job(fix);
    fix_start_two(fix, configuring, "n1", "n2");
    assert_int_equal(fix_cancel(fix, configuring, NULL), ERR_OK);
    assert_phase(fix, configuring, PHASE_COMPLETING);
    fix_release(fix, configuring, "n1");
    fix_release(fix, configuring, "n2");
    assert_phase(fix, configuring, PHASE_ENDED);

    uint32_t suspended = fix_job(fix);
    fix_start(fix, suspended, "n1", 2);
    assert_int_equal(fix_suspend(fix, suspended, false), ERR_OK);
    assert_int_equal(fix_cancel(fix, suspended, NULL), ERR_OK);
    fix_release(fix, suspended, "n1");

    uint32_t requeuing = fix_job(fix);
    fix_start(fix, requeuing, "n1", 2);
    fix_requeue(fix, requeuing, false);
    assert_phase(fix, requeuing, PHASE_REQUEUING);
    assert_int_equal(fix_cancel(fix, requeuing, NULL), ERR_OK);
    assert_phase(fix, requeuing, PHASE_COMPLETING);
    fix_release(fix, requeuing, "n1");
    assert_state(fix, requeuing, JOB_CANCELLED);
    assert_int_equal(fix_cancel(fix, 999, NULL), ERR_INVALID_JOB_ID);
    fix_free(fix);
}

static void a_signal_changes_nothing(void **unused)
{
    struct fix *fix = fix_new(1);
    uint32_t id = fix_job(fix);
    Command cmd = COMMAND__INIT;
    CmdCancel msg = CMD_CANCEL__INIT;
    JobSelect jobs = JOB_SELECT__INIT;
    const struct event *event;

    jobs.n_job_ids = 1;
    jobs.job_ids = &id;
    msg.jobs = &jobs;
    SET(&msg, signal, 10);
    SET(&msg, batch_only, true);
    cmd.what_case = COMMAND__WHAT_CANCEL;
    cmd.cancel = &msg;
    assert_int_equal(fix_apply(fix, &cmd), ERR_JOB_PENDING);
    fix_start(fix, id, "n1", 2);
    assert_int_equal(fix_apply(fix, &cmd), ERR_OK);
    assert_int_equal(fix_events(fix, EVENT_JOB_SIGNAL, &event), 1);
    assert_int_equal(event->signal, 10);
    assert_true(event->batch_only);
    assert_phase(fix, id, PHASE_RUNNING);
    fix_free(fix);
}

static void holds_keep_a_job_from_starting(void **unused)
{
    struct fix *fix = fix_new(1);
    JobSpec spec = fix_spec();
    SET(&spec, hold, true);
    uint32_t id = fix_submit(fix, &spec);

    assert_int_equal(fix_events(fix, EVENT_JOB_ELIGIBLE, NULL), 0);
    assert_int_equal(fix_reason(fix, id), REASON_HELD_USER);
    assert_int_equal(fix_start(fix, id, "n1", 2), ERR_JOB_HELD);
    assert_int_equal(fix_hold(fix, id, 0, false), ERR_OK);
    assert_int_equal(fix_events(fix, EVENT_JOB_ELIGIBLE, NULL), 1);
    assert_int_equal(fix_hold(fix, id, 2, true), ERR_OK);
    assert_int_equal(fix_events(fix, EVENT_JOB_WAITING, NULL), 1);
    assert_int_equal(fix_reason(fix, id), REASON_HELD_ADMIN);
    assert_int_equal(fix_hold(fix, id, 0, false), ERR_PERMISSION);
    assert_int_equal(fix_hold(fix, id, 0, true), ERR_OK);
    assert_int_equal(fix_start(fix, id, "n1", 2), ERR_OK);
    assert_int_equal(fix_hold(fix, id, 1, false), ERR_JOB_NOT_PENDING);
    fix_finish(fix, id, 0);
    assert_int_equal(fix_hold(fix, id, 1, false), ERR_JOB_FINISHED);
    fix_free(fix);
}

static void requeue_keeps_the_id(void **unused)
{
    struct fix *fix = fix_new(1);
    uint32_t id = fix_job(fix);
    const struct event *event;

    assert_int_equal(fix_requeue(fix, id, false), ERR_JOB_PENDING);
    fix_start(fix, id, "n1", 2);
    assert_int_equal(fix_requeue(fix, id, false), ERR_OK);
    assert_int_equal(fix_events(fix, EVENT_JOB_REQUEUED, &event), 1);
    assert_int_equal(event->attempt, 1);
    assert_phase(fix, id, PHASE_REQUEUING);
    assert_int_equal(fix_start(fix, id, "n1", 2), ERR_JOB_NOT_PENDING);
    assert_int_equal(fix_release(fix, id, "n1"), ERR_OK);
    assert_phase(fix, id, PHASE_PENDING);
    assert_int_equal(fix_get(fix, id)->restarts, 1);
    assert_null(fix_get(fix, id)->run);
    assert_int_equal(fix_start(fix, id, "n1", 2), ERR_OK);
    assert_int_equal(fix_get(fix, id)->attempt, 2);
    fix_finish(fix, id, 0);
    /* A job that has ended can be run again, held. */
    assert_int_equal(fix_requeue(fix, id, true), ERR_OK);
    assert_phase(fix, id, PHASE_PENDING);
    assert_int_equal(fix_get(fix, id)->hold, 1);
    assert_false(fix_get(fix, id)->flags & JOB_FLAG_REQUEUE_HOLD); /* it has been requeued */
    assert_string_equal(fix_get(fix, id)->more->reason_text, "job requeued in held state");
    assert_int_equal(fix_hold(fix, id, 0, false), ERR_OK);
    assert_null(fix_get(fix, id)->more->reason_text);

    JobSpec spec = fix_spec();
    SET(&spec, requeue, false);
    uint32_t never = fix_submit(fix, &spec);
    fix_start(fix, never, "n1", 2);
    assert_int_equal(fix_requeue(fix, never, false), ERR_DISABLED);
    spec.has_batch = false;
    spec.batch = false;
    spec.has_requeue = false;
    uint32_t salloc = fix_submit(fix, &spec);
    fix_start(fix, salloc, "n1", 2);
    assert_int_equal(fix_requeue(fix, salloc, false), ERR_BATCH_ONLY);
    fix_free(fix);
}

static void a_launch_that_failed_is_tried_again_but_not_for_ever(void **unused)
{
    struct fix *fix = fix_new(1);
    uint32_t id = fix_job(fix);
    Command cmd = COMMAND__INIT;
    CmdFinish msg = CMD_FINISH__INIT;
    char *node = (char *)"n1";
    unsigned tries = 0;

    while (fix_start(fix, id, "n1", 2) == ERR_OK && tries < 20) {
        tries++;
        SET(&msg, job_id, id);
        SET(&msg, attempt, tries);
        SET(&msg, requeue, true);
        msg.n_released = 1;
        msg.released = &node;
        cmd.what_case = COMMAND__WHAT_FINISH;
        cmd.finish = &msg;
        assert_int_equal(fix_apply(fix, &cmd), ERR_OK);
        assert_phase(fix, id, PHASE_PENDING);
    }
    assert_int_equal(tries, 6);
    assert_int_equal(fix_reason(fix, id), REASON_MAX_REQUEUE);
    fix_free(fix);
}

static enum err_code fail_launch(struct fix *fix, uint32_t id, char *node)
{
    Command cmd = COMMAND__INIT;
    CmdFinish msg = CMD_FINISH__INIT;
    char *nodes[] = { node };

    SET(&msg, job_id, id);
    SET(&msg, attempt, state_job(fix->state, id)->attempt);
    SET(&msg, requeue, true);
    msg.failed_node = node;
    msg.released = nodes;
    msg.n_released = 1;
    cmd.what_case = COMMAND__WHAT_FINISH;
    cmd.finish = &msg;
    return fix_apply(fix, &cmd);
}

/* Its node is none of its nodes for a while; the second time it waits, at last it is held. */
static void a_launch_that_failed_is_tried_elsewhere(void **unused)
{
    struct fix *fix = fix_new(2);
    Config *config = fix_config(2);
    SET(config, requeue_delay_s, 10);
    SET(config, requeue_delay_max_s, 40);
    SET(config, avoid_failed_node_s, 600);
    SET(config, max_batch_requeue, 2);
    fix_reconfigure(fix, config, true);
    config__free_unpacked(config, NULL);
    uint32_t id = fix_job(fix);
    const struct job *job = state_job(fix->state, id);
    char n1[] = "n1", n2[] = "n2";

    fix_start(fix, id, n1, 2);
    assert_int_equal(fail_launch(fix, id, n1), ERR_OK);
    assert_int_equal(job_phase(job), PHASE_PENDING);
    assert_string_equal(job->more->avoid_nodes, "n1");
    assert_true(job->more->avoids);
    assert_int_equal(job->more->backoff_us, 0);
    assert_int_equal(fix_start(fix, id, n2, 2), ERR_OK);
    assert_int_equal(fail_launch(fix, id, n2), ERR_OK);
    assert_int_equal(job->more->node_fails, 2);
    assert_int_equal(job->more->backoff_us, state_head(fix->state).time_us + 10000000);
    assert_false(job->more->avoids); /* it has no other node left */
    fix_time(fix, 11);
    assert_int_equal(fix_start(fix, id, n1, 2), ERR_OK);
    assert_int_equal(fail_launch(fix, id, n1), ERR_OK);
    assert_int_equal(job->hold, 2);
    assert_int_equal(core_job_reason(fix->state, job), REASON_MAX_REQUEUE);
    fix_free(fix);
}

/* What follows from the needs of the shape without these nodes is what is found by looking at all. */
static void needs_without_some_nodes(void **unused)
{
    static const struct {
        uint32_t nodes, tasks, cpus_per_task;
        uint32_t gpus;
        const char *before, *exclude;
        bool derived;
    } rows[] = {
        { 1, 1, 1, 0, NULL, "n1", true },      { 1, 1, 1, 0, "n2", "n[1-2]", true },
        { 1, 1, 1, 0, "n3", "n[1-2]", false }, /* it may have one that the other has not */
        { 1, 1, 1, 0, NULL, "n[1-4]", true },  { 1, 4, 1, 0, NULL, "n2", true },
        { 1, 3, 2, 0, NULL, "n2", false }, /* none runs all tasks */
        { 3, 3, 1, 0, NULL, "n[3-4]", true },  { 2, 2, 1, 0, NULL, "n[3-4]", true },
        { 2, 6, 1, 0, NULL, "n4", false },     { 1, 1, 1, 2, NULL, "n2", true },
        { 1, 1, 1, 2, NULL, "n[2,4]", true },  { 2, 2, 4, 1, NULL, "n4", true },
        { 1, 1, 64, 0, NULL, "n4", true },
    };
    struct fix *fix = fix_new(4);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        JobSpec spec = fix_spec();
        spec.partition = (char *)"main";
        SET(&spec, min_nodes, rows[i].nodes);
        SET(&spec, ntasks, rows[i].tasks);
        SET(&spec, cpus_per_task, rows[i].cpus_per_task);
        GresRequest gpu = GRES_REQUEST__INIT, *gres = &gpu;
        gpu.name = (char *)"gpu";
        SET(&gpu, count, rows[i].gpus);
        spec.gres = &gres;
        spec.n_gres = rows[i].gpus > 0;
        spec.exclude = (char *)(uintptr_t)rows[i].before;
        struct shape *from = shape_parse(fix->state, &spec, NULL);
        shape_needs(fix->state, from);
        spec.exclude = (char *)(uintptr_t)rows[i].exclude;
        struct shape *shape = shape_parse(fix->state, &spec, NULL);
        struct shape *other = shape_parse(fix->state, &spec, NULL);
        assert_true(from && shape && other);
        shape_needs_without(fix->state, shape, from);
        if ((shape->needs != NULL) != rows[i].derived)
            fail_msg("row %zu is%s looked for everywhere", i, rows[i].derived ? "" : " not");
        const struct need *a = shape_needs(fix->state, shape), *b = shape_needs(fix->state, other);
        if (!bitset_eq(&a->nodes, &b->nodes) || a->node_count != b->node_count ||
            a->least_nodes != b->least_nodes || a->fits != b->fits)
            fail_msg("row %zu: %u and %u nodes, least %u and %u", i, a->node_count, b->node_count,
                     a->least_nodes, b->least_nodes);
        shape_free(from);
        shape_free(shape);
        shape_free(other);
    }
    fix_free(fix);
}

static void exit_codes_can_requeue(void **unused)
{
    struct fix *fix = fix_new(1);
    Config *config = fix_config(1);
    config->requeue_exit = mem_strdup("3,10-12");
    config->requeue_exit_hold = mem_strdup("4");
    fix_reconfigure(fix, config, true);
    config__free_unpacked(config, NULL);

    uint32_t id = fix_job(fix);
    fix_start(fix, id, "n1", 2);
    fix_finish(fix, id, 11 << 8);
    assert_phase(fix, id, PHASE_PENDING);
    fix_start(fix, id, "n1", 2);
    fix_finish(fix, id, 4 << 8);
    assert_phase(fix, id, PHASE_PENDING);
    assert_true(fix_get(fix, id)->flags & JOB_FLAG_SPECIAL_EXIT);
    assert_int_equal(fix_get(fix, id)->hold, 1);
    fix_hold(fix, id, 0, false);
    fix_start(fix, id, "n1", 2);
    fix_finish(fix, id, 5 << 8);
    assert_state(fix, id, JOB_FAILED);
    fix_free(fix);
}

static void suspend_and_resume_count_the_time(void **unused)
{
    struct fix *fix = fix_new(1);
    uint32_t id = fix_job(fix);

    assert_int_equal(fix_suspend(fix, id, false), ERR_JOB_PENDING);
    fix_start(fix, id, "n1", 2);
    assert_int_equal(fix_suspend(fix, id, true), ERR_JOB_NOT_SUSPENDED);
    assert_int_equal(fix_suspend(fix, id, false), ERR_OK);
    assert_phase(fix, id, PHASE_SUSPENDED);
    assert_int_equal(fix_suspend(fix, id, false), ERR_JOB_SUSPENDED);
    fix_time(fix, 7200); /* twice its limit: it does not run, so nothing ends it */
    assert_phase(fix, id, PHASE_SUSPENDED);
    assert_int_equal(fix_suspend(fix, id, true), ERR_OK);
    assert_phase(fix, id, PHASE_RUNNING);
    assert_true(fix_get(fix, id)->run->suspended_total_us >= INT64_C(7200000000));
    fix_time(fix, 600);
    assert_phase(fix, id, PHASE_RUNNING);
    fix_free(fix);
}

static void the_site_has_a_word_before_and_after(void **unused)
{
    struct fix *fix = fix_new(2);
    Config *config = fix_config(2);

    config->prolog_ctld = mem_strdup("/site/prolog");
    config->epilog_ctld = mem_strdup("/site/epilog");
    fix_reconfigure(fix, config, false);
    uint32_t id = fix_job(fix), dropped = fix_job(fix);
    fix_start(fix, id, "n1", 1);
    assert_phase(fix, id, PHASE_CONFIGURING);
    assert_int_equal(fix_reason(fix, id), REASON_PROLOG);
    assert_int_equal(fix_ready(fix, id), ERR_JOB_NOT_RUNNING); /* no node may have heard of it */
    state_free(fix_copy(fix));
    assert_int_equal(fix_site_prolog(fix, id), ERR_OK);
    assert_int_equal(fix_events(fix, EVENT_JOB_PREPARED, NULL), 1);
    assert_int_equal(fix_site_prolog(fix, id), ERR_ALREADY_DONE);
    assert_phase(fix, id, PHASE_CONFIGURING);
    assert_int_equal(fix_site_epilog(fix, id), ERR_ALREADY_DONE);
    fix_ready(fix, id);
    assert_phase(fix, id, PHASE_RUNNING);
    fix_finish(fix, id, 0);
    assert_phase(fix, id, PHASE_COMPLETING); /* its node is free, but the site is not done */
    assert_int_equal(state_node(fix->state, "n1")->cpus_used, 0);
    state_free(fix_copy(fix));
    assert_int_equal(fix_site_epilog(fix, id), ERR_OK);
    assert_phase(fix, id, PHASE_ENDED);
    assert_state(fix, id, JOB_COMPLETED);

    fix_start(fix, dropped, "n1", 1); /* cancelled while its prolog runs */
    fix_cancel(fix, dropped, NULL);
    assert_int_equal(fix_site_prolog(fix, dropped), ERR_ALREADY_DONE);
    fix_release(fix, dropped, "n1");
    assert_phase(fix, dropped, PHASE_COMPLETING);
    fix_site_epilog(fix, dropped);
    assert_phase(fix, dropped, PHASE_ENDED);
    config__free_unpacked(config, NULL);
    fix_free(fix);
}

static uint32_t told(struct fix *fix, int64_t later_s)
{
    const struct event *event = NULL;

    fix_time(fix, later_s);
    size_t count = fix_events(fix, EVENT_JOB_TIME, &event);
    assert_true(count <= 1);
    return event ? event->mail : 0;
}

static void parts_of_the_time_limit_are_told_once(void **unused)
{
    struct fix *fix = fix_new(2);
    JobSpec spec = fix_spec(), change = JOB_SPEC__INIT;

    SET(&spec, mail_type, MAIL_TIME50 | MAIL_TIME80 | MAIL_TIME90);
    uint32_t id = fix_submit(fix, &spec);
    assert_int_equal(told(fix, 7200), 0); /* it waits */
    fix_start(fix, id, "n1", 1);
    assert_int_equal(told(fix, 1700), 0);
    assert_int_equal(told(fix, 101), MAIL_TIME50);
    assert_int_equal(told(fix, 0), 0);
    struct state *copy = fix_copy(fix); /* what was told is in the snapshot */
    assert_int_equal(core_next_due(copy), core_next_due(fix->state));
    state_free(copy);
    fix_suspend(fix, id, false);
    assert_int_equal(told(fix, 3600), 0); /* it does not run, so its time does not */
    fix_suspend(fix, id, true);
    assert_int_equal(told(fix, 1000), 0);
    assert_int_equal(told(fix, 500), MAIL_TIME90); /* which says more than 80 */
    assert_int_equal(told(fix, 50), 0);
    SET(&change, mail_type, MAIL_TIME50 | MAIL_TIME100);
    fix_update(fix, id, &change, false);
    assert_int_equal(told(fix, 10), 0);
    assert_int_equal(told(fix, 300), MAIL_TIME100);
    assert_int_equal(told(fix, 1), 0);
    assert_phase(fix, id, PHASE_RUNNING);
    fix_requeue(fix, id, false);
    fix_release(fix, id, "n1");
    fix_start(fix, id, "n1", 1);
    assert_int_equal(told(fix, 1801), MAIL_TIME50); /* another attempt */
    fix_free(fix);
}

static void time_limits_have_a_backstop(void **unused)
{
    struct fix *fix = fix_new(1);
    uint32_t id = fix_job(fix);

    fix_start(fix, id, "n1", 2);
    int64_t due = core_next_due(fix->state);
    assert_true(due > fix->now + INT64_C(3600000000));
    fix_time(fix, 3601);
    assert_phase(fix, id, PHASE_RUNNING); /* the node's business first */
    fix_time(fix, 300);
    assert_phase(fix, id, PHASE_RUNNING); /* it may be silent for so long */
    fix_time(fix, 100);
    assert_phase(fix, id, PHASE_COMPLETING);
    assert_state(fix, id, JOB_TIMEOUT);
    assert_int_equal(fix_reason(fix, id), REASON_FAIL_TIMEOUT);
    assert_int_equal(fix_events(fix, EVENT_JOB_ENDING, NULL), 1);
    fix_free(fix);
}

static enum err_code time_set(struct fix *fix, int64_t by_s)
{
    Command cmd = COMMAND__INIT;
    CmdTime msg = CMD_TIME__INIT;

    fix->now += by_s * 1000000;
    cmd.what_case = COMMAND__WHAT_TIME;
    cmd.time = &msg;
    SET(&cmd, skipped_us, by_s * 1000000);
    return fix_apply(fix, &cmd);
}

static void time_that_did_not_pass_ends_nothing(void **unused)
{
    struct fix *fix = fix_new(1);
    uint32_t id = fix_job(fix);
    Command cmd = COMMAND__INIT;
    CmdLead lead = CMD_LEAD__INIT;

    fix_start(fix, id, "n1", 2);
    time_set(fix, 7200); /* the clock was set */
    assert_phase(fix, id, PHASE_RUNNING);
    fix->now += INT64_C(7200000000); /* nobody led */
    cmd.what_case = COMMAND__WHAT_LEAD;
    cmd.lead = &lead;
    fix_apply(fix, &cmd);
    fix_time(fix, 3901); /* a leader begins by waiting for silent nodes */
    assert_phase(fix, id, PHASE_RUNNING);
    struct state *copy = fix_copy(fix);
    assert_int_equal(core_next_due(copy), core_next_due(fix->state));
    state_free(copy);
    fix_time(fix, 400); /* this did pass */
    assert_state(fix, id, JOB_TIMEOUT);
    fix_free(fix);
}

/* What did not pass before a job started is not given to it, and a new leader looks at no job. */
static void time_that_did_not_pass_before_is_not_given(void **unused)
{
    struct fix *fix = fix_new(1);
    uint32_t before = fix_job(fix), after = fix_job(fix);
    Command cmd = COMMAND__INIT;
    CmdLead lead = CMD_LEAD__INIT;

    fix_start(fix, before, "n1", 2);
    fix->now += INT64_C(7200000000);
    cmd.what_case = COMMAND__WHAT_LEAD;
    cmd.lead = &lead;
    uint64_t looked = fix->state->looked;
    fix_apply(fix, &cmd);
    assert_int_equal(fix->state->looked, looked);
    fix_finish(fix, before, 0);
    fix_start(fix, after, "n1", 2);
    struct state *copy = fix_copy(fix);
    assert_int_equal(core_next_due(copy), core_next_due(fix->state));
    state_free(copy);
    fix_time(fix, 3901);
    assert_phase(fix, after, PHASE_RUNNING);
    fix_time(fix, 100);
    assert_state(fix, after, JOB_TIMEOUT);
    assert_int_equal(timers_check(fix->state, NULL), 0);
    fix_free(fix);
}

static void only_administrators_hold_as_such(void **unused)
{
    struct fix *fix = fix_new(1);
    JobSpec spec = fix_spec();
    uint32_t id = fix_submit(fix, &spec);

    assert_int_equal(fix_hold(fix, id, 2, false), ERR_PERMISSION);
    assert_int_equal(fix_get(fix, id)->hold, 0);
    assert_int_equal(fix_hold(fix, id, 2, true), ERR_OK);
    assert_int_equal(fix_get(fix, id)->hold, 2);
    fix_free(fix);
}

/* Its node could not yet say how it ended: the limit waits. */
static void limits_wait_for_nodes_that_were_not_heard(void **unused)
{
    struct fix *fix = fix_new(2);
    JobSpec spec = fix_spec();
    SET(&spec, time_limit_s, 60);
    uint32_t id = fix_submit(fix, &spec);
    char *names[] = { (char *)"n1" };
    CmdTime time = CMD_TIME__INIT;
    Command cmd = COMMAND__INIT;

    assert_int_equal(fix_start(fix, id, "n1", 1), ERR_OK);
    int64_t due = core_next_due(fix->state);
    cmd.what_case = COMMAND__WHAT_TIME;
    cmd.time = &time;
    fix->now = due;
    time.n_unheard = 1;
    time.unheard = names;
    assert_int_equal(fix_apply(fix, &cmd), ERR_OK);
    assert_phase(fix, id, PHASE_RUNNING);
    assert_true(core_next_due(fix->state) > due);
    fix->now = core_next_due(fix->state);
    names[0] = (char *)"n2"; /* another one */
    assert_int_equal(fix_apply(fix, &cmd), ERR_OK);
    assert_state(fix, id, JOB_TIMEOUT);
    fix_free(fix);
}

/* A node that is lost before anything ran there: the job goes elsewhere, whatever it asked for. */
static void what_never_ran_is_not_lost(void **unused)
{
    struct fix *fix = fix_new(2);
    JobSpec spec = fix_spec();
    SET(&spec, requeue, false);
    CmdNodeDown down = CMD_NODE_DOWN__INIT;
    Command cmd = COMMAND__INIT;
    uint32_t sent = fix_submit(fix, &spec), unsent = fix_submit(fix, &spec);
    uint32_t listed = unsent;

    assert_int_equal(fix_start(fix, sent, "n1", 1), ERR_OK);
    assert_int_equal(fix_start(fix, unsent, "n1", 1), ERR_OK);
    cmd.what_case = COMMAND__WHAT_NODE_DOWN;
    cmd.node_down = &down;
    down.node = (char *)"n1";
    SET(&down, jobs_lost, true);
    down.n_unstarted = 1;
    down.unstarted = &listed;
    assert_int_equal(fix_apply(fix, &cmd), ERR_OK);
    assert_state(fix, sent, JOB_NODE_FAIL);
    assert_phase(fix, unsent, PHASE_PENDING);
    assert_int_equal(fix_start(fix, unsent, "n2", 1), ERR_OK);
    fix_free(fix);
}

static void begin_times_and_deadlines(void **unused)
{
    struct fix *fix = fix_new(1);
    JobSpec spec = fix_spec();

    SET(&spec, begin_us, fix->now + INT64_C(100000000));
    uint32_t later = fix_submit(fix, &spec);
    assert_int_equal(fix_reason(fix, later), REASON_BEGIN_TIME);
    assert_int_equal(core_next_due(fix->state), spec.begin_us);
    assert_int_equal(fix_start(fix, later, "n1", 2), ERR_JOB_HELD);
    fix_time(fix, 50);
    assert_int_equal(fix_events(fix, EVENT_JOB_ELIGIBLE, NULL), 0);
    fix_time(fix, 51);
    assert_int_equal(fix_events(fix, EVENT_JOB_ELIGIBLE, NULL), 1);
    assert_int_equal(fix_start(fix, later, "n1", 2), ERR_OK);

    spec = fix_spec();
    SET(&spec, deadline_us, fix->now + INT64_C(1000000000));
    assert_int_equal(fix_submit(fix, &spec), 0); /* its hour does not fit before it */
    assert_int_equal(fix_answer(fix)->code, ERR_INVALID_TIME);
    SET(&spec, deadline_us, fix->now + INT64_C(7200000000));
    uint32_t never = fix_submit(fix, &spec);
    fix_time(fix, 3700);
    assert_state(fix, never, JOB_DEADLINE);
    assert_int_equal(fix_reason(fix, never), REASON_FAIL_DEADLINE);
    fix_free(fix);
}

static void old_jobs_are_forgotten(void **unused)
{
    struct fix *fix = fix_new(1);
    uint32_t id = fix_job(fix);
    const struct event *event;

    uint8_t digest[32];

    memcpy(digest, fix_get(fix, id)->payload->digest, sizeof(digest));
    assert_true(state_has_payload(fix->state, digest));
    fix_start(fix, id, "n1", 2);
    fix_finish(fix, id, 0);
    fix_time(fix, 299);
    assert_non_null(state_job(fix->state, id));
    fix_time(fix, 2);
    assert_null(state_job(fix->state, id));
    assert_int_equal(fix_events(fix, EVENT_JOB_FORGOTTEN, &event), 1);
    assert_int_equal(event->job_id, id);
    assert_int_equal(fix_events(fix, EVENT_PAYLOAD_DROPPED, &event), 1);
    assert_memory_equal(event->digest, digest, sizeof(digest));
    assert_false(state_has_payload(fix->state, digest));
    assert_int_equal(core_next_due(fix->state), INT64_MAX);
    assert_int_equal(fix_job(fix), id + 1); /* ids are never reused */
    fix_free(fix);
}

static void a_request_id_is_answered_once(void **unused)
{
    struct fix *fix = fix_new(1);
    JobSpec spec = fix_spec();
    Command cmd = COMMAND__INIT;
    CmdUpdateJob msg = CMD_UPDATE_JOB__INIT;
    JobSelect jobs = JOB_SELECT__INIT;
    uint8_t id[16] = "0123456789abcdef";
    uint32_t job = fix_submit(fix, &spec);
    struct request_seen seen;

    jobs.n_job_ids = 1;
    jobs.job_ids = &job;
    msg.jobs = &jobs;
    SET(&msg, hold, 1);
    SET(&cmd, request_id, ((ProtobufCBinaryData){ 16, id }));
    SET(&cmd, uid, 1000);
    cmd.what_case = COMMAND__WHAT_UPDATE_JOB;
    cmd.update_job = &msg;
    assert_int_equal(fix_apply(fix, &cmd), ERR_OK);
    fix_hold(fix, job, 0, false);
    assert_int_equal(fix_apply(fix, &cmd), ERR_OK); /* the first answer, and no second hold */
    assert_int_equal(fix->events.list.len, 1);
    assert_int_equal(fix_get(fix, job)->hold, 0);
    assert_true(core_request_seen(fix->state, 1000, id, &seen));
    assert_false(core_request_seen(fix->state, 1001, id, &seen));
    struct state *copy = fix_copy(fix);
    assert_true(core_request_seen(copy, 1000, id, &seen));
    state_free(copy);
    fix_time(fix, 601);
    assert_false(core_request_seen(fix->state, 1000, id, &seen));
    assert_int_equal(fix_apply(fix, &cmd), ERR_OK);
    assert_int_equal(fix_get(fix, job)->hold, 1);
    fix_free(fix);
}

/* A request of several commands goes on where it got to, once, also after a restart. */
static void long_requests_go_on(void **unused)
{
    struct fix *fix = fix_new(1);
    JobSpec spec = fix_spec();
    Command cmd = COMMAND__INIT;
    CmdUpdateJob msg = CMD_UPDATE_JOB__INIT;
    JobSelect jobs = JOB_SELECT__INIT;
    uint8_t id[16] = "0123456789abcdeg";
    uint32_t first = fix_submit(fix, &spec), second = fix_submit(fix, &spec);
    struct request_seen seen;

    jobs.n_job_ids = 1;
    msg.jobs = &jobs;
    SET(&msg, hold, 1);
    SET(&cmd, request_id, ((ProtobufCBinaryData){ 16, id }));
    SET(&cmd, uid, 1000);
    cmd.what_case = COMMAND__WHAT_UPDATE_JOB;
    cmd.update_job = &msg;
    SET(&cmd, after_job, 0);
    SET(&cmd, upto_job, first);
    jobs.job_ids = &first;
    assert_int_equal(fix_apply(fix, &cmd), ERR_OK);
    fix_hold(fix, first, 0, false);
    assert_int_equal(fix_apply(fix, &cmd), ERR_OK); /* came twice: the job stays released */
    assert_int_equal(fix_get(fix, first)->hold, 0);
    struct state *copy = fix_copy(fix);
    assert_true(core_request_seen(copy, 1000, id, &seen));
    assert_true(seen.more && seen.job_id == first);
    assert_true(core_digest(copy) == core_digest(fix->state));
    state_free(copy);
    SET(&cmd, after_job, first);
    cmd.has_upto_job = false; /* the last one */
    jobs.job_ids = &second;
    assert_int_equal(fix_apply(fix, &cmd), ERR_OK);
    assert_int_equal(fix_get(fix, second)->hold, 1);
    fix_hold(fix, second, 0, false);
    assert_int_equal(fix_apply(fix, &cmd), ERR_OK);
    assert_int_equal(fix_get(fix, second)->hold, 0);
    assert_true(core_request_seen(fix->state, 1000, id, &seen));
    assert_false(seen.more);
    fix_free(fix);
}

static void starts_never_overcommit(void **unused)
{
    struct fix *fix = fix_new(2);
    uint32_t a = fix_job(fix), b = fix_job(fix), c = fix_job(fix);

    assert_int_equal(fix_start(fix, a, "n1", 3), ERR_OK);
    assert_int_equal(fix_start(fix, b, "n1", 2), ERR_NODES_BUSY);
    assert_int_equal(fix_events(fix, EVENT_REJECTED, NULL), 1);
    assert_phase(fix, b, PHASE_PENDING);
    assert_int_equal(fix_start(fix, b, "n1", 1), ERR_OK);
    assert_int_equal(fix_start(fix, c, "n9", 1), ERR_INVALID_NODE_NAME);
    assert_int_equal(fix_start_two(fix, c, "n2", "n2"), ERR_NODES_BUSY);
    assert_int_equal(fix_start(fix, a, "n2", 1), ERR_JOB_NOT_PENDING);
    JobSpec spec = fix_spec();
    SET(&spec, exclusive, EXCLUSIVE_NODE);
    uint32_t alone = fix_submit(fix, &spec);
    fix_finish(fix, b, 0);
    assert_int_equal(fix_start(fix, alone, "n1", 1), ERR_NODES_BUSY);
    assert_int_equal(fix_start(fix, alone, "n2", 4), ERR_OK);
    spec = fix_spec();
    SET(&spec, overcommit, true);
    uint32_t other = fix_submit(fix, &spec);
    assert_int_equal(fix_start(fix, other, "n2", 1), ERR_NODES_BUSY);
    fix_free(fix);
}

static uint32_t submit_two(struct fix *fix)
{
    Command cmd = COMMAND__INIT;
    CmdSubmit submit = CMD_SUBMIT__INIT;
    JobOwner owner = JOB_OWNER__INIT;
    PackedComponent one = PACKED_COMPONENT__INIT, two = PACKED_COMPONENT__INIT;
    PackedComponent *list[2] = { &one, &two };
    uint8_t digest[32] = { 9 };
    JobSpec spec = fix_spec();
    struct arena arena;

    arena_init(&arena);
    struct span bytes = pb_pack(&spec, &arena);
    SET(&one, spec, ((ProtobufCBinaryData){ bytes.len, (uint8_t *)(uintptr_t)bytes.ptr }));
    SET(&one, payload_digest, ((ProtobufCBinaryData){ sizeof(digest), digest }));
    SET(&spec, batch, false); /* the script is the first's */
    struct span rest = pb_pack(&spec, &arena);
    SET(&two, spec, ((ProtobufCBinaryData){ rest.len, (uint8_t *)(uintptr_t)rest.ptr }));
    SET(&owner, uid, 1000);
    submit.owner = &owner;
    submit.n_components = 2;
    submit.components = list;
    cmd.what_case = COMMAND__WHAT_SUBMIT;
    cmd.submit = &submit;
    assert_int_equal(fix_apply(fix, &cmd), ERR_OK);
    arena_done(&arena);
    return fix_answer(fix)->job_id;
}

static enum err_code start_two(struct fix *fix, uint32_t id, const char *second_node)
{
    Command cmd = COMMAND__INIT;
    CmdStart msg = CMD_START__INIT;
    JobStart one[2] = { JOB_START__INIT, JOB_START__INIT }, *starts[2] = { &one[0], &one[1] };
    Allocation allocation[2] = { ALLOCATION__INIT, ALLOCATION__INIT };
    NodeAlloc node[2] = { NODE_ALLOC__INIT, NODE_ALLOC__INIT }, *nodes[2] = { &node[0], &node[1] };

    for (uint32_t i = 0; i < 2; i++) {
        node[i].node = (char *)(uintptr_t)(i ? second_node : "n1");
        SET(&node[i], cpus, 3);
        allocation[i].n_nodes = 1;
        allocation[i].nodes = &nodes[i];
        allocation[i].partition = (char *)"main";
        SET(&one[i], job_id, id + i);
        SET(&one[i], attempt, fix_get(fix, id)->attempt + 1);
        one[i].allocation = &allocation[i];
    }
    msg.n_starts = 2;
    msg.starts = starts;
    cmd.what_case = COMMAND__WHAT_START;
    cmd.start = &msg;
    return fix_apply(fix, &cmd);
}

static void components_live_and_end_together(void **unused)
{
    struct fix *fix = fix_new(2);
    uint32_t id = submit_two(fix);

    assert_int_equal(fix_get(fix, id + 1)->more->het_job_id, id);
    assert_int_equal(fix_start(fix, id, "n1", 1), ERR_INVALID); /* not one alone */
    assert_int_equal(start_two(fix, id, "n1"), ERR_NODES_BUSY); /* all or none */
    assert_int_equal(fix_events(fix, EVENT_REJECTED, NULL), 2);
    assert_int_equal(state_node(fix->state, "n1")->cpus_used, 0);
    assert_int_equal(start_two(fix, id, "n2"), ERR_OK);
    assert_phase(fix, id + 1, PHASE_RUNNING);
    assert_int_equal(fix_requeue(fix, id, false), ERR_OK);
    assert_phase(fix, id + 1, PHASE_REQUEUING);
    fix_release(fix, id, "n1");
    fix_release(fix, id + 1, "n2");
    assert_int_equal(start_two(fix, id, "n2"), ERR_OK);
    fix_finish(fix, id, 256);
    assert_phase(fix, id + 1, PHASE_COMPLETING); /* its nodes are to be told */
    assert_state(fix, id + 1, JOB_FAILED);
    assert_int_equal(fix_events(fix, EVENT_JOB_ENDING, NULL), 1);
    fix_release(fix, id + 1, "n2");
    uint32_t other = submit_two(fix);
    fix_cancel(fix, other, NULL);
    assert_state(fix, other + 1, JOB_CANCELLED);
    fix_free(fix);
}

static void a_component_that_loses_its_node_brings_all_back(void **unused)
{
    struct fix *fix = fix_new(2);
    uint32_t id = submit_two(fix);

    assert_int_equal(start_two(fix, id, "n2"), ERR_OK);
    assert_int_equal(fix_node_down(fix, "n2", true), ERR_OK);
    assert_phase(fix, id, PHASE_REQUEUING); /* its node is to be told */
    assert_phase(fix, id + 1, PHASE_PENDING);
    fix_release(fix, id, "n1");
    assert_phase(fix, id, PHASE_PENDING);
    assert_int_equal(fix_get(fix, id)->restarts, 1);
    assert_int_equal(fix_get(fix, id + 1)->restarts, 1);
    fix_free(fix);
}

static void licences_are_counted(void **unused)
{
    struct fix *fix = fix_new(2);
    JobSpec spec = fix_spec();
    spec.licenses = (char *)"matlab:3";
    assert_int_equal(fix_submit(fix, &spec), 0);
    assert_int_equal(fix_answer(fix)->code, ERR_LICENSES);
    spec.licenses = (char *)"matlab";
    uint32_t ids[3];
    for (size_t i = 0; i < 3; i++)
        ids[i] = fix_submit(fix, &spec);
    assert_int_equal(fix_start(fix, ids[0], "n1", 1), ERR_OK);
    assert_int_equal(fix_start(fix, ids[1], "n1", 1), ERR_OK);
    assert_int_equal(fix_start(fix, ids[2], "n1", 1), ERR_LICENSES_UNAVAILABLE);
    fix_finish(fix, ids[0], 0);
    assert_int_equal(fix_start(fix, ids[2], "n1", 1), ERR_OK);
    fix_free(fix);
}

/* What a node reports of an end, and the reason the job shows for it. */
static void every_end_has_its_reason(void **unused)
{
    static const struct {
        uint32_t status; /* as of wait() */
        bool out_of_memory;
        JobState given, end;
        unsigned reason;
    } rows[] = {
        { 0, false, 0, JOB_COMPLETED, REASON_NONE },
        { 3 << 8, false, 0, JOB_FAILED, REASON_FAIL_EXIT_CODE },
        { 9, false, 0, JOB_FAILED, REASON_FAIL_SIGNAL },
        { 9, true, 0, JOB_OUT_OF_MEMORY, REASON_FAIL_OOM },
        { 0, true, 0, JOB_COMPLETED, REASON_NONE }, /* a step of it was, and the script went on */
        { 15, false, JOB_TIMEOUT, JOB_TIMEOUT, REASON_FAIL_TIMEOUT },
        { 15, false, JOB_NODE_FAIL, JOB_NODE_FAIL, REASON_FAIL_DOWN_NODE },
        { 15, false, JOB_DEADLINE, JOB_DEADLINE, REASON_FAIL_DEADLINE },
    };
    struct fix *fix = fix_new(1);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        JobSpec spec = fix_spec();
        Command cmd = COMMAND__INIT;
        CmdFinish msg = CMD_FINISH__INIT;
        Usage usage = USAGE__INIT;
        char *node = (char *)"n1";
        uint32_t id = fix_submit(fix, &spec);
        assert_int_equal(fix_start(fix, id, "n1", 1), ERR_OK);
        SET(&usage, out_of_memory, rows[i].out_of_memory);
        SET(&msg, job_id, id);
        SET(&msg, attempt, 1);
        SET(&msg, exit_status, rows[i].status);
        if (rows[i].given)
            SET(&msg, state, rows[i].given);
        msg.usage = &usage;
        msg.n_released = 1;
        msg.released = &node;
        cmd.what_case = COMMAND__WHAT_FINISH;
        cmd.finish = &msg;
        assert_int_equal(fix_apply(fix, &cmd), ERR_OK);
        assert_state(fix, id, rows[i].end);
        assert_int_equal(fix_reason(fix, id), rows[i].reason);
    }
    fix_free(fix);
}

/* To two states; one of them is asked for its digest after each, so that it does everything at once. */
static void apply_both(struct state *states[2], uint64_t index, Command *cmd)
{
    struct events events;

    events_init(&events);
    for (int i = 0; i < 2; i++) {
        events_clear(&events);
        core_apply(states[i], index, cmd, &events);
    }
    core_digest(states[0]);
    events_done(&events);
}

/* Their times are moved some in each command: which is forgotten when must not depend on how many were. */
static void many_requests_are_kept_when_time_did_not_pass(void **unused)
{
    enum { MANY = 30000, HOUR_US = 1000000000 };
    struct state *states[2] = { state_new(), state_new() };
    CmdTime time = CMD_TIME__INIT;
    CmdLead lead = CMD_LEAD__INIT;
    Command cmd = COMMAND__INIT;
    int64_t now = INT64_C(1700000000000000);
    struct request_seen seen;
    uint8_t id[16] = { 0 };
    uint64_t index = 0;

    (void)unused;
    SET(&cmd, uid, 1000);
    SET(&cmd, request_id, ((ProtobufCBinaryData){ 16, id }));
    for (uint32_t i = 0; i < MANY + 3000; i++) {
        bool leads = i == MANY;
        memcpy(id, &i, sizeof(i));
        now += leads ? HOUR_US * INT64_C(4) : i > MANY ? 200000 : 10000;
        SET(&cmd, time_us, now);
        cmd.what_case = leads ? COMMAND__WHAT_LEAD : COMMAND__WHAT_TIME;
        if (leads)
            cmd.lead = &lead;
        else
            cmd.time = &time;
        apply_both(states, ++index, &cmd);
        for (uint32_t k = 0; i > MANY && k < MANY; k += 1500) {
            memcpy(id, &k, sizeof(k));
            bool kept = core_request_seen(states[0], 1000, id, &seen);
            assert_int_equal(core_request_seen(states[1], 1000, id, &seen), kept);
            if (i == MANY + 1)
                assert_true(kept);
        }
    }
    uint32_t first = 0;
    memcpy(id, &first, sizeof(first));
    assert_false(core_request_seen(states[1], 1000, id, &seen)); /* this time did pass */
    assert_int_equal(core_digest(states[0]), core_digest(states[1]));
    state_free(states[0]);
    state_free(states[1]);
}

UNIT_MAIN(UNIT(a_job_starts_runs_and_ends), UNIT(ends_have_slurms_states),
          UNIT(nodes_are_free_when_they_say_so), UNIT(reports_of_old_attempts_change_nothing),
          UNIT(cancel_works_in_every_phase), UNIT(a_signal_changes_nothing),
          UNIT(holds_keep_a_job_from_starting), UNIT(requeue_keeps_the_id),
          UNIT(a_launch_that_failed_is_tried_again_but_not_for_ever),
          UNIT(a_launch_that_failed_is_tried_elsewhere), UNIT(needs_without_some_nodes),
          UNIT(exit_codes_can_requeue), UNIT(suspend_and_resume_count_the_time),
          UNIT(time_limits_have_a_backstop), UNIT(the_site_has_a_word_before_and_after),
          UNIT(parts_of_the_time_limit_are_told_once), UNIT(time_that_did_not_pass_ends_nothing),
          UNIT(time_that_did_not_pass_before_is_not_given),
          UNIT(limits_wait_for_nodes_that_were_not_heard), UNIT(what_never_ran_is_not_lost),
          UNIT(only_administrators_hold_as_such), UNIT(begin_times_and_deadlines),
          UNIT(old_jobs_are_forgotten), UNIT(a_request_id_is_answered_once),
          UNIT(many_requests_are_kept_when_time_did_not_pass), UNIT(long_requests_go_on),
          UNIT(starts_never_overcommit), UNIT(components_live_and_end_together),
          UNIT(a_component_that_loses_its_node_brings_all_back), UNIT(licences_are_counted),
          UNIT(every_end_has_its_reason))
