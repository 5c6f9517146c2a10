/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_job.c - what becomes of a grant, from the prolog to the tombstone
 *
 * agent_advance() looks at what is known about an attempt and does the next thing that is due. It
 * is called after every event, so no event needs to know what follows from it.
 *
 * (1) One attempt of a job at a time: a later one waits until the earlier has gone.
 *
 * agent_hook.c, agent_launch.c and agent_end.c do what is due.
 */
#include <stdlib.h>

#include "spurd/attempt/life.h"
#include "spurd/link/send.h"
#include "spurd/root.h"
#include "spurd/step/step.h"
#include "spurd/task/hook.h"
#include "spurd/task/stepd.h"
#include "spurd/task/task.h"
#include "sys/log.h"

struct agent_ref *agent_ref_new(struct agent *agent, const struct attempt *held)
{
    struct agent_ref *ref = NEW(struct agent_ref);

    *ref = (struct agent_ref){ .agent = agent, .job = held->job, .attempt = held->attempt };
    return ref;
}

bool agent_write_record(struct agent *agent, const SpoolRecord *record, struct err *err)
{
    struct err own = { 0 };
    const SpoolRecord *const list[] = { record };

    err = err ? err : &own;
    if (journal_add(&agent->journal, list, 1, err) < 0) {
        log_error("spool.write", "error=%s", err->text);
        agent_ask_drain(agent, err->text);
        return false;
    }
    return true;
}

/* Processes of it may be alive. */
static bool step_lives(const struct attempt *held)
{
    return (held->given && !held->ended) || held->steps;
}

static bool end_is_due(const struct attempt *held)
{
    return held->revoked ? !step_lives(held) : held->ended && attempt_is_alone(held);
}

static void advance_end(struct agent *agent, struct attempt *held)
{
    bool has_epilog = agent_has_epilog(agent) && held->ready;

    if (held->ended && held->steps) { /* steps end with the script */
        if (!held->kill_ordered)
            agent_kill(agent, held);
        return;
    }
    if (held->ended && !held->report_sent && !held->acked)
        agent_send_ended(agent, held);
    if (!end_is_due(held))
        return;
    if (has_epilog && !held->epilog_done) {
        if (!held->hook && !agent_hook_waits(agent, held))
            agent_start_epilog(agent, held);
        return;
    }
    if (!held->released && agent->welcomed) {
        agent_send_released(agent, held->job, held->attempt, NULL);
        held->released = true;
    }
    /* A release that nobody hears is said by the next hello, which does not name it any more. */
    if (!held->ended || held->acked)
        agent_forget(agent, held);
}

static void refuse_full(struct agent *agent, struct attempt *held, const struct err *err)
{
    agent_send_grant_ack(agent, held->job, held->attempt, err, true);
    attempt_drop(&agent->table, held);
}

static bool has_programs(struct agent *agent)
{
    const Config *config = agent_common(agent);

    return agent_has_prolog(agent) || (config && !str_is_empty(config->private_init_script));
}

/*
 * A script that came with the grant and is on its way says within milliseconds that it runs or has
 * ended; the grant is acknowledged with that, in one write. Jobs that count from the
 * acknowledgement do not wait for it.
 */
static bool says_soon(struct agent *agent, const struct attempt *held)
{
    return held->has_load && held->launched && !held->ended && !held->looking_up &&
           !has_programs(agent);
}

/* False: it was refused and is gone. */
static bool advance_start(struct agent *agent, struct attempt *held)
{
    if (!(held->has_load && held->ready) && !held->written) {
        struct err err = { 0 };
        if ((agent_has_prolog(agent) || !held->has_load) &&
            !agent_write_grant(agent, held, NULL, &err)) {
            refuse_full(agent, held, &err);
            return false;
        }
    }
    if (!held->ready && !held->hook && has_programs(agent) && agent_hook_waits(agent, held))
        return true;
    if (!held->ready && !held->hook && !held->prepared && !agent_prepare(agent, held))
        return false;
    if (!held->ready && !held->hook) {
        if (agent_has_prolog(agent)) {
            agent_start_prolog(agent, held);
        } else {
            held->ready = true;
        }
    }
    if (!held->ready)
        return true;
    bool waits = agent_launch_waits(agent, held);
    if (!waits)
        agent_launch(agent, held);
    if (!held->grant_acked && agent->welcomed && (waits || !says_soon(agent, held))) {
        agent_send_grant_ack(agent, held->job, held->attempt, NULL, false);
        held->grant_acked = true;
    }
    if (held->running && !held->started_sent && agent->welcomed) {
        agent_send_started(agent, held);
        held->started_sent = true;
    }
    return true;
}

void agent_advance(struct agent *agent, struct attempt *held)
{
    struct attempt *other = attempt_other(&agent->table, held->job, held->attempt);

    if (agent->stopping)
        return;
    if (other && other->attempt < held->attempt && !held->launched && !held->revoked)
        return; /* (1) */
    if (held->revoked) {
        if (held->hook && !held->ready)
            hook_cancel(held->hook);
        if (held->launched && !held->given && !held->ended)
            return; /* the name service is asked, and looks again */
        if (step_lives(held) && !held->kill_ordered)
            agent_kill(agent, held);
        if (held->hook && !held->ready)
            return;
    } else if (!advance_start(agent, held)) {
        return;
    }
    advance_end(agent, held);
}

/* ---- what supervisors say ---- */

static void on_started(struct attempt *held, const StepNews *news)
{
    held->running = true;
    held->pid = news->started->pid;
    held->started_us = news->started->time_us;
    held->frozen = news->frozen;
    held->has_load = false;
    free(held->load.data);
    held->load = (ProtobufCBinaryData){ 0 };
    log_verbose("step.started", "job=%u attempt=%u pid=%u in=%s", held->job, held->attempt,
                held->pid, news->containment ? news->containment : "?");
}

static void on_frozen(struct agent *agent, struct attempt *held, const StepNews *news)
{
    held->frozen = news->frozen;
    log_info("step.frozen", "job=%u attempt=%u causes=%u", held->job, held->attempt, news->frozen);
    agent_gang_turns(agent);
    if (held->frozen & FREEZE_LEASE)
        agent_lease_again(agent);
}

static void on_ended(struct agent *agent, struct attempt *held, const StepNews *news)
{
    attempt_set_report(held, news->ended);
    held->running = false;
    held->unkillable = news->unkillable;
    log_verbose("step.ended", "job=%u attempt=%u status=%u text=%s", held->job, held->attempt,
                news->ended->exit_status, news->ended->text ? news->ended->text : "");
    if (held->unkillable)
        agent_unkillable(agent, held, TASK_STEP_BATCH);
    else if (news->ended->launch_failed)
        agent_ask_drain(agent, news->ended->text ? news->ended->text : "launch failed");
    agent_keep_later(agent, held);
    agent_gang_turns(agent);
}

void agent_step_news(void *ctx, void *owner, const StepNews *news)
{
    struct agent *agent = ctx;
    struct attempt *held = owner;

    if (news->already) { /* the directory is there: an earlier zygote had begun */
        stepd_close(TAKE(held->chan));
        agent_find_step(agent, held);
        agent_advance(agent, held);
        return;
    }
    if (news->sample) {
        step_query_sample(agent, held->job, held->attempt, TASK_STEP_BATCH, news->sample);
        return;
    }
    if (news->started)
        on_started(held, news);
    else if (news->has_frozen)
        on_frozen(agent, held, news);
    if (news->ended)
        on_ended(agent, held, news);
    agent_gpu_watch(agent);
    agent_advance(agent, held);
}

void agent_step_lost(void *ctx, void *owner)
{
    struct agent *agent = ctx;
    struct attempt *held = owner;

    held->chan = NULL;
    if (held->ended)
        return; /* the report is on disk, and here */
    agent_find_step(agent, held);
    agent_advance(agent, held);
}
