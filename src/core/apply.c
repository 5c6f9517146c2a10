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

/* ---- one row per command ---- */

struct applying {
    struct state *state;
    const Command *cmd;
    uint32_t job_id; /* that it made */
    struct err err;
    struct events *out;
};
typedef enum err_code apply_fn(struct applying *at);

#define ROW_OUT(member)                                             \
    static enum err_code do_##member(struct applying *at)           \
    {                                                               \
        return apply_##member(at->state, at->cmd->member, at->out); \
    }
#define ROW_ERR(member)                                                       \
    static enum err_code do_##member(struct applying *at)                     \
    {                                                                         \
        return apply_##member(at->state, at->cmd->member, &at->err, at->out); \
    }

ROW_OUT(lead)
ROW_ERR(config)
ROW_ERR(config_change)
ROW_ERR(start)
ROW_OUT(ready)
ROW_OUT(finish)
ROW_OUT(release)
ROW_ERR(cancel)
ROW_ERR(update_job)
ROW_ERR(requeue)
ROW_ERR(suspend)
ROW_ERR(node_up)
ROW_OUT(node_down)
ROW_ERR(update_node)
ROW_ERR(partition)
ROW_ERR(reservation)
ROW_OUT(preempt)
ROW_OUT(time)
ROW_ERR(controllers)
ROW_ERR(trigger)
ROW_ERR(crontab)

static enum err_code do_submit(struct applying *at)
{
    return apply_submit(at->state, at->cmd->submit, &at->job_id, &at->err, at->out);
}

static enum err_code do_journal_ack(struct applying *at)
{
    at->state->journal_acked = MAX(at->state->journal_acked, at->cmd->journal_ack->index);
    return ERR_OK;
}

static enum err_code do_planned(struct applying *at)
{
    return apply_planned(at->state, at->cmd->planned);
}

static enum err_code do_node_key(struct applying *at)
{
    return apply_node_key(at->state, at->cmd->node_key);
}

static enum err_code do_steps(struct applying *at)
{
    emit(at->out, EVENT_STEPS)->steps = at->cmd->steps;
    return ERR_OK;
}

static enum err_code do_level(struct applying *at)
{
    return apply_level(at->state, at->cmd->level, &at->err);
}

static enum err_code do_revoke(struct applying *at)
{
    revoke_tokens(at->state, at->cmd->revoke->uid, at->cmd->revoke->issued_s);
    return ERR_OK;
}

static enum err_code do_check(struct applying *at) /* done before time moved */
{
    (void)at;
    return ERR_OK;
}

static enum err_code do_unknown(struct applying *at)
{
    (void)at;
    return ERR_BAD_MESSAGE;
}

enum trait {
    MAY_FREE = 1,      /* CPUs may be free now which were not before */
    ABOUT_JOBS = 2,    /* it changes jobs, and what nodes have free of them, and nothing else */
    TOUCHES_NODES = 4, /* a node may be down or in use that was not before */
    OF_A_JOB = 8, /* who reads only the events of jobs must hear of the refusal: refused_job() */
};

struct command_row {
    apply_fn *apply;
    unsigned traits;
};

#define ROW(NAME, member, traits) [COMMAND__WHAT_##NAME] = { do_##member, traits }

static const struct command_row command_rows[] = {
    ROW(LEAD, lead, MAY_FREE),
    ROW(CONFIG, config, MAY_FREE),
    ROW(CONFIG_CHANGE, config_change, MAY_FREE),
    ROW(SUBMIT, submit, 0),
    ROW(START, start, MAY_FREE | ABOUT_JOBS | TOUCHES_NODES),
    ROW(READY, ready, OF_A_JOB),
    ROW(FINISH, finish, MAY_FREE | ABOUT_JOBS | OF_A_JOB),
    ROW(RELEASE, release, MAY_FREE | ABOUT_JOBS | OF_A_JOB),
    ROW(CANCEL, cancel, MAY_FREE | ABOUT_JOBS),
    ROW(UPDATE_JOB, update_job, MAY_FREE),
    ROW(REQUEUE, requeue, MAY_FREE | ABOUT_JOBS),
    ROW(SUSPEND, suspend, MAY_FREE | ABOUT_JOBS),
    ROW(NODE_UP, node_up, MAY_FREE | TOUCHES_NODES),
    ROW(NODE_DOWN, node_down, MAY_FREE | TOUCHES_NODES),
    ROW(UPDATE_NODE, update_node, MAY_FREE | TOUCHES_NODES),
    ROW(PARTITION, partition, MAY_FREE),
    ROW(RESERVATION, reservation, MAY_FREE),
    ROW(PREEMPT, preempt, MAY_FREE | ABOUT_JOBS),
    ROW(TIME, time, MAY_FREE | ABOUT_JOBS),
    ROW(JOURNAL_ACK, journal_ack, 0),
    ROW(PLANNED, planned, 0),
    ROW(NODE_KEY, node_key, MAY_FREE),
    ROW(CONTROLLERS, controllers, MAY_FREE),
    ROW(STEPS, steps, 0),
    ROW(LEVEL, level, 0),
    ROW(REVOKE, revoke, 0),
    ROW(TRIGGER, trigger, 0),
    ROW(CRONTAB, crontab, MAY_FREE),
    ROW(CHECK, check, 0),
};

static const struct command_row *row_of(const Command *cmd)
{
    static const struct command_row unknown = { do_unknown, MAY_FREE };
    size_t at = (size_t)cmd->what_case;

    return at < ARRAY_LEN(command_rows) && command_rows[at].apply ? &command_rows[at] : &unknown;
}

/* Of a command that has OF_A_JOB. */
static uint32_t refused_job(const Command *cmd)
{
    switch (cmd->what_case) {
    case COMMAND__WHAT_READY:
        return cmd->ready->job_id;
    case COMMAND__WHAT_FINISH:
        return cmd->finish->job_id;
    default:
        return cmd->release->job_id;
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
    const struct command_row *row = row_of(cmd);
    struct applying at = { .state = state, .cmd = cmd, .out = out };

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
    enum err_code code = row->apply(&at);
    if (state->suspended_for.len && row->traits & MAY_FREE)
        suspended_for_settle(state, !(row->traits & ABOUT_JOBS), out);
    if (state->gang.len)
        gang_settle(state, before_us, row->traits & MAY_FREE, out);
    if (state->reservations.len && row->traits & TOUCHES_NODES)
        reservations_replace(state, out);
    deps_settle(state, cmd->what_case == COMMAND__WHAT_TIME, out);
    if (state->triggers.len || cmd->what_case == COMMAND__WHAT_TRIGGER)
        triggers_see(state, cmd, before_us, out);
    settle(state);
    if (has_id)
        remember(state, cmd, seen, at.job_id, code);
    if (code != ERR_OK && row->traits & OF_A_JOB && refused_job(cmd))
        reject(out, refused_job(cmd), NO_TASK, code);
    answer(out, at.job_id, code, at.err.text);
    arena_reset(&state->scratch);
}

void core_apply(struct state *state, uint64_t index, const Command *cmd, struct events *out)
{
    must_set_entry(index);
    apply_command(state, index, cmd, out);
    marks_applied(state);
    must_set_entry(0);
}
