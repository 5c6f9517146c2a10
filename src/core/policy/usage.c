/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage.c - what associations and QOS have used: it grows with time, decays, and is forgotten
 *
 * Usage is touched when the rate changes (a job starts or ends) and once in each period
 * (PriorityCalcPeriod), when it decays. In between it follows from rate and time.
 */
#include "core/policy/policy.h"

#include <string.h>

enum { DEFAULT_PERIOD_S = 300 };

void holder_rehash(struct state *state, struct holder *holder)
{
    state->digest -= holder->hash;
    holder->hash = holder_hash(holder);
    state->digest += holder->hash;
}

void usage_settle(struct state *state, struct holder *holder)
{
    if (usage_settle_until(holder, state->accounts->tres_count, state->time_us))
        holder_rehash(state, holder);
}

uint64_t holder_usage(const struct state *state, const struct holder *holder, size_t tres)
{
    return usage_at(holder, tres, state->time_us) / 16;
}

uint64_t holder_wall_s(const struct state *state, const struct holder *holder)
{
    return usage_wall_at(holder, state->time_us) / 16;
}

/* ---- decay ---- */

static int64_t period_s(const struct state *state)
{
    return state->config->priority_calc_period_s > 0 ? state->config->priority_calc_period_s
                                                     : DEFAULT_PERIOD_S;
}

static void decay(struct state *state, struct holder *holder, uint64_t fraction)
{
    usage_decay(holder, state->accounts->tres_count, state->time_us, fraction);
    holder_rehash(state, holder);
}

/* The days since 1970 on which the period of this day began; UTC. */
static int64_t period_begin(const char *word, int64_t day)
{
    if (str_ieq(word, "DAILY"))
        return day;
    if (str_ieq(word, "WEEKLY"))
        return day - (day + 4) % 7; /* Sunday */
    /* The civil date of a day, by eras of 400 years that begin in March. */
    int64_t z = day + 719468, era = z / 146097, doe = z - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
    int64_t dom = doy - (153 * mp + 2) / 5, month = mp < 10 ? mp + 3 : mp - 9;
    int64_t year = yoe + era * 400 + (month <= 2);
    if (str_ieq(word, "MONTHLY"))
        return day - dom;
    int64_t first = str_ieq(word, "QUARTERLY") ? (month - 1) / 3 * 3 + 1 : 1;
    int64_t y = year - (first <= 2), e = y / 400, of = y - e * 400;
    int64_t in = (153 * (first > 2 ? first - 3 : first + 9) + 2) / 5;
    return e * 146097 + of * 365 + of / 4 - of / 100 + in - 719468;
}

static bool is_reset(const struct state *state, int64_t before_us)
{
    const char *word = state->config->priority_usage_reset;

    if (str_is_empty(word) || str_ieq(word, "NONE") || str_ieq(word, "NOW"))
        return false;
    int64_t day = US_PER_S * 86400;
    return period_begin(word, state->time_us / day) != period_begin(word, before_us / day);
}

/* The first day after this one on which all is forgotten. */
static int64_t reset_us(const struct state *state)
{
    const char *word = state->config->priority_usage_reset;
    int64_t day_us = US_PER_S * 86400, day = state->time_us / day_us, next = day + 1;

    if (str_is_empty(word) || str_ieq(word, "NONE") || str_ieq(word, "NOW"))
        return NEVER;
    while (period_begin(word, next) == period_begin(word, day))
        next++;
    return next * day_us;
}

int64_t limit_decays_us(const struct state *state, const struct limit_hit *hit)
{
    uint64_t half_s = (uint64_t)MAX(state->config->priority_decay_half_life_s, 0);
    bool safe = state->accounts->enforce & ENFORCE_SAFE;
    uint64_t room = safe ? hit->most - MIN(hit->asks, hit->most) + 1 : hit->most;
    uint64_t low = 0, high = half_s * 64;

    if (!hit->past || !room)
        return NEVER;
    if (!half_s || hit->holder->no_decay)
        return reset_us(state);
    while (low + 1 < high) { /* it is too much after `low` seconds, and not after `high` */
        uint64_t middle = low + (high - low) / 2;
        *(mul_fraction(hit->used, exp2_minus(middle, half_s)) < room ? &high : &low) = middle;
    }
    return MIN(reset_us(state), state->time_us + ((int64_t)high + period_s(state)) * US_PER_S);
}

static bool is_idle(const struct holder *holder)
{
    return !holder->wall_rate && !holder->wall && !holder->usage[TRES_BILLING];
}

int64_t usage_next_due(const struct state *state)
{
    bool idle = is_idle(&state->accounts->assocs.items[0]->holder);

    vec_each (struct qos *, at, &state->accounts->qos)
        idle = idle && is_idle(&(*at)->holder);
    /* Nothing waits and nothing was used: nothing can become another. */
    if (idle && (state->accounts->basic || !state->by_phase[PHASE_PENDING]))
        return NEVER;
    return state->priority_us + period_s(state) * US_PER_S;
}

void fairshare_update(struct state *state)
{
    state->priority_turn++;
    fairshare_work_out(state->accounts, state->config, state->time_us);
}

bool usage_due(struct state *state)
{
    int64_t before_us = state->priority_us, gone_s = (state->time_us - before_us) / US_PER_S;
    int64_t half_s = state->config->priority_decay_half_life_s;

    if (usage_next_due(state) > state->time_us)
        return false;
    uint64_t fraction = is_reset(state, before_us) ? 0
                        : half_s > 0               ? exp2_minus((uint64_t)gone_s, (uint64_t)half_s)
                                                   : FRACTION;
    vec_each (struct assoc *, at, &state->accounts->assocs)
        decay(state, &(*at)->holder, fraction);
    vec_each (struct qos *, at, &state->accounts->qos)
        decay(state, &(*at)->holder, fraction);
    state->priority_us = state->time_us;
    fairshare_update(state);
    return true;
}
