/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_steps.c - steps of jobs, as nodes report them
 *
 * (1) What runs is soft state of the leader: the first node of a step says it, and says it again to
 *     whoever leads next. Nothing depends on it but what people are shown: a signal goes to all nodes
 *     of the job, because a step that has just begun is known there and not yet here.
 * (2) Parts of steps that ended go into the log, many in one command, and are acknowledged when they are
 *     committed: from there the journal has them. A part may come twice, with the same key.
 * (3) A node speaks of the jobs it has a part of, and of no others.
 * (4) That a step began goes into the log too, for the journal: a moment later, with others, and only if it still
 *     runs, because its end says when it began. Not again when a node says hello: those that began under an earlier
 *     leader were told by it.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/job.h"
#include "core/level.h"
#include "core/query.h"
#include "core/state.h"
#include "spurctld/ctl/ctl_priv.h"
#include "sys/log.h"

enum { JOB_STEPS_MAX = 40000, NOTIFY_BYTES = 512, BEGUN_US = 250000 };

struct running {
    char *node; /* that said so */
    StepInfo *info;
};

struct job_steps {
    uint32_t attempt;
    VEC(struct running) list; /* in order of their numbers */
};

static void running_done(struct running *running)
{
    free(running->node);
    step_info__free_unpacked(running->info, NULL);
}

static void job_steps_free(struct job_steps *steps)
{
    vec_each (struct running, running, &steps->list)
        running_done(running);
    vec_done(&steps->list);
    free(steps);
}

void ctl_steps_gone(struct ctl *ctl, uint32_t job_id)
{
    struct job_steps *steps = map_del_num(&ctl->steps, job_id);

    if (steps)
        job_steps_free(steps);
}

void ctl_steps_done(struct ctl *ctl)
{
    map_each (entry, &ctl->steps)
        job_steps_free(entry->value);
    map_done(&ctl->steps);
    vec_done(&ctl->steps_begun);
}

/* (3) */
static const struct job *job_of(const struct ctl *ctl, const char *node, const StepId *id)
{
    const struct job *job = id ? state_job(ctl->state, id->job_id) : NULL;

    if (!job || !job->run || job->attempt != id->attempt)
        return NULL;
    for (size_t i = 0; i < job->run->count; i++) {
        if (strcmp(job->run->parts[i].name, node) == 0)
            return job;
    }
    return NULL;
}

static size_t place_of(const struct job_steps *steps, uint32_t step)
{
    size_t at = steps->list.len;

    while (at > 0 && steps->list.items[at - 1].info->id->step >= step)
        at--;
    return at;
}

/* True: nobody had said so before. */
static bool put_running(struct ctl *ctl, const struct agent *agent, const StepInfo *info)
{
    const struct job *job = job_of(ctl, agent->name, info->id);
    struct job_steps *steps = map_get_num(&ctl->steps, info->id ? info->id->job_id : 0);

    if (!job || job_has_ended(job))
        return false;
    if (steps && steps->attempt != info->id->attempt) {
        ctl_steps_gone(ctl, job->id);
        steps = NULL;
    }
    if (!steps) {
        steps = NEW(struct job_steps);
        steps->attempt = info->id->attempt;
        map_put_num(&ctl->steps, job->id, steps);
    }
    size_t len = step_info__get_packed_size(info), at = place_of(steps, info->id->step);
    CLEANUP(freep) uint8_t *bytes = mem_new(len + 1);
    step_info__pack(info, bytes);
    struct running fresh = { mem_strdup(agent->name), step_info__unpack(NULL, len, bytes) };
    if (at < steps->list.len && steps->list.items[at].info->id->step == info->id->step) {
        running_done(&steps->list.items[at]);
        steps->list.items[at] = fresh;
        return false;
    }
    if (steps->list.len >= JOB_STEPS_MAX) {
        running_done(&fresh);
        return false;
    }
    vec_push(&steps->list, fresh);
    memmove(steps->list.items + at + 1, steps->list.items + at,
            (steps->list.len - 1 - at) * sizeof(fresh));
    steps->list.items[at] = fresh;
    return true;
}

/* The node that said that it runs says that it does not any more. */
static void drop_running(struct ctl *ctl, const struct agent *agent, const StepId *id)
{
    struct job_steps *steps = map_get_num(&ctl->steps, id->job_id);

    if (!steps || steps->attempt != id->attempt)
        return;
    size_t at = place_of(steps, id->step);
    if (at == steps->list.len || steps->list.items[at].info->id->step != id->step ||
        strcmp(steps->list.items[at].node, agent->name) != 0)
        return;
    running_done(&steps->list.items[at]);
    vec_remove(&steps->list, at);
    if (steps->list.len == 0)
        ctl_steps_gone(ctl, id->job_id);
}

static void drop_all_of(struct ctl *ctl, const struct agent *agent)
{
    VEC(uint32_t) empty = { 0 };

    map_each (entry, &ctl->steps) {
        struct job_steps *steps = entry->value;
        for (size_t i = steps->list.len; i-- > 0;) {
            if (strcmp(steps->list.items[i].node, agent->name) != 0)
                continue;
            running_done(&steps->list.items[i]);
            vec_remove(&steps->list, i);
        }
        if (steps->list.len == 0)
            vec_push(&empty, (uint32_t)entry->num);
    }
    vec_each (uint32_t, job_id, &empty)
        ctl_steps_gone(ctl, *job_id);
    vec_done(&empty);
}

/* ---- what ended (2) ---- */

struct batch {
    char *node;
    uint64_t number; /* of the last part */
};

static void batch_done(struct ctl *ctl, void *arg, const struct events *events,
                       const struct err *err)
{
    struct batch *batch = arg;
    struct agent *agent = ctl_agent(ctl, batch->node);
    CtlMessage message = CTL_MESSAGE__INIT;
    AckSteps ack = ACK_STEPS__INIT;

    (void)events;
    if (!err && agent && agent->session) {
        ack.has_number = true;
        ack.number = batch->number;
        message.what_case = CTL_MESSAGE__WHAT_STEPS;
        message.steps = &ack;
        ctl_send(ctl, agent, &message);
    }
    free(batch->node);
    free(batch);
}

static void propose_parts(struct ctl *ctl, const struct agent *agent, const StepsReport *report)
{
    CmdSteps steps = CMD_STEPS__INIT;
    Command command = CTL_COMMAND(STEPS, .steps = &steps);
    StepPart **parts = NEW_ARRAY(StepPart *, report->n_ended + 1);
    StepPart *copies = NEW_ARRAY(StepPart, report->n_ended + 1);
    struct batch *batch = NEW(struct batch);

    batch->node = mem_strdup(agent->name);
    for (size_t i = 0; i < report->n_ended; i++) {
        StepPart *part = &copies[i];
        *part = *report->ended[i];
        batch->number = MAX(batch->number, part->number);
        if (!part->id)
            continue;
        part->node = agent->name; /* (3), and not what it calls itself */
        drop_running(ctl, agent, part->id);
        parts[steps.n_parts++] = part;
    }
    steps.parts = parts;
    ctl_propose_own(ctl, &command, batch_done, batch);
    free(copies);
    free(parts);
}

/* What a step that began looks like to the journal. Borrows from `running`. */
static void part_of(const struct running *running, StepPart *out)
{
    const StepInfo *info = running->info;

    step_part__init(out);
    out->id = info->id;
    out->name = info->name;
    out->node = running->node;
    out->has_state = out->has_started_us = true;
    out->state = JOB_RUNNING;
    out->started_us = info->started_us;
    out->nodes = info->nodes;
    out->has_node_count = out->has_ntasks = out->has_cpus = true;
    out->node_count = info->node_count;
    out->ntasks = info->ntasks;
    out->cpus = info->cpus;
    out->tres = info->tres;
    out->submit_line = info->submit_line;
}

static const struct running *find_running(const struct ctl *ctl, const struct begun_step *begun)
{
    const struct job_steps *steps = map_get_num(&ctl->steps, begun->job_id);
    size_t at = steps && steps->attempt == begun->attempt ? place_of(steps, begun->step) : 0;

    if (!steps || steps->attempt != begun->attempt || at == steps->list.len ||
        steps->list.items[at].info->id->step != begun->step)
        return NULL;
    return &steps->list.items[at];
}

/* (4) */
void ctl_steps_timer(struct ctl *ctl)
{
    CmdSteps steps = CMD_STEPS__INIT;
    Command command = CTL_COMMAND(STEPS, .steps = &steps);
    CLEANUP(freep) StepPart **parts = NEW_ARRAY(StepPart *, ctl->steps_begun.len + 1);
    CLEANUP(freep) StepPart *copies = NEW_ARRAY(StepPart, ctl->steps_begun.len + 1);

    vec_each (struct begun_step, begun, &ctl->steps_begun) {
        const struct running *running = find_running(ctl, begun);
        if (!running)
            continue;
        parts[steps.n_started] = &copies[steps.n_started];
        part_of(running, parts[steps.n_started++]);
    }
    ctl->steps_begun.len = 0;
    steps.started = parts;
    if (steps.n_started && ctl->leading && state_level(ctl->state) >= LEVEL_JOURNAL)
        ctl_propose(ctl, &command, NULL, NULL);
}

static bool is_news(const struct ctl *ctl, const StepInfo *info)
{
    struct begun_step begun = { info->id ? info->id->job_id : 0, info->id ? info->id->attempt : 0,
                                info->id ? info->id->step : 0 };
    int64_t led_us = ctl_mono(ctl) - ctl->leading_us;

    return !find_running(ctl, &begun) && info->started_us > ctl_now(ctl) - led_us;
}

static void note_begun(struct ctl *ctl, const StepId *id)
{
    struct begun_step begun = { id->job_id, id->attempt, id->step };

    vec_push(&ctl->steps_begun, begun);
    if (ctl->steps_begun.len == 1)
        ctl->io.timer(ctl->io.ctx, CTL_TIMER_STEPS, ctl_now(ctl) + BEGUN_US);
}

static void note_running(struct ctl *ctl, const struct agent *agent, const StepsReport *report)
{
    CLEANUP(freep) bool *news = NEW_ARRAY(bool, report->n_running + 1);

    for (size_t i = 0; i < report->n_running; i++)
        news[i] = !report->all || is_news(ctl, report->running[i]);
    if (report->all)
        drop_all_of(ctl, agent);
    for (size_t i = 0; i < report->n_running; i++) {
        if (put_running(ctl, agent, report->running[i]) && news[i])
            note_begun(ctl, report->running[i]->id);
    }
}

void ctl_steps_report(struct ctl *ctl, struct agent *agent, const StepsReport *report)
{
    note_running(ctl, agent, report);
    if (report->n_ended)
        propose_parts(ctl, agent, report);
}

/* ---- what people ask ---- */

/* Does this job belong to `ask`? NULL: whoever asks may see all. */
static bool is_seen(const struct ctl *ctl, const struct ctl_ask *ask, uint32_t job_id)
{
    const struct job *job = ask ? state_job(ctl->state, job_id) : NULL;

    return !ask || (job && job->owner->uid == ask->who->uid);
}

static size_t running_steps(const struct ctl *ctl, const struct ctl_ask *only_of,
                            const uint32_t *job_ids, size_t count, StepInfo ***out)
{
    VEC(StepInfo *) found = { 0 };

    map_each (entry, &ctl->steps) {
        const struct job_steps *steps = entry->value;
        bool wanted = count == 0;
        for (size_t i = 0; i < count && !wanted; i++)
            wanted = job_ids[i] == entry->num;
        if (!wanted || !is_seen(ctl, only_of, (uint32_t)entry->num))
            continue;
        for (size_t i = 0; i < steps->list.len; i++)
            vec_push(&found, steps->list.items[i].info);
    }
    *out = found.items;
    return found.len;
}

size_t ctl_running_steps(const struct ctl *ctl, const uint32_t *job_ids, size_t count,
                         StepInfo ***out)
{
    return running_steps(ctl, NULL, job_ids, count, out);
}

void ctl_list_steps(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const ListStepsRequest *request = (const void *)message;
    ListStepsReply reply = LIST_STEPS_REPLY__INIT;
    const struct ctl_ask *only_of = ctl_hides(ctl, ask, "jobs") ? ask : NULL;

    reply.n_steps = running_steps(ctl, only_of, request->job_ids, request->n_job_ids, &reply.steps);
    reply.has_now_us = true;
    reply.now_us = ctl_now(ctl);
    ask->ops->reply(ask, &reply.base);
    free(reply.steps);
}

static const struct job *find_job(const struct ctl *ctl, const char *id)
{
    struct job_ref ref;
    uint64_t task;

    if (!id || job_ref_parse(id, &ref, NULL) < 0)
        return NULL;
    if (!ref.has_tasks)
        return state_job(ctl->state, ref.has_offset ? ref.id + ref.offset : ref.id);
    CLEANUP(freep) char *text = mem_strndup(ref.tasks, ref.tasks_len);
    return str_to_u64(text, UINT32_MAX, &task) ? state_task(ctl->state, ref.id, (uint32_t)task)
                                               : NULL;
}

/* A node of the job that cannot be told anything now; NULL: all can. */
static const char *silent_node(struct ctl *ctl, const struct job *job)
{
    for (size_t i = 0; i < job->run->count; i++) {
        const struct agent *agent = ctl_agent(ctl, job->run->parts[i].name);
        if (job->run->parts[i].node && (!agent || !agent->welcomed))
            return job->run->parts[i].name;
    }
    return NULL;
}

void ctl_signal_step(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const SignalStepRequest *request = (const void *)message;
    const struct job *job = find_job(ctl, request->id);
    SignalJob signal = SIGNAL_JOB__INIT;
    CtlMessage out = CTL_MESSAGE__INIT;
    DoneReply reply = DONE_REPLY__INIT;
    struct err err = { 0 };

    if (!job || !ctl_may_change(ask, job)) {
        ctl_fail(ask, job ? ERR_PERMISSION : ERR_INVALID_JOB_ID);
        return;
    }
    if (!job->run || job_has_ended(job)) {
        ctl_fail(ask, ERR_ALREADY_DONE);
        return;
    }
    const char *silent = silent_node(ctl, job);
    if (silent) { /* done in part is worse than not at all: who asks may ask again */
        err_set(&err, ERR_UNREACHABLE, "node %s does not answer", silent);
        ask->ops->fail(ask, &err);
        return;
    }
    if (request->text && strlen(request->text) > NOTIFY_BYTES) {
        ctl_fail(ask, ERR_TOO_LARGE);
        return;
    }
    signal.text = request->text;
    signal.has_job_id = signal.has_attempt = signal.has_signal = true;
    signal.has_step = !request->text;
    signal.job_id = job->id;
    signal.attempt = job->attempt;
    signal.signal = request->has_signal ? request->signal : SIGKILL;
    signal.step = request->step;
    out.what_case = CTL_MESSAGE__WHAT_SIGNAL;
    out.signal = &signal;
    for (size_t i = 0; i < job->run->count; i++) {
        struct agent *agent = ctl_agent(ctl, job->run->parts[i].name);
        if (job->run->parts[i].node && agent && agent->session)
            ctl_send(ctl, agent, &out);
    }
    ask->ops->reply(ask, &reply.base);
}
