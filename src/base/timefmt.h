/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timefmt.h - durations and points in time, as Slurm's users write and read them
 *
 * Durations are seconds; TIMEFMT_UNLIMITED is "no limit". They are pure: core may use them.
 *
 * Points in time are seconds since 1970 UTC. The clock is never read: `now_s` is a parameter. What
 * people write is local time, so these functions ask the C library for the zone (TZ, tzset()),
 * and two machines may differ: only commands use them, never core.
 */
#ifndef BASE_TIMEFMT_H
#define BASE_TIMEFMT_H

#include "base/err.h"
#include "base/str.h"

#define TIMEFMT_UNLIMITED INT64_C(-1)

/*
 * "30" (minutes), "30:00" (minutes:seconds), "1:30:00", "2-12" (days-hours), "2-12:30",
 * "2-12:30:00", UNLIMITED, INFINITE, -1. Fields may exceed their natural size ("90:00", "72:0:0").
 * ERR_INVALID_TIME for anything else and for more than LIMIT_SECONDS (a century).
 */
int timefmt_read_duration(const char *text, int64_t *seconds, struct err *err);

/* A time limit in whole minutes, as Slurm keeps it: seconds round up. Unlimited stays so. */
int64_t timefmt_minutes(int64_t seconds);

enum timefmt_style {
    TIMEFMT_LONG,  /* 00:05:00, 1-00:00:00: scontrol, sacct */
    TIMEFMT_SHORT, /* 5:00, 1:05:00, 1-00:00:00: squeue, sinfo */
};
/* "UNLIMITED" for TIMEFMT_UNLIMITED, "INVALID" for other negative ones, as Slurm. */
void timefmt_write_duration(struct str *out, int64_t seconds, enum timefmt_style style);

/* Processor time as in sacct's TotalCPU: 00:00.005 below an hour, 00:00:00 when no part is left. */
void timefmt_write_cpu(struct str *out, int64_t microseconds);

/* Which day a time without a date means, and which year a date without one. */
enum timefmt_bias {
    TIMEFMT_COMING, /* the next such moment after now: sbatch --begin, --deadline, reservations */
    TIMEFMT_PAST,   /* today; this year, or last year for a later month: sacct -S, sreport start= */
};

/*
 * One or both of, in either order, apart by blanks, 'T' or '-':
 *   a time  16:00  4:30pm  4pm  16:00:30  midnight  noon  elevenses  fika  teatime
 *   a date  MMDD[YY]  MM/DD[/YY]  MM.DD[.YY]  YYYY-MM-DD  today  tomorrow
 * or alone: now, now+30, now-1hour, now+3days (seconds, minutes, hours, days, weeks), uts1668500000.
 * A date without a time is its midnight. Years may have four digits after '/' and '.'. A day that
 * the calendar lacks is refused, where Slurm takes February 30 as March 2.
 * ERR_INVALID_TIME says "Invalid time specification (pos=N): TEXT", Slurm's words, and why.
 */
int timefmt_read_point(const char *text, int64_t now_s, enum timefmt_bias bias, int64_t *out_s,
                       struct err *err);

/*
 * Writes a point as `format` (the value of SLURM_TIME_FORMAT) says: NULL, "" and "standard" give
 * 2022-11-15T08:13:20; "relative" 08:13:20, Tomorr 08:13, Fri 08:13, 25 Apr 08:13 or 6 Jun 2012;
 * else strftime(3). A format that timefmt_format_ok() refuses writes as standard does. Words for
 * what is no time (Unknown, N/A, None) are the caller's.
 */
void timefmt_write_point(struct str *out, int64_t point_s, int64_t now_s, const char *format);
bool timefmt_format_ok(const char *format);

#endif
