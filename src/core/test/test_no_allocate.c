/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_no_allocate.c - srun -Z: a job that holds nothing of the nodes it names
 */
#include "core/test/fixture.h"

static JobSpec beside(const char *nodes)
{
    JobSpec spec = fix_spec();

    SET(&spec, batch, false);
    SET(&spec, no_allocate, true);
    spec.nodelist = (char *)nodes;
    return spec;
}

static void it_starts_at_once_and_takes_nothing(void **unused)
{
    struct fix *fix = fix_new(3);
    const struct node *node = state_node(fix->state, "n1");
    uint32_t flags;

    uint32_t full = fix_job(fix);
    assert_int_equal(fix_start(fix, full, "n1", 4), ERR_OK);
    JobSpec spec = beside("n1");
    uint32_t id = fix_submit(fix, &spec);
    assert_int_not_equal(id, 0);
    assert_int_equal(fix_events(fix, EVENT_JOB_SUBMITTED, NULL), 1);
    assert_int_equal(fix_events(fix, EVENT_JOB_STARTED, NULL), 1);
    assert_phase(fix, id, PHASE_RUNNING);
    assert_int_equal(fix_get(fix, id)->run->count, 1);
    assert_int_equal(fix_get(fix, id)->run->parts[0].cpus, 4);
    assert_int_equal(node->cpus_used, 4);
    fix_finish(fix, full, 0);
    assert_int_equal(node->cpus_used, 0);
    assert_int_equal(node_shown_state(node, &flags), NODE_IDLE);
    full = fix_job(fix);
    assert_int_equal(fix_start(fix, full, "n1", 4), ERR_OK);
    struct state *copy = fix_copy(fix);
    state_free(copy);
    assert_int_equal(fix_suspend(fix, id, false), ERR_TRANSITION);
    assert_int_not_equal(fix_requeue(fix, id, false), ERR_OK);
    assert_phase(fix, id, PHASE_RUNNING);
    fix_finish(fix, id, 0);
    assert_phase(fix, id, PHASE_ENDED);
    assert_int_equal(node->cpus_used, 4);
    fix_free(fix);
}

static void several_nodes_each_once(void **unused)
{
    struct fix *fix = fix_new(3);
    JobSpec spec = beside("n[2-3],n2");

    assert_int_equal(fix_node_state(fix, "n3", "DRAIN", "test"), ERR_OK);
    uint32_t id = fix_submit(fix, &spec);
    assert_int_not_equal(id, 0);
    assert_phase(fix, id, PHASE_CONFIGURING);
    assert_int_equal(fix_get(fix, id)->run->count, 2);
    struct state *copy = fix_copy(fix);
    state_free(copy);
    assert_int_equal(fix_ready(fix, id), ERR_OK);
    assert_int_equal(fix_cancel(fix, id, NULL), ERR_OK);
    assert_int_equal(fix_release(fix, id, "n2"), ERR_OK);
    assert_int_equal(fix_release(fix, id, "n3"), ERR_OK);
    assert_phase(fix, id, PHASE_ENDED);
    fix_free(fix);
}

static void what_cannot_start_is_refused(void **unused)
{
    struct fix *fix = fix_new(2);
    JobSpec spec = beside(NULL);

    assert_int_equal(fix_submit(fix, &spec), 0);
    spec = beside("n1,nowhere");
    assert_int_equal(fix_submit(fix, &spec), 0);
    spec = beside("n1");
    SET(&spec, hold, true);
    assert_int_equal(fix_submit(fix, &spec), 0);
    fix_node_down(fix, "n1", true);
    spec = beside("n1");
    assert_int_equal(fix_submit(fix, &spec), 0);
    assert_int_equal(fix_answer(fix)->code, ERR_NODE_NOT_AVAIL);
    spec = beside("n2");
    assert_int_not_equal(fix_submit(fix, &spec), 0);
    fix_free(fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_starts_at_once_and_takes_nothing),
        cmocka_unit_test(several_nodes_each_once),
        cmocka_unit_test(what_cannot_start_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
