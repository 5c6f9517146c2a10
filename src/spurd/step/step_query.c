/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_query.c - NodeAccess.JobSteps: layouts, processes and usage of steps
 *
 * Who asks is the job's owner or root; or shows the managing node's proof of a step's layout, which the
 * managing node gives to its owner, and is told of that step only. Usage is asked of the supervisors
 * themselves; one that does not answer in time is left out.
 */
#include <stdlib.h>
#include <string.h>

#include "spurd/access/access.h"
#include "spurd/step/step.h"
#include "spurd/task/stepd.h"
#include "spurd/task/task.h"
#include "wire/pb_unpack.h"

enum { WAIT_MS = 2000, STEPS_MAX = 4096 };

struct query {
    struct agent *agent;
    struct rpc_call *call;
    JobStepsReply reply;
    struct arena arena;
    uv_timer_t *timer;
    bool *asked; /* whose sample is awaited */
    size_t left;
};

static void free_handle(uv_handle_t *handle)
{
    free(handle);
}

static void finish(struct query *query, bool answer)
{
    struct steps *steps = query->agent->steps;
    struct rpc_call *call = query->call;
    struct err err = { 0 };

    for (size_t i = steps->queries.len; i-- > 0;) {
        if (steps->queries.items[i] == query)
            vec_remove(&steps->queries, i);
    }
    if (query->timer) {
        uv_timer_stop(query->timer);
        uv_close((uv_handle_t *)query->timer, free_handle);
    }
    if (answer) {
        rpc_reply(call, &query->reply.base);
    } else {
        err_code(&err, ERR_SHUTTING_DOWN);
        rpc_fail(call, &err);
    }
    arena_done(&query->arena);
    free(query);
}

static void on_late(uv_timer_t *timer)
{
    finish(timer->data, true);
}

static StepHere *find_step(const JobStepsReply *reply, uint32_t job, uint32_t step)
{
    for (size_t i = 0; i < reply->n_steps; i++) {
        if (reply->steps[i]->id->job_id == job && reply->steps[i]->id->step == step)
            return reply->steps[i];
    }
    return NULL;
}

static StepHere *add_step(struct query *query, uint32_t job, uint32_t attempt, uint32_t step,
                          char *name)
{
    StepHere *here = find_step(&query->reply, job, step);

    if (!here) {
        here = ARENA_NEW(&query->arena, StepHere);
        step_here__init(here);
        here->id = ARENA_NEW(&query->arena, StepId);
        step_id__init(here->id);
        here->id->has_job_id = here->id->has_attempt = here->id->has_step = true;
        here->id->job_id = job;
        here->id->attempt = attempt;
        here->id->step = step;
        here->name = name;
        query->reply.steps[query->reply.n_steps++] = here;
    }
    here->has_here = here->here = true;
    return here;
}

/* The supervisor says what is used; the answer waits for it. */
static void ask_sample(struct query *query, const StepHere *here, struct step_chan *chan)
{
    StepOrder order = STEP_ORDER__INIT;
    StepSample words = STEP_SAMPLE__INIT;

    order.what_case = STEP_ORDER__WHAT_SAMPLE;
    order.sample = &words;
    for (size_t i = 0; i < query->reply.n_steps; i++) {
        if (query->reply.steps[i] == here && chan && stepd_order(chan, &order)) {
            query->asked[i] = true;
            query->left++;
        }
    }
}

static void add_job(struct query *query, const struct attempt *held, const JobStepsRequest *request,
                    bool by_proof)
{
    struct agent *agent = query->agent;
    char batch[] = "batch";

    if (!by_proof && held->grant && str_eq(held->grant->manager, agent->name))
        step_book_list(agent, held, request->has_step, request->step, &query->arena, &query->reply);
    if (!by_proof && held->chan && !held->ended && held->running &&
        (!request->has_step || request->step == TASK_STEP_BATCH)) {
        StepHere *here = add_step(query, held->job, held->attempt, TASK_STEP_BATCH,
                                  arena_strdup(&query->arena, batch));
        if (request->usage)
            ask_sample(query, here, held->chan);
    }
    for (size_t i = 0; i < agent->steps->procs.len && query->reply.n_steps < STEPS_MAX; i++) {
        struct step_proc *proc = agent->steps->procs.items[i];
        if (proc->job != held->job || proc->attempt != held->attempt || proc->ended ||
            (request->has_step && request->step != proc->step))
            continue;
        StepHere *here = add_step(query, proc->job, proc->attempt, proc->step,
                                  proc->step == STEP_INTERACTIVE
                                      ? arena_strdup(&query->arena, "interactive")
                                      : arena_printf(&query->arena, "%u", proc->step));
        if (!here->has_layout && proc->packed.len) {
            here->has_layout = true;
            here->layout.len = proc->packed.len;
            here->layout.data = arena_copy(&query->arena, proc->packed.data, proc->packed.len);
        }
        if (request->usage)
            ask_sample(query, here, proc->chan);
    }
}

/* By a step's layout and its proof, without an identity. */
static bool add_proved(struct query *query, JobStepsRequest *request, struct err *err)
{
    StepLayout *layout = step_layout__unpack(NULL, request->layout.len, request->layout.data);
    const StepId *id = layout ? layout->id : NULL;
    struct attempt *held = id ? attempt_find(&query->agent->table, id->job_id, id->attempt) : NULL;

    if (!held || !held->grant || !step_is_proved(held->grant, &request->layout, &request->proof)) {
        err_code(err, ERR_CREDENTIAL);
    } else {
        request->has_step = true;
        request->step = id->step;
        add_job(query, held, request, true);
    }
    if (layout)
        step_layout__free_unpacked(layout, NULL);
    return err->code == 0;
}

static bool add_owned(struct query *query, const JobStepsRequest *request, struct err *err)
{
    struct agent *agent = query->agent;
    struct attempt *held = NULL;

    if (!request->has_job_id) {
        map_each (entry, &agent->table.held) {
            held = entry->value;
            if (step_is_owner(query->call, held))
                add_job(query, held, request, false);
        }
        return true;
    }
    held = attempt_other(&agent->table, request->job_id, 0);
    if (!held || !held->grant)
        err_code(err, ERR_INVALID_JOB_ID);
    else if (step_check_owner(query->call, held, err) == 0)
        add_job(query, held, request, false);
    return err->code == 0;
}

void step_on_query(struct rpc_call *call, const ProtobufCMessage *message)
{
    struct agent *agent = rpc_call_ctx(call);
    JobStepsRequest request = *(const JobStepsRequest *)(const void *)message;
    struct query *query = NEW(struct query);
    struct err err = { 0 };

    query->agent = agent;
    query->call = call;
    arena_init(&query->arena);
    job_steps_reply__init(&query->reply);
    query->reply.node = agent->name;
    query->reply.steps = ARENA_ARRAY(&query->arena, StepHere *, 2 * STEPS_MAX);
    query->asked = ARENA_ARRAY(&query->arena, bool, 2 * STEPS_MAX);
    vec_push(&agent->steps->queries, query);
    bool good =
        request.has_layout ? add_proved(query, &request, &err) : add_owned(query, &request, &err);
    if (!good) {
        vec_remove(&agent->steps->queries, agent->steps->queries.len - 1);
        arena_done(&query->arena);
        free(query);
        step_refused(call, "steps", request.job_id, &err);
        rpc_fail(call, &err);
    } else if (query->left == 0) {
        finish(query, true);
    } else {
        query->timer = NEW(uv_timer_t);
        uv_timer_init(agent->uv, query->timer);
        query->timer->data = query;
        uv_timer_start(query->timer, on_late, WAIT_MS, 0);
    }
}

static void copy_sample(struct query *query, StepHere *here, const StepHere *sample)
{
    size_t len = step_here__get_packed_size(sample);
    uint8_t *bytes = ARENA_ARRAY(&query->arena, uint8_t, len + 1);
    ProtobufCMessage *message = NULL;

    step_here__pack(sample, bytes);
    if (pb_unpack(&step_here__descriptor, &query->arena, bytes, len, &message, NULL) < 0)
        return;
    const StepHere *copy = (const StepHere *)(const void *)message;
    here->usage = copy->usage;
    here->n_tasks = copy->n_tasks;
    here->tasks = copy->tasks;
}

void step_query_sample(struct agent *agent, uint32_t job, uint32_t attempt, uint32_t step,
                       const StepHere *sample)
{
    for (size_t i = agent->steps->queries.len; i-- > 0;) {
        struct query *query = agent->steps->queries.items[i];
        StepHere *here = find_step(&query->reply, job, step);
        if (!here || here->id->attempt != attempt)
            continue;
        for (size_t k = 0; k < query->reply.n_steps; k++) {
            if (query->reply.steps[k] != here || !query->asked[k])
                continue;
            query->asked[k] = false;
            query->left--;
            copy_sample(query, here, sample);
        }
        if (query->left == 0)
            finish(query, true);
    }
}

void step_queries_close(struct agent *agent)
{
    while (agent->steps->queries.len)
        finish(agent->steps->queries.items[agent->steps->queries.len - 1], false);
    vec_done(&agent->steps->queries);
}
