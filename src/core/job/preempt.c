/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preempt.c - running jobs that make room for others
 *
 * (1) A command names the job that is to start and all that must go for it, or the first of very many
 *     and those that the next commands will name. It is carried out whole or not at all: one that may
 *     not be preempted any more saves the others.
 * (2) A victim with grace time is told (SIGCONT, SIGTERM) and stays until preempt_end_us; what it is
 *     then done with is written down when it is told. If it ends by itself before, and not well, it
 *     counts as preempted.
 * (3) A suspended victim keeps its memory, devices and licences and lends its CPUs. It runs again as
 *     soon as all of them are free and the job that it was suspended for does not wait any more.
 * (4) A job with --signal=R:SIG@TIME that uses nodes of a reservation with MaxStartDelay goes for the
 *     reservation's own jobs, whatever preemption is configured: TIME after it got the signal.
 * (5) The components of a heterogeneous job go together and come back together. One that may not be
 *     preempted saves the others; what is harshest for one of them happens to all.
 * (6) By size: who is smaller, or has waited long enough, is for the planner to say (sched/queue/overtake.c).
 *     Here it is seen to that a victim is only ever put back, no more often than preemption.times, and
 *     told with the signal that it asked for.
 */
#include "core/preempt.h"

#include <signal.h>
#include <string.h>

#include "core/job/jobs.h"
#include "core/resv.h"

enum {
    PREEMPT_TIMES = 10,
    PREEMPT_SIZE_EXEMPT_S = 3600, /* or it would never get anywhere */
};

static bool has_word(const char *list, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = list; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : "") {
        if (strncasecmp(at, word, len) == 0 && (at[len] == ',' || at[len] == '\0'))
            return true;
    }
    return false;
}

static bool by_tier(const struct state *state)
{
    return str_ieq(state->config->preempt_type, "partition_prio");
}

static bool by_qos(const struct state *state)
{
    return str_ieq(state->config->preempt_type, "qos");
}

bool preempt_by_size(const struct state *state)
{
    return str_ieq(state->config->preempt_type, "size");
}

bool preempt_is_on(const struct state *state)
{
    bool lent = false;

    vec_each (struct reservation *, at, &state->reservations)
        lent = lent || (*at)->spec->max_start_delay_s;
    return lent || by_tier(state) || by_qos(state) || preempt_by_size(state);
}

/* (4) */
static bool by_reservation(const struct state *state, const struct job *job,
                           const struct job *victim)
{
    const struct reservation *resv;
    size_t at = 0;

    if (!victim->shape->resv_warn_s || !job->shape->reservation)
        return false;
    while ((resv = resv_next_for(state, job, &at))) {
        if (resv->active && resv_lends(resv, victim->shape) &&
            !str_eq(resv->spec->name, victim->run->reservation))
            return true;
    }
    return false;
}

static enum preempt_mode mode_of(const char *words)
{
    return has_word(words, "SUSPEND")   ? PREEMPT_SUSPEND
           : has_word(words, "REQUEUE") ? PREEMPT_REQUEUE
           : has_word(words, "CANCEL")  ? PREEMPT_CANCEL
                                        : PREEMPT_OFF;
}

/* What its partition or QOS says, else what holds for all. GANG or PRIORITY alone say nothing. */
static const char *words_for(const struct state *state, const struct job *victim)
{
    const struct partition *partition = partition_at(state, victim->run->partition);
    const char *own = by_tier(state) || preempt_by_size(state)
                          ? (partition ? partition->spec->preempt_mode : NULL)
                      : job_qos(victim) ? job_qos(victim)->preempt_mode
                                        : NULL;

    return mode_of(own) == PREEMPT_OFF && !has_word(own, "OFF") ? state->config->preempt_mode : own;
}

static bool names_qos(const struct qos *qos, const struct qos *other)
{
    for (size_t i = 0; i < qos->preempt_count; i++) {
        if (str_eq(qos->preempts[i], other->name))
            return true;
    }
    return false;
}

static uint32_t preempt_times(const struct state *state)
{
    return state->config->has_preempt_times ? state->config->preempt_times : PREEMPT_TIMES;
}

static bool goes_before(const struct state *state, const struct job *job,
                        const struct partition *partition, const struct job *victim)
{
    const struct partition *other = partition_at(state, victim->run->partition);

    if (by_tier(state))
        return other && partition && partition_tier(partition) > partition_tier(other);
    if (preempt_by_size(state)) /* (6) */
        return other && partition && partition_tier(partition) >= partition_tier(other) &&
               job_may_requeue(state, victim) && victim->restarts < preempt_times(state);
    if (!by_qos(state) || !job_qos(job) || !job_qos(victim))
        return false;
    if (job_qos(job) == job_qos(victim))
        return has_word(state->config->preempt_mode, "WITHIN") &&
               job_priority(state, job) > victim->priority;
    return names_qos(job_qos(job), job_qos(victim));
}

bool preempt_is_waited_for(const struct state *state, const struct job *victim)
{
    uint32_t id = victim->more ? victim->more->preempted_by : 0;
    const struct job *by = id ? job_at(state, id) : NULL;

    return by && job_is_eligible(by);
}

static enum preempt_mode mode_alone(const struct state *state, const struct job *job,
                                    const struct partition *partition, const struct job *victim)
{
    enum job_phase phase = job_phase(victim);

    if (phase != PHASE_RUNNING && phase != PHASE_CONFIGURING && phase != PHASE_SUSPENDED)
        return PREEMPT_OFF;
    if (victim->more && victim->more->preempt_end_us)
        return PREEMPT_OFF; /* it is on its way already */
    if (victim->run->lent && preempt_is_waited_for(state, victim))
        return PREEMPT_OFF; /* for another */
    if (by_reservation(state, job, victim))
        return job_may_requeue(state, victim) ? PREEMPT_REQUEUE : PREEMPT_CANCEL;
    if (!goes_before(state, job, partition, victim))
        return PREEMPT_OFF;
    const struct partition *in = partition_at(state, victim->run->partition);
    if ((has_word(state->config->preempt_mode, "PRIORITY") ||
         (in && has_word(in->spec->preempt_mode, "PRIORITY"))) &&
        job_priority(state, job) <= victim->priority)
        return PREEMPT_OFF;
    enum preempt_mode mode = mode_of(words_for(state, victim));
    if (mode == PREEMPT_REQUEUE && !job_may_requeue(state, victim))
        mode = PREEMPT_CANCEL;
    if (victim->run->lent)
        return mode == PREEMPT_OFF ? PREEMPT_OFF : PREEMPT_SUSPEND; /* it stays so */
    if (mode == PREEMPT_SUSPEND && phase != PHASE_RUNNING && !victim->run->gang)
        mode = PREEMPT_OFF;
    if (preempt_by_size(state) && mode != PREEMPT_REQUEUE)
        mode = PREEMPT_OFF;
    return mode;
}

/* (5): the next component from *offset on that runs and has not begun to end; of any other job itself. */
static struct job *next_of(const struct state *state, const struct job *victim, uint32_t *offset)
{
    uint32_t count = victim->more && victim->more->het_count ? victim->more->het_count : 1;

    while (*offset < count) {
        uint32_t at = (*offset)++;
        struct job *one = job_at(state, count == 1 ? victim->id : victim->more->het_job_id + at);
        enum job_phase phase = one && one->run ? job_phase(one) : PHASE_ENDED;
        if (one == victim ||
            (phase != PHASE_ENDED && phase != PHASE_COMPLETING && phase != PHASE_REQUEUING))
            return one;
    }
    return NULL;
}

enum preempt_mode preempt_mode(const struct state *state, const struct job *job,
                               const struct partition *partition, const struct job *victim)
{
    enum preempt_mode mode = mode_alone(state, job, partition, victim);
    const struct job *one;
    uint32_t at = 0;

    if (!victim->more || !victim->more->het_count)
        return mode;
    while (mode != PREEMPT_OFF && (one = next_of(state, victim, &at))) {
        enum preempt_mode its = mode_alone(state, job, partition, one);
        mode = its == PREEMPT_OFF ? PREEMPT_OFF : MAX(mode, its);
    }
    return mode;
}

static int64_t from_alone_us(const struct state *state, const struct job *victim)
{
    int64_t exempt = job_qos(victim) && job_qos(victim)->preempt_exempt_s >= 0
                         ? job_qos(victim)->preempt_exempt_s
                         : state->config->preempt_exempt_s;

    if (preempt_by_size(state) && exempt <= 0)
        exempt = PREEMPT_SIZE_EXEMPT_S;
    return victim->run->start_us + MIN(MAX(exempt, 0), LIMIT_SECONDS) * US_PER_S;
}

int64_t preempt_from_us(const struct state *state, const struct job *victim)
{
    int64_t from = from_alone_us(state, victim);
    const struct job *one;
    uint32_t at = 0;

    while (victim->more && victim->more->het_count && (one = next_of(state, victim, &at)))
        from = MAX(from, from_alone_us(state, one));
    return from;
}

uint32_t preempt_worth(const struct state *state, const struct job *victim)
{
    const struct partition *partition = partition_at(state, victim->run->partition);

    if (by_qos(state))
        return job_qos(victim) ? job_qos(victim)->priority : 0;
    return partition ? partition_tier(partition) : 0;
}

static int64_t grace_s(const struct state *state, const struct job *victim)
{
    const struct partition *partition = partition_at(state, victim->run->partition);

    if (job_phase(victim) != PHASE_RUNNING)
        return 0;
    if (by_qos(state))
        return job_qos(victim) ? MIN(job_qos(victim)->grace_s, LIMIT_SECONDS) : 0;
    return partition ? partition->spec->grace_time_s : 0;
}

/* ---- what happens to a victim ---- */

/* It goes, now. */
void preempt_out(struct state *state, struct job *victim, bool requeue, int64_t end_us,
                 struct events *out)
{
    victim->more->preempt_end_us = 0;
    if (requeue)
        job_requeue(state, victim, JOB_PREEMPTED, 0, 0, REASON_NONE, end_us, out);
    else
        job_end(state, victim, JOB_PREEMPTED, REASON_NONE, end_us, NULL, out);
    if (job_holds(victim))
        emit_job(out, EVENT_JOB_ENDING, victim);
}

static void tell(struct job *victim, int signal, struct events *out)
{
    struct event *event = emit_job(out, EVENT_JOB_SIGNAL, victim);

    event->signal = (uint32_t)signal;
    event->full = true;
}

/* The signal that it asked for. */
static int signal_of(const struct job *victim)
{
    JobSpec *spec = job_spec_unpack(victim);
    int signal = spec && spec->signal ? (int)spec->signal : SIGTERM;

    if (spec)
        job_spec__free_unpacked(spec, NULL);
    return signal;
}

static void note(struct state *state, struct job *victim, uint32_t by_id, struct events *out)
{
    struct job_more *more = job_more(victim);

    more->preempt_us = state->time_us;
    suspended_for_await(state, victim, by_id);
    if (victim->run->lent) { /* it was told before */
        timers_update(state, victim);
        job_touch(state, victim);
        return;
    }
    job_set_text(&more->system_comment,
                 arena_printf(&state->scratch, "preempted for job %u", by_id));
    job_touch(state, victim);
    emit_job(out, EVENT_JOB_PREEMPTED, victim);
}

static void lend(struct state *state, struct job *victim, struct events *out)
{
    if (victim->run->lent)
        return;
    if (victim->run->gang) { /* it stands already, and waits for another turn now */
        victim->run->gang = false;
        gang_drop(state, victim);
    } else if (job_move(state, victim, JOB_ON_SUSPEND, 0)) {
        victim->run->suspend_us = state->time_us;
    } else {
        return;
    }
    alloc_lend(state, victim); /* (3) */
    timers_update(state, victim);
    emit_job(out, EVENT_JOB_SUSPENDED, victim);
}

/* (2) */
static void warn(struct state *state, struct job *victim, int64_t end_us, bool requeue, int signal,
                 struct events *out)
{
    victim->more->preempt_end_us = end_us;
    victim->more->preempt_requeue = requeue;
    timers_update(state, victim);
    tell(victim, SIGCONT, out);
    tell(victim, signal, out);
}

static void push_aside(struct state *state, struct job *victim, enum preempt_mode mode,
                       const struct job *by, uint32_t by_id, struct events *out)
{
    bool lent = by_reservation(state, by, victim);
    bool at_once = mode == PREEMPT_SUSPEND || job_phase(victim) != PHASE_RUNNING;
    int64_t grace = at_once ? 0 : lent ? victim->shape->resv_warn_s : grace_s(state, victim);
    bool requeue = mode == PREEMPT_REQUEUE;
    struct job *one;

    for (uint32_t at = 0; (one = next_of(state, victim, &at));)
        note(state, one, by_id, out);
    if (mode != PREEMPT_SUSPEND && grace <= 0) {
        preempt_out(state, victim, requeue, state->time_us, out); /* and so do the others */
        return;
    }
    for (uint32_t at = 0; (one = next_of(state, victim, &at));) {
        if (mode == PREEMPT_SUSPEND)
            lend(state, one, out);
        else
            warn(state, one, state->time_us + grace * US_PER_S, requeue,
                 lent || preempt_by_size(state) ? signal_of(one) : SIGTERM, out);
    }
}

/* ---- the command ---- */

/* Who is to start where: a job, or all components of one. */
struct side {
    const struct job *job;
    const struct partition *partition;
};
struct sides {
    struct side *list;
    size_t count;
};

static enum err_code sides_read(struct state *state, const CmdPreempt *cmd, struct sides *out)
{
    out->count = cmd->n_also + 1;
    out->list = ARENA_ARRAY(&state->scratch, struct side, out->count);
    for (size_t i = 0; i < out->count; i++) {
        const char *name = i ? cmd->also[i - 1]->partition : cmd->partition;
        struct side *side = &out->list[i];
        side->job = job_at(state, i ? cmd->also[i - 1]->job_id : cmd->job_id);
        side->partition = name ? partition_at(state, name) : NULL;
        if (!side->job)
            return ERR_INVALID_JOB_ID;
        if (!job_is_eligible(side->job))
            return ERR_JOB_NOT_PENDING;
        if (!side->partition)
            return ERR_INVALID;
    }
    return ERR_OK;
}

/* What happens to it: what the first of them says that it may. */
static enum preempt_mode mode_for(const struct state *state, const struct sides *sides,
                                  const struct job *victim, const struct job **by)
{
    for (size_t i = 0; i < sides->count; i++) {
        enum preempt_mode mode =
            preempt_mode(state, sides->list[i].job, sides->list[i].partition, victim);
        *by = sides->list[i].job;
        if (mode != PREEMPT_OFF)
            return mode;
    }
    return PREEMPT_OFF;
}

/* It has gone already, or was told to. */
static bool is_done_with(const struct job *victim, uint32_t attempt)
{
    if (!victim || !victim->run || victim->attempt != attempt)
        return true;
    enum job_phase phase = job_phase(victim);
    return phase == PHASE_COMPLETING || phase == PHASE_REQUEUING || phase == PHASE_ENDED ||
           (victim->more && victim->more->preempt_end_us);
}

/* (1) */
static enum err_code may_go(const struct state *state, const struct sides *sides,
                            const uint32_t *victims, const uint32_t *attempts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct job *victim = job_at(state, victims[i]), *by;
        if (is_done_with(victim, attempts[i]))
            continue;
        if (mode_for(state, sides, victim, &by) == PREEMPT_OFF ||
            preempt_from_us(state, victim) > state->time_us)
            return ERR_DISABLED;
    }
    return ERR_OK;
}

static enum err_code check(struct state *state, const CmdPreempt *cmd, struct sides *sides)
{
    enum err_code code = sides_read(state, cmd, sides);

    if (code == ERR_OK && (!cmd->n_victims || cmd->n_victims != cmd->n_attempts ||
                           cmd->n_later != cmd->n_later_attempts))
        code = ERR_INVALID;
    if (code == ERR_OK)
        code = may_go(state, sides, cmd->victims, cmd->attempts, cmd->n_victims);
    if (code == ERR_OK)
        code = may_go(state, sides, cmd->later, cmd->later_attempts, cmd->n_later);
    return code;
}

enum err_code apply_preempt(struct state *state, const CmdPreempt *cmd, struct events *out)
{
    struct sides sides;
    enum err_code code = check(state, cmd, &sides);

    if (code != ERR_OK) {
        reject(out, cmd->job_id, NO_TASK, code);
        return code;
    }
    for (size_t i = 0; i < cmd->n_victims; i++) {
        struct job *victim = job_at(state, cmd->victims[i]);
        const struct job *by;
        if (is_done_with(victim, cmd->attempts[i]))
            continue;
        enum preempt_mode mode = mode_for(state, &sides, victim, &by);
        if (mode != PREEMPT_OFF)
            push_aside(state, victim, mode, by, cmd->job_id, out);
    }
    return ERR_OK;
}

/* ---- (3) ---- */

bool preempt_could_resume(const struct state *state, const struct job *job)
{
    const struct job *one;

    for (uint32_t at = 0; (one = next_of(state, job, &at));) { /* (5) */
        if (one->run->lent && !alloc_could_recall(state, one))
            return false;
    }
    return true;
}

bool preempt_resume(struct state *state, struct job *job, struct events *out)
{
    struct job *one;

    if (!preempt_could_resume(state, job))
        return false;
    for (uint32_t at = 0; (one = next_of(state, job, &at));) {
        if (!one->run->lent || !alloc_recall(state, one))
            continue;
        job_move(state, one, JOB_ON_RESUME, 0);
        one->run->suspended_total_us += state->time_us - one->run->suspend_us;
        timers_update(state, one);
        gang_runs(state, one, out);
        emit_job(out, EVENT_JOB_RESUMED, one);
    }
    return true;
}
