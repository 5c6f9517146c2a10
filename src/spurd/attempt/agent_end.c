/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_end.c - ending what runs, keeping its report, and the tombstone
 *
 * (1) The tombstone is in the journal before the attempt's directory goes: at every moment one of
 *     the two says that the script was started.
 * (2) A report is kept until it is acknowledged: in the attempt's directory, here, and on disk when
 *     nobody takes it soon.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spurd/access/private.h"
#include "spurd/access/x11.h"
#include "spurd/attempt/life.h"
#include "spurd/root.h"
#include "spurd/step/step.h"
#include "spurd/task/hook.h"
#include "spurd/task/stepd.h"
#include "spurd/task/task.h"
#include "sys/clock.h"
#include "sys/files.h"
#include "sys/log.h"

static void order_freeze(struct attempt *held, FreezeCause cause, bool thaw)
{
    StepOrder order = STEP_ORDER__INIT;
    StepFreeze freeze = STEP_FREEZE__INIT;

    freeze.has_cause = freeze.has_thaw = true;
    freeze.cause = cause;
    freeze.thaw = thaw;
    order.what_case = STEP_ORDER__WHAT_FREEZE;
    order.freeze = &freeze;
    stepd_order(held->chan, &order);
}

void agent_freeze(struct agent *agent, struct attempt *held, FreezeCause cause, bool thaw)
{
    held->freeze_said |= cause;
    held->freeze_wanted =
        thaw ? held->freeze_wanted & ~(unsigned)cause : held->freeze_wanted | cause;
    steps_freeze(agent, held, cause, thaw);
    if (held->chan && !held->ended)
        order_freeze(held, cause, thaw);
}

void agent_freeze_again(struct attempt *held)
{
    static const FreezeCause causes[] = { FREEZE_ASKED, FREEZE_LEASE };

    for (size_t i = 0; held->chan && i < ARRAY_LEN(causes); i++) {
        if (held->freeze_said & causes[i])
            order_freeze(held, causes[i], !(held->freeze_wanted & causes[i]));
    }
}

void agent_kill(struct agent *agent, struct attempt *held)
{
    StepOrder order = STEP_ORDER__INIT;
    StepKill kill_order = STEP_KILL__INIT;

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

/* ---- reports ---- */

/* A copy of a report on its way to the disk. */
struct keep {
    uv_work_t work;
    struct agent_ref *ref;
    char *path;
    uint8_t *bytes;
    size_t len;
    struct err err;
};

static void keep_in_worker(uv_work_t *work)
{
    struct keep *keep = work->data;

    file_write(keep->path, keep->bytes, keep->len, 0600, &keep->err);
}

static void kept(uv_work_t *work, int status)
{
    struct keep *keep = work->data;
    struct agent *agent = keep->ref->agent;

    if (status == 0 && keep->err.code)
        log_error("report.keep", "path=%s error=%s", keep->path, keep->err.text);
    /* Acknowledged meanwhile: nobody else removes it. */
    if (!attempt_find(&agent->table, keep->ref->job, keep->ref->attempt))
        unlink(keep->path);
    free(keep->ref);
    free(keep->path);
    free(keep->bytes);
    free(keep);
}

static void keep_report(struct agent *agent, struct attempt *held)
{
    struct keep *keep = NEW(struct keep);
    struct task_node node;
    struct arena arena;

    arena_init(&arena);
    agent_task_node(agent, &node);
    keep->work.data = keep;
    keep->ref = agent_ref_new(agent, held);
    keep->path = mem_strdup(task_keep_file(&node, held->job, held->attempt, &arena));
    keep->len = step_ended__get_packed_size(held->report);
    keep->bytes = mem_new(keep->len + 1);
    step_ended__pack(held->report, keep->bytes);
    arena_done(&arena);
    held->kept = true;
    uv_queue_work(agent->uv, &keep->work, keep_in_worker, kept);
}

static void on_keep(uv_timer_t *timer)
{
    struct agent *agent = timer->data;
    bool younger = false;

    map_each (entry, &agent->table.held) {
        struct attempt *held = entry->value;
        if (!held->ended || held->acked || held->kept)
            continue;
        if (clock_boot_us() - held->ended_boot_us >= AGENT_KEEP_MS * INT64_C(1000))
            keep_report(agent, held);
        else
            younger = true;
    }
    if (younger)
        uv_timer_start(timer, on_keep, AGENT_KEEP_MS, 0);
}

void agent_keep_later(struct agent *agent, struct attempt *held)
{
    held->ended_boot_us = clock_boot_us();
    if (!uv_is_active((uv_handle_t *)&agent->keep_timer))
        uv_timer_start(&agent->keep_timer, on_keep, AGENT_KEEP_MS, 0);
}

static void remove_dir(const char *dir)
{
    static const char *const files[] = { "slurm_script", "batch.end" };

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        CLEANUP(freep) char *path = mem_printf("%s/%s", dir, files[i]);
        unlink(path);
    }
    if (rmdir(dir) < 0 && errno != ENOENT && stepd_look(dir) != STEPD_ABSENT)
        file_remove_tree(dir, NULL);
}

/* Everything that an attempt has left on this machine. */
static void remove_files(struct agent *agent, struct attempt *held)
{
    struct task_node node;
    struct arena arena;

    if (held->chan)
        stepd_close(TAKE(held->chan));
    if (!held->given || !held->report)
        return;
    arena_init(&arena);
    agent_task_node(agent, &node);
    if (held->kept || held->found)
        unlink(task_keep_file(&node, held->job, held->attempt, &arena));
    remove_dir(task_dir(&node, held->job, held->attempt, &arena));
    arena_done(&arena);
}

void agent_forget(struct agent *agent, struct attempt *held)
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
        return; /* (1): it stays until the disk takes it; the resend timer tries again */
    attempt_bury(&agent->table, &gone);
    remove_files(agent, held);
    agent_extern_close(agent, held);
    if (held->hook)
        hook_abandon(TAKE(held->hook));
    if (held->is_private)
        private_remove(agent, held->job, held->attempt);
    log_debug("grant.gone", "job=%u attempt=%u", held->job, held->attempt);
    x11_forget(agent, held->job, held->attempt);
    step_book_forget(agent, held->job, held->attempt, true);
    attempt_drop(&agent->table, held);
    struct attempt *waiting = attempt_other(&agent->table, job, 0);
    if (waiting)
        agent_advance(agent, waiting);
    if (journal_is_long(&agent->journal))
        journal_replace(&agent->journal, attempt_write, &agent->table, NULL);
}
