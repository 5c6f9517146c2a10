/* SPDX-License-Identifier: Apache-2.0 */
/*
 * update.c - changes to a job that is already in the queue
 *
 * What is changed is the spec: the change is merged into it, the result is admitted like a new job,
 * and only then is anything written.
 */
#include "core/command/command.h"

#include <stdlib.h>
#include <string.h>

#include "core/msg.h"
#include "wire/pb.h"

enum { PENDING = 1, ACTIVE = 2, ENDED = 4, ALWAYS = PENDING | ACTIVE | ENDED };

/* When a field of the spec may be changed. What has no row cannot be. */
static const struct update_row {
    const char *field;
    unsigned when;
} update_rows[] = {
    { "name", PENDING | ACTIVE },
    { "account", PENDING },
    { "partition", PENDING },
    { "qos", PENDING },
    { "reservation", PENDING },
    { "wckey", ALWAYS },
    { "comment", ALWAYS },
    { "extra", ALWAYS },
    { "time_limit_s", PENDING | ACTIVE },
    { "time_min_s", PENDING },
    { "begin_us", PENDING },
    { "deadline_us", PENDING },
    { "dependency", PENDING },
    { "kill_on_invalid_dep", PENDING },
    { "nice", PENDING },
    { "priority", PENDING },
    { "array", PENDING | ACTIVE },     /* only "%N" */
    { "min_nodes", PENDING | ACTIVE }, /* resize.c */
    { "max_nodes", PENDING | ACTIVE },
    { "node_sizes", PENDING },
    { "ntasks", PENDING },
    { "cpus_per_task", PENDING },
    { "ntasks_per_node", PENDING },
    { "ntasks_per_socket", PENDING },
    { "ntasks_per_core", PENDING },
    { "ntasks_per_gpu", PENDING },
    { "min_cpus_per_node", PENDING },
    { "sockets_per_node", PENDING },
    { "cores_per_socket", PENDING },
    { "threads_per_core", PENDING },
    { "mem_per_node_mb", PENDING },
    { "mem_per_cpu_mb", PENDING },
    { "mem_per_gpu_mb", PENDING },
    { "tmp_disk_mb", PENDING },
    { "gres", PENDING },
    { "cpus_per_gpu", PENDING },
    { "licenses", PENDING },
    { "features", PENDING },
    { "prefer", PENDING },
    { "nodelist", PENDING | ACTIVE },
    { "exclude", PENDING },
    { "contiguous", PENDING },
    { "exclusive", PENDING },
    { "oversubscribe", PENDING },
    { "overcommit", PENDING },
    { "reboot", PENDING },
    { "work_dir", PENDING },
    { "std_out", PENDING },
    { "std_err", PENDING },
    { "std_in", PENDING },
    { "core_spec", PENDING },
    { "thread_spec", PENDING },
    { "mcs_label", PENDING },
    { "delay_boot_s", PENDING },
    { "switches", PENDING },
    { "switches_wait_s", PENDING },
    { "segment", PENDING },
    { "spread_segments", PENDING },
    { "consolidate_segments", PENDING },
    { "requeue", PENDING | ACTIVE },
    { "no_kill", PENDING | ACTIVE },
    { "mail_type", PENDING | ACTIVE },
    { "mail_user", PENDING | ACTIVE },
    { "signal", PENDING },
    { "signal_before_s", PENDING },
    { "signal_batch_only", PENDING },
};

static const struct update_row *row_of(const char *field)
{
    for (size_t i = 0; i < ARRAY_LEN(update_rows); i++) {
        if (strcmp(update_rows[i].field, field) == 0)
            return &update_rows[i];
    }
    return NULL;
}

static unsigned now_of(const struct job *job)
{
    switch (job_phase(job)) {
    case PHASE_PENDING:
        return PENDING;
    case PHASE_ENDED:
        return ENDED;
    default:
        return ACTIVE;
    }
}

static enum err_code check_field(const struct job *job, const char *field, struct err *err)
{
    const struct update_row *row = row_of(field);

    if (!row) {
        err_set(err, ERR_UNSUPPORTED, "%s of a job cannot be changed", field);
        err_option(err, field);
        return ERR_UNSUPPORTED;
    }
    if (row->when & now_of(job))
        return ERR_OK;
    return now_of(job) == ENDED ? ERR_JOB_FINISHED : ERR_JOB_NOT_PENDING;
}

static enum err_code check_fields(const struct job *job, const CmdUpdateJob *cmd, struct err *err)
{
    const ProtobufCMessageDescriptor *type = &job_spec__descriptor;
    enum err_code code = cmd->change && pb_has_unknown(cmd->change) ? ERR_UNSUPPORTED : ERR_OK;

    for (unsigned i = 0; cmd->change && i < type->n_fields && code == ERR_OK; i++) {
        if (pb_has(cmd->change, &type->fields[i]))
            code = check_field(job, type->fields[i].name, err);
    }
    for (size_t i = 0; i < cmd->n_clear && code == ERR_OK; i++)
        code = check_field(job, cmd->clear[i], err);
    if (code == ERR_OK && cmd->has_num_nodes)
        code = (enum err_code) - err_set(err, ERR_UNSUPPORTED, "num_nodes is not of this release");
    bool sized = cmd->change && (cmd->change->has_min_nodes || cmd->change->has_max_nodes ||
                                 !str_is_empty(cmd->change->nodelist));
    if (code == ERR_OK && sized && now_of(job) == ACTIVE && !job_resize_asked(job, cmd->change))
        code = ERR_TRANSITION; /* it starts or ends */
    return code;
}

/* What only an administrator may make larger. */
static enum err_code check_rights(const struct state *state, const struct job *job,
                                  const CmdUpdateJob *cmd)
{
    const JobSpec *change = cmd->change;

    if ((cmd->has_site_factor || cmd->reset_accrue) && !cmd->by_admin)
        return ERR_PERMISSION;
    if (cmd->by_admin || !change)
        return ERR_OK;
    if (change->has_time_limit_s && job->time_limit_s >= 0 &&
        (change->time_limit_s < 0 || change->time_limit_s > job->time_limit_s))
        return ERR_PERMISSION;
    if (change->has_priority && change->priority > job_priority(state, job))
        return ERR_PERMISSION;
    if (change->reboot)
        return ERR_PERMISSION;
    if (change->has_nice && change->nice < MIN(job->nice, 0))
        return ERR_PERMISSION;
    return ERR_OK;
}

static enum err_code update_hold(struct state *state, struct job *job, const CmdUpdateJob *cmd)
{
    enum job_phase phase = job_phase(job);

    if (phase != PHASE_PENDING && phase != PHASE_REQUEUING)
        return job_has_ended(job) ? ERR_JOB_FINISHED : ERR_JOB_NOT_PENDING;
    if ((cmd->hold > 1 || (cmd->hold == 0 && job->hold == 2)) && !cmd->by_admin)
        return ERR_PERMISSION;
    if (cmd->hold == 1 && job->hold == 2)
        return cmd->by_admin ? ERR_OK : ERR_PERMISSION;
    job->hold = (uint8_t)MIN(cmd->hold, 2);
    job->reason = job->hold == 2 ? REASON_HELD_ADMIN : job->hold ? REASON_HELD_USER : REASON_NONE;
    job_say_why(job, NULL);
    if (!job->hold)
        backoff_forget(job, false);
    if (!job->hold)
        job->flags &=
            ~(uint32_t)(JOB_FLAG_REQUEUE_HOLD | JOB_FLAG_SPECIAL_EXIT | JOB_FLAG_LAUNCH_FAILED);
    job_touch(state, job);
    return ERR_OK;
}

static enum err_code update_throttle(struct state *state, struct job *job, const char *text,
                                     struct err *err)
{
    uint64_t most = 0;

    if (!job->array)
        return (enum err_code) - err_set(err, ERR_ARRAY, "The job is not an array");
    if (text[0] != '%' || !str_to_u64(text + 1, UINT32_MAX, &most))
        return (enum err_code) - err_set(err, ERR_ARRAY, "Only the %%N of an array can be changed");
    job->array->max_running = (uint32_t)most;
    job_touch(state, job_at(state, job->array->id));
    return ERR_OK;
}

static JobSpec *merged_spec(struct state *state, const struct job *job, const CmdUpdateJob *cmd)
{
    ProtobufCAllocator allocator = pb_arena(&state->scratch);
    JobSpec *spec = job_spec__unpack(&allocator, job->spec->len, job->spec->data);
    char *array = spec->array;

    if (cmd->change) {
        JobSpec change = *cmd->change;
        if (job_resize_asked(job, cmd->change)) { /* what was asked for stays */
            change.has_min_nodes = change.has_max_nodes = false;
            change.nodelist = NULL;
        }
        if (change.has_min_nodes && !change.node_sizes)
            pb_clear(spec, "node_sizes"); /* every number between will do again */
        spec = pb_merge(spec, &change, &state->scratch);
    }
    for (size_t i = 0; i < cmd->n_clear; i++)
        pb_clear(spec, cmd->clear[i]);
    spec->array = array; /* the throttle is kept beside it */
    return spec;
}

static bool clears(const CmdUpdateJob *cmd, const char *field)
{
    for (size_t i = 0; i < cmd->n_clear; i++) {
        if (strcmp(cmd->clear[i], field) == 0)
            return true;
    }
    return false;
}

static enum err_code readmit(struct state *state, const struct job *job, const JobSpec *spec,
                             bool new_deps, struct admitted *admitted, struct err *err)
{
    JobOwner owner = JOB_OWNER__INIT;
    JobSpec asked = *spec;

    job_owner_msg(job->owner, &owner);
    asked.array = NULL;
    if (!new_deps) /* what is left of the old ones is known already */
        asked.dependency = NULL;
    return (enum err_code) - admit(state, &owner, &asked, job, state->time_us, admitted, err);
}

static void write_spec(struct state *state, struct job *job, const JobSpec *spec)
{
    struct span name = job_name(job);
    const char *to = spec->name ? spec->name : "";
    bool renamed = strlen(to) != name.len || memcmp(to, name.ptr, name.len) != 0;
    bool named = !job_has_ended(job) && renamed;

    if (renamed)
        deps_rename(state, job, true);
    if (named) {
        deps_notify_name(state, job);
        job_name_unlink(state, job);
    }
    struct span bytes = pb_pack(spec, &state->scratch);
    job_take_spec(state, job, spec, packed_new(bytes.ptr, bytes.len));
    if (named)
        job_name_link(state, job);
    if (renamed)
        deps_rename(state, job, false);
    job_touch(state, job);
}

/* So that its priority becomes this one. */
static void set_priority(struct state *state, struct job *job, uint32_t to)
{
    ProtobufCAllocator allocator = pb_arena(&state->scratch);

    if (priority_is_basic(state)) {
        job->priority = to;
        job_touch(state, job);
        return;
    }
    JobSpec *spec = job_spec__unpack(&allocator, job->spec->len, job->spec->data);
    if (job->direct_priority) {
        job->priority = spec->priority = to;
    } else {
        int64_t nice = (int64_t)job->nice + job_priority(state, job) - to;
        spec->has_nice = true;
        spec->nice = (int32_t)MIN(MAX(nice, INT32_MIN + 1), INT32_MAX);
    }
    write_spec(state, job, spec);
}

/* Puts the job before all pending jobs of its owner, behind none of the others it was behind. */
static void move_to_top(struct state *state, struct job *job, struct events *out)
{
    struct job *top = job;
    uint32_t highest = job_priority(state, job), own = highest;

    for (const struct job *at = state_job_from(state, 0); at;
         at = state_job_from(state, (uint64_t)at->id + 1)) {
        if (at->owner->uid == job->owner->uid && job_phase(at) == PHASE_PENDING &&
            job_priority(state, at) > highest) {
            top = job_at(state, at->id);
            highest = job_priority(state, at);
        }
    }
    if (top == job)
        return;
    set_priority(state, top, own);
    set_priority(state, job, highest);
    emit_job(out, EVENT_JOB_CHANGED, top)->shape_changed = true;
}

static void write_pending(struct state *state, struct job *job, const JobSpec *spec,
                          const CmdUpdateJob *cmd, bool new_deps, struct admitted *admitted)
{
    struct shape *shape = shape_take(state, admitted);

    shape_retire(state, job->shape);
    job->shape = shape;
    if (cmd->change && cmd->change->has_time_limit_s)
        job->time_limit_s = admitted->time_limit_s;
    if (cmd->change && (cmd->change->has_priority || cmd->change->has_nice))
        job->priority = job_first_priority(spec, job->id);
    if (cmd->change && cmd->change->has_priority && cmd->change->priority == 0) {
        job->hold = MAX(job->hold, cmd->by_admin ? 2 : 1);
        job->reason = job->hold == 2 ? REASON_HELD_ADMIN : REASON_HELD_USER;
        job_say_why(job, NULL);
    }
    if (new_deps) {
        if (job->deps)
            deps_unregister(state, job);
        deps_free(job->deps);
        job->deps = TAKE(admitted->deps);
        if (job->deps)
            deps_register(state, job);
    }
}

static enum err_code update_spec(struct state *state, struct job *job, const CmdUpdateJob *cmd,
                                 struct err *err)
{
    JobSpec *spec = merged_spec(state, job, cmd);
    struct admitted admitted = { 0 };
    bool pending = job_phase(job) == PHASE_PENDING, could_requeue = job_may_requeue(state, job);
    bool new_deps = (cmd->change && cmd->change->dependency) || clears(cmd, "dependency");

    if (pending) {
        enum err_code code = readmit(state, job, spec, new_deps, &admitted, err);
        if (code != ERR_OK)
            return code;
    } else if (cmd->change && cmd->change->has_time_limit_s) {
        if (spec->time_limit_s < -1 || spec->time_limit_s > LIMIT_SECONDS)
            return ERR_TIME_LIMIT;
        job_count(state, job, -1);
        job->time_limit_s = spec->time_limit_s;
        job_count(state, job, 1);
    }
    if (pending) {
        if (str_is_empty(spec->account))
            spec->account = arena_strdup(&state->scratch, admitted.account);
        if (str_is_empty(spec->qos))
            spec->qos = arena_strdup(&state->scratch, admitted.qos);
        job_count(state, job, -1);
    }
    write_spec(state, job, spec);
    if (job->run && !could_requeue && job_may_requeue(state, job))
        job_unbind(state, job);
    if (pending) {
        backoff_forget(job, true);
        write_pending(state, job, spec, cmd, new_deps, &admitted);
        job_bind(state, job);
        job_count(state, job, 1);
        accrue_wait(state, job);
    }
    admitted_done(&admitted);
    return ERR_OK;
}

/* What is said in other words: CPUs are tasks, and a time to end is a limit. */
static enum err_code reword(const struct state *state, const struct job *job,
                            const CmdUpdateJob *cmd, JobSpec *change)
{
    if (cmd->has_num_cpus) {
        uint32_t each =
            change->has_cpus_per_task ? change->cpus_per_task : job->shape->cpus_per_task;
        if (!cmd->num_cpus || cmd->num_cpus > UINT32_MAX / 2)
            return ERR_CPU_COUNT;
        change->has_ntasks = true;
        change->ntasks = (cmd->num_cpus + MAX(each, 1) - 1) / MAX(each, 1);
    }
    if (cmd->has_end_us) {
        if (job_phase(job) != PHASE_RUNNING)
            return job_has_ended(job) ? ERR_JOB_FINISHED : ERR_JOB_NOT_RUNNING;
        if (cmd->end_us <= state->time_us)
            return ERR_INVALID_TIME;
        change->has_time_limit_s = true;
        int64_t long_us = cmd->end_us - job->run->start_us - job->run->suspended_total_us;
        change->time_limit_s = (long_us + US_PER_S - 1) / US_PER_S;
    }
    return ERR_OK;
}

static enum err_code update_one(struct state *state, struct job *job, const void *arg,
                                struct err *err, struct events *out)
{
    const CmdUpdateJob *cmd = arg;
    CmdUpdateJob reworded = *cmd;
    JobSpec filled = JOB_SPEC__INIT;

    if (cmd->has_num_cpus || cmd->has_end_us) {
        if (cmd->change)
            filled = *cmd->change;
        reworded.change = &filled;
        enum err_code no = reword(state, job, cmd, &filled);
        if (no != ERR_OK)
            return no;
        cmd = &reworded;
    }
    const JobSpec *change = cmd->change;
    enum err_code code = check_fields(job, cmd, err);

    if (code == ERR_OK)
        code = check_rights(state, job, cmd);
    if (code == ERR_OK && job_resize_asked(job, change))
        code = job_resize(state, job, change, true, err);
    if (code == ERR_OK && change && change->array)
        code = update_throttle(state, job, change->array, err);
    if (code == ERR_OK && (change || cmd->n_clear))
        code = update_spec(state, job, cmd, err);
    if (code == ERR_OK && cmd->has_hold)
        code = update_hold(state, job, cmd);
    if (code == ERR_OK && job_resize_asked(job, change))
        code = job_resize(state, job, change, false, err);
    if (code != ERR_OK)
        return code;
    if (cmd->top && job_phase(job) == PHASE_PENDING)
        move_to_top(state, job, out);
    if (cmd->has_site_factor) {
        job_more(job)->site_factor = cmd->site_factor;
        job_touch(state, job);
    }
    if (cmd->reset_accrue && job_is_eligible(job)) {
        accrue_stop(state, job);
        accrue_begin(state, job);
        job_touch(state, job);
    }
    if (cmd->admin_comment) {
        job_set_text(&job_more(job)->admin_comment, cmd->admin_comment);
        job_touch(state, job);
    }
    emit_job(out, EVENT_JOB_CHANGED, job)->shape_changed = job_phase(job) == PHASE_PENDING;
    if (job->deps)
        deps_review(state, job, out);
    else
        job_refresh(state, job, out);
    if (change && change->dependency)
        deps_ask_twins(state, job);
    timers_update(state, job);
    return ERR_OK;
}

enum err_code apply_update_job(struct state *state, const CmdUpdateJob *cmd, struct err *err,
                               struct events *out)
{
    struct job_select_act act = { .each = update_one, .arg = cmd };

    return job_select_each(state, cmd->jobs, &act, err, out);
}
