/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_reboot.c - nodes that are to be started anew, and jobs that wait for that
 */
#include "core/test/fixture.h"

static struct fix *fix_with_program(unsigned nodes)
{
    struct fix *fix = fix_new(nodes);
    Config *config = fix_config(nodes);

    config->reboot_program = mem_strdup("/site/reboot");
    SET(config, resume_timeout_s, 100);
    SET(config, return_to_service, 1);
    assert_int_equal(fix_reconfigure(fix, config, true), ERR_OK);
    config__free_unpacked(config, NULL);
    return fix;
}

static const struct node *get(const struct fix *fix, const char *name)
{
    return state_node(fix->state, name);
}

static enum err_code reboot(struct fix *fix, const char *node, const char *word,
                            NodeAfterReboot next, const char *reason)
{
    Command cmd = COMMAND__INIT;
    CmdUpdateNode msg = CMD_UPDATE_NODE__INIT;
    char *name = (char *)(uintptr_t)node;

    msg.n_nodes = 1;
    msg.nodes = &name;
    msg.state = (char *)(uintptr_t)word;
    msg.reason = (char *)(uintptr_t)reason;
    msg.by_user = (char *)"root";
    SET(&msg, next_state, next);
    cmd.what_case = COMMAND__WHAT_UPDATE_NODE;
    cmd.update_node = &msg;
    return fix_apply(fix, &cmd);
}

#define assert_flags(fix, name, wanted) assert_int_equal(get((fix), (name))->flags, (wanted))

static void without_a_program_it_is_refused(void **unused)
{
    struct fix *fix = fix_new(2);
    JobSpec spec = fix_spec();

    assert_int_equal(reboot(fix, "n1", "REBOOT", REBOOT_TO_SAME, NULL), ERR_DISABLED);
    assert_string_equal(fix_answer(fix)->text, "RebootProgram is not configured");
    SET(&spec, reboot, true);
    assert_int_equal(fix_submit(fix, &spec), 0);
    fix_free(fix);
}

static void an_idle_node_is_told_at_once(void **unused)
{
    struct fix *fix = fix_with_program(2);
    const struct event *event;

    assert_int_equal(reboot(fix, "n1", "REBOOT", REBOOT_TO_SAME, "new kernel"), ERR_OK);
    assert_int_equal(fix_events(fix, EVENT_NODE_REBOOT, &event), 1);
    assert_ptr_equal(event->node, get(fix, "n1"));
    assert_flags(fix, "n1", NODE_FLAG_REBOOT_ISSUED);
    assert_false(node_is_usable(get(fix, "n1")));
    assert_string_equal(get(fix, "n1")->reason, "new kernel : reboot issued");
    assert_int_equal(fix_node_state(fix, "n1", "CANCEL_REBOOT", NULL), ERR_REBOOT_IN_PROGRESS);
    state_free(fix_copy(fix));
    fix_node_up(fix, "n1", "boot-1"); /* only its agent was restarted */
    assert_flags(fix, "n1", NODE_FLAG_REBOOT_ISSUED);
    fix_node_up(fix, "n1", "boot-2");
    assert_flags(fix, "n1", 0);
    assert_true(node_is_usable(get(fix, "n1")));
    assert_null(get(fix, "n1")->reason);
    fix_free(fix);
}

static void a_busy_node_goes_on_and_asap_drains_it(void **unused)
{
    struct fix *fix = fix_with_program(2);
    uint32_t first = fix_job(fix), second = fix_job(fix);

    fix_start(fix, first, "n1", 1);
    assert_int_equal(reboot(fix, "n1", "REBOOT", REBOOT_TO_SAME, NULL), ERR_OK);
    assert_int_equal(fix_events(fix, EVENT_NODE_REBOOT, NULL), 0);
    assert_flags(fix, "n1", NODE_FLAG_REBOOT_REQUESTED);
    assert_int_equal(fix_start(fix, second, "n1", 1), ERR_OK); /* it is still used */
    assert_int_equal(reboot(fix, "n1", "REBOOT_ASAP", REBOOT_TO_SAME, NULL), ERR_OK);
    assert_flags(fix, "n1", NODE_FLAG_REBOOT_REQUESTED | NODE_FLAG_DRAIN);
    assert_string_equal(get(fix, "n1")->reason, "Reboot ASAP");
    state_free(fix_copy(fix));
    assert_int_equal(fix_node_state(fix, "n1", "CANCEL_REBOOT", NULL), ERR_OK);
    assert_flags(fix, "n1", 0);
    assert_null(get(fix, "n1")->reason);

    assert_int_equal(reboot(fix, "n1", "REBOOT_ASAP", REBOOT_TO_SAME, NULL), ERR_OK);
    fix_finish(fix, first, 0);
    assert_int_equal(fix_events(fix, EVENT_NODE_REBOOT, NULL), 0);
    fix_finish(fix, second, 0);
    assert_int_equal(fix_events(fix, EVENT_NODE_REBOOT, NULL), 1);
    fix_node_up(fix, "n1", "boot-2");
    assert_flags(fix, "n1", 0);
    fix_free(fix);
}

static void who_was_drained_before_stays_so(void **unused)
{
    struct fix *fix = fix_with_program(2);

    fix_node_state(fix, "n1", "DRAIN", "bad fan");
    reboot(fix, "n1", "REBOOT_ASAP", REBOOT_TO_SAME, NULL);
    fix_node_up(fix, "n1", "boot-2");
    assert_flags(fix, "n1", NODE_FLAG_DRAIN);
    assert_string_equal(get(fix, "n1")->reason, "Reboot ASAP : reboot issued : reboot complete");
    reboot(fix, "n1", "REBOOT", REBOOT_TO_RESUME, NULL);
    fix_node_up(fix, "n1", "boot-3");
    assert_true(node_is_usable(get(fix, "n1")));
    reboot(fix, "n1", "REBOOT", REBOOT_TO_DOWN, "for good");
    fix_node_up(fix, "n1", "boot-4");
    assert_int_equal(get(fix, "n1")->state, NODE_DOWN);
    assert_string_equal(get(fix, "n1")->reason, "for good : reboot issued : reboot complete");
    fix_free(fix);
}

static void force_ends_the_jobs_first(void **unused)
{
    struct fix *fix = fix_with_program(2);
    uint32_t id = fix_job(fix);

    fix_start(fix, id, "n1", 1);
    assert_int_equal(reboot(fix, "n1", "REBOOT_FORCE", REBOOT_TO_SAME, NULL), ERR_OK);
    assert_int_equal(fix_events(fix, EVENT_JOB_ENDING, NULL), 1);
    assert_phase(fix, id, PHASE_REQUEUING);
    fix_release(fix, id, "n1");
    assert_int_equal(fix_events(fix, EVENT_NODE_REBOOT, NULL), 1);
    assert_phase(fix, id, PHASE_PENDING);
    fix_free(fix);
}

static void who_does_not_come_back_is_down(void **unused)
{
    struct fix *fix = fix_with_program(2);

    reboot(fix, "n1", "REBOOT", REBOOT_TO_SAME, NULL);
    fix_time(fix, 90);
    assert_flags(fix, "n1", NODE_FLAG_REBOOT_ISSUED);
    fix_time(fix, 20);
    assert_flags(fix, "n1", 0);
    assert_int_equal(get(fix, "n1")->state, NODE_DOWN);
    assert_string_equal(get(fix, "n1")->reason, "reboot issued : reboot timed out");
    fix_node_up(fix, "n1", "boot-2"); /* late, but there: ReturnToService=1 */
    assert_true(node_is_usable(get(fix, "n1")));
    fix_free(fix);
}

static void a_node_comes_back_by_itself_when_told(void **unused)
{
    struct fix *fix = fix_new(2);
    Command cmd = COMMAND__INIT;
    CmdUpdateNode msg = CMD_UPDATE_NODE__INIT;
    char *name = (char *)"n1";

    msg.n_nodes = 1;
    msg.nodes = &name;
    msg.state = (char *)"DRAIN";
    msg.reason = (char *)"for a while";
    SET(&msg, resume_after_s, 100);
    cmd.what_case = COMMAND__WHAT_UPDATE_NODE;
    cmd.update_node = &msg;
    assert_int_equal(fix_apply(fix, &cmd), ERR_OK);
    state_free(fix_copy(fix));
    fix_time(fix, 90);
    assert_false(node_is_usable(get(fix, "n1")));
    fix_time(fix, 20);
    assert_true(node_is_usable(get(fix, "n1")));
    assert_null(get(fix, "n1")->reason);
    assert_int_equal(get(fix, "n1")->resume_us, 0);
    assert_int_equal(fix_events(fix, EVENT_NODE_UP, NULL), 1);
    fix_free(fix);
}

static uint32_t wants_reboot(struct fix *fix)
{
    JobSpec spec = fix_spec();

    SET(&spec, reboot, true);
    SET(&spec, min_nodes, 2);
    SET(&spec, ntasks, 2);
    return fix_submit(fix, &spec);
}

static void start_whole(struct fix *fix, uint32_t id, uint32_t cpus)
{
    Command cmd = COMMAND__INIT;
    CmdStart msg = CMD_START__INIT;
    JobStart start = JOB_START__INIT, *starts = &start;
    Allocation allocation = ALLOCATION__INIT;
    NodeAlloc parts[2] = { NODE_ALLOC__INIT, NODE_ALLOC__INIT },
              *list[2] = { &parts[0], &parts[1] };

    for (unsigned i = 0; i < 2; i++) {
        parts[i].node = (char *)(i ? "n2" : "n1");
        SET(&parts[i], cpus, cpus);
        SET(&parts[i], tasks, 1);
        SET(&parts[i], mem_mb, 100);
    }
    allocation.partition = (char *)"main";
    allocation.nodes = list;
    allocation.n_nodes = 2;
    SET(&start, job_id, id);
    SET(&start, attempt, fix_get(fix, id)->attempt + 1);
    start.allocation = &allocation;
    msg.starts = &starts;
    msg.n_starts = 1;
    cmd.what_case = COMMAND__WHAT_START;
    cmd.start = &msg;
    assert_int_equal(fix_apply(fix, &cmd), ERR_OK);
}

static void a_job_waits_until_its_nodes_are_back(void **unused)
{
    struct fix *fix = fix_with_program(3);
    uint32_t id = wants_reboot(fix);

    start_whole(fix, id, 4);
    assert_phase(fix, id, PHASE_CONFIGURING);
    assert_int_equal(fix_events(fix, EVENT_NODE_REBOOT, NULL), 2);
    assert_int_equal(fix_ready(fix, id), ERR_JOB_NOT_RUNNING); /* nobody may have heard of it */
    state_free(fix_copy(fix));
    fix_node_up(fix, "n1", "boot-2");
    assert_int_equal(fix_events(fix, EVENT_JOB_PREPARED, NULL), 0);
    assert_phase(fix, id, PHASE_CONFIGURING);
    fix_node_up(fix, "n2", "boot-2");
    assert_int_equal(fix_events(fix, EVENT_JOB_PREPARED, NULL), 1);
    assert_int_equal(fix_ready(fix, id), ERR_OK);
    assert_phase(fix, id, PHASE_RUNNING);
    assert_int_equal(fix_get(fix, id)->attempt, 1);
    fix_node_up(fix, "n2", "boot-3"); /* and this one nobody wanted */
    assert_phase(fix, id, PHASE_REQUEUING);
    fix_free(fix);
}

static void a_job_whose_node_does_not_come_back_goes_elsewhere(void **unused)
{
    struct fix *fix = fix_with_program(3);
    uint32_t id = wants_reboot(fix), gone;

    start_whole(fix, id, 4);
    fix_node_up(fix, "n1", "boot-2");
    fix_time(fix, 110);
    assert_int_equal(get(fix, "n2")->state, NODE_DOWN);
    fix_release(fix, id, "n1");
    assert_phase(fix, id, PHASE_PENDING);
    assert_int_equal(fix_get(fix, id)->restarts, 1);

    fix_node_up(fix, "n2", "boot-2");
    gone = wants_reboot(fix); /* cancelled while they boot */
    start_whole(fix, gone, 4);
    fix_cancel(fix, gone, NULL);
    assert_phase(fix, gone, PHASE_COMPLETING);
    fix_node_up(fix, "n1", "boot-3");
    fix_node_up(fix, "n2", "boot-3");
    assert_phase(fix, gone, PHASE_ENDED);
    assert_state(fix, gone, JOB_CANCELLED);
    fix_free(fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(without_a_program_it_is_refused),
        UNIT(an_idle_node_is_told_at_once),
        UNIT(a_busy_node_goes_on_and_asap_drains_it),
        UNIT(who_was_drained_before_stays_so),
        UNIT(force_ends_the_jobs_first),
        UNIT(who_does_not_come_back_is_down),
        UNIT(a_node_comes_back_by_itself_when_told),
        UNIT(a_job_waits_until_its_nodes_are_back),
        UNIT(a_job_whose_node_does_not_come_back_goes_elsewhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
