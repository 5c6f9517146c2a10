/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tasks.c - the supervisor of a step of srun, from its tasks' start to the end of everything they left
 *
 * (1) Every process of the step is a descendant of ours (contain.h); the step is over when wait()
 *     has nobody left.
 * (2) A step lives as long as its srun: when the channel breaks, because srun, its connection or
 *     spurd is gone, the tasks are ended. Nothing has to be found again afterwards, but the lock on
 *     the step's directory says until when something of it is alive.
 */
#include "spurstepd/tasks.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/str.h"
#include "spurstepd/tasks_priv.h"
#include "sys/clock.h"
#include "sys/files.h"

enum {
    SECOND_US = 1000000,
    KILL_AGAIN_US = 100000,
    UNKILLABLE_DEFAULT_S = 60,
    FIXED_FDS = 3,
    SIGNAL_MAX = 64,
};

bool tasks_valid(const StepTask *task)
{
    const StepTasks *tasks = task->tasks;

    if (!task->id || !task->owner || str_is_empty(task->name) || str_is_empty(task->dir) ||
        str_is_empty(task->node) || str_is_empty(task->work_dir) || strlen(task->name) > 40 ||
        tasks->n_list == 0)
        return false;
    for (size_t i = 0; i < tasks->n_list; i++) {
        if (tasks->list[i]->n_args == 0 || tasks->list[i]->n_args > LIMIT_ARGS_COUNT)
            return false;
    }
    return true;
}

/* ---- the end ---- */

static void say(struct tasks *tasks, const char *text)
{
    RunStepOut out = RUN_STEP_OUT__INIT;

    out.what_case = RUN_STEP_OUT__WHAT_SAY;
    out.say = (char *)text;
    tasks_send_srun(tasks, &out);
}

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
    struct tm when;
    char stamp[32], text[512];
    const char *words = "";

    for (size_t i = 0; i < ARRAY_LEN(causes); i++)
        words = causes[i].why == why ? causes[i].words : words;
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", localtime_r(&now, &when));
    snprintf(text, sizeof(text),
             "slurmstepd: error: *** STEP %u.%u ON %.256s CANCELLED AT %s%s ***", id->job_id,
             id->step, tasks->task->node, stamp, words);
    say(tasks, text);
}

/* TERM and CONT, and KILL after a while; asking again may only bring the end nearer. */
static void end_tasks(struct tasks *tasks, unsigned wait_s, JobState why, bool quiet,
                      int64_t now_us)
{
    int64_t at = now_us + wait_s * (int64_t)SECOND_US;

    if (tasks->phase != TASKS_RUNNING)
        return;
    if (!tasks->ended_by_us) {
        tasks->ended_by_us = true;
        tasks->why = why;
        if (!quiet)
            say_cancelled(tasks, why);
        if (wait_s) {
            contain_freeze(&tasks->contain, false);
            contain_signal(&tasks->contain, SIGTERM);
            contain_signal(&tasks->contain, SIGCONT);
        }
    }
    if (tasks->kill_at_us < 0 || at < tasks->kill_at_us)
        tasks->kill_at_us = at;
}

static unsigned kill_wait_s(const struct tasks *tasks)
{
    return tasks->task->has_kill_wait_s ? tasks->task->kill_wait_s : 30;
}

static bool all_exited(const struct tasks *tasks)
{
    for (size_t i = 0; i < tasks->count; i++) {
        if (tasks->list[i].pid)
            return false;
    }
    return true;
}

/* The tasks are gone; what they left behind goes too. */
static void begin_end(struct tasks *tasks, int64_t now_us)
{
    unsigned wait_s = tasks->task->unkillable_s ? tasks->task->unkillable_s : UNKILLABLE_DEFAULT_S;

    if (tasks->phase != TASKS_RUNNING || !all_exited(tasks))
        return;
    tasks->phase = TASKS_ENDING;
    tasks->kill_at_us = now_us;
    tasks->give_up_at_us = now_us + wait_s * (int64_t)SECOND_US;
}

static void add_usage(Usage *usage, const struct rusage *more)
{
    usage->user_us += more->ru_utime.tv_sec * (int64_t)SECOND_US + more->ru_utime.tv_usec;
    usage->system_us += more->ru_stime.tv_sec * (int64_t)SECOND_US + more->ru_stime.tv_usec;
    usage->max_rss_bytes = MAX(usage->max_rss_bytes, (uint64_t)more->ru_maxrss * 1024);
    usage->processes++;
}

/* False: nobody is left (1). */
static bool reap(struct tasks *tasks, int64_t now_us)
{
    struct rusage usage;
    int status;
    pid_t pid;

    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
        add_usage(&tasks->usage, &usage);
        for (size_t i = 0; i < tasks->count; i++) {
            struct task_one *one = &tasks->list[i];
            if (one->pid != pid)
                continue;
            one->pid = 0;
            one->status = status;
            one->exited = one->exit_due = true;
            file_close(&one->in);
        }
    }
    begin_end(tasks, now_us);
    return !(pid < 0 && errno == ECHILD);
}

/* ---- orders ---- */

static void obey_srun(struct tasks *tasks, const RunStepIn *in, int64_t now_us)
{
    switch (in->what_case) {
    case RUN_STEP_IN__WHAT_DATA:
        if (!tasks_input(tasks, in->data))
            tasks->lost = true;
        break;
    case RUN_STEP_IN__WHAT_SIGNAL:
        if (in->signal->signal == SIGKILL)
            end_tasks(tasks, in->signal->kill_wait_s, in->signal->why, !in->signal->has_why,
                      now_us);
        else if (in->signal->signal > 0 && in->signal->signal <= SIGNAL_MAX &&
                 tasks->phase == TASKS_RUNNING)
            contain_signal(&tasks->contain, (int)in->signal->signal);
        break;
    case RUN_STEP_IN__WHAT_WINDOW:
        for (size_t i = 0; i < tasks->count && tasks->task->tasks->pty; i++) {
            struct winsize size = { .ws_row = (unsigned short)in->window->rows,
                                    .ws_col = (unsigned short)in->window->cols };
            if (tasks->list[i].number == 0 && tasks->list[i].out >= 0)
                ioctl(tasks->list[i].out, TIOCSWINSZ, &size);
        }
        break;
    default:
        break;
    }
}

static void obey(struct tasks *tasks, const StepOrder *order, int64_t now_us)
{
    switch (order->what_case) {
    case STEP_ORDER__WHAT_SRUN:
        obey_srun(tasks, order->srun, now_us);
        break;
    case STEP_ORDER__WHAT_SIGNAL:
        if (order->signal->signal > 0 && order->signal->signal <= SIGNAL_MAX &&
            !order->signal->script_only && tasks->phase == TASKS_RUNNING)
            contain_signal(&tasks->contain, (int)order->signal->signal);
        break;
    case STEP_ORDER__WHAT_KILL:
        end_tasks(tasks, order->kill->kill_wait_s, order->kill->state, false, now_us);
        break;
    case STEP_ORDER__WHAT_FREEZE:
        contain_freeze(&tasks->contain, !order->freeze->thaw);
        if (order->freeze->thaw)
            limit_thaw(&tasks->limit, now_us);
        else
            limit_freeze(&tasks->limit, now_us);
        break;
    case STEP_ORDER__WHAT_LIMIT:
        limit_change(&tasks->limit, order->limit->time_limit_s, now_us);
        break;
    default:
        break;
    }
}

static void receive(struct tasks *tasks)
{
    static uint8_t packet[TASKS_PACKET_BYTES + 4096];

    while (!tasks->lost) {
        ssize_t len = recv(tasks->chan_fd, packet, sizeof(packet), MSG_DONTWAIT | MSG_TRUNC);
        if (len < 0 && errno == EINTR)
            continue;
        if (len < 0 && errno == EAGAIN)
            return;
        if (len <= 0) {
            tasks->lost = true;
            return;
        }
        StepOrder *order = NULL;
        if ((size_t)len <= sizeof(packet))
            order = step_order__unpack(NULL, (size_t)len, packet);
        if (order) {
            obey(tasks, order, clock_boot_us());
            step_order__free_unpacked(order, NULL);
        }
    }
}

/* ---- the loop ---- */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < 0 ? b : b < 0 ? a : MIN(a, b);
}

static void set_timer(struct tasks *tasks, int64_t now_us)
{
    struct itimerspec when = { 0 };
    int64_t next = earlier(tasks->kill_at_us, tasks->give_up_at_us);

    if (tasks->phase == TASKS_RUNNING)
        next = earlier(next, limit_next_us(&tasks->limit, now_us));
    if (next >= 0) {
        next = MAX(next, 1);
        when.it_value.tv_sec = next / SECOND_US;
        when.it_value.tv_nsec = next % SECOND_US * 1000;
    }
    timerfd_settime(tasks->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void do_due(struct tasks *tasks, int64_t now_us)
{
    if (tasks->phase == TASKS_RUNNING && limit_due(&tasks->limit, now_us) == LIMIT_OVER)
        end_tasks(tasks, kill_wait_s(tasks), JOB_TIMEOUT, false, now_us);
    if (tasks->lost)
        end_tasks(tasks, kill_wait_s(tasks), JOB_CANCELLED, true, now_us); /* (2) */
    if (tasks->kill_at_us >= 0 && now_us >= tasks->kill_at_us) {
        contain_kill(&tasks->contain);
        tasks->kill_at_us = now_us + KILL_AGAIN_US;
    }
    if (tasks->give_up_at_us >= 0 && now_us >= tasks->give_up_at_us) {
        snprintf(tasks->text, sizeof(tasks->text), "Kill task failed");
        tasks->phase = TASKS_DONE;
    }
}

static void serve(struct tasks *tasks, const struct pollfd *ready, const struct pollfd *streams)
{
    struct signalfd_siginfo info;
    uint64_t ticks;

    if (ready[0].revents) {
        while (read(tasks->signal_fd, &info, sizeof(info)) > 0)
            ;
    }
    if (ready[1].revents && read(tasks->timer_fd, &ticks, sizeof(ticks)) < 0)
        return;
    if (ready[2].revents & POLLOUT)
        tasks_flush(tasks);
    if (ready[2].revents & (POLLIN | POLLHUP | POLLERR))
        receive(tasks);
    bool write_input = false;
    for (size_t i = 0; i < tasks->count; i++) {
        write_input |= streams[i * 3].revents != 0;
        if (streams[i * 3 + 1].revents)
            tasks_read(tasks, &tasks->list[i], false);
        if (streams[i * 3 + 2].revents)
            tasks_read(tasks, &tasks->list[i], true);
    }
    if (write_input)
        tasks_write_input(tasks);
}

static void prepare(struct tasks *tasks, struct pollfd *ready)
{
    bool may_read = tasks->queue.len == 0 || tasks->lost;
    uint64_t end = tasks->input_first + tasks->input_len;

    ready[0] = (struct pollfd){ .fd = tasks->signal_fd, .events = POLLIN };
    ready[1] = (struct pollfd){ .fd = tasks->timer_fd, .events = POLLIN };
    ready[2] = (struct pollfd){ .fd = tasks->lost ? -1 : tasks->chan_fd,
                                .events = (short)(POLLIN | (may_read ? 0 : POLLOUT)) };
    for (size_t i = 0; i < tasks->count; i++) {
        struct task_one *one = &tasks->list[i];
        struct pollfd *streams = ready + FIXED_FDS + i * 3;
        streams[0] = (struct pollfd){ .fd = one->in_done < end ? one->in : -1, .events = POLLOUT };
        streams[1] = (struct pollfd){ .fd = may_read ? one->out : -1, .events = POLLIN };
        streams[2] = (struct pollfd){ .fd = may_read ? one->err : -1, .events = POLLIN };
    }
}

static void loop(struct tasks *tasks)
{
    struct pollfd *ready = NEW_ARRAY(struct pollfd, FIXED_FDS + tasks->count * 3);

    while (tasks->phase != TASKS_DONE) {
        int64_t now_us = clock_boot_us();
        bool left = reap(tasks, now_us);
        do_due(tasks, now_us);
        tasks_say_exits(tasks);
        if (!left && tasks->phase == TASKS_ENDING)
            tasks->phase = TASKS_DONE;
        if (tasks->phase == TASKS_DONE)
            break;
        set_timer(tasks, now_us);
        prepare(tasks, ready);
        if (poll(ready, FIXED_FDS + tasks->count * 3, -1) > 0)
            serve(tasks, ready, ready + FIXED_FDS);
    }
    free(ready);
}

/* What is still in pipes, the exits and the last word; a reader that is slow is waited for. */
static void drain(struct tasks *tasks)
{
    for (;;) {
        tasks_flush(tasks);
        bool open = false;
        for (size_t i = 0; i < tasks->count; i++) {
            tasks_read(tasks, &tasks->list[i], false);
            tasks_read(tasks, &tasks->list[i], true);
            open |= tasks->list[i].out >= 0 || tasks->list[i].err >= 0;
        }
        tasks_say_exits(tasks);
        if (tasks->lost || (tasks->queue.len == 0 && !open) || *tasks->text)
            return;
        struct pollfd wait = { .fd = tasks->chan_fd,
                               .events = tasks->queue.len ? POLLOUT : POLLIN };
        if (poll(&wait, 1, -1) > 0 && (wait.revents & (POLLIN | POLLHUP)))
            receive(tasks);
    }
}

static void send_over(struct tasks *tasks)
{
    RunStepOut out = RUN_STEP_OUT__INIT;
    StepOver over = STEP_OVER__INIT;
    StepNews news = STEP_NEWS__INIT;
    StepEnded ended = STEP_ENDED__INIT;

    contain_usage(&tasks->contain, &tasks->usage);
    tasks->usage.has_user_us = tasks->usage.has_system_us = true;
    tasks->usage.has_max_rss_bytes = tasks->usage.has_processes = true;
    if (contain_oom_kills(&tasks->contain) > 0) {
        tasks->ended_by_us = true;
        tasks->why = JOB_OUT_OF_MEMORY;
        tasks->usage.has_out_of_memory = tasks->usage.out_of_memory = true;
    }
    over.has_state = tasks->ended_by_us;
    over.state = tasks->why;
    over.usage = &tasks->usage;
    over.text = *tasks->text ? tasks->text : NULL;
    over.has_launch_failed = over.launch_failed = tasks->launch_failed;
    out.what_case = RUN_STEP_OUT__WHAT_OVER;
    out.over = &over;
    ended.id = tasks->task->id;
    ended.has_ended_us = ended.has_started_us = true;
    ended.ended_us = clock_wall_us();
    ended.started_us = tasks->started_us;
    ended.usage = &tasks->usage;
    news.srun = &out;
    news.ended = &ended;
    contain_close(&tasks->contain);
    tasks_send(tasks, &news);
    while (tasks->queue.len && !tasks->lost) {
        struct pollfd wait = { .fd = tasks->chan_fd, .events = POLLOUT };
        if (poll(&wait, 1, -1) > 0)
            tasks_flush(tasks);
    }
}

static void start(struct tasks *tasks)
{
    StepNews news = STEP_NEWS__INIT;
    StepStarted started = STEP_STARTED__INIT;
    RunStepOut out = RUN_STEP_OUT__INIT;
    StepRunning running = STEP_RUNNING__INIT;
    struct err err = { 0 };
    StepTask *task = tasks->task;

    tasks->started_us = clock_wall_us();
    contain_open(&tasks->contain, task);
    if (tasks_start(tasks, &err) < 0) {
        snprintf(tasks->text, sizeof(tasks->text), "%s", err.text);
        tasks->launch_failed = true;
        tasks->ended_by_us = true;
        tasks->kill_at_us = 0;
    }
    limit_start(&tasks->limit, task->has_time_limit_s ? task->time_limit_s : -1, -1,
                clock_boot_us());
    CLEANUP(freep) uint32_t *pids = NEW_ARRAY(uint32_t, tasks->count);
    for (size_t i = 0; i < tasks->count; i++)
        pids[i] = (uint32_t)tasks->list[i].pid;
    running.n_pids = tasks->count;
    running.pids = pids;
    started.id = task->id;
    started.has_time_us = true;
    started.time_us = tasks->started_us;
    news.started = &started;
    out.what_case = RUN_STEP_OUT__WHAT_RUNNING;
    out.running = &running;
    news.srun = &out;
    tasks_send(tasks, &news);
}

int tasks_run(StepTask *task, int dir_fd, int chan_fd)
{
    struct tasks tasks = { .task = task,
                           .dir_fd = dir_fd,
                           .chan_fd = chan_fd,
                           .contain = { .cgroup_fd = -1 },
                           .count = task->tasks->n_list,
                           .kill_at_us = -1,
                           .give_up_at_us = -1 };
    sigset_t set;

    usage__init(&tasks.usage);
    signal(SIGCHLD, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    tasks.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    tasks.timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (tasks.signal_fd < 0 || tasks.timer_fd < 0)
        return 1;
    tasks.list = NEW_ARRAY(struct task_one, tasks.count);
    start(&tasks);
    loop(&tasks);
    drain(&tasks);
    send_over(&tasks);
    for (size_t i = 0; i < tasks.count; i++)
        tasks_close_one(&tasks.list[i]);
    rmdir(task->dir);
    close(dir_fd); /* before the channel, whose end says that nothing is left */
    return 0;
}
