/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_nodes.c - agents that are connected, and what the silence of others means
 *
 * (1) A session speaks for the node that it proved to be, and for no other.
 * (2) Liveness is soft state of the leader; only up and down are commands.
 */
#include <stdlib.h>
#include <string.h>

#include "spurctld/ctl/ctl_priv.h"
#include "sys/log.h"

enum {
    SILENT_PER_TURN = 64,
    LEASE_MS = 8000, /* with several controllers, unless configured */
    LEASE_MARGIN_US = 2000000,
    LEADER_LEASE_US = 5000000, /* a leader that is cut off knows it by then: see log/etcd.c */
};
static const int64_t SECOND_US = 1000000;
static const int64_t STALL_US = 2000000; /* a timer that comes so late found this process stopped */
/* Heard for so long, an agent has reported whatever had ended before. */
static const int64_t HEARD_US = 60000000;

struct agent *ctl_agent(struct ctl *ctl, const char *node)
{
    return map_get(&ctl->nodes.agents, node);
}

static struct agent *agent_of(struct ctl *ctl, const char *node)
{
    struct agent *agent = ctl_agent(ctl, node);

    if (!agent) {
        agent = NEW(struct agent);
        agent->name = mem_strdup(node);
        map_put(&ctl->nodes.agents, node, agent);
    }
    return agent;
}

void ctl_send(struct ctl *ctl, struct agent *agent, CtlMessage *message)
{
    if (agent->tell) /* comes before whatever rests on it */
        ctl_tell(ctl, agent);
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

/* INT64_MAX / 2: never. */
static int64_t agent_timeout_us(struct ctl *ctl)
{
    const Config *config = state_config(ctl->state);

    if (config->has_agent_timeout_s && config->agent_timeout_s == 0)
        return INT64_MAX / 2;
    return or_default(config->has_agent_timeout_s, config->agent_timeout_s, 300) * SECOND_US;
}

uint32_t ctl_lease_ms(const struct ctl *ctl)
{
    const Config *config = state_config(ctl->state);

    if (config->has_node_lease_s)
        return config->node_lease_s * 1000;
    return ctl->self.several ? LEASE_MS : 0;
}

/*
 * When a silent node has certainly frozen its requeueable jobs: its lease counts from a heartbeat
 * that we, or a leader before us that did not yet know of its end, answered.
 */
static int64_t lease_over_us(struct ctl *ctl, const struct agent *agent)
{
    int64_t lease_us = ctl_lease_ms(ctl) * INT64_C(1000) + LEASE_MARGIN_US;

    return MAX(agent->lost_us + lease_us, ctl->leading_us + LEADER_LEASE_US + lease_us);
}

static bool has_lease(struct ctl *ctl, const struct agent *agent)
{
    return ctl_lease_ms(ctl) > 0 && !agent->host_answers;
}

/* When this agent's silence means something; INT64_MAX: it is as it should be. */
static int64_t silence_due(struct ctl *ctl, const struct agent *agent)
{
    if (agent->session)
        return agent->seen_us + node_timeout_us(ctl);
    if (agent->loss_proposed || !agent->lost_us)
        return INT64_MAX;
    int64_t due = agent->lost_us + agent_timeout_us(ctl);
    if (!agent->host_answers && !agent->down_proposed)
        due = MIN(due, agent->lost_us + node_timeout_us(ctl));
    if (has_lease(ctl, agent) && !agent->lease_proposed)
        due = MIN(due, MAX(lease_over_us(ctl, agent), agent->lost_us + node_timeout_us(ctl)));
    return due;
}

static void down_done(struct ctl *ctl, void *arg, const struct events *events,
                      const struct err *err)
{
    struct agent *agent = ctl_agent(ctl, arg);

    (void)events;
    if (err && agent) /* it was not said: say it when the disk takes it */
        agent->down_proposed = agent->loss_proposed = agent->lease_proposed = false;
    free(arg);
}

/*
 * A host that answers keeps its jobs for agent_timeout, and is then given up with them. One that is
 * silent is down after node_timeout; with leases those of its jobs that may be requeued then stand
 * still and run elsewhere. Without, and the others, may still run: given up after agent_timeout only.
 */
static void propose_down(struct ctl *ctl, struct agent *agent)
{
    const struct node *node = state_node(ctl->state, agent->name);
    CmdNodeDown down = CMD_NODE_DOWN__INIT;
    Command command = CTL_COMMAND(NODE_DOWN, .node_down = &down);
    bool lost = ctl_mono(ctl) - agent->lost_us >= agent_timeout_us(ctl);

    bool lease_over = has_lease(ctl, agent) && ctl_mono(ctl) >= lease_over_us(ctl, agent);

    agent->down_proposed = true;
    agent->loss_proposed = lost;
    agent->lease_proposed = lease_over;
    if (!node || node->state == NODE_FUTURE || (node->state == NODE_DOWN && !node->jobs.len))
        return;
    if (node->flags & NODE_FLAG_REBOOT_ISSUED)
        return; /* as it should be; core says when it takes too long */
    down.node = agent->name;
    down.reason = (char *)"Not responding";
    down.has_no_respond = down.no_respond = true;
    down.has_jobs_lost = true;
    down.jobs_lost = lost;
    down.has_leases = down.leases = ctl_lease_ms(ctl) > 0;
    down.has_lease_over = lease_over;
    down.lease_over = lease_over;
    down.unstarted = ctl_unstarted(ctl, node, INT64_MIN, &down.n_unstarted);
    log_warn("node.down", "node=%s host_answers=%d jobs_lost=%d lease_over=%d", agent->name,
             agent->host_answers, lost, lease_over);
    ctl_propose_own(ctl, &command, down_done, mem_strdup(agent->name));
    free(down.unstarted);
    if (!lost)
        ctl_fence_start(ctl, agent);
}

static void arm_at(struct ctl *ctl, int64_t first)
{
    ctl->nodes.due_us = first == INT64_MAX ? 0 : first;
    ctl->io.timer(ctl->io.ctx, CTL_TIMER_NODES,
                  first == INT64_MAX ? 0 : ctl_now(ctl) + MAX(first - ctl_mono(ctl), 0));
}

static void arm(struct ctl *ctl)
{
    int64_t first = INT64_MAX;

    map_each (entry, &ctl->nodes.agents) {
        int64_t due = silence_due(ctl, entry->value);
        first = MIN(first, due);
    }
    arm_at(ctl, first);
}

/* What became of one: when others are due has not changed, and a timer that comes too early does no harm. */
static void arm_for(struct ctl *ctl, const struct agent *agent)
{
    int64_t due = silence_due(ctl, agent);

    if (due != INT64_MAX && (!ctl->nodes.due_us || due < ctl->nodes.due_us))
        arm_at(ctl, due);
}

void ctl_nodes_stalled(struct ctl *ctl, int64_t now, int64_t before)
{
    if (!ctl->leading || !ctl->nodes.due_us || now - ctl->nodes.due_us < STALL_US)
        return;
    log_warn("ctl.stalled", "ms=%lld", (long long)((now - before) / 1000));
    ctl->proposals.skipped_us += now - before;
    map_each (entry, &ctl->nodes.agents) {
        struct agent *agent = entry->value;
        if (agent->session)
            agent->seen_us = now; /* what it said meanwhile will be read now */
        else if (agent->lost_us)
            agent->lost_us = MIN(agent->lost_us + now - before, now);
        agent->heard_us = now;
    }
    ctl_granting_unsure(ctl);
    ctl_hold_stalled(ctl, now - before);
    arm(ctl);
}

/* ---- limits ---- */

struct unheard {
    struct ctl *ctl;
    VEC(char *) names;
};

static void add_unheard(void *ctx, const struct job *job)
{
    struct unheard *unheard = ctx;
    const char *manager = job->run->parts[run_manager(job->run)].name;
    const struct agent *agent = ctl_agent(unheard->ctl, manager);

    if (!agent || (agent->welcomed && ctl_mono(unheard->ctl) - agent->heard_us >= HEARD_US))
        return;
    vec_each (char *, name, &unheard->names) {
        if (*name == agent->name)
            return;
    }
    vec_push(&unheard->names, agent->name);
}

void ctl_propose_time(struct ctl *ctl, const struct ctl_ask *ask, ctl_done_fn *done, void *arg)
{
    CmdTime time = CMD_TIME__INIT;
    Command command = CTL_COMMAND(TIME, .time = &time);
    struct unheard unheard = { .ctl = ctl };

    core_limits_due(ctl->state, MAX(ctl_now(ctl), ctl->proposals.last_stamp_us), add_unheard,
                    &unheard);
    time.n_unheard = unheard.names.len;
    time.unheard = unheard.names.items;
    if (ask)
        ctl_stamp_ask(ask, &command);
    ctl_propose(ctl, &command, done, arg);
    vec_done(&unheard.names);
}

/* ---- the timer ---- */

void ctl_nodes_timer(struct ctl *ctl)
{
    int64_t now = ctl_mono(ctl);

    if (!ctl->leading)
        return;
    unsigned found = 0;
    map_each (entry, &ctl->nodes.agents) {
        struct agent *agent = entry->value;
        if (silence_due(ctl, agent) > now)
            continue;
        if (++found > SILENT_PER_TURN)
            break; /* the others are still due */
        if (agent->session) {
            log_warn("node.silent", "node=%s", agent->name);
            ctl->io.hang_up(ctl->io.ctx, agent->session);
            ctl_nodes_closed(ctl, agent->session, false);
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
    ctl_paused(ctl);
    ctl->leading_us = ctl_mono(ctl);
    for (size_t i = 0; i < state_node_count(ctl->state); i++) {
        const struct node *node = state_node_at(ctl->state, i);
        struct agent *agent = agent_of(ctl, node->spec->name);
        if (!agent->session && !agent->lost_us && (node->state == NODE_IDLE || node->jobs.len)) {
            agent->lost_us = ctl_mono(ctl);
            agent->host_answers = ctl_lease_ms(ctl) == 0;
        }
    }
    arm(ctl);
}

/* Agents are the new leader's; what was known of them means nothing when we lead again. */
void ctl_nodes_following(struct ctl *ctl)
{
    map_each (entry, &ctl->nodes.agents) {
        struct agent *agent = entry->value;
        uint64_t session = agent->session;
        if (session) {
            ctl_nodes_closed(ctl, session, true);
            ctl->io.hang_up(ctl->io.ctx, session);
        }
        *agent = (struct agent){ .name = agent->name };
    }
    vec_clear(&ctl->nodes.telling);
    ctl_fanout_done(ctl);
    map_each (entry, &ctl->nodes.granting)
        ctl_granting_end(ctl, (uint32_t)entry->num);
    ctl->io.timer(ctl->io.ctx, CTL_TIMER_NODES, 0);
}

/*
 * Every agent connects again and is told what is due (4). For the rare case that effects may have
 * been lost: the log refused what they rested on.
 */
void ctl_reconcile(struct ctl *ctl)
{
    map_each (entry, &ctl->nodes.agents) {
        struct agent *agent = entry->value;
        uint64_t session = agent->session;
        if (session) {
            ctl_nodes_closed(ctl, session, true);
            ctl->io.hang_up(ctl->io.ctx, session);
        }
    }
    ctl_site_again(ctl);
    arm(ctl);
}

void ctl_stop_agents(struct ctl *ctl, const char *reason)
{
    StopAgent stop = STOP_AGENT__INIT;
    CtlMessage message = CTL_MESSAGE__INIT;

    stop.reason = (char *)reason;
    message.what_case = CTL_MESSAGE__WHAT_STOP;
    message.stop = &stop;
    map_each (entry, &ctl->nodes.agents) {
        struct agent *agent = entry->value;
        if (agent->welcomed)
            ctl_send(ctl, agent, &message);
    }
}

/* ---- sessions ---- */

void ctl_nodes_open(struct ctl *ctl, uint64_t session, const char *node)
{
    struct agent *agent = agent_of(ctl, node);
    if (agent->session) {
        /* The agent was restarted, or its old connection is half dead: the newer one counts. */
        uint64_t old = agent->session;
        log_info("node.replaced", "node=%s", node);
        ctl_nodes_closed(ctl, old, true);
        ctl->io.hang_up(ctl->io.ctx, old);
    }
    agent->session = session;
    agent->welcomed = false;
    agent->seen_us = ctl_mono(ctl);
    agent->lost_us = 0;
    agent->fence = 0;
    map_put_num(&ctl->nodes.sessions, session, agent);
    arm_for(ctl, agent);
}

void ctl_nodes_closed(struct ctl *ctl, uint64_t session, bool host_answers)
{
    struct agent *agent = map_del_num(&ctl->nodes.sessions, session);
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
    arm_for(ctl, agent);
}
