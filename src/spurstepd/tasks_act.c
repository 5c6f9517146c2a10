/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tasks_act.c - what can happen to running tasks: orders of spurd and srun, limits; containment.c does most of it
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "spurstepd/relay.h"
#include "spurstepd/tasks_priv.h"

enum { DEBUG_VERBOSE = 4, SIGNAL_MAX = 64, SAMPLE_BYTES_MAX = 48 * 1024 };

static void tell(void *owner, const StepNews *news)
{
    tasks_send(owner, news);
}

static void say(void *owner, const char *text)
{
    RunStepOut out = RUN_STEP_OUT__INIT;

    out.what_case = RUN_STEP_OUT__WHAT_SAY;
    out.say = (char *)text;
    tasks_send_srun(owner, &out);
}

static void note(void *owner, const char *text)
{
    RunStepOut out = RUN_STEP_OUT__INIT;

    out.what_case = RUN_STEP_OUT__WHAT_NOTE;
    out.note = (char *)text;
    tasks_send_srun(owner, &out);
}

void tasks_debug(struct tasks *tasks, const char *fmt, ...)
{
    char text[256];
    int len = snprintf(text, sizeof(text), "slurmstepd-%.64s: ", tasks->task->node);
    va_list args;

    if (tasks->task->tasks->debug < DEBUG_VERBOSE)
        return;
    va_start(args, fmt);
    vsnprintf(text + len, sizeof(text) - (size_t)len, fmt, args);
    va_end(args);
    note(tasks, text);
}

void tasks_hold(struct tasks *tasks)
{
    tasks->hold = (struct containment){ .task = tasks->task,
                                        .contain = { .cgroup_fd = -1 },
                                        .kill_at_us = -1,
                                        .give_up_at_us = -1,
                                        .lease_at_us = -1,
                                        .owner = tasks,
                                        .tell = tell,
                                        .say = say,
                                        .note = note };
}

void tasks_end(struct tasks *tasks, unsigned wait_s, JobState why, bool quiet, int64_t now_us)
{
    if (tasks->phase == TASKS_RUNNING)
        containment_end(&tasks->hold, wait_s, why, quiet, now_us);
}

void tasks_abort(struct tasks *tasks, uint32_t number, uint32_t code, const char *text)
{
    RunStepOut out = RUN_STEP_OUT__INIT;
    StepAbort abort_words = STEP_ABORT__INIT;

    if (tasks->hold.ended_by_us || tasks->phase != TASKS_RUNNING)
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
    switch (limit_due(&tasks->hold.limit, now_us)) {
    case LIMIT_WARN:
        contain_signal(&tasks->hold.contain, (int)tasks->task->warn_signal);
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
    tasks->hold.lease_at_us = -1;
    if (tasks->phase == TASKS_RUNNING)
        containment_check_lease(&tasks->hold, now_us);
}

static void obey_signal(struct tasks *tasks, uint32_t signal)
{
    if (signal > 0 && signal <= SIGNAL_MAX && tasks->phase == TASKS_RUNNING)
        contain_signal(&tasks->hold.contain, (int)signal);
}

/* To the tasks and not to what they started; a container's own process stands for all inside. */
static void signal_tasks(struct tasks *tasks, const StepSignal *order)
{
    if (order->text && tasks->phase == TASKS_RUNNING)
        containment_notify(&tasks->hold, order->text);
    if (order->text)
        return;
    bool whole = order->full || order->signal == SIGKILL || order->signal == SIGSTOP ||
                 order->signal == SIGCONT;

    for (size_t i = 0; i < tasks->count && !whole; i++) {
        const StepTaskOne *asked = tasks->task->tasks->list[i];
        whole = asked->n_args && str_ends(asked->args[0], "spur-container");
    }
    if (whole) {
        obey_signal(tasks, order->signal);
        return;
    }
    for (size_t i = 0; i < tasks->count; i++) {
        if (order->signal > 0 && order->signal <= SIGNAL_MAX && tasks->phase == TASKS_RUNNING &&
            tasks->list[i].pid > 0 && !tasks->list[i].exited)
            kill(tasks->list[i].pid, (int)order->signal);
    }
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

    if (!tasks->hold.track.peaks)
        return;
    arena_init(&arena);
    track_end(&tasks->hold.track, list_tasks(tasks, &arena), &tasks->usage);
    arena_done(&arena);
}

void tasks_sample(struct tasks *tasks, bool say, int64_t now_us)
{
    StepNews news = STEP_NEWS__INIT;
    StepHere here = STEP_HERE__INIT;
    struct arena arena;

    if (!tasks->hold.track.peaks)
        return;
    arena_init(&arena);
    here.id = tasks->task->id;
    bool over = track_sample(&tasks->hold.track, &tasks->hold.contain, list_tasks(tasks, &arena),
                             now_us, &arena, &here);
    news.sample = &here;
    if (step_news__get_packed_size(&news) > SAMPLE_BYTES_MAX)
        here.n_tasks = 0; /* the sum is left */
    if (say)
        tasks_send(tasks, &news);
    arena_done(&arena);
    if (over && tasks->phase == TASKS_RUNNING)
        containment_over_memory(&tasks->hold, true, now_us);
}

void tasks_obey(struct tasks *tasks, const StepOrder *order, int64_t now_us)
{
    switch (order->what_case) {
    case STEP_ORDER__WHAT_SRUN:
        obey_srun(tasks, order->srun, now_us);
        break;
    case STEP_ORDER__WHAT_SIGNAL:
        if (!order->signal->script_only)
            signal_tasks(tasks, order->signal);
        break;
    case STEP_ORDER__WHAT_KILL:
        tasks_end(tasks, order->kill->kill_wait_s, order->kill->state, false, now_us);
        break;
    case STEP_ORDER__WHAT_FREEZE:
        if (tasks->phase == TASKS_RUNNING)
            containment_obey_freeze(&tasks->hold, order->freeze, now_us);
        break;
    case STEP_ORDER__WHAT_LIMIT:
        limit_change(&tasks->hold.limit, tasks_limit_s(tasks, order->limit->time_limit_s), now_us);
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
