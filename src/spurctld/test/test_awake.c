/* SPDX-License-Identifier: Apache-2.0 */
/* After a long stop nothing that changes anything is taken, until all that waited has been read. */
#include "spurctld/ctl/ctl_priv.h"
#include "test/unit.h"

static const int64_t SECOND_US = 1000000;
static int64_t mono_us, wall_us;

static int64_t mono(void *ctx)
{
    (void)ctx;
    return mono_us;
}

static int64_t wall(void *ctx)
{
    (void)ctx;
    return wall_us;
}

static void no_timer(void *ctx, enum ctl_timer timer, int64_t at_us)
{
    (void)ctx, (void)timer, (void)at_us;
}

static struct ctl fresh(void)
{
    mono_us = wall_us = 1000 * SECOND_US;
    return (struct ctl){ .io = { .mono_us = mono, .now_us = wall, .timer = no_timer },
                         .nodes.awake_us = mono_us,
                         .proposals = { .clock_mono_us = mono_us, .clock_wall_us = wall_us } };
}

static int ask(struct ctl *ctl, bool with_id)
{
    Command command = COMMAND__INIT;
    struct err err;

    command.has_request_id = with_id;
    ctl_look_at_clock(ctl);
    ctl_paused(ctl);
    return ctl_check_late(ctl, &command, &err);
}

static void what_waited_for_long_is_not_taken(void **state)
{
    static const struct {
        int64_t mono_s, wall_s;
        bool late;
    } rows[] = {
        { 0, 0, false },
        { 15, 15, false },
        { 30, 30, false }, /* an idle controller's own timer */
        { 60, 60, true },  /* stopped */
        { 3600, 3600, true },
        { 0, 3600, true },   /* the machine was suspended, or its clock was set */
        { 0, -3600, false }, /* set back */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct ctl ctl = fresh();
        assert_int_equal(ask(&ctl, true), 0);
        mono_us += rows[i].mono_s * SECOND_US;
        wall_us += rows[i].wall_s * SECOND_US;
        assert_int_equal(ask(&ctl, true), rows[i].late ? -(int)ERR_NOT_LEADER : 0);
        assert_int_equal(ask(&ctl, false), 0); /* what nobody repeats */
        mono_us += SECOND_US;
        wall_us += SECOND_US;
        assert_int_equal(ask(&ctl, true), rows[i].late ? -(int)ERR_NOT_LEADER : 0);
        mono_us += 2 * SECOND_US;
        wall_us += 2 * SECOND_US;
        assert_int_equal(ask(&ctl, true), 0); /* who still waits asks again */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_waited_for_long_is_not_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
