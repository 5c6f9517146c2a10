/* SPDX-License-Identifier: Apache-2.0 */
/*
 * containment.c - what holds running processes of a step: freezing, lease, their end
 */
#include "spurstepd/containment.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "spurstepd/lease.h"
#include "sys/clock.h"

enum { KILL_AGAIN_US = 100000, UNKILLABLE_DEFAULT_S = 60 };

static const struct {
    JobState why;
    const char *words;
    bool of_steps; /* not of jobs */
} causes[] = {
    { JOB_TIMEOUT, " DUE TO TIME LIMIT" },
    { JOB_PREEMPTED, " DUE TO PREEMPTION" },
    { JOB_NODE_FAIL, " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS" },
    { JOB_FAILED, " DUE TO TASK FAILURE", .of_steps = true },
};

static void say_cancelled(const struct containment *hold)
{
    const StepTask *task = hold->task;
    time_t now = (time_t)clock_wall_s();
    struct tm when;
    char stamp[32], name[80], text[512];
    const char *words = "";

    for (size_t i = 0; i < ARRAY_LEN(causes); i++) {
        if (causes[i].why == hold->why && !(causes[i].of_steps && hold->is_job))
            words = causes[i].words;
    }
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", localtime_r(&now, &when));
    if (hold->is_job)
        snprintf(name, sizeof(name), "JOB %u", task->id->job_id);
    else
        snprintf(name, sizeof(name), "STEP %u.%.40s", task->id->job_id, task->name);
    snprintf(text, sizeof(text), "slurmstepd: error: *** %s ON %.256s CANCELLED AT %s%s ***", name,
             task->node, stamp, words);
    hold->say(hold->owner, text);
}

void containment_set_frozen(struct containment *hold, unsigned frozen, int64_t now_us)
{
    StepNews news = STEP_NEWS__INIT;

    if (frozen == hold->frozen)
        return;
    hold->frozen = frozen;
    contain_freeze(&hold->contain, frozen != 0);
    if (frozen)
        limit_freeze(&hold->limit, now_us);
    else
        limit_thaw(&hold->limit, now_us);
    news.has_frozen = true;
    news.frozen = frozen;
    hold->tell(hold->owner, &news);
}

void containment_check_lease(struct containment *hold, int64_t now_us)
{
    hold->lease_at_us = -1;
    if (!hold->task->lease_file)
        return;
    int64_t over_us = lease_over_us(hold->task->lease_file, now_us);
    if (over_us < 0 || (hold->frozen & FREEZE_LEASE))
        return;
    if (over_us > now_us)
        hold->lease_at_us = over_us;
    else
        containment_set_frozen(hold, hold->frozen | FREEZE_LEASE, now_us);
}

void containment_obey_freeze(struct containment *hold, const StepFreeze *order, int64_t now_us)
{
    unsigned bit = order->cause;

    if (hold->ended_by_us)
        return;
    containment_set_frozen(hold, order->thaw ? hold->frozen & ~bit : hold->frozen | bit, now_us);
    if (order->thaw && order->cause == FREEZE_LEASE)
        containment_check_lease(hold, now_us);
}

void containment_end(struct containment *hold, unsigned wait_s, JobState why, bool quiet,
                     int64_t now_us)
{
    int64_t at = now_us + wait_s * (int64_t)HOLD_SECOND_US;

    if (hold->frozen & FREEZE_LEASE)
        at = now_us;
    if (!hold->ended_by_us) {
        hold->ended_by_us = true;
        hold->why = why;
        if (!quiet)
            say_cancelled(hold);
        if (at > now_us) {
            containment_set_frozen(hold, 0, now_us);
            contain_signal(&hold->contain, SIGTERM);
            contain_signal(&hold->contain, SIGCONT);
        }
    }
    if (hold->kill_at_us < 0 || at < hold->kill_at_us)
        hold->kill_at_us = at;
}

void containment_check_kill(struct containment *hold, int64_t now_us)
{
    if (hold->kill_at_us < 0 || now_us < hold->kill_at_us)
        return;
    contain_kill(&hold->contain);
    hold->kill_at_us = now_us + KILL_AGAIN_US;
    containment_give_up_later(hold, now_us);
}

void containment_give_up_later(struct containment *hold, int64_t now_us)
{
    unsigned wait_s = hold->task->unkillable_s ? hold->task->unkillable_s : UNKILLABLE_DEFAULT_S;

    if (hold->give_up_at_us < 0)
        hold->give_up_at_us = now_us + wait_s * (int64_t)HOLD_SECOND_US;
}

void containment_over_memory(struct containment *hold, bool quiet, int64_t now_us)
{
    const StepTask *task = hold->task;
    char text[200];

    if (hold->ended_by_us)
        return;
    snprintf(text, sizeof(text),
             "slurmstepd: error: StepId=%u.%.32s exceeded memory limit (%" PRIu64 " > %" PRIu64
             "), being killed",
             task->id->job_id, task->name, hold->track.held_bytes,
             task->step_mem_bytes ? task->step_mem_bytes : task->mem_bytes);
    hold->say(hold->owner, text);
    containment_end(hold, 0, JOB_OUT_OF_MEMORY, quiet, now_us);
}

int64_t containment_next_us(const struct containment *hold, bool running, int64_t now_us)
{
    const int64_t due[] = {
        running ? limit_next_us(&hold->limit, now_us) : -1,
        running ? hold->track.next_us : -1,
        hold->kill_at_us,
        hold->give_up_at_us,
        hold->lease_at_us,
    };
    int64_t next = -1;

    for (size_t i = 0; i < ARRAY_LEN(due); i++) {
        if (due[i] >= 0 && (next < 0 || due[i] < next))
            next = due[i];
    }
    return next;
}

void containment_notify(struct containment *hold, const char *text)
{
    char line[600];

    snprintf(line, sizeof(line), "slurmstepd: error: %.550s", text);
    hold->say(hold->owner, line);
}
