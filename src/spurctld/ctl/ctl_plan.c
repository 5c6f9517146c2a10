/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_plan.c - feeds the planner and proposes what it decides
 *
 * (1) Nothing waits for a tick: every applied batch asks for a plan at once.
 * (2) A slice looks at so many candidates as take SLICE_US by what earlier ones took, so a call that
 *     came meanwhile waits a few milliseconds at most; what is left is looked at in the next turn
 *     of the loop. Where time does not pass (simulation) it grows to PLAN_BUDGET. It is smaller when
 *     the turn has taken long already, or takes longer because a child shares our memory.
 * (3) No more than STARTS_IN_FLIGHT starts wait to be committed; more would only fill the batch.
 * (4) When several passes over all jobs started nothing and the planner still wants to go on, it
 *     is asked again in IDLE_WAIT_US, or when something happens; the loop must not spin. What it
 *     works out over several slices comes to an end: that is no reason to wait.
 * (5) A turn of the loop in which much was done before plans nothing; the next one does. So many in a
 *     row that all have much to do, and one plans in spite of it.
 */
#include "spurctld/ctl/ctl_priv.h"
#include "sys/clock.h"

enum {
    PLAN_BUDGET = 512,
    PLAN_BUDGET_FIRST = 128,
    PLAN_BUDGET_LEAST = 32,
    SLICE_US = 1000,
    STARTS_IN_FLIGHT = 128,
    IDLE_SLICES = 16,
    IDLE_WAIT_US = 1000000,
    UNTIL_US = 2800,
    PUT_OFF_MOST = 3
};

static void start_done(struct ctl *ctl, void *arg, const struct events *events,
                       const struct err *err)
{
    (void)arg, (void)events;
    if (!err && ctl->plan.starts_in_flight)
        ctl->plan.starts_in_flight--;
}

/* (4) */
static bool goes_nowhere(struct ctl *ctl, const struct plan *plan)
{
    size_t pass = state_counts(ctl->state).records / PLAN_BUDGET + 1;

    bool idle = plan->more && !plan->works && plan->count + plan->preempt_count == 0;

    ctl->plan.idle_slices = idle ? ctl->plan.idle_slices + 1 : 0;
    return ctl->plan.idle_slices > IDLE_SLICES + 4 * pass;
}

/* (2): half of what is too much at once, a little more while it is too little. */
static void adapt(struct ctl *ctl, unsigned budget, int64_t took)
{
    if (took > 2 * SLICE_US)
        budget /= 2;
    else if (took > SLICE_US)
        budget -= budget / 4;
    else if (budget < ctl->plan.budget)
        return;
    else if (took < SLICE_US / 2)
        budget += budget / 8;
    ctl->plan.budget = MIN(MAX(budget, PLAN_BUDGET_LEAST), PLAN_BUDGET);
}

static unsigned budget_of_turn(const struct ctl *ctl)
{
    int64_t left = MAX(UNTIL_US - ctl_busy_us(ctl), 0);
    unsigned budget = ctl->plan.budget ? ctl->plan.budget : PLAN_BUDGET_FIRST;

    return MAX(MIN(budget, (unsigned)(PLAN_BUDGET * left / UNTIL_US)), PLAN_BUDGET_LEAST);
}

static void plan_slice(struct ctl *ctl)
{
    int64_t begin = clock_mono_us(), mono = ctl_mono(ctl);
    unsigned budget = budget_of_turn(ctl);
    bool booked = sched_has_bookings(ctl->sched);
    const struct plan *plan = sched_plan(ctl->sched, ctl_now(ctl), budget);

    for (size_t i = 0; i < plan->count; i++) {
        Command command = CTL_COMMAND(START, .start = plan->starts[i]);
        ctl->plan.starts_in_flight++;
        ctl_propose(ctl, &command, start_done, NULL);
    }
    for (size_t i = 0; i < plan->preempt_count; i++) {
        Command command = CTL_COMMAND(PREEMPT, .preempt = plan->preempts[i]);
        ctl_propose(ctl, &command, NULL, NULL);
    }
    ctl->plan.more = plan->more;
    int64_t wake = plan->more ? ctl_now(ctl) : plan->wake_us == INT64_MAX ? 0 : plan->wake_us;
    if (goes_nowhere(ctl, plan))
        wake = ctl_now(ctl) + IDLE_WAIT_US;
    ctl->io.timer(ctl->io.ctx, CTL_TIMER_PLAN, wake);
    adapt(ctl, budget, ctl_mono(ctl) - mono);
    int64_t took = clock_mono_us() - begin;
    ctl->counts.plans++;
    ctl->counts.plan_last_us = ctl_now(ctl);
    ctl->counts.plan_starts += plan->count;
    ctl->counts.plan_backfilled += booked ? plan->count : 0;
    ctl->counts.plan_queue_sum += state_counts(ctl->state).pending;
    ctl->counts.plan_us_last = (uint64_t)took;
    ctl->counts.plan_us_total += (uint64_t)took;
    ctl->counts.plan_us_max = MAX(ctl->counts.plan_us_max, (uint64_t)took);
}

void ctl_plan_timer(struct ctl *ctl)
{
    if (!ctl->leading || ctl->plan.starts_in_flight >= STARTS_IN_FLIGHT) /* (3) */
        return;
    if (ctl_busy_us(ctl) > UNTIL_US && ctl->plan.put_off < PUT_OFF_MOST) { /* (5) */
        ctl->plan.put_off++;
        ctl->io.timer(ctl->io.ctx, CTL_TIMER_PLAN, ctl_now(ctl));
        return;
    }
    ctl->plan.put_off = 0;
    plan_slice(ctl);
}

/* Something happened. */
void ctl_plan_kick(struct ctl *ctl)
{
    ctl->plan.idle_slices = 0;
    ctl_plan_timer(ctl);
}
