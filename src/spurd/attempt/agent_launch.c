/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_launch.c - from a grant with a script to a supervisor that runs it
 *
 * (1) A launch is in the journal before the zygote hears of it, and the zygote starts an attempt once.
 *     So a script runs at most once, whichever process dies.
 * (2) The machine may die before the journal is synced. Its next hello then has another boot id, by
 *     which the leader knows that nothing of the boot before is left: the attempt is over, whatever
 *     the journal says, and is not granted again. So nobody waits for the sync; what it is for is
 *     that a report which reached the disk finds its attempt (agent_find.c), and those are written
 *     later than AGENT_SYNC_MS.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "spurd/access/private.h"
#include "spurd/access/x11.h"
#include "spurd/attempt/life.h"
#include "spurd/link/send.h"
#include "spurd/task/stepd.h"
#include "spurd/task/task.h"
#include "sys/clock.h"
#include "sys/log.h"
#include "sys/users.h"
#include "wire/pb_unpack.h"

void agent_fail_step(struct agent *agent, struct attempt *held, bool launch_failed,
                     const char *text)
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
    attempt_set_report(held, &report);
}

/* The load stays until the step has started: a zygote that dies first is asked again. */
static void give_to_zygote(struct agent *agent, struct attempt *held, const JobPayload *payload,
                           const struct task_login *login, struct arena *arena)
{
    struct task_node node;
    StepTask task;
    struct err err = { 0 };

    agent_task_node(agent, &node);
    held->given = true;
    if (payload)
        x11_batch(agent, held, payload, arena, &node);
    if (!payload)
        err_set(&err, ERR_BAD_MESSAGE, "the job's script cannot be read");
    else if (task_build(&node, held->grant, payload, login, arena, &task, &err) == 0 &&
             private_fill(agent, held, arena, &task, &err) == 0)
        held->chan = stepd_launch(agent->stepd, &task, held, &err);
    if (held->chan)
        agent_freeze_again(held);
    else
        agent_fail_step(agent, held, true, err.text);
}

static const JobPayload *read_load(const struct attempt *held, struct arena *arena)
{
    ProtobufCMessage *payload = NULL;

    pb_unpack(&job_payload__descriptor, arena, held->load.data, held->load.len, &payload, NULL);
    return (const JobPayload *)(const void *)payload;
}

/* Revoked while the name service was asked: nothing was started. */
static bool still_wanted(struct agent *agent, struct attempt *held)
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
    struct attempt *held = attempt_find(&agent->table, login->job, login->attempt);
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

static void launch(struct agent *agent, struct attempt *held)
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
    struct agent *agent = ctx;

    /* Never tried again: what the kernel has dropped it does not give back. */
    if (status < 0 && status != -ECANCELED && !agent->stopping)
        agent_ask_drain(agent, "spool: sync failed");
}

static void on_sync_time(uv_timer_t *timer)
{
    struct agent *agent = timer->data;

    journal_sync(&agent->journal, on_synced, agent);
}

/* (2) */
static void sync_later(struct agent *agent)
{
    if (!uv_is_active((uv_handle_t *)&agent->sync_timer))
        uv_timer_start(&agent->sync_timer, on_sync_time, AGENT_SYNC_MS, 0);
}

bool agent_write_grant(struct agent *agent, struct attempt *held, const SpoolLaunched *launched,
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
static void write_launch(struct agent *agent, struct attempt *held)
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
        !agent_write_grant(agent, held, &launched, &err)) {
        agent_fail_step(agent, held, true, err.text);
    } else {
        free(held->std_out);
        free(held->std_err);
        held->std_out = mem_strdup(launched.std_out);
        held->std_err = mem_strdup(launched.std_err);
        held->launched = true;
        sync_later(agent);
    }
    arena_done(&arena);
}

void agent_launch(struct agent *agent, struct attempt *held)
{
    if (!held->has_load)
        return;
    if (!held->launched)
        write_launch(agent, held);
    if (held->launched && !held->ended && !held->given && !held->looking_up)
        launch(agent, held);
}
