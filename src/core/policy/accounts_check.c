/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accounts_check.c - are the counters of associations and QOS what the jobs add up to?
 *
 * Every job is looked at and added up by other means than limits_count(): a wrong step there shows.
 */
#include <stdlib.h>
#include <string.h>

#include "core/policy/policy.h"

struct sum {
    uint64_t jobs, submitted, accruing, used[TRES_MOST], rate[TRES_MOST];
};

static int wrong(struct err *err, const struct holder *holder, const char *what)
{
    return err_set(err, ERR_INTERNAL, "core: holder %u: %s", holder->number, what);
}

static bool has_qos(const struct state *state, const struct job *job, const char *partition,
                    const struct qos *qos)
{
    const struct partition *at = state_partition(state, partition);

    return str_eq(job->qos, qos->name) || (at && str_eq(at->spec->qos, qos->name));
}

static void add_job(const struct state *state, const struct job *job, bool waits_here,
                    bool runs_here, struct sum *sum)
{
    enum job_phase phase = job_phase(job);
    bool runs = phase == PHASE_RUNNING || phase == PHASE_CONFIGURING || phase == PHASE_SUSPENDED;
    struct charge charge;

    if (phase == PHASE_ENDED || phase == PHASE_COMPLETING)
        return;
    if (waits_here)
        sum->submitted += job_is_meta(job) ? job->array->waiting : 1;
    if (waits_here && job->state == JOB_PENDING && phase != PHASE_REQUEUING && job->accrue_us)
        sum->accruing += job_is_meta(job) ? job->array->waiting : 1;
    if (!runs || !runs_here)
        return;
    sum->jobs++;
    charge_given(state, job, &charge);
    for (size_t k = 0; k < TRES_MOST; k++) {
        sum->used[k] += charge.tres[k];
        if (phase != PHASE_SUSPENDED)
            sum->rate[k] += charge.tres[k] * (job_qos(job) ? job_qos(job)->usage_factor : 1000);
    }
}

static int compare(const struct holder *holder, const struct sum *sum, struct err *err)
{
    if (sum->submitted != holder->submitted)
        return wrong(err, holder, "jobs in the queue are not counted right");
    if (sum->accruing != holder->accruing)
        return wrong(err, holder, "jobs that age are not counted right");
    if (sum->jobs != holder->jobs)
        return wrong(err, holder, "running jobs are not counted right");
    if (memcmp(sum->used, holder->used, sizeof(sum->used)) != 0)
        return wrong(err, holder, "TRES in use are not counted right");
    if (holder->keeps && memcmp(sum->rate, holder->rate, sizeof(sum->rate)) != 0)
        return wrong(err, holder, "its rate is not right");
    return 0;
}

static bool is_below(const struct assoc *leaf, const struct assoc *top)
{
    while (leaf && leaf != top)
        leaf = leaf->parent;
    return leaf;
}

static int check_assoc(const struct state *state, const struct assoc *assoc, struct err *err)
{
    struct sum sum = { 0 };

    for (const struct job *job = state_job_from(state, 0); job;
         job = state_job_from(state, (uint64_t)job->id + 1)) {
        bool here = is_below(job_assoc(job), assoc);
        add_job(state, job, here, here, &sum);
    }
    return compare(&assoc->holder, &sum, err);
}

/* The whole QOS, or of one user or account. */
static int check_qos(const struct state *state, const struct qos *qos, const struct holder *holder,
                     const char *account, uint64_t uid, struct err *err)
{
    struct sum sum = { 0 };

    for (const struct job *job = state_job_from(state, 0); job;
         job = state_job_from(state, (uint64_t)job->id + 1)) {
        if ((account && !str_eq(job->account, account)) ||
            (uid != UINT64_MAX && job->owner->uid != uid))
            continue;
        add_job(state, job, has_qos(state, job, job->shape->partitions[0], qos),
                has_qos(state, job, job->run ? job->run->partition : NULL, qos), &sum);
    }
    return compare(holder, &sum, err);
}

/* More pairs of jobs and counters than this are not compared. */
enum { PAIRS_MOST = 2000000 };

int accounts_check(const struct state *state, uint64_t *digest, struct err *err)
{
    const struct accounts *accounts = state->accounts;
    bool compares = state->records * (accounts->holders + 1) < PAIRS_MOST;
    int code = 0;

    vec_each (struct assoc *, at, &accounts->assocs) {
        *digest += holder_hash(&(*at)->holder);
        if (code == 0 && compares)
            code = check_assoc(state, *at, err);
    }
    vec_each (struct qos *, at, &accounts->qos) {
        *digest += holder_hash(&(*at)->holder);
        if (!compares)
            continue;
        if (code == 0)
            code = check_qos(state, *at, &(*at)->holder, NULL, UINT64_MAX, err);
        map_each (entry, (*at)->users) {
            if (code == 0)
                code = check_qos(state, *at, entry->value, NULL, entry->num, err);
        }
        map_each (entry, (*at)->accounts) {
            if (code == 0)
                code = check_qos(state, *at, entry->value, entry->key, UINT64_MAX, err);
        }
    }
    return code;
}
