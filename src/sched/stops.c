/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stops.c - a job that waits for a limit holds up those behind it (scheduler.assoc_limit_stop)
 *
 * Without that, others go on, and a large job of an account that is at its limit may wait for ever while small
 * ones use up what is freed. With it, nothing behind the job starts in its partitions until it may go.
 *
 * (1) Jobs that wait for limits are in lines by owner and partitions; the first of a line answers for it. One
 *     that no limit keeps any more waits for nodes like others, and holds up nobody.
 */
#include "sched/gates.h"

static bool is_of_line(const struct waiting *line, uint32_t partition)
{
    for (size_t i = 0; i < line->partition_count; i++) {
        if (line->partitions[i] == partition)
            return true;
    }
    return false;
}

static bool lane_is_stopped(struct sched *sched, uint32_t partition, struct order order)
{
    for (size_t i = 0; i < sched->waits.len; i++) {
        struct waiting *line = sched->waits.items[i];
        if (!line || !line->bins.len || !is_of_line(line, partition))
            continue;
        struct order first = line_first(sched, line);
        if (order_before(first, order) && limits_stop(sched, first.id)) /* (1) */
            return true;
    }
    return false;
}

bool stops_hold(struct sched *sched, const struct family *family, struct order order)
{
    if (!state_config(sched->state)->limit_stop || !sched->waits.len)
        return false;
    sched->looked += sched->waits.len;
    for (uint32_t i = 0; i < family->lane_count; i++) {
        if (family->lanes[i] != UINT32_MAX && !lane_is_stopped(sched, family->lanes[i], order))
            return false;
    }
    return true;
}
