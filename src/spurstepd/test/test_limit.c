/* SPDX-License-Identifier: Apache-2.0 */
/* Run time is boot time less frozen time; warning and end come once, and a new limit takes both back. */
#include "test/unit.h"

#include "spurstepd/limit.h"

enum { S = 1000000 };

static void ends_once_after_its_time(void **state)
{
    (void)state;
    struct limit limit;

    limit_start(&limit, 10, -1, 100 * S);
    assert_int_equal(limit_next_us(&limit, 100 * S), 110 * S);
    assert_int_equal(limit_due(&limit, 109 * S), LIMIT_NOTHING);
    assert_int_equal(limit_due(&limit, 110 * S), LIMIT_OVER);
    assert_int_equal(limit_due(&limit, 111 * S), LIMIT_NOTHING);
    assert_int_equal(limit_next_us(&limit, 111 * S), -1);
}

static void no_limit_never_ends(void **state)
{
    (void)state;
    struct limit limit;

    limit_start(&limit, -1, 60, 0);
    assert_int_equal(limit_next_us(&limit, 5 * S), -1);
    assert_int_equal(limit_due(&limit, INT64_C(1) << 60), LIMIT_NOTHING);
}

static void warns_before_the_end(void **state)
{
    (void)state;
    struct limit limit;

    limit_start(&limit, 10, 4, 0);
    assert_int_equal(limit_next_us(&limit, 0), 6 * S);
    assert_int_equal(limit_due(&limit, 6 * S), LIMIT_WARN);
    assert_int_equal(limit_due(&limit, 7 * S), LIMIT_NOTHING);
    assert_int_equal(limit_next_us(&limit, 7 * S), 10 * S);
    assert_int_equal(limit_due(&limit, 10 * S), LIMIT_OVER);

    limit_start(&limit, 10, 60, 0); /* a warning longer than the limit comes at once */
    assert_int_equal(limit_next_us(&limit, 0), 0);
    assert_int_equal(limit_due(&limit, 0), LIMIT_WARN);
}

static void frozen_time_does_not_count(void **state)
{
    (void)state;
    struct limit limit;

    limit_start(&limit, 10, -1, 0);
    limit_freeze(&limit, 5 * S);
    limit_freeze(&limit, 6 * S); /* again changes nothing */
    assert_int_equal(limit_due(&limit, 1000 * S), LIMIT_NOTHING);
    assert_int_equal(limit_next_us(&limit, 1000 * S), -1);
    assert_int_equal(limit_used_us(&limit, 1000 * S), 5 * S);
    limit_thaw(&limit, 1000 * S);
    limit_thaw(&limit, 1001 * S);
    assert_int_equal(limit_used_us(&limit, 1002 * S), 7 * S);
    assert_int_equal(limit_next_us(&limit, 1002 * S), 1005 * S);
    assert_int_equal(limit_due(&limit, 1005 * S), LIMIT_OVER);
}

static void a_new_limit_holds_at_once(void **state)
{
    (void)state;
    struct limit limit;

    limit_start(&limit, 10, 2, 0);
    assert_int_equal(limit_due(&limit, 8 * S), LIMIT_WARN);
    limit_change(&limit, 100, 9 * S);
    assert_int_equal(limit_due(&limit, 11 * S), LIMIT_NOTHING);
    assert_int_equal(limit_due(&limit, 98 * S), LIMIT_WARN);
    limit_change(&limit, 5, 98 * S);
    assert_int_equal(limit_due(&limit, 98 * S), LIMIT_OVER);
    limit_change(&limit, -1, 99 * S);
    assert_int_equal(limit_next_us(&limit, 99 * S), -1);
}

UNIT_MAIN(UNIT(ends_once_after_its_time), UNIT(no_limit_never_ends), UNIT(warns_before_the_end),
          UNIT(frozen_time_does_not_count), UNIT(a_new_limit_holds_at_once))
