/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_timefmt.c - times that are read lie within bounds and come back from their text
 *
 * The first byte chooses the zone and the bias, the next three the moment that is now.
 */
#include "base/timefmt.h"

#include <time.h>

#include "base/limits.h"
#include "fuzz/fuzz.h"

static const char *const zones[] = {
    "UTC",
    "CET-1CEST,M3.5.0,M10.5.0/3",
    "EST5EDT,M3.2.0,M11.1.0",
    "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",
};

static void durations(const char *text)
{
    int64_t seconds, again;
    struct err err = { 0 };

    if (timefmt_read_duration(text, &seconds, &err) < 0) {
        CHECK(err.code == ERR_INVALID_TIME && err.text[0]);
        return;
    }
    CHECK(seconds == TIMEFMT_UNLIMITED || (seconds >= 0 && seconds <= LIMIT_SECONDS));
    CHECK(timefmt_minutes(seconds) * 60 - seconds < 60);
    for (int style = TIMEFMT_LONG; style <= TIMEFMT_SHORT; style++) {
        FUZZ_TEXT out = { 0 };
        timefmt_write_duration(&out, seconds, style);
        CHECK(timefmt_read_duration(str_text(&out), &again, NULL) == 0 && again == seconds);
    }
}

static void points(const char *text, int64_t now_s, enum timefmt_bias bias, bool utc)
{
    int64_t point_s, again;
    struct err err = { 0 };

    if (timefmt_read_point(text, now_s, bias, &point_s, &err) < 0) {
        CHECK(err.code == ERR_INVALID_TIME && str_starts(err.text, "Invalid time specification"));
        return;
    }
    CHECK(point_s >= 0 && point_s < INT64_C(253402387200)); /* the year 10000, anywhere */
    FUZZ_TEXT out = { 0 }, relative = { 0 };
    timefmt_write_point(&out, point_s, now_s, NULL);
    timefmt_write_point(&relative, point_s, now_s, "relative");
    CHECK(relative.len >= 8 && relative.len <= 12);
    if (point_s < 2 * 86400 || point_s > INT64_C(253402128000)) /* 1969 or 10000 in some zones */
        return;
    CHECK(timefmt_read_point(str_text(&out), now_s, bias, &again, NULL) == 0);
    /* An hour that a zone's clock shows twice is one of two moments. */
    CHECK(again == point_s || (!utc && llabs(again - point_s) <= 3600));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 4)
        return 0;
    unsigned zone = data[0] % ARRAY_LEN(zones);
    enum timefmt_bias bias = data[0] & 0x80 ? TIMEFMT_PAST : TIMEFMT_COMING;
    int64_t now_s = INT64_C(1000000000) + (data[1] << 16 | data[2] << 8 | data[3]) * INT64_C(97);
    CLEANUP(freep) char *text = fuzz_text(data + 4, size - 4);

    setenv("TZ", zones[zone], 1);
    tzset();
    durations(text);
    points(text, now_s, bias, zone == 0);
    FUZZ_TEXT out = { 0 };
    timefmt_write_point(&out, now_s, now_s, text);
    CHECK(out.len > 0 && out.len < 256);
    return 0;
}
