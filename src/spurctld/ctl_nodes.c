/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_nodes.c - sessions of agents: hello, reports, heartbeats, silence
 *
 * (1) A session speaks for the node that it proved to be, and for no other.
 * (2) Liveness is soft state of the leader; only up and down are commands.
 * (3) A report is acknowledged after it is committed, so an agent that keeps it until then loses
 *     nothing, whoever crashes.
 * (4) Hello is answered from the state alone: what the node should hold, it is granted again; what
 *     it holds and should not, it is told to end. So nothing needs to be remembered across leaders.
 */
#include <stdlib.h>
#include <string.h>

#include "spurctld/ctl_priv.h"
#include "sys/log.h"

enum { HEARTBEAT_MS = 3000 };
static const int64_t SECOND_US = 1000000;

struct agent *ctl_agent(struct ctl *ctl, const char *node)
{
    return map_get(&ctl->agents, node);
}

static struct agent *agent_of(struct ctl *ctl, const char *node)
{
    struct agent *agent = ctl_agent(ctl, node);

    if (!agent) {
        agent = NEW(struct agent);
        agent->name = mem_strdup(node);
        map_put(&ctl->agents, node, agent);
    }
    return agent;
}

void ctl_send(struct ctl *ctl, struct agent *agent, CtlMessage *message)
{
    message->has_epoch = true;
    message->epoch = state_head(ctl->state).epoch;
    if (agent->session)
        ctl->io.send(ctl->io.ctx, agent->session, message);
}

static unsigned or_default(bool has, unsigned value, unsigned otherwise)
{
    return has && value ? value : otherwise;
}

/* ---- silence ---- */

static int64_t node_timeout_us(struct ctl *ctl)
{
    const Config *config = state_config(ctl->state);

    return or_default(config->has_node_timeout_s, config->node_timeout_s, 10) * SECOND_US;
}

static int64_t agent_timeout_us(struct ctl *ctl)
{
    const Config *config = state_config(ctl->state);

    return or_default(config->has_agent_timeout_s, config->agent_timeout_s, 300) * SECOND_US;
}

/* When this agent's silence means something; INT64_MAX: it is as it should be. */
static int64_t silence_due(struct ctl *ctl, const struct agent *agent)
{
    if (agent->session)
        return agent->seen_us + node_timeout_us(ctl);
    if (agent->loss_proposed || !agent->lost_us)
        return INT64_MAX;
    bool at_once = !agent->host_answers && !agent->down_proposed;
    return agent->lost_us + (at_once ? node_timeout_us(ctl) : agent_timeout_us(ctl));
}

static void down_done(struct ctl *ctl, void *arg, const struct events *events,
                      const struct err *err)
{
    struct agent *agent = ctl_agent(ctl, arg);

    (void)events;
    if (err && agent) /* it was not said: say it when the disk takes it */
        agent->down_proposed = agent->loss_proposed = false;
    free(arg);
}

/*
 * A host that answers keeps its jobs for agent_timeout, and is then given up with them. One that is
 * silent is down after node_timeout; without leases its jobs may still run, so they too are given
 * up after agent_timeout only.
 */
static void propose_down(struct ctl *ctl, struct agent *agent)
{
    const struct node *node = state_node(ctl->state, agent->name);
    CmdNodeDown down = CMD_NODE_DOWN__INIT;
    Command command = CTL_COMMAND(NODE_DOWN, .node_down = &down);
    bool lost = ctl_mono(ctl) - agent->lost_us >= agent_timeout_us(ctl);

    agent->down_proposed = true;
    agent->loss_proposed = lost;
    if (!node || node->state == NODE_FUTURE || (node->state == NODE_DOWN && !node->jobs.len))
        return;
    down.node = agent->name;
    down.reason = (char *)"Not responding";
    down.has_no_respond = down.no_respond = true;
    down.has_jobs_lost = true;
    down.jobs_lost = lost;
    log_warn("node.down", "node=%s host_answers=%d jobs_lost=%d", agent->name, agent->host_answers,
             lost);
    ctl_propose(ctl, &command, down_done, mem_strdup(agent->name));
}

static void arm(struct ctl *ctl)
{
    int64_t first = INT64_MAX;

    map_each (entry, &ctl->agents) {
        int64_t due = silence_due(ctl, entry->value);
        first = MIN(first, due);
    }
    ctl->io.timer(ctl->io.ctx, CTL_TIMER_NODES,
                  first == INT64_MAX ? 0 : ctl_now(ctl) + MAX(first - ctl_mono(ctl), 0));
}

void ctl_nodes_timer(struct ctl *ctl)
{
    int64_t now = ctl_mono(ctl);

    if (!ctl->leading)
        return;
    map_each (entry, &ctl->agents) {
        struct agent *agent = entry->value;
        if (silence_due(ctl, agent) > now)
            continue;
        if (agent->session) {
            log_warn("node.silent", "node=%s", agent->name);
            ctl->io.hang_up(ctl->io.ctx, agent->session);
            ctl_session_closed(ctl, agent->session, false);
            agent->lost_us = agent->seen_us; /* silent since then */
        }
        if (silence_due(ctl, agent) <= now)
            propose_down(ctl, agent);
    }
    arm(ctl);
}

/* Nodes that are up, or hold jobs, get the usual time to connect to a new leader. */
void ctl_nodes_leading(struct ctl *ctl)
{
    for (size_t i = 0; i < state_node_count(ctl->state); i++) {
        const struct node *node = state_node_at(ctl->state, i);
        struct agent *agent = agent_of(ctl, node->spec->name);
        if (!agent->session && !agent->lost_us && (node->state == NODE_IDLE || node->jobs.len)) {
            agent->lost_us = ctl_mono(ctl);
            agent->host_answers = true;
        }
    }
    arm(ctl);
}

/* Agents are the new leader's; what was known of them means nothing when we lead again. */
void ctl_nodes_following(struct ctl *ctl)
{
    map_each (entry, &ctl->agents) {
        struct agent *agent = entry->value;
        uint64_t session = agent->session;
        if (session) {
            ctl_session_closed(ctl, session, true);
            ctl->io.hang_up(ctl->io.ctx, session);
        }
        *agent = (struct agent){ .name = agent->name };
    }
    map_each (entry, &ctl->granting)
        ctl_granting_end(ctl, (uint32_t)entry->num);
    ctl->io.timer(ctl->io.ctx, CTL_TIMER_NODES, 0);
}

/*
 * Every agent connects again and is told what is due (4). For the rare case that effects may have
 * been lost: the log refused what they rested on.
 */
void ctl_reconcile(struct ctl *ctl)
{
    map_each (entry, &ctl->agents) {
        struct agent *agent = entry->value;
        uint64_t session = agent->session;
        if (session) {
            ctl_session_closed(ctl, session, true);
            ctl->io.hang_up(ctl->io.ctx, session);
        }
    }
    arm(ctl);
}

/* ---- sessions ---- */

void ctl_session_open(struct ctl *ctl, uint64_t session, const char *node)
{
    struct agent *agent = agent_of(ctl, node);

    if (agent->session) {
        /* The agent was restarted, or its old connection is half dead: the newer one counts. */
        uint64_t old = agent->session;
        log_info("node.replaced", "node=%s", node);
        ctl_session_closed(ctl, old, true);
        ctl->io.hang_up(ctl->io.ctx, old);
    }
    agent->session = session;
    agent->welcomed = false;
    agent->seen_us = ctl_mono(ctl);
    agent->lost_us = 0;
    map_put_num(&ctl->sessions, session, agent);
    arm(ctl);
}

void ctl_session_closed(struct ctl *ctl, uint64_t session, bool host_answers)
{
    struct agent *agent = map_del_num(&ctl->sessions, session);

    if (!agent || agent->session != session)
        return;
    agent->session = 0;
    agent->welcomed = false;
    agent->host_answers = host_answers;
    agent->lost_us = ctl_mono(ctl);
    if (agent->hello) {
        node_hello__free_unpacked(agent->hello, NULL);
        agent->hello = NULL;
    }
    arm(ctl);
}

/* ---- grants ---- */

void ctl_granting_start(struct ctl *ctl, const struct job *job)
{
    struct granting *granting = NEW(struct granting);

    ctl_granting_end(ctl, job->id);
    granting->job_id = job->id;
    granting->attempt = job->attempt;
    bitset_init(&granting->acked, job->run->count);
    map_put_num(&ctl->granting, job->id, granting);
}

void ctl_granting_end(struct ctl *ctl, uint32_t job_id)
{
    struct granting *granting = map_del_num(&ctl->granting, job_id);

    if (granting) {
        bitset_done(&granting->acked);
        free(granting);
    }
}

static void ready_done(struct ctl *ctl, void *arg, const struct events *events,
                       const struct err *err)
{
    struct granting *granting = map_get_num(&ctl->granting, (uint32_t)(uintptr_t)arg);

    (void)events;
    if (err && granting) /* the next hello of one of its nodes proposes it again */
        granting->ready_proposed = false;
}

static void propose_ready(struct ctl *ctl, const struct job *job)
{
    CmdReady ready = CMD_READY__INIT;
    Command command = CTL_COMMAND(READY, .ready = &ready);

    ready.has_job_id = ready.has_attempt = true;
    ready.job_id = job->id;
    ready.attempt = job->attempt;
    ctl_propose(ctl, &command, ready_done, (void *)(uintptr_t)job->id);
}

void ctl_granting_ack(struct ctl *ctl, const struct job *job, const char *node)
{
    struct granting *granting = map_get_num(&ctl->granting, job->id);
    enum job_phase phase = job_phase(job);

    /* Its first node had lost the grant and was given it again: the script is due there. */
    if ((phase == PHASE_RUNNING || phase == PHASE_SUSPENDED) && !ctl_launches_with_grant(job) &&
        strcmp(job->run->parts[0].name, node) == 0)
        ctl_send_launch(ctl, job);
    if (!granting || granting->attempt != job->attempt || !job->run) {
        if (job->run && job_phase(job) != PHASE_CONFIGURING)
            return;
        ctl_granting_start(ctl, job); /* a leader that came later */
        granting = map_get_num(&ctl->granting, job->id);
    }
    for (size_t i = 0; i < job->run->count; i++) {
        if (strcmp(job->run->parts[i].name, node) == 0)
            bitset_add(&granting->acked, i);
    }
    if (bitset_count(&granting->acked) < job->run->count || granting->ready_proposed)
        return;
    granting->ready_proposed = true;
    if (job_phase(job) == PHASE_CONFIGURING)
        propose_ready(ctl, job);
    else
        ctl_granting_end(ctl, job->id);
}

/* ---- hello ---- */

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

void ctl_nodes_config(struct ctl *ctl)
{
    struct arena arena;

    arena_init(&arena);
    map_each (entry, &ctl->agents) {
        struct agent *agent = entry->value;
        const struct node *node = state_node(ctl->state, agent->name);
        CtlMessage message = CTL_MESSAGE__INIT;
        if (!agent->session || !agent->welcomed)
            continue;
        if (!node) {
            ctl->io.hang_up(ctl->io.ctx, agent->session);
            continue;
        }
        message.what_case = CTL_MESSAGE__WHAT_CONFIG;
        message.config = node_config(ctl, node, &arena);
        ctl_send(ctl, agent, &message);
    }
    arena_done(&arena);
}

static void propose_release(struct ctl *ctl, uint32_t job_id, uint32_t attempt, const char *node)
{
    CmdRelease release = CMD_RELEASE__INIT;
    Command command = CTL_COMMAND(RELEASE, .release = &release);
    char *nodes[] = { (char *)node };

    release.has_job_id = release.has_attempt = true;
    release.job_id = job_id;
    release.attempt = attempt;
    release.n_nodes = 1;
    release.nodes = nodes;
    ctl_propose(ctl, &command, NULL, NULL);
}

static size_t part_of(const struct job *job, const char *node)
{
    size_t i = 0;

    while (i < job->run->count && strcmp(job->run->parts[i].name, node) != 0)
        i++;
    return i;
}

/* (4): brings one job of the node to where the state says it is. */
static void reconcile_job(struct ctl *ctl, const struct job *job, const char *node,
                          const NodeHello *hello)
{
    const HeldGrant *grant = held(hello, job);
    size_t part = part_of(job, node);

    switch (job_phase(job)) {
    case PHASE_CONFIGURING:
        if (!grant)
            ctl_send_grant(ctl, job, part);
        else if (!grant->launched && ctl_launches_with_grant(job))
            ctl_send_launch(ctl, job); /* the script that came with the grant was not kept */
        if (grant && grant->ready)
            ctl_granting_ack(ctl, job, node);
        break;
    case PHASE_RUNNING:
    case PHASE_SUSPENDED:
        if (!grant)
            ctl_send_grant(ctl, job, part);
        else if (part == 0 && job->batch && !grant->launched)
            ctl_send_launch(ctl, job);
        ctl_send_condition(ctl, job, part);
        break;
    case PHASE_COMPLETING:
    case PHASE_REQUEUING:
        if (grant)
            ctl_send_revoke(ctl, job, part);
        else
            propose_release(ctl, job->id, job->attempt, node);
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
    out.config = node_config(ctl, node, &arena);
    if (ctl->has_verify_key) {
        out.has_verify_key = true;
        out.verify_key = (ProtobufCBinaryData){ sizeof(ctl->verify_key), ctl->verify_key };
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
    agent->down_proposed = agent->loss_proposed = false;
    ctl_send(ctl, agent, &message);
    for (size_t i = node->jobs.len; i-- > 0;)
        reconcile_job(ctl, node->jobs.items[i], agent->name, hello);
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
        log_info("node.up", "node=%s held=%zu", agent->name, hello->n_held);
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
static void propose_rebooted(struct ctl *ctl, const char *name)
{
    CmdNodeDown down = CMD_NODE_DOWN__INIT;
    Command command = CTL_COMMAND(NODE_DOWN, .node_down = &down);

    down.node = (char *)name;
    down.reason = (char *)"Node unexpectedly rebooted";
    down.has_jobs_lost = down.jobs_lost = true;
    log_warn("node.rebooted", "node=%s", name);
    ctl_propose(ctl, &command, NULL, NULL);
}

static void on_hello(struct ctl *ctl, struct agent *agent, const NodeHello *hello)
{
    const struct node *node = state_node(ctl->state, agent->name);
    CmdNodeUp up = CMD_NODE_UP__INIT;
    Command command = CTL_COMMAND(NODE_UP, .node_up = &up);

    if (!node || !hello->found || agent->hello) {
        log_warn("node.unknown", "node=%s", agent->name);
        ctl->io.hang_up(ctl->io.ctx, agent->session);
        return;
    }
    if (node->found && node->found->boot_id && hello->found->boot_id && node->jobs.len &&
        strcmp(node->found->boot_id, hello->found->boot_id) != 0)
        propose_rebooted(ctl, agent->name);
    agent->hello = hello_copy(hello);
    up.node = agent->name;
    up.found = hello->found;
    ctl_propose(ctl, &command, node_up_done, mem_strdup(agent->name));
}

/* ---- reports ---- */

struct report {
    char *node;
    uint32_t job_id, attempt, step;
};

static void ack(struct ctl *ctl, const struct report *report)
{
    struct agent *agent = ctl_agent(ctl, report->node);
    AckReport out = ACK_REPORT__INIT;
    CtlMessage message = CTL_MESSAGE__INIT;

    if (!agent || !agent->session)
        return;
    out.has_job_id = out.has_attempt = out.has_step = true;
    out.job_id = report->job_id;
    out.attempt = report->attempt;
    out.step = report->step;
    message.what_case = CTL_MESSAGE__WHAT_ACK;
    message.ack = &out;
    ctl_send(ctl, agent, &message);
}

static void report_done(struct ctl *ctl, void *arg, const struct events *events,
                        const struct err *err)
{
    struct report *report = arg;

    (void)events;
    if (!err)
        ack(ctl, report); /* (3); also when it was stale: nobody needs it any more */
    free(report->node);
    free(report);
}

static void on_ended(struct ctl *ctl, struct agent *agent, const StepEnded *ended)
{
    const StepId *id = ended->id;
    CmdFinish finish = CMD_FINISH__INIT;
    Command command = CTL_COMMAND(FINISH, .finish = &finish);
    char *nodes[] = { agent->name };
    struct report *report = NEW(struct report);

    *report = (struct report){ mem_strdup(agent->name), id->job_id, id->attempt, id->step };
    const struct job *job = state_job(ctl->state, id->job_id);
    bool manages = job && job->run && job->attempt == id->attempt &&
                   strcmp(job->run->parts[0].name, agent->name) == 0; /* (1) */
    if (!manages) {
        report_done(ctl, report, NULL, NULL);
        return;
    }
    finish.has_job_id = finish.has_attempt = finish.has_exit_status = true;
    finish.job_id = id->job_id;
    finish.attempt = id->attempt;
    finish.exit_status = ended->exit_status;
    finish.has_state = ended->has_state;
    finish.state = ended->state;
    finish.usage = ended->usage;
    finish.has_ended_us = ended->has_ended_us;
    finish.ended_us = ended->ended_us;
    if (ended->released) {
        finish.n_released = 1;
        finish.released = nodes;
    }
    if (ended->launch_failed) {
        finish.has_requeue = finish.requeue = true;
        finish.failed_node = agent->name;
    }
    finish.text = ended->text;
    ctl_propose(ctl, &command, report_done, report);
}

static void on_released(struct ctl *ctl, struct agent *agent, const Released *released)
{
    const struct job *job = state_job(ctl->state, released->job_id);

    if (!job || !job->run || job->attempt != released->attempt)
        return;
    propose_release(ctl, released->job_id, released->attempt, agent->name);
}

static void propose_drain(struct ctl *ctl, const char *node, const char *reason)
{
    CmdUpdateNode update = CMD_UPDATE_NODE__INIT;
    Command command = CTL_COMMAND(UPDATE_NODE, .update_node = &update);
    char *nodes[] = { (char *)node };

    update.n_nodes = 1;
    update.nodes = nodes;
    update.state = (char *)"DRAIN";
    update.reason = (char *)(reason ? reason : "asked by its agent");
    update.by_user = (char *)"root";
    update.has_by_uid = true;
    log_warn("node.drain", "node=%s reason=%s", node, update.reason);
    ctl_propose(ctl, &command, NULL, NULL);
}

static void on_grant_ack(struct ctl *ctl, struct agent *agent, const GrantAck *answer)
{
    const struct job *job = state_job(ctl->state, answer->job_id);

    if (answer->refused && answer->drain)
        propose_drain(ctl, agent->name, answer->text);
    if (!job || !job->run || job->attempt != answer->attempt || job_has_ended(job))
        return;
    if (part_of(job, agent->name) == job->run->count) /* (1) */
        return;
    if (answer->refused)
        ctl_finish_lost(ctl, job, agent->name,
                        answer->text ? answer->text : err_text((enum err_code)answer->code), true);
    else
        ctl_granting_ack(ctl, job, agent->name);
}

void ctl_session_message(struct ctl *ctl, uint64_t session, const NodeMessage *message)
{
    struct agent *agent = map_get_num(&ctl->sessions, session);

    if (!agent || agent->session != session || !ctl->leading)
        return;
    agent->seen_us = ctl_mono(ctl);
    switch (message->what_case) {
    case NODE_MESSAGE__WHAT_HELLO:
        on_hello(ctl, agent, message->hello);
        break;
    case NODE_MESSAGE__WHAT_GRANT_ACK:
        on_grant_ack(ctl, agent, message->grant_ack);
        break;
    case NODE_MESSAGE__WHAT_ENDED:
        if (message->ended->id)
            on_ended(ctl, agent, message->ended);
        break;
    case NODE_MESSAGE__WHAT_RELEASED:
        if (message->released->epilog_failed)
            propose_drain(ctl, agent->name,
                          message->released->text ? message->released->text : "Epilog error");
        on_released(ctl, agent, message->released);
        break;
    case NODE_MESSAGE__WHAT_HEARTBEAT:
        agent->load_centi = message->heartbeat->load_centi;
        agent->free_mem_mb = message->heartbeat->free_mem_mb;
        break;
    case NODE_MESSAGE__WHAT_DRAIN:
        propose_drain(ctl, agent->name, message->drain->reason);
        break;
    default:
        break;
    }
}
