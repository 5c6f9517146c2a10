/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_link.c - streams meet supervisors: a launch, an attachment, what goes through, the parting
 */
#include <stdlib.h>
#include <string.h>

#include "spurd/step/step.h"
#include "spurd/task/stepd.h"
#include "sys/clock.h"

/* CPUs and memory, with those of the steps that run and do not overlap, within the grant. */
static int check_fits(const struct agent *agent, const struct attempt *held,
                      const StepLayout *layout, struct err *err)
{
    const StepNode *here = step_layout_here(layout, agent->name);
    const NodeAlloc *alloc = held->grant->alloc;
    uint64_t cpus = 0, mem_mb = 0;

    if (!here)
        return err_set(err, ERR_INVALID, "the step has no tasks on node %s", agent->name);
    if (!str_eq(layout->manager, held->grant->manager))
        return err_set(err, ERR_CREDENTIAL, "node %s does not manage job %u",
                       layout->manager ? layout->manager : "", held->job);
    if (step_proc_find(agent, held->job, held->attempt, layout->id->step))
        return err_set(err, ERR_INVALID, "step %u.%u runs already", held->job, layout->id->step);
    for (size_t i = 0; i < agent->steps->procs.len && !layout->overlap; i++) {
        const struct step_proc *proc = agent->steps->procs.items[i];
        const StepNode *other = proc->layout ? step_layout_here(proc->layout, agent->name) : NULL;
        if (proc->job != held->job || proc->attempt != held->attempt || proc->ended || !other ||
            proc->layout->overlap)
            continue;
        cpus += other->cpus;
        mem_mb += other->mem_mb;
    }
    if (here->cpus + cpus > MAX(alloc->cpus, 1))
        return err_set(err, ERR_TOO_MANY_CPUS, "step %u.%u wants %u CPUs of node %s, %llu are left",
                       held->job, layout->id->step, here->cpus, agent->name,
                       (unsigned long long)(MAX(alloc->cpus, 1) - MIN(cpus, alloc->cpus)));
    if (alloc->mem_mb && here->mem_mb + mem_mb > alloc->mem_mb)
        return err_code(err, ERR_TASK_MEMORY);
    return 0;
}

int step_proc_launch(struct step_run *run, const StepLaunch *launch, struct err *err)
{
    struct agent *agent = run->agent;
    struct attempt *held = attempt_find(&agent->table, run->job, run->attempt);
    StepLayout *layout = step_layout__unpack(NULL, launch->layout.len, launch->layout.data);
    struct step_chan *chan = NULL;
    struct arena arena;
    StepTask task;

    arena_init(&arena);
    struct step_proc *proc = step_proc_new(agent, run->job, run->attempt, UINT32_MAX);
    if (check_fits(agent, held, layout, err) == 0 &&
        step_task(agent, held, launch, layout, &arena, &task, err) == 0)
        chan = stepd_launch_as(agent->stepd, &task, &step_proc_ops, proc, err);
    step_layout__free_unpacked(layout, NULL);
    arena_done(&arena);
    if (!chan) {
        step_proc_free(proc);
        return -(int)err->code;
    }
    proc->step = run->step;
    proc->chan = chan;
    proc->run = run;
    run->proc = proc;
    step_proc_set_layout(proc, &launch->layout);
    proc->launched_us = clock_wall_us();
    step_report_started(proc);
    step_proc_count(proc, true);
    step_ports_release(agent, run->job, run->attempt, run->step); /* it has them now */
    return 0;
}

void step_proc_attach(struct step_proc *proc, struct step_run *run, const StepAttach *attach)
{
    RunStepIn in = RUN_STEP_IN__INIT;
    StepAttach words = STEP_ATTACH__INIT;
    struct err err = { 0 };

    if (!proc->chan) { /* it is being looked for: srun tries again */
        err_set(&err, ERR_CONNECTION_LOST, "step %u.%u is not reached yet", proc->job, proc->step);
        step_run_fail(run, &err);
        return;
    }
    if (run->watches) {
        vec_push(&proc->watchers, run);
    } else {
        struct step_run *before = proc->run;
        if (before) { /* a stream that has not noticed that it is broken */
            before->proc = NULL;
            proc->run = NULL;
            err_set(&err, ERR_CONNECTION_LOST, "srun attached again");
            step_run_fail(before, &err);
        }
        proc->run = run;
        uv_timer_stop(proc->timer);
    }
    run->proc = proc;
    words.has_seen = true;
    words.seen = attach->seen;
    in.what_case = RUN_STEP_IN__WHAT_ATTACH;
    in.attach = &words;
    step_proc_pass(proc, run, &in);
    step_proc_writable(proc);
}

void step_proc_detach(struct step_proc *proc, struct step_run *run)
{
    run->proc = NULL;
    for (size_t i = proc->watchers.len; i-- > 0;) {
        if (proc->watchers.items[i] == run)
            vec_remove(&proc->watchers, i);
    }
    if (proc->run == run) {
        proc->run = NULL;
        if (run->half_done && proc->over_seq) /* it said its last word after the last frame */
            step_proc_dismiss(proc);
        else if (!proc->agent->stopping && !proc->dismissed)
            step_proc_wait(proc, STEP_AWAY_MS);
    }
    if (!proc->agent->stopping)
        step_proc_writable(proc);
}

void step_proc_pass(struct step_proc *proc, struct step_run *run, const RunStepIn *in)
{
    StepOrder words = STEP_ORDER__INIT;
    RunStepIn copy = *in;

    copy.has_from = run->watches;
    copy.from = run->watches ? run->number : 0;
    if (run->watches && in->what_case != RUN_STEP_IN__WHAT_DATA &&
        in->what_case != RUN_STEP_IN__WHAT_ATTACH)
        return; /* who only watches neither signals nor acknowledges */
    words.what_case = STEP_ORDER__WHAT_SRUN;
    words.srun = &copy;
    step_proc_order(proc, &words);
    if (in->what_case == RUN_STEP_IN__WHAT_ACK && proc->over_seq && in->ack >= proc->over_seq) {
        run->over = true;
        step_proc_dismiss(proc);
        step_run_settle(run);
    }
}
