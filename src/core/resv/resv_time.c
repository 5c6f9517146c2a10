/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resv_time.c - when reservations that repeat hold, and which of them meet
 *
 * Days are those of UTC. Whatever two ways of repeating there are, together they repeat each week.
 */
#include "core/resv/resvs.h"

#define DAY_US  (INT64_C(86400) * US_PER_S)
#define WEEK_US (7 * DAY_US)

static int weekday(int64_t us) /* 0 Monday; day 0 of the epoch was a Thursday */
{
    return (int)((us / DAY_US + 3) % 7);
}

static bool is_its_day(unsigned flags, int64_t start_us)
{
    int day = weekday(start_us);

    return flags & RESV_WEEKDAY ? day < 5 : flags & RESV_WEEKEND ? day >= 5 : true;
}

static int64_t step_of(unsigned flags)
{
    return flags & RESV_HOURLY ? 3600 * US_PER_S : flags & RESV_WEEKLY ? WEEK_US : DAY_US;
}

bool resv_next_time(unsigned flags, int64_t *start_us, int64_t *end_us)
{
    int64_t step = step_of(flags);

    if (!(flags & RESV_REPEATS))
        return false;
    do {
        *start_us += step;
        *end_us += step;
    } while (!is_its_day(flags, *start_us));
    return true;
}

void resv_time_after(unsigned flags, int64_t now_us, int64_t *start_us, int64_t *end_us)
{
    int64_t step = step_of(flags), behind = now_us - *end_us;
    int64_t jump = behind > step ? (behind / step - 1) * step : 0;

    *start_us += jump;
    *end_us += jump;
    do
        resv_next_time(flags, start_us, end_us);
    while (*end_us <= now_us);
}

/* Does one of its times meet [start, end)? */
static bool meets(const ReservationSpec *spec, unsigned flags, int64_t start_us, int64_t end_us)
{
    int64_t from = spec->start_us, to = spec->end_us;

    if (flags & RESV_REPEATS && to <= start_us)
        resv_time_after(flags, start_us, &from, &to);
    while (to <= start_us && flags & RESV_REPEATS)
        resv_next_time(flags, &from, &to);
    return from < end_us && start_us < to;
}

bool resv_times_meet(const ReservationSpec *a, unsigned a_flags, const ReservationSpec *b,
                     unsigned b_flags)
{
    if (!(a_flags & RESV_REPEATS))
        return meets(b, b_flags, a->start_us, a->end_us);
    if (!(b_flags & RESV_REPEATS))
        return meets(a, a_flags, b->start_us, b->end_us);
    int64_t start = a->start_us, end = a->end_us, first = MAX(a->start_us, b->start_us);
    if (end <= first)
        resv_time_after(a_flags, first, &start, &end);
    for (; start < first + 2 * WEEK_US; resv_next_time(a_flags, &start, &end)) {
        if (meets(b, b_flags, start, end))
            return true;
    }
    return false;
}
