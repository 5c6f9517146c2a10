/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_order.c - what the agent tells the steps of a job: signals, freezing, limits, the end
 */
#include <signal.h>
#include <stdlib.h>

#include "spurd/step/step.h"
#include "spurd/task/stepd.h"

static bool is_of(const struct step_proc *proc, const struct attempt *held)
{
    return proc->job == held->job && proc->attempt == held->attempt && !proc->ended;
}

void steps_order(struct agent *agent, const struct attempt *held, const StepOrder *words)
{
    for (size_t i = agent->steps->procs.len; i-- > 0;) {
        struct step_proc *proc = agent->steps->procs.items[i];
        if (is_of(proc, held) && proc->chan)
            stepd_order(proc->chan, words);
    }
}

void steps_freeze(struct agent *agent, const struct attempt *held, FreezeCause cause, bool thaw)
{
    StepOrder words = STEP_ORDER__INIT;
    StepFreeze freeze = STEP_FREEZE__INIT;

    freeze.has_cause = freeze.has_thaw = true;
    freeze.cause = cause;
    freeze.thaw = thaw;
    words.what_case = STEP_ORDER__WHAT_FREEZE;
    words.freeze = &freeze;
    steps_order(agent, held, &words);
}

/* The job's limit counts from its own start. */
void steps_limit(struct agent *agent, const struct attempt *held, int64_t job_limit_s)
{
    for (size_t i = agent->steps->procs.len; i-- > 0;) {
        struct step_proc *proc = agent->steps->procs.items[i];
        StepOrder words = STEP_ORDER__INIT;
        StepLimit limit = STEP_LIMIT__INIT;
        if (!is_of(proc, held) || !held->grant)
            continue;
        int64_t before_s = (proc->started_us - held->grant->start_us) / 1000000;
        limit.has_time_limit_s = true;
        limit.time_limit_s = job_limit_s < 0 ? -1 : MAX(job_limit_s - MAX(before_s, 0), 1);
        words.what_case = STEP_ORDER__WHAT_LIMIT;
        words.limit = &limit;
        step_proc_order(proc, &words);
    }
}

void steps_kill(struct agent *agent, const struct attempt *held, unsigned wait_s, JobState why)
{
    for (size_t i = agent->steps->procs.len; i-- > 0;) {
        struct step_proc *proc = agent->steps->procs.items[i];
        if (is_of(proc, held))
            step_proc_kill(proc, wait_s, why);
    }
    for (size_t i = agent->steps->runs.len; i-- > 0;) {
        struct step_run *run = agent->steps->runs.items[i];
        struct err err = { 0 };
        if (run->job != held->job || run->attempt != held->attempt || !run->waiting)
            continue;
        err_code(&err, ERR_ALREADY_DONE);
        step_run_fail(run, &err);
        i = MIN(i, agent->steps->runs.len);
    }
}

static bool is_gone(const Allocation *nodes, const char *name)
{
    for (size_t i = 0; nodes && i < nodes->n_nodes; i++) {
        if (str_eq(nodes->nodes[i]->node, name))
            return nodes->nodes[i]->left;
    }
    return true;
}

/* A spare has taken the place of a node: steps that were there begin anew, on the nodes there are now. */
void steps_end_lost(struct agent *agent, const struct attempt *held)
{
    const Grant *grant = held->grant;

    if (!grant->spec || !grant->spec->spare_nodes || grant->spec->no_kill)
        return;
    for (size_t i = agent->steps->procs.len; i-- > 0;) {
        struct step_proc *proc = agent->steps->procs.items[i];
        bool lost = false;
        for (size_t k = 0; is_of(proc, held) && proc->layout && k < proc->layout->n_nodes; k++)
            lost = lost || is_gone(grant->allocation, proc->layout->nodes[k]->name);
        if (lost)
            step_proc_kill(proc, step_kill_wait_s(agent), JOB_NODE_FAIL);
    }
}

void steps_signal(struct agent *agent, const struct attempt *held, const SignalJob *order)
{
    StepOrder words = STEP_ORDER__INIT;
    StepSignal signal_words = STEP_SIGNAL__INIT;

    signal_words.has_signal = signal_words.has_full = true;
    signal_words.signal = order->signal;
    signal_words.full = order->full;
    signal_words.text = order->text;
    words.what_case = STEP_ORDER__WHAT_SIGNAL;
    words.signal = &signal_words;
    for (size_t i = agent->steps->procs.len; i-- > 0;) {
        struct step_proc *proc = agent->steps->procs.items[i];
        if (!is_of(proc, held) || (order->has_step && proc->step != order->step))
            continue;
        if (order->signal == SIGKILL && order->has_step)
            step_proc_kill(proc, step_kill_wait_s(agent), JOB_CANCELLED);
        else
            step_proc_order(proc, &words);
    }
}

void steps_close(struct agent *agent)
{
    struct steps *steps = agent->steps;
    struct err err = { 0 };

    if (!steps) /* a login host that has not joined yet */
        return;
    step_ports_close(agent);
    err_code(&err, ERR_SHUTTING_DOWN);
    step_queries_close(agent);
    while (steps->runs.len)
        step_run_fail(steps->runs.items[steps->runs.len - 1], &err);
    while (steps->procs.len) {
        struct step_proc *proc = steps->procs.items[steps->procs.len - 1];
        if (proc->chan)
            stepd_close(TAKE(proc->chan));
        step_proc_free(proc);
    }
    step_reports_close(agent);
    map_each (entry, &steps->books) {
        uint64_t key = entry->num;
        step_book_forget(agent, (uint32_t)(key >> 32), (uint32_t)key, false);
    }
    map_done(&steps->books);
    vec_done(&steps->runs);
    vec_done(&steps->procs);
    free(TAKE(agent->steps));
}
