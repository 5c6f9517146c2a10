/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_act.c - what can happen to a running step: signals, freezing, limits, lease, its end
 *
 * (1) A step that froze because its lease ended may have a successor on another node. It does not
 *     run again before spurd says that its attempt is current, not even to handle a SIGTERM.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/str.h"
#include "spurstepd/lease.h"
#include "spurstepd/start.h"
#include "spurstepd/step_priv.h"
#include "sys/clock.h"

enum { SECOND_US = 1000000 };

static const struct {
    JobState why;
    const char *words;
} causes[] = {
    { JOB_TIMEOUT, " DUE TO TIME LIMIT" },
    { JOB_PREEMPTED, " DUE TO PREEMPTION" },
    { JOB_NODE_FAIL, " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS" },
};

static void say_cancelled(const struct step *step, JobState why)
{
    time_t now = (time_t)clock_wall_s();
    struct tm when;
    char stamp[32], text[512];
    const char *words = "";

    for (size_t i = 0; i < ARRAY_LEN(causes); i++)
        words = causes[i].why == why ? causes[i].words : words;
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", localtime_r(&now, &when));
    snprintf(text, sizeof(text), "slurmstepd: error: *** JOB %u ON %.256s CANCELLED AT %s%s ***\n",
             step->task->id->job_id, step->task->node, stamp, words);
    start_say(step->task, text);
}

static void send_frozen(struct step *step)
{
    StepNews news = STEP_NEWS__INIT;

    news.has_frozen = true;
    news.frozen = step->frozen;
    chan_send(&step->chan, &news);
}

void step_set_frozen(struct step *step, unsigned frozen, int64_t now_us)
{
    if (step->phase != STEP_RUNNING || frozen == step->frozen)
        return;
    step->frozen = frozen;
    contain_freeze(&step->contain, frozen != 0);
    if (frozen)
        limit_freeze(&step->limit, now_us);
    else
        limit_thaw(&step->limit, now_us);
    send_frozen(step);
}

void step_kill(struct step *step, unsigned wait_s, JobState why, int64_t now_us)
{
    int64_t at = now_us + wait_s * (int64_t)SECOND_US;

    if (step->phase != STEP_RUNNING)
        return;
    if (step->frozen & FREEZE_LEASE) /* (1) */
        at = now_us;
    if (!step->ended_by_us) {
        step->ended_by_us = true;
        step->why = why;
        say_cancelled(step, why);
        if (at > now_us) {
            step_set_frozen(step, 0, now_us);
            contain_signal(&step->contain, SIGTERM);
            contain_signal(&step->contain, SIGCONT);
        }
    }
    if (step->kill_at_us < 0 || at < step->kill_at_us)
        step->kill_at_us = at;
}

void step_check_limit(struct step *step, int64_t now_us)
{
    if (step->phase != STEP_RUNNING)
        return;
    switch (limit_due(&step->limit, now_us)) {
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
    step->lease_at_us = -1;
    if (!step->task->lease_file || step->phase != STEP_RUNNING)
        return;
    int64_t over_us = lease_over_us(step->task->lease_file, now_us);
    if (over_us < 0 || (step->frozen & FREEZE_LEASE))
        return;
    if (over_us > now_us)
        step->lease_at_us = over_us;
    else
        step_set_frozen(step, step->frozen | FREEZE_LEASE, now_us);
}

static void obey_freeze(struct step *step, const StepFreeze *order, int64_t now_us)
{
    unsigned bit = order->cause;

    if (step->ended_by_us)
        return;
    step_set_frozen(step, order->thaw ? step->frozen & ~bit : step->frozen | bit, now_us);
    if (order->thaw && order->cause == FREEZE_LEASE)
        step_check_lease(step, now_us);
}

static void obey_signal(struct step *step, const StepSignal *order)
{
    if (step->phase != STEP_RUNNING || order->signal == 0 || order->signal > 64)
        return;
    if (order->script_only)
        kill(step->script, (int)order->signal);
    else
        contain_signal(&step->contain, (int)order->signal);
}

static void say_over_memory(struct step *step)
{
    const StepTask *task = step->task;
    char text[200];

    snprintf(text, sizeof(text),
             "slurmstepd: error: StepId=%u.%.32s exceeded memory limit (%" PRIu64 " > %" PRIu64
             "), being killed\n",
             task->id->job_id, task->name, step->track.held_bytes, task->mem_bytes);
    start_say(task, text);
}

void step_sample(struct step *step, bool say, int64_t now_us)
{
    StepNews news = STEP_NEWS__INIT;
    StepHere here = STEP_HERE__INIT;
    struct sample_task script = { .pid = step->script };
    struct arena arena;

    if (!step->track.peaks)
        return;
    arena_init(&arena);
    here.id = step->task->id;
    bool over = track_sample(&step->track, &step->contain, &script, now_us, &arena, &here);
    news.sample = &here;
    if (say)
        chan_send(&step->chan, &news);
    arena_done(&arena);
    if (over && !step->ended_by_us) {
        say_over_memory(step);
        step_kill(step, 0, JOB_OUT_OF_MEMORY, now_us);
    }
}

void step_obey(struct step *step, const StepOrder *order, int64_t now_us)
{
    switch (order->what_case) {
    case STEP_ORDER__WHAT_SIGNAL:
        obey_signal(step, order->signal);
        break;
    case STEP_ORDER__WHAT_FREEZE:
        obey_freeze(step, order->freeze, now_us);
        break;
    case STEP_ORDER__WHAT_LIMIT:
        limit_change(&step->limit, order->limit->time_limit_s, now_us);
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
