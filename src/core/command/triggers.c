/* SPDX-License-Identifier: Apache-2.0 */
/*
 * triggers.c - what pulls the triggers of strigger, and when they are due
 *
 * (1) Everything follows from the records, the events of a command and the time in it.
 * (2) While there is a trigger, each node remembers the condition in which the last command left it. What another
 *     command changes of that is an event.
 * (3) Nodes that pull a trigger within a second are told to one run of its program.
 */
#include "core/command/command.h"

#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "schema/trigger.h"
#include "wire/pb.h"

enum { GROUP_US = 1000000 }; /* (3) */

/* Of a node. */
enum condition { IS_DOWN = 1, IS_DRAINING = 2, IS_DRAINED = 4, IS_FAILING = 8 };

static uint8_t condition_of(const struct node *node)
{
    uint8_t out = 0;

    if (node->state == NODE_DOWN)
        out |= IS_DOWN;
    if (node->flags & NODE_FLAG_DRAIN)
        out |= node->jobs.len ? IS_DRAINING : IS_DRAINED;
    if (node->flags & NODE_FLAG_FAIL)
        out |= IS_FAILING;
    return out;
}

/* What happened to the node: enum trigger_type. */
static unsigned node_events(uint8_t before, uint8_t now)
{
    uint8_t came = now & ~before, went = before & ~now;
    unsigned out = 0;

    if (came & IS_DOWN)
        out |= TRIGGER_DOWN;
    if (went & IS_DOWN)
        out |= TRIGGER_UP;
    if (came & IS_DRAINED)
        out |= TRIGGER_DRAINED;
    if (came & IS_DRAINING)
        out |= TRIGGER_DRAINING;
    if (came & IS_FAILING)
        out |= TRIGGER_FAIL;
    if (before & (IS_DRAINED | IS_DRAINING) && !(now & (IS_DRAINED | IS_DRAINING)))
        out |= TRIGGER_RESUME;
    return out;
}

void triggers_watch_nodes(struct state *state)
{
    vec_each (struct node *, at, &state->nodes)
        (*at)->condition = condition_of(*at);
}

/* ---- one trigger ---- */

struct trigger *trigger_new(const TriggerSpec *spec)
{
    struct trigger *trigger = NEW(struct trigger);
    struct err err;

    trigger->spec = pb_copy(spec);
    if (!str_is_empty(spec->nodes) && hostlist_parse(&trigger->named, spec->nodes, &err) < 0)
        hostlist_clear(&trigger->named);
    return trigger;
}

void trigger_free(struct trigger *trigger)
{
    hostlist_done(&trigger->named);
    vec_each (char *, name, &trigger->nodes)
        free(*name);
    vec_done(&trigger->nodes);
    free(trigger->pulled_for);
    pb_free(trigger->spec);
    free(trigger);
}

void trigger_settle(struct state *state, struct trigger *trigger)
{
    state->digest -= trigger->hash;
    trigger->hash = trigger_hash(trigger);
    state->digest += trigger->hash;
}

static void take_out(struct state *state, size_t at)
{
    struct trigger *trigger = state->triggers.items[at];

    state->digest -= trigger->hash;
    trigger_free(trigger);
    vec_remove(&state->triggers, at);
}

/* A job's time limit is where the offset is counted from: it may be negative. */
static int64_t offset_us(const struct trigger *trigger)
{
    int64_t s = trigger->spec->offset_s;

    if (trigger->spec->types & (TRIGGER_TIME | TRIGGER_IDLE))
        return 0;
    return MAX(s, 0) * US_PER_S + (trigger->nodes.len ? GROUP_US : 0);
}

bool trigger_is_due(const struct state *state, const struct trigger *trigger)
{
    return trigger->pulled_us && trigger->pulled_us + offset_us(trigger) <= state->time_us;
}

size_t state_trigger_count(const struct state *state)
{
    return state->triggers.len;
}

const struct trigger *state_trigger_at(const struct state *state, size_t number)
{
    return state->triggers.items[number];
}

static void pull(struct state *state, struct trigger *trigger, const char *node, const char *event)
{
    vec_each (char *, name, &trigger->nodes) {
        if (node && strcmp(*name, node) == 0)
            return;
    }
    if (!trigger->pulled_us)
        trigger->pulled_us = state->time_us;
    if (node)
        vec_push(&trigger->nodes, mem_strdup(node));
    if (event && !trigger->pulled_for)
        trigger->pulled_for = mem_strdup(event);
    trigger_settle(state, trigger);
}

/* ---- nodes ---- */

static bool job_has_node(const struct state *state, uint32_t id, const struct node *node)
{
    const struct job *job = job_at(state, id);

    for (unsigned i = 0; job && job->run && i < job->run->count; i++) {
        if (str_eq(job->run->parts[i].name, node->spec->name))
            return true;
    }
    return false;
}

static bool concerns_node(const struct state *state, const struct trigger *trigger,
                          const struct node *node)
{
    if (trigger->spec->has_job_id)
        return job_has_node(state, trigger->spec->job_id, node);
    return trigger->spec->nodes &&
           (!*trigger->spec->nodes || hostlist_find(&trigger->named, node->spec->name) >= 0);
}

/* It stays idle since then; NEVER: it is not. */
static int64_t idle_since(const struct node *node)
{
    return node_is_usable(node) && !node->jobs.len ? node->last_busy_us : NEVER;
}

static int64_t idle_due(const struct trigger *trigger, const struct node *node)
{
    int64_t since = idle_since(node);

    return since == NEVER ? NEVER : since + MAX(trigger->spec->offset_s, 0) * US_PER_S;
}

static void see_node(struct state *state, struct node *node)
{
    uint8_t now = condition_of(node);
    unsigned events = node_events(node->condition, now);

    node->condition = now;
    vec_each (struct trigger *, at, &state->triggers) {
        struct trigger *trigger = *at;
        if (trigger->spec->types & events && concerns_node(state, trigger, node))
            pull(state, trigger, trigger->spec->has_job_id ? NULL : node->spec->name, NULL);
    }
}

/* Nodes that were idle for long enough since the last that pulled it. */
static void see_idle(struct state *state, struct trigger *trigger)
{
    bool pulled = false;

    vec_each (struct node *, at, &state->nodes) {
        int64_t due = idle_due(trigger, *at);
        if (due > trigger->idle_seen_us && due <= state->time_us &&
            concerns_node(state, trigger, *at)) {
            pull(state, trigger, (*at)->spec->name, NULL);
            pulled = true;
        }
    }
    if (pulled) {
        trigger->idle_seen_us = state->time_us;
        trigger_settle(state, trigger);
    }
}

/* ---- jobs ---- */

static int64_t limit_us(const struct state *state, const struct trigger *trigger)
{
    const struct job *job = job_at(state, trigger->spec->job_id);

    if (!job || !job->run || job_phase(job) != PHASE_RUNNING)
        return NEVER;
    int64_t end = job_end_by(job, job->run->start_us + job->run->suspended_total_us);
    return end == NEVER ? NEVER : end + trigger->spec->offset_s * US_PER_S;
}

static bool is_over(const struct event *event, uint32_t id)
{
    const struct job *job = event->job;

    if (event->kind == EVENT_JOB_CLEAN && event->array_last)
        return job->array && job->array->id == id;
    return event->kind == EVENT_JOB_ENDED && job->id == id && !job->array;
}

/* The job has ended: what waits for anything else of it waits for nothing. */
static void see_end(struct state *state, const struct event *event)
{
    for (size_t i = state->triggers.len; i-- > 0;) {
        struct trigger *trigger = state->triggers.items[i];
        if (!trigger->spec->has_job_id || !is_over(event, trigger->spec->job_id))
            continue;
        if (trigger->spec->types & TRIGGER_FINI)
            pull(state, trigger, NULL, NULL);
        else if (!trigger->pulled_us)
            take_out(state, i);
    }
}

/* ---- controllers and accounting ---- */

void triggers_happened(struct state *state, unsigned types)
{
    vec_each (struct trigger *, at, &state->triggers) {
        unsigned hit = (*at)->spec->types & types;
        if (hit)
            pull(state, *at, NULL, name_of(&trigger_names, hit & -hit));
    }
}

static const char *primary(const struct state *state)
{
    return state->controllers && state->controllers->n_controllers
               ? state->controllers->controllers[0]->name
               : NULL;
}

void triggers_lead(struct state *state, const char *before)
{
    const char *first = primary(state);
    unsigned what;

    if (!state->triggers.len || str_is_empty(before))
        return;
    if (!first || (str_eq(state->leader, first) && str_eq(before, first)))
        what = TRIGGER_PRIMARY_OPERATES;
    else if (str_eq(state->leader, first))
        what = TRIGGER_PRIMARY_CONTROLS | TRIGGER_PRIMARY_OPERATES;
    else
        what = TRIGGER_BACKUP_CONTROLS | (str_eq(before, first) ? TRIGGER_PRIMARY_FAIL : 0);
    triggers_happened(state, what);
}

/* ---- after each command ---- */

static int64_t next_look(const struct state *state, const struct trigger *trigger)
{
    int64_t next = NEVER;

    if (trigger->pulled_us)
        return trigger_is_due(state, trigger) ? NEVER : trigger->pulled_us + offset_us(trigger);
    if (trigger->spec->types & TRIGGER_TIME)
        next = limit_us(state, trigger);
    return next;
}

/* Once: by the command with which it became due. */
static void announce(struct state *state, const struct trigger *trigger, int64_t before_us,
                     struct events *out)
{
    if (!trigger_is_due(state, trigger) || trigger->pulled_us + offset_us(trigger) <= before_us)
        return;
    emit(out, EVENT_TRIGGER)->job_id = trigger->spec->id;
}

static void look_at_time(struct state *state)
{
    vec_each (struct trigger *, at, &state->triggers) {
        struct trigger *trigger = *at;
        if (trigger->spec->types & TRIGGER_TIME && !trigger->pulled_us &&
            limit_us(state, trigger) <= state->time_us)
            pull(state, trigger, NULL, NULL);
        if (trigger->spec->types & TRIGGER_IDLE && !trigger->pulled_us)
            see_idle(state, trigger);
    }
}

/* The earliest moment at which an idle node could pull one. */
static int64_t next_idle(const struct state *state, const struct trigger *trigger)
{
    int64_t next = NEVER;

    if (!(trigger->spec->types & TRIGGER_IDLE) || trigger->pulled_us)
        return NEVER;
    vec_each (struct node *, at, &state->nodes) {
        int64_t due = idle_due(trigger, *at);
        if (due > trigger->idle_seen_us && concerns_node(state, trigger, *at))
            next = MIN(next, due);
    }
    return next;
}

void triggers_next(struct state *state)
{
    state->next_trigger_us = NEVER;
    vec_each (struct trigger *, at, &state->triggers)
        state->next_trigger_us =
            MIN(state->next_trigger_us, MIN(next_look(state, *at), next_idle(state, *at)));
}

void triggers_see(struct state *state, const Command *cmd, int64_t before_us, struct events *out)
{
    bool timed = cmd->what_case == COMMAND__WHAT_TIME;
    size_t count = out->list.len;

    for (size_t i = 0; i < state->touched_nodes.len; i++)
        see_node(state, state->touched_nodes.items[i]);
    for (size_t i = 0; i < count; i++) {
        const struct event *event = &out->list.items[i];
        if (event->job)
            see_end(state, event);
        else if (event->kind == EVENT_CONFIG)
            triggers_happened(state, TRIGGER_RECONFIG);
    }
    if (timed)
        look_at_time(state);
    vec_each (struct trigger *, at, &state->triggers)
        announce(state, *at, before_us, out);
    triggers_next(state);
}

/* ---- the command ---- */

static bool is_same(const TriggerSpec *a, const TriggerSpec *b)
{
    return a->types == b->types && a->has_job_id == b->has_job_id && a->job_id == b->job_id &&
           str_eq(a->nodes, b->nodes) && a->offset_s == b->offset_s && a->uid == b->uid &&
           str_eq(a->program, b->program);
}

static enum err_code check_job(const struct state *state, const TriggerSpec *spec)
{
    const struct job *job = spec->has_job_id ? job_at(state, spec->job_id) : NULL;

    if (spec->has_job_id && !job)
        return ERR_INVALID_JOB_ID;
    return job && job_has_ended(job) && !job_is_meta(job) ? ERR_ALREADY_DONE : ERR_OK;
}

static enum err_code check_spec(const struct state *state, const TriggerSpec *spec, struct err *err)
{
    CLEANUP(bitset_done) struct bitset set = { 0 };

    if (!spec->types || spec->types & ~(unsigned)TRIGGERS_ALL || str_is_empty(spec->program))
        return (enum err_code) -
               err_set(err, ERR_INVALID, "a trigger needs an event and a program");
    if (state->triggers.len >= LIMIT_TRIGGERS)
        return (enum err_code) -
               err_set(err, ERR_TOO_MANY,
                       "there are %d triggers already; strigger --clear removes some",
                       (int)LIMIT_TRIGGERS);
    if (!str_is_empty(spec->nodes) && state_node_set(state, spec->nodes, &set, err) < 0)
        return ERR_INVALID_NODE_NAME;
    vec_each (struct trigger *, at, &state->triggers) {
        if (is_same((*at)->spec, spec))
            return ERR_TRIGGER_DUP;
    }
    return check_job(state, spec);
}

static enum err_code set_trigger(struct state *state, const TriggerSpec *spec, struct err *err)
{
    enum err_code code = check_spec(state, spec, err);

    if (code != ERR_OK)
        return code;
    if (!state->triggers.len)
        triggers_watch_nodes(state); /* (2) */
    struct trigger *trigger = trigger_new(spec);
    trigger->spec->has_id = true;
    trigger->spec->id = ++state->last_trigger_id;
    vec_push(&state->triggers, trigger);
    trigger_settle(state, trigger);
    return ERR_OK;
}

static bool is_meant(const CmdTrigger *cmd, const TriggerSpec *spec)
{
    return (!cmd->has_clear_id || cmd->clear_id == spec->id) &&
           (!cmd->has_clear_job_id || (spec->has_job_id && cmd->clear_job_id == spec->job_id)) &&
           (!cmd->has_clear_uid || cmd->clear_uid == spec->uid);
}

static enum err_code clear(struct state *state, const CmdTrigger *cmd, struct err *err)
{
    bool found = false;

    for (size_t i = state->triggers.len; i-- > 0;) {
        if (is_meant(cmd, state->triggers.items[i]->spec)) {
            take_out(state, i);
            found = true;
        }
    }
    return found ? ERR_OK
                 : (enum err_code) - err_set(err, ERR_NOT_FOUND, "there is no such trigger");
}

/* What the program gets as its last argument. */
static const char *argument(struct state *state, const struct trigger *trigger, struct events *out)
{
    struct hostlist list = { 0 };
    struct str text = { 0 };
    struct err err;

    if (trigger->spec->has_job_id)
        str_addf(&text, "%u", trigger->spec->job_id);
    else if (trigger->pulled_for)
        str_add(&text, trigger->pulled_for);
    vec_each (char *, name, &trigger->nodes)
        (void)hostlist_push(&list, *name, &err);
    if (trigger->nodes.len && hostlist_sort(&list, &err) == 0)
        hostlist_format(&list, &text);
    const char *kept = arena_strdup(&out->arena, str_text(&text));
    (void)state;
    hostlist_done(&list);
    str_done(&text);
    return kept;
}

static enum err_code run(struct state *state, uint32_t id, struct events *out)
{
    for (size_t i = 0; i < state->triggers.len; i++) {
        struct trigger *trigger = state->triggers.items[i];
        if (trigger->spec->id != id)
            continue;
        if (!trigger_is_due(state, trigger))
            return ERR_TRANSITION;
        struct event *event = emit(out, EVENT_TRIGGER_RUN);
        event->job_id = id;
        event->text = argument(state, trigger, out);
        if (!trigger->spec->permanent || trigger->spec->has_job_id) {
            take_out(state, i);
            return ERR_OK;
        }
        vec_each (char *, name, &trigger->nodes)
            free(*name);
        vec_clear(&trigger->nodes);
        free(trigger->pulled_for);
        trigger->pulled_for = NULL;
        trigger->pulled_us = 0;
        trigger_settle(state, trigger);
        return ERR_OK;
    }
    return ERR_NOT_FOUND;
}

enum err_code apply_trigger(struct state *state, const CmdTrigger *cmd, struct err *err,
                            struct events *out)
{
    if (cmd->set)
        return set_trigger(state, cmd->set, err);
    if (cmd->has_run)
        return run(state, cmd->run, out);
    if (cmd->has_happened) {
        triggers_happened(state, cmd->happened);
        return ERR_OK;
    }
    if (!cmd->has_clear_id && !cmd->has_clear_job_id && !cmd->has_clear_uid)
        return ERR_INVALID;
    return clear(state, cmd, err);
}
