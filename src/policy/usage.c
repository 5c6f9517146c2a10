/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage.c - what an association or QOS has used: it grows with time and decays
 */
#include "base/hash.h"
#include "base/units.h"
#include "policy/accounts.h"

uint64_t usage_over(uint64_t rate, int64_t us)
{
    unsigned __int128 much = (unsigned __int128)rate * (uint64_t)us * 16 / 1000 / US_PER_S;

    return much > UINT64_MAX / 4 ? UINT64_MAX / 4 : (uint64_t)much;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
    return MIN(a + b, UINT64_MAX / 2);
}

uint64_t holder_hash(const struct holder *holder)
{
    uint64_t hash = hash_bytes(holder->usage, sizeof(holder->usage), holder->seed);

    return hash_mix(hash ^ holder->wall) + hash_mix((uint64_t)holder->usage_us);
}

bool usage_settle_until(struct holder *holder, size_t tres_count, int64_t time_us)
{
    int64_t us = time_us - holder->usage_us;

    if (!holder->keeps || us <= 0)
        return false;
    for (size_t k = 0; k < tres_count && holder->wall_rate; k++)
        holder->usage[k] = plus(holder->usage[k], usage_over(holder->rate[k], us));
    if (holder->wall_rate)
        holder->wall = plus(holder->wall, usage_over(holder->wall_rate, us));
    holder->usage_us = time_us;
    return true;
}

uint64_t usage_at(const struct holder *holder, size_t tres, int64_t time_us)
{
    int64_t us = MAX(time_us - holder->usage_us, 0);
    uint64_t rate = holder->rate[tres];

    return rate ? plus(holder->usage[tres], usage_over(rate, us)) : holder->usage[tres];
}

uint64_t usage_wall_at(const struct holder *holder, int64_t time_us)
{
    int64_t us = MAX(time_us - holder->usage_us, 0);

    return plus(holder->wall, usage_over(holder->wall_rate, us));
}

static uint64_t older(uint64_t was, uint64_t is, uint64_t fraction)
{
    return fraction ? mul_fraction(was, fraction) + (is - was) : 0;
}

void usage_decay(struct holder *holder, size_t tres_count, int64_t time_us, uint64_t fraction)
{
    struct holder was = *holder;

    usage_settle_until(holder, tres_count, time_us);
    if (holder->no_decay && fraction)
        return;
    for (size_t k = 0; k < tres_count; k++)
        holder->usage[k] = older(was.usage[k], holder->usage[k], fraction);
    holder->wall = older(was.wall, holder->wall, fraction);
}
