/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_run.c - NodeAccess.RunStep: the streams of srun and sattach
 *
 * (1) Who asks for a step is the job's owner or root, by a token or by the node's socket. Who launches
 *     one or attaches to it shows the managing node's proof of its layout for this node.
 * (2) A stream that breaks ends nothing by itself: srun attaches again and goes on. Its step and its share
 *     of the allocation wait for it, a while.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "spurd/access/access.h"
#include "spurd/step/step.h"
#include "sys/files.h"
#include "sys/log.h"

static void run_free(struct step_run *run, bool for_good)
{
    struct steps *steps = run->agent->steps;

    for (size_t i = steps->runs.len; i-- > 0;) {
        if (steps->runs.items[i] == run)
            vec_remove(&steps->runs, i);
    }
    if (run->proc)
        step_proc_detach(run->proc, run);
    step_ask_leave(run, for_good);
    if (run->early)
        step_request__free_unpacked(run->early, NULL);
    free(run);
}

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
    bool idle = !run->proc || run->over;

    if (run->call && !(run->half_done && idle) && !(run->over && !run->share))
        return;
    answer(run, NULL);
    run_free(run, true);
}

void step_run_fail(struct step_run *run, const struct err *err)
{
    answer(run, err);
    run_free(run, true);
}

void step_run_send(struct step_run *run, const RunStepOut *out)
{
    if (run->call)
        rpc_send(run->call, &out->base);
}

/* ---- what it says ---- */

/* Plugins of this node prepare it for a job that the controller takes to run already. */
static bool is_early(const struct attempt *held)
{
    return !held->ready && held->hook && !held->revoked;
}

static void keep_early(struct step_run *run, const StepRequest *request)
{
    size_t len = step_request__get_packed_size(request);
    CLEANUP(freep) uint8_t *bytes = mem_new(len + 1);

    step_request__pack(request, bytes);
    run->early = step_request__unpack(NULL, len, bytes);
}

static void on_request(struct step_run *run, const StepRequest *request)
{
    struct attempt *held = attempt_other(&run->agent->table, request->job_id, 0);
    struct err err = { 0 };

    if (run->waiting || run->share || run->proc || run->early)
        err_code(&err, ERR_BAD_MESSAGE);
    else if (!held || !held->grant || !held->grant->owner || !held->grant->allocation)
        err_code(&err, ERR_INVALID_JOB_ID);
    else if (step_check_owner(run->call, held, &err) < 0) /* (1) */
        ;
    else if (is_early(held)) {
        keep_early(run, request);
        return;
    } else if (held->revoked || !held->ready || (held->ended && held->launched))
        err_code(&err, ERR_ALREADY_DONE);
    else if (!str_eq(held->grant->manager, run->agent->name))
        err_set(&err, ERR_INVALID, "node %s does not manage job %u, %s does", run->agent->name,
                held->job, held->grant->manager);
    if (err.code) {
        step_refused(run->call, "step", request->job_id, &err);
        step_run_fail(run, &err);
        return;
    }
    run->job = held->job;
    run->attempt = held->attempt;
    step_ask(run, request);
}

void steps_prepared(struct agent *agent, uint32_t job)
{
    for (size_t i = agent->steps->runs.len; i-- > 0;) {
        struct step_run *run = agent->steps->runs.items[i];
        if (!run->early || run->early->job_id != job)
            continue;
        StepRequest *request = TAKE(run->early);
        on_request(run, request);
        step_request__free_unpacked(request, NULL);
        i = MIN(i, agent->steps->runs.len);
    }
}

static uint32_t layout_job(const StepLayout *layout)
{
    return layout && layout->id ? layout->id->job_id : 0;
}

/* The attempt whose manager proved the layout (1). */
static struct attempt *proved_by(const struct step_run *run, const ProtobufCBinaryData *bytes,
                                 const ProtobufCBinaryData *proof, StepLayout **layout,
                                 struct err *err)
{
    *layout = step_layout__unpack(NULL, bytes->len, bytes->data);
    const StepId *id = *layout ? (*layout)->id : NULL;
    struct attempt *held = id ? attempt_find(&run->agent->table, id->job_id, id->attempt) : NULL;

    if (!held || !held->grant)
        err_code(err, ERR_CREDENTIAL_REVOKED);
    else if (!step_is_proved(held->grant, bytes, proof))
        err_set(err, ERR_CREDENTIAL,
                "Invalid job credential: not proved by node %s, which manages the job",
                held->grant->manager);
    return err->code ? NULL : held;
}

static void on_launch(struct step_run *run, const StepLaunch *launch)
{
    StepLayout *layout = NULL;
    struct err err = { 0 };
    struct attempt *held = proved_by(run, &launch->layout, &launch->proof, &layout, &err);

    if (run->proc)
        err_code(&err, ERR_BAD_MESSAGE);
    else if (held && (!held->ready || held->revoked))
        err_code(&err, ERR_CREDENTIAL_REVOKED);
    if (!err.code) {
        run->job = held->job;
        run->attempt = held->attempt;
        run->step = layout->id->step;
        step_proc_launch(run, launch, &err);
    } else {
        step_refused(run->call, "launch", layout_job(layout), &err);
    }
    if (layout)
        step_layout__free_unpacked(layout, NULL);
    if (err.code)
        step_run_fail(run, &err);
}

static void on_attach(struct step_run *run, const StepAttach *attach)
{
    StepLayout *layout = NULL;
    struct err err = { 0 };
    struct attempt *held = proved_by(run, &attach->layout, &attach->proof, &layout, &err);

    if (run->proc || run->share || run->waiting)
        err_code(&err, ERR_BAD_MESSAGE);
    if (err.code) {
        step_refused(run->call, "attach", layout_job(layout), &err);
    } else {
        run->job = held->job;
        run->attempt = held->attempt;
        run->step = layout->id->step;
        run->watches = attach->watch;
        struct step_proc *proc = step_proc_find(run->agent, run->job, run->attempt, run->step);
        bool has_tasks = step_layout_here(layout, run->agent->name);
        if (attach->manages && !attach->watch)
            step_ask_attach(run, attach);
        if (proc)
            step_proc_attach(proc, run, attach);
        else if (has_tasks)
            err_set(&err, ERR_NOT_FOUND, "step %u.%u does not run on %s", run->job, run->step,
                    run->agent->name);
    }
    if (layout)
        step_layout__free_unpacked(layout, NULL);
    if (err.code)
        step_run_fail(run, &err);
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
        on_launch(run, in->launch);
        break;
    case RUN_STEP_IN__WHAT_ATTACH:
        on_attach(run, in->attach);
        break;
    case RUN_STEP_IN__WHAT_RELAY:
    case RUN_STEP_IN__WHAT_DATA:
    case RUN_STEP_IN__WHAT_SIGNAL:
    case RUN_STEP_IN__WHAT_WINDOW:
    case RUN_STEP_IN__WHAT_ACK:
        if ((in->what_case == RUN_STEP_IN__WHAT_DATA && in->data->data.len > STEP_DATA_MAX) ||
            (in->what_case == RUN_STEP_IN__WHAT_RELAY && in->relay->data.len > STEP_DATA_MAX)) {
            err_code(&err, ERR_TOO_LARGE);
            step_run_fail(run, &err);
        } else if (run->proc) {
            step_proc_pass(run->proc, run, in);
        }
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

    if (run && run->proc)
        step_proc_writable(run->proc);
}

/* (2) */
static void on_cancel(struct rpc_call *call)
{
    struct step_run *run = rpc_call_data(call);

    if (!run) {
        rpc_end(call);
        return;
    }
    answer(run, NULL);
    run_free(run, false);
}

static const struct rpc_watch watch = { .on_message = on_message,
                                        .on_half_close = on_half_close,
                                        .on_writable = on_writable,
                                        .on_cancel = on_cancel };

/*
 * Nobody has to prove anything to open a stream, so those who have not asked for anything yet make room for others:
 * otherwise a stranger could stop all steps of this node. srun asks with its first bytes.
 */
static bool make_room(struct steps *steps)
{
    struct err err = { 0 };

    if (steps->runs.len < STEP_RUNS_MAX)
        return true;
    vec_each (struct step_run *, at, &steps->runs) {
        struct step_run *run = *at;
        if (run->job || run->waiting || run->early || run->share || run->proc)
            continue;
        err_set(&err, ERR_TOO_MANY, "steps on this node");
        step_run_fail(run, &err);
        return true;
    }
    return false;
}

static void on_run_step(struct rpc_call *call, const ProtobufCMessage *message)
{
    struct agent *agent = rpc_call_ctx(call);
    struct err err = { 0 };

    (void)message;
    if (agent->stopping || !agent->steps->recovered || !make_room(agent->steps)) {
        err_set(&err,
                agent->stopping           ? ERR_SHUTTING_DOWN
                : agent->steps->recovered ? ERR_TOO_MANY
                                          : ERR_CONNECTION_LOST,
                "steps on this node");
        rpc_fail(call, &err);
        return;
    }
    struct step_run *run = NEW(struct step_run);
    run->agent = agent;
    run->call = call;
    run->number = ++agent->steps->last_stream;
    vec_push(&agent->steps->runs, run);
    rpc_call_set_data(call, run);
    rpc_watch(call, &watch);
}

const struct rpc_method step_methods[] = {
    { "/spur.NodeAccess/RunStep", RPC_ANON | RPC_USER, false, RPC_BIDI, &run_step_in__descriptor,
      &run_step_out__descriptor, on_run_step, 0 },
    { "/spur.NodeAccess/JobSteps", RPC_ANON | RPC_USER, false, RPC_UNARY,
      &job_steps_request__descriptor, &job_steps_reply__descriptor, step_on_query, 0 },
    { "/spur.NodeAccess/HoldPorts", RPC_ANON | RPC_USER, false, RPC_UNARY,
      &hold_ports_request__descriptor, &hold_ports_reply__descriptor, step_on_hold_ports, 0 },
};
const size_t step_method_count = ARRAY_LEN(step_methods);

/* ---- for the agent ---- */

int steps_open(struct agent *agent, const struct steps_ops *ops, struct err *err)
{
    CLEANUP(freep) char *run = mem_printf("%s/steps", agent->run_dir);
    CLEANUP(freep) char *book = mem_printf("%s/book", agent->run_dir);
    CLEANUP(freep) char *spool = mem_printf("%s/steps", agent->spool_dir);

    agent->steps = NEW(struct steps);
    agent->steps->ops = ops;
    map_init(&agent->steps->books);
    if (file_make_dirs(run, 0711, err) < 0 || file_make_dirs(book, 0700, err) < 0 ||
        file_make_dirs(spool, 0700, err) < 0)
        return -(int)err->code;
    step_reports_open(agent);
    return 0;
}
