/* SPDX-License-Identifier: Apache-2.0 */
/* Times read and write as Slurm's do, in any zone and across changes of the clock. */
#include "test/unit.h"

#include <time.h>

#include "base/limits.h"
#include "base/timefmt.h"

#define TEXT CLEANUP(str_done) struct str

#define POINT(...)
#define WRITTEN(...)
#define DURATION(...)
#define LONG(...)

static const struct {
    const char *zone;
    int64_t now_s;
    enum timefmt_bias bias;
    const char *text, *means;
} points[] = {
#undef POINT
#define POINT(...) { __VA_ARGS__ },
#include "base/test/data/timefmt.inc"
#undef POINT
#define POINT(...)
};

static const struct {
    const char *zone;
    int64_t now_s;
    const char *format;
    int64_t point_s;
    const char *text;
} written[] = {
#undef WRITTEN
#define WRITTEN(...) { __VA_ARGS__ },
#include "base/test/data/timefmt.inc"
#undef WRITTEN
#define WRITTEN(...)
};

static const struct {
    const char *text;
    int64_t seconds, minutes;
} durations[] = {
#undef DURATION
#define DURATION(...) { __VA_ARGS__ },
#include "base/test/data/timefmt.inc"
#undef DURATION
#define DURATION(...)
};

static const struct {
    int64_t seconds;
    const char *text;
} long_ones[] = {
#undef LONG
#define LONG(...) { __VA_ARGS__ },
#include "base/test/data/timefmt.inc"
};

static void set_zone(const char *zone)
{
    setenv("TZ", zone, 1);
    tzset();
}

static void points_read_as_slurm(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(points); i++) {
        TEXT out = { 0 };
        struct err err = { 0 };
        int64_t point_s;

        set_zone(points[i].zone);
        if (timefmt_read_point(points[i].text, points[i].now_s, points[i].bias, &point_s, &err) < 0)
            fail_msg("%s", err.text);
        timefmt_write_point(&out, point_s, points[i].now_s, NULL);
        if (!str_eq(str_text(&out), points[i].means))
            fail_msg("%s, now %lld: '%s' is %s, not %s", points[i].zone, (long long)points[i].now_s,
                     points[i].text, str_text(&out), points[i].means);
    }
}

static void points_write_as_slurm(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(written); i++) {
        TEXT out = { 0 };

        set_zone(written[i].zone);
        timefmt_write_point(&out, written[i].point_s, written[i].now_s, written[i].format);
        assert_string_equal(str_text(&out), written[i].text);
    }
}

static void what_is_ours_or_differs(void **state)
{
    (void)state;
    static const struct {
        enum timefmt_bias bias;
        const char *text, *means;
    } rows[] = {
        { TIMEFMT_COMING, "elevenses", "2022-11-15T11:00:00" },
        { TIMEFMT_COMING, "4pm", "2022-11-15T16:00:00" },
        { TIMEFMT_COMING, "4 pm tomorrow", "2022-11-16T16:00:00" },
        { TIMEFMT_COMING, "12am", "2022-11-16T00:00:00" },
        { TIMEFMT_COMING, "12/25/2023", "2023-12-25T00:00:00" },
        { TIMEFMT_COMING, "12.25.2023-8:00am", "2023-12-25T08:00:00" },
        { TIMEFMT_COMING, "08:13:21", "2022-11-15T08:13:21" }, /* Slurm looks at minutes only */
        { TIMEFMT_COMING, "08:13:20", "2022-11-16T08:13:20" },
        { TIMEFMT_COMING, "0229", "2024-02-29T00:00:00" },
        { TIMEFMT_PAST, "0229", "2020-02-29T00:00:00" },
        { TIMEFMT_COMING, "010100", "2000-01-01T00:00:00" },
    };

    set_zone("UTC");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        TEXT out = { 0 };
        struct err err = { 0 };
        int64_t point_s;

        if (timefmt_read_point(rows[i].text, 1668500000, rows[i].bias, &point_s, &err) < 0)
            fail_msg("%s", err.text);
        timefmt_write_point(&out, point_s, 1668500000, "standard");
        assert_string_equal(str_text(&out), rows[i].means);
    }
}

static void wrong_points_say_where(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int pos;
    } rows[] = {
        { "", 0 },
        { "  ", 0 },
        { "yesterdayish", 0 },
        { "now+3d", 5 },
        { "now+", 4 },
        { "now+1hour30", 9 },
        { "now+1.5hours", 5 },
        { "now 16:00", 4 },
        { "now+-5", 4 },
        { "now+99999999999", 3 },
        { "now+9999999999999999999weeks", 3 },
        { "now-99999999", -1 },
        { "now-1668500001", 3 },
        { "13:30pm", 0 },
        { "25:00", 0 },
        { "8:5", 2 },
        { "16:60", 0 },
        { "16:", 3 },
        { ":30", 0 },
        { "16:00:", 6 },
        { "5", 0 },
        { "12", 0 },
        { "122", 0 },
        { "12252023", 0 },
        { "0231", 0 },
        { "2023-02-29", 0 },
        { "2023-13-01", 0 },
        { "2023-1-2", 0 },
        { "1969-12-31", 0 },
        { "0000-01-01", 0 },
        { "12/32", 0 },
        { "12//25", 3 },
        { "12/25/", 6 },
        { "12/25/0000", 6 },
        { "12/25/1969", 0 },
        { "2023-01-2", 0 },
        { "1225-", 4 },
        { "2023-01-20T", 10 },
        { "2023-01-20T24:00", 11 },
        { "2023-01-20T12:34:56Z", 19 },
        { "16:00 17:00", 6 },
        { "today tomorrow", 6 },
        { "1225 1226", 5 },
        { "noonish", 0 },
        { "20 Jan", 3 },
        { "uts", 0 },
        { "uts0", 0 },
        { "uts99999999999999999999", 0 },
        { "uts1668600000x", 0 },
        { "99999999999999999999", 0 },
        { "\x1b[2J", 0 },
    };

    set_zone("UTC");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = { 0 };
        int64_t point_s = 7;
        char start[64];
        int result = timefmt_read_point(rows[i].text, 1668500000, TIMEFMT_COMING, &point_s, &err);

        if (rows[i].pos < 0) {
            assert_int_equal(result, 0);
            continue;
        }
        if (result != -ERR_INVALID_TIME)
            fail_msg("'%s' was read as %lld", rows[i].text, (long long)point_s);
        snprintf(start, sizeof(start), "Invalid time specification (pos=%d): ", rows[i].pos);
        if (!str_starts(err.text, start))
            fail_msg("'%s' says \"%s\", not \"%s\"", rows[i].text, err.text, start);
        assert_null(strchr(err.text, '\x1b'));
        assert_int_equal(point_s, 7);
    }
}

static void durations_read_as_slurm(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(durations); i++) {
        int64_t seconds;

        assert_int_equal(timefmt_read_duration(durations[i].text, &seconds, NULL), 0);
        assert_int_equal(seconds, durations[i].seconds);
        assert_int_equal(timefmt_minutes(seconds), durations[i].minutes);
    }
}

static void wrong_durations_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        " ",
        "abc",
        "1h",
        "1m",
        "1.5",
        " 5",
        "5 ",
        "1:",
        ":1",
        "1-",
        "1-:",
        "-5",
        "-1:0",
        "1:2:3:4",
        "1-2:3:4:5",
        "1-2-3",
        "UNLIMITEDx",
        "--1",
        "+5",
        "0x10",
        "1e3",
        "99999999-23:59:59",
        "99999999999999999999",
        "18446744073709551615",
        "1-99999999999999999999:0:0",
        "53000000",
        "9999999999-9999999999:9999999999:9999999999",
    };
    struct err err = { 0 };
    int64_t seconds = 7;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(timefmt_read_duration(bad[i], &seconds, &err), -ERR_INVALID_TIME);
        assert_int_equal(seconds, 7);
    }
    timefmt_read_duration("99999999-23:59:59", &seconds, &err);
    assert_string_equal(err.text, "invalid time '99999999-23:59:59': it is longer than 100 years");
    timefmt_read_duration("-5", &seconds, &err);
    assert_string_equal(err.text, "invalid time '-5': it is negative");
    assert_int_equal(timefmt_read_duration("36500-0", &seconds, &err), 0);
    assert_true(seconds == LIMIT_SECONDS);
    assert_true(timefmt_read_duration("36500-0:0:1", &seconds, &err) < 0);
}

static void durations_write_for_each_command(void **state)
{
    (void)state;
    static const struct {
        int64_t seconds;
        const char *full, *brief;
    } rows[] = {
        { 0, "00:00:00", "0:00" },
        { 5, "00:00:05", "0:05" },
        { 300, "00:05:00", "5:00" },
        { 3599, "00:59:59", "59:59" },
        { 3600, "01:00:00", "1:00:00" },
        { 36000, "10:00:00", "10:00:00" },
        { 86400, "1-00:00:00", "1-00:00:00" },
        { 90061, "1-01:01:01", "1-01:01:01" },
        { TIMEFMT_UNLIMITED, "UNLIMITED", "UNLIMITED" },
        { -5, "INVALID", "INVALID" },
        { INT64_MAX, "106751991167300-15:30:07", "106751991167300-15:30:07" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        TEXT full = { 0 }, brief = { 0 };
        timefmt_write_duration(&full, rows[i].seconds, TIMEFMT_LONG);
        timefmt_write_duration(&brief, rows[i].seconds, TIMEFMT_SHORT);
        assert_string_equal(str_text(&full), rows[i].full);
        assert_string_equal(str_text(&brief), rows[i].brief);
    }
    for (size_t i = 0; i < ARRAY_LEN(long_ones); i++) {
        TEXT out = { 0 };
        timefmt_write_duration(&out, long_ones[i].seconds, TIMEFMT_LONG);
        assert_string_equal(str_text(&out), long_ones[i].text);
    }
}

static void processor_time_has_milliseconds(void **state)
{
    (void)state;
    static const struct {
        int64_t microseconds;
        const char *text;
    } rows[] = {
        { 0, "00:00:00" },          { 999, "00:00:00" },           { 5000, "00:00.005" },
        { 83456789, "01:23.456" },  { 60000000, "00:01:00" },      { 3599999999, "59:59.999" },
        { 3600500000, "01:00:00" }, { 90061500000, "1-01:01:01" }, { -1, "INVALID" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        TEXT out = { 0 };
        timefmt_write_cpu(&out, rows[i].microseconds);
        assert_string_equal(str_text(&out), rows[i].text);
    }
}

static void formats_fall_back(void **state)
{
    (void)state;
    static const char *const bad[] = { "xx", "STANDARD", "Relative", " %T" };
    char endless[600] = "";

    set_zone("UTC");
    while (strlen(endless) < sizeof(endless) - 5)
        strcat(endless, "%Y");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        TEXT out = { 0 };
        assert_false(timefmt_format_ok(bad[i]));
        timefmt_write_point(&out, 1668500000, 1668500000, bad[i]);
        assert_string_equal(str_text(&out), "2022-11-15T08:13:20");
    }
    TEXT out = { 0 };
    assert_true(timefmt_format_ok(endless) && timefmt_format_ok(NULL) && timefmt_format_ok(""));
    timefmt_write_point(&out, 1668500000, 0, endless);
    assert_string_equal(str_text(&out), "2022-11-15T08:13:20");
    str_clear(&out);
    timefmt_write_point(&out, INT64_MAX, 0, NULL);
    assert_string_equal(str_text(&out), "INVALID");
}

UNIT_MAIN(UNIT(points_read_as_slurm), UNIT(points_write_as_slurm), UNIT(what_is_ours_or_differs),
          UNIT(wrong_points_say_where), UNIT(durations_read_as_slurm),
          UNIT(wrong_durations_are_refused), UNIT(durations_write_for_each_command),
          UNIT(processor_time_has_milliseconds), UNIT(formats_fall_back))
