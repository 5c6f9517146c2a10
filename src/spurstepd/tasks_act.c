/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tasks_act.c - what can happen to running tasks: orders of spurd and srun, limits, the lease
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "spurstepd/lease.h"
#include "spurstepd/relay.h"
#include "spurstepd/tasks_priv.h"
#include "sys/clock.h"

enum { SIGNAL_MAX = 64, SAMPLE_BYTES_MAX = 48 * 1024 };

static const struct {
    JobState why;
    const char *words;
} causes[] = {
    { JOB_TIMEOUT, " DUE TO TIME LIMIT" },
    { JOB_PREEMPTED, " DUE TO PREEMPTION" },
    { JOB_NODE_FAIL, " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS" },
    { JOB_FAILED, " DUE TO TASK FAILURE" },
};

static void say_cancelled(struct tasks *tasks, JobState why)
{
    time_t now = (time_t)clock_wall_s();
    const StepId *id = tasks->task->id;
    RunStepOut out = RUN_STEP_OUT__INIT;
    struct tm when;
    char stamp[32], text[512];
    const char *words = "";

    for (size_t i = 0; i < ARRAY_LEN(causes); i++)
        words = causes[i].why == why ? causes[i].words : words;
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", localtime_r(&now, &when));
    snprintf(text, sizeof(text),
             "slurmstepd: error: *** STEP %u.%s ON %.256s CANCELLED AT %s%s ***", id->job_id,
             tasks->task->name, tasks->task->node, stamp, words);
    out.what_case = RUN_STEP_OUT__WHAT_SAY;
    out.say = text;
    tasks_send_srun(tasks, &out);
}

static void set_frozen(struct tasks *tasks, unsigned frozen, int64_t now_us)
{
    StepNews news = STEP_NEWS__INIT;

    if (tasks->phase != TASKS_RUNNING || frozen == tasks->frozen)
        return;
    tasks->frozen = frozen;
    contain_freeze(&tasks->contain, frozen != 0);
    if (frozen)
        limit_freeze(&tasks->limit, now_us);
    else
        limit_thaw(&tasks->limit, now_us);
    news.has_frozen = true;
    news.frozen = frozen;
    tasks_send(tasks, &news);
}

/* One that froze because its lease ended runs no further instruction, not even to handle a SIGTERM. */
void tasks_end(struct tasks *tasks, unsigned wait_s, JobState why, bool quiet, int64_t now_us)
{
    int64_t at = now_us + wait_s * (int64_t)TASKS_SECOND_US;

    if (tasks->phase != TASKS_RUNNING)
        return;
    if (tasks->frozen & FREEZE_LEASE)
        at = now_us;
    if (!tasks->ended_by_us) {
        tasks->ended_by_us = true;
        tasks->why = why;
        if (!quiet)
            say_cancelled(tasks, why);
        if (at > now_us) {
            set_frozen(tasks, 0, now_us);
            contain_signal(&tasks->contain, SIGTERM);
            contain_signal(&tasks->contain, SIGCONT);
        }
    }
    if (tasks->kill_at_us < 0 || at < tasks->kill_at_us)
        tasks->kill_at_us = at;
}

void tasks_abort(struct tasks *tasks, uint32_t number, uint32_t code, const char *text)
{
    RunStepOut out = RUN_STEP_OUT__INIT;
    StepAbort abort_words = STEP_ABORT__INIT;

    if (tasks->ended_by_us || tasks->phase != TASKS_RUNNING)
        return;
    abort_words.has_task = abort_words.has_code = true;
    abort_words.task = number;
    abort_words.code = code;
    abort_words.text = (char *)text;
    out.what_case = RUN_STEP_OUT__WHAT_ABORT;
    out.abort = &abort_words;
    tasks_send_srun(tasks, &out);
}

unsigned tasks_kill_wait_s(const struct tasks *tasks)
{
    return tasks->task->has_kill_wait_s ? tasks->task->kill_wait_s : 30;
}

/* The job's limit, or the step's own when that is shorter; negative: none. */
int64_t tasks_limit_s(const struct tasks *tasks, int64_t job_s)
{
    const StepTasks *asked = tasks->task->tasks;

    if (!asked->has_own_limit_s || asked->own_limit_s < 0)
        return job_s;
    return job_s < 0 ? asked->own_limit_s : MIN(job_s, asked->own_limit_s);
}

void tasks_check_limit(struct tasks *tasks, int64_t now_us)
{
    if (tasks->phase != TASKS_RUNNING)
        return;
    switch (limit_due(&tasks->limit, now_us)) {
    case LIMIT_WARN:
        contain_signal(&tasks->contain, (int)tasks->task->warn_signal);
        break;
    case LIMIT_OVER:
        tasks_end(tasks, tasks_kill_wait_s(tasks), JOB_TIMEOUT, false, now_us);
        break;
    case LIMIT_NOTHING:
        break;
    }
}

void tasks_check_lease(struct tasks *tasks, int64_t now_us)
{
    tasks->lease_at_us = -1;
    if (!tasks->task->lease_file || tasks->phase != TASKS_RUNNING)
        return;
    int64_t over_us = lease_over_us(tasks->task->lease_file, now_us);
    if (over_us < 0 || (tasks->frozen & FREEZE_LEASE))
        return;
    if (over_us > now_us)
        tasks->lease_at_us = over_us;
    else
        set_frozen(tasks, tasks->frozen | FREEZE_LEASE, now_us);
}

static void obey_freeze(struct tasks *tasks, const StepFreeze *order, int64_t now_us)
{
    unsigned bit = order->cause;

    if (tasks->ended_by_us)
        return;
    set_frozen(tasks, order->thaw ? tasks->frozen & ~bit : tasks->frozen | bit, now_us);
    if (order->thaw && order->cause == FREEZE_LEASE)
        tasks_check_lease(tasks, now_us);
}

static void obey_signal(struct tasks *tasks, uint32_t signal)
{
    if (signal > 0 && signal <= SIGNAL_MAX && tasks->phase == TASKS_RUNNING)
        contain_signal(&tasks->contain, (int)signal);
}

static void set_window(struct tasks *tasks, const StepWindow *window)
{
    struct winsize size = { .ws_row = (unsigned short)window->rows,
                            .ws_col = (unsigned short)window->cols };

    for (size_t i = 0; i < tasks->count && tasks->task->tasks->pty; i++) {
        if (tasks->list[i].number == 0 && tasks->list[i].out >= 0)
            ioctl(tasks->list[i].out, TIOCSWINSZ, &size);
    }
}

/* What it missed was dropped: it hears that nothing more comes. */
static void say_too_late(struct tasks *tasks, uint64_t seen)
{
    RunStepOut out = RUN_STEP_OUT__INIT;
    StepOver over = STEP_OVER__INIT;
    StepNews news = STEP_NEWS__INIT;
    char text[] = "srun was away for too long, its output is lost";

    over.has_launch_failed = over.launch_failed = true;
    over.text = text;
    out.what_case = RUN_STEP_OUT__WHAT_OVER;
    out.over = &over;
    out.has_seq = true;
    out.seq = seen + 1;
    news.srun = &out;
    tasks_send(tasks, &news);
}

static void obey_attach(struct tasks *tasks, const RunStepIn *in)
{
    RunStepOut out = RUN_STEP_OUT__INIT;
    StepAttached attached = STEP_ATTACHED__INIT;
    StepNews news = STEP_NEWS__INIT;
    CLEANUP(freep) uint32_t *pids = NEW_ARRAY(uint32_t, tasks->count);

    for (size_t i = 0; i < tasks->count; i++)
        pids[i] = (uint32_t)tasks->list[i].pid;
    attached.n_pids = tasks->count;
    attached.pids = pids;
    attached.has_input = true;
    attached.input = tasks->input_taken;
    attached.has_relayed = tasks->relay != NULL;
    attached.relayed = relay_taken(tasks);
    out.what_case = RUN_STEP_OUT__WHAT_ATTACHED;
    out.attached = &attached;
    out.has_to = in->has_from;
    out.to = in->from;
    news.srun = &out;
    tasks_send(tasks, &news);
    if (!in->from && !tasks->deaf)
        tasks_attached(tasks, in->attach->seen);
    else if (!in->from)
        say_too_late(tasks, in->attach->seen);
}

static void obey_srun(struct tasks *tasks, const RunStepIn *in, int64_t now_us)
{
    switch (in->what_case) {
    case RUN_STEP_IN__WHAT_DATA:
        tasks_input(tasks, in->data, in->from);
        break;
    case RUN_STEP_IN__WHAT_SIGNAL:
        if (in->signal->signal == SIGKILL)
            tasks_end(tasks, in->signal->kill_wait_s, in->signal->why, !in->signal->has_why,
                      now_us);
        else
            obey_signal(tasks, in->signal->signal);
        break;
    case RUN_STEP_IN__WHAT_WINDOW:
        set_window(tasks, in->window);
        break;
    case RUN_STEP_IN__WHAT_ACK:
        tasks_acked(tasks, in->ack);
        break;
    case RUN_STEP_IN__WHAT_ATTACH:
        obey_attach(tasks, in);
        break;
    case RUN_STEP_IN__WHAT_RELAY:
        relay_take(tasks, in->relay);
        break;
    default:
        break;
    }
}

static struct sample_task *list_tasks(const struct tasks *tasks, struct arena *arena)
{
    struct sample_task *list = ARENA_ARRAY(arena, struct sample_task, tasks->count);

    for (size_t i = 0; i < tasks->count; i++)
        list[i] = (struct sample_task){ .number = tasks->list[i].number,
                                        .pid = tasks->list[i].pid,
                                        .ended = &tasks->list[i].ended };
    return list;
}

void tasks_track_end(struct tasks *tasks)
{
    struct arena arena;

    if (!tasks->track.peaks)
        return;
    arena_init(&arena);
    track_end(&tasks->track, list_tasks(tasks, &arena), &tasks->usage);
    arena_done(&arena);
}

static void say_over_memory(struct tasks *tasks)
{
    const StepTask *task = tasks->task;
    RunStepOut out = RUN_STEP_OUT__INIT;
    char text[200];

    snprintf(text, sizeof(text),
             "slurmstepd: error: StepId=%u.%.32s exceeded memory limit (%" PRIu64 " > %" PRIu64
             "), being killed",
             task->id->job_id, task->name, tasks->track.held_bytes,
             task->step_mem_bytes ? task->step_mem_bytes : task->mem_bytes);
    out.what_case = RUN_STEP_OUT__WHAT_SAY;
    out.say = text;
    tasks_send_srun(tasks, &out);
}

void tasks_sample(struct tasks *tasks, bool say, int64_t now_us)
{
    StepNews news = STEP_NEWS__INIT;
    StepHere here = STEP_HERE__INIT;
    struct arena arena;

    if (!tasks->track.peaks)
        return;
    arena_init(&arena);
    here.id = tasks->task->id;
    bool over = track_sample(&tasks->track, &tasks->contain, list_tasks(tasks, &arena), now_us,
                             &arena, &here);
    news.sample = &here;
    if (step_news__get_packed_size(&news) > SAMPLE_BYTES_MAX)
        here.n_tasks = 0; /* the sum is left */
    if (say)
        tasks_send(tasks, &news);
    arena_done(&arena);
    if (over && !tasks->ended_by_us) {
        say_over_memory(tasks);
        tasks_end(tasks, 0, JOB_OUT_OF_MEMORY, true, now_us);
    }
}

void tasks_obey(struct tasks *tasks, const StepOrder *order, int64_t now_us)
{
    switch (order->what_case) {
    case STEP_ORDER__WHAT_SRUN:
        obey_srun(tasks, order->srun, now_us);
        break;
    case STEP_ORDER__WHAT_SIGNAL:
        if (!order->signal->script_only)
            obey_signal(tasks, order->signal->signal);
        break;
    case STEP_ORDER__WHAT_KILL:
        tasks_end(tasks, order->kill->kill_wait_s, order->kill->state, false, now_us);
        break;
    case STEP_ORDER__WHAT_FREEZE:
        obey_freeze(tasks, order->freeze, now_us);
        break;
    case STEP_ORDER__WHAT_LIMIT:
        limit_change(&tasks->limit, tasks_limit_s(tasks, order->limit->time_limit_s), now_us);
        break;
    case STEP_ORDER__WHAT_LEASE:
        tasks_check_lease(tasks, now_us);
        break;
    case STEP_ORDER__WHAT_DISMISS:
        tasks_go_deaf(tasks);
        if (tasks->phase == TASKS_ENDED)
            tasks->phase = TASKS_DONE;
        break;
    case STEP_ORDER__WHAT_SAMPLE:
        tasks_sample(tasks, true, now_us);
        break;
    default:
        break;
    }
}
