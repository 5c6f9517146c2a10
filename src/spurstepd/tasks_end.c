/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tasks_end.c - tasks of a step of srun end: who has ended, what they left, the report of it
 *
 * Read the invariants of tasks.c.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "spurstepd/report.h"
#include "spurstepd/step_plugins.h"
#include "spurstepd/tasks_priv.h"
#include "sys/clock.h"
#include "sys/files.h"

enum { STATUS_OOM = 125, ALONE_S = 24 * 3600 };

static bool all_exited(const struct tasks *tasks)
{
    for (size_t i = 0; i < tasks->count; i++) {
        if (tasks->list[i].pid || tasks->list[i].epilog.pid)
            return false;
    }
    return true;
}

/* The next task epilog, if there is one. */
static void run_epilog(struct tasks *tasks, size_t index, int64_t now_us)
{
    struct step_plugin_task one = { .index = index, .number = tasks->list[index].number };
    struct arena arena;

    tasks->list[index].epilog.pid = 0;
    if (tasks->list[index].epilog.next >= tasks->task->n_task_epilog)
        return;
    arena_init(&arena);
    step_plugin_numbers(tasks, &one, &arena);
    vec_push(&one.env, NULL);
    epilog_start(&tasks->list[index].epilog, tasks->task, &tasks->hold.contain, one.env.items,
                 now_us);
    vec_done(&one.env);
    arena_done(&arena);
}

/* The tasks are gone; what they left behind goes too. */
static void begin_end(struct tasks *tasks, int64_t now_us)
{
    if (tasks->phase != TASKS_RUNNING || !all_exited(tasks))
        return;
    tasks->phase = TASKS_ENDING;
    step_plugins_stop(tasks);
    tasks->hold.kill_at_us = now_us;
    containment_give_up_later(&tasks->hold, now_us);
}

static void add_usage(Usage *usage, const struct rusage *more)
{
    usage->user_us += more->ru_utime.tv_sec * (int64_t)TASKS_SECOND_US + more->ru_utime.tv_usec;
    usage->system_us += more->ru_stime.tv_sec * (int64_t)TASKS_SECOND_US + more->ru_stime.tv_usec;
    usage->max_rss_bytes = MAX(usage->max_rss_bytes, (uint64_t)more->ru_maxrss * 1024);
    usage->page_faults += (uint64_t)more->ru_majflt;
    usage->read_bytes += (uint64_t)more->ru_inblock * 512;
    usage->write_bytes += (uint64_t)more->ru_oublock * 512;
    usage->processes++;
}

bool tasks_reap(struct tasks *tasks, int64_t now_us)
{
    struct rusage usage;
    int status;
    pid_t pid;

    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
        add_usage(&tasks->usage, &usage);
        for (size_t i = 0; i < tasks->count; i++) {
            struct task_one *one = &tasks->list[i];
            if (one->epilog.pid == pid)
                run_epilog(tasks, i, now_us);
            if (one->pid != pid)
                continue;
            add_usage(&one->ended, &usage);
            tasks_debug(tasks, "task %u (%d) exited. Status=0x%04x", one->number, pid,
                        (unsigned)status);
            one->pid = 0;
            one->status = status;
            one->exited = one->exit_due = true;
            file_close(&one->in);
            step_plugins_exited(tasks, i);
            run_epilog(tasks, i, now_us);
        }
    }
    bool left = !(pid < 0 && errno == ECHILD);
    if (!left || !tasks->task->tasks->wait_for_children)
        begin_end(tasks, now_us);
    return left;
}

static int code_of(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void fill_report(struct tasks *tasks)
{
    StepEnded *ended = &tasks->ended;
    Usage *usage = &tasks->usage;
    uint64_t oom = contain_oom_kills(&tasks->hold.contain);
    int highest = 0;

    contain_usage(&tasks->hold.contain, usage);
    tasks_track_end(tasks);
    usage->has_user_us = usage->has_system_us = usage->has_max_rss_bytes = true;
    usage->has_page_faults = usage->has_processes = true;
    usage->has_read_bytes = usage->has_write_bytes = true;
    ended->has_exit_status = true;
    for (size_t i = 0; i < tasks->count; i++) {
        if (code_of(tasks->list[i].status) > highest) {
            highest = code_of(tasks->list[i].status);
            ended->exit_status = (uint32_t)tasks->list[i].status;
        }
    }
    if (oom > 0) {
        tasks->hold.ended_by_us = true;
        tasks->hold.why = JOB_OUT_OF_MEMORY;
    }
    if (tasks->hold.ended_by_us && tasks->hold.why == JOB_OUT_OF_MEMORY) {
        ended->exit_status = STATUS_OOM;
        track_out_of_memory(&tasks->hold.track, &tasks->hold.contain, oom, usage,
                            tasks->report_text, sizeof(tasks->report_text));
    }
    ended->id = tasks->task->id;
    ended->has_ended_us = ended->has_started_us = true;
    ended->ended_us = clock_wall_us();
    ended->started_us = tasks->started_us;
    ended->usage = usage;
    ended->has_state = tasks->hold.ended_by_us && !tasks->launch_failed;
    ended->state = tasks->hold.why;
    ended->has_launch_failed = ended->launch_failed = tasks->launch_failed;
    ended->text = *tasks->text ? tasks->text : *tasks->report_text ? tasks->report_text : NULL;
}

bool tasks_all_read(const struct tasks *tasks)
{
    for (size_t i = 0; i < tasks->count; i++) {
        const struct task_one *one = &tasks->list[i];
        if (one->out >= 0 || one->err >= 0 || one->exit_due)
            return false;
    }
    return true;
}

void tasks_say_over(struct tasks *tasks, StepNews *news)
{
    RunStepOut out = RUN_STEP_OUT__INIT;
    StepOver over = STEP_OVER__INIT;

    tasks->over_said = true;
    over.has_state = tasks->hold.ended_by_us;
    over.state = tasks->hold.why;
    over.usage = &tasks->usage;
    over.text = tasks->ended.text;
    over.has_end_step = over.end_step = tasks->task->oom_kill_step && tasks->hold.ended_by_us &&
                                        tasks->hold.why == JOB_OUT_OF_MEMORY;
    over.has_launch_failed = over.launch_failed = tasks->launch_failed;
    out.what_case = RUN_STEP_OUT__WHAT_OVER;
    out.over = &over;
    tasks_send_both(tasks, news, &out);
}

/* Reads what is left in the pipes, as far as there is room. */
static void drain(struct tasks *tasks)
{
    for (size_t i = 0; i < tasks->count; i++) {
        tasks_read(tasks, &tasks->list[i], false);
        tasks_read(tasks, &tasks->list[i], true);
    }
    tasks_say_exits(tasks);
}

void tasks_ended(struct tasks *tasks)
{
    StepNews news = STEP_NEWS__INIT;

    tasks->phase = TASKS_ENDED;
    tasks->hold.kill_at_us = tasks->hold.give_up_at_us = tasks->hold.lease_at_us = -1;
    fill_report(tasks);
    step_plugins_end(tasks);
    contain_close(&tasks->hold.contain);
    track_done(&tasks->hold.track);
    drain(tasks);
    news.ended = &tasks->ended;
    if (tasks_all_read(tasks) || tasks->launch_failed)
        tasks_say_over(tasks, &news);
    else
        tasks_send(tasks, &news);
}

void tasks_give_up(struct tasks *tasks)
{
    snprintf(tasks->text, sizeof(tasks->text), "Kill task failed");
    if (tasks->phase == TASKS_RUNNING)
        step_plugins_stop(tasks);
    for (size_t i = 0; i < tasks->count; i++) {
        struct task_one *one = &tasks->list[i];
        if (one->pid) {
            one->pid = 0;
            one->status = SIGKILL;
            one->exited = one->exit_due = true;
        }
        tasks_read(tasks, one, false);
        tasks_read(tasks, one, true);
        tasks_close_one(one); /* they may hold the other ends for ever */
    }
    tasks_say_exits(tasks);
    tasks_ended(tasks);
}

void tasks_write_report(struct tasks *tasks)
{
    if (tasks->phase != TASKS_ENDED || tasks->chan.fd >= 0 || tasks->report_written)
        return;
    tasks->report_written =
        report_write(tasks->dir_fd, tasks->task->name, &tasks->ended, NULL) == 0;
}

void tasks_leave(struct tasks *tasks, int64_t now_us)
{
    unsigned alone_s = tasks->task->has_alone_s ? tasks->task->alone_s : ALONE_S;

    if (tasks->phase != TASKS_ENDED || tasks->chan.fd >= 0) {
        tasks->leave_at_us = -1;
        return;
    }
    if (tasks->leave_at_us < 0)
        tasks->leave_at_us = now_us + alone_s * (int64_t)TASKS_SECOND_US;
    if (now_us < tasks->leave_at_us)
        return;
    if (!tasks->ended.text)
        tasks->ended.text = (char *)"no spurd came for its end, output may be lost";
    report_write(tasks->dir_fd, tasks->task->name, &tasks->ended, NULL);
    fprintf(stderr, "spurstepd: %u.%s: %s\n", tasks->task->id->job_id, tasks->task->name,
            tasks->ended.text);
    tasks->left_alone = true;
    tasks->phase = TASKS_DONE;
}
