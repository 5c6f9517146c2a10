/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timefmt.c - durations both ways, points in time written; timefmt_point.c reads those
 */
#include "base/timefmt.h"

#include <string.h>
#include <time.h>

#include "base/limits.h"

enum { MINUTE = 60, HOUR = 60 * MINUTE, DAY = 24 * HOUR };

static int no_duration(const char *text, const char *why, struct err *err)
{
    struct str shown = { 0 };

    str_add_visible(&shown, text, strnlen(text, 64));
    int result = err_set(err, ERR_INVALID_TIME, "invalid time '%s': %s", str_text(&shown), why);
    str_done(&shown);
    return result;
}

/* Digits at *text, moved past; false when there are none. Saturates far above every bound. */
static bool take_number(const char **text, int64_t *value)
{
    const char *start = *text;

    *value = 0;
    for (; **text >= '0' && **text <= '9'; ++*text) {
        if (*value <= LIMIT_SECONDS)
            *value = *value * 10 + (**text - '0');
    }
    return *text > start;
}

/*
 * One number is minutes; two are minutes:seconds, three hours:minutes:seconds. After "days-" they
 * are hours, hours:minutes, hours:minutes:seconds.
 */
static const int64_t units[2][3][3] = {
    { { MINUTE }, { MINUTE, 1 }, { HOUR, MINUTE, 1 } },
    { { HOUR }, { HOUR, MINUTE }, { HOUR, MINUTE, 1 } },
};

int timefmt_read_duration(const char *text, int64_t *seconds, struct err *err)
{
    static const char forms[] = "minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S or UNLIMITED is expected";
    const char *at = text;
    int64_t field[3] = { 0 }, days = 0, total;
    unsigned fields = 0;

    if (str_ieq(text, "UNLIMITED") || str_ieq(text, "INFINITE") || str_eq(text, "-1")) {
        *seconds = TIMEFMT_UNLIMITED;
        return 0;
    }
    if (!take_number(&at, &field[fields++]))
        return no_duration(text, *text == '-' ? "it is negative" : forms, err);
    bool with_days = *at == '-';
    if (with_days) {
        at++;
        days = field[0];
        if (!take_number(&at, &field[0]))
            return no_duration(text, forms, err);
    }
    while (*at == ':' && fields < 3) {
        at++;
        if (!take_number(&at, &field[fields++]))
            return no_duration(text, forms, err);
    }
    if (*at)
        return no_duration(text, forms, err);
    total = days * DAY; /* no factor exceeds LIMIT_SECONDS * 10, so nothing overflows */
    for (unsigned i = 0; i < fields; i++)
        total += field[i] * units[with_days][fields - 1][i];
    if (total > LIMIT_SECONDS)
        return no_duration(text, "it is longer than 100 years", err);
    *seconds = total;
    return 0;
}

int64_t timefmt_minutes(int64_t seconds)
{
    return seconds < 0 ? seconds : seconds / MINUTE + (seconds % MINUTE > 0);
}

static void add_clock(struct str *out, int64_t seconds)
{
    str_addf(out, "%02d:%02d:%02d", (int)(seconds / HOUR), (int)(seconds % HOUR / MINUTE),
             (int)(seconds % MINUTE));
}

void timefmt_write_duration(struct str *out, int64_t seconds, enum timefmt_style style)
{
    if (seconds < 0) {
        str_add(out, seconds == TIMEFMT_UNLIMITED ? "UNLIMITED" : "INVALID");
        return;
    }
    int64_t days = seconds / DAY, rest = seconds % DAY;
    if (days) {
        str_add_i64(out, days);
        str_add_char(out, '-');
    }
    if (days || style == TIMEFMT_LONG)
        add_clock(out, rest);
    else if (rest >= HOUR)
        str_addf(out, "%d:%02d:%02d", (int)(rest / HOUR), (int)(rest % HOUR / MINUTE),
                 (int)(rest % MINUTE));
    else
        str_addf(out, "%d:%02d", (int)(rest / MINUTE), (int)(rest % MINUTE));
}

void timefmt_write_cpu(struct str *out, int64_t microseconds)
{
    int64_t seconds = microseconds / 1000000;
    int milliseconds = (int)(microseconds % 1000000 / 1000);

    if (microseconds >= 0 && seconds < HOUR && milliseconds)
        str_addf(out, "%02d:%02d.%03d", (int)(seconds / MINUTE), (int)(seconds % MINUTE),
                 milliseconds);
    else
        timefmt_write_duration(out, microseconds < 0 ? INT64_MIN : seconds, TIMEFMT_LONG);
}

bool timefmt_format_ok(const char *format)
{
    return str_is_empty(format) || str_eq(format, "standard") || str_eq(format, "relative") ||
           *format == '%';
}

/* Days from one local date to another, by the calendar: a day of 23 hours counts as one. */
static int days_apart(struct tm from, struct tm to)
{
    struct tm *ends[2] = { &from, &to };

    for (int i = 0; i < 2; i++) {
        ends[i]->tm_hour = 12;
        ends[i]->tm_min = ends[i]->tm_sec = 0;
    }
    int64_t apart = timegm(&to) - timegm(&from); /* as if both were UTC */
    return (int)(apart / DAY);
}

static const char *relative_format(const struct tm *now, const struct tm *then)
{
    int days = days_apart(*now, *then);

    if (now->tm_year != then->tm_year)
        return "%-d %b %Y";
    if (days == 0)
        return "%H:%M:%S";
    if (days == -1)
        return "Ystday %H:%M";
    if (days == 1)
        return "Tomorr %H:%M";
    return days > 1 && days < 7 ? "%a %H:%M" : "%-d %b %H:%M";
}

void timefmt_write_point(struct str *out, int64_t point_s, int64_t now_s, const char *format)
{
    static const char standard[] = "%Y-%m-%dT%H:%M:%S";
    char text[256];
    struct tm then, now;
    time_t point = (time_t)point_s, current = (time_t)now_s;

    if (!localtime_r(&point, &then) || !localtime_r(&current, &now)) {
        str_add(out, "INVALID"); /* a year that int cannot hold */
        return;
    }
    if (str_is_empty(format) || !timefmt_format_ok(format) || str_eq(format, "standard"))
        format = standard;
    else if (str_eq(format, "relative"))
        format = relative_format(&now, &then);
    size_t len = strftime(text, sizeof(text), format, &then);
    if (!len)
        len = strftime(text, sizeof(text), standard, &then);
    str_add_len(out, text, len);
}
