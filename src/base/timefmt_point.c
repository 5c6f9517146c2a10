/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timefmt_point.c - reading points in time
 *
 * Words, times of day and dates are read left to right into `struct reading`, each kind once; then
 * what was left out is filled in from now.
 *
 * (1) Year, month and day are given all, or month and day, or none; hour, minute, second all or none.
 */
#include "base/timefmt.h"

#include <string.h>
#include <time.h>

#include "base/limits.h"

struct reading {
    const char *text;
    size_t at;
    struct tm now;
    bool has_date, has_year, has_time;
    struct tm tm; /* as given */
    struct err *err;
};

/* Times of day by name. */
static const struct {
    const char *name;
    int hour;
} hours[] = {
    { "midnight", 0 }, { "noon", 12 }, { "elevenses", 11 }, { "fika", 15 }, { "teatime", 16 },
};

static const struct {
    const char *name;
    int64_t seconds;
} units[] = {
    { "second", 1 }, { "minute", 60 }, { "hour", 3600 }, { "day", 86400 }, { "week", 604800 },
};

static int wrong(struct reading *reading, size_t at, const char *why)
{
    struct str shown = { 0 };

    str_add_visible(&shown, reading->text, strnlen(reading->text, 64));
    int result =
        err_set(reading->err, ERR_INVALID_TIME, "Invalid time specification (pos=%zu): %s (%s)", at,
                str_text(&shown), why);
    str_done(&shown);
    return result;
}

static char here(const struct reading *reading)
{
    return reading->text[reading->at];
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void skip_blanks(struct reading *reading)
{
    while (is_blank(here(reading)))
        reading->at++;
}

static size_t digits_at(const struct reading *reading, size_t at)
{
    size_t len = 0;

    while (is_digit(reading->text[at + len]))
        len++;
    return len;
}

/* `len` digits at `at`, which are there. */
static int number_at(const struct reading *reading, size_t at, size_t len)
{
    int value = 0;

    for (size_t i = 0; i < len; i++)
        value = value * 10 + (reading->text[at + i] - '0');
    return value;
}

/* Is `word` at the cursor, whole? Moves past it. A capital T may separate it from what follows. */
static bool take_word(struct reading *reading, const char *word)
{
    size_t len = strlen(word);

    if (!str_istarts(reading->text + reading->at, word))
        return false;
    char next = reading->text[reading->at + len];
    if (is_letter(next) && next != 'T')
        return false;
    reading->at += len;
    return true;
}

/* ---- now ± count units, uts… ---- */

static int read_offset(struct reading *reading, int64_t *offset)
{
    int64_t count = 0, unit = 1;

    skip_blanks(reading);
    char sign = here(reading);
    if (!sign) {
        *offset = 0;
        return 0;
    }
    if (sign != '+' && sign != '-')
        return wrong(reading, reading->at, "'now' stands alone or with + or -");
    reading->at++;
    skip_blanks(reading);
    if (!is_digit(here(reading)))
        return wrong(reading, reading->at, "a number is expected after the sign");
    for (; is_digit(here(reading)); reading->at++)
        count = MIN(count * 10 + (here(reading) - '0'), LIMIT_SECONDS + 1);
    skip_blanks(reading);
    size_t unit_at = reading->at;
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        char plural[16];
        size_t len = strlen(units[i].name);
        memcpy(plural, units[i].name, len);
        strcpy(plural + len, "s");
        if (take_word(reading, units[i].name) || take_word(reading, plural)) {
            unit = units[i].seconds;
            break;
        }
    }
    skip_blanks(reading);
    if (here(reading))
        return wrong(reading, unit_at == reading->at ? unit_at : reading->at,
                     "units are seconds, minutes, hours, days and weeks");
    if (count > LIMIT_SECONDS / unit)
        return wrong(reading, 3, "more than 100 years from now");
    *offset = (sign == '-' ? -count : count) * unit;
    return 0;
}

/* ---- times of day ---- */

static int set_time(struct reading *reading, size_t at, int hour, int minute, int second)
{
    if (reading->has_time)
        return wrong(reading, at, "the time of day is given twice");
    if (hour > 23 || minute > 59 || second > 59)
        return wrong(reading, at, "no such time of day");
    reading->has_time = true;
    reading->tm.tm_hour = hour;
    reading->tm.tm_min = minute;
    reading->tm.tm_sec = second;
    return 0;
}

/* "4:30", "16:00:05", "4:30 pm", "4pm"; the hour's digits are there. */
static int read_clock(struct reading *reading, size_t hour_digits)
{
    size_t start = reading->at;
    int field[3] = { number_at(reading, start, hour_digits), 0, 0 };

    reading->at += hour_digits;
    for (int i = 1; i < 3 && here(reading) == ':'; i++) {
        if (digits_at(reading, reading->at + 1) != 2)
            return wrong(reading, reading->at + 1, "two digits are expected");
        field[i] = number_at(reading, reading->at + 1, 2);
        reading->at += 3;
    }
    size_t after = reading->at;
    skip_blanks(reading);
    bool pm = take_word(reading, "pm");
    if (pm || take_word(reading, "am")) {
        if (field[0] > 12)
            return wrong(reading, start, "the hour is beyond 12 with am or pm");
        field[0] = field[0] % 12 + (pm ? 12 : 0);
    } else {
        reading->at = after;
    }
    return set_time(reading, start, field[0], field[1], field[2]);
}

/* ---- dates ---- */

static bool date_exists(int year, int month, int day)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return month >= 1 && month <= 12 && day >= 1 && day <= days[month - 1] + (month == 2 && leap);
}

/* year 0: not given. Whether February 29 exists is then known only when the year is chosen. */
static int set_date(struct reading *reading, size_t at, int year, int month, int day)
{
    if (reading->has_date)
        return wrong(reading, at, "the date is given twice");
    if (!date_exists(year ? year : 2000, month, day))
        return wrong(reading, at, "no such day");
    if (year && year < 1970)
        return wrong(reading, at, "before 1970");
    reading->has_date = true;
    reading->has_year = year != 0;
    reading->tm.tm_year = year - 1900;
    reading->tm.tm_mon = month - 1;
    reading->tm.tm_mday = day;
    return 0;
}

/* "12/25", "12.25.23", "1/2/2023"; the month's digits are there. */
static int read_divided_date(struct reading *reading, size_t month_digits)
{
    size_t start = reading->at, at = start + month_digits;
    char divider = reading->text[at];
    size_t day_digits = digits_at(reading, at + 1);
    int year = 0, month = number_at(reading, start, month_digits);

    if (day_digits < 1 || day_digits > 2)
        return wrong(reading, at + 1, "one or two digits are expected");
    int day = number_at(reading, at + 1, day_digits);
    at += 1 + day_digits;
    if (reading->text[at] == divider) {
        size_t len = digits_at(reading, at + 1);
        if (len != 2 && len != 4)
            return wrong(reading, at + 1, "a year has two or four digits");
        year = number_at(reading, at + 1, len) + (len == 2 ? 2000 : 0);
        if (!year)
            return wrong(reading, at + 1, "before 1970");
        at += 1 + len;
    }
    reading->at = at;
    return set_date(reading, start, year, month, day);
}

/* "2023-01-20"; the year's four digits and the dash are there. */
static int read_iso_date(struct reading *reading)
{
    size_t start = reading->at;
    int year = number_at(reading, start, 4);

    if (digits_at(reading, start + 5) != 2 || reading->text[start + 7] != '-' ||
        digits_at(reading, start + 8) != 2)
        return wrong(reading, start, "YYYY-MM-DD is expected");
    reading->at += 10;
    if (year < 1970)
        return wrong(reading, start, "before 1970");
    return set_date(reading, start, year, number_at(reading, start + 5, 2),
                    number_at(reading, start + 8, 2));
}

static int set_relative_day(struct reading *reading, size_t at, int days)
{
    struct tm tm = reading->now;

    tm.tm_mday += days;
    tm.tm_hour = 12;
    tm.tm_isdst = -1;
    if (mktime(&tm) == (time_t)-1)
        return wrong(reading, at, "no such day");
    return set_date(reading, at, tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday);
}

/* ---- the whole ---- */

static int read_number(struct reading *reading)
{
    size_t at = reading->at, len = digits_at(reading, at);
    char next = reading->text[at + len];

    if (len <= 2 && (next == ':' || is_letter(next) || is_blank(next))) {
        if (next != ':') { /* only "4pm" and "4 pm" */
            size_t word = at + len;
            while (is_blank(reading->text[word]))
                word++;
            if (!str_istarts(reading->text + word, "am") &&
                !str_istarts(reading->text + word, "pm"))
                return wrong(reading, word, "not a time or date");
        }
        return read_clock(reading, len);
    }
    if (len <= 2 && (next == '/' || next == '.'))
        return read_divided_date(reading, len);
    if (len == 4 && next == '-' && digits_at(reading, at + 5) == 2 && reading->text[at + 7] == '-')
        return read_iso_date(reading);
    if (len == 4 || len == 6) {
        int year = len == 6 ? number_at(reading, at + 4, 2) + 2000 : 0;
        reading->at += len;
        return set_date(reading, at, year, number_at(reading, at, 2),
                        number_at(reading, at + 2, 2));
    }
    return wrong(reading, at, "not a time or date");
}

static int read_word(struct reading *reading)
{
    size_t at = reading->at;

    for (size_t i = 0; i < ARRAY_LEN(hours); i++) {
        if (take_word(reading, hours[i].name))
            return set_time(reading, at, hours[i].hour, 0, 0);
    }
    if (take_word(reading, "today"))
        return set_relative_day(reading, at, 0);
    if (take_word(reading, "tomorrow"))
        return set_relative_day(reading, at, 1);
    return wrong(reading, at, "not a time or date");
}

/* What may stand between a date and a time. 'T' and '-' need something behind them. */
static void skip_separator(struct reading *reading)
{
    skip_blanks(reading);
    if (!reading->has_date && !reading->has_time)
        return;
    char c = here(reading), next = c ? reading->text[reading->at + 1] : '\0';
    bool word = str_istarts(reading->text + reading->at, "to") ||
                str_istarts(reading->text + reading->at, "te"); /* today, tomorrow, teatime */
    if ((c == '-' && next) || ((c == 'T' || c == 't') && next && !word))
        reading->at++;
    skip_blanks(reading);
}

/* Local time to a moment. A date that the year lacks was let through by set_date(). */
static int moment(struct reading *reading, struct tm tm, int64_t *out_s)
{
    if (!date_exists(tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday))
        return wrong(reading, 0, "no such day in the year meant");
    tm.tm_isdst = -1;
    time_t point = mktime(&tm);
    if (point < 0)
        return wrong(reading, 0, "before 1970");
    *out_s = point;
    return 0;
}

static int resolve(struct reading *reading, int64_t now_s, enum timefmt_bias bias, int64_t *out_s)
{
    struct tm tm = reading->tm;
    int64_t point;

    if (!reading->has_date) {
        tm.tm_year = reading->now.tm_year;
        tm.tm_mon = reading->now.tm_mon;
        tm.tm_mday = reading->now.tm_mday;
    } else if (!reading->has_year) {
        tm.tm_year = reading->now.tm_year;
        /* February 29 is in the next leap year, or was in the last */
        while (!date_exists(tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday))
            tm.tm_year += bias == TIMEFMT_COMING ? 1 : -1;
    }
    if (moment(reading, tm, &point) < 0)
        return -ERR_INVALID_TIME;
    bool ahead = bias == TIMEFMT_COMING && point <= now_s && !reading->has_year;
    bool back = bias == TIMEFMT_PAST && reading->has_date && !reading->has_year &&
                tm.tm_year == reading->now.tm_year && tm.tm_mon > reading->now.tm_mon;
    if (!reading->has_date && ahead) {
        tm.tm_mday++;
        tm.tm_isdst = -1;
        point = mktime(&tm);
    } else if (ahead || back) {
        do
            tm.tm_year += ahead ? 1 : -1;
        while (!date_exists(tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday));
        if (moment(reading, tm, &point) < 0)
            return -ERR_INVALID_TIME;
    }
    *out_s = point;
    return 0;
}

/* "uts" and seconds since 1970, the whole text. */
static int read_uts(struct reading *reading, int64_t *out_s)
{
    if (!str_to_i64(reading->text + 3, 1, INT64_C(253402300799), out_s))
        return wrong(reading, 0, "uts is followed by seconds since 1970");
    return 0;
}

int timefmt_read_point(const char *text, int64_t now_s, enum timefmt_bias bias, int64_t *out_s,
                       struct err *err)
{
    struct reading reading = { .text = text, .err = err };
    time_t now = (time_t)now_s;

    if (!localtime_r(&now, &reading.now))
        return wrong(&reading, 0, "the current time is not known");
    skip_blanks(&reading);
    if (!here(&reading))
        return wrong(&reading, 0, "empty");
    if (str_istarts(text, "uts") && is_digit(text[3]))
        return read_uts(&reading, out_s);
    if (take_word(&reading, "now")) {
        int64_t offset = 0;
        if (read_offset(&reading, &offset) < 0)
            return -ERR_INVALID_TIME;
        if (now_s + offset < 0)
            return wrong(&reading, 3, "before 1970");
        *out_s = now_s + offset;
        return 0;
    }
    while (here(&reading)) {
        int result = is_digit(here(&reading)) ? read_number(&reading) : read_word(&reading);
        if (result < 0)
            return result;
        skip_separator(&reading);
    }
    return resolve(&reading, now_s, bias, out_s);
}
