/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit.h - what every unit test begins with
 *
 * Vectors first, then a boring loop; the test's name says what is claimed.
 * UNIT_MAIN(UNIT(first), UNIT(second)) is the whole main().
 */
#ifndef TEST_UNIT_H
#define TEST_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define UNIT(fn) cmocka_unit_test(fn)

#define UNIT_MAIN(...)                                     \
    int main(void)                                         \
    {                                                      \
        const struct CMUnitTest tests[] = { __VA_ARGS__ }; \
        return cmocka_run_group_tests(tests, NULL, NULL);  \
    }

#endif
