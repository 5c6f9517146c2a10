/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tasks.c - the supervisor of a step of srun, from its tasks' start to the end of everything they left
 *
 * (1) Every process of the step is a descendant of ours (contain.h); when wait() has nobody left, the
 *     step has ended.
 * (2) Nobody is needed while it runs: spurd may be killed or replaced, srun may lose its connection. spurd
 *     says when srun is gone for good, and ends the tasks if it wants to.
 * (3) We go when spurd dismisses us: it then has the report, and srun the output or nobody wants it. When
 *     all has ended and no spurd comes for a day, we go too: the report stays in the step's directory.
 *     While spurd is away, the report is in the step's directory too.
 */
#include "spurstepd/tasks.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/str.h"
#include "spurstepd/step_plugins.h"
#include "spurstepd/tasks_priv.h"
#include "sys/clock.h"

enum { FIXED_FDS = 4 };

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

static int64_t earlier(int64_t a, int64_t b)
{
    return a < 0 ? b : b < 0 ? a : MIN(a, b);
}

static void set_timer(struct tasks *tasks, int64_t now_us)
{
    struct itimerspec when = { 0 };
    int64_t next = containment_next_us(&tasks->hold, tasks->phase == TASKS_RUNNING, now_us);

    for (size_t i = 0; i < tasks->count; i++) {
        if (tasks->list[i].epilog.pid)
            next = earlier(next, tasks->list[i].epilog.kill_at_us);
    }
    next = earlier(next, tasks->leave_at_us);
    if (next >= 0) {
        next = MAX(next, 1);
        when.it_value.tv_sec = next / TASKS_SECOND_US;
        when.it_value.tv_nsec = next % TASKS_SECOND_US * 1000;
    }
    timerfd_settime(tasks->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void do_due(struct tasks *tasks, int64_t now_us)
{
    tasks_check_limit(tasks, now_us);
    for (size_t i = 0; i < tasks->count; i++)
        epilog_check(&tasks->list[i].epilog, now_us);
    if (tasks->hold.lease_at_us >= 0 && now_us >= tasks->hold.lease_at_us)
        tasks_check_lease(tasks, now_us);
    if (tasks->phase == TASKS_RUNNING && tasks->hold.track.next_us >= 0 &&
        now_us >= tasks->hold.track.next_us)
        tasks_sample(tasks, false, now_us);
    containment_check_kill(&tasks->hold, now_us);
    if (tasks->hold.give_up_at_us >= 0 && now_us >= tasks->hold.give_up_at_us) {
        tasks_give_up(tasks);
    }
}

/* Another spurd, or the same again: what it must know. */
static void send_hello(struct tasks *tasks)
{
    StepNews news = STEP_NEWS__INIT, over = STEP_NEWS__INIT;
    StepStarted started = STEP_STARTED__INIT;

    started.id = tasks->task->id;
    started.has_time_us = true;
    started.time_us = tasks->started_us;
    news.started = &started;
    news.has_layout = tasks->task->tasks->has_layout;
    news.layout = tasks->task->tasks->layout;
    news.has_frozen = tasks->hold.frozen != 0;
    news.frozen = tasks->hold.frozen;
    tasks_send(tasks, &news);
    over.ended = &tasks->ended;
    if (tasks->phase == TASKS_ENDED)
        tasks_send(tasks, &over);
}

static void receive(struct tasks *tasks)
{
    StepOrder *order;

    while (tasks->phase != TASKS_DONE && (order = chan_receive(&tasks->chan))) {
        tasks_obey(tasks, order, clock_boot_us());
        step_order__free_unpacked(order, NULL);
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
    if (ready[3].revents && chan_accept(&tasks->chan)) {
        tasks_reconnected(tasks);
        send_hello(tasks);
    }
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
    bool may_read = tasks_has_room(tasks), unsent = tasks->sent < tasks->frames.len;
    uint64_t end = tasks->input_first + tasks->input_len;

    ready[0] = (struct pollfd){ .fd = tasks->signal_fd, .events = POLLIN };
    ready[1] = (struct pollfd){ .fd = tasks->timer_fd, .events = POLLIN };
    ready[2] =
        (struct pollfd){ .fd = tasks->chan.fd, .events = (short)(POLLIN | (unsent ? POLLOUT : 0)) };
    ready[3] = (struct pollfd){ .fd = tasks->chan.listen_fd, .events = POLLIN };
    for (size_t i = 0; i < tasks->count; i++) {
        struct task_one *one = &tasks->list[i];
        struct pollfd *streams = ready + FIXED_FDS + i * 3;
        streams[0] = (struct pollfd){ .fd = one->in_done < end ? one->in : -1, .events = POLLOUT };
        streams[1] = (struct pollfd){ .fd = may_read ? one->out : -1, .events = POLLIN };
        streams[2] = (struct pollfd){ .fd = may_read ? one->err : -1, .events = POLLIN };
    }
}

/* Whatever follows from what has happened. */
static void advance(struct tasks *tasks, int64_t now_us)
{
    StepNews news = STEP_NEWS__INIT;
    bool left = tasks->phase == TASKS_ENDED || tasks_reap(tasks, now_us);

    do_due(tasks, now_us);
    tasks_say_exits(tasks);
    if (!left && tasks->phase == TASKS_ENDING)
        tasks_ended(tasks);
    if (tasks->phase == TASKS_ENDED && !tasks->over_said && tasks_all_read(tasks))
        tasks_say_over(tasks, &news);
    tasks_write_report(tasks);
    tasks_leave(tasks, now_us);
}

void tasks_watch(struct tasks *tasks, int fd, void *data,
                 void (*ready)(struct tasks *tasks, void *data, short events))
{
    vec_push(&tasks->watches,
             (struct tasks_watch){ .fd = fd, .events = POLLIN, .data = data, .ready = ready });
}

void tasks_watch_for(struct tasks *tasks, int fd, short events)
{
    vec_each (struct tasks_watch, watch, &tasks->watches) {
        if (watch->fd == fd)
            watch->events = events;
    }
}

void tasks_unwatch(struct tasks *tasks, int fd)
{
    for (size_t i = tasks->watches.len; i-- > 0;) {
        if (tasks->watches.items[i].fd == fd)
            vec_remove(&tasks->watches, i);
    }
}

/* What is called may add watches and take some away. */
static void serve_watches(struct tasks *tasks, const struct pollfd *fds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!fds[i].revents)
            continue;
        for (size_t k = 0; k < tasks->watches.len; k++) {
            struct tasks_watch watch = tasks->watches.items[k];
            if (watch.fd != fds[i].fd)
                continue;
            watch.ready(tasks, watch.data, fds[i].revents);
            break;
        }
    }
}

static void loop(struct tasks *tasks)
{
    size_t fixed = FIXED_FDS + tasks->count * 3;
    VEC(struct pollfd) fds = { 0 };

    for (;;) {
        int64_t now_us = clock_boot_us();
        advance(tasks, now_us);
        if (tasks->phase == TASKS_DONE)
            break;
        set_timer(tasks, now_us);
        size_t watches = tasks->watches.len;
        vec_reserve(&fds, fixed + watches);
        prepare(tasks, fds.items);
        short heard = tasks_has_room(tasks) ? ~0 : (short)~POLLIN; /* as of the tasks' streams */
        for (size_t i = 0; i < watches; i++)
            fds.items[fixed + i] =
                (struct pollfd){ .fd = tasks->watches.items[i].fd,
                                 .events = (short)(tasks->watches.items[i].events & heard) };
        if (poll(fds.items, fixed + watches, -1) > 0) {
            serve_watches(tasks, fds.items + fixed, watches); /* before a task's streams end */
            serve(tasks, fds.items, fds.items + FIXED_FDS);
        }
    }
    vec_done(&fds);
}

static void send_running(struct tasks *tasks)
{
    StepNews news = STEP_NEWS__INIT;
    StepStarted started = STEP_STARTED__INIT;
    RunStepOut out = RUN_STEP_OUT__INIT;
    StepRunning running = STEP_RUNNING__INIT;
    CLEANUP(freep) uint32_t *pids = NEW_ARRAY(uint32_t, tasks->count);

    for (size_t i = 0; i < tasks->count; i++)
        pids[i] = (uint32_t)tasks->list[i].pid;
    running.n_pids = tasks->count;
    running.pids = pids;
    started.id = tasks->task->id;
    started.has_time_us = true;
    started.time_us = tasks->started_us;
    news.started = &started;
    out.what_case = RUN_STEP_OUT__WHAT_RUNNING;
    out.running = &running;
    tasks_send_both(tasks, &news, &out);
}

static void start(struct tasks *tasks)
{
    struct err err = { 0 };
    StepTask *task = tasks->task;

    tasks->started_us = clock_wall_us();
    contain_open(&tasks->hold.contain, task);
    if (step_plugins_begin(tasks, &err) < 0 || tasks_start(tasks, &err) < 0) {
        snprintf(tasks->text, sizeof(tasks->text), "%s", err.text);
        tasks->launch_failed = true;
        tasks->hold.ended_by_us = true;
        tasks->hold.kill_at_us = 0;
    }
    int64_t now_us = clock_boot_us();
    limit_start(&tasks->hold.limit,
                tasks_limit_s(tasks, task->has_time_limit_s ? task->time_limit_s : -1),
                task->warn_signal ? (int64_t)task->warn_before_s : -1, now_us);
    track_start(&tasks->hold.track, task, tasks->count, now_us);
    send_running(tasks);
    for (size_t i = 0; i < tasks->count; i++) {
        if (tasks->list[i].pid)
            tasks_debug(tasks, "task %u (%d) started", tasks->list[i].number, tasks->list[i].pid);
    }
    tasks_check_lease(tasks, now_us);
}

static void remove_dir(const struct tasks *tasks)
{
    static const char *const ends[] = { ".end", ".sock" };
    char name[64];

    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        snprintf(name, sizeof(name), "%.40s%s", tasks->task->name, ends[i]);
        unlinkat(tasks->dir_fd, name, 0);
    }
    rmdir(tasks->task->dir);
}

int tasks_run(StepTask *task, int dir_fd, int chan_fd)
{
    struct tasks tasks = {
        .task = task, .dir_fd = dir_fd, .count = task->tasks->n_list, .leave_at_us = -1
    };
    sigset_t set;

    tasks_hold(&tasks);
    usage__init(&tasks.usage);
    step_ended__init(&tasks.ended);
    signal(SIGCHLD, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    tasks.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    tasks.timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (tasks.signal_fd < 0 || tasks.timer_fd < 0)
        return 1;
    tasks.list = NEW_ARRAY(struct task_one, tasks.count);
    for (size_t i = 0; i < tasks.count; i++)
        usage__init(&tasks.list[i].ended);
    chan_open(&tasks.chan, chan_fd, dir_fd, task->name);
    start(&tasks);
    loop(&tasks);
    for (size_t i = 0; i < tasks.count; i++)
        tasks_close_one(&tasks.list[i]);
    if (!tasks.left_alone)
        remove_dir(&tasks);
    close(dir_fd); /* before the channel, whose end says that nothing is left */
    chan_close(&tasks.chan);
    return 0;
}
