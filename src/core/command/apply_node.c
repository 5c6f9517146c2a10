/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apply_node.c - commands about nodes: up, down, and what an administrator says
 */
#include "core/command/command.h"

#include <stdio.h>
#include <string.h>

#include "wire/pb.h"

static void say(struct events *out, const struct node *node, bool was_usable, bool amounts)
{
    bool usable = node_is_usable(node);
    struct event *event = emit(out, usable                 ? EVENT_NODE_UP
                                    : usable != was_usable ? EVENT_NODE_DOWN
                                                           : EVENT_NODE_CHANGED);

    event->node = node;
    event->changed = amounts ? CHANGED_NODES : 0;
}

/* The jobs are to end, and the node is to be told so. */
static void end_jobs(struct state *state, struct node *node, struct events *out)
{
    VEC(struct job *) jobs = { 0 };

    vec_each (struct job *, job, &node->jobs)
        vec_push(&jobs, *job);
    vec_each (struct job *, at, &jobs) {
        struct job *job = *at;
        struct job_part *part = node_part_of(job, node);
        if (!job_can(job, JOB_ON_EXIT) || job_phase(job) == PHASE_REQUEUING || part->left)
            continue;
        job_set_text(&job_more(job)->failed_node, node->spec->name);
        if (job_goes_on_without(job, part)) {
            spare_nodes_take(state, job, part);
            job_leave(state, job, part);
            emit_job(out, EVENT_JOB_CHANGED, job);
            continue;
        }
        if (job_may_requeue(state, job))
            job_requeue_without(state, job, node->spec->name, out);
        else
            job_end(state, job, JOB_NODE_FAIL, REASON_FAIL_DOWN_NODE, state->time_us, NULL, out);
        if (job_holds(job))
            emit_job(out, EVENT_JOB_ENDING, job);
    }
    vec_done(&jobs);
}

static const GresInventory *gres_found(const NodeInventory *found, const GresInventory *want)
{
    for (size_t i = 0; i < found->n_gres; i++) {
        if (str_eq(found->gres[i]->name, want->name) &&
            (str_is_empty(want->type) || str_eq(found->gres[i]->type, want->type)))
            return found->gres[i];
    }
    return NULL;
}

/* What the node has less of than configured, in Slurm's words; false when nothing. */
static bool lacks(const NodeSpec *spec, const NodeInventory *found, char *text, size_t size)
{
    if (found->cpus < spec->cpus) {
        snprintf(text, size, "Low CPUs (reported:%u < configured:%u)", found->cpus, spec->cpus);
        return true;
    }
    uint64_t cores = (uint64_t)MAX(found->sockets, 1) * MAX(found->cores_per_socket, 1) *
                     MAX(found->threads_per_core, 1);
    uint64_t want = (uint64_t)MAX(spec->sockets, 1) * MAX(spec->cores_per_socket, 1) *
                    MAX(spec->threads_per_core, 1);
    if (found->has_sockets && cores < want && found->cpus < want) {
        snprintf(text, size, "Low socket*core*thread count (reported:%llu < configured:%llu)",
                 (unsigned long long)cores, (unsigned long long)want);
        return true;
    }
    if (found->memory_mb < spec->memory_mb) {
        snprintf(text, size, "Low RealMemory (reported:%llu < 100.00%% of configured:%llu)",
                 (unsigned long long)found->memory_mb, (unsigned long long)spec->memory_mb);
        return true;
    }
    for (size_t i = 0; i < spec->n_gres; i++) {
        const GresInventory *have = gres_found(found, spec->gres[i]);
        uint64_t count = have ? have->has_count ? have->count : 1 : 0;
        uint64_t need = spec->gres[i]->has_count ? spec->gres[i]->count : 1;
        if (count < need) {
            snprintf(text, size, "gres/%s count reported lower than configured (%llu < %llu)",
                     spec->gres[i]->name, (unsigned long long)count, (unsigned long long)need);
            return true;
        }
    }
    return false;
}

static void judge_hardware(struct state *state, struct node *node, const char *given)
{
    char text[256];
    const char *reason = str_is_empty(given) ? NULL : given;

    if (!reason && !state->config->config_overrides &&
        lacks(node->spec, node->found, text, sizeof(text)))
        reason = text;
    if (reason && !(node->flags & NODE_FLAG_DRAIN)) {
        node->flags |= NODE_FLAG_DRAIN | NODE_FLAG_INVALID_REG;
        node_set_reason(state, node, reason, "slurm", 0);
    } else if (!reason && node->flags & NODE_FLAG_INVALID_REG) {
        node->flags &= ~(uint32_t)(NODE_FLAG_DRAIN | NODE_FLAG_INVALID_REG);
        if (node->state != NODE_DOWN)
            node_set_reason(state, node, NULL, NULL, 0);
    }
}

/* Does a node that is DOWN come back by saying hello? Slurm's ReturnToService. */
static bool comes_back(const struct state *state, const struct node *node)
{
    switch (state->config->return_to_service) {
    case 0:
        return false;
    case 1:
        return node->flags & NODE_FLAG_NO_RESPOND || reboot_was_late(node);
    default:
        return true;
    }
}

static bool rebooted(const struct node *node, const NodeInventory *found)
{
    return node->found && !str_is_empty(node->found->boot_id) && !str_is_empty(found->boot_id) &&
           !str_eq(node->found->boot_id, found->boot_id);
}

enum err_code apply_node_up(struct state *state, const CmdNodeUp *cmd, struct err *err,
                            struct events *out)
{
    static const NodeInventory nothing = NODE_INVENTORY__INIT;
    const NodeInventory *found = cmd->found ? cmd->found : &nothing;
    struct node *node = node_at(state, cmd->node);

    if (!node || node->removed)
        return ERR_INVALID_NODE_NAME;
    if (found->n_gres > TAKE_GRES)
        return (enum err_code) -
               err_set(err, ERR_GRES, "node %s has too many kinds of resources", cmd->node);
    bool was_usable = node_is_usable(node), reboot = rebooted(node, found);
    bool had_jobs = node->jobs.len;
    bool issued = node->flags & NODE_FLAG_REBOOT_ISSUED;
    bool expected = issued || node->flags & NODE_FLAG_POWERING_UP;
    if (reboot)
        node_lose_jobs_of(state, node, NULL, issued, out);
    node_set_found(node, found);
    bool amounts = node_amounts(node);
    if (amounts)
        state->generation++;
    if (node->state == NODE_DOWN && comes_back(state, node)) {
        node->state = NODE_IDLE;
        node_set_reason(state, node, NULL, NULL, 0);
    } else if (node->state == NODE_UNKNOWN) {
        node->state = NODE_IDLE;
    }
    if (reboot && had_jobs && !expected && state->config->return_to_service < 2) {
        node->state = NODE_DOWN;
        node_set_reason(state, node, "Node unexpectedly rebooted", "slurm", 0);
    }
    node->flags &=
        ~(uint32_t)(NODE_FLAG_NO_RESPOND | NODE_FLAG_POWERING_UP | NODE_FLAG_POWERED_DOWN);
    if (reboot || str_is_empty(found->boot_id))
        reboot_back(state, node, out);
    judge_hardware(state, node, cmd->drain_reason);
    if (cmd->has_key)
        node_set_key(state, cmd->node, &cmd->key, false);
    node_touch(state, node);
    say(out, node, was_usable, amounts);
    return ERR_OK;
}

enum err_code apply_node_down(struct state *state, const CmdNodeDown *cmd, struct events *out)
{
    struct node *node = node_at(state, cmd->node);

    if (!node)
        return ERR_INVALID_NODE_NAME;
    bool was_usable = node_is_usable(node);
    if (node->state != NODE_DOWN && node->state != NODE_FUTURE) {
        node->state = NODE_DOWN;
        if (!(node->flags & NODE_FLAG_DRAIN))
            node_set_reason(state, node, cmd->reason ? cmd->reason : "Not responding", "slurm", 0);
    }
    if (cmd->no_respond)
        node->flags |= NODE_FLAG_NO_RESPOND;
    if (cmd->jobs_lost || cmd->lease_over)
        node_lose_jobs_of(state, node, cmd, false, out);
    node_touch(state, node);
    say(out, node, was_usable, false);
    return ERR_OK;
}

/* scontrol update node state=WORD */
enum word_act {
    ACT_DOWN,
    ACT_RESUME,
    ACT_FUTURE,
    ACT_FLAGS,
    ACT_REBOOT,
    ACT_REBOOT_ASAP,  /* no more jobs before */
    ACT_REBOOT_FORCE, /* and those that run end */
    ACT_NO_REBOOT,
    ACT_NOT_THERE
};

static const struct node_word {
    const char *word;
    enum word_act act;
    uint32_t set, clear;
} node_words[] = {
    { "DOWN", ACT_DOWN, 0, 0 },
    { "DRAIN", ACT_FLAGS, NODE_FLAG_DRAIN, 0 },
    { "UNDRAIN", ACT_FLAGS, 0, NODE_FLAG_DRAIN | NODE_FLAG_INVALID_REG },
    { "FAIL", ACT_FLAGS, NODE_FLAG_FAIL, 0 },
    { "NORESP", ACT_FLAGS, NODE_FLAG_NO_RESPOND, 0 },
    { "REBOOT", ACT_REBOOT, 0, 0 },
    { "REBOOT_ASAP", ACT_REBOOT_ASAP, 0, 0 },
    { "REBOOT_FORCE", ACT_REBOOT_FORCE, 0, 0 },
    { "CANCEL_REBOOT", ACT_NO_REBOOT, 0, 0 },
    { "RESUME", ACT_RESUME, 0, NODE_FLAG_DRAIN | NODE_FLAG_FAIL | NODE_FLAG_INVALID_REG },
    { "IDLE", ACT_RESUME, 0, NODE_FLAG_DRAIN | NODE_FLAG_FAIL | NODE_FLAG_INVALID_REG },
    { "FUTURE", ACT_FUTURE, 0, 0 },
    { "POWER_DOWN", ACT_NOT_THERE, 0, 0 },
    { "POWER_DOWN_ASAP", ACT_NOT_THERE, 0, 0 },
    { "POWER_DOWN_FORCE", ACT_NOT_THERE, 0, 0 },
    { "POWER_UP", ACT_NOT_THERE, 0, 0 },
};

static const struct node_word *word_of(const char *text)
{
    for (size_t i = 0; i < ARRAY_LEN(node_words); i++) {
        if (str_ieq(node_words[i].word, text))
            return &node_words[i];
    }
    return NULL;
}

static enum err_code check_word(const struct node *node, const struct node_word *word,
                                struct err *err)
{
    if (word->act == ACT_NOT_THERE) {
        err_set(err, ERR_NODE_STATE,
                "%s\nthere is no power saving: nodes are switched neither off nor on",
                err_text(ERR_NODE_STATE));
        return ERR_NODE_STATE;
    }
    if (word->act == ACT_NO_REBOOT && node->flags & NODE_FLAG_REBOOT_ISSUED)
        return ERR_REBOOT_IN_PROGRESS;
    if (word->act == ACT_FUTURE && node->jobs.len)
        return ERR_NODE_TRANSITION;
    if (word->act == ACT_RESUME && str_ieq(word->word, "RESUME") && node->state == NODE_FUTURE)
        return ERR_NODE_TRANSITION;
    return ERR_OK;
}

static void set_word(struct state *state, struct node *node, const struct node_word *word,
                     struct events *out)
{
    node->flags = (node->flags | word->set) & ~word->clear;
    switch (word->act) {
    case ACT_DOWN:
        node->state = NODE_DOWN;
        end_jobs(state, node, out);
        break;
    case ACT_RESUME:
        node_resume(state, node, out);
        break;
    case ACT_FUTURE:
        node->state = NODE_FUTURE;
        break;
    case ACT_NO_REBOOT:
        reboot_forget(state, node, out);
        break;
    case ACT_REBOOT:
    case ACT_REBOOT_ASAP:
    case ACT_REBOOT_FORCE:
    case ACT_FLAGS:
    case ACT_NOT_THERE:
        break;
    }
    if ((word->clear || word->act == ACT_NO_REBOOT) && node->state != NODE_DOWN &&
        !(node->flags & NODE_FLAG_DRAIN))
        node_set_reason(state, node, NULL, NULL, 0);
}

static bool is_reboot(const struct node_word *word)
{
    return word && (word->act == ACT_REBOOT || word->act == ACT_REBOOT_ASAP ||
                    word->act == ACT_REBOOT_FORCE);
}

static void set_reboot(struct state *state, struct node *node, const struct node_word *word,
                       const CmdUpdateNode *cmd, struct events *out)
{
    bool asap = word->act != ACT_REBOOT;

    if (!reboot_ask(state, node, asap, (unsigned)cmd->next_state))
        return;
    if (cmd->reason || asap)
        node_set_reason(state, node, cmd->reason ? cmd->reason : "Reboot ASAP", cmd->by_user,
                        cmd->by_uid);
    if (word->act == ACT_REBOOT_FORCE)
        end_jobs(state, node, out);
    reboot_idle(state, node, out);
}

static enum err_code check_change(const NodeSpec *change, struct err *err)
{
    static const char *const may[] = { "name",     "addr",        "hostname",     "weight",
                                       "features", "gres",        "comment",      "extra",
                                       "topology", "instance_id", "instance_type" };
    const ProtobufCMessageDescriptor *type = &node_spec__descriptor;

    for (unsigned i = 0; change && i < type->n_fields; i++) {
        bool good = !pb_has(change, &type->fields[i]);
        for (size_t k = 0; k < ARRAY_LEN(may); k++)
            good = good || strcmp(type->fields[i].name, may[k]) == 0;
        if (!good)
            return (enum err_code) - err_set(err, ERR_UNSUPPORTED,
                                             "%s of a node is changed in the configuration",
                                             type->fields[i].name);
    }
    return change && change->n_gres > TAKE_GRES ? ERR_GRES : ERR_OK;
}

static void change_spec(struct state *state, struct node *node, const CmdUpdateNode *cmd)
{
    NodeSpec change = NODE_SPEC__INIT;

    if (cmd->change)
        change = *cmd->change;
    change.name = node->spec->name;
    NodeSpec *merged = pb_merge(node->spec, &change, &state->scratch);
    if (cmd->clear_features)
        pb_clear(merged, "features");
    node_set_spec(node, merged);
    node_amounts(node);
    state->generation++;
}

static enum err_code check_update(const struct state *state, const CmdUpdateNode *cmd,
                                  const struct node_word *word, struct err *err)
{
    if (cmd->n_nodes == 0)
        return ERR_INVALID_NODE_NAME;
    if (is_reboot(word) && str_is_empty(state->config->reboot_program))
        return (enum err_code) - err_set(err, ERR_DISABLED, "RebootProgram is not configured");
    for (size_t i = 0; i < cmd->n_nodes; i++) {
        const struct node *node = node_at(state, cmd->nodes[i]);
        if (!node)
            return (enum err_code) - err_set(err, ERR_INVALID_NODE_NAME,
                                             "Invalid node name specified: %.100s", cmd->nodes[i]);
        enum err_code code = word ? check_word(node, word, err) : ERR_OK;
        if (code != ERR_OK)
            return code;
    }
    return check_change(cmd->change, err);
}

int core_check_node_update(const struct state *state, const CmdUpdateNode *cmd, struct err *err)
{
    const struct node_word *word = str_is_empty(cmd->state) ? NULL : word_of(cmd->state);

    if (!str_is_empty(cmd->state) && !word)
        return err_set(err, ERR_NODE_STATE, "Invalid node state specified: %.100s", cmd->state);
    enum err_code code = check_update(state, cmd, word, err);
    if (code != ERR_OK && err->code != code) /* those without words of their own */
        err_code(err, code);
    return -(int)code;
}

enum err_code apply_update_node(struct state *state, const CmdUpdateNode *cmd, struct err *err,
                                struct events *out)
{
    const struct node_word *word = str_is_empty(cmd->state) ? NULL : word_of(cmd->state);

    if (!str_is_empty(cmd->state) && !word)
        return (enum err_code) -
               err_set(err, ERR_NODE_STATE, "Invalid node state specified: %.100s", cmd->state);
    enum err_code code = check_update(state, cmd, word, err);
    if (code != ERR_OK)
        return code;
    for (size_t i = 0; i < cmd->n_nodes; i++) {
        struct node *node = node_at(state, cmd->nodes[i]);
        bool was_usable = node_is_usable(node);
        if (is_reboot(word))
            set_reboot(state, node, word, cmd, out);
        else if (word)
            set_word(state, node, word, out);
        if (cmd->reason && !is_reboot(word))
            node_set_reason(state, node, cmd->reason, cmd->by_user, cmd->by_uid);
        if (cmd->change || cmd->clear_features)
            change_spec(state, node, cmd);
        if (cmd->has_resume_after_s) {
            node->resume_us =
                cmd->resume_after_s ? state->time_us + cmd->resume_after_s * US_PER_S : 0;
            reboots_next(state);
        }
        node_touch(state, node);
        say(out, node, was_usable, cmd->change != NULL);
    }
    return ERR_OK;
}

enum err_code apply_node_key(struct state *state, const CmdNodeKey *cmd)
{
    if (str_is_empty(cmd->node) || strlen(cmd->node) > LIMIT_HOST_NAME || cmd->key.len > 4096)
        return ERR_INVALID;
    if (cmd->forgotten) {
        const ProtobufCBinaryData *key = state_node_key(state, cmd->node);
        node_set_key(state, cmd->node, key ? key : &cmd->key, true);
        return ERR_OK;
    }
    node_set_key(state, cmd->node, cmd->remove ? NULL : &cmd->key, false);
    return ERR_OK;
}
