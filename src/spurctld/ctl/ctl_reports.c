/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_reports.c - what agents report: grants taken, steps ended, resources released
 *
 * (1) A session speaks for the node that it proved to be, and for no other.
 * (2) A report is acknowledged after it is committed, so an agent that keeps it until then loses
 *     nothing, whoever crashes.
 */
#include <stdlib.h>
#include <string.h>

#include "spurctld/ctl/ctl_priv.h"
#include "sys/log.h"

/* Nodes speak about in the order in which they were spoken to. */
size_t ctl_part_of(struct ctl *ctl, const struct job *job, const char *node)
{
    size_t count = job->run->count;
    size_t first = ctl->nodes.last_part.job_id == job->id ? ctl->nodes.last_part.part : 0;

    for (size_t i = 0; i < count; i++) {
        size_t part = (first + i) % count;
        if (strcmp(job->run->parts[part].name, node) != 0)
            continue;
        ctl->nodes.last_part.job_id = job->id;
        ctl->nodes.last_part.part = part;
        return part;
    }
    return count;
}

void ctl_propose_release(struct ctl *ctl, uint32_t job_id, uint32_t attempt, const char *node)
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
        ack(ctl, report); /* (2); also when it was stale: nobody needs it any more */
    free(report->node);
    free(report);
}

/* (1): whether the node has a part of the job's present attempt. What is late is common, the rest is not. */
static bool has_part(struct ctl *ctl, const struct job *job, const struct agent *agent,
                     uint32_t attempt, const char *what)
{
    if (!job || !job->run || job->attempt != attempt)
        return false;
    if (ctl_part_of(ctl, job, agent->name) < job->run->count)
        return true;
    log_warn("report.refused",
             "node=%s what=%s job=%u attempt=%u why=\"the job is not on that node\"", agent->name,
             what, job->id, attempt);
    return false;
}

/* The first node runs the script and nobody else speaks of its end. */
static bool runs_script(struct ctl *ctl, const struct job *job, const struct agent *agent,
                        uint32_t attempt)
{
    if (!has_part(ctl, job, agent, attempt, "ended"))
        return false;
    if (strcmp(job->run->parts[0].name, agent->name) == 0)
        return true;
    log_warn("report.refused",
             "node=%s what=ended job=%u attempt=%u why=\"its script is on node %s\"", agent->name,
             job->id, attempt, job->run->parts[0].name);
    return false;
}

static void on_ended(struct ctl *ctl, struct agent *agent, const StepEnded *ended)
{
    const StepId *id = ended->id;
    CmdFinish finish = CMD_FINISH__INIT;
    Command command = CTL_COMMAND(FINISH, .finish = &finish);
    char *nodes[] = { agent->name };
    struct report *report = NEW(struct report);

    *report = (struct report){ mem_strdup(agent->name), id->job_id, id->attempt, id->step };
    if (!runs_script(ctl, state_job(ctl->state, id->job_id), agent, id->attempt)) {
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
    ctl_propose_own(ctl, &command, report_done, report);
}

static void on_released(struct ctl *ctl, struct agent *agent, const Released *released)
{
    const struct job *job = state_job(ctl->state, released->job_id);

    if (!has_part(ctl, job, agent, released->attempt, "released"))
        return;
    ctl_propose_release(ctl, released->job_id, released->attempt, agent->name);
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
    if (!has_part(ctl, job, agent, answer->attempt, "grant_ack") || job_has_ended(job))
        return;
    if (answer->refused && answer->code == ERR_STALE_EPOCH) {
        /* The node knows a later leader: whatever it refused was not said by who leads now. */
        log_warn("grant.stale", "node=%s job=%u attempt=%u text=%s", agent->name, job->id,
                 answer->attempt, answer->text ? answer->text : "");
        return;
    }
    if (answer->refused)
        ctl_finish_lost(ctl, job, agent->name,
                        answer->text ? answer->text : err_text((enum err_code)answer->code), true,
                        answer->code == ERR_PROLOG_FAILED &&
                            !state_config(ctl->state)->nohold_on_prolog_fail);
    else
        ctl_granting_ack(ctl, job, agent->name);
}

static void answer_beat(struct ctl *ctl, struct agent *agent, uint64_t seq)
{
    CtlMessage message = CTL_MESSAGE__INIT;
    CtlPing ping = CTL_PING__INIT;

    ping.has_seq = true;
    ping.seq = seq;
    message.what_case = CTL_MESSAGE__WHAT_PING;
    message.ping = &ping;
    ctl_send(ctl, agent, &message);
}

void ctl_on_message(struct ctl *ctl, uint64_t session, const NodeMessage *message)
{
    struct agent *agent = map_get_num(&ctl->nodes.sessions, session);
    if (!agent || agent->session != session || !ctl->leading)
        return;
    agent->seen_us = ctl_mono(ctl);
    switch (message->what_case) {
    case NODE_MESSAGE__WHAT_HELLO:
        ctl_on_hello(ctl, agent, message->hello);
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
        if (agent->lease_ms)
            answer_beat(ctl, agent, message->heartbeat->seq);
        break;
    case NODE_MESSAGE__WHAT_FOUND:
        ctl_on_found(ctl, agent, message->found);
        break;
    case NODE_MESSAGE__WHAT_STEPS:
        ctl_steps_report(ctl, agent, message->steps);
        break;
    case NODE_MESSAGE__WHAT_DRAIN:
        propose_drain(ctl, agent->name, message->drain->reason);
        break;
    default:
        break;
    }
}
