/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_act.c - what can happen to a running step: orders of spurd, limits; containment.c does most of it
 */
#include <signal.h>
#include <stdio.h>

#include "spurstepd/start.h"
#include "spurstepd/step_priv.h"

static void tell(void *owner, const StepNews *news)
{
    struct step *step = owner;

    chan_send(&step->chan, news);
}

static void say(void *owner, const char *text)
{
    const struct step *step = owner;
    char line[600];

    snprintf(line, sizeof(line), "%s\n", text);
    start_say(step->task, line);
}

void step_hold(struct step *step)
{
    step->hold = (struct containment){ .task = step->task,
                                       .contain = { .cgroup_fd = -1 },
                                       .kill_at_us = -1,
                                       .give_up_at_us = -1,
                                       .lease_at_us = -1,
                                       .is_job = true,
                                       .owner = step,
                                       .tell = tell,
                                       .say = say };
}

void step_kill(struct step *step, unsigned wait_s, JobState why, int64_t now_us)
{
    if (step->phase == STEP_RUNNING)
        containment_end(&step->hold, wait_s, why, false, now_us);
}

void step_check_limit(struct step *step, int64_t now_us)
{
    if (step->phase != STEP_RUNNING)
        return;
    switch (limit_due(&step->hold.limit, now_us)) {
    case LIMIT_WARN:
        kill(step->script, (int)step->task->warn_signal);
        break;
    case LIMIT_OVER:
        step_kill(step, step->task->kill_wait_s, JOB_TIMEOUT, now_us);
        break;
    case LIMIT_NOTHING:
        break;
    }
}

void step_check_lease(struct step *step, int64_t now_us)
{
    step->hold.lease_at_us = -1;
    if (step->phase == STEP_RUNNING)
        containment_check_lease(&step->hold, now_us);
}

static void obey_signal(struct step *step, const StepSignal *order)
{
    if (order->text && step->phase == STEP_RUNNING)
        containment_notify(&step->hold, order->text);
    if (order->text)
        return;
    if (step->phase != STEP_RUNNING || order->signal == 0 || order->signal > 64)
        return;
    if (order->script_only)
        kill(step->script, (int)order->signal);
    else
        contain_signal(&step->hold.contain, (int)order->signal);
}

void step_sample(struct step *step, bool say, int64_t now_us)
{
    StepNews news = STEP_NEWS__INIT;
    StepHere here = STEP_HERE__INIT;
    struct sample_task script = { .pid = step->script };
    struct arena arena;

    if (!step->hold.track.peaks)
        return;
    arena_init(&arena);
    here.id = step->task->id;
    bool over =
        track_sample(&step->hold.track, &step->hold.contain, &script, now_us, &arena, &here);
    news.sample = &here;
    if (say)
        chan_send(&step->chan, &news);
    arena_done(&arena);
    if (over && step->phase == STEP_RUNNING)
        containment_over_memory(&step->hold, false, now_us);
}

void step_obey(struct step *step, const StepOrder *order, int64_t now_us)
{
    switch (order->what_case) {
    case STEP_ORDER__WHAT_SIGNAL:
        obey_signal(step, order->signal);
        break;
    case STEP_ORDER__WHAT_FREEZE:
        if (step->phase == STEP_RUNNING)
            containment_obey_freeze(&step->hold, order->freeze, now_us);
        break;
    case STEP_ORDER__WHAT_LIMIT:
        limit_change(&step->hold.limit, order->limit->time_limit_s, now_us);
        break;
    case STEP_ORDER__WHAT_KILL:
        step_kill(step, order->kill->kill_wait_s, order->kill->state, now_us);
        break;
    case STEP_ORDER__WHAT_LEASE:
        step_check_lease(step, now_us);
        break;
    case STEP_ORDER__WHAT_SAMPLE:
        step_sample(step, true, now_us);
        break;
    default:
        break;
    }
}
