/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step.c - the supervisor of one step, from the task to the acknowledged report
 *
 * (1) Every process of the step is a descendant of ours (contain.h), so the step is over when
 *     wait() has nobody left.
 * (2) The report is in a file before anybody hears of the end. It is our last word: whoever heard it
 *     keeps it, and removes the files. When nobody did, a synced copy goes to disk.
 * (3) Nobody is needed: spurd may be away for any part of this.
 */
#include "spurstepd/step.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "spurstepd/freq.h"
#include "spurstepd/login.h"
#include "spurstepd/report.h"
#include "spurstepd/start.h"
#include "spurstepd/step_priv.h"
#include "spurstepd/step_spank.h"
#include "sys/clock.h"
#include "sys/files.h"

enum {
    SECOND_US = 1000000,
    REPORT_SYNC_US = 1000000,
    SAY_STARTED_US = 20000, /* a step that is over before says both at once */
    STATUS_OOM = 125,       /* Slurm's: shown as 0:125 */
};

bool step_task_valid(const StepTask *task)
{
    return task->id && task->owner && !str_is_empty(task->name) && !str_is_empty(task->dir) &&
           !str_is_empty(task->node) && task->script.len > 0 && !str_is_empty(task->work_dir) &&
           !str_is_empty(task->std_out) && strlen(task->name) <= 40;
}

/* ---- the report ---- */

static int64_t timeval_us(struct timeval time)
{
    return time.tv_sec * (int64_t)SECOND_US + time.tv_usec;
}

static void add_usage(Usage *usage, const struct rusage *more)
{
    usage->user_us += timeval_us(more->ru_utime);
    usage->system_us += timeval_us(more->ru_stime);
    usage->max_rss_bytes = MAX(usage->max_rss_bytes, (uint64_t)more->ru_maxrss * 1024);
    usage->page_faults += (uint64_t)more->ru_majflt;
    usage->processes++;
}

static void fill_report(struct step *step)
{
    Usage *usage = &step->usage;
    StepEnded *ended = &step->ended;
    uint64_t oom;

    contain_usage(&step->hold.contain, usage);
    if (step->hold.track.task)
        track_end(&step->hold.track, &(struct sample_task){ .ended = usage }, usage);
    usage->has_user_us = usage->has_system_us = usage->has_max_rss_bytes = true;
    usage->has_page_faults = usage->has_processes = true;
    ended->usage = usage;
    ended->has_exit_status = true;
    ended->exit_status = (uint32_t)step->status;
    if (step->hold.ended_by_us) {
        ended->has_state = true;
        ended->state = step->hold.why;
    }
    if ((oom = contain_oom_kills(&step->hold.contain)) > 0) {
        ended->has_state = true;
        ended->state = JOB_OUT_OF_MEMORY;
        ended->exit_status = STATUS_OOM;
        char said[160];
        snprintf(
            said, sizeof(said),
            "slurmstepd: error: Detected %llu oom_kill event%s in StepId=%u.%.32s. Some of the "
            "step tasks have been OOM Killed.\n",
            (unsigned long long)oom, oom == 1 ? "" : "s", step->task->id->job_id, step->task->name);
        start_say(step->task, said);
    }
    if (ended->has_state && ended->state == JOB_OUT_OF_MEMORY) {
        ended->exit_status = STATUS_OOM;
        track_out_of_memory(&step->hold.track, &step->hold.contain, oom, usage, step->text,
                            sizeof(step->text));
    }
}

static void add_started(struct step *step, StepNews *news)
{
    step->start_said = true;
    step->say_at_us = -1;
    news->started = &step->started;
    news->containment = step->hold.contain.how;
    if (step->hold.frozen) {
        news->has_frozen = true;
        news->frozen = step->hold.frozen;
    }
}

static bool send_report(struct step *step)
{
    StepNews news = STEP_NEWS__INIT;

    if (!step->start_said && step->started.pid)
        add_started(step, &news);
    news.ended = &step->ended;
    news.has_unkillable = news.unkillable = step->unkillable;
    return chan_send(&step->chan, &news);
}

static void keep_report(struct step *step)
{
    struct err err = { 0 };

    if (step->task->keep_file && report_keep(step->task->keep_file, &step->ended, &err) < 0)
        fprintf(stderr, "spurstepd: report of %u.%s: %s\n", step->task->id->job_id,
                step->task->name, err.text);
}

/* Nothing of the step is left, or we gave up on what is. */
void step_end(struct step *step, int64_t now_us)
{
    struct err err = { 0 };
    StepEnded *ended = &step->ended;

    fill_report(step);
    ended->id = step->task->id;
    ended->has_ended_us = ended->has_started_us = true;
    ended->ended_us = clock_wall_us();
    ended->started_us = step->started.time_us;
    ended->text = step->text[0] ? step->text : NULL;
    if (step->task->freq)
        freq_reset(step->task);
    if (step_spank)
        step_spank->end();
    contain_close(&step->hold.contain);
    track_done(&step->hold.track);
    /* A full disk does not keep spurd from hearing of the end; only a crash could then lose it. */
    if (report_write(step->dir_fd, step->task->name, ended, &err) < 0)
        fprintf(stderr, "spurstepd: report of %u.%s: %s\n", step->task->id->job_id,
                step->task->name, err.text);
    step->hold.kill_at_us = step->hold.give_up_at_us = step->hold.lease_at_us = step->say_at_us =
        -1;
    step->sync_at_us = now_us + REPORT_SYNC_US;
    step->phase = send_report(step) ? STEP_DONE : STEP_ENDED;
}

/* ---- the beginning ---- */

static int write_script(struct step *step, struct err *err)
{
    const StepTask *task = step->task;
    CLEANUP(file_close)
    int fd = openat(step->dir_fd, "slurm_script", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);

    if (fd < 0)
        return err_errno(err, errno, "batch script");
    if (file_write_all(fd, task->script.data, task->script.len, err) < 0)
        return err_wrap(err, "batch script");
    if (task->change_user && fchown(fd, task->owner->uid, task->owner->gid) < 0)
        return err_errno(err, errno, "batch script");
    return 0;
}

static char **get_login(struct step *step)
{
    char **env = NULL;
    struct err err = { 0 };

    if (step->task->login_shell && login_env(step->task, &step->hold.contain, &env, &err) < 0)
        snprintf(step->text, sizeof(step->text),
                 "slurmstepd: error: Unable to get user's local environment, running only with "
                 "passed environment: %.200s\n",
                 err.text);
    return env;
}

static void say_warnings(struct step *step, const struct started *started)
{
    char text[256];

    if (step->text[0])
        start_say(step->task, step->text);
    step->text[0] = '\0';
    if (started->rlimits_refused == 0)
        return;
    snprintf(text, sizeof(text),
             "slurmstepd: error: Can't propagate RLIMIT_%s of the submit host (%d limits)\n",
             started->refused, started->rlimits_refused);
    start_say(step->task, text);
}

static void send_started(struct step *step)
{
    StepNews news = STEP_NEWS__INIT;

    add_started(step, &news);
    chan_send(&step->chan, &news);
}

/* What the job asked for is the job's failure; what this node lacks lets it start elsewhere. */
static void fail_start(struct step *step, bool by_user, const struct err *err)
{
    snprintf(step->text, sizeof(step->text), "%s", err->text);
    if (by_user) {
        step->status = START_STATUS_NO_FILES;
    } else {
        step->ended.has_launch_failed = step->ended.launch_failed = true;
        step->status = 1 << 8;
    }
    step_end(step, clock_boot_us());
}

/* The job's failure: another node has the same plugins. */
static void fail_plugins(struct step *step, const struct err *err)
{
    snprintf(step->text, sizeof(step->text), "%s", err->text);
    step->status = 1 << 8;
    step_end(step, clock_boot_us());
}

static void start(struct step *step)
{
    StepTask *task = step->task;
    struct started started = { 0 };
    struct err err = { 0 };
    CLEANUP(freep) char *script = mem_printf("%s/slurm_script", task->dir);

    step->started.time_us = clock_wall_us();
    if (write_script(step, &err) < 0) {
        fail_start(step, false, &err);
        return;
    }
    contain_open(&step->hold.contain, task);
    if (task->freq)
        freq_set(&step->hold);
    if (step_spank && step_spank->begin(task, step->hold.say, step, &err) < 0) {
        fail_plugins(step, &err);
        return;
    }
    char **login = get_login(step);
    int ret = start_script(task, &step->hold.contain, script, login, &started, &err);
    login_free(login);
    if (ret < 0) {
        fail_start(step, started.by_user, &err);
        return;
    }
    step->script = started.pid;
    step->started.pid = (uint32_t)started.pid;
    int64_t now_us = clock_boot_us();
    limit_start(&step->hold.limit, task->has_time_limit_s ? task->time_limit_s : -1,
                task->warn_signal ? (int64_t)task->warn_before_s : -1, now_us);
    track_start(&step->hold.track, task, 1, now_us);
    step->say_at_us = now_us + SAY_STARTED_US;
    say_warnings(step, &started);
    step_check_lease(step, now_us);
    free(task->script.data); /* up to 4 MB that we need no more */
    task->script = (ProtobufCBinaryData){ 0 };
}

/* ---- the middle ---- */

/* The next task epilog; after the last one, what the script left behind goes. */
static void run_epilog(struct step *step, int64_t now_us)
{
    static char *own[] = { (char *)"SLURM_PROCID=0", (char *)"SLURM_LOCALID=0", NULL };

    step->hold.kill_at_us = -1;
    if (!epilog_start(&step->epilog, step->task, &step->hold.contain, own, now_us))
        step->hold.kill_at_us = now_us; /* unless nobody is left to kill */
}

static void reap(struct step *step, int64_t now_us)
{
    struct rusage usage;
    int status;
    pid_t pid;

    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
        add_usage(&step->usage, &usage);
        if (pid == step->epilog.pid && step->phase == STEP_ENDING) {
            run_epilog(step, now_us);
            continue;
        }
        if (pid != step->script || step->phase != STEP_RUNNING)
            continue;
        step->status = status;
        step->script = 0;
        if (step_spank)
            step_spank->exited(0, status);
        step->phase = STEP_ENDING;
        containment_give_up_later(&step->hold, now_us);
        run_epilog(step, now_us);
    }
    if (pid < 0 && errno == ECHILD && step->phase == STEP_ENDING) /* (1) */
        step_end(step, now_us);
}

static void do_due(struct step *step, int64_t now_us)
{
    step_check_limit(step, now_us);
    epilog_check(&step->epilog, now_us);
    if (step->say_at_us >= 0 && now_us >= step->say_at_us)
        send_started(step);
    if (step->hold.lease_at_us >= 0 && now_us >= step->hold.lease_at_us)
        step_check_lease(step, now_us);
    if (step->phase == STEP_RUNNING && step->hold.track.next_us >= 0 &&
        now_us >= step->hold.track.next_us)
        step_sample(step, false, now_us);
    containment_check_kill(&step->hold, now_us);
    if (step->hold.give_up_at_us >= 0 && now_us >= step->hold.give_up_at_us) {
        step->unkillable = true;
        if (step->phase == STEP_RUNNING) /* the script itself is left */
            step->status = SIGKILL;
        snprintf(step->text, sizeof(step->text), "Kill task failed");
        step_end(step, now_us);
    }
    if (step->sync_at_us >= 0 && now_us >= step->sync_at_us) {
        keep_report(step);
        step->phase = STEP_DONE; /* the file says it all; spurd reads it when it needs it */
    }
}

static void set_timer(struct step *step, int64_t now_us)
{
    const int64_t due[] = {
        containment_next_us(&step->hold, step->phase == STEP_RUNNING, now_us),
        step->sync_at_us,
        step->say_at_us,
        step->epilog.pid ? step->epilog.kill_at_us : -1,
    };
    int64_t next = -1;

    for (size_t i = 0; i < ARRAY_LEN(due); i++) {
        if (due[i] >= 0 && (next < 0 || due[i] < next))
            next = due[i];
    }
    if (next == step->timer_us)
        return;
    step->timer_us = next;
    struct itimerspec when = { 0 };
    if (next >= 0) {
        next = MAX(next, 1);
        when.it_value.tv_sec = next / SECOND_US;
        when.it_value.tv_nsec = next % SECOND_US * 1000;
    }
    timerfd_settime(step->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void serve(struct step *step, const struct pollfd *ready)
{
    StepOrder *order;

    if (ready[0].revents) {
        struct signalfd_siginfo info[4];
        while (read(step->signal_fd, info, sizeof(info)) == sizeof(info))
            ;
    }
    if (ready[1].revents) {
        uint64_t ticks;
        if (read(step->timer_fd, &ticks, sizeof(ticks)) > 0)
            step->timer_us = -1;
    }
    if (ready[2].revents) {
        while (step->phase != STEP_DONE && (order = chan_receive(&step->chan))) {
            step_obey(step, order, clock_boot_us());
            step_order__free_unpacked(order, NULL);
        }
    }
    if (ready[3].revents && chan_accept(&step->chan)) {
        step->start_said = false;
        if (step->phase != STEP_ENDED)
            send_started(step);
        else if (send_report(step))
            step->phase = STEP_DONE;
    }
}

static void loop(struct step *step)
{
    while (step->phase != STEP_DONE) {
        int64_t now_us = clock_boot_us();
        reap(step, now_us);
        do_due(step, now_us);
        if (step->phase == STEP_DONE)
            break;
        set_timer(step, now_us);
        struct pollfd ready[] = {
            { .fd = step->signal_fd, .events = POLLIN },
            { .fd = step->timer_fd, .events = POLLIN },
            { .fd = step->chan.fd, .events = POLLIN },
            { .fd = step->chan.listen_fd, .events = POLLIN },
        };
        if (poll(ready, ARRAY_LEN(ready), -1) > 0)
            serve(step, ready);
    }
}

/* Nothing of the step is left that another one could meet: no process, no file, no setting, no memory. */
static bool is_clean(const struct step *step)
{
    const StepTask *task = step->task;

    return !step->unkillable && !step->ended.launch_failed && step->chan.fd >= 0 &&
           step->chan.listen_fd < 0 && !task->freq && !task->private_dirs && !task->login_shell &&
           waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
}

int step_run(StepTask *task, int dir_fd, int chan_fd, bool *clean)
{
    struct step step = {
        .task = task, .dir_fd = dir_fd, .sync_at_us = -1, .say_at_us = -1, .timer_us = -1
    };
    sigset_t set;

    step_hold(&step);
    usage__init(&step.usage);
    step_started__init(&step.started);
    step_ended__init(&step.ended);
    step.started.id = task->id;
    step.started.has_time_us = step.started.has_pid = true;
    signal(SIGCHLD, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    step.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    step.timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (step.signal_fd < 0 || step.timer_fd < 0)
        return 1;
    chan_open(&step.chan, chan_fd, dir_fd, task->name);
    start(&step);
    loop(&step);
    *clean = is_clean(&step);
    chan_close(&step.chan);
    return 0;
}
