/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cron.c - times of scrontab
 */
#include "schema/cron.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/str.h"
#include "base/util.h"

enum { YEARS_MOST = 8 };

static const struct cron_word {
    const char *name, *fields;
} words[] = {
    { "@yearly", "0 0 1 1 *" },     { "@annually", "0 0 1 1 *" }, { "@monthly", "0 0 1 * *" },
    { "@weekly", "0 0 * * 0" },     { "@daily", "0 0 * * *" },    { "@midnight", "0 0 * * *" },
    { "@hourly", "0 * * * *" },     { "@noon", "0 12 * * *" },    { "@fika", "0 15 * * *" },
    { "@elevenses", "0 11 * * *" }, { "@teatime", "0 16 * * *" },
};

static const char *const month_names[] = { "jan", "feb", "mar", "apr", "may", "jun",
                                           "jul", "aug", "sep", "oct", "nov", "dec" };
static const char *const day_names[] = { "sun", "mon", "tue", "wed", "thu", "fri", "sat" };

static const struct cron_field {
    const char *what;
    unsigned low, high;
    const char *const *names;
    size_t count;
} fields[] = {
    { "minute", 0, 59, NULL, 0 },
    { "hour", 0, 23, NULL, 0 },
    { "day of month", 1, 31, NULL, 0 },
    { "month", 1, 12, month_names, ARRAY_LEN(month_names) },
    { "day of week", 0, 7, day_names, ARRAY_LEN(day_names) },
};

static bool read_value(const struct cron_field *field, const char **at, unsigned *out)
{
    for (size_t i = 0; i < field->count; i++) {
        if (strncasecmp(*at, field->names[i], 3) == 0) {
            *out = (unsigned)i + field->low;
            *at += 3;
            return true;
        }
    }
    if (!isdigit((unsigned char)**at))
        return false;
    for (*out = 0; isdigit((unsigned char)**at) && *out < 1000; (*at)++)
        *out = *out * 10 + (unsigned)(**at - '0');
    return *out >= field->low && *out <= field->high;
}

/* One of a list: "*", "7", "1-5", each with "/2". */
static bool read_range(const struct cron_field *field, const char **at, uint64_t *bits)
{
    unsigned from = field->low, upto = field->high, step = 1;
    bool star = **at == '*';

    if (star)
        (*at)++;
    else if (!read_value(field, at, &from))
        return false;
    bool ranged = !star && **at == '-';
    if (ranged) {
        (*at)++;
        if (!read_value(field, at, &upto) || upto < from)
            return false;
    }
    if (**at == '/') {
        (*at)++;
        for (step = 0; isdigit((unsigned char)**at) && step < 1000; (*at)++)
            step = step * 10 + (unsigned)(**at - '0');
        if (!step)
            return false;
    } else if (!star && !ranged) {
        upto = from;
    }
    for (unsigned value = from; value <= upto; value += step)
        *bits |= UINT64_C(1) << value;
    return true;
}

static int read_field(const struct cron_field *field, const char **at, uint64_t *bits, bool *any,
                      struct err *err)
{
    const char *begin = *at;

    *bits = 0;
    *any = **at == '*';
    for (;;) {
        bool good = read_range(field, at, bits);
        if (good && **at == ',') {
            (*at)++;
            continue;
        }
        if (!good || (**at && !strchr(" \t", **at)))
            return err_set(err, ERR_SYNTAX, "'%.*s' is not a valid %s",
                           (int)strcspn(begin, " \t\n"), begin, field->what);
        *at += strspn(*at, " \t");
        return 0;
    }
}

static int read_fields(const char **at, struct cron *out, struct err *err)
{
    uint64_t bits[ARRAY_LEN(fields)];
    bool any[ARRAY_LEN(fields)];

    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        if (!**at || **at == '\n')
            return err_set(err, ERR_SYNTAX,
                           "a time has five fields: minute hour day-of-month month day-of-week");
        if (read_field(&fields[i], at, &bits[i], &any[i], err) < 0)
            return -(int)err->code;
    }
    if (bits[4] & 1 << 7)
        bits[4] |= 1;
    *out = (struct cron){ .minutes = bits[0],
                          .hours = (uint32_t)bits[1],
                          .days = (uint32_t)bits[2],
                          .months = (uint32_t)bits[3],
                          .weekdays = (uint32_t)bits[4],
                          .any_day = any[2],
                          .any_weekday = any[4] };
    return 0;
}

int cron_read(const char *text, struct cron *out, const char **end, struct err *err)
{
    const char *at = text + strspn(text, " \t");
    size_t len = strcspn(at, " \t\n");

    if (*at != '@') {
        if (read_fields(&at, out, err) < 0)
            return -(int)err->code;
        *end = at;
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        const char *fields_of = words[i].fields;
        if (strlen(words[i].name) != len || strncasecmp(at, words[i].name, len) != 0)
            continue;
        *end = at + len + strspn(at + len, " \t");
        return read_fields(&fields_of, out, err);
    }
    return err_set(err, ERR_SYNTAX, "'%.*s' is not one of @hourly, @daily, @weekly, @monthly, ...",
                   (int)len, at);
}

static bool is_day(const struct cron *cron, const struct tm *tm)
{
    bool day = cron->days >> tm->tm_mday & 1, weekday = cron->weekdays >> tm->tm_wday & 1;

    if (!(cron->months >> (tm->tm_mon + 1) & 1))
        return false;
    return cron->any_day || cron->any_weekday ? day && weekday : day || weekday;
}

int64_t cron_next(const struct cron *cron, int64_t after_s)
{
    time_t now = (time_t)(after_s - after_s % 60 + 60);
    struct tm tm;

    localtime_r(&now, &tm);
    int last = tm.tm_year + YEARS_MOST;
    while (tm.tm_year <= last) {
        if (!is_day(cron, &tm)) {
            tm.tm_mday++;
            tm.tm_hour = tm.tm_min = 0;
        } else if (!(cron->hours >> tm.tm_hour & 1)) {
            tm.tm_hour++;
            tm.tm_min = 0;
        } else if (!(cron->minutes >> tm.tm_min & 1)) {
            tm.tm_min++;
        } else {
            return (int64_t)mktime(&tm);
        }
        tm.tm_sec = 0;
        tm.tm_isdst = -1;
        time_t at = mktime(&tm);   /* brings the fields into their ranges */
        if (at <= (time_t)after_s) /* the hour that a clock set back has twice */
            at = (time_t)after_s - (time_t)after_s % 60 + 3600;
        localtime_r(&at, &tm);
    }
    return INT64_MAX;
}
