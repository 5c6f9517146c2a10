/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apply.c - one committed command
 *
 * (1) Time and index move with every command, done or refused.
 * (2) A request id that was used before gets its first answer and changes nothing else, unless the
 *     command goes on exactly where an unfinished request of many commands has got to.
 */
#include "core/apply.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/must.h"
#include "core/level.h"
#include "wire/pb.h"

static enum err_code apply_lead(struct state *state, const CmdLead *cmd, struct events *out)
{
    CLEANUP(freep) char *before = mem_strdup(state->leader);

    state->epoch++;
    job_set_text(&state->leader, cmd->leader ? cmd->leader : "");
    job_set_text(&state->leader_address, cmd->address ? cmd->address : "");
    if (!state->has_cluster_id && cmd->cluster_id.len == sizeof(state->cluster_id)) {
        memcpy(state->cluster_id, cmd->cluster_id.data, sizeof(state->cluster_id));
        state->has_cluster_id = true;
    }
    emit(out, EVENT_LEADER)->text = state->leader;
    triggers_lead(state, before);
    return ERR_OK;
}

/* The whole list; one controller alone has none. */
static enum err_code apply_controllers(struct state *state, const CmdControllers *cmd,
                                       struct err *err, struct events *out)
{
    if (cmd->n_controllers > LIMIT_CONTROLLERS) {
        err_set(err, ERR_TOO_MANY, "at most %d controllers", (int)LIMIT_CONTROLLERS);
        return ERR_TOO_MANY;
    }
    for (size_t i = 0; i < cmd->n_controllers; i++) {
        const ControllerSpec *spec = cmd->controllers[i];
        bool bad = str_is_empty(spec->name) || str_is_empty(spec->address);
        for (size_t k = 0; k < i; k++)
            bad = bad || str_eq(spec->name, cmd->controllers[k]->name);
        if (bad) {
            err_set(err, ERR_INVALID, "a controller without a name or address, or named twice");
            return ERR_INVALID;
        }
    }
    pb_free(state->controllers);
    state->controllers = cmd->n_controllers ? pb_copy(cmd) : NULL;
    emit(out, EVENT_CONTROLLERS);
    return ERR_OK;
}

static enum err_code apply_level(struct state *state, const CmdLevel *cmd, struct err *err)
{
    unsigned level = cmd->has_level ? cmd->level : 0;
    unsigned pin = cmd->has_pin ? cmd->pin : state->level_pin;

    if (pin && pin < state_level(state)) {
        err_set(err, ERR_INVALID, "the feature level is %u, and a level never goes back",
                state_level(state));
        return ERR_INVALID;
    }
    if (level > LEVEL_NEWEST || (pin && level > pin)) {
        err_set(err, ERR_INVALID, "the feature level is pinned at %u", pin);
        return ERR_INVALID;
    }
    state->level_pin = pin;
    state->level = MAX(state->level, level);
    return ERR_OK;
}

static enum err_code apply_planned(struct state *state, const CmdPlanned *cmd)
{
    for (size_t i = 0; i < cmd->n_starts; i++) {
        const PlannedStart *planned = cmd->starts[i];
        struct job *job = job_at(state, planned->job_id);
        if (!job || job_phase(job) != PHASE_PENDING)
            continue;
        job->planned_start_us = planned->start_us;
        if (planned->nodes || job->more)
            job_set_text(&job_more(job)->planned_nodes, planned->nodes);
        job_touch(state, job);
    }
    return ERR_OK;
}

static enum err_code dispatch(struct state *state, const Command *cmd, uint32_t *job_id,
                              struct err *err, struct events *out)
{
    switch (cmd->what_case) {
    case COMMAND__WHAT_LEAD:
        return apply_lead(state, cmd->lead, out);
    case COMMAND__WHAT_CONFIG:
        return apply_config(state, cmd->config, err, out);
    case COMMAND__WHAT_CONFIG_CHANGE:
        return apply_config_change(state, cmd->config_change, err, out);
    case COMMAND__WHAT_SUBMIT:
        return apply_submit(state, cmd->submit, job_id, err, out);
    case COMMAND__WHAT_START:
        return apply_start(state, cmd->start, err, out);
    case COMMAND__WHAT_READY:
        return apply_ready(state, cmd->ready, out);
    case COMMAND__WHAT_FINISH:
        return apply_finish(state, cmd->finish, out);
    case COMMAND__WHAT_RELEASE:
        return apply_release(state, cmd->release, out);
    case COMMAND__WHAT_CANCEL:
        return apply_cancel(state, cmd->cancel, err, out);
    case COMMAND__WHAT_UPDATE_JOB:
        return apply_update_job(state, cmd->update_job, err, out);
    case COMMAND__WHAT_REQUEUE:
        return apply_requeue(state, cmd->requeue, err, out);
    case COMMAND__WHAT_SUSPEND:
        return apply_suspend(state, cmd->suspend, err, out);
    case COMMAND__WHAT_NODE_UP:
        return apply_node_up(state, cmd->node_up, err, out);
    case COMMAND__WHAT_NODE_DOWN:
        return apply_node_down(state, cmd->node_down, out);
    case COMMAND__WHAT_UPDATE_NODE:
        return apply_update_node(state, cmd->update_node, err, out);
    case COMMAND__WHAT_PARTITION:
        return apply_partition(state, cmd->partition, err, out);
    case COMMAND__WHAT_RESERVATION:
        return apply_reservation(state, cmd->reservation, err, out);
    case COMMAND__WHAT_PREEMPT:
        return apply_preempt(state, cmd->preempt, out);
    case COMMAND__WHAT_TIME:
        return apply_time(state, cmd->time, out);
    case COMMAND__WHAT_JOURNAL_ACK:
        state->journal_acked = MAX(state->journal_acked, cmd->journal_ack->index);
        return ERR_OK;
    case COMMAND__WHAT_PLANNED:
        return apply_planned(state, cmd->planned);
    case COMMAND__WHAT_NODE_KEY:
        return apply_node_key(state, cmd->node_key);
    case COMMAND__WHAT_CONTROLLERS:
        return apply_controllers(state, cmd->controllers, err, out);
    case COMMAND__WHAT_STEPS:
        emit(out, EVENT_STEPS)->steps = cmd->steps;
        return ERR_OK;
    case COMMAND__WHAT_LEVEL:
        return apply_level(state, cmd->level, err);
    case COMMAND__WHAT_REVOKE:
        revoke_tokens(state, cmd->revoke->uid, cmd->revoke->issued_s);
        return ERR_OK;
    case COMMAND__WHAT_TRIGGER:
        return apply_trigger(state, cmd->trigger, err, out);
    case COMMAND__WHAT_CHECK: /* done before time moved */
        return ERR_OK;
    default:
        return ERR_BAD_MESSAGE;
    }
}

/* About a job: who reads only the events of jobs must hear of the refusal. */
static uint32_t subject(const Command *cmd)
{
    switch (cmd->what_case) {
    case COMMAND__WHAT_READY:
        return cmd->ready->job_id;
    case COMMAND__WHAT_FINISH:
        return cmd->finish->job_id;
    case COMMAND__WHAT_RELEASE:
        return cmd->release->job_id;
    default:
        return 0;
    }
}

/* Could it be that a node is down or in use that was not before? */
static bool touches_nodes(const Command *cmd)
{
    return cmd->what_case == COMMAND__WHAT_NODE_DOWN ||
           cmd->what_case == COMMAND__WHAT_UPDATE_NODE || cmd->what_case == COMMAND__WHAT_NODE_UP ||
           cmd->what_case == COMMAND__WHAT_START;
}

/* Could it be that CPUs are free now which were not before? */
static bool may_free(const Command *cmd)
{
    switch (cmd->what_case) {
    case COMMAND__WHAT_SUBMIT:
    case COMMAND__WHAT_READY:
    case COMMAND__WHAT_PLANNED:
    case COMMAND__WHAT_STEPS:
    case COMMAND__WHAT_JOURNAL_ACK:
    case COMMAND__WHAT_LEVEL:
    case COMMAND__WHAT_REVOKE:
    case COMMAND__WHAT_TRIGGER:
    case COMMAND__WHAT_CHECK:
        return false;
    default:
        return true;
    }
}

/* Nothing is changed by it but jobs, and what nodes have free of them. */
static bool is_about_jobs(const Command *cmd)
{
    switch (cmd->what_case) {
    case COMMAND__WHAT_START:
    case COMMAND__WHAT_FINISH:
    case COMMAND__WHAT_RELEASE:
    case COMMAND__WHAT_CANCEL:
    case COMMAND__WHAT_REQUEUE:
    case COMMAND__WHAT_SUSPEND:
    case COMMAND__WHAT_PREEMPT:
    case COMMAND__WHAT_TIME:
        return true;
    default:
        return false;
    }
}

static void answer(struct events *out, uint32_t job_id, enum err_code code, const char *text)
{
    struct event *event = emit(out, EVENT_ANSWER);

    event->job_id = job_id;
    event->code = code;
    if (code != ERR_OK)
        event->text = arena_strdup(&out->arena, str_is_empty(text) ? err_text(code) : text);
}

static void remember(struct state *state, const Command *cmd, struct request *seen, uint32_t job_id,
                     enum err_code code)
{
    struct request request = { .time_us = state->time_us, .uid = cmd->uid };

    if (cmd->has_upto_job)
        job_id = cmd->upto_job;
    if (seen) {
        request_advance(state, seen, job_id, (uint32_t)code, cmd->has_upto_job);
        return;
    }
    request.job_id = job_id;
    request.code = (uint32_t)code;
    request.more = cmd->has_upto_job;
    memcpy(request.id, cmd->request_id.data, sizeof(request.id));
    request_put(state, &request);
}

/* Of the time since the last command: what the leader says did not pass, all before a new leader. */
static int64_t skipped_us(const struct state *state, const Command *cmd)
{
    int64_t since = cmd->time_us - state->time_us;

    if (since <= 0)
        return 0;
    return cmd->what_case == COMMAND__WHAT_LEAD ? since : MAX(0, MIN(cmd->skipped_us, since));
}

static void apply_command(struct state *state, uint64_t index, const Command *cmd,
                          struct events *out)
{
    bool has_id = cmd->has_request_id && cmd->request_id.len == 16;
    struct err err = { 0 };
    uint32_t job_id = 0;

    MUST(index > state->index);
    shapes_settle(state);
    if (cmd->what_case == COMMAND__WHAT_CHECK && cmd->check->digest != core_digest(state))
        emit(out, EVENT_DIVERGED);
    int64_t skipped = skipped_us(state, cmd);
    int64_t before_us = state->time_us;
    state->index = index; /* (1) */
    state->time_us = MAX(state->time_us + 1, cmd->time_us);
    if (skipped) {
        time_skipped(state, skipped, cmd->what_case == COMMAND__WHAT_LEAD);
        settle(state);
    }
    requests_expire(state);
    struct request *seen = has_id ? request_find(state, cmd->uid, cmd->request_id.data) : NULL;
    bool goes_on = seen && seen->more && cmd->has_after_job && cmd->after_job == seen->job_id;
    if (seen && !goes_on) { /* (2) */
        answer(out, seen->job_id, (enum err_code)seen->code, NULL);
        return;
    }
    enum err_code code = dispatch(state, cmd, &job_id, &err, out);
    if (state->suspended_for.len && may_free(cmd))
        suspended_for_settle(state, !is_about_jobs(cmd), out);
    if (state->gang.len)
        gang_settle(state, before_us, may_free(cmd), out);
    if (state->reservations.len && touches_nodes(cmd))
        reservations_replace(state, out);
    deps_settle(state, cmd->what_case == COMMAND__WHAT_TIME, out);
    if (state->triggers.len || cmd->what_case == COMMAND__WHAT_TRIGGER)
        triggers_see(state, cmd, before_us, out);
    settle(state);
    if (has_id)
        remember(state, cmd, seen, job_id, code);
    if (code != ERR_OK && subject(cmd))
        reject(out, subject(cmd), NO_TASK, code);
    answer(out, job_id, code, err.text);
    arena_reset(&state->scratch);
}

void core_apply(struct state *state, uint64_t index, const Command *cmd, struct events *out)
{
    must_set_entry(index);
    apply_command(state, index, cmd, out);
    marks_applied(state);
    must_set_entry(0);
}
