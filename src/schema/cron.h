/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cron.h - times of scrontab: five fields or a word, and when they come next
 */
#ifndef SCHEMA_CRON_H
#define SCHEMA_CRON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct cron {
    uint64_t minutes; /* bits 0 … 59 */
    uint32_t hours, days, months, weekdays;
    bool any_day, any_weekday; /* "*": where both are said, either will do */
};

/*
 * Reads "MINUTE HOUR DAY MONTH WEEKDAY" or "@hourly" at the beginning of a text; *end is what follows. Lists, ranges,
 * steps and names of months and days are as in cron. Sunday is 0 and 7.
 */
int cron_read(const char *text, struct cron *out, const char **end, struct err *err);

/* The first minute after `after_s` that it names, in local time; INT64_MAX: there is none in eight years. */
int64_t cron_next(const struct cron *cron, int64_t after_s);

#endif
