/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_hello.c - a node says hello and is told where it stands
 *
 * (1) Hello is answered from the state alone: what the node should hold, it is granted again; what
 *     it holds and should not, it is told to end. So nothing needs to be remembered across leaders.
 * (2) What all agents must know is told to some of them in each turn of the loop; what an agent is sent
 *     meanwhile comes behind it.
 */
#include <stdlib.h>
#include <string.h>

#include "core/level.h"
#include "spurctld/ctl/ctl_priv.h"
#include "sys/log.h"

enum { HEARTBEAT_MS = 3000, TELL_PER_TURN = 64 };

static const HeldGrant *held(const NodeHello *hello, const struct job *job)
{
    for (size_t i = 0; i < hello->n_held; i++) {
        if (hello->held[i]->job_id == job->id && hello->held[i]->attempt == job->attempt)
            return hello->held[i];
    }
    return NULL;
}

static NodeConfig *node_config(struct ctl *ctl, const struct node *node, struct arena *arena)
{
    NodeConfig *out = ARENA_NEW(arena, NodeConfig);
    Config *common = ARENA_NEW(arena, Config);

    node_config__init(out);
    *common = *state_config(ctl->state);
    common->n_nodes = common->n_partitions = 0;
    common->nodes = NULL;
    common->partitions = NULL;
    out->hash = common->hash;
    out->cluster_name = common->cluster_name;
    out->spec = node->spec;
    out->common = common;
    return out;
}

/* As agents write addresses; plain only where nobody else listens. */
static size_t controller_addresses(struct ctl *ctl, struct arena *arena, char ***out)
{
    const CmdControllers *list = state_controllers(ctl->state);
    size_t count = list ? list->n_controllers : 0;

    *out = ARENA_ARRAY(arena, char *, count + 1);
    for (size_t i = 0; i < count; i++) {
        const char *address = list->controllers[i]->address;
        bool here = str_starts(address, "127.") || str_starts(address, "localhost:");
        (*out)[i] = arena_printf(arena, "%s://%s", here ? "http" : "https", address);
    }
    return count;
}

/* ---- news for all agents: so many in a turn of the loop ---- */

static void tell_controllers(struct ctl *ctl, struct agent *agent, struct arena *arena)
{
    CtlControllers list = CTL_CONTROLLERS__INIT;
    CtlMessage message = CTL_MESSAGE__INIT;

    list.n_addresses = controller_addresses(ctl, arena, &list.addresses);
    message.what_case = CTL_MESSAGE__WHAT_CONTROLLERS;
    message.controllers = &list;
    ctl_send(ctl, agent, &message);
}

static void tell_config(struct ctl *ctl, struct agent *agent, struct arena *arena)
{
    const struct node *node = state_node(ctl->state, agent->name);
    CtlMessage message = CTL_MESSAGE__INIT;

    if (!node || agent->lease_ms != ctl_lease_ms(ctl)) { /* the next welcome says it */
        ctl->io.hang_up(ctl->io.ctx, agent->session);
        return;
    }
    message.what_case = CTL_MESSAGE__WHAT_CONFIG;
    message.config = node_config(ctl, node, arena);
    ctl_send(ctl, agent, &message);
}

void ctl_tell(struct ctl *ctl, struct agent *agent)
{
    unsigned what = agent->tell;
    struct arena arena;

    agent->tell = 0;
    if (!what || !agent->session || !agent->welcomed)
        return;
    arena_init(&arena);
    if (what & TELL_CONTROLLERS)
        tell_controllers(ctl, agent, &arena);
    if (what & TELL_CONFIG)
        tell_config(ctl, agent, &arena);
    arena_done(&arena);
}

void ctl_tell_timer(struct ctl *ctl)
{
    for (unsigned told = 0; ctl->nodes.telling.len && told < TELL_PER_TURN;) {
        struct agent *agent = ctl->nodes.telling.items[--ctl->nodes.telling.len];
        told += agent->tell != 0;
        ctl_tell(ctl, agent);
    }
    if (ctl->nodes.telling.len)
        ctl->io.timer(ctl->io.ctx, CTL_TIMER_TELL, ctl_now(ctl));
}

static void tell_all(struct ctl *ctl, unsigned what)
{
    vec_clear(&ctl->nodes.telling);
    map_each (entry, &ctl->nodes.agents) {
        struct agent *agent = entry->value;
        if (agent->session && agent->welcomed)
            agent->tell |= what;
        if (agent->tell)
            vec_push(&ctl->nodes.telling, agent);
    }
    ctl_tell_timer(ctl);
}

void ctl_nodes_controllers(struct ctl *ctl)
{
    tell_all(ctl, TELL_CONTROLLERS);
}

void ctl_nodes_config(struct ctl *ctl)
{
    tell_all(ctl, TELL_CONFIG);
}

/* ---- hello ---- */

static void end_or_release(struct ctl *ctl, const struct job *job, size_t part,
                           const HeldGrant *grant)
{
    if (grant)
        ctl_send_revoke(ctl, job, part);
    else
        ctl_propose_release(ctl, job->id, job->attempt, job->run->parts[part].name);
}

/* (1): brings one job of the node to where the state says it is. */
static void reconcile_job(struct ctl *ctl, const struct job *job, const char *node,
                          const NodeHello *hello)
{
    const HeldGrant *grant = held(hello, job);
    size_t part = ctl_part_of(ctl, job, node);

    switch (job_phase(job)) {
    case PHASE_CONFIGURING:
        if (!grant || !grant->ready) /* it may have become ready since: it is to say so */
            ctl_send_grant(ctl, job, part, NULL);
        if (grant && !grant->launched && ctl_launches_with_grant(job))
            ctl_send_launch(ctl, job); /* the script that came with the grant was not kept */
        if (grant && grant->ready)
            ctl_granting_ack(ctl, job, node);
        break;
    case PHASE_RUNNING:
    case PHASE_SUSPENDED:
        if (job->run->parts[part].left) {
            end_or_release(ctl, job, part, grant);
            break;
        }
        if (!grant || ctl_grant_version(job) > 1)
            ctl_send_grant(ctl, job, part, NULL);
        else if (part == 0 && job->batch && !grant->launched)
            ctl_send_launch(ctl, job);
        ctl_send_condition(ctl, job, part);
        break;
    case PHASE_COMPLETING:
    case PHASE_REQUEUING:
        end_or_release(ctl, job, part, grant);
        break;
    case PHASE_PENDING:
    case PHASE_ENDED:
        break;
    }
}

static void welcome(struct ctl *ctl, struct agent *agent, const NodeHello *hello)
{
    const struct node *node = state_node(ctl->state, agent->name);
    struct state_head head = state_head(ctl->state);
    struct arena arena;
    CtlWelcome out = CTL_WELCOME__INIT;
    CtlMessage message = CTL_MESSAGE__INIT;
    size_t keep = 0;

    if (!node || !agent->session)
        return;
    arena_init(&arena);
    out.has_epoch = out.has_cluster_id = out.has_heartbeat_ms = true;
    out.epoch = head.epoch;
    out.cluster_id = (ProtobufCBinaryData){ 16, (uint8_t *)head.cluster_id };
    out.heartbeat_ms = HEARTBEAT_MS;
    out.n_controllers = controller_addresses(ctl, &arena, &out.controllers);
    out.has_lease_ms = true;
    out.lease_ms = agent->lease_ms = ctl_lease_ms(ctl);
    if (out.lease_ms)
        out.heartbeat_ms = MIN(out.heartbeat_ms, MAX(out.lease_ms / 4, 100));
    out.config = node_config(ctl, node, &arena);
    if (ctl->self.has_verify_key) {
        out.has_verify_key = true;
        out.verify_key =
            (ProtobufCBinaryData){ sizeof(ctl->self.verify_key), ctl->self.verify_key };
    }
    out.keep = ARENA_ARRAY(&arena, HeldGrant *, node->jobs.len + 1);
    for (size_t i = 0; i < node->jobs.len; i++) {
        const struct job *job = node->jobs.items[i];
        HeldGrant *grant = ARENA_NEW(&arena, HeldGrant);
        held_grant__init(grant);
        grant->has_job_id = grant->has_attempt = true;
        grant->job_id = job->id;
        grant->attempt = job->attempt;
        out.keep[keep++] = grant;
    }
    out.n_keep = keep;
    message.what_case = CTL_MESSAGE__WHAT_WELCOME;
    message.welcome = &out;
    agent->welcomed = true;
    agent->tell = 0; /* the welcome says all */
    agent->heard_us = ctl_mono(ctl);
    agent->down_proposed = agent->loss_proposed = agent->lease_proposed = false;
    ctl_send(ctl, agent, &message);
    for (size_t i = node->jobs.len; i-- > 0;)
        reconcile_job(ctl, node->jobs.items[i], agent->name, hello);
    ctl_send_reboot(ctl, node); /* it did not hear of it, or its agent was only restarted */
    arena_done(&arena);
}

static void node_up_done(struct ctl *ctl, void *arg, const struct events *events,
                         const struct err *err)
{
    struct agent *agent = ctl_agent(ctl, arg);

    free(arg);
    if (!agent || !agent->hello)
        return;
    NodeHello *hello = TAKE(agent->hello);
    const struct event *answer = events ? ctl_answer(events) : NULL;
    if (!err && answer->code == ERR_OK) {
        welcome(ctl, agent, hello);
        ctl_look_at_level(ctl);
        log_info("node.up", "node=%s held=%zu", agent->name, hello->n_held);
        const struct node *node = state_node(ctl->state, agent->name);
        if (node && node->flags & NODE_FLAG_INVALID_REG)
            log_warn("node.invalid", "node=%s reason=%s", agent->name,
                     node->reason ? node->reason : "");
        else if (node && node->flags & NODE_FLAG_DRAIN)
            log_info("node.drained", "node=%s reason=%s", agent->name,
                     node->reason ? node->reason : "");
    } else {
        log_warn("node.refused", "node=%s text=%s", agent->name,
                 err            ? err->text
                 : answer->text ? answer->text
                                : err_text(answer->code));
        if (agent->session)
            ctl->io.hang_up(ctl->io.ctx, agent->session);
    }
    node_hello__free_unpacked(hello, NULL);
}

static NodeHello *hello_copy(const NodeHello *hello)
{
    size_t len = node_hello__get_packed_size(hello);
    uint8_t *bytes = mem_new(len + 1);

    node_hello__pack(hello, bytes);
    NodeHello *copy = node_hello__unpack(NULL, len, bytes);
    free(bytes);
    return copy;
}

/* The machine was started anew, so nothing that ran on it is left. */
static void propose_rebooted(struct ctl *ctl, const struct node *node, const NodeHello *hello)
{
    const char *name = node->spec->name;
    CmdNodeDown down = CMD_NODE_DOWN__INIT;
    Command command = CTL_COMMAND(NODE_DOWN, .node_down = &down);

    down.node = (char *)name;
    down.reason = (char *)"Node unexpectedly rebooted";
    down.has_jobs_lost = down.jobs_lost = true;
    log_warn("node.rebooted", "node=%s", name);
    int64_t boot_us = hello->has_uptime_us ? ctl_mono(ctl) - hello->uptime_us : INT64_MAX;
    down.unstarted = ctl_unstarted(ctl, node, boot_us, &down.n_unstarted);
    ctl_propose(ctl, &command, NULL, NULL);
    free(down.unstarted);
}

void ctl_on_hello(struct ctl *ctl, struct agent *agent, const NodeHello *hello)
{
    const struct node *node = state_node(ctl->state, agent->name);
    CmdNodeUp up = CMD_NODE_UP__INIT;
    Command command = CTL_COMMAND(NODE_UP, .node_up = &up);

    if (!node || !hello->found || agent->hello) {
        log_warn("node.unknown", "node=%s", agent->name);
        ctl->io.hang_up(ctl->io.ctx, agent->session);
        return;
    }
    agent->level = hello->has_level ? hello->level : LEVEL_FIRST;
    if (agent->level < level_for_nodes(state_level(ctl->state))) {
        log_warn("node.old", "node=%s its build (%s) knows feature level %u; the cluster needs %u",
                 agent->name, hello->build ? hello->build : "unnamed", agent->level,
                 level_for_nodes(state_level(ctl->state)));
        ctl->io.hang_up(ctl->io.ctx, agent->session);
        return;
    }
    bool expected = node->flags & NODE_FLAG_REBOOT_ISSUED;
    if (!expected && node->found && node->found->boot_id && hello->found->boot_id &&
        node->jobs.len && strcmp(node->found->boot_id, hello->found->boot_id) != 0)
        propose_rebooted(ctl, node, hello);
    agent->hello = hello_copy(hello);
    up.node = agent->name;
    up.found = hello->found;
    ctl_propose_own(ctl, &command, node_up_done, mem_strdup(agent->name));
}

static bool is_same(const NodeInventory *a, const NodeInventory *b)
{
    size_t len = node_inventory__get_packed_size(a);
    CLEANUP(freep) uint8_t *left = mem_new(len + 1);
    CLEANUP(freep) uint8_t *right = NULL;

    if (node_inventory__get_packed_size(b) != len)
        return false;
    right = mem_new(len + 1);
    node_inventory__pack(a, left);
    node_inventory__pack(b, right);
    return memcmp(left, right, len) == 0;
}

/* A node that has read its configuration knows more of itself than when it said hello. */
void ctl_on_found(struct ctl *ctl, struct agent *agent, const NodeInventory *found)
{
    const struct node *node = state_node(ctl->state, agent->name);
    CmdNodeUp up = CMD_NODE_UP__INIT;
    Command command = CTL_COMMAND(NODE_UP, .node_up = &up);

    if (!node || !node->found || !agent->welcomed || is_same(node->found, found))
        return;
    up.node = agent->name;
    up.found = (NodeInventory *)(uintptr_t)found;
    ctl_propose(ctl, &command, NULL, NULL);
}
