/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits.c - may a job start, or be submitted at all?
 *
 * As in Slurm: the QOS of the partition goes before the job's (unless that has OverPartQOS), both
 * before the association; a limit that an earlier one has is not looked at again. Of associations
 * Max limits are the user's (with the parents' filled in), Grp limits those of each one up to root.
 */
#include "core/policy/policy.h"

#include <string.h>

#include "policy/limits_why.h"

/* One question. */
struct look {
    const struct state *state;
    const struct job *job;
    const struct partition *partition;
    const struct charge *charge;
    const struct tallies *planned;
    struct limit_hit *hit;
    bool alone; /* as if nothing else were there: can it ever? (DenyOnLimit) */
    uint32_t tres_done[TRES_BOUNDS];
    bool done[BOUNDS];
    uint64_t seconds; /* of the job */
    uint32_t limit_factor;
};

/* Whose limits are looked at. */
struct owner_of {
    const struct assoc *assoc;
    const struct qos *qos;
    const struct tres_limits *tres_limits;
    const struct holder *holder, *user, *account; /* the latter may be NULL */
};

static bool hit(struct look *look, const struct owner_of *of, unsigned reason, const char *limit,
                const struct tres *tres, const struct holder *holder, uint64_t most, uint64_t used,
                uint64_t asks)
{
    *look->hit = (struct limit_hit){ .reason = reason,
                                     .assoc = of->assoc,
                                     .qos = of->qos,
                                     .part = "",
                                     .limit = limit,
                                     .tres = tres,
                                     .most = most,
                                     .used = used,
                                     .asks = asks,
                                     .holder = holder };
    if (of->qos && holder && holder == of->user)
        look->hit->part = "user";
    else if (of->qos && holder && holder == of->account)
        look->hit->part = "account";
    return true;
}

static const struct planned *planned_of(const struct look *look, const struct holder *holder)
{
    static const struct planned none;

    return look->planned && holder->number < look->planned->count
               ? &look->planned->items[holder->number]
               : &none;
}

/* ---- numbers ---- */

static bool check_jobs(struct look *look, const struct owner_of *of, enum bound bound,
                       const struct holder *holder)
{
    uint64_t most = of->tres_limits->count[bound];

    if (most == NO_LIMIT || look->done[bound])
        return false;
    uint64_t used =
        holder && !look->alone ? (uint32_t)(holder->jobs + planned_of(look, holder)->jobs) : 0;
    if (used + 1 <= most)
        return false;
    hit(look, of, why_bound(of->qos, bound), why_bound_name(of->qos, bound), NULL,
        most ? holder : NULL, most, used, 1);
    look->hit->is = LIMIT_JOBS;
    return true;
}

static bool check_wall(struct look *look, const struct owner_of *of, bool leaf)
{
    uint64_t most = of->tres_limits->count[MAX_WALL], group = of->tres_limits->count[GRP_WALL];

    if (leaf && most != NO_LIMIT && !look->done[MAX_WALL] &&
        (look->job->time_limit_s < 0 || look->seconds > most))
        return hit(look, of, why_bound(of->qos, MAX_WALL), "MaxWall", NULL, NULL, most, 0,
                   look->seconds);
    if (group == NO_LIMIT || look->done[GRP_WALL] || look->alone)
        return false;
    uint64_t used = holder_wall_s(look->state, of->holder);
    bool safe = look->state->accounts->enforce & ENFORCE_SAFE;
    if (used < group && (!safe || used + look->seconds <= group))
        return false;
    hit(look, of, why_bound(of->qos, GRP_WALL), "GrpWall", NULL, of->holder, group, used,
        look->seconds);
    look->hit->past = true;
    return true;
}

/* ---- TRES ---- */

/* What is used and what the job adds, in the unit of the limit. */
struct amounts {
    const struct holder *holder; /* whose counters; NULL: the job alone */
    uint64_t used, asks;
};

/* What those that run will use yet, and those that are planned. */
static uint64_t coming_secs(const struct look *look, const struct holder *holder, size_t k)
{
    uint64_t secs = holder_run_secs(look->state, holder, k) + planned_of(look, holder)->secs[k];

    return (int64_t)secs < 0 ? 0 : secs; /* of what is taken to have ended, see accounts.h */
}

static void amounts_of(const struct look *look, const struct owner_of *of, enum tres_limit bound,
                       size_t k, struct amounts *out)
{
    const struct state *state = look->state;
    uint64_t asks = look->charge->tres[k], minutes = asks * look->seconds / 60;

    *out = (struct amounts){ .asks = asks };
    switch (bound) {
    case GRP_TRES:
    case GRP_TRES_MINS:
    case GRP_TRES_RUN_MINS:
        out->holder = of->holder;
        break;
    case MAX_TRES_USER:
    case MAX_TRES_RUN_MINS_USER:
        out->holder = of->user;
        break;
    case MAX_TRES_ACCT:
    case MAX_TRES_RUN_MINS_ACCT:
        out->holder = of->account;
        break;
    case MAX_TRES_NODE:
        out->asks = k == TRES_BILLING ? billing_of(state, look->partition, look->charge->node)
                                      : look->charge->node[k];
        return;
    case MAX_TRES_MINS_JOB:
        out->asks = minutes;
        return;
    default:
        return;
    }
    bool run_mins = bound == GRP_TRES_RUN_MINS || bound == MAX_TRES_RUN_MINS_USER ||
                    bound == MAX_TRES_RUN_MINS_ACCT;
    const struct holder *holder = out->holder;
    if (run_mins || bound == GRP_TRES_MINS)
        out->asks = minutes;
    if (bound == GRP_TRES_MINS && job_qos(look->job) && job_qos(look->job)->flags & QOS_FACTOR_SAFE)
        out->asks = minutes * job_qos(look->job)->usage_factor / 1000;
    if (!holder || look->alone)
        return;
    const struct planned *planned = planned_of(look, holder);
    if (run_mins)
        out->used = coming_secs(look, holder, k) / 60;
    else if (bound == GRP_TRES_MINS)
        out->used = holder_usage(state, holder, k) / 60;
    else
        out->used = holder->used[k] + planned->tres[k];
}

/* Past usage alone is in the way; with `safe` what the job and the running ones will use too. */
static bool over_minutes(const struct look *look, size_t k, uint64_t most, struct amounts *amounts)
{
    if (look->alone)
        return false;
    if (!(look->state->accounts->enforce & ENFORCE_SAFE))
        return amounts->used >= most;
    amounts->used += coming_secs(look, amounts->holder, k) / 60;
    return amounts->used + amounts->asks > most;
}

static bool is_over(const struct look *look, enum tres_limit bound, size_t k, uint64_t most,
                    struct amounts *amounts)
{
    if (bound == MIN_TRES_JOB)
        return amounts->asks < most;
    if (bound == GRP_TRES_MINS)
        return over_minutes(look, k, most, amounts);
    return amounts->asks && amounts->used + amounts->asks > most;
}

/* A limit of a QOS with the flag Relative: of its partition, or of the cluster. */
static uint64_t relative(const struct look *look, const struct owner_of *of, enum tres_limit bound,
                         size_t k, uint64_t percent)
{
    static const bool rows[TRES_BOUNDS] = {
        [GRP_TRES] = true,      [MAX_TRES_JOB] = true,  [MAX_TRES_NODE] = true,
        [MAX_TRES_USER] = true, [MAX_TRES_ACCT] = true, [MIN_TRES_JOB] = true
    };

    if (!of->qos || !(of->qos->flags & QOS_RELATIVE) || !rows[bound])
        return percent;
    bool of_partition = partition_qos(look->state, look->partition) == of->qos;
    uint64_t all = total_of(look->state, of_partition ? look->partition : NULL, k);
    return (uint64_t)((unsigned __int128)all * percent / 100);
}

/* Those that an earlier owner did not have. */
static uint32_t left_of(const struct look *look, const struct owner_of *of, enum tres_limit bound)
{
    return of->tres_limits->has_tres[bound] & ~look->tres_done[bound];
}

static bool check_tres(struct look *look, const struct owner_of *of, enum tres_limit bound)
{
    for (uint32_t has = left_of(look, of, bound); has; has &= has - 1) {
        size_t k = (size_t)__builtin_ctz(has);
        struct amounts amounts;
        uint64_t most = relative(look, of, bound, k, of->tres_limits->tres[bound][k]);
        if (of->assoc && look->limit_factor)
            most = (uint64_t)((unsigned __int128)most * look->limit_factor / 1000);
        amounts_of(look, of, bound, k, &amounts);
        if (!is_over(look, bound, k, most, &amounts))
            continue;
        const struct tres *tres = &look->state->accounts->tres[k];
        /* What is more than the limit by itself does not become possible when others end. */
        bool alone = bound != GRP_TRES_MINS && amounts.asks > most;
        hit(look, of, why_tres(of->qos, bound, tres->kind), why_tres_name(bound), tres,
            alone ? NULL : amounts.holder, most, amounts.used, amounts.asks);
        if (bound == GRP_TRES || bound == MAX_TRES_USER || bound == MAX_TRES_ACCT)
            look->hit->is = LIMIT_TRES;
        look->hit->past = bound == GRP_TRES_MINS;
        return true;
    }
    return false;
}

/* ---- QOS and associations ---- */

static void mark_done(struct look *look, const struct tres_limits *tres_limits)
{
    for (size_t i = 0; i < BOUNDS; i++)
        look->done[i] = look->done[i] || tres_limits->count[i] != NO_LIMIT;
    for (size_t i = 0; i < TRES_BOUNDS; i++)
        look->tres_done[i] |= tres_limits->has_tres[i];
}

static bool check_qos(struct look *look, const struct qos *qos)
{
    struct owner_of of = { .qos = qos,
                           .tres_limits = &qos->tres_limits,
                           .holder = &qos->holder,
                           .user = job_qos_user(look->state, look->job, qos),
                           .account = job_qos_account(look->state, look->job, qos) };

    if (qos->flags & QOS_ENFORCE_THRESHOLD && !look->alone && job_assoc(look->job) &&
        job_assoc(look->job)->factor < qos->threshold)
        return hit(look, &of, REASON_QOS_THRES, "UsageThreshold", NULL, of.holder,
                   (qos->threshold * 100 + FRACTION / 2) / FRACTION,
                   job_assoc(look->job)->factor * 100 / FRACTION, 0);
    if (check_jobs(look, &of, GRP_JOBS, of.holder) ||
        check_jobs(look, &of, MAX_JOBS_ACCT, of.account) ||
        check_jobs(look, &of, MAX_JOBS, of.user) || check_wall(look, &of, true))
        return true;
    for (enum tres_limit bound = 0; bound < TRES_BOUNDS; bound++) {
        if (left_of(look, &of, bound) && check_tres(look, &of, bound))
            return true;
    }
    mark_done(look, &qos->tres_limits);
    return false;
}

static bool check_assocs(struct look *look, const struct assoc *leaf)
{
    for (const struct assoc *at = leaf; at; at = at->parent) {
        struct owner_of of = { .assoc = at,
                               .tres_limits = &at->tres_limits,
                               .holder = &at->holder };
        if (check_jobs(look, &of, GRP_JOBS, of.holder) ||
            (at == leaf && !look->done[MAX_JOBS_ACCT] &&
             check_jobs(look, &of, MAX_JOBS, of.holder)) ||
            check_wall(look, &of, at == leaf))
            return true;
        for (enum tres_limit bound = 0; bound < TRES_BOUNDS; bound++) {
            bool group = bound <= GRP_TRES_RUN_MINS;
            if ((group || at == leaf) && left_of(look, &of, bound) && check_tres(look, &of, bound))
                return true;
        }
    }
    return false;
}

void limits_qos_order(const struct state *state, const struct job *job,
                      const struct partition *partition, const struct qos *out[2])
{
    const struct qos *part = partition_qos(state, partition), *own = job_qos(job);
    bool own_first = !part || (own && own->flags & QOS_OVER_PART);

    out[0] = own_first ? own : part;
    out[1] = own_first ? part : own;
    if (out[0] == out[1])
        out[1] = NULL;
}

static bool check(struct look *look, const struct partition *partition)
{
    const struct qos *qos[2];

    look->partition = partition;
    look->seconds =
        look->job->time_limit_s < 0 ? UINT64_C(365) * 86400 : (uint64_t)look->job->time_limit_s;
    limits_qos_order(look->state, look->job, partition, qos);
    for (size_t i = 0; i < 2; i++) {
        if (!qos[i])
            continue;
        if (qos[i]->limit_factor && !look->limit_factor)
            look->limit_factor = qos[i]->limit_factor;
        if (check_qos(look, qos[i]))
            return false;
    }
    return !check_assocs(look, job_assoc(look->job));
}

/* Its association or QOS is no longer there. */
static unsigned lost(const struct state *state, const struct job *job)
{
    unsigned enforce = state->accounts->enforce;

    if (enforce & ENFORCE_ASSOCS && !job_assoc(job))
        return REASON_FAIL_ACCOUNT;
    if (enforce & ENFORCE_QOS && job->qos && !job_qos(job))
        return REASON_FAIL_QOS;
    return REASON_NONE;
}

bool limits_allow(const struct state *state, const struct job *job,
                  const struct partition *partition, const struct charge *charge,
                  const struct tallies *planned, struct limit_hit *out)
{
    struct look look = {
        .state = state, .job = job, .charge = charge, .planned = planned, .hit = out
    };

    *out = (struct limit_hit){ .reason = lost(state, job), .part = "" };
    if (out->reason)
        return false;
    return !(state->accounts->enforce & ENFORCE_LIMITS) || check(&look, partition);
}

/* Of "a or b" any will do. */
static uint32_t choices(const struct shape *shape)
{
    return shape->licence_any ? (uint32_t)shape->licence_count : 1;
}

bool limits_allow_any(const struct state *state, const struct job *job,
                      const struct tallies *planned, struct limit_hit *out)
{
    struct limit_hit other;
    struct charge charge;

    *out = (struct limit_hit){ .reason = lost(state, job), .part = "" };
    if (out->reason)
        return false;
    if (!(state->accounts->enforce & ENFORCE_LIMITS))
        return true;
    uint32_t licences = choices(job->shape);
    for (size_t i = 0; i < job->shape->partition_count; i++) {
        const struct partition *partition = partition_at(state, job->shape->partitions[i]);
        for (uint32_t l = 0; l < licences; l++) {
            charge_asked_with(state, job, i, l, &charge);
            if (limits_allow(state, job, partition, &charge, planned, i || l ? &other : out))
                return true;
        }
    }
    return false;
}

bool limits_ever(const struct state *state, const struct job *job,
                 const struct partition *partition, struct limit_hit *out)
{
    const struct qos *qos[2];
    struct charge charge;
    struct look look = { .state = state, .job = job, .charge = &charge, .hit = out, .alone = true };

    limits_qos_order(state, job, partition, qos);
    bool strict = (qos[0] && qos[0]->flags & QOS_DENY_ON_LIMIT) ||
                  (qos[1] && qos[1]->flags & QOS_DENY_ON_LIMIT);
    if (!(state->accounts->enforce & ENFORCE_LIMITS) || !strict)
        return true;
    for (uint32_t l = 0; l < choices(job->shape); l++) {
        charge_asked_with(state, job, 0, l, &charge);
        struct look again = look;
        if (check(&again, partition))
            return true;
    }
    return false;
}

/* ---- how many may be submitted ---- */

/* Whose they are, and what counts them; `done`: bounds that another QOS has set. */
struct submits {
    const struct qos *qos;
    const struct assoc *assoc;
    uint64_t count;
    const bool *done;
    struct limit_hit *hit;
};

static bool room_to_submit(const struct submits *look, enum bound bound,
                           const struct holder *holder)
{
    const struct tres_limits *tres_limits =
        look->qos ? &look->qos->tres_limits : &look->assoc->tres_limits;
    uint64_t most = tres_limits->count[bound], used = holder ? holder->submitted : 0;

    if (most == NO_LIMIT || look->done[bound] || used + look->count <= most)
        return true;
    *look->hit = (struct limit_hit){
        .reason = why_bound(look->qos, bound),
        .qos = look->qos,
        .assoc = look->assoc,
        .part = !look->qos || bound == GRP_SUBMIT ? ""
                : bound == MAX_SUBMIT             ? "user"
                                                  : "account",
        .limit = why_bound_name(look->qos, bound),
        .most = most,
        .used = used,
        .asks = look->count,
        .holder = look->count <= most ? holder : NULL,
    };
    return false;
}

bool limits_submit(const struct state *state, const struct job *job,
                   const struct partition *partition, uint64_t count, struct limit_hit *hit)
{
    const struct qos *qos[2];
    bool done[BOUNDS] = { false };
    struct submits look = { .count = count, .done = done, .hit = hit };

    if (!(state->accounts->enforce & ENFORCE_LIMITS))
        return true;
    limits_qos_order(state, job, partition, qos);
    for (size_t i = 0; i < 2; i++) {
        look.qos = qos[i];
        if (qos[i] &&
            (!room_to_submit(&look, GRP_SUBMIT, &qos[i]->holder) ||
             !room_to_submit(&look, MAX_SUBMIT_ACCT, job_qos_account(state, job, qos[i])) ||
             !room_to_submit(&look, MAX_SUBMIT, job_qos_user(state, job, qos[i]))))
            return false;
        for (size_t k = 0; qos[i] && k < BOUNDS; k++)
            done[k] = done[k] || qos[i]->tres_limits.count[k] != NO_LIMIT;
    }
    look.qos = NULL;
    for (const struct assoc *at = job_assoc(job); at; at = at->parent) {
        look.assoc = at;
        if (!room_to_submit(&look, GRP_SUBMIT, &at->holder) ||
            (at == job_assoc(job) && !done[MAX_SUBMIT_ACCT] &&
             !room_to_submit(&look, MAX_SUBMIT, &at->holder)))
            return false;
    }
    return true;
}
