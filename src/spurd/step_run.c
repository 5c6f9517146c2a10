/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_run.c - NodeAccess.RunStep: the streams of srun and what goes through them
 *
 * (1) Who asks for a step is the job's owner or root, by a token or by the node's socket. Who launches
 *     one shows the managing node's proof of its layout; nothing outside the grant held here runs.
 * (2) Frames go through as they are. A srun that reads slowly stops our reading from the supervisor,
 *     which stops reading from the tasks; standard input is bounded by the supervisor's credit.
 * (3) A run ends when its tasks are gone and srun has said its last word, or is gone itself: its tasks
 *     are then ended. The share of the allocation goes with it.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "spurd/step.h"
#include "sys/files.h"
#include "sys/log.h"

/* ---- the end of a run ---- */

static void run_free(struct step_run *run)
{
    struct steps *steps = run->agent->steps;

    for (size_t i = steps->runs.len; i-- > 0;) {
        if (steps->runs.items[i] == run)
            vec_remove(&steps->runs, i);
    }
    step_book_leave(run);
    if (run->layout)
        step_layout__free_unpacked(run->layout, NULL);
    free(run->nodes);
    free(run);
}

/* The call is answered; the run stays while its tasks live. */
static void answer(struct step_run *run, const struct err *err)
{
    struct rpc_call *call = TAKE(run->call);

    if (!call)
        return;
    rpc_call_set_data(call, NULL);
    if (err)
        rpc_fail(call, err);
    else
        rpc_end(call);
}

void step_run_settle(struct step_run *run)
{
    if (run->chan)
        return;
    if (run->call && !run->half_done && !(run->over && !run->manages))
        return;
    answer(run, NULL);
    run_free(run);
}

void step_run_fail(struct step_run *run, const struct err *err)
{
    answer(run, err);
    step_run_settle(run);
}

void step_run_send(struct step_run *run, RunStepOut *out)
{
    if (!run->call)
        return;
    rpc_send(run->call, &out->base);
    if (!rpc_writable(run->call) && run->chan && !run->paused) { /* (2) */
        run->paused = true;
        stepd_pause(run->chan, true);
    }
}

/* ---- the supervisor ---- */

static void tasks_gone(struct step_run *run)
{
    struct held *held = held_find(&run->agent->table, run->job, run->attempt);

    run->chan = NULL;
    if (held && held->steps)
        held->steps--;
    struct agent *agent = run->agent;
    step_run_settle(run);
    if (held)
        agent_advance(agent, held);
}

static void on_news(void *ctx, void *owner, const StepNews *news)
{
    struct step_run *run = owner;

    (void)ctx;
    if (news->srun) {
        run->over = run->over || news->srun->what_case == RUN_STEP_OUT__WHAT_OVER;
        step_run_send(run, news->srun);
    } else if (news->ended || news->already) { /* the zygote could not start it */
        RunStepOut out = RUN_STEP_OUT__INIT;
        StepOver over = STEP_OVER__INIT;
        over.has_launch_failed = over.launch_failed = true;
        over.text = news->ended ? news->ended->text : NULL;
        out.what_case = RUN_STEP_OUT__WHAT_OVER;
        out.over = &over;
        run->over = true;
        step_run_send(run, &out);
    }
}

static void on_lost(void *ctx, void *owner)
{
    struct step_run *run = owner;

    (void)ctx;
    if (!run->over) {
        struct err err = { 0 };
        err_set(&err, ERR_IO, "the supervisor of step %u.%u on %s died", run->job, run->step,
                run->agent->name);
        log_error("step.lost", "job=%u step=%u", run->job, run->step);
        answer(run, &err);
    }
    log_debug("step.gone", "job=%u step=%u", run->job, run->step);
    tasks_gone(run);
}

static const struct step_chan_ops chan_ops = { on_news, on_lost };

/* ---- what srun says ---- */

static bool is_owner(const struct rpc_call *call, const JobOwner *owner)
{
    const struct rpc_identity *who = rpc_call_identity(call);

    return who->has_uid && (who->uid == owner->uid || who->uid == 0);
}

static void on_request(struct step_run *run, const StepRequest *request)
{
    struct held *held = held_other(&run->agent->table, request->job_id, 0);
    struct err err = { 0 };

    if (run->waiting || run->manages || run->launched)
        err_code(&err, ERR_BAD_MESSAGE);
    else if (!held || !held->grant || !held->grant->owner || !held->grant->allocation)
        err_code(&err, ERR_INVALID_JOB_ID);
    else if (!is_owner(run->call, held->grant->owner)) /* (1) */
        err_code(&err, ERR_PERMISSION);
    else if (held->revoked || !held->ready)
        err_code(&err, ERR_ALREADY_DONE);
    else if (!str_eq(held->grant->manager, run->agent->name))
        err_set(&err, ERR_INVALID, "node %s does not manage job %u, %s does", run->agent->name,
                held->job, held->grant->manager);
    if (err.code) {
        step_run_fail(run, &err);
        return;
    }
    run->job = held->job;
    run->attempt = held->attempt;
    step_book_ask(run, request);
}

static bool proved(const Grant *grant, const StepLaunch *launch)
{
    uint8_t proof[STEP_PROOF_BYTES], differs = 0;

    if (!grant->has_step_key || grant->step_key.len == 0 || launch->proof.len != sizeof(proof))
        return false;
    step_prove(grant, launch->layout.data, launch->layout.len, proof);
    for (size_t i = 0; i < sizeof(proof); i++)
        differs |= proof[i] ^ launch->proof.data[i];
    return differs == 0;
}

static int launch(struct step_run *run, const StepLaunch *launch, struct err *err)
{
    StepLayout *layout = step_layout__unpack(NULL, launch->layout.len, launch->layout.data);
    const StepId *id = layout ? layout->id : NULL;
    struct held *held = id ? held_find(&run->agent->table, id->job_id, id->attempt) : NULL;
    struct arena arena;
    StepTask task;
    int ret = 0;

    arena_init(&arena);
    if (run->launched)
        ret = err_code(err, ERR_BAD_MESSAGE);
    else if (!held || !held->grant || !held->ready || held->revoked)
        ret = err_code(err, ERR_CREDENTIAL_REVOKED);
    else if (!proved(held->grant, launch)) /* (1) */
        ret = err_code(err, ERR_CREDENTIAL);
    else
        ret = step_task(run->agent, held, launch, layout, &arena, &task, err);
    if (ret == 0) {
        run->job = id->job_id;
        run->attempt = id->attempt;
        run->step = id->step;
        run->chan = stepd_launch_as(run->agent->stepd, &task, &chan_ops, run, err);
        ret = run->chan ? 0 : -(int)err->code;
    }
    if (ret == 0) {
        run->launched = true;
        held->steps++;
    }
    arena_done(&arena);
    if (layout)
        step_layout__free_unpacked(layout, NULL);
    return ret;
}

/* Data, signals and sizes go to the supervisor as they are. */
static void pass_on(struct step_run *run, const RunStepIn *in)
{
    StepOrder order = STEP_ORDER__INIT;

    if (!run->chan)
        return;
    order.what_case = STEP_ORDER__WHAT_SRUN;
    order.srun = (RunStepIn *)in;
    if (in->what_case == RUN_STEP_IN__WHAT_DATA && in->data->data.len > STEP_DATA_MAX) {
        struct err err = { 0 };
        err_code(&err, ERR_TOO_LARGE);
        answer(run, &err);
        stepd_close(run->chan);
        tasks_gone(run);
        return;
    }
    stepd_order(run->chan, &order);
}

static void on_message(struct rpc_call *call, const ProtobufCMessage *message)
{
    const RunStepIn *in = (const void *)message;
    struct step_run *run = rpc_call_data(call);
    struct err err = { 0 };

    if (!run)
        return;
    switch (in->what_case) {
    case RUN_STEP_IN__WHAT_REQUEST:
        on_request(run, in->request);
        break;
    case RUN_STEP_IN__WHAT_LAUNCH:
        if (launch(run, in->launch, &err) < 0)
            step_run_fail(run, &err);
        break;
    case RUN_STEP_IN__WHAT_DATA:
    case RUN_STEP_IN__WHAT_SIGNAL:
    case RUN_STEP_IN__WHAT_WINDOW:
        pass_on(run, in);
        break;
    default:
        break;
    }
}

static void on_half_close(struct rpc_call *call)
{
    struct step_run *run = rpc_call_data(call);

    if (!run)
        return;
    run->half_done = true;
    step_run_settle(run);
}

static void on_writable(struct rpc_call *call)
{
    struct step_run *run = rpc_call_data(call);

    if (!run || !run->paused)
        return;
    run->paused = false;
    if (run->chan)
        stepd_pause(run->chan, false);
}

static void order_kill(struct step_run *run, unsigned wait_s, JobState why)
{
    StepOrder order = STEP_ORDER__INIT;
    StepKill words = STEP_KILL__INIT;

    words.has_kill_wait_s = words.has_state = true;
    words.kill_wait_s = wait_s;
    words.state = why;
    order.what_case = STEP_ORDER__WHAT_KILL;
    order.kill = &words;
    stepd_order(run->chan, &order);
}

/* srun is gone (3). */
static void on_cancel(struct rpc_call *call)
{
    struct step_run *run = rpc_call_data(call);
    const Config *config;

    if (!run) {
        rpc_end(call);
        return;
    }
    config = agent_common(run->agent);
    answer(run, NULL);
    if (run->chan) {
        if (run->paused)
            stepd_pause(run->chan, false);
        run->paused = false;
        order_kill(run, config && config->has_kill_wait_s ? config->kill_wait_s : TASK_KILL_WAIT_S,
                   JOB_CANCELLED);
    }
    step_run_settle(run);
}

static const struct rpc_watch watch = { .on_message = on_message,
                                        .on_half_close = on_half_close,
                                        .on_writable = on_writable,
                                        .on_cancel = on_cancel };

static void on_run_step(struct rpc_call *call, const ProtobufCMessage *message)
{
    struct agent *agent = rpc_call_ctx(call);
    struct err err = { 0 };

    (void)message;
    if (agent->steps->runs.len >= STEP_RUNS_MAX || agent->stopping) {
        err_set(&err, ERR_TOO_MANY, "steps on this node");
        rpc_fail(call, &err);
        return;
    }
    struct step_run *run = NEW(struct step_run);
    run->agent = agent;
    run->call = call;
    vec_push(&agent->steps->runs, run);
    rpc_call_set_data(call, run);
    rpc_watch(call, &watch);
}

const struct rpc_method step_methods[] = {
    { "/spur.NodeAccess/RunStep", RPC_ANON | RPC_USER, false, RPC_BIDI, &run_step_in__descriptor,
      &run_step_out__descriptor, on_run_step, 0 },
};
const size_t step_method_count = ARRAY_LEN(step_methods);

/* ---- for the agent ---- */

static bool is_of(const struct step_run *run, const struct held *held)
{
    return run->job == held->job && run->attempt == held->attempt;
}

void steps_order(struct agent *agent, const struct held *held, const StepOrder *order)
{
    for (size_t i = agent->steps->runs.len; i-- > 0;) {
        struct step_run *run = agent->steps->runs.items[i];
        if (is_of(run, held) && run->chan)
            stepd_order(run->chan, order);
    }
}

void steps_kill(struct agent *agent, const struct held *held, unsigned wait_s, JobState why)
{
    for (size_t i = agent->steps->runs.len; i-- > 0;) {
        struct step_run *run = agent->steps->runs.items[i];
        struct err err = { 0 };
        if (!is_of(run, held))
            continue;
        if (run->chan) {
            order_kill(run, wait_s, why);
        } else if (run->waiting) {
            err_code(&err, ERR_ALREADY_DONE);
            step_run_fail(run, &err);
            i = MIN(i, agent->steps->runs.len);
        }
    }
}

void steps_signal(struct agent *agent, const struct held *held, uint32_t signal, bool one,
                  uint32_t step)
{
    StepOrder order = STEP_ORDER__INIT;
    StepSignal words = STEP_SIGNAL__INIT;

    words.has_signal = true;
    words.signal = signal;
    order.what_case = STEP_ORDER__WHAT_SIGNAL;
    order.signal = &words;
    for (size_t i = agent->steps->runs.len; i-- > 0;) {
        struct step_run *run = agent->steps->runs.items[i];
        if (!is_of(run, held) || !run->chan || (one && run->step != step))
            continue;
        if (signal == SIGKILL && one)
            order_kill(run, TASK_KILL_WAIT_S, JOB_CANCELLED);
        else
            stepd_order(run->chan, &order);
    }
}

bool steps_left_behind(const struct agent *agent, uint32_t job, uint32_t attempt)
{
    CLEANUP(freep) char *path = mem_printf("%s/steps", agent->run_dir);
    char prefix[32];
    bool found = false;
    DIR *dir = opendir(path);
    struct dirent *item;

    snprintf(prefix, sizeof(prefix), "%u.%u.", job, attempt);
    while (dir && (item = readdir(dir))) {
        if (!str_starts(item->d_name, prefix))
            continue;
        CLEANUP(freep) char *one = mem_printf("%s/%s", path, item->d_name);
        if (stepd_look(one) == STEPD_ALIVE)
            found = true;
        else
            rmdir(one);
    }
    if (dir)
        closedir(dir);
    return found;
}

int steps_open(struct agent *agent, struct err *err)
{
    CLEANUP(freep) char *run = mem_printf("%s/steps", agent->run_dir);
    CLEANUP(freep) char *spool = mem_printf("%s/steps", agent->spool_dir);

    agent->steps = NEW(struct steps);
    map_init(&agent->steps->books);
    if (file_make_dirs(run, 0711, err) < 0 || file_make_dirs(spool, 0700, err) < 0)
        return -(int)err->code;
    return 0;
}

void steps_close(struct agent *agent)
{
    struct steps *steps = agent->steps;

    if (!steps)
        return;
    while (steps->runs.len) {
        struct step_run *run = steps->runs.items[steps->runs.len - 1];
        struct err err = { 0 };
        err_code(&err, ERR_SHUTTING_DOWN);
        if (run->chan)
            stepd_close(TAKE(run->chan));
        answer(run, &err);
        run_free(run);
    }
    map_each (entry, &steps->books) {
        uint64_t key = entry->num;
        step_book_forget(agent, (uint32_t)(key >> 32), (uint32_t)key, false);
    }
    map_done(&steps->books);
    vec_done(&steps->runs);
    free(TAKE(agent->steps));
}
