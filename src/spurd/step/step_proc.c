/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_proc.c - the supervisors of steps here: launched, found again, ended
 *
 * (1) Frames go through as they are. A reader that is slow stops our reading from the supervisor, which
 *     stops reading from the tasks.
 * (2) A supervisor is dismissed when its step has ended and srun has everything, or has been away for
 *     too long. A step whose srun does not come back is ended.
 * (3) Whatever happens to us, supervisors go on; the next spurd finds them by their directories.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spurd/node/cgroups.h"
#include "spurd/step/step.h"
#include "spurd/task/stepd.h"
#include "spurd/task/task.h"
#include "sys/clock.h"
#include "sys/files.h"
#include "sys/log.h"

enum { LOOK_AGAIN_MS = 50 };

static void on_timer(uv_timer_t *timer);

struct step_proc *step_proc_find(const struct agent *agent, uint32_t job, uint32_t attempt,
                                 uint32_t step)
{
    for (size_t i = 0; i < agent->steps->procs.len; i++) {
        struct step_proc *proc = agent->steps->procs.items[i];
        if (proc->job == job && proc->attempt == attempt && proc->step == step)
            return proc;
    }
    return NULL;
}

const StepNode *step_layout_here(const StepLayout *layout, const char *node)
{
    for (size_t i = 0; i < layout->n_nodes; i++) {
        if (str_eq(layout->nodes[i]->name, node))
            return layout->nodes[i];
    }
    return NULL;
}

static char *proc_dir(const struct step_proc *proc)
{
    return mem_printf("%s/steps/%u.%u.%u", proc->agent->run_dir, proc->job, proc->attempt,
                      proc->step);
}

static void proc_name(const struct step_proc *proc, char out[16])
{
    if (proc->step == STEP_INTERACTIVE)
        strcpy(out, "interactive");
    else
        snprintf(out, 16, "%u", proc->step);
}

static struct attempt *attempt_of(const struct step_proc *proc)
{
    return attempt_find(&proc->agent->table, proc->job, proc->attempt);
}

/* ---- beginning and end ---- */

struct step_proc *step_proc_new(struct agent *agent, uint32_t job, uint32_t attempt, uint32_t step)
{
    struct step_proc *proc = NEW(struct step_proc);

    proc->agent = agent;
    proc->job = job;
    proc->attempt = attempt;
    proc->step = step;
    proc->timer = NEW(uv_timer_t);
    uv_timer_init(agent->uv, proc->timer);
    proc->timer->data = proc;
    vec_push(&agent->steps->procs, proc);
    return proc;
}

void step_proc_set_layout(struct step_proc *proc, const ProtobufCBinaryData *bytes)
{
    if (proc->layout || !bytes->len)
        return;
    proc->layout = step_layout__unpack(NULL, bytes->len, bytes->data);
    proc->packed.data = mem_new(bytes->len);
    memcpy(proc->packed.data, bytes->data, bytes->len);
    proc->packed.len = bytes->len;
}

static void free_handle(uv_handle_t *handle)
{
    free(handle);
}

void step_proc_count(struct step_proc *proc, bool on)
{
    struct attempt *held = attempt_of(proc);

    if (proc->counted == on)
        return;
    proc->counted = on;
    if (!held)
        return;
    if (on)
        held->steps++;
    else if (held->steps)
        held->steps--;
    proc->agent->steps->ops->counted(proc->agent);
}

/* The streams hear nothing more of it. */
static void drop_readers(struct step_proc *proc, const struct err *err)
{
    while (proc->watchers.len) {
        struct step_run *run = proc->watchers.items[proc->watchers.len - 1];
        run->over = true;
        step_run_settle(run);
    }
    struct step_run *run = proc->run;
    if (!run)
        return;
    proc->run = NULL;
    run->proc = NULL;
    if (err && !run->over) {
        step_run_fail(run, err);
    } else {
        run->over = true;
        step_run_settle(run);
    }
}

void step_proc_free(struct step_proc *proc)
{
    struct steps *steps = proc->agent->steps;

    for (size_t i = steps->procs.len; i-- > 0;) {
        if (steps->procs.items[i] == proc)
            vec_remove(&steps->procs, i);
    }
    uv_timer_stop(proc->timer);
    uv_close((uv_handle_t *)proc->timer, free_handle);
    if (proc->layout)
        step_layout__free_unpacked(proc->layout, NULL);
    free(proc->packed.data);
    vec_done(&proc->watchers);
    free(proc);
}

void step_proc_order(struct step_proc *proc, const StepOrder *words)
{
    if (proc->chan)
        stepd_order(proc->chan, words);
}

void step_proc_dismiss(struct step_proc *proc)
{
    StepOrder words = STEP_ORDER__INIT;
    StepDismiss empty = STEP_DISMISS__INIT;

    words.what_case = STEP_ORDER__WHAT_DISMISS;
    words.dismiss = &empty;
    proc->dismissed |= proc->ended;
    if (proc->paused && proc->chan) {
        proc->paused = false;
        stepd_pause(proc->chan, false);
    }
    step_proc_order(proc, &words);
}

static void send_kill(struct step_proc *proc)
{
    StepOrder words = STEP_ORDER__INIT;
    StepKill kill_words = STEP_KILL__INIT;

    kill_words.has_kill_wait_s = kill_words.has_state = true;
    kill_words.kill_wait_s = proc->kill_wait_s;
    kill_words.state = proc->killed;
    words.what_case = STEP_ORDER__WHAT_KILL;
    words.kill = &kill_words;
    step_proc_order(proc, &words);
}

/* Remembered for a supervisor that is being looked for. */
void step_proc_kill(struct step_proc *proc, unsigned wait_s, JobState why)
{
    proc->kill_due = true;
    proc->kill_wait_s = wait_s;
    proc->killed = why;
    send_kill(proc);
}

unsigned step_kill_wait_s(const struct agent *agent)
{
    const Config *config = agent_common(agent);

    return config && config->has_kill_wait_s ? config->kill_wait_s : TASK_KILL_WAIT_S;
}

/* No process is left. */
static void proc_ended(struct step_proc *proc, const StepEnded *ended)
{
    struct attempt *held = attempt_of(proc);
    struct agent *agent = proc->agent;

    if (proc->ended)
        return;
    proc->ended = true;
    step_proc_count(proc, false);
    step_report_ended(proc, ended);
    if (held)
        held->derived_status = MAX(held->derived_status, ended->exit_status);
    log_debug("step.ended", "job=%u step=%u status=%u", proc->job, proc->step, ended->exit_status);
    if (held && str_eq(ended->text, "Kill task failed"))
        agent->steps->ops->unkillable(agent, held, proc->step);
    if (!proc->run && !uv_is_active((uv_handle_t *)proc->timer))
        step_proc_dismiss(proc); /* srun was away for too long before */
    if (held)
        agent->steps->ops->ended(agent, held);
}

/* ---- to those who read ---- */

static bool all_writable(const struct step_proc *proc)
{
    if (proc->run && proc->run->call && !rpc_writable(proc->run->call))
        return false;
    for (size_t i = 0; i < proc->watchers.len; i++) {
        const struct step_run *run = proc->watchers.items[i];
        if (run->call && !rpc_writable(run->call))
            return false;
    }
    return true;
}

void step_proc_writable(struct step_proc *proc) /* (1) */
{
    bool pause = !all_writable(proc);

    if (!proc->chan || proc->paused == pause)
        return;
    proc->paused = pause;
    stepd_pause(proc->chan, pause);
}

static void forward(struct step_proc *proc, const RunStepOut *out)
{
    if (!out->to && proc->run)
        step_run_send(proc->run, out);
    for (size_t i = 0; i < proc->watchers.len; i++) {
        struct step_run *run = proc->watchers.items[i];
        if (out->to ? out->to == run->number : out->seq)
            step_run_send(run, out);
    }
    if (out->what_case == RUN_STEP_OUT__WHAT_OVER) {
        proc->over_seq = out->seq;
        while (proc->watchers.len) {
            struct step_run *run = proc->watchers.items[proc->watchers.len - 1];
            run->over = true;
            step_run_settle(run);
        }
    }
    step_proc_writable(proc);
}

/* ---- the supervisor speaks ---- */

static void say_launch_failed(struct step_proc *proc, const char *text)
{
    RunStepOut out = RUN_STEP_OUT__INIT;
    StepOver over = STEP_OVER__INIT;

    over.has_launch_failed = over.launch_failed = true;
    over.text = (char *)text;
    out.what_case = RUN_STEP_OUT__WHAT_OVER;
    out.over = &over;
    out.has_seq = true;
    out.seq = 1;
    forward(proc, &out);
}

static void freeze_again(struct step_proc *proc, const struct attempt *held)
{
    static const FreezeCause causes[] = { FREEZE_ASKED, FREEZE_LEASE };

    for (size_t i = 0; i < ARRAY_LEN(causes); i++) {
        StepOrder words = STEP_ORDER__INIT;
        StepFreeze freeze = STEP_FREEZE__INIT;
        if (!(held->freeze_said & causes[i]))
            continue;
        freeze.has_cause = freeze.has_thaw = true;
        freeze.cause = causes[i];
        freeze.thaw = !(held->freeze_wanted & causes[i]);
        words.what_case = STEP_ORDER__WHAT_FREEZE;
        words.freeze = &freeze;
        step_proc_order(proc, &words);
    }
}

/* What it missed while it had no channel. */
static void catch_up(struct step_proc *proc)
{
    struct attempt *held = attempt_of(proc);

    if (proc->ended)
        return;
    if (held)
        freeze_again(proc, held);
    if (proc->kill_due)
        send_kill(proc);
    else if (!held || held->revoked || held->ended)
        step_proc_kill(proc, held ? held->kill_wait_s : step_kill_wait_s(proc->agent),
                       JOB_CANCELLED);
}

static void on_news(void *ctx, void *owner, const StepNews *news)
{
    struct step_proc *proc = owner;
    bool from_zygote = news->already || (news->ended && news->ended->launch_failed && !news->srun &&
                                         !proc->started_us);

    (void)ctx;
    if (from_zygote) { /* it could not start it */
        const char *text = news->ended ? news->ended->text : "it was launched before";
        say_launch_failed(proc, text);
        proc->ended = proc->dismissed = true;
        step_proc_count(proc, false);
        step_report_all(proc->agent); /* it was said to run */
        return;
    }
    if (news->started) {
        bool first = !proc->started_us;
        proc->started_us = news->started->time_us;
        proc->frozen = news->frozen;
        step_proc_set_layout(proc, &news->layout);
        if (first)
            step_report_started(proc);
        catch_up(proc);
    } else if (news->has_frozen) {
        proc->frozen = news->frozen;
        step_report_started(proc);
        proc->agent->steps->ops->frozen(proc->agent);
    }
    if (news->srun)
        forward(proc, news->srun);
    if (news->sample)
        step_query_sample(proc->agent, proc->job, proc->attempt, proc->step, news->sample);
    if (news->ended)
        proc_ended(proc, news->ended);
}

static void find_again(struct step_proc *proc);

static void on_lost(void *ctx, void *owner)
{
    struct step_proc *proc = owner;

    (void)ctx;
    proc->chan = NULL;
    proc->paused = false;
    if (proc->dismissed) {
        drop_readers(proc, NULL);
        step_proc_free(proc);
    } else {
        find_again(proc);
    }
}

const struct step_chan_ops step_proc_ops = { on_news, on_lost };

/* ---- found again ---- */

struct cleanup {
    uv_work_t work;
    char *cgroup;
};

static void end_processes(uv_work_t *work)
{
    struct cleanup *cleanup = work->data;

    cgroups_end(cleanup->cgroup);
}

static void processes_ended(uv_work_t *work, int status)
{
    struct cleanup *cleanup = work->data;

    (void)status;
    free(cleanup->cgroup);
    free(cleanup);
}

/* The supervisor was killed; its tasks died with it, and what they left in the cgroup goes too. */
static void supervisor_died(struct step_proc *proc)
{
    struct agent *agent = proc->agent;
    struct attempt *held = attempt_of(proc);
    StepEnded ended = STEP_ENDED__INIT;
    struct err err = { 0 };

    err_set(&err, ERR_IO, "the supervisor of step %u.%u on %s died", proc->job, proc->step,
            agent->name);
    log_error("step.lost", "job=%u step=%u", proc->job, proc->step);
    if (agent->cgroup) {
        struct cleanup *cleanup = NEW(struct cleanup);
        cleanup->work.data = cleanup;
        cleanup->cgroup =
            mem_printf("%s/%u.%u/%u", agent->cgroup, proc->job, proc->attempt, proc->step);
        uv_queue_work(agent->uv, &cleanup->work, end_processes, processes_ended);
    }
    ended.has_exit_status = ended.has_ended_us = ended.has_state = true;
    ended.exit_status = SIGKILL;
    ended.state = JOB_NODE_FAIL;
    ended.ended_us = clock_wall_us();
    ended.started_us = proc->started_us;
    ended.has_started_us = proc->started_us > 0;
    if (!proc->ended)
        step_report_ended(proc, &ended);
    proc->ended = true;
    step_proc_count(proc, false);
    drop_readers(proc, &err);
    step_proc_free(proc);
    if (held)
        agent->steps->ops->ended(agent, held);
}

/* It ended and wrote its report before it was killed itself, or srun did not come back. */
static bool take_report(struct step_proc *proc, const char *dir)
{
    char name[16];

    proc_name(proc, name);
    StepEnded *ended = stepd_read_report(dir, name, "");
    if (!ended)
        return false;
    if (!proc->ended)
        step_report_ended(proc, ended);
    step_ended__free_unpacked(ended, NULL);
    return true;
}

static void find_again(struct step_proc *proc)
{
    CLEANUP(freep) char *dir = proc_dir(proc);
    struct err err = { 0 };
    char name[16];

    proc_name(proc, name);
    enum stepd_found found = stepd_look(dir);
    if (found == STEPD_ALIVE) {
        proc->chan = stepd_connect_as(proc->agent->stepd, dir, name, &step_proc_ops, proc, &err);
        if (!proc->chan) /* it notices that we are new within moments, and then listens */
            uv_timer_start(proc->timer, on_timer, LOOK_AGAIN_MS, 0);
        else if (!proc->run)
            uv_timer_start(proc->timer, on_timer, STEP_FOUND_AWAY_MS, 0);
        return;
    }
    if (found == STEPD_DEAD && take_report(proc, dir)) {
        struct agent *agent = proc->agent;
        struct attempt *held = attempt_of(proc);
        proc->ended = true;
        step_proc_count(proc, false);
        file_remove_tree(dir, NULL);
        drop_readers(proc, NULL);
        step_proc_free(proc);
        if (held)
            agent->steps->ops->ended(agent, held);
        return;
    }
    file_remove_tree(dir, NULL);
    supervisor_died(proc);
}

/* srun has been away for too long (2), or a supervisor is looked for. */
static void on_timer(uv_timer_t *timer)
{
    struct step_proc *proc = timer->data;

    if (proc->agent->stopping)
        return;
    if (!proc->chan) {
        find_again(proc);
        return;
    }
    if (proc->run)
        return;
    if (!proc->ended && !proc->kill_due) {
        log_info("step.orphan", "job=%u step=%u why=%s", proc->job, proc->step, "srun is gone");
        step_proc_kill(proc, step_kill_wait_s(proc->agent), JOB_CANCELLED);
    }
    step_proc_dismiss(proc); /* its output has no reader */
}

static void recover_one(struct agent *agent, const char *name)
{
    unsigned job, attempt, step;
    int end = 0;

    if (sscanf(name, "%u.%u.%u%n", &job, &attempt, &step, &end) != 3 || name[end])
        return;
    struct step_proc *proc = step_proc_new(agent, job, attempt, step);
    step_proc_count(proc, true);
    log_info("step.found", "job=%u attempt=%u step=%u", job, attempt, step);
    find_again(proc);
}

void steps_recover(struct agent *agent)
{
    CLEANUP(freep) char *path = mem_printf("%s/steps", agent->run_dir);
    DIR *dir = opendir(path);
    struct dirent *item;

    while (dir && (item = readdir(dir))) {
        if (item->d_name[0] >= '1' && item->d_name[0] <= '9')
            recover_one(agent, item->d_name);
    }
    if (dir)
        closedir(dir);
    step_book_recover(agent);
    agent->steps->recovered = true;
}

void step_proc_wait(struct step_proc *proc, unsigned ms)
{
    uv_timer_start(proc->timer, on_timer, ms, 0);
}
