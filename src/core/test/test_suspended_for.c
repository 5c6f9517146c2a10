/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_suspended_for.c - jobs that are suspended for others: who runs again, and who is looked at for that
 *
 * The planner's random histories run under core_check(), which looks at all of them after every command.
 */
#include "core/test/fixture.h"
#include "core/view/view.h"

enum { NODES = 12 };

static struct fix *cluster(void)
{
    struct fix *fix = fix_new(NODES);
    Config *config = fix_config(NODES);

    config->preempt_type = mem_strdup("partition_prio");
    config->preempt_mode = mem_strdup("SUSPEND,GANG");
    SET(config->partitions[1], priority_tier, 5);
    assert_int_equal(fix_reconfigure(fix, config, true), ERR_OK);
    config__free_unpacked(config, NULL);
    return fix;
}

static uint32_t urgent(struct fix *fix)
{
    JobSpec spec = fix_spec();

    spec.partition = (char *)"small";
    uint32_t id = fix_submit(fix, &spec);
    assert_int_not_equal(id, 0);
    return id;
}

static void preempt(struct fix *fix, uint32_t id, uint32_t *victims, size_t count)
{
    Command cmd = COMMAND__INIT;
    CmdPreempt msg = CMD_PREEMPT__INIT;
    uint32_t attempts[NODES];

    for (size_t i = 0; i < count; i++)
        attempts[i] = fix_get(fix, victims[i])->attempt;
    SET(&msg, job_id, id);
    msg.partition = (char *)"small";
    msg.n_victims = msg.n_attempts = count;
    msg.victims = victims;
    msg.attempts = attempts;
    cmd.what_case = COMMAND__WHAT_PREEMPT;
    cmd.preempt = &msg;
    assert_int_equal(fix_apply(fix, &cmd), ERR_OK);
}

/* A job on each node from the first to the last, which has all CPUs. */
static void fill(struct fix *fix, unsigned first, unsigned last, uint32_t *ids)
{
    for (unsigned i = first; i <= last; i++) {
        char name[16];
        snprintf(name, sizeof(name), "n%u", i);
        ids[i - first] = fix_job(fix);
        assert_int_equal(fix_start(fix, ids[i - first], name, 4), ERR_OK);
    }
}

static size_t standing(const struct fix *fix, const uint32_t *ids, size_t count)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++)
        found += job_phase(fix_get(fix, ids[i])) == PHASE_SUSPENDED;
    return found;
}

static void who_waited_for_them_matters(void **unused)
{
    struct fix *fix = cluster();
    uint32_t ids[NODES];

    (void)unused;
    fill(fix, 1, NODES, ids);
    uint32_t one = urgent(fix), other = urgent(fix);
    preempt(fix, one, ids, 3);
    preempt(fix, other, ids + 3, 5);
    assert_int_equal(standing(fix, ids, NODES), 8);
    assert_int_equal(state_suspended_for_count(fix->state, one), 3);
    assert_int_equal(state_suspended_for_count(fix->state, other), 5);
    struct state *copy = fix_copy(fix);
    assert_int_equal(state_suspended_for_count(copy, other), 5);
    state_free(copy);
    fix_hold(fix, one, 1, false); /* it does not wait for them any more */
    assert_int_equal(standing(fix, ids, 3), 0);
    assert_int_equal(standing(fix, ids, NODES), 5);
    assert_int_equal(state_suspended_for_count(fix->state, one), 0);
    fix_cancel(fix, other, NULL);
    assert_int_equal(standing(fix, ids, NODES), 0);
    fix_free(fix);
}

/* Others have their CPUs; when one of those ends nobody is looked at who is not on its node. */
static void nobody_else_is_looked_at(void **unused)
{
    struct fix *fix = cluster();
    uint32_t ids[NODES], others[NODES];

    (void)unused;
    fill(fix, 1, NODES, ids);
    uint32_t id = urgent(fix);
    preempt(fix, id, ids, NODES);
    fill(fix, 1, NODES, others);
    fix_cancel(fix, id, NULL);
    assert_int_equal(standing(fix, ids, NODES), NODES);
    for (unsigned i = NODES; i-- > 0;) {
        fix_finish(fix, others[i], 0);
        assert_int_equal(standing(fix, ids, NODES), i);
        assert_true(fix->state->suspended_for_changed.len <= 2);
    }
    fix_free(fix);
}

/* The one with the smaller id gets the CPUs that both had. */
static void the_first_goes_first(void **unused)
{
    struct fix *fix = cluster();
    uint32_t first, second, third;

    (void)unused;
    fill(fix, 1, 1, &first);
    uint32_t id = urgent(fix);
    preempt(fix, id, &first, 1);
    fill(fix, 1, 1, &second);
    preempt(fix, id, &second, 1);
    fill(fix, 1, 1, &third);
    fix_cancel(fix, id, NULL);
    fix_finish(fix, third, 0);
    assert_phase(fix, first, PHASE_RUNNING);
    assert_phase(fix, second, PHASE_SUSPENDED);
    fix_finish(fix, first, 0);
    assert_phase(fix, second, PHASE_RUNNING);
    fix_free(fix);
}

UNIT_MAIN(UNIT(who_waited_for_them_matters), UNIT(nobody_else_is_looked_at),
          UNIT(the_first_goes_first))
