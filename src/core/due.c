/* SPDX-License-Identifier: Apache-2.0 */
/*
 * due.c - what happens because time has passed
 *
 * A heap of the next moment at which each job needs CmdTime; ties go by id. What is due follows
 * from the records and the configuration alone, never from the time, so a restored state has the
 * same heap: the configuration may not change without due_rebuild().
 */
#include "core/state_priv.h"

#include <string.h>

/*
 * The node enforces the limit; the controller ends what outlived it by this much and by the time
 * after which it gives up a node: until then the job may have begun late, or ended in time on a node
 * that cannot say so.
 */
enum { LIMIT_GRACE_S = 60, DEFAULT_KILL_WAIT_S = 30, DEFAULT_MIN_JOB_AGE_S = 300 };
enum { DEFAULT_AGENT_TIMEOUT_S = 300 };
/* CPUs of a suspended job wait so long for the job that it was suspended for. */
enum { LENT_WAIT_S = 60 };
/* One command does no more than this; core_next_due() asks for the next at once. */
enum { DUE_PER_COMMAND = 10000 };

/* How long a node may be silent before it is given up with its jobs. */
static int64_t silence_s(const struct state *state)
{
    const Config *config = state->config;

    return config->has_agent_timeout_s && config->agent_timeout_s ? config->agent_timeout_s
                                                                  : DEFAULT_AGENT_TIMEOUT_S;
}

static int64_t limit_due(const struct state *state, const struct job *job)
{
    const Config *config = state->config;
    int64_t end =
        job_end_by(job, job->run->start_us + job->run->suspended_total_us + job->run->skipped_us);
    int64_t kill_wait = config->has_kill_wait_s ? config->kill_wait_s : DEFAULT_KILL_WAIT_S;
    int64_t silence = silence_s(state);
    const struct partition *partition = partition_at(state, job->run->partition);
    uint32_t over = partition && partition->spec->has_over_time_limit_min
                        ? partition->spec->over_time_limit_min
                        : config->over_time_limit_min;

    if (end == NEVER || over > 60 * 24 * 366)
        return NEVER;
    return end + (over * 60 + kill_wait + silence + LIMIT_GRACE_S) * US_PER_S;
}

/* After this a pending job cannot end before its deadline. */
static int64_t deadline_due(const struct job *job, bool pending)
{
    if (!job->more || !job->more->deadline_us)
        return NEVER;
    if (!pending)
        return job->more->deadline_us;
    int64_t shortest = job->more->time_min_s   ? job->more->time_min_s
                       : job->time_limit_s > 0 ? job->time_limit_s
                                               : 0;
    return job->more->deadline_us - shortest * US_PER_S;
}

/* It makes room then, or its CPUs are not kept for who wanted them any longer. */
static int64_t preempt_due(const struct job *job)
{
    if (job->more && job->more->preempt_end_us)
        return job->more->preempt_end_us;
    if (job->run->lent && job->more && job->more->preempted_by)
        return job->more->preempt_us + LENT_WAIT_S * US_PER_S;
    return NEVER;
}

static int64_t forget_due(const struct state *state, const struct job *job)
{
    const Config *config = state->config;
    int64_t age = config->has_min_job_age_s ? config->min_job_age_s : DEFAULT_MIN_JOB_AGE_S;

    if (age == 0 || (job->array && job->id == job->array->id && job->array->records))
        return NEVER;
    return job->end_us + age * US_PER_S;
}

/* What is told of a running job's time limit, the last part first. */
static const struct {
    uint16_t mail;
    unsigned percent;
} told[] = {
    { MAIL_TIME100, 100 },
    { MAIL_TIME90, 90 },
    { MAIL_TIME80, 80 },
    { MAIL_TIME50, 50 },
};

static int64_t told_at(const struct job *job, unsigned percent)
{
    int64_t limit_us = job->time_limit_s * US_PER_S;

    return job->run->start_us + job->run->suspended_total_us + limit_us / 100 * percent;
}

static int64_t mail_due(const struct job *job)
{
    uint16_t left = job->more ? job->more->mail_times & ~job->more->mail_sent : 0;
    int64_t due = NEVER;

    if (!left || job->time_limit_s <= 0)
        return NEVER;
    for (size_t i = 0; i < ARRAY_LEN(told); i++) {
        if (left & told[i].mail)
            due = told_at(job, told[i].percent);
    }
    return due;
}

/* Of several that were reached meanwhile the last one says it all. */
static void mail_now(struct state *state, struct job *job, struct events *out)
{
    uint16_t left = job->more->mail_times & ~job->more->mail_sent;
    uint32_t last = 0;

    for (size_t i = 0; i < ARRAY_LEN(told); i++) {
        if (!(left & told[i].mail) || told_at(job, told[i].percent) > state->time_us)
            continue;
        last = last ? last : told[i].mail;
        job->more->mail_sent |= told[i].mail;
    }
    emit_job(out, EVENT_JOB_TIME, job)->mail = last;
    due_update(state, job);
    job_touch(state, job);
}

static int64_t due_of(const struct state *state, const struct job *job)
{
    int64_t due = NEVER;

    switch (job_phase(job)) {
    case PHASE_PENDING:
        if (!job->hold && !job->deps && !job->eligible_us)
            due = job_begin_us(job);
        due = MIN(MIN(due, backoff_due(job)), deps_due(state, job));
        return MIN(due, deadline_due(job, true));
    case PHASE_CONFIGURING: /* the limit counts from the launch */
        return deadline_due(job, false);
    case PHASE_RUNNING:
        due = MIN(limit_due(state, job), mail_due(job));
        return MIN(MIN(due, deadline_due(job, false)), preempt_due(job));
    case PHASE_ENDED:
        return forget_due(state, job);
    case PHASE_SUSPENDED:
        return preempt_due(job);
    case PHASE_COMPLETING:
    case PHASE_REQUEUING:
        break;
    }
    return NEVER;
}

static bool sooner(const struct due *a, const struct due *b)
{
    return a->us != b->us ? a->us < b->us : a->job->id < b->job->id;
}

static void put(struct state *state, size_t at, struct due due)
{
    state->due.items[at] = due;
    due.job->due_at = (uint32_t)at + 1;
}

static void sift(struct state *state, size_t at)
{
    struct due due = state->due.items[at];

    for (; at > 0 && sooner(&due, &state->due.items[(at - 1) / 2]); at = (at - 1) / 2)
        put(state, at, state->due.items[(at - 1) / 2]);
    for (;;) {
        size_t child = at * 2 + 1;
        if (child + 1 < state->due.len &&
            sooner(&state->due.items[child + 1], &state->due.items[child]))
            child++;
        if (child >= state->due.len || !sooner(&state->due.items[child], &due))
            break;
        put(state, at, state->due.items[child]);
        at = child;
    }
    put(state, at, due);
}

void due_remove(struct state *state, struct job *job)
{
    if (!job->due_at)
        return;
    size_t at = job->due_at - 1;
    job->due_at = 0;
    struct due last = state->due.items[--state->due.len];
    if (at < state->due.len) {
        put(state, at, last);
        sift(state, at);
    }
}

void due_update(struct state *state, struct job *job)
{
    int64_t us = due_of(state, job);

    if (us == NEVER) {
        due_remove(state, job);
    } else if (job->due_at) {
        state->due.items[job->due_at - 1].us = us;
        sift(state, job->due_at - 1);
    } else {
        vec_push(&state->due, (struct due){ us, job });
        job->due_at = (uint32_t)state->due.len;
        sift(state, state->due.len - 1);
    }
}

void due_rebuild(struct state *state)
{
    for (const struct job *job = state_job_from(state, 0); job;
         job = state_job_from(state, (uint64_t)job->id + 1))
        due_update(state, job_at(state, job->id));
}

int64_t core_next_due(const struct state *state)
{
    int64_t due = state->due.len ? state->due.items[0].us : NEVER;

    due = MIN(due, gang_next_us(state));
    return MIN(MIN(due, usage_next_due(state)), state->next_reservation_us);
}

/*
 * This much of the time since the last command did not pass: the leader's clock was set, or nobody
 * led. It must end no job and forget no request: nodes count the time of jobs by themselves. A new
 * leader waits for silent nodes from the beginning, and so does its limit.
 */
void time_skipped(struct state *state, int64_t us, bool new_leader)
{
    requests_shift(state, us);
    if (new_leader)
        us += silence_s(state) * US_PER_S;
    vec_each (struct node *, at, &state->nodes) {
        const struct node *node = *at;
        for (size_t i = 0; i < node->jobs.len; i++) {
            struct job *job = node->jobs.items[i];
            size_t first = 0;
            while (job->run->parts[first].node != node && !job->run->parts[first].node)
                first++;
            if (job->run->parts[first].node != node) /* its first node that holds it counts */
                continue;
            job->run->skipped_us += us;
            due_update(state, job);
            job_touch(state, job);
        }
    }
}

static void pending_due(struct state *state, struct job *job, struct events *out)
{
    if (deadline_due(job, true) <= state->time_us) {
        job_end(state, job, JOB_DEADLINE, REASON_FAIL_DEADLINE, state->time_us, NULL, out);
        return;
    }
    if (backoff_due(job) <= state->time_us) {
        backoff_pending(state, job);
        emit_job(out, EVENT_JOB_CHANGED, job)->shape_changed = true;
    }
    if (job->deps)
        deps_review(state, job, NO_TASK, out);
    if (job_phase(job) == PHASE_PENDING)
        job_refresh(state, job, out);
}

static void limits_below(const struct state *state, size_t at, int64_t now_us,
                         void (*each)(void *ctx, const struct job *job), void *ctx)
{
    if (at >= state->due.len || state->due.items[at].us > now_us)
        return;
    if (job_phase(state->due.items[at].job) == PHASE_RUNNING)
        each(ctx, state->due.items[at].job);
    limits_below(state, at * 2 + 1, now_us, each, ctx); /* as deep as the heap */
    limits_below(state, at * 2 + 2, now_us, each, ctx);
}

void core_limits_due(const struct state *state, int64_t now_us,
                     void (*each)(void *ctx, const struct job *job), void *ctx)
{
    limits_below(state, 0, now_us, each, ctx);
}

static bool is_unheard(const CmdTime *cmd, const struct job *job)
{
    for (size_t i = 0; i < cmd->n_unheard; i++) {
        if (strcmp(cmd->unheard[i], job->run->parts[run_manager(job->run)].name) == 0)
            return true;
    }
    return false;
}

static void running_due(struct state *state, struct job *job, const CmdTime *cmd,
                        struct events *out)
{
    bool deadline = deadline_due(job, false) <= state->time_us;

    if (job_phase(job) == PHASE_RUNNING && mail_due(job) <= state->time_us) {
        mail_now(state, job, out);
        return;
    }
    if (!deadline && preempt_due(job) <= state->time_us) {
        preempt_out(state, job, job->more->preempt_requeue, state->time_us, out);
        return;
    }
    /* It may have ended in time, and its node could not say so yet. */
    if (!deadline && is_unheard(cmd, job)) {
        job->run->skipped_us += LIMIT_GRACE_S * US_PER_S;
        due_update(state, job);
        job_touch(state, job);
        return;
    }
    job_end(state, job, deadline ? JOB_DEADLINE : JOB_TIMEOUT,
            deadline ? REASON_FAIL_DEADLINE : REASON_FAIL_TIMEOUT, state->time_us, NULL, out);
    if (job_holds(job))
        emit_job(out, EVENT_JOB_ENDING, job);
}

enum err_code apply_time(struct state *state, const CmdTime *cmd, struct events *out)
{
    reservations_due(state, out);
    usage_due(state, out);
    for (unsigned i = 0; i < DUE_PER_COMMAND && state->due.len; i++) {
        struct job *job = state->due.items[0].job;
        if (state->due.items[0].us > state->time_us)
            break;
        switch (job_phase(job)) {
        case PHASE_PENDING:
            pending_due(state, job, out);
            break;
        case PHASE_CONFIGURING:
        case PHASE_RUNNING:
            running_due(state, job, cmd, out);
            break;
        case PHASE_SUSPENDED:
            job->more->preempted_by = 0;
            job_touch(state, job);
            due_update(state, job);
            break;
        case PHASE_ENDED:
            job_forget(state, job, out);
            break;
        default:
            due_update(state, job);
            break;
        }
    }
    return ERR_OK;
}
