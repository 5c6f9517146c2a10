/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_job.c - what becomes of a grant, from the prolog to the tombstone
 *
 * agent_advance() looks at what is known about an attempt and does the next thing that is due. It
 * is called after every event, so no event needs to know what follows from it.
 *
 * (1) A launch is in the journal, synced, before the zygote hears of it; the zygote starts an
 *     attempt once. So a script runs at most once, whichever process or machine dies.
 * (2) The tombstone is in the journal before the attempt's directory goes: at every moment one of
 *     the two says that the script was started.
 * (3) A report is kept until it is acknowledged.
 * (4) One attempt of a job at a time: a later one waits until the earlier has gone.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpc/pb.h"
#include "spurd/agent_priv.h"
#include "spurd/hook.h"
#include "spurd/step.h"
#include "sys/clock.h"
#include "sys/files.h"
#include "sys/log.h"
#include "sys/users.h"

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

/* ---- prolog and epilog ---- */

static unsigned hook_timeout_s(const struct agent *agent)
{
    const Config *config = agent_common(agent);

    return config && config->prolog_epilog_timeout_s ? config->prolog_epilog_timeout_s : 300;
}

static struct hook *start_hook(struct agent *agent, struct held *held, const char *path,
                               enum env_where where, hook_done_fn done, void *ctx)
{
    struct arena arena;
    struct task_node node;
    struct env_job job;
    struct env env;
    char *in = NULL, *out = NULL, *error = NULL;

    arena_init(&arena);
    env_init(&env, &arena);
    agent_task_node(agent, &node);
    if (held->grant && task_spec(held->grant)) {
        task_env_job(&node, held->grant, &job);
        if (!str_is_empty(job.spec->work_dir))
            task_files(&node, held->grant, &arena, &in, &out, &error, NULL);
        job.std_in = in;
        job.std_out = out;
        job.std_err = error;
        job.ended = held->report;
        env_fill(&env, &job, where);
    }
    char **list = env_copy(&env);
    env_done(&env);
    arena_done(&arena);
    return hook_start(agent->uv, path, list, hook_timeout_s(agent), done, ctx);
}

/* A hook's answer finds its attempt by number: it may have gone meanwhile. */
struct hook_ctx {
    struct agent *agent;
    uint32_t job, attempt;
};

static struct hook_ctx *hook_ctx_new(struct agent *agent, const struct held *held)
{
    struct hook_ctx *ctx = NEW(struct hook_ctx);

    *ctx = (struct hook_ctx){ .agent = agent, .job = held->job, .attempt = held->attempt };
    return ctx;
}

static void write_ready(struct agent *agent, struct held *held)
{
    SpoolRecord record = SPOOL_RECORD__INIT;
    SpoolReady ready = SPOOL_READY__INIT;

    ready.has_job_id = ready.has_attempt = true;
    ready.job_id = held->job;
    ready.attempt = held->attempt;
    record.what_case = SPOOL_RECORD__WHAT_READY;
    record.ready = &ready;
    agent_write_record(agent, &record, NULL);
}

static void prolog_done(void *ctx, int status, const struct err *err)
{
    struct hook_ctx *hook = ctx;
    struct agent *agent = hook->agent;
    struct held *held = held_find(&agent->table, hook->job, hook->attempt);
    struct err refused = { 0 };

    (void)status;
    if (!held)
        return;
    held->hook = NULL;
    if (held->revoked) {
        agent_advance(agent, held);
        return;
    }
    if (err) {
        log_error("prolog.failed", "job=%u attempt=%u error=%s", held->job, held->attempt,
                  err->text);
        err_set(&refused, ERR_PROLOG_FAILED, "Prolog failed: %s", err->text);
        agent_send_grant_ack(agent, held->job, held->attempt, &refused, true);
        agent_forget(agent, held);
        return;
    }
    held->ready = true;
    write_ready(agent, held);
    agent_advance(agent, held);
}

static void epilog_done(void *ctx, int status, const struct err *err)
{
    struct hook_ctx *hook = ctx;
    struct agent *agent = hook->agent;
    struct held *held = held_find(&agent->table, hook->job, hook->attempt);

    (void)status;
    if (!held)
        return;
    held->hook = NULL;
    held->epilog_done = true;
    if (err) {
        log_error("epilog.failed", "job=%u attempt=%u error=%s", held->job, held->attempt,
                  err->text);
        agent_ask_drain(agent, "Epilog error");
        agent_send_released(agent, held->job, held->attempt, err);
        held->released = agent->welcomed;
    }
    agent_advance(agent, held);
}

/* ---- the launch ---- */

void agent_fail_step(struct agent *agent, struct held *held, bool launch_failed, const char *text)
{
    StepEnded report = STEP_ENDED__INIT;
    StepId id = STEP_ID__INIT;

    id.has_job_id = id.has_attempt = id.has_step = true;
    id.job_id = held->job;
    id.attempt = held->attempt;
    id.step = TASK_STEP_BATCH;
    report.id = &id;
    report.has_exit_status = report.has_ended_us = true;
    report.exit_status = launch_failed ? 1 << 8 : 9;
    report.ended_us = clock_wall_us();
    report.text = (char *)text;
    if (launch_failed) {
        report.has_launch_failed = report.launch_failed = true;
    } else {
        report.has_state = true;
        report.state = JOB_NODE_FAIL;
        report.has_started_us = held->started_us > 0;
        report.started_us = held->started_us;
    }
    log_error("step.failed", "job=%u attempt=%u error=%s", held->job, held->attempt, text);
    held->has_load = false;
    held_set_report(held, &report);
}

/* The load stays until the step has started: a zygote that dies first is asked again. */
static void give_to_zygote(struct agent *agent, struct held *held, const JobPayload *payload,
                           const struct task_login *login, struct arena *arena)
{
    struct task_node node;
    StepTask task;
    struct err err = { 0 };

    agent_task_node(agent, &node);
    held->given = true;
    if (!payload)
        err_set(&err, ERR_BAD_MESSAGE, "the job's script cannot be read");
    else if (task_build(&node, held->grant, payload, login, arena, &task, &err) == 0)
        held->chan = stepd_launch(agent->stepd, &task, held, &err);
    if (!held->chan)
        agent_fail_step(agent, held, true, err.text);
}

static const JobPayload *read_load(const struct held *held, struct arena *arena)
{
    ProtobufCMessage *payload = NULL;

    pb_unpack(&job_payload__descriptor, arena, held->load.data, held->load.len, &payload, NULL);
    return (const JobPayload *)(const void *)payload;
}

/* Revoked between the record and the launch: nothing was started. */
static bool still_wanted(struct agent *agent, struct held *held)
{
    if (!held->revoked && !agent->stopping)
        return true;
    held->launched = false;
    return false;
}

/* Only a worker may ask the name service. */
struct login_work {
    uv_work_t work;
    struct agent *agent;
    uint32_t job, attempt;
    uid_t uid;
    struct user *user;
};

static void look_up(uv_work_t *work)
{
    struct login_work *login = work->data;

    users_by_uid(login->uid, &login->user, NULL);
}

static void looked_up(uv_work_t *work, int status)
{
    struct login_work *login = work->data;
    struct agent *agent = login->agent;
    struct held *held = held_find(&agent->table, login->job, login->attempt);
    struct task_login found = { 0 };

    (void)status;
    if (login->user) {
        found.shell = login->user->shell;
        found.home = login->user->home;
    }
    if (held) {
        held->looking_up = false;
        if (still_wanted(agent, held)) {
            struct arena arena;
            arena_init(&arena);
            give_to_zygote(agent, held, read_load(held, &arena), &found, &arena);
            arena_done(&arena);
        }
    }
    user_free(login->user);
    free(login);
    if (held)
        agent_advance(agent, held);
}

static void launch(struct agent *agent, struct held *held)
{
    struct arena arena;

    arena_init(&arena);
    const JobPayload *payload = read_load(held, &arena);
    if (!payload || !payload->get_user_env) {
        give_to_zygote(agent, held, payload, NULL, &arena);
    } else {
        struct login_work *login = NEW(struct login_work);
        held->looking_up = true;
        login->work.data = login;
        login->agent = agent;
        login->job = held->job;
        login->attempt = held->attempt;
        login->uid = held->grant->owner->uid;
        uv_queue_work(agent->uv, &login->work, look_up, looked_up);
    }
    arena_done(&arena);
}

static void on_synced(void *ctx, int status)
{
    struct hook_ctx *hook = ctx;
    struct agent *agent = hook->agent;
    struct held *held = held_find(&agent->table, hook->job, hook->attempt);

    free(hook);
    if (!held || held->ended || agent->stopping)
        return;
    if (status < 0) { /* never tried again: what the kernel has dropped it does not give back */
        agent_fail_step(agent, held, true, "the spool cannot be synced");
        agent_ask_drain(agent, "spool: sync failed");
    } else if (still_wanted(agent, held)) {
        held->synced = true;
        launch(agent, held);
    }
    agent_advance(agent, held);
}

static bool write_records(struct agent *agent, struct held *held, const SpoolLaunched *launched,
                          struct err *err)
{
    SpoolRecord grant_record = SPOOL_RECORD__INIT, launch_record = SPOOL_RECORD__INIT;
    const SpoolRecord *list[2];
    size_t count = 0;

    if (!held->written) {
        grant_record.what_case = SPOOL_RECORD__WHAT_GRANT;
        grant_record.grant = held->grant;
        list[count++] = &grant_record;
    }
    if (launched) {
        launch_record.what_case = SPOOL_RECORD__WHAT_LAUNCHED;
        launch_record.launched = (SpoolLaunched *)launched;
        list[count++] = &launch_record;
    }
    if (count && journal_add(&agent->journal, list, count, err) < 0) {
        log_error("spool.write", "error=%s", err->text);
        agent_ask_drain(agent, err->text);
        return false;
    }
    held->written = true;
    return true;
}

/* (1) */
static void write_launch(struct agent *agent, struct held *held)
{
    SpoolLaunched launched = SPOOL_LAUNCHED__INIT;
    struct task_node node;
    struct arena arena;
    struct err err = { 0 };
    char *in;

    arena_init(&arena);
    agent_task_node(agent, &node);
    launched.has_job_id = launched.has_attempt = true;
    launched.job_id = held->job;
    launched.attempt = held->attempt;
    if (task_files(&node, held->grant, &arena, &in, &launched.std_out, &launched.std_err, &err) <
            0 ||
        !write_records(agent, held, &launched, &err)) {
        agent_fail_step(agent, held, true, err.text);
    } else {
        free(held->std_out);
        free(held->std_err);
        held->std_out = mem_strdup(launched.std_out);
        held->std_err = mem_strdup(launched.std_err);
        held->launched = true;
        journal_sync(&agent->journal, on_synced, hook_ctx_new(agent, held));
    }
    arena_done(&arena);
}

/* ---- the end ---- */

void agent_freeze(struct held *held, FreezeCause cause, bool thaw)
{
    StepOrder order = STEP_ORDER__INIT;
    StepFreeze freeze = STEP_FREEZE__INIT;

    if (!held->chan)
        return;
    freeze.has_cause = freeze.has_thaw = true;
    freeze.cause = cause;
    freeze.thaw = thaw;
    order.what_case = STEP_ORDER__WHAT_FREEZE;
    order.freeze = &freeze;
    stepd_order(held->chan, &order);
}

void agent_kill(struct agent *agent, struct held *held)
{
    StepOrder order = STEP_ORDER__INIT;
    StepKill kill_order = STEP_KILL__INIT;

    (void)agent;
    held->kill_late_us =
        clock_boot_us() + (held->kill_wait_s + AGENT_SUPERVISOR_LATE_S) * INT64_C(1000000);
    steps_kill(agent, held, held->revoke_kill ? held->kill_wait_s : 0, held->revoke_state);
    if (!held->chan) {
        held->kill_ordered = held->steps > 0;
        return;
    }
    kill_order.has_kill_wait_s = kill_order.has_state = true;
    kill_order.kill_wait_s = held->revoke_kill ? held->kill_wait_s : 0;
    kill_order.state = held->revoke_state;
    order.what_case = STEP_ORDER__WHAT_KILL;
    order.kill = &kill_order;
    held->kill_ordered = stepd_order(held->chan, &order);
}

static void dismiss(struct agent *agent, struct held *held)
{
    StepOrder order = STEP_ORDER__INIT;
    StepDismiss words = STEP_DISMISS__INIT;
    struct task_node node;
    struct arena arena;

    order.what_case = STEP_ORDER__WHAT_DISMISS;
    order.dismiss = &words;
    bool told = held->chan && stepd_order(held->chan, &order);
    if (held->chan)
        stepd_close(TAKE(held->chan));
    if (!held->given || !held->report)
        return;
    arena_init(&arena);
    agent_task_node(agent, &node);
    char *dir = task_dir(&node, held->job, held->attempt, &arena);
    /* Younger reports were not yet copied to disk by their supervisor. */
    if (!told || clock_wall_us() - held->report->ended_us > 500000)
        unlink(task_keep_file(&node, held->job, held->attempt, &arena));
    if (!told && stepd_look(dir) == STEPD_DEAD)
        file_remove_tree(dir, NULL);
    arena_done(&arena);
}

void agent_forget(struct agent *agent, struct held *held)
{
    SpoolRecord record = SPOOL_RECORD__INIT;
    SpoolGone gone = SPOOL_GONE__INIT;
    uint32_t job = held->job;

    gone.has_job_id = gone.has_attempt = gone.has_time_us = true;
    gone.job_id = held->job;
    gone.attempt = held->attempt;
    gone.time_us = clock_wall_us();
    if (held->launched && held->grant) {
        gone.owner = held->grant->owner;
        gone.std_out = held->std_out;
        gone.std_err = held->std_err;
    }
    record.what_case = SPOOL_RECORD__WHAT_GONE;
    record.gone = &gone;
    if (!agent_write_record(agent, &record, NULL))
        return; /* (2): it stays until the disk takes it; the resend timer tries again */
    held_bury(&agent->table, &gone);
    dismiss(agent, held);
    if (held->hook)
        hook_abandon(TAKE(held->hook));
    log_debug("grant.gone", "job=%u attempt=%u", held->job, held->attempt);
    step_book_forget(agent, held->job, held->attempt, true);
    held_drop(&agent->table, held);
    struct held *waiting = held_other(&agent->table, job, 0);
    if (waiting)
        agent_advance(agent, waiting); /* (4) */
    if (journal_is_long(&agent->journal))
        journal_replace(&agent->journal, held_write, &agent->table, NULL);
}

/* Processes of it may be alive. */
static bool step_lives(const struct held *held)
{
    return (held->given && !held->ended) || held->steps;
}

static bool end_is_due(const struct held *held)
{
    return held->revoked ? !step_lives(held) : held->ended && held_is_alone(held);
}

static void advance_end(struct agent *agent, struct held *held)
{
    const Config *config = agent_common(agent);
    bool has_epilog = config && !str_is_empty(config->epilog) && held->ready;

    if (held->ended && held->steps) { /* steps end with the script */
        if (!held->kill_ordered)
            agent_kill(agent, held);
        return;
    }
    if (held->ended && !held->report_sent && !held->acked)
        agent_send_ended(agent, held);
    if (!end_is_due(held) || steps_left_behind(agent, held->job, held->attempt))
        return; /* the resend timer looks again */
    if (has_epilog && !held->epilog_done) {
        if (!held->hook)
            held->hook = start_hook(agent, held, config->epilog, ENV_EPILOG, epilog_done,
                                    hook_ctx_new(agent, held));
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

static void refuse_full(struct agent *agent, struct held *held, const struct err *err)
{
    agent_send_grant_ack(agent, held->job, held->attempt, err, true);
    held_drop(&agent->table, held);
}

/* False: it was refused and is gone. */
static bool advance_start(struct agent *agent, struct held *held)
{
    const Config *config = agent_common(agent);

    if (!(held->has_load && held->ready) && !held->written) {
        struct err err = { 0 };
        bool has_prolog = config && !str_is_empty(config->prolog);
        if ((has_prolog || !held->has_load) && !write_records(agent, held, NULL, &err)) {
            refuse_full(agent, held, &err);
            return false;
        }
    }
    if (!held->ready && !held->hook) {
        if (config && !str_is_empty(config->prolog)) {
            held->hook = start_hook(agent, held, config->prolog, ENV_PROLOG, prolog_done,
                                    hook_ctx_new(agent, held));
        } else {
            held->ready = true;
        }
    }
    if (!held->ready)
        return true;
    if (!held->grant_acked && agent->welcomed) {
        agent_send_grant_ack(agent, held->job, held->attempt, NULL, false);
        held->grant_acked = true;
    }
    if (held->has_load && !held->launched)
        write_launch(agent, held);
    else if (held->has_load && held->synced && !held->given && !held->looking_up)
        launch(agent, held);
    if (held->running && !held->started_sent && agent->welcomed) {
        agent_send_started(agent, held);
        held->started_sent = true;
    }
    return true;
}

void agent_advance(struct agent *agent, struct held *held)
{
    struct held *other = held_other(&agent->table, held->job, held->attempt);

    if (agent->stopping)
        return;
    if (other && other->attempt < held->attempt && !held->launched && !held->revoked)
        return; /* (4) */
    if (held->revoked) {
        if (held->hook && !held->ready)
            hook_cancel(held->hook);
        if (held->launched && !held->given && !held->ended)
            return; /* on its way to the disk or to the name service: those look again */
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

static void on_started(struct agent *agent, struct held *held, const StepNews *news)
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
    (void)agent;
}

void agent_step_news(void *ctx, void *owner, const StepNews *news)
{
    struct agent *agent = ctx;
    struct held *held = owner;

    if (news->already) { /* the directory is there: an earlier zygote had begun */
        stepd_close(TAKE(held->chan));
        agent_find_step(agent, held);
    } else if (news->ended) {
        held_set_report(held, news->ended);
        held->running = false;
        held->unkillable = news->unkillable;
        log_verbose("step.ended", "job=%u attempt=%u status=%u text=%s", held->job, held->attempt,
                    news->ended->exit_status, news->ended->text ? news->ended->text : "");
        if (held->unkillable)
            agent_ask_drain(agent, "Kill task failed");
        else if (news->ended->launch_failed)
            agent_ask_drain(agent, news->ended->text ? news->ended->text : "launch failed");
    } else if (news->started) {
        on_started(agent, held, news);
    } else if (news->has_frozen) {
        held->frozen = news->frozen;
        log_info("step.frozen", "job=%u attempt=%u causes=%u", held->job, held->attempt,
                 news->frozen);
    }
    agent_advance(agent, held);
}

void agent_step_lost(void *ctx, void *owner)
{
    struct agent *agent = ctx;
    struct held *held = owner;

    held->chan = NULL;
    if (held->ended)
        return; /* the report is on disk, and here */
    agent_find_step(agent, held);
    agent_advance(agent, held);
}
