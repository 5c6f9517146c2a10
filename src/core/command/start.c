/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start.c - starts, and what nodes report about them
 *
 * (1) A start is refused when anything changed since it was planned: the planner then plans anew.
 * (2) A report about an earlier attempt is refused; one that comes twice changes nothing.
 */
#include "core/command/command.h"

#include <string.h>

enum { DEFAULT_MAX_REQUEUE = 5 };

/* The record a start is about, when it may start. */
static struct job *startable(struct state *state, const JobStart *start, struct err *err)
{
    struct job *job = job_at(state, start->job_id);
    uint32_t number;

    if (!job) {
        err_code(err, ERR_INVALID_JOB_ID);
        return NULL;
    }
    if (!job_can(job, JOB_ON_START)) {
        err_code(err, ERR_JOB_NOT_PENDING);
        return NULL;
    }
    if (!job_is_eligible(job)) {
        err_code(err, ERR_JOB_HELD);
        return NULL;
    }
    if (start->attempt != job->attempt + 1) {
        err_code(err, ERR_STALE_ATTEMPT);
        return NULL;
    }
    if (job_is_meta(job) &&
        (!start->has_array_task_id || !array_find(job->array, start->array_task_id, &number) ||
         array_task(job->array, number) != TASK_WAITING)) {
        err_code(err, ERR_INVALID_JOB_ID);
        return NULL;
    }
    if (job_is_meta(job) && job->array->waiting > 1 && !ids_left(state)) {
        err_code(err, ERR_MAX_JOB_COUNT);
        return NULL;
    }
    if (job->array && array_room(job->array) == 0) {
        err_set(err, ERR_DISABLED, "the array runs as many tasks as it may");
        return NULL;
    }
    return job;
}

static bool needs_preparing(const struct state *state, const struct job *job)
{
    const Config *config = state->config;

    return job->run->count > 1 || job->shape->reboot || !str_is_empty(config->prolog) ||
           !str_is_empty(config->prolog_ctld) || !str_is_empty(config->private_init_script);
}

void job_begin(struct state *state, struct job *job, struct events *out)
{
    struct job waiting = *job;

    waiting.run = NULL;
    uint32_t priority = job_priority(state, &waiting); /* it stays what it was */
    job_move(state, job, needs_preparing(state, job) ? JOB_ON_START_SLOW : JOB_ON_START, 0);
    if (!priority_is_basic(state) && !job->direct_priority)
        job->priority = priority;
    site_hooks_begin(state, job);
    job_name_runs(state, job, true);
    job->attempt++;
    job->reason = job->run->prolog == SITE_DUE ? REASON_PROLOG : REASON_NONE;
    job_say_why(job, NULL);
    job->planned_start_us = 0;
    if (job->more)
        job->more->preempt_us = job->more->mail_sent = 0;
    job->flags &= ~(uint32_t)(JOB_FLAG_REQUEUE_HOLD | JOB_FLAG_SPECIAL_EXIT);
    bool first = job->array && !job->array->last_start_us;
    if (job->array) {
        job->array->unstarted--;
        job->array->running++;
        job->array->last_start_us = state->time_us;
        job_touch(state, job_at(state, job->array->id));
    }
    timers_update(state, job);
    gang_runs(state, job, out);
    struct event *event = emit_job(out, EVENT_JOB_STARTED, job);
    event->start_us = state->time_us;
    event->array_first = first;
    reboot_begins(state, job, out);
    deps_notify(state, job);
}

static void charge_start(const struct state *state, const struct job *job, const JobStart *start,
                         const struct alloc_parts *parts, struct charge *out)
{
    const Allocation *allocation = start->allocation;

    memset(out, 0, sizeof(*out));
    for (size_t i = 0; i < parts->count; i++) {
        const NodeAlloc *node = parts->of[i].alloc;
        charge_add_node(state, out, node->cpus, node->mem_mb);
        for (size_t g = 0; g < node->n_gres; g++)
            charge_add(state, out, node->gres[g]->name, node->gres[g]->type, node->gres[g]->count);
    }
    uint32_t licence;
    if (!licences_choose(state, job->shape, allocation, &licence))
        licence = LICENCE_OPEN; /* it is refused for that */
    charge_close(state, out, job->shape, licence, partition_at(state, allocation->partition));
}

/*
 * With what it is given; the planner has looked, but others may have started since. `others` are
 * the components before it, or NULL.
 */
static bool within_limits(struct state *state, const struct job *job, const JobStart *start,
                          const struct alloc_parts *parts, struct tallies *others, struct err *err)
{
    const struct holder *holders[HOLDERS_MOST];
    const struct partition *partition = partition_at(state, start->allocation->partition);
    struct limit_hit hit;
    struct charge charge;

    if (!state->accounts->enforce)
        return true;
    charge_start(state, job, start, parts, &charge);
    if (!limits_allow(state, job, partition, &charge, others, &hit)) {
        err_set(err, ERR_ACCOUNTING_POLICY, "%s", reason_word(hit.reason));
        return false;
    }
    if (!others)
        return true;
    size_t count = limits_holders(state, job, partition, holders);
    tallies_add(state, others, holders, count, &charge, limits_seconds(job), 1);
    return true;
}

/* Components of a heterogeneous job start together. */
static bool is_whole(const struct state *state, const CmdStart *cmd)
{
    const struct job *job = job_at(state, cmd->starts[0]->job_id);
    uint32_t first = job && job->more && job->more->het_count ? job->more->het_job_id : 0;

    if (!first)
        return cmd->n_starts == 1;
    if (cmd->n_starts != job->more->het_count)
        return false;
    for (size_t i = 0; i < cmd->n_starts; i++) {
        if (cmd->starts[i]->job_id != first + i)
            return false;
    }
    return true;
}

static enum err_code refuse(const CmdStart *cmd, enum err_code code, struct events *out)
{
    for (size_t i = 0; i < cmd->n_starts; i++) {
        const JobStart *start = cmd->starts[i];
        reject(out, start->job_id, start->has_array_task_id ? start->array_task_id : NO_TASK, code);
    }
    return code;
}

enum err_code apply_start(struct state *state, const CmdStart *cmd, struct err *err,
                          struct events *out)
{
    struct job **jobs = ARENA_ARRAY(&state->scratch, struct job *, cmd->n_starts + 1);
    struct tallies others = { 0 };
    size_t done = 0;

    if (cmd->n_starts == 0 || !is_whole(state, cmd))
        return refuse(cmd, ERR_INVALID, out);
    for (; done < cmd->n_starts; done++) {
        const JobStart *start = cmd->starts[done];
        struct job *job = startable(state, start, err);
        struct alloc_parts parts;
        uint32_t number;
        if (!job || alloc_check(state, job, start, &parts, err) < 0 ||
            !within_limits(state, job, start, &parts, cmd->n_starts > 1 ? &others : NULL, err))
            break;
        if (job_is_meta(job)) {
            array_find(job->array, start->array_task_id, &number);
            job = array_split(state, job, number, out);
        }
        alloc_take(state, job, start, &parts);
        jobs[done] = job;
    }
    tallies_done(&others);
    if (done < cmd->n_starts) { /* all of them or none */
        while (done > 0)
            alloc_undo(state, jobs[--done]);
        return refuse(cmd, err->code, out);
    }
    for (size_t i = 0; i < done; i++)
        job_begin(state, jobs[i], out);
    return ERR_OK;
}

/* The job of a report, when the report is about its current attempt; (2). */
static struct job *reported(struct state *state, uint32_t id, uint32_t attempt, enum err_code *code)
{
    struct job *job = job_at(state, id);

    *code = !job                                   ? ERR_INVALID_JOB_ID
            : job->attempt != attempt || !job->run ? ERR_STALE_ATTEMPT
                                                   : ERR_OK;
    return *code == ERR_OK ? job : NULL;
}

enum err_code apply_ready(struct state *state, const CmdReady *cmd, struct events *out)
{
    enum err_code code;
    struct job *job = reported(state, cmd->job_id, cmd->attempt, &code);

    if (!job)
        return code;
    if (cmd->controller) {
        if (!site_hooks_prepared(state, job))
            return ERR_ALREADY_DONE;
        job->reason = REASON_NONE;
        if (!reboot_is_awaited(job))
            emit_job(out, EVENT_JOB_PREPARED, job);
        return ERR_OK;
    }
    if (job->run->prolog == SITE_DUE || reboot_is_awaited(job) ||
        !job_move(state, job, JOB_ON_READY, 0))
        return ERR_JOB_NOT_RUNNING;
    /* its nodes were prepared */
    job->run->skipped_us = state->time_us - job->run->start_us - state->skipped_us;
    timers_update(state, job);
    gang_runs(state, job, out);
    emit_job(out, EVENT_JOB_READY, job);
    return ERR_OK;
}

/* Where it has that node; its count: nowhere. Names come in the order of its nodes, so begin where the last one was. */
static unsigned part_named(const struct job *job, const char *name, unsigned from)
{
    unsigned count = job->run->count;

    for (unsigned i = 0; i < count; i++) {
        unsigned part = (from + i) % count;
        if (str_eq(job->run->parts[part].name, name))
            return part;
    }
    return count;
}

static void release_named(struct state *state, struct job *job, char **names, size_t count,
                          struct events *out)
{
    unsigned part = state->released.job_id == job->id ? state->released.part : 0;

    for (size_t n = 0; n < count; n++) {
        part = part_named(job, names[n], part);
        if (part < job->run->count) {
            job_release(state, job, &job->run->parts[part], out);
            state->released.job_id = job->id;
            state->released.part = part;
        } else {
            part = 0;
        }
    }
}

/* Are these nodes that the job gave up? */
static bool has_left(const struct job *job, char **names, size_t count)
{
    unsigned part = 0;

    for (size_t n = 0; n < count; n++) {
        part = part_named(job, names[n], part);
        if (part == job->run->count || !job->run->parts[part].left)
            return false;
    }
    return count > 0;
}

enum err_code apply_release(struct state *state, const CmdRelease *cmd, struct events *out)
{
    enum err_code code;
    struct job *job = reported(state, cmd->job_id, cmd->attempt, &code);

    if (!job)
        return code;
    if (cmd->controller && !site_hooks_cleaned(state, job))
        return ERR_ALREADY_DONE;
    if (!job_can(job, JOB_ON_RELEASED) && !has_left(job, cmd->nodes, cmd->n_nodes))
        return job_phase(job) == PHASE_ENDED ? ERR_ALREADY_DONE : ERR_TRANSITION;
    release_named(state, job, cmd->nodes, cmd->n_nodes, out);
    job_settle_release(state, job, out);
    return ERR_OK;
}

static bool exit_code_in(const char *set, uint32_t status)
{
    struct bitset codes;
    bool has = false;

    if (str_is_empty(set) || (status & 0x7f))
        return false;
    bitset_init(&codes, 256);
    if (bitset_parse(&codes, set))
        has = bitset_has(&codes, status >> 8 & 0xff);
    bitset_done(&codes);
    return has;
}

static JobState end_state_of(const CmdFinish *cmd)
{
    if (cmd->has_state && cmd->state > JOB_SUSPENDED)
        return cmd->state;
    if (cmd->usage && cmd->usage->out_of_memory && cmd->exit_status)
        return JOB_OUT_OF_MEMORY;
    return cmd->exit_status ? JOB_FAILED : JOB_COMPLETED;
}

static unsigned end_reason_of(const CmdFinish *cmd, JobState end)
{
    static const struct {
        JobState end;
        unsigned reason;
    } reasons[] = {
        { JOB_COMPLETED, REASON_NONE },           { JOB_FAILED, REASON_FAIL_EXIT_CODE },
        { JOB_TIMEOUT, REASON_FAIL_TIMEOUT },     { JOB_NODE_FAIL, REASON_FAIL_DOWN_NODE },
        { JOB_DEADLINE, REASON_FAIL_DEADLINE },   { JOB_OUT_OF_MEMORY, REASON_FAIL_OOM },
        { JOB_BOOT_FAIL, REASON_FAIL_DOWN_NODE },
    };

    if (cmd->has_reason)
        return cmd->reason;
    if (end == JOB_FAILED && cmd->exit_status & 0x7f)
        return REASON_FAIL_SIGNAL;
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
        if (reasons[i].end == end)
            return reasons[i].reason;
    }
    return REASON_NONE;
}

/* Nothing ran: another try, but not for ever. */
static void try_again(struct state *state, struct job *job, const CmdFinish *cmd, int64_t end_us,
                      struct events *out)
{
    const Config *config = state->config;
    uint32_t most = config->has_max_batch_requeue ? config->max_batch_requeue : DEFAULT_MAX_REQUEUE;
    bool enough = job->restarts >= most, hold = cmd->hold;

    if (!str_is_empty(cmd->failed_node) && !hold) /* who lets a held one go takes it from there */
        enough = backoff_count(state, job, cmd->failed_node) || enough;
    job_requeue(state, job, JOB_FAILED, enough || hold ? 2 : 0, JOB_FLAG_LAUNCH_FAILED,
                enough ? REASON_MAX_REQUEUE
                : hold ? REASON_HELD_ADMIN
                       : REASON_NONE,
                end_us, out);
}

static void finish(struct state *state, struct job *job, const CmdFinish *cmd, struct events *out)
{
    const Config *config = state->config;
    int64_t end_us =
        cmd->has_ended_us && cmd->ended_us > job->run->start_us ? cmd->ended_us : state->time_us;
    JobState end = end_state_of(cmd);

    end_us = MIN(end_us, state->time_us);
    if (!cmd->has_state && end != JOB_COMPLETED && job->more && job->more->preempt_end_us) {
        preempt_out(state, job, job->more->preempt_requeue, end_us, out);
        return;
    }
    if (cmd->requeue && job_has_script(state, job)) {
        try_again(state, job, cmd, end_us, out);
    } else if (!cmd->has_state && job_may_requeue(state, job) &&
               exit_code_in(config->requeue_exit, cmd->exit_status)) {
        job_requeue(state, job, end, 0, 0, REASON_NONE, end_us, out);
    } else if (!cmd->has_state && job_may_requeue(state, job) &&
               exit_code_in(config->requeue_exit_hold, cmd->exit_status)) {
        job_requeue(state, job, end, 1, JOB_FLAG_SPECIAL_EXIT, REASON_HELD_USER, end_us, out);
    } else {
        if (cmd->requeue)
            end = JOB_FAILED;
        job_end(state, job, end, end_reason_of(cmd, end), end_us, cmd->usage, out);
    }
    if (job_holds(job))
        emit_job(out, EVENT_JOB_ENDING, job);
}

enum err_code apply_finish(struct state *state, const CmdFinish *cmd, struct events *out)
{
    enum err_code code;
    struct job *job = reported(state, cmd->job_id, cmd->attempt, &code);

    if (!job)
        return code;
    enum job_phase phase = job_phase(job);
    if (phase == PHASE_ENDED)
        return ERR_ALREADY_DONE;
    if (!job->run->has_exit && cmd->has_exit_status) {
        job->run->has_exit = true;
        job->run->exit_status = cmd->exit_status;
    }
    if (!str_is_empty(cmd->failed_node))
        job_set_text(&job_more(job)->failed_node, cmd->failed_node);
    if (!str_is_empty(cmd->text))
        job_set_text(&job_more(job)->system_comment, cmd->text);
    job_touch(state, job);
    /* Released nodes first: then the end already knows whether any are left to be revoked. */
    release_named(state, job, cmd->released, cmd->n_released, out);
    if (phase == PHASE_COMPLETING || phase == PHASE_REQUEUING)
        job_settle_release(state, job, out);
    else
        finish(state, job, cmd, out);
    return ERR_OK;
}
